"""Laws where each token is encoded by itself (rotate, embed, table): what it gets depends on itself and its position only.

They compare a call with other calls on the same tokens at the same positions, in other company.
"""

from __future__ import annotations

import torch
from torch import Tensor

from posenc.checking.engine import Measured, apart, budget, law, within_reach
from posenc.checking.subject import TOKENWISE, Subject, arange

FAR = 5000  # beyond the trained length of most configurations


def _alone(subject: Subject, x: Tensor, positions: Tensor) -> Tensor:
    """Every token by a call of its own."""
    return torch.cat(
        [
            torch.cat(
                [subject.rows(x[b : b + 1, t : t + 1], positions[b : b + 1, t : t + 1]) for t in range(x.shape[1])], 1
            )
            for b in range(x.shape[0])
        ]
    )


@law(*TOKENWISE, bug="position ignored", inputs=({"length": 8, "gap": 11}, {"length": 5, "gap": 300}))
def gaps_are_kept(subject: Subject, length: int, gap: int) -> Measured:
    """Positions with gaps between them are used as they are."""
    farthest = gap * (length - 1)
    within_reach(subject, farthest)
    x, at = subject.tokens(1, length), arange(0, length) * gap
    together = subject.rows(x, at)
    return apart(together, _alone(subject, x, at), budget(subject, together, farthest), f"positions 0, {gap}, {2 * gap} …")


@law(
    *TOKENWISE,
    bug="length state",
    inputs=({"length": 6, "far": 700}, {"length": 6, "far": FAR}, {"length": 6, "far": 140_000}),
)
def far_tokens_do_not_matter(subject: Subject, length: int, far: int) -> Measured:
    """Tokens give the same when another token, far away, follows in the same row."""
    within_reach(subject, far)
    x = subject.tokens(1, length + 1)
    at = torch.cat([arange(0, length), torch.tensor([[far]])], 1)
    separate = subject.rows(x[:, :length], at[:, :length])
    together = subject.rows(x, at)[:, :length]
    return apart(together, separate, budget(subject, separate, length), f"before a token at position {far}")


@law(
    *TOKENWISE,
    bug="wrong axis",
    must_run=True,
    inputs=({"batch": 3, "length": 3}, {"batch": 2, "length": 1}, {"batch": 5, "length": 2}),
)
def sizes_are_not_confused(subject: Subject, batch: int, length: int) -> Measured:
    """A batch equals each token alone, also where batch, heads and tokens have one size."""
    x, at = subject.tokens(batch, length), arange(0, length, batch)
    together = subject.rows(x, at)
    separate = _alone(subject, x, at)
    return apart(together, separate, budget(subject, together, length), f"{batch} rows of {length} tokens")


@law(
    *TOKENWISE,
    bug="low precision angles",
    inputs=(
        {"start": 0, "length": 64},
        {"start": 250, "length": 64},
        {"start": 2040, "length": 64},
        {"start": 65_530, "length": 64},
    ),
    start=0,
    length=2,
)
def neighbours_stay_distinct(subject: Subject, start: int, length: int) -> Measured:
    """The same token at two neighbouring positions gives two results."""
    within_reach(subject, start + length)
    x = subject.tokens(1, 1).expand(1, length, -1).contiguous()
    rows = subject.rows(x, arange(start, length))[0].double()
    step = (rows[1:] - rows[:-1]).abs().amax(-1)
    same = step <= 1e-6 * rows.abs().amax().clamp(min=1e-30)
    first = start + int(same.to(torch.int8).argmax()) if bool(same.any()) else start
    what = f"positions {first} and {first + 1} give one row" if bool(same.any()) else "neighbours that give one row"
    return Measured(float(same.sum()), 0.0, what)


@law(*TOKENWISE, bug="range", inputs=tuple({"power": n} for n in range(6, 18)), power=6)
def rows_do_not_repeat(subject: Subject, power: int) -> Measured:
    """Positions from 2^n on do not give the rows from position 1 on again, as a table does that is read modulo its size."""
    start, length = 2**power, 16
    within_reach(subject, start + length)
    x = subject.tokens(1, 1).expand(1, length, -1).contiguous()
    near = subject.rows(x, arange(1, length))[0]
    same = [int(torch.equal(subject.rows(x, arange(start + k, length))[0], near)) for k in (0, 1)]
    return Measured(float(max(same)), 0.0, f"rows from position {start} on are those from position 1 on")


@law(*TOKENWISE, bug="position ignored", inputs=({"length": 6, "start": 300},), start=0)
def integers_of_32_bits_are_read_alike(subject: Subject, length: int, start: int) -> Measured:
    """Positions as 32-bit integers give what 64-bit integers give."""
    within_reach(subject, start + length)
    x, at = subject.tokens(1, length), arange(start, length)
    expected = subject.rows(x, at)
    return apart(subject.rows(x, at.int()), expected, budget(subject, expected, start + length), "int32 and int64")
