"""A transformer of diffusers whose module of position ids gives posenc's cos and sin, the recipe of docs/transformers.md:
target other-libraries of tools/acceptance.py."""

import pytest
import torch

import posenc
from posenc.configs import read_config

diffusers = pytest.importorskip("diffusers")
SIDE, WORDS = 4, 5


class RotaryIds(torch.nn.Module):
    """In the place of FluxPosEmbed: cos and sin of posenc's rotation for position ids [t, axes]."""

    def __init__(self, rope):
        super().__init__()
        self.rope = rope

    def forward(self, ids):
        tables = self.rope.tables(posenc.Positions.at(ids[None]), torch.float64)
        return tuple(table[0].repeat_interleave(2, dim=-1).float() for table in tables)


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
    own, by_tables = drawn(model), model.pos_embed
    rope = read_config(dict(model.config) | {"_class_name": "FluxTransformer2DModel"}).encoding(0)
    model.pos_embed = RotaryIds(rope)
    torch.testing.assert_close(drawn(model), own, rtol=1e-5, atol=1e-5)
    model.pos_embed = by_tables
    assert torch.equal(drawn(model), own)


def test_scaled_frequencies_for_a_larger_picture():
    """Position interpolation by hand, ids divided by 2, is linear scaling of posenc's frequencies."""
    model = model_of()
    own = model.pos_embed
    rope = read_config(dict(model.config) | {"_class_name": "FluxTransformer2DModel"}).encoding(0)
    model.pos_embed = RotaryIds(
        posenc.create("rope", d_head=16, frequencies=posenc.frequencies.linear(rope.frequencies, 2.0))
    )
    found = drawn(model, 2 * SIDE)
    expected = model_of()
    expected.pos_embed.forward = lambda ids: own(ids / 2)
    torch.testing.assert_close(found, drawn(expected, 2 * SIDE), rtol=1e-5, atol=1e-5)
    assert (found - drawn(model_of(), 2 * SIDE)).abs().max() > 1e-4
