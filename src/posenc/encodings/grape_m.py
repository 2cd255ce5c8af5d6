"""GRAPE-M: RoPE whose frequencies are learned, for all heads together or for each of them.

    R(p) = exp(p L),   L = Σ_i ω_i L_i with one rank-2 skew L_i for each pair,   ω_i = exp(learned)

Zhang et al. 2025, "Group Representational Position Encoding" (GRAPE): the multiplicative member of the family
whose planes are the pairs of channels, as the authors train it. Planes in a learned orthogonal basis are Cayley-STRING
(cayley_string.py). The contextual form, in which a token's content sets how far all angles go on, is the case of Selective
RoPE (selective_rope.py) with one step for all pairs; the authors' code computes that step by a sigmoid, its text by a
softplus. Planes that overlap, and so do not commute, are not here: the authors give no code for them.
Legend: b batch, h heads, g heads with frequencies of their own, t tokens, n pairs, d d_head.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from posenc.encodings.bases.by_key_head import RotationByKeyHead
from posenc.frequencies import layouts, rotary
from posenc.frequencies.layouts import Layout
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import check_coords, exact_dtype, floating, full_precision, on_device_of


class GrapeM(RotationByKeyHead):
    """Pair i of head h turns by p·exp(log_frequencies_hi).

    d_head      channels of a head, even
    n_heads     query heads
    n_kv_heads  key heads, each with frequencies of its own; None: n_heads
    shared      one set of frequencies for all heads, as in the authors' training
    base        of the frequencies that it starts from
    layout      which channels make a pair
    reverse     turn the other way, R(-p); the authors' code does, with layout="half"

    Parameter: log_frequencies [1 or n_kv_heads, d_head/2]. Fresh it is RoPE. LeRoPE learns factors of given frequencies
    instead. Time O(t·d), like RoPE; tables in fp64.
    """

    learned_tables = True
    exact_parameters = ("log_frequencies",)
    per_head = "frequencies"

    @checked
    def __init__(
        self,
        d_head: int,
        n_heads: int,
        *,
        n_kv_heads: int | None = None,
        shared: bool = True,
        base: float = 10000.0,
        layout: Layout = "interleaved",
        reverse: bool = False,
    ) -> None:
        checks.even(d_head=d_head)
        key_heads = n_heads if n_kv_heads is None else n_kv_heads
        super().__init__(
            d_head=d_head, n_heads=n_heads, n_kv_heads=n_kv_heads, shared=shared, base=base, layout=layout, reverse=reverse
        )
        if n_heads % key_heads:
            raise ValueError(f"n_kv_heads: expected a number that divides n_heads={n_heads}, got {key_heads}")
        self.d_head, self.n_heads, self.sets = d_head, n_heads, 1 if shared else key_heads
        self.layout, self.reverse = layouts.check(layout), reverse
        fresh = torch.tensor(rotary(d_head, base).values, dtype=torch.float64).log()
        self.log_frequencies = nn.Parameter(fresh.to(exact_dtype()).repeat(self.sets, 1))

    def tables(self, at: Positions, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """cos and sin of the angle of every pair, [b, t, g, n] each."""
        check_coords(self, at)
        floating(dtype)
        on_device_of(self.log_frequencies, at=at.coords)
        with full_precision(at.coords):
            angle = at.coords.double()[..., None, None] * self.log_frequencies.double().exp()
            return angle.cos().to(dtype), (-angle.sin() if self.reverse else angle.sin()).to(dtype)

    @torch.no_grad()
    def heads(self, start: int, stop: int) -> GrapeM:
        """The slice's query heads, each with its frequencies."""
        sizes = {"n_heads": stop - start, "n_kv_heads": stop - start}
        part = GrapeM(**{**self.configuration, **sizes}).to(self.log_frequencies)
        rows = [head // (self.n_heads // self.sets) for head in range(start, stop)] if self.sets > 1 else [0] * part.sets
        part.log_frequencies.copy_(self.log_frequencies[rows])
        return part
