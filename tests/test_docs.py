"""What pages take from the package is what it would write, every link leads somewhere, and every example runs."""

import csv
import dataclasses
import inspect
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

import posenc
from cases import cases
from posenc.catalogue.choose import costs
from posenc.catalogue.description import describe, program, written
from posenc.catalogue.option_descriptions import described, options_of

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(page for page in (ROOT / "docs").rglob("*.md") if "node_modules" not in page.parts)])


def test_what_pages_take_from_the_package_is_current():
    done = subprocess.run(
        [sys.executable, "docs/make.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@cases("page", PAGES)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
        assert target.startswith("https://") or (page.parent / target).exists(), f"{page.name}: {target}"


@cases("page", PAGES)
def test_every_page_has_its_twin(page):
    if page.name in ("CHANGELOG.md", "LOG.md", "design.md") or page.name.startswith("RESULTS"):
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


def test_the_recipes_of_caches_run_as_printed_in_both_languages(capsys):
    namespace = {}
    for code in blocks("caches.md", "python"):
        exec(compile(code, "caches.md", "exec"), namespace)
    printed = capsys.readouterr().out
    assert printed == "".join(blocks("caches.md", "output"))
    assert "False" not in printed
    for language in ("python", "output"):
        assert blocks("caches.md", language) == blocks("caches.zh-CN.md", language)


def test_the_page_of_check_runs_as_printed_in_both_languages(capsys):
    namespace = {}
    for code in blocks("check.md", "python"):
        exec(compile(code, "check.md", "exec"), namespace)
    assert capsys.readouterr().out == "".join(blocks("check.md", "output"))
    for language in ("python", "output", "py"):
        assert blocks("check.md", language) == blocks("check.zh-CN.md", language)


@pytest.mark.parametrize("name", [entry.name for entry in posenc.catalogue.ENTRIES])
def test_the_examples_of_every_encoding_run(name):
    row, made = describe(posenc.catalogue.BY_NAME[name]), {}
    for code in (program(row), row["example"]):
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
        entry = posenc.catalogue.BY_NAME[name]
        at = made["at"].replaced(tables={})
        if entry.of_pairs:  # which know the parameters of the encoding that reads them
            at = written(entry.positions, batch=rows, length=rest[0], encoding=drawn)
        if posenc.catalogue.BY_NAME[name].kind == "tempered":
            at = at.shift(20_000)  # some are one up to their length
        qkv = made["q"], made["k"], made["v"]
        with_positions, without = posenc.attend(*qkv, drawn, at), posenc.attend(*qkv, posenc.create("nope"), at)
        without = without.repeat_interleave(drawn.query_copies, dim=1)
        assert with_positions.equal(without) == (drawn.seams == frozenset())
    assert {"x", "out"} & made.keys()


def test_every_encoding_has_a_picture():
    for name in posenc.catalogue.BY_NAME:
        assert (ROOT / "docs" / "pictures" / f"{name}.png").stat().st_size > 3000


def test_an_option_without_a_description_is_an_error():
    rope = posenc.catalogue.BY_NAME["yarn"]
    assert described("What.\n\nfactor, other  one\n    and more\nbase   two\n\nlength: no") == {
        "factor": "one and more",
        "other": "one and more",
        "base": "two",
    }
    with pytest.raises(ValueError, match="has no line for"):
        options_of(dataclasses.replace(rope, builder="checked"))


@cases("entry", posenc.catalogue.ENTRIES)
def test_every_option_is_described(entry):
    assert list(options_of(entry)) == list(inspect.signature(entry.maker()).parameters)


@cases("entry", posenc.catalogue.ENTRIES)
def test_formulas_are_well_formed(entry):
    """Braces, environments and \\left … \\right are closed; the site's build renders all of them."""
    depth = 0
    for brace in re.findall(r"(?<!\\)[{}]", entry.page.latex):
        depth += 1 if brace == "{" else -1
        assert depth >= 0
    assert depth == 0
    assert entry.page.latex.count(r"\left") - entry.page.latex.count(r"\leftarrow") == entry.page.latex.count(r"\right")
    assert re.findall(r"\\begin\{(\w+)\}", entry.page.latex) == re.findall(r"\\end\{(\w+)\}", entry.page.latex)
    assert not re.search("[\u4e00-\u9fff]", entry.page.latex)


@pytest.mark.acceptance
def test_every_entry_has_measured_costs():
    """python -m posenc.pictures.costs measures what is missing."""
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


def scores(folder, task, encoding, mode, length, setting="trained"):
    """By seed, from the report's cells."""
    with (ROOT / "results" / folder / "report" / "cells.csv").open(encoding="utf-8", newline="") as file:
        lines = [
            line for line in csv.DictReader(file)
            if (line["task"], line["encoding"], line["mode"], line["length"], line["setting"])
            == (task, encoding, mode, str(length), setting)
        ]  # fmt: skip
    return np.array([float(line["value"]) for line in sorted(lines, key=lambda line: line["seed"])])


def told(numbers):
    """The mean and its 95 % interval, which stays between 0 and 100."""
    ends = scipy.stats.t.interval(0.95, len(numbers) - 1, numbers.mean(), scipy.stats.sem(numbers))
    low, high = np.clip(ends, 0, 100)
    return f"{numbers.mean():.0f} % ({low:.0f} – {high:.0f})"


@pytest.mark.parametrize("page", ["results.md", "results.zh-CN.md"])
def test_gained_and_kept_are_columns_with_intervals_and_seeds(page):
    """Numbers by hand from the cells of the reports; the optimum's gain from the table of the chains."""
    text = (ROOT / "docs" / page).read_text("utf-8").split("<!-- table written by docs/make.py -->")[1]
    head, _, *lines = [line.strip("| ").split(" | ") for line in text.split("<!--")[0].strip().splitlines()]
    rows = {line[0]: dict(zip(head, line, strict=True)) for line in lines}
    zh = "zh" in page
    (gained, share, found, kept) = (
        next(name for name in head if name.startswith(begins) and task in name)
        for begins, task in (
            ("多得的比特" if zh else "gained, bits", "64 → 1024"), ("占最优预测" if zh else "share of", "64 → 1024"),
            ("最远四分之一" if zh else "right, farthest", "32 → 512"), ("保留的得分" if zh else "score kept", "32 → 512"),
        )
    )  # fmt: skip
    assert all(name.endswith("5 个种子" if zh else "5 seeds") for name in (found, kept))
    chains = (ROOT / "results" / "chains" / page.replace("results", "README")).read_text("utf-8")
    best = next(line for line in chains.splitlines() if line.startswith("| 最优预测 |" if zh else "| optimum |")).split("|")
    offered = float(best[5].split()[0])
    for name, encoding, setting in (
        ("ALiBi", "alibi", "trained"), ("RoPE", "rope", "trained"), ("RoPE + YaRN", "rope", "yarn"),
    ):  # fmt: skip
        near = scores("chains", "chains", encoding, "last window", 64, setting)
        long = scores("chains", "chains", encoding, "same targets", 1024, setting)
        assert rows[name][gained].startswith(f"{(near - long).mean():+.3f} (")
        assert float(rows[name][share].split()[0]) == pytest.approx(100 * (near - long).mean() / offered, abs=1)
    for name, encoding in (("ALiBi", "alibi"), ("T5", "t5"), ("RoPE", "rope")):
        near, long = (scores("study-tasks", "passkey", encoding, "same targets", length) for length in (32, 512))
        assert rows[name][kept] == told(100 * long / near)
        assert rows[name][found] == told(100 * scores("study-tasks", "passkey", encoding, "farthest quarter", 512))
    assert rows["NoPE"][gained] == "–"
    assert rows["FoX"][kept] == "–"
