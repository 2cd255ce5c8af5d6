"""A learned vector for every cell of a grid, added to the patches of an image; other sizes are interpolated.

    x_(y,x) + Σ_r Σ_c w_y(r)·w_x(c)·table[r, c]          w is 1 at the cell itself where the image has the grid of the table

Dosovitskiy et al. 2020 (ViT), section 3.2; sizes that vary within a batch: Dehghani et al. 2023 (NaViT), section 2.1.
Legend: b batch, t tokens, d d_model, r and c rows and columns of the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from posenc.encoding import AbsoluteEncoding
from posenc.encodings.bases.coordinates import check_reads, select
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import check_accepted, check_coords, check_embeddings, full_precision, working_dtype

if TYPE_CHECKING:
    from posenc.support.shapes import Bool, Float, Int

Mode = Literal["bicubic", "bilinear", "nearest", "bucket", "tile"]
Border = Literal["repeat", "zero"]


class LearnedGrid(AbsoluteEncoding):
    """x + the vector of the token's cell.

    d_model        channels
    height, width  of the learned grid
    prefix         tokens that are no patches and have rows of their own, before the grid in the table (CLS, distillation)
    mode           how a grid of another size is read: "bicubic" (ViT), "bilinear", "nearest" (the cell that holds the
                   patch's corner) or "bucket", the same in fp32 fractions as Idefics 2 and 3 compute it for parity: one
                   cell less for some patches where the image has 25, 49, 50 or 55 of 70; "tile" repeats the grid (SAM 3;
                   the window of SAM 2's Hiera, stacked on a bicubic grid)
    antialias      wider kernels where the image has fewer patches than the grid (SigLIP 2 bilinear, DINOv2 with registers)
    align_corners  first and last patch sit on the first and last cell (Qwen3-VL); otherwise cells share the image evenly
    axes, reads    where positions hold more (frames): how many coordinates, and which are y, x and perhaps height, width
    surplus        kernels read the grid as for so much of a patch more than the image has (Idefics: 0.1, against rounding)
    border         what kernels see beyond the grid: "repeat" its edge, or "zero" (Muse)

    Coordinates are whole numbers, (y, x) where the image has the grid of the table and (y, x, height, width) where it has
    its own, as `Positions.grid(height, width, prefix=…, sized=True)` gives them: every image of a batch may have its size.
    Patches that are a part of an image stand at their (y, x) in it: `Positions.grid(…).take(kept)`, or a `start`.
    Prefix token k stands at y = -1, x = k; a token at (-1, -1) gets nothing (registers that come in later).
    `resize` makes the table of one size once, for models that run at one.

    Parameter: table [prefix + height·width, d_model], prefix first, then row by row.
    Raises ValueError for a position outside the grid or the prefix (a device assert off the CPU), and for those of all
    patches of an image of another size than the table's without that size.
    """

    def __init__(
        self,
        d_model: int,
        height: int,
        width: int,
        *,
        prefix: int = 0,
        mode: Mode = "bicubic",
        antialias: bool = False,
        align_corners: bool = False,
        border: Border = "repeat",
        axes: int | None = None,
        reads: Sequence[int] | None = None,
        surplus: float = 0.0,
    ) -> None:
        checks.whole(d_model=d_model, height=height, width=width)
        checks.whole(0, prefix=prefix)
        if axes is not None:
            checks.whole(axes=axes)
        checks.one_of(get_args(Mode), mode=mode)
        checks.one_of(get_args(Border), border=border)
        super().__init__(
            d_model=d_model,
            height=height,
            width=width,
            prefix=prefix,
            mode=mode,
            antialias=antialias,
            align_corners=align_corners,
            border=border,
            axes=axes,
            reads=reads,
            surplus=surplus,
        )
        if surplus and (mode not in ("bicubic", "bilinear") or antialias or align_corners or not 0 < surplus < 1):
            raise ValueError(f"surplus: expected a part of a patch, for kernels alone, got {surplus!r} with mode={mode!r}")
        self.surplus = surplus
        if (axes is None) != (reads is None):
            raise ValueError("axes, reads: expected both or neither")
        self.reads = None if axes is None else check_reads(reads, axes)
        if self.reads is not None and len(self.reads) not in (2, 4):
            raise ValueError(f"reads: expected the coordinates (y, x) or (y, x, height, width), got {reads}")
        self.axes = axes or 2
        if antialias + align_corners > (mode in ("bicubic", "bilinear")):
            raise ValueError("antialias, align_corners: one of them at most, and both for kernels only")
        self.d_model, self.height, self.width, self.prefix = d_model, height, width, prefix
        self.mode, self.antialias, self.align_corners, self.border = mode, antialias, align_corners, border
        self.table = nn.Parameter(torch.empty(prefix + height * width, d_model).normal_(std=0.02))

    def embed(self, x: Float[Tensor, "b t d"], at: Positions) -> Float[Tensor, "b t d"]:
        check_embeddings(self, x, at)
        coords = self._checked(at)
        y, column = coords[..., 0], coords[..., 1]
        patch, nothing = y >= 0, (y < 0) & (column < 0)
        prefix_row = column.clamp(0, max(self.prefix - 1, 0))
        if coords.shape[-1] == 2:
            rows = torch.where(patch, self.prefix + y * self.width + column, prefix_row)
            added = F.embedding(rows, self.table)
        else:
            dtype = working_dtype(x.dtype)
            weights = self._weights_of_cells(coords, dtype)
            with full_precision(x):
                added = weights @ self.table[self.prefix :].to(dtype)
            if self.prefix:
                added = torch.where(patch[..., None], added, F.embedding(prefix_row, self.table).to(dtype))
        return x + added.masked_fill(nothing[..., None], 0).to(x.dtype)

    def _weights_of_cells(self, coords: Int[Tensor, "b t 4"], dtype: torch.dtype) -> Float[Tensor, "b t cells"]:
        """How much each cell of the table counts for a patch (y, x, height, width); tokens off the grid get any cell."""
        y, x, height, width = (coords[..., axis].clamp(min=least) for axis, least in enumerate((0, 0, 1, 1)))
        weights_y, weights_x = self.cell_weights(y, height, self.height), self.cell_weights(x, width, self.width)
        return (weights_y.to(dtype)[..., :, None] * weights_x.to(dtype)[..., None, :]).flatten(-2)

    def cell_weights(self, index: Int[Tensor, "b t"], size: Int[Tensor, "b t"], cells: int) -> Float[Tensor, "b t cells"]:
        """How much each of `cells` on an axis counts for patch `index` of `size`: 1 in sum, less at a zero border."""
        cell = torch.arange(cells, device=index.device)
        if self.mode == "nearest":
            return (cell == (index * cells // size)[..., None]).double()
        if self.mode == "bucket":
            starts = torch.arange(1 / cells, 1.0, 1 / cells, dtype=torch.float32, device=index.device)
            fraction = (index.float() * (1.0 / size.float())).clamp(max=1.0 - 1e-6)
            return (cell == torch.bucketize(fraction, starts, right=True)[..., None]).double()
        if self.mode == "tile":
            return (cell == (index % cells)[..., None]).double()
        i, n = index.double()[..., None], size.double()[..., None]
        place = (
            i * (cells - 1) / (n - 1).clamp(min=1) if self.align_corners else (i + 0.5) * cells / (n + self.surplus) - 0.5
        )
        if self.antialias:
            stretch = (cells / n).clamp(min=1)
            raw = kernel(((cell - place) / stretch).abs(), self.mode, sharpness=-0.5)
            return raw / raw.sum(dim=-1, keepdim=True)
        reach = 2 if self.mode == "bicubic" else 1  # cells beyond the edge count for the edge
        padded = torch.arange(-reach, cells + reach, device=index.device)
        raw = kernel((padded - place).abs(), self.mode, sharpness=-0.75)
        inner = raw[..., reach : reach + cells]
        if self.border == "zero":
            return inner
        low, high = raw[..., :reach].sum(dim=-1, keepdim=True), raw[..., reach + cells :].sum(dim=-1, keepdim=True)
        return inner + low * (cell == 0) + high * (cell == cells - 1)

    def _checked(self, at: Positions) -> Int[Tensor, "b t axes"]:
        """(y, x) or (y, x, height, width), each inside its grid."""
        given = at
        if self.reads is not None:
            check_coords(self, at)
            at = select(at, self.reads)
        coords = at.coords
        if coords.ndim != 3 or coords.shape[-1] not in (2, 4):
            raise ValueError(
                f"LearnedGrid: reads (y, x) or (y, x, height, width), got coords {list(coords.shape)}; "
                "Positions.grid(height, width, sized=True) gives them"
            )
        if coords.is_floating_point():
            raise TypeError(f"LearnedGrid: needs whole patches, got {coords.dtype}")
        if coords.shape[-1] == 2 and given.grid_sizes is not None:
            sizes = tuple(given.grid_sizes[axis] for axis in self.reads or (0, 1))
            if sizes != (self.height, self.width):
                raise ValueError(
                    f"positions: those of an image of {sizes[0]} × {sizes[1]} patches, and the table is of {self.height} × "
                    f"{self.width}; Positions.grid(…, sized=True) reads it at that size, encoding.resize{sizes} "
                    "makes a table of it, and Positions.grid(…, start=…) are the patches of a part of an image"
                )
        high, wide = (self.height, self.width) if coords.shape[-1] == 2 else (coords[..., 2], coords[..., 3])
        y, x = coords[..., 0], coords[..., 1]
        patch = (y >= 0) & (y < high) & (x >= 0) & (x < wide)
        inside: Bool[Tensor, "b t"] = patch | ((y == -1) & (x >= -1) & (x < self.prefix))
        message = (
            f"LearnedGrid: a token at {{}} is outside the grid {self.height} × {self.width} and none of {self.prefix} "
            "prefix tokens; positions in an image of another size are (y, x, height, width)"
        )
        check_accepted(coords, inside, message)
        return coords

    @torch.no_grad()
    def resize(self, height: int, width: int) -> LearnedGrid:
        """A new encoding whose table is this one read at height × width; the prefix rows stay as they are."""
        options = {key: value for key, value in self.configuration.items() if key not in ("height", "width")}
        resized = LearnedGrid(height=height, width=width, **options).to(self.table)
        cells = Positions.grid(height, width, sized=True, device=self.table.device).coords
        table = self.table[self.prefix :].double()
        whole = (self._weights_of_cells(cells, torch.float64) @ table)[0].to(self.table.dtype)
        resized.table.copy_(torch.cat([self.table[: self.prefix], whole]))
        return resized


def kernel(distance: Float[Tensor, "*s"], mode: Mode, sharpness: float) -> Float[Tensor, "*s"]:
    """The hat 1 - |z|, or Keys' cubic with a = `sharpness`: -0.75 in OpenCV and torch, -0.5 in Pillow and with antialias.

    Keys 1981, "Cubic Convolution Interpolation for Digital Image Processing".
    """
    z, a = distance, sharpness
    if mode == "bilinear":
        return (1 - z).clamp(min=0)
    near = ((a + 2) * z - (a + 3)) * z * z + 1
    far = ((a * z - 5 * a) * z + 8 * a) * z - 4 * a
    return torch.where(z <= 1, near, torch.where(z < 2, far, torch.zeros_like(z)))


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
