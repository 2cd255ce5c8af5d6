"""A learned linear map of a token's coordinates, added to its embedding.

    x + W·p + b

Laplacian eigenvectors enter a graph Transformer so: Dwivedi & Bresson 2020, "A Generalization of Transformer Networks to
Graphs", sections 2.2 and 2.3 (arXiv 2012.09699); likewise random-walk encodings in GraphGPS, which concatenates instead of
adding.
It serves any real coordinates: posenc.positions_by("lappe", …) or "rwse".
Legend: b batch, t tokens, a axes, d d_model.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from posenc.catalogue.entry import Entry
from posenc.encoding import AbsoluteEncoding, full_precision
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.languages import Words
from posenc.support.tensor_checks import beside, floating


class CoordinateProjection(AbsoluteEncoding):
    """x + W·p + b.

    d_model  channels of the embedding
    axes     coordinates of a token

    Parameters: weight [d_model, axes], offset [d_model]; fresh, the weight is uniform within ±1/√axes and the offset 0.
    Time O(t·d_model·axes). Raises ValueError for tokens with another number of coordinates.
    """

    learned_tables = True
    exact_parameters = ("weight",)

    @checked
    def __init__(self, d_model: int, *, axes: int = 8) -> None:
        checks.whole(d_model=d_model, axes=axes)
        super().__init__(d_model=d_model, axes=axes)
        self.d_model, self.coordinate_axes = d_model, axes  # type: ignore[misc]
        self.weight = nn.Parameter(torch.empty(d_model, axes).uniform_(-(axes**-0.5), axes**-0.5))
        self.offset = nn.Parameter(torch.zeros(d_model))

    def tables(self, at: Positions, dtype: torch.dtype) -> tuple[Tensor]:
        """What is added, [b, t, d]."""
        self.check_coords(at)
        floating(dtype)
        beside(self.weight, at=at.coords)
        coords = at.coords if at.coords.ndim == 3 else at.coords[..., None]
        with full_precision(self.weight):
            return (F.linear(coords.double(), self.weight.double(), self.offset.double()).to(dtype),)


ENTRY = Entry(
    name="coordinate_projection",
    class_name="CoordinateProjection",
    title=Words("Coordinate projection", "坐标的线性映射"),
    kind="added",
    published="2020-12",
    needs=("parameters",),
    axes=8,
    positions=(
        'posenc.positions_by("lappe", adjacency=torch.ones(1, length, length).tril(1).triu(-1) - torch.eye(length))'
    ),
    coordinates=Words(
        "A node's entries in the eigenvectors of the normalised Laplacian, without the first (Graph "
        "Transformer's laplacian_positional_encoding).",
        "节点在归一化拉普拉斯矩阵各特征向量中的分量，不含第一个（Graph Transformer 的 laplacian_positional_encoding）。",
    ),
    both_ways=True,
    formula="x + W·p + b",
    also_called=("linear_coordinates", "LapPENodeEncoder"),
    used_by=("Graph Transformer",),
    source="Dwivedi and Bresson 2020, arXiv 2012.09699, sections 2.2 and 2.3",
    idea=Words(
        "The real coordinates of a token go through a learned linear map and are added to its embedding. "
        "With Laplacian eigenvectors or return probabilities of random walks as coordinates, it tells a Transformer "
        "where a node is in its graph. Other real coordinates, such as points in space, work as well.",
        "词元的实数坐标经过一个学习得到的线性映射，加到词向量上。以拉普拉斯特征向量或随机游走的返回概率为坐标时，"
        "它告诉 Transformer 一个节点在图中的位置。其他实数坐标（例如空间中的点）同样适用。",
    ),
    latex=r"x_n + W p_n + b",
    domains=("image", "graph"),
    breaks=Words(
        "It is as good as the coordinates: eigenvectors with flipped signs look like another graph. A shift of all "
        "coordinates adds the same vector to every token.",
        "效果取决于坐标：特征向量换了符号，就像另一个图。所有坐标平移会给每个词加上相同的向量。",
    ),
    differs=Words(
        "GraphGPS concatenates the mapped coordinates with the embedding instead of adding them.",
        "GraphGPS 把映射后的坐标与词向量拼接，而不是相加。",
    ),
    code="graphdeeplearning/graphtransformer",
    options={
        "d_model": "词向量的通道数",
        "axes": "每个词的坐标数",
    },
)
