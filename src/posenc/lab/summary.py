"""What a comparison says, in plain sentences; every number in them is computed from its results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from posenc.bilingual import Words, joined
from posenc.lab.findings import titles
from posenc.lab.prose import say, small, state_words
from posenc.lab.trial.fp64_properties import SAME
from posenc.lab.verdict import NOT_LEARNT, failed

Row = Mapping[str, Any]
Key = Callable[[Row], float]
Tie = Callable[[Row, Row], bool]


class Need(NamedTuple):
    """What somebody may need, which encodings fit it best, and by which numbers."""

    need: Words
    pick: Words
    why: Words


def title(row: Row) -> Words:
    """RoPE, or RoPE at random positions."""
    return titles.title(row["name"])


def listed(rows: Sequence[Row], number: Callable[[Row], str]) -> Words:
    """ALiBi (+0.01), Shaw (+0.08)."""
    named = ((title(row), number(row)) for row in rows)
    return joined((Words(f"{name.en} ({said})", f"{name.zh}（{said}）") for name, said in named), ", ", "、")


def bits(row: Row, length: str) -> float:
    mean: float = row["bits"][length]["mean"]
    return mean


def sentences(done: Mapping[str, Any]) -> list[Words]:
    """What came out, the most important first."""
    return [*_learnt(done), *_not_learnt(done), *_cannot(done), *_order(done), *_cache(done), *_failed(done)]


def needs(done: Mapping[str, Any]) -> list[Need]:
    """The best of those that learnt the trained length, for a few needs; together with whatever cannot be told from it."""
    home, far = ends(done)
    learnt = [row for row in done["rows"] if row["learnt"]]
    reach = [row for row in learnt if far in row["rise"]]
    plain = [row for row in reach if _fits_anywhere(row["exact"])]
    timed = [row for row in learnt if row["cost"]]
    found = []

    def add(name: str, rows: Sequence[Row], key: Key, ties: Tie, why: Callable[[Row], Words]) -> None:
        if rows:
            best, *others = sorted(rows, key=key)
            named = [title(best), *(title(row) for row in others if ties(best, row))]
            pick = Words(", ".join(words.en for words in named), "、".join(words.zh for words in named))
            found.append(Need(say(f"need {name}", done), pick, why(best)))

    def at(length: str) -> Key:
        return lambda row: bits(row, length)

    add("home", learnt, at(home), _same_bits(home), lambda row: say("why home", done, bits=f"{bits(row, home):.2f}"))
    add(
        "far",
        reach,
        at(far),
        _same_bits(far),
        lambda row: say("why far", done, bits=f"{bits(row, far):.2f}", rise=f"{row['rise'][far]:+.2f}"),
    )
    for kind in ("training", "prefill"):
        time = _median(kind)
        add(kind, timed, time, _same_time(kind), lambda row, time=time: say("why time", done, ratio=f"{time(row):.2f}"))  # type: ignore[misc]
    add("plain", plain, at(far), _same_bits(far), lambda row: say("why plain", done, bits=f"{bits(row, far):.2f}"))
    return found


def ends(done: Mapping[str, Any]) -> tuple[str, str]:
    """The trained length and the longest one, as the results name them."""
    return str(done["recipe"]["length"]), str(max(done["recipe"]["lengths"]))


def _median(kind: str) -> Key:
    return lambda row: float(row["cost"][kind]["median"])


def _same_bits(length: str) -> Tie:
    """The seeds do not agree on which is better."""
    return lambda best, row: any(
        ours >= theirs for ours, theirs in zip(best["bits"][length]["seeds"], row["bits"][length]["seeds"], strict=True)
    )


def _same_time(kind: str) -> Tie:
    """Its median lies within the quartiles of the best."""
    return lambda best, row: bool(row["cost"][kind]["median"] <= best["cost"][kind]["high"])


def _fits_anywhere(exact: Mapping[str, Any]) -> bool:
    return exact["parameters"] == 0 and exact["shift"] <= SAME and exact["largest_position"] is None


def _learnt(done: Mapping[str, Any]) -> list[Words]:
    home, far = ends(done)
    rows = [row for row in done["rows"] if row["learnt"]]
    if not rows:
        return []
    best = min(rows, key=lambda row: bits(row, home))
    said = [say("best", done, pick=title(best), bits=f"{bits(best, home):.2f}")]
    for kind in ("flat", "fades", "breaks"):
        these = sorted((row for row in rows if row["behaviour"] == kind), key=lambda row: row["rise"][far])
        if these:
            said.append(say(kind, done, rows=listed(these, lambda row: f"{row['rise'][far]:+.2f}")))
    return said


def _not_learnt(done: Mapping[str, Any]) -> list[Words]:
    home, _ = ends(done)
    rows = [row for row in done["rows"] if any(cell.get("state") == NOT_LEARNT for cell in row["bits"].values())]
    return [say("not learnt", done, rows=listed(rows, lambda row: f"{bits(row, home):.2f}"))] if rows else []


def _cannot(done: Mapping[str, Any]) -> list[Words]:
    said = []
    for row in done["rows"]:
        for length, cell in row["bits"].items():
            if (state := cell.get("state", "")).startswith("cannot"):
                said.append(say("cannot", done, pick=title(row), length=length, why=state_words(state)))
                break
    return said


def _order(done: Mapping[str, Any]) -> list[Words]:
    """S7, and which encoding misses a pure reversal."""
    said = [say("order", done)]
    blind = [
        row
        for row in done["rows"]
        if row["encoding"] != "nope"
        and row["exact"] is not None
        and (both := row["exact"]["order"]["bidirectional"]) is not None
        and both <= SAME < row["exact"]["reordered"]
    ]
    if blind:
        names = Words(", ".join(title(row).en for row in blind), "、".join(title(row).zh for row in blind))
        seen = ", ".join(small(row["exact"]["reordered"]) for row in blind)
        said.append(say("reversal", done, rows=names, reordered=seen))
    return said


def _cache(done: Mapping[str, Any]) -> list[Words]:
    measured = [row for row in done["rows"] if row["exact"] is not None]
    if not measured:
        return []
    wrong = [row for row in measured if row["exact"]["decode"] > SAME]
    worst = max(row["exact"]["decode"] for row in measured)
    if wrong:
        return [say("cache wrong", done, rows=listed(wrong, lambda row: small(row["exact"]["decode"])), worst=small(worst))]
    return [say("cache right", done, worst=small(worst))]


def _failed(done: Mapping[str, Any]) -> list[Words]:
    broken = "; ".join(f"{name} {state}" for name, state in failed(done).items())
    return [say("failed", done, rows=broken)] if broken else []
