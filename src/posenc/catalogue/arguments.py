"""What an argument of another library is called here: `theta` is `base`, `num_heads` is `n_heads`."""

from __future__ import annotations

from collections.abc import Collection

from posenc.support.data_files import beside

MEANT: dict[str, list[str]] = beside(__file__)
"""Of an argument here: what other libraries call it."""


def right_name(word: str, takes: Collection[str]) -> str:
    """'; did you mean …?' for the arguments in `takes` that a word means or is near, the best first; '' for none."""
    meant = [name for name, words in MEANT.items() if name in takes and word.lower() in words]
    if not meant:
        from rapidfuzz import fuzz, process

        near = process.extractOne(word.lower(), list(takes), scorer=fuzz.ratio, score_cutoff=70)
        meant = [near[0]] if near else []
    return f"; did you mean {' or '.join(map(repr, meant))}?" if meant else ""
