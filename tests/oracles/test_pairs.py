"""Biases of pairs in graphs, by loops: Graphormer (Ying et al. 2021, 3.1.2) and RRWP (Ma et al. 2023, 3.1)."""

import numpy as np
import pytest
import torch

import posenc
from oracles.by_hand import close
from posenc import Positions, attend
from posenc.encodings.bases.pairs import PairBias, walks
from posenc.encodings.graphormer import Graphormer, shortest_paths

EDGES = [(0, 1), (1, 2), (2, 3), (1, 4), (5, 6)]  # a tree of five nodes, a pair, and a node alone
N = 8


def adjacency() -> torch.Tensor:
    made = torch.zeros(1, N, N)
    for i, j in EDGES:
        made[0, i, j] = made[0, j, i] = 1 + i  # weights do not count
    return made


def by_walking(start: int) -> list:
    """Breadth first."""
    found, front, steps = {start: 0}, [start], 0
    while front:
        steps += 1
        front = [j for j in range(N) for i in front if (min(i, j), max(i, j)) in EDGES and j not in found]
        found |= dict.fromkeys(front, steps)
    return [found.get(j, -1) for j in range(N)]


def filled(encoding, seed=0):
    """Parameters of the encoding drawn, in fp64."""
    random = torch.Generator().manual_seed(seed)
    for parameter in encoding.double().parameters():
        parameter.data.normal_(generator=random)
    return encoding


def qkv(t=N, b=1, seed=1):
    return torch.randn(3, b, 2, t, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def attended(x, bias):
    """Softmax attention of one row with a bias [h, i, j], both ways."""
    q, k, v = x.numpy()
    logits = q @ k.swapaxes(-1, -2) / 2 + bias
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


def test_shortest_paths_are_those_of_a_walk():
    assert shortest_paths(adjacency())[0].tolist() == [by_walking(node) for node in range(N)]
    assert shortest_paths(torch.zeros(2, 1, 1)).tolist() == [[[0]], [[0]]]
    with pytest.raises(ValueError, match="adjacency: expected a symmetric matrix"):
        shortest_paths(torch.triu(torch.ones(1, 3, 3), 1))


@pytest.mark.parametrize("impl", ["reference", "sdpa", "auto"])
def test_graphormer_by_loops(impl):
    """max_distance 2: the nodes at distance 3 have the number of 2; the last node plays the token of the whole graph."""
    encoding = filled(Graphormer(2, max_distance=2))
    distances = shortest_paths(adjacency())
    distances[:, -1], distances[:, :, -1] = -2, -2
    at = encoding.with_pairs(Positions.arange(1, N), distances)
    table, bias = encoding.table.detach(), np.zeros((2, N, N))
    for i in range(N):
        for j in range(N):
            far = by_walking(i)[j]
            row = 4 if N - 1 in (i, j) else 3 if far == -1 else min(far, 2)
            bias[:, i, j] = table[row]
    x = qkv()
    with torch.no_grad():
        close(attend(*x, encoding, at, causal=False, impl=impl)[0], attended(x[:, 0], bias), 1e-12)
        close(attend(*x, encoding, encoding.prepare(at), causal=False)[0], attended(x[:, 0], bias), 1e-12)
        half = encoding.heads(1, 2)
        at = half.with_pairs(Positions.arange(1, N), distances)
        close(attend(*x[:, :, 1:], half, at, causal=False)[0], attended(x[:, 0, 1:], bias[1:]), 1e-12)


@pytest.mark.parametrize("impl", ["reference", "sdpa", "auto"])
@pytest.mark.parametrize("encoding", [Graphormer(2), PairBias(2, 3)], ids=["graphormer", "pairs"])
def test_tokens_without_pairs_are_no_graph(encoding, impl):
    """Not the nodes of a path either: a star of four nodes would be off by .26."""
    said = r"positions: they carry no pairs of (Graphormer|PairBias)\(.*take encoding\.with_pairs\(at, pairs\)"
    for at in (Positions.arange(1, N), Positions.arange(1, N, 3), Positions.from_mask(torch.ones(1, N))):
        with pytest.raises(ValueError, match=said):
            attend(*qkv(), encoding.double(), at, causal=False, impl=impl)
    with pytest.raises(ValueError, match=said):
        posenc.Attention(8, 2, encoding).double()(torch.randn(1, N, 8).double(), Positions.arange(1, N), causal=False)


def test_rows_of_a_batch_have_their_own_graphs():
    encoding = filled(Graphormer(2))
    paths = torch.stack([torch.zeros(3, 3), torch.ones(3, 3) - 2 * torch.eye(3)]).long()
    x = qkv(3, b=2)
    with torch.no_grad():
        both = attend(*x, encoding, encoding.with_pairs(Positions.arange(2, 3), paths), causal=False)
        for row in range(2):
            at = encoding.with_pairs(Positions.arange(1, 3), paths[row : row + 1])
            assert torch.equal(both[row : row + 1], attend(*x[:, row : row + 1], encoding, at, causal=False))


def test_packed_graphs_are_the_graphs_alone():
    encoding = filled(Graphormer(2))
    paths = torch.tensor([[[0, 1, 2], [1, 0, 1], [2, 1, 0]], [[0, 1, 1], [1, 0, 1], [1, 1, 0]]])
    x = qkv(6)
    with torch.no_grad():
        packed = encoding.with_pairs(Positions.packed([0, 3, 6]), paths.reshape(1, 6, 3))
        got = attend(*x, encoding, packed, causal=False)
        for row in range(2):
            at, part = encoding.with_pairs(Positions.arange(1, 3), paths[row : row + 1]), slice(3 * row, 3 * row + 3)
            close(got[:, :, part], attend(*x[:, :, :, part], encoding, at, causal=False).numpy(), 1e-12)


def test_rrwp_by_loops():
    encoding, graph = filled(PairBias(2, 3)), adjacency()
    degree = [float(graph[0, i].sum()) for i in range(N)]
    chances = np.zeros((3, N, N))
    chances[0] = np.eye(N)
    for step in range(1, 3):
        for i in range(N):
            for j in range(N):
                ways = (chances[step - 1, i, m] * float(graph[0, m, j]) / degree[m] for m in range(N) if degree[m])
                chances[step, i, j] = sum(ways)
    found = walks(graph, 3)
    close(found[0], chances.transpose(1, 2, 0), 1e-14)
    bias, x = np.einsum("hs,sij->hij", encoding.weight.detach().numpy(), chances), qkv()
    with torch.no_grad():
        at = encoding.with_pairs(Positions.arange(1, N), found)
        close(attend(*x, encoding, at, causal=False)[0], attended(x[:, 0], bias), 1e-12)
        with pytest.raises(ValueError, match="positions: they carry no pairs of PairBias"):
            attend(*x, encoding, Positions.arange(1, N), causal=False)


def test_distances_and_edges_together():
    """Graphormer with the edges of the path, in a Stack and inside the module; all parameters learn."""
    distances, edges = Graphormer(2), PairBias(2, 3)
    at = distances.with_pairs(Positions.arange(1, N), shortest_paths(adjacency()))
    random = torch.Generator().manual_seed(0)
    at = edges.with_pairs(at, torch.randn(1, N, N, 3, generator=random))  # the same for all keys would change nothing
    module = posenc.Attention(8, 2, posenc.Stack(distances, edges))
    module(torch.randn(1, N, 8, generator=random), module.encoding.prepare(at), causal=False).pow(2).sum().backward()
    assert all(one.grad is not None and one.grad.abs().sum() > 0 for one in (distances.table, edges.weight))


def test_pairs_of_another_encoding_are_refused():
    """One head of two, another table and a Stack whose other part is prepared: none has the distances of a path instead."""
    whole, x = Graphormer(2), qkv(4)
    at = whole.with_pairs(Positions.arange(1, 4), torch.zeros(1, 4, 4).long())
    said = (
        r"positions: they carry tables of Graphormer\(n_heads=2\) and no pairs of Graphormer\(.*take encoding\.with_pairs"
    )
    for other, heads in ((whole.heads(0, 1), 1), (Graphormer(2, max_distance=5), 2), (PairBias(2, 3), 2)):
        with pytest.raises(ValueError, match=said if heads == 1 else "take encoding.with_pairs"):
            attend(*x[:, :, :heads], other, at, causal=False)
    both = posenc.Stack(Graphormer(2), posenc.create("rope", d_head=4))
    prepared = both.prepare(Positions.arange(1, 4), torch.float64)
    with pytest.raises(ValueError, match=r"they carry tables of RoPE\(.*and no pairs of Graphormer"):
        attend(*x, both, prepared, causal=False)
    pairs = both.parts[0].with_pairs(prepared, torch.zeros(1, 4, 4).long())
    assert attend(*x, both, pairs, causal=False).isfinite().all()


def test_pairs_that_do_not_fit_are_refused():
    encoding = Graphormer(2)
    for shape in ((1, 3, 4), (2, 4), (1, 4, 4, 2)):
        with pytest.raises(ValueError, match=r"pairs: expected"):
            encoding.with_pairs(Positions.arange(1, 4), torch.zeros(shape).long())
    with pytest.raises(ValueError, match="Graphormer: a token at 3 is none of 3 nodes"):
        encoding.with_pairs(Positions.arange(1, 4), torch.zeros(1, 4, 3).long())
    with pytest.raises(TypeError, match="Graphormer"):
        encoding.with_pairs(Positions.arange(1, 4).shift(0.5), torch.zeros(1, 4, 4).long())
