"""Reads the folder of a sweep: its manifest and its trials."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from posenc.lab.experiment import Experiment
    from posenc.lab.records.results import Folder


class Line(NamedTuple):
    """A trial of the last sweep. `scores` maps length to score in the task's measure; empty if missing or failed."""

    key: str | None
    task: str
    encoding: str
    seed: int
    oracle: bool
    failed: str | None
    seconds: float | None
    scores: dict[int, float]

    @property
    def words(self) -> list[str]:
        return [self.task, self.encoding, "seed", str(self.seed), *["oracle"] * self.oracle]

    def __str__(self) -> str:
        return " ".join(self.words)

    @property
    def state(self) -> str:
        return "missing" if self.key is None else f"failed: {self.failed}" if self.failed else "finished"


def opened(path: Path, hint: str) -> tuple[Folder, dict[str, Any]]:
    """The folder and its manifest. Raises ValueError if it holds no sweep."""
    from posenc.lab.records.results import Folder

    manifest = Folder(path).experiment() if path.is_dir() else None
    if manifest is None:
        raise ValueError(f"{hint}: {path} holds no sweep of posenc lab; posenc lab run PRESET --out {path} starts one")
    return Folder(path), manifest


def experiment_of(manifest: dict[str, Any]) -> Experiment:
    """The experiment of a manifest. Raises ValueError if another version of posenc wrote it and it cannot be read."""
    from posenc.lab.experiment import Experiment

    try:
        return Experiment(**manifest["experiment"])
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"experiment.json: this posenc cannot read the experiment in it: {' '.join(str(error).split())}; "
            "continue with the version that wrote it, or choose another --out"
        ) from None


SCORES = """
SELECT key, kind, length, CASE kind WHEN 'bits' THEN sum(value * weight) / sum(weight) ELSE avg(value) END
FROM rows WHERE coalesce(change, '') = '' AND mode = 'same targets' AND kind IN ('bits', 'exact')
GROUP BY key, kind, length ORDER BY length
"""


def lines(folder: Folder, manifest: dict[str, Any]) -> list[Line]:
    """All trials of the experiment in order, then the learning-rate trials, if any."""
    from posenc.lab import tasks

    database, scores = folder.connect(), dict[tuple[str, str], dict[int, float]]()
    for key, kind, length, value in database.sql(SCORES).fetchall():
        scores.setdefault((key, kind), {})[length] = value
    asked = database.sql("SELECT key, task, encoding, seed, oracle, failed, seconds_training FROM trials").fetchall()
    found = {
        (task, encoding, seed, oracle): Line(
            key, task, encoding, seed, oracle, failed, seconds, scores.get((key, tasks.load(task).measure), {})
        )
        for key, task, encoding, seed, oracle, failed, seconds in asked
    }
    wanted = [(trial.task.name, trial.encoding, trial.seed, trial.oracle) for trial in experiment_of(manifest).trials()]
    return [found.get(one) or Line(None, *one, None, None, {}) for one in wanted]
