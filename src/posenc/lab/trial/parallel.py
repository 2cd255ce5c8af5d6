"""One trial on several processes started by `torchrun`: each computes a part of the batch, gradients are summed.

    shard="rows"        rank 0 | a a a a |        shard="sequence"    rank 0 | rank 1
                               | b b b b |                            a a    | a a
                        rank 1 | c c c c |                            b b    | b b
                               | d d d d |                            c c    | c c     keys and values come from all

Every process draws the same batch from the same generator and takes its part, so no data is sent.
Legend: b rows, t tokens, h heads, s shards, d channels.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import torch
import torch.distributed
import torch.nn.functional as F
from torch import Tensor

from posenc.lab.tasks.task import IGNORE
from posenc.positions import Positions

if TYPE_CHECKING:
    from posenc.support.shapes import Float, Int

Shard = Literal["rows", "sequence"]


def world() -> tuple[int, int]:
    """Rank and number of processes, as set by torchrun; 0 and 1 without it."""
    return int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))


@dataclass(frozen=True)
class Shards:
    """The positions of all keys of the rows, of which this process has a part."""

    at: Positions

    def gather(self, part: Float[Tensor, "b h s d"]) -> Float[Tensor, "b h t d"]:
        whole: Tensor = _Gather.apply(part)
        return whole


class _Gather(torch.autograd.Function):
    """Forward: the parts of all processes, concatenated. Backward: the gradients of this part, summed over processes."""

    @staticmethod
    def forward(context: Any, part: Tensor) -> Tensor:
        parts = [torch.empty_like(part, memory_format=torch.contiguous_format) for _ in range(world()[1])]
        torch.distributed.all_gather(parts, part.contiguous())
        return torch.cat(parts, dim=2)

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> Tensor:
        (gradient,) = gradients
        rank, size = world()
        gradient = gradient.contiguous()
        torch.distributed.all_reduce(gradient)
        return gradient.chunk(size, dim=2)[rank]


class Part:
    """The part of a batch that one process computes: tokens, positions, target positions and targets.

    Not a dataclass, because Lightning Fabric would rebuild it.
    """

    def __init__(
        self,
        tokens: Int[Tensor, "b t"],
        targets: Int[Tensor, "b t"],
        at: Positions,
        device: torch.device,
        shards: Shards | None = None,
    ) -> None:
        flat = targets.flatten()
        scored = flat != IGNORE
        self.indices = None if bool(scored.all()) else scored.nonzero()[:, 0].to(device)
        self.targets = flat[scored].to(device)
        self.tokens, self.at, self.shards = tokens.to(device), at, shards

    def at_targets(self, hidden: Float[Tensor, "b t d"]) -> Float[Tensor, "n d"]:
        """The positions that have a target; the head is computed only there."""
        flat = hidden.flatten(0, 1)
        return flat if self.indices is None else flat.index_select(0, self.indices)


def part_of(
    tokens: Int[Tensor, "b t"], targets: Int[Tensor, "b t"], at: Positions, how: Shard, device: torch.device
) -> Part:
    """This process's part of the rows, or of every row, padded so that all parts have the same length.

    Raises ValueError if there are fewer rows than processes.
    """
    rank, size = world()
    at = at.to(device)
    if size == 1:
        return Part(tokens, targets, at, device)
    if how == "rows":
        if len(tokens) < size:
            raise ValueError(f"rows: {len(tokens)} cannot be shared by {size} processes; take shard='sequence'")
        if at.batch > 1:  # every row has its own positions, which are all in the order of the tokens
            at = Positions.at(at.coords.tensor_split(size)[rank])
        return Part(tokens.tensor_split(size)[rank], targets.tensor_split(size)[rank], at, device)
    missing = -tokens.shape[1] % size
    tokens, targets, at = F.pad(tokens, (0, missing)), F.pad(targets, (0, missing), value=IGNORE), padded(at, missing)
    own_part = slice(rank * tokens.shape[1] // size, (rank + 1) * tokens.shape[1] // size)
    return Part(tokens[:, own_part], targets[:, own_part], at.shard(rank, size), device, Shards(at))


def padded(at: Positions, missing: int) -> Positions:
    """The part with `missing` padding tokens more, at the last position, because a table may end there."""
    if not missing:
        return at
    last = at.take(torch.full((missing,), at.length - 1, device=at.coords.device))
    return Positions.cat([at, replace(last, document=torch.full_like(last.document, -1))])
