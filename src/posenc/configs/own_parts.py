"""Parts whose class is fixed: the family's class reads them with its own classes, whatever model_type the file has."""

from __future__ import annotations

from posenc.configs.family import parts
from posenc.configs.keys import Keys, facts
from posenc.configs.say import say
from posenc.configs.spec import PositionSpec


def own_parts(keys: Keys, *names: str) -> tuple[PositionSpec, ...]:
    """As `parts`, but sections with a class of the family's own are read by it (Idefics 3 files call their encoder
    "idefics3" as well)."""
    return parts(typed(keys, *names), *names)


def typed(keys: Keys, *names: str) -> Keys:
    """The same keys; sections with a class of the family's own get its model_type."""
    result = keys
    for name in names:
        assumed = keys.facts["parts"].get(name, {}).get("model_type")
        is_own = assumed in facts() and facts()[assumed]["folder"] == keys.facts["folder"]
        model_type = keys.table(name).get("model_type") if keys.has(name) else None
        if not is_own or model_type in (None, assumed):
            continue
        keys.note(
            f"{name}.model_type",
            say("{model_type!r} is not read: this part is always {assumed}", model_type=model_type, assumed=assumed),
        )
        result = result.replaced({name: {**keys.table(name), "model_type": assumed}})
    return result
