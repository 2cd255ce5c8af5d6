"""The recipes of CONTRIBUTING.md, followed as printed in a temporary copy of the project."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CLAIMS = ("results/claims/README.md", "results/claims/README.zh-CN.md")
PAGES = ("README.md", "README.zh-CN.md", "CONTRIBUTING.md", *CLAIMS)
SCORES = (  # docs/make.py reads them
    "results/real/smollm2-botchan.jsonl",
    "results/chains/README.md",
    "results/chains/README.zh-CN.md",
    *(
        f"results/{folder}/{name}"
        for folder in ("chains", "study-tasks")
        for name in ("experiment.json", "report/cells.csv", "report/summary.csv")
    ),
)
COPIED = ("src", "tests", "docs", "tools", "web", "pyproject.toml", *SCORES, *PAGES)
BUILT = shutil.ignore_patterns("__pycache__", "node_modules", "*.so")
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
RECIPES = {text.partition("\n")[0]: text for text in re.split(r"^## (?=An? )", PAGE, flags=re.MULTILINE)[1:]}


def listed(recipe: str) -> list[str]:
    """The files under "You write"."""
    return re.findall(r"^- `([^`]+)`$", RECIPES[recipe], flags=re.MULTILINE)


def blocks(recipe: str) -> dict[str, tuple[str, str]]:
    """File -> language and code, by the comment in the first line of each block."""
    block = r"^```(\w+)\n(?:#|//|<!--) (\S+)(?: -->)?\n(.*?)^```"
    found = re.findall(block, RECIPES[recipe], flags=re.MULTILINE | re.DOTALL)
    return {path: (language, code) for language, path, code in found}


def files(root: Path) -> dict[str, bytes]:
    built = ("__pycache__", "node_modules", ".pytest_cache")
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and not set(built) & set(path.parts)
    }


def skipped(folder: str, names: list[str]) -> set[str]:
    """What is built, and the pictures of the documentation."""
    return BUILT(folder, names) | ({"pictures"} if Path(folder) == ROOT / "docs" else set())


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / name, ignore=skipped)
        else:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def follow(recipe: str, copy: Path) -> None:
    """Writes the blocks, and sees that exactly the listed files are touched."""
    before = files(copy)
    for path, (language, code) in blocks(recipe).items():
        if language == "diff":
            old, new = (re.findall(rf"^\{sign}(.*)$", code, flags=re.MULTILINE) for sign in "-+")
            assert len(old) == len(new) == 1
            text = (copy / path).read_text(encoding="utf-8")
            assert text.count(f"{old[0]}\n") == 1, f"{path} has no line {old[0]!r}"
            code = text.replace(old[0], new[0])
        (copy / path).write_text(code, encoding="utf-8")
    after = files(copy)
    touched = {path for path in before | after if before.get(path) != after.get(path)}
    assert touched == set(listed(recipe))


def run(copy: Path, code: str) -> str:
    """The output of a program that uses the copy."""
    return python(copy, "-c", f"import posenc\nassert posenc.__file__.startswith({str(copy)!r})\n{code}")


def python(copy: Path, *command: str) -> str:
    """The output of Python in the copy, which must end with 0."""
    path = ":".join(str(copy / place) for place in ("src", "tests", "docs", "docs/site"))
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *command], cwd=copy, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def gates(recipe: str, copy: Path) -> None:
    """Lint, format and types of the Python files that the recipe lists."""
    written = [path for path in listed(recipe) if path.endswith(".py")]
    python(copy, "-m", "ruff", "check", *written)
    python(copy, "-m", "ruff", "format", "--check", *written)
    typed = [path for path in written if path.startswith("src/")]
    python(copy, "-m", "mypy", "--cache-dir", str(ROOT / ".mypy_cache"), *typed)  # make test has filled it


def test_there_are_five_recipes_and_the_chinese_page_has_the_same_code():
    assert list(RECIPES) == ["An encoding", "A family", "A task of the lab", "A view of the explorer", "A backend"]
    twin = (ROOT / "CONTRIBUTING.zh-CN.md").read_text(encoding="utf-8")
    fenced = r"^```\w+\n.*?^```"
    assert re.findall(fenced, PAGE, re.MULTILINE | re.DOTALL) == re.findall(fenced, twin, re.MULTILINE | re.DOTALL)
    assert re.findall(r"^- `(.+)`$", PAGE, re.MULTILINE) == re.findall(r"^- `(.+)`$", twin, re.MULTILINE)


def test_an_encoding(copy):
    follow("An encoding", copy)
    gates("An encoding", copy)
    printed = run(
        copy,
        """
import torch, build, make, pytest
from posenc import laws
from posenc.explorer import views
from posenc.lab import experiment
from posenc.lab.experiment.arm import Arm, trainable
from posenc.lab.report.style import look

name = "log_distance"
assert name in posenc.names()
encoding = posenc.create(name, d_model=32, n_heads=4)
slow = {"one_graph_over_lengths", "gradients"}
laws.check(encoding, laws.Setting(impl="auto"), [law for law in laws.LAWS if law not in slow])
assert name in trainable()
compared = (*experiment.read_experiment("compare_text").encodings, name)
assert len(Arm.parse(name).create(d_model=32, n_heads=4, n_layers=2, positions=16)) == 1
assert look(name, compared).colour == look("alibi", compared).colour
for view, parameter in (("attention", "encoding"), ("order", "encoding"), ("compare", "first"), ("bias", "method")):
    assert views.schemas()[view][parameter]["called"][name] == {"en": "LogDistance", "zh": "LogDistance"}
    exec(views.data(view, {parameter: name}).python, {})
pages = {path.relative_to(build.DOCS).as_posix(): text for path, text in build.written("zh").items()}
assert "logarithmic_bias" in pages["catalogue.md"]
assert "The attention score decreases with the logarithm" in pages["encodings/log_distance.md"]
assert f"prints all {len(posenc.catalogue.ENTRIES)} names" in make.pages()[make.ROOT / "README.md"]
exec(pages["encodings/log_distance.md"].split("```python")[1].split("```")[0])
assert not out.equal(posenc.attend(q, k, v, posenc.create("nope"), at))
from typer.testing import CliRunner
from posenc.cli import app
print(CliRunner().invoke(app, ["list", "logarithmic_bias", "--lang", "en"]).stdout)
assert pytest.main(["-q", "-p", "no:cacheprovider", "tests/oracles/test_log_distance.py"]) == 0
""",
    )
    assert "q·k - m·ln(1 + |i-j|)" in printed


@pytest.mark.acceptance
def test_make_docs_writes_the_pages_of_a_new_encoding(copy):
    follow("An encoding", copy)
    (copy / "docs/pictures").mkdir()
    for picture in (ROOT / "docs/pictures").iterdir():  # a new one is drawn, the others need not be
        (copy / "docs/pictures" / picture.name).symlink_to(picture)
    python(copy, "docs/make.py")
    tests = ("tests/test_docs.py", "tests/test_pages.py")
    python(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests, "-k", "log_distance")
    assert "log_distance.zh.md: missing; begin it with <!-- translates" in python(copy, "tools/translations.py")


@pytest.mark.acceptance
def test_a_family(copy):
    """The example exists already: it is taken away first."""
    reader, proof = listed("A family")
    (copy / reader).unlink()
    (copy / proof).unlink()
    config = {
        "model_type": "hrm_text",
        "hidden_size": 64,
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "max_position_embeddings": 64,
        "rope_theta": 1e4,
    }
    asked = f"posenc.read_config({config})"
    run(copy, f"import pytest\nwith pytest.raises(posenc.ConfigError, match='is not a known family'):\n    {asked}")
    follow("A family", copy)
    gates("A family", copy)
    run(
        copy,
        f"""
from families import table
from families.harness import PROOFS

assert len({asked}.layers) == 16
assert "hrm_text" not in PROOFS
import families.proofs_hrm_text
found = PROOFS["hrm_text"]("hrm_text")
assert found.compared and found.exact
assert "families.proofs_hrm_text" in [name if "." in name else f"families.{{name}}" for name in table._proof_modules()]
""",
    )


@pytest.mark.acceptance
def test_a_task_of_the_lab(copy):
    follow("A task of the lab", copy)
    gates("A task of the lab", copy)
    printed = run(
        copy,
        """
import pytest
from typer.testing import CliRunner
from posenc.cli import app
print(CliRunner().invoke(app, ["lab", "list", "--json"]).stdout)
assert pytest.main(["-q", "-p", "no:cacheprovider", "tests/oracles/test_task_shift.py"]) == 0
""",
    )
    assert '"shift"' in printed


@pytest.mark.acceptance
def test_a_view_of_the_explorer(copy):
    follow("A view of the explorer", copy)
    gates("A view of the explorer", copy)
    run(
        copy,
        """
from posenc.explorer import views
assert views.NAMES.index("horizon") == views.NAMES.index("heads") + 1
assert views.schemas()["horizon"]["n_heads"]["default"] == 8
for asked in views.view("horizon").EXPORTED:
    found, made = views.view("horizon").data(asked), {}
    exec(found.python, made)
    assert made["horizon"] == list(found.arrays["horizon"])
""",
    )
    modules = ROOT / "web/node_modules"
    if shutil.which("node") is None or not modules.is_dir():
        if os.environ.get("CI"):
            pytest.fail("node or web/node_modules is missing: npm --prefix web ci")
        pytest.skip("node or web/node_modules is missing: the page is not built")
    (copy / "web/node_modules").symlink_to(modules)
    for command in (["node_modules/.bin/tsc", "--noEmit"], ["node", "build.mjs"]):
        subprocess.run(command, cwd=copy / "web", check=True)
    assert "How far a head sees" in (copy / "src/posenc/explorer/page.js").read_text(encoding="utf-8")


@pytest.mark.acceptance
def test_a_backend(copy):
    follow("A backend", copy)
    gates("A backend", copy)
    run(
        copy,
        """
import pytest
from posenc import laws
from posenc.attention.backends import BACKENDS

assert "row_by_row" in BACKENDS
for name in ("rope", "alibi"):
    encoding = posenc.create(name, d_model=32, n_heads=4)
    assert not BACKENDS["row_by_row"].refuses(encoding, encoding.structure())
    laws.check(encoding, laws.Setting(impl="row_by_row"), ["decode_equals_prefill", "packed_equals_separate"])
    laws.check(encoding, laws.Setting(), ["backends_agree"])
with pytest.raises(ValueError, match="the default finish only"):
    laws.check(posenc.create("cope", d_head=8), laws.Setting(impl="row_by_row"), ["packed_equals_separate"])
""",
    )
