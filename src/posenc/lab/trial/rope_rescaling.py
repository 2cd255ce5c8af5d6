"""Changes RoPE's frequencies after training, with unchanged weights, for texts s times as long as in training.

interpolation   ω / s                                     Chen et al. 2023, section 3.2
ntk             base · s^(d/(d-2)) instead of base        Peng et al. 2023, section 3.1
self_extend     unchanged up to half the trained length, groups of 2s positions beyond    Jin et al. 2024, section 3
ntk_by_parts    fast pairs ω, slow pairs ω / s, a ramp between                     the same, section 3.2
yarn            ntk_by_parts with logits · (0.1 ln s + 1)²                         the same, section 3.3
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from torch import nn

from posenc import frequencies
from posenc.encodings.rope import RoPE
from posenc.encodings.self_extend import SelfExtend
from posenc.frequencies import Frequencies
from posenc.lab.trial.model import Transformer


def changed(rope: RoPE, change: str, factor: float, trained: int) -> RoPE:
    """The encoding with other frequencies; `trained` is the trained length. At factor 1 nothing changes.

    Self-Extend reaches (trained - w)·G + w positions: all of factor · trained, with w = trained / 2 and G = 2 · factor.
    """
    change_of: dict[str, Callable[[Frequencies], Frequencies]] = {
        "interpolation": lambda f: frequencies.linear(f, factor),
        "ntk": lambda f: frequencies.ntk(f, factor),
        "ntk_by_parts": lambda f: frequencies.yarn(f, factor, trained, attention_factor=1.0),
        "yarn": lambda f: frequencies.yarn(f, factor, trained),
    }
    if factor == 1:
        return rope
    if change == "self_extend":
        group, window = math.ceil(2 * factor), max(1, trained // 2)
        return SelfExtend(rope.d_head, group=group, window=window, layout=rope.layout, frequencies=rope.frequencies)
    return RoPE(rope.d_head, layout=rope.layout, frequencies=change_of[change](rope.frequencies))


@contextmanager
def wearing(model: Transformer, rope: RoPE) -> Iterator[None]:
    """Replaces the rotation in all layers of the model, and restores it afterwards.

    Self-Extend is computed by the backend `sdpa`, as in every stored result. The faster `regions` rounds differently.
    """
    previous, backends = model.encodings, [layer.impl for layer in model.layers]
    model.encodings = nn.ModuleList([rope])
    if isinstance(rope, SelfExtend):
        _compute_with(model, ["sdpa"] * len(backends))
    try:
        yield
    finally:
        model.encodings = previous
        _compute_with(model, backends)


def _compute_with(model: Transformer, backends: Sequence[Any]) -> None:
    for layer, backend in zip(model.layers, backends, strict=True):
        layer.impl = backend
