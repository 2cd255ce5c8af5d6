"""The words of the report's page, in both languages."""

from __future__ import annotations

from posenc.configs.say import say
from posenc.support.data_files import beside
from posenc.support.languages import Words

_TABLES = beside(__file__, say)
LABELS: dict[str, Words] = _TABLES["labels"]
SCALINGS: dict[str, Words] = _TABLES["scalings"]


def scaling_name(kind: str) -> Words:
    """The name of a scaling for readers: that of its setting, or words for the function that computes it."""
    return SCALINGS.get(kind, Words(kind.rpartition(".")[2].replace("_", " ")))
