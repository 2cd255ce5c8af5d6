"""How sentences name encodings and write their scores, in both languages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from posenc.lab.experiment.change import Change
from posenc.lab.findings.criteria import BREAKS, ENOUGH, FLAT
from posenc.lab.findings.statistics import Paired
from posenc.lab.findings.titles import title
from posenc.lab.say import say
from posenc.lab.trial.scoring import TABLE_ENDS
from posenc.lab.trial.training import CAUSAL_ONLY
from posenc.support.languages import Words, joined

Json = Mapping[str, Any]
FEW_POINTS = 0.1  # a difference of so many points or more is said in whole points
REASONS = {CAUSAL_ONLY: say("causal only"), "not run": say("not run")}


def task_title(task: Json) -> Words:
    return Words(**task["title"])


def name(arm: Json) -> Words:
    return title(arm["name"])


def because(why: str) -> Words:
    """Why there is no number; error messages stay as they are."""
    if why.startswith(TABLE_ENDS):
        limit = why.removeprefix(TABLE_ENDS).strip()
        return say("table ends at {limit}", limit=limit)
    return REASONS.get(why, Words(why))


def trained_seeds(findings: Json) -> list[int]:
    """The number of seeds of every encoding that has a score in the task where it has most."""
    counts = dict[str, int]()
    for arm in (arm for task in findings["tasks"] for arm in task["arms"]):
        there = max((len(cell["seeds"]) for cell in arm["cells"].values()), default=0)
        counts[arm["name"]] = max(counts.get(arm["name"], 0), there)
    return [count for count in counts.values() if count]


def counted_seeds(findings: Json) -> Words:
    """5 seeds, or 1 to 5 seeds where some encodings have fewer. Those that were planned, where none has run."""
    counts = trained_seeds(findings) or [len(findings["seeds"])]
    most, fewest = max(counts), min(counts)
    if fewest < most:
        return say("{fewest} to {most} seeds", fewest=fewest, most=most)
    return say("{seeds}", seeds=numbered(most, "seed", "seeds"))


def seeds_to_rank(findings: Json) -> Words:
    """5 seeds; or 3 seeds; five are needed to rank. To stand wherever encodings are put in an order."""
    fewest = min(trained_seeds(findings) or [len(findings["seeds"])])
    seeds = counted_seeds(findings)
    return seeds if fewest >= ENOUGH else say("{seeds}; five are needed to rank", seeds=seeds)


def listed(arms: Iterable[Json], number: Callable[[Json], Words]) -> Words:
    """ALiBi (+0.01 bits), Shaw (+0.08 bits)."""
    pairs = [(name(arm), number(arm)) for arm in arms]
    return joined((say("{who} ({value})", who=who, value=value) for who, value in pairs), ", ", "、")


def score(task: Json, number: float) -> Words:
    """2.31 bits, or 97.3% right."""
    if task["measure"] == "bits":
        return say("{number:.2f} bits", number=number)
    return say("{percent:.1f}% right", percent=100 * number)


def loss(task: Json, lost: float) -> Words:
    """+0.12 bits, or -3.1 points of exact match."""
    if task["measure"] == "bits":
        return say("{lost:+z.2f} bits", lost=lost)
    return say("{points:+z.1f} points", points=-100 * lost)


def trains_on(change: str) -> bool:
    """Whether the model is trained on after the change of that name; "" is none."""
    return bool(change) and bool(Change.parse(change).trained)


def difference(task: Json, by: Paired) -> Words:
    """0.12 ± 0.03 bits, or 71 ± 8 points: the mean and half the width of its 95 % interval."""
    middle, half = by.mean, by.half_width or 0.0
    if task["measure"] == "bits":
        return say("{middle:.2f} ± {half:.2f} bits", middle=middle, half=half)
    if abs(middle) < FEW_POINTS:
        return say("{middle:.1f} ± {half:.1f} points", middle=100 * middle, half=100 * half)
    return say("{middle:.0f} ± {half:.0f} points", middle=100 * middle, half=100 * half)


def times(task: Json, length: int) -> Words:
    """A length as a multiple of the trained one."""
    ratio = f"{length / task['length']:.3g}"
    return say("{ratio}×", ratio=ratio)


def bounds(task: Json) -> tuple[Words, Words]:
    """The meaning of flat and of broken, in words."""
    if task["measure"] == "bits":
        return (
            say("at most {bits:g} bits worse", bits=FLAT["bits"]),
            say("{bits:g} bits worse or more", bits=BREAKS["bits"]),
        )
    return (
        say("at least {exact:.0%} of the exact match kept", exact=FLAT["exact"]),
        say("less than {exact:.0%} of it kept", exact=BREAKS["exact"]),
    )


def numbered(number: int, singular: str, more: str) -> Words:
    """The same as a value of a sentence. In Chinese the number alone: the sentence has the measure word."""
    return Words(counted(number, singular, more), f"{number}")


def counted(number: int, singular: str, more: str) -> str:
    """1 model, 1,234 models."""
    return f"{number:,} {singular if number == 1 else more}"
