"""DyPE: a diffusion model's positions are stretched while an image begins, and less and less as its details come.

    ntk     base' = base·s^(2t²·d/(d-2))                     t goes from 1, pure noise, to 0, the image
    yarn    YaRN's ramps, moved to pairs that turn t²·β times, so that all pairs are RoPE's again at t = 0

Issachar et al. 2025, "DyPE: Dynamic Position Extrapolation for Ultra High Resolution Diffusion", section 4, with the
numbers of the authors' code. The authors state that a patent is pending.
"""

from __future__ import annotations

from typing import Literal

from posenc import frequencies
from posenc.catalogue.entry import Entry
from posenc.encodings.rope import RoPE
from posenc.frequencies.layouts import Layout
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def dype(
    d_head: int,
    *,
    factor: float = 4.0,
    time: float = 1.0,
    method: Literal["yarn", "ntk"] = "yarn",
    trained_length: int = 64,
    base: float = 10000.0,
    layout: Layout = "interleaved",
) -> RoPE:
    """RoPE of one axis of an image with the frequencies of `frequencies.dype`; make another one at every step.

    d_head          channels of a head, even, from 4
    factor          s: the size wanted over the trained one, along this axis
    time            t of the diffusion step: 1 is pure noise, 0 the image
    method          "yarn", which is best in the paper, or "ntk"
    trained_length  patches along the axis in training: 64 of FLUX, whose images have 1024 pixels
    base            of the trained frequencies
    layout          which channels make a pair

    Raises ValueError for a time outside 0 … 1, a factor below 1 and sizes that do not fit.
    """
    trained = frequencies.rotary(d_head, base)
    return RoPE(d_head, frequencies=frequencies.dype(trained, factor, time, trained_length, method=method), layout=layout)


ENTRY = Entry(
    name="dype",
    class_name="RoPE",
    builder="dype",
    title=Words("DyPE", "DyPE 动态位置外推"),
    kind="scaled",
    published="2025-10",
    formula="base' = base·s^(2t²·d/(d-2)), or YaRN at t²·β",
    also_called=("dynamic_position_extrapolation", "dy_yarn", "dy_ntk", "FluxPosEmbed"),
    used_by=("FLUX", "Qwen-Image"),
    source="Issachar et al. 2025, arXiv 2510.20766, section 4, and the authors' code",
    idea=Words(
        "A diffusion model draws large shapes first and details last. DyPE stretches positions fully at the first step, "
        "for shapes of a size that was never trained, and gives the frequencies back step by step. At the last step they "
        "are those of training, so that details are sharp.",
        "扩散模型先画大的形状，最后画细节。DyPE 在第一步完全拉伸位置，以适应训练中没有的尺寸，之后逐步恢复频率。"
        "最后一步的频率与训练时相同，因此细节清晰。",
    ),
    latex=r"b' = b\, s^{2 t^2 d/(d-2)} \quad \text{or YaRN with } \beta(t) = t^2 \beta",
    breaks=Words(
        "It is for diffusion models, whose steps have a time. Keys of one step cannot be used in another.",
        "用于扩散模型，其步骤有时间。一步的键不能用在另一步。",
    ),
    differs=Words(
        "At times below about 0.01 the authors' ramps turn round, so that all pairs are stretched. Here they end at the "
        "last pair and all are RoPE's.",
        "时间小于约 0.01 时，作者的斜坡会颠倒，使所有通道对都被拉伸。这里斜坡止于最后一对，所有频率与 RoPE 相同。",
    ),
    code="guyyariv/DyPE",
    options={
        "d_head": "每个头的通道数，偶数，至少 4",
        "factor": "s：目标尺寸与训练尺寸之比，沿这个轴",
        "time": "扩散步骤的 t：1 是纯噪声，0 是图像",
        "method": '论文中最好的 "yarn"，或 "ntk"',
        "trained_length": "训练时沿这个轴的图块数：FLUX 为 64，图像 1024 像素",
    },
)
