"""CLEX: the frequencies follow a learned differential equation over the factor by which a text exceeds the trained length.

    ln ω(t) = ln ν(t) + u(t),   u(1) = 0,   du/dt = a((u + 2·ln ν(t)) U)·D
    ν_n(t) = base^(-2n/d)·(2t - 1)^(-2n/(d-2))

Chen et al. 2023, "CLEX: Continuous Length Extrapolation for Large Language Models", and the authors' code. That solves
dz/dt = a((z + ln ν(t)) U)·D + d ln ν(t)/dt for z = ln ω from z(1) = ln base^(-2n/d). Here ln ν is added exactly, and only
u = z - ln ν is solved, by the same method (Runge-Kutta of order 4, the 3/8 rule), so that longer steps are enough.
Legend: b batch, t tokens, n pairs, w width of the hidden layer, d d_head.
"""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING, Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from posenc.encodings.rope import RoPE
from posenc.frequencies import Frequencies
from posenc.frequencies.layouts import Layout
from posenc.kernels.eager import constant
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import check_coords, floating, full_precision, on_device_of

if TYPE_CHECKING:
    from posenc.support.shapes import Float

Activation = Literal["tanh", "silu"]
MOST_STEPS = 10_000


class CLEX(RoPE):
    """RoPE whose frequencies for a text of `factor` times the trained length solve a learned equation.

    d_head          channels of a head, even, from 4
    factor          t, from 1; 1 is RoPE
    trained_length  L, in positions; at_length(n) has the factor ⌈n/L⌉
    largest_factor  at_length goes no further; 16 in the authors' code
    width           of the hidden layer, in multiples of d_head
    activation      a: "tanh", or "silu"
    step            the longest step in t; 0.01 in the authors' code
    base            of the trained frequencies
    layout          which channels make a pair; models on the hub have "half"

    Parameters: up [d/2, width·d], U, and down [width·d, d/2], D, which starts at 0: a fresh one is NTK scaling by 2t - 1.
    One for all layers. Tables take 4·⌈(t-1)/step⌉ evaluations, in fp64. After training, RoPE with frequencies_now()
    gives the same at RoPE's cost.
    Raises ValueError for a factor below 1 or of more than 10 000 steps, an unknown activation and sizes that do not fit.
    """

    learned_tables = True
    exact_parameters = ("up", "down")

    @checked
    def __init__(
        self,
        d_head: int,
        *,
        factor: float = 2.0,
        trained_length: int = 2048,
        largest_factor: int = 16,
        width: int = 1,
        activation: Activation = "tanh",
        step: float = 0.1,
        base: float = 10000.0,
        layout: Layout = "half",
    ) -> None:
        checks.even(d_head=d_head)
        checks.whole(4, d_head=d_head)
        checks.whole(trained_length=trained_length, largest_factor=largest_factor, width=width)
        checks.positive(step=step, base=base)
        checks.one_of(get_args(Activation), activation=activation)
        checks.positive(factor=factor)
        if factor < 1:
            raise ValueError(f"factor: expected at least 1, the trained length itself, got {factor}")
        super().__init__(d_head, base=base, layout=layout)
        self._configure(
            d_head=d_head,
            factor=factor,
            trained_length=trained_length,
            largest_factor=largest_factor,
            width=width,
            activation=activation,
            step=step,
            base=base,
            layout=layout,
        )
        self.trained_length, self.largest_factor, self.base = trained_length, largest_factor, base
        self.activation, self.longest_step = activation, step
        self._stretch(factor)
        bound = (width * d_head) ** -0.5
        self.up = nn.Parameter(torch.empty(d_head // 2, width * d_head).uniform_(-bound, bound))
        self.down = nn.Parameter(torch.zeros(width * d_head, d_head // 2))

    def tables(self, at: Positions, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """cos and sin of the angle of every pair, [b, t, n] each."""
        check_coords(self, at)
        floating(dtype)
        on_device_of(self.up, at=at.coords)
        with full_precision(self.up):
            angle = at.coords.double()[..., None] * self._log_frequencies().exp()
            return angle.cos().to(dtype), angle.sin().to(dtype)

    def at_length(self, n: int) -> CLEX:
        """The one of a request of n tokens, with these very parameters: training one trains the other."""
        checks.whole(n=n)
        factor = float(min(-(-n // self.trained_length), self.largest_factor))
        if factor == self.factor:
            return self
        other = copy.copy(self)
        other._configure(**{**self.configuration, "factor": factor})
        other._stretch(factor)
        return other

    @torch.no_grad()
    def frequencies_now(self) -> Frequencies:
        """The frequencies as numbers, as the parameters are now: for RoPE(d_head, frequencies=…), which solves nothing."""
        values = tuple(self._log_frequencies().exp().tolist())
        return Frequencies(values, values_from=f"clex(factor={self.factor:g}, base={self.base:g})")

    def _stretch(self, factor: float) -> None:
        """Keeps what depends on the factor alone: the step, and ln(2t - 1) where each step begins, at its thirds and at the
        end. They are tuples, which a compiler takes for constants."""
        if (factor - 1) / self.longest_step > MOST_STEPS:
            raise ValueError(
                f"factor, step: expected at most {MOST_STEPS} steps, got factor={factor} in steps of {self.longest_step}; "
                "give a longer step"
            )
        steps = math.ceil((factor - 1) / self.longest_step)
        self.factor, self.step = factor, ((factor - 1) / max(steps, 1),)
        self.stretches = tuple(math.log(1 + 2 * (factor - 1) * third / max(3 * steps, 1)) for third in range(3 * steps + 1))

    def _log_frequencies(self) -> Float[Tensor, "n"]:
        wide, device = torch.float64, self.up.device
        up, down, step = self.up.to(wide), self.down.to(wide), constant(self.step, wide, device)
        known = constant(self.stretches, wide, device)[:, None] / (self.d_head - 2) + math.log(self.base) / self.d_head
        known = known * constant(tuple(-2.0 * n for n in range(self.d_head // 2)), wide, device)  # ln ν, [thirds, n]
        activation = torch.tanh if self.activation == "tanh" else F.silu

        def slope(third: int, u: Tensor) -> Tensor:
            return activation((u + 2 * known[third]) @ up) @ down

        u = torch.zeros_like(known[0])
        for at in range(0, len(self.stretches) - 1, 3):
            first = slope(at, u)
            second = slope(at + 1, u + step / 3 * first)
            third = slope(at + 2, u + step * (second - first / 3))
            fourth = slope(at + 3, u + step * (first - second + third))
            u = u + step / 8 * (first + 3 * (second + third) + fourth)
        return u + known[-1]
