"""Attention with relative vectors (Shaw, Transformer-XL) on consecutive tokens, by blocks of queries.

The formula by blocks is in attention.py, the operator in torch_operator.py; this file prepares its inputs.
Legend: b batch, h query heads, i query, j key, d channel.
"""

from __future__ import annotations

from torch import Tensor

from posenc.attention.backends.relative import few
from posenc.attention.backends.relative.attention import relative_attention
from posenc.attention.backends.relative.torch_operator import ATTENTION
from posenc.attention.call import Call
from posenc.encoding import PositionalEncoding, scale_of
from posenc.kernels.eager import exporting, plain_on_cpu, wants_gradient
from posenc.positions import Positions
from posenc.structure import Structure, Vectors
from posenc.support.tensors import check_added, working_dtype

OPTIONS = frozenset({"scale"})
BY_DOCUMENT = False


def suits(call: Call) -> bool:
    return type(call.structure) is Vectors


def refuses(encoding: PositionalEncoding, structure: Structure | None) -> str | None:
    if type(structure) is not Vectors:
        return "it declares no vectors of the distance"
    return None


def refuses_call(call: Call) -> str | None:
    at_q, at_k = call.at_q, call.at_k
    if exporting():
        return "it is an operator of posenc, which a graph for other runtimes cannot contain"
    if not (call.q.shape[0] and at_q.length and at_k.length):
        return "there are no rows, no queries or no keys"
    if not (at_q.consecutive_in == at_k.consecutive_in == "row"):
        return "positions are not consecutive: the vectors of a block of queries lie in one order there only"
    if not at_q.coords.ndim == at_k.coords.ndim == 2 or at_q.coords.is_floating_point() or at_k.coords.is_floating_point():
        return "positions are not whole numbers along one axis"
    if call.q.device.type != "cpu":
        return f"it is computed on the CPU, and the queries are on {call.q.device.type}"
    return None


def attend(call: Call) -> Tensor:
    q, k, v, encoding, at_q, at_k = call[:6]
    structure = call.structure
    assert isinstance(structure, Vectors)
    queries, keys = q.shape[2], k.shape[2]
    start = key_minus_query(at_q, at_k, "coords")  # of the first query and the first key
    n = queries if call.causal and at_q is at_k else queries + keys - 1  # a causal square needs no key after its query
    query, scale = q.to(working_dtype(q.dtype)), scale_of(encoding, q.shape[-1])
    vectors = structure.make(query, at_q, at_k, start - (queries - 1), n)
    if vectors.values is not None:
        check_added(encoding, vectors.values, v)
    content, call_scale = vectors.content, call.scale
    if call_scale != scale:  # the call's scale is for q·k alone: the encoding's terms keep their own
        content = content + query * (call_scale / scale - 1)
    if few.can_serve(call, vectors):
        return few.attend(call, vectors._replace(content=content), scale)
    seen = -key_minus_query(at_q, at_k, "order") if call.causal else None
    tensors = content, k, v, vectors.position, vectors.keys
    row, tables = start - vectors.first, () if vectors.values is None else (vectors.values,)
    if plain_on_cpu(*tensors, *tables) and not wants_gradient(*tensors, *tables):
        return relative_attention(*tensors, vectors.values, row, seen, scale)  # few tokens take less than the dispatcher
    out: Tensor = ATTENTION(*tensors, vectors.values, row, seen, scale)
    return out


def key_minus_query(at_q: Positions, at_k: Positions, name: str) -> Tensor:
    """key - query of the first of both, [b], or [1] where it is known to be one number for all rows."""
    if at_q is at_k:
        return at_q.order.new_zeros(1)
    query: Tensor = getattr(at_q, name)[:, 0].long()
    key: Tensor = getattr(at_k, name)[:, 0].long()
    same = query.stride(0) == 0 and key.stride(0) == 0  # arange() repeats one row
    return (key - query)[:1] if same else key - query
