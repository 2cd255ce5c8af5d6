"""TimesFM and TimesFM 2.5: causal decoders over patches of a time series."""

from __future__ import annotations

from posenc.configs.errors import ConfigError
from posenc.configs.family import decoder, family, stack_of
from posenc.configs.keys import Keys
from posenc.configs.rotary import rope
from posenc.configs.say import say
from posenc.configs.schedule import FULL
from posenc.configs.spec import Layer, PositionSpec, Use


@family("timesfm2_5")
def timesfm2_5(keys: Keys) -> PositionSpec:
    """RoPE in causal attention over patches of a time series; queries and keys are normalised after it."""
    keys.note("rope_parameters", say("queries and keys are normalised after the rotation, so its scale has no effect"))
    d_head = keys.whole("head_dim")
    return decoder(
        keys,
        rope(keys, d_head=d_head),
        kinds=[FULL] * keys.whole("num_hidden_layers"),
        d_head=d_head,
        coordinates=say("0, 1, 2, … over patches; padding in front counts down from -1"),
    )


@family("timesfm")
def timesfm(keys: Keys) -> PositionSpec:
    """Causal attention without positions; sinusoids are added to the patches if use_positional_embedding is set."""
    layers = [Layer()] * keys.whole("num_hidden_layers")
    d_head = keys.whole("head_dim")
    if not keys.flag("use_positional_embedding", False):
        return stack_of(
            keys, layers, length=None, d_head=d_head, coordinates=say("none: attention is causal, without positions")
        )
    d_model = keys.whole("hidden_size")
    shortest, longest = keys.number("min_timescale"), keys.number("max_timescale")
    if shortest != 1:
        keys.warning(
            "min_timescale",
            say(
                "multiplies the frequencies where it should divide them: the fastest pair rotates by "
                "{shortest:g} per patch, not by 1/{shortest:g}",
                shortest=shortest,
            ),
        )
    if d_model % 2:
        raise ConfigError(f"{keys.where('hidden_size')}: {d_model} is odd: the code would add a token, not a channel")
    waves = Use(
        "encodings.sinusoidal.Sinusoidal",
        (
            ("d_model", d_model),
            ("base", longest / shortest),
            ("layout", "sin_cos"),
            ("denominator", "d/2-1"),
            ("scale", shortest),
        ),
        (
            ("base", "max_timescale / min_timescale"),
            ("scale", keys.said_by("min_timescale")),
            ("layout", "constant of the code"),
            ("d_model", keys.said_by("hidden_size")),
        ),
    )
    return stack_of(
        keys,
        layers,
        embedding=[waves],
        length=None,
        d_head=d_head,
        coordinates=say(
            "0, 1, 2, … over patches from the first that is not padding; those before it continue "
            "from the end, modulo the number of patches"
        ),
    )
