"""Learned Fourier features: waves in learned directions over all coordinates at once, then a small network.

    x + W₂·gelu(W₁·r + c₁) + c₂,   r = [cos(W_r p) | sin(W_r p)]/√f

Li et al. 2021, "Learnable Fourier Features for Multi-Dimensional Spatial Positional Encoding", section 3, algorithm 1.
W_r starts as N(0, γ^-2) and is trained. random_fourier.py has directions that are not.
Legend: b batch, t tokens, a axes, f features, w width, d d_model.
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
from posenc.support.tensor_checks import floating


class LearnableFourier(AbsoluteEncoding):
    """x plus a network of waves of the coordinates, integers or reals; divide a grid by its size for the paper's scale.

    d_model   channels
    axes      coordinates per token
    features  f: waves, half cosines and half sines, even; None: d_model, made even
    width     hidden units; None: d_model
    gamma     γ: W_r starts with the deviation 1/γ

    Parameters: directions [features/2, axes], W_r; inner [width, features], inner_offset [width]; outer [d_model, width],
    outer_offset [d_model]. Angles are computed in fp64. Time O(t·width·(features + d)).
    Raises ValueError for odd features.
    """

    learned_tables = True
    exact_parameters = ("directions",)

    @checked
    def __init__(
        self, d_model: int, *, axes: int = 2, features: int | None = None, width: int | None = None, gamma: float = 1.0
    ) -> None:
        features = d_model + d_model % 2 if features is None else features
        checks.even(features=features)
        checks.positive(gamma=gamma)
        width = d_model if width is None else width
        checks.whole(d_model=d_model, axes=axes, width=width)
        super().__init__(d_model=d_model, axes=axes, features=features, width=width, gamma=gamma)
        self.d_model, self.coordinate_axes = d_model, axes  # type: ignore[misc]
        self.directions = nn.Parameter(torch.randn(features // 2, axes) / gamma)
        self.inner, self.inner_offset = nn.Parameter(torch.empty(width, features)), nn.Parameter(torch.empty(width))
        self.outer, self.outer_offset = nn.Parameter(torch.empty(d_model, width)), nn.Parameter(torch.empty(d_model))
        for weight, offset in ((self.inner, self.inner_offset), (self.outer, self.outer_offset)):
            bound = weight.shape[1] ** -0.5
            nn.init.uniform_(weight, -bound, bound)
            nn.init.uniform_(offset, -bound, bound)

    def tables(self, at: Positions, dtype: torch.dtype) -> tuple[Tensor]:
        """What is added to every token, [b, t, d]."""
        self.check_coords(at)
        floating(dtype)
        coords = (at.coords if at.coords.ndim == 3 else at.coords[..., None]).double()
        with full_precision(self.directions):
            angle = F.linear(coords, self.directions.double())
            waves = torch.cat([angle.cos(), angle.sin()], dim=-1).to(dtype) * (2 * angle.shape[-1]) ** -0.5
            hidden = F.gelu(F.linear(waves, self.inner.to(dtype), self.inner_offset.to(dtype)))
            return (F.linear(hidden, self.outer.to(dtype), self.outer_offset.to(dtype)).clone(),)  # memory of its own


ENTRY = Entry(
    name="learnable_fourier",
    class_name="LearnableFourier",
    title=Words("Learnable Fourier features", "可学习傅里叶特征"),
    kind="added",
    published="2021-06",
    needs=("parameters",),
    axes=2,
    positions='posenc.positions_by("patch_centres", height=height, width=width, low=0.0, high=1.0)',
    coordinates=Words(
        "Middles of the patches as fractions of the image, from 0 to 1, for which γ = 1 is meant here; the "
        "authors give no code.",
        "图块中心占图像的比例，从 0 到 1，这里的 γ = 1 与此相配；作者没有公开代码。",
    ),
    both_ways=True,
    formula="x + MLP([cos(W p) | sin(W p)]/√f)",
    also_called=("LearnableFourierFeatures", "learnable_fourier_features", "LearnableFourierPositionalEncoding"),
    used_by=(Words("research: Reformer and DETR by its authors", "研究：作者的 Reformer 与 DETR"),),
    source="Li et al. 2021, arXiv 2106.02795, section 3",
    idea=Words(
        "A position in an image or in space is read by waves in learned directions, which see all coordinates at once. A "
        "small network turns the waves into the vector that is added to the token. Unlike a table it is defined between "
        "and beyond the trained positions.",
        "图像或空间中的位置由学到的各个方向上的波读取，这些波同时看到所有坐标。一个小网络把波变成加到词上的向量。"
        "与表不同，它在训练过的位置之间和之外都有定义。",
    ),
    latex=r"x_p + W_2\, \mathrm{GELU}(W_1 r + c_1) + c_2, \quad "
    r"r = \frac{1}{\sqrt{f}} \left[\cos W_r p \,;\, \sin W_r p\right]",
    breaks=Words(
        "Far beyond the trained positions its waves are at phases that training never showed. Coordinates of another "
        "scale need another γ.",
        "远超训练过的位置时，波处于训练中没有的相位。坐标的尺度不同时需要另一个 γ。",
    ),
    differs=Words(
        "One group of coordinates, as in the paper's image models: positions of several parts of an object would share "
        "W_r.",
        "只有一组坐标，与论文的图像模型相同；物体多个部分的位置会共用 W_r。",
    ),
    options={
        "axes": "每个词的坐标数",
        "features": "f：波的数目，余弦与正弦各半，偶数；None 为 d_model 取偶",
        "width": "隐藏单元数；None 为 d_model",
        "gamma": "γ：W_r 起始的标准差为 1/γ",
    },
)
