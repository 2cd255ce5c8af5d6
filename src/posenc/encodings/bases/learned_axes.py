"""A learned table for every coordinate of a token; the rows are summed, or stand side by side.

    sum     x + Σ_n table_n[c_n]          concat  x + [table_0[c_0] | table_1[c_1] | …]

Summed: LayoutLM (Xu et al. 2019, section 2.1), Pix2Struct (Lee et al. 2022), Gemma 4 vision. Side by side: DETR's learned
variant (Carion et al. 2020), LayoutLMv2 (Xu et al. 2020), Reformer's axial table (Kitaev et al. 2020, in their code).
Legend: b batch, t tokens, d d_model, n blocks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from posenc.encoding import AbsoluteEncoding
from posenc.encodings.bases.coordinates import Silent, check_reads, select, silent_tokens
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import check_between, check_coords, check_embeddings, full_precision

if TYPE_CHECKING:
    from posenc.support.shapes import Float, Int

Combine = Literal["sum", "concat"]


class LearnedAxes(AbsoluteEncoding):
    """x + the rows of a token's coordinates, one table for each coordinate.

    d_model        channels
    max_positions  rows of each table
    axes           coordinates per token
    reads          the coordinate that each block reads; all in turn unless said. (1, 0) with "concat" puts x before y
    shares         the table that each block reads; its own unless said. LayoutLM: x0 and x1 share one
    combine        "sum", or "concat": blocks stand side by side
    widths         channels of each block side by side; equal unless said
    folded         the position is one number, counted row by row through a box of these sizes (Reformer): p = y·width + x
    silent         tokens that get nothing: "none", "padding" (Gemma 4) or "negative": all that is read is < 0

    Parameters: axis_tables.0, .1, … [max_positions, width].
    Raises ValueError for a coordinate outside its table, naming it and the limit (a device assert off the CPU), and for
    tables, widths or blocks that do not fit together.
    """

    def __init__(
        self,
        d_model: int,
        max_positions: Sequence[int],
        *,
        axes: int | None = None,
        reads: Sequence[int] | None = None,
        shares: Sequence[int] | None = None,
        combine: Combine = "sum",
        widths: Sequence[int] | None = None,
        folded: bool = False,
        silent: Silent = "none",
    ) -> None:
        sizes = tuple(max_positions)
        axes = len(sizes) if axes is None else axes
        checks.whole(d_model=d_model, axes=axes)
        super().__init__(
            d_model=d_model,
            max_positions=sizes,
            axes=axes,
            reads=reads,
            shares=shares,
            combine=combine,
            widths=widths,
            folded=folded,
            silent=silent,
        )
        checks.one_of(get_args(Combine), combine=combine)
        checks.one_of(get_args(Silent), silent=silent)
        if not sizes or any(isinstance(size, bool) or not isinstance(size, int) or size < 1 for size in sizes):
            raise ValueError(f"max_positions: expected a whole number from 1 for every table, got {sizes}")
        self.reads = check_reads(reads, axes)
        blocks = len(self.reads)
        self.shares = tuple(range(blocks)) if shares is None else tuple(shares)
        if len(self.shares) != blocks or set(self.shares) != set(range(len(sizes))):
            raise ValueError(
                f"shares: expected a table 0 … {len(sizes) - 1} for each of {blocks} blocks and every table "
                f"read, got {self.shares}"
            )
        if folded and (reads is not None or shares is not None):
            raise ValueError("folded: the position is one number; leave reads and shares out")
        if combine == "sum":
            if widths is not None:
                raise ValueError("widths: summed blocks are all as wide as d_model; leave widths out")
            self.widths = (d_model,) * blocks
        else:
            self.widths = (d_model // blocks,) * blocks if widths is None else tuple(widths)
            if len(self.widths) != blocks or sum(self.widths) != d_model or min(self.widths) < 1:
                raise ValueError(f"widths: expected {blocks} widths with the sum d_model={d_model}, got {self.widths}")
        of_table = {
            table: {w for s, w in zip(self.shares, self.widths, strict=True) if s == table} for table in self.shares
        }
        if any(len(table_widths) > 1 for table_widths in of_table.values()):
            raise ValueError(
                f"widths: blocks that share a table need one width, got {self.widths} for tables {self.shares}"
            )
        self.d_model, self.max_positions, self.combine, self.silent = d_model, sizes, combine, silent
        self.folded = folded
        self.axes = 1 if folded else axes
        self.axis_tables = nn.ParameterList(
            nn.Parameter(torch.empty(size, of_table[n].pop()).normal_(std=0.02)) for n, size in enumerate(sizes)
        )

    def embed(self, x: Float[Tensor, "b t d"], at: Positions) -> Float[Tensor, "b t d"]:
        check_embeddings(self, x, at)
        check_coords(self, at, integers=True)
        quiet = silent_tokens(at if self.folded else select(at, self.reads), self.silent)
        coords = self._unfolded(at.coords, quiet)
        rows = [F.embedding(coords[n], self.axis_tables[table]).to(x.dtype) for n, table in enumerate(self.shares)]
        with full_precision(x):  # autocast to bfloat16 refuses to join float16
            added = torch.cat(rows, dim=-1) if self.combine == "concat" else sum(rows[1:], start=rows[0])
        return x + (added if self.silent == "none" else added.masked_fill(quiet[..., None], 0))

    def _unfolded(self, coords: Tensor, quiet: Tensor) -> list[Int[Tensor, "b t"]]:
        """One coordinate for each block, each inside its table; silent tokens at 0."""
        per_block: list[Tensor] = []
        if self.folded:
            rest = coords.masked_fill(quiet, 0)
            self._inside(rest, math.prod(self.max_positions), 0)
            for size in reversed(self.max_positions):
                per_block.insert(0, rest % size)
                rest = rest // size
            return per_block
        stacked = coords if coords.ndim == 3 else coords[..., None]
        per_block = [stacked[..., axis].masked_fill(quiet, 0) for axis in self.reads]
        for n, block in enumerate(per_block):
            self._inside(block, self.max_positions[self.shares[n]], self.reads[n])
        return per_block

    def _inside(self, coords: Tensor, size: int, axis: int) -> None:
        check_between(coords, 0, size - 1, f"{type(self).__name__}: coordinate {axis}: position", ": the table ends there")


def with_sizes(boxes: Int[Tensor, "b t 4"]) -> Int[Tensor, "b t 6"]:
    """(x0, y0, x1, y1) as the six coordinates that LayoutLM reads: (x0, y0, x1, y1, height, width), sizes from 0.

    Positions.at(with_sizes(boxes)) goes to LearnedAxes(…, axes=6, shares=(0, 1, 0, 1, 2, 3)).
    """
    if boxes.ndim != 3 or boxes.shape[-1] != 4:
        raise ValueError(f"boxes: expected [b, t, 4] corners (x0, y0, x1, y1), got {list(boxes.shape)}")
    size = (boxes[..., 2:] - boxes[..., :2]).clamp(min=0).flip(-1)
    return torch.cat([boxes, size], dim=-1)


@checked
def reformer(d_model: int, *, max_positions: int = 2048) -> LearnedAxes:
    """`LearnedAxes` of one coordinate that is counted row by row through a box of max_positions places.

    d_model        channels, an even number: half for each digit
    max_positions  rows of the box times columns: W is the largest divisor up to its square root

    Raises ValueError for an odd width.
    """
    checks.even(d_model=d_model)
    rows = max(n for n in range(1, math.isqrt(max_positions) + 1) if max_positions % n == 0)
    return LearnedAxes(d_model, (rows, max_positions // rows), combine="concat", folded=True)


@checked
def learned_2d(d_model: int, *, max_positions: int = 128) -> LearnedAxes:
    """`LearnedAxes` of two coordinates.

    d_model        channels
    max_positions  rows of each table: patches down and across

    Raises ValueError for sizes that are not positive.
    """
    return LearnedAxes(d_model, (max_positions, max_positions))
