"""GPT-2 and similar decoders: a learned position table, added to the embeddings."""

from __future__ import annotations

from collections.abc import Sequence

from posenc.configs.errors import ConfigError
from posenc.configs.families.bert import learned_table
from posenc.configs.family import family, stack_of
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec


@family("gpt_neo")
def gpt_neo(keys: Keys) -> PositionSpec:
    """attention_types [[["global", "local"], 12]] is a pattern and the number of its repetitions."""
    count = keys.whole("num_layers")
    kinds = _spread(keys, keys.get("attention_types", [[["global", "local"], 12]]))
    if len(kinds) != count:
        raise ConfigError(f"{keys.where('attention_types')}: makes {len(kinds)} layers, num_layers says {count}")
    keys.note("attention_types", say("q·k is not scaled by 1/√d_head"))
    window = keys.whole("window_size")
    layers = [Layer((), kind, window if kind == "local" else None) for kind in kinds]
    return stack_of(keys, layers, embedding=[learned_table(keys, "wpe.weight")], heads="num_heads")


def _spread(keys: Keys, pattern: object) -> tuple[str, ...]:
    kinds: list[str] = []
    for entry in pattern if isinstance(pattern, Sequence) else [()]:
        item = entry if isinstance(entry, (list, tuple)) else ()
        fits = len(item) == 2 and isinstance(item[0], (list, tuple)) and isinstance(item[1], int)
        if not fits or not set(item[0]) <= {"global", "local"} or not 0 < item[1] <= 2**14:
            raise ConfigError(
                f"{keys.where('attention_types')}: expected [[['global', 'local'], times], …], got {pattern!r}"
            )
        kinds += [*item[0]] * item[1]
    return tuple(kinds)


@family("gpt2", "gpt-sw3", "gpt_bigcode", "openai-gpt", "imagegpt")
def gpt2(keys: Keys) -> PositionSpec:
    weight = "positions_embed.weight" if keys.family == "openai-gpt" else "wpe.weight"
    layers = [Layer()] * keys.whole("n_layer")
    return stack_of(
        keys,
        layers,
        embedding=[learned_table(keys, weight, rows="n_positions", width="n_embd")],
        width="n_embd",
        heads="n_head",
        length="n_positions",
    )


@family("decision_transformer")
def decision_transformer(keys: Keys) -> PositionSpec:
    """GPT-2's own table is read at row 0 by every token: it adds a constant, no positions."""
    use = learned_table(keys, "embed_timestep.weight", rows="max_ep_len")
    keys.warning("n_positions", say("GPT-2's table wpe adds its row 0 to every token; its other rows are not read"))
    keys.whole("n_positions")
    return stack_of(
        keys,
        [Layer()] * keys.whole("n_layer"),
        embedding=[use],
        heads="n_head",
        length="max_ep_len",
        coordinates=say("timesteps given with the call, each for three tokens: return, state, action"),
    )
