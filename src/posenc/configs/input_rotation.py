"""A rotation of the *input* of the query and key projections, as some conformers were trained with.

    q_i = W_q R(i) x_i,   k_j = W_k R(j) x_j          RoPE has R(i) W_q x_i and R(j) W_k x_j

x is split into one part per head, and every part rotates like a head under RoPE. Since W_q and W_k then mix the parts,
scores are no function of distance. Wav2Vec2-Conformer, Wav2Vec2-BERT and SeamlessM4T with position_embeddings_type
"rotary", as in transformers: models/wav2vec2_conformer.
Legend: b batch, t tokens, m d_model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from torch import Tensor

from posenc.encoding import PositionalEncoding, Side
from posenc.encodings.rope import RoPE
from posenc.frequencies import Frequencies
from posenc.frequencies.layouts import Layout
from posenc.positions import Positions
from posenc.support.tensors import check_width

if TYPE_CHECKING:
    from posenc.support.shapes import Float


class InputRotation(PositionalEncoding):
    """inputs(x, at) is the input of the query and key projections; values are computed from x itself.

    d_model      channels of x
    d_head       channels of a part
    frequencies  of the pairs of a part
    layout       which channels of a part make a pair

    Attention sees projected queries and keys, which is too late: `rotate` raises ValueError.
    """

    traits = frozenset({"local"})

    def __init__(self, d_model: int, d_head: int, frequencies: Frequencies, *, layout: Layout = "half") -> None:
        super().__init__(d_model=d_model, d_head=d_head, frequencies=frequencies, layout=layout)
        if d_model % d_head:
            raise ValueError(f"d_head: {d_model} channels cannot be split into parts of {d_head}")
        self.d_model, self.d_head, self.frequencies = d_model, d_head, frequencies
        self.turning = RoPE(d_head, frequencies=frequencies, layout=layout)

    def tables(self, at: Positions, dtype: object) -> tuple[Tensor, ...]:
        """The tables of its rotation."""
        return self.turning.tables(at, dtype)  # type: ignore[arg-type]

    def inputs(self, x: Float[Tensor, "b t m"], at: Positions) -> Float[Tensor, "b t m"]:
        """x with every part rotated by its position."""
        check_width(self, "d_model", x.shape[-1], self.d_model)
        parts = x.unflatten(-1, (-1, self.d_head)).transpose(1, 2)
        return self.turning.rotate(parts, at, "query").transpose(1, 2).flatten(2)

    def rotate(self, x: Float[Tensor, "b h t d"], at: Positions, side: Side, out: Tensor | None = None) -> NoReturn:
        raise ValueError(
            "InputRotation: rotates hidden states before they are projected: call inputs(x, at) there, and attend with NoPE"
        )
