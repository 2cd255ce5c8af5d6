"""MHRoPE: whole heads read one coordinate each, with all of RoPE's frequencies.

    ω_i = base^(-2i/d);   pair i of key head g turns by ω_i·p_a(g)
    a(g): time for the first heads, then height, then width; heads beyond them do not turn

Huang et al. 2025, "Revisiting Multimodal Positional Encoding in Vision-Language Models", section 3, and the authors' code
(freq_allocation/mhrope.py). Text has the same number on all three axes: posenc.positions_by("mrope_ids", …).
Legend: b batch, h heads, g key heads, t tokens, n pairs, d d_head.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from posenc.encodings.bases.by_key_head import RotationByKeyHead
from posenc.frequencies import layouts, rotary
from posenc.frequencies.layouts import Layout
from posenc.kernels.eager import constant
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import check_coords, floating


class MHRoPE(RotationByKeyHead):
    """Every pair of a head turns by the coordinate of this head. No parameters.

    d_head      channels of a head, even
    n_heads     query heads
    n_kv_heads  key heads; the query heads of a group read what their key head reads. None: n_heads
    sizes       key heads of time, height and width; (2, 3, 3) of 8 in the authors' code, in this proportion unless given.
                Fewer than n_kv_heads leave the last heads unturned
    base        of the frequencies
    layout      which channels make a pair

    Time O(t·d), like RoPE; tables in fp64, [b, t, g, n].
    Raises ValueError for sizes that are not three or are more than the key heads.
    """

    axes = 3
    per_head = "coordinates"

    @checked
    def __init__(
        self,
        d_head: int,
        n_heads: int,
        *,
        n_kv_heads: int | None = None,
        sizes: Sequence[int] | None = None,
        base: float = 5000000.0,
        layout: Layout = "half",
    ) -> None:
        checks.even(d_head=d_head)
        key_heads = n_heads if n_kv_heads is None else n_kv_heads
        if sizes is None:
            side = 3 * key_heads // 8
            sizes = (key_heads - 2 * side, side, side)
        sizes = tuple(sizes)
        super().__init__(d_head=d_head, n_heads=n_heads, n_kv_heads=n_kv_heads, sizes=sizes, base=base, layout=layout)
        if n_heads % key_heads:
            raise ValueError(f"n_kv_heads: expected a number that divides n_heads={n_heads}, got {key_heads}")
        if len(sizes) != 3 or min(sizes) < 0 or sum(sizes) > key_heads:
            raise ValueError(
                f"sizes: expected the heads of time, height and width, up to {key_heads} together, got {sizes}"
            )
        self.d_head, self.n_heads, self.key_heads, self.sizes = d_head, n_heads, key_heads, sizes
        self.layout = layouts.check(layout)
        self.frequencies = rotary(d_head, base)
        self.axis_of_head = tuple(axis for axis, size in enumerate(sizes) for _ in range(size))

    def tables(self, at: Positions, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """cos and sin of the angle of every pair, [b, t, g, n] each."""
        check_coords(self, at)
        floating(dtype)
        coords = at.coords.double()
        read = coords[..., list(self.axis_of_head)]
        read = torch.cat([read, coords.new_zeros(*coords.shape[:2], self.key_heads - read.shape[2])], dim=2)
        angle = read[..., None] * constant(self.frequencies.values, torch.float64, coords.device)
        return angle.cos().to(dtype), angle.sin().to(dtype)

    def heads(self, start: int, stop: int) -> MHRoPE:
        """The slice's query heads, each with its coordinate."""
        key_heads = [head // (self.n_heads // self.key_heads) for head in range(start, stop)]
        axes = [self.axis_of_head[head] for head in key_heads if head < len(self.axis_of_head)]
        sizes = {"n_heads": stop - start, "n_kv_heads": stop - start, "sizes": tuple(axes.count(axis) for axis in range(3))}
        return MHRoPE(**{**self.configuration, **sizes})
