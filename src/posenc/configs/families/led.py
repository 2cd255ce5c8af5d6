"""LED and BigBird-Pegasus: learned position tables, and sparse attention in the encoder."""

from __future__ import annotations

from dataclasses import replace

from posenc.configs.errors import ConfigError
from posenc.configs.families.bert import learned_table
from posenc.configs.family import family, two_stacks
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec


@family("led")
def led(keys: Keys) -> PositionSpec:
    """Encoder: attention_window[layer] / 2 tokens on each side, and global tokens; decoder: causal."""
    sides = [
        learned_table(keys, f"{side}.embed_positions.weight", width="d_model", rows=f"max_{side}_position_embeddings")
        for side in ("encoder", "decoder")
    ]
    spec = two_stacks(keys, *sides, length="max_encoder_position_embeddings")
    encoder, decoder = spec.parts
    windows = keys.get("attention_window")
    windows = [windows] * len(encoder.layers) if isinstance(windows, int) else windows
    if (
        not isinstance(windows, (list, tuple))
        or len(windows) != len(encoder.layers)
        or any(isinstance(window, bool) or not isinstance(window, int) or window < 2 or window % 2 for window in windows)
    ):
        raise ConfigError(
            f"{keys.where('attention_window')}: expected an even number from 2 for each of "
            f"{len(encoder.layers)} encoder layers, got {windows!r}"[:200]
        )
    layers = [
        Layer(layer.uses, "sliding_attention", window + 1, causal=False)
        for layer, window in zip(encoder.layers, windows, strict=True)
    ]
    keys.note(
        "attention_window",
        say("half on each side and the token itself; global tokens attend to all and are attended to by all"),
    )
    encoder = replace(encoder, layers=tuple(layers), trained_length=keys.whole("max_encoder_position_embeddings"))
    decoder = replace(decoder, trained_length=keys.whole("max_decoder_position_embeddings"))
    return replace(spec, parts=(encoder, decoder))


@family("bigbird_pegasus")
def bigbird_pegasus(keys: Keys) -> PositionSpec:
    """Position p reads row p in both tables."""
    sides = [learned_table(keys, f"{side}.embed_positions.weight", width="d_model") for side in ("encoder", "decoder")]
    if keys.text("attention_type", "block_sparse") == "block_sparse":
        size, random = keys.whole("block_size", 64), keys.whole("num_random_blocks", 3)
        keys.note(
            "attention_type",
            say(
                "encoder layers attend to blocks of {size}: their own, both neighbours, the first, the last and "
                "{random} random ones; short texts use full attention",
                size=size,
                random=random,
            ),
        )
    return two_stacks(keys, *sides)
