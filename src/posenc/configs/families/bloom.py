"""BLOOM and MPT: ALiBi, computed as slope · key position.

This equals slope · distance after the softmax: both differ by a constant for each query."""

from __future__ import annotations

from dataclasses import replace

from posenc.configs.coordinates import WITH_PADDING
from posenc.configs.family import family, stack_of
from posenc.configs.keys import Keys
from posenc.configs.spec import Layer, PositionSpec, Use
from posenc.support.languages import Words


def linear(keys: Keys, heads: str) -> Use:
    return Use("encodings.alibi.ALiBi", (("n_heads", keys.whole(heads)),), (("n_heads", keys.said_by(heads)),))


@family("bloom")
def bloom(keys: Keys) -> PositionSpec:
    """Positions count the tokens that the mask keeps. The class does not read seq_length, the trained length."""
    keys.warning(
        "n_head",
        "slope·position is rounded to the model's dtype before it is added: in bfloat16, neighbouring "
        "keys may have the same bias from position 257 on",
        "斜率·位置在相加前舍入到模型的精度：bfloat16 下，从位置 257 起，相邻的键可能得到相同的偏置",
    )
    layers = [Layer((linear(keys, "n_head"),))] * keys.whole("n_layer")
    where = Words(
        "0, 1, 2, … over unmasked tokens: Positions.from_mask(attention_mask)",
        "对未被遮蔽的词元 0, 1, 2, …：Positions.from_mask(attention_mask)",
    )
    return stack_of(keys, layers, heads="n_head", length="seq_length", coordinates=where)


@family("mpt")
def mpt(keys: Keys) -> PositionSpec:
    """Always ALiBi with the paper's slopes, whatever the configuration says."""
    asked = keys.table("attn_config")
    if asked.get("alibi") is False:
        keys.error("attn_config.alibi", "not read: the code adds ALiBi to every model", "不读：代码对所有模型都加 ALiBi")
    if asked.get("alibi_bias_max", 8) != 8:
        keys.error(
            "attn_config.alibi_bias_max",
            f"{asked['alibi_bias_max']} is not read: the slopes are those of 8",
            f"不读 {asked['alibi_bias_max']}：斜率按 8 计算",
        )
    keys.note("learned_pos_emb", "not read: there is no position table", "不读：没有位置表")
    keys.flag("learned_pos_emb", True)
    length = keys.whole("max_seq_len")
    keys.note(
        "max_seq_len",
        f"more than {length} keys fail: the bias has this length",
        f"超过 {length} 个键会出错：偏置只有这么长",
    )
    layers = [Layer((linear(keys, "n_heads"),))] * keys.whole("n_layers")
    spec = stack_of(keys, layers, width="d_model", heads="n_heads", length="max_seq_len")
    if asked.get("softmax_scale") is not None:
        keys.note(
            "attn_config.softmax_scale",
            f"q·k is multiplied by {asked['softmax_scale']}, not by 1/√d_head",
            f"q·k 乘以 {asked['softmax_scale']}，而不是 1/√d_head",
        )
    return replace(spec, coordinates=WITH_PADDING)
