"""Windows and chunks without reading keys outside: blocks of queries, each with the keys that it may see.

    window (3, 0)        keys      0 1 2 3 4 5 6 7        queries 4 … 5 see keys 1 … 5 only: keys 6 and 7 come later,
    queries 0 … 1        ■ ■ . . . . . .                  key 0 is too far back. A block of queries is handed over with
    queries 2 … 3        ■ ■ ■ ■ . . . .                  exactly this range, so the work grows with the window and not
    queries 4 … 5        . ■ ■ ■ ■ ■ . .                  with the length.

Which keys a block may see is known where rows are consecutive (`consecutive_in="row"`) and either both sides are the same
positions or their first orders can be read: in eager code on the CPU. Elsewhere one call serves all keys under a mask.
Legend: i query, j key.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from posenc.backends import choose
from posenc.encoding import PositionalEncoding
from posenc.options import Options
from posenc.positions import Positions, readable

SMALLEST, LARGEST = 64, 512  # queries of a block


def by_pieces(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    encoding: PositionalEncoding,
    at_q: Positions,
    at_k: Positions,
    causal: bool,
    options: Options,
    impl: str,
) -> Any:
    """Attention of rotated q over k and v; under a window or chunk by blocks of queries, where "auto" may choose.

    A backend that is asked for by name gets the whole call. Returns the output, or (output, lse) where options.return_lse.
    """
    narrow = impl == "auto" and (options.window is not None or options.chunk is not None)
    cut = pieces(at_q, at_k, causal, options) if narrow else None
    if cut is None:
        return choose(impl, q, encoding, at_q, at_k, causal, options).attend(q, k, v, encoding, at_q, at_k, causal, options)
    parts = []
    for queries, keys in cut:
        of_q, of_k = at_q.narrow(queries.start, queries.stop), at_k.narrow(keys.start, keys.stop)
        own = replace(options, mask=narrowed_mask(options.mask, queries, keys))
        backend = choose(impl, q[:, :, queries], encoding, of_q, of_k, causal, own)
        parts.append(backend.attend(q[:, :, queries], k[:, :, keys], v[:, :, keys], encoding, of_q, of_k, causal, own))
    if not options.return_lse:
        return torch.cat(parts, dim=2)
    return tuple(torch.cat(part, dim=2) for part in zip(*parts, strict=True))


def pieces(at_q: Positions, at_k: Positions, causal: bool, options: Options) -> list[tuple[slice, slice]] | None:
    """Blocks of queries with the range of keys that each may see; None where ranges are unknown or would be all keys."""
    if torch.compiler.is_compiling() or not (at_q.consecutive_in == at_k.consecutive_in == "row"):
        return None
    if at_q is not at_k and not (readable(at_q.order) and readable(at_k.order)):
        return None
    found = list(_ranges(at_q, at_k, causal, options))
    return None if all(keys == slice(0, at_k.length) for _, keys in found) else found


def _ranges(at_q: Positions, at_k: Positions, causal: bool, options: Options) -> Iterator[tuple[slice, slice]]:
    left, right = options.window or (None, None)
    if causal:
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
        yield slice(begin, end), slice(low, min(max(high, low), at_k.length))


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
    reach = min(seen + ([chunk] if chunk is not None else []), default=LARGEST * 8)
    block = SMALLEST
    while block < LARGEST and block * 16 <= reach:
        block *= 2
    return block


def narrowed_mask(mask: Tensor | None, queries: slice, keys: slice) -> Tensor | None:
    """The mask of a block; axes of size 1 serve every block."""
    if mask is None:
        return None
    mask = mask if mask.shape[2] == 1 else mask[:, :, queries]
    return mask if mask.shape[3] == 1 else mask[:, :, :, keys]
