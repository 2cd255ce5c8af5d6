"""TO-RoPE: RoPE that turns by the index of an event and by its time.

    angle of pair n at index i, time t = (1 - λ_n)·i·ω_n + λ_n·t·ω'_n

Wei et al. 2025, "Rotate Both Ways: Time-and-Order RoPE for Generative Recommendation". λ says what a pair reads: the index
where it is 0, the time where it is 1, and both in between.
Legend: b batch, h heads, t tokens, g rows of gates, n pairs, d d_head.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import torch
from torch import Tensor

from posenc.encoding import PositionalEncoding, Side
from posenc.frequencies import layouts, rotary
from posenc.frequencies.layouts import Layout, Planes
from posenc.kernels.eager import constant
from posenc.kernels.rotation import rotate
from posenc.positions import Positions
from posenc.structure import Rotation
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import check_coords, for_heads, into, rotates, tables_at

if TYPE_CHECKING:
    from posenc.support.shapes import Float

Split = Literal["pairs", "heads", "none"]


class TORoPE(PositionalEncoding):
    """Pair n of head h turns by (1 - λ_hn)·index·ω_n + λ_hn·time·ω'_n.

    d_head     channels of a head, even
    n_heads    query heads
    gates      λ, one row of d_head/2 numbers from 0 to 1 for all heads, or one row for each key head
    base       of the frequencies ω of the index
    time_base  of the frequencies ω' of the time
    layout     which channels make a pair

    Coordinates are (index, time), whole or real numbers. No parameters. Time O(t·d), like RoPE; tables in fp64.
    Raises ValueError for gates out of range, or whose rows do not fit the heads and pairs.
    """

    axes = 2

    @checked
    def __init__(
        self,
        d_head: int,
        n_heads: int,
        gates: tuple[tuple[float, ...], ...],
        *,
        base: float = 10000.0,
        time_base: float = 10000.0,
        layout: Layout = "interleaved",
    ) -> None:
        checks.even(d_head=d_head)
        checks.positive(base=base, time_base=time_base)
        super().__init__(
            d_head=d_head, n_heads=n_heads, gates=gates, base=base, time_base=time_base, layout=layouts.check(layout)
        )
        if not gates or n_heads % len(gates):
            raise ValueError(f"gates: expected 1 row, or as many as divide n_heads={n_heads}, got {len(gates)}")
        for row in gates:
            if len(row) != d_head // 2 or not all(0 <= gate <= 1 for gate in row):
                raise ValueError(f"gates: expected {d_head // 2} numbers from 0 to 1 in each row, got {row}")
        self.d_head, self.n_heads, self.gates, self.layout = d_head, n_heads, gates, layout
        by_index, by_time = rotary(d_head, base), rotary(d_head, time_base)
        self.of_index = tuple((1 - gate) * omega for row in gates for gate, omega in zip(row, by_index, strict=True))
        self.of_time = tuple(gate * omega for row in gates for gate, omega in zip(row, by_time, strict=True))

    def structure(self) -> Rotation:
        planes = (Planes(self.layout, 0, self.d_head),)
        return Rotation(planes, planes)

    def tables(self, at: Positions, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """cos and sin of the angle of every pair, [b, t, g·n] each, rows of gates one after the other."""
        check_coords(self, at)
        index, time = (coords[..., None] for coords in at.coords.double().unbind(-1))
        of_index, of_time = (constant(rate, torch.float64, index.device) for rate in (self.of_index, self.of_time))
        angle = index * of_index + time * of_time
        return angle.cos().to(dtype), angle.sin().to(dtype)

    def rotate(
        self, x: Float[Tensor, "b h t d"], at: Positions, side: Side, out: Tensor | None = None
    ) -> Float[Tensor, "b h t d"]:
        if not rotates(self, x, at, side):
            return into(x, out)
        cos, sin = tables_at(self, at, x.dtype)
        if (rows := len(self.gates)) > 1:
            cos, sin = (for_heads(self, table.unflatten(-1, (rows, -1)), x, "gates") for table in (cos, sin))
        return rotate(x, cos, sin, self.layout, out=out)

    def heads(self, start: int, stop: int) -> TORoPE:
        """The slice's query heads, each with its row of gates."""
        share = self.n_heads // len(self.gates)
        gates = self.gates if len(self.gates) == 1 else tuple(self.gates[head // share] for head in range(start, stop))
        return TORoPE(**{**self.configuration, "n_heads": stop - start, "gates": gates})


@checked
def to_rope(
    d_head: int,
    n_heads: int,
    *,
    split: Split = "pairs",
    time_share: float = 0.5,
    n_kv_heads: int | None = None,
    base: float = 10000.0,
    time_base: float = 10000.0,
    layout: Layout = "interleaved",
) -> TORoPE:
    """`TORoPE` in one of the paper's three forms.

    d_head      channels of a head, even
    n_heads     query heads
    split       what reads the time: "pairs", the last ones of every head; "heads", the last key heads; "none", every pair
                reads both
    time_share  the share of pairs, or of heads, that reads the time; with "none", λ itself. The paper's best are 0.3 to 0.5
    n_kv_heads  key heads; None: n_heads
    base        of the frequencies of the index
    time_base   of the frequencies of the time
    layout      which channels make a pair

    Raises ValueError for sizes that do not fit, and a share out of 0 … 1.
    """
    checks.even(d_head=d_head)
    checks.one_of(get_args(Split), split=split)
    if not 0 <= time_share <= 1:
        raise ValueError(f"time_share: expected a number from 0 to 1, got {time_share}")
    pairs, key_heads = d_head // 2, n_heads if n_kv_heads is None else n_kv_heads
    if n_heads % key_heads:
        raise ValueError(f"n_kv_heads: expected a number that divides n_heads={n_heads}, got {key_heads}")
    gates: tuple[tuple[float, ...], ...] = ((time_share,) * pairs,)
    if split == "pairs":
        gates = (_last(pairs, time_share),)
    elif split == "heads":
        gates = tuple((gate,) * pairs for gate in _last(key_heads, time_share))
    return TORoPE(d_head, n_heads, gates, base=base, time_base=time_base, layout=layout)


def _last(length: int, share: float) -> tuple[float, ...]:
    """`length` numbers: 1 for the last ones, a share of them, and 0 before."""
    ones = round(length * share)
    return (0.0,) * (length - ones) + (1.0,) * ones
