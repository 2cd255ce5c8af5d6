"""Graphs: cosines on a path, waves on a directed ring, random walks in Fractions, WIRE and the projection by loops.

Dwivedi et al. 2020 and 2021; Geisler et al. 2023; Reid et al. 2025.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch

import posenc
from posenc import Positions, attend
from posenc.encodings.positions import magnetic_laplacian
from posenc.encodings.wire import WIRE

from .by_hand import attention, close, draw, each, products, turned

RING_WITH_TAIL = [[0, 1, 0, 1, 0], [1, 0, 1, 0, 0], [0, 1, 0, 1, 0], [1, 0, 1, 0, 2], [0, 0, 0, 2, 0]]
ALONE = [[0, 3, 0, 0, 0], [3, 0, 0, 0, 0], [0, 0, 0, 0, 0], [0, 0, 0, 0, 1], [0, 0, 0, 1, 0]]  # node 2 has no edge


def path(n: int) -> torch.Tensor:
    return torch.diag(torch.ones(n - 1), 1) + torch.diag(torch.ones(n - 1), -1)


def test_a_path_has_cosines():
    """L = D - A of a path of n: u_m(t) ∝ cos(π·m·(t + ½)/n), eigenvalue 2 - 2·cos(π·m/n)."""
    n, k = 7, 4
    got = posenc.positions_by("lappe", adjacency=path(n)[None], vectors=k, normalized=False).coords[0].numpy()
    for m in range(1, k + 1):
        wave = np.array([math.cos(math.pi * m * (t + 0.5) / n) for t in range(n)])
        wave = wave / math.sqrt(sum(wave**2))
        assert abs(abs(wave @ got[:, m - 1]) - 1) < 1e-12
        shifted = np.array([math.cos(math.pi * m * t / n) for t in range(n)])
        assert abs(abs(shifted @ got[:, m - 1]) / math.sqrt(sum(shifted**2)) - 1) > 1e-3  # no half
        assert max(got[:, m - 1], key=abs) > 0


@pytest.mark.parametrize("normalized", [True, False])
def test_columns_are_the_slowest_eigenvectors(normalized):
    weights = np.array(RING_WITH_TAIL, dtype=float)
    degree = weights.sum(axis=1)
    laplacian = np.diag(degree) - weights
    if normalized:
        laplacian = np.array([[laplacian[i, j] / math.sqrt(degree[i] * degree[j]) for j in range(5)] for i in range(5)])
    values = np.linalg.eigvalsh(laplacian)
    got = posenc.positions_by("lappe", adjacency=torch.tensor([RING_WITH_TAIL]), vectors=6, normalized=normalized)
    columns = got.coords[0].numpy()
    assert columns.shape == (5, 6)
    for m in range(1, 5):
        close(laplacian @ columns[:, m - 1], values[m] * columns[:, m - 1])
        close(np.array(sum(columns[:, m - 1] ** 2)), np.array(1.0))
        with pytest.raises(AssertionError):
            close(laplacian @ columns[:, m - 1], values[m - 1] * columns[:, m - 1], atol=1e-3)
    assert not columns[:, 4:].any()  # five nodes have four beside the first


def test_a_node_without_edges_is_no_slow_one():
    """I - D^(-½) A D^(-½) with 0 for D^(-½) there: 1 on the diagonal, as the authors' code and PyG have it."""
    weights = np.array(ALONE, dtype=float)
    degree = weights.sum(axis=1)
    scaled = [[weights[i, j] / math.sqrt(max(degree[i], 1) * max(degree[j], 1)) for j in range(5)] for i in range(5)]
    laplacian = np.eye(5) - np.array(scaled)
    columns = posenc.positions_by("lappe", adjacency=torch.tensor([ALONE]), vectors=4).coords[0].numpy()
    for column, value in zip(columns.T, (0, 1, 2, 2), strict=True):
        close(laplacian @ column, value * column)
    assert abs(columns[2, 1]) == pytest.approx(1)


def test_signs_are_drawn_for_every_graph_and_vector():
    graphs = path(6).expand(400, -1, -1)
    plain = posenc.positions_by("lappe", adjacency=graphs, vectors=3).coords
    drawn = posenc.positions_by(
        "lappe", adjacency=graphs, vectors=3, random_signs=True, generator=torch.Generator().manual_seed(1)
    ).coords
    sign = (drawn * plain).sum(dim=1).sign()
    assert torch.equal(drawn, plain * sign[:, None])
    assert (sign.mean(dim=0).abs() < 0.15).all()
    assert abs((sign[:, 0] * sign[:, 1]).mean().item()) < 0.15


DIRECTED = [[0, 1, 1, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 1, 0], [0, 0, 1, 0, 1], [0, 0, 0, 0, 0]]  # 2 and 3 both ways


def complex_of(at: Positions) -> np.ndarray:
    real, imaginary = at.coords[0].numpy().reshape(at.length, 2, -1).transpose(1, 0, 2)
    return real + 1j * imaginary


@pytest.mark.parametrize("sign", [1, -1])
def test_a_directed_ring_has_waves(sign):
    """L u = u - (e^(iθ)·u(t+1) + e^(-iθ)·u(t-1))/2, so u_m(t) = e^(2πi·m·t/n)/√n has the eigenvalue 1 - cos(θ + 2πm/n)."""
    n, q = 7, 0.1
    ring = torch.roll(torch.eye(n), 1, dims=1)  # from t to t + 1
    got = complex_of(posenc.positions_by("magnetic_laplacian", adjacency=ring[None], vectors=n, q=q, relative=False))
    slowest = sorted(range(n), key=lambda m: 1 - math.cos(sign * 2 * math.pi * q + 2 * math.pi * m / n))
    expected = [np.exp(2j * math.pi * m / n) for m in slowest]
    found = [got[1:, m] / got[:-1, m] for m in range(n)]
    if sign == 1:
        close(np.array(found), np.array([[one] * (n - 1) for one in expected]))
        close(abs(got), np.full((n, n), 1 / math.sqrt(n)))
        assert min(max(abs(row.imag)) for row in got) < 1e-12  # a node at which all are real
    else:  # the other direction
        with pytest.raises(AssertionError):
            close(np.array(found), np.array([[one] * (n - 1) for one in expected]), atol=1e-3)


@pytest.mark.parametrize("relative", [True, False])
def test_columns_are_the_slowest_eigenvectors_of_the_magnetic_laplacian(relative):
    """Geisler et al. 2023, entry by entry: four edges of five nodes go one way."""
    n, q = 5, 0.25 / (4 if relative else 1)
    directed = np.array(DIRECTED, dtype=float)
    symmetric = np.array([[float(bool(directed[i, j] or directed[j, i])) for j in range(n)] for i in range(n)])
    degree = symmetric.sum(axis=1)
    laplacian = np.array(
        [
            [
                (i == j)
                - symmetric[i, j]
                / math.sqrt(degree[i] * degree[j])
                * np.exp(2j * math.pi * q * (directed[i, j] - directed[j, i]))
                for j in range(n)
            ]
            for i in range(n)
        ]
    )
    at = posenc.positions_by("magnetic_laplacian", adjacency=torch.tensor([DIRECTED]), vectors=6, relative=relative)
    assert at.coords.shape == (1, n, 12)
    columns, values = complex_of(at), np.linalg.eigvalsh(laplacian)
    for m in range(n):
        close(laplacian @ columns[:, m], values[m] * columns[:, m])
        close(np.array(sum(abs(columns[:, m]) ** 2)), np.array(1.0))
    with pytest.raises(AssertionError):
        close(laplacian.conj() @ columns[:, 0], values[0] * columns[:, 0], atol=1e-3)
    assert not columns[:, 5:].any()
    (root,) = [t for t in range(n) if max(abs(columns[t].imag)) < 1e-12]
    assert min(columns[root].real) >= 0
    seen = [(columns[t, 0] * columns[:, 0].sum().conjugate()).imag for t in range(n)]
    assert seen[root] == max(seen)


def test_the_phases_that_eigenvectors_come_with_do_not_matter():
    found = torch.complex(*(torch.from_numpy(draw(seed, 1, 5, 5)) for seed in (1, 2)))
    phases = torch.polar(torch.ones(5).double(), torch.linspace(0, 6, 5).double())
    one, other = (magnetic_laplacian._with_one_root(vectors) for vectors in (found, found * phases))
    close(one, other.numpy())
    assert (found - found * phases).abs().max() > 0.1


def test_without_turns_it_is_the_laplacian_of_edges_both_ways():
    weights = torch.tensor([RING_WITH_TAIL], dtype=torch.float64)
    one_way = weights.triu()
    expected = posenc.positions_by("lappe", adjacency=weights, vectors=4).coords[0]
    got = posenc.positions_by("magnetic_laplacian", adjacency=one_way, vectors=5, q=0.0).coords[0]
    close(got[:, 5:], np.zeros((5, 5)))
    signs = (got[:, 1:5] * expected).sum(dim=0).sign()
    close(got[:, 1:5] * signs, expected)


def returns(weights: list[list[int]], steps: int, rows: bool = False) -> list[list[Fraction]]:
    n = len(weights)
    degree = [sum(Fraction(one) for one in row) for row in weights]
    walk = [[Fraction(weights[i][j]) / degree[j] if degree[j] else Fraction(0) for j in range(n)] for i in range(n)]
    power = [[Fraction(int(i == j)) for j in range(n)] for i in range(n)]
    found: list[list[Fraction]] = [[] for _ in range(n)]
    for _ in range(steps):
        power = [[sum(power[i][m] * walk[m][j] for m in range(n)) for j in range(n)] for i in range(n)]
        for i in range(n):
            found[i].append(sum(power[i]) if rows else power[i][i])
    return found


def test_random_walks_in_fractions():
    got = posenc.positions_by("rwse", adjacency=torch.tensor([RING_WITH_TAIL, ALONE]), steps=5).coords.numpy()
    for graph, weights in enumerate((RING_WITH_TAIL, ALONE)):
        close(got[graph], np.array([[float(one) for one in row] for row in returns(weights, 5)]))
        with pytest.raises(AssertionError):
            close(got[graph], np.array([[float(one) for one in row] for row in returns(weights, 5, True)]), atol=1e-3)


def test_wire_is_a_rotation_by_a_learned_mixture():
    n_heads, d, axes = 2, 8, 3
    encoding = WIRE(d, n_heads, axes=axes, scale=2.0).double()
    omega = encoding.frequencies.detach().numpy()
    q, k, v = draw(1, 1, n_heads, 5, d), draw(2, 1, n_heads, 5, d), draw(3, 1, n_heads, 5, d)
    at = posenc.positions_by("lappe", adjacency=torch.tensor([RING_WITH_TAIL]), vectors=axes)
    coords = at.coords[0].numpy()

    def of(x, sign=1):
        new = np.zeros_like(x)
        for h, t in each(n_heads, 5):
            angles = [sign * sum(omega[m, h, i] * coords[t, m] for m in range(axes)) for i in range(d // 2)]
            new[0, h, t] = turned(x[0, h, t], angles, "interleaved")
        return new

    got = attend(*map(torch.from_numpy, (q, k, v)), encoding, at, causal=False)
    close(got, attention(products(of(q), of(k)), v, lambda b, i, j: True))
    with pytest.raises(AssertionError):
        close(got, attention(products(of(q), of(k, -1)), v, lambda b, i, j: True), atol=1e-3)
    part = encoding.heads(1, 2)
    one = attend(*(torch.from_numpy(x[:, 1:]) for x in (q, k, v)), part, at, causal=False)
    close(one, got[:, 1:].detach())
    spread = WIRE(64, 32, axes=8, scale=0.5).frequencies.std().item()
    assert abs(spread - 0.5) < 0.02


def test_a_projection_of_coordinates_is_added():
    encoding = posenc.create("coordinate_projection", d_model=6, axes=3).double()
    with torch.no_grad():
        encoding.offset.copy_(torch.from_numpy(draw(7, 6)))
    x, p = draw(1, 2, 4, 6), draw(2, 2, 4, 3)
    got = encoding.embed(torch.from_numpy(x), Positions.at(torch.from_numpy(p)))
    weight, offset = encoding.weight.detach().numpy(), encoding.offset.detach().numpy()
    expected = np.zeros_like(x)
    for b, t, c in each(2, 4, 6):
        expected[b, t, c] = x[b, t, c] + sum(weight[c, a] * p[b, t, a] for a in range(3)) + offset[c]
    close(got, expected)
    with pytest.raises(AssertionError):
        close(got, expected - offset, atol=1e-3)
    assert encoding.at_layer(1).seams == frozenset()


def test_nodes_may_come_in_any_order():
    """Attention over a graph gives every node the same, whichever number it has."""
    order = torch.tensor([3, 0, 4, 2, 1])
    edges = {(0, 1): 1.0, (1, 2): 2.0, (2, 3): 3.0, (0, 3): 5.0, (3, 4): 4.0}  # no symmetry: no sign is a free choice
    weights = torch.zeros(1, 5, 5, dtype=torch.float64)
    for (i, j), weight in edges.items():
        weights[0, i, j] = weights[0, j, i] = weight
    x, encoding = torch.from_numpy(draw(1, 1, 5, 16)), posenc.create("coordinate_projection", d_model=16, axes=4).double()
    for name in ("lappe", "rwse", "magnetic_laplacian"):
        sizes = {"lappe": {"vectors": 4}, "rwse": {"steps": 4}, "magnetic_laplacian": {"vectors": 2}}[name]
        given = weights.triu() if name == "magnetic_laplacian" else weights
        whole = encoding.embed(x, posenc.positions_by(name, adjacency=given, **sizes))
        moved = given[:, order][:, :, order]
        again = encoding.embed(x[:, order], posenc.positions_by(name, adjacency=moved, **sizes))
        close(again, whole[:, order].detach(), atol=1e-11)


@pytest.mark.parametrize("name", ["lappe", "rwse"])
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (torch.tensor([[[0.0, 1.0], [0.0, 0.0]]]), "adjacency: expected a symmetric matrix"),
        (-torch.ones(1, 2, 2), "adjacency: expected weights from 0"),
        (torch.ones(1, 2, 3), "adjacency: expected"),
        (torch.zeros(1, 0, 0), "adjacency: expected at least one number"),
    ],
    ids=str,
)
def test_wrong_graphs(name, wrong, message):
    with pytest.raises(ValueError, match=message):
        posenc.positions_by(name, adjacency=wrong)


def test_wrong_directed_graphs():
    with pytest.raises(ValueError, match="adjacency: expected weights from 0"):
        posenc.positions_by("magnetic_laplacian", adjacency=-torch.ones(1, 2, 2))
    with pytest.raises(ValueError, match=r"q: expected a share of a turn from 0 to 1, got 1\.5"):
        posenc.positions_by("magnetic_laplacian", adjacency=torch.ones(1, 2, 2), q=1.5)
