"""Whole tables of sinusoids from sizes alone: ours, both tutorial forms and every peer that has such a table.

floor   filling a tensor of that size;   errors at three places: from 0, to 131 071, to 1 000 000
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from bench import truth
from bench.contest import Contender, Contest, Entry
from bench.plan import Case

BASE = 10000.0
LAST = (None, 131_071, 1_000_000)  # None: the table that begins at 0
ALLOWED = 3.1e-8  # half a unit in the last place of float32 just below 1 is 2.98e-8

Build = Callable[[int], Tensor]


def build(case: Case, device: str = "cpu") -> Contest:
    length, width = case.length, case.width
    starts = [0 if last is None else max(last - length, 0) for last in LAST]

    def entry(
        name: str,
        package: str,
        make: Callable[[], Build],
        anywhere: bool = True,
        order: Callable[[Tensor], Tensor] = lambda table: table,
    ) -> Entry:
        def ready() -> Contender:
            table = make()
            return Contender(
                lambda: table(0), lambda: [order(table(start)) for start in (starts if anywhere else starts[:1])]
            )

        return Entry(name, package, ready)

    def fill() -> Contender:
        floor = torch.empty(length, width, device=device)
        return Contender(lambda: floor.fill_(1.0), list)

    def ours() -> Build:
        from posenc.encodings.sinusoidal import sinusoidal_table

        return lambda start: sinusoidal_table(length, width, base=BASE, start=start).to(device)

    def textbook_torch(start: int) -> Tensor:
        """The tutorial form: exponential of a logarithm, all in float32."""
        table = torch.zeros(length, width, device=device)
        position = torch.arange(start, start + length, device=device).unsqueeze(1).float()
        frequency = torch.exp(torch.arange(0, width, 2, device=device).float() * (-math.log(BASE) / width))
        table[:, 0::2] = torch.sin(position * frequency)
        table[:, 1::2] = torch.cos(position * frequency)
        return table

    def textbook_numpy(start: int) -> Tensor:
        """The other tutorial form: a power in float64, cast at the end."""
        position = np.arange(start, start + length)[:, None]
        denominator = np.power(BASE, 2 * np.arange(width // 2) / width)
        table = np.zeros((length, width))
        table[:, 0::2] = np.sin(position / denominator)
        table[:, 1::2] = np.cos(position / denominator)
        return torch.from_numpy(table).float().to(device)

    entries = [
        entry("posenc", "posenc", ours),
        entry("textbook, torch", "torch", lambda: textbook_torch),
        entry("textbook, numpy", "torch", lambda: textbook_numpy),
        entry("positional-encodings", "positional-encodings", lambda: _positional_encodings(length, width), False),
        entry("transformers, SpeechT5", "transformers", lambda: _speech_t5(length, width), False),
        entry("transformers, Marian", "transformers", lambda: _marian(length, width), False, _in_turn),
    ]
    if case.swept:
        entries = entries[:3]

    def allowed(_: str, exact: Sequence[Tensor]) -> list[float]:
        return [ALLOWED] * len(exact)

    return Contest(
        Entry("fill", "torch", fill),
        entries,
        {"": lambda: [truth.sinusoids(start, length, width) for start in starts]},
        allowed,
        tuple(f"to {start + length - 1}" for start in starts),
        moved=4 * length * width,
    )


def _positional_encodings(length: int, width: int) -> Build:
    from positional_encodings.torch_encodings import PositionalEncoding1D

    blank = torch.zeros(1, length, width)
    return lambda start: PositionalEncoding1D(width)(blank)[0]


def _speech_t5(length: int, width: int) -> Build:
    from transformers.models.speecht5.modeling_speecht5 import SpeechT5ScaledPositionalEncoding

    return lambda start: SpeechT5ScaledPositionalEncoding(0.0, width, length).pe[0]


def _marian(length: int, width: int) -> Build:
    from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding

    def table(start: int) -> Tensor:
        embedding = MarianSinusoidalPositionalEmbedding(length, width)
        created = embedding.create_weight()
        weight: Tensor = embedding.weight.detach() if created is None else created
        return weight

    return table


def _in_turn(table: Tensor) -> Tensor:
    """All sines, then all cosines, in our order."""
    return torch.stack(table.chunk(2, dim=-1), dim=-1).flatten(-2)
