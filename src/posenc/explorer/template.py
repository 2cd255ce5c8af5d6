"""Programs that views print, from a file that the page reads too: shift.txt beside shift.py.

$base    a value: a text as it is, anything else as Python writes it
#: rope  begins a part that is printed only where it is named; "#:" alone ends it
"""

from __future__ import annotations

import re
from pathlib import Path
from string import Template


def program(module: str, *parts: str, **values: object) -> str:
    """The program of a view, by its `__file__`, with the named parts in the order of the file."""
    first, *rest = re.split(r"^#: ?(.*)\n", Path(module).with_suffix(".txt").read_text("utf-8"), flags=re.MULTILINE)
    named = zip(rest[::2], rest[1::2], strict=True)
    chosen = first + "".join(lines for name, lines in named if name in ("", *parts))
    written = {name: value if isinstance(value, str) else repr(value) for name, value in values.items()}
    return Template(chosen).substitute(written).rstrip("\n")
