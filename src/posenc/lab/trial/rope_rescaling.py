"""Changes RoPE's frequencies after training, with unchanged weights, for texts s times as long as in training.

interpolation   ω / s                                     Chen et al. 2023, section 3.2
ntk             base · s^(d/(d-2)) instead of base        Peng et al. 2023, section 3.1
yarn            fast pairs ω, slow pairs ω / s, a ramp between; logits · (0.1 ln s + 1)²      the same, section 3.3
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from torch import nn

from posenc import frequencies
from posenc.encodings.rope import RoPE
from posenc.frequencies import Frequencies
from posenc.lab.trial.model import Transformer


def changed(rope: RoPE, change: str, factor: float, trained: int) -> RoPE:
    """The encoding with other frequencies; `trained` is the trained length. At factor 1 nothing changes."""
    change_of: dict[str, Callable[[Frequencies], Frequencies]] = {
        "interpolation": lambda f: frequencies.linear(f, factor),
        "ntk": lambda f: frequencies.ntk(f, factor),
        "yarn": lambda f: frequencies.yarn(f, factor, trained),
    }
    if factor == 1:
        return rope
    return RoPE(rope.d_head, layout=rope.layout, frequencies=change_of[change](rope.frequencies))


@contextmanager
def wearing(model: Transformer, rope: RoPE) -> Iterator[None]:
    """Replaces the rotation in all layers of the model, and restores it afterwards."""
    own = model.encodings
    model.encodings = nn.ModuleList([rope])
    try:
        yield
    finally:
        model.encodings = own
