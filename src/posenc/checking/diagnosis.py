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

TOKENWISE = "rotate embed table"
# (the bug, seams, laws that all fail): the first that holds. What is above explains what is below.
CAUSES: tuple[tuple[str, str, str], ...] = (
    ("no positions", "", "positions_are_taken"),
    ("part of the head", "", "all_channels_are_given_back"),
    ("strides", "", "forward_writes_nothing"),
    ("wrong axis", "", "heads_turn_alike"),
    ("softmax axis", "", "weights_sum_to_one"),
    ("future", "attention", "later_tokens_do_not_matter"),
    ("causal alignment", "bias", "decode_equals_prefill hidden_keys_are_those_after_the_query"),
    ("position ignored", f"{TOKENWISE} attention", "storage_order_does_not_matter"),
    ("length state", "", "far_tokens_do_not_matter"),
    ("length state", TOKENWISE, "short_calls_equal_long_calls"),
    ("bias cache", "bias", "decode_equals_prefill"),
    ("bias cache", "bias", "blocks_of_keys_equal_the_whole"),
    ("decode offset", "attention", "decode_equals_prefill"),
    ("one side", "attention", "shift_invariance"),
    ("cache key", "", "other_dtypes_do_not_matter"),
    ("positions unused", TOKENWISE, "neighbours_stay_distinct rows_do_not_repeat"),
    ("low precision angles", "", "neighbours_stay_distinct"),
    ("cos of cos", "", "norm_preservation"),
    ("cos of cos", "", "position_0_does_not_turn"),
)
STEEP = {"gradients", "autocast_does_not_matter"}  # broken by logits that are much too large
EXPECTED = "is_what_is_expected"
LATE = ("shift_invariance", EXPECTED, "default_dtype_does_not_matter")  # named where nothing else fails
AROUND = {  # what surrounds a call: where only these fail, what it is was measured rightly
    "default_dtype_does_not_matter",
    "autocast_does_not_matter",
    "other_dtypes_do_not_matter",
    "tokens_of_16_bits_lose_16_bits_only",
    "casting_a_module_does_not_round_its_angles",
    "tables_survive_to_empty",
    "fixed_tables_are_not_trained",
    "inference_mode_does_not_matter",
    "calls_at_once_do_not_matter",
    "strides_do_not_matter",
    "gradients",
}
OF_SCALING = {"scaling reversed", "blend reversed", "factors multiplied"}  # told from frequencies that are measured rightly
CHOSEN = {"base", "rotary_dim", "softmax_scale", "n_buckets", "window"}  # numbers that somebody may have meant


def diagnosed(subject: Subject, results: Sequence[Result], known: Identity) -> Diagnosis | None:
    """The diagnosis of a subject whose laws were tried; None where nothing is wrong or unusual."""
    failed = {result.law: result for result in results if result.verdict == "failed"}
    if not failed:
        return _unusual(known) if known.differences else None
    of_laws = of_failures(subject.seam, tuple(failed.values()), _seen(subject, set(failed), known))
    if of_laws is None or known.bug or not known.differences or not set(failed) <= AROUND:
        return of_laws
    fact, how = known.differences[0].fact, _how(known)
    if set(failed) == {"default_dtype_does_not_matter"} and fact not in CHOSEN:
        besides = say("besides, {law}", law=of_laws.sentence)
        return Diagnosis(fact, clauses(how, besides), clauses(_mend(known), of_laws.fix))
    besides = say("besides, it is nothing known: {how}", how=how)
    return Diagnosis(of_laws.name, clauses(of_laws.sentence, besides), of_laws.fix)


def of_failures(kind: str, failed: Sequence[Result], bug: str | None = None) -> Diagnosis | None:
    """By a bug that is known, or by the failures of a seam or model alone. None for failures without a class of bug."""
    names = {result.law for result in failed}
    causes = (cause for cause, seams, laws in CAUSES if kind in (seams or kind).split() and names.issuperset(laws.split()))
    cause = bug or next(causes, None)
    if cause is None:
        first = min(failed, key=lambda result: LATE.index(result.law) if result.law in LATE else -1)
        cause = next((key for key, candidate in BUGS.items() if candidate is first.bug), None)
    if cause is None:
        return None
    sentence = BUGS[cause].title
    if names == {EXPECTED} and not bug:
        sentence = say("it is not what is expected: {detail}", detail=failed[0].detail)
    return Diagnosis(cause, sentence, BUGS[cause].remedy)


def _unusual(known: Identity) -> Diagnosis:
    how = _how(known)
    if known.bug:
        return Diagnosis(known.bug, clauses(BUGS[known.bug].title, how), BUGS[known.bug].remedy)
    told = clauses(say("it keeps every law and is nothing known"), how)
    return Diagnosis(known.differences[0].fact, told, _mend(known))


def _how(known: Identity) -> Words:
    """How it differs from what it is nearest to."""
    how = joined((difference.words for difference in known.differences), "; ", "；")
    return say("nearest to {nearest}, but {how}", nearest=known.nearest, how=how) if known.nearest else how


def _mend(known: Identity) -> Words:
    facts = ", ".join(difference.fact for difference in known.differences)
    return say("change it to what is known; or, where it is meant, name it in expect: {facts}", facts=facts)


def _seen(subject: Subject, failed: set[str], known: Identity) -> str | None:
    """The bug that the numbers show, beyond which laws fail."""
    if "positions_are_taken" in failed:
        return None
    if "hides" in known.facts and "chunked_equals_whole" in failed:
        return "causal alignment"
    if "no_number_is_nan" in failed and "neighbours_stay_distinct" not in failed:
        return "not finite"
    if known.bug and (known.bug not in OF_SCALING or failed <= AROUND | {EXPECTED}):
        return known.bug
    if failed <= STEEP and "softmax_scale" in {difference.fact for difference in known.differences}:
        return "softmax scale"
    try:
        if subject.seam == "rotate" and "sizes_are_not_confused" in failed and _rows_over_heads(subject):
            return "rows over heads"
        if _remembers(subject):
            return "cache key"
        if subject.seam == "attention" and "decode_equals_prefill" in failed and _turns_again(subject):
            return "keys turned again"
        if subject.seam in ("rotate", "embed") and _mixes(subject):
            return "tokens mix"
        if failed & {"neighbours_stay_distinct", "shift_invariance"} and _clamps(subject):
            return "range"
    except Exception:  # what refuses such a call says nothing
        return None
    return None


def _remembers(subject: Subject) -> bool:
    """Whether a call gives something else after a call of the same shape at other positions."""
    used = subject.fresh()
    if subject.seam == "bias":
        keys = arange(0, 9)
        used.bias(keys[:, :4], keys)
        return not torch.equal(used.bias(keys[:, 5:], keys), subject.fresh().bias(keys[:, 5:], keys))
    used.sample(4, 0)
    return not torch.equal(used.sample(4, 5), subject.fresh().sample(4, 5))


def _rows_over_heads(subject: Subject) -> bool:
    """Whether, in a batch as large as the heads, head h of a row turns by the positions of row h."""
    n = subject.n_heads
    rows = torch.arange(n)
    x, at = subject.tokens(n, 2), torch.stack([7 * rows + 1, 7 * rows + 4], dim=1)
    together = subject.rows(x, at).unflatten(-1, (n, -1))  # [b, t, h, d]
    every = torch.stack([subject.rows(x, row.expand(n, 2)).unflatten(-1, (n, -1)) for row in at])  # by whose positions
    of_heads, of_rows = every.diagonal(dim1=0, dim2=3).movedim(-1, 2), every.diagonal(dim1=0, dim2=1).movedim(-1, 0)
    return torch.allclose(together, of_heads, atol=1e-5) and not torch.allclose(together, of_rows, atol=1e-5)


def _turns_again(subject: Subject) -> bool:
    """Whether a token that is decoded reads the keys before it as if they stood at twice their positions.

    They are read by a token far behind them, whose own key is zeros, so that only their angles count.
    """
    past, far = torch.arange(4), 40
    q, k, v = subject.heads(1, 5, 5)
    k[:, :, -1] = 0.0
    once, twice = (torch.tensor([[*(times * past).tolist(), far]]) for times in (1, 2))
    used = subject.fresh()
    whole, as_twice = (used(q, k, v, at, at)[:, :, -1:] for at in (once, twice))
    used = subject.fresh()
    used(q[:, :, :4], k[:, :, :4], v[:, :, :4], once[:, :4], once[:, :4])
    decoded = used(q[:, :, -1:], k, v, once[:, -1:], once)
    return torch.allclose(decoded, as_twice, atol=1e-4) and not torch.allclose(decoded, whole, atol=1e-4)


def _mixes(subject: Subject) -> bool:
    """Whether another last token changes what the tokens before it get."""
    x = subject.tokens(1, 4)
    other = x.clone()
    other[:, -1] += 1.0
    first, second = (subject.rows(tokens, arange(0, 4))[:, :-1] for tokens in (x, other))
    return float((first - second).abs().max()) > 1e-3


def _clamps(subject: Subject) -> bool:
    """Whether positions that are far apart have one row."""
    if subject.seam not in ("rotate", "embed", "table") or subject.reach < 64:
        return False
    x = subject.tokens(1, 1)
    near, *far = (subject.rows(x, arange(at, 1)) for at in (1, subject.reach // 3, subject.reach // 2, subject.reach))
    return all(torch.equal(row, far[0]) for row in far) and not torch.equal(near, far[0])
