"""Granite Speech: conformers that attend within blocks of frames, with relative key vectors (Shaw)."""

from __future__ import annotations

from posenc.configs.coordinates import LIKE_TEXT
from posenc.configs.errors import ConfigError
from posenc.configs.family import family, parts, stack_of
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use, Weight


@family("granite_speech", "granite_speech_plus")
def granite_speech(keys: Keys) -> PositionSpec:
    """window_size / downsample_rate learned queries attend to each window of frames; they have no positions."""
    window, rate = keys.whole("window_size", 15), keys.whole("downsample_rate", 5)
    keys.note(
        "window_size",
        say("{queries} learned queries summarise {window} frames of the encoder", queries=window // rate, window=window),
    )
    return PositionSpec(
        keys.family, parts=parts(keys, "encoder_config", "projector_config", "text_config"), coordinates=LIKE_TEXT
    )


BLOCKS = say("0, 1, 2, … over frames; only distances within a block of context_size frames matter")


@family("granite_speech_encoder", "granite_speech_plus_encoder")
def granite_speech_encoder(keys: Keys) -> PositionSpec:
    width, heads = keys.whole("hidden_dim"), keys.whole("num_heads")
    d_head = keys.whole("dim_head", width // heads)
    use = _vectors(keys, d_head, "max_pos_emb", "dim_head", "layers.{layer}.attn.rel_pos_emb.weight")
    return _blocks(keys, use, layers="num_layers", width="hidden_dim", heads="num_heads", d_head=d_head)


@family("granite_speech5_encoder")
def granite_speech5_encoder(keys: Keys) -> PositionSpec:
    """After each layer in subsample_layers, which halves the frames, blocks are counted again."""
    width, heads = keys.whole("hidden_size"), keys.whole("num_attention_heads")
    d_head = keys.whole("head_dim", width // heads)
    use = _vectors(keys, d_head, "max_position_embeddings", "head_dim", "layers.{layer}.self_attn.rel_pos_emb.weight")
    halved = keys.wholes("subsample_layers", None, least=0)
    if halved:
        keys.note(
            "subsample_layers",
            say(
                "layers {layers} halve the frames: after each, a distance is twice as long",
                layers=", ".join(map(str, halved)),
            ),
        )
    return _blocks(keys, use, layers="num_hidden_layers", width="hidden_size", heads="num_attention_heads", d_head=d_head)


def _vectors(keys: Keys, d_head: int, limit: str, head: str, weight: str) -> Use:
    """2·limit + 1 rows by i - j; blocks of context_size use up to context_size on each side."""
    most, block = keys.whole(limit), keys.whole("context_size")
    if block > most:
        raise ConfigError(f"{keys.where('context_size')}: {block} exceeds {limit}={most}, which their code refuses")
    arguments = (("d_head", d_head), ("max_distance", most), ("values", False))
    said_by = (
        ("d_head", keys.origins.get(head, head)),
        ("max_distance", keys.said_by(limit)),
        ("values", "constant of the code"),
    )
    return Use("encodings.shaw.Shaw", arguments, said_by, (Weight("keys", weight, flip=True),))


def _blocks(keys: Keys, use: Use, *, layers: str, width: str, heads: str, d_head: int) -> PositionSpec:
    block = keys.whole("context_size")
    keys.note(
        "context_size",
        say("attention within blocks of {block} frames only; order between blocks comes from convolutions", block=block),
    )
    stack = [Layer((use,), "block_attention", block, causal=False)] * keys.whole(layers)
    return stack_of(keys, stack, width=width, heads=heads, length=None, coordinates=BLOCKS, d_head=d_head)
