"""Frequencies of heads whose axes have spectra of their own, as the settings of a configuration name them."""

from __future__ import annotations

from collections.abc import Sequence

from posenc import frequencies
from posenc.frequencies import Arithmetic, Frequencies, of_axes, rotary, separate


def by_axis(
    width: int,
    base: float,
    *,
    arithmetic: Arithmetic,
    sizes: Sequence[int],
    ntk: Sequence[float] = (),
    linear: Sequence[float] = (),
) -> Frequencies:
    """`posenc.frequencies.separate`: sizes[a] channels for axis a, `width` in all; in fp64 for either `arithmetic`.

    ntk, linear   what axis a is stretched by, where not by 1
    """
    if sum(sizes) != width:
        raise ValueError(f"sizes: expected {width} channels in all, got {tuple(sizes)}")
    if not ntk and not linear:
        return separate(sizes, base)
    stretched = [rotary(size, base) for size in sizes]
    for scaled, factors in ((frequencies.ntk, ntk), (frequencies.linear, linear)):
        stretched = [f if by == 1 else scaled(f, by) for f, by in zip(stretched, factors or [1] * len(sizes), strict=True)]
    return of_axes(*stretched)
