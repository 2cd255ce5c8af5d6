"""For the API reference: lines of a docstring that describe options become a list. What is indented stays as it is."""

from __future__ import annotations

import re
from typing import Any

import griffe

LINE = re.compile(r"(\w+(?:, \w+)*)  +(\S.*)")


class Options(griffe.Extension):
    """`factor   the length wanted` becomes `- **factor**: the length wanted`."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)


def as_markdown(text: str) -> str:
    """The docstring with lists in the place of columns."""
    lines, before = list[str](), False
    for line in text.splitlines():
        match = LINE.fullmatch(line)
        if match:
            lines += [""] * (not before) + [f"- **{match[1]}**: {match[2]}"]
        elif before and line.startswith("    ") and line.strip():
            lines.append(f"  {line.strip()}")
            continue
        else:
            lines.append(line)
        before = match is not None
    return "\n".join(lines)
