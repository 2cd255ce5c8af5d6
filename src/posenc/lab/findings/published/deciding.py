"""The verdict on a claim, by each of its inequalities.

claim     Sinusoidal > RoPE > T5          two links
margin    Sinusoidal - RoPE, RoPE - T5    by seed, over the seeds that all encodings share; a link holds where it is > 0
a link    holds if it does in every seed and the 95 % interval of its mean margin leaves out 0; fails if it does in no
          seed and likewise; is undecided otherwise, and with fewer than FEWEST seeds
a claim   agrees if every link holds, disagrees if one fails, is undecided otherwise
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from posenc.bilingual import Words, clauses, joined
from posenc.lab.findings import statistics
from posenc.lab.findings.titles import title

FEWEST = 3  # seeds
NOTHING = Words("", "")


class Score(NamedTuple):
    """A number, and the same for every seed."""

    mean: float
    seeds: Mapping[str, float]


class Ours(NamedTuple):
    """Our numbers, whether they satisfy the claim (None: undecided), and remarks.

    `seeds` were compared, None where the claim is not about seeds. A trial of the encoding `shows` contradicts the claim.
    `setting` says what is known to differ from the paper's because of what these results lack.
    """

    words: Words
    holds: bool | None
    why: Words = NOTHING
    seeds: int | None = None
    shows: str = ""
    setting: Words = NOTHING


Scores = Mapping[str, Score]  # by name
Means = Mapping[str, float]
Groups = Sequence[Sequence[str]]


class Link(NamedTuple):
    """One inequality. It holds where its margin is above zero, or zero unless it is `strict`."""

    says: Words
    margin: Callable[[Means], float]
    strict: bool = False
    shows: str = ""  # the encoding whose trial contradicts the claim where the link fails

    def holds(self, margin: float) -> bool:
        return margin > 0 if self.strict else margin >= 0


class Judged(NamedTuple):
    """A link, whether it holds (None: undecided), its mean margin, and half the width of the interval of that."""

    link: Link
    holds: bool | None
    margin: float
    half_width: float | None


def at_most(name: str, limit: float) -> Link:
    return Link(_same(f"{title(name).en} ≤ {limit:g}"), lambda at: limit - at[name], shows=name)


def at_least(name: str, limit: float) -> Link:
    return Link(_same(f"{title(name).en} ≥ {limit:g}"), lambda at: at[name] - limit, shows=name)


def above(more: str, less: str, *, shows: str = "", equal: bool = False, called: Callable[[str], Words] = title) -> Link:
    """The score of `more` is above that of `less`; `equal` allows a tie."""
    sign = "≥" if equal else ">"
    says = Words(*(f"{one} {sign} {other}" for one, other in zip(called(more), called(less), strict=True)))
    return Link(says, lambda at: at[more] - at[less], strict=not equal, shows=shows)


def worst_first(groups: Groups, called: Callable[[str], Words] = title) -> list[Link]:
    """Every score of a group is above every score of the next, and a low score is good: bits, losses."""
    return [above(one, other, shows=one, called=called) for one, other in _neighbours(groups)]


def best_first(groups: Groups, *, equal: bool = False, called: Callable[[str], Words] = title) -> list[Link]:
    """Every score of a group is above every score of the next, and a high score is good: exact match."""
    return [above(one, other, shows=other, equal=equal, called=called) for one, other in _neighbours(groups)]


def _neighbours(groups: Groups) -> Iterator[tuple[str, str]]:
    for group, after in pairwise(groups):
        yield from ((one, other) for one in group for other in after)


def paired(scores: Scores) -> dict[str, Score]:
    """The scores over the seeds that all of them share."""
    shared = set.intersection(*(set(one.seeds) for one in scores.values()))
    if not shared:
        return dict(scores)
    kept = {name: {seed: one.seeds[seed] for seed in sorted(shared)} for name, one in scores.items()}
    return {name: Score(sum(seeds.values()) / len(seeds), seeds) for name, seeds in kept.items()}


def difference(one: Score, other: Score) -> Score:
    """one - other, by the seeds that both have."""
    shared = one.seeds.keys() & other.seeds.keys()
    return Score(one.mean - other.mean, {seed: one.seeds[seed] - other.seeds[seed] for seed in shared})


def decide(scores: Scores, links: Sequence[Link], words: Words, *notes: Words) -> Ours:
    """The verdict, the number of seeds in which all links hold, and the links that fail or are undecided."""
    shared = set.intersection(*(set(one.seeds) for one in scores.values()))
    by_seed = [{name: one.seeds[seed] for name, one in scores.items()} for seed in shared]
    judged = [_judged(link, [link.margin(at) for at in by_seed]) for link in links]
    n, agree = len(shared), sum(all(link.holds(link.margin(at)) for link in links) for at in by_seed)
    told = Words(f"holds for {agree} of {n} seed{'s' * (n != 1)}", f"{n} 个种子中有 {agree} 个成立")
    why = clauses(*(said for said in (told, *_open_links(judged, n), *notes) if said.en))
    return Ours(words, _all(judged), why, n, _contradicted(judged))


def by_numbers(means: Means, links: Sequence[Link], words: Words, *notes: Words) -> Ours:
    """The verdict on numbers that have no seeds, as times have none."""
    margins = {link: link.margin(means) for link in links}
    judged = [Judged(link, link.holds(margin), margin, None) for link, margin in margins.items()]
    why = clauses(*(said for said in (*notes, *_open_links(judged, 0)) if said.en))
    return Ours(words, _all(judged), why, shows=_contradicted(judged))


def _judged(link: Link, margins: Sequence[float]) -> Judged:
    mean = sum(margins) / len(margins) if margins else 0.0
    half_width = statistics.half_width(margins)
    if len(margins) < FEWEST or half_width is None:
        return Judged(link, None, mean, None)
    right = {link.holds(margin) for margin in margins}
    equal = not link.strict and not any(margins)  # what may be equal, and is in every seed
    apart = len(right) == 1 and (abs(mean) > half_width or equal)
    return Judged(link, right.pop() if apart else None, mean, half_width)


def _all(judged: Sequence[Judged]) -> bool | None:
    if any(one.holds is False for one in judged):
        return False
    return None if any(one.holds is None for one in judged) else True


def _contradicted(judged: Sequence[Judged]) -> str:
    """The encoding that contradicts the claim most: that of the failing link, or else of the undecided one, with the least
    margin.
    """
    left = [one for one in judged if one.holds is False] or [one for one in judged if one.holds is None]
    return min(left, key=lambda one: one.margin).link.shows if left else ""


def _open_links(judged: Sequence[Judged], seeds: int) -> Iterator[Words]:
    """fails: Sinusoidal > RoPE; undecided: RoPE > T5 by +0.012 ± 0.031 over 3 seeds.

    The only link of a claim needs no name where it fails.
    """
    fails = [one.link.says for one in judged if one.holds is False]
    if fails and len(judged) > 1:
        said = joined(fails, ", ", "，")
        yield Words(f"fails: {said.en}", f"不成立：{said.zh}")
    for one in judged:
        if one.holds is None and one.half_width is not None:
            by, says = f"{one.margin:+.3f} ± {one.half_width:.3f}", one.link.says
            yield Words(
                f"undecided: {says.en} by {by} over {seeds} seeds",
                f"未定：{says.zh}，{seeds} 个种子上相差 {by}",
            )


def _same(text: str) -> Words:
    return Words(text, text)
