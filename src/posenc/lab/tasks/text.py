"""Shared by both tasks on real text: windows to train on, windows to score, and byte statistics for baselines.

    document 0   ├─────── one window in the middle ───────┤
    document 1   ├───── window ─────┤├───── window ─────┤      a second window only if every document has one

Legend: n windows, w bytes of a window.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from posenc.lab.text.corpus import Corpus, Windows

if TYPE_CHECKING:
    from posenc.support.shapes import Float, Int

BYTES = 256


def required(text: Corpus | None) -> Corpus:
    if text is None:
        raise ValueError(
            "text: got none, expected a corpus; `corpus.read_corpus(None, width)` reads Python's standard library"
        )
    return text


@lru_cache(maxsize=4)  # cached, because a trial asks for the same ones at every step
def training_windows(text: Corpus, width: int) -> Windows:
    """Random training windows. Raises ValueError if no training document has `width` bytes."""
    windows = Windows(text.train, width)
    if not windows.count:
        raise ValueError(f"text: no training document of {text.source} has {width} bytes")
    return windows


class HeldOut(NamedTuple):
    windows: Int[Tensor, "n w"]
    document: Int[Tensor, "n"]  # the held-out document of each window


def held_out_windows(text: Corpus, width: int, most: int) -> HeldOut:
    """Up to `most` non-overlapping windows, from as many documents as possible, in the order of the documents.

    Raises ValueError if no held-out document has that many bytes.
    """
    rooms = [len(document) // width for document in text.held_out]
    shares = [0] * len(rooms)
    while (left := most - sum(shares)) > 0 and (open_ := [n for n, room in enumerate(rooms) if shares[n] < room]):
        for n in open_[:left]:
            shares[n] += 1
    starts = [(n, start) for n, share in enumerate(shares) for start in _starts(len(text.held_out[n]), width, share)]
    if not starts:
        raise ValueError(f"text: no held-out document of {text.source} has {width} bytes, which the longest row needs")
    windows = _bytes(b"".join(text.held_out[n][start : start + width] for n, start in starts)).view(-1, width)
    return HeldOut(windows, torch.tensor([n for n, _ in starts]))


def _starts(length: int, width: int, share: int) -> list[int]:
    """Starts of `share` windows, each in the middle of its part of the document."""
    return [n * length // share + (length // share - width) // 2 for n in range(share)]


def byte_bits(documents: Sequence[bytes]) -> Float[Tensor, "256"]:
    """Bits of each byte by its frequency, with add-one smoothing."""
    counts = 1 + sum(
        (torch.bincount(_bytes(document), minlength=BYTES) for document in documents),
        torch.zeros(BYTES, dtype=torch.float64),
    )
    return -(counts / counts.sum()).log2()


def pair_bits(documents: Sequence[bytes]) -> Float[Tensor, "256 256"]:
    """[before, byte]: bits of each byte given the byte before, with add-one smoothing."""
    counts = torch.ones(BYTES, BYTES, dtype=torch.float64)
    for document in documents:
        text = _bytes(document)
        counts += torch.bincount(text[:-1] * BYTES + text[1:], minlength=BYTES**2).view(BYTES, BYTES)
    return -(counts / counts.sum(dim=1, keepdim=True)).log2()


def _bytes(document: bytes) -> Int[Tensor, "n"]:
    return torch.frombuffer(bytearray(document), dtype=torch.uint8).long()
