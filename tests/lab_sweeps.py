"""Tiny sweeps of real trials, as processes that can be killed.

    python lab_sweeps.py DIR [--workers N] [--die-in-write N]

It prints a line for every update, so that whoever kills it can choose the moment. `--die-in-write` makes it kill itself
in its Nth write, when the bytes are there and the name is not.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any

import pytest

import in_process
from posenc.lab.engines import Context, Event, finish, line
from posenc.lab.experiment import Experiment, Trial
from posenc.lab.records.record import SAME_TARGETS, Record, Rows
from posenc.lab.records.results import Folder
from posenc.lab.run.sweep import Outcome, Update, sweep
from posenc.lab.text.corpus import Corpus
from posenc.lab.trial.training import Hardware

TRIALS = 12
TRAINING = {"steps": 6, "rows": 4}


def experiment(**changed: Any) -> Experiment:
    """Twelve trials of a few steps each, which nothing but their settings decides."""
    given: dict[str, Any] = {
        "name": "tiny",
        "about": {"en": "Tiny.", "zh": "极小。"},
        "encodings": ("nope", "alibi", "rope"),
        "seeds": 2,
        "size": {"d_model": 16, "n_heads": 2, "n_layers": 1},
        "tasks": (
            {"task": {"name": "copy", "length": 4, "lengths": (4, 8), "held_out": 16}, "training": TRAINING},
            {"task": {"name": "recall", "length": 3, "lengths": (3, 6), "held_out": 16}, "training": TRAINING},
        ),
    }
    return Experiment(**{**given, **changed})


# Tuning with an own scale, encodings of fewer seeds, and one that takes another's settings: what the preset `study` has.
LIKE_THE_STUDY = """
name: like-the-study
about: {en: Tiny., zh: 极小。}
seeds: 2
size: {d_model: 16, n_heads: 2, n_layers: 1}
encodings: [nope, rope, alibi, rope+dropped]
fewer_seeds: {alibi: 1, rope+dropped: 1}
tasks:
  - task: {name: copy, length: 4, lengths: [4, 8], held_out: 16}
    training: {steps: 16, rows: 4, learning_rate: 0.004}
    learning_rates: [0.004, 0.002]
    own_scales:
      rope: {base: [500]}
    tuning_steps: 8
"""
OF_IT = 3 * 2 + 2 + 2 + 1 + 1  # tries and models


def by_command(folder: Path, out: str, *options: str) -> Path:
    """The experiment like the study, run by one command; the results."""
    (folder / "like_the_study.yaml").write_text(LIKE_THE_STUDY, "utf-8")
    done = in_process.posenc("lab", "run", "like_the_study.yaml", "--out", out, *options, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert f"{OF_IT} trials run, 0 found, 0 failed" in done.stderr
    return folder / out


def table(path: Path) -> list[tuple[Any, ...]]:
    """Every number of every trial of the last sweep, in order; nothing that is measured by a clock."""
    with Folder(path).connect() as database:
        return database.execute("SELECT * FROM rows ORDER BY ALL").fetchall()


def names(path: Path) -> list[str]:
    return sorted(file.name for file in (path / "trials").iterdir())


class Here:
    """An engine in this very process: one trial after another."""

    workers = 1

    def run(self, trials: Sequence[Trial], context: Context) -> Generator[Event, None, None]:
        for number, trial in enumerate(trials):
            if context.reserve(number):
                try:
                    value = finish(trial, context.text, context.hardware, context.train, lambda share: None)
                except Exception as error:
                    yield Event(number, 1.0, failure=line(error))
                else:
                    yield Event(number, 1.0, value=value)

    def close(self) -> None:
        pass


def without_workers(patch: pytest.MonkeyPatch) -> None:
    """Trials run in this process: a worker imports torch for seconds."""
    for name in ("posenc.lab.engines.named", "posenc.lab.run.repeat.Local"):
        patch.setattr(name, lambda *_: Here())


def made_up(
    trial: Trial, text: Corpus | None, hardware: Hardware, report: Callable[[float], None], **scores: float
) -> Record:
    """A record that a trial decides, without training: `scores` by kind, at the trained length."""
    rows = Rows()
    for kind, value in (scores or {"bits": 2.0, "exact": 0.5}).items():
        where = {"mode": SAME_TARGETS, "change": "", "length": trial.task.length, "item": 0, "weight": 4.0}
        rows.add(kind, value + trial.seed % 100, **where)
    about = {
        "format": 1,
        "trial": trial.model_dump(mode="json"),
        "seconds": {"training": 1.0, "scoring": 0.5},
        "trained_tokens": 8,
        "parameters": 10,
        "encoding_parameters": 0,
        "failed": None,
        "cannot": {},
        "chance": {},
        "baseline": None,
        "machine": {},
        "finished": "2026-01-01T00:00:00+00:00",
    }
    return Record(about, rows.table())


def made_up_sweep(path: Path, **changed: Any) -> Outcome:
    given: dict[str, Any] = {"train": made_up, "hardware": Hardware(), **changed}
    return sweep(given.pop("experiment", experiment()), Folder(path), given.pop("engine", Here()), **given)


# A sweep as a process --------------------------------------------------------------------------------------------------


def start(path: Path, *arguments: str, host: Sequence[str] = ()) -> subprocess.Popen[str]:
    """`host` is a command that runs the rest of its words, on another host."""
    command = [*host, sys.executable, __file__, str(path), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})


def workers_of(pid: int) -> list[int]:
    """The processes that it has spawned and that train."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            if parent == pid and "spawn_main" in (entry / "cmdline").read_text():
                found.append(int(entry.name))
        except (OSError, ValueError, IndexError):
            continue
    return found


def main() -> None:
    from posenc.lab.engines.local import Local

    arguments = dict(zip(sys.argv[2::2], sys.argv[3::2], strict=True))
    if "--die-in-write" in arguments:
        _die_in_write(int(arguments["--die-in-write"]))

    def say(update: Update) -> None:
        print(update.what, update.trial or "", update.line or "", flush=True)

    outcome = sweep(experiment(), Folder(Path(sys.argv[1])), Local(int(arguments.get("--workers", 2))), progress=say)
    print("end", outcome.ran, outcome.reused, len(outcome.failed), flush=True)


def _die_in_write(which: int) -> None:
    replace, seen = os.replace, 0

    def dies(*names: Any) -> None:
        nonlocal seen
        seen += 1
        if seen == which:
            os.kill(os.getpid(), signal.SIGKILL)
        replace(*names)

    os.replace = dies  # type: ignore[assignment]


if __name__ == "__main__":
    main()
