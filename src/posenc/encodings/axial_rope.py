"""Axial RoPE: half of the pairs turn with the row, half with the column.

    R(y) on the first half of the pairs, R(x) on the second, both with ω_i = base^(-2i/(d/2))

Fang et al. 2023, "EVA-02", section 2.1; Qwen2-VL's vision encoder; SAM 2. Transformers of diffusion have three axes, of
unequal shares: FLUX, HunyuanVideo and Wan in diffusers' models/transformers.
"""

from __future__ import annotations

from collections.abc import Sequence

from posenc import frequencies
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.support import checks
from posenc.support.checked import checked


@checked
def axial_rope(
    d_head: int, *, axes: int = 2, sizes: Sequence[int] | None = None, base: float = 10000.0, layout: Layout = "interleaved"
) -> RoPE:
    """RoPE with a spectrum for each axis, one after the other: that of `frequencies.axial`, or of `separate` for `sizes`.

    d_head  channels of a head, even; a multiple of 2·axes without sizes
    axes    coordinates of a token: 2 for images, 3 for videos; with sizes, as many as they are
    sizes   channels of each axis, even; (16, 56, 56) in FLUX and Qwen-Image, (44, 42, 42) in Wan, equal unless given
    base    of the frequencies
    layout  which channels make a pair

    Raises ValueError for a width that the axes cannot share, and sizes that do not add up to it.
    """
    if sizes is not None:
        checks.even(d_head=d_head)
        if sum(sizes) != d_head:
            raise ValueError(f"sizes: expected {d_head} channels in all, got {tuple(sizes)}, {sum(sizes)}")
        return RoPE(d_head, frequencies=frequencies.separate(sizes, base), layout=layout)
    if d_head % (2 * axes):
        raise ValueError(
            f"d_head: expected a multiple of 2·axes = {2 * axes}, got {d_head}; sizes= gives each axis channels of its own"
        )
    per_axis = frequencies.rotary(d_head // axes, base)
    return RoPE(d_head, frequencies=frequencies.axial(per_axis, tuple(range(axes))), layout=layout)
