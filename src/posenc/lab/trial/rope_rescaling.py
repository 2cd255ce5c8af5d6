"""RoPE's frequencies changed after training, the weights as they are, for texts s times as long as those trained on.

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
    """The same encoding with other frequencies; `trained` is how many positions it met. At factor 1 it is itself."""
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
    """The model with another rotation in all layers, and its own again afterwards."""
    own = model.encodings
    model.encodings = nn.ModuleList([rope])
    try:
        yield
    finally:
        model.encodings = own
