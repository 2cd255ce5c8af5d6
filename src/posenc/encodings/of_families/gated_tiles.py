"""Learned vectors for the tiles of an image, which depend on its aspect ratio, multiplied by a gate.

    patches   x + (1 - tanh g)·patch[p] + tanh g·tile[r, n, p]          tiles only   x + tanh g·tile[r, n]

Grattafiori et al. 2024, "The Llama 3 Herd of Models", section 7.1, in their code (Mllama). The gate starts at 0: a model
of one tile goes on as it was.
Legend: b batch, t tokens, d d_model; r aspect ratio, n tile, p patch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from posenc.encoding import AbsoluteEncoding
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.tensors import check_accepted, check_coords, check_embeddings, full_precision, working_dtype

if TYPE_CHECKING:
    from posenc.support.shapes import Float


class GatedTiles(AbsoluteEncoding):
    """x + the gated vectors of a token's tile, and of its patch where patches have their own.

    d_model    channels
    n_ratios   numbers of aspect ratios, 0 (none) among them
    n_tiles    tiles of an image at most
    n_patches  patches of a tile, CLS among them; None: one vector for all patches of a tile, the coordinate is not read

    Coordinates are whole numbers (aspect ratio, tile, patch).
    Parameters: gate [1], tiles [r, n, p, d] (p = 1 without patches), patches [p, d].
    Raises ValueError for a coordinate that there is not (a device assert off the CPU).
    """

    axes = 3

    def __init__(self, d_model: int, n_ratios: int, n_tiles: int, n_patches: int | None = None) -> None:
        super().__init__(d_model=d_model, n_ratios=n_ratios, n_tiles=n_tiles, n_patches=n_patches)
        rows = 1 if n_patches is None else n_patches
        checks.whole(d_model=d_model, n_ratios=n_ratios, n_tiles=n_tiles, n_patches=rows)
        self.d_model, self.sizes, self.by_patch = d_model, (n_ratios, n_tiles, rows), n_patches is not None
        self.gate = nn.Parameter(torch.zeros(1))
        self.tiles = nn.Parameter(torch.empty(*self.sizes, d_model).normal_(std=0.02))
        if self.by_patch:
            self.patches = nn.Parameter(torch.empty(self.sizes[2], d_model).normal_(std=d_model**-0.5))

    def embed(self, x: Float[Tensor, "b t d"], at: Positions) -> Float[Tensor, "b t d"]:
        check_embeddings(self, x, at)
        check_coords(self, at, integers=True)
        coords = at.coords if self.by_patch else at.coords * torch.tensor([1, 1, 0], device=at.coords.device)
        inside = ((coords >= 0) & (coords < torch.tensor(self.sizes, device=coords.device))).all(dim=-1)
        check_accepted(coords, inside, f"GatedTiles: a token at (aspect ratio, tile, patch) = {{}} is outside {self.sizes}")
        dtype = working_dtype(x.dtype)
        ratio, tile, patch = coords.unbind(-1)
        with full_precision(x):
            gate = self.gate.to(dtype).tanh()
            added = gate * self.tiles[ratio, tile, patch].to(dtype)
            if self.by_patch:
                added = added + (1 - gate) * self.patches[patch].to(dtype)
        return (x.to(dtype) + added).to(x.dtype)


def tile_positions(ratios: Tensor, n_tiles: int, n_patches: int) -> Positions:
    """Every patch of every tile, tile by tile, of images [b] with these aspect ratio numbers: [b, tiles·patches, 3]."""
    if ratios.ndim != 1:
        raise ValueError(f"ratios: expected one number for each image [b], got {list(ratios.shape)}")
    grid = Positions.grid(n_tiles, n_patches, batch=len(ratios), device=ratios.device).coords
    return Positions.at(torch.cat([ratios[:, None, None].expand(-1, grid.shape[1], 1), grid], dim=-1))
