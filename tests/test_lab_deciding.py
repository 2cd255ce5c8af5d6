"""The verdict on made-up scores: which inequality holds in every seed, and by an interval without 0."""

from __future__ import annotations

import pytest

from posenc.lab.findings.published.deciding import Link, Score, above, best_first, decide, paired, worst_first
from posenc.support.languages import Words

WORDS = Words("ours", "此处")


def scores(**each: list[float]) -> dict[str, Score]:
    return {name: Score(sum(of) / len(of), dict(zip("01234", of, strict=False))) for name, of in each.items()}


def test_means_are_over_the_seeds_that_all_share() -> None:
    """ALiBi is better in every shared seed; two seeds more make it worse by its mean over all of its own."""
    given = scores(alibi=[0.80, 0.81, 0.82, 0.95, 0.96], t5=[0.83, 0.84, 0.85])
    ours = decide(given, worst_first([["t5"], ["alibi"]]), WORDS)
    assert (ours.holds, ours.seeds, ours.why.en) == (True, 3, "holds for 3 of 3 seeds")
    assert paired(given)["alibi"].mean == pytest.approx(0.81)


def test_an_interval_with_zero_is_undecided() -> None:
    """The mean difference is 0.2 in every case; the differences have a standard deviation of 0.1, then of 0.05.
    t(97.5 %) / sqrt(3) is 2.4841 for three seeds.
    """
    wide = decide(scores(rope=[1.1, 1.2, 1.3], t5=[1.0, 1.0, 1.0]), [above("rope", "t5")], WORDS)
    assert (wide.holds, wide.why.en) == (
        None, "holds for 3 of 3 seeds; undecided: RoPE > T5 by +0.200 ± 0.248 over 3 seeds"
    )  # fmt: skip
    assert wide.why.zh == "3 个种子中有 3 个成立；未定：RoPE > T5，3 个种子上相差 +0.200 ± 0.248"
    assert decide(scores(rope=[1.15, 1.2, 1.25], t5=[1.0, 1.0, 1.0]), [above("rope", "t5")], WORDS).holds
    against = decide(scores(rope=[0.9, 0.8, 0.7], t5=[1.0, 1.0, 1.0]), [above("rope", "t5")], WORDS)
    assert against.holds is None
    against = decide(scores(rope=[0.85, 0.8, 0.75], t5=[1.0, 1.0, 1.0]), [above("rope", "t5")], WORDS)
    assert against.holds is False


def test_two_seeds_decide_nothing() -> None:
    ours = decide(scores(rope=[2.0, 2.0], t5=[1.0, 1.0]), [above("rope", "t5")], WORDS)
    assert (ours.holds, ours.seeds) == (None, 2)


def test_the_link_that_fails_is_named_and_the_encoding_that_breaks_it() -> None:
    given = scores(sinusoidal=[2.0, 2.1, 2.0], rope=[3.0, 3.1, 3.0], t5=[1.5, 1.6, 1.5], alibi=[1.0, 1.1, 1.0])
    bits = decide(given, worst_first([["sinusoidal"], ["rope"], ["t5"], ["alibi"]]), WORDS)
    assert (bits.holds, bits.shows) == (False, "sinusoidal")
    assert bits.why == Words(
        "holds for 0 of 3 seeds; fails: Sinusoidal > RoPE", "3 个种子中有 0 个成立；不成立：Sinusoidal > RoPE"
    )
    right = decide(given, best_first([["sinusoidal"], ["rope", "t5"], ["alibi"]]), WORDS)
    assert (right.holds, right.shows) == (False, "rope")


def test_one_link_that_fails_is_enough_and_one_that_is_open_is_not() -> None:
    """The seeds order RoPE and T5 in both ways."""
    given = scores(rope=[1.0, 1.2, 1.0], t5=[1.1, 1.0, 1.1], alibi=[0.5, 0.5, 0.5])
    assert decide(given, worst_first([["rope"], ["t5"], ["alibi"]]), WORDS).holds is None
    assert decide(given, worst_first([["rope"], ["t5"]]) + worst_first([["alibi"], ["t5"]]), WORDS).holds is False


def test_a_tie_in_every_seed() -> None:
    given = scores(rope=[0.0, 0.0, 0.0], t5=[0.0, 0.0, 0.0])
    assert decide(given, [above("rope", "t5", equal=True)], WORDS).holds
    assert decide(given, [above("rope", "t5")], WORDS).holds is None
    assert decide(given, [Link(WORDS, lambda at: 0.1 - at["rope"])], WORDS).holds
