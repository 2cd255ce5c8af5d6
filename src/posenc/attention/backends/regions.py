"""Attention whose pairs are turned by regions (Self-Extend, ReRoPE, dual chunks): no region computes the pairs of another.

    s_r(i) = log Σ_{j in r} exp(q_r(i)·k_r(j)·scale)     out_r = torch's fused kernel over the keys of region r
    s(i)   = log Σ_r exp s_r(i)                          out   = Σ_r exp(s_r - s)·out_r

Queries go by blocks. The keys of a region that every query of the block sees are one call of the kernel; those on either
side of them, which some queries see, are a call each under a mask that all heads share:

    keys        0 . . . . . . . . . . . . n        a block of four queries in Self-Extend:
    far         ■ ■ ■ ■ ◣                          ■ seen by every query, no mask     ◣ ◥ under a mask
    near                ◥ ■ ■ ■ ◣

So the memory grows with queries + keys, and that of one block with keys · block. With `out` and `s` of all regions,
torch's own backward of each call gives its share of the gradients: its weights are exp(q_r·k_r·scale - s).
Legend: b batch, h query heads, g key heads, i query, j key, d channel, r regions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from posenc.attention.call import Call
from posenc.attention.options import PLAIN, allowed
from posenc.encoding import PositionalEncoding, Side, scale_of
from posenc.kernels.derivatives import differentiable_gradients, in_full_precision
from posenc.kernels.eager import exporting, plain_on_cpu
from posenc.positions import Positions, distinct_rows
from posenc.structure import Regions, Structure, why_not_fused
from posenc.support.tensors import check_coords, working_dtype

if TYPE_CHECKING:
    from posenc.support.shapes import Bool, Float

OPTIONS: frozenset[str] = frozenset()
BY_DOCUMENT = False
BLOCK = 256  # queries
UNMASKED = 64  # the fewest keys that are worth a call of their own without a mask

_FLASH = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
_FLASH_BACKWARD = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward.default


def suits(call: Call) -> bool:
    return type(call.structure) is Regions


def refuses(encoding: PositionalEncoding, structure: Structure | None) -> str | None:
    if type(structure) is not Regions:
        return "it declares no regions of pairs"
    return why_not_fused(encoding)


def refuses_call(call: Call) -> str | None:
    if exporting() or not plain_on_cpu(call.q, call.at_q.coords, call.at_k.coords):
        return "it reads the positions, in eager code on the CPU"
    return None


class KeyRange(NamedTuple):
    """Keys of one region that a block of queries sees; `mask` is None where each query sees all of them.

    queries, keys        where they are in the call
    turned_q, turned_k   where they are among the turned queries and keys of the region
    """

    region: int
    queries: slice
    keys: slice
    mask: Float[Tensor, "b 1 i j"] | None
    turned_q: slice
    turned_k: slice


def attend(call: Call) -> Tensor:
    q, k, v, encoding, at_q, at_k = call[:6]
    check_coords(encoding, at_q)
    check_coords(encoding, at_k)
    dtype, width = working_dtype(q.dtype), max(q.shape[3], v.shape[3])
    exact_q, exact_k, values = q.to(dtype), k.to(dtype), v.to(dtype)
    all_pieces, to_q, to_k = pieces_of(encoding, at_q, at_k, call.causal, dtype)
    pieces, turned_q, turned_k = [], [], []
    for number in sorted({piece.region for piece in all_pieces}):
        of_region = [piece for piece in all_pieces if piece.region == number]
        queries, keys = _span([piece.queries for piece in of_region]), _span([piece.keys for piece in of_region])
        turned_q.append(_turned(exact_q, encoding, at_q, to_q[number], queries, "query"))
        turned_k.append(_turned(exact_k, encoding, at_k, to_k[number], keys, "key"))
        for piece in of_region:
            of_q, of_k = _back(piece.queries, queries.start), _back(piece.keys, keys.start)
            pieces.append(piece._replace(region=len(turned_q) - 1, turned_q=of_q, turned_k=of_k))
    if not pieces:  # no query sees a key: zeros, which depend on the inputs all the same
        turned_q, turned_k = [exact_q], [exact_k]
    wide = [_for_kernel(x, width) for x in (values, *turned_q, *turned_k)]
    out: Tensor = _Merged.apply(pieces, scale_of(encoding, q.shape[3]), q.shape[2], *wide)
    return out[..., : v.shape[3]].to(q.dtype)


def _span(parts: list[slice]) -> slice:
    return slice(min(part.start for part in parts), max(part.stop for part in parts))


def _back(part: slice, by: int) -> slice:
    return slice(part.start - by, part.stop - by)


def _for_kernel(x: Tensor, width: int) -> Tensor:
    """With as many channels as the kernel needs, side by side in memory: it reads no stride of the last axis."""
    x = F.pad(x, (0, width - x.shape[3])) if x.shape[3] < width else x
    return x if x.stride(3) == 1 else x.contiguous()


def _turned(x: Tensor, encoding: PositionalEncoding, at: Positions, to: Tensor | None, part: slice, side: Side) -> Tensor:
    """A part of the rotated queries or keys, turned on to other positions."""
    x = x[:, :, part]
    if to is None:
        return x
    at = at if x.shape[2] == at.length else at.narrow(part.start, part.stop)
    return encoding.rotate(x, at.replaced(coords=to[:, part].double() - at.coords.double(), tables={}), side)


def pieces_of(
    encoding: PositionalEncoding, at_q: Positions, at_k: Positions, causal: bool, dtype: torch.dtype
) -> tuple[list[KeyRange], list[Tensor | None], list[Tensor | None]]:
    """The pieces of all blocks, and the positions to which each region turns the queries and the keys."""
    structure = encoding.structure()
    assert isinstance(structure, Regions)
    square = causal and at_q is at_k and at_q.consecutive_in == "row"
    rows_q, rows_k = distinct_rows(at_q, at_k)
    pieces, by_block = [], []
    for begin in range(0, at_q.length, BLOCK):
        queries = slice(begin, min(begin + BLOCK, at_q.length))
        here = rows_q if queries == slice(0, at_q.length) else rows_q.narrow(queries.start, queries.stop)
        if square:  # no query sees a later key
            there = rows_k if queries.stop == at_k.length else rows_k.narrow(0, queries.stop)
            seen = torch.ones(1, here.length, there.length, dtype=torch.bool).tril_(begin)
        else:
            there, seen = rows_k, allowed(here, rows_k, causal, PLAIN)[:, 0]
        regions = structure.find(here.coords, there.coords)
        by_block.append(regions)
        for number, region in enumerate(regions):
            pairs = seen & region.pairs
            for keys, masked in _stretches(pairs):
                mask = _mask(pairs[:, None, :, keys], dtype) if masked else None
                pieces.append(KeyRange(number, queries, keys, mask, queries, keys))
    to_q = [
        None if parts[0].query is None else torch.cat([part.query for part in parts], dim=1)
        for parts in zip(*by_block, strict=True)
    ]
    return pieces, to_q, [region.key for region in by_block[-1]] if by_block else []


def _stretches(pairs: Bool[Tensor, "b i j"]) -> list[tuple[slice, bool]]:
    """The keys that some query sees: the longest stretch that all queries see, and what is on both sides of it.

    Each comes with True where it needs a mask.
    """
    if not pairs.numel():
        return []
    by_key = pairs.view(torch.uint8).flatten(0, 1)  # torch reduces bytes 50 times faster than booleans
    seen = by_key.amax(dim=0).nonzero()
    if not seen.numel():
        return []
    first, last = int(seen[0]), int(seen[-1]) + 1
    gaps = (by_key[:, first:last].amin(dim=0) == 0).nonzero()[:, 0] + first
    if not gaps.numel():
        return [(slice(first, last), False)]
    ends = torch.cat([gaps.new_tensor([first - 1]), gaps, gaps.new_tensor([last])])
    longest = int(ends.diff().argmax())
    begin, end = int(ends[longest]) + 1, int(ends[longest + 1])
    if end - begin < UNMASKED:
        return [(slice(first, last), True)]
    parts = ((slice(first, begin), True), (slice(begin, end), False), (slice(end, last), True))
    return [(keys, masked) for keys, masked in parts if keys.start < keys.stop]


def _mask(pairs: Bool[Tensor, "b 1 i j"], dtype: torch.dtype) -> Float[Tensor, "b 1 i j"]:
    return torch.zeros_like(pairs, dtype=dtype).masked_fill(~pairs, float("-inf"))


class _Merged(torch.autograd.Function):
    """The merged output. `tensors` are v, the queries turned for each region, and the keys turned for each region."""

    @staticmethod
    def forward(ctx: Any, pieces: list[KeyRange], scale: float, queries: int, *tensors: Tensor) -> Tensor:
        out, sums = _forward(pieces, scale, queries, *tensors)
        ctx.pieces, ctx.scale = pieces, scale
        ctx.save_for_backward(*tensors, out, sums)
        return out

    @staticmethod
    @in_full_precision
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        *tensors, out, sums = ctx.saved_tensors
        if torch.is_grad_enabled():  # to be differentiated again
            return tuple(differentiable_gradients(_in_torch, (ctx.pieces, ctx.scale, grad.shape[2], *tensors), (grad,)))
        return None, None, None, *_backward(grad, ctx.pieces, ctx.scale, out, sums, *tensors)


def _forward(pieces: list[KeyRange], scale: float, queries: int, v: Tensor, *turned: Tensor) -> tuple[Tensor, Tensor]:
    """The output, [b, h, i, d], and the logarithm of the sum of all weights, -inf for a query that sees no key."""
    turned_q, turned_k = _halves(turned)
    b, h, _, d = turned_q[0].shape
    out, sums = v.new_zeros(b, h, queries, d), v.new_full((b, h, queries), float("-inf"))
    for piece in pieces:
        own_q, own_k, own_v = _inputs(piece, v, turned_q, turned_k)
        part, part_sums = _FLASH(own_q, own_k, own_v, attn_mask=piece.mask, scale=scale)
        if piece.mask is not None:
            blind = (piece.mask == float("-inf")).all(dim=3)
            part, part_sums = part.masked_fill(blind[..., None], 0.0), part_sums.masked_fill(blind, float("-inf"))
        before = sums[:, :, piece.queries]
        both = torch.logaddexp(before, part_sums)
        shift = both.masked_fill(both == float("-inf"), 0.0)
        out[:, :, piece.queries] *= (before - shift).exp_()[..., None]
        out[:, :, piece.queries] += part.mul_((part_sums - shift).exp_()[..., None])
        sums[:, :, piece.queries] = both
    return out, sums


def _backward(
    grad: Tensor, pieces: list[KeyRange], scale: float, out: Tensor, sums: Tensor, v: Tensor, *turned: Tensor
) -> list[Tensor]:
    turned_q, turned_k = _halves(turned)
    d_v, d_q, d_k = torch.zeros_like(v), [torch.zeros_like(x) for x in turned_q], [torch.zeros_like(x) for x in turned_k]
    sums = sums.masked_fill(sums == float("-inf"), 0.0)  # of a query that sees no key: every weight is exp(-inf)
    for piece in pieces:
        here = (slice(None), slice(None), piece.queries)
        inputs = _inputs(piece, v, turned_q, turned_k)
        part_q, part_k, part_v = _FLASH_BACKWARD(
            grad[here], *inputs, out[here], sums[here], 0.0, False, attn_mask=piece.mask, scale=scale
        )
        d_q[piece.region][:, :, piece.turned_q] += part_q
        d_k[piece.region][:, :, piece.turned_k] += part_k
        d_v[:, :, piece.keys] += part_v
    return [d_v, *d_q, *d_k]


def _in_torch(pieces: list[KeyRange], scale: float, queries: int, v: Tensor, *turned: Tensor) -> Tensor:
    """The output in plain torch: the logits of all pairs written out."""
    turned_q, turned_k = _halves(turned)
    b, h = turned_q[0].shape[:2]
    logits = v.new_full((b, h, queries, v.shape[2]), float("-inf"))
    for piece in pieces:
        own_q, own_k, _ = _inputs(piece, v, turned_q, turned_k)
        part = own_q @ own_k.repeat_interleave(h // v.shape[1], dim=1).mT * scale
        seen = torch.zeros_like(logits, dtype=torch.bool)
        seen[:, :, piece.queries, piece.keys] = True if piece.mask is None else piece.mask == 0
        logits = torch.where(seen, F.pad(part, _around(piece, logits)), logits)
    blind = (logits == float("-inf")).all(dim=-1, keepdim=True)
    probs = logits.masked_fill(blind, 0.0).softmax(dim=-1).masked_fill(blind, 0.0)
    return probs @ v.repeat_interleave(h // v.shape[1], dim=1)


def _inputs(
    piece: KeyRange, v: Tensor, turned_q: tuple[Tensor, ...], turned_k: tuple[Tensor, ...]
) -> tuple[Tensor, Tensor, Tensor]:
    own_q, own_k = turned_q[piece.region][:, :, piece.turned_q], turned_k[piece.region][:, :, piece.turned_k]
    return own_q, own_k, v[:, :, piece.keys]


def _around(piece: KeyRange, logits: Tensor) -> tuple[int, int, int, int]:
    left, top = piece.keys.start, piece.queries.start
    return left, logits.shape[3] - piece.keys.stop, top, logits.shape[2] - piece.queries.stop


def _halves(turned: tuple[Tensor, ...]) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    return turned[: len(turned) // 2], turned[len(turned) // 2 :]
