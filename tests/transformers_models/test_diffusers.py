"""A transformer of diffusers whose module of position ids gives posenc's cos and sin, the recipe of docs/transformers.md:
target other-libraries of tools/acceptance.py."""

import copy

import pytest
import torch

import posenc
from transformers_models.test_page import blocks

diffusers = pytest.importorskip("diffusers")
SIDE, WORDS = 4, 5


PAGE = {}
exec(blocks("transformers.md", "py")[1], PAGE)
rotate_by = PAGE["rotate_by"]


def model_of():
    torch.manual_seed(0)
    sizes = {"num_layers": 1, "num_single_layers": 1, "attention_head_dim": 16, "num_attention_heads": 2}
    flux = diffusers.FluxTransformer2DModel
    return flux(**sizes, in_channels=4, joint_attention_dim=32, pooled_projection_dim=32, axes_dims_rope=(4, 6, 6)).eval()


@torch.no_grad()
def drawn(model, side=SIDE):
    generator = torch.Generator().manual_seed(0)
    row, column = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
    ids = torch.stack([torch.zeros(side, side), row, column], -1).reshape(-1, 3)
    return model(
        hidden_states=torch.randn(1, side * side, 4, generator=generator),
        encoder_hidden_states=torch.randn(1, WORDS, 32, generator=generator),
        pooled_projections=torch.randn(1, 32, generator=generator),
        timestep=torch.tensor([0.5]),
        img_ids=ids,
        txt_ids=torch.zeros(WORDS, 3),
    ).sample


def test_the_models_own_rotation_is_the_same():
    model = model_of()
    own = drawn(model)
    torch.testing.assert_close(drawn(rotate_by(model)), own, rtol=1e-5, atol=1e-5)
    assert type(model.pos_embed).__name__ == "RotaryIds"


def test_scaled_frequencies_for_a_larger_picture():
    """Position interpolation by hand, ids divided by 2, is linear scaling of posenc's frequencies."""
    expected = model_of()
    own = copy.deepcopy(expected.pos_embed)
    expected.pos_embed.forward = lambda ids: own(ids / 2)
    found = drawn(rotate_by(model_of(), lambda f: posenc.frequencies.linear(f, 2.0)), 2 * SIDE)
    torch.testing.assert_close(found, drawn(expected, 2 * SIDE), rtol=1e-5, atol=1e-5)
    assert (found - drawn(model_of(), 2 * SIDE)).abs().max() > 1e-4
