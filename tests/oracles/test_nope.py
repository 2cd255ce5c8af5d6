"""NoPE against plain softmax attention by loops. Haviv et al. 2022; Kazemnejad et al. 2023, section 3."""

import numpy as np
import pytest
import torch

from posenc import Positions, attend
from posenc.encodings.nope import NoPE

from .by_hand import attention, close, draw, products, sees


@pytest.mark.parametrize("impl", ["reference", "sdpa"])
@pytest.mark.parametrize("causal", [True, False])
def test_plain_attention(impl, causal):
    q, k, v = draw(1, 2, 4, 5, 6), draw(2, 2, 2, 5, 6), draw(3, 2, 2, 5, 6)
    order = [range(5)] * 2
    expected = attention(products(q, k), v, sees(order, order, causal=causal))
    got = attend(*map(torch.from_numpy, (q, k, v)), NoPE(), Positions.arange(2, 5, 7), causal=causal, impl=impl)
    close(got.numpy(), expected)


def test_blind_to_order_without_a_mask_and_not_with_one_S7():
    """Attention(PX) = P·Attention(X) bidirectionally; a causal mask breaks it."""
    x, moved = draw(4, 1, 1, 6, 4), [3, 0, 5, 1, 4, 2]
    at = Positions.arange(1, 6)

    def out(rows, causal):
        tensor = torch.from_numpy(rows)
        return attend(tensor, tensor, tensor, NoPE(), at, causal=causal).numpy()

    close(out(x[:, :, moved], False), out(x, False)[:, :, moved])
    assert np.abs(out(x[:, :, moved], True) - out(x, True)[:, :, moved]).max() > 0.1


def test_coordinates_do_not_matter_D14():
    q, k, v = (torch.from_numpy(draw(seed, 1, 2, 4, 6)) for seed in (5, 6, 7))
    plain = attend(q, k, v, NoPE(), Positions.arange(1, 4))
    odd = attend(q, k, v, NoPE(), Positions.at(torch.tensor([[9.5, -2.0, 1e6, 0.25]])))
    assert torch.equal(plain, odd)


def test_uses_no_seam_and_has_nothing_to_store():
    encoding = NoPE()
    assert encoding.seams == frozenset()
    assert encoding.state_dict() == {}
    x, at = torch.from_numpy(draw(8, 1, 3, 4)), Positions.arange(1, 3, 5)
    assert encoding.embed(x, at) is x
    assert all(encoding.rotate(x[:, None], at, side).equal(x[:, None]) for side in ("query", "key", "value", "output"))
    assert encoding.softmax_scale(16) == 0.25
    assert encoding.at_layer(3) is encoding
    assert encoding.at_length(10) is encoding
    assert encoding.heads(0, 1) is encoding
