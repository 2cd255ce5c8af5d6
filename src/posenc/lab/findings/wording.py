"""How sentences name encodings and write their scores, in both languages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from posenc.lab.findings.criteria import BREAKS, FLAT
from posenc.lab.findings.titles import title
from posenc.lab.trial.limits import TABLE_ENDS
from posenc.lab.trial.training import CAUSAL_ONLY
from posenc.support.languages import Words, joined

Json = Mapping[str, Any]
REASONS = {CAUSAL_ONLY: Words("causal only", "仅用于因果注意力"), "not run": Words("not run", "未运行")}


def task_title(task: Json) -> Words:
    return Words(**task["title"])


def name(arm: Json) -> Words:
    return title(arm["name"])


def because(why: str) -> Words:
    """Why there is no number; error messages stay as they are."""
    if why.startswith(TABLE_ENDS):
        limit = why.removeprefix(TABLE_ENDS).strip()
        return Words(f"table ends at {limit}", f"位置表止于 {limit}")
    return REASONS.get(why, Words(why, why))


def trained_seeds(found: Json) -> list[int]:
    """The number of seeds of every encoding that has a score in the task where it has most."""
    counts = dict[str, int]()
    for arm in (arm for task in found["tasks"] for arm in task["arms"]):
        there = max((len(cell["seeds"]) for cell in arm["cells"].values()), default=0)
        counts[arm["name"]] = max(counts.get(arm["name"], 0), there)
    return [count for count in counts.values() if count]


def counted_seeds(found: Json) -> Words:
    """5 seeds, or 1 to 5 seeds where some encodings have fewer. Those that were planned, where none has run."""
    counts = trained_seeds(found) or [len(found["seeds"])]
    most, fewest = max(counts), min(counts)
    if fewest < most:
        return Words(f"{fewest} to {most} seeds", f"{fewest} 至 {most} 个随机种子")
    return Words(counted(most, "seed", "seeds"), f"{most} 个随机种子")


def listed(arms: Iterable[Json], number: Callable[[Json], Words]) -> Words:
    """ALiBi (+0.01 bits), Shaw (+0.08 bits)."""
    pairs = [(name(arm), number(arm)) for arm in arms]
    return joined((Words(f"{who.en} ({said.en})", f"{who.zh}（{said.zh}）") for who, said in pairs), ", ", "、")


def score(task: Json, number: float) -> Words:
    """2.31 bits, or 97.3% right."""
    if task["measure"] == "bits":
        return Words(f"{number:.2f} bits", f"{number:.2f} 比特")
    return Words(f"{100 * number:.1f}% right", f"正确率 {100 * number:.1f}%")


def loss(task: Json, lost: float) -> Words:
    """+0.12 bits, or -3.1 points of exact match."""
    if task["measure"] == "bits":
        return Words(f"{lost:+z.2f} bits", f"{lost:+z.2f} 比特")
    return Words(f"{-100 * lost:+z.1f} points", f"{-100 * lost:+z.1f} 个百分点")


def times(task: Json, length: int) -> Words:
    """A length as a multiple of the trained one."""
    ratio = f"{length / task['length']:.3g}"
    return Words(f"{ratio}×", f"{ratio} 倍")


def bounds(task: Json) -> tuple[Words, Words]:
    """The meaning of flat and of broken, in words."""
    if task["measure"] == "bits":
        return (
            Words(f"at most {FLAT['bits']:g} bits worse", f"变差不超过 {FLAT['bits']:g} 比特"),
            Words(f"{BREAKS['bits']:g} bits worse or more", f"变差 {BREAKS['bits']:g} 比特以上"),
        )
    return (
        Words(f"at least {FLAT['exact']:.0%} of the exact match kept", f"完全匹配率保持 {FLAT['exact']:.0%} 以上"),
        Words(f"less than {BREAKS['exact']:.0%} of it kept", f"保持不到 {BREAKS['exact']:.0%}"),
    )


def counted(number: int, one: str, more: str) -> str:
    """1 model, 1,234 models."""
    return f"{number:,} {one if number == 1 else more}"
