"""Lists the entries whose Chinese page is missing or translates an earlier English text. It ends with 0 in any case.

src/posenc/encodings/alibi.zh.md: outdated; once it says what the English says, begin it with <!-- translates 1f3c9a07 -->
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

from posenc.catalogue.entry import PACKAGE, Entry
from posenc.catalogue.lookup import ENTRIES
from posenc.catalogue.option_descriptions import options_of


def digest(entry: Entry) -> str:
    """Of all English that its Chinese page translates, the docstring's descriptions of options included."""
    page = entry.page
    said = [words.en for words in (page.title, page.idea, page.breaks, page.differs, page.coordinates) if words]
    said += [*entry.used_by, *(f"{name} {words.en}" for name, words in options_of(entry).items())]
    return hashlib.sha256("\n".join(said).encode()).hexdigest()[:8]


def listed(entries: Iterable[Entry]) -> Iterator[str]:
    for entry in entries:
        twin, now = entry.page_file.with_suffix(".zh.md"), digest(entry)
        if entry.page.translates != now:
            state = "outdated; once it says what the English says," if twin.exists() else "missing;"
            yield f"{twin.relative_to(PACKAGE)}: {state} begin it with <!-- translates {now} -->"


if __name__ == "__main__":
    for line in listed(ENTRIES):
        print(line)
