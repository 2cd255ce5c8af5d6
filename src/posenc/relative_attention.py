"""Attention in which a query's content also meets a vector of the distance: Shaw, Transformer-XL. By blocks of queries.

    logits_ij = (q_i·k_j + p_i·r_[j-i]) · scale,     out_i = Σ_j softmax_ij · (v_j + a_[j-i])

Along a diagonal j - i is one number, so that p·r is a matrix of queries × diagonals, not of queries × keys × channels.
With its columns in the order of j - i, the term of (i, j) is a strided view of it:

    diagonals   -2 -1  0  1  2          a block of 3 queries and 3 keys: the view begins in column
    query 0      ·  · [a  b  c]         queries - 1 and moves left by one in every row, which is a row
    query 1      · [d  e  f] ·          stride of one less. Nothing is gathered, nothing is stored twice.
    query 2     [g  h  i] ·  ·

Rows r are a table of consecutive j - i; beyond its ends the first and the last row count for all (Shaw's clipping).
Only the rows that the table has are multiplied. Memory: one block of queries × keys for every head.

Legend: b batch, h query heads, g key heads, i query, j key, d channel, c channel of p and r, R rows of the table,
l lanes: heads and batch as one axis.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from posenc.encoding import working_dtype

if TYPE_CHECKING:
    from jaxtyping import Float, Int

BLOCK = 64  # queries at a time


def relative_attention(
    q: Float[Tensor, "b h i d"], k: Float[Tensor, "b g j d"], v: Float[Tensor, "b g j dv"], p: Float[Tensor, "b h i c"],
    keys: Float[Tensor, "#b #h R c"], values: Float[Tensor, "#b #h R dv"] | None,
    row: Int[Tensor, "#b"], seen: Int[Tensor, "#b"] | None, scale: float,
) -> Float[Tensor, "b h i dv"]:  # fmt: skip
    """The formula above with r = keys and a = values; pair (i, j) has row clip(row - i + j, 0, R-1).

    row    the row of the first query with the first key, which may lie outside of the table
    seen   causal: query i sees keys j ≤ i + seen; None: every query sees every key

    Sums in float32 (float64 for float64), rounded once to the dtype of v. A query that sees no key gets zeros.
    """
    out = torch.zeros(*q.shape[:3], v.shape[3], dtype=v.dtype, device=v.device)
    for rows, first, last in alike(row, seen, q.shape[0]):
        lanes = Lanes(q[rows], k[rows], v[rows], p[rows], of(keys, rows), of(values, rows), scale)
        whole = lanes.empty(v.shape[3])
        for tile in tiles(q.shape[2], k.shape[2], keys.shape[2], first, last):
            whole[:, tile.queries] = lanes.attend(tile)
        begin = max(0, -last) if last is not None else 0  # earlier queries see nothing
        out[rows, :, begin:] = lanes.apart(whole)[:, :, begin:]
    return out


def relative_attention_backward(
    gradient: Tensor, q: Tensor, k: Tensor, v: Tensor, p: Tensor, keys: Tensor, values: Tensor | None,
    row: Tensor, seen: Tensor | None, scale: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """The gradients of q, k, v, p, keys and values (empty without values); softmax is computed again, block by block."""
    inputs = (q, k, v, p, keys) if values is None else (q, k, v, p, keys, values)
    sums = [torch.zeros(x.shape, dtype=working_dtype(v.dtype), device=x.device) for x in inputs]
    for rows, first, last in alike(row, seen, q.shape[0]):
        lanes = Lanes(q[rows], k[rows], v[rows], p[rows], of(keys, rows), of(values, rows), scale)
        back = Gradients(lanes, gradient[rows])
        for tile in tiles(q.shape[2], k.shape[2], keys.shape[2], first, last):
            back.add(tile)
        for total, part in zip(sums, back.of_inputs(), strict=True):
            of(total, rows).add_(part)
    given = [total.to(x.dtype) for total, x in zip(sums, inputs, strict=True)]
    return (*given, v.new_empty(0)) if values is None else tuple(given)  # type: ignore[return-value]


def alike(row: Tensor, seen: Tensor | None, batch: int) -> list[tuple[slice, int, int | None]]:
    """Rows of the batch that can be computed together, with their `row` and `seen`: all of them, or each alone."""
    firsts: list[int] = row.expand(batch).tolist()
    lasts: list[int] | list[None] = [None] * batch if seen is None else seen.expand(batch).tolist()
    if len(set(zip(firsts, lasts, strict=True))) == 1:
        return [(slice(0, batch), firsts[0], lasts[0])]
    return [(slice(n, n + 1), firsts[n], lasts[n]) for n in range(batch)]


def of(table: Any, rows: slice) -> Any:
    """The table of those rows of the batch; one table may serve all."""
    return table if table is None or table.shape[0] == 1 else table[rows]


class Tile(NamedTuple):
    """A block of queries, the keys that any of them sees, and the rows of the table on the diagonals of the block.

    Diagonals, in the order of j - i: `left` with the row before `low`, one for each row low … high-1, `right` with the
    row of high-1, and `hidden` that no query of the block sees.
    """

    queries: slice
    keys: int
    low: int
    high: int
    left: int
    right: int
    hidden: int

    @property
    def own(self) -> slice:
        return slice(self.left, self.left + self.high - self.low)

    @property
    def diagonals(self) -> int:
        return self.left + self.high - self.low + self.right + self.hidden

    def pairs(self, diagonals: Float[Tensor, "l i n"]) -> Float[Tensor, "l i j"]:
        """The view in which diagonals stand askew: (i, j) of the block."""
        lanes, queries, _ = diagonals.shape
        outer, inner, _ = diagonals.stride()
        return diagonals.as_strided((lanes, queries, self.keys), (outer, inner - 1, 1),
                                    diagonals.storage_offset() + queries - 1)  # fmt: skip

    def widen(self, diagonals: Tensor, hidden: float) -> None:
        """Rows of the table, written to `own`, repeated on the diagonals that share them."""
        own = self.own
        if self.left:
            diagonals[..., : own.start] = diagonals[..., own.start : own.start + 1]
        if self.right:
            diagonals[..., own.stop : own.stop + self.right] = diagonals[..., own.stop - 1 : own.stop]
        if self.hidden:
            diagonals[..., -self.hidden :] = hidden

    def collapse(self, diagonals: Tensor) -> None:
        """The adjoint: what stands on diagonals that share a row is added to `own`."""
        own = self.own
        if self.left:
            diagonals[..., own.start] += diagonals[..., : own.start].sum(dim=-1)
        if self.right:
            diagonals[..., own.stop - 1] += diagonals[..., own.stop : own.stop + self.right].sum(dim=-1)


def tiles(queries: int, keys: int, rows: int, row: int, seen: int | None) -> Iterator[Tile]:
    """The blocks of queries that see a key."""
    for begin in range(0 if seen is None else max(0, -seen), queries, BLOCK):
        end = min(begin + BLOCK, queries)
        visible = keys if seen is None else min(keys, end + seen)
        diagonals = end - begin + visible - 1
        hidden = 0 if seen is None else max(0, diagonals - (end + seen))
        lowest, highest = row - end + 1, row - end + diagonals - hidden  # rows of the outermost diagonals, unclipped
        low, high = (min(max(edge, 0), rows - 1) for edge in (lowest, highest))
        left = min(max(-lowest, 0), diagonals - hidden - 1)
        yield Tile(slice(begin, end), visible, low, high + 1, left, diagonals - hidden - left - (high + 1 - low), hidden)


class Lanes:
    """The inputs in the working dtype with heads and batch as one axis, and the parts of the formula on a tile.

    Lanes that share a table lie side by side: heads before batch where one table serves the whole batch.
    """

    def __init__(
        self, q: Tensor, k: Tensor, v: Tensor, p: Tensor, keys: Tensor, values: Tensor | None, scale: float
    ) -> None:
        self.batch, self.heads, self.shared = q.shape[0], q.shape[1], q.shape[1] // k.shape[1]
        self.heads_first = keys.shape[0] == 1
        self.dtype = working_dtype(v.dtype)
        self.q, self.p = self.together(q), self.together(p)
        self.k, self.v = (self.together(x.repeat_interleave(self.shared, dim=1)) for x in (k, v))
        self.keys = keys.to(self.dtype).flatten(0, 1)
        self.values = None if values is None else values.to(self.dtype).flatten(0, 1)
        self.scale = scale

    def together(self, x: Float[Tensor, "b h t d"]) -> Float[Tensor, "l t d"]:
        return (x.transpose(0, 1) if self.heads_first else x).to(self.dtype).flatten(0, 1)

    def apart(self, x: Float[Tensor, "l t d"]) -> Float[Tensor, "b h t d"]:
        if self.heads_first:
            return x.view(self.heads, self.batch, *x.shape[1:]).transpose(0, 1)
        return x.view(self.batch, self.heads, *x.shape[1:])

    def empty(self, width: int) -> Tensor:
        return self.q.new_empty(*self.q.shape[:2], width)

    def meet(
        self, x: Float[Tensor, "l i c"], table: Float[Tensor, "t R c"], tile: Tile, scale: float, hidden: float
    ) -> Float[Tensor, "l i n"]:
        """x_i · table_[j-i] · scale on every diagonal."""
        diagonals = x.new_empty(len(table), len(x) // len(table) * x.shape[1], tile.diagonals)
        rows = table[:, tile.low : tile.high].transpose(1, 2)
        torch.bmm(x.reshape(len(table), -1, x.shape[2]) * scale, rows, out=diagonals[..., tile.own])
        tile.widen(diagonals, hidden)
        return diagonals.view(len(x), x.shape[1], -1)

    def by_row(self, pairs: Float[Tensor, "l i j"], table: Tensor, tile: Tile) -> Float[Tensor, "t m r"]:
        """What the pairs of each row of the table sum to, for every query; m queries of all lanes that share a table."""
        diagonals = pairs.new_zeros(*pairs.shape[:2], tile.diagonals)
        tile.pairs(diagonals).copy_(pairs)
        tile.collapse(diagonals)
        return diagonals.view(len(table), -1, tile.diagonals)[..., tile.own]

    def attend(self, tile: Tile) -> Float[Tensor, "l i dv"]:
        k, v = self.k[:, : tile.keys], self.v[:, : tile.keys]
        if self.values is None and k.shape == v.shape:
            term = tile.pairs(self.meet(self.p[:, tile.queries], self.keys, tile, self.scale, float("-inf")))
            out: Tensor = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
                self.q[None, :, tile.queries], k[None], v[None], attn_mask=term[None], scale=self.scale
            )[0]
            return out[0]
        probs = self.probs(tile)
        out = probs @ v
        if self.values is not None:
            addend = self.by_row(probs, self.values, tile) @ self.values[:, tile.low : tile.high]
            out += addend.view(out.shape)
        return out

    def probs(self, tile: Tile) -> Float[Tensor, "l i j"]:
        logits = torch.bmm(self.q[:, tile.queries] * self.scale, self.k[:, : tile.keys].transpose(1, 2))
        logits += tile.pairs(self.meet(self.p[:, tile.queries], self.keys, tile, self.scale, float("-inf")))
        return logits.softmax(dim=-1)


class Gradients:
    """The adjoint of `Lanes.attend`, added up tile by tile."""

    def __init__(self, lanes: Lanes, gradient: Float[Tensor, "b h i dv"]) -> None:
        self.lanes, self.out = lanes, lanes.together(gradient)
        self.q, self.p = torch.zeros_like(lanes.q), torch.zeros_like(lanes.p)
        self.k, self.v = torch.zeros_like(lanes.k), torch.zeros_like(lanes.v)
        self.keys = torch.zeros_like(lanes.keys)
        self.values = None if lanes.values is None else torch.zeros_like(lanes.values)

    def add(self, tile: Tile) -> None:
        lanes, queries, rows = self.lanes, tile.queries, slice(tile.low, tile.high)
        out, probs = self.out[:, queries], lanes.probs(tile)
        self.v[:, : tile.keys].baddbmm_(probs.transpose(1, 2), out)
        of_probs = torch.bmm(out, lanes.v[:, : tile.keys].transpose(1, 2))
        if lanes.values is not None and self.values is not None:
            of_probs += tile.pairs(lanes.meet(out, lanes.values, tile, 1.0, 0.0))
            weights = lanes.by_row(probs, lanes.values, tile)
            self.values[:, rows] += weights.transpose(1, 2) @ out.reshape(len(lanes.values), -1, out.shape[2])

        logits = torch._softmax_backward_data(of_probs, probs, -1, probs.dtype)  # their gradient
        self.q[:, queries] = torch.bmm(logits, lanes.k[:, : tile.keys]) * lanes.scale
        self.k[:, : tile.keys].baddbmm_(logits.transpose(1, 2), lanes.q[:, queries], alpha=lanes.scale)
        scores, p = lanes.by_row(logits, lanes.keys, tile), lanes.p[:, queries]
        self.p[:, queries] = (scores @ lanes.keys[:, rows] * lanes.scale).view(p.shape)
        self.keys[:, rows] += scores.transpose(1, 2) @ p.reshape(len(lanes.keys), -1, p.shape[2]) * lanes.scale

    def of_inputs(self) -> list[Tensor]:
        lanes = self.lanes
        k, v = (lanes.apart(x).unflatten(1, (-1, lanes.shared)).sum(dim=2) for x in (self.k, self.v))
        tables = [self.keys] if self.values is None else [self.keys, self.values]
        of_tables = (table.unflatten(0, (1 if lanes.heads_first else lanes.batch, -1)) for table in tables)
        return [lanes.apart(self.q), k, v, lanes.apart(self.p), *of_tables]


def _shape(q: Tensor, k: Tensor, v: Tensor, *others: Any) -> Tensor:
    return v.new_empty(*q.shape[:3], v.shape[3])


def _shapes(gradient: Tensor, q: Tensor, k: Tensor, v: Tensor, p: Tensor, keys: Tensor, values: Tensor | None,
            *others: Any) -> tuple[Tensor, ...]:  # fmt: skip
    given = tuple(x.new_empty(x.shape) for x in (q, k, v, p, keys))
    return (*given, v.new_empty(0) if values is None else values.new_empty(values.shape))


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    *tensors, ctx.scale = inputs
    ctx.save_for_backward(*tensors)


def _backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
    found = torch.ops.posenc.relative_attention_backward(gradient, *ctx.saved_tensors, ctx.scale)
    return (*found[:5], None if ctx.saved_tensors[5] is None else found[5], None, None, None)


# Registered by hand, as in phasors.py: the decorator for it would import torch's compiler.
_LIBRARY = torch.library.Library("posenc", "FRAGMENT")
_INPUTS = "Tensor q, Tensor k, Tensor v, Tensor p, Tensor keys, Tensor? values, Tensor row, Tensor? seen, float scale"
_LIBRARY.define(f"relative_attention({_INPUTS}) -> Tensor")
_LIBRARY.define(f"relative_attention_backward(Tensor gradient, {_INPUTS}) -> "
                "(Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)")  # fmt: skip
_LIBRARY.impl("relative_attention", relative_attention, "CPU")
_LIBRARY.impl("relative_attention_backward", relative_attention_backward, "CPU")
_LIBRARY._register_fake("relative_attention", _shape)
_LIBRARY._register_fake("relative_attention_backward", _shapes)
torch.library.register_autograd("posenc::relative_attention", _backward, setup_context=_save, lib=_LIBRARY)
