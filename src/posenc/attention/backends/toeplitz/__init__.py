"""Attention with a bias of the distance alone, for consecutive positions, at little extra cost: see attention.py.

Legend: b batch, h query heads, n = queries + keys - 1 distances.
"""

from __future__ import annotations

import torch
from torch import Tensor

from posenc.attention.backends.toeplitz.attention import attend_few, attend_small, is_small
from posenc.attention.backends.toeplitz.torch_operator import attend_by_distance
from posenc.attention.call import Call
from posenc.encoding import PositionalEncoding
from posenc.kernels.eager import exporting
from posenc.positions import Positions
from posenc.structure import Distances, Structure, bias_at, why_not_fused
from posenc.support.tensors import readable

OPTIONS = frozenset({"scale"})
BY_DOCUMENT = True


def suits(call: Call) -> bool:
    return type(call.structure) is Distances


def refuses(encoding: PositionalEncoding, structure: Structure | None) -> str | None:
    if why := why_not_fused(encoding):
        return why
    if "bias" not in encoding.seams:
        return "it has no bias"
    if type(structure) is not Distances:
        return "its bias is not one of the distance alone"
    return None


def refuses_call(call: Call) -> str | None:
    q, at_q, at_k = call.q, call.at_q, call.at_k
    if exporting():
        return "it is an operator of posenc, which a graph for other runtimes cannot contain"
    if q.device.type != "cpu":
        return f"it reads the bias through torch's kernel for the CPU, q is on {q.device.type}"
    of_q, of_k = at_q.coords.shape, at_k.coords.shape
    if not (q.shape[0] and of_q[1] and of_k[1]):
        return "there are no rows, no queries or no keys"
    if len(of_q) != 2 or len(of_k) != 2:
        return "tokens have several coordinates"
    if (at_q.consecutive_in == at_k.consecutive_in == "row") or (at_q is at_k and at_q.consecutive_in == "document"):
        return None
    return "positions are not known to count up by one from token to token"


def attend(call: Call) -> Tensor:
    q, k, v, _, at_q, at_k, causal, _, scale, structure = call
    assert isinstance(structure, Distances)
    if call.in_one_row() and at_q.coords.dtype == torch.int64 and is_small(q, k, v):
        if structure.few is not None and (bias := structure.few(q, at_q)) is not None:
            return attend_few(q, k, v, bias, scale, causal)
        length = at_q.length
        delta = torch.arange(length - 1, -1 if causal else -length, -1, device=q.device)
        return attend_small(q, k, v, bias_at(structure.terms, delta, q), scale)
    vector, ahead = bias_vector(structure, q, at_q, at_k), steps_ahead(at_q, at_k)
    document = None if at_q.consecutive_in == "row" else at_q.document
    return attend_by_distance(q, k, v, vector, ahead, document, scale, causal)


def bias_vector(structure: Distances, q: Tensor, at_q: Positions, at_k: Positions) -> Tensor:
    """The bias of queries - 1 … -(keys - 1) positions, [h, b or 1, n]; rows at other offsets have their own."""
    start = at_q.coords.new_zeros(1) if at_q is at_k else first(at_q.coords) - first(at_k.coords)
    delta = start[:, None] + torch.arange(at_q.length - 1, -at_k.length, -1, device=q.device)
    vector: Tensor = bias_at(structure.terms, delta.reshape(-1), q).unflatten(1, delta.shape)
    return vector


def steps_ahead(at_q: Positions, at_k: Positions) -> Tensor:
    """By how much the first query comes after the first key in causal order, [b or 1]."""
    if at_q is at_k:
        return at_q.order.new_zeros(1)
    return first(at_q.order) - first(at_k.order)


def first(x: Tensor) -> Tensor:
    """The first value of every row, [b], or [1] if all rows are the same memory, as Positions.arange makes them."""
    return x[:1, 0] if readable(x) and x.stride(0) == 0 else x[:, 0]
