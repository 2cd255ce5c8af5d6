"""A bias of positions alone is computed once for a batch whose rows have the same positions, and changes no result."""

import pytest
import torch

import posenc
from posenc.encodings.of_families.t5_segments import SegmentedT5
from posenc.positions import Positions, own_rows, repeat_one_row

B, H, D = 3, 2, 8
LINE = torch.arange(16)
GRID = Positions.grid(4, 4).coords[0]


def drawn(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def made(name, **more):
    torch.manual_seed(0)
    encoding = posenc.create(name, n_heads=H, **more)
    for parameter in encoding.parameters():
        torch.nn.init.normal_(parameter)
    return encoding


CASES = {
    "fire": (lambda: made("fire"), LINE),
    "t5": (lambda: made("t5"), LINE),
    "t5, scattered": (lambda: made("t5"), LINE.flip(0)),
    "swin": (lambda: made("swin", height=4, width=4), GRID),
    "swin_v2": (lambda: made("swin_v2", height=4, width=4), GRID),
    "lookhere": (lambda: made("lookhere", n_layers=2), GRID),
    "segments": (lambda: SegmentedT5(H, n_segments=2), torch.stack([LINE, LINE // 8], dim=-1)),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("impl", ["sdpa", "reference"])
def test_one_row_expanded_gives_what_equal_rows_give(name, impl):
    encoding, coords = CASES[name][0](), CASES[name][1]
    expanded = Positions.at(coords[None]).expand(B)
    apart = Positions.at(coords.expand(B, *coords.shape).clone())
    assert repeat_one_row(expanded)
    assert not repeat_one_row(apart)
    q, k, v = (drawn(seed, B, H, 16, D).requires_grad_() for seed in range(3))
    results = []
    for at in (expanded, apart):
        out = posenc.attend(q, k, v, encoding, at, impl=impl)
        results.append((out, *torch.autograd.grad(out.square().sum(), (q, *encoding.parameters()))))
    for together, alone in zip(*results, strict=True):
        torch.testing.assert_close(together, alone, rtol=2e-5, atol=2e-5)
    assert torch.equal(results[0][0], results[1][0])


@pytest.mark.parametrize("name", CASES)
def test_it_is_computed_once(name):
    encoding, coords = CASES[name][0](), CASES[name][1]
    at = Positions.at(coords[None]).expand(B)
    q = drawn(0, B, H, 16, D)
    grid = [torch.arange(n).view([-1 if a == axis else 1 for a in range(4)]) for axis, n in enumerate((B, H, 16, 16))]
    assert encoding.bias(q, q, at, at)(*grid).shape == (1, H, 16, 16)


def test_rows_that_differ_are_kept_apart():
    one, many = Positions.arange(B, 16), Positions.arange(B, 16, start=torch.arange(B))
    documents = Positions.from_mask(torch.ones(B, 16))
    b = torch.arange(B)[:, None]
    for at_q, at_k in ((one, many), (many, one), (one, documents)):
        assert own_rows(b, at_q, at_k) is b
    assert own_rows(b, one, one).tolist() == [[0]]
    single = b[0, 0]
    assert own_rows(single, one, one) is single


def test_an_exported_graph_serves_rows_that_differ():
    """Its inputs were one row expanded when it was traced; a graph that computed one row would be wrong for others."""
    encoding = made("fire")

    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.encoding = encoding

        def forward(self, q, at):
            return posenc.attend(q, q, q, self.encoding, at, impl="sdpa")

    q = drawn(0, B, H, 16, D)
    graph = torch.export.export(Module(), (q, Positions.at(LINE[None]).expand(B))).module()
    other = Positions.at(torch.stack([LINE, 2 * LINE, 5 * LINE]))
    torch.testing.assert_close(graph(q, other), Module()(q, other))
