"""FLOATER against scipy's solver of order 8 on the same parameters, read out by value. Liu et al. 2020, section 3."""

import copy
import pickle

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp

from posenc import Positions
from posenc.encodings.floater import FLOATER

from .by_hand import close, draw

TIGHT = {"rtol": 1e-11, "atol": 1e-12}
# Between its steps the solver interpolates with order 4, which the tolerances do not control: measured 2e-10 at TIGHT and
# 4e-7 of the largest entry at the defaults. scipy's path, asked again with steps of at most 0.001, moves by 3e-13.
SOLVED = 1e-9


def filled(d_model=5, n_layers=3, dtype=torch.float64, **options) -> FLOATER:
    """With every parameter random, biases included, and a path that bends within a few positions."""
    encoding = FLOATER(d_model, n_layers, **options).to(dtype)
    with torch.no_grad():
        for seed, parameter in enumerate(encoding.parameters()):
            parameter.copy_(torch.from_numpy(draw(seed, *parameter.shape) * 0.5))
    return encoding


def path(encoding: FLOATER, layer: int, times) -> np.ndarray:
    """p(t) = p(0) + ∫h(τ, p)dτ with h(τ, p) = W₂[tanh(W₁[p, τ] + b₁), τ] + b₂."""
    values = {name: parameter.detach().double().numpy() for name, parameter in encoding.named_parameters()}

    def velocity(time, state):
        hidden = values["inner.weight"] @ np.append(state, time) + values["inner.bias"]
        return values["outer.weight"] @ np.append(np.tanh(hidden), time) + values["outer.bias"]

    grown, index = np.unique(np.asarray(times, dtype=np.float64), return_inverse=True)
    span = (0.0, max(grown[-1], 1e-9))
    solved = solve_ivp(velocity, span, values["start"][layer], method="DOP853", t_eval=grown, rtol=1e-12, atol=1e-13)
    return solved.y.T[index]


def at(*positions) -> Positions:
    return Positions.at(torch.tensor([positions]))


@pytest.mark.parametrize("layer", [0, 1, 2])
def test_every_layer_follows_its_own_path_S6(layer):
    encoding, positions = filled(step=0.05, **TIGHT), [0, 1, 2, 7, 20, 40]
    x = draw(9, 1, 6, 5)
    got = encoding.at_layer(layer).embed(torch.from_numpy(x), at(*positions))
    close(got, x + path(encoding, layer, [0.05 * p for p in positions])[None], atol=SOLVED)


def test_layers_differ_and_share_their_parameters():
    encoding = filled(**TIGHT)
    assert np.abs(path(encoding, 0, [1.0]) - path(encoding, 1, [1.0])).max() > 0.1
    view = encoding.at_layer(1)
    assert [p.data_ptr() for p in view.parameters()] == [p.data_ptr() for p in encoding.parameters()]
    assert encoding.at_layer(0) is encoding
    assert view.at_layer(0).layer == 0
    for wrong in (-1, 3):
        with pytest.raises(ValueError, match=f"built for n_layers=3, asked for layer {wrong}"):
            encoding.at_layer(wrong)


def test_order_repeats_and_rows_are_kept():
    encoding, positions = filled(**TIGHT), [[30, 3, 3, 0], [2, 100, 0, 3]]
    got = encoding.embed(torch.zeros(2, 4, 5, dtype=torch.float64), Positions.at(torch.tensor(positions)))
    expected = np.array([path(encoding, 0, [0.01 * p for p in row]) for row in positions])
    close(got, expected, atol=SOLVED)


def test_real_positions_lie_on_the_same_path():
    encoding, positions = filled(step=0.1, **TIGHT), [0.5, 7.25, 0.0, 12.75]
    got = encoding.embed(torch.zeros(1, 4, 5, dtype=torch.float64), at(*positions))
    close(got, path(encoding, 0, [0.1 * p for p in positions])[None], atol=SOLVED)


def test_goes_on_beyond_any_trained_length_without_new_parameters_S6():
    encoding, before = filled(**TIGHT), 3 * 5 + 2 * (5 * 6 + 5)
    got = encoding.embed(torch.zeros(1, 2, 5, dtype=torch.float64), at(10, 300))
    assert sum(parameter.numel() for parameter in encoding.parameters()) == before
    expected = path(encoding, 0, [0.1, 3.0])[None]
    close(got, expected, atol=SOLVED * np.abs(expected).max())


def test_default_tolerances():
    """rtol 1e-7, atol 1e-8, in fp32 and in fp64."""
    for dtype in (torch.float32, torch.float64):
        encoding = filled(dtype=dtype)
        got = encoding.embed(torch.zeros(1, 3, 5, dtype=dtype), at(1, 30, 100)).double()
        expected = path(encoding, 0, [0.01, 0.3, 1.0])
        close(got[0], expected, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_one_position_alone_is_bit_for_bit_the_one_on_the_path(dtype):
    encoding = filled(dtype=dtype)
    together = encoding.embed(torch.zeros(1, 6, 5, dtype=dtype), at(0, 1, 2, 13, 64, 200))
    for place, position in enumerate((0, 1, 2, 13, 64, 200)):
        alone = encoding.embed(torch.zeros(1, 1, 5, dtype=dtype), at(position))
        assert torch.equal(alone[0, 0], together[0, place])


def test_prepared_paths_serve_every_layer():
    encoding, positions = filled(), Positions.arange(2, 4, 3)
    prepared = encoding.prepare(positions)
    x = torch.from_numpy(draw(9, 2, 4, 5)).float()
    for layer in range(3):
        view = encoding.at_layer(layer)
        assert torch.equal(view.embed(x, prepared), view.embed(x, positions))


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda module: pickle.loads(pickle.dumps(module))], ids=["copy", "pickle"]
)
def test_copied_layers_still_share_their_tables(copied):
    """A model holds one view per layer; a copy of it prepares once for all its layers, and refuses the original's."""
    encoding, positions, x = filled(), Positions.arange(1, 4), torch.zeros(1, 4, 5, dtype=torch.float64)
    model = copied(torch.nn.ModuleList([encoding.at_layer(0), encoding.at_layer(1)]))
    prepared = model[0].prepare(positions, torch.float64)
    for layer in (0, 1):
        assert torch.equal(model[layer].embed(x, prepared), encoding.at_layer(layer).embed(x, positions))
    with pytest.raises(ValueError, match="prepared by"):
        model[1].embed(x, encoding.prepare(positions, torch.float64))


def test_16_bits_in_and_out_with_the_path_in_32():
    encoding = filled(dtype=torch.bfloat16)
    x = torch.from_numpy(draw(9, 1, 3, 5)).bfloat16()
    got = encoding.embed(x, at(5, 50, 90))
    assert got.dtype == torch.bfloat16
    expected = x.double() + torch.from_numpy(path(encoding, 0, [0.05, 0.5, 0.9]))[None]
    close(got.double(), expected, atol=2**-8 * expected.abs().max().item())


def test_defaults_are_those_of_the_authors_code():
    assert FLOATER(4).step == 0.01
    assert FLOATER(4).start.shape == (1, 4)
    fresh = FLOATER(64, 2)
    assert not fresh.inner.bias.any()
    assert not fresh.outer.bias.any()
    assert fresh.start.std() > 0.05


def test_wrong_arguments():
    encoding = filled()
    with pytest.raises(ValueError, match="the path starts at position 0, got position -2"):
        encoding.embed(torch.zeros(1, 2, 5), at(3, -2))
    with pytest.raises(ValueError, match=r"reads 1 coordinate\(s\) per token"):
        encoding.embed(torch.zeros(1, 4, 5), Positions.grid(2, 2))
    with pytest.raises(ValueError, match="built for d_model=5, got a tensor with 4"):
        encoding.embed(torch.zeros(1, 2, 4), at(1, 2))
