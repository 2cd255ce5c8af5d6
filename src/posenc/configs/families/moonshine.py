"""Moonshine: RoPE with interleaved pairs; the streaming encoder has no positions."""

from __future__ import annotations

from dataclasses import replace

from posenc.configs.assumed import with_assumed
from posenc.configs.errors import ConfigError
from posenc.configs.family import decoder, family, head_width, parts
from posenc.configs.keys import Keys
from posenc.configs.rotary import rope
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use, Weight


@family("moonshine")
def moonshine(keys: Keys) -> PositionSpec:
    """Interleaved pairs, 90 % of a head; encoder and decoder alike."""
    heads, other = keys.whole("encoder_num_attention_heads"), keys.whole("decoder_num_attention_heads")
    if heads != other:
        keys.warning(
            "decoder_num_attention_heads",
            say(
                "{other} is ignored: building the encoder writes its {heads} heads into the configuration under "
                "the name that the decoder reads",
                other=other,
                heads=heads,
            ),
        )
    d_model = keys.whole("hidden_size")
    d_head = keys.whole("head_dim", None) or d_model // heads
    use = rope(keys, d_head=d_head, layout="interleaved", partial=True, partial_default=0.9)
    uses = (use,) if use else ()
    stacks = []
    for part, causal in (("encoder", False), ("decoder", True)):
        layers = (Layer(uses, causal=causal),) * keys.whole(f"{part}_num_hidden_layers")
        stacks.append(
            PositionSpec(
                keys.family,
                part=part,
                layers=layers,
                d_model=d_model,
                d_head=d_head,
                n_heads=heads,
                trained_length=keys.whole("max_position_embeddings"),
            )
        )
    return PositionSpec(keys.family, parts=tuple(stacks))


@family("moonshine_streaming_encoder")
def moonshine_streaming_encoder(keys: Keys) -> PositionSpec:
    """No positions: each layer has a window of frames behind and ahead."""
    windows = keys.get("sliding_windows")
    count = keys.whole("num_hidden_layers")
    fits = isinstance(windows, (list, tuple)) and len(windows) >= count
    if not fits or not all(isinstance(pair, (list, tuple)) and len(pair) == 2 for pair in windows):
        raise ConfigError(f"{keys.where('sliding_windows')}: expected {count} pairs (behind, ahead), got {windows!r}"[:160])
    keys.warning("sliding_windows", say("applied only if an attention mask is given; without one every frame sees all"))
    keys.note(
        "sliding_windows", say("(behind, ahead): a frame sees itself, behind - 1 frames before it and ahead - 1 after it")
    )
    layers = [Layer((), "sliding_attention", behind + max(ahead - 1, 0), causal=ahead < 2) for behind, ahead in windows]
    return PositionSpec(
        keys.family,
        layers=tuple(layers[:count]),
        d_model=keys.whole("hidden_size"),
        n_heads=keys.whole("num_attention_heads"),
        trained_length=keys.whole("max_position_embeddings"),
        coordinates=say("none: order comes from convolutions and windows"),
    )


@family("moonshine_streaming")
def moonshine_streaming(keys: Keys) -> PositionSpec:
    """RoPE in the decoder; a learned table is added to the encoder's output before cross-attention."""
    silent = not (keys.has("rope_parameters") or keys.has("rope_scaling"))
    (encoder,) = parts(keys, "encoder_config")
    keys = with_assumed(keys)
    d_head = head_width(keys)
    use = rope(keys, d_head=d_head, layout="interleaved", partial=True, partial_default=0.8 if silent else 1.0)
    rows = keys.whole("max_position_embeddings")
    table = Use(
        "encodings.learned.Learned",
        (("d_model", encoder.d_model), ("max_positions", rows)),
        (("d_model", "encoder_config.hidden_size"), ("max_positions", keys.said_by("max_position_embeddings"))),
        (Weight("table", "pos_emb.weight"),),
    )
    keys.warning(
        "max_position_embeddings",
        say(
            "the table is added in place: a second call of the decoder with the same encoder output "
            "adds it again, with or without cache"
        ),
    )
    memory = PositionSpec(
        keys.family,
        part="memory",
        layers=(Layer((table,), "cross_attention", causal=False),),
        d_model=encoder.d_model,
        trained_length=rows,
        coordinates=say("frames of the encoder's output, from 0, before cross-attention"),
    )
    spec = decoder(keys, use, d_head=d_head)
    return PositionSpec(keys.family, parts=(encoder, memory, replace(spec, part="decoder")))
