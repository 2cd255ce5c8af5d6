"""Laws about the same tokens in another arrangement: in parts, in another order, in other rows, moved, after others.

They hold for every seam that has tokens. Each compares what `Subject.read` gives for one arrangement with what it gives for
another: [b, t, …] of encoded tokens, of outputs, or of the rows of a bias, [b, i, h, j].
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from posenc.checking.engine import Measured, compared, law, within_reach
from posenc.checking.errors import Declined
from posenc.checking.subject import TOKENWISE, Subject, arange, numbers

FAR = 5000  # beyond the trained length of most configurations


def causal(subject: Subject) -> None:
    if subject.seam == "attention" and "causal" not in subject.traits:
        raise Declined("not declared", "causal attention is not declared")


def _in_parts(subject: Subject, at: Tensor, size: int) -> Tensor:
    """The tokens in parts of `size`, each over the tokens so far."""
    n, parts = numbers(*at.shape), []
    for begin in range(0, at.shape[1], size):
        part, so_far = slice(begin, begin + size), slice(begin + size)
        parts.append(subject.read(n[:, part], at[:, part], n[:, so_far], at[:, so_far]))
    return torch.cat(parts, 1)


@law(
    *(*TOKENWISE, "attention"),
    bug="decode offset",
    must_run=True,
    inputs=({"length": 9, "start": 0}, {"length": 9, "start": 37}),
    start=0,
    length=2,
)
def decode_equals_prefill(subject: Subject, length: int, start: int) -> Measured:
    """Tokens one by one, each at its position and over those before it, give what they give in one call."""
    causal(subject)
    within_reach(subject, start + length)
    at = arange(start, length)
    whole = subject.read(numbers(1, length), at)
    return compared(subject, _in_parts(subject, at, 1), whole, start + length, "one by one and at once")


@law(*TOKENWISE, bug="decode offset", must_run=True, inputs=({"length": 13, "chunk": 5}, {"length": 300, "chunk": 256}))
@law(
    "attention",
    bug="causal alignment",
    must_run=True,
    inputs=({"length": 11, "chunk": 4}, {"length": 70, "chunk": 64}),
    length=2,
)
def chunked_equals_whole(subject: Subject, length: int, chunk: int) -> Measured:
    """Chunks of a sequence, each at its positions and over those before it, give what the whole gives."""
    causal(subject)
    within_reach(subject, length)
    at = arange(0, length)
    whole = subject.read(numbers(1, length), at)
    return compared(subject, _in_parts(subject, at, chunk), whole, length, "chunks and the whole")


@law(*TOKENWISE, bug="position ignored", inputs=({"length": 12},), length=2)
@law("bias", bug="position ignored", inputs=({"length": 9},), length=2)
@law("attention", bug="position ignored", inputs=({"length": 8},), length=2)
def storage_order_does_not_matter(subject: Subject, length: int) -> Measured:
    """Tokens stored in another order, each with its position, give the same in that order."""
    n, at, order = numbers(1, length), arange(0, length), torch.arange(length).roll(1).flip(0)
    mixed, whole = subject.read(n[:, order], at[:, order]), subject.read(n, at)[:, order]
    whole = whole[..., order] if subject.seam == "bias" else whole
    return compared(subject, mixed, whole, length, f"positions {at[0, order].tolist()[:8]} …")


@law(*TOKENWISE, bug="position ignored", inputs=({"batch": 3, "length": 6, "start": 9, "gap": 0},), start=1, gap=0)
@law(
    "bias",
    bug="position ignored",
    inputs=({"batch": 3, "length": 6, "start": 7, "gap": 1}, {"batch": 2, "length": 3, "start": 1, "gap": 1}),
    gap=0,
)
def rows_have_their_own_positions(subject: Subject, batch: int, length: int, start: int, gap: int) -> Measured:
    """Rows of a batch at different positions, with a gap after the first token, equal each row alone."""
    n = numbers(batch, length)
    at = torch.stack([start * b + torch.arange(length) + gap * b * (torch.arange(length) > 0) for b in range(batch)])
    together = subject.read(n, at)
    separate = torch.cat([subject.read(n[b : b + 1], at[b : b + 1]) for b in range(batch)])
    return compared(subject, together, separate, int(at.max()) + 1, f"rows from 0, {start}, {2 * start} … and alone")


@law(
    *TOKENWISE,
    bug="batch mates",
    inputs=({"length": 6, "far": 700}, {"length": 6, "far": FAR}, {"length": 6, "far": 140_000}),
)
@law("attention", bug="batch mates", inputs=({"length": 6, "far": 300}, {"length": 6, "far": 9000}))
def batch_mates_do_not_matter(subject: Subject, length: int, far: int) -> Iterator[Measured]:
    """A row at small positions gives the same beside a row at large ones as alone; so does the other."""
    within_reach(subject, far + length)
    n, at = numbers(2, length), torch.cat([arange(0, length), arange(far, length)])
    together = subject.read(n, at)
    for row, where in ((0, f"beside a row from position {far}"), (1, f"from position {far}, beside a row from 0")):
        this_row = slice(row, row + 1)
        yield compared(subject, together[this_row], subject.read(n[this_row], at[this_row]), int(at[row, -1]) + 1, where)


@law("bias", "attention", bug="position ignored", inputs=({"shift": 37}, {"shift": 3001}))
def shift_invariance(subject: Subject, shift: int) -> Measured:
    """Moving all positions by the same amount changes nothing."""
    if "shift_invariant" not in subject.traits:
        raise Declined("not declared", "shift invariance is not declared")
    within_reach(subject, shift + 9)
    n, at = numbers(1, 9), arange(0, 9)
    return compared(subject, subject.read(n, at + shift), subject.read(n, at), shift + 9, f"shifted by {shift}")


@law(*TOKENWISE, bug="length state", must_run=True, inputs=({"length": 6, "long": 700}, {"length": 6, "long": FAR}), long=2)
@law("bias", bug="length state", must_run=True, inputs=({"length": 6, "long": 513}, {"length": 511, "long": 513}), long=2)
@law("attention", bug="length state", must_run=True, inputs=({"length": 6, "long": 700},), long=2)
def short_calls_equal_long_calls(subject: Subject, length: int, long: int) -> Iterator[Measured]:
    """The first tokens of a long sequence give what they give alone; and alone again, after the long sequence."""
    causal(subject)
    long = max(long, length)
    within_reach(subject, long)
    before = subject.read(numbers(1, length), arange(0, length))
    whole = subject.read(numbers(1, long), arange(0, long))[:, :length]
    whole = whole[..., :length] if subject.seam == "bias" else whole
    after = subject.read(numbers(1, length), arange(0, length))
    farthest = long if subject.seam == "bias" else length
    yield compared(subject, after, before, farthest, f"before and after a call of {long} tokens")
    yield compared(subject, whole, before, farthest, f"alone and as the beginning of {long} tokens")


@law(*TOKENWISE, bug="cache key", must_run=True, inputs=({"length": 6, "start": 5}, {"length": 1, "start": 3}))
@law("bias", bug="cache key", must_run=True, inputs=({"length": 6, "start": 5},))
def other_offsets_do_not_matter(subject: Subject, length: int, start: int) -> Iterator[Measured]:
    """Calls of one length at two offsets do not see each other's tables."""
    n, at = numbers(1, start + length), arange(0, start + length)
    within_reach(subject, start + length)
    whole = subject.fresh().read(n, at)
    for begin, when in ((0, ""), (start, ", after a call of the same length at offset 0"), (0, ", after both")):
        part = slice(begin, begin + length)
        actual = subject.read(n[:, part], at[:, part], n, at)
        yield compared(subject, actual, whole[:, part], start + length, f"offset {begin}{when}")
