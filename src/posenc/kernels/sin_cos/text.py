"""Numbers as text, "1.0,0.5": the form in which the PyTorch operators of this package take frequencies and axes.

Python code passes tuples everywhere; only torch_operator.py writes and reads text, where a call goes through PyTorch's
dispatcher. There, a list of numbers (float[] in a schema) is converted number by number, several times a call: embedding
one token with 512 frequencies in a compiled graph then takes 120 µs instead of 88. A tensor of frequencies would have to
be copied to the GPU at every call of a graph. Text is one object, exact (repr is the shortest that reads as the same
number), and readable in a graph.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import torch

KEPT = 256  # texts, and sequences of numbers, that are kept ready


def written(numbers: Sequence[float]) -> str:
    return _written(numbers) if torch.compiler.is_compiling() else _kept_text(tuple(numbers))


def _written(numbers: Sequence[float]) -> str:
    return ",".join([repr(number) for number in numbers])


_kept_text = functools.lru_cache(KEPT)(_written)


@functools.lru_cache(KEPT)
def floats(text: str) -> tuple[float, ...]:
    return tuple(float(number) for number in text.split(",")) if text else ()


@functools.lru_cache(KEPT)
def integers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(",")) if text else ()
