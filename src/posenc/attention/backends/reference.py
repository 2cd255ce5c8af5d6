"""Attention written out: the definition that the other backends are compared with.

Legend: b batch, h query heads, g key heads, i query, j key, d channel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from posenc.attention.options import PLAIN, Options, allowed, capped, softmax_scale
from posenc.encoding import PositionalEncoding, Site, check_added, working_dtype
from posenc.kernels.fast_path import exporting, transformed, wants_gradient
from posenc.positions import Positions

if TYPE_CHECKING:
    from posenc.support.shapes import Bool, Float

ROOM = 2**18  # logits that are computed together: 1 MiB of float32 stays in the cache
FEWEST = 16  # queries of a block
WHOLE = 512  # values that every block multiplies, seen or not
NO_BIAS = PositionalEncoding.bias
LANES = 16  # keys of a block come in multiples of what a processor computes at once

OPTIONS = frozenset({"mask", "scale", "window", "chunk", "softcap", "sinks", "dropout", "return_lse"})


def refuses(encoding: PositionalEncoding) -> str | None:
    return None


def refuses_call(q: Tensor, encoding: PositionalEncoding, at_q: Positions, at_k: Positions, causal: bool) -> str | None:
    return None


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    encoding: PositionalEncoding,
    at_q: Positions,
    at_k: Positions,
    causal: bool,
    options: Options = PLAIN,
) -> Tensor | tuple[Tensor, Tensor]:
    """softmax(context(cap(q·k·scale) + bias) + mask)·v + value, in float32 (float64 for float64), rounded once at the end.

    A query that may see no key gets zeros, and a log-sum-exp of -inf. Without a gradient, many queries are computed
    in blocks, in the memory of one block.
    """
    parts = _in_blocks(q, k, v, encoding) if options is PLAIN else []
    if len(parts) > 1:
        dtype = working_dtype(q.dtype)
        k, v = (x.to(dtype).contiguous() for x in (k, v))
        return torch.cat([_of_block(q, k, v, encoding, at_q, at_k, causal, rows) for rows in parts], dim=2)
    return _attend(q, k, v, encoding, at_q, at_k, causal, options)


def blocks(q: Tensor, k: Tensor) -> list[slice]:
    """Queries that are computed together: all, or as many as have ROOM logits."""
    queries = q.shape[2]
    each = max(ROOM // max(q.shape[0] * q.shape[1] * k.shape[2], 1), FEWEST)
    return [slice(first, min(first + each, queries)) for first in range(0, queries, each)]


def _in_blocks(q: Tensor, k: Tensor, v: Tensor, encoding: PositionalEncoding) -> list[slice]:
    """The blocks of eager code without a gradient or a transform; none elsewhere: a graph stays one operation each."""
    if torch.compiler.is_compiling() or exporting() or transformed() or q.is_meta:
        return []
    parts = blocks(q, k)
    return [] if len(parts) > 1 and wants_gradient(q, k, v, *encoding.parameters()) else parts


def _of_block(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    encoding: PositionalEncoding,
    at_q: Positions,
    at_k: Positions,
    causal: bool,
    rows: slice,
) -> Tensor:
    """Attention of these queries. Keys after the last query are left out if the positions show that it does not see them.

    A product over fewer keys is summed in another order, so up to WHOLE values are all multiplied, unseen ones with zeros:
    that gives the bits of the whole.
    """
    keys = k.shape[2]
    if causal and at_q is at_k and at_q.consecutive_in == "row":
        keys = min(-(-rows.stop // LANES) * LANES, keys)
    values = v if v.shape[2] <= WHOLE else v[:, :, :keys]
    here, there = at_q.narrow(rows.start, rows.stop), at_k if keys == k.shape[2] else at_k.narrow(0, keys)
    found = _attend(q[:, :, rows], k[:, :, :keys], values, encoding, here, there, causal, PLAIN)
    assert isinstance(found, Tensor)
    return found


def _attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    encoding: PositionalEncoding,
    at_q: Positions,
    at_k: Positions,
    causal: bool,
    options: Options,
) -> Tensor | tuple[Tensor, Tensor]:
    logits, seen = visible_logits(q, k, encoding, at_q, at_k, causal, options)
    probs = weighted(logits, seen, encoding, at_q, at_k, options)
    if options is not PLAIN and options.dropout:
        probs = F.dropout(probs, options.dropout)
    unseen = v.shape[2] - k.shape[2]
    out = _shared(F.pad(probs, (0, unseen)) if unseen else probs, v.to(probs.dtype))
    if (addend := encoding.value(probs, at_q, at_k)) is not None:
        check_added(encoding, addend, v)
        out = out + addend
    out = out.to(q.dtype)
    return (out, logits.logsumexp(dim=-1)) if options.return_lse else out


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
    logits, seen = visible_logits(q, k, encoding, at_q, at_k, causal, options)
    return weighted(logits, seen, encoding, at_q, at_k, options)


def visible_logits(
    q: Tensor, k: Tensor, encoding: PositionalEncoding, at_q: Positions, at_k: Positions, causal: bool, options: Options
) -> tuple[Float[Tensor, "b h i j"], Bool[Tensor, "b #h i j"]]:
    """context(cap(q·k·scale) + bias) + mask, -inf where a query may not see a key; and where it may.

    Where the bias or the mask is -inf it may not: so no gradient comes back from there, and a row of nothing else is empty.
    """
    dtype = working_dtype(q.dtype)
    wide_q, wide_k = q.to(dtype), k.to(dtype)

    logits = capped(
        _shared(wide_q, wide_k.transpose(-1, -2)) * softmax_scale(encoding, q.shape[-1], options), options.softcap
    )
    biased = type(encoding).bias is not NO_BIAS
    if biased and (bias := encoding.bias(wide_q, _for_heads(wide_k, q.shape[1]), at_q, at_k)) is not None:
        logits = logits + bias(*index_grid(logits))
    seen = allowed(at_q, at_k, causal, options)
    if biased:
        seen = seen & (logits != float("-inf"))
    logits = encoding.context(logits, wide_q, at_q, at_k, seen)
    if options.mask is not None and options.mask.dtype != torch.bool:
        logits = logits + options.mask.to(dtype)
    return logits.masked_fill(~seen, float("-inf")), seen


def _shared(x: Float[Tensor, "b h i c"], of_keys: Float[Tensor, "b g c n"]) -> Float[Tensor, "b h i n"]:
    """The product of every query head with its key head; the queries that share one stand below each other."""
    groups, heads = of_keys.shape[1], x.shape[1]
    if groups == heads:
        return x @ of_keys
    return torch.einsum("bgric,bgcn->bgrin", x.unflatten(1, (groups, -1)), of_keys).flatten(1, 2)


def _for_heads(x: Float[Tensor, "b g j d"], n_heads: int) -> Float[Tensor, "b h j d"]:
    """Key heads, each repeated for the query heads that share it."""
    return x if x.shape[1] == n_heads else x.repeat_interleave(n_heads // x.shape[1], dim=1)


def weighted(
    logits: Float[Tensor, "b h i j"],
    seen: Bool[Tensor, "b #h i j"],
    encoding: PositionalEncoding,
    at_q: Positions,
    at_k: Positions,
    options: Options,
) -> Float[Tensor, "b h i j"]:
    """The matrix that multiplies the values: the softmax, or what the encoding uses instead of it."""
    own = encoding.weights(logits, at_q, at_k, seen) if encoding.sites & Site.WEIGHTS else None
    if own is not None:
        return own
    if options is PLAIN and at_q is at_k and at_q.consecutive_in == "row":  # every query sees itself: no row is empty
        return logits.softmax(dim=-1)
    return normalised(logits, seen, options.sinks)


def normalised(
    logits: Float[Tensor, "b h i j"], seen: Bool[Tensor, "b #h i j"], sinks: Float[Tensor, "h"] | None
) -> Float[Tensor, "b h i j"]:
    """The softmax over keys; a sink is one more logit per head whose share goes to no value."""
    if sinks is None:
        return logits.softmax(dim=-1).masked_fill(~seen, 0.0)
    sink = sinks.to(logits.dtype)[None, :, None, None].expand(*logits.shape[:3], 1)
    return torch.cat([logits, sink], dim=-1).softmax(dim=-1)[..., :-1].masked_fill(~seen, 0.0)


def index_grid(logits: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """b, h, i, j of every logit, each a vector along its own axis."""
    return tuple(
        torch.arange(size, device=logits.device).view(*[-1 if axis == own else 1 for axis in range(4)])
        for own, size in enumerate(logits.shape)
    )  # type: ignore[return-value]
