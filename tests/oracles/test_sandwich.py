"""Sandwich by loops over pairs and channels of the sinusoidal vectors. Chi et al. 2022, section 5."""

import pytest
import torch

from posenc.encodings.sandwich import Sandwich

from .by_hand import close


def test_defaults_are_the_papers():
    encoding = Sandwich(12)
    assert encoding.configuration["width"] == 128
    assert encoding.ratios[:2] == (8 / 12, 16 / 12)
    close(encoding.at_distance(torch.tensor([0.0]))[:, 0], [64 / (8 * h / 12) for h in range(1, 13)])


def test_ratios_are_checked():
    with pytest.raises(ValueError, match="ratios: expected a number other than 0 for each of 2 heads"):
        Sandwich(2, ratios=(1.0, 0.0))
