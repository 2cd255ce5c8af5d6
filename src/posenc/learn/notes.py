"""The founding notes, five Chinese articles: their files, and the comparison of a printed number with the computed one."""

from __future__ import annotations

from typing import Literal

from posenc.support.checked import checked

FILES = {
    "000": "000_21bce972ed406ee5.txt",
    "001": "001_97b78477df31d8b2.txt",
    "002": "002_64b37e4f702eae30.txt",
    "003": "003_ec4e7f2e481be38a.txt",
    "004": "004_95d627aa5f1ad0aa.txt",
}
Comparison = Literal["same", "truncated", "different"]


@checked
def number(note: str) -> str:
    """The number of a note given by number or by file name. Raises ValueError for an unknown note."""
    for key, file in FILES.items():
        if note in (key, file):
            return key
    raise ValueError(f"note: expected one of {', '.join(FILES)}, got {note!r}")


@checked
def compare(printed: str, right: float) -> Comparison:
    """Whether `printed` is `right` rounded to the printed digits (same), cut off there (truncated), or different.

    >>> compare("0.9998", 0.99980), compare("0.9999", 0.999998), compare("0.38", 0.36)
    ('same', 'truncated', 'different')
    """
    unit = 10.0 ** -len(printed.partition(".")[2])
    try:
        shown = float(printed)
    except ValueError:
        raise ValueError(f"printed: expected a number in decimal digits such as '0.38', got {printed!r}") from None
    if abs(shown - right) <= unit / 2 * (1 + 1e-9):
        return "same"
    cut = shown * right >= 0 and 0 <= abs(right) - abs(shown) < unit
    return "truncated" if cut else "different"
