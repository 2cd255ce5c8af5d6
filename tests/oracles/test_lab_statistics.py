"""The lab's statistics against loops in fp64, values from the literature, and examples worked by hand."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest

from posenc.lab.findings import criteria, statistics


def draw(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random(shape)


# The bootstrap ------------------------------------------------------------------------------------------------------


def test_bootstrap_against_a_loop_over_the_same_draws() -> None:
    """The counts come from the generator that the module names; everything after them is summed one by one."""
    values, weights = draw(2, 3, 4), 1 + draw(2, 3, 4, seed=1)
    weights[1, 2, 3] = 0  # an item that one seed does not have
    found = statistics.bootstrap(values, weights, seed=7)
    generator = np.random.default_rng(7)
    documents = generator.multinomial(4, [1 / 4] * 4, statistics.DRAWS).tolist()
    seeds = generator.multinomial(3, [1 / 3] * 3, statistics.DRAWS).tolist()
    for n in range(statistics.DRAWS):
        for length in range(2):
            total, missing = 0.0, False
            for s in range(3):
                up = down = 0.0
                for i in range(4):
                    up += documents[n][i] * values[length, s, i] * weights[length, s, i]
                    down += documents[n][i] * weights[length, s, i]
                missing |= down == 0
                total += seeds[n][s] * (up / down if down else math.nan)
            assert missing == math.isnan(found[n, length])
            if not missing:
                assert found[n, length] == pytest.approx(total / 3, rel=1e-12)


def test_bootstrap_of_seeds_alone_has_the_variance_of_a_mean() -> None:
    """Items all alike: what varies is the draw of seeds, whose mean has variance σ² / s."""
    of_seeds = np.array([1.0, 2.0, 4.0, 7.0, 11.0])
    values = np.broadcast_to(of_seeds[None, :, None], (1, 5, 6))
    drawn = statistics.bootstrap(values, np.ones((1, 5, 6)))[:, 0]
    assert drawn.mean() == pytest.approx(5.0, abs=0.103)  # four standard errors
    assert drawn.var() == pytest.approx(of_seeds.var() / 5, rel=0.1)


def test_bootstrap_of_documents_does_not_shrink_with_seeds() -> None:
    """All seeds read the same documents: more seeds say nothing more about other documents."""
    of_items = draw(40)
    values = np.broadcast_to(of_items, (1, 8, 40))
    drawn = statistics.bootstrap(values, np.ones((1, 8, 40)))[:, 0]
    assert drawn.var() == pytest.approx(of_items.var() / 40, rel=0.1)


def test_bootstrap_pairs_lengths() -> None:
    """Seeds and documents differ a lot, the second length is 0.3 above the first throughout: so is every draw."""
    near = 10 * draw(1, 5, 12)
    drawn = statistics.bootstrap(np.concatenate([near, near + 0.3]), np.ones((2, 5, 12)))
    np.testing.assert_allclose(drawn[:, 1] - drawn[:, 0], 0.3, rtol=0, atol=1e-12)
    low, high = statistics.interval(drawn[:, 0])
    assert high - low > 1


def test_bootstrap_is_the_same_every_time() -> None:
    values, weights = draw(1, 5, 6), np.ones((1, 5, 6))
    assert statistics.bootstrap(values, weights).tobytes() == statistics.bootstrap(values, weights).tobytes()
    assert statistics.bootstrap(values, weights).tobytes() != statistics.bootstrap(values, weights, seed=1).tobytes()


def test_the_interval_leaves_a_fortieth_on_either_side() -> None:
    drawn = np.arange(4001, dtype=float)
    np.random.default_rng(0).shuffle(drawn)
    assert statistics.interval(drawn) == pytest.approx((100.0, 3900.0), rel=1e-12)
    assert statistics.interval(np.append(drawn, [math.nan] * 50)) == pytest.approx((100.0, 3900.0), rel=1e-12)


# Wilson -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("right", "of", "low", "high"),
    [
        (9, 10, 0.5958, 0.9821),  # Brown, Cai, DasGupta 2001 and every table since
        (81, 263, 0.2553, 0.3662),  # Newcombe 1998, table I
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_of_the_literature(right: int, of: int, low: float, high: float) -> None:
    assert statistics.wilson(right, of) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize(("right", "of"), [(3, 7), (1, 50), (40, 64)])
def test_wilson_bounds_solve_their_equation(right: int, of: int) -> None:
    """They are the shares p from which the observed one is exactly z standard errors away."""
    for p in statistics.wilson(right, of):
        assert abs(right / of - p) / math.sqrt(p * (1 - p) / of) == pytest.approx(1.959963985, rel=1e-9)


def test_wilson_stays_a_share() -> None:
    for of in (1, 2, 5, 300):
        assert 0 <= statistics.wilson(0, of)[0] < 1e-15
        assert 1 - 1e-15 < statistics.wilson(of, of)[1] <= 1
        assert statistics.wilson(0, of)[1] == pytest.approx(1 - statistics.wilson(of, of)[0])


# The length factor --------------------------------------------------------------------------------------------------

LENGTHS = [64, 96, 128, 256, 512]


@pytest.mark.parametrize(
    ("measure", "means", "factor"),
    [
        ("bits", [2.3, 2.3, 2.3, 2.3, 2.3], 8),
        ("bits", [2.30, 2.35, 2.35, 2.36, 2.30], 2),  # 0.05 is allowed, 0.06 is not, and nothing after it counts
        ("bits", [2.3, 2.4, 2.3, 2.3, 2.3], 1),
        ("bits", [2.3, 2.0, 1.9, 1.9, 2.36], 4),
        ("exact", [1.0, 0.9, 0.9, 0.89, 1.0], 2),
        ("exact", [0.8, 0.72, 0.719, 0.8, 0.8], 1.5),  # of what there was at the trained length
        ("exact", [1.0, 1.0, 1.0, 1.0, 1.0], 8),
        ("exact", [1.0, 0.0, 1.0, 1.0, 1.0], 1),
    ],
)
def test_factor_by_hand(measure: criteria.Measure, means: list[float], factor: float) -> None:
    assert statistics.factors(measure, np.array(means), LENGTHS) == factor


@pytest.mark.parametrize("measure", ["bits", "exact"])
def test_factors_of_many_curves_against_a_loop(measure: criteria.Measure) -> None:
    steps = np.random.default_rng(3).standard_normal((50, 5))
    curves = 2 + 0.03 * steps.cumsum(1) if measure == "bits" else draw(50, 5) ** 0.1
    found = statistics.factors(measure, curves, LENGTHS)
    for curve, factor in zip(curves, found, strict=True):
        expected = 1.0
        for length, value in zip(LENGTHS[1:], curve[1:], strict=True):
            lost = value - curve[0] > 0.05 if measure == "bits" else value < 0.9 * curve[0]
            if lost:
                break
            expected = length / 64
        assert factor == expected
    assert len(set(found.tolist())) > 2


def test_an_interval_of_factors_has_scored_lengths_as_ends() -> None:
    assert statistics.factor_interval(np.array([1.0] * 3 + [2.0] * 94 + [8.0] * 3)) == (1.0, 8.0)
    assert statistics.factor_interval(np.array([1.0] * 10 + [2.0] * 980 + [8.0] * 10)) == (2.0, 2.0)


@pytest.mark.parametrize(
    ("measure", "home", "far", "behaviour"),
    [
        ("bits", 2.30, 2.35, "flat"),
        ("bits", 2.30, 2.36, "fades"),
        ("bits", 2.30, 2.79, "fades"),
        ("bits", 2.30, 2.80, "breaks"),
        ("bits", 2.30, 1.00, "flat"),
        ("exact", 1.0, 0.9, "flat"),
        ("exact", 0.96, 0.87, "flat"),
        ("exact", 1.0, 0.89, "fades"),
        ("exact", 1.0, 0.5, "fades"),
        ("exact", 1.0, 0.49, "breaks"),
    ],
)
def test_behaviour_by_hand(measure: criteria.Measure, home: float, far: float, behaviour: str) -> None:
    assert criteria.behaviour(measure, home, far) == behaviour


# Area and ranks -----------------------------------------------------------------------------------------------------


def test_area_by_hand() -> None:
    """From 64 to 128 the mean is 2.5, from 128 to 512, two doublings, 4: (2.5 + 2 · 4) / 3."""
    assert statistics.area([64, 128, 512], [2.0, 3.0, 5.0]) == pytest.approx(3.5)
    assert statistics.area([64, 96, 512], [7.0, 7.0, 7.0]) == pytest.approx(7.0)
    assert statistics.area([64], [2.0]) is None


def test_ranks_against_counting() -> None:
    """A rank is one more than how many are better, plus half of how many others are equal."""
    names = list("abcd")
    rng = random.Random(0)
    blocks = [{name: rng.choice([0.0, 0.5, 1.0]) for name in names} for _ in range(40)]
    for measure, sign in (("bits", 1), ("exact", -1)):
        expected = dict.fromkeys(names, 0.0)
        for block, name in itertools.product(blocks, names):
            better = sum(sign * block[other] < sign * block[name] for other in names)
            equal = sum(block[other] == block[name] for other in names) - 1
            expected[name] += (1 + better + equal / 2) / len(blocks)
        assert statistics.mean_ranks(measure, blocks, names) == pytest.approx(expected)  # type: ignore[arg-type]


def test_ties_share_and_incomplete_cells_do_not_count() -> None:
    blocks = [{"a": 1.0, "b": 1.0, "c": 0.0}, {"a": 0.0, "b": 1.0}, {"a": 1.0, "b": 0.5, "c": 0.5}]
    assert statistics.mean_ranks("exact", blocks, ["a", "b", "c"]) == {"a": 1.25, "b": 2.0, "c": 2.75}
    assert statistics.mean_ranks("exact", blocks, ["c", "b", "a"]) == {"a": 1.25, "b": 2.0, "c": 2.75}
    assert statistics.mean_ranks("exact", blocks[1:2], ["a", "b", "c"]) is None
