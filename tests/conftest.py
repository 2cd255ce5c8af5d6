"""Hypothesis draws the same examples every time and writes nothing. Ctrl-C reaches what tests start, however those run.

Tests marked `cuda` run where a CUDA device is; elsewhere they are named at the end of the run.
"""

import atexit
import gc
import os
import signal
import sys

import pytest
from hypothesis import settings

import in_process
from posenc.support import languages

settings.register_profile("posenc", derandomize=True, database=None, deadline=None)
settings.load_profile("posenc")

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # as a shell's & leaves it, and children inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def marked_as_chinese(monkeypatch):
    """The Chinese of every sentence that posenc says is 译 and its English, whatever the catalogues hold."""

    class Marked(dict):
        def get(self, key, default=None):
            return f"译{key[1]}"

    monkeypatch.setattr(languages, "translations", lambda room: Marked())


@pytest.fixture(scope="session", autouse=True)
def _nothing_waits_for_the_disk():
    """What is written need not outlive the machine: half of the time of a folder of results goes into fsync."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture
def foreign_code_here(monkeypatch):
    """A user's file runs in this process: that it is kept apart, for seconds each time, is for test_foreign_code.py."""
    for module in ("support.apart", "checking.commands.check", "lab.commands.add", "lab.run.measurements"):
        monkeypatch.setattr(f"posenc.{module}.told", in_process.told)


@pytest.fixture
def no_workers(monkeypatch):
    import lab_sweeps

    lab_sweeps.without_workers(monkeypatch)


def pytest_collection_finish(session):
    """The collector passes over what is there for the whole run: thousands of tests, torch and transformers. It saves a
    tenth of the processor time."""
    gc.collect()
    gc.freeze()


NO_DEVICE = "there is no CUDA device"


def pytest_runtest_setup(item):
    if item.get_closest_marker("cuda"):
        import torch

        if not torch.cuda.is_available():
            pytest.skip(NO_DEVICE)


def pytest_terminal_summary(terminalreporter):
    left_out = [report.nodeid for report in terminalreporter.getreports("skipped") if NO_DEVICE in str(report.longrepr)]
    if left_out:
        terminalreporter.write_line(f"{len(left_out)} tests need a CUDA device and did not run:")
        for name in dict.fromkeys(one.partition("[")[0] for one in left_out):
            terminalreporter.write_line(f"  {name}")


@atexit.register
def _silent():
    """As the process ends, triton's bindings print hundreds of lines about leaked functions after the summary."""
    sys.stderr.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
