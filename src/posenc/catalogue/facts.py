"""The facts at the head of a page, below its title, a line for each:

    # ALiBi

    - kind: biased
    - published: 2021-08
    - formula: q·k - m|i-j|
    - class: ALiBi
    - used by: BLOOM; MPT

They are the fields of Entry, which says what each means. Several values are separated by "; ", and a line that begins with
two spaces continues the one before. The file's name is the entry's name and the title its title. Importing this module does
not import torch.
"""

from __future__ import annotations

import ast
import dataclasses
import re
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from posenc.catalogue.entry import Entry
from posenc.support.checks import shown

HEAD = re.compile(r"# (.+)\n+((?:(?:- |  ).*\n)*)\s*")
FACT = re.compile(r"- ([a-z ]+): (\S.*)", re.DOTALL)
DATE = re.compile(r"20\d\d-(0[1-9]|1[0-2])")


def entry_in(page: Path) -> Entry:
    """The entry that a page's head tells. Raises ValueError, naming the file, for a fact that is unknown, twice, wrong or
    missing."""
    head = page.read_text(encoding="utf-8").partition("\n## ")[0] + "\n"
    if (match := HEAD.fullmatch(head)) is None:
        raise ValueError(f"{page}: expected '# TITLE', an empty line and lines '- FACT: VALUE', got {shown(head)}")
    if not match[2]:
        refuse_python(page.with_suffix(".py"))
    facts = dict[str, Any]()
    for line in re.findall(r".+(?:\n  .+)*", match[2]):
        if (written := FACT.fullmatch(line)) is None:
            raise ValueError(f"{page}: expected '- FACT: VALUE' below the title, got {shown(line)}")
        fact, value = written[1], written[2].replace("\n  ", "\n")
        if fact not in known():
            raise ValueError(f"{page}: unknown fact {shown(fact)}; known: {', '.join(known())}")
        if known()[fact] in facts:
            raise ValueError(f"{page}: the fact {shown(fact)} stands twice; write it once")
        facts[known()[fact]] = _value(page, fact, value)
    if missing := [fact for fact, field in known().items() if field in _needed() and field not in facts]:
        raise ValueError(f"{page}: expected a line '- {missing[0]}: …' below the title, got none")
    return Entry(name=page.stem, title=match[1], **facts)


def lines_of(fields: dict[str, Any]) -> str:
    """The lines that tell fields of an entry."""
    return "\n".join(f"- {fact}: {_written(fields[field])}" for fact, field in known().items() if fields.get(field))


def refuse_python(file: Path) -> None:
    """Raises ValueError for a file that ends with `ENTRY = Entry(…)`, and prints the lines that its page has instead."""
    if not file.exists() or "\nENTRY = " not in (text := file.read_text(encoding="utf-8")):
        return
    given = ast.walk(ast.parse(text.partition("\nENTRY = ")[2]))
    fields = {node.arg: ast.literal_eval(node.value) for node in given if isinstance(node, ast.keyword) and node.arg}
    title = fields.get("title", file.stem)
    raise ValueError(
        f"{file}: expected the facts at the head of {file.stem}.md, got ENTRY = Entry(…); delete ENTRY and its import, and "
        f"begin {file.stem}.md with\n\n# {title}\n\n{lines_of(fields)}"
    )


@cache
def known() -> dict[str, str]:
    """The facts, in the order in which a head lists them, and the field of Entry that each fills."""
    first = ("kind", "published", "formula", "class_name", "file", "builder")
    last = ("also_called", "used_by")
    fields = [field.name for field in dataclasses.fields(Entry) if field.name not in ("name", "title", *first, *last)]
    return {field.removesuffix("_name").replace("_", " "): field for field in (*first, *fields, *last)}


@cache
def _needed() -> frozenset[str]:
    absent = dataclasses.MISSING
    return frozenset(
        field.name for field in dataclasses.fields(Entry) if field.default is absent and field.default_factory is absent
    )


@cache
def _types() -> dict[str, Any]:
    return get_type_hints(Entry)


def _value(page: Path, fact: str, text: str) -> Any:
    expected = _types()[known()[fact]]
    origin, parts = get_origin(expected), get_args(expected)
    if origin is tuple:
        return tuple(_one(page, fact, parts[0], value) for value in text.split("; "))
    if origin is dict:
        pairs = [value.partition("=") for value in text.split("; ")]
        return {name: _one(page, fact, parts[1], value) for name, _, value in pairs}
    return _one(page, fact, expected, text)


def _one(page: Path, fact: str, expected: Any, text: str) -> Any:
    allowed = get_args(expected) if get_origin(expected) is Literal else {bool: ("yes",)}.get(expected)
    if allowed and text not in allowed:
        raise ValueError(f"{page}: {fact}: expected {' or '.join(allowed)}, got {shown(text)}")
    if expected is int and not text.isdecimal():
        raise ValueError(f"{page}: {fact}: expected a whole number, got {shown(text)}")
    if fact == "published" and not DATE.fullmatch(text):
        raise ValueError(f"{page}: {fact}: expected a year and a month such as 2017-06, got {shown(text)}")
    return True if expected is bool else int(text) if expected is int else text


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return "yes"
    if isinstance(value, dict):
        return "; ".join(f"{name}={said}" for name, said in value.items())
    return "; ".join(value) if isinstance(value, tuple) else str(value).replace("\n", "\n  ")
