"""Rotary frequencies in fp32, operation by operation as transformers 5.23 computes them: the parity mode."""

from __future__ import annotations

import torch

from posenc.frequencies import Frequencies


def default(width: int, base: float) -> Frequencies:
    """1 / base^(arange(0, width, 2)/width) in fp32."""
    values = 1.0 / (base ** (torch.arange(0, width, 2, dtype=torch.int64).float() / width))
    return Frequencies(
        tuple(values.tolist()), base=base, width=width, arithmetic="float32", values_from="transformers' fp32"
    )
