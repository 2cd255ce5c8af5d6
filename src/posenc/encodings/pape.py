"""PaPE: every query looks along parabolas of the offset, whose width and slope it chooses by its content.

    logits += (Σ_n b_n·Δ_n - a_n·Δ_n²) / √d_head,   Δ_n = W_n·(p_i - p_j),   a = softplus(A x_i),  b = B x_i

Øhrström et al. 2026, "Where to Attend: A Principled Vision-Centric Position Encoding with Parabolas", and the authors'
code. W, A and B are learned; the products are divided by √d_head, as q·k is. PaPE-RI, one parabola of the distance alone,
is not here.
Legend: b batch, t tokens, h query heads, i query, j key, n parabolas, a axes, m d_model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from posenc.catalogue.entry import Entry
from posenc.encoding import BiasFn, one_per_head
from posenc.encodings.bases.content_dependent import FromEarlierTokens
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.languages import Words

if TYPE_CHECKING:
    from posenc.support.shapes import Float


class PaPE(FromEarlierTokens):
    """A sum of parabolas of the offset for every query, added to its scores. Any real positions, attention both ways.

    d_model    channels of the hidden states that go into the projections
    n_heads    query heads
    axes       coordinates per token
    parabolas  n, of every head

    Parameters: directions [n_heads, parabolas, axes], W; weight [2, n_heads, parabolas, d_model], A and B. They start as
    layers of torch do. Call read_hidden(x, at) once a layer; `Attention` does. Positions of an image count from 1 in the
    authors' code, and its class token stands at 0; their scale matters to a fresh model, where the origin is does not.
    A token's parabolas add up to one: a slope and a curvature of every axis, which `read_hidden` computes in time
    O(t·n_heads·parabolas·d_model) and the cache holds. Time O(queries·keys·axes²), memory O(queries·keys).
    """

    reads_vectors = False
    traits = frozenset({"local", "shift_invariant", "norm_preserving"})
    exact_parameters = ("directions",)

    @checked
    def __init__(self, d_model: int, n_heads: int, *, axes: int = 2, parabolas: int = 50) -> None:
        checks.whole(d_model=d_model, n_heads=n_heads, axes=axes, parabolas=parabolas)
        super().__init__(d_model=d_model, n_heads=n_heads, axes=axes, parabolas=parabolas)
        self.d_model, self.n_heads = d_model, n_heads
        self.coordinate_axes = axes  # type: ignore[misc]
        self.directions = nn.Parameter(torch.empty(n_heads, parabolas, axes).uniform_(-(axes**-0.5), axes**-0.5))
        weight = torch.empty(2, n_heads, parabolas, d_model)
        self.weight = nn.Parameter(weight.uniform_(-(d_model**-0.5), d_model**-0.5))

    def state_of(self, x: Float[Tensor, "b t m"], at: Positions, past: Positions | None) -> tuple[Tensor, ...]:
        """Slope and curvature of the sum of every token's parabolas, [b, t, h, a] and [b, t, h, a, a].

        With Δ_n = w_n·p for an offset p:   Σ b_n·Δ_n - a_n·Δ_n² = s·p - p·C·p,   s = Σ b_n w_n,   C = Σ a_n w_n w_nᵀ
        """
        width, slope = torch.einsum("btm,chnm->cbthn", x, self.weight.to(x.dtype)).unbind(0)
        along = self.directions.to(x.dtype)
        curvature = torch.einsum("bthn,hna,hnc->bthac", F.softplus(width), along, along)
        return torch.einsum("bthn,hna->btha", slope, along), curvature

    def bias(self, q: Tensor, k: Tensor, at_q: Positions, at_k: Positions) -> BiasFn:
        one_per_head(self.directions[..., 0], q)
        scale, axes = self.softmax_scale(q.shape[-1]), range(self.coordinate_axes)
        slope, curvature = (state * scale for state in self.state(at_q))
        query, key = self._coords(at_q), self._coords(at_k)

        def of_pair(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
            offset = [(query[b, i, a] - key[b, j, a]).to(slope.dtype) for a in axes]
            terms = []
            for a in axes:
                falls = [curvature[b, i, h, a, c] * offset[c] for c in axes]
                terms.append(offset[a] * (slope[b, i, h, a] - sum(falls[1:], start=falls[0])))
            total: Tensor = sum(terms[1:], start=terms[0])
            return total.to(q.dtype)

        return of_pair

    def _coords(self, at: Positions) -> Tensor:
        """[b, t, a], also of words in a row."""
        self.check_coords(at)
        return at.coords if at.coords.ndim == 3 else at.coords[..., None]

    @torch.no_grad()
    def heads(self, start: int, stop: int) -> PaPE:
        part = PaPE(**{**self.configuration, "n_heads": stop - start}).to(self.weight)
        part.directions.copy_(self.directions[start:stop])
        part.weight.copy_(self.weight[:, start:stop])
        return part


ENTRY = Entry(
    name="pape",
    class_name="PaPE",
    title=Words("PaPE", "抛物线位置编码"),
    kind="contextual",
    published="2026-02",
    needs=("parameters", "hidden_states"),
    axes=2,
    positions="posenc.Positions.grid(height, width).shift(1)",
    coordinates=Words(
        "Rows and columns counted from 1; the class token stands at (0, 0) (PaPE's image_classifier.py, "
        "whose column comes first, and so do the columns of its W).",
        "行与列从 1 开始计数；分类词元位于 (0, 0)（PaPE 的 image_classifier.py；其中列在前，W 的各列次序也随之不同）。",
    ),
    both_ways=True,
    per_layer=True,
    small={"parabolas": 4},
    formula="q·k + Σ b·Δ - a·Δ²,  a = softplus(A x), b = B x",
    also_called=("parabolic_position_encoding", "parabolic", "ParabolicPositionEncoder"),
    used_by=(Words("research: images, video and events by its authors", "研究：作者的图像、视频与事件相机模型"),),
    source="Øhrström et al. 2026, arXiv 2602.01418, and the authors' code",
    idea=Words(
        "Each query makes a few parabolas from its content: along learned directions the score falls with the square of "
        "the offset, as fast as the query says, from a highest point where the query wants to look. So a patch can look "
        "at what lies two patches to its left. Only differences of positions count, in any number of axes.",
        "每个查询由内容生成若干抛物线：沿学到的方向，分数从查询想看的位置起随偏移的平方下降，快慢由查询决定。"
        "因此一个图块可以去看左边两格处的内容。只有位置之差起作用，轴数不限。",
    ),
    latex=r"\frac{q_i \cdot k_j + \sum_n b_n(x_i)\, \Delta_n - a_n(x_i)\, \Delta_n^2}{\sqrt{d}}, \quad "
    r"\Delta_n = w_n \cdot (p_i - p_j)",
    breaks=Words(
        "Far patches get almost no weight unless a query's parabolas are flat or turned towards them. No fused kernel "
        "serves it here: the products of positions are computed beside those of content.",
        "除非查询的抛物线平缓或朝向远处，远处的图块几乎没有权重。这里没有融合内核可用：位置之积与内容之积分开计算。",
    ),
    differs=Words(
        "The authors append 3·parabolas + 2 channels to queries and keys, so that one kernel computes all; here the sum of "
        "a query's parabolas is one quadratic form of the offset, added as a bias. PaPE-RI is not here.",
        "作者给查询和键附加 3·抛物线数 + 2 个通道，由一个内核完成计算；这里把一个查询的抛物线之和写成偏移的一个二次型，"
        "作为偏置相加。PaPE-RI 未收录。",
    ),
    code="DTU-PAS/parabolic-position-encoding",
    options={
        "d_model": "进入投影的隐藏状态的通道数",
        "n_heads": "查询头数",
        "axes": "每个词的坐标数",
        "parabolas": "n，每个头的抛物线数",
    },
)
