"""The generated pages are what the package would write, in both languages, with every link leading somewhere."""

import dataclasses
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import posenc
from posenc.catalogue.choose import costs
from posenc.catalogue.option_descriptions import described, options_of

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(page for page in (ROOT / "docs").rglob("*.md") if "node_modules" not in page.parts)])


def test_generated_pages_are_current():
    done = subprocess.run(
        [sys.executable, "docs/make.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
        assert target.startswith("https://") or (page.parent / target).exists(), f"{page.name}: {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_page_has_its_twin(page):
    if page.name in ("CHANGELOG.md", "RESULTS.md", "LOG.md", "design.md"):
        return
    twin = page.name.replace(".zh-CN.md", ".md") if ".zh-CN" in page.name else page.name.replace(".md", ".zh-CN.md")
    assert (page.parent / twin).exists()


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / "docs" / page).read_text(encoding="utf-8"), flags=re.DOTALL)


def test_the_page_of_backends_runs_as_printed_in_both_languages(capsys):
    namespace = {}
    for code in blocks("backends.md", "python"):
        exec(compile(code, "backends.md", "exec"), namespace)
    assert capsys.readouterr().out == "".join(blocks("backends.md", "output"))
    for language in ("python", "output"):
        assert blocks("backends.md", language) == blocks("backends.zh-CN.md", language)


def test_the_page_of_check_runs_as_printed_in_both_languages(capsys):
    namespace = {}
    for code in blocks("check.md", "python"):
        exec(compile(code, "check.md", "exec"), namespace)
    assert capsys.readouterr().out == "".join(blocks("check.md", "output"))
    for language in ("python", "output", "py"):
        assert blocks("check.md", language) == blocks("check.zh-CN.md", language)


@pytest.mark.parametrize("name", [entry.name for entry in posenc.catalogue.ENTRIES])
def test_the_examples_of_every_encoding_run(name):
    english, chinese = (blocks(f"encodings/{name}{suffix}", "python") for suffix in (".md", ".zh-CN.md"))
    assert english == chinese
    made = {}
    for code in english:
        exec(compile(code, name, "exec"), made)
    if posenc.catalogue.BY_NAME[name].kind == "positions":
        assert isinstance(made["at"], posenc.Positions)
        return
    assert isinstance(made["encoding"], posenc.PositionalEncoding)
    if "x" in made:
        assert made["x"].shape == made["words"].shape
        assert not made["x"].equal(made["words"])
    if "hidden_states" in posenc.catalogue.BY_NAME[name].needs:
        assert made["out"].shape == made["words"].shape
        plain = posenc.Attention(made["d_model"], made["n_heads"], posenc.create("nope"))
        plain.load_state_dict(made["attention"].state_dict(), strict=False)
        made["attention"].encoding = posenc.laws.draw_parameters(made["encoding"], seed=1)
        assert not made["attention"](made["words"], made["at"]).equal(plain(made["words"], made["at"]))
    elif "out" in made:
        rows, heads, *rest = made["q"].shape
        assert made["out"].shape == (rows, heads * made["encoding"].query_copies, *rest)
        drawn = posenc.laws.draw_parameters(made["encoding"].at_layer(0), seed=1)  # some tables start at zero
        at = made["at"].replaced(tables={})
        if posenc.catalogue.BY_NAME[name].kind == "tempered":
            at = at.shift(20_000)  # some are one up to their length
        qkv = made["q"], made["k"], made["v"]
        with_positions, without = posenc.attend(*qkv, drawn, at), posenc.attend(*qkv, posenc.create("nope"), at)
        without = without.repeat_interleave(drawn.query_copies, dim=1)
        assert with_positions.equal(without) == (drawn.seams == posenc.Seam.NONE)
    assert {"x", "out"} & made.keys()


def test_every_encoding_has_a_page():
    for entry in posenc.catalogue.ENTRIES:
        for suffix in (".md", ".zh-CN.md"):
            assert (ROOT / "docs" / "encodings" / f"{entry.name}{suffix}").exists()
        assert (ROOT / "docs" / "pictures" / f"{entry.name}.png").stat().st_size > 3000
    pages = {page.name.partition(".")[0] for page in (ROOT / "docs" / "encodings").glob("*.md")}
    assert pages == set(posenc.catalogue.BY_NAME), "a page of an entry that there is not"


HEADINGS = ("Example", "What it costs", "Where it breaks", "What differs", "Options", "More")


@pytest.mark.parametrize("entry", posenc.catalogue.ENTRIES, ids=lambda entry: entry.name)
def test_every_page_is_complete(entry):
    ends = {"en": r"[.!?](?=\s|$)", "zh": "[。！？]"}
    sentences = {language: len(re.findall(end, entry.idea.in_language(language))) for language, end in ends.items()}
    assert all(2 <= count <= 4 for count in sentences.values()), "the idea in two to four sentences"
    assert entry.latex, "ENTRY has no formula for its page: latex"
    assert entry.breaks is not None, "ENTRY does not say where it breaks: breaks"
    assert entry.used_by
    assert entry.source
    for words in (entry.breaks, *([entry.differs] if entry.differs else [])):
        assert re.search(r"[.](?=\s|$)", words.en)
        assert re.search("[\u4e00-\u9fff].*。", words.zh, re.DOTALL)
    text = (ROOT / "docs" / "encodings" / f"{entry.name}.md").read_text(encoding="utf-8")
    assert [heading.split(" from ")[0] for heading in re.findall("^## (.*)", text, re.MULTILINE)] == list(HEADINGS)
    assert f"$$\n{entry.latex}\n$$" in text
    assert f"(../pictures/{entry.name}.png)" in text
    if entry.coordinates is not None:
        chinese = (ROOT / "docs" / "encodings" / f"{entry.name}.zh-CN.md").read_text(encoding="utf-8")
        assert f"**Positions.** {entry.coordinates.en}\n\n```python" in text
        assert f"**位置**：{entry.coordinates.zh}\n\n```python" in chinese


@pytest.mark.parametrize("entry", posenc.catalogue.ENTRIES, ids=lambda entry: entry.name)
def test_every_option_is_described_in_both_languages(entry):
    described = options_of(entry)
    assert list(described) == list(inspect.signature(entry.maker()).parameters)
    for suffix, language in ((".md", "en"), (".zh-CN.md", "zh")):
        text = (ROOT / "docs" / "encodings" / f"{entry.name}{suffix}").read_text(encoding="utf-8")
        for name, words in described.items():
            said = words.in_language(language).replace("|", "\\|")
            assert re.search(rf"^\| `{name}` \| .* \| {re.escape(said)} \|$", text, re.MULTILINE), name
    assert set(entry.options) <= set(described), "ENTRY describes options that there are not"


def test_an_option_without_a_description_is_an_error():
    rope = posenc.catalogue.BY_NAME["yarn"]
    assert described("What.\n\nfactor, other  one\n    and more\nbase   two\n\nlength: no") == {
        "factor": "one and more",
        "other": "one and more",
        "base": "two",
    }
    with pytest.raises(ValueError, match="no Chinese for the option 'beta_fast'"):
        options_of(dataclasses.replace(rope, options={}))
    with pytest.raises(ValueError, match="has no line for"):
        options_of(dataclasses.replace(rope, builder="checked"))


@pytest.mark.parametrize("entry", posenc.catalogue.ENTRIES, ids=lambda entry: entry.name)
def test_formulas_are_well_formed(entry):
    """Braces, environments and \\left … \\right are closed; the site's build renders all of them."""
    depth = 0
    for brace in re.findall(r"(?<!\\)[{}]", entry.latex):
        depth += 1 if brace == "{" else -1
        assert depth >= 0
    assert depth == 0
    assert entry.latex.count(r"\left") - entry.latex.count(r"\leftarrow") == entry.latex.count(r"\right")
    assert re.findall(r"\\begin\{(\w+)\}", entry.latex) == re.findall(r"\\end\{(\w+)\}", entry.latex)
    assert not re.search("[\u4e00-\u9fff]", entry.latex)


@pytest.mark.acceptance
def test_every_entry_has_measured_costs():
    """python -m posenc.bench.costs measures what is missing."""
    assert set(costs.measured()) == {entry.name for entry in posenc.catalogue.ENTRIES}


def test_measured_costs_are_plausible():
    measured = costs.measured()
    assert set(measured) <= {entry.name for entry in posenc.catalogue.ENTRIES}
    assert set(posenc.catalogue.FOUNDATION) <= set(measured)
    for name, cost in measured.items():
        for ratio in cost.ratios.values():
            assert isinstance(ratio, str) or 0.1 < ratio.low <= ratio.median <= ratio.high, name
        assert isinstance(cost.memory, str) or cost.memory.bytes >= 0
    none = measured["nope"]
    assert all(0.8 < none.median(measure) < 1.25 for measure in costs.MEASURES), "NoPE beside NoPE"
    assert measured["decomposed"].memory.order == "n²"
    assert measured["fox"].memory.order == measured["path"].memory.order == "n"
    assert measured["rope"].memory.order in ("few", "n")


def test_growth_of_memory_is_told_by_doubling_the_tokens():
    pairs = ((10, 10), (10, 20), (10, 40), (2, 4))
    assert [costs.growth(half * costs.MiB, whole * costs.MiB) for half, whole in pairs] == ["1", "n", "n²", "few"]
