"""Relative positions as four terms of the score.

    logits = ( q_i·k_j  +  q_i·W_R R_{i-j}  +  u·k_j  +  v·W_R R_{i-j} ) / √d_head
               content      position           content    position
               to content   of the content     at large   at large

Dai et al. 2019, "Transformer-XL", section 3.3. R is the sinusoid [sin | cos] of the distance.
Legend: b batch, h query heads, i query, j key, d d_head, m d_model, n = m/2 frequencies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import torch
from torch import Tensor, nn

from posenc import frequencies
from posenc.encoding import BiasFn, PositionalEncoding, scale_of
from posenc.kernels.eager import plain_on_cpu, wants_gradient
from posenc.kernels.sin_cos import sin_cos_of_runs, sin_cos_table
from posenc.positions import Positions
from posenc.structure import Relative, Vectors
from posenc.support.checked import checked
from posenc.support.tensors import check_coords, check_width, full_precision, tables_at

if TYPE_CHECKING:
    from posenc.support.shapes import Float


Layout = Literal["half", "interleaved"]
RUN = 128  # distances that a decoded token meets with one table of sinusoids


class Terms(NamedTuple):
    """The four terms of the score, each already divided by √d_head."""

    content_content: Float[Tensor, "b h i j"]
    content_position: Float[Tensor, "b h i j"]
    global_content: Float[Tensor, "b h i j"]
    global_position: Float[Tensor, "b h i j"]


class TransformerXL(PositionalEncoding):
    """Adds the last three terms; q·k is attention's own.

    d_model  channels of the sinusoid R, even
    n_heads  query heads, each with its own u, v and slice of W_R
    d_head   channels of a head, d_model / n_heads if left out
    base     of the sinusoid
    layout   of R, and so of the columns of W_R: "half" is [sin | cos], "interleaved" is sin, cos, sin, cos, … (Conformer)

    sin and cos of a distance follow from those of the two positions (R_{i-j} is R_i turned back by j), so the term is a
    product of a query vector and a key vector of d_model channels: exact for any positions, and no [i, j, d] array.
    """

    @checked
    def __init__(
        self, d_model: int, n_heads: int, *, d_head: int | None = None, base: float = 10000.0, layout: Layout = "half"
    ) -> None:
        if d_model % 2 or (d_head is None and d_model % n_heads):
            raise ValueError(f"d_model: expected an even multiple of n_heads={n_heads}, got {d_model}; or say d_head")
        d_head = d_model // n_heads if d_head is None else d_head
        super().__init__(d_model=d_model, n_heads=n_heads, d_head=d_head, base=base, layout=layout)
        self.d_head, self.layout = d_head, layout
        self.frequencies = frequencies.rotary(d_model, base)
        self._run_frequencies = tuple(RUN * frequency for frequency in self.frequencies)
        self.u = nn.Parameter(torch.empty(n_heads, d_head))
        self.v = nn.Parameter(torch.empty(n_heads, d_head))
        self.w_r = nn.Parameter(torch.empty(n_heads, d_head, d_model))
        for parameter in (self.u, self.v, self.w_r):
            nn.init.normal_(parameter, std=0.02)

    def tables(self, at: Positions, dtype: torch.dtype) -> tuple[Tensor]:
        check_coords(self, at)
        return (sin_cos_table(at, [self.frequencies], dtype),)  # [b, t, n, 2]

    def structure(self) -> Vectors:
        return Vectors(self._vectors, cached=False)  # tables as wide as d_model, more than a key; runs need few

    def _vectors(self, q: Tensor, at_q: Positions, at_k: Positions, first: Tensor, n: int) -> Relative:
        """Terms one and three are q + u with the key; two and four are q + v with W_R R, or, for one query, Wᵀ_R (q + v)
        with R, which costs less there: the sinusoid of the n distances is the same for all heads. Of many distances only
        the first RUN have sinusoids then. For the run that begins s later the query's vector is turned by s: R_{p+s} is R_p
        turned."""
        check_width(self, "d_head", q.shape[-1], self.d_head, "q")
        check_width(self, "n_heads", q.shape[1], len(self.u), "q")
        for at in (at_q, at_k):
            check_coords(self, at)
            if at.tables:
                tables_at(self, at, q.dtype)  # somebody else's are refused
        u, v, w_r = (parameter.to(q.dtype) for parameter in (self.u, self.v, self.w_r))
        content, position = q + u[:, None], q + v[:, None]
        if q.shape[2] > 1:
            sin, cos = sin_cos_of_runs(first.long(), n, self.frequencies, q.dtype).unbind(-1)
            both = (-sin, cos)  # the distance is query - key
            vectors = torch.cat(both, dim=-1) if self.layout == "half" else torch.stack(both, dim=-1).flatten(-2)
            return Relative(content, position, vectors[:, None] @ w_r.transpose(-1, -2), None, first)
        g_sin, g_cos = self._halves(position @ w_r)
        if n > 2 * RUN and plain_on_cpu(q, u, first) and not wants_gradient(q, u, v, w_r):
            begins = sin_cos_of_runs(first.new_zeros(1), -(-n // RUN), self._run_frequencies, q.dtype)  # of the runs
            turned = torch.complex(-g_cos, -g_sin) * torch.view_as_complex(begins).conj()  # [b, h, runs, n]
            table = sin_cos_of_runs(first.long(), RUN, self.frequencies, q.dtype).flatten(-2)[:, None]
            return Relative(content, torch.view_as_real(turned).flatten(-2), table, None, first)
        toward = torch.stack([-g_sin, g_cos], dim=-1).flatten(-2)  # R is of query - key, the table of key - query
        table = sin_cos_of_runs(first.long(), n, self.frequencies, q.dtype).flatten(-2)[:, None]
        return Relative(content, toward, table, None, first)

    def _halves(self, x: Float[Tensor, "*s m"]) -> tuple[Float[Tensor, "*s n"], Float[Tensor, "*s n"]]:
        """The parts of the vector that multiply the sines and the cosines of R."""
        n = x.shape[-1] // 2
        return (x[..., :n], x[..., n:]) if self.layout == "half" else (x[..., 0::2], x[..., 1::2])

    def bias(self, q: Tensor, k: Tensor, at_q: Positions, at_k: Positions) -> BiasFn:
        terms = self.terms(q, k, at_q, at_k)
        added = terms.content_position + terms.global_content + terms.global_position
        return lambda b, h, i, j: added[b, h, i, j]

    @checked
    def terms(self, q: Float[Tensor, "b h i d"], k: Float[Tensor, "b h j d"], at_q: Positions, at_k: Positions) -> Terms:
        """All four terms on their own, for display. Their sum is the logit."""
        check_width(self, "d_head", q.shape[-1], self.d_head, "q")
        check_width(self, "n_heads", q.shape[1], len(self.u), "q")
        if k.dtype != q.dtype:
            raise TypeError(f"q, k: expected one dtype, got {q.dtype} and {k.dtype}")
        with full_precision(q):
            scale = scale_of(self, self.d_head)
            u, v, w_r = (parameter.to(q.dtype) for parameter in (self.u, self.v, self.w_r))
            toward = w_r.transpose(-1, -2)  # [h, m, d]
            return Terms(
                q @ k.transpose(-1, -2) * scale,
                self._position(toward @ q.transpose(-1, -2), at_q, at_k) * scale,
                (k @ u[:, :, None]).transpose(-1, -2).expand(*q.shape[:3], -1) * scale,
                self._position((toward @ v[:, :, None]).expand(q.shape[0], -1, -1, q.shape[2]), at_q, at_k) * scale,
            )

    def _position(self, g: Float[Tensor, "b h m i"], at_q: Positions, at_k: Positions) -> Float[Tensor, "b h i j"]:
        """g_i·R_{i-j}: with g = (g_s | g_c) it is (g_s s_i + g_c c_i)·c_j + (g_c s_i - g_s c_i)·s_j."""
        sin_q, cos_q = tables_at(self, at_q, g.dtype)[0].unbind(-1)  # [b, i, n]
        sin_k, cos_k = tables_at(self, at_k, g.dtype)[0].unbind(-1)
        g = g.transpose(-1, -2)
        g_sin, g_cos = self._halves(g)  # [b, h, i, n]
        sin_q, cos_q = sin_q[:, None], cos_q[:, None]
        query = torch.cat([g_sin * sin_q + g_cos * cos_q, g_cos * sin_q - g_sin * cos_q], dim=-1)
        return query @ torch.cat([cos_k, sin_k], dim=-1)[:, None].transpose(-1, -2)

    @torch.no_grad()
    def heads(self, start: int, stop: int) -> TransformerXL:
        part = type(self)(**{**self.configuration, "n_heads": stop - start}).to(self.u)
        for target, source in zip(part.parameters(), self.parameters(), strict=True):
            target.copy_(source[start:stop])
        return part
