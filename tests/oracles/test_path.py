"""PaTH by products of dense matrices, one token after the other. Yang et al. 2025, section 2."""

import math
import random

import numpy as np
import pytest
import torch

from posenc import Attention, Positions, attend
from posenc.combined import Stack
from posenc.encodings.alibi import ALiBi
from posenc.encodings.bases.content_dependent import along_the_path
from posenc.encodings.path import BLOCK, PaTH, path_scores
from posenc.encodings.path_fox import path_fox

from .by_hand import attention, close, draw, each, products, sees

M, H, G, D = 7, 4, 2, 5


def filled(**options) -> PaTH:
    encoding = PaTH(M, H, D, n_kv_heads=G, rank=3, **options).double()
    with torch.no_grad():
        for seed, parameter in enumerate(encoding.parameters()):
            parameter.copy_(torch.from_numpy(draw(80 + seed, *parameter.shape)))
    return encoding


def reflections(encoding, x, order, documents, b: int, g: int, symmetric=True) -> list[np.ndarray]:
    """H of every token, for a key head."""
    down, up, taps, turn, offset = (
        getattr(encoding, name).detach().numpy() for name in ("down", "up", "taps", "turn", "turn_offset")
    )
    found = []
    for t in range(x.shape[1]):
        earlier = [s for s in range(x.shape[1]) if documents[b][s] == documents[b][t] and order[b][s] <= order[b][t]]
        read = sorted(earlier, key=lambda s: order[b][s])[-3:]
        w = np.zeros(D)
        for c in range(D):
            row = g * D + c
            for back, s in enumerate(reversed(read)):
                w[c] += taps[row, 2 - back] * (up[row] @ (down @ x[b, s]))
        w = w / (1 + np.exp(-w))
        w = w / math.sqrt(w @ w + 1e-6)
        beta = 2 / (1 + math.exp(-(turn[g] @ x[b, t] + offset[g])))
        found.append(np.eye(D) - beta * np.outer(w, w) if symmetric else np.eye(D) - beta / 2 * np.outer(w, w))
    return found


def papers(q, k, x, encoding, order, documents, reverse=False, symmetric=True) -> np.ndarray:
    logits, may = np.zeros((*q.shape[:3], k.shape[2])), sees(order, order, documents, documents)
    for b, h in each(*q.shape[:2]):
        made = reflections(encoding, x, order, documents, b, h // (H // G), symmetric)
        for i, j in each(*logits.shape[2:]):
            if not may(b, i, j):
                continue
            same = [t for t in range(x.shape[1]) if documents[b][t] == documents[b][i]]
            between = [t for t in same if order[b][j] < order[b][t] <= order[b][i]]
            product = np.eye(D)
            for t in sorted(between, key=lambda t: order[b][t], reverse=reverse):
                product = product @ made[t]
            logits[b, h, i, j] = k[b, h // (H // G), j] @ product @ q[b, h, i] / math.sqrt(D)
    return logits


def tensors(batch=2, length=8):
    return (
        draw(1, batch, H, length, D),
        draw(2, batch, G, length, D),
        draw(3, batch, G, length, D),
        draw(4, batch, length, M),
    )


def test_the_place_of_queries_that_are_no_keys_by_counting():
    """Queries and keys are other tokens, of several documents, stored in any order."""
    pick = random.Random(3)
    for _ in range(20):
        keys, queries = [[(pick.randrange(3), pick.randrange(9)) for _ in range(size)] for size in (7, 5)]
        at_q, at_k = (
            Positions(order, order, torch.tensor([[document for document, _ in tokens]]))
            for tokens in (queries, keys)
            for order in [torch.tensor([[order for _, order in tokens]])]
        )
        index, places = along_the_path(at_q, at_k)
        assert [keys[j] for j in index[0].tolist()] == sorted(keys)
        assert places[0].tolist() == [sum(key <= query for key in keys) - 1 for query in queries]


def test_blocks_by_dense_products():
    """Across three blocks of the path, for queries at any place: before the first key, and beyond the last."""
    n, places = 2 * BLOCK + 5, [-1, 0, 3, BLOCK - 1, BLOCK, 2 * BLOCK, 2 * BLOCK + 4]
    q, k, w = draw(1, 1, 1, len(places), D), draw(2, 1, 1, n, D), draw(3, 1, 1, n, D)
    w /= np.linalg.norm(w, axis=-1, keepdims=True)
    beta = 2 / (1 + np.exp(-draw(4, 1, 1, n)))
    found = path_scores(*map(torch.from_numpy, (q, k, w, beta)), torch.tensor([places]))[0, 0]
    for i, place in enumerate(places):
        turned = q[0, 0, i]
        for t in range(place, -1, -1):
            close(found[i, t], np.float64(turned @ k[0, 0, t]), atol=1e-10)
            turned = turned - beta[0, 0, t] * w[0, 0, t] * (w[0, 0, t] @ turned)


def test_without_reflections_it_is_nope():
    encoding = filled()
    with torch.no_grad():
        encoding.turn.zero_()
        encoding.turn_offset.fill_(-800.0)
    q, k, v, x = tensors()
    got = attend(
        *map(torch.from_numpy, (q, k, v)), encoding, encoding.read_hidden(torch.from_numpy(x), Positions.arange(2, 8))
    )
    close(got, attention(products(q, k), v, sees([range(8)] * 2, [range(8)] * 2)))


def test_decoding_after_right_padding():
    layer = Attention(28, H, PaTH(28, H, 7), n_kv_heads=G).double()
    x = torch.from_numpy(draw(7, 1, 6, 28))
    expected = layer(x[:, [0, 1, 2, 5]], Positions.arange(1, 4))
    _, cache = layer.decode(x[:, :5], Positions.from_mask(torch.tensor([[1, 1, 1, 0, 0]])))
    last, _ = layer.decode(x[:, 5:], Positions.decode([3]), cache)
    close(last, expected[:, 3:].detach(), atol=1e-11)


def test_with_constant_gates_path_fox_adds_alibi():
    encoding = path_fox(M, H, D, n_kv_heads=G).double()
    path, fox = encoding
    slopes = (0.5, 0.25, 1.0, 2.0)
    with torch.no_grad():
        fox.weight.zero_()
        for head, slope in enumerate(slopes):
            fox.offset[head] = -math.log(math.exp(slope) - 1)
    q, k, v, x = map(torch.from_numpy, tensors())
    at = Positions.arange(2, 8)
    with_alibi = Stack(path, ALiBi(H, slopes=slopes))
    close(
        attend(q, k, v, encoding, encoding.read_hidden(x, at)),
        attend(q, k, v, with_alibi, path.read_hidden(x, at)).detach(),
        atol=1e-11,
    )


def test_wrong_arguments():
    q, at = torch.zeros(1, H, 4, D), Positions.arange(1, 4)
    with pytest.raises(ValueError, match=r"at: carries nothing read by PaTH.*call read_hidden\(x, at\)"):
        attend(q, q, q, PaTH(M, H, D), at)
    with pytest.raises(ValueError, match="n_kv_heads: expected a number that divides n_heads=4, got 3"):
        PaTH(M, H, D, n_kv_heads=3)
    with pytest.raises(ValueError, match="scale, softcap: PaTH"):
        attend(q, q, q, PaTH(M, H, D), at, scale=0.5)
