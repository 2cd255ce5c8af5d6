"""ProphetNet: learned tables in both stacks; decoder layers add T5's buckets with numbers computed from the hidden state.

The decoder has a main stream and one predicting stream for each further token; their tokens are one position later."""

from __future__ import annotations

from posenc.configs.coordinates import WITH_PADDING
from posenc.configs.errors import ConfigError
from posenc.configs.family import family
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use, Weight
from posenc.support.languages import clauses

WEIGHT = "decoder.layers.{layer}.self_attn.relative_pos_embeddings"


@family("prophetnet")
def prophetnet(keys: Keys) -> PositionSpec:
    if keys.whole("num_decoder_layers") > keys.whole("num_encoder_layers"):
        keys.warning("num_decoder_layers", say("more than num_encoder_layers: caches have only that many layers, and fail"))
    keys.warning(
        "ngram",
        say(
            "the code mixes up tokens, streams and heads in the bias of the predicting streams for "
            "whole sequences; step by step with a cache it is correct, as here"
        ),
    )
    d_model, heads = keys.whole("hidden_size"), keys.whole("num_decoder_attention_heads")
    rows, padding = keys.whole("max_position_embeddings"), keys.whole("pad_token_id", least=0)
    if rows <= padding + 1:
        raise ConfigError(f"{keys.where('max_position_embeddings')}: {rows} rows leave none after pad_token_id={padding}")
    keys.warning(
        "max_position_embeddings",
        say(
            "{padding} rows precede position 0; positions beyond {rows} read the last row, but a single step "
            "with a cache fails there; padding is counted, whatever the mask is",
            padding=padding + 1,
            rows=rows - padding - 2,
        ),
    )
    arguments = (("d_model", d_model), ("max_positions", rows - padding - 1), ("row_offset", padding + 1), ("clamp", True))
    said_by = (
        ("d_model", keys.said_by("hidden_size")),
        ("max_positions", keys.said_by("max_position_embeddings")),
        ("row_offset", keys.said_by("pad_token_id")),
        ("clamp", "constant of the code"),
    )
    tables = [
        Use("encodings.learned.Learned", arguments, said_by, (Weight("table", f"{side}.position_embeddings.weight"),))
        for side in ("encoder", "decoder")
    ]
    limits = (("n_buckets", keys.whole("num_buckets")), ("max_distance", keys.whole("relative_max_distance")))
    bias = Use(
        "encodings.of_families.t5_content.T5OfContent",
        (("n_heads", heads), ("d_in", d_model), *limits, ("reads", "hidden")),
        (
            ("n_heads", keys.said_by("num_decoder_attention_heads")),
            ("d_in", "hidden_size"),
            ("n_buckets", keys.said_by("num_buckets")),
            ("max_distance", keys.said_by("relative_max_distance")),
            ("reads", "constant of the code"),
        ),
        (Weight("project", f"{WEIGHT}.weight", order=(1, 0, 2)), Weight("offset", f"{WEIGHT}.bias", order=(1, 0))),
        note=say("call read(hidden states) once per layer"),
    )
    parts = []
    for side, table, uses in (("encoder", tables[0], ()), ("decoder", tables[1], (bias,))):
        layers = [Layer(uses, causal=side == "decoder")] * keys.whole(f"num_{side}_layers")
        layers[0] = Layer((table, *uses), causal=side == "decoder")
        where = WITH_PADDING
        if uses:
            ahead = keys.whole("ngram", 2)
            where = clauses(
                where,
                say(
                    "{ahead} predicting streams: the token after position p is at p + 1, and attends to the main "
                    "stream up to p and to itself",
                    ahead=ahead,
                ),
            )
        width = keys.whole(f"num_{side}_attention_heads")
        stack = PositionSpec(
            keys.family,
            part=side,
            layers=tuple(layers),
            d_model=d_model,
            n_heads=width,
            d_head=d_model // width,
            trained_length=rows - padding - 1,
            coordinates=where,
        )
        parts.append(stack)
    return PositionSpec(keys.family, parts=tuple(parts))
