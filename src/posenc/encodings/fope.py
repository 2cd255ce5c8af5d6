"""Fourier positions: every pair of channels turns by a mixture of waves; pairs that training never saw whole keep still.

    (x, y) -> (x C - y S, y C + x S),   C_m(p) = Σ_n a_nm cos(ω_n p),   S_m(p) = Σ_n b_nm sin(ω_n p)      where ω_m ≥ 2π/L
    (x, y) as they are                                                                                 where ω_m < 2π/L

Hua et al. 2024, "Fourier Position Embedding: Enhancing Attention's Periodic Extension for Length Generalization", section
4. The sums are over all pairs with ω_n ≥ 2π/L; a and b are the identity plus noise, each key head has its own, and they
are not trained. The authors' code has another form: at most d/4 pairs turn, pair m by the mixture around wave
m·⌈N/(d/4)⌉ of N, and the others, whose sine is padded with 1 like their cosine, become (x - y, y + x).
Legend: b batch, t tokens, h query heads, g key heads, n waves, m pairs that turn, d d_head.
"""

from __future__ import annotations

import math
from typing import Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from posenc.encodings.bases.by_key_head import RotationByKeyHead
from posenc.frequencies import layouts
from posenc.frequencies.layouts import Layout
from posenc.kernels.eager import constant
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import check_coords, floating, full_precision

Form = Literal["paper", "code"]


class FoPE(RotationByKeyHead):
    """RoPE whose waves are mixed and whose slowest pairs keep still. Not relative: a mixture of rotations is none.

    d_head          channels of a head, even
    n_heads         query heads
    n_kv_heads      key heads, each with mixtures that its query heads share; None: n_heads
    trained_length  L: pairs that turn less than once in so many positions keep still
    base            of the frequencies
    noise           how far a and b start from the identity: the gain of Xavier's normal numbers, 0.3 to 0.6 in the paper
    form            "paper", or "code" as the authors' code has it
    layout          which channels make a pair

    Parameters: cosines and sines [n_kv_heads, waves, turning pairs], a and b. They ask for no gradients, as in the paper;
    requires_grad_() trains them. Without noise it is RoPE with the slow pairs cut off. Time O(t·heads·d²) for the
    mixtures. Raises ValueError where no pair turns once in trained_length positions.
    """

    traits = frozenset({"local"})
    learned_tables = True
    per_head = "mixtures"

    @checked
    def __init__(
        self,
        d_head: int,
        n_heads: int,
        *,
        n_kv_heads: int | None = None,
        trained_length: int = 512,
        base: float = 10000.0,
        noise: float = 0.3,
        form: Form = "paper",
        layout: Layout = "half",
    ) -> None:
        checks.even(d_head=d_head)
        checks.positive(base=base)
        checks.finite(noise=noise)
        checks.moderate(noise=noise)
        checks.one_of(get_args(Form), form=form)
        layouts.check(layout)
        key_heads = n_heads if n_kv_heads is None else n_kv_heads
        checks.whole(n_heads=n_heads, n_kv_heads=key_heads, trained_length=trained_length)
        super().__init__(
            d_head=d_head,
            n_heads=n_heads,
            n_kv_heads=n_kv_heads,
            trained_length=trained_length,
            base=base,
            noise=noise,
            form=form,
            layout=layout,
        )
        if n_heads % key_heads:
            raise ValueError(f"n_kv_heads: expected a number that divides n_heads={n_heads}, got {key_heads}")
        every = (base ** (-2 * n / d_head) for n in range(d_head // 2))
        self.waves = tuple(frequency for frequency in every if frequency * trained_length >= 2 * math.pi)
        pairs = len(self.waves) if form == "paper" else min(len(self.waves), d_head // 4)
        if not pairs:
            raise ValueError(f"trained_length: no pair of {d_head} channels turns once in {trained_length} positions")
        self.d_head, self.n_heads, self.key_heads, self.form, self.layout = d_head, n_heads, key_heads, form, layout
        step = -(-len(self.waves) // pairs)
        identity = torch.zeros(len(self.waves), pairs)
        for pair in range(pairs):
            if pair * step < len(self.waves):
                identity[pair * step, pair] = 1.0
        deviation = noise * (2 / (pairs * (len(self.waves) + key_heads))) ** 0.5
        self.cosines, self.sines = (
            nn.Parameter(identity + deviation * torch.randn(key_heads, *identity.shape), requires_grad=False)
            for _ in range(2)
        )

    def structure(self) -> None:
        """Mixtures of cosines and of sines turn by no angle."""

    def tables(self, at: Positions, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """C and S of every pair of every key head, [b, t, g, d/2]."""
        check_coords(self, at)
        floating(dtype)
        angle = at.coords.double()[..., None] * constant(self.waves, torch.float64, at.coords.device)
        still = self.d_head // 2 - self.cosines.shape[-1]
        with full_precision(self.cosines):
            cos, sin = (
                torch.einsum("btn,gnm->btgm", wave, mixture.double())
                for wave, mixture in ((angle.cos(), self.cosines), (angle.sin(), self.sines))
            )
        cos = F.pad(cos, (0, still), value=1.0)
        sin = F.pad(sin, (0, still), value=1.0 if self.form == "code" else 0.0)
        return cos.to(dtype), sin.to(dtype)

    @torch.no_grad()
    def heads(self, start: int, stop: int) -> FoPE:
        """The slice's query heads, each with mixtures of its own."""
        part = FoPE(**{**self.configuration, "n_heads": stop - start, "n_kv_heads": stop - start}).to(self.cosines)
        rows = [head // (self.n_heads // self.key_heads) for head in range(start, stop)]
        part.cosines.copy_(self.cosines[rows])
        part.sines.copy_(self.sines[rows])
        return part
