"""KERPLE by loops over pairs. Chi et al. 2022, equations of the logarithmic and the power variant."""

import math

import pytest
import torch

from posenc.checking import laws
from posenc.encodings.alibi import ALiBi
from posenc.encodings.kerple import KERPLE

from .by_hand import close
from .test_biases import FORMULAS, filled


def test_power_one_is_alibi():
    delta = torch.arange(-9, 10)
    power = filled(KERPLE(2, kernel="power"), scale=[math.log(math.expm1(x)) for x in (0.5, 0.25)], shape=0.0)
    close(power.at_distance(delta), ALiBi(2, slopes=(0.5, 0.25)).at_distance(delta))


def test_the_logarithm_of_large_distances_does_not_overflow():
    far = FORMULAS["kerple log"].encoding.at_distance(torch.tensor([2**40]))
    for head in range(4):
        assert math.isclose(far[head].item(), FORMULAS["kerple log"].term(head, 2**40, 0), rel_tol=1e-12)


@pytest.mark.parametrize("kernel", ["log", "power"])
def test_fresh_parameters_lie_in_the_ranges_of_the_authors_code(kernel):
    torch.manual_seed(0)
    bias = KERPLE(4096, kernel=kernel).double().at_distance(torch.tensor([1, 0]))
    assert not bias[:, 1].any()
    if kernel == "power":  # |1|^r2 is 1, so this is r1 ~ U(0, 1)
        assert 0 < -bias[:, 0].max() < 0.01
        assert 0.99 < -bias[:, 0].min() < 1
        assert abs(-bias[:, 0].mean() - 0.5) < 0.02


@pytest.mark.acceptance
def test_the_power_kernel_obeys_the_laws():
    laws.check(laws.draw_parameters(KERPLE(4, kernel="power"), seed=1))


def test_wrong_arguments():
    with pytest.raises(ValueError, match="kernel: expected one of 'log', 'power', got 'exp'"):
        KERPLE(4, kernel="exp")
    with pytest.raises(ValueError, match="n_heads: expected a whole number from 1, got 0"):
        KERPLE(0)
