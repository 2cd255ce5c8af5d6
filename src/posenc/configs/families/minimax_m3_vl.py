"""MiniMax M3 VL: partial RoPE in the text model, three-axis RoPE in the vision encoder."""

from __future__ import annotations

from posenc.configs.errors import ConfigError
from posenc.configs.family import decoder, family
from posenc.configs.keys import Keys
from posenc.configs.patches import axial, even_head, in_blocks, tower
from posenc.configs.rotary import rope
from posenc.configs.say import say
from posenc.configs.spec import PositionSpec
from posenc.support.languages import clauses


@family("minimax_m3_vl_text")
def minimax_m3_vl_text(keys: Keys) -> PositionSpec:
    """A part of the head rotates, as partial_rotary_factor says; rotary_dim in published files is not read."""
    d_head = keys.whole("head_dim", 128)
    use = rope(keys, d_head=d_head, partial=True)
    assert use is not None
    assert use.rotation is not None
    if keys.has("rotary_dim"):
        width, turning = keys.whole("rotary_dim"), use.rotation.width
        keys.remark(
            "note" if width == turning else "error",
            "rotary_dim",
            say(
                "not read: {turning} of {d_head} channels rotate, by partial_rotary_factor", turning=turning, d_head=d_head
            ),
        )
    count, sparse = keys.whole("num_hidden_layers"), keys.table("sparse_attention_config")
    every = sparse.get("sparse_attention_freq") or [0] * count
    if not isinstance(every, list) or len(every) != count:
        raise ConfigError(f"{keys.where('sparse_attention_config')}.sparse_attention_freq: expected {count} numbers")
    kinds = keys.names("layer_types", tuple("minimax_m3_sparse" if f else "full_attention" for f in every), length=count)
    if "minimax_m3_sparse" in kinds:
        keys.note(
            "layer_types",
            say(
                "sparse layers attend to blocks that an indexer selects. The indexer rotates its queries "
                "and keys by the same angles, and counts blocks from the start of the row, so left padding "
                "shifts them"
            ),
        )
    return decoder(keys, use, kinds=kinds, d_head=d_head)


@family("minimax_m3_vl_vision")
def minimax_m3_vl_vision(keys: Keys) -> PositionSpec:
    """Frame, row and column, a third of the head each, rounded down to whole pairs; remaining channels are not rotated."""
    d_head = even_head(keys, multiple=2)
    maps = (("axial", (("order", (0, 1, 2)),)),)
    where = clauses(in_blocks(say("(frame, row, column)")), say("a clip is one sequence"))
    return tower(keys, [axial(keys, d_head, width=2 * (d_head // 3 // 2), maps=maps)], coordinates=where)
