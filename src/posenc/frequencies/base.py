"""`Frequencies`, and the functions that make them from a width and a base."""

from __future__ import annotations

import functools
import hashlib
import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, overload, runtime_checkable

from posenc.support.checked import check_fields, checked

Arithmetic = Literal["float64", "float32"]


@dataclass(frozen=True, repr=False)
class Frequencies(Sequence[float]):
    """One frequency per rotated pair, and two magnitudes. Frozen and hashable; a sequence of its values.

    values         radians per position, first pair first
    cos_sin_scale  multiplies cos and sin of queries and of keys, so the logits are multiplied by its square
    softmax_scale  multiplies 1/√d_head, once
    axes           the coordinate axis that each pair reads; empty if there is one coordinate
    base, width    the values are base^(-2i/width); None if they were made otherwise
    arithmetic     "float64": angles in fp64, rounded once. "float32": parity with libraries that multiply position and
                   frequency in fp32; the values are then the fp32 values of that library
    …_from         the origin of each number, in words

    Raises ValueError for no values, values that are not finite, and magnitudes that are not positive.
    """

    values: tuple[float, ...]
    cos_sin_scale: float = 1.0
    softmax_scale: float = 1.0
    axes: tuple[int, ...] = ()
    base: float | None = None
    width: int | None = None
    arithmetic: Arithmetic = "float64"
    values_from: str = "given"
    cos_sin_scale_from: str = "none asked for"
    softmax_scale_from: str = "none asked for"

    def __post_init__(self) -> None:
        check_fields(self)
        object.__setattr__(self, "values", tuple(map(float, self.values)))
        object.__setattr__(self, "axes", tuple(self.axes))
        if not self.values:
            raise ValueError("values: expected one finite number for each pair, got none")
        if self.axes and (len(self.axes) != len(self.values) or min(self.axes) < 0):
            raise ValueError(f"axes: expected an axis from 0 for each of {len(self.values)} pairs, got {self.axes}")

    @overload
    def __getitem__(self, index: int) -> float: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[float, ...]: ...
    def __getitem__(self, index: int | slice) -> float | tuple[float, ...]:
        return self.values[index]

    def __len__(self) -> int:
        return len(self.values)

    @checked
    def at_length(self, n: int) -> Frequencies:
        """Returns itself, so that fixed frequencies can be used where frequencies by length are expected."""
        return self

    @functools.cached_property
    def in_memory(self) -> array[float]:
        """The values one after the other, as kernels read them."""
        return array("d", self.values)

    @property
    def n_axes(self) -> int:
        """The number of coordinates of a token."""
        return max(self.axes) + 1 if self.axes else 1

    def __repr__(self) -> str:
        exact = " ".join(value.hex() for value in self.values) + repr(self.axes)
        parts = [f"{len(self)} pairs {self[0]:.4g} … {self[-1]:.4g}", self.values_from]
        parts += [f"{n}={getattr(self, n):.6g}" for n in ("cos_sin_scale", "softmax_scale") if getattr(self, n) != 1]
        parts += ["float32"] if self.arithmetic == "float32" else []
        return f"Frequencies({', '.join(parts)}, #{hashlib.sha256(exact.encode()).hexdigest()[:8]})"

    def __str__(self) -> str:
        return "\n".join(
            [
                f"frequencies    {len(self)} pairs, {self[0]:.6g} … {self[-1]:.6g} radians per position: "
                f"{self.values_from}",
                f"cos/sin scale  {self.cos_sin_scale:.7g}: {self.cos_sin_scale_from}",
                f"softmax scale  {self.softmax_scale:.7g}/√d_head: {self.softmax_scale_from}",
            ]
        )


@runtime_checkable
class ByLength(Protocol):
    """Frequencies that depend on the length of a request. Frozen; a request calls `at_length` once and keeps the result."""

    def at_length(self, n: int) -> Frequencies: ...


@checked
def rotary(d: int, base: float = 10000.0) -> Frequencies:
    """base^(-2i/d) for i = 0 … ⌈d/2⌉-1: one frequency per pair of channels, from 1 down to nearly 1/base.

    Vaswani et al. 2017, section 3.5; Su et al. 2021, section 3.2.2. Raises ValueError for d < 1 or base <= 0.
    """
    values = tuple(base ** (-2 * i / d) for i in range((d + 1) // 2))
    return Frequencies(values, base=base, width=d, values_from=f"rotary(d={d}, base={base:g})")


@checked
def to_the_end(d: int, base: float = 10000.0) -> tuple[float, ...]:
    """base^(-i/(n-1)) for i = 0 … n-1, n = ⌈d/2⌉: the spacing that reaches 1/base exactly (tensor2tensor, Whisper)."""
    n = (d + 1) // 2
    return tuple(base ** (-i / max(n - 1, 1)) for i in range(n))


@checked
def wavelengths(d_model: int, base: float = 10000.0) -> tuple[float, ...]:
    """2π·base^(2i/d), the number of positions per turn of each pair of channels. d = 512: 6.28 to 60 611."""
    return tuple(2 * math.pi / frequency for frequency in rotary(d_model, base))
