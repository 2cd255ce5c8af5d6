"""No rows, no tokens, no keys, and values of another width than the heads: what is served, and what is refused."""

import numpy as np
import pytest
import torch

from posenc import Attention, Positions, attend, create
from posenc.combined import Stack
from posenc.encodings.alibi import ALiBi
from posenc.encodings.floater import FLOATER
from posenc.encodings.irpe import IRPE
from posenc.encodings.lepe import LePE
from posenc.encodings.nezha import NEZHA
from posenc.encodings.nope import NoPE
from posenc.encodings.rope import RoPE
from posenc.encodings.shaw import Shaw

OPTIONS = ({}, {"window": (3, 0)}, {"chunk": 4}, {"mask": torch.ones(1, 1, 1, 1, dtype=torch.bool)})


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize("made", [NoPE, lambda: ALiBi(4), lambda: create("t5", n_heads=4)], ids=["nope", "alibi", "t5"])
def test_no_tokens(made, recorded):
    """However these positions are made; once with the log-sum-exp."""
    q, full = torch.zeros(2, 4, 0, 8, requires_grad=recorded), Positions.arange(2, 5)
    none = [Positions.arange(2, 0), full.narrow(2, 2), full.take([]), Positions.from_mask(torch.zeros(2, 0))]
    none += [Positions.at(full.coords[:, :0]), Positions(*(torch.zeros(2, 0, dtype=torch.long),) * 3, "document")]
    for at in (*none, Positions.cat(none)):
        for options in OPTIONS:
            assert attend(q, q, q, made(), at, **options).shape == (2, 4, 0, 8)
        out, lse = attend(q, q, q, made(), at, return_lse=True)
        assert out.shape == (2, 4, 0, 8)
        assert lse.shape == (2, 4, 0)


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize("name", ["shaw", "nezha", "transformer_xl", "wavelet", "t5", "alibi", "rope", "self_extend"])
def test_no_rows(name, recorded):
    encoding = create(name, d_model=32, d_head=8, n_heads=4)
    q, full = torch.zeros(0, 4, 5, 8, requires_grad=recorded), Positions.arange(2, 5)
    for at in (Positions.arange(0, 5), Positions.arange(1, 5), full.rows(1, 1), Positions.from_mask(torch.zeros(0, 5))):
        for options in ({}, {"mask": OPTIONS[-1]["mask"]}, {"window": (3, 0)}):
            out = attend(q, q, q, encoding, at, **options)
            assert out.shape == (0, 4, 5, 8)
            if recorded:
                out.sum().backward()
                assert q.grad.shape == q.shape


def test_no_keys_give_zeros():
    q, k = torch.randn(2, 4, 3, 8), torch.zeros(2, 4, 0, 8)
    for encoding in (NoPE(), RoPE(8), ALiBi(4), Shaw(8)):
        for at_k in (Positions.arange(2, 0), Positions.arange(2, 5).narrow(5, 5)):
            out, lse = attend(q, k, k, encoding, Positions.arange(2, 3), at_k, return_lse=True)
            assert torch.equal(out, torch.zeros(2, 4, 3, 8))
            assert torch.equal(lse, torch.full((2, 4, 3), -torch.inf))


def test_positions_of_nothing():
    assert Positions.arange(0, 3).coords.shape == (0, 3)
    assert Positions.arange(2, 0, torch.tensor([5, 7])).coords.shape == (2, 0)
    assert Positions.decode([]).coords.shape == (0, 1)
    assert Positions.arange(2, 0).consecutive_in is None
    joined = Positions.cat(
        [Positions.arange(2, 0), Positions.arange(2, 3, 4), Positions.arange(2, 0), Positions.arange(2, 1, 7)]
    )
    assert joined.coords.tolist() == [[4, 5, 6, 7]] * 2
    assert joined.consecutive_in == "row"
    assert Positions.cat([Positions.arange(2, 0)]).consecutive_in is None


def test_decoding_begins_with_no_tokens():
    """A row whose prompt is empty: the first token is what it is without."""
    torch.manual_seed(0)
    for encoding in (RoPE(8), create("fox", d_model=32, n_heads=4), create("path", d_model=32, n_heads=4, d_head=8)):
        module, x = Attention(32, 4, encoding), torch.randn(2, 3, 32)
        _, cache = module.decode(x[:, :0], Positions.arange(2, 0))
        out, cache = module.decode(x, Positions.arange(2, 3), cache)
        np.testing.assert_allclose(out.detach(), module(x, Positions.arange(2, 3)).detach(), atol=1e-6)
        assert module.decode(x[:, :0], Positions.arange(2, 0), cache)[0].shape == (2, 0, 32)


def test_floater_prepares_no_tokens():
    encoding = FLOATER(8)
    for batch, length in ((2, 0), (0, 3)):
        at = Positions.arange(batch, length)
        assert encoding.embed(torch.zeros(batch, length, 8), encoding.prepare(at)).shape == (batch, length, 8)


# Values of another width


@pytest.mark.parametrize("width", [1, 5, 11])
def test_values_that_meet_vectors_of_the_heads_width_are_refused_by_name(width):
    """Those of one channel were broadcast to eight."""
    q, v, at = torch.randn(2, 4, 6, 8), torch.randn(2, 4, 6, width), Positions.arange(2, 6)
    for encoding in (Shaw(8), NEZHA(8), Stack(RoPE(8), Shaw(8))):
        for impl in ("auto", "reference"):
            with pytest.raises(ValueError, match=rf"^v: \w+ adds vectors of 8 channels to the output, .*, {width}\]"):
                attend(q, q, v, encoding, at, impl=impl)
    with pytest.raises(ValueError, match=rf"RoPE: built for d_head=8, got a tensor with {width} as v"):
        attend(q, q, v, RoPE(8, sides=("query", "key", "value")), at)
    grid = Positions.grid(2, 3)
    with pytest.raises(ValueError, match=rf"LePE: built for d_head=8, got a tensor with {width} as v"):
        attend(q, q, v, LePE(8, 4), grid, causal=False)
    with pytest.raises(ValueError, match=r"^v: IRPE adds vectors of 8 channels to the output"):
        attend(q, q, v, IRPE(8, 4, on=("value",)), grid, causal=False)


@pytest.mark.parametrize("width", [1, 5, 11])
def test_values_of_any_width_by_loops(width):
    """Shaw's vectors on keys alone: p_ij ∝ exp(q_i·(k_j + a[clip(j - i)]) / √d), and the output is Σ_j p_ij v_j."""
    encoding = Shaw(8, max_distance=2, values=False)
    table = torch.randn(encoding.keys.shape, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        encoding.keys.copy_(table)
    random = np.random.default_rng(2)
    q, k, v = (random.standard_normal((1, 2, 6, n)) for n in (8, 8, width))
    expected, a = np.zeros((1, 2, 6, width)), table.double().numpy()
    for h, i in np.ndindex(2, 6):
        logits = [q[0, h, i] @ (k[0, h, j] + a[max(j - i, -2) + 2]) / 8**0.5 for j in range(i + 1)]
        shares = np.exp(np.array(logits) - max(logits))
        expected[0, h, i] = shares / shares.sum() @ v[0, h, : i + 1]
    for impl in ("reference", "sdpa", "relative", "auto"):
        out = attend(*(torch.tensor(x) for x in (q, k, v)), encoding, Positions.arange(1, 6), impl=impl)
        np.testing.assert_allclose(out.detach(), expected, atol=1e-12)
