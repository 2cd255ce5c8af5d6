"""torch's fused scaled-dot-product attention. What the encoding adds to the logits goes in as the mask.

On the CPU, causal queries of a long row with a bias are taken by blocks: a block reads the keys up to its last query, about
half of them, and its mask is all that a forward holds at a time, O(n·block) numbers for each head.

Legend: b batch, h query heads, i query, j key, d channel.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from posenc.attention.call import Call
from posenc.attention.options import PLAIN, allowed
from posenc.encoding import BiasFn, PositionalEncoding
from posenc.kernels.eager import exporting, plain_on_cpu, transformed
from posenc.positions import Positions, distinct_rows
from posenc.structure import Structure, why_not_fused
from posenc.support.tensors import readable, working_dtype

BLOCK = 128  # queries that are taken at once where what the encoding adds is a mask
LONG = 512  # queries of a row from which on blocks pay

OPTIONS = frozenset({"mask", "scale", "window", "chunk", "sinks", "dropout"})
BY_DOCUMENT = False


def suits(call: Call) -> bool:
    return True


def refuses(encoding: PositionalEncoding, structure: Structure | None) -> str | None:
    return why_not_fused(encoding)


def refuses_call(call: Call) -> str | None:
    return None


def attend(call: Call) -> Tensor:
    q, k, v, encoding, at_q, at_k, causal, options, scale, _ = call
    bias = None
    grouped = True if q.shape[1] != k.shape[1] else False  # noqa: SIM210 - a plain bool: inside a graph != is symbolic
    if "bias" in encoding.seams:
        dtype = working_dtype(q.dtype)
        bias = encoding.bias(q.to(dtype), k.to(dtype).repeat_interleave(call.groups, dim=1), at_q, at_k)

    # Consecutive positions are one document without padding, so one and the same on both sides needs no mask.
    dropout = 0.0 if options is PLAIN else options.dropout  # a number of a global object would be an input of the graph
    unmasked = options is PLAIN or not {"mask", "window", "chunk", "sinks"} & set(options.used())
    if unmasked and bias is None and at_q.consecutive_in == at_k.consecutive_in == "row":
        if not causal or at_q is at_k:
            return _fused(q, k, v, None, dropout, causal, scale, grouped)
        if sees_all(at_q, at_k):
            return _of_one_query(q, k, v, dropout, scale)

    if unmasked and bias is not None and causal and not dropout and at_q is at_k and _long_row(q, k, v, at_q):
        parts = [_block(q, k, v, bias, start, scale, grouped) for start in range(0, q.shape[2], BLOCK)]
        return torch.cat([part.transpose(1, 2) for part in parts], dim=1).transpose(1, 2)  # in memory token by token

    dtype = working_dtype(q.dtype)
    seen = mask = allowed(*distinct_rows(at_q, at_k), causal, options)
    if bias is not None:
        term = bias(*_index_grid(q, k)).to(dtype)
        mask = _added(term, options.mask).masked_fill(~seen, float("-inf"))
    elif options.mask is not None and options.mask.dtype != torch.bool:
        mask = options.mask.to(dtype).masked_fill(~seen, float("-inf"))
    if options.sinks is not None:
        k, v, mask = _with_sink(q, k, v, mask, options.sinks)
    if mask.dtype != torch.bool and mask.dtype != q.dtype and q.dtype != torch.float64:
        mask = mask.to(dtype)
    out = _fused(q, k, v, mask, dropout, False, scale, grouped)
    return out.masked_fill(~seen.any(dim=-1, keepdim=True), 0.0)  # a query that may see no key gets zeros


def sees_all(at_q: Positions, at_k: Positions) -> bool:
    """Whether these positions are one query in every row that comes after all keys, as a decoded token does. False where
    that cannot be read."""
    if at_q.length != 1 or not at_k.length or not at_q.batch or not (readable(at_q.order) and readable(at_k.order)):
        return False
    after = (at_q.order >= at_k.order[:, -1:]) & (at_q.document == at_k.document[:, :1])
    return bool(after.all())


def _long_row(q: Tensor, k: Tensor, v: Tensor, at: Positions) -> bool:
    """Whether this is a long row of consecutive tokens on the CPU. False in a graph, which would be of one length, and
    where the gradients of keys would be added up over the blocks in 16 bits."""
    if q.shape[2] <= LONG or at.consecutive_in != "row" or not plain_on_cpu(q, k, v) or exporting():
        return False
    return q.dtype == working_dtype(q.dtype) or not torch.is_grad_enabled()


def _block(q: Tensor, k: Tensor, v: Tensor, bias: BiasFn, start: int, scale: float, grouped: bool) -> Tensor:
    """The output of BLOCK queries from `start` on, over the keys up to the last of them."""
    stop = min(start + BLOCK, q.shape[2])
    b, h, i, j = _index_grid(q, k[:, :, :stop])
    i = i[:, :, start:stop]
    term = bias(b, h, i, j).to(working_dtype(q.dtype)).masked_fill(j > i, float("-inf"))
    return _fused(q[:, :, start:stop], k[:, :, :stop], v[:, :, :stop], term, 0.0, False, scale, grouped)


def _of_one_query(q: Tensor, k: Tensor, v: Tensor, dropout: float, scale: float) -> Tensor:
    """Query heads that share a key head are its queries: the kernel reads every key once."""
    together = q.reshape(q.shape[0], k.shape[1], -1, q.shape[3])
    return _fused(together, k, v, None, dropout, False, scale, False).reshape(*q.shape[:3], v.shape[3])


def _fused(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout: float, causal: bool, scale: float, grouped: bool
) -> Tensor:
    """torch's fused kernel. That has no rules for torch.func and forward mode; there its formula in plain torch."""
    if transformed():
        if mask is not None and mask.dtype == torch.bool:  # the formula adds its mask, whatever the dtype
            mask = torch.zeros_like(mask, dtype=q.dtype).masked_fill(~mask, float("-inf"))
        formula = torch.ops.aten._scaled_dot_product_attention_math
        return formula(q, k, v, mask, dropout, causal, scale=scale, enable_gqa=grouped)[0]  # type: ignore[no-any-return]
    return F.scaled_dot_product_attention(q, k, v, mask, dropout, causal, scale=scale, enable_gqa=grouped)


def _index_grid(q: Tensor, k: Tensor) -> list[Tensor]:
    """b, h, i, j of every logit, each a vector along its own axis."""
    sizes = (q.shape[0], q.shape[1], q.shape[2], k.shape[2])
    return [
        torch.arange(size, device=q.device).view(*[-1 if other == axis else 1 for other in range(4)])
        for axis, size in enumerate(sizes)
    ]


def _added(term: Tensor, mask: Tensor | None) -> Tensor:
    return term if mask is None or mask.dtype == torch.bool else term + mask.to(term.dtype)


def _with_sink(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, sinks: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """One more key of zeros, so that its logit is the sink alone, with a value of zeros."""
    dtype = working_dtype(q.dtype)
    if mask.dtype == torch.bool:
        mask = torch.zeros_like(mask, dtype=dtype).masked_fill(~mask, float("-inf"))
    mask = mask.expand(mask.shape[0], q.shape[1], q.shape[2], k.shape[2])
    sink = sinks.to(dtype)[None, :, None, None].expand(*mask.shape[:3], 1)
    k, v = (torch.cat([x, x.new_zeros(*x.shape[:2], 1, x.shape[3])], dim=2) for x in (k, v))
    return k, v, torch.cat([mask, sink], dim=-1)
