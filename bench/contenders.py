"""The contenders of a case: the module that builds them, and whether each can run on this machine."""

from __future__ import annotations

import importlib

from bench.contest import Contest, Entry, Unavailable
from bench.peers import NOT_ASKED, PEERS, takes_part
from bench.plan import Case
from posenc.kernels import machine

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
    if needs > SHARE * machine.free_bytes():
        raise Unavailable(f"needs about {needs / 2**30:.0f} GiB")
