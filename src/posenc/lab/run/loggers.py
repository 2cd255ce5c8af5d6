"""Finished trials in an experiment tracker, through Lightning's loggers: TensorBoard, CSV, Weights & Biases, MLflow.

    trial      one run, called by its task, encoding, seed and first digits of its key; its settings are hyperparameters
    training   bits per target, by step
    length_64  the score at that length, in bits or the share of rows that are all right, at the last step

A trial is logged when it ends, from its record: on every engine alike, and training does not know of it.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from posenc.lab import tasks
from posenc.lab.records import learning_curve
from posenc.lab.records.mean_score import mean_score
from posenc.lab.records.record import SAME_TARGETS

if TYPE_CHECKING:
    from posenc.lab.records.record import Record

FOLDER = "logs"  # in that of the results
PROJECT = "posenc"


class Kind(NamedTuple):
    """A logger of Lightning, and what it imports beside the packages of the lab."""

    module: str
    name: str
    needs: tuple[str, ...] = ()


KINDS: Mapping[str, Kind] = {
    "tensorboard": Kind("lightning_fabric.loggers", "TensorBoardLogger", ("tensorboard",)),
    "csv": Kind("lightning_fabric.loggers", "CSVLogger"),
    "wandb": Kind("pytorch_lightning.loggers", "WandbLogger", ("pytorch_lightning", "wandb")),
    "mlflow": Kind("pytorch_lightning.loggers", "MLFlowLogger", ("pytorch_lightning", "mlflow")),
}


def check(kind: str) -> None:
    """Raises ModuleNotFoundError that names the command of pip where a package is missing."""
    needs = KINDS[kind].needs
    if any(find_spec(name) is None for name in needs):
        packages = " ".join(needs).replace("_", "-")
        raise ModuleNotFoundError(f"--logger {kind}: needs {packages}: pip install {packages}")


def make_logger(kind: str, folder: Path, run: str) -> Any:
    """The logger of one run."""
    module, name, _ = KINDS[kind]
    folder.mkdir(parents=True, exist_ok=True)
    places: dict[str, dict[str, Any]] = {
        "tensorboard": {"root_dir": folder, "name": "", "version": run},
        "csv": {"root_dir": folder, "name": "", "version": run},
        "wandb": {"project": PROJECT, "name": run, "save_dir": folder},
        "mlflow": {"experiment_name": PROJECT, "run_name": run, "tracking_uri": f"sqlite:///{folder / 'mlflow.db'}"},
    }
    return getattr(importlib.import_module(module), name)(**places[kind])


def log(kind: str, folder: Path, key: str, record: Record) -> None:
    """Writes one finished trial."""
    trial = record.about["trial"]
    run = f"{trial['task']['name']}-{trial['encoding']}-s{trial['seed']}-{key[:8]}".replace(":", "-").replace("/", "-")
    logger = make_logger(kind, folder, run)
    with suppress(NotImplementedError):  # CSVLogger has none
        logger.log_hyperparams(trial)
    curve = learning_curve.of(record.rows)
    for step, bits in curve:
        logger.log_metrics({"training": bits}, step=step)
    scores = {
        f"length_{length}": mean_score(record.rows, tasks.class_of(trial["task"]).measure, SAME_TARGETS, length)
        for length in trial["task"]["lengths"]
    }
    finite = {name: score for name, score in scores.items() if math.isfinite(score)}
    logger.log_metrics(finite, step=curve[-1][0] if curve else 0)
    logger.finalize("failed" if record.about["failed"] else "success")
    if kind == "wandb":
        logger.experiment.finish()  # one process has many runs
