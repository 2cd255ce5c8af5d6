"""BAM by loops over pairs, from the formula of the authors' README. Bianchessi et al. 2025."""

import pytest
import torch

from posenc import Positions, attend
from posenc.encodings.alibi import ALiBi
from posenc.encodings.bam import BAM

from .by_hand import close
from .test_biases import FORMULAS


def test_an_exponent_of_one_is_alibi_and_fresh_parameters_prefer_no_distance():
    delta = torch.arange(-9, 10)
    encoding = BAM(2).double()
    assert (encoding.at_distance(delta) == -1).all()
    with torch.no_grad():
        encoding.shape.fill_(1.0)
        encoding.log_scale.copy_(torch.tensor([0.5, 0.25]).log())
    close(encoding.at_distance(delta), ALiBi(2, slopes=(0.5, 0.25)).at_distance(delta), atol=1e-5)


def test_the_toeplitz_backend_serves_inference_alone():
    q, at = torch.zeros(1, 4, 3, 2, dtype=torch.float64), Positions.arange(1, 3)
    with torch.no_grad():
        attend(q, q, q, FORMULAS["bam"].encoding, at, impl="toeplitz")
    with pytest.raises(ValueError, match="toeplitz"):
        attend(q, q, q, FORMULAS["bam"].encoding, at, impl="toeplitz")


def test_wrong_arguments():
    with pytest.raises(ValueError, match="n_heads: expected a whole number from 1, got 0"):
        BAM(0)
