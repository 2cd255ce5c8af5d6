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
    made = keys
    for name in names:
        assumed = keys.facts["parts"].get(name, {}).get("model_type")
        own = assumed in facts() and facts()[assumed]["folder"] == keys.facts["folder"]
        said = keys.table(name).get("model_type") if keys.has(name) else None
        if not own or said in (None, assumed):
            continue
        keys.note(
            f"{name}.model_type", say("{said!r} is not read: this part is always {assumed}", said=said, assumed=assumed)
        )
        made = made.replaced({name: {**keys.table(name), "model_type": assumed}})
    return made
