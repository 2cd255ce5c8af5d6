"""Fourier features against loops and the modules of SAM and Perceiver. Tancik et al. 2020; Jaegle et al. 2021."""

import importlib
import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from posenc import Positions
from posenc.encodings.bases.fourier import FourierBands, RandomFourier, spread

from .by_hand import close, draw


def added(encoding, at: Positions) -> torch.Tensor:
    return encoding.embed(torch.zeros(at.batch, at.length, encoding.d_model, dtype=torch.float64), at)


def filled(d: int, axes: int, **options) -> RandomFourier:
    encoding = RandomFourier(d, axes, **options).double()
    with torch.no_grad():
        encoding.matrix.copy_(torch.from_numpy(draw(1, *encoding.matrix.shape)))
    return encoding


@pytest.mark.parametrize(("axes", "reads"), [(1, None), (2, None), (2, (1, 0)), (3, (2, 0))])
def test_random_by_loops(axes, reads):
    encoding, coords = filled(10, axes, reads=reads), np.random.default_rng(0).uniform(size=(2, 4, axes))
    matrix = encoding.matrix.detach().numpy()
    expected = np.zeros((2, 4, 10))
    for b, t, n in np.ndindex(2, 4, 5):
        read = reads or range(axes)
        angle = 2 * math.pi * sum((2 * coords[b, t, axis] - 1) * matrix[row, n] for row, axis in enumerate(read))
        expected[b, t, n], expected[b, t, 5 + n] = math.sin(angle), math.cos(angle)
    at = Positions.at(torch.from_numpy(coords if axes > 1 else coords[..., 0]))
    close(added(encoding, at), expected, 1e-11)


@pytest.mark.parametrize(
    ("family", "name"),
    [("sam", "Sam"), ("sam_hq", "SamHQ"), ("sam2", "Sam2"), ("edgetam", "EdgeTam"), ("sam3_tracker", "Sam3Tracker")],
)
def test_sam_points_and_grid(family, name):
    importlib.import_module("transformers")
    source = __import__(f"transformers.models.{family}.modeling_{family}", fromlist=["x"])
    module = getattr(source, f"{name}PositionalEmbedding")(SimpleNamespace(scale=1.5, num_pos_feats=6, hidden_size=12))
    module.double()
    encoding = RandomFourier(12, reads=(1, 0)).double()
    encoding.load_state_dict({"matrix": module.state_dict()["positional_embedding"]})
    y, x = torch.meshgrid((torch.arange(3) + 0.5) / 3, (torch.arange(5) + 0.5) / 5, indexing="ij")
    expected = module(torch.stack([x, y], dim=-1)[None].double()).detach().reshape(1, 15, 12)
    close(added(encoding, spread(3, 5, 0.0, 1.0, corners=False)), expected, 1e-5)
    points = torch.tensor([[[[3.0, 60.0], [17.0, 2.0]]]]).double() + 0.5
    prompts = RandomFourier(12).double()
    prompts.load_state_dict(encoding.state_dict())
    close(added(prompts, Positions.at(points[0] / 64)), module(points, (64, 64)).detach()[0], 1e-9)


@pytest.mark.parametrize("sines_only", [False, True])
@pytest.mark.parametrize("with_coordinates", [False, True])
@pytest.mark.parametrize("size", [(4, 6), (1, 3), (8,)])
def test_perceiver_bands(size, with_coordinates, sines_only):
    perceiver = importlib.import_module("transformers.models.perceiver.modeling_perceiver")
    module = perceiver.PerceiverFourierPositionEncoding(5, size, with_coordinates, sines_only)
    theirs = module(size, 2, torch.device("cpu"), torch.float32).double()
    encoding = FourierBands(5, size, with_coordinates=with_coordinates, sines_only=sines_only)
    assert encoding.d_model == module.output_size()
    at = spread(*size) if len(size) == 2 else Positions.at(torch.linspace(-1, 1, 8, dtype=torch.float64)[None])
    if size[0] > 1:  # theirs puts a single row at -1, as here
        close(added(encoding, at.expand(2)), theirs.expand(2, -1, -1), 1e-5)
    one = at.coords[0, 2].reshape(-1).tolist()
    bands = [[1 + k * (n / 2 - 1) / 4 for k in range(5)] for n in size]
    angles = [math.pi * f * c for c, of_axis in zip(one, bands, strict=True) for f in of_axis]
    expected = [*(one if with_coordinates else []), *map(math.sin, angles)]
    expected += [] if sines_only else list(map(math.cos, angles))
    close(added(encoding, at)[0, 2], np.array(expected))


def test_spread_reaches_corners_or_middles():
    close(spread(3, 2).coords[0], [[-1, -1], [-1, 1], [0, -1], [0, 1], [1, -1], [1, 1]])
    close(spread(1, 2, 0.0, 1.0, corners=False).coords[0], [[0.5, 0.25], [0.5, 0.75]])
    close(spread(1, 1, 2.0, 3.0).coords[0], [[2.0, 2.0]])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_one_rounding_under_autocast(dtype):
    random, bands, at = RandomFourier(12, scale=10.0), FourierBands(4, (50, 50)), spread(6, 6)
    for encoding in (random, bands):
        x = torch.from_numpy(draw(2, 1, 36, encoding.d_model)).to(dtype)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            got = encoding.embed(x, at)
        exact = encoding.embed(x.double(), at).detach()
        assert got.dtype == dtype
        close(got.double(), exact, torch.finfo(dtype).eps * exact.abs().max().item())


def test_wrong_arguments():
    with pytest.raises(ValueError, match="d_model: expected an even number from 2, got 7"):
        RandomFourier(7)
    with pytest.raises(ValueError, match="scale: expected a positive number"):
        RandomFourier(8, scale=-1.0)
    with pytest.raises(ValueError, match="n_bands: expected a whole number from 1, got 0"):
        FourierBands(0, (4, 4))
    with pytest.raises(ValueError, match="resolution: expected a whole number from 1, got 0"):
        FourierBands(2, (4, 0))
    with pytest.raises(ValueError, match="resolution: expected one number for each coordinate"):
        FourierBands(2, ())
    with pytest.raises(ValueError, match=r"reads 2 coordinate\(s\) per token"):
        added(FourierBands(2, (4, 4)), Positions.arange(1, 3))
