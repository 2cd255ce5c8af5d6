"""LXMERT: a learned position table for words, a linear layer for the boxes of image regions."""

from __future__ import annotations

from posenc.configs.families.bert import BERT_TABLE, learned_table
from posenc.configs.families.layoutlm import embedded
from posenc.configs.family import family, stack_of
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use, Weight


@family("lxmert")
def lxmert(keys: Keys) -> PositionSpec:
    """The row of position 0 is not trained."""
    use = learned_table(keys, BERT_TABLE)
    keys.note("max_position_embeddings", say("row 0, of the first token, gets no gradient: it stays as in the checkpoint"))
    keys.warning("type_vocab_size", say("the code fails without token_type_ids"))
    language_layers = [Layer((), "language", causal=False)] * keys.whole("l_layers", 9)
    both = [Layer((), "cross", causal=False)] * keys.whole("x_layers", 5)
    words = stack_of(keys, language_layers + both, embedding=[use]).with_part("language")
    arguments = (("d_model", keys.whole("hidden_size")), ("axes", keys.whole("visual_pos_dim", 4)), ("norm_eps", 1e-12))
    said_by = (
        ("d_model", keys.said_by("hidden_size")),
        ("axes", keys.said_by("visual_pos_dim")),
        ("norm_eps", "constant of the code"),
    )
    stored = {
        "project": "box_fc.weight",
        "offset": "box_fc.bias",
        "norm": "box_layer_norm.weight",
        "norm_offset": "box_layer_norm.bias",
    }
    weights = tuple(Weight(name, f"visn_fc.{key}") for name, key in stored.items())
    boxes = Use("encodings.of_families.linear_boxes.LinearBoxes", arguments, said_by, weights)
    where = say("boxes of regions given as visual_pos: (x0, y0, x1, y1) as fractions of the image")
    keys.whole("r_layers", 5)
    return PositionSpec(keys.family, parts=(words, embedded(keys, "vision", boxes, where)))
