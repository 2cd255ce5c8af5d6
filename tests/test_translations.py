"""Chinese beside the code: catalogues of translations, read when asked for, and never a condition for a sentence."""

from __future__ import annotations

import copy
import pickle
import string
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from posenc.support import data_files, languages
from posenc.support.languages import Words, catalogue_of, clauses

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
from translated_messages import Sentence, listed, rooms, said, translated

ENTRIES = [(room, sentence, chinese) for room in rooms() for sentence, chinese in translated(room).items()]
CATALOGUE = """
msgid ""
msgstr "Content-Type: text/plain; charset=utf-8\\n"

msgid "row {row} of {rows:,}: {why}"
msgstr "{rows:,} 行中的第 {row} 行：{why}"

msgid "zero"
msgstr "零"

msgctxt "temperature"
msgid "zero"
msgstr "零度"

#, fuzzy
msgid "one"
msgstr "旧的译文"

msgid "gone"
msgstr "不再使用"
"""
MODULE = """
from posenc.room.say import say

say("zero"), say("zero", context="temperature"), say("one"), say("new {n}", n=1)
self.say("a method"), log.say("another")
"""

TABLE = """
sentences = ["title"]

[rows]
first = {title = "zero", link = "never said"}
second = {title = "a sentence of a table"}
"""


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a catalogue and a module, in the place of those of posenc."""
    folder = tmp_path / "room"
    folder.mkdir()
    (folder / "zh.po").write_text(CATALOGUE, encoding="utf-8")
    (folder / "module.py").write_text(MODULE, encoding="utf-8")
    (folder / "table.toml").write_text(TABLE, encoding="utf-8")
    monkeypatch.setattr(languages, "ROOMS", tmp_path)
    languages.translations.cache_clear()
    yield folder
    languages.translations.cache_clear()


def test_a_sentence_is_translated_with_its_values(room: Path) -> None:
    say = catalogue_of("room")
    words = say("row {row} of {rows:,}: {why}", row=3, rows=1000, why=say("zero"))
    assert words.en == "row 3 of 1,000: zero"
    assert words.zh == "1,000 行中的第 3 行：零"
    assert say("zero", context="temperature") == Words("zero", "零度") != say("zero")
    assert clauses(say("zero"), say("zero")) == Words("zero; zero", "零；零")


@pytest.mark.parametrize("sentence", ["never translated {n}", "one", "a {brace} and {"])
def test_without_a_translation_it_stays_english(room: Path, sentence: str) -> None:
    """Also with a translation that is marked fuzzy; braces need no value."""
    words = catalogue_of("room")(sentence)
    assert words.en == words.zh == sentence


def test_a_table_speaks_both_languages_where_it_says_so(room: Path) -> None:
    """Strings under a key of `sentences`, however deep; the others stay as they are."""
    table = data_files.beside(str(room / "table.py"), catalogue_of("room"))
    assert table["rows"]["first"] == {"title": Words("zero", "零"), "link": "never said"}
    assert data_files.beside(str(room / "table.py"))["rows"]["first"]["title"] == "zero"


def test_words_travel(room: Path) -> None:
    """To another process, where the catalogue may be another one."""
    words = catalogue_of("room")("zero")
    assert pickle.loads(pickle.dumps(words)) == copy.deepcopy(words) == Words("zero", "零")
    assert {words: 1} == {Words("zero", "零"): 1}
    assert words.as_dict() == {"en": "zero", "zh": "零"}
    assert Words("RoPE").both() == ("RoPE", "RoPE")


def test_english_reads_no_catalogue() -> None:
    """A configuration is read and reported in English without Babel."""
    code = (
        "import sys; from posenc.configs import read_config; from posenc.configs.report.report import report\n"
        "report(read_config({'model_type': 'llama'}), 10**6, 'en'); assert 'babel' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_is_missing_and_what_is_unused_is_listed(room: Path) -> None:
    missing, unused = "room/module.py:4: missing: ", "room/zh.po: unused: "
    assert listed([room.parent]) == [
        f"{missing}'one'",
        f"{missing}'new {{n}}'",
        "room/table.toml: missing: 'a sentence of a table'",
        f"{unused}'row {{row}} of {{rows:,}}: {{why}}'",
        f"{unused}'gone'",
    ]


@pytest.mark.parametrize("call", ["say(text)", 'say("a" if x else "b")', 'say("a", "b")', 'say("a", context=x)', "say()"])
def test_a_sentence_is_written_out_where_it_is_said(room: Path, call: str) -> None:
    (room / "module.py").write_text(f"from posenc.room.say import say\n\n{call}\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"room/module\.py:3: say takes one sentence"):
        listed([room.parent])


# The catalogues of posenc ---------------------------------------------------------------------------------------------


def values(text: str) -> set[str]:
    """The names of the values of a sentence, those inside a format as well."""
    parts = [(name, form) for _, name, form, _ in string.Formatter().parse(text) if name is not None]
    return {name for name, _ in parts} | {inner for _, form in parts for inner in values(form or "")}


def test_a_sentence_and_its_translation_have_the_same_values() -> None:
    differ = [(f"{room.name}/zh.po", one.english) for room, one, zh in ENTRIES if values(one.english) != values(zh)]
    assert differ == []


def test_every_sentence_of_posenc_is_found() -> None:
    """`make translations` reads the sentences that it should; whether they have a translation is no test's matter."""
    assert len(ENTRIES) > 1500
    assert {room.name for room in rooms()} == {
        "catalogue",
        "checking",
        "configs",
        "explorer",
        "judging",
        "lab",
        "learn",
        "transformers",
    }
    for room in rooms():
        assert said(room)
    assert Sentence("", "row p + 1 is read: {rows} frames at most") in said(languages.ROOMS / "configs")
