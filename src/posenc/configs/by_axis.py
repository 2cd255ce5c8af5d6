"""Frequencies of heads whose axes have spectra of their own, as the settings of a configuration name them."""

from __future__ import annotations

from collections.abc import Sequence

from posenc.frequencies import Arithmetic, Frequencies, separate


def by_axis(width: int, base: float, *, arithmetic: Arithmetic, sizes: Sequence[int]) -> Frequencies:
    """`posenc.frequencies.separate`: sizes[a] channels for axis a, `width` in all; in fp64 for either `arithmetic`."""
    if sum(sizes) != width:
        raise ValueError(f"sizes: expected {width} channels in all, got {tuple(sizes)}")
    return separate(sizes, base)
