"""The verdict on a claim, by each of its inequalities.

claim     Sinusoidal > RoPE > T5          two links
margin    Sinusoidal - RoPE, RoPE - T5    by seed, over the seeds that the encodings of a link share; it holds above 0
a link    is decided by the test that reports use (comparing.p_value: t, paired by seed and by scored row; by seed alone
          where the scores have no rows in common): it holds or fails, by the sign of its mean margin, where p is at most
          `limit`; otherwise, and with fewer than FEWEST seeds, it is undecided
limit     the largest p that Holm's correction finds, over all links that one experiment is asked for
a claim   agrees if every link holds, disagrees if one fails, is undecided otherwise
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from judging.say import say
from posenc.lab.findings import statistics
from posenc.lab.findings.comparing import p_value
from posenc.lab.findings.criteria import FEWEST
from posenc.lab.findings.statistics import Paired
from posenc.lab.findings.titles import title
from posenc.lab.findings.wording import numbered
from posenc.support.languages import Words, clauses, joined

NOTHING = Words("")


class Score(NamedTuple):
    """A number, the same for every seed, and for every scored row (mean over seeds) where the record has rows."""

    mean: float
    seeds: Mapping[str, float]
    rows: Sequence[float] = ()


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
    """A link, its margin by seed, by scored row and on average, and half the width of the interval of the mean.

    rows       empty: the test is by seed alone
    tie        what may be equal is equal in every seed, which needs no test
    overlap    of numbers without seeds: whether their ranges overlap; None where there are seeds
    """

    link: Link
    seeds: Means
    margin: float
    rows: Sequence[float] = ()
    half_width: float | None = None
    tie: bool = False
    overlap: bool | None = None

    @property
    def p(self) -> float | None:
        """Of the test that the mean margin is 0; None where no test decides."""
        return None if self.tie or self.overlap is not None else p_value(Paired(list(self.seeds.values()), self.rows))

    def holds(self, limit: float) -> bool | None:
        """None: undecided."""
        p = self.p
        undecided = self.overlap if p is None else p > limit
        return None if undecided else self.link.holds(self.margin)


class Ours(NamedTuple):
    """Our numbers, and the links by which they satisfy the claim or do not. Without a link, `fixed` says whether they do.

    `told` and `notes` are remarks, before and after those on links. `setting` says what is known to differ from the paper's
    because of what these results lack.
    """

    words: Words
    fixed: bool = False
    told: Words = NOTHING
    judged: tuple[Judged, ...] = ()
    notes: tuple[Words, ...] = ()
    setting: Words = NOTHING
    limit: float = 1 - statistics.LEVEL

    @property
    def holds(self) -> bool | None:
        """Whether they satisfy the claim; None: undecided."""
        if not self.judged:
            return self.fixed
        holds = [judged.holds(self.limit) for judged in self.judged]
        return False if False in holds else None if None in holds else True

    @property
    def why(self) -> Words:
        links = _open_links(self.judged, self.limit)
        alone = [
            judged for judged in self.judged if judged.p is not None and len(judged.seeds) >= FEWEST and not judged.rows
        ]
        by_seed = (say("tested by seed alone: what it compares has no rows in common"),) if alone else ()
        return clauses(*(words for words in (self.told, *links, *by_seed, *self.notes) if words.en))

    @property
    def seeds(self) -> int | None:
        """How many were compared for the link with the fewest, None where the claim is not about seeds."""
        if not self.judged or self.judged[0].overlap is not None:
            return None
        return min(len(judged.seeds) for judged in self.judged)

    @property
    def shows(self) -> str:
        """The encoding whose trial contradicts the claim most."""
        return _contradicted(self._left)[0]

    @property
    def against(self) -> str | None:
        """The seed of that trial; None: no seed contradicts it."""
        return _contradicted(self._left)[1]

    @property
    def open(self) -> frozenset[str]:
        """The encodings of the links that fail, or else are undecided; empty: any may be meant."""
        names = [judged.link.names for judged in self._left]
        return frozenset().union(*names) if all(names) else frozenset()

    @property
    def _left(self) -> list[Judged]:
        """The links that fail, or else those that are undecided."""
        of = {holds: [j for j in self.judged if j.holds(self.limit) is holds] for holds in (False, None)}
        return of[False] or of[None]

    def noted(self, note: Words) -> Ours:
        return self._replace(notes=(*self.notes, note))


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
    return {name: Score(sum(seeds.values()) / len(seeds), seeds, scores[name].rows) for name, seeds in kept.items()}


def difference(first: Score, other: Score) -> Score:
    """one - other, over the seeds that both have; of the means where they share none."""
    seeds = {seed: first.seeds[seed] - other.seeds[seed] for seed in sorted(first.seeds.keys() & other.seeds.keys())}
    rows = (
        [one - two for one, two in zip(first.rows, other.rows, strict=True)] if len(first.rows) == len(other.rows) else ()
    )
    return Score(sum(seeds.values()) / len(seeds) if seeds else first.mean - other.mean, seeds, rows)


def decide(scores: Scores, links: Sequence[Link], words: Words, *notes: Words) -> Ours:
    """Every link judged, and the number of seeds in which all of them hold."""
    judged = tuple(_judged(link, {name: scores[name] for name in link.names or tuple(scores)}) for link in links)
    fewest, most = (pick(len(judgement.seeds) for judgement in judged) for pick in (min, max))
    by_seed = _by_seed(scores, tuple(scores))
    agree, n = sum(all(link.holds(link.margin(at)) for link in links) for at in by_seed.values()), len(by_seed)
    told = say("holds for {agree} of {seeds}", agree=agree, seeds=numbered(n, "seed", "seeds"))
    if n < most:
        told = say("each inequality over the {fewest} to {most} seeds that its encodings share", fewest=fewest, most=most)
    return Ours(words, told=told, judged=judged, notes=notes)


def by_ranges(
    low: Means, middle: Means, high: Means, links: Sequence[Link], words: Words, told: Words, note: Words
) -> Ours:
    """The verdict on numbers that have no seeds but a spread, as times have quartiles: a link whose two ranges overlap is
    undecided.
    """
    judged = []
    for link in links:
        more, less = link.names
        least, most = (link.margin({more: means[more], less: other[less]}) for means, other in ((low, high), (high, low)))
        overlap = link.holds(most) and not link.holds(least)
        judged.append(Judged(link, {}, link.margin(middle), overlap=overlap))
    overlapping = [judgement.link.says for judgement in judged if judgement.overlap]
    notes = [note]
    if overlapping:
        notes.append(say("undecided, quartiles overlap: {links}", links=joined(overlapping, ", ", "，")))
    return Ours(words, told=told, judged=tuple(judged), notes=tuple(notes))


def limit_of(p_values: Sequence[float]) -> float:
    """The largest of these p-values that is found at 5 % after Holm's correction; 0 where none is."""
    corrected = statistics.holm(p_values)
    return max((p for p, q in zip(p_values, corrected, strict=True) if q < 1 - statistics.LEVEL), default=0.0)


def _by_seed(scores: Scores, names: Sequence[str]) -> dict[str, Means]:
    """The scores of these names by seed, over the seeds that all of them have."""
    shared = set.intersection(*(set(scores[name].seeds) for name in names))
    return {seed: {name: scores[name].seeds[seed] for name in names} for seed in sorted(shared)}


def _judged(link: Link, scores: Scores) -> Judged:
    seeds = {seed: link.margin(at) for seed, at in _by_seed(scores, tuple(scores)).items()}
    margins, rows = list(seeds.values()), _by_row(link, scores)
    mean = sum(margins) / len(margins) if margins else 0.0
    half_width = Paired(margins, rows).half_width if len(margins) >= FEWEST else None
    tie = half_width is not None and not link.strict and not any(margins)
    return Judged(link, seeds, mean, rows, half_width, tie)


def _by_row(link: Link, scores: Scores) -> list[float]:
    """The margin of each row, as far as it moves the margin of the means; none where what is read has other rows."""
    means = {name: score.mean for name, score in scores.items()}
    middle = link.margin(means)
    read = {name: score.rows for name, score in scores.items() if link.margin({**means, name: score.mean + 1}) != middle}
    if len(counts := {len(rows) for rows in read.values()}) != 1:
        return []
    (count,) = counts
    moved = ({name: (rows[n] - means[name]) / count for name, rows in read.items()} for n in range(count))
    margins = (link.margin({**means, **{name: means[name] + by for name, by in each.items()}}) for each in moved)
    return [middle + count * (margin - middle) for margin in margins]


def _contradicted(left: Sequence[Judged]) -> tuple[str, str | None]:
    """The encoding and the seed that contradict the claim most: of the open link with the least margin. No seed where the
    link holds in every one.
    """
    if not left:
        return "", None
    worst = min(left, key=lambda judgement: min(judgement.seeds.values(), default=judgement.margin))
    seed = min(worst.seeds, key=lambda seed: worst.seeds[seed], default=None)
    return worst.link.shows, None if seed is None or worst.link.holds(worst.seeds[seed]) else seed


def _open_links(judged: Sequence[Judged], limit: float) -> Iterator[Words]:
    """fails: Sinusoidal > RoPE; undecided: RoPE > T5 by +0.012 ± 0.031 over 3 seeds.

    The only link of a claim needs no name where it fails.
    """
    fails = [j.link.says for j in judged if j.holds(limit) is False]
    if fails and len(judged) > 1:
        links = joined(fails, ", ", "，")
        yield say("fails: {links}", links=links)
    for j in judged:
        if j.holds(limit) is None and j.half_width is not None:
            by, says, seeds = (f"{j.margin:+.3f} ± {j.half_width:.3f}", j.link.says, len(j.seeds))
            yield say("undecided: {says} by {by} over {seeds} seeds", says=says, by=by, seeds=seeds)
