"""The contenders of a case: the module that builds them, and whether each can run on this machine."""

from __future__ import annotations

import importlib
from pathlib import Path

from bench.contest import Contest, Entry, Unavailable
from bench.peers import NOT_ASKED, PEERS, takes_part
from bench.plan import Case

FLOAT = 4  # bytes
SHARE = 0.6  # of the free memory that a contender may need


def build(case: Case, device: str) -> Contest:
    """The floor and the contenders of a case, from the module that its benchmark names."""
    contest: Contest = importlib.import_module(f"bench.{case.benchmark}").build(case, device)
    return contest


def take_part(entry: Entry, case: Case, peers: dict[str, str]) -> None:
    """Raises Unavailable for peers that are not installed, and for contenders that would not fit into memory."""
    if entry.package in PEERS and not takes_part(standing := peers.get(entry.package, NOT_ASKED)):
        raise Unavailable(standing)
    needs = entry.squares * case.batch * case.heads * case.length**2 * FLOAT
    if needs > SHARE * free_bytes():
        raise Unavailable(f"needs about {needs / 2**30:.0f} GiB")


def free_bytes() -> float:
    """Memory that a process may still allocate; infinite if the system does not report it."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) * 1024.0 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration, ValueError):
        return float("inf")
