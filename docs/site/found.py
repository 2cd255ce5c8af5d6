"""The index of `posenc list WORD` for the search of the site: theme/found.js looks words up in it as Python does."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from posenc.catalogue import index, lookup
from posenc.catalogue.methods import NOT_YET, groups


def found(topics: Iterable[dict[str, Any]] = ()) -> str:
    """A script that gives the page its index; a page of a folder on disk may load a script, but no JSON."""
    everything = data() | {"topics": list(topics)}
    return f"globalThis.posencIndex = {json.dumps(everything, ensure_ascii=False, separators=(',', ':'))};\n"


def data() -> dict[str, Any]:
    """Terms in the order in which they are found where they fit alike, and what is not an entry."""
    terms = sorted(lookup.every_term(), key=lambda term: term.order)
    missing = [
        {
            "is": sorted({index.fold(one) for one in (method.title, method.entry, *method.also)} - {""}),
            "title": method.title,
            "source": method.source,
            "instead": (method.instead or NOT_YET).as_dict(),
        }
        for _, methods in groups().values()
        for method in methods
        if lookup.entry_for(method) is None
    ]
    return {
        "entries": {entry.name: {"en": entry.title, "zh": entry.label.zh} for entry in lookup.ENTRIES},
        "called": sorted({index.fold(word) for entry in lookup.ENTRIES for word in index.called(entry)}),
        "terms": [(term.entry.name, term.written, term.role, term.group) for term in terms],
        "roles": index.ROLES,
        "whole": index.WHOLE,
        "missing": missing,
        "elsewhere": {index.fold(word): place for word, place in lookup.ELSEWHERE.items()},
        "free": sorted(index.attention_free()),
        "empty": index.EMPTY.pattern,
        "same": index.SAME,
        "version": index.VERSION.pattern,
        "any": index.ANY.pattern,
        "near": index.NEAR,
        "worse": index.WORSE,
        "limit": index.LIMIT,
    }
