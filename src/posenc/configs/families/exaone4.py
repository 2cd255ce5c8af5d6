"""EXAONE 4, AFMoE and similar: RoPE in sliding-window layers, no positions in full-attention layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from posenc.configs.errors import ConfigError
from posenc.configs.families.smollm3 import rope_where
from posenc.configs.family import decoder, family, head_width
from posenc.configs.keys import Keys
from posenc.configs.rotary import rope
from posenc.configs.say import say
from posenc.configs.schedule import FULL, RECURRENT, SLIDING, attention_among, schedule, sliding_where
from posenc.configs.spec import PositionSpec, Use


@family("exaone4", "exaone_moe")
def exaone4(keys: Keys) -> PositionSpec:
    """RoPE in sliding-window layers, none in full layers; without a window all layers are full and use RoPE."""
    window, pattern = keys.whole("sliding_window", None), keys.get("sliding_window_pattern", None)
    if window is None and keys.family == "exaone_moe":
        raise ConfigError(f"{keys.where('sliding_window')}: null, which its class refuses; it asks for a number of tokens")
    if not keys.has("layer_types") and (window is None or not isinstance(pattern, int) or isinstance(pattern, bool)):
        taken = say(", taken as 0 since there is no window,") if window is None else ""
        keys.error(
            "layer_types",
            say(
                "missing: the class divides by sliding_window_pattern={pattern!r}{taken} and fails",
                pattern=pattern,
                taken=taken,
            ),
        )
        if window is not None:
            raise ConfigError(
                f"{keys.where('sliding_window_pattern')}: expected a whole number, got {pattern!r}; the "
                "class fails with it unless layer_types says which layers slide"
            )
        pattern = 0
    kinds = schedule(keys, lambda n: SLIDING if pattern and (n + 1) % pattern else FULL)
    return rope_behind_window(keys, kinds, window)


@family("kolibri1")
def kolibri1(keys: Keys) -> PositionSpec:
    """As EXAONE 4; every fifth layer is full and has no positions."""
    window = keys.whole("sliding_window", None)
    if window is None:
        raise ConfigError(
            f"{keys.where('sliding_window')}: null; the code makes a mask with it whatever the layers are, and fails"
        )
    return rope_behind_window(keys, schedule(keys, lambda n: SLIDING if (n + 1) % 5 else FULL), window)


def rope_behind_window(keys: Keys, kinds: Sequence[str], window: int | None) -> PositionSpec:
    spec = decoder(keys, rope(keys, d_head=head_width(keys)), kinds=kinds)
    return spec if window is None else rope_where(spec, [kind == SLIDING for kind in kinds])


@family("afmoe")
def afmoe(keys: Keys) -> PositionSpec:
    """RoPE in sliding layers only; every global_attn_every_n_layers-th layer is full, without positions."""
    every = keys.whole("global_attn_every_n_layers")
    return rope_where_sliding(keys, sliding_where(keys, lambda n: (n + 1) % every != 0))


@family("flint")
def flint(keys: Keys) -> PositionSpec:
    """RoPE in sliding layers only; the first two layers, every fourth after them and the last are full."""
    last = keys.whole("num_hidden_layers") - 1
    kinds = sliding_where(keys, lambda n: not (n < 2 or n % 4 == 1 or n == last))
    if keys.whole("sliding_window", None) is None:
        keys.warning("sliding_window", say("null: RoPE is used only with a window, so no layer has positions"))
        return decoder(keys, None, kinds=kinds)
    return rope_where_sliding(keys, kinds)


@family("lara_mini")
def lara_mini(keys: Keys) -> PositionSpec:
    """RoPE in sliding layers only; of five layers two are recurrent and one is full, without positions."""
    period = (RECURRENT, SLIDING, RECURRENT, FULL, SLIDING)
    kinds = schedule(keys, lambda n: period[n % len(period)], (FULL, SLIDING, RECURRENT))
    attention_among(keys, kinds, (RECURRENT,), say("linear attention (gated delta rule)"))
    return rope_where_sliding(keys, kinds)


def rope_where_sliding(keys: Keys, kinds: tuple[str, ...]) -> PositionSpec:
    uses: Mapping[str, Use | None] = {SLIDING: rope(keys, d_head=head_width(keys)), FULL: None}
    return decoder(keys, None, kinds=kinds, by_kind=uses)
