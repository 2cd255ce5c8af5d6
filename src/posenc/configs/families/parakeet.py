"""Parakeet and FastSpeech 2 conformers: Transformer-XL's terms over frames, interleaved sinusoids."""

from __future__ import annotations

from posenc.configs.errors import ConfigError
from posenc.configs.family import family, stack_of
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use, Weight

SUBSAMPLED = say("0, 1, 2, … over frames after subsampling, including padding")


@family("parakeet_encoder")
def parakeet_encoder(keys: Keys) -> PositionSpec:
    keys.note("max_position_embeddings", say("no limit: sinusoids are computed for any length"))
    return _nvidia(keys, Layer((_terms(keys),), causal=False))


@family("nemotron_asr_streaming_encoder")
def nemotron_asr_streaming_encoder(keys: Keys) -> PositionSpec:
    """A frame sees its chunk of num_lookahead_tokens + 1 frames and whole chunks within sliding_window - 1 frames."""
    window, ahead = keys.whole("sliding_window"), keys.whole("default_num_lookahead_tokens", least=0)
    behind = (window - 1) // (ahead + 1)
    keys.note(
        "default_num_lookahead_tokens",
        say(
            "chunks of {ahead} frames: a frame sees its own chunk and {behind} chunks before it; callers may "
            "set other chunks",
            ahead=ahead + 1,
            behind=behind,
        ),
    )
    keys.warning(
        "sliding_window",
        say("with eager attention the mask is inverted: frames see only what should be hidden; sdpa is correct"),
    )
    keys.note("max_position_embeddings", say("longer inputs, including what is cached, are an error"))
    return _nvidia(keys, Layer((_terms(keys),), "chunked_attention", window, causal=False))


def _nvidia(keys: Keys, layer: Layer) -> PositionSpec:
    return stack_of(keys, [layer] * keys.whole("num_hidden_layers"), coordinates=SUBSAMPLED, d_head=_d_head(keys))


def _d_head(keys: Keys) -> int:
    return int(keys.whole("head_dim", keys.whole("hidden_size") // keys.whole("num_attention_heads")))


def _terms(keys: Keys) -> Use:
    stem = "layers.{layer}.self_attn"
    weights = (
        Weight("u", f"{stem}.bias_u"),
        Weight("v", f"{stem}.bias_v"),
        Weight("w_r", f"{stem}.relative_k_proj.weight", reshape=True),
    )
    arguments = {
        "d_model": keys.whole("hidden_size"),
        "n_heads": keys.whole("num_attention_heads"),
        "d_head": _d_head(keys),
        "layout": "interleaved",
    }
    said_by = {
        "d_model": keys.said_by("hidden_size"),
        "n_heads": keys.said_by("num_attention_heads"),
        "layout": "constant of the code",
        "base": "constant of the code",
    }
    return Use("encodings.transformer_xl.TransformerXL", tuple(arguments.items()), tuple(said_by.items()), weights)


@family("fastspeech2_conformer")
def fastspeech2_conformer(keys: Keys) -> PositionSpec:
    """Phonemes, then frames: the decoder counts frames after each phoneme is repeated by its duration."""
    keys.get("max_source_positions", None)
    keys.note("max_source_positions", say("not read: the table has 5000 distances on each side, and grows"))
    where = {
        "encoder": say("0, 1, 2, … over phonemes"),
        "decoder": say("0, 1, 2, … over frames, after phonemes are repeated by their durations"),
    }
    specs = []
    for part, coordinates in where.items():
        heads = f"{part}_num_attention_heads"
        d_model, n_heads = keys.whole("hidden_size"), keys.whole(heads)
        if d_model % n_heads:
            raise ConfigError(f"{keys.where('hidden_size')}: {d_model} is not a multiple of {heads}={n_heads}")
        stem = f"{part}.conformer_layers.{{layer}}.self_attn"
        weights = (
            Weight("u", f"{stem}.pos_bias_u"),
            Weight("v", f"{stem}.pos_bias_v"),
            Weight("w_r", f"{stem}.linear_pos.weight", reshape=True),
        )
        arguments = (("d_model", d_model), ("n_heads", n_heads), ("layout", "interleaved"))
        said_by = (
            ("d_model", keys.said_by("hidden_size")),
            ("n_heads", keys.said_by(heads)),
            ("layout", "constant of the code"),
            ("base", "constant of the code"),
        )
        use = Use("encodings.transformer_xl.TransformerXL", arguments, said_by, weights)
        layers = [Layer((use,), causal=False)] * keys.whole(f"{part}_layers")
        specs.append(stack_of(keys, layers, heads=heads, length=None, coordinates=coordinates).with_part(part))
    return PositionSpec(keys.family, parts=tuple(specs))
