"""Many queries are computed in blocks where no gradient is wanted: the same bits, in the memory of one block."""

import pytest
import torch

from posenc import Positions, attend, create
from posenc.attention.backends import reference
from posenc.encodings.cope import CoPE
from posenc.kernels import cope_counts

HEADS, WIDTH = 2, 16
PLACES = {
    "row": lambda length: Positions.arange(2, length),
    "packed": lambda length: Positions.packed([0, length // 3, length]).expand(2),
    "padded": lambda length: Positions.from_mask(torch.arange(length).expand(2, -1) >= torch.tensor([[0], [7]])),
}


def inputs(name: str, at: Positions):
    torch.manual_seed(0)
    encoding = create(name, d_model=HEADS * WIDTH, n_heads=HEADS)
    with torch.no_grad():
        for parameter in encoding.parameters():
            parameter.normal_()
    q, k, v = torch.randn(3, 2, HEADS, at.length, WIDTH).unbind()
    return encoding, q, k, v, encoding.read_hidden(torch.randn(2, at.length, HEADS * WIDTH), at)


@torch.no_grad()
def outputs(monkeypatch, room: int, *given):
    """The output, and how many logits were held at once."""
    encoding, q, k, v, at = given
    held, whole = [], reference.scores_of

    def counted(*arguments):
        scores = whole(*arguments)
        held.append(scores.logits.numel())
        return scores

    with monkeypatch.context() as patch:
        patch.setattr(reference, "scores_of", counted)
        patch.setattr(reference, "ROOM", room)
        return attend(q, k, v, encoding, at, impl="reference"), held


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", ["cope", "fox", "fire", "shaw"])
def test_blocks_give_the_bits_of_the_whole(name, place, monkeypatch):
    given = inputs(name, PLACES[place](150))
    whole, held = outputs(monkeypatch, 2**40, *given)
    assert len(held) == 1
    in_blocks, held = outputs(monkeypatch, 2**14, *given)
    assert len(held) > 3
    assert max(held) <= 2**14
    assert torch.equal(in_blocks, whole)


def test_of_many_keys_a_block_reads_those_that_it_may_see(monkeypatch):
    given = inputs("fox", Positions.arange(2, 600))
    whole, _ = outputs(monkeypatch, 2**40, *given)
    in_blocks, held = outputs(monkeypatch, 2**16, *given)
    assert sum(held) < 0.6 * 2 * HEADS * 600**2
    torch.testing.assert_close(in_blocks, whole)


def test_cope_counts_only_the_keys_before_the_last_position(monkeypatch):
    """A block counts as many of the last keys as reach it; tokens that may be stored in any order are all counted. The C++
    kernel gives the same."""
    encoding, q, k, v, at = inputs("cope", Positions.arange(2, 900))
    encoding = CoPE(WIDTH, n_positions=8)
    torch.nn.init.normal_(encoding.table)
    q[0] = -9 * k.mean(dim=2, keepdim=True)[0]  # gates nearly shut: further keys count
    counted_keys, counts = [], encoding._counts
    monkeypatch.setattr(
        encoding, "_counts", lambda logits, *rest: counted_keys.append(logits.shape[-1]) or counts(logits, *rest)
    )
    here = at.narrow(890, 900)
    unordered = [Positions(one.coords, one.order, one.document) for one in (here, at)]
    with torch.no_grad():
        by_kernel = attend(q[:, :, 890:], k, v, encoding, here, at, impl="reference")
        monkeypatch.setattr(cope_counts, "can_serve", lambda *_: False)
        near = attend(q[:, :, 890:], k, v, encoding, here, at, impl="reference")
        assert max(counted_keys) < 900
        every = attend(q[:, :, 890:], k, v, encoding, *unordered, impl="reference")
    assert counted_keys[-1] == 900
    torch.testing.assert_close(near, every)
    torch.testing.assert_close(by_kernel, every)


def test_a_gradient_is_that_of_one_graph():
    encoding, q, k, v, at = inputs("cope", Positions.arange(2, 600))
    q.requires_grad_()
    attend(q, k, v, encoding, at, impl="reference").square().sum().backward()
    assert q.grad is not None
    assert encoding.table.grad is not None
