"""The three complete examples train, and docs/examples.md says what they print; docs/images.md runs as printed."""

import importlib.util
import re
from pathlib import Path

import pytest
import torch

import posenc

ROOT = Path(__file__).parent.parent
NAMES = ("diffusion_transformer", "vit_other_resolution", "graph_transformer")


def example(name):
    """The script as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def tables(page):
    """The numbers of the page's tables, one list of rows for each example, in the order of NAMES."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    found = re.findall(r"(?:^\|.*\|\n)+", text, flags=re.MULTILINE)
    return [
        [[float(cell.strip(" %")) for cell in row.split("|")[2:-1]] for row in table.splitlines()[2:]] for table in found
    ]


def test_the_twins_hold_the_same_tables_and_commands():
    assert len(tables("examples.md")) == len(NAMES)
    assert tables("examples.md") == tables("examples.zh-CN.md")
    for page in ("examples.md", "examples.zh-CN.md"):
        assert all(f"python examples/{name}.py" in (ROOT / "docs" / page).read_text(encoding="utf-8") for name in NAMES)


@pytest.mark.parametrize("page", ["images", "examples"])
def test_the_pages_run_as_printed_in_both_languages(page, capsys):
    namespace, english, chinese = (
        {},
        *((ROOT / "docs" / f"{page}{suffix}.md").read_text("utf-8") for suffix in ("", ".zh-CN")),
    )
    code, output = (re.findall(rf"```{kind}\n(.*?)```", english, flags=re.DOTALL) for kind in ("python", "output"))
    assert re.findall(r"```(\w+\n.*?)```", english, flags=re.DOTALL) == re.findall(
        r"```(\w+\n.*?)```", chinese, flags=re.DOTALL
    )
    for block in code:
        exec(compile(block, page, "exec"), namespace)
    assert capsys.readouterr().out == "".join(output)


def test_every_row_of_diffusion_models_says_what_runs():
    """Encodings and positions are made, the same in both languages; tests/test_diffusion_models.py has their numbers."""
    english, chinese = (rows_of_code(f"images{suffix}.md") for suffix in ("", ".zh-CN"))
    assert english == chinese
    assert len(english) > 60
    sizes = {"frames": 2, "height": 4, "width": 4, "text": 3, "fps": 24.0}
    for name, *said in english:
        assert said, name
        for one in said:
            *imports, made = one.split("; ")
            names = {"posenc": posenc, "torch": torch, **sizes}
            exec("\n".join(imports), names)
            assert isinstance(eval(made, names), (posenc.PositionalEncoding, posenc.Positions)), one


def rows_of_code(page):
    """What stands in `code` in each row of the page's table."""
    lines = re.findall(r"^\|.*\|$", (ROOT / "docs" / page).read_text("utf-8"), flags=re.MULTILINE)[2:]
    return [re.findall("`(.*?)`", line) for line in lines]


def test_the_diffusion_transformer_learns():
    results = example("diffusion_transformer").main(steps=6, count=1)
    for found in results.values():
        assert found["last"] < 0.97 * found["first"]
        assert 0 <= found["drawn"] <= 1


def test_the_vit_reads_both_sizes():
    vit = example("vit_other_resolution")
    for steps, name in ((3, "learned grid"), (3, "RoPE, rows / 2"), (3, "RoPE, centres")):
        assert {*vit.main(steps, (name,))[name]} == {6, 12}


def test_the_graph_transformer_runs_with_every_way_to_tell_the_edges():
    results = example("graph_transformer").main(steps=2)
    assert [*results] == ["none", "LapPE", "RWSE", "Graphormer", "RRWP"]
    assert all(0 < share < 1 for shares in results.values() for share in shares)


@pytest.mark.acceptance
def test_the_tables_of_the_page_are_what_the_examples_measure():
    """Within 6 points of a hundred, and a third of a loss: other machines round otherwise."""
    diffusion, vit, graph = (example(name).main() for name in NAMES)
    rows = [
        [[one["first"], one["last"], 100 * one["drawn"]] for one in diffusion.values()],
        [[100 * share for share in one.values()] for one in vit.values()],
        [[100 * share for share in one] for one in graph.values()],
    ]
    for own, printed in zip(rows, tables("examples.md"), strict=True):
        for one, told in zip(own, printed, strict=True):
            assert one == [pytest.approx(number, abs=6 if number > 1.5 else number / 3) for number in told]
