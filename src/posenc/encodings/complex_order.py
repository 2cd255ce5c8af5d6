"""Complex word embeddings: a word's vector turns with its position, at frequencies that are learned, perhaps for each word.

    f(word, p)_c = r_c·e^(i(ω_c·p + θ_c)) = x_c·e^(iω_c·p),    x_c = r_c·e^(iθ_c) = a_c + i·b_c

Wang et al. 2020, "Encoding Word Order in Complex Embeddings", section 2.3, equation 5: bounded embeddings for which a step
of n positions is one and the same linear map everywhere (section 2.2). The embedding that comes in holds amplitude and
phase, r and θ, as real and imaginary parts; this turns it. The frequency ω belongs to the channel, which the paper calls
word-sharing, or to the word and the channel.
Legend: b batch, t tokens, c complex channel of n = d/2, d d_model, w words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from posenc.encoding import AbsoluteEncoding
from posenc.frequencies import layouts
from posenc.frequencies.layouts import Layout
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import (
    check_between,
    check_coords,
    check_embeddings,
    exact_dtype,
    full_precision,
    on_device_of,
    working_dtype,
)

if TYPE_CHECKING:
    from posenc.support.shapes import Float


class ComplexOrder(AbsoluteEncoding):
    """Each pair of channels of an embedding is a complex number and is turned by ω·position, ω learned.

    d_model  channels, even: half as many complex numbers
    n_words  None: all words share ω. A number: each word has its own, and a token's coordinates are (position, word)
    base     fresh frequencies are base^(-2⌊c/2⌋/n), those of the authors' Transformer
    layout   which channels are the real and the imaginary part of one number

    Parameters: frequency [1, n] or [n_words, n], in radians per position. Positions are whole or real numbers; with words
    both coordinates are whole. Angles are computed in fp64. Time O(t·d).
    Raises ValueError for an odd d_model, and for words that there are not.
    """

    exact_parameters = ("frequency",)

    @checked
    def __init__(self, d_model: int, *, n_words: int | None = None, base: float = 10000.0, layout: Layout = "half") -> None:
        checks.even(d_model=d_model)
        checks.positive(base=base)
        if n_words is not None:
            checks.whole(n_words=n_words)
        super().__init__(d_model=d_model, n_words=n_words, base=base, layout=layouts.check(layout))
        self.d_model, self.n_words, self.layout = d_model, n_words, layout
        if n_words is not None:
            self.axes = 2
        n = d_model // 2
        fresh = torch.tensor([base ** (-2 * (c // 2) / n) for c in range(n)], dtype=torch.float64)
        self.frequency = nn.Parameter(fresh.repeat(n_words or 1, 1).to(exact_dtype()))

    def embed(self, x: Float[Tensor, "b t d"], at: Positions) -> Float[Tensor, "b t d"]:
        check_embeddings(self, x, at)
        check_coords(self, at, integers=self.n_words is not None)
        on_device_of(self.frequency, at=at.coords)
        with full_precision(x):
            angle = self._angles(at)
            cos, sin = (wave.to(working_dtype(x.dtype)) for wave in (angle.cos(), angle.sin()))
            return layouts.turn(x[:, None], cos[:, None], sin[:, None], self.layout)[:, 0]

    def _angles(self, at: Positions) -> Float[Tensor, "b t n"]:
        if self.n_words is None:
            return at.coords[..., None].double() * self.frequency[0].double()
        position, word = at.coords.unbind(-1)
        check_between(word, 0, self.n_words - 1, "ComplexOrder: word")
        return position[..., None].double() * F.embedding(word, self.frequency).double()
