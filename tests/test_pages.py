"""Pages of entries: what the reader takes and refuses, what is shown without a translation, and which ones are listed."""

import dataclasses
import shutil

import pytest
import translations
from entry_page import page as site_page

import posenc
from cases import cases
from posenc.catalogue import entry as entry_module
from posenc.catalogue.description import describe
from posenc.catalogue.option_descriptions import options_of
from posenc.catalogue.page import read

ENTRIES = posenc.catalogue.ENTRIES
ENGLISH = """# Mine

## Idea

One line and
another, 2 ×
as long.

## Formula

$$
a
b
$$

## Where it breaks

Nowhere.

## Source

A paper
"""
CHINESE = """<!-- translates 0123abcd -->
# 我的

## 思路

一行，与
另一行 x
y。

## 选项

- `n_heads`：头数：整数

## 使用者

- its authors：作者
- Falcon (the first)：初代 Falcon
"""


@pytest.fixture
def mine(tmp_path):
    (tmp_path / "mine.md").write_text(ENGLISH, encoding="utf-8")
    return tmp_path / "mine.md"


def test_a_page_without_a_translation_is_in_english(mine):
    said = read(mine)
    assert said.title.both() == ("Mine", "Mine")
    assert said.idea.both() == ("One line and another, 2 × as long.",) * 2
    assert said.breaks.zh == "Nowhere."
    assert (said.latex, said.source, said.code, said.example) == ("a\nb", "A paper", "", "")
    assert said.differs is said.coordinates is None
    assert (said.options, said.used_by, said.translates) == ({}, {}, "")


def test_a_section_without_a_translation_is_in_english(mine):
    mine.with_suffix(".zh.md").write_text(CHINESE, encoding="utf-8")
    said = read(mine)
    assert said.title.both() == ("Mine", "我的")
    assert said.idea.zh == "一行，与另一行 x y。"
    assert said.breaks.both() == ("Nowhere.", "Nowhere.")
    assert (said.options, said.translates) == ({"n_heads": "头数：整数"}, "0123abcd")
    assert said.used_by == {"its authors": "作者", "Falcon (the first)": "初代 Falcon"}


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("mine.md", "# Mine\n", "Mine\n", "expected to begin with '# TITLE'"),
        ("mine.md", "# Mine\n", "# Mine\n\nAnd more.\n", "expected to begin with '# TITLE'"),
        ("mine.md", "## Idea", "## Ideas", "unknown section 'Ideas'; known: Idea, "),
        ("mine.md", "## Source", "## Idea", "the section 'Idea' stands twice"),
        ("mine.md", "## Idea\n\nOne line and\nanother, 2 ×\nas long.\n", "", "has no section Idea"),
        ("mine.md", "Nowhere.\n", "", "the section 'Where it breaks' is empty"),
        ("mine.md", "Nowhere.\n", "Here.\n\nAnd there.\n", "expected one paragraph"),
        ("mine.md", "$$\na\nb\n$$", "a", r"expected \$\$, the formula and \$\$"),
        ("mine.md", "## Source", "## Example\n\nx = 1\n\n## Source", "expected a block of ```python"),
        ("mine.zh.md", "## 思路", "## Idea", "unknown section 'Idea'; known: 思路"),
        ("mine.zh.md", "## 使用者", "## 选项", "the section '选项' stands twice"),
        ("mine.zh.md", "- `n_heads`：", "- n_heads: ", "expected a list of '- `NAME`：MEANING'"),
        ("mine.zh.md", "- `n_heads`：头数：整数", "- `n_heads`：头数\n- `n_heads`：头", "'n_heads' stands twice"),
        ("mine.zh.md", "- its authors：作者", "- 作者", "expected a list of '- ENGLISH：CHINESE'"),
        ("mine.zh.md", "<!-- translates 0123abcd -->", "<!-- translated -->", "expected to begin with"),
    ],
)
def test_what_is_written_otherwise_is_refused_and_the_file_named(mine, name, old, new, message):
    mine.with_suffix(".zh.md").write_text(CHINESE, encoding="utf-8")
    file = mine.with_name(name)
    text = file.read_text(encoding="utf-8")
    assert text.count(old) == 1
    file.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(ValueError, match=f"{name}: .*{message}"):
        read(mine)


STUDIED = {
    *("nope", "sinusoidal", "learned", "floater", "shaw", "transformer_xl", "alibi", "t5", "rope", "xpos", "cope"),
    *("kerple", "fire", "fox", "pope", "path", "drope"),
    *("linear", "ntk", "yarn", "self_extend"),  # put into the trained RoPE
}
"""Entries of the shipped study of the language model: their pages begin with its curve."""
HEADINGS = ("Example", "What it costs", "Where it breaks", "What differs", "Options", "More")


@cases("entry", ENTRIES)
def test_every_entry_has_a_page_with_the_needed_sections(entry):
    said, row = entry.page, describe(entry)
    assert said.title.en == entry.title
    assert entry.used_by
    assert set(said.options) <= set(options_of(entry)), "its Chinese describes options that there are not"
    assert set(said.used_by) <= set(entry.used_by), "its Chinese has other users"
    assert all(english != chinese for english, chinese in said.used_by.items()), "its Chinese says what the English says"
    english, chinese = site_page(row, "en"), site_page(row, "zh")
    headings = [line[3:].split(" from ")[0] for line in english.splitlines() if line.startswith("## ")]
    assert headings == [*(["What was measured"] if entry.name in STUDIED else []), *HEADINGS]
    for text, language in ((english, "en"), (chinese, "zh")):
        shown = [said.idea, said.breaks, *(words for words in (said.differs, said.coordinates) if words)]
        assert all(words.in_language(language) in text for words in shown)
        assert f"$$\n{said.latex}\n$$" in text
        assert f"(../pictures/{entry.name}.png)" in text
        for name, words in options_of(entry).items():
            meaning = words.in_language(language).replace("|", "\\|")
            assert any(line.startswith(f"| `{name}` | ") and line.endswith(f" | {meaning} |") for line in text.splitlines())


def test_no_page_is_without_its_entry():
    written = {file.name.split(".")[0] for file in (entry_module.PACKAGE / "encodings").rglob("*.md")}
    assert written == set(posenc.catalogue.BY_NAME)


def test_missing_and_outdated_translations_are_listed(tmp_path, monkeypatch):
    alibi = posenc.catalogue.BY_NAME["alibi"]
    (tmp_path / "encodings").mkdir()
    english, chinese = (tmp_path / "encodings" / name for name in ("alibi.md", "alibi.zh.md"))
    shutil.copy(alibi.page_file, english)
    for module in (entry_module, translations):
        monkeypatch.setattr(module, "PACKAGE", tmp_path)

    def listed(**changed):
        return list(translations.listed([dataclasses.replace(alibi, **changed)]))

    (missing,) = listed()
    assert missing.startswith("encodings/alibi.zh.md: missing; begin it with <!-- translates ")
    chinese.write_text(f"{missing.partition('with ')[2]}\n# 偏置\n\n## 思路\n\n近。\n", encoding="utf-8")
    assert listed() == []
    (outdated,) = listed(used_by=("BLOOM",))
    assert outdated.startswith("encodings/alibi.zh.md: outdated; ")
    english.write_text(english.read_text(encoding="utf-8").replace("linearly", "in a line"), encoding="utf-8")
    (outdated,) = listed()
    assert outdated.startswith("encodings/alibi.zh.md: outdated; ")
    assert dataclasses.replace(alibi).page.idea.zh == "近。"
    chinese.write_text(f"{outdated.partition('with ')[2]}\n# 偏置\n", encoding="utf-8")
    assert listed() == []
