"""One visual language for every picture: blue is -1, white is 0, red is +1.

The two ends differ in hue for every common kind of colour blindness (no red against green) and are equally dark, so that
the sign is the hue and the size is the darkness. Angles use a ring with the same meaning of blue and red: white at 0, red
where the sine is positive, dark at π, blue where it is negative.
"""

from __future__ import annotations

import functools

DIVERGING = ("#16448e", "#3a7abe", "#92bce0", "#f7f7f7", "#f4ac92", "#d3544a", "#941230")
CYCLIC = ("#f7f7f7", "#f4ac92", "#cd4d46", "#702c42", "#302c3a", "#264276", "#3a7abe", "#92bce0", "#f7f7f7")
SEQUENCE = ("#2a62b0", "#3f88c8", "#49a5a0", "#96be5a", "#e6b43c")
LINES = ("#16448e", "#cd4d46", "#e09e28", "#3e9690", "#7c5ca0", "#787878")
BRIGHT = ("#4a8fdc", "#e0625a", "#e0a030", "#46b4aa", "#a587cd", "#9a9fa8")  # lines on a dark or a light terminal
PAIRED = ("#16448e", "#78a8d6", "#c4583e", "#eeb284")  # two kinds, two shades of each
INK = "#2c3038"
MUTED = "#7d828c"
GRID = "#e4e6ea"
NOTHING = "#ecedf0"


def mix(anchors: tuple[str, ...], at: float) -> str:
    """The colour at 0 … 1 along equally spaced anchors."""
    return _step(anchors, round(min(max(at, 0.0), 1.0) * 512))


@functools.cache
def _step(anchors: tuple[str, ...], step: int) -> str:
    place = step / 512 * (len(anchors) - 1)
    left = min(int(place), len(anchors) - 2)
    ends = zip(bytes.fromhex(anchors[left][1:]), bytes.fromhex(anchors[left + 1][1:]), strict=True)
    return "#" + bytes(round(a + (z - a) * (place - left)) for a, z in ends).hex()


def line_colour(number: int, of: int, few: tuple[str, ...] = LINES) -> str:
    """Distinct colours for a few lines, an ordered ramp for many (one line per head)."""
    return few[number] if of <= len(few) else mix(SEQUENCE, number / (of - 1))
