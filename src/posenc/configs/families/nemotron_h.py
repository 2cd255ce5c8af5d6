"""Nemotron-H and models built on it: attention without positions among state space layers."""

from __future__ import annotations

from posenc.configs.coordinates import LIKE_TEXT
from posenc.configs.errors import ConfigError
from posenc.configs.families.jamba import CACHE_ONLY
from posenc.configs.family import decoder, family, parts
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.schedule import FULL, OLD, RECURRENT, attention_among
from posenc.configs.spec import PositionSpec


@family("nemo_speechlm")
def nemo_speechlm(keys: Keys) -> PositionSpec:
    names = ["audio_config", "text_config"]
    if keys.data.get("word_timestamp_config", {}) is not None:
        names.append("word_timestamp_config")
    return PositionSpec(keys.family, parts=parts(keys, *names), coordinates=LIKE_TEXT)


@family("nemotron_h_omni")
def nemotron_h_omni(keys: Keys) -> PositionSpec:
    names = ["text_config", "vision_config", *(["audio_config"] if keys.has("audio_config") else [])]
    return PositionSpec(keys.family, parts=parts(keys, *names), coordinates=say("0, 1, 2, … over text, patches and frames"))


@family("nemotron_h")
def nemotron_h(keys: Keys) -> PositionSpec:
    """Each layer is attention, a state space model or an MLP; in published files a string of letters says which."""
    letters = {"M": RECURRENT, "E": "moe", "*": FULL, "-": "mlp"}
    pattern, listed = keys.text("hybrid_override_pattern", None), keys.names("layers_block_type", None)
    if not listed and pattern and not set(pattern) <= set(letters):
        raise ConfigError(
            f"{keys.where('hybrid_override_pattern')}: expected letters of {' '.join(letters)}, got {pattern!r}"
        )
    kinds = [OLD.get(kind, kind) for kind in listed or [letters[letter] for letter in pattern or "ME*-"]]
    if keys.whole("num_hidden_layers", len(kinds), least=0) not in (0, len(kinds)):
        keys.warning("num_hidden_layers", say("the list of layers has {n_kinds}, which is used", n_kinds=len(kinds)))
    kept = attention_among(keys, kinds, (RECURRENT, "moe", "mlp"), say("state space models or MLPs"))
    return decoder(keys, None, kinds=kept, coordinates=CACHE_ONLY)
