"""Attention that sharpens with position: queries are multiplied by a function τ of their own position.

    FloorLogTemperature    1 + scale·ln(1 + ⌊(p + offset)/L⌋)   Llama 4 (offset 1), Ministral 3, Mistral 4 (0)
    PowerTemperature       (1 + (p + 1)/L)^exponent             Beam
    LogTemperature         1 + scale·ln max((p + 1)/L, 1)       Inkling, on the bias too: see TemperedBias
    LogLengthTemperature   max(1, ln(p + 1)/ln L)               log-n scaling, Su 2021; Qwen
    LearnedTemperature     scale_h·ln(p + 1) + bias_h                 Mistral-Large-4; SSMax where bias is 0

Softmax over more keys is flatter; p + 1 keys can be seen from position p. Compose with a rotation:
Stack(RoPE(...), FloorLogTemperature(...)). Which layers do it is the caller's choice: Llama 4, Beam and Inkling do it in
layers without rotation, or without a window, only.
Legend: b batch, h query heads, t tokens, d d_head.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from posenc.encoding import BiasFn, PositionalEncoding, Side
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import check_coords, check_range, check_tokens, floating, full_precision, into, tables_at, turns

if TYPE_CHECKING:
    from posenc.support.shapes import Float

MOST = 2**53  # positions are exact up to here


class Temperature(PositionalEncoding):
    """Multiplies queries by τ of their position. Say `of`; computed in fp64, applied in fp32, rounded once.

    Raises ValueError for negative positions.
    """

    traits = frozenset({"local"})

    @checked
    def softmax_scale(self, d_head: int) -> None:
        return None

    @abstractmethod
    def of(self, p: Float[Tensor, "b t"]) -> Float[Tensor, "b t"]:
        """τ at fp64 positions."""

    def tables(self, at: Positions, dtype: torch.dtype) -> tuple[Tensor, ...]:
        """τ at every position, [b, t]."""
        check_coords(self, at)
        floating(dtype)
        check_range(self, at, 0, MOST, "temperatures count the keys before a query")
        return (self.of(at.coords.double()).to(dtype),)

    def rotate(
        self, x: Float[Tensor, "b h t d"], at: Positions, side: Side, out: Tensor | None = None
    ) -> Float[Tensor, "b h t d"]:
        turns(side)
        if side != "query":
            return into(x, out)
        _check_dense(x)
        check_tokens(self, x, at, axis=2)
        with full_precision(x):
            (table,) = tables_at(self, at, x.dtype)
            return into((x.to(table.dtype) * table[:, None, :, None]).to(x.dtype), out)


def _check_positions(p: Tensor) -> None:
    """Raises ValueError for what is no dense tensor [b, t] of real numbers."""
    if (
        not isinstance(p, Tensor)
        or p.is_nested
        or p.layout is not torch.strided
        or p.ndim != 2
        or not p.is_floating_point()
    ):
        raise ValueError(f"p: expected a dense tensor [b, t] of real numbers, got {checks.shown(p)}")


def _check_dense(x: Tensor) -> None:
    if x.layout is not torch.strided:
        raise TypeError(f"x: expected a dense tensor, got {checks.shown(x)}")


class FloorLogTemperature(Temperature):
    """1 + scale·ln(1 + ⌊(p + offset)/trained_length⌋): a step at every multiple of `trained_length`.

    scale           0.1 in Llama 4 (attn_scale), llama_4_scaling_beta in Ministral 3 and Mistral 4
    trained_length  8192 in Llama 4 (floor_scale), original_max_position_embeddings in the others
    offset          1 counts the keys that can be seen, as Llama 4 does; 0 takes the position, as Ministral 3 and Mistral 4
                    do: one token later
    """

    def __init__(self, scale: float = 0.1, trained_length: int = 8192, offset: int = 1) -> None:
        super().__init__(scale=scale, trained_length=trained_length, offset=offset)
        checks.positive(scale=scale, trained_length=trained_length)
        if isinstance(offset, bool) or offset not in (0, 1):
            raise ValueError(f"FloorLogTemperature: offset: expected 0 (position) or 1 (number of keys), got {offset!r}")
        self.scale, self.trained_length, self.offset = scale, trained_length, offset

    def of(self, p: Float[Tensor, "b t"]) -> Float[Tensor, "b t"]:
        _check_positions(p)
        return 1 + self.scale * torch.log1p(torch.floor((p + self.offset) / self.trained_length))


class PowerTemperature(Temperature):
    """(1 + (p + 1)/trained_length)^exponent. Beam: 2048 and 0.1; its docstring says p, its code p + 1."""

    def __init__(self, exponent: float = 0.1, trained_length: int = 2048) -> None:
        super().__init__(exponent=exponent, trained_length=trained_length)
        checks.positive(exponent=exponent, trained_length=trained_length)
        checks.moderate(8, exponent=exponent)
        self.exponent, self.trained_length = exponent, trained_length

    def of(self, p: Float[Tensor, "b t"]) -> Float[Tensor, "b t"]:
        _check_positions(p)
        return torch.exp(self.exponent * torch.log1p((p + 1) / self.trained_length))


class LogTemperature(Temperature):
    """1 + scale·ln max((p + 1)/trained_length, 1): one up to `trained_length` keys, then rising.

    Inkling: log_scaling_alpha and log_scaling_n_floor. It multiplies the bias of that layer as well: TemperedBias.
    """

    def __init__(self, scale: float = 0.1, trained_length: int = 8192) -> None:
        super().__init__(scale=scale, trained_length=trained_length)
        checks.positive(scale=scale, trained_length=trained_length)
        self.scale, self.trained_length = scale, trained_length

    def of(self, p: Float[Tensor, "b t"]) -> Float[Tensor, "b t"]:
        _check_positions(p)
        return 1 + self.scale * torch.log(((p + 1) / self.trained_length).clamp(min=1))


class LogLengthTemperature(Temperature):
    """max(1, ln(p + 1)/ln trained_length): entropy kept level beyond the trained length.

    Su 2021, "Attention scaling from the invariance of entropy" (a post); use_logn_attn of the first Qwen.
    """

    def __init__(self, trained_length: int = 2048) -> None:
        super().__init__(trained_length=trained_length)
        checks.positive(trained_length=trained_length)
        if trained_length < 2:
            raise ValueError(
                "LogLengthTemperature: trained_length: divides by its logarithm, expected at least 2, "
                f"got {trained_length!r}"
            )
        self.trained_length = trained_length

    def of(self, p: Float[Tensor, "b t"]) -> Float[Tensor, "b t"]:
        _check_positions(p)
        return (torch.log(p + 1) / math.log(self.trained_length)).clamp(min=1)


class LearnedTemperature(PositionalEncoding):
    """scale_h·ln(p + 1) + bias_h, learned for each head; 1 everywhere when fresh: scale 0, bias 1.

    n_heads   query heads
    bias      False: none, Scalable-Softmax s_h·ln(n) (Nakanishi 2025, arXiv 2501.19399); fresh s is 1 then

    Mistral-Large-4 (softmax_scaling). Its fp32 logarithm is rounded to the model's dtype first; here it is not.
    """

    traits = frozenset({"local"})

    def __init__(self, n_heads: int, *, bias: bool = True) -> None:
        checks.whole(n_heads=n_heads)
        super().__init__(n_heads=n_heads, bias=bias)
        self.scale = nn.Parameter(torch.zeros(n_heads) if bias else torch.ones(n_heads))
        self.intercept = nn.Parameter(torch.ones(n_heads)) if bias else None

    @checked
    def softmax_scale(self, d_head: int) -> None:
        return None

    def tables(self, at: Positions, dtype: torch.dtype) -> tuple[Tensor, ...]:
        """ln(p + 1), [b, t]: of no parameters, so that copies and heads may share it."""
        check_coords(self, at)
        floating(dtype)
        check_range(self, at, 0, MOST, "temperatures count the keys before a query")
        return (torch.log(at.coords.double() + 1).to(dtype),)

    def rotate(
        self, x: Float[Tensor, "b h t d"], at: Positions, side: Side, out: Tensor | None = None
    ) -> Float[Tensor, "b h t d"]:
        turns(side)
        if side != "query":
            return into(x, out)
        _check_dense(x)
        check_tokens(self, x, at, axis=2)
        if x.shape[1] != len(self.scale):
            raise ValueError(
                f"x: LearnedTemperature: built for n_heads={len(self.scale)}, got queries of {x.shape[1]} heads"
            )
        with full_precision(x):
            (logarithm,) = tables_at(self, at, x.dtype)
            table = self.scale.to(logarithm.dtype)[:, None] * logarithm[:, None]  # [b, h, t]
            if self.intercept is not None:
                table = table + self.intercept.to(logarithm.dtype)[:, None]
            return into((x.to(table.dtype) * table[..., None]).to(x.dtype), out)

    @torch.no_grad()
    def heads(self, start: int, stop: int) -> LearnedTemperature:
        part = LearnedTemperature(stop - start, bias=self.intercept is not None).to(self.scale)
        for target, source in zip(part.parameters(), self.parameters(), strict=True):
            target.copy_(source[start:stop])
        return part


class TemperedBias(PositionalEncoding):
    """Another encoding's bias times the temperature at the query: both parts of the logit sharpen alike (Inkling).

        Stack(temperature, TemperedBias(bias, temperature))

    Not for a bias that reads the queries themselves: those are multiplied already.
    """

    def __init__(self, part: PositionalEncoding, temperature: Temperature) -> None:
        super().__init__()
        if part.seams != {"bias"}:
            raise ValueError(
                f"TemperedBias: part: expected an encoding that is a bias and nothing else, got {sorted(part.seams)}"
            )
        if not isinstance(temperature, Temperature):
            raise TypeError(f"TemperedBias: temperature: expected a Temperature, got {type(temperature).__name__}")
        self.part, self.temperature = part, temperature
        self.traits = part.traits - {"shift_invariant"}

    @property
    def identity(self) -> str:
        return f"TemperedBias({self.part.identity}, {self.temperature.identity})"

    def prepare(self, at: Positions, dtype: torch.dtype = torch.float32) -> Positions:
        return self.temperature.prepare(self.part.prepare(at, dtype), dtype)

    def read_hidden(self, x: Tensor, at: Positions, past: Positions | None = None) -> Positions:
        return self.part.read_hidden(x, at, past)

    def bias(self, q: Tensor, k: Tensor, at_q: Positions, at_k: Positions) -> BiasFn | None:
        term = self.part.bias(q, k, at_q, at_k)
        (table,) = tables_at(self.temperature, at_q, q.dtype)
        table = table.expand(q.shape[0], -1)
        return None if term is None else lambda b, h, i, j: (term(b, h, i, j) * table[b, i]).to(q.dtype)

    def at_layer(self, n: int) -> PositionalEncoding:
        return TemperedBias(self.part.at_layer(n), self.temperature)

    def at_length(self, n: int) -> PositionalEncoding:
        return TemperedBias(self.part.at_length(n), self.temperature)

    def heads(self, start: int, stop: int) -> PositionalEncoding:
        return TemperedBias(self.part.heads(start, stop), self.temperature)


@checked
def log_n(*, trained_length: int = 2048) -> LogLengthTemperature:
    """`LogLengthTemperature`.

    trained_length  the trained length L, in positions, from 2
    """
    return LogLengthTemperature(trained_length)


@checked
def llama4_temperature(*, scale: float = 0.1, trained_length: int = 8192) -> FloorLogTemperature:
    """`FloorLogTemperature` of the number of keys.

    scale           of the logarithm (attn_scale)
    trained_length  keys from one step to the next (floor_scale)
    """
    return FloorLogTemperature(scale, trained_length, offset=1)


@checked
def ministral_temperature(*, scale: float = 0.1, trained_length: int = 16384) -> FloorLogTemperature:
    """`FloorLogTemperature` of the position.

    scale           of the logarithm (llama_4_scaling_beta)
    trained_length  the trained length L (original_max_position_embeddings)
    """
    return FloorLogTemperature(scale, trained_length, offset=0)


@checked
def beam_temperature(*, exponent: float = 0.1, trained_length: int = 2048) -> PowerTemperature:
    """`PowerTemperature`.

    exponent        of the power
    trained_length  keys after which the number under the power is 2
    """
    return PowerTemperature(exponent, trained_length)


@checked
def inkling_temperature(*, scale: float = 0.1, trained_length: int = 8192) -> LogTemperature:
    """`LogTemperature`; `encodings.temperature.TemperedBias` multiplies a bias with it too.

    scale           of the logarithm
    trained_length  n: keys up to which nothing changes
    """
    return LogTemperature(scale, trained_length)


@checked
def ssmax(n_heads: int) -> LearnedTemperature:
    """`LearnedTemperature` without a constant.

    n_heads  query heads, each with a factor of its own
    """
    return LearnedTemperature(n_heads, bias=False)


@checked
def mistral_large4_temperature(n_heads: int) -> LearnedTemperature:
    """`LearnedTemperature` with a constant.

    n_heads  query heads, each with numbers of its own
    """
    return LearnedTemperature(n_heads)
