"""Which channels make a pair: a model's own layout, and that of an encoding that takes the place of its rotation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from posenc.combined import rotary_layouts, warn_of_another_layout
from posenc.configs import ConfigError, spec_of
from posenc.encoding import PositionalEncoding
from posenc.transformers.decoder import Decoder, layer_specs


def warn_of_others(found: Decoder, of_layers: Mapping[int, PositionalEncoding]) -> None:
    """Warns of the first rotation that pairs other channels than the model's own: its weights were trained with those.

    What the configuration does not say is not compared.
    """
    turning = {n: one for n, one in of_layers.items() if n in found.rotated and rotary_layouts(one)}
    if not turning:
        return
    config: Any = found.module.config
    try:
        layers = layer_specs(spec_of(config.to_dict()), found.attention)
        own = {
            n: rotary_layouts(use.build()) for n in turning.keys() & layers.keys() for use in layers[n].uses if use.rotation
        }
    except ConfigError:
        return
    for n, one in turning.items():
        if warn_of_another_layout(one, own.get(n, ()), f"layer {n}"):
            return
