"""Breaks one formula at a time in a copy of the sources and checks that an oracle turns red.

    python tests/mutations/run.py                       every mutation of catalogue.py
    python tests/mutations/run.py --sample 6 --seed 1   some of them, drawn
    python tests/mutations/run.py --only rope           those whose file or description holds the word
    python tests/mutations/run.py --json                the same as JSON

First the unbroken copy must pass the same tests. Exit code 1 where a mutation survives, where a test run ends otherwise
than with a failed test, or where the text to break no longer occurs exactly once. Torch is imported once; each mutation
runs in a process forked from there (spawned where forking is not safe).
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.util
import io
import json
import multiprocessing
import multiprocessing.connection
import os
import random
import shutil
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "posenc"
ORACLES = ROOT / "tests" / "oracles"
LONGEST = 180.0  # seconds; a broken loop may never end
HARMLESS = "unbroken"
# Imported once, before forking; torch._dynamo because the first custom operator of a process imports it.
SHARED = ("torch._dynamo", "pytest", "_pytest.doctest", "hypothesis", "scipy.integrate", "torchdiffeq", "jaxtyping")


@dataclass(frozen=True)
class Mutation:
    """In src/posenc/`file`, `old` becomes `new`, which `breaks` something that one of the test files must notice."""

    file: str
    old: str
    new: str
    breaks: str
    tests: tuple[str, ...]


@dataclass(frozen=True)
class Outcome:
    file: str
    breaks: str
    verdict: str  # caught, survived, stale, error
    by: str  # the first test that failed, or what went wrong
    seconds: float


def load(path: Path) -> list[Mutation]:
    """The mutations of a catalogue: its MUTATIONS by file, its TESTS by file (default: test_<stem>.py)."""
    specification = importlib.util.spec_from_file_location("mutation_catalogue", path)
    assert specification is not None
    assert specification.loader is not None
    catalogue: ModuleType = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(catalogue)
    return [
        Mutation(file, old, new, breaks, catalogue.TESTS.get(file, (f"test_{Path(file).stem}.py",)))
        for file, mutations in catalogue.MUTATIONS.items()
        for old, new, breaks in mutations
    ]


def occurrences(mutation: Mutation) -> int:
    """How often its text stands in the source today: once, or the mutation is stale."""
    return (SOURCE / mutation.file).read_text(encoding="utf-8").count(mutation.old)


def broken_copy(mutation: Mutation | None, folder: Path) -> Path:
    """A copy of the package in `folder`, with the mutation applied."""
    target = folder / "posenc"
    native = (path for kind in ("*.so", "*.cpp", "*.h") for path in SOURCE.rglob(kind))
    for path in (*SOURCE.rglob("*.py"), *native):  # data files are not needed, stale bytecode must not come along
        copied = target / path.relative_to(SOURCE)
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copied)
    if mutation is not None:
        broken = target / mutation.file
        broken.write_text(broken.read_text(encoding="utf-8").replace(mutation.old, mutation.new), encoding="utf-8")
    return folder


class FirstFailure:
    """A pytest plugin that keeps the name of the first test that failed."""

    name = ""

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed and not self.name:
            self.name = report.nodeid.split("oracles/")[-1]


def run_tests(folder: Path, tests: tuple[str, ...], answer: Any) -> None:
    """In a process of its own: pytest against the copy in `folder`, which must win over the installed package."""
    import pytest

    sys.path.insert(0, str(folder))
    os.chdir(ROOT)
    failure, output = FirstFailure(), io.StringIO()
    arguments = ["-x", "-q", "-m", "not acceptance", "-p", "no:cacheprovider", "--no-header"]
    arguments += [str(ORACLES / test) for test in tests]
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        code = int(pytest.main(arguments, plugins=[failure]))
    loaded = [getattr(sys.modules[name], "__file__", None) for name in list(sys.modules) if name.split(".")[0] == "posenc"]
    foreign = [path for path in loaded if path and not path.startswith(str(folder))]
    if foreign or not loaded:
        answer.send(("error", f"tests read {foreign or 'no posenc'} instead of the copy"))
    elif code == 0:
        answer.send(("survived", ""))
    elif code == 1 and failure.name:
        answer.send(("caught", failure.name))
    else:
        answer.send(("error", f"pytest ended with {code}: {output.getvalue()[-600:]}"))


class Job:
    """One mutation under test."""

    def __init__(self, context: Any, mutation: Mutation | None, tests: tuple[str, ...]) -> None:
        self.mutation, self.started = mutation, time.monotonic()
        self.folder = Path(tempfile.mkdtemp(prefix="posenc-mutation-"))
        self.answer, theirs = context.Pipe(duplex=False)
        self.process = context.Process(target=run_tests, args=(broken_copy(mutation, self.folder), tests, theirs))
        self.process.start()
        theirs.close()

    @property
    def over(self) -> bool:
        return not self.process.is_alive() or time.monotonic() - self.started > LONGEST

    def finish(self) -> Outcome:
        verdict, by = "error", "the test process died"
        if self.answer.poll():
            with contextlib.suppress(EOFError):
                verdict, by = self.answer.recv()
        elif self.process.is_alive():
            verdict, by = "caught", f"no end within {LONGEST:.0f} s"
        if self.process.is_alive():
            self.process.terminate()
        self.process.join()
        shutil.rmtree(self.folder, ignore_errors=True)
        file, breaks = (self.mutation.file, self.mutation.breaks) if self.mutation else ("", HARMLESS)
        return Outcome(file, breaks, verdict, by, round(time.monotonic() - self.started, 2))


def run_all(jobs: list[tuple[Mutation | None, tuple[str, ...]]], workers: int, report: Any) -> list[Outcome]:
    import torch

    torch.set_num_threads(1)
    for name in SHARED:
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(name)
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    waiting, running, outcomes = list(reversed(jobs)), [], []
    while waiting or running:
        while waiting and len(running) < workers:
            running.append(Job(context, *waiting.pop()))
        multiprocessing.connection.wait([job.process.sentinel for job in running], timeout=5)
        for job in [job for job in running if job.over]:
            running.remove(job)
            outcomes.append(job.finish())
            report(outcomes[-1])
    return outcomes


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sample", type=int, help="how many to draw; all if left out")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="a word of the file or the description")
    parser.add_argument("--list", type=Path, default=Path(__file__).with_name("catalogue.py"), help="another catalogue")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()

    mutations = [one for one in load(options.list) if options.only in one.file or options.only in one.breaks]
    if options.sample is not None:
        mutations = random.Random(options.seed).sample(mutations, min(options.sample, len(mutations)))

    def report(outcome: Outcome) -> None:
        if not options.json:
            by = f"  <- {outcome.by}" if outcome.by else ""
            print(f"{outcome.verdict:8} {outcome.seconds:6.1f} s  {outcome.file}: {outcome.breaks}{by}", flush=True)

    stale = [
        Outcome(one.file, one.breaks, "stale", f"its text occurs {occurrences(one)} times", 0.0)
        for one in mutations
        if occurrences(one) != 1
    ]
    for outcome in stale:
        report(outcome)
    fresh = [one for one in mutations if occurrences(one) == 1]
    # The unbroken copy, split in two so that both workers have something to do.
    files = sorted({test for one in fresh for test in one.tests})
    unbroken = [(None, tuple(half)) for half in (files[::2], files[1::2]) if half]
    outcomes = stale + run_all([*unbroken, *((one, one.tests) for one in fresh)], options.workers, report)

    good = {HARMLESS: "survived"}
    bad = [one for one in outcomes if one.verdict != good.get(one.breaks, "caught")]
    caught = sum(one.verdict == "caught" and one.breaks != HARMLESS for one in outcomes)
    if options.json:
        print(json.dumps({"tried": len(mutations), "caught": caught, "outcomes": [asdict(one) for one in outcomes]}))
    else:
        print(f"{len(mutations)} mutations, {caught} caught, {len(bad)} to look at")
        for one in bad:
            print(f"  {one.verdict}: {one.file}: {one.breaks}  {one.by}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
