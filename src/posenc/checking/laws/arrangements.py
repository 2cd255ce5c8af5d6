"""The same tokens arranged otherwise: in chunks, packed, padded, beside others, sharded, shifted, by heads."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import get_args

import torch
from torch import Tensor

from posenc.checking.engine import Measured
from posenc.checking.errors import LawBroken, NotApplicable
from posenc.checking.laws.compare import close, difference, same, tolerance, within
from posenc.checking.laws.registry import breaks
from posenc.checking.laws.world import Setting, World
from posenc.encoding import PositionalEncoding, Side
from posenc.positions import Positions
from posenc.support.sharding import shard_index
from posenc.support.tensors import working_dtype

BEYOND_FLOAT32 = 2**24 + 1
FAR, APART = 2**20, 1009


@breaks("decode offset", batch=1, length=11)
def decode_equals_prefill(encoding: PositionalEncoding, setting: Setting) -> Iterator[Measured]:
    """Any chunking over a cache of rotated keys and values gives what one pass over all tokens gives.

    Rows start at positions of their own; some chunks are prepared and some are not.
    """
    if not setting.causal:
        raise NotApplicable("tokens are decoded one after another in causal attention only")
    world = World(setting)
    start = 3 * torch.arange(setting.batch, device=setting.device)
    expected = world.output(
        encoding, world.x, Positions.arange(setting.batch, setting.length, start, device=setting.device)
    )
    keys: list[Tensor] = []
    values: list[Tensor] = []
    seen: list[Positions] = []
    outputs, begin = [], 0
    for size in (5, 1, 1, 3, setting.length - 10):
        at = Positions.arange(setting.batch, size, start + begin, device=setting.device)
        if size == 1:
            at = Positions.decode(start + begin)
        if size != 3:
            at = encoding.prepare(at, working_dtype(setting.dtype))
        past = Positions.cat(seen) if seen else None
        q, k, v, at = world.heads(encoding, world.x[:, begin : begin + size], at, past)
        keys.append(encoding.rotate(k, at, "key"))
        values.append(encoding.rotate(v, at, "value"))
        seen.append(at)
        outputs.append(
            world.attend_rotated(
                encoding, encoding.rotate(q, at, "query"), torch.cat(keys, 2), torch.cat(values, 2), at, Positions.cat(seen)
            )
        )
        begin += size
    yield close(torch.cat(outputs, dim=2), expected, setting.dtype, "chunks 5, 1, 1, 3, rest")


@breaks("position ignored", batch=1, length=2)
def storage_order_does_not_matter(encoding: PositionalEncoding, setting: Setting) -> Iterator[Measured]:
    """Tokens stored in another order, each with its position, give the same outputs in that order."""
    world = World(setting)
    at = encoding.prepare(world.scattered(), working_dtype(setting.dtype))
    q, k, v, at = world.heads(encoding, world.x, at)
    whole = world.attend(encoding, q, k, v, at)
    order = torch.randperm(setting.length, generator=torch.Generator().manual_seed(setting.seed)).to(setting.device)
    mixed = world.attend(encoding, q[:, :, order], k[:, :, order], v[:, :, order], at.take(order))
    yield close(mixed, whole[:, :, order], setting.dtype, f"order {order.tolist()}")


@breaks("position ignored")
def listed_equals_counted(encoding: PositionalEncoding, setting: Setting) -> Iterator[Measured]:
    """Positions known to count up by one give what the same positions give when nothing is known of them.

    Tried from 0 and from the last positions; where all positions may move, from where float32 has no odd numbers. Each
    seam of one token is compared too, since an error that all tokens share would not show in attention.
    """
    world = World(setting)
    far = BEYOND_FLOAT32 if "shift_invariant" in encoding.traits else setting.max_positions - setting.length
    for start in (0, far):
        counted = Positions.arange(setting.batch, setting.length, start, device=setting.device)
        listed = Positions.at(counted.coords.clone())
        try:
            known = world.output(encoding, world.x, counted)
        except ValueError:
            if start == 0:
                raise
            continue  # the encoding refuses positions so far away
        try:
            expected = world.output(encoding, world.x, listed)
        except NotApplicable:  # a backend for consecutive positions only
            q, k, v, listed = world.heads(encoding, world.x, listed)
            expected = world.attend(encoding, q, k, v, listed, impl="reference")
        of_angle = 64 * torch.finfo(torch.float64).eps * start
        yield within(known, expected, tolerance(setting.dtype, expected) + of_angle, f"from {start}")
        listed = Positions.at(counted.coords.clone())
        every = torch.arange(setting.length, device=setting.device)
        for (seam, actual, _), (_, reference, _) in zip(
            world.rows(encoding, counted, every), world.rows(encoding, listed, every), strict=True
        ):
            allowed = tolerance(setting.dtype, reference) + of_angle
            yield within(actual, reference, allowed, f"{seam} from {start}")


@breaks("position ignored")
def joined_equals_listed(encoding: PositionalEncoding, setting: Setting) -> Iterator[Measured]:
    """Positions of a cache, joined part by part, give what the same positions give when they are listed.

    Tried where one row has a gap between the parts and the other has none, and where coordinates go on but the causal
    order begins again.
    """
    world = World(setting)
    dtype, rest = working_dtype(setting.dtype), setting.length - 5
    first = encoding.prepare(Positions.arange(setting.batch, 5, device=setting.device), dtype)
    gaps = 5 + 2 * (torch.arange(setting.batch, device=setting.device) % 2)
    parts = {
        "a gap in one row": Positions.arange(setting.batch, rest, gaps, device=setting.device),
        "order begins again": Positions.arange(setting.batch, rest, device=setting.device).shift(5),
    }
    for what, second in parts.items():
        second = encoding.prepare(second, dtype)
        joined = Positions.cat([first, second])
        q, k, v, joined = world.heads(encoding, world.x, joined)
        second = second.replaced(states=joined.narrow(5, setting.length).states)
        out = world.attend(encoding, q[:, :, 5:], k, v, second, joined)
        listed = Positions(joined.coords, joined.order, joined.document, states=joined.states)
        expected = world.attend(encoding, q[:, :, 5:], k, v, second, listed)
        yield close(out, expected, setting.dtype, what)


@breaks("strides", batch=1, length=2)
def strides_do_not_matter(encoding: PositionalEncoding, setting: Setting) -> Iterator[Measured]:
    """Tensors that lie otherwise in memory give the same: the result is one of numbers, not of strides."""
    world = World(setting)
    q, k, v, at = world.heads(encoding, world.x, world.scattered())
    wide = world.draw("wide", setting.batch, setting.length, setting.n_heads, setting.d_head + 3)
    for begin in (0, 1):  # transposed, not dense, and beginning at an odd address
        x = wide[..., begin : begin + setting.d_head].transpose(1, 2)
        for side in get_args(Side):
            turned, dense = encoding.rotate(x, at, side), encoding.rotate(x.contiguous(), at, side)
            yield same(turned, dense, f"rotate {side}")
    dense = world.attend(encoding, q.contiguous(), k.contiguous(), v.contiguous(), at)
    yield close(world.attend(encoding, q, k, v, at), dense, setting.dtype, "attention")
    q, k, v, at = world.heads(encoding, world.x[:1], Positions.arange(1, setting.length, device=setting.device))
    q, k, v = (x.contiguous() for x in (q, k, v))
    for first in (0, setting.length - 1):  # of consecutive tokens; the last is decoded
        queries = at if first == 0 else at.narrow(first, setting.length)
        dense = world.attend(encoding, q[:, :, first:], k, v, queries, at)
        of_q, of_k, of_v = (x.mT.contiguous().mT for x in (q[:, :, first:], k, v))  # [b, h, d, t] in memory
        apart = world.attend(encoding, of_q, of_k, of_v, queries, at)
        yield close(apart, dense, setting.dtype, f"attention from token {first}, channel by channel")


@breaks("packing", length=6)
def packed_equals_separate(encoding: PositionalEncoding, setting: Setting) -> Iterator[Measured]:
    """Documents in one row do not see each other and count from 0."""
    world = World(setting)
    ends = [0, 5, setting.length]
    x = world.x[:1]
    packed = world.output(encoding, x, Positions.packed(ends, device=setting.device))
    for begin, end in itertools.pairwise(ends):
        separate = world.output(encoding, x[:, begin:end], Positions.arange(1, end - begin, device=setting.device))
        yield close(packed[:, :, begin:end], separate, setting.dtype, f"document {begin}:{end}")
    q, k, v, at = world.heads(encoding, x, Positions.packed(ends, device=setting.device))
    first, second = slice(0, ends[1]), slice(ends[1], ends[2])
    elsewhere = world.attend(
        encoding, q[:, :, second], k[:, :, first], v[:, :, first], at.narrow(*ends[1:]), at.narrow(*ends[:2])
    )
    if bool(elsewhere.any()):
        raise LawBroken("queries see the keys of another document's part")


@breaks("padding", batch=1, length=7)
def padded_equals_unpadded(encoding: PositionalEncoding, setting: Setting) -> Iterator[Measured]:
    """Padding on either side changes nothing for real tokens, and padded rows stay finite."""
    world, pad = World(setting), 3
    unpadded = world.output(
        encoding, world.x[:, pad:-pad], Positions.arange(setting.batch, setting.length - 2 * pad, device=setting.device)
    )
    mask = torch.zeros(setting.batch, setting.length, dtype=torch.long, device=setting.device)
    mask[:, pad:-pad] = 1
    padded = world.output(encoding, world.x, Positions.from_mask(mask))
    if not bool(torch.isfinite(padded).all()):
        raise LawBroken("padded rows are not finite")
    yield close(padded[:, :, pad:-pad], unpadded, setting.dtype, "real tokens")


@breaks("padding", batch=1, length=7)
def rejected_drafts_do_not_matter(encoding: PositionalEncoding, setting: Setting) -> Iterator[Measured]:
    """Drafts that are rejected row by row, as padding within the row, change nothing for the tokens after them.

    Of three drafts even rows accept one and odd rows all. Tried in one pass, and over a cache that holds what was read of
    the drafts when they were tokens like others.
    """
    world, drafts = World(setting), setting.length - 2
    accepted = torch.ones(setting.batch, setting.length, dtype=torch.bool, device=setting.device)
    accepted[::2, drafts - 2 : drafts] = False
    rows = []
    for row, real in enumerate(accepted):
        at = Positions.arange(1, int(real.sum()), device=setting.device)
        rows.append(world.output(encoding, world.x[row : row + 1, real], at))
    together = world.output(encoding, world.x, Positions.from_mask(accepted))
    for row, (real, alone) in enumerate(zip(accepted, rows, strict=True)):
        yield close(together[row : row + 1, :, real], alone, setting.dtype, f"row {row} in one pass")
    if not setting.causal:
        return
    q, k, v, held = world.heads(
        encoding, world.x[:, :drafts], Positions.arange(setting.batch, drafts, device=setting.device)
    )
    k, v = encoding.rotate(k, held, "key"), encoding.rotate(v, held, "value")
    document = held.document.masked_fill(~accepted[:, :drafts], -1)
    held = Positions(held.coords, held.order, document, tables=held.tables, states=held.states)
    at = Positions.arange(setting.batch, 2, accepted[:, :drafts].sum(dim=1), device=setting.device)
    q, new_k, new_v, at = world.heads(encoding, world.x[:, drafts:], at, held)
    k = torch.cat([k, encoding.rotate(new_k, at, "key")], dim=2)
    v = torch.cat([v, encoding.rotate(new_v, at, "value")], dim=2)
    q = encoding.rotate(q, at, "query")
    out = world.attend_rotated(encoding, q, k, v, at, Positions.cat([held, at]))
    for row, alone in enumerate(rows):
        yield close(out[row : row + 1], alone[:, :, -2:], setting.dtype, f"row {row} over a cache")


@breaks("batch mates", length=1)
def batch_mates_do_not_matter(encoding: PositionalEncoding, setting: Setting) -> Iterator[Measured]:
    """A row gives the same alone as beside rows at other, longer positions."""
    world = World(setting)
    start = torch.tensor([0, setting.max_positions - setting.length], device=setting.device)
    together = world.output(encoding, world.x[:2], Positions.arange(2, setting.length, start, device=setting.device))
    for row in range(2):
        at = Positions.arange(1, setting.length, int(start[row]), device=setting.device)
        separate = world.output(encoding, world.x[row : row + 1], at)
        yield close(together[row : row + 1], separate, setting.dtype, f"row {row}")


@breaks("position ignored")
def sharded_equals_whole(encoding: PositionalEncoding, setting: Setting) -> Iterator[Measured]:
    """Queries split over ranks, keys gathered in rank order: scattered back, the same as unsharded."""
    world = World(setting)
    at = encoding.prepare(world.plain(), working_dtype(setting.dtype))
    whole = world.output(encoding, world.x, at)
    q, k, v, at = world.heads(encoding, world.x, at)
    for zigzag in (False, True):
        shards = [shard_index(setting.length, rank, 2, zigzag=zigzag).to(setting.device) for rank in range(2)]
        gathered = torch.cat(shards)
        for index in shards:
            at_q, at_k = at.take(index), at.take(gathered)
            part = world.attend(encoding, q[:, :, index], k[:, :, gathered], v[:, :, gathered], at_q, at_k)
            how = "zigzag" if zigzag else "contiguous"
            yield close(part, whole[:, :, index], setting.dtype, how)


@breaks("moved together")
def shift_invariance(encoding: PositionalEncoding, setting: Setting) -> Iterator[Measured]:
    """Moving every position by the same amount changes nothing where declared, and something where not.

    What a shift changes is looked for in float64, by the reference: of tokens side by side, by 37 positions and far away,
    then of tokens that stand far apart. A method may depend on the distance alone up to some position or distance.
    """
    if "shift_invariant" in encoding.traits:
        world = World(setting)
        shifted = world.output(encoding, world.x, world.plain().shift(37))
        expected = world.output(encoding, world.x, world.plain())
        yield close(shifted, expected, setting.dtype, "all positions + 37")
        return
    world, exact = World(replace(setting, dtype=torch.float64, impl="reference")), copy.deepcopy(encoding).double()
    apart = Positions.at(APART * world.plain().coords)
    for at, by in ((world.plain(), 37), (world.plain(), FAR), (apart, 37)):
        try:
            expected, shifted = (world.output(exact, world.x, positions) for positions in (at, at.shift(by)))
        except ValueError:
            if by == 37 and at is not apart:
                raise
            continue  # the encoding refuses positions so far away, or reals
        if difference(shifted, expected) > 8 * tolerance(torch.float64, expected):
            return
    raise LawBroken("does not declare it, yet a shift by 37 changes nothing", "undeclared trait")


@breaks("slices of heads")
def head_slices(encoding: PositionalEncoding, setting: Setting) -> Iterator[Measured]:
    """A tensor-parallel rank with its slice of the heads computes that slice of the whole."""
    world = World(replace(setting, n_kv_heads=setting.n_heads))
    plain = world.plain()
    x = encoding.embed(world.x, plain)
    q, k, v, at = world.heads(encoding, world.x, plain)
    whole = world.attend(encoding, q, k, v, at)
    half = setting.n_heads // 2
    for part in (slice(0, half), slice(half, setting.n_heads)):
        try:
            sliced = encoding.heads(part.start, part.stop)
        except NotImplementedError as why:  # its heads read one another
            raise NotApplicable(str(why)) from why
        out = world.attend(sliced, q[:, part], k[:, part], v[:, part], sliced.read_hidden(x, plain))
        reference = whole[:, part.start * encoding.query_copies : part.stop * encoding.query_copies]
        yield close(out, reference, setting.dtype, f"heads {part.start}:{part.stop}")
