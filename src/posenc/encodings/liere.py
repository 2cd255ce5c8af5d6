"""LieRE: rotations in more than two channels, with a free learned generator for every axis.

    R(p) = exp(Σ_a p_a A_a) in each block of channels,   A_a = U_a - U_aᵀ,  U_a learned and strictly upper triangular

Ostmeier et al. 2024, "LieRE: Lie Rotational Positional Encodings", section 4, and the authors' code. Generators of
different axes do not commute, so that with several axes a score depends on where two patches are and not on their offset
alone, as ComRoPE's (com_rope.py) does. One axis is relative.
Legend: b batch, h heads, g generators' heads, t tokens, a axes, n blocks, s channels of a block.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from posenc.catalogue.entry import Entry
from posenc.encodings.bases.block_rotation import BlockRotation
from posenc.support.checked import checked
from posenc.support.languages import Words

if TYPE_CHECKING:
    from posenc.support.shapes import Float


class LieRE(BlockRotation):
    """Blocks of queries and keys multiplied with exp(Σ p_a A_a).

    d_head      channels of a head
    n_heads     query heads
    n_kv_heads  key heads, each with generators of its own; None: n_heads
    axes        coordinates per token, in the authors' code from 0 to 1: a grid divided by its last row and column
    block       channels of a block; None: 8, as in the paper's LieRE_8, or as many as divide the head. d_head: one block

    Parameter: generators [n_kv_heads, axes, blocks, block, block], U; what is not above the diagonal has no effect. It
    starts uniform in 0 … 2π, as in the authors' code.
    Time O(t·heads·d_head·block²) for exponentials in fp64, and O(t·heads·d_head·block) to turn.
    Raises ValueError for blocks that do not fill the head.
    """

    exact_parameters = ("generators",)

    @checked
    def __init__(
        self, d_head: int, n_heads: int, *, n_kv_heads: int | None = None, axes: int = 2, block: int | None = None
    ) -> None:
        super().__init__(d_head, n_heads, n_kv_heads=n_kv_heads, axes=axes, block=block)
        if axes > 1:
            self.traits = self.traits - {"shift_invariant"}
        self.generators = nn.Parameter(2 * math.pi * torch.rand(self.own, axes, self.blocks, self.block, self.block))

    def exponents(self, coords: Float[Tensor, "b t a"]) -> Float[Tensor, "b t g n s s"]:
        upper = self.generators.double().triu(1)
        return torch.einsum("bta,ganrs->btgnrs", coords, upper - upper.transpose(-1, -2))

    def copy_heads(self, part: LieRE, mine: list[int]) -> None:
        part.generators.copy_(self.generators[mine])


ENTRY = Entry(
    name="liere",
    class_name="LieRE",
    title=Words("LieRE", "李群旋转位置编码"),
    kind="rotated",
    published="2024-06",
    needs=("parameters",),
    axes=2,
    positions=(
        "posenc.Positions.at(posenc.Positions.grid(height, width).coords.double() / torch.tensor([height - 1, width - 1]))"
    ),
    coordinates=Words(
        "Rows and columns divided by the last one, from 0 to 1 in images of the trained size; the class "
        "token is not turned (LieRE's models/rope_vit.py).",
        "行号与列号除以最后一行与最后一列，训练尺寸的图像中从 0 到 1；分类词元不旋转（LieRE 的 models/rope_vit.py）。",
    ),
    both_ways=True,
    per_layer=True,
    formula="exp(Σ p_a A_a)q · exp(Σ p'_a A_a)k",
    also_called=("lie_relative_encodings", "lie_rotational_positional_encodings", "LierePositionEncoder"),
    used_by=(Words("research: vision Transformers by its authors", "研究：作者的视觉 Transformer"),),
    source="Ostmeier et al. 2024, arXiv 2406.10322, section 4, and the authors' code",
    idea=Words(
        "Blocks of channels are turned by the exponential of a learned skew matrix, one for each axis of an image or a "
        "video, mixed by the coordinates. This is more general than turning pairs of channels. The matrices of "
        "different "
        "axes do not commute, so that scores depend on the places of two patches and not only on their offset.",
        "每块通道乘以一个学习得到的反对称矩阵的指数；图像或视频的每个轴各有一个矩阵，按坐标混合。"
        "这比转动通道对更一般。不同轴的矩阵不可交换，因此分数取决于两个图块的位置，而不只取决于相对位移。",
    ),
    latex=r"\Big(e^{\sum_a i_a A_a} q_i\Big) \cdot \Big(e^{\sum_a j_a A_a} k_j\Big), \quad A_a = U_a - U_a^\top",
    breaks=Words(
        "With several axes, a score depends on where two patches are, so that a shifted image gives other scores. "
        "Matrix exponentials are computed in every forward pass. Larger images than those of training meet new "
        "angles.",
        "有多个轴时分数取决于两个图块的位置，图像平移后分数会变。每次前向都要计算矩阵指数。比训练时大的图像会遇到新"
        "的角度。",
    ),
    differs=Words(
        "Generators belong to key heads; the authors' code shares them among all heads or gives each its own. "
        "Exponentials are computed in fp64 instead of fp32.",
        "生成元属于各键头；作者代码或由所有头共用，或各头一套。矩阵指数用 fp64 而不是 fp32 计算。",
    ),
    code="StanfordMIMI/LieRE",
    options={
        "n_kv_heads": "键头数，各有自己的生成元；None 为 n_heads",
        "axes": "每个词的坐标数；作者代码中坐标为 0 到 1：网格除以最后一行和列",
        "block": "一块的通道数；None：8（论文的 LieRE_8），或能整除头的数；d_head 为一整块",
    },
)
