"""T5 and similar: a learned bias for buckets of distance in self-attention, none in cross-attention.

Scores are q·k + bias; q·k is not scaled. The first layer's table serves all layers of its stack; UMT5 has one table in each
layer. Raffel et al. 2020, section 2.1."""

from __future__ import annotations

from posenc.configs.family import family
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use, Weight

BLOCK = "{side}.block.{layer}.layer.0.{attention}.relative_attention_bias.weight"


def bucketed(keys: Keys, weight: str, *, both_ways: bool) -> Use:
    """One table of relative_attention_num_buckets rows."""
    arguments = (
        ("n_heads", keys.whole("num_heads")),
        ("n_buckets", keys.whole("relative_attention_num_buckets", least=2)),
        ("max_distance", keys.whole("relative_attention_max_distance")),
        ("bidirectional", both_ways),
        ("scale", 1.0),
    )
    said_by = (
        ("n_heads", keys.said_by("num_heads")),
        ("n_buckets", keys.said_by("relative_attention_num_buckets")),
        ("max_distance", keys.said_by("relative_attention_max_distance")),
        ("bidirectional", "constant of the code"),
        ("scale", "constant of the code"),
    )
    return Use("encodings.t5.T5", arguments, said_by, (Weight("table", weight),))


def stack(keys: Keys, side: str, use: Use, *, window: int | None = None) -> PositionSpec:
    """Encoder or decoder, every layer with the same use."""
    count = keys.whole("num_layers")
    if side == "decoder":
        count = keys.whole("num_decoder_layers", count)
    kind = "full_attention" if window is None else "sliding_attention"
    layers = (Layer((use,), kind, window, causal=side == "decoder"),) * count
    return PositionSpec(
        keys.family,
        part=side,
        layers=layers,
        d_model=keys.whole("d_model"),
        d_head=keys.whole("d_kv"),
        n_heads=keys.whole("num_heads"),
        trained_length=keys.whole("n_positions", None),
    )


@family("t5", "mt5", "umt5", "switch_transformers", "pop2piano")
def t5(keys: Keys) -> PositionSpec:
    layer = "{layer}" if keys.family == "umt5" else "0"
    weights = {side: BLOCK.format(side=side, layer=layer, attention="SelfAttention") for side in ("encoder", "decoder")}
    keys.note(
        "relative_attention_num_buckets",
        say("the encoder uses half of the buckets for tokens after the query, the decoder none"),
    )
    return PositionSpec(
        keys.family,
        parts=tuple(
            stack(keys, side, bucketed(keys, weight, both_ways=side == "encoder")) for side, weight in weights.items()
        ),
    )


@family("longt5")
def longt5(keys: Keys) -> PositionSpec:
    """Encoder layers see local_radius tokens on each side; transient-global layers also a summary of every block."""
    kind = keys.text("encoder_attention_type", "local", among=("local", "transient-global"))
    attention = "LocalSelfAttention" if kind == "local" else "TransientGlobalSelfAttention"
    weight = BLOCK.format(side="encoder", layer=0, attention=attention)
    radius = keys.whole("local_radius", 127)
    parts = [stack(keys, "encoder", bucketed(keys, weight, both_ways=True), window=2 * radius + 1)]
    if kind == "transient-global":
        size = keys.whole("global_block_size", 16)
        to_blocks = bucketed(keys, f"block.0.layer.0.{attention}.global_relative_attention_bias.weight", both_ways=True)
        layers = (Layer((to_blocks,), "cross_attention", causal=False),) * len(parts[0].layers)
        parts.append(
            PositionSpec(
                keys.family,
                part="encoder_to_blocks",
                layers=layers,
                n_heads=keys.whole("num_heads"),
                d_head=keys.whole("d_kv"),
                coordinates=say(
                    "query: the index of its block of {size} tokens, where tokens of an incomplete last block belong "
                    "to the one before it; key: the index of the block that it summarises; one softmax over these "
                    "keys and the encoder's own",
                    size=size,
                ),
            )
        )
    weight = BLOCK.format(side="decoder", layer=0, attention="SelfAttention")
    parts.append(stack(keys, "decoder", bucketed(keys, weight, both_ways=False)))
    return PositionSpec(keys.family, parts=tuple(parts))
