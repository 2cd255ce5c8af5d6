"""Windows of an image: each is a document of its own, so that attention stays within it.

    document = window of the patch,   shifted windows are cut where they wrap around

Liu et al. 2021, "Swin Transformer", section 3.2.
"""

from __future__ import annotations

from posenc.encodings.bases.window_bias import windows as cut_into_windows
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked


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
