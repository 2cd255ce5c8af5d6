"""DyPE: a diffusion model's positions are stretched while an image begins, and less and less as its details come.

    ntk     base' = base·s^(2t²·d/(d-2))                     t goes from 1, pure noise, to 0, the image
    yarn    YaRN's ramps, moved to pairs that turn t²·β times, so that all pairs are RoPE's again at t = 0

Issachar et al. 2025, "DyPE: Dynamic Position Extrapolation for Ultra High Resolution Diffusion", section 4, with the
numbers of the authors' code. The authors state that a patent is pending.
"""

from __future__ import annotations

from typing import Literal

from posenc import frequencies
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.support import checks
from posenc.support.checked import checked


@checked
def dype(
    d_head: int,
    *,
    factor: float = 4.0,
    time: float = 1.0,
    method: Literal["yarn", "ntk"] = "yarn",
    trained_length: int = 64,
    base: float = 10000.0,
    layout: Layout = "interleaved",
) -> RoPE:
    """RoPE of one axis of an image with the frequencies of `frequencies.dype`; make another one at every step.

    d_head          channels of a head, even, from 4
    factor          s: the size wanted over the trained one, along this axis
    time            t of the diffusion step: 1 is pure noise, 0 the image
    method          "yarn", which is best in the paper, or "ntk"
    trained_length  patches along the axis in training: 64 of FLUX, whose images have 1024 pixels
    base            of the trained frequencies
    layout          which channels make a pair

    Raises ValueError for a time outside 0 … 1, a factor below 1 and sizes that do not fit.
    """
    checks.even(d_head=d_head)
    checks.whole(4, d_head=d_head)
    trained = frequencies.rotary(d_head, base)
    return RoPE(d_head, frequencies=frequencies.dype(trained, factor, time, trained_length, method=method), layout=layout)
