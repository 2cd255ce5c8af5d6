"""Trees: paths by walking up in Python, Shiv and Quirk's stacks by lists, APE by products of matrices.

Shiv and Quirk 2019 (and the authors' code, icecaps); Kogkalidis et al. 2023, section 3.3.
"""

import math

import numpy as np
import pytest
import scipy.linalg
import torch

from posenc import Positions, attend, positions_by
from posenc.encodings.ape import APE
from posenc.encodings.com_rope import ComRoPE
from posenc.encodings.tree_pe import TreePE

from .by_hand import attention, close, draw

#            0
#        1       2          and a second tree: 7 - 8
#      3   4       6
#          5
PARENTS = [-1, 0, 0, 1, 1, 4, 2, -1, 7]
BRANCHES = {1: 1, 2: 2, 3: 1, 4: 2, 5: 1, 6: 1, 8: 1}
K, N, D = 4, 3, 6


def walk(node, branches=BRANCHES):
    """The branches from a node up to its root."""
    return [] if PARENTS[node] < 0 else [branches[node], *walk(PARENTS[node], branches)]


def padded(path):
    return path + [0] * (K - len(path))


def paths(**options):
    return positions_by("tree_paths", parents=torch.tensor([PARENTS]), max_depth=K, **options)


def test_paths_by_walking_up():
    assert paths().coords[0].tolist() == [padded(walk(node)) for node in range(9)]
    named = {**BRANCHES, 6: 3, 4: 5}
    given = torch.tensor([[named.get(node, 0) for node in range(9)]])
    assert paths(branches=given).coords[0].tolist() == [padded(walk(node, named)) for node in range(9)]


def test_the_order_of_tokens_does_not_matter_where_branches_are_given():
    mixed = [4, 0, 6, 8, 2, 7, 1, 5, 3]
    parents = torch.tensor([[mixed.index(PARENTS[node]) if PARENTS[node] >= 0 else -1 for node in mixed]])
    given = torch.tensor([[BRANCHES.get(node, 0) for node in mixed]])
    found = positions_by("tree_paths", parents=parents, max_depth=K, branches=given)
    assert found.coords[0].tolist() == [padded(walk(node)) for node in mixed]


def test_bad_trees_are_refused():
    with pytest.raises(ValueError, match="more than max_depth=2 steps below its root"):
        positions_by("tree_paths", parents=torch.tensor([PARENTS]), max_depth=2)
    with pytest.raises(ValueError, match="is its own ancestor"):
        positions_by("tree_paths", parents=torch.tensor([[1, 0]]))
    with pytest.raises(ValueError, match=r"expected -1 for a root or a token 0 … 2, got 3"):
        positions_by("tree_paths", parents=torch.tensor([[-1, 3, 0]]))
    with pytest.raises(ValueError, match="branches: expected numbers from 1, got 0"):
        positions_by("tree_paths", parents=torch.tensor([[-1, 0]]), branches=torch.tensor([[0, 0]]))


# Shiv and Quirk ----------------------------------------------------------------------------------------------------------


def stacks(w, d_model, up=1):
    """What icecaps adds: one-hot vectors, the node's own first, each times p^steps·√((1 - p²)·d/2), features innermost."""
    rows = []
    for node in range(9):
        row = []
        for step, branch in enumerate(padded(walk(node))):
            for one in range(1, N + 1):
                p = [math.tanh(weight) for weight in w]
                row += [(branch == one) * f ** (step * up) * math.sqrt((1 - f * f) * d_model / 2) for f in p]
        rows.append(row + [0.0] * (d_model - len(row)))
    return np.array(rows)


def test_stacks_of_branches():
    d_model, w = 29, [0.9, -0.4]  # 4·3·2 channels, and 5 that are left over
    encoding = TreePE(d_model, max_depth=K, n_branches=N).double()
    with torch.no_grad():
        encoding.decay.copy_(torch.tensor(w))
    x = draw(1, 1, 9, d_model)
    got = encoding.embed(torch.from_numpy(x), paths())[0]
    close(got, x[0] + stacks(w, d_model), atol=1e-6)  # w has passed through float32
    for wrong in (stacks(w, d_model, up=2), stacks(w[::-1], d_model), stacks(w, d_model)[:, ::-1]):
        with pytest.raises(AssertionError):
            close(got, x[0] + wrong, atol=1e-3)


def test_going_to_a_child_is_one_affine_map():
    """Pushing branch b: everything moves one step down and loses a factor p, and the new branch is on top."""
    encoding = TreePE(24, max_depth=K, n_branches=N).double()
    rows = encoding.embed(torch.zeros(1, 9, 24, dtype=torch.float64), paths())[0].reshape(9, K, N, 2).detach()
    p = encoding.decay.detach().tanh()
    top = torch.zeros(N, 2, dtype=torch.float64)
    for node, branch in BRANCHES.items():
        top.zero_()
        top[branch - 1] = ((1 - p**2) * 12).sqrt()
        pushed = torch.cat([top[None], rows[PARENTS[node]][:-1] * p])
        close(rows[node], pushed)


def test_fresh_factors():
    torch.manual_seed(0)
    fresh = TreePE(4 * 3 * 500, max_depth=K, n_branches=N).decay
    assert fresh.min() > 0.7
    assert fresh.max() < 0.999


def test_tree_pe_refuses_bad_input():
    with pytest.raises(ValueError, match="d_model: expected at least max_depth=4 times n_branches=3 channels, got 11"):
        TreePE(11, max_depth=K, n_branches=N)
    encoding, x = TreePE(12, max_depth=K, n_branches=N), torch.zeros(1, 1, 12)
    with pytest.raises(ValueError, match="TreePE: branch 4 is outside 0 … 3"):
        encoding.embed(x, Positions.at(torch.tensor([[[4, 0, 0, 0]]])))
    with pytest.raises(TypeError, match="needs integer positions"):
        encoding.embed(x, Positions.at(torch.zeros(1, 1, 4)))


# APE ---------------------------------------------------------------------------------------------------------------------


def made():
    encoding = APE(D, max_depth=K, n_branches=N).double()
    with torch.no_grad():
        encoding.generators.copy_(torch.from_numpy(draw(9, N, D, D)))
    return encoding, [scipy.linalg.expm(a - a.T) for a in draw(9, N, D, D)]


def turn(path, matrices):
    """W_b1·W_b2 … from the root down."""
    out = np.eye(D)
    for branch in reversed(path):
        out = out @ matrices[branch - 1]
    return out


def scores(q, k, matrices, reverse=False):
    out = np.zeros((*q.shape[:3], k.shape[2]))
    for b, h, i, j in np.ndindex(*out.shape):
        up, down = (walk(node)[::-1] if reverse else walk(node) for node in (i, j))
        out[b, h, i, j] = (turn(up, matrices) @ q[b, h, i]) @ (turn(down, matrices) @ k[b, h // 2, j]) / math.sqrt(D)
    return out


@pytest.mark.parametrize("impl", ["reference", "sdpa"])
def test_ape_by_products_of_matrices(impl):
    encoding, matrices = made()
    q, k, v = draw(1, 1, 4, 9, D), draw(2, 1, 2, 9, D), draw(3, 1, 2, 9, D)
    got = attend(*map(torch.from_numpy, (q, k, v)), encoding, paths(), causal=False, impl=impl)
    close(got, attention(scores(q, k, matrices), v, lambda b, i, j: True))
    for wrong in (
        scores(q, k, [m.T for m in matrices]),
        scores(q, k, matrices[::-1]),
        scores(q, k, matrices, reverse=True),
    ):
        with pytest.raises(AssertionError):
            close(got, attention(wrong, v, lambda b, i, j: True), atol=1e-3)


def test_only_the_way_between_two_nodes_counts():
    """Two trees hung below another branch keep their scores: what paths share at the root cancels."""
    encoding, _ = made()
    q, k = torch.from_numpy(draw(1, 1, 1, 9, D)), torch.from_numpy(draw(2, 1, 1, 9, D))
    at = Positions.at(paths().coords[:, :7, :3])
    below = torch.zeros(1, 7, K, dtype=torch.long)
    for node in range(7):
        below[0, node] = torch.tensor(padded([*walk(node), 3]))
    here = Positions.at(torch.nn.functional.pad(at.coords, (0, 1)))
    q, k = q[:, :, :7], k[:, :, :7]
    plain, hung = (
        encoding.rotate(q, one, "query") @ encoding.rotate(k, one, "key").mT for one in (here, Positions.at(below))
    )
    close(hung, plain.detach())


def test_a_tree_without_choices_is_a_sequence_and_that_is_com_rope():
    tree, rope = APE(D, max_depth=8, n_branches=1).double(), ComRoPE(D, 1, axes=1, block=D, form="AP").double()
    with torch.no_grad():
        tree.generators.copy_(torch.from_numpy(draw(9, 1, D, D)))
        rope.generators.copy_(tree.generators[None])
    x = torch.from_numpy(draw(1, 1, 1, 8, D))
    line = positions_by("tree_paths", parents=torch.arange(-1, 7)[None], max_depth=8)
    close(tree.rotate(x, line, "query"), rope.rotate(x, Positions.arange(1, 8), "query").detach())


def test_fresh_ape_turns_like_the_authors_code():
    fresh = APE(8, max_depth=K, n_branches=2).double()
    for matrix in fresh.matrices():
        for j in range(4):
            angle = 1 / 10000 ** (2 * (j // 2) / 4)
            c, s = math.cos(angle), math.sin(angle)
            close(matrix[2 * j : 2 * j + 2, 2 * j : 2 * j + 2], [[c, -s], [s, c]], atol=1e-7)


def test_bad_branches_of_ape():
    encoding, _ = made()
    q = torch.from_numpy(draw(1, 1, 1, 1, D))
    with pytest.raises(ValueError, match="APE: branch 4 is outside 0 … 3"):
        encoding.rotate(q, Positions.at(torch.tensor([[[4, 0, 0, 0]]])), "query")
