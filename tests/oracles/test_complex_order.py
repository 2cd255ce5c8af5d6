"""Complex embeddings by Python's complex numbers. Wang et al. 2020, equation 5; the authors' fresh frequencies."""

import cmath

import pytest
import torch

from posenc import Positions
from posenc.encodings.complex_order import ComplexOrder
from posenc.pictures.exported_tables import exported_tables
from posenc.pictures.plots.tables import table_of

from .by_hand import close, draw

D, N = 8, 4


def turned(x, positions, omega, layout, words=None):
    """r·e^(i(ω·pos + θ)) of amplitude r and initial phase θ of every pair."""
    out = x.copy()
    for b in range(x.shape[0]):
        for t in range(x.shape[1]):
            for c in range(N):
                real, imaginary = (c, c + N) if layout == "half" else (2 * c, 2 * c + 1)
                r, theta = cmath.polar(complex(x[b, t, real], x[b, t, imaginary]))
                row = omega[0 if words is None else words[b][t]]
                number = r * cmath.exp(1j * (row[c] * positions[b][t] + theta))
                out[b, t, real], out[b, t, imaginary] = number.real, number.imag
    return out


def made(omega, **options):
    encoding = ComplexOrder(D, **options).double()
    with torch.no_grad():
        encoding.frequency.copy_(torch.from_numpy(omega))
    return encoding


@pytest.mark.parametrize("layout", ["half", "interleaved"])
def test_shared_frequencies_by_complex_numbers(layout):
    x, omega, positions = draw(1, 2, 3, D), draw(2, 1, N), [[0, 3, 17], [40, -2, 5]]
    got = made(omega, layout=layout).embed(torch.from_numpy(x), Positions.at(torch.tensor(positions)))
    close(got, turned(x, positions, omega, layout))


def test_each_word_has_its_own_frequencies():
    x, omega = draw(1, 2, 3, D), draw(2, 5, N)
    positions, words = [[0, 3, 17], [40, 2, 5]], [[4, 0, 0], [1, 3, 2]]
    at = Positions.at(torch.stack([torch.tensor(positions), torch.tensor(words)], dim=-1))
    close(made(omega, n_words=5).embed(torch.from_numpy(x), at), turned(x, positions, omega, "half", words))


@pytest.mark.parametrize("wrong", ["sign", "position", "layout", "word"])
def test_the_oracle_sees_a_broken_formula(wrong):
    x, omega, positions, words = draw(1, 1, 3, D), draw(2, 2, N), [[1, 2, 3]], [[1, 0, 1]]
    at = Positions.at(torch.stack([torch.tensor(positions), torch.tensor(words)], dim=-1))
    got = made(omega, n_words=2).embed(torch.from_numpy(x), at)
    expected = turned(
        x,
        [[p + (wrong == "position") for p in positions[0]]],
        -omega if wrong == "sign" else omega,
        "interleaved" if wrong == "layout" else "half",
        [[0, 1, 0]] if wrong == "word" else words,
    )
    with pytest.raises(AssertionError):
        close(got, expected, atol=1e-3)


def test_a_step_is_the_same_linear_map_everywhere():
    """Property 1 of the paper: what n positions more do does not depend on the position."""
    x, encoding = torch.from_numpy(draw(1, 1, 1, D)), made(draw(2, 1, N))
    once = [encoding.embed(x, Positions.at(torch.tensor([[p]]))) for p in (2, 9)]
    again = [encoding.embed(one, Positions.at(torch.tensor([[5]]))) for one in once]
    for p, got in zip((7, 14), again, strict=True):
        close(got, encoding.embed(x, Positions.at(torch.tensor([[p]]))).detach())


def test_fresh_frequencies_are_those_of_the_authors_transformer():
    found = ComplexOrder(12).double().frequency
    close(found, [[1 / 10000 ** (2 * (hid_idx // 2) / 6) for hid_idx in range(6)]], atol=1e-7)
    assert ComplexOrder(12, n_words=7).frequency.shape == (7, 6)


def test_deeper_layers_do_nothing():
    assert type(ComplexOrder(D).at_layer(1)).__name__ == "PositionalEncoding"


def test_its_picture_shows_the_turn_and_it_has_no_table_of_addends():
    omega = draw(2, 1, N)
    expected = turned(
        torch.cat([torch.ones(1, 5, N), torch.zeros(1, 5, N)], dim=-1).double().numpy(), [range(5)], omega, "half"
    )
    close(table_of(made(omega), 5, D), expected[0])
    with pytest.raises(ValueError, match="there is no table of positions"):
        exported_tables(made(omega), 5)


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="d_model: expected an even number"):
        ComplexOrder(7)
    x = torch.zeros(1, 1, D)
    with pytest.raises(ValueError, match=r"ComplexOrder: word 5 is outside 0 … 4"):
        ComplexOrder(D, n_words=5).embed(x, Positions.at(torch.tensor([[[0, 5]]])))
    with pytest.raises(TypeError, match="needs integer positions"):
        ComplexOrder(D, n_words=5).embed(x, Positions.at(torch.tensor([[[0.0, 1.0]]])))
    with pytest.raises(ValueError, match=r"reads 2 coordinate\(s\) per token"):
        ComplexOrder(D, n_words=5).embed(x, Positions.arange(1, 1))
