"""Worker processes: a job that breaks breaks alone, and nobody outlives the parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from posenc.lab.engines.workers import Job, Workers

Report = Callable[[float], None]


def double(shared: int, number: int, report: Report) -> int:
    report(0.5)
    return shared + 2 * number


def threads(shared: int, report: Report) -> tuple[int, str]:
    import torch

    return torch.get_num_threads(), os.environ["MALLOC_TRIM_THRESHOLD_"]


def breaks(shared: int, report: Report) -> None:
    raise ValueError("planted\nsecond line")


def dies(shared: int, report: Report) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_jobs_share_the_workers_and_break_alone() -> None:
    jobs = [Job(breaks, ()), Job(dies, ()), Job(threads, ()), *(Job(double, (n,)) for n in range(5))]
    with Workers(2, 100) as workers:
        ends = {event.number: event for event in workers.run(jobs) if event.finished}
        assert ends[0].failure == "ValueError: planted"
        assert ends[1].failure == "its process ended: signal SIGKILL"
        assert ends[2].value == (1, str(2**30))
        assert [ends[n].value for n in range(3, 8)] == [100, 102, 104, 106, 108]
        assert [event.value for event in workers.run([Job(double, (7,))]) if event.finished] == [114]
        processes = list(workers._processes.values())
    assert not any(process.is_alive() for process in processes)
    assert "MALLOC_TRIM_THRESHOLD_" not in os.environ


@pytest.mark.acceptance
def test_a_job_that_is_not_to_be_taken_is_passed_by() -> None:
    asked = list[int]()

    def even(number: int) -> bool:
        asked.append(number)
        return number % 2 == 0

    with Workers(2, 100) as workers:
        jobs = [Job(double, (n,)) for n in range(5)]
        ends = {event.number: event.value for event in workers.run(jobs, even) if event.finished}
        assert ends == {0: 100, 2: 104, 4: 108}
        assert asked == [0, 1, 2, 3, 4]
        assert list(workers.run(jobs, lambda number: False)) == []


def device(shared: int, report: Report) -> str:
    return os.environ["CUDA_VISIBLE_DEVICES"]


@pytest.mark.acceptance
def test_environments_go_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5")
    with Workers(3, 0, [{"CUDA_VISIBLE_DEVICES": "3"}, {"CUDA_VISIBLE_DEVICES": "5"}]) as workers:
        jobs = [Job(dies, ()), *(Job(device, ()) for _ in range(8))]
        ends = [event.value for event in workers.run(jobs) if event.finished and event.failure is None]
        assert {*ends} == {"3", "5"}
        assert sorted(workers._numbers.values()) == [0, 1, 2]
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "3,5"


PARENT = """
import os, sys, time
from posenc.lab.engines.workers import Job, Workers
def busy(shared, report):
    open(shared + "/" + str(os.getpid()), "w").close()
    for _ in range(600):
        time.sleep(0.05)
        report(0.0)
if __name__ == "__main__":
    with Workers(2, sys.argv[1]) as workers:
        for _ in workers.run([Job(busy, ()), Job(busy, ())]):
            pass
"""


@pytest.mark.acceptance
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="reads /proc")
def test_workers_of_a_killed_parent_end(tmp_path: Path) -> None:
    (tmp_path / "parent.py").write_text(PARENT)
    (tmp_path / "pids").mkdir()
    parent = subprocess.Popen([sys.executable, tmp_path / "parent.py", tmp_path / "pids"])
    try:
        wait_for(lambda: len(list((tmp_path / "pids").iterdir())) == 2, 60)
    finally:
        parent.kill()
        parent.wait()
    pids = [int(path.name) for path in (tmp_path / "pids").iterdir()]
    wait_for(lambda: not any(running(pid) for pid in pids), 10)


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def wait_for(done: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)
