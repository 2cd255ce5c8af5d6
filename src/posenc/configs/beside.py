"""What the weights beside a config.json say: the rotary layout that a conversion recorded, and sizes the file is silent on.

`posenc convert` records the layout as rope_layout, in the metadata of the weights and in config.json.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from posenc.configs import headers
from posenc.configs.errors import ConfigError
from posenc.configs.headers import Header
from posenc.configs.keys import Keys
from posenc.configs.remote import TEXT_PARTS
from posenc.configs.say import say
from posenc.configs.spec import PositionSpec, Use

RECORD = "rope_layout"
SWITCH = "rope_interleave"  # in families whose code reads either layout
HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads")
LAYER = re.compile(r"(?:^|\.)(?:layers|h|blocks?|layer)\.(\d+)\.")
TABLES = (r"\.?(wpe|embed_positions|position_embeddings|embd_pos)\.weight$", r"(embed_tokens|wte|word_embeddings)\.weight$")


def with_weights_beside(keys: Keys, folder: Path) -> Keys:
    """The same keys with what the safetensors files of `folder` add; contradictions become errors of the report."""
    try:
        files = headers.of_folder(folder)
    except ConfigError as error:
        keys.error("", say("{error}", error=error))
        return keys
    if not files:
        return keys
    return _with_sizes(_with_layout(keys, files), files)


def _with_layout(keys: Keys, files: Mapping[str, Header]) -> Keys:
    recorded = {header.metadata.get(RECORD) for header in files.values()}
    if recorded == {None}:
        if keys.has(RECORD) or any(keys.has(part) and RECORD in keys.table(part) for part in TEXT_PARTS):
            keys.error(RECORD, say("the weights beside this file do not record a layout: they may not have been converted"))
        return keys
    if len(recorded) > 1:
        kinds = ", ".join(sorted(str(layout or "none") for layout in recorded))
        keys.error(
            RECORD,
            say("the weights record different layouts ({layouts}): convert them again from the original", layouts=kinds),
        )
        return keys
    layout = str(recorded.pop())
    part = None if any(keys.has(name) for name in HEADS) else next((name for name in TEXT_PARTS if keys.has(name)), None)
    inside = keys.table(part) if part else keys.data
    key = SWITCH if SWITCH in inside else RECORD
    told = inside.get(key)
    if key == SWITCH:
        told = "interleaved" if told else "half"
    if told is not None:
        if told != layout:
            keys.error(
                f"{part}.{key}" if part else key,
                say("{told!r} here, but the weights record {layout!r}", told=told, layout=layout),
            )
            return keys
        return keys if part else keys.replaced({RECORD: layout})
    return keys.replaced({part: {**inside, RECORD: layout}} if part else {RECORD: layout})


def _with_sizes(keys: Keys, files: Mapping[str, Header]) -> Keys:
    """Sizes that the file leaves to the class, from the shapes of a text model's weights."""
    if any(keys.has(part) for part in TEXT_PARTS):
        return keys
    shapes = {name: shape for header in files.values() for name, shape in header.shapes.items()}
    layers = {int(match[1]) for name in shapes if (match := LAYER.search(name))}
    sizes = {"num_hidden_layers": len(layers)} if layers == set(range(len(layers))) else {}
    for pattern, axis, key in ((TABLES[0], 0, "max_position_embeddings"), (TABLES[1], 1, "hidden_size")):
        tables = [shape for name, shape in shapes.items() if re.search(pattern, name) and len(shape) == 2]
        if len(tables) == 1:
            sizes[key] = tables[0][axis]
    added = {}
    for key, size in sizes.items():
        name = keys.facts["names"].get(key, key)
        known = any(keys.has(spelling) for spelling in keys.spellings(name))
        if size and not known and name in keys.facts["defaults"]:
            added[name] = size
            if keys.facts["defaults"][name] != size:
                keys.note(name, say("not in the file: {size} by the shapes of the weights", size=size))
    return keys.replaced(added)


def with_recorded_layout(spec: PositionSpec, keys: Keys) -> PositionSpec:
    """The spec in the layout that rope_layout names, if it is in this section. Raises ConfigError for another word."""
    if keys.get(RECORD, None) is None:
        return spec
    layout = keys.text(RECORD, among=("half", "interleaved"))
    turned = {use: _turned(use, layout) for layer in spec.layers for use in layer.uses}
    if any(use.arguments != changed.arguments for use, changed in turned.items()):
        keys.warning(
            RECORD,
            say(
                "converted weights: channels pair as {layout}, unlike transformers' code for {family}; only a "
                "program that reads this layout may load them",
                layout=layout,
                family=keys.family,
            ),
        )
    layers = tuple(replace(layer, uses=tuple(turned[use] for use in layer.uses)) for layer in spec.layers)
    return replace(spec, layers=layers)


def _turned(use: Use, layout: str) -> Use:
    """The same rotation with the other pairs; a family that returns another layout than it reads is left as it is."""
    arguments: dict[str, Any] = dict(use.arguments)
    if use.rotation is None or arguments.get("layout") is None:
        return use
    if arguments["layout"] != layout and "returns" in arguments:
        return use
    return replace(use, arguments=tuple((arguments | {"layout": layout}).items())).with_said_by({"layout": RECORD})
