"""Dory: RoPE with different bases in sliding and full layers; the layers in the middle run several times."""

from __future__ import annotations

from posenc.configs.assumed import with_assumed
from posenc.configs.errors import ConfigError
from posenc.configs.families.gemma3 import per_kind
from posenc.configs.family import decoder, family
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.schedule import sliding_where
from posenc.configs.spec import PositionSpec

COUNTS = ("num_hidden_layers", "n_input_layers", "n_output_layers", "n_recurrent_layers")


@family("dory")
def dory(keys: Keys) -> PositionSpec:
    """Every fourth layer is full. Published files list attention and MLP as layers of their own."""
    keys = _paired(keys)
    kinds = sliding_where(keys, lambda n: (n + 1) % 4 != 0)
    first, last = keys.whole("n_input_layers", least=0), keys.whole("n_output_layers", least=0)
    middle = len(kinds) - first - last
    if keys.whole("n_recurrent_layers", middle, least=0) != middle or middle < 0:
        raise ConfigError(
            f"{keys.where('n_recurrent_layers')}: expected the {len(kinds)} layers but for {first} at the start and {last} "
            f"at the end, got {keys.get('n_recurrent_layers', None)}"
        )
    keys.note(
        "n_recurrent_loops",
        say(
            "layers {first} to {last} run {loops} times, each time with the same positions",
            first=first,
            last=first + middle - 1,
            loops=keys.whole("n_recurrent_loops"),
        ),
    )
    return decoder(keys, None, kinds=kinds, by_kind=per_kind(with_assumed(keys), kinds))


def _paired(keys: Keys) -> Keys:
    """The same keys; if every second of layer_types is "mlp", each pair is one layer, as in the class."""
    types = keys.get("layer_types", None)
    if not isinstance(types, (list, tuple)) or "mlp" not in types:
        return keys
    counts = {key: keys.whole(key, least=0) for key in COUNTS if keys.has(key)}
    if len(types) != keys.whole("num_hidden_layers") or len(types) % 2 or set(types[1::2]) != {"mlp"}:
        raise ConfigError(f"{keys.where('layer_types')}: expected attention and mlp in turn, one for each of the layers")
    keys.note("layer_types", say("attention and MLP are layers of their own in the file; a pair of them is one layer here"))
    return keys.replaced({key: count // 2 for key, count in counts.items()} | {"layer_types": list(types[::2])})
