"""gpt-oss and CWM: RoPE in all layers, alternately with and without a window; scaled frequencies by default."""

from __future__ import annotations

from posenc.configs.assumed import with_assumed
from posenc.configs.family import decoder, family, head_width, stack_of
from posenc.configs.keys import Keys
from posenc.configs.rotary import rope
from posenc.configs.say import say
from posenc.configs.schedule import sliding_where
from posenc.configs.spec import Layer, PositionSpec


@family("openai_privacy_filter")
def openai_privacy_filter(keys: Keys) -> PositionSpec:
    """An encoder: each token attends to sliding_window tokens on each side."""
    keys = with_assumed(keys)
    d_head, side = head_width(keys), keys.whole("sliding_window")
    keys.note(
        "sliding_window",
        say("{side} tokens on each side and the token itself: {all_in_all} in all", side=side, all_in_all=2 * side + 1),
    )
    use = rope(keys, d_head=d_head, layout="interleaved")
    layer = Layer((use,) if use else (), "sliding_attention", 2 * side + 1, causal=False)
    return stack_of(keys, [layer] * keys.whole("num_hidden_layers"), d_head=d_head)


@family("cwm")
def cwm(keys: Keys) -> PositionSpec:
    """Layers 0, 4, 8, … are full. Scaled as Llama 3.1 by default."""
    keys = with_assumed(keys)
    return decoder(keys, rope(keys, d_head=head_width(keys)), kinds=sliding_where(keys, lambda n: n % 4 != 0))


@family("gpt_oss")
def gpt_oss(keys: Keys) -> PositionSpec:
    """Every second layer is full, the first slides. YaRN by default; half pairs."""
    keys = with_assumed(keys)
    return decoder(keys, rope(keys, d_head=head_width(keys)), kinds=sliding_where(keys, lambda n: n % 2 == 0))
