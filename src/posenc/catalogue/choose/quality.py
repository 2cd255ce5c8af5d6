"""What the lab measured of an entry on text: bits at the trained length and beyond, from the extract that is shipped."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from posenc.catalogue import measured
from posenc.catalogue.entry import Start
from posenc.catalogue.say import say
from posenc.support.languages import Words

TASKS = {True: "language_model", False: "masked_language_model"}
CHANGED = {
    "linear": "interpolation",
    "ntk": "ntk",
    "yarn": "yarn",
}  # entries, and what the lab calls them on a trained RoPE
LOST = 0.5  # bits: a loss beyond which a length is no longer reached


class Quality(NamedTuple):
    """bits: at multiples of the trained length; factor: the largest multiple that loses less than LOST; tested: of all."""

    bits: dict[float, float]
    factor: float
    tested: float
    measure: Words
    converged: bool  # whether the training loss had stopped falling

    def at(self, factor: float) -> float:
        """Bits at the largest measured multiple up to `factor`."""
        return self.bits[max(multiple for multiple in self.bits if multiple <= factor)]

    def says(self, factor: float) -> Words:
        """The figures, at the trained length and at the one wanted or the largest that was tested."""
        far = max(multiple for multiple in self.bits if multiple <= factor)
        beyond = "" if far == 1 else say(", {bits:.2f} at {far:g} ×", bits=self.bits[far], far=far)
        note = say("small models, 3 seeds")
        if not self.converged:
            note = say("{note}; still improved at the end of training", note=note)
        return say(
            "{measure}: {bits:.2f} bits at the trained length{beyond} ({note})",
            measure=self.measure,
            bits=self.bits[1],
            beyond=beyond,
            note=note,
        )


@cache
def quality(name: str, *, causal: bool, start: Start) -> Quality | None:
    """The figures of an entry trained from scratch, or put into a trained model with RoPE; None where there are none."""
    task = measured.task(TASKS[causal])
    arms = task["arms"] if start == "scratch" else task["after"]
    called = name if start == "scratch" else CHANGED.get(name)
    arm = next((arm for arm in arms if arm["name"] == called), None)
    if arm is None or arm.get("learnt") is False:
        return None
    pairs = zip(task["lengths"], arm["cells"], strict=True)
    bits = {length / task["length"]: cell["mean"] for length, cell in pairs if cell.get("mean") is not None}
    reached = [multiple for multiple, value in bits.items() if value - bits[1] < LOST]
    # A change of the trained RoPE stands for RoPE's training.
    trained = arm if start == "scratch" else next(one for one in task["arms"] if one["name"] == "rope")
    words = Words(**task["title"])
    return Quality(bits, max(reached), max(bits), words, trained["converged"] is not False)
