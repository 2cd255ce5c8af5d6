"""Where the tokens of one side (queries or keys) of a call sit.

Legend: b batch (may be 1), t tokens, axes coordinate axes (absent for 1-D).

Positions are passed, never inferred from a length, an index, a tensor's rank or a cache. The builders below make them:

    Positions.arange(batch, length, start=0)    plain sequences, chunks of a prefill
    Positions.from_mask(mask)                   left or right padding
    Positions.packed(cu_seqlens)                several documents in one row
    Positions.decode(lengths)                   one new token per row, after so many real tokens
    Positions.within(segments)                  counted anew in every segment, which may be scattered
    Positions.grid(height, width)               images; Positions.grid(frames, height, width) videos
    Positions.joint(parts)                      text, images, class tokens one after the other
    Positions.pixels(mask)                      images padded to one size, as fractions of their own (DETR)
    Positions.mrope(position_ids)               several axes per token, as multimodal models give them
    Positions.randomized(batch, length, max_positions)   sorted random positions (Ruoss et al. 2023)
    Positions.at(coords)                        any coordinates, integers or reals

transformers/model_positions.py makes those of a Hugging Face model's call.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from posenc.support import checks, pytree
from posenc.support.checked import INT64, check_fields, checked, checked_on_failure
from posenc.support.checks import shown
from posenc.support.sharding import shard_index
from posenc.support.tensors import INTEGERS, check_mask, check_sum, coordinates, ends_of, integers, readable

if TYPE_CHECKING:
    from posenc.support.shapes import Bool, Int, Num

Consecutive = Literal["row", "document"]
KEPT = (torch.int64, torch.float64)  # the dtypes of coordinates
NO_TABLES: Mapping[str, tuple[Tensor, ...]] = {}


@dataclass(frozen=True, eq=False)
class Positions:
    """Coordinates, causal order and document of every token. A pytree: goes through compile, export and devices.

    coords       what an encoding reads: integers or reals, [b, t] or, with several axes, [b, t, axes]. Kept as int64 or
                 float64: narrower numbers are widened exactly. float16 and bfloat16 are refused, since they have rounded
                 positions already (from 2049 and 257 on)
    order        causal order, global over shards: a query sees keys of the same or a smaller order
    document     tokens see their own document only; -1 is padding, which no token sees
    consecutive_in
                 "row": coordinates and order rise by one from token to token; every row is document 0 without padding, so
                 that tokens of two such positions are of one document.
                 "document": they rise by one within each document; padding has document -1. None: not known. Set by the
                 builders that know it, kept by `shift`, dropped by `take`; never inferred from values, except that `cat`
                 of two such parts checks whether the second begins where the first ends. No tokens have none
    tables       what `encoding.prepare(at)` computed, by the identity of the encoding that computed it
    states       what `encoding.read_hidden(x, at, past)` took from hidden states, likewise; cached with the keys
    grid_sizes   of the image or video whose patches, all of them, these tokens are, after a prefix: `grid` without a start
                 knows it; dropped where tokens are picked, moved or joined, and in graphs, which serve every size

    Positions own their memory: the constructor and the builders copy what they are given.
    Raises ValueError for wrong shapes, TypeError for wrong dtypes, ValueError for NaN or infinite coordinates.
    """

    coords: Num[Tensor, "b t *axes"]
    order: Int[Tensor, "b t"]
    document: Int[Tensor, "b t"]
    consecutive_in: Consecutive | None = None
    tables: Mapping[str, tuple[Tensor, ...]] = field(default_factory=dict)
    states: Mapping[str, tuple[Tensor, ...]] = field(default_factory=dict)
    grid_sizes: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        for name in ("coords", "order", "document"):
            if not isinstance(getattr(self, name), Tensor) or getattr(self, name).is_nested:
                raise TypeError(f"{name}: expected a tensor, got {type(getattr(self, name)).__name__}")
        if self.coords.ndim not in (2, 3):
            raise ValueError(f"coords: expected [b, t] or [b, t, axes], got {list(self.coords.shape)}")
        for name in ("order", "document"):
            value = getattr(self, name)
            if value.dtype not in INTEGERS:
                raise TypeError(f"{name}: expected integers, got {value.dtype}")
            if value.shape != self.coords.shape[:2]:
                raise ValueError(
                    f"{name}: expected the [b, t] of coords, {list(self.coords.shape[:2])}, got {list(value.shape)}"
                )
            object.__setattr__(self, name, value.to(torch.int64, copy=True))
        object.__setattr__(self, "coords", coordinates(self.coords))
        check_fields(self)
        if not self.coords.shape[1]:
            object.__setattr__(self, "consecutive_in", None)

    # Builders -------------------------------------------------------------------------------------------------------

    @classmethod
    @checked_on_failure
    def arange(
        cls, batch: int, length: int, start: int | Int[Tensor, "b"] = 0, *, device: torch.device | str | None = None
    ) -> Positions:
        """Positions start, start+1, …, start+length-1 in every row; `start` may be one integer per row.

        Batch and length may be 0: an empty batch has positions too.
        """
        checks.whole(0, batch=batch, length=length)
        count = torch.arange(length, device=device)[None]
        if isinstance(start, Tensor):
            if start.dtype not in INTEGERS or start.shape != (batch,):
                raise ValueError(
                    f"start: expected an integer or integers [b={batch}], got {start.dtype} {list(start.shape)}"
                )
            coords = count.to(start.device) + start[:, None].long()
            check_sum(coords, start[:, None])
        else:
            if isinstance(start, float):
                raise TypeError(
                    f"start: expected an integer, got {start}; real ones go to Positions.at(), after a cache with seen="
                )
            checks.whole(-INT64 - 1, start=start)
            if start > INT64 // 2 and start + length - 1 > INT64:
                raise ValueError(f"start, length: positions {start} … {start + length - 1} do not fit in int64")
            coords = (count + start).expand(batch, length)
        document = torch.zeros_like(coords[:1]).expand(batch, length)
        return _made(coords, coords, document, consecutive_in="row" if length else None)

    @classmethod
    @checked_on_failure
    def at(cls, coords: Num[Tensor, "b t *axes"], *, seen: int = 0) -> Positions:
        """Any coordinates, in the causal order in which the tokens stand; one document, no padding.

        seen   tokens of each row that stand before these: those that a cache holds
        """
        if not isinstance(coords, Tensor) or coords.ndim < 2:
            raise ValueError("coords: expected a tensor [b, t] or [b, t, axes]; positions of one row are coords[None]")
        if coords.ndim > 3:
            raise ValueError(f"coords: expected [b, t] or [b, t, axes], got {list(coords.shape)}")
        checks.whole(0, seen=seen)
        if seen > INT64 - coords.shape[1]:
            raise ValueError(f"seen: expected a number that the order of {coords.shape[1]} tokens fits after, got {seen}")
        return _in_order(coordinates(coords), seen=seen)

    @classmethod
    @checked_on_failure
    def from_mask(cls, mask: Num[Tensor, "b t"] | Bool[Tensor, "b t"]) -> Positions:
        """Real tokens (1 or True) are counted 0, 1, 2, … in each row; padding (0 or False) may stand on either side."""
        check_mask(mask, "[b, t]")
        real = mask.bool()
        count = (real.long().cumsum(dim=1) - 1).clamp(min=0)
        return _made(count, count, real.long() - 1, consecutive_in="document" if mask.shape[1] else None)

    @classmethod
    @checked_on_failure
    def packed(
        cls, cu_seqlens: Int[Tensor, "n+1"] | Sequence[int], *, device: torch.device | str | None = None
    ) -> Positions:
        """Documents one after the other in one row, positions restarting at 0: [0, 2, 5] holds two, of 2 and 3 tokens."""
        ends = ends_of(cu_seqlens)
        if len(ends) < 2 or ends[0] != 0 or any(b <= a for a, b in itertools.pairwise(ends)):
            raise ValueError(f"cu_seqlens: expected 0 and then growing ends such as [0, 2, 5], got {ends}")
        lengths = [b - a for a, b in itertools.pairwise(ends)]
        order = torch.arange(ends[-1], device=device)
        document = torch.repeat_interleave(torch.arange(len(lengths), device=device), torch.tensor(lengths, device=device))
        coords = order - torch.tensor(ends[:-1], device=device)[document]
        return _made(coords[None], order[None], document[None], consecutive_in="document")

    @classmethod
    @checked_on_failure
    def decode(cls, lengths: Int[Tensor, "b"] | Sequence[int], *, device: torch.device | str | None = None) -> Positions:
        """One new token per row, after `lengths` real tokens already seen in that row: its position is that length.

        Padding is no real token: of a prompt with a mask, lengths are mask.sum(dim=1), not the width of the batch.
        """
        count = integers("lengths", lengths, "[b]", device).unsqueeze(1)
        if readable(count) and count.numel():
            least, most = map(int, count.aminmax())
            if least < 0:
                raise ValueError(f"lengths: expected tokens already seen, 0 or more, got {least}")
            if least == most:
                count = count[:1].expand_as(count)  # one row, which repeats
        return _made(count, count, torch.zeros_like(count[:1]).expand_as(count), consecutive_in="row")

    @classmethod
    @checked_on_failure
    def within(cls, segments: Int[Tensor, "b t"]) -> Positions:
        """Counted from the first token of the same segment number in the row: the tokens of a cell in TAPAS.

        One document: segments see each other. Herzig et al. 2020 (TAPAS), section 2, in their code.
        """
        if not isinstance(segments, Tensor) or segments.ndim != 2 or segments.dtype not in INTEGERS:
            raise ValueError("segments: expected an integer tensor [b, t], one number for each segment")
        if not segments.shape[1]:
            raise ValueError("segments: expected at least one token, got none")
        first = (segments[:, :, None] == segments[:, None, :]).int().argmax(dim=-1)  # [b, t]
        return _in_order(torch.arange(segments.shape[1], device=segments.device) - first)

    @classmethod
    @checked
    def grid(
        cls,
        *sizes: int,
        start: Sequence[int] | None = None,
        batch: int = 1,
        prefix: int = 0,
        sized: bool = False,
        device: torch.device | str | None = None,
    ) -> Positions:
        """Patches of an image row by row, grid(height, width); of a video frame by frame, grid(frames, height, width).

        sizes   tokens along each axis, from the slowest; coords [b, product of sizes, axes] are (y, x), (frame, y, x), …
        start   coordinates of the first patch, one for each axis: of a part of an image. Left out: zeros, of a whole one
        prefix  tokens that are no patches (CLS) come first, the k-th at (-1, k), followed by zeros where there are more
                axes. Tables have rows for them; a rotation turns them: joint([prefix, grid]) leaves them as they are
        sized   the sizes are coordinates too, after the others: (y, x, height, width)

        Raises ValueError for fewer than two sizes, one that is not positive, and starts that are not one for each axis.
        """
        if len(sizes) < 2:
            raise ValueError(f"sizes: expected (height, width) or (frames, height, width), got {sizes}")
        for size in sizes:
            checks.whole(sizes=size)
        first = (0,) * len(sizes) if start is None else tuple(start)
        if len(first) != len(sizes):
            raise ValueError(f"start: expected {len(sizes)} whole numbers, one for each axis, got {first}")
        axes = (torch.arange(size, device=device) + at for size, at in zip(sizes, first, strict=True))
        coords = torch.cartesian_prod(*axes)
        before = torch.zeros(prefix, len(sizes), dtype=torch.int64, device=device)
        before[:, 0], before[:, 1] = -1, torch.arange(prefix, device=device)
        coords = torch.cat([before, coords])
        if sized:
            coords = torch.cat([coords, torch.tensor(sizes, device=device).expand(len(coords), -1)], dim=-1)
        at = _in_order(coords[None].expand(batch, -1, -1))
        object.__setattr__(at, "grid_sizes", sizes if start is None else None)
        return at

    @classmethod
    @checked_on_failure
    def joint(cls, parts: Sequence[Positions | int]) -> Positions:
        """One sequence of several parts, in the causal order in which they stand: text and images, class token and patches.

        parts  positions with the same rows and axes; a number n stands for n tokens at the origin, where every coordinate
               is 0, so that a rotation leaves them as they are: text of FLUX, class and register tokens of DINOv3

        Documents are those of the parts; tables and states are dropped. Whole and real coordinates become real.
        Raises ValueError for parts that do not fit together, and where none is Positions.
        """
        whole = [part for part in parts if isinstance(part, Positions)]
        if not whole:
            raise ValueError(
                f"parts: expected at least one Positions, which says how many axes there are, got {shown(parts)}"
            )
        like = whole[0].coords
        for part in parts:
            if not isinstance(part, Positions):
                checks.whole(0, parts=part)
        positions = [
            part if isinstance(part, Positions) else cls.at(like.new_zeros(like.shape[0], part, *like.shape[2:]))
            for part in parts
        ]
        every = cls.cat([_made(part.coords, part.order, part.document) for part in positions])
        return _in_order(every.coords, every.document)

    @classmethod
    @checked
    def pixels(
        cls, mask: Num[Tensor, "b h w"] | Bool[Tensor, "b h w"], *, span: float | None = 2 * math.pi, centred: bool = False
    ) -> Positions:
        """Pixels counted from 1 along real ones (1 or True); coords [b, h·w, 2] are (y, x), masked pixels are padding.

        count / (last count + 1e-6) · span, real; `centred` takes the middle of the pixel, count - ½ (Deformable DETR);
        span=None leaves the integer counts. Carion et al. 2020 (DETR), appendix A.4 and code.
        """
        check_mask(mask, "[b, h, w]")
        if centred and span is None:
            raise ValueError("centred: counts without a span are whole numbers; give a span")
        if 0 in mask.shape:
            raise ValueError(f"mask: expected at least one pixel, got {list(mask.shape)}")
        seen = mask.bool()
        counts = []
        for axis in (1, 2):
            count = seen.long().cumsum(dim=axis)
            if span is not None:
                last = count.narrow(axis, count.shape[axis] - 1, 1).double()
                count = (count.double() - (0.5 if centred else 0.0)) / (last + 1e-6) * span
            counts.append(count.flatten(1))
        coords = torch.stack(counts, dim=-1)
        return _in_order(coords, document=seen.flatten(1).long() - 1)

    @classmethod
    @checked_on_failure
    def mrope(cls, position_ids: Num[Tensor, "axes b t"]) -> Positions:
        """Several axes per token, axes first as multimodal models hand them over (time, height, width)."""
        if not isinstance(position_ids, Tensor) or position_ids.ndim != 3:
            raise ValueError("position_ids: expected a tensor [axes, b, t]")
        return _in_order(coordinates(position_ids.movedim(0, -1), "position_ids"))

    @classmethod
    @checked
    def randomized(
        cls,
        batch: int,
        length: int,
        max_positions: int,
        *,
        generator: torch.Generator | None = None,
        device: torch.device | str | None = None,
    ) -> Positions:
        """A sorted random subset of 0 … max_positions-1 for every row, drawn anew at each call.

        Trained so, any encoding has seen every position it will meet up to max_positions.
        Ruoss et al. 2023, "Randomized Positional Encodings Boost Length Generalization of Transformers", section 3.
        """
        if length > max_positions:
            raise ValueError(f"max_positions: expected at least length={length}, got {max_positions}")
        drawn = torch.rand(batch, max_positions, generator=generator, device=device).argsort(dim=1)[:, :length]
        return _in_order(drawn.sort(dim=1).values)

    # Views ----------------------------------------------------------------------------------------------------------

    @property
    def batch(self) -> int:
        return self.coords.shape[0]

    @property
    def length(self) -> int:
        return self.coords.shape[1]

    @checked_on_failure
    def shift(self, by: int | float | Num[Tensor, "b"] | Num[Tensor, ""]) -> Positions:
        """The same tokens at coordinates moved by `by` (one number, or one per row). Drops tables and states.

        Integers moved by integers stay integers. Raises ValueError for another number of rows, and where int64 overflows.
        """
        if isinstance(by, Tensor):
            if by.ndim > 1 or (by.numel() != 1 and by.shape != (self.batch,)):
                raise ValueError(f"by: expected a number, or one for each of {self.batch} rows, got {shown(by)}")
            moved: Tensor | float = coordinates(by.reshape(-1, *[1] * (self.coords.ndim - 1)), "by")
        else:
            checks.finite(by=by)
            if isinstance(by, int) and not -INT64 <= by <= INT64:
                raise ValueError(f"by: expected an integer of int64, got {by}")
            moved = by
        coords = (self.coords.double() if isinstance(by, float) else self.coords) + moved
        check_sum(coords, moved)
        return _made(coords, self.order, self.document, self.consecutive_in)

    def replaced(
        self,
        coords: Num[Tensor, "b t *axes"] | None = None,
        tables: Mapping[str, tuple[Tensor, ...]] | None = None,
        states: Mapping[str, tuple[Tensor, ...]] | None = None,
    ) -> Positions:
        """The same tokens with other coordinates, tables or states, for encodings: nothing is copied.

        Of other coordinates it is not known whether they are consecutive.
        """
        if coords is not None:
            dense = isinstance(coords, Tensor) and coords.layout is torch.strided and not coords.is_nested
            if not dense or coords.dtype not in KEPT or coords.ndim < 2:
                raise TypeError(f"coords: expected [b, t, …] in int64 or float64, got {shown(coords)}")
        for name, carried in (("tables", tables), ("states", states)):
            if carried is not None and (
                not isinstance(carried, Mapping) or not all(isinstance(of_owner, tuple) for of_owner in carried.values())
            ):
                raise TypeError(f"{name}: expected a dict of tuples of tensors, got {shown(carried)}")
        return _made(
            self.coords if coords is None else coords,
            self.order,
            self.document,
            self.consecutive_in if coords is None else None,
            self.tables if tables is None else tables,
            self.states if states is None else states,
            _sizes(self) if coords is None else None,
        )

    @checked_on_failure
    def take(self, index: Int[Tensor, "n"] | Sequence[int]) -> Positions:
        """The tokens at `index` along t, tables and states gathered with them. Raises IndexError for one out of range."""
        index = integers("index", index, "[n]", self.coords.device)
        if readable(index) and index.numel() and not -self.length <= int(index.min()) <= int(index.max()) < self.length:
            raise IndexError(f"index: there are tokens 0 … {self.length - 1}, got {index.min()} … {index.max()}")
        return _made(
            self.coords[:, index],
            self.order[:, index],
            self.document[:, index],
            tables=_each(self.tables, lambda table: table[:, index]),
            states=_each(self.states, lambda state: state[:, index]),
        )

    @checked
    def narrow(self, start: int, stop: int) -> Positions:
        """The tokens start … stop-1 with their tables and states, without copying. They are consecutive if all tokens are.

        Tokens of document 0 alone are seen to be consecutive in the row: in eager code on the CPU.
        """
        part = slice(start, stop)
        document, consecutive_in = self.document[:, part], self.consecutive_in
        if not document.shape[1]:
            consecutive_in = None
        elif consecutive_in == "document" and readable(document) and document.numel() and not bool(document.any()):
            consecutive_in = "row"
        return _made(
            self.coords[:, part],
            self.order[:, part],
            document,
            consecutive_in,
            _each(self.tables, lambda table: table[:, part]),
            _each(self.states, lambda state: state[:, part]),
        )

    def single_document(self) -> Positions:
        """The tokens of one document, with document number 0 and marked as consecutive in the row.

        For attention of a document to itself. Nothing is checked: the tokens must be one document without padding, and
        count up by one from token to token.
        """
        numbers = torch.zeros_like(self.document[:1]).expand_as(self.document)
        return _made(self.coords, self.order, numbers, "row", self.tables, self.states)

    @checked
    def rows(self, start: int, stop: int) -> Positions:
        """The rows start … stop-1 of the batch, without copying."""
        return _map(self, lambda tensor: tensor[start:stop])

    @checked
    def shard(self, rank: int, size: int, *, zigzag: bool = False, cu_seqlens: Sequence[int] | None = None) -> Positions:
        """The tokens that context-parallel rank `rank` of `size` holds; `shard_index` says which they are."""
        return self.take(shard_index(self.length, rank, size, zigzag=zigzag, cu_seqlens=cu_seqlens).to(self.coords.device))

    @staticmethod
    @checked_on_failure
    def cat(parts: Sequence[Positions]) -> Positions:
        """Tokens one after the other along t, as a growing key-value cache holds them.

        Tables and states are kept where all parts have them in one dtype and size; tables are otherwise computed again.
        Parts that are consecutive stay so where each is seen to begin where the one before ends: in eager code on the CPU.
        """
        if not parts:
            raise ValueError("parts: expected at least one Positions, got none")
        for part in parts:
            if not isinstance(part, Positions):
                raise TypeError(f"parts: expected Positions, got {shown(part)}")
            if part.coords.device != parts[0].coords.device:
                raise ValueError(f"parts: expected one device, got {part.coords.device} and {parts[0].coords.device}")
            if part.batch != parts[0].batch or part.coords.shape[2:] != parts[0].coords.shape[2:]:
                raise ValueError(
                    f"parts: expected coords of one batch and the same axes, got {list(part.coords.shape)} beside "
                    f"{list(parts[0].coords.shape)}; expand(batch) gives one row to all"
                )
        if ends := _counted_on(parts):
            coords = torch.arange(*ends)[None].expand(parts[0].coords.shape[0], -1)
            return _made(coords, coords, torch.zeros_like(coords[:1]).expand_as(coords), "row")
        fields = [(part.coords, part.order, part.document) for part in parts]
        coords, order, document = (torch.cat(tensors, dim=1) for tensors in zip(*fields, strict=True))
        consecutive_in: Consecutive | None = "row" if _is_one_run(parts) else None
        tables, states = _joined([part.tables for part in parts]), _joined([part.states for part in parts])
        return _made(coords, order, document, consecutive_in, tables, states)

    @checked_on_failure
    def expand(self, batch: int) -> Positions:
        """The same positions for `batch` rows, without copying."""
        if self.batch == batch:
            return self
        if self.batch != 1:
            raise ValueError(f"positions: have {self.batch} rows, cannot serve a batch of {batch}")
        return _map(self, lambda tensor: tensor.expand(batch, *tensor.shape[1:]))

    @checked
    def to(self, device: torch.device | str) -> Positions:
        return _map(self, lambda tensor: tensor.to(device))


def may_attend(at_q: Positions, at_k: Positions, causal: bool) -> Bool[Tensor, "b 1 i j"]:
    """Which query may see which key: same document, no padding and, if causal, a key not after the query."""
    query, key = at_q.document[:, None, :, None], at_k.document[:, None, None, :]
    allowed = (query == key) & (query >= 0)
    if causal:
        allowed = allowed & (at_q.order[:, None, :, None] >= at_k.order[:, None, None, :])
    return allowed


def repeat_one_row(*sides: Positions) -> bool:
    """Whether each of these has the same positions in all rows of a batch: arange() and expand() repeat one row without
    copying, and the memory layout shows it. While a graph is made the answer is False, since a graph serves any layout."""
    if torch.compiler.is_compiling() or torch._C._len_torch_dispatch_stack():
        return False
    tensors = (tensor for at in sides for tensor in (at.coords, at.order, at.document))
    return sides[0].batch > 1 and all(tensor.stride(0) == 0 for tensor in tensors)


def own_rows(b: Int[Tensor, "..."], at_q: Positions, at_k: Positions) -> Int[Tensor, "..."]:
    """b of a BiasFn that reads positions alone, or 0 where all rows have the same: it is then computed once for a batch.
    A backend that asks for one pair at a time keeps its b."""
    return b.new_zeros([1] * b.ndim) if b.ndim and repeat_one_row(at_q, at_k) else b


def distinct_rows(at_q: Positions, at_k: Positions) -> tuple[Positions, Positions]:
    """One row of each where both repeat one row, otherwise the same positions."""
    return (at_q.rows(0, 1), at_k.rows(0, 1)) if repeat_one_row(at_q, at_k) else (at_q, at_k)


def _counted_on(parts: Sequence[Positions]) -> tuple[int, int] | None:
    """The ends of a run through all parts that is the same in every row, so that none of it is copied. None: not seen."""
    ends: list[int] = []
    for part in parts:
        at = part.coords
        counted = part.consecutive_in == "row" and part.order is at and at.numel() and not (part.tables or part.states)
        if not counted or (at.shape[0] > 1 and at.stride(0)) or not readable(at) or ends[1:] not in ([], [int(at[0, 0])]):
            return None
        ends = [*(ends or [int(at[0, 0])])[:1], int(at[0, -1]) + 1]
    return ends[0], ends[1]


def _is_one_run(parts: Sequence[Positions]) -> bool:
    """Whether all parts are consecutive, and each begins in every row where the one before ends; empty ones aside."""
    parts = [part for part in parts if part.length]
    consecutive = bool(parts) and all(part.consecutive_in == "row" for part in parts)
    return consecutive and all(itertools.starmap(_goes_on, itertools.pairwise(parts)))


def _goes_on(before: Positions, after: Positions) -> bool:
    if not readable(before.coords) or not readable(after.coords):
        return False
    counted = (after.coords[:, 0] - before.coords[:, -1] == 1) & (after.order[:, 0] - before.order[:, -1] == 1)
    return bool((counted & (after.document[:, 0] == before.document[:, -1])).all())


def _made(
    coords: Tensor,
    order: Tensor,
    document: Tensor,
    consecutive_in: Consecutive | None = None,
    tables: Mapping[str, tuple[Tensor, ...]] = NO_TABLES,
    states: Mapping[str, tuple[Tensor, ...]] = NO_TABLES,
    grid_sizes: tuple[int, ...] | None = None,
) -> Positions:
    """Positions of these very tensors, which are not copied or checked; a leaf of a pytree may be a specification."""
    at, values = object.__new__(Positions), (coords, order, document, consecutive_in, tables, states, grid_sizes)
    fields = dict(zip(Positions.__dataclass_fields__, values, strict=True))
    if not torch.compiler.is_compiling():  # the decoding of one token makes several
        at.__dict__.update(fields)
        return at
    for name, value in fields.items():
        object.__setattr__(at, name, value)
    return at


def _each(tables: Mapping[str, tuple[Tensor, ...]], change: Callable[[Tensor], Tensor]) -> dict[str, tuple[Tensor, ...]]:
    return {owner: tuple(map(change, of_owner)) for owner, of_owner in tables.items()}


def _joined(parts: Sequence[Mapping[str, tuple[Tensor, ...]]]) -> dict[str, tuple[Tensor, ...]]:
    """Along t, of the owners that every part has in one dtype and, apart from t, one shape."""
    kinds = [{owner: (first.dtype, first.shape[2:]) for owner, (first, *_) in part.items()} for part in parts]
    owners = [owner for owner, kind in kinds[0].items() if all(kind == of_part.get(owner) for of_part in kinds)]
    return {
        owner: tuple(torch.cat(table, dim=1) for table in zip(*(part[owner] for part in parts), strict=True))
        for owner in owners
    }


def _in_order(coords: Tensor, document: Tensor | None = None, seen: int = 0) -> Positions:
    """Tokens in the causal order in which they stand, after `seen` others; one document unless `document` says more."""
    order = torch.arange(seen, seen + coords.shape[1], device=coords.device)[None].expand(coords.shape[:2])
    return _made(coords, order, torch.zeros_like(order) if document is None else document)


def _map(at: Positions, change: Callable[[Tensor], Tensor]) -> Positions:
    leaves, context = pytree.parts_of(at)
    mapped: Positions = pytree.rebuilt(_made, [change(leaf) for leaf in leaves], context)
    object.__setattr__(mapped, "grid_sizes", _sizes(at))
    return mapped


def _sizes(at: Positions) -> tuple[int, ...] | None:
    """Of the grid, in eager code alone: a graph serves images of any size."""
    return None if torch.compiler.is_compiling() else at.grid_sizes


pytree.register(Positions, _made)
