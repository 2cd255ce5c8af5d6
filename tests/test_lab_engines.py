"""The same trials give the same records wherever they run, and one that breaks breaks alone."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from lab_sweeps import TRIALS, by_command, experiment, made_up, made_up_sweep, names, table
from posenc.lab import engines
from posenc.lab.engines import Context, finish_elsewhere
from posenc.lab.engines.local import Local
from posenc.lab.records.provenance import provenance
from posenc.lab.records.record import Record
from posenc.lab.trial.training import Hardware

IN_CI = bool(os.environ.get("CI"))
few = {"experiment": experiment(seeds=1, encodings=("nope", "rope"))}
FEW = 4


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("unbroken")
    assert made_up_sweep(path, train=None, **few).ran == FEW
    return path


def needs(library: str) -> pytest.MarkDecorator:
    """Skipped without the library, but not in CI: there it is missing by mistake, and the test fails."""
    return pytest.mark.skipif(find_spec(library) is None and not IN_CI, reason=f"{library} is not installed")


def breaks_for_rope(trial: Any, *rest: Any) -> Record:
    if trial.encoding == "rope":
        raise ValueError("planted\nand more")
    return made_up(trial, *rest)


# Local ---------------------------------------------------------------------------------------------------------------


@pytest.mark.acceptance
def test_local_workers_give_what_one_process_gives(tmp_path: Path, unbroken: Path) -> None:
    outcome = made_up_sweep(tmp_path, train=None, engine=Local(2), **few)
    assert (outcome.ran, outcome.failed) == (FEW, ())
    assert names(tmp_path) == names(unbroken)
    assert table(tmp_path) == table(unbroken)


def says_its_device(trial: Any, text: Any, hardware: Any, report: Any) -> Record:
    record = made_up(trial, text, hardware, report)
    return Record({**record.about, "device": os.environ["CUDA_VISIBLE_DEVICES"]}, record.rows)


@pytest.mark.acceptance
def test_workers_take_the_devices_in_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3, 5")
    trials = experiment().trials()
    context = Context(None, Hardware("cuda"), lambda number: True, [], tmp_path, says_its_device)
    ends = [event for event in Local().run(trials, context) if event.finished]
    assert sorted(event.number for event in ends) == list(range(TRIALS))
    assert {Record.from_parquet(event.value).about["device"] for event in ends} == {"3", "5"}


@pytest.mark.parametrize(("name", "message"), [("loca", "expected local, ray, got 'loca'")])
def test_engines_by_name(name: str, message: str) -> None:
    assert isinstance(engines.named("local", 3), Local)
    assert engines.named("local", 3).workers == 3
    with pytest.raises(ValueError, match=message):
        engines.named(name)
    with pytest.raises(ValueError, match="--workers: expected at least 1, got 0"):
        engines.named("local", 0)


def test_a_machine_that_would_give_other_numbers_is_refused() -> None:
    trial = experiment().trials()[0]
    here = provenance(trial, Hardware())

    def run(**changed: str) -> object:
        return finish_elsewhere(trial, None, Hardware(), made_up, {**here, **changed})

    assert isinstance(run(), bytes)
    with pytest.raises(
        RuntimeError, match=r"fingerprint: this machine has \w{12}, the sweep new; install the same everywhere"
    ):
        run(fingerprint="new")
    with pytest.raises(RuntimeError, match=r"device: .*, the sweep x86_64 AVX1; set ATEN_CPU_CAPABILITY"):
        run(device="x86_64 AVX1")


@pytest.fixture
def found_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where another process finds the functions of this file and posenc."""
    here = [str(Path(__file__).parent), str(Path(engines.__file__).parents[3])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(here))


# Ray -----------------------------------------------------------------------------------------------------------------


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch, found_elsewhere: None) -> Iterator[Any]:
    """Two machines that are processes of this one: one core and one core."""
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    import ray
    from ray._private import services
    from ray.cluster_utils import Cluster

    monkeypatch.setattr(services, "get_node_ip_address", lambda *_, **__: "127.0.0.1")  # it would take a wider one
    small = {"num_cpus": 1, "object_store_memory": 100 * 2**20, "node_ip_address": "127.0.0.1"}
    made = Cluster(initialize_head=True, head_node_args={**small, "include_dashboard": False})
    made.add_node(**small)
    made.wait_for_nodes()
    ray.init(address=made.address, log_to_driver=False)
    try:
        yield made
    finally:
        ray.shutdown()
        made.shutdown()


def waits_for_the_loss(lost: str, trial: Any, *rest: Any) -> Record:
    """Ends only after a machine was lost, however long that takes: `lost` is the file that says so."""
    from posenc.lab.trial.training import run_trial

    wait_for(Path(lost).exists, 60)
    record = run_trial(trial, *rest)
    assert record is not None
    return record


@pytest.mark.acceptance
@needs("ray")
def test_a_cluster_that_loses_a_machine_ends_complete(tmp_path: Path, unbroken: Path, cluster: Any) -> None:
    from posenc.lab.engines.ray_ import Ray

    lost, nodes, gone = next(iter(cluster.worker_nodes)), list[int](), tmp_path / "gone"
    engine = Ray()
    assert engine.workers == 2
    started = list[str]()

    def lose() -> None:
        cluster.remove_node(lost, False)
        gone.touch()

    def progress(update: Any) -> None:
        if update.what == "running" and str(update.trial) not in started:
            started.append(str(update.trial))
        if len(started) == 2 and not nodes:
            nodes.append(engine.workers)
            threading.Timer(0.5, lose).start()  # while both machines are busy

    train = functools.partial(waits_for_the_loss, str(gone))
    outcome = made_up_sweep(tmp_path / "whole", train=train, engine=engine, progress=progress, **few)
    assert nodes == [2]
    wait_for(lambda: engine.workers == 1, 60)  # the cluster takes its time to say so
    assert (outcome.ran, outcome.failed) == (FEW, ())
    assert names(tmp_path / "whole") == names(unbroken)
    assert table(tmp_path / "whole") == table(unbroken)
    failing = made_up_sweep(tmp_path / "failing", train=breaks_for_rope, engine=engine, **few)
    assert [line for _, line in failing.failed] == ["ValueError: planted"] * 2
    assert failing.ran == FEW // 2


@needs("ray")
@pytest.mark.acceptance
@pytest.mark.usefixtures("cluster")
def test_one_command_runs_what_the_study_has_on_ray(tmp_path: Path) -> None:
    """Tuning, the models at the chosen settings and those of fewer seeds: all as on this machine alone."""
    there = by_command(tmp_path, "there", "--engine", "ray")
    here = by_command(tmp_path, "here", "--workers", "1")
    assert names(there) == names(here)
    assert table(there) == table(here)


@needs("ray")
@pytest.mark.acceptance
def test_without_a_cluster_one_of_this_machine_is_started_and_ended(tmp_path: Path, unbroken: Path) -> None:
    script = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from lab_sweeps import *
from posenc.lab import engines
if __name__ == "__main__":
    wanted = experiment(seeds=1, encodings=("nope", "rope"))
    print(made_up_sweep(Path({str(tmp_path)!r}), train=None, engine=engines.named("ray"), experiment=wanted)[:3])
"""
    before = ray_processes()
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert out.stdout.splitlines()[-1] == f"({FEW}, 0, ())", out.stderr
    assert table(tmp_path) == table(unbroken)
    wait_for(lambda: ray_processes() <= before, 30)


def ray_processes() -> set[str]:
    found = set()
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and b"raylet" in (entry / "cmdline").read_bytes():
                found.add(entry.name)
        except OSError:
            continue
    return found


def wait_for(done: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.1)
