"""The Q-Formers of BLIP-2 and InstructBLIP: learned queries without positions, and text with a learned table."""

from __future__ import annotations

from posenc.configs.families.bert import BERT_TABLE, learned_table
from posenc.configs.family import family, stack_of
from posenc.configs.keys import Keys
from posenc.configs.spec import Layer, PositionSpec
from posenc.support.languages import Words

BEHIND = Words("text 0, 1, 2, …; the queries come first and get no positions", "文本 0, 1, 2, …；查询在前，没有位置")


@family("blip_2_qformer", "instructblip_qformer", "instructblipvideo_qformer")
def blip_2_qformer(keys: Keys) -> PositionSpec:
    """BLIP-2's table belongs to the outer model and exists only if use_qformer_text_input is set."""
    layers = [Layer(causal=False)] * keys.whole("num_hidden_layers")
    every = keys.whole("cross_attention_frequency")
    keys.note(
        "cross_attention_frequency",
        f"layers 0, {every}, … also attend to the image, whose patches already have positions",
        f"第 0, {every}, … 层还会对图像做注意力，图像的块已带有位置",
    )
    if keys.family == "blip_2_qformer" and not keys.flag("use_qformer_text_input", False):
        rows = keys.get("max_position_embeddings", None)
        keys.note(
            "max_position_embeddings",
            f"{rows} positions, unused: there is no text input",
            f"{rows} 个位置，不使用：没有文本输入",
        )
        return stack_of(keys, layers, length=None, coordinates=Words("none: learned queries", "无：学习得到的查询"))
    return stack_of(keys, layers, embedding=[learned_table(keys, BERT_TABLE)], coordinates=BEHIND)
