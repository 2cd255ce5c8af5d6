"""The methods of the literature, methods.toml: the entry of each, or the reason why there is none.

The site's page of methods is this table. A name that leads to no entry yet says so instead of leading somewhere else.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from posenc.catalogue.say import say
from posenc.support.data_files import beside
from posenc.support.languages import Words

NOT_YET = say("not here yet")


class Method(NamedTuple):
    """One row of methods.toml, which says what its columns are."""

    title: str
    source: str
    entry: str = ""
    also: tuple[str, ...] = ()
    instead: Words | None = None


@cache
def groups() -> dict[str, tuple[Words, tuple[Method, ...]]]:
    """The groups of the table: the heading and the methods of each."""
    return {
        name: (group["heading"], tuple(Method(**{**row, "also": tuple(row.get("also", ()))}) for row in group["methods"]))
        for name, group in beside(__file__, say).items()
    }
