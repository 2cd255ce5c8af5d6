"""The coordinate that each pair reads, for tokens with several: functions from frequencies to frequencies with axes.

Pairs in order, ω as given, letters for the axis that is read (here t, h, w are axes 0, 1, 2):

    axial                  h0 h1 h2 w0 w1 w2       the same ω for each axis, one after the other
    axial, alternating     h0 w0 h1 w1 h2 w2       the same ω for each axis, in turn
    strided                h0 h2 h4 w1 w3 w5       one spectrum: every second ω for each axis
    sections               t0 t1 h2 h3 w4 w5       one spectrum: contiguous bands
    cycling                h0 w1 h2 w3 t4 t5       one spectrum: axes in turn, then one axis for the rest
    interleaved_sections   t0 h1 w2 t3 h4 w5       one spectrum: axes in turn until their sections are full
    separate, of_axes      t0 h0 h1 h2 w0 w1       a spectrum for each axis, with its own number of pairs

The caller gives the coordinates: Positions.grid(h, w) is (y, x); a grid that starts at 1 is Positions.grid(h, w).shift(1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from posenc.frequencies.base import Frequencies, rotary
from posenc.support import checks
from posenc.support.checked import checked


@checked
def axial(f: Frequencies, order: Sequence[int] = (0, 1), *, alternating: bool = False) -> Frequencies:
    """Repeats f for each axis of `order`, in blocks; `alternating`: repeats each ω for all axes in turn.

    order (0, 1): f is rotary(d/2, base) and the head holds height, then width: Qwen-VL's and most vision towers, SAM 2,
    EVA. (1, 0): width before height, Step-3.7, Inkling 2, Llama 4 (whose positions start at 1); with `alternating`,
    Kimi-K2.5. (0, 1, 2): MiniMax-M3; the published formula of V-JEPA 2. DINOv3: `axial(in_turns(rotary(d/2, 100)))`.
    """
    _check(f, order)
    if alternating:
        values, axes = [w for w in f for _ in order], list(order) * len(f)
    else:
        values, axes = list(f) * len(order), [axis for axis in order for _ in f]
    return _with(f, values, axes, f"axial(order={tuple(order)}{', alternating' if alternating else ''})")


@checked
def separate(sizes: Sequence[int], base: float = 10000.0) -> Frequencies:
    """rotary(size, base) for each axis, side by side: every axis has a spectrum of its own, with its own number of pairs.

    `sizes` are channels. FLUX and HunyuanVideo (16, 56, 56), with base 10 000 and 256; Wan (44, 42, 42) of 128 channels.
    Raises ValueError for a size that is not even.
    """
    if not sizes:
        raise ValueError("sizes: expected the channels of at least one axis, got none")
    for size in sizes:
        checks.even(sizes=size)
    spectra_joined = of_axes(*(rotary(size, base) for size in sizes))
    return replace(spectra_joined, values_from=f"separate(sizes={tuple(sizes)}, base={base:g})")


@checked
def of_axes(*spectra: Frequencies) -> Frequencies:
    """The pairs of spectra[a] read axis a, one spectrum after the other: scalings of one axis, NTK or DyPE by axis.

    FLUX at twice the size: of_axes(rotary(16), ntk(rotary(56), 2.0), ntk(rotary(56), 2.0)), reference images as trained.
    Raises ValueError for no spectra, those that have axes already, and magnitudes or arithmetics that differ.
    """
    if not spectra:
        raise ValueError("spectra: expected the frequencies of at least one axis, got none")
    for f in spectra:
        _check(f)
    kinds = {(f.cos_sin_scale, f.softmax_scale, f.arithmetic) for f in spectra}
    if len(kinds) > 1:
        raise ValueError(
            "spectra: expected one cos_sin_scale, softmax_scale and arithmetic for all axes, got "
            f"{', '.join(map(str, sorted(kinds)))}; dataclasses.replace(f, cos_sin_scale=1.0) takes a magnitude away"
        )
    axes = tuple(axis for axis, f in enumerate(spectra) for _ in f)
    origin = " | ".join(f.values_from for f in spectra)
    return replace(
        spectra[0], values=tuple(w for f in spectra for w in f), axes=axes, base=None, width=None, values_from=origin
    )


@checked
def in_turns(f: Frequencies) -> Frequencies:
    """2π·ω, for frequencies given in turns per unit of the coordinate instead of radians.

    DINOv3, whose coordinates are patch centres in [-1, 1] and whose angles are 2π·coordinate·100^(-4j/d).
    """
    return replace(f, values=tuple(2 * math.pi * w for w in f), base=None, values_from=f"2π · {f.values_from}")


@checked
def strided(f: Frequencies, order: Sequence[int] = (0, 1)) -> Frequencies:
    """Axis order[k] gets ω_k, ω_(k+n), ω_(k+2n), … in one block (Pixtral)."""
    _check(f, order)
    if len(f) % len(order):
        raise ValueError(f"order: {len(f)} pairs cannot be dealt out to {len(order)} axes")
    dealt = [f[k :: len(order)] for k in range(len(order))]
    values = [w for block in dealt for w in block]
    axes = [axis for axis, block in zip(order, dealt, strict=True) for _ in block]
    return _with(f, values, axes, f"strided(order={tuple(order)})")


@checked
def sections(f: Frequencies, sizes: Sequence[int]) -> Frequencies:
    """The first sizes[0] pairs read axis 0, the next sizes[1] axis 1, …: contiguous bands of one spectrum.

    M-RoPE, Wang et al. 2024, Qwen2-VL, section 2.1, [16, 24, 24] for time, height, width; GLM-4V [8, 12, 12].
    """
    _check(f)
    _check_sizes(f, sizes)
    axes = [axis for axis, size in enumerate(sizes) for _ in range(size)]
    return _with(f, list(f), axes, f"sections(sizes={tuple(sizes)})")


@checked
def interleaved_sections(f: Frequencies, sizes: Sequence[int]) -> Frequencies:
    """Axis a > 0 reads pairs a, a+n, a+2n, … sizes[a] of them, n the number of axes; axis 0 reads all others.

    Every axis has fast and slow pairs; the slowest pairs read axis 0. Qwen3-VL [24, 20, 20], Qwen3.5 [11, 11, 10].
    Raises ValueError where a section does not fit.
    """
    _check(f)
    _check_sizes(f, sizes)
    axes = [0] * len(f)
    for axis, size in list(enumerate(sizes))[1:]:
        last = axis + (size - 1) * len(sizes)
        if last >= len(f):
            raise ValueError(f"sizes: section {axis} of {size} needs pair {last}, there are {len(f)}")
        for pair in range(axis, last + 1, len(sizes)):
            axes[pair] = axis
    return _with(f, list(f), axes, f"interleaved_sections(sizes={tuple(sizes)})")


@checked
def cycling(f: Frequencies, order: Sequence[int] = (0, 1), *, n: int | None = None, rest: int = 0) -> Frequencies:
    """The first n pairs (all, without n) read the axes of `order` in turn; the others read axis `rest`.

    NeoMME: (0, 1). Ernie-4.5-VL: (1, 2) for 44 pairs, time for the 20 slowest.
    """
    _check(f, order)
    n = len(f) if n is None else n
    if n > len(f):
        raise ValueError(f"n: expected up to {len(f)} pairs, got {n}")
    axes = [order[pair % len(order)] if pair < n else rest for pair in range(len(f))]
    return _with(f, list(f), axes, f"cycling(order={tuple(order)}, n={n}, rest={rest})")


def _check(f: Frequencies, order: Sequence[int] = (0,)) -> None:
    if f.axes:
        raise ValueError(f"f: has axes already, {f.values_from}")
    if not order or len(set(order)) != len(order) or min(order) < 0:
        raise ValueError(f"order: expected different axes from 0, such as (0, 1), got {tuple(order)}")


def _check_sizes(f: Frequencies, sizes: Sequence[int]) -> None:
    if not sizes or min(sizes) < 1 or sum(sizes) != len(f):
        raise ValueError(f"sizes: expected whole numbers from 1 that sum to {len(f)} pairs, got {tuple(sizes)}")


def _with(f: Frequencies, values: Sequence[float], axes: Sequence[int], formula: str) -> Frequencies:
    return replace(f, values=tuple(values), axes=tuple(axes), values_from=f"{f.values_from}, {formula}")
