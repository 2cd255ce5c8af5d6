"""Checks of arguments: each is called where the argument is taken, and the messages stand here once.

    checks.whole(d_model=d_model, n_heads=n_heads)    ValueError: n_heads: expected a whole number from 1, got 0
    checks.whole(0, max_distance=max_distance)        whole numbers from 0

The keyword is the name that the message gives to the argument. A check returns nothing; where None means "not given",
the caller asks only about what was given. This module works without torch; for tensors see `checked`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from numbers import Integral
from typing import Any


def whole(least: int = 1, /, **values: Any) -> None:
    """Raises ValueError for what is not an integer of at least `least`."""
    for name, value in values.items():
        if not (is_whole(value) and value >= least):
            raise ValueError(f"{name}: expected a whole number from {least}, got {shown(value)}")


def even(**values: Any) -> None:
    """Raises ValueError for what is not an even integer from 2."""
    for name, value in values.items():
        if not (is_whole(value) and value >= 2 and value % 2 == 0):
            raise ValueError(f"{name}: expected an even number from 2, got {shown(value)}")


def multiple(of: int, /, **values: Any) -> None:
    """Raises ValueError for what is not a positive multiple of `of`."""
    for name, value in values.items():
        if not (is_whole(value) and value >= of and value % of == 0):
            raise ValueError(f"{name}: expected a multiple of {of}, got {shown(value)}")


def positive(**values: Any) -> None:
    """Raises ValueError for what is not a finite number above 0."""
    for name, value in values.items():
        if not (is_finite(value) and value > 0):
            raise ValueError(f"{name}: expected a positive number, got {shown(value)}")


def moderate(most: float = 1e15, /, **values: Any) -> None:
    """Raises ValueError for a finite number of more than `most` in size: products with it overflow in float32."""
    for name, value in values.items():
        if abs(value) > most:
            raise ValueError(f"{name}: expected a number of at most {most:g} in size, got {shown(value)}")


def from_one(**values: Any) -> None:
    """Raises ValueError for what is not a finite number of at least 1."""
    for name, value in values.items():
        if not (is_finite(value) and value >= 1):
            raise ValueError(f"{name}: expected a number from 1, got {shown(value)}")


def finite(**values: Any) -> None:
    """Raises ValueError for what is not a finite number."""
    for name, value in values.items():
        if not is_finite(value):
            raise ValueError(f"{name}: expected a finite number, got {shown(value)}")


def one_of(choices: Sequence[str], /, **values: Any) -> None:
    """Raises ValueError for what is not among the choices."""
    for name, value in values.items():
        if not isinstance(value, str) or value not in choices:
            raise ValueError(f"{name}: expected one of {', '.join(map(repr, choices))}, got {shown(value)}")


def shown(value: Any) -> str:
    """How a message shows what it got: on one line, and a tensor or array by its dtype and shape."""
    if hasattr(value, "is_nested") and value.is_nested:
        return f"a nested {type(value).__name__}"
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        layout = str(getattr(value, "layout", "")).removeprefix("torch.").replace("strided", "")
        return " ".join(f"{type(value).__name__} {value.dtype} {list(value.shape)} {layout}".split())
    text = " ".join(repr(value).split())
    return text if len(text) <= 120 else f"{text[:100]}… ({type(value).__name__})"


def is_whole(value: Any) -> bool:
    """Python's integers, NumPy's, and the symbolic ones that torch.export passes; not booleans."""
    if isinstance(value, int):
        return not isinstance(value, bool)
    return isinstance(value, Integral) or type(value).__name__ == "SymInt"


def is_finite(value: Any) -> bool:
    """A number that a float can hold. A comparison, since a traced number has no math.isfinite."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
