"""Mistral, Mixtral, StarCoder2 and similar: RoPE, half pairs; all layers have the same window or none."""

from __future__ import annotations

from posenc.configs.assumed import scaled_without_width
from posenc.configs.families.llama import same_kind
from posenc.configs.family import decoder, family, head_width
from posenc.configs.keys import Keys
from posenc.configs.rotary import rope
from posenc.configs.schedule import FULL, SLIDING, sliding_where
from posenc.configs.spec import PositionSpec


@family("mistral", "doge", "mixtral", "starcoder2")
def mistral(keys: Keys) -> PositionSpec:
    """The same window in all layers, if there is one."""
    use = rope(keys, d_head=head_width(keys))
    if keys.family == "mixtral":
        scaled_without_width(keys, use)
    return decoder(keys, use, kinds=same_kind(keys, SLIDING if keys.whole("sliding_window", None) else FULL))


@family("ministral")
def ministral(keys: Keys) -> PositionSpec:
    window, use = keys.whole("sliding_window", None), rope(keys, d_head=head_width(keys))
    scaled_without_width(keys, use)
    return decoder(keys, use, kinds=sliding_where(keys, lambda n: window is not None))
