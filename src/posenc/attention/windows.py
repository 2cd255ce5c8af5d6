"""Windows, chunks and documents without reading keys outside: blocks of queries, each with the keys that it may see.

    window (3, 0)        keys      0 1 2 3 4 5 6 7        queries 4 … 5 see keys 1 … 5 only: keys 6 and 7 come later,
    queries 0 … 1        ■ ■ . . . . . .                  key 0 is too far back. A block of queries is handed over with
    queries 2 … 3        ■ ■ ■ ■ . . . .                  exactly this range, so the work grows with the window and not
    queries 4 … 5        . ■ ■ ■ ■ ■ . .                  with the length.

`cut` has three cutters, each for a reason of its own:
    band           our kernel reads the keys of a causal window or of a document where they are, and copies nothing: in fp32
                   and bf16 on the CPU without gradients
    by_document    packed documents and padded rows are texts of their own: a call each, without a mask
    ranges_of      blocks of queries as above, for every other window and chunk

Which keys a block may see is known where rows are consecutive (`consecutive_in="row"`) and either both sides are the same
positions or their first orders can be read: in eager code on the CPU. Elsewhere one call serves all keys under a mask.
Legend: i query, j key.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from posenc.attention.call import Call
from posenc.attention.options import Options
from posenc.kernels import banded
from posenc.kernels.eager import exporting, wants_gradient
from posenc.positions import Positions
from posenc.structure import bias_at, distance_terms, why_not_fused
from posenc.support.tensors import check_coords, readable, working_dtype

if TYPE_CHECKING:
    from posenc.support.shapes import Int

SMALLEST_BLOCK, LARGEST_BLOCK = 64, 512  # queries of a block
CALL = 2**20  # pairs times channels that torch's kernel computes in the time of one more call


class Piece(NamedTuple):
    """A part of a call, and what computes it; None: its own backend, after it was cut in turn."""

    call: Call
    by: Callable[[Call], Any] | None = None


def without_vain_window(call: Call) -> Call:
    """The call without a window that reaches further than the row is long: no query sees less for it."""
    if call.options.window is None or not call.in_one_row():
        return call
    left, right = call.options.window
    if any(limit is not None and limit < call.at_q.length - 1 for limit in (left, None if call.causal else right)):
        return call
    return call.with_options(window=None)


def cut(call: Call, documents: bool) -> list[list[Piece]] | None:
    """The call by rows of the batch and pieces of a row, or all rows at once; None where it is best computed whole.

    documents   whether documents are worth calls of their own: not where the backend leaves out what is between them
    """
    if call.at_q is call.at_k:
        if (kernel := band(call)) is not None:
            return [[Piece(call, kernel)]]
        if documents and (rows := by_document(call)) is not None:
            return rows
    if call.options.window is None and call.options.chunk is None:
        return None
    ranges = ranges_of(call)
    return None if ranges is None else [[Piece(call.part(queries, keys)) for queries, keys in ranges]]


def band(call: Call) -> Callable[[Call], Tensor] | None:
    """Our kernel for causal self-attention under a window, within documents or both; None where it does not serve."""
    q, k, v, encoding, at = call.q, call.k, call.v, call.encoding, call.at_q
    left = (call.options.window or (None,))[0]
    if not call.causal or (left is None and at.consecutive_in != "document"):
        return None
    if not set(call.options.used()) <= {"window", "scale"} or not banded.can_serve(q, k, v) or why_not_fused(encoding):
        return None
    if (terms := distance_terms(encoding, call.structure)) is None or (rows := _runs_of_rows(at)) is None:
        return None
    for term in terms:
        check_coords(term, at)
    longest = max((size for runs in rows for document, size in runs if document >= 0), default=1)
    cutoff = longest - 1 if left is None else min(left, longest - 1)
    bias = None
    if terms:
        bias = bias_at(terms, torch.arange(cutoff + 1, dtype=at.coords.dtype, device=q.device), q)
        if wants_gradient(bias):
            return None
    return functools.partial(_banded, rows=rows, bias=bias, cutoff=cutoff)


def _banded(call: Call, rows: list[list[tuple[int, int]]], bias: Tensor | None, cutoff: int) -> Tensor:
    q, k, v, scale = call.q, call.k, call.v, call.scale
    out = q.new_empty(q.shape[0], q.shape[2], q.shape[1], q.shape[3], dtype=torch.float32).transpose(1, 2)
    for number, runs in enumerate(rows):
        row, begin = slice(number, number + 1) if len(rows) > 1 else slice(None), 0
        for document, size in runs:
            index = (row, slice(None), slice(begin, begin + size))
            begin += size
            if document < 0:
                out[index] = 0
            else:
                banded.attend(q[index], k[index], v[index], bias, scale, min(cutoff, size - 1), out[index])
    return out.to(q.dtype)


def _runs_of_rows(at: Positions) -> list[list[tuple[int, int]]] | None:
    """The documents of every row and their lengths; of one row where all rows are one document each. None if unknown."""
    if at.consecutive_in == "row":
        return [[(0, at.length)]]
    if at.consecutive_in != "document" or not readable(at.document):
        return None
    rows = [runs for row in at.document if (runs := runs_of(row)) is not None]
    return rows if len(rows) == at.batch else None


def by_document(call: Call) -> list[list[Piece]] | None:
    """The documents of every row, one after the other; None where they are not known or too small."""
    at = call.at_q
    if at.consecutive_in != "document" or exporting() or not at.batch:
        return None
    if (rows := _runs_of_rows(at)) is None or not _worth(call.q, call.k, rows):
        return None
    return [_documents(call.row(number), runs) for number, runs in enumerate(rows)]


def _documents(row: Call, runs: list[tuple[int, int]]) -> list[Piece]:
    pieces, begin = [], 0
    for document, size in runs:
        tokens, begin = slice(begin, begin + size), begin + size
        here = row.at_q.narrow(tokens.start, tokens.stop)
        if document < 0:
            pieces.append(Piece(row.part(tokens, tokens, here), _of_padding))
        else:
            pieces.append(Piece(row.part(tokens, tokens, here.single_document())))
    return pieces


def runs_of(documents: Int[Tensor, "t"]) -> list[tuple[int, int]] | None:
    """Documents of one row and their lengths, as they stand; None where one of them, padding aside, stands in parts."""
    names, counts = torch.unique_consecutive(documents, return_counts=True)
    runs = list(zip(names.tolist(), counts.tolist(), strict=True))
    real = [name for name, _ in runs if name >= 0]
    return runs if len(real) == len(set(real)) else None


def _worth(q: Tensor, k: Tensor, rows: list[list[tuple[int, int]]]) -> bool:
    """Whether the pairs across documents would take longer than one call of attention for each document."""
    pairs = sum(size**2 for runs in rows for document, size in runs if document >= 0)
    left_out = len(rows) * q.shape[2] * k.shape[2] - pairs
    return left_out * q.shape[1] * q.shape[3] >= CALL * sum(len(runs) for runs in rows)


def _of_padding(call: Call) -> Any:
    """Queries that may see no key: zeros, which depend on the inputs all the same, as those of a backend do."""
    q, options, encoding = call.q, call.options, call.encoding
    parameters = encoding.parameters() if encoding.seams & {"bias", "finish"} else ()  # a rotation's are in q and k
    out, lse = q.new_zeros(*q.shape[:3], call.v.shape[3]), None
    if options.return_lse:
        lse = q.new_full(q.shape[:3], -torch.inf, dtype=working_dtype(q.dtype))
    for x in (q, call.k, call.v, options.mask, options.sinks, *parameters):
        if x is not None and wants_gradient(x):
            nothing = x[None][:0].sum()  # 0, whatever x holds, with a gradient of zeros
            out, lse = out + nothing, None if lse is None else lse + nothing
    return (out, lse) if options.return_lse else out


def joined(parts: list[Any], options: Options, axis: int = 2) -> Any:
    """Outputs, or (output, lse), one after the other along tokens or rows; in memory token by token, as torch's fused
    kernel lays its output and the projection after it reads it."""
    if len(parts) == 1:
        return parts[0]
    both = zip(*parts, strict=True) if options.return_lse else (parts,)
    joined = tuple(torch.cat([x.transpose(1, 2) for x in each], dim=axis // 2).transpose(1, 2) for each in both)
    return joined if options.return_lse else joined[0]


def ranges_of(call: Call) -> list[tuple[slice, slice]] | None:
    """Blocks of queries with the range of keys that each may see; None where ranges are unknown or would be all keys."""
    at_q, at_k = call.at_q, call.at_k
    if torch.compiler.is_compiling() or not (at_q.consecutive_in == at_k.consecutive_in == "row"):
        return None
    if not at_q.batch or (at_q is not at_k and not (readable(at_q.order) and readable(at_k.order))):
        return None
    ranges = list(_ranges(call))
    return None if all(keys == slice(0, at_k.length) for _, keys in ranges) else ranges


def _ranges(call: Call) -> Iterator[tuple[slice, slice]]:
    at_q, at_k, options = call.at_q, call.at_k, call.options
    left, right = options.window or (None, None)
    if call.causal:
        right = 0 if right is None else min(right, 0)
    ahead = [0] if at_q is at_k else (at_q.order[:, 0] - at_k.order[:, 0]).tolist()  # of the first query, in every row
    starts = at_k.order[:, 0].tolist() if options.chunk is not None and readable(at_k.order) else []
    block = _block(left, right, options.chunk)
    for begin in range(0, at_q.length, block):
        end = min(begin + block, at_q.length)
        low, high = 0, at_k.length
        if left is not None:
            low = min(ahead) + begin - left
        if right is not None:
            high = max(ahead) + end + right
        if starts and options.chunk is not None:
            low = max(
                low, min(_chunk_begins(start + by + begin, options.chunk) - start for start, by in _rows(starts, ahead))
            )
            high = min(
                high, max(_chunk_ends(start + by + end - 1, options.chunk) - start for start, by in _rows(starts, ahead))
            )
        low = min(max(low, 0), at_k.length)
        high = min(max(high, low), at_k.length)
        if low == high and at_k.length:  # no key is seen: one that is masked gives zeros
            low, high = (low - 1, low) if low else (0, 1)
        yield slice(begin, end), slice(low, high)


def _rows(starts: list[int], ahead: list[int]) -> Iterator[tuple[int, int]]:
    """The order of the first key and the lead of the first query, row by row; a single one serves all rows."""
    rows = max(len(starts), len(ahead))
    return zip(starts * (rows // len(starts)), ahead * (rows // len(ahead)), strict=True)


def _chunk_begins(order: int, chunk: int) -> int:
    return order // chunk * chunk


def _chunk_ends(order: int, chunk: int) -> int:
    return (order // chunk + 1) * chunk


def _block(left: int | None, right: int | None, chunk: int | None) -> int:
    """Queries of a block: an eighth of what one of them sees, so that a block reads about that much too much."""
    seen = [left + right] if left is not None and right is not None else []
    farthest = min(seen + ([chunk] if chunk is not None else []), default=LARGEST_BLOCK * 8)
    block = SMALLEST_BLOCK
    while block < LARGEST_BLOCK and block * 16 <= farthest:
        block *= 2
    return block
