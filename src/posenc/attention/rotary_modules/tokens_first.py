"""Tensors [b, t, h, d], tokens before heads: turned by an encoding, or by tables that are given."""

from __future__ import annotations

import math

from torch import Tensor

from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.kernels.rotation import ARITHMETIC, rotate_both
from posenc.positions import Positions
from posenc.support.tensors import INTEGERS, readable


def turned(rope: RoPE, x: Tensor, positions: Tensor | None, name: str) -> Tensor:
    """x at these positions, [b or 1, t]; at 0, 1, 2, … where there are none. `name` is what the caller calls them."""
    if x.ndim != 4 or x.shape[-1] != rope.d_head:
        raise ValueError(f"x: expected [b, t, h, d={rope.d_head}], got {list(x.shape)}")
    if positions is None:
        at = Positions.arange(1, x.shape[1], device=x.device)
    else:
        check_positions(name, positions, x)
        # One token of a row is a run of its own, which is turned faster.
        at = Positions.decode(positions[:, 0]) if positions.shape[1] == 1 else Positions.at(positions)
    return rope.rotate(x.transpose(1, 2), at, "query").transpose(1, 2)


def check_positions(name: str, positions: Tensor, x: Tensor, rows: float = math.inf) -> None:
    """Raises ValueError for what is not a whole number for each token of x, in every row or in one.

    In eager code on the CPU also for one not below `rows`, and a negative one, for which torchtune and
    torchtitan read a row from the end of their table.
    """
    b, t = x.shape[:2]
    if positions.ndim != 2 or positions.shape[1] != t or (positions.shape[0] != 1 and positions.shape[0] != b):
        raise ValueError(f"{name}: expected [{b} or 1, {t}] for x of {list(x.shape)}, got {list(positions.shape)}")
    if positions.dtype not in INTEGERS or positions.device != x.device:
        got = f"{positions.dtype} on {positions.device}"
        raise ValueError(f"{name}: expected whole numbers on {x.device}, where x is, got {got}")
    if readable(positions) and positions.numel():
        least, largest = (end.item() for end in positions.aminmax())
        if least < 0 or largest >= rows:
            below = "" if rows == math.inf else f" and below {rows}, the rows of the table"
            raise ValueError(f"{name}: expected positions from 0{below}, got {least} … {largest}")


def check_both(**named: Tensor) -> None:
    """Raises ValueError for queries and keys that are not [b, t, h, d] with an even d; h may differ, and nothing else."""
    first = next(iter(named.values()))
    for name, x in named.items():
        if x.ndim != 4 or x.shape[-1] % 2:
            raise ValueError(f"{name}: expected [b, t, h, d] with an even d, got {list(x.shape)}")
        if x.shape[:2] != first.shape[:2] or x.shape[-1] != first.shape[-1] or x.dtype != first.dtype:
            got = f"{x.dtype} {list(x.shape)}"
            raise ValueError(f"{name}: expected b, t, d and dtype of {' and '.join(named)} alike, got {got}")


def check_table(name: str, table: Tensor, x: Tensor) -> None:
    """Raises TypeError for a table of whole numbers, ValueError for one on another device than x."""
    if not table.is_floating_point():
        raise TypeError(f"{name}: expected real numbers, got {table.dtype}")
    if table.device != x.device:
        raise ValueError(f"{name}: expected a table on {x.device}, where x is, got {table.device}")


def both_turned(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, layout: Layout) -> tuple[Tensor, Tensor]:
    """q [b, t, h, d] and k [b, t, g, d] by tables [b or 1, t, n], which are taken in the dtype of the arithmetic."""
    dtype = ARITHMETIC.get(q.dtype, cos.dtype)
    turned_q, turned_k = rotate_both(q.transpose(1, 2), k.transpose(1, 2), cos.to(dtype), sin.to(dtype), layout)
    return turned_q.transpose(1, 2), turned_k.transpose(1, 2)
