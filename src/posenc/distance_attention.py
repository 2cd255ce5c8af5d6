"""Attention with a bias of the distance alone, for nothing: the bias is a vector, and torch's fused kernel reads it as one.

    out_i = Σ_j softmax_j(q_i·k_j·scale + vector[i - j + keys - 1])·v_j

With the keys in reverse order j' = keys - 1 - j the bias of a pair is vector[i + j']: a strided view in which every row
starts one entry later (a Toeplitz matrix that is stored once), handed to the fused CPU kernel by blocks of queries. Keys
after a block are left out. Extra memory is that of the reversed keys and values, never queries times keys.

Backward with fixed biases asks the fused kernel block by block; with a learned vector the probabilities are computed again
tile by tile, and the gradients of the logits are summed along their diagonals, in fp32 (fp64 for fp64), in a fixed order.

Legend: b batch, h query heads, g key heads, i query, j key, d channel, n = i + j - 1 distances; r, c rows and columns of a
tile.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor

if TYPE_CHECKING:
    from jaxtyping import Float, Int

BLOCK = 256  # queries handed to the kernel at once: half a block of masked pairs is wasted on the diagonal
TILE = 512  # keys of a tile of a learned vector's backward
ENTRIES = 2**22  # logits of such tiles at once, over rows and heads

_FLASH = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
_FLASH_BACKWARD = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward.default
Tokens = slice | Tensor


def distance_attention(
    q: Float[Tensor, "b h i d"], k: Float[Tensor, "b g j d"], v: Float[Tensor, "b g j dv"],
    vector: Float[Tensor, "h #b n"], ahead: Int[Tensor, "#b"], document: Int[Tensor, "b t"] | None,
    scale: float, causal: bool,
) -> tuple[Float[Tensor, "b h i dv"], Float[Tensor, "b h i"]]:  # fmt: skip
    """The output and the logarithm of each query's sum of exponentials, -inf and zeros for a query that sees no key.

    vector    the bias where query and key are -(j - 1) … i - 1 tokens apart: fp32 beside 16-bit q, otherwise of q's dtype
    ahead     by how much the first query comes after the first key in causal order, for every row or for all
    document  for self-attention: tokens see their own document only, as if its tokens stood one after the other; -1 none
    """
    d_value = v.shape[3]
    q, k, v = _one_width(q, k, v)
    pieces = list(_pieces(q, k, ahead, document))
    if len(pieces) == 1 and pieces[0].whole:
        out, logsumexp = _forward(q, k, v, vector, pieces[0].ahead, scale, causal)
    else:
        out = _zeros(q)
        logsumexp = vector.new_full((q.shape[0], q.shape[2], q.shape[1]), float("-inf")).transpose(1, 2)
        for piece in pieces:
            part_q, part_k, part_v = piece.of(q), piece.of(k), piece.of(v)
            part, sums = _forward(part_q, part_k, part_v, piece.distances(vector), piece.ahead, scale, causal)
            piece.write(out, part)
            piece.write(logsumexp, sums)
    return _narrow(out, d_value), logsumexp


def distance_attention_backward(
    grad: Tensor, q: Tensor, k: Tensor, v: Tensor, vector: Tensor, ahead: Tensor, document: Tensor | None,
    out: Tensor, logsumexp: Tensor, grad_sums: Tensor | None, scale: float, causal: bool, learned: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """Gradients of q, k, v and, where it is `learned`, of the vector; an empty tensor otherwise."""
    written_out = learned or grad_sums is not None
    widths, dtype = (q.shape[3], k.shape[3], v.shape[3]), q.dtype
    q, k, v, grad, out = _one_width(q, k, v, grad, out)
    pieces = list(_pieces(q, k, ahead, document))
    d_vector = vector.new_zeros(vector.shape) if written_out else None
    if len(pieces) == 1 and pieces[0].whole:
        grads = _backward(grad, q, k, v, vector, out, logsumexp, grad_sums, pieces[0].ahead, scale, causal, d_vector)
    else:
        grads = _zeros(q), _zeros(k), _zeros(v)
        for piece in pieces:
            part_q, part_k, part_v, part_out = piece.of(q), piece.of(k), piece.of(v), piece.of(out)
            parts = _backward(
                piece.of(grad), part_q, part_k, part_v, piece.distances(vector), part_out, piece.of(logsumexp),
                None if grad_sums is None else piece.of(grad_sums), piece.ahead, scale, causal,
                None if d_vector is None else piece.distances(d_vector),
            )  # fmt: skip
            for whole, part in zip(grads, parts, strict=True):
                piece.write(whole, part)
    d_q, d_k, d_v = (
        (x[..., :width].contiguous() if written_out else _narrow(x, width)).to(dtype)
        for x, width in zip(grads, widths, strict=True)
    )  # fmt: skip
    return d_q, d_k, d_v, d_vector if learned and d_vector is not None else vector.new_empty(0)


class Piece:
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
        """Those within the piece: of `count` tokens the middle 2·count - 1 of 2·length - 1."""
        vector = vector[:, self.rows] if vector.shape[1] > 1 else vector
        return vector if self.tokens is None else vector[..., self.length - self.count : self.length + self.count - 1]


def _pieces(q: Tensor, k: Tensor, ahead: Tensor, document: Tensor | None) -> Iterator[Piece]:
    """All at once where the rows are alike, else row by row; with documents, every document of every row."""
    batch, length = q.shape[0], q.shape[2]
    if document is None:
        counts = ahead.tolist()
        if all(count == counts[0] for count in counts):
            yield Piece(slice(None), None, length, length, counts[0])
        else:
            yield from (Piece(slice(row, row + 1), None, length, length, count) for row, count in enumerate(counts))
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
                for name, size, begin in zip(names, sizes, begins, strict=False) if name >= 0
            ]  # fmt: skip
        else:  # a document in several parts
            found = [(of_row == name).nonzero()[:, 0] for name in sorted(set(real))]
            spans = [(tokens, len(tokens)) for tokens in found]
        yield from (Piece(slice(row, row + 1), tokens, count, length, 0) for tokens, count in spans)


def _one_width(q: Tensor, k: Tensor, v: Tensor, *like_v: Tensor) -> tuple[Tensor, ...]:
    """The kernel wants one width: channels of zeros add nothing to a product."""
    width = max(q.shape[3], v.shape[3])
    return tuple(x if x.shape[3] == width else F.pad(x, (0, width - x.shape[3])) for x in (q, k, v, *like_v))


# Results lie as the kernel lays them, token by token and then head by head; gradients beside a learned vector's, head by
# head, as the tiles write them.


def _zeros(x: Float[Tensor, "b h t d"], dtype: torch.dtype | None = None) -> Float[Tensor, "b h t d"]:
    return x.new_zeros(x.shape[0], x.shape[2], x.shape[1], x.shape[3], dtype=dtype).transpose(1, 2)


def _narrow(x: Float[Tensor, "b h t d"], width: int) -> Float[Tensor, "b h t w"]:
    """The first channels, and that layout."""
    return x.transpose(1, 2)[..., :width].contiguous().transpose(1, 2)


class Blocks:
    """Blocks of queries with the keys that they may see and the bias between them."""

    def __init__(self, q: Tensor, k: Tensor, vector: Tensor, ahead: int, causal: bool) -> None:
        self.batch, self.heads, self.queries, self.keys = q.shape[0], q.shape[1], q.shape[2], k.shape[2]
        self.ahead, self.causal = ahead, causal
        self.blind = min(max(-ahead, 0), self.queries) if causal else 0  # queries before all keys
        if causal and (hidden := min(max(self.keys - 1 - ahead, 0), vector.shape[2])):
            vector = vector.clone()
            vector[..., :hidden] = float("-inf")
        self.vector = vector if vector.stride(2) == 1 else vector.contiguous()
        # A small mask is cheaper to turn round than the keys and values.
        few = (
            self.queries <= BLOCK
            and vector.shape[1] * q.shape[1] * self.queries <= 2 * k.shape[0] * k.shape[1] * k.shape[3]
        )
        self.reverse = not few

    @property
    def single(self) -> bool:
        """One block of queries, all of which see a key, the last the last one."""
        sees_all = not self.causal or self.queries + self.ahead >= self.keys
        return self.blind == 0 and self.queries <= BLOCK and sees_all

    def turn(self, x: Tensor) -> Tensor:
        """Keys or values, in the order in which the blocks read them; its own inverse."""
        return x.flip(2) if self.reverse else x

    def __iter__(self) -> Iterator[tuple[slice, slice, Tensor]]:
        """(queries, keys, bias) of each block."""
        for begin in range(self.blind, self.queries, BLOCK):
            end = min(begin + BLOCK, self.queries)
            seen = min(end + self.ahead, self.keys) if self.causal else self.keys
            keys = slice(self.keys - seen, self.keys) if self.reverse else slice(0, seen)
            yield slice(begin, end), keys, self.bias(begin, end, seen)

    def bias(self, begin: int, end: int, seen: int) -> Float[Tensor, "b h r c"]:
        """Key c of the last `seen` in reverse order: vector[begin + r + (keys - seen) + c]."""
        heads, rows, distance = self.vector.stride()
        start = self.vector.storage_offset() + (begin + self.keys - seen) * distance
        of_row = rows if self.vector.shape[1] > 1 else 0
        if self.reverse:
            return self.vector.as_strided((self.batch, self.heads, end - begin, seen), (of_row, heads, 1, 1), start)
        small = (self.vector.shape[1], self.heads, end - begin, seen)
        return self.vector.as_strided(small, (rows, heads, 1, 1), start).flip(3).expand(self.batch, -1, -1, -1)

    def add_diagonals(
        self,
        d_vector: Float[Tensor, "h #b n"],
        d_logits: Float[Tensor, "b h r c"],
        queries: slice,
        keys: slice,
        rows: slice,
    ) -> None:
        """Rows written into zeros, each one entry further right, turn diagonals r + c into columns."""
        if d_vector.shape[1] == 1:
            d_logits, rows = d_logits.sum(dim=0, keepdim=True), slice(None)
        if not self.reverse:
            d_logits = d_logits.flip(3)
        batch, heads, height, width = d_logits.shape
        wide = height + width
        skewed = d_logits.new_zeros(batch, heads, height, wide)
        skewed.as_strided(d_logits.shape, (heads * height * wide, height * wide, wide + 1, 1)).copy_(d_logits)
        first = queries.start + (keys.start if self.reverse else self.keys - keys.stop)
        d_vector[:, rows, first : first + wide - 1] += skewed.sum(dim=2)[..., :-1].transpose(0, 1)


def _forward(
    q: Tensor, k: Tensor, v: Tensor, vector: Tensor, ahead: int, scale: float, causal: bool
) -> tuple[Tensor, Tensor]:
    blocks = Blocks(q, k, vector, ahead, causal)
    k, v = blocks.turn(k), blocks.turn(v)
    if blocks.single:
        return _FLASH(q, k, v, attn_mask=blocks.bias(0, blocks.queries, blocks.keys), scale=scale)  # type: ignore[no-any-return]
    out = q.new_empty(blocks.batch, blocks.queries, blocks.heads, v.shape[3]).transpose(1, 2)
    logsumexp = vector.new_empty(blocks.batch, blocks.queries, blocks.heads).transpose(1, 2)
    out[:, :, : blocks.blind] = 0
    logsumexp[:, :, : blocks.blind] = float("-inf")
    for queries, keys, bias in blocks:
        out[:, :, queries], logsumexp[:, :, queries] = _FLASH(
            q[:, :, queries], k[:, :, keys], v[:, :, keys], attn_mask=bias, scale=scale
        )
    return out, logsumexp


def _backward(
    grad: Tensor, q: Tensor, k: Tensor, v: Tensor, vector: Tensor, out: Tensor, logsumexp: Tensor,
    grad_sums: Tensor | None, ahead: int, scale: float, causal: bool, d_vector: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Gradients of q, k and v; that of the vector is added to d_vector, where there is one."""
    blocks = Blocks(q, k, vector, ahead, causal)
    k, v = blocks.turn(k), blocks.turn(v)
    if d_vector is not None:
        d_q, d_k, d_v = _tiles(grad, q, k, v, out, logsumexp, grad_sums, scale, blocks, d_vector)
        return d_q, blocks.turn(d_k), blocks.turn(d_v)
    if blocks.single:
        bias = blocks.bias(0, blocks.queries, blocks.keys)
        d_q, d_k, d_v = _FLASH_BACKWARD(grad, q, k, v, out, logsumexp, 0.0, False, attn_mask=bias, scale=scale)
        return d_q, blocks.turn(d_k), blocks.turn(d_v)
    d_q, d_k, d_v = _zeros(q), _zeros(k, vector.dtype), _zeros(v, vector.dtype)
    for queries, keys, bias in blocks:
        d_q[:, :, queries], part_k, part_v = _FLASH_BACKWARD(
            grad[:, :, queries], q[:, :, queries], k[:, :, keys], v[:, :, keys], out[:, :, queries],
            logsumexp[:, :, queries], 0.0, False, attn_mask=bias, scale=scale,
        )  # fmt: skip
        d_k[:, :, keys] += part_k
        d_v[:, :, keys] += part_v
    return d_q, blocks.turn(d_k), blocks.turn(d_v)


def _tiles(
    grad: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, logsumexp: Tensor, grad_sums: Tensor | None,
    scale: float, blocks: Blocks, d_vector: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """The same written out, tile by tile.

    P  = exp(q·kᵀ·scale + bias - logsumexp)     dS = P∘(dO·vᵀ - rowsum(dO∘O))
    dq = dS·k·scale     dk = dSᵀ·q·scale     dv = Pᵀ·dO     dvector = dS summed along its diagonals
    """
    batch, heads, groups, dtype = q.shape[0], q.shape[1], q.shape[1] // k.shape[1], d_vector.dtype
    if groups > 1:
        k, v = k.repeat_interleave(groups, dim=1), v.repeat_interleave(groups, dim=1)
    q, k, v, grad, out = (x.to(dtype).reshape(batch * heads, *x.shape[2:]) for x in (q, k, v, grad, out))
    sums = logsumexp.reshape(batch * heads, -1, 1)
    inner = (grad * out).sum(dim=2, keepdim=True)
    if grad_sums is not None:  # the logarithm of a sum of exponentials has the probabilities as its gradient
        inner = inner - grad_sums.reshape(batch * heads, -1, 1)
    d_q, d_k, d_v = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
    at_once = max(1, ENTRIES // (heads * BLOCK * TILE))
    for queries, keys, bias in blocks:
        for begin, row in itertools.product(range(keys.start, keys.stop, TILE), range(0, batch, at_once)):
            tile, rows = slice(begin, min(begin + TILE, keys.stop)), slice(row, min(row + at_once, batch))
            of = slice(rows.start * heads, rows.stop * heads)
            tile_q, tile_k, tile_v, tile_grad = q[of, queries], k[of, tile], v[of, tile], grad[of, queries]
            probs = torch.bmm(tile_q, tile_k.mT)  # not yet
            shape = (-1, heads, *probs.shape[1:])
            logits = probs.view(shape)
            torch.add(bias[rows, ..., begin - keys.start : tile.stop - keys.start], logits, alpha=scale, out=logits)
            probs.sub_(sums[of, queries]).exp_()
            d_v[of, tile].baddbmm_(probs.mT, tile_grad)
            d_logits = torch.bmm(tile_grad, tile_v.mT).sub_(inner[of, queries]).mul_(probs)
            d_q[of, queries].baddbmm_(d_logits, tile_k, alpha=scale)
            d_k[of, tile].baddbmm_(d_logits.mT, tile_q, alpha=scale)
            blocks.add_diagonals(d_vector, d_logits.view(shape), queries, tile, rows)
    d_q, d_k, d_v = (x.unflatten(0, (batch, heads)) for x in (d_q, d_k, d_v))
    if groups > 1:
        d_k, d_v = (x.unflatten(1, (-1, groups)).sum(dim=2) for x in (d_k, d_v))
    return d_q, d_k, d_v


# Registered by hand: the decorators import torch's compiler.


def _fake(
    q: Tensor, k: Tensor, v: Tensor, vector: Tensor, ahead: Tensor, document: Tensor | None, scale: float, causal: bool
) -> tuple[Tensor, Tensor]:
    sums = vector.new_empty(q.shape[0], q.shape[2], q.shape[1]).transpose(1, 2)
    return _like(q, v.shape[3]), sums


def _like(x: Tensor, width: int) -> Tensor:
    return x.new_empty(x.shape[0], x.shape[2], x.shape[1], width).transpose(1, 2)


def _fake_backward(
    grad: Tensor, q: Tensor, k: Tensor, v: Tensor, vector: Tensor, ahead: Tensor, document: Tensor | None,
    out: Tensor, logsumexp: Tensor, grad_sums: Tensor | None, scale: float, causal: bool, learned: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    d_vector = vector.new_empty(vector.shape if learned else 0)
    if learned or grad_sums is not None:
        return q.new_empty(q.shape), k.new_empty(k.shape), v.new_empty(v.shape), d_vector
    return _like(q, q.shape[3]), _like(k, k.shape[3]), _like(v, v.shape[3]), d_vector


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    *tensors, ctx.scale, ctx.causal = inputs
    ctx.save_for_backward(*tensors, *output)
    ctx.set_materialize_grads(False)


def _differentiate(ctx: Any, grad: Tensor | None, grad_sums: Tensor | None) -> tuple[Tensor | None, ...]:
    q, k, v, vector, ahead, document, out, sums = ctx.saved_tensors
    if grad is None:
        grad = torch.zeros_like(out)
    learned = ctx.needs_input_grad[3]
    d_q, d_k, d_v, d_vector = _OPERATORS.distance_attention_backward(
        grad, q, k, v, vector, ahead, document, out, sums, grad_sums, ctx.scale, ctx.causal, learned
    )
    return d_q, d_k, d_v, d_vector if learned else None, None, None, None, None


def _refuse(ctx: Any, *grads: Tensor | None) -> None:
    raise NotImplementedError("distance_attention: has no second derivative; use impl='reference'")


_OPERATORS = torch.ops.posenc
_LIBRARY = torch.library.Library("posenc", "FRAGMENT")
_LIBRARY.define("distance_attention(Tensor q, Tensor k, Tensor v, Tensor vector, Tensor ahead, Tensor? document, "
                "float scale, bool causal) -> (Tensor out, Tensor logsumexp)")  # fmt: skip
_LIBRARY.define("distance_attention_backward(Tensor grad, Tensor q, Tensor k, Tensor v, Tensor vector, Tensor ahead, "
                "Tensor? document, Tensor out, Tensor logsumexp, Tensor? grad_sums, float scale, bool causal, "
                "bool learned) -> (Tensor d_q, Tensor d_k, Tensor d_v, Tensor d_vector)")  # fmt: skip
_LIBRARY.impl("distance_attention", distance_attention, "CPU")
_LIBRARY.impl("distance_attention_backward", distance_attention_backward, "CPU")
_LIBRARY._register_fake("distance_attention", _fake)
_LIBRARY._register_fake("distance_attention_backward", _fake_backward)
torch.library.register_autograd("posenc::distance_attention", _differentiate, setup_context=_save, lib=_LIBRARY)
torch.library.register_autograd("posenc::distance_attention_backward", _refuse, lib=_LIBRARY)
