"""Which channels make a pair: a model's own layout, and that of an encoding that takes the place of its rotation."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from posenc.combined import Stack
from posenc.configs import ConfigError, spec_of
from posenc.encoding import PositionalEncoding
from posenc.transformers.decoder import Decoder, layer_specs


def warn_of_others(found: Decoder, of_layers: Mapping[int, PositionalEncoding]) -> None:
    """Warns of the first rotation that pairs other channels than the model's own: its weights were trained with those.

    The other layout moves every score, and nothing else shows it. What the configuration does not say is not compared.
    """
    turning = {n: one for n, one in of_layers.items() if n in found.rotated and _layouts(one)}
    if not turning:
        return
    config: Any = found.module.config
    try:
        layers = layer_specs(spec_of(config.to_dict()), found.attention)
        own = {n: _layouts(use.build()) for n in turning.keys() & layers.keys() for use in layers[n].uses if use.rotation}
    except ConfigError:
        return
    for n, one in turning.items():
        (given, *_), kept = _layouts(one), own.get(n, ())
        if len(kept) == 1 and given != kept[0]:
            warnings.warn(
                f"encoding: {type(one).__name__} has layout={given!r}, and the weights of layer {n} were trained with "
                f"{kept[0]!r}; create it with layout={kept[0]!r}, unless the model is trained on",
                stacklevel=3,
            )
            return


def _layouts(encoding: PositionalEncoding) -> tuple[str, ...]:
    """The layouts of its rotations of queries and keys, each once."""
    parts = encoding if isinstance(encoding, Stack) else [encoding]
    found = (getattr(part, "layout", None) for part in parts if "rotate" in part.seams)
    return tuple(dict.fromkeys(one for one in found if isinstance(one, str)))
