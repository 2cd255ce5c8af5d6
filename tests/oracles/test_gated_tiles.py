"""Gated tile vectors against loops and Mllama's own modules."""

import importlib
import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from posenc import Positions
from posenc.encodings.of_families.gated_tiles import GatedTiles, tile_positions

from .by_hand import close, draw

RATIOS = torch.tensor([2, 0])
CONFIG = SimpleNamespace(max_num_tiles=4, max_aspect_ratio_id=2, image_size=4, patch_size=2, hidden_size=6)


def filled(encoding: GatedTiles) -> GatedTiles:
    with torch.no_grad():
        for n, parameter in enumerate(encoding.double().parameters()):
            parameter.copy_(torch.from_numpy(draw(n, *parameter.shape)))
    return encoding


def test_every_patch_by_loops():
    encoding, x = filled(GatedTiles(6, 3, 4, 5)), draw(9, 2, 20, 6)
    gate, tiles, patches = (getattr(encoding, name).detach().numpy() for name in ("gate", "tiles", "patches"))
    expected = np.zeros_like(x)
    for b, t in np.ndindex(2, 20):
        tile, patch = divmod(t, 5)
        share = math.tanh(gate[0])
        expected[b, t] = x[b, t] + (1 - share) * patches[patch] + share * tiles[int(RATIOS[b]), tile, patch]
    close(encoding.embed(torch.from_numpy(x), tile_positions(RATIOS, 4, 5)), expected)


def test_mllama_patches_and_tiles():
    mllama = importlib.import_module("transformers.models.mllama.modeling_mllama")
    module = mllama.MllamaPrecomputedPositionEmbedding(CONFIG).double()
    encoding = filled(GatedTiles(6, 3, 4, 5))
    state = {"gate": encoding.gate, "embedding": encoding.patches, "tile_embedding.weight": encoding.tiles.flatten(1)}
    module.load_state_dict(state)
    x = torch.from_numpy(draw(9, 2, 4, 5, 6))
    got = encoding.embed(x.flatten(1, 2), tile_positions(RATIOS, 4, 5))
    close(got, module(x, RATIOS).detach().flatten(1, 2))


@pytest.mark.parametrize("start", [0.0, -0.8])
def test_mllama_tiles_alone(start):
    mllama = importlib.import_module("transformers.models.mllama.modeling_mllama")
    module = mllama.MllamaPrecomputedAspectRatioEmbedding(CONFIG).double()
    encoding = filled(GatedTiles(6, 3, 4))
    torch.nn.init.constant_(encoding.gate, start)
    module.load_state_dict({"gate": encoding.gate, "embedding.weight": encoding.tiles.flatten(1)})
    x = torch.from_numpy(draw(9, 2, 4, 7, 6))
    got = encoding.embed(x.flatten(1, 2), tile_positions(RATIOS, 4, 7))
    close(got, module(x, RATIOS).detach().flatten(1, 2))
    assert (start == 0) == torch.equal(got, x.flatten(1, 2))


@pytest.mark.parametrize("place", [[3, 0, 0], [0, 4, 0], [0, 0, 5], [-1, 0, 0]])
def test_outside_is_refused(place):
    with pytest.raises(ValueError, match=rf"a token at .* = \[{place[0]}, {place[1]}, {place[2]}\] is outside \(3, 4, 5\)"):
        GatedTiles(6, 3, 4, 5).embed(torch.zeros(1, 2, 6), Positions.at(torch.tensor([[[0, 0, 0], place]])))


def test_wrong_arguments():
    with pytest.raises(ValueError, match="n_tiles: expected a whole number from 1, got 0"):
        GatedTiles(6, 3, 0)
    with pytest.raises(ValueError, match="n_patches: expected a whole number from 1, got 0"):
        GatedTiles(6, 3, 4, 0)
    with pytest.raises(ValueError, match="ratios: expected one number for each image"):
        tile_positions(torch.zeros(1, 2), 2, 2)


def test_start_values_are_mllamas():
    """Gate 0, tiles N(0, 0.02²), patches N(0, 1/d_model)."""
    torch.manual_seed(0)
    encoding = GatedTiles(64, 2, 4, 100)
    assert encoding.gate.tolist() == [0.0]
    assert encoding.tiles.std().item() == pytest.approx(0.02, rel=0.05)
    assert encoding.patches.std().item() == pytest.approx(1 / 8, rel=0.05)


def test_gradients_by_differences():
    encoding, at = filled(GatedTiles(2, 2, 2, 3)), tile_positions(torch.tensor([1]), 2, 3)
    x = torch.from_numpy(draw(9, 1, 6, 2))
    assert torch.autograd.gradcheck(lambda *_: encoding.embed(x, at).sin(), tuple(encoding.parameters()))
