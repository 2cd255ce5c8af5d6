"""Which tokens a cache keeps: their positions, rows and columns, and what an encoding says of them.

Legend: b batch, g key heads, s stored tokens, m kept tokens, d channels.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.utils import _pytree

from posenc.attention.rotated_keys import rerotate
from posenc.combined import flat_parts
from posenc.encoding import PositionalEncoding, Side
from posenc.encodings.bases.content_dependent import ReadsEarlierTokens, by_document_and_order, taken
from posenc.positions import Consecutive, Positions
from posenc.support import checks
from posenc.support.identity import label
from posenc.support.tensors import FEW, check_accepted, integers, readable

if TYPE_CHECKING:
    from posenc.support.shapes import Bool, Float, Int, Num


# Positions of a cache -------------------------------------------------------------------------------------------------


def first_tokens(at: Positions, lengths: int | Tensor | Sequence[int]) -> Positions:
    """The columns up to the last token that stays, with -1 as the document of those that do not."""
    given = _lengths(at, lengths)
    if at.consecutive_in == "row" and readable(given) and given.numel() and bool((given == given[0]).all()):
        return at.narrow(0, int(given[0]))
    cropped = first_of_each_row(at, given)
    if not readable(cropped.document):
        return cropped  # columns of padding alone stay: to find them is to wait for the device
    needed = (cropped.document >= 0).any(dim=0).nonzero()
    return cropped.narrow(0, int(needed[-1]) + 1 if len(needed) else 0)


def _lengths(at: Positions, lengths: int | Tensor | Sequence[int]) -> Int[Tensor, "b"]:
    """One for each row. Raises ValueError for more tokens than a row holds."""
    if isinstance(lengths, int) and not isinstance(lengths, bool):
        checks.whole(0, lengths=lengths)
        lengths = torch.full((at.batch,), lengths)
    given = integers("lengths", lengths, "[b], one for each row, or one number")
    if len(given) != at.batch:
        raise ValueError(f"lengths: expected one for each of {at.batch} rows, got {len(given)}")
    held, wanted = (at.document >= 0).sum(dim=1), given.to(at.document.device)
    if readable(held) and readable(wanted):
        wrong = ((wanted < 0) | (wanted > held)).nonzero().flatten().tolist()
        if wrong:
            row = wrong[0]
            raise ValueError(f"lengths: row {row} holds {held[row]} tokens, expected 0 to {held[row]}, got {wanted[row]}")
    else:
        check_accepted(wanted, (wanted >= 0) & (wanted <= held), "lengths: a row does not hold {} tokens")
    return given


def first_of_each_row(at: Positions, lengths: int | Tensor | Sequence[int]) -> Positions:
    """The same columns, with -1 as the document of all but the first tokens of every row. Raises as `crop`."""
    wanted, real = _lengths(at, lengths).to(at.document.device), at.document >= 0
    order = at.order.masked_fill(~real, torch.iinfo(torch.int64).max)
    place = order.argsort(dim=1, stable=True).argsort(dim=1)
    document = at.document.masked_fill(~(real & (place < wanted[:, None])), -1)
    consecutive: Consecutive | None = None if at.consecutive_in is None else "document"
    return Positions(at.coords, at.order, document, consecutive, at.tables, at.states)


def places(at: Positions) -> tuple[Int[Tensor, "b s"], Int[Tensor, "b s"]]:
    """The place of every token in its document, in causal order from 0, and how many tokens the document has there."""
    index = by_document_and_order(at)
    document = at.document.gather(1, index)
    first, end = (torch.searchsorted(document, document, right=right) for right in (False, True))
    place, back = torch.arange(at.length, device=index.device) - first, index.argsort(dim=1)
    return place.gather(1, back), (end - first).gather(1, back)


def counted_anew(at: Positions) -> tuple[Positions, Int[Tensor, "b m"]]:
    """Tokens of every document at 0, 1, 2, … in causal order, without tables; and by how much each has moved."""
    if at.coords.ndim != 2 or at.coords.dtype != torch.int64:
        raise ValueError(
            f"renumber: expected tokens that are counted, got coordinates {at.coords.dtype} {list(at.coords.shape)}"
        )
    place, _ = places(at)
    stand = torch.arange(at.length, device=place.device)
    in_order = bool(((place == stand) & (at.document == 0) | (at.document < 0)).all())
    anew = Positions(place, place, at.document, "document" if in_order else None, states=at.states)
    return anew.narrow(0, at.length), (place - at.coords).masked_fill(at.document < 0, 0)


def taken_at(at: Positions, index: Int[Tensor, "b m"], real: Bool[Tensor, "b m"]) -> Positions:
    """The tokens of every row at its own indices; those that are not real become padding."""
    at = _pytree.tree_map(lambda tensor: taken(tensor, index), at)
    return Positions(at.coords, at.order, at.document.masked_fill(~real, -1), None, at.tables, at.states)


def taken_columns(
    x: Num[Tensor, "b g s d"], index: Int[Tensor, "#b m"], after: Num[Tensor, "b g t d"] | None = None
) -> Num[Tensor, "b g n d"]:
    """The columns at growing indices, and those `after` them, in one copy."""
    more = [] if after is None else [after]
    if not readable(index) or not bool((index == index[:1]).all()):
        return torch.cat([x.gather(2, index[:, None, :, None].expand(*x.shape[:2], -1, x.shape[3])), *more], dim=2)
    columns = index[0] if len(index) else torch.arange(index.shape[1])
    ends = [0, *((columns.diff() != 1).nonzero().flatten() + 1).tolist(), len(columns)]
    if len(ends) > FEW:
        return torch.cat([x[:, :, columns], *more], dim=2)
    runs = [x[:, :, int(columns[a]) : int(columns[b - 1]) + 1] for a, b in itertools.pairwise(ends) if b > a]
    return torch.cat([*runs, *more] or [x[:, :, :0]], dim=2)


def order_of_real(at: Positions) -> Int[Tensor, "b s"]:
    """The order of every token, -1 of padding. Raises ValueError where two tokens of a row share one, and below 0."""
    real = at.document >= 0
    order = at.order.masked_fill(~real, -1)
    placed = order.sort(dim=1).values
    if bool(((placed.diff(dim=1) == 0) & (placed[:, 1:] >= 0)).any()) or bool((real & (at.order < 0)).any()):
        raise ValueError("cache: two tokens of a row have the same order, or one below 0; number them apart")
    return order


def spread(x: Num[Tensor, "b s *d"], column: Int[Tensor, "b s"], size: int, empty: float = 0) -> Num[Tensor, "b n *d"]:
    """Tokens in `size` columns, each in its own; one of column -1 goes, and other columns hold `empty`."""
    room = x.new_full((x.shape[0], size, *x.shape[2:]), empty)
    rows, held = (column >= 0).nonzero(as_tuple=True)
    room[rows, column[rows, held]] = x.detach()[rows, held]
    return room


def spread_heads(x: Num[Tensor, "b g s d"], column: Int[Tensor, "b s"], size: int) -> Num[Tensor, "b g n d"]:
    """The same, head by head: attention reads it half as long as one that is stored token by token."""
    return spread(x.transpose(1, 2), column, size).transpose(1, 2).contiguous()


def spread_at(at: Positions, column: Int[Tensor, "b s"], size: int) -> Positions:
    """The positions of the same columns, with document -1 where no token is."""
    states = {owner: tuple(spread(x, column, size) for x in of_owner) for owner, of_owner in at.states.items()}
    coords, order = spread(at.coords, column, size), spread(at.order, column, size)
    return Positions(coords, order, spread(at.document, column, size, -1), states=states)


# Rows of a cache ------------------------------------------------------------------------------------------------------


def index_of_rows(rows: Tensor | Sequence[int], held: int) -> Tensor | slice:
    """A slice where the rows follow one another. Raises IndexError for one that there is not."""
    index = integers("rows", rows, "[n], rows of the cache")
    if not readable(index):
        check_accepted(index, (index >= 0) & (index < held), f"rows: there are rows 0 … {held - 1}, got {{}}")
        return index
    wrong = [row for row in index.tolist() if not 0 <= row < held]
    if wrong:
        raise IndexError(f"rows: the cache has rows 0 … {held - 1}, got {wrong[0]}")
    in_a_row = len(index) > 0 and bool((index.diff() == 1).all())
    return slice(int(index[0]), int(index[-1]) + 1) if in_a_row else index


def rows_of(x: Tensor, chosen: Tensor | slice) -> Tensor:
    return x[chosen] if isinstance(chosen, slice) else x.index_select(0, chosen.to(x.device))


def rows_at(at: Positions, held: int, chosen: Tensor | slice) -> Positions:
    """One row that serves all goes on to serve all."""
    count = chosen.stop - chosen.start if isinstance(chosen, slice) else len(chosen)

    def of(tensor: Tensor) -> Tensor:
        same = tensor.shape[0] == 1 or (tensor.stride(0) == 0 and tensor.shape[0] > 0)
        return tensor[:1].expand(count, *tensor.shape[1:]) if same else rows_of(tensor, chosen)

    chosen_rows: Positions = _pytree.tree_map(of, at.expand(held))
    return chosen_rows


# What an encoding says of its caches ----------------------------------------------------------------------------------


def parts_with_states(encoding: PositionalEncoding | None) -> list[ReadsEarlierTokens]:
    return [] if encoding is None else [part for part in encoding.modules() if isinstance(part, ReadsEarlierTokens)]


def check_states(encoding: PositionalEncoding | None, at: Positions, dropped: Bool[Tensor, "b s"]) -> None:
    """Raises ValueError where a token is dropped that the state of the next one is made of."""
    for part in parts_with_states(encoding):
        if part.earlier == 0 or not bool(dropped.any()):
            continue
        place, count = places(at)
        needed = dropped if part.earlier is None else dropped & (place >= count - part.earlier)
        if bool(needed.any()):
            row = int(needed.any(dim=1).nonzero()[0])
            latest = "all tokens" if part.earlier is None else f"the latest {part.earlier}"
            raise ValueError(
                f"keep: the next token's state of {label(part)} goes on from {latest} of a document, and row {row} drops "
                f"{'one' if part.earlier != 1 else 'it'}; keep what it goes on from"
            )


def rotating(encoding: PositionalEncoding | None) -> PositionalEncoding:
    """The encoding whose keys can be moved. Raises ValueError for one whose keys or states hold more than a rotation."""
    if encoding is None:
        raise ValueError("renumber: this cache does not know what rotated its keys; make it with its encoding")
    if "embed" in encoding.seams or parts_with_states(encoding):
        raise ValueError(
            f"renumber: keys of {label(encoding)} hold more than a rotation of their position, so that kept tokens cannot "
            "be moved; evict without renumber, or decode them again"
        )
    return encoding


def moved(
    keys: Float[Tensor, "b g t d"], values: Float[Tensor, "b g t d"], by: Num[Tensor, "b t"], encoding: PositionalEncoding
) -> tuple[Float[Tensor, "b g t d"], Float[Tensor, "b g t d"]]:
    """Cached keys, and values where they turn too, moved by so many positions: part by part of a Stack.

    Raises TypeError for a part that turns them otherwise than by rotations that add up.
    """
    for part in flat_parts([encoding]):
        if turned_by_position(part, keys[:1, :, :1], "key"):
            keys = rerotate(keys, by=by, encoding=part)
        if turned_by_position(part, values[:1, :, :1], "value"):
            values = rerotate(values, by=by, encoding=part)
    return keys, values


def turned_by_position(part: PositionalEncoding, token: Tensor, side: Side) -> bool:
    """Whether a part of the encoding changes keys, or values, by their position: a temperature changes queries only."""
    return part.rotate(token, Positions.arange(1, token.shape[2], device=token.device), side) is not token
