"""GLM-4 and GLM-4.5: RoPE over half of each head."""

from __future__ import annotations

from posenc.configs.family import decoder, family, head_width
from posenc.configs.keys import Keys
from posenc.configs.rotary import rope
from posenc.configs.say import say
from posenc.configs.spec import PositionSpec


@family("glm", "glm4")
def glm(keys: Keys) -> PositionSpec:
    """RoPE over the first half of each head, unless partial_rotary_factor is set."""
    return decoder(keys, rope(keys, d_head=head_width(keys), layout="interleaved", partial=True, partial_default=0.5))


@family("sarvam_moe")
def sarvam_moe(keys: Keys) -> PositionSpec:
    """GLM-4.5's code; the whole head rotates unless partial_rotary_factor is set."""
    return decoder(keys, rope(keys, d_head=head_width(keys), partial=True))


@family("glm4_moe")
def glm4_moe(keys: Keys) -> PositionSpec:
    """GLM-4.5: as GLM-4, but half pairs."""
    keys.note("rope_parameters", say("half pairs, unlike GLM-4, which has interleaved pairs"))
    d_head = keys.whole("head_dim", None)
    if d_head is None:
        d_model, n_heads = keys.whole("hidden_size"), keys.whole("num_attention_heads")
        d_head = d_model // n_heads
        if d_model % n_heads:
            keys.warning(
                "hidden_size",
                say(
                    "{d_model} is not a multiple of num_attention_heads={n_heads}, and head_dim is missing: the code "
                    "rounds the head width down to {d_head}",
                    d_model=d_model,
                    n_heads=n_heads,
                    d_head=d_head,
                ),
            )
    return decoder(keys, rope(keys, d_head=d_head, partial=True, partial_default=0.5), d_head=d_head)
