"""Processes of gloo on this machine: sharded sequences, FSDP2, PyTorch's context parallelism, each against one process."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from field_bugs.worlds import ROW_BY_ROW
from posenc.catalogue.lookup import FOUNDATION
from sampling import ADDED

TESTS = Path(__file__).parents[1]
SHARDED = [name for name in ROW_BY_ROW if name not in ("path", "path_fox")]
LEARNED = ("learned", "t5", "shaw", "transformer_xl", "fire", "kerple")


def run_on(size: int, tasks: list[str], seconds: int = 500) -> None:
    """Starts `size` processes that do the tasks. Raises AssertionError with the first error."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    given = {
        **os.environ,
        "WORLD_SIZE": str(size),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "OMP_NUM_THREADS": "1",
    }
    ranks = [
        subprocess.Popen(
            [sys.executable, "-m", "stress.ranks", *tasks],
            cwd=TESTS,
            env={**given, "RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(size)
    ]
    try:
        said = [rank.communicate(timeout=seconds) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    for rank, (out, error) in zip(ranks, said, strict=True):
        assert rank.returncode == 0, error[-3000:]
        assert [line.removeprefix("checked ") for line in out.splitlines() if line.startswith("checked")] == tasks


@pytest.mark.acceptance
def test_two_processes_equal_one():
    """Shards of the foundation, FSDP2 and context parallelism, in one start of two processes."""
    sharded = [f"sharded:{name}" for name in FOUNDATION if name in SHARDED]
    others = ["fully_sharded:t5", "made_on_meta:rope", "made_on_meta:learned", "context:rope"]
    run_on(2, [*sharded, *others])


@pytest.mark.acceptance
@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("part", range(4))
def test_every_encoding_sharded(size, part):
    names = SHARDED if size == 4 else [name for name in SHARDED if name in ADDED]
    run_on(size, [f"sharded:{name}" for name in names[part::4]], seconds=1800)


@pytest.mark.acceptance
def test_fully_sharded_and_context_parallel_on_four():
    kinds = [f"{kind}:{name}" for name in LEARNED for kind in ("fully_sharded", "made_on_meta")]
    run_on(4, [*kinds, "context:rope", "context:rope half", "context:xpos"])


def test_a_rank_that_numbers_its_tokens_from_0_is_noticed(monkeypatch):
    """The planted bug, in the process: what a rank computes then differs from the whole."""
    import torch
    import torch.distributed as dist

    from posenc import Positions
    from stress import ranks

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=0, world_size=1)
    try:
        ranks.sharded("rope")
        monkeypatch.setattr(Positions, "shard", lambda self, *given, **named: Positions.arange(1, ranks.N, 1))
        with pytest.raises(AssertionError, match="rope, 1 ranks"):
            ranks.sharded("rope")
        monkeypatch.undo()
        monkeypatch.setattr(
            ranks.Gathered, "backward", staticmethod(lambda ctx, gradient: (torch.zeros_like(gradient), None))
        )
        with pytest.raises(AssertionError, match="gradient of the tokens"):
            ranks.sharded("rope")
    finally:
        dist.destroy_process_group()
