"""Vectors of the distance to a key, one for every distance up to a limit on each side, on keys and perhaps on values.

    logits += q_i·a^K[c] / √d_head,   out_i += Σ_j probs_ij · a^V[c],   c = clip(j - i, -k, right)

Legend: b batch, h query heads, i query, j key, d d_head, r = k + 1 + right relative vectors.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from posenc.encoding import BiasFn, PositionalEncoding, scale_of
from posenc.positions import Positions
from posenc.structure import Relative, Scores, Vectors
from posenc.support.checked import checked
from posenc.support.tensors import check_added, check_coords, check_width

if TYPE_CHECKING:
    from posenc.support.shapes import Bool, Float, Int

Outside = Literal["clip", "zero"]


class ClippedVectors(PositionalEncoding):
    """Base of encodings by clipped vectors. A subclass defines `_tables` and its sizes.

    d_head, max_distance (k), right, outside   as `Shaw` has them
    """

    d_head: int
    max_distance: int
    right: int
    outside: Outside = "clip"

    @abstractmethod
    def _tables(self, q: Tensor) -> tuple[Tensor, Tensor | None]:
        """The tables of keys and of values, each [r, d] on the device of q; None if values get no vectors."""

    @checked
    def row(self, query: Int[Tensor, "*#s"], key: Int[Tensor, "*#s"]) -> Int[Tensor, "*s"]:
        """Which vector: 0 is k or more before the query, k is the query itself, the last is `right` or more after."""
        return (key - query).clamp(-self.max_distance, self.right) + self.max_distance

    @checked
    def reaches(self, query: Int[Tensor, "*#s"], key: Int[Tensor, "*#s"]) -> Bool[Tensor, "*s"]:
        """Whether the pair has a vector at all."""
        return (key - query >= -self.max_distance) & (key - query <= self.right)

    def structure(self) -> Vectors:
        return Vectors(self._vectors)

    def _vectors(self, q: Tensor, at_q: Positions, at_k: Positions, first: Tensor, n: int) -> Relative:
        """The tables as they are: their first and last rows count for all that is further away, or a row of zeros does."""
        check_width(self, "d_head", q.shape[-1], self.d_head, "q")
        beyond = 1 if self.outside == "zero" else 0
        keys, values = self._tables(q)
        if beyond:
            keys, values = F.pad(keys, (0, 0, 1, 1)), None if values is None else F.pad(values, (0, 0, 1, 1))
        keys, values = keys[None, None], None if values is None else values[None, None]
        return Relative(q, q, keys, values, torch.full_like(first[:1], -self.max_distance - beyond))

    def bias(self, q: Tensor, k: Tensor, at_q: Positions, at_k: Positions) -> BiasFn:
        check_width(self, "d_head", q.shape[-1], self.d_head, "q")
        check_coords(self, at_q, integers=True)
        check_coords(self, at_k, integers=True)
        scores = q @ self._tables(q)[0].to(q.dtype).T * scale_of(self, self.d_head)  # [b, h, i, r]
        query, key = at_q.coords, at_k.coords

        def of_pair(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
            score = scores[b, h, i, self.row(query[b, i], key[b, j])]
            return score if self.outside == "clip" else score.where(self.reaches(query[b, i], key[b, j]), 0)

        return of_pair

    def finish(self, scores: Scores) -> Tensor:
        weights = scores.weights(scores.logits)
        out, table = scores.mix(weights), self._tables(weights)[1]
        if table is None:
            return out
        check_added(self, table, scores.v)
        return out + self._of_values(table, weights, scores.at_q, scores.at_k)

    def _of_values(
        self, table: Float[Tensor, "r d"], probs: Float[Tensor, "b h i j"], at_q: Positions, at_k: Positions
    ) -> Float[Tensor, "b h i d"]:
        check_coords(self, at_q, integers=True)
        check_coords(self, at_k, integers=True)
        query, key = at_q.coords[:, None, :, None], at_k.coords[:, None, None, :]
        row = self.row(query, key).expand_as(probs)
        if self.outside == "zero":
            probs = probs.where(self.reaches(query, key), 0)
        by_row = probs.new_zeros(*probs.shape[:3], len(table)).scatter_add(-1, row, probs)  # [b, h, i, r]
        return by_row @ table.to(probs.dtype)
