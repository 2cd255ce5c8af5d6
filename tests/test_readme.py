"""The READMEs and the first pages: their Python runs as printed, their commands exist, and twins hold the same code."""

import re
from pathlib import Path

import pytest

import in_process
import posenc

ROOT = Path(__file__).parent.parent


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.parametrize("page", ["README", "docs/use"])
def test_the_twins_hold_the_same_python(page):
    assert blocks(f"{page}.md", "python") == blocks(f"{page}.zh-CN.md", "python")


@pytest.mark.parametrize("page", ["README.md", "README.zh-CN.md"])
def test_the_front_door_is_short(page):
    assert len((ROOT / page).read_text(encoding="utf-8").splitlines()) <= 120


def test_the_first_lines_run_as_printed():
    namespace = {}
    (block,) = blocks("README.md", "python")
    exec(compile(block, "README.md", "exec"), namespace)
    assert namespace["out"].shape == namespace["v"].shape


def test_python_runs_as_printed(capsys):
    namespace = {}
    for block in blocks("docs/use.md", "python"):
        exec(compile(block, "docs/use.md", "exec"), namespace)
    printed = capsys.readouterr().out
    assert "decode_equals_prefill True" in printed
    assert " False" not in printed
    assert namespace["y"].shape == namespace["x"].shape


def test_yarn_on_rope_is_one_step_from_the_first_page():
    encoding = {}
    exec(next(block for block in blocks("docs/use.md", "python") if "yarn" in block).strip(), {"posenc": posenc}, encoding)
    config = {"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 1,
              "max_position_embeddings": 32768, "rope_theta": 500000.0,
              "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8192}}  # fmt: skip
    read = posenc.read_config(config).encoding(layer=0)
    assert encoding["encoding"].frequencies.values == pytest.approx(read.frequencies.values, rel=1e-12)
    assert encoding["encoding"].layout == read.layout


def test_every_command_of_the_shell_blocks_exists():
    text = "".join(blocks("README.md", "sh"))
    named = set(re.findall(r"^posenc ([\w-]+)", text, flags=re.MULTILINE))
    assert named == {
        "check",
        "choose",
        "compare",
        "show",
        "walk",
        "claims",
        "list",
        "inspect",
        "compare-configs",
        "convert",
        "export-tables",
        "lab",
        "explore",
    }
    for command in named:
        assert in_process.posenc(command, "--help").returncode == 0
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^make (\w+)", text, flags=re.MULTILINE):
        assert f"\n{target}:" in makefile
