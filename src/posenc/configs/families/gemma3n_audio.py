"""The audio encoders of Gemma 3n and Gemma 4: a learned projection of sinusoids of the distance, over past frames."""

from __future__ import annotations

from posenc.configs.errors import ConfigError
from posenc.configs.family import family, stack_of
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use, Weight

FRAMES = say("0, 1, 2, … over frames after two convolutions of stride 2")


@family("gemma3n_audio")
def gemma3n_audio(keys: Keys) -> PositionSpec:
    """A frame attends to itself and to conf_attention_context_left - 1 frames before it; blocks do not change that."""
    past = max(0, keys.whole("conf_attention_context_left", least=0) - 1)
    future = keys.whole("conf_attention_context_right", least=0)
    use = _use(keys, "conf_num_attention_heads", "attention.attn.relative_position_embedding.pos_proj.weight", past, future)
    _look_ahead(keys, future, "conf_attention_context_right")
    return _encoder(keys, use, past + 1, "conf_num_hidden_layers", "conf_num_attention_heads")


@family("gemma4_audio")
def gemma4_audio(keys: Keys) -> PositionSpec:
    """The vectors are correct if chunk and future together are as long as the past, or one frame longer."""
    past = keys.whole("attention_context_left") - 1
    future, chunk = keys.whole("attention_context_right", least=0), keys.whole("attention_chunk_size")
    farthest = (chunk + past + future) // 2
    if farthest != past:
        keys.error(
            "attention_chunk_size",
            say(
                "distances are {excess} too large: the code counts from half of the context, {farthest}, while "
                "the past has {past} frames",
                excess=farthest - past,
                farthest=farthest,
                past=past,
            ),
        )
    keys.note(
        "attention_context_left",
        say("a frame attends to {past} frames, itself included, one fewer than in Gemma 3n with the same value", past=past),
    )
    _look_ahead(keys, future, "attention_context_right")
    use = _use(keys, "num_attention_heads", "self_attn.relative_k_proj.weight", farthest, 0, shift=farthest - past)
    return _encoder(keys, use, past, "num_hidden_layers", "num_attention_heads")


def _use(keys: Keys, heads: str, weight: str, left: int, right: int, **options: int) -> Use:
    arguments = {"d_model": keys.whole("hidden_size"), "n_heads": keys.whole(heads), "left": left, "right": right} | options
    said_by = (("d_model", keys.said_by("hidden_size")), ("n_heads", keys.said_by(heads)), ("base", "constant of the code"))
    return Use(
        "encodings.of_families.sinusoidal_keys.SinusoidalKeys",
        tuple(arguments.items()),
        said_by,
        (Weight("w_r", f"{{layer}}.{weight}", reshape=True),),
        note=say("each channel of the query is scaled by a learned number; scores are capped afterwards"),
    )


def _look_ahead(keys: Keys, future: int, key: str) -> None:
    if future:
        raise ConfigError(
            f"{keys.where(key)}: expected 0, got {future}; frames that see others ahead are not described here"
        )


def _encoder(keys: Keys, use: Use, window: int, layers: str, heads: str) -> PositionSpec:
    layer = Layer((use,), "sliding_attention", window)
    return stack_of(keys, [layer] * keys.whole(layers), heads=heads, length=None, coordinates=FRAMES)
