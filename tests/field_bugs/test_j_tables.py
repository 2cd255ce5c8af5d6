"""Class J: learned tables, widths and pictures."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch

import posenc
from field_bugs.planting import ends_in
from field_bugs.reference import angles, frequencies
from field_bugs.worlds import near, same, tokens
from posenc import Positions
from posenc.encodings.bases.learned_grid import LearnedGrid
from posenc.encodings.learned import Learned
from posenc.encodings.sinusoidal import Sinusoidal

# J1, J2 -----------------------------------------------------------------------------------------------------------------


def test_J1_rows_before_position_0_belong_to_the_table():
    """BART and OPT: two rows before. RoBERTa: padding_idx + 1 rows, and padding reads the row of padding."""
    x = torch.zeros(1, 4, 8)
    for offset in (0, 2, 4):
        encoding = Learned(8, 10, row_offset=offset)
        assert encoding.table.shape == (10 + offset, 8)
        assert encoding.largest_position() == 9
        same(encoding.embed(x, Positions.arange(1, 4, 6))[0], encoding.table[6 + offset : 10 + offset])
        with pytest.raises(ValueError, match="position 10 is outside 0 … 9"):
            encoding.embed(x, Positions.arange(1, 4, 7))
    roberta = Learned(8, 10, row_offset=2, padding_row=1)
    at = Positions.from_mask(torch.tensor([[1, 1, 0, 0]]))
    same(roberta.embed(x, at)[0], roberta.table[[2, 3, 1, 1]])


def test_J1_files_say_how_many_positions_there_are():
    """514 rows of RoBERTa serve 512 positions; OPT's 2050 serve 2048."""
    roberta = posenc.read_config(
        {
            "model_type": "roberta",
            "hidden_size": 32,
            "num_attention_heads": 4,
            "num_hidden_layers": 1,
            "max_position_embeddings": 514,
            "pad_token_id": 1,
        }
    )
    assert roberta.encoding(0).largest_position() == 511
    opt = posenc.read_config(
        {
            "model_type": "opt",
            "hidden_size": 32,
            "num_attention_heads": 4,
            "num_hidden_layers": 1,
            "max_position_embeddings": 2048,
        }
    )
    assert opt.encoding(0).largest_position() == 2047
    assert opt.encoding(0).table.shape[0] == 2050


def plant_J1_the_offset_is_forgotten(patch):
    patch.setattr(Learned, "embed", lambda self, x, at: x + self.table[at.coords.clamp(0, self.max_positions - 1)])


def test_J2_positions_outside_the_table_are_named():
    x = torch.zeros(1, 3, 8)
    for start, found in ((8, 10), (-1, -1), (10**9, 10**9)):
        with pytest.raises(ValueError, match=rf"position {found} is outside 0 … 9"):
            Learned(8, 10).embed(x, Positions.arange(1, 3, start))
    for coords in ([[[0, 3]]], [[[3, 0]]], [[[0, -2]]], [[[-3, 1]]]):
        with pytest.raises(ValueError, match=r"outside"):
            LearnedGrid(8, 3, 3).embed(torch.zeros(1, 1, 8), Positions.at(torch.tensor(coords)))


@pytest.mark.cuda
def test_J2_on_cuda():
    """In a process of its own: a device assertion ends the use of the device. The message names position and limit."""
    import subprocess
    import sys

    code = (
        "import torch; from posenc import Positions; from posenc.encodings.learned import Learned\n"
        "e = Learned(8, 10).cuda(); e.embed(torch.zeros(1, 3, 8).cuda(), Positions.arange(1, 3, 8, device='cuda'))\n"
        "torch.cuda.synchronize()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "assert" in done.stderr.lower()


def plant_J2_positions_wrap_round(patch):
    patch.setattr(Learned, "embed", lambda self, x, at: x + self.table[at.coords % len(self.table)])


@ends_in(IndexError)
def plant_J2_negative_positions_read_from_the_end(patch):
    def from_the_end(_, at, low, high, why):
        if int(at.coords.max()) > high:
            raise ValueError(f"position {int(at.coords[at.coords > high][0])} is outside {low} … {high}")

    patch.setattr(sys.modules[Learned.__module__], "check_range", from_the_end)


# J3 ---------------------------------------------------------------------------------------------------------------------


def test_J3_every_width_from_1_has_a_sinusoid():
    for d in range(1, 10):
        omega = np.array([10000.0 ** (-2 * i / d) for i in range((d + 1) // 2)])
        turn = angles(range(3, 7), omega)
        got = Sinusoidal(d).embed(torch.zeros(1, 4, d, dtype=torch.float64), Positions.arange(1, 4, 3))[0]
        expected = np.stack([np.sin(turn), np.cos(turn)], axis=-1).reshape(4, -1)[:, :d]
        near(got, expected, f"{d} channels", 1e-12)
        if d > 1 and d % 2:
            padded = Sinusoidal(d, odd="zero").embed(torch.zeros(1, 4, d), Positions.arange(1, 4, 3))
            assert not padded[..., -1].any()


def test_J3_odd_heads_cannot_turn_and_are_refused_by_name():
    for d in (1, 3, 9):
        with pytest.raises(ValueError, match="d_head: expected an even number"):
            posenc.create("rope", d_head=d)
    near(torch.tensor(frequencies(4)), posenc.frequencies.rotary(4).values)


@ends_in(RuntimeError)
def plant_J3_every_width_has_half_as_many_pairs(patch):
    made = posenc.frequencies.rotary
    patch.setattr(posenc.frequencies, "rotary", lambda d, base=10000.0: made(d - d % 2 if d > 1 else 2, base))


# J5 ---------------------------------------------------------------------------------------------------------------------


def test_J5_a_grid_of_14_becomes_every_size():
    """By the size that is wanted, never by a factor: a factor misses 61, 115 and 122."""
    grid = LearnedGrid(4, 14, 14)
    for size in (*range(14, 130, 5), 61, 115, 122):
        assert grid.resize(size, size).table.shape == (size * size, 4), size
        at = Positions.grid(size, size, sized=True)
        if size in (14, 61):
            assert grid.embed(torch.zeros(1, size * size, 4), at).shape == (1, size * size, 4)
    wide = grid.resize(9, 31)
    assert (wide.height, wide.width, len(wide.table)) == (9, 31, 9 * 31)


def test_J5_the_same_size_is_the_same_table_and_x_is_added_once():
    grid, x = LearnedGrid(4, 14, 14), tokens(1, 196, 4)
    same(grid.resize(14, 14).table, grid.table)
    for at in (Positions.grid(14, 14), Positions.grid(14, 14, sized=True)):
        near(grid.embed(x, at)[0], x[0] + grid.table, "", 1e-6)
    row = Learned(4, 14)
    same(row.resize(14).table, row.table)


def plant_J5_sizes_by_a_factor(patch):
    made = LearnedGrid.resize

    def by_factor(self, height, width):
        return made(self, int(self.height * (height / self.height)), int(self.width * (width / self.width)))

    patch.setattr(LearnedGrid, "resize", by_factor)


def plant_J5_the_shortcut_adds_x_twice(patch):
    made = LearnedGrid.embed

    def twice(self, x, at):
        return made(self, x, at) + x * (at.length == self.height * self.width)

    patch.setattr(LearnedGrid, "embed", twice)
