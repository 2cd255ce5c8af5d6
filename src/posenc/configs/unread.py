"""What a file says and its family's reader did not read: the report would be about another model.

A flat file of a family that keeps its sizes in sections, or of another model with the same model_type, gives sizes under
names that the class does not have. The defaults of the class would stand in their place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from posenc.configs.errors import ConfigError
from posenc.configs.keys import POSITIONAL, Keys
from posenc.configs.remote import REMOTE, TEXT_PARTS, code_of
from posenc.configs.say import say
from posenc.configs.spec import PositionSpec
from posenc.support.languages import Words

SIZES = {  # size of PositionSpec -> the usual names of its key, and what other names of it have in common
    "layers": ("num_hidden_layers num_layers n_layer n_layers num_transformer_layers", "layer|depth|block"),
    "n_heads": ("num_attention_heads num_heads n_head n_heads", r"^(?!.*(kv|key_value)).*head"),
    "d_model": ("hidden_size d_model n_embd n_embed dim model_dim", "hidden|d_model|embd|embed_dim|dim$|width"),
    "d_head": ("head_dim d_kv kv_channels d_head", "head_dim|d_kv|kv_channels|d_head"),
    "trained_length": (
        "max_position_embeddings n_positions n_ctx max_sequence_length max_seq_length max_seq_len seq_length "
        "max_context_length model_max_length max_trained_positions",
        "position|_ctx|seq_|context|max_.*len",
    ),
}
EVERY_SIZE = tuple(name for names, _ in SIZES.values() for name in names.split())


def note_unread(keys: Keys, name: str) -> None:
    """Warns of a positional key that was not read."""
    owner = _owner(keys)
    told = say("{owner}'s code does not read it", owner=owner) if owner else say("not read here")
    may = say("the model's own code") if keys.remote else code_of(keys)
    if owner and may and keys.family not in REMOTE:
        told = say("{told}; {code}, which is not read here, may", told=told, code=may)
    keys.warning(name, told)


def _owner(keys: Keys) -> str:
    """Whose code is known to read nothing else: "" for a type that is not known."""
    return keys.facts["class"] or ("" if keys.remote else keys.family)


def note_sections(keys: Keys) -> None:
    """Notes of parts of the model, sections with sizes, that were not read."""
    for name, value in keys.file.items():
        if name not in keys.read and _tells(value) and not POSITIONAL.search(name):  # note_unread has those
            keys.note(name, say("a part of the model that is not read"))


def _tells(value: Any) -> bool:
    """Whether it is a section with sizes or positional keys."""
    if not isinstance(value, Mapping):
        return False
    return any(key in EVERY_SIZE or POSITIONAL.search(str(key)) or _tells(inner) for key, inner in value.items())


def check_sizes(keys: Keys, spec: PositionSpec) -> None:
    """Warns of sizes of the file that were not read and that nothing in `spec` has.

    Raises ConfigError where `spec` has a default of the class in place of one.
    """
    for size, (names, alike) in SIZES.items():
        found = {_of(part, size) for _, part in spec.walk()} - {None, 0}
        for name in names.split():
            _check_text_part(keys, name, found, re.compile(alike))
            if not found or not _unread(keys, name) or keys.file[name] in found:
                continue
            _refuse_defaults(keys, spec, name, size, re.compile(alike))
            made = ", ".join(map(str, sorted(found)))
            keys.remark(
                "note" if size == "trained_length" else "warning",  # a tokenizer's length, or one that training never saw
                name,
                say("{owner}'s code does not read it; what it reads makes {found}", owner=owner, found=made)
                if (owner := _owner(keys))
                else say("not read here; what is read makes {found}", found=made),
            )


def check_flat(keys: Keys) -> None:
    """Raises ConfigError if the class reads its text model from a section that the file has not, and the file has sizes of
    it beside: whatever else is wrong would be wrong of the class's defaults."""
    section = next((name for name in TEXT_PARTS if keys.read.get(name) == "…" and not keys.has(name)), None)
    if section and (name := next((name for name in EVERY_SIZE if name != "dim" and _unread(keys, name)), None)):
        raise ConfigError(_elsewhere(keys, name, section))


def _elsewhere(keys: Keys, name: str, section: str) -> Words:
    return say(
        "{where}: {value} is not read: {owner} takes it from {section}, which is not in the file, and its "
        "defaults would stand for the file's sizes; move them into {section}, or read a file of the model that "
        "was converted for transformers",
        where=keys.where(name),
        value=keys.file[name],
        owner=keys.facts["class"] or keys.family,
        section=section,
    )


def _of(spec: PositionSpec, size: str) -> Any:
    return len(spec.layers) if size == "layers" else getattr(spec, size)


def _unread(keys: Keys, name: str) -> bool:
    """Whether the file has it as a whole number, under a name that neither the reader nor the class knows."""
    value, known = keys.file.get(name), keys.facts
    of_class = {*known["defaults"], *known["names"], *known["names"].values(), *known.get("legacy", ())}
    return type(value) is int and name not in keys.read and name not in of_class


def _check_text_part(keys: Keys, name: str, found: set[Any], alike: re.Pattern[str]) -> None:
    """Raises ConfigError if the class's default stands for a size that a section for text has, which is not read."""
    for section in TEXT_PARTS:
        inner = keys.file.get(section)
        size = inner.get(name) if isinstance(inner, Mapping) and section not in keys.read else None
        if type(size) is not int or size in found or not _by_default(keys, alike):
            continue
        told = say(
            "{where}: {value} is not read: the file's sizes are in {section}, which {family} does not have; give that "
            "section as a file of its own, or correct model_type",
            where=keys.where(f"{section}.{name}"),
            value=size,
            section=section,
            family=keys.family,
        )
        raise ConfigError(told)


def _by_default(keys: Keys, alike: re.Pattern[str]) -> str:
    """The key for such a size that the class's default stands for; "" where the file has it."""
    if any(alike.search(key) for key, read in keys.read.items() if read not in (None, "…") and keys.has(key)):
        return ""
    return next((key for key, origin in keys.origins.items() if origin.startswith("default of") and alike.search(key)), "")


def _refuse_defaults(keys: Keys, spec: PositionSpec, name: str, size: str, alike: re.Pattern[str]) -> None:
    """Raises ConfigError if the class's default stands for this size: that of a section, or of another key for it."""
    owner, where, value = keys.facts["class"] or keys.family, keys.where(name), keys.file[name]
    for part in spec.parts:
        assumed = keys.read.get(part.part) == "…" and not keys.has(part.part)
        if assumed and any(_of(one, size) for _, one in part.walk()):
            raise ConfigError(_elsewhere(keys, name, part.part))
    if key := _by_default(keys, alike):
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
