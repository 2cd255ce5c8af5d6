"""A section of a configuration, read key by key: values are checked, and what was read, and where it came from, is
recorded."""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from copy import copy
from importlib import resources
from typing import Any

from posenc.configs.errors import ConfigError, shortened
from posenc.configs.say import say
from posenc.configs.spec import Grade, Remark
from posenc.support.languages import Words

MISSING: Any = object()
LONGEST = 150  # characters of a key in a remark
POSITIONAL = re.compile(
    r"rope|rotary|position_|_position|alibi|theta|relative_att|rel_pos|pos_emb|sinusoid|no_rope|nope|_ntk|yarn|max_distance|dual_chunk"
    r"|is_causal|causal_attn|bidirectional|^sliding_window$|attention_window"
)
ROPE = ("rope_scaling", "rope_parameters")
MOST = {  # sizes beyond are slips
    "hash_buckets": 2**20,  # rows of a table of characters, not distances
    "buckets|pos_bins": 2**9,
    "layer|depth|heads|n_head|head_count|blocks|block_count": 2**14,
    "hidden|d_model|dim|embd|width|d_kv": 2**22,
    "": 2**36,
}


@functools.cache
def facts() -> dict[str, dict[str, Any]]:
    """The defaults of each configuration class of transformers, of what only its next release has, and of each class of
    diffusers' transformers (all generated)."""
    classes: dict[str, dict[str, Any]] = {}
    for name in ("defaults.json", "defaults_newer.json", "defaults_diffusers.json"):
        classes |= json.loads(resources.files("posenc.configs").joinpath(name).read_text(encoding="utf-8"))
    return classes


class Keys:
    """One section of a configuration.

    A key is looked up in the file, under the names that its class's constructor takes for it, its own, and those of the
    class's attribute_map; then among the class's defaults.
    `said_by(name)` tells which of them it was. Values are not converted: a string is not a number.
    """

    def __init__(self, data: Mapping[str, Any], family: str, path: str = "", *, defaults: bool = False) -> None:
        self.data, self.family, self.path, self.base_may_be_default = dict(data), family, path, defaults
        self.file = dict(data)  # the file itself, which remarks are about; readers change `data` only
        self.facts = facts().get(family, {"class": "", "names": {}, "defaults": {}, "parts": {}, "base": None})
        self.read: dict[str, Any] = {}
        self.origins: dict[str, str] = {}
        self.remarks: list[Remark] = []
        self.remote = False  # whether the code that reads the file is the model's own, not transformers'

    # Reading.

    def get(self, name: str, default: Any = MISSING) -> Any:
        """The value of a key.

        Raises ConfigError if it is missing, has no default in the class and `default` is not given.
        """
        spellings = self.spellings(name)
        for key in spellings:
            if self.data.get(key) is not None:
                self.read |= {other: self.data[other] for other in spellings if self.data.get(other) is not None}
                self.origins[name] = key
                return self.data[key]
        null = [key for key in spellings if key in self.data]  # a null in the file is no default of the class
        for key in (name, self.facts["names"].get(name, name)) if not null else ():
            if self.facts["defaults"].get(key) is not None:
                self.origins[name] = f"default of {self.facts['class']}"
                return self.facts["defaults"][key]
        self.read |= dict.fromkeys(null)
        if default is MISSING:
            owner, where = self.facts["class"] or self.family, self.where(name)
            without = say("{where}: missing, and {owner} has no default for it", where=where, owner=owner)
            raise ConfigError(without if owner else say("{where}: missing", where=where))
        self.origins[name] = "not in the file"
        return default

    def spellings(self, name: str) -> list[str]:
        """The names under which the class takes a key; the first that a file has wins."""
        names, legacy = self.facts["names"], self.facts.get("legacy", {})
        real = names.get(name, name)
        aliases = [new for new, now in names.items() if now == real and new != real]
        return [*(old for old, now in legacy.items() if now == real), *aliases, real]

    def whole(self, name: str, default: Any = MISSING, *, least: int = 1) -> Any:
        """A whole number from `least`."""
        value = self.get(name, default)
        if value is default:
            return value
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ConfigError(f"{self.spelt(name)}: expected a whole number from {least}, got {_shown(value)}")
        most = _most(name)
        if value > most:
            raise ConfigError(f"{self.spelt(name)}: {value} is larger than in any model; expected at most {most}")
        return value

    def number(self, name: str, default: Any = MISSING, *, positive: bool = True) -> Any:
        """A finite number, above zero unless positive=False."""
        value = self.get(name, default)
        if value is default:
            return value
        ok = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
        if not ok or (positive and value <= 0):
            raise ConfigError(f"{self.spelt(name)}: expected a {'positive ' * positive}number, got {_shown(value)}")
        return float(value)

    def flag(self, name: str, default: Any = MISSING) -> Any:
        value = self.get(name, default)
        if value is not default and not isinstance(value, bool):
            raise ConfigError(f"{self.spelt(name)}: expected true or false, got {_shown(value)}")
        return value

    def text(self, name: str, default: Any = MISSING, *, among: Sequence[str] = ()) -> Any:
        value = self.get(name, default)
        if value is default:
            return value
        if not isinstance(value, str) or (among and value not in among):
            expected = f"one of {', '.join(map(repr, among))}" if among else "a string"
            raise ConfigError(f"{self.spelt(name)}: expected {expected}, got {_shown(value)}")
        return value

    def numbers(self, name: str, default: Any = MISSING, *, length: int | None = None) -> Any:
        """A list of finite numbers, as a tuple."""
        value = self.get(name, default)
        if value is default:
            return value
        fits = isinstance(value, (list, tuple)) and all(
            isinstance(v, (int, float)) and not isinstance(v, bool) and math.isfinite(v) for v in value
        )
        if not fits or (length is not None and len(value) != length):
            many = "numbers" if length is None else f"{length} numbers"
            raise ConfigError(f"{self.spelt(name)}: expected a list of {many}, got {_shown(value)}")
        return tuple(value)

    def wholes(self, name: str, default: Any = MISSING, *, length: int | None = None, least: int = 1) -> Any:
        """A list of whole numbers from `least`, as a tuple."""
        value = self.numbers(name, default, length=length)
        if value is default:
            return value
        most = _most(name)
        for n in value:
            if not isinstance(n, int) or not least <= n <= most:
                raise ConfigError(f"{self.spelt(name)}: expected whole numbers from {least} to {most}, got {_shown(n)}")
        return value

    def names(self, name: str, default: Any = MISSING, *, length: int | None = None) -> Any:
        """A list of strings, as a tuple."""
        value = self.get(name, default)
        if value is default:
            return value
        if not isinstance(value, (list, tuple)) or not all(isinstance(v, str) for v in value):
            raise ConfigError(f"{self.spelt(name)}: expected a list of names, got {_shown(value)}")
        if length is not None and len(value) != length:
            count = [key for key, value_read in self.read.items() if "layer" in key and value_read == length]
            raise ConfigError(
                f"{self.spelt(name)}: expected {length} names, one for each of "
                f"{', '.join(count) or 'the layers'}, got {len(value)}"
            )
        return tuple(value)

    def table(self, name: str) -> dict[str, Any]:
        """A JSON object, empty if missing."""
        value = self.get(name, {})
        if not isinstance(value, Mapping):
            raise ConfigError(f"{self.spelt(name)}: expected an object, got {_shown(value)}")
        return dict(value)

    def section(self, name: str, family: str | None = None) -> Keys:
        """The configuration inside: text_config, vision_config, …; the class's default if the file has none.

        `family` is its model type if neither the file nor the class gives one.
        """
        inner = self.data.get(name)
        if inner is not None and not isinstance(inner, Mapping):
            raise ConfigError(f"{self.where(name)}: expected an object, got {_shown(inner)}")
        assumed = self.facts["parts"].get(name, {})
        inside = dict(inner) if inner is not None else dict(assumed)
        model_type = inside.get("model_type") or assumed.get("model_type") or family
        if not isinstance(model_type, str):
            raise ConfigError(f"{self.where(name)}.model_type: missing; it names the kind of model of this part")
        if name in self.facts.get("fixed", ()) and model_type != assumed["model_type"]:
            fixed = assumed["model_type"]
            told = say("{model_type!r} is not read: this part is always {assumed}", model_type=model_type, assumed=fixed)
            self.note(f"{name}.model_type", told)
            model_type = inside["model_type"] = fixed
        self.read[name] = "…"
        about_base: dict[str, Any] = {}
        if inner is None:
            self.note(
                name, say("not in the file: {owner} assumes {model_type}", owner=self.facts["class"], model_type=model_type)
            )
            owner, base = self.facts["class"], (inside.get("rope_parameters") or {}).get("rope_theta")
            if not self.base_may_be_default:  # a base that the file does not say is refused
                inside.pop("rope_parameters", None)
                about_base = {} if base is None else {"base": base, "base_of": owner}
            elif base is not None:
                self.note(f"{name}.rope_theta", say("missing: {owner} assumes {assumed:.10g}", owner=owner, assumed=base))
        part = Keys(inside, model_type, self.where(name), defaults=self.base_may_be_default)
        part.facts = part.facts | about_base
        part.file = part.file if name in self.file else {}
        return part

    def has(self, name: str) -> bool:
        """Whether the file itself has it."""
        return self.data.get(name) is not None

    def replaced(
        self,
        data: Mapping[str, Any] | None = None,
        *,
        without: Collection[str] = (),
        facts: Mapping[str, Any] | None = None,
    ) -> Keys:
        """The same section with other content: `without` some keys, then with those of `data`; `facts` about the class.

        Reads and remarks are recorded with this section too.
        """
        changed = copy(self)
        changed.data = {key: value for key, value in self.data.items() if key not in without} | dict(data or {})
        changed.facts = self.facts | dict(facts or {})
        return changed

    def of_family(self, family: str) -> Keys:
        """The same section read as one of another model type; remarks are recorded with this section too."""
        changed = Keys(self.data, family, self.path, defaults=self.base_may_be_default)
        changed.file, changed.remarks, changed.remote = self.file, self.remarks, self.remote
        return changed

    # Telling.

    def where(self, name: str) -> str:
        return f"{self.path}.{name}".strip(".")

    def spelt(self, name: str) -> str:
        """The key as the file spells it, with its section."""
        origin = self.origins.get(name, name)
        return self.where(origin if origin in self.data else name)

    def said_by(self, name: str) -> str:
        """The key with its section, or the source of its default. Only for names that were read."""
        origin = self.origins[name]
        return self.where(origin) if origin in self.data else origin

    def note(self, key: str, words: Words) -> None:
        self.remark("note", key, words)

    def warning(self, key: str, words: Words) -> None:
        self.remark("warning", key, words)

    def error(self, key: str, words: Words) -> None:
        self.remark("error", key, words)

    def remark(self, grade: Grade, key: str, words: Words) -> None:
        """Adds a remark, under the name that the file has for the key.

        Of keys that the file does not have, only notes and what is missing carry the name.
        """
        named = self._in_file(key)
        if named is None:
            named = key if grade == "note" or "missing" in words.en else ""
        where = self.where(named) if named else self.path
        finding = Remark(grade, where if len(where) <= LONGEST else where[:LONGEST] + "…", shortened(words))
        if finding not in self.remarks:
            self.remarks.append(finding)

    def _in_file(self, key: str) -> str | None:
        """The key, or the name in the file for its first part."""
        first, dot, rest = key.partition(".")
        same = [first, *self.spellings(first), *(ROPE if first in ROPE else ())]
        held = next((name for name in same if name in self.file), None)
        if held is None and key in self.file:  # keys of GGUF files have dots
            return key
        return None if held is None else f"{held}{dot}{rest}"

    def unread(self) -> list[str]:
        """Keys of the file that look positional and were not read; a window that is not in use says nothing."""
        off = {"sliding_window"} if self.data.get("use_sliding_window") is False else set()
        named = (key for key in self.data if POSITIONAL.search(key) and key not in off)
        return [key for key in named if key not in self.read and self.data[key] is not None]


def _most(name: str) -> int:
    return next(limit for words, limit in MOST.items() if re.search(words, name))


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else text[:57] + "…"
