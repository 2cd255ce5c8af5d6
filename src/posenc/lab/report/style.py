"""How a curve is drawn: the colour shows how position enters, the dashes distinguish encodings of one colour.

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
from posenc.lab.experiment.arm import ABACUS, DROPPED, RANDOMIZED, encoding_of
from posenc.lab.experiment.change import DROP, Change
from posenc.lab.findings.titles import title
from posenc.lab.say import say
from posenc.pictures.plots.style import mix
from posenc.support.languages import Words, joined

LONGEST = 16  # letters of a label
LIGHT = {
    "ink": "#1d2129",
    "red": "#a8321a",
    "blue": "#2458c8",
    "teal": "#0a9070",
    "purple": "#4a1880",
    "amber": "#b08a1e",
    "pink": "#dc48b0",
}
DARK = {
    "ink": "#f2f3f5",
    "red": "#dc6a50",
    "blue": "#86aefc",
    "teal": "#2bcf98",
    "purple": "#b04cf5",
    "amber": "#eab31a",
    "pink": "#cc5aa6",
}
HEAT = ("#dcefe9", "#f8e3b4", "#eb9a73", "#c44a4a", "#6d1030")  # good … bad
DASHES: dict[str, tuple[float, ...]] = {"solid": (), "dashed": (7, 4), "dotted": (1.5, 4), "dashdot": (9, 3, 2, 3)}


class Look(NamedTuple):
    colour: str
    dash: str

    @property
    def classes(self) -> str:
        return " ".join(self)


COLOURS: dict[Kind, str] = {
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
CHANGES = {
    "": Look("ink", "solid"),
    "interpolation": Look("amber", "dashed"),
    "ntk": Look("teal", "dotted"),
    "ntk_by_parts": Look("teal", "dashdot"),
    "yarn": Look("blue", "solid"),
    "self_extend": Look("purple", "dashdot"),
    DROP: Look("red", "solid"),
}
SHORT = {RANDOMIZED: say(" + random"), ABACUS: say(" + Abacus"), DROPPED: say(", dropped", context="label")}
FIXED_FACTOR = {"solid": "dashed", "dashed": "dotted", "dotted": "dashdot", "dashdot": "solid"}


def look_of_change(word: str) -> Look:
    """The style of a change after training; with a fixed factor, or trained on, the colour of its method, other dashes."""
    change = Change.parse(word) if word else None
    look = CHANGES[change.method if change else ""]
    return look if change is None or change.follows_length else look._replace(dash=FIXED_FACTOR[look.dash])


def look(arm: str, arms: Sequence[str]) -> Look:
    """The style of an encoding. `arms` are all of the experiment; within a colour, dashes follow the catalogue's order."""
    encoding = encoding_of(arm)
    colour = _colour(encoding)
    if arm != encoding:
        return Look(colour, "dashdot")
    alike = {name for name in (encoding, *map(encoding_of, arms)) if _colour(name) == colour}
    known = [name for name in lookup.names() if name in alike]
    others = [name for name in dict.fromkeys(map(encoding_of, arms)) if name in alike - set(known)]
    return Look(colour, ("solid", "dashed", "dotted")[[*known, *others].index(encoding) % 3])


def _colour(encoding: str) -> str:
    entry = lookup.BY_NAME.get(encoding)
    return COLOURS[entry.kind] if entry else "pink"


def label(arm: str) -> Words:
    """A title short enough for the label of a curve."""
    encoding = encoding_of(arm)
    en, zh = (name if len(name) <= LONGEST else name[: LONGEST - 1] + "…" for name in title(encoding).both())
    return joined((Words(en, zh), SHORT.get(arm.removeprefix(encoding), Words(""))), "", "")


def shaded(share: float) -> tuple[str, str]:
    """The background of a heat map's cell, from 0 (good) to 1 (bad), and a text colour of enough contrast."""
    return mix(HEAT, share), "#ffffff" if share > 0.55 else "#1d2129"


def sheet() -> str:
    """The style sheet of all curves."""

    def colours(palette: dict[str, str]) -> str:
        return " ".join(f".{name} {{ --k: {colour}; }}" for name, colour in palette.items())

    dashes = "\n".join(
        f".{name} .curve, svg.{name} .curve {{ stroke-dasharray: {' '.join(f'{length:g}' for length in lengths)}; }}"
        for name, lengths in DASHES.items()
        if lengths
    )
    return f"{colours(LIGHT)}\n@media (prefers-color-scheme: dark) {{ {colours(DARK)} }}\n{dashes}\n"
