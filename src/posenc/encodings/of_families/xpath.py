"""The position of a token in a tree: a vector for every step of its path from the root, through a small network.

    x + W₂·relu(W₁·u + b₁) + b₂,   u = [tag_0[c_0] + subscript_0[s_0] | … | tag_n[c_n] + subscript_n[s_n]]

Li et al. 2021, "MarkupLM: Pre-training of Text and Markup Language for Visually-rich Document Understanding", section 3.1.
Legend: b batch, t tokens, d d_model, n depth.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from posenc.encoding import AbsoluteEncoding
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.tensors import check_between, check_coords, check_embeddings, full_precision, working_dtype

if TYPE_CHECKING:
    from posenc.support.shapes import Float


class XPath(AbsoluteEncoding):
    """x + the encoding of an XPath such as /html/body/div[2]/p.

    d_model        channels
    depth          steps of a path; shorter ones are filled up with a tag and a subscript of their own
    n_tags         kinds of tags
    n_subscripts   subscripts, 0 for a step without one
    unit           channels of one step

    Coordinates are whole numbers [b, t, 2·depth]: the tags from the root on, then the subscripts.
    Parameters: tags [n, tags, unit], subscripts [n, subscripts, unit], inner (W₁, b₁) and outer (W₂, b₂).
    Raises ValueError for a tag or subscript that there is not (a device assert off the CPU).
    """

    def __init__(
        self, d_model: int, depth: int = 50, *, n_tags: int = 256, n_subscripts: int = 1024, unit: int = 32
    ) -> None:
        super().__init__(d_model=d_model, depth=depth, n_tags=n_tags, n_subscripts=n_subscripts, unit=unit)
        checks.whole(d_model=d_model, depth=depth, n_tags=n_tags, n_subscripts=n_subscripts, unit=unit)
        self.d_model, self.axes = d_model, 2 * depth
        self.tags = nn.Parameter(torch.empty(depth, n_tags, unit).normal_(std=0.02))
        self.subscripts = nn.Parameter(torch.empty(depth, n_subscripts, unit).normal_(std=0.02))
        self.inner = nn.Linear(depth * unit, 4 * d_model)
        self.outer = nn.Linear(4 * d_model, d_model)

    def embed(self, x: Float[Tensor, "b t d"], at: Positions) -> Float[Tensor, "b t d"]:
        check_embeddings(self, x, at)
        check_coords(self, at, integers=True)
        tags, subscripts = at.coords.chunk(2, dim=-1)
        for name, steps, table in (("tag", tags, self.tags), ("subscript", subscripts, self.subscripts)):
            check_between(steps, 0, table.shape[1] - 1, f"XPath: {name}")
        dtype = working_dtype(x.dtype)
        step = torch.arange(tags.shape[-1], device=tags.device)
        path = (self.tags[step, tags].to(dtype) + self.subscripts[step, subscripts].to(dtype)).flatten(-2)
        with full_precision(x):
            hidden = nn.functional.linear(path, self.inner.weight.to(dtype), self.inner.bias.to(dtype)).relu()
            added = nn.functional.linear(hidden, self.outer.weight.to(dtype), self.outer.bias.to(dtype))
        return (x.to(dtype) + added).to(x.dtype)
