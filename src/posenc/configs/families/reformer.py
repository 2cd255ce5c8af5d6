"""Reformer: axial position embeddings: one table for rows and one for columns of the folded sequence, concatenated."""

from __future__ import annotations

import math

from posenc.configs.errors import ConfigError
from posenc.configs.family import family, stack_of
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use, Weight


@family("reformer")
def reformer(keys: Keys) -> PositionSpec:
    """Position p is row p // width and column p % width of axial_pos_shape; a plain table if axial_pos_embds is false."""
    d_model = keys.whole("hidden_size")
    kinds = keys.names("attn_layers")
    if not kinds or not set(kinds) <= {"local", "lsh"}:
        raise ConfigError(f"{keys.where('attn_layers')}: expected 'local' and 'lsh', one for each layer, got {kinds!r}")
    embeddings, constant = "embeddings.position_embeddings.", "constant of the code"
    if keys.flag("axial_pos_embds", True):
        shape, widths = (keys.wholes(name, length=2) for name in ("axial_pos_shape", "axial_pos_embds_dim"))
        if sum(widths) != d_model:
            raise ConfigError(f"{keys.where('axial_pos_embds_dim')}: {widths} do not sum to hidden_size={d_model}")
        arguments = (
            ("d_model", d_model),
            ("max_positions", shape),
            ("combine", "concat"),
            ("widths", widths),
            ("folded", True),
        )
        said_by = (
            ("d_model", keys.said_by("hidden_size")),
            ("max_positions", keys.said_by("axial_pos_shape")),
            ("combine", constant),
            ("widths", keys.said_by("axial_pos_embds_dim")),
            ("folded", constant),
        )
        weights = tuple(Weight(f"axis_tables.{n}", f"{embeddings}weights.{n}", reshape=True) for n in range(2))
        use, length = Use("encodings.bases.learned_axes.LearnedAxes", arguments, said_by, weights), math.prod(shape)
        keys.note("axial_pos_shape", say("in training a text must have exactly {length} tokens", length=length))
    else:
        length = keys.whole("max_position_embeddings")
        use = Use(
            "encodings.learned.Learned",
            (("d_model", d_model), ("max_positions", length)),
            (("d_model", keys.said_by("hidden_size")), ("max_positions", keys.said_by("max_position_embeddings"))),
            (Weight("table", f"{embeddings}embedding.weight"),),
        )
    chunk, before = keys.whole("local_attn_chunk_length"), keys.whole("local_num_chunks_before", 1, least=0)
    after = keys.whole("local_num_chunks_after", 0, least=0)
    keys.note(
        "local_attn_chunk_length",
        say(
            "local layers see a token's own chunk of {chunk}, {before} before it and {after} after; lsh "
            "layers see tokens with equal hashes",
            chunk=chunk,
            before=before,
            after=after,
        ),
    )
    causal = bool(keys.flag("is_decoder", False))
    layers = [Layer((), kind, causal=causal) for kind in kinds]
    limit = min(length, keys.whole("max_position_embeddings"))
    return stack_of(keys, layers, embedding=[use], length=limit, d_head=keys.whole("attention_head_size"))
