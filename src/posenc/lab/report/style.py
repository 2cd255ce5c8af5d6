"""How a curve is drawn in files: the colour shows how position enters, the dashes distinguish encodings of one colour.

                 solid        dashed            dotted      dash-dot: with random positions
    ink          NoPE                                       no position
    red          sinusoidal   learned           FLOATER     one vector for each position
    blue         RoPE         xPos                          a rotation
    teal         ALiBi        T5                            a number for each distance
    purple       Shaw         Transformer-XL                vectors for each distance
    amber        CoPE                                       positions computed from the content
    pink         a user's own, in their order

The colours stay distinct for every common kind of colour blindness (CIE76 distance above 20 in all three simulations).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from posenc.catalogue import lookup
from posenc.catalogue.entry import Kind
from posenc.lab.experiment.arm import encoding_of
from posenc.pictures.plots.style import mix

COLOURS = {
    "ink": "#1d2129",
    "red": "#a8321a",
    "blue": "#2458c8",
    "teal": "#0a9070",
    "purple": "#4a1880",
    "amber": "#b08a1e",
    "pink": "#dc48b0",
}
HEAT = ("#dcefe9", "#f8e3b4", "#eb9a73", "#c44a4a", "#6d1030")  # good … bad
KINDS: dict[Kind, str] = {
    "none": "ink",
    "added": "red",
    "rotated": "blue",
    "biased": "teal",
    "relative": "purple",
    "contextual": "amber",
    "scaled": "blue",
    "tempered": "amber",
    "preset": "ink",
}


class Look(NamedTuple):
    """A name of COLOURS and a line style of matplotlib."""

    colour: str
    dash: str


def look(arm: str, arms: Sequence[str]) -> Look:
    """The style of an encoding. `arms` are all of the experiment; within a colour, dashes follow the catalogue's order."""
    encoding = encoding_of(arm)
    colour = _colour(encoding)
    if arm != encoding:
        return Look(colour, "-.")
    alike = {name for name in (encoding, *map(encoding_of, arms)) if _colour(name) == colour}
    known = [name for name in lookup.names() if name in alike]
    others = [name for name in dict.fromkeys(map(encoding_of, arms)) if name in alike - set(known)]
    return Look(colour, ("-", "--", ":")[[*known, *others].index(encoding) % 3])


def _colour(encoding: str) -> str:
    entry = lookup.BY_NAME.get(encoding)
    return KINDS[entry.kind] if entry else "pink"


def shaded(share: float) -> tuple[str, str]:
    """The background of a heat map's cell, from 0 (good) to 1 (bad), and a text colour of enough contrast."""
    return mix(HEAT, share), "#ffffff" if share > 0.55 else "#1d2129"
