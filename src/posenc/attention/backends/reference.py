"""Attention written out: the definition that the other backends are compared with.

Legend: b batch, h query heads, g key heads, i query, j key, d channel.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from posenc.attention.call import Call
from posenc.attention.options import PLAIN, Options, allowed, capped
from posenc.encoding import PositionalEncoding
from posenc.kernels.eager import exporting, transformed, wants_gradient
from posenc.positions import Positions
from posenc.structure import Scores, Structure, addend_of, shared
from posenc.support.identity import label
from posenc.support.tensors import working_dtype

if TYPE_CHECKING:
    from posenc.support.shapes import Float

ROOM = 2**18  # logits that are computed together: 1 MiB of float32 stays in the cache
FEWEST = 16  # queries of a block
WHOLE = 512  # values that every block multiplies, seen or not
LANES = 16  # keys of a block come in multiples of what a processor computes at once

OPTIONS = frozenset({"mask", "scale", "window", "chunk", "softcap", "sinks", "dropout", "return_lse"})
BY_DOCUMENT = False


def suits(call: Call) -> bool:
    return True


def refuses(encoding: PositionalEncoding, structure: Structure | None) -> str | None:
    return None


def refuses_call(call: Call) -> str | None:
    return None


def attend(call: Call) -> Tensor | tuple[Tensor, Tensor]:
    """finish(cap(q·k·scale) + bias), in float32 (float64 for float64), rounded once at the end.

    A query that may see no key gets zeros, and a log-sum-exp of -inf. Without a gradient, many queries are computed
    in blocks, in the memory of one block.
    """
    parts = _in_blocks(call) if call.options is PLAIN else []
    if len(parts) > 1:
        dtype = working_dtype(call.q.dtype)
        k, v = (x.to(dtype).contiguous() for x in (call.k, call.v))
        call = call._replace(k=k, v=v)
        return torch.cat([_of_block(call, rows) for rows in parts], dim=2)
    return _attend(call)


def blocks(q: Tensor, k: Tensor) -> list[slice]:
    """Queries that are computed together: all, or as many as have ROOM logits."""
    queries = q.shape[2]
    each = max(ROOM // max(q.shape[0] * q.shape[1] * k.shape[2], 1), FEWEST)
    return [slice(first, min(first + each, queries)) for first in range(0, queries, each)]


def _in_blocks(call: Call) -> list[slice]:
    """The blocks of eager code without a gradient or a transform; none elsewhere: a graph stays one operation each."""
    q, k, v, encoding = call[:4]
    if torch.compiler.is_compiling() or exporting() or transformed() or q.is_meta:
        return []
    parts = blocks(q, k)
    return [] if len(parts) > 1 and wants_gradient(q, k, v, *encoding.parameters()) else parts


def _of_block(call: Call, rows: slice) -> Tensor:
    """Attention of these queries. Keys after the last query are left out if the positions show that it does not see them.

    A product over fewer keys is summed in another order, so up to WHOLE values are all multiplied, unseen ones with zeros:
    that gives the bits of the whole.
    """
    q, k, v, _, at_q, at_k = call[:6]
    keys = k.shape[2]
    if call.causal and call.in_one_row():
        keys = min(-(-rows.stop // LANES) * LANES, keys)
    values = v if v.shape[2] <= WHOLE else v[:, :, :keys]
    here, there = at_q.narrow(rows.start, rows.stop), at_k if keys == k.shape[2] else at_k.narrow(0, keys)
    out = _attend(call._replace(q=q[:, :, rows], k=k[:, :, :keys], v=values, at_q=here, at_k=there))
    assert isinstance(out, Tensor)
    return out


def _attend(call: Call) -> Tensor | tuple[Tensor, Tensor]:
    scores, options = scores_of(call), call.options
    out = _finish(call.encoding)(scores).to(call.q.dtype)
    if options is PLAIN or not (options.return_lse or options.sinks is not None):
        return out
    if "logits" not in scores.kept:
        raise ValueError(
            f"sinks, return_lse: {label(call.encoding)} has something else in the place of the softmax; leave both out"
        )
    return (out, scores.masked(scores.kept["logits"]).logsumexp(dim=-1)) if options.return_lse else out


def _finish(encoding: PositionalEncoding) -> Callable[[Scores], Tensor]:
    """The encoding's own, or the default one where `attend` adds the rest."""
    return encoding.finish if addend_of(encoding) is None else functools.partial(PositionalEncoding.finish, encoding)


def probabilities(
    q: Tensor,
    k: Tensor,
    encoding: PositionalEncoding,
    at_q: Positions,
    at_k: Positions,
    causal: bool,
    options: Options = PLAIN,
) -> Float[Tensor, "b h i j"]:
    """The softmax of rotated q and k, or what the encoding uses instead of it; zeros for a query that sees no key."""
    scores = scores_of(Call.of(q, k, k, encoding, at_q, at_k, causal, options))
    _finish(encoding)(scores)
    return scores.kept["weights"]


def scores_of(call: Call) -> Scores:
    """cap(q·k·scale) + bias of rotated q and k, and which query sees which key: not where the bias or the mask is -inf.

    So no gradient comes back from there, and a row of nothing else is empty.
    """
    q, k, v, encoding, at_q, at_k, _, options = call[:8]
    dtype = working_dtype(q.dtype)
    wide_q, wide_k = q.to(dtype), k.to(dtype)
    logits = capped(shared(wide_q, wide_k.transpose(-1, -2)) * call.scale, options.softcap)
    seen = allowed(at_q, at_k, call.causal, options)
    biased = type(encoding).bias is not PositionalEncoding.bias  # whatever its seams say
    bias = encoding.bias(wide_q, _for_heads(wide_k, q.shape[1]), at_q, at_k) if biased else None
    if bias is not None:
        logits = logits + bias(*index_grid(logits))
        seen = seen & (logits != float("-inf"))
    plain = options is PLAIN
    none_blind = plain and bias is None and call.in_one_row()  # every query sees itself
    return Scores(logits, wide_q, v.to(dtype), at_q, at_k, seen, None if plain else options, none_blind)


def _for_heads(x: Float[Tensor, "b g j d"], n_heads: int) -> Float[Tensor, "b h j d"]:
    """Key heads, each repeated for the query heads that share it."""
    return x if x.shape[1] == n_heads else x.repeat_interleave(n_heads // x.shape[1], dim=1)


def index_grid(logits: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """b, h, i, j of every logit, each a vector along its own axis."""
    return tuple(
        torch.arange(size, device=logits.device).view(*[-1 if other == axis else 1 for other in range(4)])
        for axis, size in enumerate(logits.shape)
    )  # type: ignore[return-value]
