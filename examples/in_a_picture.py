"""Two encodings of rows and columns for the lab's task `picture`, whose tokens the lab numbers one after the other.

token p  ─►  line p // 8, column p % 8

posenc lab run examples/picture.yaml
"""

import torch

import posenc
from posenc import Positions
from posenc.encodings.rope import RoPE
from posenc.encodings.sinusoidal import Sinusoidal

WIDTH = 8


def grid(at):
    """The same tokens with two coordinates each, line and column."""
    return Positions.at(torch.stack([at.coords // WIDTH, at.coords % WIDTH], dim=-1))


class AxialRoPE(RoPE):
    """Axial RoPE: half of the pairs turn with the line, half with the column."""

    def __init__(self, d_head):
        super().__init__(d_head)
        self.traits = self.traits - {"shift_invariant"}  # a shift by one ends a line elsewhere
        self.of_grid = posenc.create("axial_rope", d_head=d_head)

    def tables(self, at, dtype):
        return self.of_grid.tables(grid(at), dtype)


class Sinusoidal2D(Sinusoidal):
    """Sinusoids of the line in one half of the channels, of the column in the other."""

    def __init__(self, d_model):
        super().__init__(d_model)
        self.of_grid = posenc.create("sinusoidal_2d", d_model=d_model)

    def tables(self, at, dtype):
        return self.of_grid.tables(grid(at), dtype)
