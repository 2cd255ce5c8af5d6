"""RoBERTa's numbering: positions count the tokens that are not padding, and rows begin after the padding's own row.

row = cumsum(mask)·mask + pad_token_id        a table of 514 rows with pad_token_id 1 reads 512 positions
"""

from __future__ import annotations

from posenc.dialects.errors import ConfigError
from posenc.dialects.families.learned import absolute_only
from posenc.dialects.family import family, stack_of
from posenc.dialects.keys import Keys
from posenc.dialects.spec import Layer, PositionSpec, Use, Weight

COUNTED = "0, 1, 2, … over the tokens that are not padding: Positions.from_mask(input_ids != pad_token_id)"


def padded_table(keys: Keys, weight: str = "embeddings.position_embeddings.weight", width: str = "hidden_size") -> Use:
    """One table whose first pad_token_id + 1 rows are nobody's position."""
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
    said = (
        ("d_model", keys.said_by(width)),
        ("max_positions", keys.said_by("max_position_embeddings")),
        ("row_offset", keys.said_by("pad_token_id")),
        ("padding_row", keys.said_by("pad_token_id")),
    )
    keys.find(
        "warning",
        "max_position_embeddings",
        f"{rows} rows are {usable} positions: {padding + 1} rows come before "
        "position 0; content equal to the padding token shifts what follows",
    )
    return Use("encodings.learned.Learned", arguments, said, (Weight("table", weight),))


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
def _(keys: Keys) -> PositionSpec:
    use = padded_table(keys)
    causal = bool(keys.flag("is_decoder", False))
    layers = [Layer(causal=causal)] * keys.whole("num_hidden_layers")
    usable = int(dict(use.arguments)["max_positions"])
    return stack_of(keys, layers, embedding=[use], length=usable, coordinates=COUNTED)
