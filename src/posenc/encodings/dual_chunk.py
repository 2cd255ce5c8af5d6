"""Dual chunk attention: distances within a chunk and to the one before are exact, those to earlier chunks are the largest
that the model knows.

    same chunk            R(i mod s)q · R(j mod s)k                        = RoPE
    the chunk before      R(min(i mod s + s, c - 1))q · R(j mod s)k        exact for the w = c - s nearest positions
    earlier chunks        R(c - 1)q · R(j mod s)k

An et al. 2024, "Training-Free Long-Context Scaling of Large Language Models", section 3: s is the chunk size, c the trained
length. The authors' ChunkLlama stops at c, not c - 1, and takes ¾ of the trained length L for c and s = 11/16·L, so that
ChunkLlama on a model trained on 4096 is DualChunk(d_head, trained_length=3073, chunk=2816).
Legend: b batch, i query, j key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from posenc.encodings.bases.regions import RegionalRoPE
from posenc.frequencies import ByLength
from posenc.frequencies.layouts import Layout
from posenc.structure import Region
from posenc.support import checks
from posenc.support.checked import checked

if TYPE_CHECKING:
    from posenc.support.shapes import Num


class DualChunk(RegionalRoPE):
    """RoPE within chunks of s positions, with the distances between chunks kept below c.

    d_head          channels of a head
    trained_length  c, positions that the model was trained on
    chunk           s; None: ¾ of c, as in the paper
    base            of the frequencies
    layout          which channels make a pair
    frequencies     other frequencies, as RoPE takes them

    No parameters and nothing to train: it replaces the RoPE of a trained model. Time and memory: see regions.py.
    Raises ValueError for a chunk that is not smaller than the trained length.
    """

    @checked
    def __init__(
        self,
        d_head: int,
        *,
        trained_length: int = 4096,
        chunk: int | None = None,
        base: float | None = None,
        layout: Layout = "half",
        frequencies: ByLength | None = None,
    ) -> None:
        checks.whole(2, trained_length=trained_length)
        if chunk is not None:
            checks.whole(chunk=chunk)
        super().__init__(d_head, {"trained_length": trained_length, "chunk": chunk}, base, layout, frequencies)
        self.trained_length, self.chunk = trained_length, 3 * trained_length // 4 if chunk is None else chunk
        if self.chunk >= trained_length:
            raise ValueError(f"chunk: expected fewer positions than trained_length={trained_length}, got {self.chunk}")
        self.traits = self.traits - {"shift_invariant"}  # chunks begin at multiples of s

    def _regions(self, query: Num[Tensor, "b i"], key: Num[Tensor, "b j"]) -> list[Region]:
        of_query, of_key = (query // self.chunk)[:, :, None], (key // self.chunk)[:, None, :]  # their chunks
        within_q, within_k = query % self.chunk, key % self.chunk
        return [
            Region((within_q + self.chunk).clamp(max=self.trained_length - 1), within_k, of_query - 1 == of_key),
            Region((query * 0 + (self.trained_length - 1)), within_k, of_query - 2 >= of_key),
        ]
