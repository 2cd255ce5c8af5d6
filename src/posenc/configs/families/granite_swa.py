"""Granite with sliding windows: each layer has its own base; 0 means no positions."""

from __future__ import annotations

from dataclasses import replace

from posenc.configs.family import decoder, family, head_width
from posenc.configs.keys import Keys
from posenc.configs.rotary import rope
from posenc.configs.schedule import sliding_where
from posenc.configs.spec import PositionSpec, Use


@family("granite_swa", "granitemoe_swa")
def granite_swa(keys: Keys) -> PositionSpec:
    """Layers 0, 4, 8, … are full; layer_rope_theta gives each layer its base, 0 means no positions."""
    kinds = sliding_where(keys, lambda n: n % 4 != 0)
    use = rope(keys, d_head=head_width(keys))
    bases = keys.numbers("layer_rope_theta", None, length=len(kinds))
    spec = decoder(keys, use, kinds=kinds)
    if bases is None:
        return spec
    uses = [_at_base(use, float(base)) for base in bases]
    return replace(
        spec, layers=tuple(replace(layer, uses=(use,) if use else ()) for layer, use in zip(spec.layers, uses, strict=True))
    )


def _at_base(use: Use | None, base: float) -> Use | None:
    if use is None or not base:
        return None
    settings = dict(use.arguments)
    arguments = settings | {"frequencies": replace(settings["frequencies"], base=base)}
    return replace(use, arguments=tuple(arguments.items())).with_said_by({"base": "layer_rope_theta"})
