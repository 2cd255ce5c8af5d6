"""Patch centres at real coordinates: an image spans the same range whatever its size.

    c = low + (index + ½)·(high - low)/n

Siméoni et al. 2025, "DINOv3", section 3.2, and their code (from -1 to 1); Kirillov et al. 2023 (SAM) from 0 to 1.
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.encodings.bases.fourier import spread
from posenc.positions import Positions
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def patch_centres(height: int, width: int, *, low: float = -1.0, high: float = 1.0) -> Positions:
    """`encodings.fourier.spread`: coordinates (y, x) of height·width patches in fp64.

    height, width  patches of the image
    low, high      the ends of the range

    Raises ValueError for sizes that are not positive, and where low is not below high.
    """
    if low >= high:
        raise ValueError(f"low: expected less than high={high:g}, got {low:g}")
    return spread(height, width, low, high, corners=False)


ENTRY = Entry(
    name="patch_centres",
    class_name="Positions",
    builder="patch_centres",
    title=Words("Patch centres", "图块中心"),
    kind="positions",
    published="2023-04",
    axes=2,
    formula="(y, x) = centres between -1 and 1",
    also_called=(
        "normalized_grid",
        "float_ids",
        "float positions",
    ),
    used_by=(
        "DINOv3",
        "Segment Anything",
    ),
    source="Siméoni et al. 2025, arXiv 2508.10104, section 3.2; Kirillov et al. 2023, arXiv 2304.02643",
    idea=Words(
        "Positions are real numbers: the centre of each patch as a share of the image. More patches make the steps "
        "finer and leave the range as it is, so that other resolutions look familiar. It suits encodings that read "
        "real numbers.",
        "位置是实数：每个图块的中心占整幅图像的比例。图块更多时步长更细而范围不变，因此别的分辨率看起来也不陌生。适"
        "合读取实数的编码。",
    ),
    latex=r"c = \mathrm{low} + \left(n + \tfrac{1}{2}\right) \frac{\mathrm{high} - \mathrm{low}}{N}",
    starts=("scratch", "trained"),
    breaks=Words(
        "The distance of two patches depends on how many there are.",
        "两个图块的距离取决于图块总数。",
    ),
    code="facebookresearch/dinov3",
    options={
        "low": "范围的两端",
        "high": "范围的两端",
    },
)
