"""HRM: two stacks that run several times; every run rotates in the same way."""

from __future__ import annotations

from posenc.configs.family import decoder, family, head_width
from posenc.configs.keys import Keys
from posenc.configs.rotary import rope
from posenc.configs.say import say
from posenc.configs.spec import PositionSpec


@family("hrm_text")
def hrm_text(keys: Keys) -> PositionSpec:
    """num_hidden_layers counts every run if num_layers_per_stack is set, otherwise the layers of one stack."""
    layers, stack = keys.whole("num_hidden_layers"), keys.whole("num_layers_per_stack", None)
    if stack is None:
        stack, layers = layers, layers * keys.whole("H_cycles", 2) * (keys.whole("L_cycles", 3) + 1)
    keys.note(
        "num_hidden_layers",
        say("two stacks of {stack} layers, {layers} attention layers in all runs", stack=stack, layers=layers),
    )
    if keys.flag("prefix_lm", True):
        keys.note("prefix_lm", say("attention among tokens whose token_type_ids are 1 is bidirectional"))
    return decoder(keys, rope(keys, d_head=head_width(keys)), kinds=["full_attention"] * layers)
