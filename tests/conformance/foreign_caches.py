"""Caches of others, small: three that are right, and the mechanisms of public reports of the last year, one class each.

`posenc check tests/conformance/foreign_caches.py:NAME` tries one. Nothing of posenc is used.
Legend: b batch, g key heads, n slots, t new tokens, d channels of a head.
"""

import torch

WINDOW = 6
DECAY = 0.9


class Rows:
    """Memory of a fixed size, and how many tokens each row holds."""

    def write(self, cache, k, v, positions):
        batch, heads, count, width = k.shape
        if cache is None:
            nothing = k.new_zeros(batch, heads, 128, width)
            cache = {"k": nothing, "v": nothing.clone(), "lengths": [0] * batch}
        cache = cache | {"k": cache["k"].clone(), "v": cache["v"].clone(), "lengths": list(cache["lengths"])}
        for row, start in enumerate(self.starts(cache, count)):
            cache["k"][row, :, start : start + count], cache["v"][row, :, start : start + count] = k[row], v[row]
            cache["lengths"][row] = start + count
        return cache

    def starts(self, cache, count):
        return list(cache["lengths"])

    def read(self, cache):
        lengths = torch.tensor(self.extents(cache))[:, None]
        columns = torch.arange(int(lengths.max()))
        return (*(cache[x][:, :, : len(columns)] for x in "kv"), torch.where(columns < lengths, columns, -1))

    def extents(self, cache):
        return cache["lengths"]

    def crop(self, cache, lengths):
        return cache | {"lengths": list(lengths)}


class OneIndexForAll(Rows):
    """ml-explore/mlx-lm#873, February 2026: rows are cut by one index, so that all are cut to the shortest."""

    def crop(self, cache, lengths):
        return super().crop(cache, [min(lengths)] * len(lengths))


class TailsAreBlanked(Rows):
    """Blaizzy/mlx-vlm#1155, May 2026: rejected slots of a row are blanked, and all rows go on at one offset."""

    def crop(self, cache, lengths):
        cut = {x: cache[x].clone() for x in "kv"}
        for row, length in enumerate(lengths):
            cut["k"][row, :, length:], cut["v"][row, :, length:] = 0.0, 0.0
        return cache | cut | {"lengths": [max(lengths)] * len(lengths)}


class StartsOneLater(Rows):
    """microsoft/onnxruntime-genai#2354, July 2026: a decoded token is written one slot after the end of the prompt."""

    def starts(self, cache, count):
        return [length + (count == 1 and not cache.get("decoding")) for length in cache["lengths"]]

    def write(self, cache, k, v, positions):
        return super().write(cache, k, v, positions) | {"decoding": k.shape[2] == 1}


class LengthsCountRejected(Rows):
    """vllm-project/vllm-ascend#14883, August 2026: what attention reads up to is not lowered by rejected tokens."""

    def crop(self, cache, lengths):
        return super().crop(cache, lengths) | {"extents": cache["lengths"]}

    def extents(self, cache):
        return cache.get("extents", cache["lengths"])


class Ring:
    """The latest tokens, of all rows alike: `at` is the slot of the oldest, `offset` how many tokens there were.

    A chunk of several tokens is put after what its first query sees, in order; a single one takes the oldest slot.
    """

    window = WINDOW

    def write(self, cache, k, v, positions):
        new = {"k": k, "v": v}
        if cache is None:
            return new | {"at": 0, "offset": k.shape[2]}
        offset, slots = cache["offset"] + k.shape[2], cache["k"].shape[2]
        if k.shape[2] > 1 or slots < WINDOW:
            ordered = self.ordered(cache)
            joined = {x: torch.cat([ordered[x], new[x]], 2)[:, :, -(WINDOW - 1 + k.shape[2]) :] for x in "kv"}
            return joined | {"at": 0, "offset": offset}
        cache = {x: old[:, :, -WINDOW:].clone() for x, old in self.ordered(cache).items()} if slots > WINDOW else cache
        at = cache.get("at", 0)
        cache = {x: cache[x].clone() for x in "kv"}
        for x in "kv":
            cache[x][:, :, at] = new[x][:, :, 0]
        return cache | {"at": (at + 1) % WINDOW, "offset": offset}

    def ordered(self, cache):
        return {x: cache[x].roll(-cache["at"], 2) for x in "kv"}

    def read(self, cache):
        ordered = self.ordered(cache)
        return ordered["k"], ordered["v"]

    def crop(self, cache, lengths):
        if len(set(lengths)) > 1:
            raise NotImplementedError("all rows are cut alike")
        removed, slots = cache["offset"] - lengths[0], cache["k"].shape[2]
        if slots - removed < min(lengths[0], WINDOW - 1):
            raise ValueError("the ring has dropped what would be seen again")
        return {x: old[:, :, : slots - removed] for x, old in self.ordered(cache).items()} | {"at": 0, "offset": lengths[0]}


class CountersOnly(Ring):
    """ml-explore/mlx-swift-lm#584, August 2026: a ring that has wrapped is cut by lowering its counters."""

    def crop(self, cache, lengths):
        removed = cache["offset"] - lengths[0]
        if cache["offset"] < WINDOW:
            return super().crop(cache, lengths)
        return cache | {"at": (cache["at"] - removed) % cache["k"].shape[2], "offset": lengths[0]}


class SlicedByLength(Ring):
    """Blaizzy/mlx-vlm#1715, July 2026: the slots of a ring are sliced by a number of tokens."""

    def crop(self, cache, lengths):
        return {x: cache[x][:, :, : lengths[0]] for x in "kv"} | {"at": cache["at"], "offset": lengths[0]}


class SilentWhenWrapped(Ring):
    """ml-explore/mlx-swift-lm#424, July 2026: once it has wrapped, a rollback returns and nothing is removed."""

    def crop(self, cache, lengths):
        return cache if cache["offset"] >= WINDOW else super().crop(cache, lengths)


class JoinedInSlotOrder(Ring):
    """ollama/ollama#14912, March 2026: a chunk is joined to a ring that has wrapped, which is not put in order first."""

    def write(self, cache, k, v, positions):
        if cache is not None and k.shape[2] > 1:
            cache = cache | {"at": 0}
        return super().write(cache, k, v, positions)


class SlotsOfAnother(Rows):
    """waybarrios/vllm-mlx#678, August 2026: memory of another conversation is used and read beyond what was written."""

    memory = None

    def write(self, cache, k, v, positions):
        written = super().write(cache, k, v, positions)
        if cache is None and self.memory is not None and self.memory["k"].shape == written["k"].shape:
            for x in "kv":
                written[x] = torch.where(written[x] == 0, self.memory[x], written[x])
            written["lengths"] = [max(length, WINDOW) for length in written["lengths"]]
        self.memory = written
        return written


class Recurrent:
    """Keys and values beside a recurrent state, S ← 0.9 S + v kᵀ, with the state after every token."""

    def write(self, cache, k, v, positions):
        batch, heads, count, width = k.shape
        states = [k.new_zeros(batch, heads, width, width)] if cache is None else list(cache["states"])
        state = self.begins(states, count)
        for n in range(count):
            state = DECAY * state + v[:, :, n, :, None] * k[:, :, n, None]
            states.append(state)
        if cache is not None:
            k, v = (torch.cat([cache[name], x], dim=2) for name, x in (("k", k), ("v", v)))
        return {"k": k, "v": v, "states": states}

    def begins(self, states, count):
        return states[-1]

    def read(self, cache):
        at = torch.arange(cache["k"].shape[2]).expand(cache["k"].shape[0], -1)
        return cache["k"], cache["v"], at, cache["states"][-1]

    def crop(self, cache, lengths):
        if len(set(lengths)) > 1:
            raise NotImplementedError("all rows are cut alike")
        return {x: cache[x][:, :, : lengths[0]] for x in "kv"} | {"states": self.kept(cache["states"], lengths[0])}

    def kept(self, states, length):
        return states[: length + 1]


class StateIsKept(Recurrent):
    """huggingface/transformers#49036, September 2026: a rollback cuts keys and leaves the state of rejected drafts."""

    def kept(self, states, length):
        return [*states[:length], states[-1]] if length else states[:1]


class StateBeginsAgain(Recurrent):
    """huggingface/transformers#45513, April 2026: a chunk of several tokens does not go on from the cached state."""

    def begins(self, states, count):
        return states[0] if count > 1 else states[-1]


RIGHT = (Rows, Ring, Recurrent)
REPORTS = {  # the law that names it, and the bug
    OneIndexForAll: ("rows_have_their_own_positions", "one offset"),
    TailsAreBlanked: ("rows_have_their_own_positions", "one offset"),
    StartsOneLater: ("decode_equals_prefill", "unwritten slot"),
    LengthsCountRejected: ("rollback_equals_never_seen", "rolled back"),
    CountersOnly: ("rollback_equals_never_seen", "ring rollback"),
    SlicedByLength: ("rollback_equals_never_seen", "ring rollback"),
    SilentWhenWrapped: ("rollback_equals_never_seen", "ring rollback"),
    JoinedInSlotOrder: ("decode_equals_prefill", "ring order"),
    SlotsOfAnother: ("earlier_calls_do_not_matter", "shared memory"),
    StateIsKept: ("rollback_equals_never_seen", "running sum"),
    StateBeginsAgain: ("decode_equals_prefill", "running sum"),
}
