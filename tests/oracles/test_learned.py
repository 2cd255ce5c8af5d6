"""Learned absolute positions against a table read by hand. Gehring et al. 2017; Devlin et al. 2018; Radford et al. 2018."""

import numpy as np
import pytest
import torch

from posenc import Positions, create
from posenc.encodings.learned import Learned

from .by_hand import close, draw, near_once_rounded


def filled(d_model=4, max_positions=10, row_offset=0, dtype=torch.float64) -> Learned:
    """With a table of its own in every entry, so that no row can stand for another."""
    encoding = Learned(d_model, max_positions, row_offset=row_offset).to(dtype)
    with torch.no_grad():
        encoding.table.copy_(torch.from_numpy(draw(1, max_positions + row_offset, d_model)))
    return encoding


@pytest.mark.parametrize("row_offset", [0, 2])
def test_row_of_the_position_is_added_J1(row_offset):
    """BART and OPT keep two rows before position 0: the table has max_positions + 2 rows."""
    encoding, x = filled(row_offset=row_offset), draw(2, 2, 3, 4)
    rows = encoding.table.detach().numpy()
    assert rows.shape == (10 + row_offset, 4)
    positions = [[7, 0, 9], [1, 1, 4]]
    expected = [[x[b, t] + rows[positions[b][t] + row_offset] for t in range(3)] for b in range(2)]
    close(encoding.embed(torch.from_numpy(x), Positions.at(torch.tensor(positions))), np.array(expected))


def test_one_row_of_positions_serves_a_batch():
    encoding, x = filled(), draw(2, 3, 4, 4)
    expected = x + encoding.table.detach().numpy()[None, 3:7]
    close(encoding.embed(torch.from_numpy(x), Positions.arange(1, 4, 3)), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_keeps_the_dtype_of_the_embeddings(dtype):
    encoding, x = filled(dtype=torch.float32), torch.from_numpy(draw(2, 1, 5, 4)).to(dtype)
    got = encoding.embed(x, Positions.arange(1, 5, 5))
    assert got.dtype == dtype
    exact = x.double() + encoding.table.double()[None, 5:]
    # The row is rounded to x's dtype before the sum is rounded.
    close(got.double(), exact, atol=2 * 4 * torch.finfo(dtype).eps)


@pytest.mark.parametrize("row_offset", [0, 2])
@pytest.mark.parametrize("position", [-1, 10, 11, 1000])
def test_out_of_range_names_position_and_limit_J2_C9(position, row_offset):
    """Also where the table has rows for it: the offset rows are nobody's positions."""
    encoding = filled(row_offset=row_offset)
    at = Positions.at(torch.tensor([[0, 9], [3, position]]))
    with pytest.raises(ValueError, match=rf"Learned: position {position} is outside 0 … 9"):
        encoding.embed(torch.zeros(2, 2, 4), at)


@pytest.mark.parametrize("row_offset", [0, 2])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 10, 11, 25])
def test_resize_interpolates_between_the_ends_J5(size, row_offset):
    """Row r of n stands at r·(10-1)/(n-1) in the old table; the offset rows stay as they are."""
    encoding = filled(row_offset=row_offset)
    old = encoding.table.detach().numpy()
    resized = encoding.resize(size)
    assert resized.max_positions == size
    expected = [*old[:row_offset]]
    for r in range(size):
        place = r * 9 / (size - 1) if size > 1 else 0.0
        below = min(int(place), 8)
        share = place - below
        expected.append((1 - share) * old[row_offset + below] + share * old[row_offset + below + 1])
    close(resized.table, np.array(expected))
    assert torch.equal(encoding.table.detach(), torch.from_numpy(old))
    assert resized.table.requires_grad


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_resize_to_the_same_size_is_the_same_table_J5(dtype):
    encoding = filled(row_offset=2, dtype=dtype)
    resized = encoding.resize(10)
    assert resized.table.dtype == dtype
    assert torch.equal(resized.table, encoding.table)


def test_resize_of_a_16_bit_table_rounds_once_J5():
    encoding = filled(dtype=torch.bfloat16)
    resized, exact = encoding.resize(25), filled()
    with torch.no_grad():
        exact.table.copy_(encoding.table)
    wanted = exact.resize(25).table.detach().numpy()
    near_once_rounded(resized.table.detach().double().numpy(), wanted, 8, 1e-4)


def test_only_rows_asked_for_learn():
    encoding = filled(row_offset=1)
    x, weight = torch.zeros(1, 3, 4, dtype=torch.float64), torch.from_numpy(draw(3, 1, 3, 4))
    (encoding.embed(x, Positions.at(torch.tensor([[4, 8, 4]]))) * weight).sum().backward()
    expected = np.zeros((11, 4))
    expected[5] = (weight[0, 0] + weight[0, 2]).numpy()
    expected[9] = weight[0, 1].numpy()
    close(encoding.table.grad, expected)


def test_trains_to_a_target_S2():
    target = torch.from_numpy(draw(5, 1, 6, 4))
    encoding, at = filled(), Positions.arange(1, 6)
    optimiser = torch.optim.SGD(encoding.parameters(), lr=0.5)
    for _ in range(30):
        optimiser.zero_grad()
        ((encoding.embed(torch.zeros(1, 6, 4, dtype=torch.float64), at) - target) ** 2).sum().mul(0.5).backward()
        optimiser.step()
    close(encoding.table[:6], target[0], atol=1e-6)


def test_fresh_table_is_small_and_random():
    torch.manual_seed(0)
    table = create("learned", d_model=64, n_heads=2, max_positions=512).table
    assert table.shape == (512, 64)
    assert 0.019 < table.std().item() < 0.021


def test_acts_at_the_first_layer_only():
    encoding, x, at = filled(), torch.ones(1, 2, 4), Positions.arange(1, 2)
    assert encoding.at_layer(0) is encoding
    assert torch.equal(encoding.at_layer(2).embed(x, at), x)


def test_wrong_arguments():
    x = torch.zeros(1, 2, 4)
    with pytest.raises(TypeError, match=r"Learned: needs integer positions, got torch\.float64"):
        filled().embed(x, Positions.at(torch.tensor([[0.0, 1.0]])))
    with pytest.raises(ValueError, match=r"reads 1 coordinate\(s\) per token"):
        filled().embed(torch.zeros(1, 4, 4), Positions.grid(2, 2))
    with pytest.raises(ValueError, match="built for d_model=4, got a tensor with 5"):
        filled().embed(torch.zeros(1, 2, 5), Positions.arange(1, 2))
