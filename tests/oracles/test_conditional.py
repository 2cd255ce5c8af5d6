"""Conditional positions against loops over neighbours and Florence-2's own convolutions. Chu et al. 2021, section 3.2."""

import importlib
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from posenc import Positions
from posenc.encodings.conditional import Conditional

from .by_hand import close, draw


def filled(d: int, size: int) -> Conditional:
    encoding = Conditional(d, size).double()
    with torch.no_grad():
        for n, parameter in enumerate(encoding.parameters()):
            parameter.copy_(torch.from_numpy(draw(n, *parameter.shape)))
    return encoding


def by_loops(image: np.ndarray, encoding: Conditional) -> np.ndarray:
    """[h, w, d]"""
    weight, bias = encoding.weight.detach().numpy(), encoding.constant.detach().numpy()
    reach = weight.shape[1] // 2
    out = image + bias
    for y, x, v, h in np.ndindex(*image.shape[:2], *weight.shape[1:]):
        up, left = y + v - reach, x + h - reach
        if 0 <= up < image.shape[0] and 0 <= left < image.shape[1]:
            out[y, x] += weight[:, v, h] * image[up, left]
    return out


@pytest.mark.parametrize("size", [1, 3, 5])
def test_neighbours_by_loops_in_any_order(size):
    encoding, images = filled(3, size), draw(9, 2, 4, 5, 3)
    expected = np.stack([by_loops(image, encoding) for image in images]).reshape(2, 20, 3)
    x, at = torch.from_numpy(images.reshape(2, 20, 3)), Positions.grid(4, 5)
    close(encoding.embed(x, at), expected)
    shuffled = torch.from_numpy(np.random.default_rng(0).permutation(20))
    close(encoding.embed(x[:, shuffled], at.take(shuffled)), expected[:, shuffled])
    close(encoding.embed(x, at.shift(7)), expected)


def test_packed_images_padding_and_cls():
    """[CLS | 2 × 3 | 3 × 2 | padding] in one row: nobody reads across."""
    encoding, x = filled(3, 3), draw(9, 1, 15, 3)
    coords = [Positions.grid(2, 3, prefix=1).coords, Positions.grid(3, 2).coords, torch.zeros(1, 2, 2, dtype=torch.long)]
    document = torch.tensor([[0] * 7 + [1] * 6 + [-1] * 2])
    at = replace(Positions.at(torch.cat(coords, dim=1)), document=document)
    got = encoding.embed(torch.from_numpy(x), at).detach().numpy()[0]
    close(got[1:7], by_loops(x[0, 1:7].reshape(2, 3, 3), encoding).reshape(6, 3))
    close(got[7:13], by_loops(x[0, 7:13].reshape(3, 2, 3), encoding).reshape(6, 3))
    np.testing.assert_array_equal(got[[0, 13, 14]], x[0, [0, 13, 14]])


def test_florence2():
    florence = importlib.import_module("transformers.models.florence2.modeling_florence2")
    config = SimpleNamespace(
        embed_dim=[4],
        num_heads=[1],
        num_groups=[1],
        window_size=2,
        mlp_ratio=1.0,
        qkv_bias=True,
        drop_path_rate=0.0,
        activation_function="gelu",
    )
    block = florence.Florence2VisionSpatialBlock(config, 0, 0.0).double()
    encoding = Conditional(4).double()
    encoding.load_state_dict({"weight": block.conv1.weight[:, 0], "constant": block.conv1.bias})
    x = torch.from_numpy(draw(9, 2, 20, 4))
    image = x.transpose(1, 2).view(2, 4, 4, 5)
    close(encoding.embed(x, Positions.grid(4, 5)), (block.conv1(image) + image).flatten(2).transpose(1, 2).detach())


def test_one_rounding():
    at, x = Positions.grid(2, 3), torch.from_numpy(draw(9, 1, 6, 2)).bfloat16()
    rounded = Conditional(2).bfloat16()
    exact = Conditional(2).double()
    exact.load_state_dict(rounded.state_dict())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        got = rounded.embed(x, at)
    wanted = exact.embed(x.double(), at)
    close(got.double(), wanted, 0.5 * torch.finfo(torch.bfloat16).eps * wanted.abs().max().item() + 1e-5)


def test_wrong_arguments():
    for size, kind in ((0, "a whole"), (2, "an odd")):
        with pytest.raises(ValueError, match=f"kernel_size: expected {kind} number from 1"):
            Conditional(4, size)
    with pytest.raises(ValueError, match="kernel_size: expected a whole number of up to 64 bits, got True"):
        Conditional(4, True)
    with pytest.raises(TypeError, match="needs integer positions"):
        filled(2, 3).embed(torch.zeros(1, 3, 2), Positions.at(torch.zeros(1, 3, 2)))
