"""Biases of windows against loops and Swin, Donut, MaskFormer, CLAP, BEiT, Data2Vec, LeViT, Swin v2 and Swin2SR."""

import importlib
import math

import numpy as np
import pytest
import torch
from torch import nn

from posenc import Positions, attend
from posenc.encodings.bases.continuous_window_bias import ContinuousWindowBias
from posenc.encodings.bases.window_bias import WindowBias, windows

from .by_hand import add, attention, close, draw, products
from .test_deberta import drawn
from .test_t5_families import matrix

H, D = 4, 6


def zeros(n: int) -> torch.Tensor:
    return torch.zeros(1, H, n, D, dtype=torch.float64)


def with_class_token(height: int, width: int) -> Positions:
    return Positions.at(torch.cat([torch.tensor([[[-1, -1]]]), Positions.grid(height, width).coords], dim=1))


# Tables ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("impl", ["reference", "sdpa"])
@pytest.mark.parametrize("kind", ["plain", "class_token", "symmetric"])
def test_table_by_loops(kind, impl):
    """A window of 2 × 3 places, numbered from (5, 7)."""
    options = {} if kind == "plain" else {kind: True}
    encoding = drawn(WindowBias(H, (2, 3), **options).double())
    table = encoding.table.detach().numpy()
    places = [(r, c) for r in (5, 6) for c in (7, 8, 9)]
    places = [(-1, -1), *places] if kind == "class_token" else places

    def row(query, key):
        if kind == "symmetric":
            return abs(query[0] - key[0]) * 3 + abs(query[1] - key[1])
        if query[0] < 0 or key[0] < 0:
            return {(True, False): 15, (False, True): 16, (True, True): 17}[query[0] < 0, key[0] < 0]
        return (query[0] - key[0] + 1) * 5 + query[1] - key[1] + 2

    n = len(places)
    q, k, v = (draw(seed, 1, H, n, D) for seed in (1, 2, 3))
    logits = add(products(q, k), lambda b, h, i, j: table[row(places[i], places[j]), h])
    at = Positions.at(torch.tensor([places]))
    got = attend(*map(torch.from_numpy, (q, k, v)), encoding, at, causal=False, impl=impl)
    close(got, attention(logits, v, lambda b, i, j: True))


SWINS = {
    "swin": ("swin", "modeling_swin", "SwinRelativePositionBias"),
    "maskformer": ("maskformer", "modeling_maskformer_swin", "MaskFormerSwinSelfAttention"),
    "donut": ("donut", "modeling_donut_swin", "DonutSwinSelfAttention"),
    "clap": ("clap", "modeling_clap", "ClapAudioSelfAttention"),
}


@pytest.mark.parametrize("family", SWINS)
def test_index_of_swin(family):
    folder, file, name = SWINS[family]
    make = getattr(importlib.import_module(f"transformers.models.{folder}.{file}"), name)
    config = type("Config", (), {"qkv_bias": True, "attention_probs_dropout_prob": 0.0})
    their = drawn((make(H, (3, 5)) if family == "swin" else make(config, H * D, H, (3, 5))).double())
    table = their.relative_position_bias_table
    encoding = WindowBias(H, (3, 5)).double()
    encoding.load_state_dict({"table": table})
    expected = table[their.relative_position_index.view(-1)].view(15, 15, H).permute(2, 0, 1)
    close(matrix(encoding, zeros(15), zeros(15), Positions.grid(3, 5))[0], expected.detach())


@pytest.mark.parametrize("shift", [0, 2])
def test_whole_layer_of_swin_with_shifted_windows(shift):
    """An image of 8 × 12 in windows of 4, all windows in one call: they are documents."""
    module = importlib.import_module("transformers.models.swin.modeling_swin")
    config = module.SwinConfig(window_size=4, drop_path_rate=0.0)
    config._attn_implementation = "sdpa"
    layer = drawn(module.SwinLayer(config, H * D, (8, 12), H, shift_size=shift).double()).eval()
    x = torch.from_numpy(draw(5, 2, 96, H * D))
    with torch.no_grad():
        layer.layernorm_before.weight.fill_(1)
        for linear in (layer.mlp.fc2,):
            linear.weight.zero_()
            linear.bias.zero_()
        expected = layer(x, (8, 12))
        expected = (expected[0] if isinstance(expected, tuple) else expected) - x
        normed = layer.layernorm_before(x)
        their = layer.attention
        q, k, v = (getattr(their, f"{n}_proj")(normed).unflatten(-1, (H, D)).transpose(1, 2) for n in "qkv")
        encoding = WindowBias(H, (4, 4)).double()
        encoding.load_state_dict({"table": their.relative_position_bias.relative_position_bias_table})
        at = windows(8, 12, (4, 4), shift=(shift, shift), batch=2)
        out = their.o_proj(attend(q, k, v, encoding, at, causal=False).transpose(1, 2).flatten(-2))
    close(out, expected, atol=1e-10)


def test_windows_are_cut_where_they_wrap():
    got = windows(4, 4, (2, 2), shift=(1, 1)).document.view(4, 4).tolist()
    assert got == [[0, 1, 1, 2], [3, 4, 4, 5], [3, 4, 4, 5], [6, 7, 7, 8]]
    assert windows(2, 4, (2, 2)).document.tolist()[0] == [4, 4, 5, 5, 4, 4, 5, 5]
    with pytest.raises(ValueError, match="cannot be cut into windows"):
        windows(5, 4, (2, 2))


@pytest.mark.parametrize("family", ["beit", "data2vec"])
def test_beit_and_its_interpolation(family):
    name = {"beit": "Beit", "data2vec": "Data2VecVision"}[family]
    file = "modeling_beit" if family == "beit" else "modeling_data2vec_vision"
    module = importlib.import_module(f"transformers.models.{family}.{file}")
    config = getattr(module, f"{name}Config")(image_size=12, patch_size=4, num_attention_heads=H)
    make = getattr(module, f"{name}RelativePositionBias")
    their = drawn((make(config) if family == "beit" else make(config, (3, 3))).double())
    encoding = WindowBias(H, (3, 3), class_token=True).double()
    encoding.load_state_dict({"table": their.relative_position_bias_table})
    close(matrix(encoding, zeros(10), zeros(10), with_class_token(3, 3)), their((3, 3)).detach().view(1, H, 10, 10))
    other = encoding.resized((2, 5))
    close(matrix(other, zeros(11), zeros(11), with_class_token(2, 5)), their((2, 5)).detach().view(1, H, 11, 11))


@pytest.mark.parametrize("stride", [1, 2])
def test_levit_and_its_smaller_queries(stride):
    module = importlib.import_module("transformers.models.levit.modeling_levit")
    small = (7 - 1) // stride + 1
    if stride == 1:
        their = module.LevitAttention(24, D, H, 2, 7)
    else:
        their = module.LevitAttentionSubsample(24, 24, D, H, 2, stride, 7, small)
    drawn(their.double()).eval()
    encoding = WindowBias(H, (7, 7), symmetric=True).double()
    encoding.load_state_dict({"table": their.attention_biases.T})
    at_q = Positions.at(Positions.grid(small, small).coords * stride)
    got = matrix(encoding, zeros(small**2), zeros(49), at_q, Positions.grid(7, 7))
    close(got[0], their.get_attention_biases("cpu").detach())


def test_swin_s_authors_load_another_window_bicubically():
    """load_pretrained of their utils.py: F.interpolate of the table as an image of 2M - 1 by 2M - 1 differences."""
    encoding = drawn(WindowBias(H, (3, 3)).double())
    image = encoding.table.detach().T.reshape(1, H, 5, 5)
    for mode in ("bilinear", "bicubic"):
        expected = torch.nn.functional.interpolate(image, size=(9, 9), mode=mode).reshape(H, 81).T
        close(encoding.resized((5, 5), mode=mode).table, expected)
    with pytest.raises(ValueError, match="mode: expected one of 'bilinear', 'bicubic', got 'nearest'"):
        encoding.resized((5, 5), mode="nearest")


def test_symmetric_tables_are_resized_too():
    encoding = drawn(WindowBias(H, (3, 3), symmetric=True).double())
    close(encoding.resized((3, 3)).table, encoding.table.detach())
    assert encoding.resized((2, 5)).table.shape == (10, H)


# Continuous ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("trained", [None, (4, 9)])
@pytest.mark.parametrize("impl", ["reference", "sdpa"])
def test_continuous_by_loops(impl, trained):
    encoding = drawn(ContinuousWindowBias(H, (2, 3), trained=trained, hidden=5).double())
    with torch.no_grad():
        encoding.log_scale.copy_(torch.tensor([0.5, 4.0, 6.0, -1.0]))  # one beyond ln 100 = 4.605
    s, inner, offset, outer = (
        getattr(encoding, name).detach().numpy() for name in ("log_scale", "inner", "inner_offset", "outer")
    )
    places = [(r, c) for r in (5, 6) for c in (7, 8, 9)]
    size = trained or (2, 3)

    def seen(delta, length):
        share = 8 * delta / (length - 1)
        return math.copysign(math.log2(1 + abs(share)) / 3, share)

    def logit(b, h, i, j):
        x = [seen(places[i][axis] - places[j][axis], size[axis]) for axis in (0, 1)]
        middle = [max(0.0, inner[n] @ x + offset[n]) for n in range(5)]
        out = sum(outer[h, n] * middle[n] for n in range(5))
        cosine = q[b, h, i] @ k[b, h, j] / np.linalg.norm(q[b, h, i]) / np.linalg.norm(k[b, h, j])
        return min(math.exp(s[h]), 100.0) * cosine + 16 / (1 + math.exp(-out))

    q, k, v = (draw(seed, 1, H, 6, D) for seed in (1, 2, 3))
    logits = add(np.zeros((1, H, 6, 6)), logit)
    at = Positions.at(torch.tensor([places]))
    got = attend(*map(torch.from_numpy, (q, k, v)), encoding, at, causal=False, impl=impl)
    close(got, attention(logits, v, lambda b, i, j: True))


@pytest.mark.parametrize("family", ["swinv2", "swin2sr"])
@pytest.mark.parametrize(("window", "trained"), [((3, 5), None), ((3, 5), (12, 12)), ((1, 1), None)])
def test_whole_attention_of_swin_v2(family, window, trained):
    """Their coordinates and the logarithms of them are float32's."""
    module = importlib.import_module(f"transformers.models.{family}.modeling_{family}")
    name = {"swinv2": "Swinv2SelfAttention", "swin2sr": "Swin2SRSelfAttention"}[family]
    config = type("Config", (), {"qkv_bias": True, "attention_probs_dropout_prob": 0.0})
    their = getattr(module, name)(config, H * D, H, window, [0, 0] if trained is None else trained)
    their = drawn(their.double()).eval()
    encoding = ContinuousWindowBias(H, window, trained=trained).double()
    mlp = their.continuous_position_bias_mlp
    encoding.load_state_dict(
        {
            "log_scale": their.logit_scale.flatten(),
            "inner": mlp[0].weight,
            "inner_offset": mlp[0].bias,
            "outer": mlp[2].weight,
        }
    )
    n = window[0] * window[1]
    x = torch.from_numpy(draw(5, 2, n, H * D))
    q, k, v = (getattr(their, p)(x).unflatten(-1, (H, D)).transpose(1, 2) for p in ("query", "key", "value"))
    out = attend(q, k, v, encoding, Positions.grid(*window), causal=False).transpose(1, 2).flatten(-2)
    close(out, their(x)[0].detach(), atol=2e-5)


# The door --------------------------------------------------------------------------------------------------------------


def test_outside_the_window():
    x = torch.zeros(1, H, 8, D)
    for encoding in (WindowBias(H, (2, 2)), ContinuousWindowBias(H, (2, 2))):
        with pytest.raises(ValueError, match="further apart than a window"):
            attend(x, x, x, encoding, Positions.grid(2, 4), causal=False)
        attend(x, x, x, encoding, windows(2, 4, (2, 2)), causal=False)
        with pytest.raises(ValueError, match=r"reads 2 coordinate\(s\)"):
            attend(x, x, x, encoding, Positions.arange(1, 8), causal=False)
        with pytest.raises(TypeError, match="needs integer positions"):
            attend(x, x, x, encoding, Positions.at(torch.rand(1, 8, 2)), causal=False)


@pytest.mark.parametrize("wrong", [3, (3,), (0, 3), (2, 2.0), (1, True)])
def test_wrong_windows(wrong):
    for make in (WindowBias, ContinuousWindowBias):
        with pytest.raises(ValueError, match="window: expected"):
            make(H, wrong)
    with pytest.raises(ValueError, match="hidden: expected"):
        ContinuousWindowBias(H, (2, 2), hidden=0)
    assert isinstance(WindowBias(H, (1, 1)).table, nn.Parameter)
