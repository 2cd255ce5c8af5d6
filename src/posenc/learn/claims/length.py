"""Claims about length: encodings beyond the trained length, decay with distance, and claims that need training.

Legend: k lags.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from posenc.catalogue import lookup
from posenc.encodings.alibi import ALiBi, alibi_slopes
from posenc.learn.claims.evidence import Evidence, Verdict
from posenc.learn.say import say
from posenc.pictures import measures
from posenc.positions import Positions

FAR = 1_000_000
LAG = 400
MEASURED = say("quality is measured by training: posenc compare")


def sinusoid_unlimited(encoding: str = "sinusoidal", d_model: int = 512, trained: int = 1024) -> Evidence:
    sinusoidal = lookup.create(encoding, d_model=d_model, n_heads=8, max_positions=trained)
    value = _far_value(lambda at: sinusoidal.embed(torch.zeros(1, 1, d_model), at))
    defined = value is not None and bool(value.isfinite().all()) and float(value.abs().max()) <= 1
    unseen = measures.unfinished_pairs(d_model, trained)
    return _defined_not_good(defined, unseen, d_model // 2, trained)


def rope_unlimited(encoding: str = "rope", d_head: int = 128, trained: int = 4096) -> Evidence:
    rotary = lookup.create(encoding, d_head=d_head)
    ones = torch.ones(1, 1, 1, d_head, dtype=torch.float64)
    value = _far_value(lambda at: rotary.rotate(ones, at, "query"))
    defined = value is not None and math.isclose(float(value.norm()), float(ones.norm()))
    return _defined_not_good(defined, measures.unfinished_pairs(d_head, trained), d_head // 2, trained)


def _far_value(encode: Callable[[Positions], Tensor]) -> Tensor | None:
    try:
        return encode(Positions.arange(1, 1, start=FAR))
    except ValueError:
        return None


def _defined_not_good(defined: bool, unseen: int, pairs: int, trained: int) -> Evidence:
    """A formula can only show that an encoding is defined everywhere, not that a model works there."""
    numbers = {"defined_at_1e6": defined, "pairs_with_unseen_phase": unseen, "pairs": pairs}
    if not defined:
        return Evidence(Verdict.FALSE, numbers, value=say("not defined at position 1 000 000"))
    return Evidence(
        Verdict.PARTLY,
        numbers,
        value=say(
            "defined at position 1 000 000, yes; but trained at {trained}, {unseen} of {pairs} pairs meet "
            "new phases beyond; {measured}",
            trained=trained,
            unseen=unseen,
            pairs=pairs,
            measured=MEASURED,
        ),
    )


def alibi_best(slopes: tuple[float, ...] = alibi_slopes(8), length: int = 16384) -> Evidence:
    """The number of tokens that receive 99.9 % of a head's attention if all words have the same score."""
    bias = ALiBi(len(slopes), slopes=slopes).at_distance(torch.arange(length))
    mass = bias.softmax(dim=-1).cumsum(dim=-1)
    windows = [int((row < 0.999).sum()) + 1 for row in mass]
    shown = f"{windows[0]} … {windows[-1]}"
    return Evidence(
        Verdict.PARTLY if max(windows) < length / 2 else Verdict.FALSE,
        {"windows": windows, "slopes": slopes},
        {"shown": shown, "measured": MEASURED},
    )


def rope_decay(d_head: int = 128, base: float = 10000.0, length: int = 512) -> Evidence:
    """The bound, the score of vectors of ones, and the scores of independent and of equal random q and k."""
    lags = torch.arange(length)
    bound, score = measures.rope_bound(d_head, lags, base), measures.rope_score(d_head, lags, base)
    rises = {"bound": measures.first_rise(bound), "score": measures.first_rise(score)}
    random = torch.Generator().manual_seed(0)
    q, k = (torch.randn(2000, d_head, generator=random, dtype=torch.float64) for _ in range(2))
    ends = torch.tensor([0, LAG])
    spread = measures.rope_score_of(q, k, ends, base).std(dim=0)
    equal = measures.rope_score_of(q, q, ends, base).mean(dim=0)
    falls = float(bound[-length // 8 :].mean()) < 0.5 * float(bound[: length // 8].mean())
    steady = rises["bound"] is None and rises["score"] is None
    numbers = {
        "bound_first_rise": rises["bound"],
        "score_first_rise": rises["score"],
        "bound_falls": falls,
        "random_spread_far_over_near": float(spread[-1] / spread[0]),
        "equal_mean_far_over_near": float(equal[-1] / equal[0]),
    }
    decided = Verdict.FALSE if not falls else Verdict.TRUE if steady else Verdict.PARTLY
    first, second = (f"{rise}→{rise + 1}" if rise is not None else "∅" for rise in rises.values())
    random_falls, equal_falls = numbers["random_spread_far_over_near"], numbers["equal_mean_far_over_near"]
    return Evidence(
        decided,
        numbers,
        {"first": first, "second": second, "lag": LAG, "random_falls": random_falls, "equal_falls": equal_falls},
    )


def better_for_language() -> Evidence:
    return Evidence(Verdict.OPINION, {})
