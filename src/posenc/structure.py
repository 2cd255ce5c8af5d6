"""Encodings in which the query's content meets a vector of the distance: Shaw, Transformer-XL.

    logits_ij = (content_i·k_j + position_i·keys_[j-i]) · scale,     out_i = Σ_j softmax_ij · (v_j + values_[j-i])

Such an encoding declares its vectors for fast paths (`PositionalEncoding.relative_vectors`); its `bias` and `value` say the
same pair by pair.

Legend: b batch, h query heads, i query, d channel, c channel of the vectors, R rows: consecutive j - i.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from torch import Tensor

from posenc.positions import Positions

if TYPE_CHECKING:
    from posenc.support.shapes import Float, Int


class Relative(NamedTuple):
    """What the formula above is made of; tables of one row of the batch or one head serve all.

    Of one query there may be several vectors `position`, one for each run of R distances: the keys of the first run, of one
    head, then serve all runs. Only in eager code without a gradient.
    """

    content: Float[Tensor, "b h i d"]
    position: Float[Tensor, "b h i c"]
    keys: Float[Tensor, "#b #h R c"]
    values: Float[Tensor, "#b #h R dv"] | None
    first: Int[Tensor, "#b"]  # j - i of the first row; less counts as this, and more than the last row has as the last


class RelativeVectors(Protocol):
    """What `PositionalEncoding.relative_vectors` returns: a function."""

    def __call__(
        self, q: Float[Tensor, "b h i d"], at_q: Positions, at_k: Positions, first: Int[Tensor, "#b"], n: int
    ) -> Relative:
        """The vectors for key - query = first, first + 1, …, first + n - 1, all that the call needs, q in working dtype."""
