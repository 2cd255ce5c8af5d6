"""Attention with a bias of the distance alone: the bias is a vector, which torch's fused kernel reads as a strided view.

    out_i = Σ_j softmax_j(q_i·k_j·scale + vector[queries - 1 - i + j])·v_j

The vector begins with the largest distance. With the queries of a block in reverse order i' = queries - 1 - i the bias of
a pair is vector[i' + j]: a strided view in which every row starts one entry later (a Hankel matrix that is stored once),
handed to the fused CPU kernel by blocks of queries. Keys after a block are left out. Extra memory is that of a block of
queries, never queries times keys.

Causal self-attention in fp32 with wide heads, or in bf16, is a kernel of our own, with its gradients: cutoff.py.

The PyTorch operator is in torch_operator.py, the same in plain torch in plain.py.

Backward with fixed biases asks the fused kernel by blocks of keys: their gradients are then whole, and only those of the
queries are summed over blocks, in fp32. With a learned vector the probabilities are computed again tile by tile, and the
gradients of the logits are summed along their diagonals, in fp32 (fp64 for fp64), in a fixed order.

Legend: b batch, h query heads, g key heads, i query, j key, d channel, n = i + j - 1 distances; r, c rows and columns of a
tile.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor

from posenc import kernels
from posenc.attention.backends.toeplitz import cutoff
from posenc.attention.backends.toeplitz.plain import in_torch
from posenc.kernels import banded
from posenc.kernels.derivatives import differentiable_gradients, in_full_precision
from posenc.kernels.eager import plain_on_cpu

if TYPE_CHECKING:
    from posenc.support.shapes import Float, Int

BLOCK = 256  # queries handed to the kernel at once: half a block of masked pairs is wasted on the diagonal
TILE = 512  # keys of a tile of a learned vector's backward
ENTRIES = 2**18  # logits of such tiles at once, over rows and heads: what is made of them stays in the second-level cache

_FLASH = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
_FLASH_BACKWARD = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward.default
Tokens = slice | Tensor


def is_small(q: Float[Tensor, "b h t d"], k: Float[Tensor, "b g t d"], v: Float[Tensor, "b g t dv"]) -> bool:
    """Whether the matrix of biases is no larger than keys and values: then `attend_small` costs the least."""
    if not plain_on_cpu(q, k, v):  # first: the sizes in a graph are symbols
        return False
    (batch, heads, length, width), key_heads = q.shape, k.shape[1]
    dense = q.stride(3) == k.stride(3) == v.stride(3) == 1
    return dense and length <= BLOCK and heads * length <= 2 * batch * key_heads * width and v.shape[3] == width


def attend_few(
    q: Float[Tensor, "b h t d"],
    k: Float[Tensor, "b g t d"],
    v: Float[Tensor, "b g t d"],
    bias: Float[Tensor, "#b h t t"],
    scale: float,
    causal: bool,
) -> Float[Tensor, "b h t d"]:
    """`attend_small` with the matrix of biases at hand, -inf of a causal mask left out: the same bits."""
    flash = torch._scaled_dot_product_flash_attention_for_cpu  # found in less time than the operator by its name
    return flash(q, k, v, 0.0, causal, attn_mask=bias, scale=scale)[0]


def attend_small(
    q: Float[Tensor, "b h t d"],
    k: Float[Tensor, "b g t d"],
    v: Float[Tensor, "b g t d"],
    vector: Float[Tensor, "h n"],
    scale: float,
) -> Float[Tensor, "b h t d"]:
    """Self-attention of a few tokens, each row one document; eager code on the CPU only. Differentiable.

    vector    the bias at distances t - 1 … 1 - t, or t - 1 … 0: then keys after the query are not seen
    """
    if vector.requires_grad and torch.is_grad_enabled():
        return _SmallAndLearned.apply(q, k, v, vector, scale)  # type: ignore[no-any-return]
    return _FLASH(q, k, v, attn_mask=_matrix(vector, q), scale=scale)[0]  # type: ignore[no-any-return]


def toeplitz_attention(
    q: Float[Tensor, "b h i d"],
    k: Float[Tensor, "b g j d"],
    v: Float[Tensor, "b g j dv"],
    vector: Float[Tensor, "h #b n"],
    ahead: Int[Tensor, "#b"],
    document: Int[Tensor, "b t"] | None,
    scale: float,
    causal: bool,
) -> tuple[Float[Tensor, "b h i dv"], Float[Tensor, "b h i"]]:
    """The output and the logarithm of each query's sum of exponentials, -inf and zeros for a query that sees no key.

    vector    the bias where the query is i - 1 … 1 - j tokens after the key: fp32 beside 16-bit q, otherwise of q's dtype
    ahead     by how much the first query comes after the first key in causal order, for every row or for all
    document  for self-attention: tokens see their own document only, as if its tokens stood one after the other; -1 none
    """
    d_value = v.shape[3]
    q, k, v = _one_width(q, k, v)
    groups = list(_groups(q, k, ahead, document))
    if len(groups) == 1 and groups[0].whole:
        out, logsumexp = _forward(q, k, v, vector, groups[0].ahead, scale, causal)
    else:
        out = _zeros(q)
        logsumexp = vector.new_full((q.shape[0], q.shape[2], q.shape[1]), float("-inf")).transpose(1, 2)
        for group in groups:
            part_q, part_k, part_v = group.of(q), group.of(k), group.of(v)
            part, sums = _forward(part_q, part_k, part_v, group.distances(vector), group.ahead, scale, causal)
            group.write(out, part)
            group.write(logsumexp, sums)
    return _narrow(out, d_value), logsumexp


def toeplitz_attention_backward(
    grad: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    vector: Tensor,
    ahead: Tensor,
    document: Tensor | None,
    out: Tensor,
    logsumexp: Tensor,
    grad_sums: Tensor | None,
    scale: float,
    causal: bool,
    learned: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradients of q, k, v and, where it is `learned`, of the vector; an empty tensor otherwise."""
    written_out = learned or grad_sums is not None
    widths, dtype = (q.shape[3], k.shape[3], v.shape[3]), q.dtype
    q, k, v, grad, out = _one_width(q, k, v, grad, out)
    groups = list(_groups(q, k, ahead, document))
    d_vector = vector.new_zeros(vector.shape) if written_out else None
    if len(groups) == 1 and groups[0].whole:
        grads = _backward(grad, q, k, v, vector, out, logsumexp, grad_sums, groups[0].ahead, scale, causal, d_vector)
    else:
        grads = _zeros(q), _zeros(k), _zeros(v)
        for group in groups:
            part_q, part_k, part_v, part_out = group.of(q), group.of(k), group.of(v), group.of(out)
            parts = _backward(
                group.of(grad),
                part_q,
                part_k,
                part_v,
                group.distances(vector),
                part_out,
                group.of(logsumexp),
                None if grad_sums is None else group.of(grad_sums),
                group.ahead,
                scale,
                causal,
                None if d_vector is None else group.distances(d_vector),
            )
            for whole, part in zip(grads, parts, strict=True):
                group.write(whole, part)
    d_q, d_k, d_v = (
        (x[..., :width].contiguous() if written_out else _narrow(x, width)).to(dtype)
        for x, width in zip(grads, widths, strict=True)
    )
    return d_q, d_k, d_v, d_vector if learned and d_vector is not None else vector.new_empty(0)


class Group:
    """Tokens that are attended by themselves: some rows of the batch, some tokens of the row. Views where it can be."""

    def __init__(self, rows: slice, tokens: Tokens | None, count: int, length: int, ahead: int) -> None:
        self.rows, self.tokens, self.count, self.length, self.ahead = rows, tokens, count, length, ahead

    @property
    def whole(self) -> bool:
        return self.rows == slice(None) and self.tokens is None

    def of(self, x: Tensor) -> Tensor:
        return x[self.rows] if self.tokens is None else x[self.rows, :, self.tokens]

    def write(self, x: Tensor, part: Tensor) -> None:
        if self.tokens is None:
            x[self.rows] = part
        else:
            x[self.rows, :, self.tokens] = part.to(x.dtype)

    def distances(self, vector: Tensor) -> Tensor:
        """The distances within a group of `count` tokens: the middle 2·count - 1 of 2·length - 1."""
        vector = vector[:, self.rows] if vector.shape[1] > 1 else vector
        return vector if self.tokens is None else vector[..., self.length - self.count : self.length + self.count - 1]


def _groups(q: Tensor, k: Tensor, ahead: Tensor, document: Tensor | None) -> Iterator[Group]:
    """One group if all rows are alike, else one for each row; with documents, one for each document of each row."""
    batch, length = q.shape[0], q.shape[2]
    if document is None:
        counts = ahead.tolist() if batch else [0]
        if all(count == counts[0] for count in counts):
            yield Group(slice(None), None, length, length, counts[0])
        else:
            yield from (Group(slice(row, row + 1), None, length, length, count) for row, count in enumerate(counts))
        return
    for row, of_row in enumerate(document.expand(batch, length)):
        runs, counts = torch.unique_consecutive(of_row, return_counts=True)
        names, sizes = runs.tolist(), counts.tolist()
        begins = [0]
        for size in sizes:
            begins.append(begins[-1] + size)
        if len(real := [name for name in names if name >= 0]) == len(set(real)):
            spans: list[tuple[Tokens, int]] = [
                (slice(begin, begin + size), size)
                for name, size, begin in zip(names, sizes, begins, strict=False)
                if name >= 0
            ]
        else:  # a document in several parts
            of_documents = [(of_row == name).nonzero()[:, 0] for name in sorted(set(real))]
            spans = [(tokens, len(tokens)) for tokens in of_documents]
        yield from (Group(slice(row, row + 1), tokens, count, length, 0) for tokens, count in spans)


def _one_width(q: Tensor, k: Tensor, v: Tensor, *like_v: Tensor) -> tuple[Tensor, ...]:
    """The kernel wants one width, channels side by side: channels of zeros add nothing to a product."""
    width = max(q.shape[3], v.shape[3])
    return tuple(_side_by_side(x) if x.shape[3] == width else F.pad(x, (0, width - x.shape[3])) for x in (q, k, v, *like_v))


def _side_by_side(x: Tensor) -> Tensor:
    return x if x.stride(3) == 1 else x.contiguous()


def _for_every_head(x: Float[Tensor, "b g t d"], groups: int) -> Float[Tensor, "b h t d"]:
    return x.repeat_interleave(groups, dim=1) if groups > 1 else x


# Results lie as the kernel lays them, token by token and then head by head; gradients beside a learned vector's, head by
# head, as the tiles write them.


def _zeros(x: Float[Tensor, "b h t d"], dtype: torch.dtype | None = None) -> Float[Tensor, "b h t d"]:
    return x.new_zeros(x.shape[0], x.shape[2], x.shape[1], x.shape[3], dtype=dtype).transpose(1, 2)


def _narrow(x: Float[Tensor, "b h t d"], width: int) -> Float[Tensor, "b h t w"]:
    """The first channels, and that layout."""
    return x.transpose(1, 2)[..., :width].contiguous().transpose(1, 2)


class QueryBlocks:
    """QueryBlocks of queries in reverse order with the keys that they may see and the bias between them."""

    def __init__(self, q: Tensor, k: Tensor, vector: Tensor, ahead: int, causal: bool) -> None:
        self.batch, self.heads, self.queries, self.keys = q.shape[0], q.shape[1], q.shape[2], k.shape[2]
        self.ahead, self.causal = ahead, causal
        self.blind = min(max(-ahead, 0), self.queries) if causal else 0  # queries before all keys
        if causal and (first := max(self.queries + ahead, 0)) < vector.shape[2]:
            vector = vector.clone()
            vector[..., first:] = float("-inf")
        self.vector = vector if vector.stride(2) == 1 else vector.contiguous()

    @property
    def single(self) -> bool:
        """One block of queries, all of which see a key, the last the last one."""
        sees_all = not self.causal or self.queries + self.ahead >= self.keys
        return self.blind == 0 and self.queries <= BLOCK and sees_all

    def __iter__(self) -> Iterator[tuple[slice, slice, Tensor]]:
        """(queries, keys, bias) of each block."""
        for begin in range(self.blind, self.queries, BLOCK):
            end = min(begin + BLOCK, self.queries)
            seen = min(end + self.ahead, self.keys) if self.causal else self.keys
            yield slice(begin, end), slice(0, seen), self.bias(begin, end, seen)

    def by_keys(self) -> Iterator[tuple[slice, slice, Tensor]]:
        """(queries that see any of them, in reverse order, keys, bias) of each block of keys."""
        for begin in range(0, self.keys, BLOCK):
            end = min(begin + BLOCK, self.keys)
            first = max(begin - self.ahead, 0) if self.causal else 0
            if first < self.queries:
                yield slice(0, self.queries - first), slice(begin, end), self.bias(first, self.queries, end)[..., begin:]

    def bias(self, begin: int, end: int, seen: int) -> Float[Tensor, "b h r c"]:
        """Row r is query end - 1 - r: vector[queries - end + r + c]."""
        heads, rows, _ = self.vector.stride()
        start = self.vector.storage_offset() + self.queries - end
        of_row = rows if self.vector.shape[1] > 1 else 0
        return self.vector.as_strided((self.batch, self.heads, end - begin, seen), (of_row, heads, 1, 1), start)


class Skewed:
    """Room for a tile of logits with zeros after every row.

    Read as if rows were one entry shorter, each row begins one entry further right: so diagonals stand in columns.

        a b 0 0        a b 0
        c d 0 0        0 c d
    """

    def __init__(self, like: Tensor, lanes: int, height: int, width: int) -> None:
        self.room, self.height, self.width = like.new_zeros(lanes, height, width + height), height, width

    def tile(self, lanes: int) -> Float[Tensor, "l r c"]:
        return self.room[:lanes, :, : self.width]

    def by_diagonal(self, lanes: int) -> Float[Tensor, "l n"]:
        """Entry (r, c) is added to column r + c."""
        lane, row, _ = self.room.stride()
        size = (lanes, self.height, self.width + self.height - 1)
        return self.room.as_strided(size, (lane, row - 1, 1)).sum(dim=1)


def _reaches(q: Tensor, k: Tensor, v: Tensor, vector: Tensor, ahead: int, causal: bool) -> bool:
    """Whether this is causal self-attention that our kernel takes: see cutoff.py."""
    return causal and ahead == 0 and q.shape[2] == k.shape[2] and vector.shape[1] == 1 and banded.can_serve(q, k, v)


def _forward(
    q: Tensor, k: Tensor, v: Tensor, vector: Tensor, ahead: int, scale: float, causal: bool
) -> tuple[Tensor, Tensor]:
    if _reaches(q, k, v, vector, ahead, causal):
        return cutoff.attend(q, k, v, vector[:, 0, : q.shape[2]].flip(1), scale)
    blocks = QueryBlocks(q, k, vector, ahead, causal)
    if blocks.single:
        out, logsumexp = _FLASH(q.flip(2), k, v, attn_mask=blocks.bias(0, blocks.queries, blocks.keys), scale=scale)
        return out.flip(2), logsumexp.flip(2)
    out = q.new_empty(blocks.batch, blocks.queries, blocks.heads, v.shape[3]).transpose(1, 2)
    logsumexp = vector.new_empty(blocks.batch, blocks.queries, blocks.heads).transpose(1, 2)
    out[:, :, : blocks.blind] = 0
    logsumexp[:, :, : blocks.blind] = float("-inf")
    for queries, keys, bias in blocks:
        part, sums = _FLASH(q[:, :, queries].flip(2), k[:, :, keys], v[:, :, keys], attn_mask=bias, scale=scale)
        out[:, :, queries], logsumexp[:, :, queries] = part.flip(2), sums.flip(2)
    return out, logsumexp


def _backward(
    grad: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    vector: Tensor,
    out: Tensor,
    logsumexp: Tensor,
    grad_sums: Tensor | None,
    ahead: int,
    scale: float,
    causal: bool,
    d_vector: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of q, k and v; that of the vector is added to d_vector, where there is one."""
    if _reaches(q, k, v, vector, ahead, causal):
        bias, learned = vector[:, 0, : q.shape[2]].flip(1), d_vector is not None
        grad = _side_by_side(grad)
        d_q, d_k, d_v, d_bias = cutoff.gradients(grad, q, k, v, bias, out, logsumexp, grad_sums, scale, learned)
        if d_vector is not None and d_bias is not None:
            d_vector[:, 0, : q.shape[2]] += d_bias.flip(1)
        return d_q, d_k, d_v
    blocks = QueryBlocks(q, k, vector, ahead, causal)
    if d_vector is not None:
        return _tiles(grad, q, k, v, out, logsumexp, grad_sums, scale, blocks, d_vector)
    q, grad, out, logsumexp = (x.flip(2) for x in (q, grad, out, logsumexp))
    if blocks.single:
        bias = blocks.bias(0, blocks.queries, blocks.keys)
        d_q, d_k, d_v = _FLASH_BACKWARD(grad, q, k, v, out, logsumexp, 0.0, False, attn_mask=bias, scale=scale)
        return d_q.flip(2), d_k, d_v
    d_q, d_k, d_v = _zeros(q, vector.dtype), _zeros(k), _zeros(v)
    for queries, keys, bias in blocks.by_keys():
        of_queries = (x[:, :, queries] for x in (grad, q))
        of_result = (x[:, :, queries] for x in (out, logsumexp))
        part_q, d_k[:, :, keys], d_v[:, :, keys] = _FLASH_BACKWARD(
            *of_queries, k[:, :, keys], v[:, :, keys], *of_result, 0.0, False, attn_mask=bias, scale=scale
        )
        d_q[:, :, queries] += part_q
    return d_q.to(q.dtype).flip(2), d_k, d_v


def _tiles(
    grad: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor,
    logsumexp: Tensor,
    grad_sums: Tensor | None,
    scale: float,
    blocks: QueryBlocks,
    d_vector: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """The same written out, tile by tile, all queries in reverse order.

    P  = exp(q·kᵀ·scale + bias - logsumexp)     dS = P∘(dO·vᵀ - rowsum(dO∘O))
    dq = dS·k·scale     dk = dSᵀ·q·scale     dv = Pᵀ·dO     dvector = dS summed along its diagonals
    """
    batch, heads, groups, dtype = q.shape[0], q.shape[1], q.shape[1] // k.shape[1], d_vector.dtype
    k, v = _for_every_head(k, groups), _for_every_head(v, groups)
    q, k, v, grad, out = (x.to(dtype).reshape(batch * heads, *x.shape[2:]) for x in (q, k, v, grad, out))
    minus_inner = -(grad * out).sum(dim=2, keepdim=True).flip(1)
    sums = logsumexp.reshape(batch * heads, -1, 1).flip(1)
    if grad_sums is not None:  # the logarithm of a sum of exponentials has the probabilities as its gradient
        minus_inner = minus_inner + grad_sums.reshape(batch * heads, -1, 1).flip(1)
    q, grad = q.flip(1), grad.flip(1)
    d_q, d_k, d_v = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
    room = dict[tuple[int, int], Skewed]()
    for forwards, keys, bias in blocks:
        queries = slice(blocks.queries - forwards.stop, blocks.queries - forwards.start)
        for begin in range(0, keys.stop, TILE):
            tile = slice(begin, min(begin + TILE, keys.stop))
            height, width = queries.stop - queries.start, tile.stop - begin
            few = _few(batch, heads, height * width)
            if (skewed := room.get((height, width))) is None:
                lanes = max(_lanes(rows) * _lanes(some) for rows, some in few)
                skewed = room[height, width] = Skewed(d_vector, lanes, height, width)
            for rows, some in few:
                of = slice(rows.start * heads + some.start, (rows.stop - 1) * heads + some.stop)
                tile_q, tile_k, tile_v, tile_grad = q[of, queries], k[of, tile], v[of, tile], grad[of, queries]
                probs = torch.bmm(tile_q, tile_k.mT)  # not yet
                logits = probs.unflatten(0, (-1, _lanes(some)))
                torch.add(bias[rows, some, :, tile], logits, alpha=scale, out=logits)
                probs.sub_(sums[of, queries]).exp_()
                d_v[of, tile].baddbmm_(probs.mT, tile_grad)
                d_probs = torch.baddbmm(minus_inner[of, queries], tile_grad, tile_v.mT)
                d_logits = torch.mul(d_probs, probs, out=skewed.tile(len(probs)))
                d_q[of, queries].baddbmm_(d_logits, tile_k, alpha=scale)
                d_k[of, tile].baddbmm_(d_logits.mT, tile_q, alpha=scale)
                diagonals = skewed.by_diagonal(len(probs)).unflatten(0, (-1, _lanes(some))).transpose(0, 1)
                of_rows, start = rows, queries.start + begin
                if d_vector.shape[1] == 1:
                    diagonals, of_rows = diagonals.sum(dim=1, keepdim=True), slice(None)
                d_vector[some, of_rows, start : start + height + width - 1] += diagonals
    d_q, d_k, d_v = (x.unflatten(0, (batch, heads)) for x in (d_q.flip(1), d_k, d_v))
    if groups > 1:
        d_k, d_v = (x.unflatten(1, (-1, groups)).sum(dim=2) for x in (d_k, d_v))
    return d_q, d_k, d_v


def _few(batch: int, heads: int, entries: int) -> list[tuple[slice, slice]]:
    """Rows and heads that have ENTRIES logits in a tile, at least one of each: some heads of a row, or all of some rows."""
    if heads * entries > ENTRIES:
        each = max(1, ENTRIES // entries)
        of_row = [slice(head, min(head + each, heads)) for head in range(0, heads, each)]
        return [(slice(row, row + 1), some) for row in range(batch) for some in of_row]
    each = ENTRIES // (heads * entries)
    return [(slice(row, min(row + each, batch)), slice(0, heads)) for row in range(0, batch, each)]


def _lanes(part: slice) -> int:
    count: int = part.stop - part.start
    return count


# Few tokens: the matrix of biases is written out, as large as a key or less, and queries stay in their order.


def _matrix(vector: Float[Tensor, "h n"], q: Float[Tensor, "b h t d"]) -> Float[Tensor, "1 h t t"]:
    """Row i begins at entry t - 1 - i; a vector that ends with distance 0 goes on with -inf."""
    heads, length = q.shape[1], q.shape[2]
    if vector.shape[1] == length:
        vector = F.pad(vector, (0, length - 1), value=float("-inf"))
    return vector.as_strided((1, heads, length, length), (0, vector.stride(0), vector.stride(1), vector.stride(1))).flip(2)


class _SmallAndLearned(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, vector: Tensor, scale: float) -> Tensor:
        out, sums = _FLASH(q, k, v, attn_mask=_matrix(vector, q), scale=scale)
        ctx.save_for_backward(q, k, v, vector, out, sums)
        ctx.scale = scale
        return out  # type: ignore[no-any-return]

    @staticmethod
    @in_full_precision
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        saved = ctx.saved_tensors
        if torch.is_grad_enabled():  # to be differentiated again
            return *differentiable_gradients(_small_in_torch, (*saved[:4], ctx.scale), (grad,))[:4], None
        arguments: tuple[Any, ...] = (grad, *saved, ctx.scale)
        return *_small_backward(*arguments), None


def _small_in_torch(q: Tensor, k: Tensor, v: Tensor, vector: Tensor, scale: float) -> Tensor:
    """The result of `attend_small` in plain torch."""
    length = q.shape[2]
    causal = vector.shape[1] == length
    every = F.pad(vector, (0, length - 1)) if causal else vector
    return in_torch(q, k, v, every[:, None], q.new_zeros(1, dtype=torch.int64), None, scale, causal)[0]


def _small_backward(
    grad: Tensor, q: Tensor, k: Tensor, v: Tensor, vector: Tensor, out: Tensor, logsumexp: Tensor, scale: float
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """As `_tiles`, in C++ for fp32 and otherwise in torch."""
    grad = _side_by_side(grad)
    if q.dtype == torch.float32 and (native := _kernel()):
        (batch, heads, length, width), key_heads = q.shape, k.shape[1]
        d_q = q.new_empty(batch, length, heads, width)
        d_k, d_v = (q.new_empty(batch, length, key_heads, width) for _ in "kv")
        d_vector = vector.new_empty(vector.shape)
        tensors = (q, k, v, grad, out, logsumexp, vector)
        native(
            _pack(
                *[x.data_ptr() for x in (*tensors, d_q, d_k, d_v, d_vector)],
                batch,
                heads,
                key_heads,
                length,
                width,
                vector.shape[1],
                *[stride for x in tensors[:6] for stride in x.stride()[:3]],
                *vector.stride(),
                torch.get_num_threads(),
                scale,
            )
        )
        return d_q.transpose(1, 2), d_k.transpose(1, 2), d_v.transpose(1, 2), d_vector
    return _small_backward_in_torch(grad, q, k, v, vector, out, logsumexp, scale)


_pack = struct.Struct("38qd").pack  # struct BiasGradients: addresses, sizes, strides, threads and the scale


def _kernel() -> Callable[[bytes], None] | None:
    return kernels.function("posenc_bias_gradients")


def _small_backward_in_torch(
    grad: Tensor, q: Tensor, k: Tensor, v: Tensor, vector: Tensor, out: Tensor, logsumexp: Tensor, scale: float
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradients of q, k and v are the fused kernel's."""
    bias = _matrix(vector, q)
    d_q, d_k, d_v = _FLASH_BACKWARD(grad, q, k, v, out, logsumexp, 0.0, False, attn_mask=bias, scale=scale)
    groups, dtype, length = q.shape[1] // k.shape[1], bias.dtype, q.shape[2]
    k, v = _for_every_head(k, groups), _for_every_head(v, groups)
    q, k, v, grad, out = (x.to(dtype) for x in (q, k, v, grad, out))
    probs = torch.add(bias, torch.matmul(q, k.mT), alpha=scale).sub_(logsumexp.unsqueeze(3)).exp_()
    d_logits = torch.matmul(grad, v.mT).sub_((grad * out).sum(dim=3, keepdim=True)).mul_(probs)
    rows = F.pad(d_logits.sum(dim=0).flip(1), (0, length))  # read as if one shorter, each row begins one further right
    skewed = rows.as_strided((len(rows), length, 2 * length - 1), (2 * length**2, 2 * length - 1, 1))
    return d_q, d_k, d_v, skewed.sum(dim=1)[:, : vector.shape[1]]
