"""Which rows of a projection rotate, and where they go.

    half         x0 x1 x2 | y0 y1 y2        rows of one head of W_q; the model's code pairs (i, i + n)
    interleaved  x0 y0 x1 y1 x2 y2          the same rows; the code pairs (2i, 2i + 1)

A head rotates `rotary_dim` channels, its first or its last. A tensor is described by the rows where these slices begin:

    q, k            one slice per head:  [h0 | h1 | h2 …]
    concatenated    [q0 q1 … | k0 … | v0 …]                          Phi-3, ModernBERT, Qwen 1
    grouped         [q0 q1 k0 v0 | q2 q3 k1 v1 …]                    GPT-NeoX and BLOOM-like (one q per group), Falcon
    blocks          [q0 q1 v0 v1 k0 k1 | q2 q3 v2 v3 k2 k3 …]        CodeGen: four blocks
    latent          [latent … | k]                                   the key row slice of multi-head latent attention

Legend: n pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import torch
from torch import Tensor

from posenc.frequencies import layouts
from posenc.frequencies.layouts import Layout

if TYPE_CHECKING:
    from posenc.support.shapes import Int

Part = Literal["q", "k", "concatenated", "grouped", "blocks", "latent"]
Fused = Literal["concatenated", "grouped", "blocks"]
BLOCKS = 4  # of CodeGen's fused projection, fixed in its code


class Slices(NamedTuple):
    """The rows where the rotated slices of queries and of keys begin, and the total number of rows."""

    q: tuple[int, ...]
    k: tuple[int, ...]
    rows: int


@dataclass(frozen=True)
class Heads:
    """The sizes that decide which rows rotate.

    n_heads, n_kv_heads   query heads; key heads, by default n_heads
    d_head                channels of a query or key head
    rotary_dim            rotated channels of a head; by default all
    trailing              the last rotary_dim channels rotate instead of the first
    latent                rows before the shared key slice of multi-head latent attention (kv_lora_rank)
    gated                 each query head is followed by a gate of the same width (Qwen3-Next)

    Raises ValueError for sizes that are not whole numbers from 1 or do not fit each other.
    """

    n_heads: int
    d_head: int
    n_kv_heads: int | None = None
    rotary_dim: int | None = None
    trailing: bool = False
    latent: int | None = None
    gated: bool = False

    def __post_init__(self) -> None:
        for name in ("n_kv_heads", "rotary_dim"):
            if getattr(self, name) is None:
                object.__setattr__(self, name, {"n_kv_heads": self.n_heads, "rotary_dim": self.d_head}[name])
        for name in ("n_heads", "d_head", "n_kv_heads", "rotary_dim", "latent"):
            value = getattr(self, name)
            if not (value is None and name == "latent") and (type(value) is not int or value < 1):
                raise ValueError(f"{name}: expected a whole number from 1, got {value!r}")
        if self.n_heads % self.key_heads:
            raise ValueError(f"n_kv_heads: {self.key_heads} does not divide n_heads={self.n_heads}")
        layouts.head_permutation(self.d_head, "half", "half", rotary_dim=self.rotary_dim)

    @property
    def key_heads(self) -> int:
        return self.n_kv_heads or self.n_heads

    @property
    def turning(self) -> int:
        """Rows of one slice."""
        return self.rotary_dim or self.d_head

    @property
    def offset(self) -> int:
        """Where the slice begins within a head."""
        return self.d_head - self.turning if self.trailing else 0

    def slices(self, part: Part) -> Slices:
        """Where slices begin in the rows of a projection. Raises ValueError for a part that these heads do not have."""
        n, g = self.n_heads, self.key_heads
        if part == "q":
            return self._of_heads(range(n), (), n, width=self.d_head * (2 if self.gated else 1))
        if part == "k":
            return self._of_heads((), range(g), g)
        if part == "concatenated":
            return self._of_heads(range(n), range(n, n + g), n + 2 * g)
        if part == "grouped":
            group = n // g + 2
            queries = [head for head in range(g * group) if head % group < group - 2]
            return self._of_heads(queries, range(group - 2, g * group, group), g * group)
        if part == "blocks":
            if n != g or n % BLOCKS:
                raise ValueError(f"n_heads: {BLOCKS} blocks need as many key heads, a multiple of {BLOCKS}; got {n}, {g}")
            each = n // BLOCKS
            queries = [head for head in range(3 * n) if head % (3 * each) < each]
            return self._of_heads(queries, [head + 2 * each for head in queries], 3 * n)
        if part == "latent":
            if self.latent is None:
                raise ValueError("latent: the rows before the key slice (kv_lora_rank) are not known")
            return Slices((), (self.latent,), self.latent + self.turning)
        raise ValueError(f"part: expected one of {', '.join(map(repr, get_args(Part)))}, got {part!r}")

    def _of_heads(self, q: Sequence[int], k: Sequence[int], heads: int, width: int | None = None) -> Slices:
        width = width or self.d_head
        begins = [tuple(head * width + self.offset for head in counts) for counts in (q, k)]
        return Slices(begins[0], begins[1], heads * width)


def row_permutation(rows: int, starts: Sequence[int], turning: int, source: Layout, target: Layout) -> Int[Tensor, "rows"]:
    """The row of `source` for each row of `target`: slices of `turning` rows at `starts` are permuted, the rest stays."""
    index, within = torch.arange(rows), layouts.permutation(turning, layouts.check(source), layouts.check(target))
    for start in starts:
        index[start : start + turning] = start + within
    return index


def permuted(tensor: Tensor, index: Int[Tensor, "rows"], dim: int = 0) -> Tensor:
    """tensor[index] along `dim`, for every dtype: bits are moved as integers of the same width."""
    if tensor.is_complex() or tensor.element_size() > 8:
        raise ValueError(f"dtype: cannot move rows of {tensor.dtype}")
    bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.element_size()]
    return tensor.contiguous().view(bits).index_select(dim, index.to(tensor.device)).view(tensor.dtype)


def convert_rows(tensor: Tensor, part: Part, heads: Heads, source: Layout, target: Layout) -> Tensor:
    """A projection's weight [rows, d_model], its bias [rows] or the B of its low-rank update [rows, rank], converted.

    Exact for every dtype. Raises ValueError if the rows are not those of `heads`.
    """
    slices = heads.slices(part)
    if tensor.ndim == 0 or tensor.shape[0] != slices.rows:
        raise ValueError(f"{part}: expected {slices.rows} rows for {heads}, got {list(tensor.shape)}")
    return permuted(tensor, row_permutation(slices.rows, slices.q + slices.k, heads.turning, source, target))
