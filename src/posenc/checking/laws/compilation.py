"""torch.compile: one graph for all lengths."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from posenc.checking.engine import Measured
from posenc.checking.errors import LawBroken
from posenc.checking.laws.compare import close
from posenc.checking.laws.registry import breaks
from posenc.checking.laws.world import Setting, World
from posenc.encoding import PositionalEncoding
from posenc.positions import Positions
from posenc.support.tensors import working_dtype


@breaks("")
def one_graph_over_lengths(encoding: PositionalEncoding, setting: Setting) -> Iterator[Measured]:
    """torch.compile(fullgraph=True, dynamic=True) makes one graph for lengths 11, 16, 24, 40 and 64, and it is right."""
    world, graphs = World(replace(setting, length=64)), []

    def counting(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        graphs.append(graph)
        return graph.forward

    torch._dynamo.reset()
    compiled = torch.compile(lambda x, at: world.output(encoding, x, at), backend=counting, fullgraph=True, dynamic=True)
    for length in (11, 16, 24, 40, 64):  # the first is no width: torch takes sizes that are equal once for one size
        x = world.x[:, :length].contiguous()
        plain = Positions.arange(setting.batch, length, device=setting.device)
        at = encoding.prepare(plain, working_dtype(setting.dtype))
        expected = world.output(encoding, x, at)
        yield close(compiled(x, at), expected, setting.dtype, f"length {length}")
    if len(graphs) != 1:
        raise LawBroken(f"{len(graphs)} graphs")
    for node in graphs[0].graph.nodes:
        value = node.meta.get("example_value")
        if isinstance(value, Tensor) and value.is_complex():
            raise LawBroken(f"complex numbers in the graph, at {node.name}")
