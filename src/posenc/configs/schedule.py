"""The kind of each layer: from the file, or the class's default."""

from __future__ import annotations

from collections.abc import Callable, Collection

from posenc.configs.errors import ConfigError
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.support.languages import Words

FULL, SLIDING, RECURRENT = "full_attention", "sliding_attention", "linear_attention"
OLD = {"mamba": RECURRENT, "attention": FULL}  # names that transformers renames wherever it reads layer types


def schedule(
    keys: Keys, assumed: Callable[[int], str], allowed: Collection[str] = (FULL, SLIDING), *, key: str = "layer_types"
) -> tuple[str, ...]:
    """layer_types (or `key`); if missing, `assumed(n)` for each layer n. ConfigError for a kind not in `allowed`."""
    count = keys.whole("num_hidden_layers")
    listed = keys.names(key, None, length=count)
    kinds = tuple(OLD.get(kind, kind) for kind in listed) if listed else tuple(assumed(n) for n in range(count))
    for kind in kinds:
        if kind not in allowed:
            raise ConfigError(f"{keys.where(key)}: expected {' or '.join(allowed)}, got {kind!r}")
    return kinds


def sliding_where(keys: Keys, slides: Callable[[int], bool], allowed: tuple[str, str] = (FULL, SLIDING)) -> tuple[str, ...]:
    """layer_types; if missing, layer n is sliding if `slides(n)`. ConfigError for a kind not in `allowed`."""
    return schedule(keys, lambda n: allowed[1] if slides(n) else allowed[0], allowed)


def attention_among(keys: Keys, kinds: Collection[str], others: Collection[str], why: Words) -> list[str]:
    """The kinds of all layers as a list, with a note on the `others`, which are `why` and no attention."""
    kinds = list(kinds)
    left = [number for number, kind in enumerate(kinds) if kind in others]
    if left:
        attending = ", ".join(str(n) for n in range(len(kinds)) if n not in left)
        keys.note(
            "layer_types",
            say(
                "{others} of {layers} layers are {why}, which keep order; attention is in {attending}",
                others=len(left),
                layers=len(kinds),
                why=why,
                attending=say("layers {numbers}", numbers=attending) if attending else say("layers none"),
            ),
        )
    return kinds
