"""`posenc lab run --logger`: what a tracker gets of a trial, and what is said where it is not installed."""

from __future__ import annotations

import csv
import importlib.util
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest

import in_process
from posenc.lab.experiment import Trial
from posenc.lab.run import loggers
from posenc.lab.trial.training import run_trial

pytestmark = pytest.mark.usefixtures("no_workers")

EXPERIMENT = """
name: tiny
about: {en: Tiny., zh: 极小。}
seeds: 2
size: {d_model: 16, n_heads: 2, n_layers: 1}
encodings: [nope]
tasks:
  - task: {name: copy, length: 4, lengths: [4, 8], held_out: 16}
    training: {steps: 12, rows: 4}
"""


def run(folder: Path, *more: str) -> Any:
    (folder / "tiny.yaml").write_text(EXPERIMENT, "utf-8")
    return in_process.posenc("lab", "run", folder / "tiny.yaml", "--out", folder / "out", *more)


def test_each_trial_is_a_run_with_its_curve_and_its_scores(tmp_path: Path) -> None:
    ended = run(tmp_path, "--logger", "csv")
    assert ended.returncode == 0, ended.stderr
    found = sorted((tmp_path / "out" / "logs").glob("*/metrics.csv"))
    assert [path.parent.name[:12] for path in found] == ["copy-nope-s0", "copy-nope-s1"]
    stored = sorted((tmp_path / "out" / "trials").glob("*.parquet"))
    for path, kept in zip(found, stored, strict=True):
        rows = pq.read_table(kept).to_pylist()
        with path.open(encoding="utf-8") as file:
            logged = list(csv.DictReader(file))
        curve = {row["step"]: row["value"] for row in rows if row["kind"] == "curve"}
        assert {int(row["step"]): float(row["training"]) for row in logged if row["training"]} == pytest.approx(curve)
        for length in (4, 8):
            right = [row["value"] for row in rows if row["kind"] == "exact" and row["length"] == length]
            assert float(logged[-1][f"length_{length}"]) == pytest.approx(sum(right) / len(right))
        assert logged[-1]["step"] == "12"
    again = run(tmp_path, "--logger", "csv")  # what is found is not trained, so not logged again
    assert again.returncode == 0
    assert sorted((tmp_path / "out" / "logs").glob("*/metrics.csv")) == found


@pytest.mark.parametrize(
    ("kind", "command"),
    [
        ("wandb", "pip install pytorch-lightning wandb"),
        ("mlflow", "pip install pytorch-lightning mlflow"),
        ("tensorboard", "pip install tensorboard"),
    ],
)
def test_a_missing_package_is_named_before_training(
    kind: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = importlib.util.find_spec
    missing = ("pytorch_lightning", "tensorboard")
    monkeypatch.setattr(loggers, "find_spec", lambda name: None if name in missing else there(name))
    ended = run(tmp_path, "--logger", kind)
    assert ended.returncode == 1
    assert f"--logger {kind}: needs" in ended.stderr
    assert command in ended.stderr
    assert not list((tmp_path / "out").glob("trials/*"))


@pytest.mark.parametrize(
    ("kind", "name"), [("wandb", "WandbLogger"), ("mlflow", "MLFlowLogger"), ("tensorboard", "TensorBoardLogger")]
)
def test_the_others_get_the_same_calls(kind: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in with the methods of Lightning's Logger takes the place of the real one."""
    said: list[tuple[str, Any]] = []

    class Fake:
        experiment = SimpleNamespace(finish=lambda: said.append(("finish", None)))

        def __init__(self, **given: Any) -> None:
            said.append(("new", given))

        def log_hyperparams(self, params: dict[str, Any]) -> None:
            said.append(("hyperparams", params))

        def log_metrics(self, metrics: dict[str, float], step: int) -> None:
            said.append(("metrics", (step, metrics)))

        def finalize(self, status: str) -> None:
            said.append(("finalize", status))

    monkeypatch.setitem(sys.modules, loggers.KINDS[kind].module, SimpleNamespace(**{name: Fake}))
    copy = {"name": "copy", "length": 4, "lengths": [4, 8]}
    trial = Trial.model_validate(
        {"task": copy, "encoding": "nope", "seed": 3, "size": {}, "training": {"steps": 2, "rows": 2}}
    )
    record = run_trial(trial, None)
    assert record is not None
    loggers.log(kind, tmp_path, trial.key(""), record)
    calls = [what for what, _ in said]
    assert calls[:2] == ["new", "hyperparams"]
    assert calls[2:] == ["metrics"] * 3 + ["finalize"] + ["finish"] * (kind == "wandb")
    assert dict(said)["hyperparams"]["seed"] == 3
    assert [set(metrics) for what, (_, metrics) in said[2:5]] == [{"training"}, {"training"}, {"length_4", "length_8"}]
    assert dict(said)["finalize"] == "success"


def test_a_tracker_that_fails_does_not_end_the_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in whose server is away: said once, asked no more, and all trials are kept."""
    asked = []

    class Away:
        def __init__(self, **given: Any) -> None:
            asked.append(given)

        def log_hyperparams(self, params: dict[str, Any]) -> None:
            raise ConnectionError("no answer\nfrom 127.0.0.1")

    monkeypatch.setitem(sys.modules, loggers.KINDS["csv"].module, SimpleNamespace(CSVLogger=Away))
    ended = run(tmp_path, "--logger", "csv")
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr.count("--logger csv failed: no answer from 127.0.0.1; training goes on without it") == 1
    assert len(asked) == 1
    assert len(list((tmp_path / "out" / "trials").glob("*.parquet"))) == 2
    assert (tmp_path / "out" / "report" / "report.md").exists()


@pytest.mark.acceptance
@pytest.mark.parametrize(
    ("kind", "left"), [("tensorboard", "copy-nope-s*/events.out.tfevents.*"), ("wandb", "wandb/offline-run-*/run-*.wandb")]
)
def test_where_a_tracker_is_installed_each_trial_is_a_run_in_it(
    kind: str, left: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real packages, without a network."""
    for package in loggers.KINDS[kind].needs:
        pytest.importorskip(package)
    monkeypatch.setenv("WANDB_MODE", "offline")
    ended = run(tmp_path, "--logger", kind)
    assert ended.returncode == 0, ended.stderr
    found = list((tmp_path / "out" / "logs").glob(left))
    assert len(found) == 2
    assert all(path.stat().st_size > 100 for path in found)
