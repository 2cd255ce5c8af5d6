"""ViT's learned grid: a vector for each patch and one for the class token; other grids are interpolated.

    x_(y,x) + table[y, x],   x_class + table[class]

Dosovitskiy et al. 2020, "An Image is Worth 16x16 Words", section 3.1 and 3.2.
"""

from __future__ import annotations

from posenc.catalogue.entry import Entry
from posenc.encodings.bases.learned_grid import LearnedGrid
from posenc.support.checked import checked


@checked
def vit(
    d_model: int, *, height: int = 14, width: int = 14, class_token: bool = True, antialias: bool = False
) -> LearnedGrid:
    """`LearnedGrid` with bicubic interpolation for images of other sizes, which Positions.grid(…, sized=True) tells.

    d_model        channels
    height, width  patches of the trained images; 14 × 14 are those of 224 pixels
    class_token    one more row, for a token at (-1, 0)
    antialias      other sizes are read with the kernel of timm, softer and wider; otherwise with that of transformers

    Raises ValueError for sizes that are not positive.
    """
    return LearnedGrid(d_model, height, width, prefix=int(class_token), antialias=antialias)


ENTRY = Entry(
    name="vit",
    class_name="LearnedGrid",
    builder="vit",
    title="Learned grid",
    kind="added",
    published="2020-10",
    needs=("parameters",),
    axes=2,
    positions="posenc.Positions.grid(height, width, prefix=1)",
    both_ways=True,
    formula="x + table[y, x]",
    also_called=("vision_transformer", "learned_grid", "vit_position_embeddings", "interpolate_pos_encoding"),
    used_by=("ViT", "CLIP", "DeiT", "DINOv2", "SigLIP", "SigLIP 2", "SAM", "PaddleOCR-VL"),
)
