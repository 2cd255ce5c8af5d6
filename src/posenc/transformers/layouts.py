"""Which channels make a pair: a model's own layout, and that of an encoding that takes the place of its rotation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from posenc.combined import check_layout, rotary_layouts
from posenc.configs import ConfigError, spec_of
from posenc.configs.spec import Use
from posenc.encoding import PositionalEncoding
from posenc.transformers.decoder import Decoder, layer_specs


def check_layouts(stack: Decoder, of_layers: Mapping[int, PositionalEncoding]) -> None:
    """Raises ValueError for a rotation that pairs other channels than the model's own, with which its weights were trained.

    What the configuration does not say is not compared.
    """
    turning = {n: rotation for n, rotation in of_layers.items() if n in stack.rotated and rotary_layouts(rotation)}
    if not turning:
        return
    config: Any = stack.module.config
    try:
        layers = layer_specs(spec_of(config.to_dict()), stack.attention)
        layouts = {n: _handed_over(use) for n in turning.keys() & layers.keys() for use in layers[n].uses if use.rotation}
    except ConfigError:
        return
    for n, rotation in turning.items():
        check_layout(rotation, layouts.get(n, ()), f"layer {n}")


def _handed_over(use: Use) -> tuple[str, ...]:
    """The layout in which attention receives queries and keys: DeepSeek-V3 first moves its interleaved pairs to halves."""
    returned = dict(use.arguments).get("returns")
    return (returned,) if returned else rotary_layouts(use.build())
