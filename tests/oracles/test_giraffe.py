"""Giraffe's frequencies by loops. Pal et al. 2023, arXiv 2308.10882, and the authors' code."""

import math

import pytest

from posenc import create, frequencies

D, L = 64, 2048


def expected(exponent=0.0, truncate=L, zones=8, slow=16, pairs=D // 2):
    found = []
    for n in range(D // 2):
        omega = 10000.0 ** (-2 * n / D) * (1 - n / pairs) ** exponent
        turns = omega * truncate / (2 * math.pi) if truncate else math.inf
        found.append(omega if turns >= 1 else 2 * math.pi / (slow * truncate) if turns * zones >= 1 else 0.0)
    return found


@pytest.mark.parametrize("options", [{}, {"power": 0.5}, {"power": 0.5, "trained_length": None}, {"trained_length": 300}])
def test_frequencies_by_loops(options):
    made = create("giraffe", d_head=D, **options).frequencies
    by_hand = expected(options.get("power", 0.0), options.get("trained_length", L))
    assert made.values == pytest.approx(by_hand, rel=1e-14)


def test_three_zones_for_llama():
    made = create("giraffe", d_head=128).frequencies.values
    kept = [n for n in range(64) if made[n] == 10000.0 ** (-2 * n / 128)]
    slow = [n for n in range(64) if made[n] == 2 * math.pi / 16 / L]
    assert (kept, slow) == (list(range(41)), list(range(41, 55)))
    assert made[55:] == (0.0,) * 9


@pytest.mark.parametrize("wrong", [{"zones": 16}, {"slow": 8}, {"exponent": 1.0}, {"pairs": D}, {"truncate": 1024}])
def test_the_oracle_sees_a_broken_formula(wrong):
    made = create("giraffe", d_head=D, power=0.5).frequencies
    assert made.values != pytest.approx(expected(**{"exponent": 0.5, **wrong}), rel=1e-3, abs=1e-9)


def test_frequencies_of_any_scaling_can_be_truncated():
    scaled = frequencies.linear(frequencies.rotary(D), 4.0)
    assert frequencies.truncated(scaled, L).values == pytest.approx(
        [
            w / 4 if w / 4 >= 2 * math.pi / L else 2 * math.pi / 16 / L if w / 4 >= 2 * math.pi / 8 / L else 0.0
            for w in (10000.0 ** (-2 * n / D) for n in range(D // 2))
        ]
    )


def test_wrong_arguments():
    with pytest.raises(ValueError, match="power: expected a number from 0, got -1"):
        create("giraffe", d_head=D, power=-1.0)
    with pytest.raises(ValueError, match="trained_length"):
        create("giraffe", d_head=D, trained_length=0)
