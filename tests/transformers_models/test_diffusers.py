"""Transformers of diffusers with another encoding than their own: target other-libraries of tools/acceptance.py."""

import copy

import pytest
import torch

import posenc
from posenc.transformers import Unsupported
from transformers_models.test_page import blocks

diffusers = pytest.importorskip("diffusers")
flux = pytest.importorskip("posenc.transformers.diffusers")
processors = pytest.importorskip("diffusers.models.transformers.transformer_flux")
SIDE, WORDS, HEADS, WIDTH = 4, 5, 2, 16
TOKENS = WORDS + SIDE * SIDE
NEAR = {"rtol": 1e-5, "atol": 1e-5}
SIZES = {"num_layers": 1, "num_single_layers": 1, "attention_head_dim": WIDTH, "num_attention_heads": HEADS}
AXES = {"in_channels": 4, "joint_attention_dim": 32, "axes_dims_rope": (4, 6, 6)}
KINDS = {
    "flux": lambda: diffusers.FluxTransformer2DModel(**SIZES, **AXES, pooled_projection_dim=32),
    "controlnet": lambda: diffusers.FluxControlNetModel(**SIZES, **AXES, pooled_projection_dim=32),
    "chroma": lambda: diffusers.ChromaTransformer2DModel(
        **SIZES, **AXES, approximator_num_channels=64, approximator_hidden_dim=32, approximator_layers=1
    ),
}


def model_of(kind="flux"):
    torch.manual_seed(0)
    model = KINDS[kind]().eval()
    with torch.no_grad():
        for parameter in model.parameters():  # diffusers begins ControlNet's outputs with zeros
            parameter.normal_(std=0.2)
    return model


def ids_of(side=SIDE):
    row, column = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
    return torch.stack([torch.zeros(side, side), row, column], -1).reshape(-1, 3)


def drawn(model, side=SIDE, order=slice(None), **options):
    random = torch.Generator().manual_seed(0)
    image = torch.randn(1, side * side, 4, generator=random)
    given = {
        "hidden_states": image[:, order],
        "encoder_hidden_states": torch.randn(1, WORDS, 32, generator=random),
        "timestep": torch.tensor([0.5]),
        "img_ids": ids_of(side),
        "txt_ids": torch.zeros(WORDS, 3),
    }
    pooled = torch.randn(1, 32, generator=random)
    if not isinstance(model, diffusers.ChromaTransformer2DModel):
        given["pooled_projections"] = pooled
    if isinstance(model, diffusers.FluxControlNetModel):
        given["controlnet_cond"] = image[:, order]
    out = model(**given, **options, return_dict=False)[0]
    return out[0] if isinstance(out, (tuple, list)) else out


def own(model):
    name = type(model).__name__
    config = model.config if name == "ChromaTransformer2DModel" else {**model.config}
    return posenc.read_config({**config, "_class_name": "FluxTransformer2DModel"}).encoding(0)


@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_its_own_rotation_attached_changes_nothing_and_detach_undoes_it(kind):
    model = model_of(kind)
    before, keys = drawn(model), list(model.state_dict())
    flux.attach(model, own(model))
    torch.testing.assert_close(drawn(model), before, **NEAR)
    assert list(model.state_dict()) == keys
    flux.detach(model)
    flux.attach(model, posenc.create("nope"))
    assert (drawn(model) - before).abs().max() > 1e-3
    flux.detach(model)
    assert torch.equal(drawn(model), before)


class Biased(processors.FluxAttnProcessor):
    """diffusers' own processor without a rotation, with a term added to the scores."""

    def __call__(self, attn, hidden_states, encoder_hidden_states=None, attention_mask=None, image_rotary_emb=None):
        return super().__call__(attn, hidden_states, encoder_hidden_states, self.bias)


@torch.no_grad()
def test_alibi_counts_text_and_image_tokens_in_one_sequence():
    expected, model = model_of(), model_of()
    distance = (torch.arange(TOKENS)[:, None] - torch.arange(TOKENS)).abs()
    by_hand = Biased()
    by_hand.bias = -torch.tensor([2.0**-4, 2.0**-8])[None, :, None, None] * distance
    expected.set_attn_processor(by_hand)
    flux.attach(model, posenc.create("alibi", n_heads=HEADS))
    torch.testing.assert_close(drawn(model), drawn(expected), **NEAR)


class TurnedBy(torch.nn.Module):
    """In the place of FluxPosEmbed: cos and sin, each repeated for both channels of a pair."""

    def forward(self, ids):
        omega = torch.tensor([1.0, 1e-1, 1e-2, 1e-3], dtype=torch.float64)
        angles = torch.cat([ids[:, 1:2] * omega, ids[:, 2:3] * omega], 1).repeat_interleave(2, -1)
        return angles.cos().float(), angles.sin().float()


@torch.no_grad()
def test_an_encoding_of_two_axes_reads_row_and_column_of_the_ids():
    expected, model = model_of(), model_of()
    expected.pos_embed = TurnedBy()
    flux.attach(model, posenc.create("axial_rope", d_head=WIDTH))
    torch.testing.assert_close(drawn(model), drawn(expected), **NEAR)


@torch.no_grad()
def test_without_positions_patches_may_be_permuted():
    order = torch.randperm(SIDE * SIDE, generator=torch.Generator().manual_seed(1))
    model = model_of()
    assert (drawn(model, order=order) - drawn(model)[:, order]).abs().max() > 1e-3
    flux.attach(model, posenc.create("nope"))
    torch.testing.assert_close(drawn(model, order=order), drawn(model)[:, order], **NEAR)


@torch.no_grad()
def test_scaled_frequencies_for_a_larger_picture_the_recipe_of_the_page():
    """Position interpolation by hand, ids divided by 2, is linear scaling of posenc's frequencies."""
    page = {}
    exec(blocks("transformers.md", "py")[1], page)
    expected = model_of()
    table = copy.deepcopy(expected.pos_embed)
    expected.pos_embed.forward = lambda ids: table(ids / 2)
    model = page["rotate_by"](model_of(), lambda f: posenc.frequencies.linear(f, 2.0))
    torch.testing.assert_close(drawn(model, 2 * SIDE), drawn(expected, 2 * SIDE), **NEAR)
    assert (drawn(model, 2 * SIDE) - drawn(model_of(), 2 * SIDE)).abs().max() > 1e-4


@pytest.mark.parametrize("checkpointing", [False, True])
def test_parameters_learn_and_travel_with_the_model(checkpointing):
    model = model_of()
    encoding = posenc.laws.draw_parameters(posenc.create("t5", n_heads=HEADS, bidirectional=True), std=0.3)
    flux.attach(model, encoding)
    if checkpointing:
        model.enable_gradient_checkpointing()
    drawn(model.train()).sum().backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in encoding.parameters())
    twin = model_of("flux")
    flux.attach(twin, posenc.create("t5", n_heads=HEADS, bidirectional=True))
    twin.load_state_dict(model.state_dict())
    for other in (twin, copy.deepcopy(model)):
        assert torch.equal(drawn(other.eval()), drawn(model.eval()))
    with torch.no_grad():
        found = drawn(copied := copy.deepcopy(model))
        for parameter in copied.pos_embed.encoding.parameters():
            parameter.zero_()
        assert not torch.equal(drawn(copied), found)
        assert torch.equal(drawn(model), found)


@torch.no_grad()
def test_projections_that_are_fused_later():
    model = flux.attach(model_of(), posenc.create("alibi", n_heads=HEADS))
    before = drawn(model)
    model.fuse_qkv_projections()
    torch.testing.assert_close(drawn(model), before, **NEAR)


def test_a_folder_would_not_say_what_is_attached(tmp_path):
    model = flux.attach(model_of(), posenc.create("nope"))
    with pytest.raises(ValueError, match="cannot say what is attached"):
        model.save_pretrained(tmp_path)
    assert not list(tmp_path.iterdir())
    flux.detach(model).save_pretrained(tmp_path)


def with_another_processor():
    model = model_of()
    model.set_attn_processor(Biased())
    return model


REFUSED = {
    "others": (lambda: torch.nn.Linear(2, 2), lambda: posenc.create("nope"), "expected a diffusers .* got Linear"),
    "processor": (with_another_processor, lambda: posenc.create("nope"), "got FluxAttention with Biased"),
    "heads": (model_of, lambda: posenc.create("alibi", n_heads=3), "ALiBi does not fit the model: .*n_heads=3"),
    "width": (model_of, lambda: posenc.create("rope", d_head=8), "RoPE does not fit the model"),
    "added": (model_of, lambda: posenc.create("sinusoidal", d_model=32), "adds to embeddings"),
    "axes": (model_of, lambda: posenc.create("rope", d_head=WIDTH, axes=4), "reads 4 coordinates"),
    "layers": (model_of, lambda: posenc.PerLayer([posenc.create("nope")]), "expected one for all blocks"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused_leaves_the_model_as_it_was(what):
    made, encoding, said = REFUSED[what]
    model = made()
    kept = dict(model.named_modules())
    with pytest.raises(Unsupported, match=said):
        flux.attach(model, encoding())
    assert dict(model.named_modules()) == kept
    with pytest.raises(ValueError, match="nothing is attached"):
        flux.detach(model)


def test_two_encodings_and_none():
    model = flux.attach(model_of(), posenc.create("nope"))
    with pytest.raises(ValueError, match="attached already"):
        flux.attach(model, posenc.create("nope"))
    with pytest.raises(TypeError, match="expected a PositionalEncoding"):
        flux.attach(model_of(), "rope")
