"""Runs trials as a SLURM job array, one trial a job, through submitit. DIR must be on a shared file system.

    DIR/slurm/text-….pickle     the text, written once
    DIR/slurm/JOB/              files of submitit for a job: its script, output and result

Each job writes its own record, so nothing is lost if the submitting process ends before the job.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from posenc.lab.engines.engine import Context, Event, finish_elsewhere, line
from posenc.lab.records import files

if TYPE_CHECKING:
    from posenc.lab.engines.engine import Train
    from posenc.lab.experiment import Trial
    from posenc.lab.trial.training import Hardware

FOLDER = "slurm"
AT_A_TIME = 256
MINUTES = 24 * 60
LOOK_AGAIN = 2.0  # seconds


class Slurm:
    """Runs `workers` jobs at a time. `cluster="local"` uses submitit's local executor, for tests without SLURM."""

    def __init__(self, workers: int | None = None, cluster: str = "slurm") -> None:
        try:
            import submitit
        except ModuleNotFoundError:
            raise ModuleNotFoundError("--engine slurm needs submitit: pip install 'posenc[slurm]'") from None
        self._submitit: Any = submitit
        self.workers, self._cluster = workers or AT_A_TIME, cluster

    def run(self, trials: Sequence[Trial], context: Context) -> Generator[Event, None, None]:
        reserved = [(number, trial) for number, trial in enumerate(trials) if context.reserve(number)]
        if not reserved:
            return
        folder = context.folder / FOLDER
        folder.mkdir(exist_ok=True)
        executor = self._submitit.AutoExecutor(folder=folder / "%j", cluster=self._cluster)
        executor.update_parameters(
            name="posenc",
            timeout_min=MINUTES,
            nodes=1,
            tasks_per_node=1,
            cpus_per_task=1,
            gpus_per_node=int(context.hardware.device != "cpu"),
            slurm_array_parallelism=self.workers,
        )
        job = _Job(context.folder, _kept(context, folder), context.hardware, context.train)
        origins = [context.provenance[number] for number, _ in reserved]
        jobs = executor.map_array(job, [trial for _, trial in reserved], origins)
        running = {number: job for (number, _), job in zip(reserved, jobs, strict=True)}
        try:
            while running:
                for number in [number for number, job in running.items() if job.done()]:
                    yield self._end(number, running.pop(number))
                for number in running:
                    yield Event(number, 0.0)
                time.sleep(LOOK_AGAIN if running else 0.0)
        finally:
            for left in running.values():
                left.cancel()

    def close(self) -> None:
        pass

    def _end(self, number: int, job: Any) -> Event:
        try:
            value, failure = job.result()
        except self._submitit.core.utils.UncompletedJobError as error:  # killed, out of memory or out of time
            value, failure = None, line(error)
        return Event(number, 1.0, value=value, failure=failure)


class _Job:
    """The callable that a job runs; submitit pickles it."""

    def __init__(self, folder: Path, text: Path | None, hardware: Hardware, train: Train | None) -> None:
        self.folder, self.text, self.hardware, self.train = folder, text, hardware, train

    def __call__(self, trial: Trial, provenance: Mapping[str, str]) -> tuple[bytes | None, str | None]:
        """The bytes of the record, or the reason why there are none."""
        try:
            return self.record(trial, provenance), None
        except Exception as error:
            return None, line(error)

    def record(self, trial: Trial, provenance: Mapping[str, str]) -> bytes | None:
        from posenc.lab.records.results import Folder, unpacked

        text = None if self.text is None else pickle.loads(self.text.read_bytes())
        content = finish_elsewhere(trial, text, self.hardware, self.train, provenance)
        if content is not None:
            digest = "" if text is None else text.sha256
            Folder(self.folder).put(trial.key(digest), unpacked(content), trial.text(digest), provenance)
        return content


def _kept(context: Context, folder: Path) -> Path | None:
    if context.text is None:
        return None
    path = folder / f"text-{context.text.sha256[:16]}.pickle"
    if not path.exists():
        files.write(path, pickle.dumps(context.text))
    return path
