"""RoPE over the coordinates of an atom and the number of its residue: ESMFold 2.

    pairs       x … x y … y z … z u … u 0 … 0      n spatial pairs per axis, then those of the residue number u
    frequency   a^(-i/n) per axis, b^(-i/m) for the m pairs of u; the remaining pairs are not rotated

Coordinates are those of a reference conformer, in ångström. As in transformers: models/esmfold2.
"""

from __future__ import annotations

from posenc import frequencies
from posenc.encodings.rope import RoPE
from posenc.frequencies import Frequencies


def of_atoms(d_head: int, *, spatial: tuple[float, int], residue: tuple[float, int]) -> RoPE:
    """RoPE over (x, y, z, residue); `spatial` and `residue` are (base, number of pairs). ValueError if they do not fit."""
    (spatial_base, per_axis), (residue_base, count) = spatial, residue
    still = d_head // 2 - 3 * per_axis - count
    if d_head % 2 or still < 0:
        raise ValueError(
            f"d_head: {d_head} channels are too few for {3 * per_axis + count} pairs, {per_axis} for "
            f"each spatial axis and {count} for the residue"
        )
    of_space = frequencies.rotary(2 * per_axis, spatial_base).values
    of_residue = frequencies.rotary(2 * count, residue_base).values
    values = (*of_space * 3, *of_residue, *(0.0,) * still)
    axes = (*(axis for axis in range(3) for _ in range(per_axis)), *(3,) * (count + still))
    origin = f"{per_axis} pairs of base {spatial_base:g} for x, y and z, {count} of base {residue_base:g} for the residue"
    return RoPE(d_head, frequencies=Frequencies(values, axes=axes, values_from=origin), layout="half")
