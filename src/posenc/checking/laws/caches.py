"""What is done to a cache: tokens rolled back, dropped, kept in a ring, rows reordered. Each row is as if it were alone.

Rows have prompts of other lengths, padded on the left and on the right. What is expected comes from `posenc.attend` with
keys that no cache has held, or from a pass over a row by itself.

Legend: b batch, t tokens, d d_model.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from posenc.attention.cache import KeyValueCache, PagedCache
from posenc.attention.module import Attention
from posenc.checking.engine import Measured
from posenc.checking.errors import NotApplicable
from posenc.checking.laws.attention_module import with_projections_of
from posenc.checking.laws.compare import close
from posenc.checking.laws.registry import breaks
from posenc.checking.laws.world import Setting, World
from posenc.encoding import PositionalEncoding
from posenc.positions import Positions

SIDES = ("right", "left")
DRAFTS, LATER, BLOCK = 3, 2, 4
CAPACITY, SINKS = 7, 2


class Rows:
    """A batch whose rows have prompts of other lengths, decoded by the module: `x[row]` is what each row reads in turn."""

    def __init__(self, module: Attention, setting: Setting, longest: int, side: str) -> None:
        self.world, self.module, self.setting = World(setting), module, setting
        self.encoding, self.writes = module.encoding, False  # whether the cache is written to, without gradients
        self.x, self.read = self.world.x, [longest - row % 2 for row in range(setting.batch)]
        pad = self.world.draw("padding", 1, 1, setting.d_model)[0]
        prompts, masks = [], []
        for row, length in enumerate(self.read):
            padding = [pad] * (longest - length)
            real, mask = [self.x[row, :length]], [0] * len(padding)
            prompts.append(torch.cat([*padding, *real] if side == "left" else [*real, *padding]))
            masks.append([*mask, *[1] * length] if side == "left" else [*[1] * length, *mask])
        at = Positions.from_mask(torch.tensor(masks, device=setting.device))
        self.out, self.cache = self.decoded(torch.stack(prompts), at, None)

    def decoded(self, x: Tensor, at: Positions, cache: KeyValueCache | None) -> tuple[Tensor, KeyValueCache]:
        """Raises NotApplicable where the backend that was asked for by name refuses."""
        if isinstance(cache, PagedCache):
            cache = cache.reserve([self.setting.length] * len(x))
        try:
            with torch.set_grad_enabled(torch.is_grad_enabled() and not self.writes):
                return self.module.decode(x, at, cache, impl=self.setting.impl)
        except ValueError as error:
            if "use impl=" in str(error):
                raise NotApplicable(str(error)) from error
            raise

    def step(self, tokens: int) -> Tensor:
        """The next tokens of every row, [b, t, d]."""
        x = torch.stack([self.x[row, n : n + tokens] for row, n in enumerate(self.read)])
        starts = torch.tensor(self.read, device=self.setting.device)
        out, self.cache = self.decoded(x, Positions.arange(len(x), tokens, starts), self.cache)
        self.read = [n + tokens for n in self.read]
        return out

    def alone(self, row: int, tokens: Tensor) -> Tensor:
        """One pass over these tokens of a row by itself, [1, t, d]."""
        at = Positions.arange(1, len(tokens), device=self.setting.device)
        return self.world.output(self.encoding, tokens[None], at).transpose(1, 2).flatten(2)

    def heads(self, row: int, length: int) -> tuple[Tensor, Tensor, Tensor, Positions]:
        """Queries, keys and values of a row that no cache has held, not rotated, with their positions and states."""
        at = Positions.arange(1, length, device=self.setting.device)
        return self.world.heads(self.encoding, self.x[row : row + 1, :length], at)

    def attended(self, heads: tuple[Tensor, Tensor, Tensor, Positions], query: int, kept: list[int]) -> Tensor:
        """One token over the kept ones at the positions that all have, [1, 1, d]."""
        q, k, v, at = heads
        out = self.world.attend(
            self.encoding, q[:, :, [query]], k[:, :, kept], v[:, :, kept], at.take([query]), at.take(kept)
        )
        return out.transpose(1, 2).flatten(2)


def _module(encoding: PositionalEncoding, setting: Setting) -> Attention:
    if not setting.causal:
        raise NotApplicable("tokens are decoded one after another in causal attention only")
    if "local" not in encoding.traits:
        raise NotApplicable("a cache does not hold the neighbours that it reads")
    return with_projections_of(World(setting), encoding)


def _refused(call: Any) -> Any:
    """The cache, or None where it is refused."""
    try:
        cache = call()
    except (TypeError, ValueError):
        return None
    return cache


@breaks("rolled back", batch=1, length=12)
def rollback_equals_never_seen(encoding: PositionalEncoding, setting: Setting) -> Iterator[Measured]:
    """Drafts that are rolled back row by row, twice, leave what a row gives that has never seen them.

    Of three drafts even rows accept one and odd rows all. After them every row goes on with tokens of its own. A static
    cache and a paged one, to which drafts are written, do the same.
    """
    module = _module(encoding, setting)
    for side, memory in itertools.product(SIDES, ("", "static, ", "paged, ")):
        rows = Rows(module, setting, setting.length - 8, side)
        kind = f"{memory}padded on the {side}"
        rows.writes = bool(memory)
        if memory == "static, ":
            rows.cache = rows.cache.static(setting.length)
        elif memory:
            blocks = setting.batch * -(-setting.length // BLOCK)
            paged = _refused(lambda rows=rows, blocks=blocks: rows.cache.paged(BLOCK, blocks))
            if paged is None:
                continue
            rows.cache = paged
        for _ in range(2):
            accepted = [n + (1 if row % 2 == 0 else DRAFTS) for row, n in enumerate(rows.read)]
            wrong = rows.world.draw("rejected", setting.batch, DRAFTS, setting.d_model)
            proposed = [
                torch.cat([rows.x[row, n : accepted[row]], wrong[row, accepted[row] - n :]])
                for row, n in enumerate(rows.read)
            ]
            starts = torch.tensor(rows.read, device=setting.device)
            at = Positions.arange(setting.batch, DRAFTS, starts)
            _, longer = rows.decoded(torch.stack(proposed), at, rows.cache)
            rows.cache, rows.read = longer.crop(accepted), accepted
        out = rows.step(LATER)
        for row, end in enumerate(rows.read):
            expected = rows.alone(row, rows.x[row, :end])[:, -LATER:]
            yield close(out[row : row + 1], expected, setting.dtype, f"row {row}, {kind}")


@breaks("dropped tokens", batch=1, length=12)
def evicted_equals_kept_alone(encoding: PositionalEncoding, setting: Setting) -> Iterator[Measured]:
    """Of dropped tokens nothing is left in one layer: the next token reads the kept ones alone, where they stood; and
    numbered anew, where keys can be turned, as if they had always stood there.

    Every row drops tokens of its own, between its first ones and its last five.
    """
    module, dropped = _module(encoding, setting), False
    for side in SIDES:
        for renumber in (False, True):
            rows = Rows(module, setting, setting.length - 2, side)
            kept = [[n for n in range(length) if not 1 + row % 2 <= n < length - 5] for row, length in enumerate(rows.read)]
            real = rows.cache.at.document >= 0
            keep = torch.zeros_like(real)
            for row, places in enumerate(kept):
                keep[row, real[row].nonzero().flatten()[places]] = True
            evicted = _refused(lambda keep=keep, rows=rows, renumber=renumber: rows.cache.evict(keep, renumber=renumber))
            if evicted is None:
                continue
            rows.cache, before, dropped = evicted, list(rows.read), True
            if not renumber:
                out = rows.step(1)
            else:
                next_x = torch.stack([rows.x[row, n : n + 1] for row, n in enumerate(before)])
                out, _ = rows.decoded(next_x, Positions.decode(evicted.lengths), evicted)
            for row, n in enumerate(before):
                what = f"row {row}, padded on the {side}{', numbered anew' if renumber else ''}"
                if renumber:
                    left = rows.x[row, [*kept[row], n]]
                    expected = rows.alone(row, left)[:, -1:]
                else:
                    expected = rows.attended(rows.heads(row, n + 1), n, [*kept[row], n])
                yield close(out[row : row + 1], expected, setting.dtype, what)
    if not dropped:
        raise NotApplicable("its caches refuse to drop these tokens")


@breaks("batch mates", batch=1, length=6)
def reordered_equals_rows(encoding: PositionalEncoding, setting: Setting) -> Iterator[Measured]:
    """Rows in another order, one of them twice, go on as each does alone: beams, and a prompt with several answers."""
    module = _module(encoding, setting)
    order = [setting.batch - 1, 0, 0]
    for side in SIDES:
        rows = Rows(module, setting, setting.length - 2, side)
        new = rows.world.draw("new", len(order), 1, setting.d_model)
        at = Positions.decode([rows.read[row] for row in order], device=setting.device)
        out, _ = rows.decoded(new, at, rows.cache.reorder(order))
        for beam, row in enumerate(order):
            tokens = torch.cat([rows.x[row, : rows.read[row]], new[beam]])
            expected = rows.alone(row, tokens)[:, -1:]
            yield close(out[beam : beam + 1], expected, setting.dtype, f"beam {beam} of row {row}, padded on the {side}")


@breaks("ring order", batch=1, length=12)
def ring_equals_window(encoding: PositionalEncoding, setting: Setting) -> Iterator[Measured]:
    """A ring of seven tokens with two sinks gives what the first two and the latest five give, for tokens one by one and
    several at once, and so does a static one; it never holds more."""
    module = _module(encoding, setting)
    for side, static in itertools.product(SIDES, (False, True)):
        rows = Rows(module, setting, 4, side)
        start = list(rows.read)
        try:
            ring = rows.cache.ring(CAPACITY, sinks=SINKS)
        except ValueError as refused:
            raise NotApplicable(str(refused)) from refused
        rows.cache, rows.writes = ring.static() if static else ring, static
        outputs = [rows.step(tokens) for tokens in (1, 3, 1, setting.length - 9)]
        yield Measured(float(max(rows.cache.k.shape[2] - CAPACITY, 0)), 0.0, "tokens held beyond the capacity")
        out, kind = torch.cat(outputs, dim=1), f"{'static, ' if static else ''}padded on the {side}"
        for row, first in enumerate(start):
            heads = rows.heads(row, rows.read[row])
            expected = [
                rows.attended(heads, n, [j for j in range(n + 1) if j < SINKS or j > n - (CAPACITY - SINKS)])
                for n in range(first, rows.read[row])
            ]
            yield close(out[row : row + 1], torch.cat(expected, dim=1), setting.dtype, f"row {row}, {kind}")
