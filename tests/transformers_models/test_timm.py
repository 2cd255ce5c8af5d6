"""timm's plain Vision Transformers with an encoding in the place of their table: target timm of tools/acceptance.py."""

import copy
import pickle

import pytest
import torch

import posenc
from posenc.transformers import Unsupported
from transformers_models.test_page import blocks

if torch.version.cuda is None:  # torchvision's wheel of PyPI then has no operators; it names these, and timm uses none
    NAMED = "nms qnms roi_align _roi_align_backward ps_roi_align _ps_roi_align_backward roi_pool _roi_pool_backward"
    for operator in f"{NAMED} ps_roi_pool _ps_roi_pool_backward qroi_align deform_conv2d _deform_conv2d_backward".split():
        torch.library.define(f"torchvision::{operator}", "(Tensor x) -> Tensor")
timm = pytest.importorskip("timm")
vit = pytest.importorskip("posenc.transformers.timm")
SIZE, PATCH, HEADS, WIDTH = 32, 8, 2, 8
IMAGES = torch.randn(2, 3, SIZE, SIZE, generator=torch.Generator().manual_seed(0))
NEAR = {"rtol": 1e-5, "atol": 1e-5}


def model_of(**options):
    torch.manual_seed(0)
    sizes = {"img_size": SIZE, "patch_size": PATCH, "embed_dim": HEADS * WIDTH, "depth": 2, "num_heads": HEADS}
    model = timm.models.VisionTransformer(**sizes, num_classes=5, **options).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.3)
    return model


@torch.no_grad()
def by_hand(model, prepared=lambda x: x, bias=0.0, turned=lambda x: x, pooled=lambda x: x[:, 0]):
    """The model in plain torch without its table: what is added to tokens, to scores, and what turns queries and keys."""
    x = model.patch_embed.proj(IMAGES).flatten(2).transpose(1, 2)
    prefix = [] if model.cls_token is None else [model.cls_token.expand(2, -1, -1)]
    x = prepared(torch.cat([*prefix, x], 1))
    for block in model.blocks:
        q, k, v = block.attn.qkv(block.norm1(x)).chunk(3, -1)
        q, k, v = (one.unflatten(-1, (HEADS, WIDTH)).transpose(1, 2) for one in (q, k, v))
        scores = turned(q) @ turned(k).transpose(-1, -2) / WIDTH**0.5 + bias
        x = x + block.attn.proj((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
        x = x + block.mlp(block.norm2(x))
    return model.head(pooled(model.norm(x)))


def turned_by(angles):
    """Channels (2i, 2i + 1) turned by angles [t, 4]."""

    def turn(x):
        pairs = torch.view_as_complex(x.double().unflatten(-1, (-1, 2)).contiguous())
        return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(-2).to(x.dtype)

    return turn


def test_alibi_counts_the_class_token_and_the_patches():
    model = model_of()
    distance = (torch.arange(17)[:, None] - torch.arange(17)).abs()
    bias = -torch.tensor([2.0**-4, 2.0**-8])[:, None, None] * distance
    expected = by_hand(model, bias=bias)
    vit.attach(model, posenc.create("alibi", n_heads=HEADS))
    torch.testing.assert_close(model(IMAGES), expected, **NEAR)


def test_sinusoids_are_added_where_the_table_was():
    model = model_of()
    angles = torch.arange(17)[:, None] / 10_000 ** (torch.arange(0, 16, 2) / 16)
    table = torch.stack([angles.sin(), angles.cos()], -1).flatten(1)
    expected = by_hand(model, prepared=lambda x: x + table)
    vit.attach(model, posenc.create("sinusoidal", d_model=HEADS * WIDTH))
    torch.testing.assert_close(model(IMAGES), expected, **NEAR)


def test_a_rotation_of_two_axes_reads_row_and_column_and_leaves_the_class_token():
    """One half of the pairs turns by the row, the other by the column, each with its frequencies."""
    model = model_of()
    encoding = posenc.create("axial_rope", d_head=WIDTH)
    row, column = torch.arange(16, dtype=torch.float64) // 4, torch.arange(16, dtype=torch.float64) % 4
    omega = torch.tensor([1.0, 1e-2], dtype=torch.float64)
    patches = torch.cat([row[:, None] * omega, column[:, None] * omega], 1)
    expected = by_hand(model, turned=turned_by(torch.cat([torch.zeros(1, 4, dtype=torch.float64), patches])))
    vit.attach(model, encoding)
    torch.testing.assert_close(model(IMAGES), expected, **NEAR)


def test_without_positions_patches_may_be_permuted():
    model = vit.attach(model_of(), posenc.create("nope"))
    torch.testing.assert_close(model(IMAGES), by_hand(model), **NEAR)
    rolled = IMAGES.roll(PATCH, -1)
    torch.testing.assert_close(model(rolled), model(IMAGES), **NEAR)


@pytest.mark.parametrize("copy_of", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
@pytest.mark.parametrize("name", ["alibi", "sinusoidal", "t5"])
def test_detach_copies_and_parameters(name, copy_of):
    model = model_of()
    own, kept = model(IMAGES), model.state_dict()
    arguments = {
        "t5": {"n_heads": HEADS, "bidirectional": True},
        "alibi": {"n_heads": HEADS},
        "sinusoidal": {"d_model": 16},
    }
    encoding = posenc.laws.draw_parameters(posenc.create(name, **arguments[name]), std=0.3)
    vit.attach(model, encoding)
    attached = model(IMAGES)
    assert (attached - own).abs().max() > 1e-3
    assert "pos_embed" not in model.state_dict()
    other = copy_of(model)
    assert torch.equal(other(IMAGES), attached)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.zero_()
    assert torch.equal(model(IMAGES), attached)
    with pytest.raises(ValueError, match="an encoding is attached already"):
        vit.attach(model, encoding)
    model(IMAGES).sum().backward()
    assert all(parameter.grad is not None for parameter in encoding.parameters())
    vit.detach(model)
    assert torch.equal(model(IMAGES), own)
    assert model.state_dict().keys() == kept.keys()
    with pytest.raises(ValueError, match="nothing is attached"):
        vit.detach(model)


REFUSED = {
    "eva": (lambda: timm.create_model("eva02_tiny_patch14_224"), lambda: posenc.create("nope"), "got Eva"),
    "dynamic": (lambda: model_of(dynamic_img_size=True), lambda: posenc.create("nope"), "dynamic_img_size"),
    "dropped": (lambda: model_of(patch_drop_rate=0.5), lambda: posenc.create("nope"), "patch_drop_rate"),
    "heads": (model_of, lambda: posenc.create("alibi", n_heads=3), "ALiBi does not fit the model: .*n_heads=3"),
    "width": (model_of, lambda: posenc.create("rope", d_head=16), "RoPE does not fit the model"),
    "added to a class token": (model_of, lambda: posenc.create("sinusoidal_2d", d_model=16), "reads 2 coordinates"),
    "layers": (model_of, lambda: posenc.PerLayer([posenc.create("nope")]), "expected one for all blocks"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused_leaves_the_model_as_it_was(what):
    model, encoding, said = REFUSED[what]
    made = model()
    kept = dict(made.state_dict())
    with pytest.raises(Unsupported, match=said):
        vit.attach(made, encoding())
    assert made.state_dict().keys() == kept.keys()


def test_patches_alone_may_be_added_to_by_row_and_column():
    """Without a class token sinusoids of the column are added in half of the channels, those of the row in the others."""
    model = model_of(class_token=False, global_pool="avg", fc_norm=False)
    omega = 10_000 ** (-torch.arange(0, 8, 2) / 8)
    x, y = (n[:, None] * omega for n in (torch.arange(16) % 4, torch.arange(16) // 4))
    table = torch.cat([x.sin(), x.cos(), y.sin(), y.cos()], 1)
    expected = by_hand(model, prepared=lambda x: x + table, pooled=lambda x: x.mean(1))
    vit.attach(model, posenc.create("sinusoidal_2d", d_model=HEADS * WIDTH))
    torch.testing.assert_close(model(IMAGES), expected, **NEAR)


def test_the_page(capsys):
    exec(blocks("transformers.md", "py")[0], {})
    assert capsys.readouterr().out == "torch.Size([1, 1000])\n"
