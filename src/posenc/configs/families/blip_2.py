"""The Q-Formers of BLIP-2 and InstructBLIP: learned queries without positions, and text with a learned table."""

from __future__ import annotations

from posenc.configs.families.bert import BERT_TABLE, learned_table
from posenc.configs.family import family, stack_of
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec

BEHIND = say("text 0, 1, 2, …; the queries come first and get no positions")


@family("blip_2_qformer", "instructblip_qformer", "instructblipvideo_qformer")
def blip_2_qformer(keys: Keys) -> PositionSpec:
    """BLIP-2's table belongs to the outer model and exists only if use_qformer_text_input is set."""
    layers = [Layer(causal=False)] * keys.whole("num_hidden_layers")
    every = keys.whole("cross_attention_frequency")
    keys.note(
        "cross_attention_frequency",
        say("layers 0, {every}, … also attend to the image, whose patches already have positions", every=every),
    )
    if keys.family == "blip_2_qformer" and not keys.flag("use_qformer_text_input", False):
        rows = keys.get("max_position_embeddings", None)
        keys.note("max_position_embeddings", say("{rows} positions, unused: there is no text input", rows=rows))
        return stack_of(keys, layers, length=None, coordinates=say("none: learned queries"))
    return stack_of(keys, layers, embedding=[learned_table(keys, BERT_TABLE)], coordinates=BEHIND)
