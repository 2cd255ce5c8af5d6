"""torch's fused kernel takes the queries of a long causal row by blocks: the same results, one block's mask."""

import pytest
import torch

from posenc import Positions, attend, create
from posenc.attention.backends import sdpa
from posenc.encoding import PositionalEncoding

LENGTH = sdpa.LONG + 37  # a part of a block is left
ENCODINGS = {"fox": {"d_model": 24}, "fire": {"first_length": 100, "width": 4}}  # beyond its threshold


def run(name: str, impl: str) -> list[torch.Tensor]:
    """Output and all gradients, in fp64, of four query heads that share two key heads."""
    torch.manual_seed(0)
    encoding = create(name, n_heads=4, **ENCODINGS[name]).double()
    x = torch.randn(2, LENGTH, 24, dtype=torch.float64)
    q = torch.randn(2, 4, LENGTH, 8, dtype=torch.float64, requires_grad=True)
    k, v = torch.randn(2, 2, 2, LENGTH, 8, dtype=torch.float64).requires_grad_().unbind()
    at = encoding.read_hidden(x, Positions.arange(2, LENGTH))
    out = attend(q, k, v, encoding, at, impl=impl)
    weights = torch.randn(out.shape, generator=torch.Generator().manual_seed(1), dtype=out.dtype)
    return [out, *torch.autograd.grad((out * weights).sum(), [q, k, v, *encoding.parameters()])]


@pytest.mark.parametrize("name", ENCODINGS)
def test_blocks_give_the_output_and_gradients_of_the_definition(name):
    for mine, expected in zip(run(name, "sdpa"), run(name, "reference"), strict=True):
        size = max(1.0, expected.abs().max().item())  # one gradient is exactly 0: a number for a whole head changes nothing
        torch.testing.assert_close(mine, expected, rtol=1e-10, atol=1e-12 * size)


class Asked(PositionalEncoding):
    """A bias of nothing that writes down the pairs it was asked for."""

    def bias(self, q, k, at_q, at_k):
        self.pairs = []

        def of_pair(b, h, i, j):
            self.pairs.append((i.numel(), j.numel()))
            return torch.zeros(torch.broadcast_shapes(b.shape, h.shape, i.shape, j.shape), dtype=q.dtype)

        return of_pair


BLOCKS = [*((sdpa.BLOCK, stop) for stop in range(sdpa.BLOCK, sdpa.LONG + 1, sdpa.BLOCK)), (37, LENGTH)]


@pytest.mark.parametrize(
    ("dtype", "learning", "by_blocks"),
    [(torch.float32, True, True), (torch.bfloat16, False, True), (torch.bfloat16, True, False)],
)
def test_a_block_asks_for_its_own_queries_and_no_later_keys(dtype, learning, by_blocks):
    encoding, q = Asked(), torch.randn(1, 1, LENGTH, 8, dtype=dtype)
    with torch.set_grad_enabled(learning):
        attend(q, q, q, encoding, Positions.arange(1, LENGTH), impl="sdpa")
    assert encoding.pairs == (BLOCKS if by_blocks else [(LENGTH, LENGTH)])


def test_a_padded_long_row_is_one_document_by_blocks():
    encoding, q = Asked(), torch.randn(1, 1, LENGTH + 400, 8)
    attend(q, q, q, encoding, Positions.from_mask(torch.arange(LENGTH + 400)[None] < LENGTH))
    assert encoding.pairs == BLOCKS


def test_bidirectional_queries_see_the_keys_after_their_block():
    encoding, q = create("alibi", n_heads=1), torch.randn(1, 1, LENGTH, 8, dtype=torch.float64)
    at = Positions.arange(1, LENGTH)
    mine, expected = (attend(q, q, q, encoding, at, causal=False, impl=impl) for impl in ("sdpa", "reference"))
    torch.testing.assert_close(mine, expected, rtol=1e-10, atol=1e-12)
