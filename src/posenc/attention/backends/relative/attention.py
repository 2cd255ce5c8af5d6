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

import functools
import operator
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from posenc.support.tensors import working_dtype

if TYPE_CHECKING:
    from posenc.support.shapes import Float, Int

BLOCK = 64  # queries at a time
ROOM = 2**18  # pairs at a time, as far as one head and BLOCK queries allow: 1 MiB of fp32 stays in the cache


def relative_attention(
    q: Float[Tensor, "b h i d"],
    k: Float[Tensor, "b g j d"],
    v: Float[Tensor, "b g j dv"],
    p: Float[Tensor, "b h i c"],
    keys: Float[Tensor, "#b #h R c"],
    values: Float[Tensor, "#b #h R dv"] | None,
    row: Int[Tensor, "#b"],
    seen: Int[Tensor, "#b"] | None,
    scale: float,
) -> Float[Tensor, "b h i dv"]:
    """The formula above with r = keys and a = values; pair (i, j) has row clip(row - i + j, 0, R-1).

    row    the row of the first query with the first key, which may lie outside of the table
    seen   causal: query i sees keys j ≤ i + seen; None: every query sees every key

    Sums in float32 (float64 for float64), rounded once to the dtype of v. A query that sees no key gets zeros.
    Raises ValueError where keys and values are not tables for the same rows of the batch, heads and distances.
    """
    if values is not None and values.shape[:3] != keys.shape[:3]:
        raise ValueError(
            f"keys, values: expected [b, h, R, channels] alike up to the channels, got {list(keys.shape)} and "
            f"{list(values.shape)}"
        )
    q, k, v = (x if x.stride(3) == 1 else x.contiguous() for x in (q, k, v))  # torch's kernel reads channels side by side
    parts = []
    if q.shape[2] == 1:
        for rows, first, last in alike(row, seen, q.shape[0]):
            of_keys = keys if len(keys) == 1 else keys[rows]
            of_values = values if values is None or len(values) == 1 else values[rows]
            parts.append(of_one_query(q[rows], k[rows], v[rows], p[rows], of_keys, of_values, first, last, scale))
        return parts[0] if len(parts) == 1 else torch.cat(parts)
    for rows, first, last in alike(row, seen, q.shape[0]):
        order, lanes = arranged(rows, q, k, v, p, keys, values, scale)
        out = lanes.q.new_zeros(*lanes.q.shape[:2], v.shape[3])
        for some, tables in lanes.few():
            part = lanes.take(some, tables)
            for tile in tiles(q.shape[2], k.shape[2], keys.shape[2], first, last):
                out[some, tile.queries] = part.attend(tile)
        parts.append(order.apart(out))
    return (parts[0] if len(parts) == 1 else torch.cat(parts)).to(v.dtype).contiguous()


def of_one_query(
    q: Float[Tensor, "b h 1 d"],
    k: Float[Tensor, "b g j d"],
    v: Float[Tensor, "b g j dv"],
    p: Float[Tensor, "b h runs c"],
    keys: Float[Tensor, "#b #h R c"],
    values: Float[Tensor, "#b #h R dv"] | None,
    first: int,
    seen: int | None,
    scale: float,
) -> Float[Tensor, "b h 1 dv"]:
    """The same for a decoded token. Query heads that share a key head are its queries, so that no key is repeated.

    With several vectors p the rows of `keys`, of one head for all, come once for each of them.
    """
    dtype, (batch, heads), key_heads = working_dtype(v.dtype), q.shape[:2], k.shape[1]
    tile = next(tiles(1, k.shape[2], p.shape[2] * keys.shape[2], first, seen), None)
    if tile is None:
        return v.new_zeros(batch, heads, 1, v.shape[3])
    k, v_seen = k[:, :, : tile.keys].to(dtype), v[:, :, : tile.keys].to(dtype)
    rows = slice(tile.low, tile.high)
    if p.shape[2] == 1:
        met = with_tables(p[:, :, 0].to(dtype), keys[:, :, rows].to(dtype).mT) * scale
    else:
        met = with_tables(p.flatten(1, 2).to(dtype), keys.to(dtype).mT).view(batch, heads, -1)[..., rows] * scale
    if tile.left or tile.right:
        ends = met[..., :1].expand(-1, -1, tile.left), met[..., -1:].expand(-1, -1, tile.right)
        met = torch.cat([ends[0], met, ends[1]], dim=2)
    content = q.to(dtype).reshape(batch, key_heads, -1, q.shape[3])
    term = met.reshape(batch, key_heads, -1, tile.keys)
    if values is None and k.shape == v_seen.shape:
        out = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(content, k, v_seen, attn_mask=term, scale=scale)[0]
        return out.reshape(batch, heads, 1, -1).to(v.dtype)  # type: ignore[no-any-return]
    probs = torch.baddbmm(term.flatten(0, 1), content.flatten(0, 1), k.flatten(0, 1).mT, alpha=scale).softmax(dim=-1)
    out = torch.bmm(probs, v_seen.flatten(0, 1)).view(batch, heads, -1)
    if values is not None:
        of_pair = probs.view(batch, heads, -1)
        of_row = of_pair[..., tile.left : tile.keys - tile.right].clone()
        of_row[..., 0] += of_pair[..., : tile.left].sum(dim=-1)
        of_row[..., -1] += of_pair[..., tile.keys - tile.right :].sum(dim=-1)
        out = out + with_tables(of_row, values[:, :, rows].to(dtype))
    return out[:, :, None].to(v.dtype)


def with_tables(x: Float[Tensor, "b h c"], tables: Float[Tensor, "#b #h c n"]) -> Float[Tensor, "b h n"]:
    """x of every row and head times its table; a table that serves several is not repeated."""
    if tables.shape[1] == 1:
        return x @ (tables[0, 0] if len(tables) == 1 else tables[:, 0])
    if len(tables) == 1:
        return torch.bmm(x.transpose(0, 1), tables[0]).transpose(0, 1)
    return (x[:, :, None] @ tables)[:, :, 0]


def relative_attention_backward(
    gradient: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    p: Tensor,
    keys: Tensor,
    values: Tensor | None,
    row: Tensor,
    seen: Tensor | None,
    scale: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The gradients of q, k, v, p, keys and values (empty without values); softmax is computed again, block by block."""
    parts = []
    for rows, first, last in alike(row, seen, q.shape[0]):
        order, lanes = arranged(rows, q, k, v, p, keys, values, scale)
        of_lanes, out = lanes.zeros(), order.together(gradient[rows])
        for some, tables in lanes.few():
            part, of_part = lanes.take(some, tables), of_lanes.take(some, tables)
            for tile in tiles(q.shape[2], k.shape[2], keys.shape[2], first, last):
                part.differentiate(tile, out[some, tile.queries], of_part)
        parts.append(order.gradients(of_lanes, scale))
    inputs = (q, k, v, p, keys, values)
    return tuple(
        v.new_empty(0) if x is None else together(of_rows, x.shape[0] == 1).to(x.dtype).contiguous()
        for x, of_rows in zip(inputs, zip(*parts, strict=True), strict=True)
    )  # type: ignore[return-value]


def together(of_rows: Sequence[Tensor], shared: bool) -> Tensor:
    """Gradients of rows of the batch: side by side, or summed where one tensor served all of them."""
    if len(of_rows) == 1:
        return of_rows[0]
    return functools.reduce(operator.add, of_rows) if shared else torch.cat(list(of_rows))


def alike(row: Tensor, seen: Tensor | None, batch: int) -> list[tuple[slice, int, int | None]]:
    """Rows of the batch that can be computed together, with their `row` and `seen`: all of them, or each alone."""
    firsts: list[int] = row.expand(batch).tolist()
    lasts: list[int] | list[None] = [None] * batch if seen is None else seen.expand(batch).tolist()
    if len(set(zip(firsts, lasts, strict=True))) == 1:
        return [(slice(0, batch), firsts[0], lasts[0])]
    return [(slice(n, n + 1), firsts[n], lasts[n]) for n in range(batch)]


def arranged(
    rows: slice, q: Tensor, k: Tensor, v: Tensor, p: Tensor, keys: Tensor, values: Tensor | None, scale: float
) -> tuple[Order, Lanes]:
    """Those rows of the batch as lanes in the working dtype; q and p come with the scale."""
    keys = keys if len(keys) == 1 else keys[rows]
    values = values if values is None or len(values) == 1 else values[rows]
    order = Order(
        rows.stop - rows.start,
        q.shape[1],
        q.shape[1] // k.shape[1],
        len(keys),
        len(keys) == 1 < keys.shape[1],
        working_dtype(v.dtype),
    )
    return order, Lanes(
        order.together(q[rows]) * scale,
        order.shared(k[rows]),
        order.shared(v[rows]),
        order.together(p[rows]) * scale,
        keys.to(order.dtype).flatten(0, 1),
        None if values is None else values.to(order.dtype).flatten(0, 1),
    )


class Order(NamedTuple):
    """How heads and batch become lanes: those that share a table lie side by side, so heads come first where each has
    one for the whole batch."""

    batch: int
    heads: int
    share: int  # query heads of a key head
    tables: int  # for the batch: 1 or as many as rows
    heads_first: bool
    dtype: torch.dtype

    def together(self, x: Float[Tensor, "b h t d"]) -> Float[Tensor, "l t d"]:
        return (x.transpose(0, 1) if self.heads_first else x).to(self.dtype).flatten(0, 1)

    def shared(self, x: Float[Tensor, "b g t d"]) -> Float[Tensor, "l t d"]:
        return self.together(x.repeat_interleave(self.share, dim=1) if self.share > 1 else x)

    def apart(self, x: Float[Tensor, "l t d"]) -> Float[Tensor, "b h t d"]:
        if self.heads_first:
            return x.view(self.heads, self.batch, *x.shape[1:]).transpose(0, 1)
        return x.view(self.batch, self.heads, *x.shape[1:])

    def gradients(self, of: Lanes, scale: float) -> list[Tensor | None]:
        """Those of the inputs from those of the lanes."""
        k, v = (
            self.apart(x).unflatten(1, (-1, self.share)).sum(dim=2) if self.share > 1 else self.apart(x)
            for x in (of.k, of.v)
        )
        tables = (None if x is None else x.unflatten(0, (self.tables, -1)) for x in (of.keys, of.values))
        return [self.apart(of.q) * scale, k, v, self.apart(of.p) * scale, *tables]


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
    def row_diagonals(self) -> slice:
        return slice(self.left, self.left + self.high - self.low)

    @property
    def diagonals(self) -> int:
        return self.left + self.high - self.low + self.right + self.hidden

    def pairs(self, diagonals: Float[Tensor, "l i n"]) -> Float[Tensor, "l i j"]:
        """The view in which diagonals stand askew: (i, j) of the block."""
        lanes, queries, _ = diagonals.shape
        outer, inner, _ = diagonals.stride()
        return diagonals.as_strided(
            (lanes, queries, self.keys), (outer, inner - 1, 1), diagonals.storage_offset() + queries - 1
        )

    def widen(self, diagonals: Tensor, hidden: float) -> None:
        """Rows of the table, written to `row_diagonals`, repeated on the diagonals that share them."""
        rows = self.row_diagonals
        if self.left:
            diagonals[..., : rows.start] = diagonals[..., rows.start : rows.start + 1]
        if self.right:
            diagonals[..., rows.stop : rows.stop + self.right] = diagonals[..., rows.stop - 1 : rows.stop]
        if self.hidden:
            diagonals[..., -self.hidden :] = hidden

    def collapse(self, diagonals: Tensor) -> None:
        """The adjoint: what stands on diagonals that share a row is added to `row_diagonals`."""
        rows = self.row_diagonals
        if self.left:
            diagonals[..., rows.start] += diagonals[..., : rows.start].sum(dim=-1)
        if self.right:
            diagonals[..., rows.stop - 1] += diagonals[..., rows.stop : rows.stop + self.right].sum(dim=-1)


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


class Lanes(NamedTuple):
    """The inputs with heads and batch as one axis, t tables for l lanes, and the formula on a tile of queries and keys."""

    q: Float[Tensor, "l i d"]
    k: Float[Tensor, "l j d"]
    v: Float[Tensor, "l j dv"]
    p: Float[Tensor, "l i c"]
    keys: Float[Tensor, "t R c"]
    values: Float[Tensor, "t R dv"] | None

    def zeros(self) -> Lanes:
        """Room for the gradient of each."""
        values = None if self.values is None else torch.zeros_like(self.values)
        q, k, v, p, keys = map(torch.zeros_like, (self.q, self.k, self.v, self.p, self.keys))
        return Lanes(q, k, v, p, keys, values)

    def few(self) -> Iterator[tuple[slice, slice]]:
        """Lanes for which a block has no more than ROOM pairs, and their tables; at least one lane."""
        each, tables = len(self.q) // len(self.keys), len(self.keys)
        room = max(1, ROOM // (min(BLOCK, self.q.shape[1]) * self.k.shape[1]))
        if each > room:
            for table in range(tables):
                for begin in range(0, each, room):
                    yield slice(table * each + begin, table * each + min(begin + room, each)), slice(table, table + 1)
        else:
            for table in range(0, tables, room // each):
                some = slice(table, min(table + room // each, tables))
                yield slice(some.start * each, some.stop * each), some

    def take(self, some: slice, tables: slice) -> Lanes:
        values = None if self.values is None else self.values[tables]
        return Lanes(self.q[some], self.k[some], self.v[some], self.p[some], self.keys[tables], values)

    def meet(
        self, x: Float[Tensor, "l i c"], table: Float[Tensor, "t R c"], tile: Tile, hidden: float
    ) -> Float[Tensor, "l i j"]:
        """x_i · table_[j-i] for every pair."""
        diagonals = x.new_empty(len(table), len(x) // len(table) * x.shape[1], tile.diagonals)
        rows = table[:, tile.low : tile.high].transpose(1, 2)
        torch.bmm(x.reshape(len(table), -1, x.shape[2]), rows, out=diagonals[..., tile.row_diagonals])
        tile.widen(diagonals, hidden)
        return tile.pairs(diagonals.view(len(x), x.shape[1], -1))

    def by_row(self, pairs: Float[Tensor, "l i j"], tile: Tile) -> Float[Tensor, "t m r"]:
        """What the pairs of each row of the table sum to, for every query; m queries of all lanes that share a table."""
        diagonals = pairs.new_zeros(*pairs.shape[:2], tile.diagonals)
        tile.pairs(diagonals).copy_(pairs)
        tile.collapse(diagonals)
        return diagonals.view(len(self.keys), -1, tile.diagonals)[..., tile.row_diagonals]

    def attend(self, tile: Tile) -> Float[Tensor, "l i dv"]:
        k, v = self.k[:, : tile.keys], self.v[:, : tile.keys]
        if self.values is None and k.shape == v.shape:
            term = self.meet(self.p[:, tile.queries], self.keys, tile, float("-inf"))
            fused: Tensor = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
                self.q[None, :, tile.queries], k[None], v[None], attn_mask=term[None], scale=1.0
            )[0]
            return fused[0]
        probs = self.probs(tile)
        out = probs @ v
        if self.values is not None:
            out += (self.by_row(probs, tile) @ self.values[:, tile.low : tile.high]).view(out.shape)
        return out

    def probs(self, tile: Tile) -> Float[Tensor, "l i j"]:
        logits = torch.bmm(self.q[:, tile.queries], self.k[:, : tile.keys].transpose(1, 2))
        logits += self.meet(self.p[:, tile.queries], self.keys, tile, float("-inf"))
        return logits.softmax(dim=-1)

    def differentiate(self, tile: Tile, out: Float[Tensor, "l i dv"], gradients: Lanes) -> None:
        """The adjoint of `attend`: from the gradient of its output, what the tile adds to those of all inputs."""
        queries, rows, probs = tile.queries, slice(tile.low, tile.high), self.probs(tile)
        gradients.v[:, : tile.keys].baddbmm_(probs.transpose(1, 2), out)
        of_probs = torch.bmm(out, self.v[:, : tile.keys].transpose(1, 2))
        if self.values is not None and gradients.values is not None:
            of_probs += self.meet(out, self.values, tile, 0.0)
            weights = self.by_row(probs, tile)
            gradients.values[:, rows] += weights.transpose(1, 2) @ out.reshape(len(self.values), -1, out.shape[2])

        of_logits = torch._softmax_backward_data(of_probs, probs, -1, probs.dtype)
        gradients.q[:, queries] = torch.bmm(of_logits, self.k[:, : tile.keys])
        gradients.k[:, : tile.keys].baddbmm_(of_logits.transpose(1, 2), self.q[:, queries])
        scores, p = self.by_row(of_logits, tile), self.p[:, queries]
        gradients.p[:, queries] = (scores @ self.keys[:, rows]).view(p.shape)
        gradients.keys[:, rows] += scores.transpose(1, 2) @ p.reshape(len(self.keys), -1, p.shape[2])
