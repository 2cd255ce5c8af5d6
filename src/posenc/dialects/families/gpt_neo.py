"""GPT-Neo: a learned table; layers that see everything and layers that see a window, in a pattern."""

from __future__ import annotations

from collections.abc import Sequence

from posenc.dialects.errors import ConfigError
from posenc.dialects.families.learned import table
from posenc.dialects.family import family, stack_of
from posenc.dialects.keys import Keys
from posenc.dialects.spec import Layer, PositionSpec


@family("gpt_neo")
def _(keys: Keys) -> PositionSpec:
    """attention_types [[["global", "local"], 12]]: the pattern, and how many times it comes."""
    count = keys.whole("num_layers")
    kinds = _spread(keys, keys.get("attention_types", [[["global", "local"], 12]]))
    if len(kinds) != count:
        raise ConfigError(f"{keys.where('attention_types')}: makes {len(kinds)} layers, num_layers says {count}")
    keys.find("note", "attention_types", "attention multiplies q·k by 1, not by 1/√d_head")
    window = keys.whole("window_size")
    layers = [Layer((), kind, window if kind == "local" else None) for kind in kinds]
    return stack_of(keys, layers, embedding=[table(keys, "wpe.weight")], heads="num_heads")


def _spread(keys: Keys, pattern: object) -> tuple[str, ...]:
    kinds: list[str] = []
    for one in pattern if isinstance(pattern, Sequence) else [()]:
        item = one if isinstance(one, (list, tuple)) else ()
        fits = len(item) == 2 and isinstance(item[0], (list, tuple)) and isinstance(item[1], int)
        if not fits or not set(item[0]) <= {"global", "local"} or not 0 < item[1] <= 2**14:
            raise ConfigError(
                f"{keys.where('attention_types')}: expected [[['global', 'local'], times], …], got {pattern!r}"
            )
        kinds += [*item[0]] * item[1]
    return tuple(kinds)
