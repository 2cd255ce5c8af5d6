"""The fixed look of every encoding: what it acts on is its colour, which of them it is its dashes.

                 solid        dashed            dotted      dash-dot: with random positions
    ink          NoPE
    red          sinusoidal   learned           FLOATER     one vector for each position
    blue         RoPE         xPos                          a turn
    teal         ALiBi        T5                            a bias by distance
    purple       Shaw         Transformer-XL                vectors by distance
    amber        CoPE                                       what the words say
    pink         a user's own, in their order

The colours keep apart for every common kind of colour blindness (CIE76 distance above 20 in all three simulations).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from posenc.bilingual import Words
from posenc.lab.experiment.arm import RANDOMIZED
from posenc.lab.findings.titles import title

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
DASHES: dict[str, tuple[float, ...]] = {"solid": (), "dashed": (7, 4), "dotted": (1.5, 4), "dashdot": (9, 3, 2, 3)}


class Look(NamedTuple):
    colour: str
    dash: str

    @property
    def classes(self) -> str:
        return " ".join(self)


FIXED = {
    "nope": Look("ink", "solid"),
    "sinusoidal": Look("red", "solid"),
    "learned": Look("red", "dashed"),
    "floater": Look("red", "dotted"),
    "rope": Look("blue", "solid"),
    "xpos": Look("blue", "dashed"),
    "alibi": Look("teal", "solid"),
    "t5": Look("teal", "dashed"),
    "shaw": Look("purple", "solid"),
    "transformer_xl": Look("purple", "dashed"),
    "cope": Look("amber", "solid"),
}
CHANGES = {
    "": Look("ink", "solid"),
    "interpolation": Look("amber", "dashed"),
    "ntk": Look("teal", "dotted"),
    "yarn": Look("blue", "solid"),
}


def look(arm: str, arms: Sequence[str]) -> Look:
    """`arms` are all of the experiment, which number a user's own."""
    encoding = arm.removesuffix(RANDOMIZED)
    if arm != encoding:
        return Look(look(encoding, [*arms, encoding]).colour, "dashdot")
    if encoding in FIXED:
        return FIXED[encoding]
    own = [name for name in dict.fromkeys(name.removesuffix(RANDOMIZED) for name in arms) if name not in FIXED]
    return Look("pink", ("solid", "dashed", "dotted")[own.index(encoding) % 3])


def label(arm: str) -> Words:
    """A title short enough to stand beside a curve."""
    encoding = arm.removesuffix(RANDOMIZED)
    en, zh = (name if len(name) <= LONGEST else name[: LONGEST - 1] + "…" for name in title(encoding))
    return Words(f"{en} + random", f"{zh}＋随机") if arm != encoding else Words(en, zh)


def sheet() -> str:
    """The style sheet of all of them."""

    def colours(palette: dict[str, str]) -> str:
        return " ".join(f".{name} {{ --k: {colour}; }}" for name, colour in palette.items())

    dashes = "\n".join(
        f".{name} .curve, svg.{name} .curve {{ stroke-dasharray: {' '.join(f'{length:g}' for length in lengths)}; }}"
        for name, lengths in DASHES.items()
        if lengths
    )
    return f"{colours(LIGHT)}\n@media (prefers-color-scheme: dark) {{ {colours(DARK)} }}\n{dashes}\n"
