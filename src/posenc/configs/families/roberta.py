"""RoBERTa and MPNet: positions count non-padding tokens, and rows start after the padding token's row.

row = cumsum(mask)·mask + pad_token_id        a table of 514 rows with pad_token_id 1 has 512 positions"""

from __future__ import annotations

from dataclasses import replace

from posenc.configs.errors import ConfigError
from posenc.configs.families.bert import BERT_TABLE, absolute_only
from posenc.configs.family import family, stack_of
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use, Weight

PADDING, BUCKETS = 1, 32  # whatever the configuration says


@family("mpnet")
def mpnet(keys: Keys) -> PositionSpec:
    rows, said_rows = keys.whole("max_position_embeddings"), keys.said_by("max_position_embeddings")
    usable, buckets = rows - PADDING - 1, keys.whole("relative_attention_num_buckets")
    if usable < 1:
        raise ConfigError(f"{keys.where('max_position_embeddings')}: {rows} rows leave no position after row {PADDING}")
    if buckets != BUCKETS:
        keys.error(
            "relative_attention_num_buckets",
            say("the table has {buckets} rows, but the code always uses {fixed} buckets", buckets=buckets, fixed=BUCKETS),
        )
    if keys.whole("pad_token_id", PADDING, least=0) != PADDING:
        keys.error("pad_token_id", say("not read: positions count tokens other than {padding}", padding=PADDING))
    keys.note(
        "max_position_embeddings",
        say("{rows} rows are {usable} positions: two rows precede position 0", rows=rows, usable=usable),
    )
    constant = "constant of the code"
    table = Use(
        "encodings.learned.Learned",
        (
            ("d_model", keys.whole("hidden_size")),
            ("max_positions", usable),
            ("row_offset", PADDING + 1),
            ("padding_row", PADDING),
        ),
        (
            ("d_model", keys.said_by("hidden_size")),
            ("max_positions", said_rows),
            ("row_offset", constant),
            ("padding_row", constant),
        ),
        (Weight("table", BERT_TABLE),),
    )
    bias = Use(
        "encodings.t5.T5",
        (
            ("n_heads", keys.whole("num_attention_heads")),
            ("n_buckets", BUCKETS),
            ("max_distance", 128),
            ("bidirectional", True),
        ),
        (
            ("n_heads", keys.said_by("num_attention_heads")),
            ("n_buckets", constant),
            ("max_distance", constant),
            ("bidirectional", constant),
        ),
        (Weight("table", "encoder.relative_attention_bias.weight"),),
        note=say("counts all tokens; the same for one text without gaps"),
    )
    layers = [Layer((bias,), causal=False)] * keys.whole("num_hidden_layers")
    spec = stack_of(keys, layers, embedding=[table], length=usable)
    return replace(spec, coordinates=TOKENS)


TOKENS = say("0, 1, 2, … over non-padding tokens: Positions.from_mask(input_ids != pad_token_id)")


def padded_table(keys: Keys, weight: str = "embeddings.position_embeddings.weight", width: str = "hidden_size") -> Use:
    """One table whose first pad_token_id + 1 rows are not used for positions."""
    absolute_only(keys)
    rows, padding = keys.whole("max_position_embeddings"), keys.whole("pad_token_id", least=0)
    usable = rows - padding - 1
    if usable < 1:
        raise ConfigError(
            f"{keys.where('max_position_embeddings')}: {rows} rows leave no position after pad_token_id={padding}"
        )
    arguments = (
        ("d_model", keys.whole(width)),
        ("max_positions", usable),
        ("row_offset", padding + 1),
        ("padding_row", padding),
    )
    said_by = (
        ("d_model", keys.said_by(width)),
        ("max_positions", keys.said_by("max_position_embeddings")),
        ("row_offset", keys.said_by("pad_token_id")),
        ("padding_row", keys.said_by("pad_token_id")),
    )
    keys.warning(
        "max_position_embeddings",
        say(
            "{rows} rows are {usable} positions: {padding} rows precede position 0; a content token equal to "
            "the padding token shifts the positions after it",
            rows=rows,
            usable=usable,
            padding=padding + 1,
        ),
    )
    return Use("encodings.learned.Learned", arguments, said_by, (Weight("table", weight),))


@family(
    "roberta",
    "xlm-roberta",
    "camembert",
    "data2vec-text",
    "ibert",
    "roberta-prelayernorm",
    "xlm-roberta-xl",
    "xmod",
    "longformer",
)
def roberta(keys: Keys) -> PositionSpec:
    use = padded_table(keys)
    causal = bool(keys.flag("is_decoder", False))
    layers = [Layer(causal=causal)] * keys.whole("num_hidden_layers")
    usable = int(dict(use.arguments)["max_positions"])
    return stack_of(keys, layers, embedding=[use], length=usable, coordinates=TOKENS)
