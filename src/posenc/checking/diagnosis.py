"""From the laws that fail and from what the numbers show to one bug, in one sentence, and what mends it.

One bug breaks many laws: an index in the place of positions breaks seven. CAUSES says which bug a set of failures means.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from posenc.checking.bugs import BUGS
from posenc.checking.result import Diagnosis, Identity, Result
from posenc.checking.say import say
from posenc.checking.subject import Subject, arange
from posenc.support.languages import Words, clauses, joined

# (the bug, laws that all fail): the first that holds. What is above explains what is below.
CAUSES: tuple[tuple[str, frozenset[str]], ...] = tuple(
    (bug, frozenset(laws.split()))
    for bug, laws in (
        ("no positions", "positions_are_taken"),
        ("part of the head", "all_channels_are_given_back"),
        ("strides", "inputs_are_not_written"),
        ("wrong axis", "heads_turn_alike"),
        ("softmax scale", "weights_sum_to_one"),
        ("future", "the_future_does_not_matter"),
        ("causal alignment", "chunked_prefill_equals_prefill"),
        ("causal alignment", "last_queries_equal_the_whole hidden_keys_are_those_after_the_query"),
        ("position ignored", "order_does_not_matter"),
        ("position ignored", "order_of_keys_does_not_matter"),
        ("length state", "far_tokens_do_not_matter"),
        ("length state", "short_calls_equal_long_calls"),
        ("bias cache", "last_queries_equal_the_whole"),
        ("decode offset", "decoding_equals_prefill"),
        ("one side", "a_shift_does_not_matter_to_attention"),
        ("cache key", "other_dtypes_do_not_matter"),
        ("low precision angles", "neighbours_stay_distinct"),
        ("not finite", "no_number_is_nan"),
    )
)
EXPECTED = "is_what_is_expected"
SYMPTOMS = ("not relative", "cos of cos", "default dtype")  # named where nothing else fails


def diagnosed(subject: Subject, results: Sequence[Result], known: Identity) -> Diagnosis | None:
    """The diagnosis of a subject whose laws were tried; None where nothing is wrong or unusual."""
    failed = {result.law: result for result in results if result.verdict == "failed"}
    if failed:
        return of_failures(_seen(subject, set(failed), known), tuple(failed.values()))
    return _unusual(known) if known.differences else None


def of_failures(bug: str | None, failed: Sequence[Result]) -> Diagnosis:
    """By a bug that is known, or by the failures alone."""
    names = {result.law for result in failed}
    cause = bug or next((cause for cause, laws in CAUSES if laws <= names), None)
    if cause is None:
        ranked = sorted(failed, key=lambda result: _key(result) in SYMPTOMS)
        cause = _key(ranked[0])
        if ranked[0].bug is None or cause is None:
            return Diagnosis(ranked[0].law, Words(f"{ranked[0].law}: {ranked[0].detail}"), say("see the law that fails"))
    sentence = BUGS[cause].title
    if names == {EXPECTED} and not bug:
        sentence = say("it is not what is expected: {detail}", detail=failed[0].detail)
    return Diagnosis(cause, sentence, BUGS[cause].remedy)


def _key(result: Result) -> str | None:
    return next((key for key, bug in BUGS.items() if bug is result.bug), None)


def _unusual(known: Identity) -> Diagnosis:
    how = joined((one.words for one in known.differences), "; ", "；")
    if known.nearest:
        how = say("nearest to {nearest}, but {how}", nearest=known.nearest, how=how)
    if known.bug:
        return Diagnosis(known.bug, clauses(BUGS[known.bug].title, how), BUGS[known.bug].remedy)
    facts = ", ".join(one.fact for one in known.differences)
    mend = say("change it to what is known; or, where it is meant, name it in expect: {facts}", facts=facts)
    return Diagnosis(known.differences[0].fact, clauses(say("it keeps every law and is nothing known"), how), mend)


def _seen(subject: Subject, failed: set[str], known: Identity) -> str | None:
    """The bug that the numbers show, beyond which laws fail."""
    if "positions_are_taken" in failed:
        return None
    if known.bug:
        return known.bug
    try:
        if _remembers(subject):
            return "cache key"
        if failed & {"neighbours_stay_distinct", "products_depend_on_distance_only"} and _clamps(subject):
            return "range"
    except Exception:  # what refuses such a call says nothing
        return None
    return None


def _remembers(subject: Subject) -> bool:
    """Whether a call gives something else after a call of the same shape at other positions."""
    if subject.seam == "attention":
        return False
    used = subject.fresh()
    used.sample(4, 0)
    return not torch.equal(used.sample(4, 5), subject.fresh().sample(4, 5))


def _clamps(subject: Subject) -> bool:
    """Whether positions that are far apart have one row."""
    if subject.seam not in ("rotate", "embed", "table") or subject.reach < 64:
        return False
    x = subject.tokens(1, 1)
    far = [subject.rows(x, arange(subject.reach // n, 1)) for n in (1, 2, 3)]
    return torch.equal(far[0], far[1]) and torch.equal(far[0], far[2]) and not torch.equal(far[0], subject.rows(x, arange(1, 1)))
