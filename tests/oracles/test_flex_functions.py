"""score_mod and mask_mod in torch's own flex_attention, against dense attention in fp64 with biases and masks by loops."""

import math

import pytest
import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

import posenc
from posenc import Positions
from posenc.attention import mask_mod, score_mod
from sampling import every_second

H, D = 4, 16
SLOPES = [2.0 ** (-8 * h / H) for h in range(1, H + 1)]


def t5_bucket(distance):
    """T5's bucket of query - key, causal, 32 buckets, 128 as the farthest: the formula of its authors' code."""
    if distance < 16:
        return max(distance, 0)
    return min(16 + int(math.log(distance / 16) / math.log(128 / 16) * 16), 31)


def biases(name, encoding):
    if name == "alibi":
        return lambda h, delta: -SLOPES[h] * abs(delta)
    table = encoding.table.tolist()
    return lambda h, delta: table[t5_bucket(delta)][h]


def places():
    """Positions, and for each token of each row: coordinate, order, document."""
    run = [[(n, n, 0) for n in range(40)]]
    packed = [[(n, n, 0) for n in range(15)] + [(n - 15, n, 1) for n in range(15, 40)]]
    padded = [[(0, 0, -1)] * 10 + [(n, n, 0) for n in range(30)], [(n, n, 0) for n in range(40)]]
    pad = torch.tensor([[0] * 10 + [1] * 30, [1] * 40])
    return {
        "run": (Positions.arange(1, 40), run),
        "packed": (Positions.packed([0, 15, 40]), packed),
        "padded": (Positions.from_mask(pad), padded),
    }


def dense(q, k, v, bias, rows, sees):
    """Attention by loops over pairs; zeros for a query that sees no key."""
    out = torch.zeros_like(q)
    for b in range(q.shape[0]):
        places = rows[b % len(rows)]
        for i, query in enumerate(places):
            seen = [j for j, key in enumerate(places) if sees(query, key)]
            for h in range(H if seen else 0):
                added = q.new_tensor([bias(h, query[0] - places[j][0]) for j in seen])
                scores = k[b, h, seen] @ q[b, h, i] / math.sqrt(D) + added
                out[b, h, i] = scores.softmax(0) @ v[b, h, seen]
    return out


MASKS = {
    "causal": ({}, lambda q, k: k[1] <= q[1]),
    "window": ({"window": (7, 0)}, lambda q, k: 0 <= q[1] - k[1] <= 7),
    "chunk": ({"chunk": 8}, lambda q, k: k[1] <= q[1] and q[1] // 8 == k[1] // 8),
    "both ways": ({"causal": False, "window": (None, 3)}, lambda q, k: k[1] - q[1] <= 3),
}


@pytest.mark.parametrize(("name", "place", "mask"), every_second(["alibi", "t5"], ["run", "packed", "padded"], MASKS))
def test_flex_attention_with_them_is_attention_by_loops(name, place, mask):
    at, rows = places()[place]
    options, allowed = MASKS[mask]
    encoding = posenc.laws.draw_parameters(posenc.create(name, n_heads=H), std=0.5)
    batch = max(2, at.batch)
    q, k, v = torch.randn(3, batch, H, 40, D, dtype=torch.float64, generator=torch.Generator().manual_seed(3))

    def sees(query, key):
        return query[2] == key[2] >= 0 and allowed(query, key)

    expected = dense(q, k, v, biases(name, encoding), rows, sees)
    blocks = create_block_mask(mask_mod(at, **options), batch, None, 40, 40, device="cpu")
    with torch.no_grad():
        actual = flex_attention(q, k, v, score_mod=score_mod(encoding, at), block_mask=blocks)
    torch.testing.assert_close(actual, expected, rtol=1e-6, atol=1e-6)  # the table is in fp32


def test_queries_of_a_cache_have_positions_of_their_own():
    encoding = posenc.create("alibi", n_heads=H)
    at_q, at_k = Positions.arange(1, 3, 37), Positions.arange(1, 40)
    q, k, v = (torch.randn(1, H, n, D, generator=torch.Generator().manual_seed(n)) for n in (3, 40, 41))
    v = v[:, :, :40]
    blocks = create_block_mask(mask_mod(at_q, at_k), 1, None, 3, 40, device="cpu")
    with torch.no_grad():
        actual = flex_attention(q, k, v, score_mod=score_mod(encoding, at_q, at_k), block_mask=blocks)
    torch.testing.assert_close(actual, posenc.attend(q, k, v, encoding, at_q, at_k, impl="reference"), rtol=2e-6, atol=2e-6)


def test_the_table_gets_the_gradient_of_a_loop():
    """T5's: the sum over pairs of one bucket of what arrives at the score."""
    encoding = posenc.laws.draw_parameters(posenc.create("t5", n_heads=H), std=0.5)
    added = score_mod(encoding, Positions.arange(1, 12))
    zero, arrives = torch.zeros(()), torch.randn(H, 12, 12, generator=torch.Generator().manual_seed(0))
    whole = [
        arrives[h, i, j] * added(zero, torch.tensor(0), torch.tensor(h), torch.tensor(i), torch.tensor(j))
        for h in range(H)
        for i in range(12)
        for j in range(i + 1)
    ]
    (gradient,) = torch.autograd.grad(torch.stack(whole).sum(), encoding.table)
    expected = torch.zeros(32, H)
    for h in range(H):
        for i in range(12):
            for j in range(i + 1):
                expected[t5_bucket(i - j), h] += arrives[h, i, j]
    torch.testing.assert_close(gradient if gradient.shape == expected.shape else gradient.T, expected)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("rope", "RoPE is more than a bias of the distance"),
        ("xpos", "XPos is more than a bias"),
        ("cope", "CoPE is more than a bias"),
        ("shaw", "Shaw is more than a bias"),
        ("nope", "NoPE has no bias"),
        ("sinusoidal", "has no bias"),
    ],
)
def test_what_a_score_mod_cannot_express_is_refused(name, said):
    with pytest.raises(ValueError, match=said):
        score_mod(posenc.create(name, d_model=64, n_heads=H, d_head=D), Positions.arange(1, 8))


def test_positions_that_are_no_whole_numbers_are_refused():
    encoding = posenc.create("alibi", n_heads=H)
    with pytest.raises(ValueError, match="at_q: expected a whole number for each token"):
        score_mod(encoding, Positions.grid(3, 3))
    with pytest.raises(ValueError, match="at_q: expected positions at most"):
        score_mod(encoding, Positions(*torch.tensor([[[0, 2**30]], [[0, 1]], [[0, 0]]])))


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda at: score_mod(posenc.create("alibi", n_heads=H), "x"), TypeError, "at_q: expected"),
        (lambda at: score_mod(posenc.create("alibi", n_heads=H), Positions.arange(1, 0)), ValueError, "at_q: .* got none"),
        (lambda at: mask_mod("x"), TypeError, "at_q: expected"),
        (lambda at: mask_mod(at, window=(-1, 0)), ValueError, "window: expected"),
        (lambda at: mask_mod(at, chunk=0), ValueError, "chunk: expected"),
    ],
)
def test_wrong_arguments_are_refused_by_name(call, error, said):
    with pytest.raises(error, match=said):
        call(Positions.arange(1, 8))
