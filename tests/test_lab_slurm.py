"""`--engine slurm` on a real SLURM of this machine: one slurmctld and two slurmd, of which one is lost.

Debian's slurm-wlm has all that is needed; without it the test is skipped, in CI too. There is no accounting database, so
submitit recognises the end of a job by its result file.
"""

from __future__ import annotations

import functools
import os
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from lab_sweeps import by_command, experiment, made_up_sweep, names, table
from posenc.lab import engines
from test_lab_engines import FEW, few, wait_for, waits_for_the_loss

MISSING = [name for name in ("slurmctld", "slurmd", "sbatch") if shutil.which(name) is None]
REASON = f"{', '.join(MISSING)} not found: apt-get install slurm-wlm" if MISSING else "slurmd must be started by root"
NODES = ("first", "second")
CONFIGURATION = """
ClusterName=posenc
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
AuthType=auth/none
CredType=cred/none
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
ReturnToService=2
SlurmdTimeout=10
KillWait=5
NodeName=first NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=1 State=UNKNOWN
NodeName=second NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=1 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


class Cluster(NamedTuple):
    configuration: Path
    nodes: dict[str, subprocess.Popen[bytes]]

    def jobs_on(self, node: str) -> list[int]:
        """The processes of jobs of this cluster on a node."""
        return with_variables(SLURM_CONF=str(self.configuration), SLURMD_NODENAME=node)

    def lose(self, node: str) -> None:
        """Ends the node's daemons and all of its jobs, as a loss of power does: those first that would report the end."""
        steps = with_variables(SLURM_CONF=str(self.configuration), NODE_OF_TEST=node)
        for number in (self.nodes[node].pid, *steps, *self.jobs_on(node)):
            try:
                os.kill(number, signal.SIGKILL)
            except ProcessLookupError:
                continue


def with_variables(**wanted: str) -> list[int]:
    """The processes whose environment has these variables."""
    marks, found = {f"{name}={value}".encode() for name, value in wanted.items()}, []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and marks <= set((entry / "environ").read_bytes().split(b"\0")):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def states() -> dict[str, str]:
    said = subprocess.run(["sinfo", "--noheader", "--Node", "--format=%N %T"], capture_output=True, text=True, check=False)
    return dict(line.split() for line in said.stdout.splitlines())


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    folder = tmp_path / "slurm"
    (folder / "state").mkdir(parents=True)
    free = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
    ports = [one.getsockname()[1] for one in free]
    for one in free:
        one.close()
    configuration = folder / "slurm.conf"
    configuration.write_text(CONFIGURATION.format(host=socket.gethostname().split(".")[0], ports=ports, folder=folder))
    monkeypatch.setenv("SLURM_CONF", str(configuration))
    here = [str(Path(__file__).parent), str(Path(engines.__file__).parents[3])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(here))

    def start(*command: str) -> subprocess.Popen[bytes]:
        with (folder / f"{command[0]}-{command[-1]}.log").open("wb") as log:
            of_node = {**os.environ, "NODE_OF_TEST": command[-1]}
            return subprocess.Popen([*command, "-D", "-f", str(configuration)], stdout=log, stderr=log, env=of_node)

    controller = start("slurmctld")
    made = Cluster(configuration, {node: start("slurmd", "-N", node) for node in NODES})
    try:
        wait_for(lambda: states() == dict.fromkeys(NODES, "idle"), 60)
        yield made
    finally:
        for node in NODES:
            made.lose(node)
        controller.kill()
        for process in (controller, *made.nodes.values()):
            process.wait()


@pytest.mark.skipif(bool(MISSING) or os.geteuid() != 0, reason=REASON)
@pytest.mark.acceptance
def test_a_cluster_that_loses_a_node_ends_complete(tmp_path: Path, cluster: Cluster) -> None:
    pytest.importorskip("submitit")
    from posenc.lab.engines.slurm import Slurm

    gone, out = tmp_path / "gone", tmp_path / "out"

    def lose_when_both_are_busy() -> None:
        wait_for(lambda: all(cluster.jobs_on(node) for node in NODES), 120)
        cluster.lose("second")
        gone.touch()

    watcher = threading.Thread(target=lose_when_both_are_busy)
    watcher.start()
    train = functools.partial(waits_for_the_loss, str(gone))
    outcome = made_up_sweep(out, train=train, engine=Slurm(), **few)
    watcher.join()
    assert states()["second"].startswith("down")
    assert (outcome.ran, outcome.failed) == (FEW, ())
    made_up_sweep(tmp_path / "alone", train=None, experiment=experiment(seeds=1, encodings=("nope", "rope")))
    assert names(out) == names(tmp_path / "alone")
    assert table(out) == table(tmp_path / "alone")


@pytest.mark.skipif(bool(MISSING) or os.geteuid() != 0, reason=REASON)
@pytest.mark.acceptance
@pytest.mark.usefixtures("cluster")
def test_one_command_runs_what_the_study_has_on_slurm(tmp_path: Path) -> None:
    pytest.importorskip("submitit")
    there = by_command(tmp_path, "there", "--engine", "slurm", "--workers", "2")
    here = by_command(tmp_path, "here", "--workers", "1")
    assert names(there) == names(here)
    assert table(there) == table(here)
