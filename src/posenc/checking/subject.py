"""The implementation under check: how it is called, what it is given, and how far its positions reach.

    rotate     f(x [b, h, t, d], positions [b, t]) -> [b, h, t, d]; f.key does it for keys, where there is one
    embed      f(x [b, t, d], positions [b, t]) -> [b, t, d]
    table      f(positions [b, t]) -> [b, t, d] or [t, d], or a tuple of such, such as (cos, sin), or pairs of numbers
    bias       f(q_positions [b, i], k_positions [b, j]) -> [b, h, i, j] or [h, i, j]
    attention  f(q [b, h, i, d], k [b, g, j, d], v [b, g, j, d], q_positions [b, i], k_positions [b, j]) -> [b, h, i, d]

A callable without the axis b is called with one row after another.

Legend: b batch, h query heads, g key heads, t tokens, i query, j key, d channels, w numbers per token.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import itertools
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from posenc.checking.errors import FewerChannels, NotExpressible, Unusable
from posenc.checking.kept import NOTHING, Kept

Seam = Literal["rotate", "embed", "table", "bias", "attention"]
WIDTHS = (64, 128, 32, 96, 80, 16, 8, 256, 512, 768, 1024)  # tried in this order where no width is given
FIRST = 4  # tokens of the very first call
FARTHEST = 2**18
LONGEST = 8192  # tokens of one call, where only a long call reaches far positions
TOKENWISE: tuple[Seam, ...] = ("rotate", "embed", "table")  # each token is encoded by itself
TRAITS = frozenset({"shift_invariant", "norm_preserving", "heads_alike", "causal", "averages_values"})
POOL = 61
HIDDEN = -1e4  # a bias at or below hides the key


@dataclass(frozen=True)
class Subject:
    """One implementation at one seam.

    function    the callable
    seam        which signature it has
    width       channels of a head (rotate, attention) or of a token (embed)
    n_heads     query heads that it is given
    n_kv_heads  key heads that it is given
    is_numpy    it takes and returns NumPy arrays
    traits      what it is said to have: some of TRAITS
    rounding    the relative distance of two neighbours in the dtype that it gives for float32 tokens, if that has 16 bits
    reach       it served every position tried up to this one; -1 before `measured`
    seed        of the tokens
    kept        its state that deep copies of it share
    first       what the very first call gave, `sample(FIRST, 0)`
    """

    function: Callable[..., Any]
    seam: Seam
    width: int
    n_heads: int = 2
    n_kv_heads: int = 2
    is_numpy: bool = False
    traits: frozenset[str] = TRAITS
    rounding: float = 0.0
    reach: int = -1
    seed: int = 0
    kept: Kept = field(default=NOTHING, repr=False)
    first: Tensor | None = field(default=None, repr=False)

    @property
    def module(self) -> nn.Module | None:
        """The torch module that the callable is, or that it carries as `module`."""
        module = self.function if isinstance(self.function, nn.Module) else getattr(self.function, "module", None)
        return module if isinstance(module, nn.Module) else None

    @property
    def documents(self) -> bool:
        """Whether the callable takes q_documents and k_documents, by name."""
        try:
            names = inspect.signature(self.function).parameters
        except (TypeError, ValueError):
            return False
        return "q_documents" in names and "k_documents" in names

    @property
    def key_side(self) -> Subject:
        """The subject that rotates keys: the callable's own `key`, where it has one."""
        key = getattr(self.function, "key", None)
        return replace(self, function=key) if callable(key) else self

    def fresh(self) -> Subject:
        """A copy that has seen no call, where the callable can be copied; a plain function copies to itself."""
        try:
            return replace(self, function=copy.deepcopy(self.function))
        except Exception:
            return self

    def __call__(self, *arguments: Tensor, **named: Tensor) -> Tensor:
        """The callable's result as one tensor. Raises TypeError for what is no tensor or array of real numbers."""
        if self.is_numpy:
            arguments = tuple(tensor.detach().numpy() for tensor in arguments)  # type: ignore[misc]
            named = {name: tensor.numpy() for name, tensor in named.items()}  # type: ignore[misc]
        result = self.function(*arguments, **named)
        if self.seam == "table" and isinstance(result, tuple | list):
            return torch.cat([_tensor(part) for part in result], -1)
        if self.seam == "table" and in_pairs(result, *arguments[0].shape):
            parts = torch.as_tensor(result)
            return (torch.view_as_real(parts) if parts.is_complex() else parts).flatten(-2)
        return _tensor(result)

    # What tokens it is given ----------------------------------------------------------------------------------------

    def draw(self, name: str, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        """Standard normal numbers; the same for the same name and shape."""
        generator = torch.Generator().manual_seed(self.seed + sum(map(ord, name)))
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)

    def tokens(self, batch: int, length: int) -> Tensor:
        """Tokens [b, t, w] of a seam where each token is encoded by itself. Longer and more rows begin with the same."""
        return self._tokens(numbers(batch, length))

    def _tokens(self, n: Tensor) -> Tensor:
        return self.pool("x", self.width * (self.n_heads if self.seam == "rotate" else 1))[n]

    def pool(self, name: str, *shape: int) -> Tensor:
        """POOL tokens, from which longer sequences repeat."""
        return self.draw(name, POOL, *shape)

    def rows(self, x: Tensor, positions: Tensor) -> Tensor:
        """The encoded tokens [b, t, w] of tokens x [b, t, w] at positions [b, t]."""
        if self.seam == "rotate":
            heads = x.unflatten(-1, (self.n_heads, self.width)).transpose(1, 2).contiguous()
            out = self(heads, positions)
            _check_shape(out, heads.shape)
            return out.detach().transpose(1, 2).flatten(2)
        if self.seam == "embed":
            out = self(x, positions)
            _check_shape(out, x.shape)
            return out.detach()
        out = self(positions).detach()
        if out.ndim == 2:
            out = _without_rows(out, positions).expand(len(positions), -1, -1)
        if out.ndim != 3 or out.shape[:2] != positions.shape:
            raise ValueError(f"expected the result [b, t, d] with b, t = {list(positions.shape)}, got {list(out.shape)}")
        return out

    def bias(self, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        """The bias [b, h, i, j] in float64; -inf where it hides the key. False of a mask of bools hides it, as in torch."""
        out = self(q_positions, k_positions)
        if out.dtype == torch.bool:
            out = torch.zeros(out.shape).masked_fill(~out, float("-inf"))
        size = (q_positions.shape[1], k_positions.shape[1])
        out = _without_rows(out, q_positions, k_positions)[None] if out.ndim == 3 else out
        if out.ndim != 4 or any(got not in (1, expected) for got, expected in zip(out.shape[2:], size, strict=True)):
            raise ValueError(f"expected the result [b, h, i, j] with i, j = {list(size)}, got {list(out.shape)}")
        out = out.detach().expand(q_positions.shape[0], -1, *size).double()
        return out.masked_fill(out <= HIDDEN, float("-inf"))

    def heads(self, batch: int, queries: int, keys: int) -> tuple[Tensor, Tensor, Tensor]:
        """q [b, h, i, d], k and v [b, g, j, d] for attention. What a token holds does not depend on how many there are."""
        return self._heads(numbers(batch, queries), numbers(batch, keys))

    def _heads(self, queries: Tensor, keys: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        def drawn(name: str, n_heads: int, n: Tensor) -> Tensor:
            return self.pool(name, n_heads, self.width)[n].transpose(1, 2).contiguous()

        return drawn("q", self.n_heads, queries), drawn("k", self.n_kv_heads, keys), drawn("v", self.n_kv_heads, keys)

    def read(self, n: Tensor, at: Tensor, keys: Tensor | None = None, at_keys: Tensor | None = None) -> Tensor:
        """What the tokens numbered `n` [b, t] give at positions `at` [b, t], over `keys` at `at_keys`, or over themselves.

        Encoded tokens [b, t, w], outputs [b, t, h, d], or rows of a bias [b, i, h, j] less the first finite entry of each.
        """
        keys, at_keys = (n, at) if keys is None or at_keys is None else (keys, at_keys)
        if self.seam == "bias":
            return relative_to_first(self.bias(at, at_keys)).transpose(1, 2)
        if self.seam == "attention":
            return self(*self._heads(n, keys), at, at_keys).transpose(1, 2)
        return self.rows(self._tokens(n), at)

    def sample(self, length: int, start: int) -> Tensor:
        """A result to compare between two surroundings: one row of `length` tokens from position `start`."""
        return self.read(numbers(1, length), arange(start, length))

    # Probing ---------------------------------------------------------------------------------------------------------

    def serves(self, start: int) -> bool:
        """Whether tokens at this position and the next give a finite result; all tokens up to there without an offset."""
        try:
            return self._finite(2, start)
        except NotImplementedError:
            most = LONGEST if self.seam in ("rotate", "embed", "table") else LONGEST // 8
            try:
                return start + 2 <= most and self._finite(start + 2, 0)
            except Exception:
                return False
        except Exception:
            return False

    def _finite(self, length: int, start: int) -> bool:
        return bool(torch.isfinite(self.sample(length, start).nan_to_num(neginf=0.0)).all())


def arange(start: int, length: int, batch: int = 1) -> Tensor:
    """Positions [b, t] that count up from `start`."""
    return torch.arange(start, start + length)[None].repeat(batch, 1)


def numbers(batch: int, length: int) -> Tensor:
    """Which token of the pool stands in row b at t [b, t]."""
    return (17 * torch.arange(batch)[:, None] + torch.arange(length)) % POOL


def relative_to_first(bias: Tensor) -> Tensor:
    """The bias without what a softmax does not see: each row less its first finite entry."""
    finite = torch.isfinite(bias)
    first = finite.to(torch.int8).argmax(-1, keepdim=True)
    offset = bias.gather(-1, first).masked_fill(~finite.any(-1, keepdim=True), 0.0)
    return bias - offset


def prepared(function: Callable[..., Any], seam: Seam, **sizes: Any) -> Subject:
    """The subject, after a plain call has worked: widths are tried where none is given, NumPy where torch fails.

    Raises Unusable with the first error where nothing works.
    """
    width = sizes.pop("width", None)
    widths = (width,) if width is not None else WIDTHS if seam in ("rotate", "embed", "attention") else (1,)
    first: Exception | None = None
    kept = Kept(function)
    for called, candidate, is_numpy in itertools.product((function, ByRows(function)), widths, (False, True)):
        subject = Subject(called, seam, candidate, is_numpy=is_numpy, kept=kept, **sizes)
        try:
            with warnings.catch_warnings(action="ignore"):  # of NumPy about tensors
                plain = subject.fresh().sample(FIRST, 0)
                rounding = _rounding(subject.fresh(), plain)
            return measured(replace(subject, first=plain.clone(), rounding=rounding))
        except Exception as error:
            first = first or error
    described = f"width {width}" if width is not None else "any usual width" if len(widths) > 1 else "4 positions"
    raise Unusable(
        f"{seam}: the callable fails on 4 tokens at positions 0 … 3 with {described}: {type(first).__name__}: {first}"
    ) from first


def _rounding(subject: Subject, plain: Tensor) -> float:
    dtype = subject(arange(0, FIRST), arange(0, FIRST)).dtype if subject.seam == "bias" else plain.dtype
    return float(torch.finfo(dtype).eps) if dtype in (torch.float16, torch.bfloat16) else 0.0


def measured(subject: Subject) -> Subject:
    """The subject with its reach: positions are doubled until one is refused."""
    probe = subject.fresh()
    reach, n = 3, 8
    while n <= FARTHEST and probe.serves(n - 2):
        reach, n = n - 1, 2 * n
    step = n // 4
    while n <= FARTHEST and step:  # between the last that is served and the first that is not
        if probe.serves(reach + step - 1):
            reach += step
        else:
            step //= 2
    return replace(subject, reach=reach)


class ByRows:
    """A callable without an axis for the rows of a batch, as one that has it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.module = function if isinstance(function, nn.Module) else getattr(function, "module", None)
        with contextlib.suppress(TypeError, ValueError):
            self.__signature__ = inspect.signature(function)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        rows = [
            self.function(*(argument[n] for argument in arguments), **{name: value[n] for name, value in named.items()})
            for n in range(len(arguments[0]))
        ]
        return tuple(map(_stacked, zip(*rows, strict=True))) if isinstance(rows[0], tuple | list) else _stacked(rows)


def _stacked(rows: Sequence[Any]) -> Any:
    return np.stack(rows) if isinstance(rows[0], np.ndarray) else torch.stack(list(rows))


def in_pairs(table: Any, batch: int, length: int) -> bool:
    """Whether a table [b, t, n] or [t, n] is of complex numbers, or of pairs of numbers along a last axis."""
    table = torch.from_numpy(table) if isinstance(table, np.ndarray) else table
    if not isinstance(table, Tensor):
        return False
    return table.is_complex() or (table.shape[-1:] == (2,) and table.shape[:-2] in ((batch, length), (length,)))


def _without_rows(out: Tensor, *positions: Tensor) -> Tensor:
    """A result without an axis for the rows of a batch. Raises NotExpressible for rows at positions of their own."""
    if any(not torch.equal(at, at[:1].expand_as(at)) for at in positions):
        raise NotExpressible("its result has no axis for rows at positions of their own")
    return out


def _tensor(result: Any) -> Tensor:
    tensor = torch.from_numpy(np.ascontiguousarray(result)) if isinstance(result, np.ndarray) else result
    if not isinstance(tensor, Tensor) or tensor.is_complex():
        raise TypeError(f"expected a tensor or an array of real numbers, got {type(result).__name__}")
    return tensor


def _check_shape(out: Tensor, expected: torch.Size) -> None:
    if out.shape != expected:
        fewer = out.shape[:-1] == expected[:-1] and 0 < out.shape[-1] < expected[-1]
        error = FewerChannels if fewer else ValueError
        raise error(f"expected the result {list(expected)}, got the shape {list(out.shape)}")
