"""Windows of an image: each is a document of its own, so that attention stays within it.

    document = window of the patch,   shifted windows are cut where they wrap around

Liu et al. 2021, "Swin Transformer", section 3.2.
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.encodings.bases.window_bias import windows as cut_into_windows
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.languages import Words


@checked
def windows(height: int, width: int, *, side: int = 7, shift: int = 0) -> Positions:
    """`encodings.window_bias.windows`: patches row by row, numbered through, and the window of each.

    height, width  patches of the image, multiples of side
    side           patches of a window down and across
    shift          how far the windows' borders are moved, 0 in every other layer and ⌊side/2⌋ in the rest

    Raises ValueError for an image that windows do not fill.
    """
    checks.whole(side=side)
    checks.whole(0, shift=shift)
    return cut_into_windows(height, width, (side, side), shift=(shift, shift))


ENTRY = Entry(
    name="windows",
    class_name="Positions",
    builder="windows",
    title=Words("Windows of Swin", "Swin 的窗口"),
    kind="positions",
    published="2021-03",
    axes=2,
    formula="(y, x), document = window",
    also_called=(
        "shifted_windows",
        "window_partition",
    ),
    used_by=(
        "Swin",
        "Swin v2",
    ),
    source="Liu et al. 2021, arXiv 2103.14030, section 3.2",
    idea=Words(
        "An image is cut into windows, and tokens see their own window only. Every other layer shifts the borders "
        "by half a window, so that neighbours across a border meet. Attention costs grow with the image instead of "
        "its square.",
        "图像切成窗口，词元只看见自己的窗口。隔层把边界移动半个窗口，使边界两侧的邻居能够相遇。注意力的代价随图像大"
        "小线性增长，而不是平方。",
    ),
    latex=r"(y, x) = (\lfloor n / W \rfloor,\; n \bmod W), \quad \mathrm{document} = \mathrm{window}(y, x)",
    breaks=Words(
        "Nothing is seen beyond a window within one layer; images must be cut into whole windows.",
        "单独一层看不到窗口以外；图像必须能切成整数个窗口。",
    ),
    code="microsoft/Swin-Transformer",
    options={
        "height": "图像的图块数，side 的倍数",
        "width": "图像的图块数，side 的倍数",
        "side": "窗口纵向与横向的图块数",
        "shift": "窗口边界移动的距离：隔层为 0，其余层为 ⌊side/2⌋",
    },
)
