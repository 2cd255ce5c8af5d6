"""Attention by blocks of queries, for encodings that replace q·k and say their logits block by block (Wall, PaTH).

Every block is a softmax in plain torch over the keys up to its last query, so that a forward holds one block of logits.
Legend: b batch, h query heads, g key heads, n queries of a block, j key, d channel.
"""

from __future__ import annotations

import torch
from torch import Tensor

from posenc.attention.call import Call
from posenc.encoding import PositionalEncoding
from posenc.kernels.eager import exporting, transformed, wants_gradient
from posenc.structure import Blocks, Structure, why_not_fused
from posenc.support.tensors import working_dtype

OPTIONS: frozenset[str] = frozenset()
BY_DOCUMENT = False


def suits(call: Call) -> bool:
    """Calls of more tokens than blocks of logits pay for."""
    return type(call.structure) is Blocks and call.at_q.length > call.structure.beyond


def refuses(encoding: PositionalEncoding, structure: Structure | None) -> str | None:
    if type(structure) is not Blocks or structure.logits is None:
        return "it declares no logits by blocks"
    return why_not_fused(encoding)


def refuses_call(call: Call) -> str | None:
    if torch.compiler.is_compiling() or exporting():
        return "it loops over blocks in Python, so that a graph would be right for one number of blocks only"
    if not (call.causal and call.in_one_row()):
        return "queries and keys are not the same consecutive tokens, seen causally"
    if not (call.q.shape[0] and call.at_q.length):
        return "there are no rows or no tokens"
    return None


def attend(call: Call) -> Tensor:
    q, k, v, encoding = call[:4]
    dtype = working_dtype(q.dtype)
    wide_k, wide_v = (x.to(dtype).repeat_interleave(call.groups, dim=1) for x in (k, v))
    assert isinstance(call.structure, Blocks)
    assert call.structure.logits is not None
    blocks = call.structure.logits(q.to(dtype), wide_k, call.at_q)
    outputs = (logits.softmax(dim=-1) @ wide_v[:, :, : logits.shape[3]] for logits in blocks)
    if wants_gradient(q, k, v, *encoding.parameters()) or transformed():
        return torch.cat(list(outputs), dim=2).to(q.dtype)
    out, start = q.new_empty(*q.shape[:3], v.shape[3]), 0  # outputs in between would keep what blocks free in pieces
    for output in outputs:
        stop = start + output.shape[2]
        out[:, :, start:stop] = output
        start = stop
    return out
