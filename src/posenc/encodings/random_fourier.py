"""Random Fourier features: sines and cosines of a Gaussian projection of coordinates between 0 and 1.

    x + [sin 2πz | cos 2πz],   z = (2c - 1)·B,   B ~ N(0, scale²)

Tancik et al. 2020, "Fourier Features Let Networks Learn High Frequency Functions in Low Dimensional Domains", section 5;
Kirillov et al. 2023 (SAM), appendix A. Positions: posenc.positions_by("patch_centres", …, low=0.0, high=1.0).
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.encodings.bases.fourier import RandomFourier
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def random_fourier(d_model: int, *, scale: float = 1.0) -> RandomFourier:
    """`RandomFourier` of two coordinates, read as (x, y) as SAM does.

    d_model  channels, an even number
    scale    standard deviation of the matrix when drawn

    Raises ValueError for an odd width.
    """
    return RandomFourier(d_model, reads=(1, 0), scale=scale)


ENTRY = Entry(
    name="random_fourier",
    class_name="RandomFourier",
    builder="random_fourier",
    title=Words("Random Fourier features", "随机傅里叶特征"),
    kind="added",
    published="2020-06",
    needs=("parameters",),
    axes=2,
    positions='posenc.positions_by("patch_centres", height=height, width=width, low=0.0, high=1.0)',
    coordinates=Words(
        "Middles of the patches as fractions of the image, from 0 to 1; clicks and corners of boxes "
        "likewise, (pixel + ½)/size (SAM's prompt_encoder.py).",
        "图块中心占图像的比例，从 0 到 1；点击和框的角点同样取（像素 + ½）/ 尺寸（SAM 的 prompt_encoder.py）。",
    ),
    both_ways=True,
    formula="x + [sin 2πBc, cos 2πBc]",
    also_called=(
        "fourier_features",
        "gaussian_fourier",
        "PositionEmbeddingRandom",
    ),
    used_by=("Segment Anything",),
    source="Tancik et al. 2020, arXiv 2006.10739, section 5; Kirillov et al. 2023, arXiv 2304.02643, appendix A",
    idea=Words(
        "Points of an image are projected by a random matrix, which is drawn once and kept, and sines and cosines "
        "are taken. Every channel sees a wave of its own direction and length, so that boxes and clicks at any "
        "place can be encoded. Nothing of it is trained.",
        "图像中的点先用一个随机矩阵投影（只抽取一次），再取正弦和余弦。每个通道看到方向和波长各不相同的波，任意位置"
        "的框和点击都能编码。它不参加训练。",
    ),
    latex=r"x + [\, \sin 2\pi z \,|\, \cos 2\pi z \,], \quad z = (2c - 1) B, \quad B \sim \mathcal{N}(0, \sigma^2)",
    breaks=Words(
        "The scale of the random matrix decides which distances can be told apart, and no training mends a bad one.",
        "随机矩阵的尺度决定哪些距离可以区分；选得不好，训练也无法弥补。",
    ),
    code="tancik/fourier-feature-networks",
    options={
        "d_model": "通道数，偶数",
        "scale": "随机矩阵的标准差",
    },
)
