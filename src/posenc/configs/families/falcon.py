"""Falcon: RoPE, or ALiBi if alibi is set."""

from __future__ import annotations

from posenc.configs.families.llama import same_kind
from posenc.configs.family import decoder, family, head_width
from posenc.configs.keys import Keys
from posenc.configs.rotary import rope
from posenc.configs.say import say
from posenc.configs.spec import PositionSpec, Use


@family("falcon")
def falcon(keys: Keys) -> PositionSpec:
    """ALiBi is rounded to bfloat16 and divided by √d_head like the scores; positions count unmasked tokens."""
    kinds = same_kind(keys)
    width = "n_embed" if keys.has("n_embed") else "hidden_size"
    d_head = head_width(keys, width=width)
    if not keys.flag("alibi"):
        return decoder(keys, rope(keys, d_head=d_head), kinds=kinds, d_head=d_head, width=width)
    heads = keys.whole("num_attention_heads")
    said_by = (("n_heads", keys.said_by("num_attention_heads")),)
    use = Use("encodings.of_families.falcon_alibi.FalconALiBi", (("n_heads", heads),), said_by)
    keys.warning(
        "alibi", say("with eager attention transformers adds the bias twice, with sdpa once; this is sdpa's result")
    )
    keys.warning("alibi", say("rounded to bfloat16: neighbouring keys may have the same bias from position 257 on"))
    return decoder(
        keys,
        use,
        kinds=kinds,
        d_head=d_head,
        width=width,
        coordinates=say("0, 1, 2, … over unmasked tokens; position_ids are not read"),
    )
