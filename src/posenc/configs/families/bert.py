"""BERT and models with its learned position table: one row for each position, added to the embeddings."""

from __future__ import annotations

from posenc.configs.coordinates import SEQUENCE
from posenc.configs.family import family, stack_of
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use, Weight


@family("tapas")
def tapas(keys: Keys) -> PositionSpec:
    anew = keys.flag("reset_position_index_per_cell", True)
    use = learned_table(keys, BERT_TABLE, clamp=True) if anew else learned_table(keys, BERT_TABLE)
    keys.note(
        "type_vocab_sizes", say("column, row and rank of a token's cell are added as token types, from tables of their own")
    )
    where = SEQUENCE
    if anew:
        where = say(
            "0, 1, 2, … within each cell; the question is cell (0, 0): Positions.within(column + 256·row) "
            "of token_type_ids 1 and 2"
        )
    causal = bool(keys.flag("is_decoder", False))
    return stack_of(keys, [Layer(causal=causal)] * keys.whole("num_hidden_layers"), embedding=[use], coordinates=where)


def learned_table(
    keys: Keys, weight: str, *, rows: str = "max_position_embeddings", width: str = "hidden_size", **options: int | bool
) -> Use:
    """A table of `rows` positions; `options` are further arguments of Learned, constants of the family's code."""
    absolute_only(keys)
    arguments = {"d_model": keys.whole(width), "max_positions": keys.whole(rows), **options}
    said_by = {"d_model": keys.said_by(width), "max_positions": keys.said_by(rows)}
    said_by |= dict.fromkeys(options, "constant of the code")
    return Use("encodings.learned.Learned", tuple(arguments.items()), tuple(said_by.items()), (Weight("table", weight),))


def absolute_only(keys: Keys) -> None:
    """Warns if the file asks for relative positions (position_embedding_type), which current code does not support."""
    if keys.text("position_embedding_type", "absolute") != "absolute":
        keys.error(
            "position_embedding_type",
            say(
                "{position_embedding_type!r} is no longer supported: positions are absolute, and a checkpoint's "
                "relative embeddings are dropped",
                position_embedding_type=keys.get("position_embedding_type"),
            ),
        )


BERT_TABLE = "embeddings.position_embeddings.weight"


@family(
    "bert",
    "electra",
    "ernie",
    "megatron-bert",
    "rembert",
    "splinter",
    "visual_bert",
    "squeezebert",
    "convbert",
    "albert",
    "mobilebert",
    "bert-generation",
    "big_bird",
    "roc_bert",
    "dpr",
)
def bert(keys: Keys) -> PositionSpec:
    """Bidirectional unless is_decoder. The table is as wide as the word embeddings, before any projection."""
    width = "embedding_size" if keys.family in ("electra", "convbert", "albert", "squeezebert") else "hidden_size"
    if keys.family == "rembert":
        width = "input_embedding_size"
    if keys.family == "visual_bert":
        keys.note(
            "max_position_embeddings",
            say(
                "image regions read row 0 of a table of their own, and the mean of the rows of the words "
                "that a call aligns with them"
            ),
        )
    causal = bool(keys.flag("is_decoder", False))
    layers = [Layer(causal=causal)] * keys.whole("num_hidden_layers")
    return stack_of(keys, layers, embedding=[learned_table(keys, BERT_TABLE, width=width)])


@family("fnet")
def fnet(keys: Keys) -> PositionSpec:
    """No attention: layers are Fourier transforms along the text, which depend on order too."""
    layers = [Layer((), "fourier", causal=False)] * keys.whole("num_hidden_layers")
    return stack_of(keys, layers, embedding=[learned_table(keys, BERT_TABLE)], heads="")
