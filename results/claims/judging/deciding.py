"""The verdict on a claim, by each of its inequalities.

claim     Sinusoidal > RoPE > T5          two links
margin    Sinusoidal - RoPE, RoPE - T5    by seed, over the seeds that the encodings of a link share; it holds above 0
a link    holds if it does in every seed and the 95 % interval of its mean margin leaves out 0; fails if it does in no
          seed and likewise; is undecided otherwise, and with fewer than FEWEST seeds
a claim   agrees if every link holds, disagrees if one fails, is undecided otherwise
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from judging.say import say
from posenc.lab.findings import statistics
from posenc.lab.findings.criteria import FEWEST
from posenc.lab.findings.titles import title
from posenc.lab.findings.wording import numbered
from posenc.support.languages import Words, clauses, joined

NOTHING = Words("")


class Score(NamedTuple):
    """A number, and the same for every seed."""

    mean: float
    seeds: Mapping[str, float]


class Ours(NamedTuple):
    """Our numbers, whether they satisfy the claim (None: undecided), and remarks.

    `seeds` were compared for the link with the fewest, None where the claim is not about seeds. A trial of the encoding
    `shows` with the seed `against` contradicts the claim; None: no seed does. The links of the encodings `open` do not
    hold or are undecided; empty: any may be meant. `setting` says what is known to differ from the paper's because of what
    these results lack.
    """

    words: Words
    holds: bool | None
    why: Words = NOTHING
    seeds: int | None = None
    shows: str = ""
    setting: Words = NOTHING
    against: str | None = None
    open: frozenset[str] = frozenset()


Scores = Mapping[str, Score]  # by name
Means = Mapping[str, float]
Groups = Sequence[Sequence[str]]


class Link(NamedTuple):
    """One inequality. It holds where its margin is above zero, or zero unless it is `strict`.

    `names` are the scores that it reads; empty: all of the claim.
    """

    says: Words
    margin: Callable[[Means], float]
    strict: bool = False
    shows: str = ""  # the encoding whose trial contradicts the claim where the link fails
    names: tuple[str, ...] = ()

    def holds(self, margin: float) -> bool:
        return margin > 0 if self.strict else margin >= 0


class Judged(NamedTuple):
    """A link, whether it holds (None: undecided), its margin by seed and on average, and half the width of its interval."""

    link: Link
    holds: bool | None
    seeds: Means
    margin: float
    half_width: float | None


def at_most(name: str, limit: float) -> Link:
    return Link(Words(f"{title(name).en} ≤ {limit:g}"), lambda at: limit - at[name], shows=name, names=(name,))


def at_least(name: str, limit: float) -> Link:
    return Link(Words(f"{title(name).en} ≥ {limit:g}"), lambda at: at[name] - limit, shows=name, names=(name,))


def above(more: str, less: str, *, shows: str = "", equal: bool = False, called: Callable[[str], Words] = title) -> Link:
    """The score of `more` is above that of `less`; `equal` allows a tie."""
    sign = "≥" if equal else ">"
    says = Words("{more} {sign} {less}").filled(more=called(more), sign=sign, less=called(less))
    return Link(says, lambda at: at[more] - at[less], strict=not equal, shows=shows, names=(more, less))


def worst_first(groups: Groups, called: Callable[[str], Words] = title) -> list[Link]:
    """Every score of a group is above every score of the next, and a low score is good: bits, losses."""
    return [above(first, other, shows=first, called=called) for first, other in _neighbours(groups)]


def best_first(groups: Groups, *, equal: bool = False, called: Callable[[str], Words] = title) -> list[Link]:
    """Every score of a group is above every score of the next, and a high score is good: exact match."""
    return [above(first, other, shows=other, equal=equal, called=called) for first, other in _neighbours(groups)]


def _neighbours(groups: Groups) -> Iterator[tuple[str, str]]:
    for group, after in pairwise(groups):
        yield from ((first, other) for first in group for other in after)


def paired(scores: Scores) -> dict[str, Score]:
    """The scores over the seeds that all of them share."""
    shared = set.intersection(*(set(score.seeds) for score in scores.values()))
    if not shared:
        return dict(scores)
    kept = {name: {seed: score.seeds[seed] for seed in sorted(shared)} for name, score in scores.items()}
    return {name: Score(sum(seeds.values()) / len(seeds), seeds) for name, seeds in kept.items()}


def difference(first: Score, other: Score) -> Score:
    """one - other, over the seeds that both have; of the means where they share none."""
    seeds = {seed: first.seeds[seed] - other.seeds[seed] for seed in sorted(first.seeds.keys() & other.seeds.keys())}
    return Score(sum(seeds.values()) / len(seeds) if seeds else first.mean - other.mean, seeds)


def decide(scores: Scores, links: Sequence[Link], words: Words, *notes: Words) -> Ours:
    """The verdict, the number of seeds in which all links hold, and the links that fail or are undecided."""
    judged = [_judged(link, _by_seed(scores, link.names or tuple(scores))) for link in links]
    fewest, most = (pick(len(judgement.seeds) for judgement in judged) for pick in (min, max))
    by_seed = _by_seed(scores, tuple(scores))
    agree, n = sum(all(link.holds(link.margin(at)) for link in links) for at in by_seed.values()), len(by_seed)
    told = say("holds for {agree} of {seeds}", agree=agree, seeds=numbered(n, "seed", "seeds"))
    if n < most:
        told = say("each inequality over the {fewest} to {most} seeds that its encodings share", fewest=fewest, most=most)
    why = clauses(*(clause for clause in (told, *_open_links(judged), *notes) if clause.en))
    shows, against = _contradicted(judged)
    return Ours(words, _all(judged), why, fewest, shows, against=against, open=_open_names(judged))


def by_ranges(low: Means, middle: Means, high: Means, links: Sequence[Link], words: Words, *notes: Words) -> Ours:
    """The verdict on numbers that have no seeds but a spread, as times have quartiles: a link whose two ranges overlap is
    undecided.
    """
    judged = []
    for link in links:
        more, less = link.names
        least, most = (link.margin({more: means[more], less: other[less]}) for means, other in ((low, high), (high, low)))
        holds = None if link.holds(most) and not link.holds(least) else link.holds(least)
        judged.append(Judged(link, holds, {}, link.margin(middle), None))
    overlapping = [judgement.link.says for judgement in judged if judgement.holds is None]
    pairs = joined(overlapping, ", ", "，")
    overlap = say("undecided, quartiles overlap: {links}", links=pairs)
    told = (*notes, *_open_links(judged), *[overlap] * bool(overlapping))
    why = clauses(*(words for words in told if words.en))
    return Ours(words, _all(judged), why, shows=_contradicted(judged)[0], open=_open_names(judged))


def _by_seed(scores: Scores, names: Sequence[str]) -> dict[str, Means]:
    """The scores of these names by seed, over the seeds that all of them have."""
    shared = set.intersection(*(set(scores[name].seeds) for name in names))
    return {seed: {name: scores[name].seeds[seed] for name in names} for seed in sorted(shared)}


def _judged(link: Link, by_seed: Mapping[str, Means]) -> Judged:
    seeds = {seed: link.margin(at) for seed, at in by_seed.items()}
    margins = list(seeds.values())
    mean = sum(margins) / len(margins) if margins else 0.0
    half_width = statistics.half_width(margins)
    if len(margins) < FEWEST or half_width is None:
        return Judged(link, None, seeds, mean, None)
    right = {link.holds(margin) for margin in margins}
    equal = not link.strict and not any(margins)  # what may be equal, and is in every seed
    apart = len(right) == 1 and (abs(mean) > half_width or equal)
    return Judged(link, right.pop() if apart else None, seeds, mean, half_width)


def _all(judged: Sequence[Judged]) -> bool | None:
    if any(judgement.holds is False for judgement in judged):
        return False
    return None if any(judgement.holds is None for judgement in judged) else True


def _left(judged: Sequence[Judged]) -> list[Judged]:
    """The links that fail, or else those that are undecided."""
    return [j for j in judged if j.holds is False] or [j for j in judged if j.holds is None]


def _open_names(judged: Sequence[Judged]) -> frozenset[str]:
    names = [judgement.link.names for judgement in _left(judged)]
    return frozenset().union(*names) if all(names) else frozenset()


def _contradicted(judged: Sequence[Judged]) -> tuple[str, str | None]:
    """The encoding and the seed that contradict the claim most: of the open link with the least margin. No seed where the
    link holds in every one.
    """
    if not (left := _left(judged)):
        return "", None
    worst = min(left, key=lambda judgement: min(judgement.seeds.values(), default=judgement.margin))
    seed = min(worst.seeds, key=lambda seed: worst.seeds[seed], default=None)
    return worst.link.shows, None if seed is None or worst.link.holds(worst.seeds[seed]) else seed


def _open_links(judged: Sequence[Judged]) -> Iterator[Words]:
    """fails: Sinusoidal > RoPE; undecided: RoPE > T5 by +0.012 ± 0.031 over 3 seeds.

    The only link of a claim needs no name where it fails.
    """
    fails = [j.link.says for j in judged if j.holds is False]
    if fails and len(judged) > 1:
        links = joined(fails, ", ", "，")
        yield say("fails: {links}", links=links)
    for j in judged:
        if j.holds is None and j.half_width is not None:
            by, says, seeds = (f"{j.margin:+.3f} ± {j.half_width:.3f}", j.link.says, len(j.seeds))
            yield say("undecided: {says} by {by} over {seeds} seeds", says=says, by=by, seeds=seeds)
