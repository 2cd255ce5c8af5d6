"""The classes of positional bugs that libraries have shipped: where each was seen, and what usually mends it.

A law that fails names its class by a key of BUGS. Links lead to public threads; a thread is an example of the class.
"""

from __future__ import annotations

from dataclasses import dataclass

from posenc.checking.say import say
from posenc.support.data_files import beside
from posenc.support.languages import Words


@dataclass(frozen=True)
class Bug:
    """A class of bugs: one table of bugs.toml, which says what its columns are."""

    title: Words
    threads: tuple[str, ...]
    remedy: Words


BUGS: dict[str, Bug] = {
    key: Bug(row["title"], tuple(f"https://github.com/{thread}" for thread in row.get("threads", ())), row["remedy"])
    for key, row in beside(__file__, say).items()
}
