"""YAML as an experiment needs it: each name once, and only values that every reader of YAML takes for the same.

    loads("{steps: 100, rate: 1e-3, words: [a, b]}")   names with numbers, text, true, false, null, lists, and names again
    dumps(value)                                       a text that `loads` reads as the same value

YAML 1.1 reads 1:30 as 90, 010 as 8, yes as true and 2024-01-01 as a date; YAML 1.2 reads none of them so. Where the two
differ, the value is refused and must be written out. Tags and merge keys are refused too. An alias counts as often as it
is used.
"""

from __future__ import annotations

import math
import re
from typing import Any, NoReturn

import yaml

from posenc.support.strict_json import MOST_DIGITS

LARGEST = 128 * 2**10  # bytes; PyYAML takes a second for them
DEEPEST, MOST = 32, 10_000  # levels, values
SHOWN = 40  # characters of a value in a message
TAG = "tag:yaml.org,2002:"
WORDS: dict[str, tuple[str, Any]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), ("null", None)),
    **dict.fromkeys(("true", "True", "TRUE"), ("bool", True)),
    **dict.fromkeys(("false", "False", "FALSE"), ("bool", False)),
}
WHOLE = re.compile(r"[-+]?(0|[1-9][0-9]*)")
REAL = re.compile(r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))([eE][-+]?[0-9]+)?")
OCTAL = re.compile(r"[-+]?0[oO]?[0-9_]+")
ENDLESS = re.compile(r"[-+]?\.(inf|nan)", re.IGNORECASE)
KINDS = ("str", "int", "float", "bool", "null", "timestamp", "merge", "value")
REMEDY = {
    "bool": "write true or false, or put text in quotes",
    "timestamp": "put text in quotes",
    "merge": "write the settings out",
}


def loads(text: str) -> Any:
    """The value of a text.

    Raises ValueError, one line that begins with the line of the text where there is one.
    """
    if len(text.encode("utf-8", "surrogatepass")) > LARGEST:
        raise ValueError(f"larger than {LARGEST // 2**10} KiB, which is too large for an experiment")
    try:
        node = yaml.compose(text.removeprefix("\ufeff"), Loader=_Loader)
    except RecursionError:
        raise ValueError(f"nested deeper than {DEEPEST} levels") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        message = " ".join(str(error.problem or error.context).split())
        raise ValueError(f"not YAML: line {mark.line + 1 if mark else 1}: {message}") from None
    except yaml.reader.ReaderError as error:
        raise ValueError(
            f"not YAML: the character #x{error.character:04x}, number {error.position + 1}, is not allowed"
        ) from None
    return None if node is None else _Values().value(node)


class _Loader(yaml.SafeLoader):
    """Ends at the bracket that is too deep: PyYAML compares each open bracket with all others, and then recurses."""

    def fetch_flow_collection_start(self, token: Any) -> None:
        if self.flow_level > DEEPEST:
            raise ValueError(f"line {self.line + 1}: nested deeper than {DEEPEST} levels")
        super().fetch_flow_collection_start(token)


class _Values:
    """Python's values of nodes, by where they stand. Counts them, so that aliases of aliases end at MOST."""

    def __init__(self) -> None:
        self.count = 0

    def value(self, node: yaml.Node, *where: str) -> Any:
        self.count += 1
        if self.count > MOST:
            _refuse(node, f"more than {MOST:,} values, aliases counted as often as they are used; an experiment has fewer")
        if len(where) > DEEPEST:
            _refuse(node, f"nested deeper than {DEEPEST} levels")
        if isinstance(node, yaml.ScalarNode):
            return _scalar(node, *where)
        if node.tag not in (f"{TAG}map", f"{TAG}seq"):
            _refuse(node, f"the tag {_short(node.tag)} is not read; leave it out", *where)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, *where, str(n)) for n, item in enumerate(node.value)]
        result: dict[str, Any] = {}
        for key, child in node.value:
            name = _scalar(key, *where) if isinstance(key, yaml.ScalarNode) else None
            if not isinstance(name, str):
                shown = _short(key.value) if isinstance(key, yaml.ScalarNode) else "a list or names"
                _refuse(key, f"expected a name before the colon, got {shown}", *where)
            if name in result:
                _refuse(key, f"the name {name[:SHOWN]!r} occurs twice; keep one", *where)
            result[name] = self.value(child, *where, name)
        return result


def _scalar(node: yaml.ScalarNode, *where: str) -> Any:
    text, told = str(node.value), node.tag.removeprefix(TAG)  # `told`: what YAML 1.1 takes it for, or a tag of the file
    if told not in KINDS:
        _refuse(node, f"the tag {_short(node.tag)} is not read; leave it out", *where)
    if any("\ud800" <= character <= "\udfff" for character in text):
        _refuse(node, "half of a surrogate pair, which is no character", *where)
    if node.style is not None:  # quoted, or a block of text
        return text
    kind, value = _plain(text)
    if ENDLESS.fullmatch(text) or (kind == "float" and not math.isfinite(value)):
        _refuse(node, f"expected a finite number, got {_short(text)}", *where)
    if (kind != told and (kind, told) != ("float", "str")) or OCTAL.fullmatch(text):
        remedy = REMEDY.get(told, "write the number in plain digits, or put text in quotes")
        _refuse(node, f"{_short(text)} means different things to readers of YAML; {remedy}", *where)
    return value


def _plain(text: str) -> tuple[str, Any]:
    """The kind and value of a scalar without quotes."""
    if text in WORDS:
        return WORDS[text]
    if WHOLE.fullmatch(text):
        return ("int", int(text)) if len(text) <= MOST_DIGITS else ("float", math.inf)
    if REAL.fullmatch(text):
        return "float", float(text)
    return "str", text


def _refuse(node: yaml.Node, message: str, *where: str) -> NoReturn:
    place = f"{_short('.'.join(where))}: " if where else ""
    raise ValueError(f"line {node.start_mark.line + 1}: {place}{message}")


def _short(value: object) -> str:
    text = " ".join(str(value).replace(TAG, "!!").split())
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"


class _Writer(yaml.SafeDumper):
    """Quotes text that `loads` would not read as text; PyYAML itself quotes what YAML 1.1 would not."""


def _text(writer: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    looks_like_text = _plain(text)[0] == "str" and not OCTAL.fullmatch(text)
    return writer.represent_scalar(f"{TAG}str", text, None if looks_like_text else "'")


_Writer.add_representer(str, _text)


def dumps(value: Any) -> str:
    """The text from which `loads` reads the value again."""
    return yaml.dump(value, Dumper=_Writer, sort_keys=False, allow_unicode=True, width=120)
