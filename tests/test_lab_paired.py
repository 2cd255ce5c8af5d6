"""The one test of all comparisons: tried where the answer is known, on simulated seeds and rows, before any result."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy import ndarray as Array
from scipy.stats import t, ttest_1samp

from judging.deciding import Link, Score, above, decide
from lab_results import Asked
from posenc.lab.findings.comparing import behind, told_apart
from posenc.lab.findings.criteria import FEWEST
from posenc.lab.findings.statistics import Paired, detectable, pseudo_values
from posenc.support.languages import Words
from test_lab_findings import arms_of, found_in

DRAWS = 800
MOST = 0.05 + 3 * np.sqrt(0.05 * 0.95 / DRAWS)  # three standard errors of a share of as many draws
Differences = Array  # [draws, seeds, rows]
NUMBERS = st.lists(st.floats(-5, 5), min_size=3, max_size=9).filter(lambda of: np.std(of) > 1e-3)


def drawn(seeds: float, rows: float, rest: float, mean: float, *, of: tuple[int, int], draws: int = DRAWS) -> Differences:
    """Differences whose mean is `mean`, with these standard deviations: of each seed, of each row, of each pair of both."""
    random, (count, many) = np.random.default_rng(60), of
    each = mean + seeds * random.standard_normal((draws, count, 1)) + rows * random.standard_normal((draws, 1, many))
    return each + rest * random.standard_normal((draws, count, many))


def right_or_wrong(shift: float, draws: int = DRAWS) -> Differences:
    """Of two encodings that are right in some of 256 rows, five seeds: rows differ in difficulty, seeds in skill."""
    random = np.random.default_rng(60)
    row = random.standard_normal((draws, 1, 256))
    odds = [2 + way * shift / 2 + 0.1 * random.standard_normal((draws, 5, 1)) + row for way in (1, -1)]
    ours, theirs = ((random.random((draws, 5, 256)) < 1 / (1 + np.exp(-each))).astype(float) for each in odds)
    differences: Differences = ours - theirs
    return differences


def share_told(differences: Differences, pair: Callable[[Array], Paired]) -> float:
    """How many of the draws the test at 5 % tells apart."""
    return float(np.mean([pair(each).p < 0.05 for each in differences]))


def both(each: Array) -> Paired:
    return Paired(each.mean(1), each.mean(0))


def by_seed(each: Array) -> Paired:
    return Paired(each.mean(1))


CASES = [(1, 0, 1), (0.1, 1, 1), (0.3, 2, 2), (0, 1, 1), (0, 0, 1), (1, 1, 1)]  # deviations of seeds, rows, the rest


@pytest.mark.parametrize("spread", CASES)
@pytest.mark.parametrize("seeds", [3, 5])
def test_where_nothing_differs_about_one_in_twenty_is_told_apart(spread: tuple[float, float, float], seeds: int) -> None:
    assert share_told(drawn(*spread, 0, of=(seeds, 128)), both) <= MOST


def test_by_seed_alone_many_would_be_told_apart_that_do_not_differ() -> None:
    """Five seeds on the same 128 rows: what favours one encoding in these rows is taken for a difference."""
    assert share_told(drawn(0, 1, 1, 0, of=(5, 128)), by_seed) > 0.2


def test_shares_of_rows_that_do_not_differ() -> None:
    assert share_told(right_or_wrong(0.0), both) <= MOST


@pytest.mark.parametrize("spread", CASES)
def test_a_difference_of_five_standard_errors_is_told_apart(spread: tuple[float, float, float]) -> None:
    seeds, rows, rest = spread
    error = np.sqrt(seeds**2 / 5 + rows**2 / 128 + rest**2 / 5 / 128)
    assert share_told(drawn(*spread, 5 * error, of=(5, 128), draws=400), both) > 0.9


def test_a_difference_between_shares_is_told_apart() -> None:
    assert share_told(right_or_wrong(1.0, draws=400), both) > 0.95


@given(NUMBERS, NUMBERS)
def test_the_difference_is_at_the_edge_that_p_names(seeds: list[float], rows: list[float]) -> None:
    """By scipy's t: the squares of the two critical values, each times the variance of its mean, add up to that of d."""
    by = Paired(seeds, rows)
    if not 1e-9 < by.p < 0.999:
        return
    edges = (t.isf(by.p / 2, len(each) - 1) ** 2 * np.var(each, ddof=1) / len(each) for each in (seeds, rows))
    assert np.sqrt(sum(edges)) == pytest.approx(abs(np.mean(seeds)), rel=1e-4)
    assert by.p >= ttest_1samp(seeds, 0).pvalue  # the rows add to what the seeds vary


@pytest.mark.parametrize("share", [0.3, 1.0, 9.0])
def test_far_from_the_middle_it_tells_no_more_apart_than_it_says(share: float) -> None:
    """After Holm's correction for a hundred pairs a level of .0005 counts: there, degrees of freedom that are put together
    (Satterthwaite) tell up to 25 times as many apart with three seeds. `share`: variance of seeds over that of rows.
    """
    random, many = np.random.default_rng(60), 200_000
    of_seeds, of_rows = share / (1 + share), 1 / (1 + share)
    seeds = of_seeds * random.chisquare(2, many) / 2
    rows = of_rows * random.chisquare(127, many) / 127
    means = random.standard_normal(many)
    edge = t.isf(0.00025, 2) ** 2 * seeds + t.isf(0.00025, 127) ** 2 * rows
    told = np.flatnonzero(means**2 > edge)
    assert len(told) <= 0.0005 * many
    together = (seeds + rows) ** 2 / (seeds**2 / 2 + rows**2 / 127)
    assert (2 * t.sf(np.abs(means) / np.sqrt(seeds + rows), together) < 0.0005).mean() > 0.0005


@pytest.mark.parametrize("spread", [(0.02, 0.5, 0.5), (1, 0, 1), (0.1, 1, 1)])
def test_the_least_that_can_be_shown_is_shown_in_four_of_five_draws(spread: tuple[float, float, float]) -> None:
    pairs = [both(each) for each in drawn(*spread, 0, of=(5, 128), draws=200)]
    least = detectable(pairs)
    assert least is not None
    assert 0.75 < share_told(drawn(*spread, least, of=(5, 128), draws=400), both) < 0.97


def test_rows_of_unequal_weight_have_the_spread_of_their_mean() -> None:
    """Against the mean of 4 000 bootstrap draws of the rows."""
    random = np.random.default_rng(0)
    values, weights = random.normal(2, 1, 100), random.integers(1, 9, 100).astype(float)
    numbers = pseudo_values(values, weights)
    draws = random.integers(0, 100, (4000, 100))
    means = (values * weights)[draws].sum(1) / weights[draws].sum(1)
    assert np.std(numbers, ddof=1) / 10 == pytest.approx(means.std(), rel=0.06)
    assert pseudo_values(values, np.ones(100)) == pytest.approx(values)


# Where it is used -----------------------------------------------------------------------------------------------------


def easier(asked: Asked) -> float:
    """RoPE is .02 bits better in every seed, by rows in which it is 1 bit better or 1 bit worse."""
    if asked.encoding == "alibi":
        return 2.3
    return float(2.28 + (-1) ** asked.item + 1e-4 * asked.seed)


def test_what_other_rows_would_change_is_not_told_apart(tmp_path: Path) -> None:
    found = found_in(tmp_path, encodings=["alibi", "rope"], tasks=["language_model"], seeds=5, items=24, value=easier)
    (task,), arms = found["tasks"], arms_of(found)
    cells = [arms[name]["cells"]["64"] for name in ("alibi", "rope")]
    assert [len(cell["rows"]) for cell in cells] == [24, 24]
    assert told_apart(task, cells) == set()
    without = [{"seeds": cell["seeds"]} for cell in cells]
    assert told_apart(task, without) == {(1, 0)}
    by = behind(task, cells[1], cells[0])
    assert by.mean == pytest.approx(0.02, abs=1e-3)
    assert by.half_width == pytest.approx(2.07 * np.std([1, -1] * 12, ddof=1) / np.sqrt(24), rel=0.01)  # t(97.5 %, 23)


SEEDS = dict.fromkeys("01234", 1.0) | {"0": 1.01}


def test_a_claim_is_judged_by_the_same_test() -> None:
    rows = [1.0, 3.0, -1.0, 1.008]
    rope, t5 = Score(1.002, SEEDS, rows), Score(0.9, dict.fromkeys("01234", 0.9), [0.9] * 4)
    judged = decide({"rope": rope, "t5": t5}, [above("rope", "t5")], Words("", ""))
    assert judged.holds is None
    assert judged.judged[0].p == pytest.approx(Paired([0.11, 0.1, 0.1, 0.1, 0.1], [x - 0.9 for x in rows]).p)
    alone = decide({"rope": rope._replace(rows=()), "t5": t5}, [above("rope", "t5")], Words("", ""))
    assert alone.holds
    assert "tested by seed alone" in alone.why.en
    assert len(SEEDS) >= FEWEST


def test_a_link_reads_only_the_rows_that_move_it() -> None:
    """`lost` is of another task with other rows; a bound on it is tested by its own."""
    scores = {"nope": Score(1.0, SEEDS, [1.0] * 4), "lost": Score(0.2, SEEDS, [0.0, 0.4, 0.1, 0.3, 0.2])}
    (judged,) = decide(scores, [Link(Words("", ""), lambda at: abs(0.5 - at["lost"]))], Words("", "")).judged
    assert judged.rows == pytest.approx([0.5, 0.1, 0.4, 0.2, 0.3])
