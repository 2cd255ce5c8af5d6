"""What `pip install posenc` alone serves: commands in a process that has none of the extras' packages."""

from __future__ import annotations

import ast
import json
import re
import shlex
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from posenc.support import extras
from posenc.support.extras import EXTRAS, explained, install

ROOT = Path(__file__).parent.parent
ROPE = """
import torch

def rotate(q, positions):
    d = q.shape[-1]
    angle = positions[:, None, :, None] * 10000.0 ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    cos, sin = angle.cos().to(q.dtype), angle.sin().to(q.dtype)
    a, b = q[..., : d // 2], q[..., d // 2 :]
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)
"""
RUN = """
import contextlib, io, json, sys

absent = set(json.loads(sys.argv[1]))

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in absent:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name.partition(".")[0])

sys.meta_path.insert(0, Absent())
from posenc import cli

ended = {}
for line in json.loads(sys.argv[2]):
    sys.argv, out = ["posenc", *line.split()], io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            cli.run()
            code = 0
        except SystemExit as end:
            code = end.code or 0
    ended[line] = code, out.getvalue()[-2000:]
print(json.dumps(ended))
"""
SERVED = [
    "--help",
    "list",
    "list rope",
    "choose",
    "inspect config.json",
    "inspect config.json --extend-to 65536",
    "compare-configs config.json config.json",
    "export-tables rope --length 16 --out tables.npz",
    "check rope.py",
    "show sinusoidal",
    "walk rope",
    "claims --json",
    "bench --help",
    "lab --help",
]
OF_AN_EXTRA = {"show rope --out rope.png": "plots", "explore --no-browser": "explore", "lab list": "lab", "compare": "lab"}


def test_each_command_runs_or_names_its_extra(tmp_path: Path) -> None:
    (tmp_path / "rope.py").write_text(ROPE)
    sizes = {"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2, "max_position_embeddings": 4096}
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama", **sizes}))
    absent = [name for name in (*EXTRAS, "transformers") if name != "pydantic"]  # typer needs pydantic
    command = [sys.executable, "-W", "ignore", "-c", RUN, json.dumps(absent), json.dumps([*SERVED, *OF_AN_EXTRA])]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    ended = json.loads(done.stdout)
    assert {line: ended[line] for line in SERVED if ended[line][0] not in (0, None)} == {}
    for line, extra in OF_AN_EXTRA.items():
        code, said = ended[line]
        assert code == 1, line
        assert install(extra) in said, (line, said)


def test_the_command_line_is_no_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    base = {name.partition(">")[0] for name in project["dependencies"]}
    assert base == {"torch", "numpy", "rapidfuzz", "typer", "rich", "babel"}
    assert set(EXTRAS.values()) < set(project["optional-dependencies"])


BASE = {"torch", "numpy", "rapidfuzz", "typer", "rich", "babel"}
ELSEWHERE = {
    "peers, which posenc bench finds": ("torchtune", "rotary_embedding_torch", "x_transformers", "positional_encodings"),
    "peers on a GPU": ("flash_attn", "liger_kernel", "transformer_engine"),
    "libraries whose model or server calls posenc": ("diffusers", "timm", "vllm", "pytest"),
    "what a package of an extra needs": ("h11", "traitlets"),
    "what torch brings": ("triton", "typing_extensions"),
    "read by transformers alone, with a hint of its own": ("gguf",),
}


def imported() -> set[str]:
    """The packages that any module of posenc imports, other than Python's and those of every installation."""
    found: set[str] = set()
    for path in (ROOT / "src" / "posenc").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                found.add(str(node.module).split(".")[0])
    return found - BASE - {"posenc"} - set(sys.stdlib_module_names)


def packages(extra: str) -> set[str]:
    """What an extra of pyproject.toml installs, with the extras that it names."""
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    names: set[str] = set()
    for line in listed[extra]:
        others = re.match(r"posenc\[(.*)\]", line)
        names |= set().union(*map(packages, others[1].split(","))) if others else {re.split("[<>=;]", line)[0].strip()}
    return names


def test_every_package_is_named_as_pip_calls_it_with_an_extra_that_holds_it() -> None:
    elsewhere = {name for names in ELSEWHERE.values() for name in names}
    assert imported() - elsewhere == set(EXTRAS)
    called = packages_distributions()
    for module in EXTRAS:
        for name in (module, f"{module}.part"):
            said = re.fullmatch(r"this needs (\S+): pip install '\.\[(\w+)\]' in the folder of posenc's sources",
                                str(explained(ModuleNotFoundError(f"No module named {name!r}", name=name))))  # fmt: skip
            assert said is not None
            assert said[1] in {one.lower() for one in called[module]}
            assert said[1] in packages(said[2])


@pytest.mark.parametrize("extra", sorted(set(EXTRAS.values())))
def test_a_wheel_names_the_packages_of_the_extra(extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there are no sources, '.[lab]' is nothing that pip could install."""
    assert install(extra) == f"pip install '.[{extra}]' in the folder of posenc's sources"
    monkeypatch.setattr(extras, "SOURCES", tmp_path)
    command, install_, *named = shlex.split(install(extra))
    assert (command, install_) == ("pip", "install")
    assert {re.split("[<>=]", one)[0] for one in named} == packages(extra)
    assert all(">=" in one for one in named)
    module = next(name for name, of in EXTRAS.items() if of == extra)
    said = str(explained(ModuleNotFoundError(f"No module named {module!r}", name=module)))
    assert said.endswith(install(extra))
    assert "\n" not in said


def test_no_hint_asks_pip_for_posenc_by_name() -> None:
    """No version has been published, so pip finds none, or another project's."""
    files = [path for folder in ("src", "docs", "web/src", "tools", "bench") for path in (ROOT / folder).rglob("*")]
    read = [
        ROOT / "README.md",
        ROOT / "README.zh-CN.md",
        *(path for path in files if path.suffix in (".py", ".md", ".po", ".ts")),
    ]
    asks = re.compile(r"pip install [^\n`]*posenc\b(?![/.'’ ])|posenc\[(?:lab|plots|all|explore|transformers)\]")
    assert len(read) > 1000
    assert [path.relative_to(ROOT).as_posix() for path in read if asks.search(path.read_text("utf-8"))] == []
