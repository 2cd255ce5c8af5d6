"""Reads the folder of a sweep: its manifest and its trials."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from posenc.terminal.output import echo

if TYPE_CHECKING:
    from posenc.lab.records.results import Folder


class Line(NamedTuple):
    """A trial of the last sweep. `scores` maps length to score in the task's measure; empty if missing or failed.

    damaged   why its file is not taken; None if there is none
    """

    key: str | None
    task: str
    encoding: str
    seed: int
    oracle: bool
    failed: str | None
    seconds: float | None
    scores: dict[int, float]
    damaged: str | None = None

    @property
    def words(self) -> list[str]:
        return [self.task, self.encoding, "seed", str(self.seed), *["oracle"] * self.oracle]

    def __str__(self) -> str:
        return " ".join(self.words)

    @property
    def state(self) -> str:
        if self.key is None:
            return "missing" if self.damaged is None else "damaged"
        return f"failed: {self.failed}" if self.failed else "finished"


def opened(path: Path, hint: str) -> tuple[Folder, dict[str, Any]]:
    """The folder and its manifest. Raises ValueError if it holds no experiment."""
    from posenc.lab.records.results import MANIFEST, TRIALS, Folder, again

    if path.is_file():
        raise ValueError(f"{hint}: {path} is a file; give the folder that holds it")
    if not path.is_dir():
        raise ValueError(f"{hint}: there is no folder {path}; posenc lab run PRESET --out {path} makes one")
    if not (path / MANIFEST).is_file():
        way = "expected a folder that posenc lab run has written"
        if (path / TRIALS).is_dir():
            way = f"its {MANIFEST} is lost. {again(path)}"
        raise ValueError(f"{hint}: {path} holds no experiment of posenc lab; {way}")
    folder = Folder(path, hint)
    manifest = folder.experiment()
    assert manifest is not None
    return folder, manifest


def option(manifest: dict[str, Any], name: str, default: str) -> str:
    """The value of an option in the command that made the folder."""
    words = shlex.split(manifest["command"])
    return (words[words.index(name) + 1 :] or [default])[0] if name in words else default


def warn_of_damage(folder: Folder) -> None:
    """Prints one line if files of the experiment are damaged, because they would otherwise only be missing."""
    if damage := folder.damage():
        echo(f"posenc: {damage}", err=True)


SCORES = """
SELECT key, kind, length, CASE kind WHEN 'bits' THEN sum(value * weight) / sum(weight) ELSE avg(value) END
FROM rows JOIN (SELECT key, bool_or(mode = 'random positions') AS drawn FROM rows GROUP BY key) USING (key)
WHERE coalesce(change, '') = '' AND kind IN ('bits', 'exact')
  AND mode = CASE WHEN drawn THEN 'random positions' ELSE 'same targets' END
GROUP BY key, kind, length ORDER BY length
"""


def lines(folder: Folder, manifest: dict[str, Any]) -> list[Line]:
    """All trials of the experiment in order."""
    from posenc.lab import tasks
    from posenc.lab.experiment import Experiment
    from posenc.lab.records.results import expected

    database, scores = folder.connect(), dict[tuple[str, str], dict[int, float]]()
    for key, kind, length, value in database.sql(SCORES).fetchall():
        scores.setdefault((key, kind), {})[length] = value
    rows = database.sql("SELECT key, task, encoding, seed, oracle, failed, seconds_training FROM trials").fetchall()
    measures = {plan["task"]["name"]: tasks.class_of(plan["task"]).measure for plan in manifest["experiment"]["tasks"]}
    lines_of_trials = {
        (task, encoding, seed, oracle): Line(
            key, task, encoding, seed, oracle, failed, seconds, scores.get((key, measures[task]), {})
        )
        for key, task, encoding, seed, oracle, failed, seconds in rows
    }
    wanted = {
        (trial.task.name, trial.encoding, trial.seed, trial.oracle): key
        for key, trial in expected(Experiment.model_validate(manifest["experiment"]), manifest).items()
    }
    return [lines_of_trials.get(words) or _missing(folder, key, words) for words, key in wanted.items()]


def _missing(folder: Folder, key: str, named: tuple[str, str, int, bool]) -> Line:
    _, unusable = folder.look(key)
    return Line(None, *named, None, None, {}, unusable[0] if unusable else None)
