"""Qwen2.5-Omni's speech decoder: one head turns, all others have no positions."""

from __future__ import annotations

from dataclasses import replace

from posenc.dialects.family import family, head_width, stack_of
from posenc.dialects.keys import Keys
from posenc.dialects.rotary import rope
from posenc.dialects.spec import Layer, PositionSpec


@family("qwen2_5_omni_dit")
def _(keys: Keys) -> PositionSpec:
    """Pairs neighbours and returns halves, in the first head alone; blocks of block_size frames see a block before or after
    in the layers that the file names."""
    use = rope(keys, d_head=head_width(keys), layout="interleaved", returns="half")
    assert use is not None
    use = replace(
        use,
        encoding="encodings.families.first_heads.FirstHeadsRoPE",
        arguments=(*use.arguments, ("turning_heads", 1)),
        said_by=(*use.said_by, ("turning_heads", "constant of the code")),
    )
    keys.find("warning", "rope_parameters", "only the first head turns, by an oversight of training that its code keeps")
    ahead, back = keys.numbers("look_ahead_layers", (10,)), keys.numbers("look_backward_layers", (0, 20))
    size = keys.whole("block_size", 24)
    keys.find(
        "note",
        "block_size",
        f"a frame sees its block of {size}, in layers {list(ahead)} the next one too, in "
        f"layers {list(back)} the one before",
    )
    layers = [Layer((use,), "block_attention", causal=False)] * keys.whole("num_hidden_layers")
    return stack_of(keys, layers, d_head=head_width(keys), coordinates="frames of sound, from 0")
