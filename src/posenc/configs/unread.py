"""What a file says and its family's reader did not read: the report would be about another model.

A flat file of a family that keeps its sizes in sections, or of another model with the same model_type, gives sizes under
names that the class does not have. The defaults of the class would stand in their place.
"""

from __future__ import annotations

import re
from typing import Any

from posenc.configs.errors import ConfigError
from posenc.configs.keys import Keys
from posenc.configs.remote import code_of
from posenc.configs.say import say
from posenc.configs.spec import PositionSpec

SIZES = {  # size of PositionSpec -> the usual names of its key, and what other names of it have in common
    "layers": ("num_hidden_layers num_layers n_layer n_layers num_transformer_layers", "layer|depth|block"),
    "n_heads": ("num_attention_heads num_heads n_head n_heads", r"^(?!.*(kv|key_value)).*head"),
    "d_model": ("hidden_size d_model n_embd n_embed dim model_dim", "hidden|d_model|embd|embed_dim|dim$|width"),
    "d_head": ("head_dim d_kv kv_channels d_head", "head_dim|d_kv|kv_channels|d_head"),
    "trained_length": (
        "max_position_embeddings n_positions n_ctx max_sequence_length max_seq_length max_seq_len seq_length "
        "max_context_length",
        "position|_ctx|seq_|context|max_.*len",
    ),
}


def note_unread(keys: Keys, name: str) -> None:
    """Warns of a positional key that was not read."""
    owner, code = keys.facts["class"] or keys.family, "" if keys.remote else code_of(keys)
    told = say("{owner}'s code does not read it", owner=owner)
    keys.warning(name, say("{told}; {code}, which is not read here, may", told=told, code=code) if code else told)


def check_sizes(keys: Keys, spec: PositionSpec) -> None:
    """Warns of sizes of the file that were not read and that nothing in `spec` has.

    Raises ConfigError where `spec` has a default of the class in place of one.
    """
    for size, (names, alike) in SIZES.items():
        found = {_of(part, size) for _, part in spec.walk()} - {None, 0}
        for name in names.split():
            if not found or not _unread(keys, name) or keys.file[name] in found:
                continue
            _refuse_defaults(keys, spec, name, size, re.compile(alike))
            if size != "trained_length":
                keys.warning(
                    name,
                    say(
                        "{owner}'s code does not read it; what it reads makes {found}",
                        owner=keys.facts["class"] or keys.family,
                        found=", ".join(map(str, sorted(found))),
                    ),
                )


def _of(spec: PositionSpec, size: str) -> Any:
    return len(spec.layers) if size == "layers" else getattr(spec, size)


def _unread(keys: Keys, name: str) -> bool:
    """Whether the file has it as a whole number, under a name that neither the reader nor the class knows."""
    value, known = keys.file.get(name), keys.facts
    of_class = {*known["defaults"], *known["names"], *known["names"].values(), *known.get("legacy", ())}
    return type(value) is int and name not in keys.read and name not in of_class


def _refuse_defaults(keys: Keys, spec: PositionSpec, name: str, size: str, alike: re.Pattern[str]) -> None:
    """Raises ConfigError if the class's default stands for this size: that of a section, or of another key for it."""
    owner, where, value = keys.facts["class"] or keys.family, keys.where(name), keys.file[name]
    for part in spec.parts:
        assumed = keys.read.get(part.part) == "…" and not keys.has(part.part)
        if assumed and any(_of(one, size) for _, one in part.walk()):
            raise ConfigError(
                say(
                    "{where}: {value} is not read: {owner} takes it from {section}, which is not in the file, and its "
                    "defaults would stand for the file's sizes; move them into {section}, or read a file of the model that "
                    "was converted for transformers",
                    where=where,
                    value=value,
                    owner=owner,
                    section=part.part,
                )
            )
    if any(alike.search(key) for key, read in keys.read.items() if read not in (None, "…") and keys.has(key)):
        return
    for key, origin in keys.origins.items():
        if origin.startswith("default of") and alike.search(key):
            raise ConfigError(
                say(
                    "{where}: {value} is not read: {owner} has {key}, which is not in the file, and its default would "
                    "stand for it; rename the key, unless the file is of another model that has the type {family!r} too",
                    where=where,
                    value=value,
                    owner=owner,
                    key=key,
                    family=keys.family,
                )
            )
