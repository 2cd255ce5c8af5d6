"""Which two channels make a rotating pair.

    half         x0 x1 x2 | y0 y1 y2      pair i is (i, i + d/2)     LLaMA as released on the hub, GPT-NeoX
    interleaved  x0 y0 x1 y1 x2 y2        pair i is (2i, 2i + 1)     RoFormer, GPT-J, LLaMA as first published

Legend: n pairs, d = 2n channels. Weights on disk: posenc.configs.convert; cached keys: posenc.attention.rotated_keys.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import torch
from torch import Tensor

from posenc.support.checked import checked

if TYPE_CHECKING:
    from posenc.support.shapes import Float, Int, Num

Layout = Literal["half", "interleaved"]


class Planes(NamedTuple):
    """The pairs of channels start … stop-1, as the layout pairs them: the planes in which a rotation turns."""

    layout: Layout
    start: int
    stop: int

    def commute(self, other: Planes) -> bool:
        """Whether every pair of one is a pair of the other, or shares no channel with any of its pairs."""
        if self == other or self.stop <= other.start or other.stop <= self.start:
            return True
        return self.layout == other.layout == "interleaved" and (self.start - other.start) % 2 == 0


@checked
def check(layout: str) -> Layout:
    """The layout; raises ValueError, which says whose layout each word is, for what is none."""
    return _known(layout)  # type: ignore[arg-type]


@checked
def _known(layout: Layout) -> Layout:
    return layout


@checked
def split(x: Num[Tensor, "*s d"], layout: Layout) -> tuple[Num[Tensor, "*s n"], Num[Tensor, "*s n"]]:
    """The two members of every pair, as views. Raises ValueError for an odd number of channels."""
    if x.shape[-1] % 2:
        raise ValueError(f"x: expected an even number of channels, got {list(x.shape)}")
    if layout == "half":
        first, second = x.chunk(2, dim=-1)
    else:
        first, second = x.unflatten(-1, (-1, 2)).unbind(-1)
    return first, second


@checked
def join(first: Num[Tensor, "*s n"], second: Num[Tensor, "*s n"], layout: Layout) -> Num[Tensor, "*s d"]:
    """The inverse of `split`. Raises ValueError for two of different shapes."""
    if first.shape != second.shape:
        raise ValueError(f"first, second: expected one shape, got {list(first.shape)} and {list(second.shape)}")
    if layout == "half":
        return torch.cat([first, second], dim=-1)
    return torch.stack([first, second], dim=-1).flatten(-2)


@checked
def permutation(d: int, source: Layout, target: Layout) -> Int[Tensor, "d"]:
    """Where channel c of `target` comes from in `source`: x_target = x_source[..., permutation]."""
    return join(*split(torch.arange(d), source), target)


@checked
def head_permutation(
    d_head: int, source: Layout, target: Layout, *, rotary_dim: int | None = None, trailing: bool = False
) -> Int[Tensor, "d_head"]:
    """`permutation` for a head of which only the first (trailing: the last) rotary_dim channels turn; the rest stays.

    Raises ValueError for an unknown layout and a rotary_dim that is odd, below 2 or wider than the head.
    """
    check(source), check(target)
    rotary_dim = d_head if rotary_dim is None else rotary_dim
    if isinstance(rotary_dim, bool) or not isinstance(rotary_dim, int) or rotary_dim % 2 or not 2 <= rotary_dim <= d_head:
        raise ValueError(f"rotary_dim: expected an even number from 2 up to d_head={d_head}, got {rotary_dim!r}")
    start = d_head - rotary_dim if trailing else 0
    index = torch.arange(d_head)
    index[start : start + rotary_dim] = start + permutation(rotary_dim, source, target)
    return index


@checked
def turn(
    x: Float[Tensor, "b h t d"],
    cos: Float[Tensor, "#b #h t n"],
    sin: Float[Tensor, "#b #h t n"],
    layout: Layout,
    returns: Layout | None = None,
) -> Float[Tensor, "b h t d"]:
    """[[cos, -sin], [sin, cos]] on every pair of the first 2n channels, then in layout `returns`; the rest passes through.

    Rounds once.
    """
    if x.shape[-1] < 2 * cos.shape[-1]:
        raise ValueError(
            f"x: expected at least {2 * cos.shape[-1]} channels for {cos.shape[-1]} pairs, got {list(x.shape)}"
        )
    rotated = x[..., : 2 * cos.shape[-1]]
    first, second = split(rotated.to(cos.dtype), layout)
    turned = join(first * cos - second * sin, second * cos + first * sin, returns or layout).to(x.dtype)
    return turned if turned.shape == x.shape else torch.cat([turned, x[..., turned.shape[-1] :]], dim=-1)
