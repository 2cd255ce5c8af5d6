"""Judges mutants: does a test fail, does a law break?

One process imports torch once. Each mutant is judged in two processes forked from it. The mutated file takes the place of
the real one before posenc is imported; then the nearest test files run until one test fails, those of make test first and
those of make acceptance after them, and the laws until one breaks.
A C++ mutant is compiled beside the objects of the other files. Verdicts are kept under build/mutations and used again while
all sources and tests are the same.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import hashlib
import importlib
import io
import json
import math
import multiprocessing
import os
import resource
import runpy
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from . import nearest, worlds
from .draw import SOURCE, Mutant
from .equivalent import OF_WORK_ONLY
from .substitute import substitute

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
KEPT = ROOT / "build" / "mutations"
CPU_SECONDS = 150  # of one process: a broken loop may never end
CPU_SECONDS_OF_ACCEPTANCE = 3600  # the acceptance tests of a few files, all of which a survivor passes
# Imported once, before forking. Nothing of posenc: its modules must be the mutant's.
SHARED = ("torch._dynamo", "torch._functorch.aot_autograd", "pytest", "_pytest.doctest", "hypothesis", "numpy", "jaxtyping")


# Files that do nothing but refuse.
OF_CHECKS = ("support/checks.py", "support/checked.py", "support/tensors.py")
# Kinds of change that an encoding's formula hides from the laws, which compare an encoding with itself.
FORMULA = ("arithmetic", "constant", "off by one", "sign", "swapped name")


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant. `tests` and `laws` name what caught it; None where it survived.

    visible   whether laws can see it at all: see `is_visible`
    """

    key: str
    room: str
    kind: str
    language: str
    visible: bool
    tests: str | None
    laws: str | None
    seconds: float = 0.0


def is_visible(mutant: Mutant, baseline: Baseline) -> bool:
    """Whether laws can see the mutant: they run its line, and it changes more than a formula or a refusal.

    Laws compare an encoding with itself, on valid input. They see no sign and no constant of an encoding's formula, no
    check of arguments, no configuration read in `__init__`, and take any frequencies as they are; of what changes the work
    and not the result, `OF_WORK_ONLY` says the reason. Of C++ every line counts as run; Triton needs a GPU.
    """
    if mutant.room in ("Triton", "frequencies") or mutant.kind == "removed check" or mutant.file in OF_CHECKS:
        return False
    if ": ".join(mutant.key.split(": ")[:2]) in OF_WORK_ONLY or _only_refuses(mutant):
        return False
    if mutant.file.startswith("encodings/"):
        configures = "__init__:" in mutant.name or "check" in mutant.name.partition(":")[0]
        return mutant.kind not in FORMULA and not configures and mutant.room != "by hand"
    return not mutant.line or mutant.line in baseline.reached.get(mutant.file, set())


def _only_refuses(mutant: Mutant) -> bool:
    """Whether it stands in the condition of an `if` whose body does nothing but raise, or ask a check to raise."""
    if not mutant.line:
        return False
    for node in ast.walk(ast.parse((SOURCE / mutant.file).read_text(encoding="utf-8"))):
        if isinstance(node, ast.If) and node.test.lineno <= mutant.line <= (node.test.end_lineno or 0):
            return len(node.body) == 1 and _refuses(node.body[0])
    return False


def _refuses(statement: ast.stmt) -> bool:
    called = statement.value.func if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) else None
    return isinstance(statement, ast.Raise) or (isinstance(called, ast.Name) and called.id.startswith("check_"))


def judge(mutant: Mutant, objects: Objects, baseline: Baseline) -> Verdict:
    """Both processes of a mutant. Raises DoesNotCompile for C++ that is none."""
    began = time.monotonic()
    by_laws, visible = None, is_visible(mutant, baseline)
    with tempfile.TemporaryDirectory(prefix="posenc-mutant-") as folder:
        install = _installer(mutant, objects, Path(folder))
        files = [str(path) for path in nearest.nearest(mutant.file)]
        by_tests = None
        for marked, limit in (("not acceptance", CPU_SECONDS), ("acceptance", CPU_SECONDS_OF_ACCEPTANCE)):
            failing = functools.partial(_failing, files, baseline.failing, marked)
            while (by_tests := _in_a_child(failing, install, limit)) and baseline.fails(by_tests):
                pass  # a test that fails without the mutant proves nothing: again without it
            if by_tests:
                break
        if visible:
            by_laws = _in_a_child(lambda: worlds.broken(mutant.file), install)
        if by_laws and baseline.breaks(mutant.file):
            raise ValueError(f"{mutant.file}: laws are broken without any mutant: {baseline.breaks(mutant.file)}")
    seconds = round(time.monotonic() - began, 1)
    return Verdict(mutant.key, mutant.room, mutant.kind, mutant.language, visible, by_tests, by_laws, seconds)


class Baseline:
    """What fails without any mutant, found out when it is needed."""

    def __init__(self) -> None:
        self.failing: set[str] = set()
        self.passing: set[str] = set()
        self.broken: dict[str, str | None] = {}

    @functools.cached_property
    def reached(self) -> dict[str, set[int]]:
        return _in_a_child(worlds.reached, lambda: None)  # type: ignore[return-value]

    def fails(self, test: str) -> bool:
        """Whether the test fails; it is then left out from now on."""
        if "::" in test and test not in self.passing:
            fails = _in_a_child(lambda: _failing([str(ROOT / "tests" / test)], set(), ""), lambda: None)
            (self.failing if fails else self.passing).add(test)
        return test in self.failing

    def breaks(self, file: str) -> str | None:
        if file not in self.broken:
            self.broken[file] = _in_a_child(lambda: worlds.broken(file), lambda: None)
        return self.broken[file]


# In the child -------------------------------------------------------------------------------------------------------


def _in_a_child(work: Callable[[], Any], install: Callable[[], None], seconds: int = CPU_SECONDS) -> Any:
    """What the work returns, computed in a forked process; how that process died, where it did."""
    mine, theirs = multiprocessing.get_context("fork").Pipe(duplex=False)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
            with open(os.devnull, "w") as nowhere:
                os.dup2(nowhere.fileno(), 1)
                os.dup2(nowhere.fileno(), 2)
            sys.path.insert(0, str(SOURCE.parent))
            install()
            try:
                said = work()
            except Exception as error:  # the mutant cannot even be imported
                said = f"{type(error).__name__}: {error}"
            theirs.send(said)
            code = 0
        finally:
            os._exit(code)
    theirs.close()
    try:
        return mine.recv()
    except EOFError:
        return "the process died"
    finally:
        os.waitpid(child, 0)


def _failing(files: list[str], besides: set[str], marked: str) -> str | None:
    """The first test that fails of those with that mark, but for those named, or None."""
    import pytest

    class FirstFailure:
        name = ""

        def pytest_runtest_logreport(self, report: Any) -> None:
            if report.failed and not self.name:
                self.name = report.nodeid

        def pytest_collectreport(self, report: Any) -> None:
            if report.failed and not self.name:
                self.name = f"{report.nodeid} cannot be imported"

    os.chdir(ROOT)
    first, output = FirstFailure(), io.StringIO()
    options = [f"--deselect=tests/{test}" for test in besides]
    # Plain assertions: pytest would load posenc, which brings a plugin, by its own loader, and so not the mutant.
    options += [
        "--assert=plain",
        "-x",
        "-q",
        "-m",
        marked,
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "--tb=no",
        "--no-header",
    ]
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        code = int(pytest.main([*options, *files], plugins=[first]))
    if code in (0, 5):  # 5: no test has the mark
        return None
    return first.name.removeprefix("tests/") or f"pytest ended with {code}"


def _installer(mutant: Mutant, objects: Objects, folder: Path) -> Callable[[], None]:
    """Puts the mutant in the place of the real file, in a process that has not imported posenc."""
    path, text = SOURCE / mutant.file, mutant.source()
    if path.suffix == ".cpp":
        library = objects.linked_with(path, text, folder)
        return lambda: _use_library(library)
    (folder / path.name).write_text(text, encoding="utf-8")
    files = f"({str(path)!r}, {str(folder / path.name)!r})"
    run = f"import runpy\nrunpy.run_path({str(HERE / 'substitute.py')!r})['substitute']{files}\n"
    (folder / "sitecustomize.py").write_text(run, encoding="utf-8")
    return lambda: _use_source(path, folder)


def _use_source(path: Path, folder: Path) -> None:
    """In this process, and in those that a test starts: they import `sitecustomize` first."""
    os.environ["PYTHONPATH"] = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    substitute(str(path), str(folder / path.name))


def _use_library(library: Path) -> None:
    import ctypes

    load = ctypes.CDLL

    def mutant(name: str, *options: Any, **named: Any) -> ctypes.CDLL:
        return load(str(library) if str(name).endswith("kernels.so") else name, *options, **named)

    ctypes.CDLL = mutant  # type: ignore[assignment,misc]


# C++ ----------------------------------------------------------------------------------------------------------------


class DoesNotCompile(ValueError):
    """A C++ mutant that the compiler refuses is no mutant."""


class Objects:
    """Compiled C++ files, so that a mutant compiles one of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.built: dict[Path, Path] = {}
        self.flags = [flag if flag != "-O3" else "-O1" for flag in _flags()]  # a mutant runs once
        self.sources: str = runpy.run_path(str(SOURCE / "kernels" / "__init__.py"))["fingerprint"]()

    def linked_with(self, path: Path, text: str, folder: Path) -> Path:
        """The library in which `path` has that text."""
        changed, library = folder / path.name, folder / "kernels.so"
        changed.write_text(text, encoding="utf-8")
        others = [other for other in sorted(SOURCE.rglob("*.cpp")) if other != path]
        objects = [*(self._compiled(other, self.folder) for other in others), self._compiled(changed, folder, path.parent)]
        self._run(["-shared", *map(str, objects), "-o", str(library)])
        return library

    def _compiled(self, path: Path, folder: Path, beside: Path | None = None) -> Path:
        """The object of a file; of a mutant, `beside` is where its headers are."""
        made = folder / f"{path.stem}.o"
        if beside is not None or path not in self.built:
            self._run(["-c", str(path), "-o", str(made), *([f"-I{beside}"] if beside else [])])
            self.built[path] = made
        return made

    def _run(self, options: list[str]) -> None:
        flags = [*self.flags, f'-DPOSENC_SOURCES="{self.sources}"', f"-I{SOURCE / 'kernels'}"]
        command = [os.environ.get("CXX", "g++"), *flags, *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise DoesNotCompile(done.stderr[-500:])


def _flags() -> list[str]:
    """FLAGS of hatch_build.py, which cannot be imported without hatchling."""
    for node in ast.parse((ROOT / "hatch_build.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "FLAGS":
            return list(ast.literal_eval(node.value))
    raise ValueError("hatch_build.py: has no FLAGS")


# What was judged ----------------------------------------------------------------------------------------------------


def fingerprint(mutant: Mutant, visible: bool) -> str:
    """Of what decides the verdict: the file, the tests nearest to it and, where laws can see the mutant, the laws."""
    digest = hashlib.sha256()
    paths = [SOURCE / mutant.file, *nearest.nearest(mutant.file)]
    if visible:
        paths += [HERE / "worlds.py", SOURCE / "checking/engine.py", *sorted((SOURCE / "checking/laws").glob("*.py"))]
    for path in paths:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


class Record:
    """Verdicts by mutant, a line of JSON each."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def find(self, mutant: Mutant) -> Verdict | None:
        """The last verdict, if what decides it is as it was."""
        for line in reversed(self.lines):
            told = json.loads(line)
            if told["key"] == mutant.key:
                return Verdict(**told) if told.pop("decided_by") == fingerprint(mutant, told["visible"]) else None
        return None

    def add(self, mutant: Mutant, verdict: Verdict) -> None:
        line = json.dumps({"decided_by": fingerprint(mutant, verdict.visible), **asdict(verdict)}, ensure_ascii=False)
        self.lines.append(line)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")


def judged(
    mutants: list[Mutant], record: Record, tell: Callable[[Verdict], None] = lambda verdict: None, seconds: float = math.inf
) -> list[Verdict]:
    """The verdict of every mutant; those on record are not judged again. A C++ mutant that does not compile has none.

    After so many seconds no other mutant is judged; the next run goes on from there.
    """
    began = time.monotonic()
    for name in SHARED:
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(name)
    import torch

    torch.set_num_threads(1)
    verdicts = []
    with tempfile.TemporaryDirectory(prefix="posenc-objects-") as folder:
        objects, baseline = Objects(Path(folder)), Baseline()
        for mutant in mutants:
            verdict = record.find(mutant)
            if verdict is None and time.monotonic() - began > seconds:
                continue
            if verdict is None:
                try:
                    verdict = judge(mutant, objects, baseline)
                except DoesNotCompile:
                    continue
                record.add(mutant, verdict)
                tell(verdict)
            verdicts.append(verdict)
    return verdicts
