"""The drawing of docs/architecture.md, held against the imports.

A room is a module or package directly below posenc. Imports run downward. Imports for type checkers alone do not count.
"""

from __future__ import annotations

import ast
import functools
import graphlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cases import cases
from sampling import only

ROOT = Path(__file__).parent.parent
SRC = ROOT / "src"
PAGES = [ROOT / "docs" / name for name in ("architecture.md", "architecture.zh-CN.md")]
MODULES = {
    ".".join(path.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__"): path
    for path in (SRC / "posenc").rglob("*.py")
}


def floors(page: Path) -> list[list[str]]:
    """The rooms in the order of the drawing: one list a floor, the top one first."""
    drawing = re.search(r"^```floors\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert drawing, f"{page.name}: no block of floors"
    return [line.partition("|")[2].split() for line in drawing[1].splitlines()]


def room(module: str) -> str:
    """The second part of a module's name; __init__ for posenc itself."""
    return module.split(".")[1] if "." in module else "__init__"


def run_time(tree: ast.Module) -> Iterator[ast.AST]:
    """All statements but those under `if TYPE_CHECKING:`."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        for block in ("body", "orelse", "finalbody", "handlers", "cases"):
            if block != "body" or not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
                waiting += getattr(node, block, [])


@functools.cache
def parsed(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


def read(module: str) -> Iterator[tuple[str, str]]:
    """(module, name) for each import of posenc; the name is empty where a whole module is imported."""
    for node in run_time(parsed(module)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names if alias.name.split(".")[0] == "posenc")
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{module}: a relative import"
            if (node.module or "").split(".")[0] == "posenc":
                for alias in node.names:
                    whole = f"{node.module}.{alias.name}"
                    yield (whole, "") if whole in MODULES else (str(node.module), alias.name)


@functools.cache
def arrows() -> dict[str, list[tuple[str, str]]]:
    """Of every module, what it imports of posenc."""
    return {module: sorted(set(read(module))) for module in MODULES}


def test_every_room_is_drawn_once_and_both_pages_have_the_same_drawing():
    drawn = [name for floor in floors(PAGES[0]) for name in floor]
    assert sorted(drawn) == sorted({room(module) for module in MODULES})
    assert floors(PAGES[0]) == floors(PAGES[1])


def test_imports_run_downward():
    floor = {name: number for number, names in enumerate(floors(PAGES[0])) for name in names}
    wrong = [
        f"{module} imports {target}"
        for module, targets in arrows().items()
        for target, _ in targets
        if room(target) != room(module) and floor[room(target)] <= floor[room(module)]
    ]
    assert not wrong, "\n".join(wrong)


def test_no_floor_could_be_left_out():
    """A room of every floor but the lowest imports from the floor below, so that the drawing has the floors of the code."""
    floor = {name: number for number, names in enumerate(floors(PAGES[0])) for name in names}
    steps = {(floor[room(module)], floor[room(target)]) for module, targets in arrows().items() for target, _ in targets}
    assert {(upper, upper + 1) for upper in range(max(floor.values()))} <= steps


def test_the_house_is_as_wide_as_tools_house_counts_it(capsys, monkeypatch):
    import house

    monkeypatch.setattr(sys, "argv", ["house.py", "--json"])
    house.main()
    found = json.loads(capsys.readouterr().out)
    assert len(found["drawn"]) == len(floors(PAGES[0]))
    assert sorted(found["rooms"]) == sorted({room(module) for module in MODULES})
    assert found["lines"] == sum(path.read_text("utf-8").count("\n") for path in MODULES.values())
    assert {"embed", "rotate", "bias", "prepare"} <= set(found["names"])
    assert all(5 < of["files"] < of["moves"] < of["calls"] for of in found["calls"].values())


def test_the_first_hour_stays_one():
    """What a newcomer reads, what a call runs through, and the names of the contract: at most so much."""
    sys.path.insert(0, str(ROOT / "tools"))
    import house

    first, after = house.to_read("The first hour"), house.to_read("The next")
    assert len(first) == 12
    assert sum(first.values()) <= 2400
    assert not first.keys() & after.keys()
    assert set(house.contract()) >= house.NEEDED.keys()
    assert len(house.contract()) - len(house.NEEDED) <= house.CONTRACT
    most = {"attend, RoPE": (9, 32, 15), "attend, ALiBi": (12, 44, 30), "decode, RoPE": (13, 98, 43)}
    calls = house.journeys()
    for name, limits in most.items():
        assert all(calls[name][what] <= limit for what, limit in zip(("files", "calls", "moves"), limits, strict=True)), (
            name
        )


def test_both_languages_name_the_same_files_in_the_same_order():
    """Those of the first hour and of the next."""
    named = [
        re.findall(r"`([\w/]+\.py)`", (ROOT / page).read_text("utf-8").split(start)[1].split(end)[0])
        for page, start, end in (
            ("CONTRIBUTING.md", "## The first hour", "## An encoding"),
            ("CONTRIBUTING.zh-CN.md", "## 第一个小时", "## 添加编码"),
        )
    ]
    assert named[0] == named[1]


@pytest.mark.parametrize("script", only(["tools/house.py --json", "docs/make.py --check"], "tools/house.py --json"))
def test_a_script_of_another_copy_does_not_take_this_package_for_its_own(script, tmp_path):
    name, option = script.split()
    for folder in ("tools", "docs"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("node_modules", "*.png", "*.svg"))
    (tmp_path / "src" / "posenc").mkdir(parents=True)
    command = [sys.executable, tmp_path / name, option]
    ended = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(SRC)}, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stdout == ""
    assert str(SRC / "posenc") in ended.stderr
    assert str(tmp_path / "src") in ended.stderr
    assert "Traceback" not in ended.stderr


def test_no_two_folders_of_the_lab_import_each_other():
    def folder(module: str) -> str:
        """posenc.lab.run of posenc.lab.run.sweep; a module beside the folders is a folder of its own."""
        return ".".join(module.split(".")[:3])

    pairs = {(folder(module), folder(target)) for module, targets in arrows().items() for target, _ in targets}
    of_lab = {
        (upper, lower) for upper, lower in pairs if upper.startswith("posenc.lab.") and lower.startswith("posenc.lab.")
    }
    assert len(of_lab) > 20
    assert not {(upper, lower) for upper, lower in of_lab if upper != lower and (lower, upper) in of_lab}


def test_no_circle_of_modules():
    graph = {module: {target for target, _ in targets} - {module} for module, targets in arrows().items()}
    assert len(list(graphlib.TopologicalSorter(graph).static_order())) >= len(MODULES)


def test_no_circle_of_the_page_s_modules():
    sources = {path.resolve(): path.read_text(encoding="utf-8") for path in (ROOT / "web/src").rglob("*.ts")}
    graph: dict[Path, set[Path]] = {path: set() for path in sources}
    for path, text in sources.items():
        for kind, target in re.findall(r'^(?:import|export|\})( type)?[^;]*?from "(\.[^"]+)";', text, re.MULTILINE):
            found = (path.parent / f"{target}.ts").resolve()
            if not kind and found in sources:
                graph[path].add(found)
    assert sum(map(len, graph.values())) > 100
    assert set(graphlib.TopologicalSorter(graph).static_order()) == set(sources)


@cases("module", MODULES)
def test_no_private_name_is_taken_from_another_module_and_nothing_is_mocked(module):
    taken = [(target, name) for target, name in arrows()[module] if re.match("_(?!_)", name)]
    nodes = list(ast.walk(parsed(module)))
    known = {
        alias.asname or alias.name
        for node in nodes
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("posenc")
        for alias in node.names
        if f"{node.module}.{alias.name}" in MODULES
    }
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in known:
            taken += [(node.value.id, node.attr)] * bool(re.match("_(?!_)", node.attr))
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [str(node.module)]
            foreign = {name.split(".")[0] for name in names} & {"unittest", "pytest", "mock"}
            assert foreign <= ({"pytest"} if module == "posenc.checking.pytest_plugin" else set()), module
    assert not taken, f"{module} takes {taken}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_that_the_page_names_exists(page):
    named = re.findall(r"`((?:src|web|tests|docs)/[\w./-]+)`", page.read_text(encoding="utf-8"))
    assert len(named) > 20
    assert not [path for path in named if not (ROOT / path).exists()]


def test_the_core_is_named_in_reading_order():
    """The files exist, the two pages name the same, and none of them imports a program."""
    named = {}
    for page in ("CONTRIBUTING.md", "CONTRIBUTING.zh-CN.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        lines = [line for line in re.findall(r"^\d\. .*$", text, re.MULTILINE) if ".py`" in line]
        named[page], folder = [], ""
        for line in lines:
            folder = ""
            for path in re.findall(r"`([\w/]+\.py)`", line):
                folder = path.rpartition("/")[0] or folder
                named[page].append(f"{folder}/{Path(path).name}".strip("/"))
    assert named["CONTRIBUTING.md"] == named["CONTRIBUTING.zh-CN.md"]
    core = named["CONTRIBUTING.md"]
    assert len(core) >= 20
    assert not [path for path in core if not (SRC / "posenc" / path).exists()]
    rooms = {"lab", "configs", "checking", "pictures", "explorer", "learn", "transformers"}
    modules = {"posenc." + path.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for path in core}
    assert not [(module, target) for module in modules for target, _ in arrows()[module] if room(target) in rooms]


def test_every_file_of_tests_belongs_to_one_wing():
    """`make test-core` and its kin: together they are `make test`."""
    import wing

    wings = re.findall(r"^WING_(\w+) ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    asked = [
        subprocess.run(["make", "-s", f"wing-{name}"], cwd=ROOT, capture_output=True, text=True, check=True)
        for name in wings
    ]
    named = sorted(path for one in asked for path in one.stdout.split())
    for name, one in zip(wings, asked, strict=True):  # without make, on Windows: .github/workflows/systems.yml
        assert sorted(wing.files(name)) == sorted(one.stdout.split()), name
    tests = ROOT / "tests"
    folders = {path.parent for path in tests.rglob("test_*.py")} - {tests}
    assert named == sorted(str(path.relative_to(ROOT)) for path in (*tests.glob("test_*.py"), *folders))


def test_make_acceptance_names_files_that_are_there():
    import acceptance

    assert not [path for paths in acceptance.TARGETS.values() for path in paths if not (ROOT / path).exists()]


def test_no_text_is_read_or_written_in_the_encoding_of_the_system():
    """It is not UTF-8 on Windows below Python 3.15. typer.echo writes UTF-8 where an output is in ASCII."""

    told = re.compile(r"read_text|write_text|open|fdopen|\w*TemporaryFile|echo|print|run|call|check_\w+|Popen|getoutput")

    def depends(call: ast.Call) -> bool:
        name = getattr(call.func, "attr", getattr(call.func, "id", ""))
        if not told.fullmatch(name):
            return False
        whole = ast.unparse(call.func)
        given = {keyword.arg for keyword in call.keywords if ast.unparse(keyword.value) != "False"}
        modes = {
            str(one.value)
            for one in ast.walk(call)
            if isinstance(one, ast.Constant) and re.fullmatch("[rwax][bt+]*", str(one.value))
        }
        if "encoding" in given or "b" in "".join(modes) or whole in ("os.open", "tarfile.open", "Image.open"):
            return False
        if name in ("read_text", "write_text"):
            return len(call.args) == (name == "write_text")
        opens = name in ("open", "fdopen") or ("TemporaryFile" in name and bool(modes))
        return (
            opens
            or whole == "typer.echo"
            or (whole == "print" and "ensure_ascii=False" in ast.unparse(call))
            or (whole.startswith("subprocess.") and bool({"text", "universal_newlines"} & given))
        )

    files = [path for folder in ("src", "tools", "docs", "bench", "examples") for path in (ROOT / folder).rglob("*.py")]
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in files
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and depends(node)
    ]
    assert len(files) > 500
    assert not wrong, "\n".join(wrong)
