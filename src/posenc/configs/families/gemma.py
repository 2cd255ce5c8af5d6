"""Gemma and Gemma 2: RoPE, half pairs; Gemma 2 alternates sliding and full layers."""

from __future__ import annotations

from posenc.configs.families.llama import same_kind
from posenc.configs.family import decoder, family, head_width
from posenc.configs.keys import Keys
from posenc.configs.rotary import rope
from posenc.configs.say import say
from posenc.configs.schedule import sliding_where
from posenc.configs.spec import PositionSpec


@family("gemma")
def gemma(keys: Keys) -> PositionSpec:
    """use_bidirectional_attention changes a flag of the attention modules only: the mask stays causal."""
    if keys.flag("use_bidirectional_attention", False):
        keys.warning(
            "use_bidirectional_attention", say("has no effect on the mask: attention stays causal if masks are given")
        )
    return decoder(keys, rope(keys, d_head=head_width(keys)), kinds=same_kind(keys))


@family("gemma2", "vaultgemma")
def gemma2(keys: Keys) -> PositionSpec:
    """Every second layer is full; the first slides."""
    if "use_bidirectional_attention" in keys.facts["defaults"] and keys.flag("use_bidirectional_attention", False):
        keys.warning(
            "use_bidirectional_attention", say("has no effect on the mask: attention stays causal if masks are given")
        )
    return decoder(keys, rope(keys, d_head=head_width(keys)), kinds=sliding_where(keys, lambda n: n % 2 == 0))
