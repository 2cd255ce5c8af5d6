"""GRAPE by loops over pairs and tokens: Zhang et al. 2025, and the authors' code where it differs."""

import math

import numpy as np
import pytest
import torch

from posenc import Positions, attend
from posenc.encodings.alibi import ALiBi
from posenc.encodings.grape_a import GrapeA
from posenc.encodings.grape_ap import GrapeAP
from posenc.encodings.grape_m import GrapeM
from posenc.encodings.rope import RoPE

from .by_hand import attention, close, draw, each, products, sees, turned

M, H, G, D, W = 8, 4, 2, 6, 4
SLOPES = [2.0 ** (-8 * (h + 1) / H) for h in range(H)]


def drawn(encoding, seed: int = 60):
    encoding = encoding.double()
    with torch.no_grad():
        for number, parameter in enumerate(encoding.parameters()):
            parameter.copy_(torch.from_numpy(draw(seed + number, *parameter.shape)))
    return encoding


def softplus(x: float) -> float:
    return math.log1p(math.exp(x))


def tensors(batch=2, length=7):
    """q, k, v and the hidden states."""
    return *(draw(seed, batch, heads, length, D) for seed, heads in ((1, H), (2, G), (3, G))), draw(4, batch, length, M)


# GRAPE-A --------------------------------------------------------------------------------------------------------------


def additive(q, k, encoding, at_q, at_k, sign=1, scale=D**0.5) -> np.ndarray:
    """Eq. 4.6."""
    rate, code = encoding.rate.detach().numpy(), encoding.form == "code"
    gates = {"q": encoding.of_query, "k": encoding.of_key}
    logits = products(q, k)
    for b, h, i, j in each(*logits.shape):
        omega = softplus(rate[h]) * (SLOPES[h] if code else 1.0)
        total = 0.0
        for side, row in (("q", q[b, h, i]), ("k", k[b, h // (H // G), j])):
            if gates[side] is not None:
                vector = gates[side].detach().numpy()[h]
                vector = vector / math.sqrt(sum(vector**2)) if code else vector
                total += softplus(sum(vector * row) / scale)
        logits[b, h, i, j] += sign * (at_k[b][j] - at_q[b][i]) * omega * total
    return logits


@pytest.mark.parametrize("form", ["paper", "code"])
@pytest.mark.parametrize("gates", ["both", "query", "key"])
@pytest.mark.parametrize("impl", ["reference", "sdpa"])
def test_slopes_of_query_and_key(impl, gates, form):
    q, k, v, _ = tensors()
    encoding, at, order = drawn(GrapeA(D, H, gates=gates, form=form)), [[40 + n for n in range(7)]] * 2, [range(7)] * 2
    got = attend(*map(torch.from_numpy, (q, k, v)), encoding, Positions.arange(2, 7, 40), impl=impl)
    close(got, attention(additive(q, k, encoding, at, at), v, sees(order, order)), atol=1e-11)
    for broken in ({"sign": -1}, {"scale": 1.0}):
        with pytest.raises(AssertionError):
            close(got, attention(additive(q, k, encoding, at, at, **broken), v, sees(order, order)), atol=1e-3)


def test_fresh_rates_are_the_slopes_in_both_forms():
    for form in ("paper", "code"):
        fresh = GrapeA(D, H, form=form)
        omega = torch.nn.functional.softplus(fresh.rate) * (torch.tensor(SLOPES) if form == "code" else 1.0)
        close(omega, np.array(SLOPES), atol=1e-6)


def test_gates_of_a_half_are_alibi():
    encoding = GrapeA(D, H).double()
    with torch.no_grad():
        encoding.rate.copy_(torch.log(torch.expm1(torch.tensor(SLOPES, dtype=torch.float64) / (2 * math.log(2)))))
        encoding.of_query.zero_()
        encoding.of_key.zero_()  # softplus(0) = ln 2
    q, k, v = (torch.from_numpy(draw(seed, 1, H, 5, D)) for seed in (1, 2, 3))
    at = Positions.arange(1, 5)
    close(attend(q, k, v, encoding, at), attend(q, k, v, ALiBi(H), at).detach(), atol=1e-11)


# GRAPE-AP -------------------------------------------------------------------------------------------------------------


def integrals(q, k, x, encoding, at, order, documents, own=True, turn=1, both=None) -> np.ndarray:
    """Eqs. 5.1 and 5.2: sums over the tokens of the document after the key, up to the query."""
    weight = encoding.weight.detach().numpy().reshape(H, W, M)
    both = encoding.form == "paper" if both is None else both

    def probe(b, h, t, normal=True):
        p = weight[h] @ x[b, t]
        return p / math.sqrt(sum(p**2) / W + np.finfo(np.float64).eps) if normal else p

    code = encoding.form == "code"  # its apply_rotary_emb pairs halves and turns by -l

    def edge(b, h, i, s):
        key = turned(probe(b, h, s), [(-turn if code else turn) * at[b][s]] * (W // 2), "half" if code else "interleaved")
        return SLOPES[h] * math.log(1 / (1 + math.exp(-sum(probe(b, h, i, both) * key) / W)))

    logits = products(q, k)
    for b, h, i, j in each(*logits.shape):
        for s in range(x.shape[1]):
            between = order[b][j] < order[b][s] <= order[b][i] - (not own)
            if documents[b][s] == documents[b][i] == documents[b][j] and between:
                logits[b, h, i, j] += edge(b, h, i, s)
    return logits


# GRAPE-M --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("layout", ["interleaved", "half"])
def test_pairs_turn_by_learned_frequencies(layout, shared, reverse):
    q, k, v, _ = tensors()
    encoding = drawn(GrapeM(D, H, n_kv_heads=G, shared=shared, layout=layout, reverse=reverse))
    order, sign = [range(7)] * 2, -1 if reverse else 1

    def both(power):
        omega = power(encoding.log_frequencies.detach().numpy())

        def of(x, heads):
            new = np.zeros_like(x)
            for b, h, t in each(*x.shape[:3]):
                own = 0 if shared else h * G // heads
                new[b, h, t] = turned(x[b, h, t], [sign * (40 + t) * w for w in omega[own]], layout)
            return new

        return products(of(q, H), of(k, G))

    got = attend(*map(torch.from_numpy, (q, k, v)), encoding, Positions.arange(2, 7, 40))
    close(got, attention(both(np.exp), v, sees(order, order)), atol=1e-11)
    for broken in (np.abs, lambda learned: np.exp(-learned), lambda learned: -np.exp(learned)):
        with pytest.raises(AssertionError):
            close(got, attention(both(broken), v, sees(order, order)), atol=1e-3)


def test_the_authors_rotation():
    """model/llama-mha-grape-m-nonctx.py: y1 = x1 cos + x2 sin, y2 = -x1 sin + x2 cos on halves, ω = exp(log_freq)."""
    x, log_freq = draw(1, 1, 1, 5, D), draw(2, D // 2)
    encoding = GrapeM(D, 1, layout="half", reverse=True).double()
    with torch.no_grad():
        encoding.log_frequencies[0] = torch.from_numpy(log_freq)
    angle = np.arange(5)[:, None] * np.exp(log_freq)
    x1, x2 = x[0, 0, :, : D // 2], x[0, 0, :, D // 2 :]
    expected = np.concatenate([x1 * np.cos(angle) + x2 * np.sin(angle), -x1 * np.sin(angle) + x2 * np.cos(angle)], axis=1)
    close(encoding.rotate(torch.from_numpy(x), Positions.arange(1, 5), "query")[0, 0].detach(), expected)


def test_the_authors_matrix_of_path_integrals():
    """model/llama-mha-grape-ap-v1.py with c_p.weight as it is stored: rms_norm, halves, sums of a row less its cumsum."""
    x, weight, length = draw(1, 1, 6, M), draw(2, H * W, M), 6
    encoding = GrapeAP(M, H, width=W, form="code").double()
    encoding.load_state_dict({"weight": torch.from_numpy(weight)})
    p = (x[0] @ weight.T).reshape(length, H, W).transpose(1, 0, 2)
    normal = p / np.sqrt((p**2).mean(axis=-1, keepdims=True) + np.finfo(np.float64).eps)
    cos, sin = np.cos(np.arange(length))[:, None], np.sin(np.arange(length))[:, None]
    p1, p2 = normal[..., : W // 2], normal[..., W // 2 :]
    rotated = np.concatenate([p1 * cos + p2 * sin, -p1 * sin + p2 * cos], axis=-1)
    edges = np.log(1 / (1 + np.exp(-(p @ rotated.transpose(0, 2, 1)) / W))) * np.array(SLOPES)[:, None, None]
    edges = np.tril(edges)
    expected = edges.sum(axis=-1, keepdims=True) - edges.cumsum(axis=-1)
    q = torch.zeros(1, H, length, D, dtype=torch.float64)
    at = encoding.read_hidden(torch.from_numpy(x), Positions.arange(1, length))
    b, h, i, j = (
        torch.arange(n).view([-1 if axis == own else 1 for axis in range(4)]) for own, n in enumerate((1, H, 6, 6))
    )
    found = encoding.bias(q, q, at, at)(b, h, i, j)[0].detach()
    close(torch.tril(found), np.tril(expected), atol=1e-11)


def test_a_fresh_one_is_rope():
    q, k, v = (torch.from_numpy(draw(seed, 1, H, 7, D)) for seed in (1, 2, 3))
    at = Positions.arange(1, 7)
    expected = attend(q, k, v, RoPE(D, base=100.0), at)
    for shared in (True, False):
        close(attend(q, k, v, GrapeM(D, H, base=100.0, shared=shared).double(), at), expected, atol=1e-5)


# All ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "encoding",
    [GrapeA(D, H), GrapeA(D, H, form="code"), GrapeAP(M, H, width=W), GrapeM(D, H, shared=False), GrapeM(D, H)],
    ids=repr,
)
def test_a_slice_of_a_slice_of_the_heads(encoding):
    encoding, at = drawn(encoding), Positions.arange(1, 5, 3)
    q, k, v = (torch.from_numpy(draw(seed, 1, H, 5, D)) for seed in (1, 2, 3))
    x = torch.from_numpy(draw(4, 1, 5, M))
    whole = attend(q, k, v, encoding, encoding.read_hidden(x, at))
    part = encoding.heads(1, 4)
    again = part.heads(1, 2)
    close(attend(q[:, 1:4], k[:, 1:4], v[:, 1:4], part, part.read_hidden(x, at)), whole[:, 1:4].detach())
    close(attend(q[:, 2:3], k[:, 2:3], v[:, 2:3], again, again.read_hidden(x, at)), whole[:, 2:3].detach())


def test_wrong_arguments():
    with pytest.raises(ValueError, match="gates: expected one of 'both', 'query', 'key', got 'value'"):
        GrapeA(D, H, gates="value")
    with pytest.raises(ValueError, match="form: expected one of 'paper', 'code', got 'other'"):
        GrapeAP(M, H, form="other")
    with pytest.raises(ValueError, match="width: expected an even number from 2, got 3"):
        GrapeAP(M, H, width=3)
    with pytest.raises(ValueError, match="slopes: expected one for each of 4 heads"):
        GrapeA(D, H, slopes=(1.0, 2.0))
    with pytest.raises(ValueError, match=r"slopes: expected a positive number, got 0\.0"):
        GrapeAP(M, H, slopes=(0.0, 1.0, 1.0, 1.0))
    with pytest.raises(ValueError, match="n_kv_heads: expected a number that divides n_heads=4, got 3"):
        GrapeM(D, H, n_kv_heads=3)
    q = torch.zeros(1, 3, 2, D)
    at = Positions.arange(1, 2)
    with pytest.raises(ValueError, match="GrapeA: built for n_heads=4, got a tensor with 3 as q"):
        attend(q, q, q, GrapeA(D, H), at)
    with pytest.raises(ValueError, match="GrapeM: built for n_heads=4, got a tensor with 3 as q"):
        attend(q, q, q, GrapeM(D, H, shared=False), at)
    with pytest.raises(ValueError, match="at: carries nothing read by GrapeAP"):
        attend(torch.zeros(1, H, 2, D), q[:, :2], q[:, :2], GrapeAP(M, H), at)
