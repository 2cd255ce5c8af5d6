"""Laws of rows: a token's row depends on its own embedding and coordinates only."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from posenc.checking.engine import Measured
from posenc.checking.errors import LawBroken
from posenc.checking.laws.compare import close, difference, equal, tolerance
from posenc.checking.laws.registry import breaks
from posenc.checking.laws.world import Setting, World
from posenc.encoding import PositionalEncoding
from posenc.positions import Positions
from posenc.support.tensors import working_dtype

SOME = (7, 2, 9, 2)
FAR = 2**20  # a method may keep lengths up to some position


@breaks("tokens mix")
def locality(encoding: PositionalEncoding, setting: Setting) -> Iterator[Measured]:
    """An embedded or rotated token depends on itself and its own coordinates only where declared (trait `local`).

    Where not, some token depends on others, or tokens alone are refused.
    """
    some = torch.tensor(SOME, device=setting.device)
    if "local" in encoding.traits:
        world = World(setting)
        for seam, whole, part in world.rows(encoding, world.scattered(), some):
            yield equal(part, whole, setting.dtype, f"{seam} of tokens {some.tolist()} alone")
        return
    world, exact = World(replace(setting, dtype=torch.float64)), copy.deepcopy(encoding).double()
    try:
        rows = world.rows(exact, world.scattered(), some)
    except ValueError:
        return
    if all(difference(part, whole) <= tolerance(torch.float64, whole) for _, whole, part in rows):
        raise LawBroken("does not declare it, yet no token depends on others")


@breaks("cos of cos")
def norm_preservation(encoding: PositionalEncoding, setting: Setting) -> Iterator[Measured]:
    """Rotation keeps the length of queries and keys where declared (trait `norm_preserving`), and changes some where not.

    Changes are looked for in float64, near and far away. Every copy of a query has the query's length.
    """
    if "norm_preserving" in encoding.traits:
        world = World(setting)
        for side, turned, x in _lengths(encoding, world, world.scattered()):
            yield close(turned, x, setting.dtype, side)
        return
    world, exact = World(replace(setting, dtype=torch.float64)), copy.deepcopy(encoding).double()
    for at in (world.scattered(), world.plain().shift(FAR)):
        try:
            lengths = _lengths(exact, world, at)
        except ValueError:
            continue  # the encoding refuses positions so far away
        if any(difference(turned, x) > tolerance(torch.float64, x) for _, turned, x in lengths):
            return
    raise LawBroken("does not declare it, yet rotation changes no length")


def _lengths(encoding: PositionalEncoding, world: World, at: Positions) -> list[tuple[str, Tensor, Tensor]]:
    """(side, the lengths of rotated vectors, those of the vectors), [b, h, t] each."""
    setting = world.setting
    x = world.draw("heads", setting.batch, setting.n_heads, setting.length, setting.d_head)
    dtype = working_dtype(x.dtype)
    at = encoding.read_hidden(encoding.embed(world.x, at), at)
    lengths = []
    for side, copies in (("query", encoding.query_copies), ("key", 1)):
        turned = encoding.rotate(x, at, side).to(dtype).norm(dim=-1)  # type: ignore[arg-type]
        lengths.append((side, turned, x.to(dtype).norm(dim=-1).repeat_interleave(copies, dim=1)))
    return lengths
