"""A learned number for every head and difference of two positions in a window: Swin, BEiT, LeViT.

    logits += b[h, (Δr + H - 1)·(2W - 1) + Δc + W - 1],   (Δr, Δc) = position of the query - position of the key

Coordinates are (row, column), whole numbers; only differences count, so that the whole image may be numbered through.
Liu et al. 2021, "Swin Transformer", section 3.2, equation 4. A class token has three more numbers: as query, as key and
with itself (Bao et al. 2021, BEiT, and its code). LeViT (Graham et al. 2021, section 4.2) has one for ±Δ: |Δr|·W + |Δc|.
Legend: b batch, t tokens, h query heads, i query, j key, H height, W width of the window.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from posenc.encoding import BiasFn, PositionalEncoding
from posenc.positions import Positions, own_rows
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import check_accepted, check_coords

if TYPE_CHECKING:
    from posenc.support.shapes import Int


class InWindow(PositionalEncoding):
    """What biases of a window share: the row of a table for every pair, and the check that it lies in the window.

    Tokens in different windows belong to different documents (`windows` numbers them); within one, a difference of H rows
    or W columns and more is a ValueError on the CPU, a device assert elsewhere.
    """

    axes = 2
    window: tuple[int, int]
    class_token = False

    def is_class_token(self, coords: Int[Tensor, "b t 2"]) -> Tensor:
        return (coords < 0).any(-1) if self.class_token else torch.zeros_like(coords[..., 0], dtype=torch.bool)

    def check_window(self, at_q: Positions, at_k: Positions) -> None:
        for at in (at_q, at_k):
            check_coords(self, at, integers=True)
        inside = self.is_class_token(at_q.coords)[:, :, None] | self.is_class_token(at_k.coords)[:, None]
        apart = (at_q.coords[:, :, None] - at_k.coords[:, None]).abs()
        inside |= (apart[..., 0] < self.window[0]) & (apart[..., 1] < self.window[1])
        inside |= (at_q.document[:, :, None] != at_k.document[:, None]) | (at_q.document < 0)[:, :, None]
        message = (
            f"{type(self).__name__}: two tokens of one document lie further apart than a window of {self.window}; "
            "windows are documents of their own, see posenc.encodings.bases.window_bias.windows"
        )
        check_accepted(inside, inside, message)

    def offset(self, query: Int[Tensor, "*s 2"], key: Int[Tensor, "*s 2"]) -> Int[Tensor, "*s"]:
        """Which difference: row by row, from furthest before to furthest after. Pairs of two windows get any."""
        height, width = self.window
        down, across = (query - key).unbind(-1)
        down, across = down.clamp(1 - height, height - 1), across.clamp(1 - width, width - 1)
        return (down + height - 1) * (2 * width - 1) + across + width - 1


class WindowBias(InWindow):
    """b[difference in row and column], learned.

    n_heads      query heads
    window       (height, width) of the window, in places
    class_token  three numbers more, for tokens at a negative coordinate such as (-1, -1) (BEiT)
    symmetric    ±Δ share a number (LeViT)

    Parameter: table [differences (+ 3), n_heads], differences row by row, then class token to place, place to class token,
    class token to itself. Not shift invariant with a class token, whose coordinate is a mark.
    """

    reads_vectors = False

    def __init__(
        self, n_heads: int, window: tuple[int, int], *, class_token: bool = False, symmetric: bool = False
    ) -> None:
        checks.whole(n_heads=n_heads)
        window = check_window("WindowBias", window)
        super().__init__(n_heads=n_heads, window=window, class_token=class_token, symmetric=symmetric)
        self.window, self.class_token, self.symmetric = window, class_token, symmetric
        if class_token:
            self.traits = frozenset({"local", "norm_preserving"})
        height, width = window
        self.differences = height * width if symmetric else (2 * height - 1) * (2 * width - 1)
        self.table = nn.Parameter(torch.empty(self.differences + 3 * class_token, n_heads))
        nn.init.trunc_normal_(self.table, std=0.02)

    def row(self, query: Int[Tensor, "*s 2"], key: Int[Tensor, "*s 2"]) -> Int[Tensor, "*s"]:
        """The row of the table for a query and a key at (row, column)."""
        if self.symmetric:
            height, width = self.window
            down, across = (query - key).abs().unbind(-1)
            row = down.clamp(max=height - 1) * width + across.clamp(max=width - 1)
        else:
            row = self.offset(query, key)
        if not self.class_token:
            return row
        from_class, to_class = self.is_class_token(query), self.is_class_token(key)
        row = torch.where(from_class, self.differences, row)
        return torch.where(to_class, torch.where(from_class, self.differences + 2, self.differences + 1), row)

    def bias(self, q: Tensor, k: Tensor, at_q: Positions, at_k: Positions) -> BiasFn:
        self.check_window(at_q, at_k)
        table, query, key = self.table.to(q.dtype), at_q.coords, at_k.coords

        def of_pair(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
            b = own_rows(b, at_q, at_k)
            return table[self.row(query[b, i], key[b, j]), h]

        return of_pair

    @torch.no_grad()
    def resized(self, window: tuple[int, int], mode: Literal["bilinear", "bicubic"] = "bilinear") -> WindowBias:
        """For a window of another size: differences interpolated, the class token's numbers kept.

        mode   "bilinear" is that of transformers for BEiT, "bicubic" that of the authors of Swin
        """
        checks.one_of(("bilinear", "bicubic"), mode=mode)
        part = WindowBias(**{**self.configuration, "window": check_window("WindowBias", window)}).to(self.table)
        old, new = (
            side.window if self.symmetric else (2 * side.window[0] - 1, 2 * side.window[1] - 1) for side in (self, part)
        )
        image = self.table[: self.differences].T.unflatten(1, old)[None]
        part.table[: part.differences] = F.interpolate(image, size=new, mode=mode)[0].flatten(1).T
        part.table[part.differences :] = self.table[self.differences :]
        return part

    @torch.no_grad()
    def heads(self, start: int, stop: int) -> WindowBias:
        part = WindowBias(**{**self.configuration, "n_heads": stop - start}).to(self.table)
        part.table.copy_(self.table[:, start:stop])
        return part


def check_window(owner: str, window: tuple[int, int]) -> tuple[int, int]:
    sizes = tuple(window) if isinstance(window, (tuple, list)) else (window,)
    if len(sizes) != 2:
        raise ValueError(f"{owner}: window: expected (height, width), got {window!r}")
    for size in sizes:
        checks.whole(window=size)
    return sizes[0], sizes[1]


def windows(
    height: int,
    width: int,
    window: tuple[int, int],
    *,
    shift: tuple[int, int] = (0, 0),
    batch: int = 1,
    device: torch.device | str | None = None,
) -> Positions:
    """An image row by row, every window a document; shifted windows are cut where they wrap around (Swin, section 3.2).

    Window borders lie at multiples of the window plus `shift`. Raises ValueError for an image that windows do not fill.
    """
    window = check_window("windows", window)
    if height % window[0] or width % window[1]:
        raise ValueError(f"height, width: {(height, width)} cannot be cut into windows of {window}; pad the image first")
    places = Positions.grid(height, width, device=device)
    row, column = places.coords[0].unbind(-1)
    down, across = ((place - by + size) // size for place, by, size in zip((row, column), shift, window, strict=True))
    document = down * (width // window[1] + 1) + across
    return Positions(places.coords, places.order, document[None]).expand(batch)


@checked
def swin(n_heads: int, *, height: int = 7, width: int = 7) -> WindowBias:
    """`WindowBias` of a window.

    n_heads        query heads
    height, width  of the window, in patches

    Raises ValueError for sizes that are not positive.
    """
    return WindowBias(n_heads, (height, width))


@checked
def levit(n_heads: int, *, height: int = 14, width: int = 14) -> WindowBias:
    """`WindowBias` whose numbers do not depend on the direction.

    n_heads        query heads
    height, width  of the image, in patches

    Raises ValueError for sizes that are not positive.
    """
    return WindowBias(n_heads, (height, width), symmetric=True)


@checked
def beit(n_heads: int, *, height: int = 14, width: int = 14) -> WindowBias:
    """`WindowBias` with a class token, which lies at (-1, -1) or another negative place.

    n_heads        query heads
    height, width  of the image, in patches

    Raises ValueError for sizes that are not positive.
    """
    return WindowBias(n_heads, (height, width), class_token=True)
