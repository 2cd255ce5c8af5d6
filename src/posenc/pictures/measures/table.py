"""The sinusoidal table: its shift matrix, the distances between rows, and rows that rounding makes equal.

Legend: d d_model, n = d/2 pairs, t positions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from posenc import frequencies
from posenc.encodings.sinusoidal import Sinusoidal, sinusoidal_table
from posenc.positions import Positions
from posenc.support.checked import checked
from posenc.support.tensors import with_values

if TYPE_CHECKING:
    from posenc.support.shapes import Float, Num


@checked
def shift_matrix(k: float, d_model: int, base: float = 10000.0) -> Float[Tensor, "d d"]:
    """M_k with PE(p + k) = M_k PE(p) for every p, acting on columns; k is any real number.

    Vaswani et al. 2017, section 3.5.

        | sin(p+k)ω |   |  cos kω   sin kω |   | sin pω |
        | cos(p+k)ω | = | -sin kω   cos kω | · | cos pω |        one such block for each pair

    Rows instead of columns take the transpose, PE·M_kᵀ. The matrix is exact to one rounding of kω wherever the row stands;
    fp64 rows themselves carry the rounding of pω, up to 1e-10 at position 1 000 000.
    Raises ValueError for an odd width: the cosine that it drops is needed to move the sine beside it.
    """
    _check_pairs(d_model, "no matrix can move the last sine")
    angle = k * _omega(d_model, base)
    matrix = torch.zeros(d_model, d_model, dtype=torch.float64)
    matrix.diagonal()[0::2] = matrix.diagonal()[1::2] = angle.cos()
    matrix.diagonal(1)[0::2] = angle.sin()
    matrix.diagonal(-1)[0::2] = -angle.sin()
    return matrix


@checked
def distances(lags: Num[Tensor, "k"], d_model: int, base: float = 10000.0) -> Float[Tensor, "k"]:
    """‖PE(p+k) - PE(p)‖ for every lag k, the same at every p.

        ‖PE(p+k) - PE(p)‖² = Σ_i (2 - 2 cos kω_i) = Σ_i 4 sin²(kω_i/2)

    Each pair of channels is a point on a circle that moves by the angle kω_i wherever it stood. The second form keeps its
    digits where the cosine is nearly 1. Raises ValueError for an odd width.
    """
    _check_pairs(d_model, "the distance of two rows depends on more than their lag")
    with_values(lags=lags)
    squared = torch.zeros(len(lags), dtype=torch.float64)
    for omega in _omega(d_model, base):  # pair by pair: no [lags, pairs] array
        squared += 4 * (lags.double() * (omega / 2)).sin().square()
    return squared.sqrt()


class Closest(NamedTuple):
    """The two rows of a table that lie closest: how far apart, in the plane and in positions."""

    distance: float
    lag: int


@checked
def uniqueness(d_model: int, length: int = 4096, base: float = 10000.0) -> Closest:
    """The smallest distance between any two of the rows 0 … length-1, and the lag at which it occurs.

    The distance depends on the lag alone (see `distances`), so length-1 numbers cover all length²/2 pairs of rows.
    d = 2: 6.03e-5 at lag 710, since 710/2π is nearly 113.
    """
    if length < 2:
        raise ValueError(f"length: expected at least two rows, got {length}")
    apart = distances(torch.arange(1, length), d_model, base)
    nearest = int(apart.argmin())
    return Closest(float(apart[nearest]), nearest + 1)


@checked
def neighbour_distance(d_model: int, base: float = 10000.0) -> float:
    """‖PE(p+1) - PE(p)‖ = √Σ(2 - 2 cos ω_i), the same at every p: 0.964 for d = 8, 3.714 for d = 512."""
    return float(distances(torch.ones(1), d_model, base))


@checked
def distinct_rows_of_rounded_table(d_model: int, length: int, dtype: torch.dtype, base: float = 10000.0) -> int:
    """How many different rows are left of `length` when the exact table is rounded once to `dtype`.

    d = 2 in bfloat16: 737 of 1024, so 287 repeats. From d = 4 on none repeats up to 16 384.
    """
    return _distinct(sinusoidal_table(length, d_model, base, dtype=dtype))


@checked
def distinct_rows_of_rounded_positions(d_model: int, length: int, dtype: torch.dtype, base: float = 10000.0) -> int:
    """The same when the positions are cast to `dtype` first and the sines are exact after that.

    bfloat16 has 8 significant bits: 257 becomes 256, and 769 of 4096 rows are left whatever the width; float16 collides
    from 2049 on.
    """
    cast = torch.arange(length).to(dtype).double()
    encoding = Sinusoidal(d_model, base=base)
    return _distinct(encoding.tables(Positions.at(cast[None]), torch.float64)[0][0])


@checked
def unfinished_pairs(d: int, length: int, base: float = 10000.0) -> int:
    """Pairs with a wavelength above `length`, which training does not see turn once. d = 128, length 4096: 18 of 64."""
    return sum(wavelength > length for wavelength in frequencies.wavelengths(d, base))


def _omega(d: int, base: float) -> Float[Tensor, "n"]:
    return torch.tensor(frequencies.rotary(d, base), dtype=torch.float64)


def _distinct(table: Float[Tensor, "t d"]) -> int:
    return len(torch.unique(table, dim=0))


def _check_pairs(d: int, why: str) -> None:
    if d % 2:
        raise ValueError(f"d_model: expected an even width, got {d}; an odd one drops its last cosine and {why}")
