"""Queries that see no key, by loops in float64: outputs, log-sum-exps and all gradients.

out_i = Σ_j p_ij v_j,   p_ij = exp(L_ij - s_i),   s_i = ln Σ_j exp(L_ij) over the keys that are seen; 0 and -∞ for none
dL_ij = p_ij (g_i·(v_j - out_i) + u_i),   g and u what comes back for out and s
"""

import math

import numpy as np
import pytest
import torch

from posenc import Positions, attend
from posenc.encodings.alibi import ALiBi
from posenc.encodings.hstu import HSTU
from posenc.encodings.lm_infinite import LMInfinite
from posenc.encodings.lookhere import LookHere
from posenc.encodings.nope import NoPE
from posenc.encodings.stick_breaking import StickBreaking
from posenc.encodings.wall import Wall

B, H, T, D = 2, 2, 7, 4
RNG = np.random.default_rng(3)
Q, K, V, G = (RNG.standard_normal((B, H, T, D)) for _ in range(4))
U = RNG.standard_normal((B, H, T))
SCALE = D**-0.5
SLOPES = (0.5, 0.25)
ALL = slice(None)


def by_loops(q, k, v, logit, g, u):
    """out, s, the gradients of q, k and v, and those of all logits. `logit(b, h, i, j)` is L and its gradients by query
    and key; None where the key is not seen."""
    out, sums, of_logits = np.zeros(q.shape), np.full(q.shape[:3], -math.inf), np.zeros((*q.shape[:3], k.shape[2]))
    d_q, d_k, d_v = np.zeros_like(q), np.zeros_like(k), np.zeros_like(v)
    for b, h, i in np.ndindex(q.shape[:3]):
        seen = {j: one for j in range(k.shape[2]) if (one := logit(b, h, i, j)) is not None}
        if not seen:
            continue
        top = max(one[0] for one in seen.values())
        sums[b, h, i] = top + math.log(sum(math.exp(one[0] - top) for one in seen.values()))
        shares = {j: math.exp(one[0] - sums[b, h, i]) for j, one in seen.items()}
        out[b, h, i] = sum(share * v[b, h, j] for j, share in shares.items())
        for j, share in shares.items():
            of_logits[b, h, i, j] = share * (g[b, h, i] @ (v[b, h, j] - out[b, h, i]) + u[b, h, i])
            d_q[b, h, i] += of_logits[b, h, i, j] * seen[j][1]
            d_k[b, h, j] += of_logits[b, h, i, j] * seen[j][2]
            d_v[b, h, j] += share * g[b, h, i]
    return {"out": out, "s": sums, "q": d_q, "k": d_k, "v": d_v, "logits": of_logits}


def agrees(encoding, logit, at_q, at_k=None, queries=ALL, keys=ALL, causal=True, **options):
    """By the reference, torch's fused kernel and "auto", in float64 and float32, with a record and without."""
    q, k, v, g, u = Q[:, :, queries], K[:, :, keys], V[:, :, keys], G[:, :, queries], U[:, :, queries]
    true = {summed: by_loops(q, k, v, logit(q, k), g, u if summed else 0 * u) for summed in (False, True)}
    blind = true[True]["s"] == -math.inf
    assert blind.any()
    assert not blind.all()
    for dtype, allowed in ((torch.float64, 1e-12), (torch.float32, 2e-5)):
        for impl in ("reference", "sdpa", "auto"):
            leaves = [torch.tensor(x, dtype=dtype, requires_grad=True) for x in (q, k, v)]
            summed = impl == "reference"
            found = attend(*leaves, encoding, at_q, at_k, causal=causal, impl=impl, return_lse=summed, **options)
            out, lse = found if summed else (found, None)
            loss = (out * torch.tensor(g, dtype=dtype)).sum()
            if summed:
                loss = loss + (lse * torch.tensor(u, dtype=dtype))[torch.tensor(~blind)].sum()
                np.testing.assert_allclose(lse.detach(), true[True]["s"], atol=allowed)
            with torch.no_grad():
                unrecorded = attend(*leaves, encoding, at_q, at_k, causal=causal, impl=impl, **options)
            results = [("out", out), ("out", unrecorded), *zip("qkv", torch.autograd.grad(loss, leaves), strict=True)]
            for name, one in results:
                about = f"{name} by {impl} in {dtype}"
                np.testing.assert_allclose(one.detach(), true[summed][name], atol=allowed, err_msg=about)
            assert not out[torch.tensor(blind)].any()
            assert not unrecorded[torch.tensor(blind)].any()


def of_product(seen, added=lambda b, h, i, j: 0.0):
    """L = q·k/√d + what is added, where a key is seen."""

    def of_tensors(q, k):
        def logit(b, h, i, j):
            if not seen(b, i, j):
                return None
            return q[b, h, i] @ k[b, h, j] * SCALE + added(b, h, i, j), k[b, h, j] * SCALE, q[b, h, i] * SCALE

        return logit

    return of_tensors


@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("encoding", [NoPE(), ALiBi(H, slopes=SLOPES)], ids=["nope", "alibi"])
def test_padding_on_either_side_and_a_row_of_padding(encoding, listed):
    real = np.array([[0, 0, 1, 1, 1, 1, 0], [0] * T])
    at = Positions.from_mask(torch.tensor(real))
    if listed:
        at = Positions(at.coords, at.order, at.document)
    slope = SLOPES if isinstance(encoding, ALiBi) else (0.0, 0.0)
    logit = of_product(lambda b, i, j: real[b, i] and real[b, j] and j <= i, lambda b, h, i, j: -slope[h] * (i - j))
    agrees(encoding, logit, at)


@pytest.mark.parametrize("encoding", [NoPE(), ALiBi(H, slopes=SLOPES)], ids=["nope", "alibi"])
def test_keys_that_come_later_that_are_far_away_or_of_another_chunk(encoding):
    at, slope = Positions.arange(B, T), SLOPES if isinstance(encoding, ALiBi) else (0.0, 0.0)
    for queries, keys, seen, options in (
        (slice(0, 4), slice(2, 7), lambda i, j: j <= i, {}),
        (slice(3, 7), slice(0, 3), lambda i, j: i - j <= 2, {"window": (2, 0)}),
        (slice(3, 7), slice(1, 5), lambda i, j: j <= i and i // 4 == j // 4 and i != 3, {"chunk": 4, "mask": True}),
    ):
        first, begin = queries.start, keys.start
        if options.get("mask"):
            options["mask"] = (torch.arange(3, 7) != 3)[None, None, :, None]
        logit = of_product(
            lambda b, i, j, seen=seen, first=first, begin=begin: seen(i + first, j + begin),
            lambda b, h, i, j, first=first, begin=begin: -slope[h] * (i + first - j - begin),
        )
        of_q, of_k = (at.narrow(part.start, part.stop) for part in (queries, keys))
        agrees(encoding, logit, of_q, of_k, queries=queries, keys=keys, **options)


@pytest.mark.parametrize("kind", ["bool", "-inf", "sinks"])
@pytest.mark.parametrize("encoding", [NoPE(), ALiBi(H, slopes=SLOPES)], ids=["nope", "alibi"])
def test_masks(encoding, kind):
    """The first query sees nothing, nor does the fourth; of a mask of reals -∞ hides. A sink is seen by none as a key."""
    seen = np.tril(np.ones((T, T), bool), -1)
    seen[3] = False
    added = RNG.standard_normal((T, T)) if kind == "-inf" else np.zeros((T, T))
    mask = torch.tensor(np.where(seen, added, -math.inf) if kind == "-inf" else seen)[None, None]
    slope = SLOPES if isinstance(encoding, ALiBi) else (0.0, 0.0)
    logit = of_product(lambda b, i, j: seen[i, j], lambda b, h, i, j: added[i, j] - slope[h] * (i - j))
    at = Positions.arange(B, T)
    if kind != "sinks":
        agrees(encoding, logit, at, mask=mask)
        return
    sinks = torch.tensor([0.3, -0.4], dtype=torch.float64, requires_grad=True)
    q, k, v = (torch.tensor(x) for x in (Q, K, V))
    plain = by_loops(Q, K, V, logit(Q, K), G, U)
    share = 1 / (1 + np.exp(np.array([[0.3], [-0.4]]) - plain["s"]))[..., None]  # exp(s) / (exp(s) + exp(sink))
    for impl in ("reference", "sdpa"):
        out = attend(q, k, v, encoding, at, mask=mask, sinks=sinks, impl=impl)
        np.testing.assert_allclose(out.detach(), plain["out"] * share, atol=1e-12)
        (found,) = torch.autograd.grad((out * torch.tensor(G)).sum(), sinks)
        of_share = -(share * (1 - share) * plain["out"] * G).sum((0, 2, 3))
        np.testing.assert_allclose(found, of_share, atol=1e-12)


def test_a_field_of_view_of_which_a_mask_leaves_nothing():
    """LookHere: heads that look down and left from a grid of 3 columns; a mask hides all but the earlier tokens."""
    places = np.array([[y, x] for y in range(3) for x in range(3)])[:T]
    mask = np.tril(np.ones((T, T), bool), -1)

    def seen_by(h, i, j):
        down, across = places[j] - places[i]
        return mask[i, j] and (down >= 0 if h == 0 else across <= 0)

    def of_tensors(q, k):
        def logit(b, h, i, j):
            if not seen_by(h, i, j):
                return None
            penalty = 2.0 * 1.5 * SLOPES[h] * math.dist(places[i], places[j])
            return q[b, h, i] @ k[b, h, j] * SCALE - penalty, k[b, h, j] * SCALE, q[b, h, i] * SCALE

        return logit

    encoding = LookHere(H, fields=("half_down", "half_left"), slopes=SLOPES)
    at = Positions.at(torch.tensor(places)[None])
    agrees(encoding, of_tensors, at, causal=False, mask=torch.tensor(mask)[None, None])


def test_keys_that_are_neither_near_nor_starting():
    """LM-Infinite: 3 tokens are near, the first one is always seen; of the keys 1 … 3 a late query sees none."""
    queries, keys = slice(2, 7), slice(1, 4)

    def turned(p):
        """R(p), pairs side by side, frequencies 1 and 1/100."""
        whole = np.zeros((D, D))
        for pair, frequency in enumerate((1.0, 0.01)):
            c, s = math.cos(p * frequency), math.sin(p * frequency)
            whole[2 * pair : 2 * pair + 2, 2 * pair : 2 * pair + 2] = [[c, -s], [s, c]]
        return whole

    def of_tensors(q, k):
        def logit(b, h, i, j):
            apart = i + 2 - j - 1
            if not 0 <= apart < 3:
                return None
            between = turned(-apart) * SCALE  # R(i)ᵀ R(j)
            return q[b, h, i] @ between @ k[b, h, j], between @ k[b, h, j], between.T @ q[b, h, i]

        return logit

    at = Positions.arange(B, T)
    of_q, of_k = at.narrow(2, 7), at.narrow(1, 4)
    agrees(LMInfinite(D, near=3, starting=1, layout="interleaved"), of_tensors, of_q, of_k, queries=queries, keys=keys)


@pytest.mark.parametrize("pad", ["left", "right", "both"])
def test_gates_that_add_up_to_more_than_float32_can_hold_as_an_exponential(pad):
    """WALL: five tokens whose gates add up to -150; in float32 e^150 is infinite. The gradient of the gates' offset too."""
    begin = {"left": 2, "right": 0, "both": 1}[pad]
    real = np.zeros((B, T), int)
    real[0, begin : begin + 5] = 1
    x, offset = RNG.standard_normal((B, T, 3)), -30 + RNG.standard_normal(H * D)
    weight = RNG.standard_normal((H * D, 3)) / 10
    z = np.einsum("btm,cm->btc", x, weight) + offset
    gates = -np.logaddexp(0, -z) * real[:, :, None]
    sums = gates.cumsum(axis=1).reshape(B, T, H, D)  # P

    def of_tensors(q, k):
        def logit(b, h, i, j):
            if not (real[b, i] and real[b, j] and j <= i):
                return None
            decay = np.exp(sums[b, i, h] - sums[b, j, h]) * SCALE
            return (q[b, h, i] * k[b, h, j] * decay).sum(), k[b, h, j] * decay, q[b, h, i] * decay

        return logit

    true = by_loops(Q, K, V, of_tensors(Q, K), G, 0 * U)
    of_sums = np.zeros_like(sums)
    for b, h, i, j in zip(*np.nonzero(true["logits"]), strict=True):
        term = true["logits"][b, h, i, j] * Q[b, h, i] * K[b, h, j] * np.exp(sums[b, i, h] - sums[b, j, h]) * SCALE
        of_sums[b, i, h] += term
        of_sums[b, j, h] -= term
    of_gates = of_sums[:, ::-1].cumsum(axis=1)[:, ::-1].reshape(B, T, H * D) * real[:, :, None]
    true["offset"] = (of_gates / (1 + np.exp(z))).sum((0, 1))

    encoding = Wall(3, H, D)
    with torch.no_grad():
        encoding.weight.copy_(torch.tensor(weight))
        encoding.offset.copy_(torch.tensor(offset))
    for dtype, allowed in ((torch.float64, 1e-6), (torch.float32, 2e-5)):  # the parameters are float32
        at = encoding.read_hidden(torch.tensor(x, dtype=dtype), Positions.from_mask(torch.tensor(real)))
        for impl in ("reference", "sdpa"):
            leaves = [torch.tensor(one, dtype=dtype, requires_grad=True) for one in (Q, K, V)]
            out = attend(*leaves, encoding, at, impl=impl)
            found = torch.autograd.grad(
                (out * torch.tensor(G, dtype=dtype)).sum(), [*leaves, encoding.offset], retain_graph=True
            )
            for name, one in zip(("out", "q", "k", "v", "offset"), (out.detach(), *found), strict=True):
                np.testing.assert_allclose(one, true[name], atol=allowed, err_msg=f"{name} by {impl} in {dtype}")


@pytest.mark.parametrize("encoding", [StickBreaking(), HSTU(T)], ids=["stick_breaking", "hstu"])
def test_a_mask_of_minus_infinity_where_there_is_no_softmax(encoding):
    """What a mask of reals hides gets nothing, forwards and backwards."""
    at = Positions.arange(B, T)
    if encoding.axes == 3:
        at = Positions.at(at.coords[..., None].expand(-1, -1, 3))
    q, k, v = (torch.tensor(x, requires_grad=True) for x in (Q, K, V))
    seen = torch.ones(T, T, dtype=torch.bool).tril(-1)
    seen[3] = False
    outs = []
    for mask in (seen, torch.zeros(T, T, dtype=torch.float64).masked_fill(~seen, -torch.inf)):
        out = attend(q, k, v, encoding, at, mask=mask[None, None])
        assert not out[:, :, [0, 3]].any()
        outs.append([out, *torch.autograd.grad((out * torch.tensor(G)).sum(), (q, k, v))])
    for mine, theirs in zip(*outs, strict=True):
        assert torch.equal(mine, theirs)
        assert mine.isfinite().all()
