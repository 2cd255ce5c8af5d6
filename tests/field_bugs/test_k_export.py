"""Class K: what torch.export makes of it. ONNX, for every encoding: tests/test_export.py."""

from __future__ import annotations

import torch
from torch.export import Dim

import posenc
from field_bugs.worlds import attention, near, tokens
from posenc import Positions
from posenc.encodings.rope import RoPE
from posenc.encodings.t5 import T5

NAMES = ("rope", "t5")
ALLOWED = {"aten", "_operator", "math", "built-in", "wrap_with_autocast"}
of_rope = RoPE.tables


class Layer(torch.nn.Module):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.attention = attention(name)

    def forward(self, x):
        return self.attention(x, Positions.arange(x.shape[0], x.shape[1]))


def exported(name: str, length: int) -> torch.export.ExportedProgram:
    try:
        return torch.export.export(Layer(name), (tokens(2, length),), dynamic_shapes=(({1: Dim("length", min=2, max=96)}),))
    except Exception as error:
        raise AssertionError(f"{name}: one length only: {type(error).__name__}: {str(error)[:200]}") from error


def test_K1_a_graph_of_four_tokens_serves_8_and_64():
    for name in NAMES:
        graph, layer = exported(name, 4).module(), Layer(name)
        for length in (8, 64):
            x = tokens(2, length, seed=length)
            near(graph(x), layer(x), f"{name} {length}", 1e-5)


def plant_K1_the_table_is_of_the_examples_length(patch):
    def tables(self, at, dtype):
        count = torch.arange(int(at.length), dtype=dtype)[None, :, None]
        turn = count * torch.tensor(self.frequencies.values, dtype=dtype)
        return turn.cos().expand(at.batch, -1, -1), turn.sin().expand(at.batch, -1, -1)

    patch.setattr(RoPE, "tables", tables)


def operators(program: torch.export.ExportedProgram) -> list[str]:
    """Of the graph and of the graphs inside of it."""
    graphs = [one.graph for one in program.graph_module.modules() if isinstance(one, torch.fx.GraphModule)]
    return [str(node.target) for graph in graphs for node in graph.nodes if node.op == "call_function"]


def test_K3_plain_operators_and_as_many_for_every_length():
    for name in NAMES:
        short, long = (operators(exported(name, length)) for length in (4, 64))
        assert len(short) == len(long), f"{name}: {len(short)} operators for 4 tokens, {len(long)} for 64"
        for operator in short:
            kind = operator.removeprefix("<").split(".")[0].split(" ")[0]
            assert kind in ALLOWED, f"{name}: {operator}"
            assert "repeat_interleave.self_Tensor" not in operator, f"{name}: {operator} is not for every runtime"


def plant_K3_one_operator_for_every_token(patch):
    made = RoPE.rotate

    def rotate(self, x, at, side, out=None):
        rows = [made(self, x[:, :, n : n + 1], at.narrow(n, n + 1), side) for n in range(int(x.shape[2]))]
        return torch.cat(rows, dim=2)

    patch.setattr(RoPE, "rotate", rotate)
    patch.setattr(RoPE, "structure", posenc.PositionalEncoding.structure)


def plant_K3_an_operator_of_ones_own(patch):
    bias = T5.bias

    def repeated(self, q, k, at_q, at_k):
        of_pair = bias(self, q, k, at_q, at_k)
        return lambda b, h, i, j: of_pair(b, h, i.repeat_interleave(torch.ones_like(i[0, 0, :, 0]), dim=2), j)

    patch.setattr(T5, "bias", repeated)
