"""Transformers of diffusers, and Mistral's params.json: files that have no model_type.

The expected numbers are formulas of the classes' code; the acceptance tests run that of pipelines, which pip downloads;
test_diffusion_models.py compares the functions of every class.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import zipfile
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

import posenc
from posenc.cli import app
from posenc.configs import ConfigError, PositionSpec, read_config
from posenc.configs.read import spec_of

VERSION = "0.42.1"
PUBLISHED = {  # class, keys of a published file: layers, base, channels of each axis
    "FLUX.1-dev": ("FluxTransformer2DModel", {"num_layers": 19, "num_single_layers": 38, "attention_head_dim": 128,
        "num_attention_heads": 24, "patch_size": 1, "guidance_embeds": True}, 57, 10000, (16, 56, 56)),
    "FLUX.2-dev": ("Flux2Transformer2DModel", {"num_layers": 8, "num_single_layers": 48, "attention_head_dim": 128,
        "num_attention_heads": 48, "axes_dims_rope": [32, 32, 32, 32], "rope_theta": 2000}, 56, 2000, (32, 32, 32, 32)),
    "Qwen-Image": ("QwenImageTransformer2DModel", {"num_layers": 60, "attention_head_dim": 128, "num_attention_heads": 24,
        "axes_dims_rope": [16, 56, 56]}, 60, 10000, (16, 56, 56)),
    "Wan2.1-T2V-14B": ("WanTransformer3DModel", {"num_layers": 40, "attention_head_dim": 128, "num_attention_heads": 40,
        "rope_max_seq_len": 1024, "patch_size": [1, 2, 2]}, 40, 10000, (44, 42, 42)),
    "HunyuanVideo": ("HunyuanVideoTransformer3DModel", {"num_layers": 20, "num_single_layers": 40, "rope_theta": 256.0,
        "rope_axes_dim": [16, 56, 56], "attention_head_dim": 128, "num_attention_heads": 24}, 60, 256, (16, 56, 56)),
    "CogVideoX-5b": ("CogVideoXTransformer3DModel", {"num_layers": 42, "attention_head_dim": 64, "num_attention_heads": 48,
        "use_rotary_positional_embeddings": True}, 42, 10000, (16, 24, 24)),
}  # fmt: skip


def read(name: str, **more: Any) -> PositionSpec:
    return spec_of({"_class_name": PUBLISHED[name][0], "_diffusers_version": VERSION, **PUBLISHED[name][1], **more})


@pytest.mark.parametrize("name", PUBLISHED)
def test_each_axis_has_a_spectrum_of_its_own(name):
    _, _, layers, base, sizes = PUBLISHED[name]
    spec = read(name)
    (use,) = spec.layers[-1].uses
    made = use.rotation.frequencies()
    assert (len(spec.layers), dict(use.arguments)["layout"]) == (layers, "interleaved")
    assert [made.axes.count(axis) for axis in range(len(sizes))] == [size // 2 for size in sizes]
    expected = [base ** (-2 * pair / size) for size in sizes for pair in range(size // 2)]
    assert list(made.values) == pytest.approx(expected, rel=1e-14)
    assert not any(layer.causal for layer in spec.layers)
    named = posenc.create("axial_rope", d_head=sum(sizes), sizes=sizes, base=float(base))  # what `posenc list` says it is
    assert (named.frequencies.axes, named.layout) == (made.axes, "interleaved")
    assert list(named.frequencies) == pytest.approx(expected, rel=1e-14)


def test_unequal_axes_fill_the_head():
    with pytest.raises(ValueError, match=r"sizes: expected 128 channels in all, got \(44, 42, 40\), 126"):
        posenc.create("axial_rope", d_head=128, sizes=(44, 42, 40))
    with pytest.raises(ValueError, match=r"d_head: expected a multiple of 2·axes = 6, got 128; sizes= gives each axis"):
        posenc.create("axial_rope", d_head=128, axes=3)


def test_what_no_encoding_expresses_is_said():
    cog = spec_of({"_class_name": "CogVideoXTransformer3DModel", "use_learned_positional_embeddings": True})
    assert "not built here" in cog.coordinates.en
    assert not any(layer.uses for layer in cog.layers)


@pytest.mark.parametrize(("name", "channels"), [("LTXVideoTransformer3DModel", 64), ("FluxTransformer2DModel", 128)])
def test_the_page_says_how_many_channels_of_a_head_turn_and_names_no_scaling(tmp_path, name, channels):
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"_class_name": name}))
    page = " ".join(CliRunner().invoke(app, ["inspect", str(file)]).output.split())
    assert f"all {channels} channels" in page
    assert "scaling" not in page


def test_layers_of_an_image_are_said():
    assert "taken apart is -1" in read("Qwen-Image", use_layer3d_rope=True).coordinates.en
    assert "taken apart" not in read("Qwen-Image", use_layer3d_rope=False).coordinates.en


def test_cogvideox_2b_adds_sinusoids_once():
    """get_3d_sincos_pos_embed of diffusers: frame in d/4, column and row in 3d/8 each, space over 1.875."""
    spec = spec_of({"_class_name": "CogVideoXTransformer3DModel", "num_attention_heads": 2, "attention_head_dim": 16})
    assert [len(layer.uses) for layer in spec.layers] == [1] + [0] * 29
    at = posenc.Positions.grid(2, 3, 4, prefix=2)
    found = spec.encoding(0).embed(torch.zeros(1, 26, 32, dtype=torch.float64), at)[0]
    assert not found[:2].any()
    for token, (frame, row, column) in enumerate((f, y, x) for f in range(2) for y in range(3) for x in range(4)):
        expected = []
        for place, width in ((frame, 8), (column / 1.875, 12), (row / 1.875, 12)):
            angles = [place * 10000 ** (-2 * i / width) for i in range(width // 2)]
            expected += [math.sin(one) for one in angles] + [math.cos(one) for one in angles]
        assert found[2 + token].tolist() == pytest.approx(expected, abs=1e-12)


def test_ltx_turns_the_whole_width_before_the_heads():
    """transformer_ltx.py: base^linspace(0, 1, width // 6)·π/2, axes in turn; width % 6 channels first keep still."""
    spec = spec_of({"_class_name": "LTXVideoTransformer3DModel", "num_attention_heads": 4, "attention_head_dim": 16})
    at = posenc.positions_by("ltx_ids", frames=2, height=2, width=3, frame_rate=24.0)
    x = torch.randn(1, 4, 12, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    got = spec.encoding(0).rotate(x, at, "query")
    for token, (t, y, z) in enumerate((t, y, z) for t in range(2) for y in range(2) for z in range(3)):
        shares = (t * 8 / 24 / 20, y * 32 / 2048, z * 32 / 2048)
        angles = [0.0] * 2 + [(2 * c - 1) * math.pi / 2 * 10000 ** (k / 9) for k in range(10) for c in shares]
        wide = x[0, :, token].flatten()
        for pair, angle in enumerate(angles):
            real, imaginary = wide[2 * pair].item(), wide[2 * pair + 1].item()
            turned = (
                real * math.cos(angle) - imaginary * math.sin(angle),
                real * math.sin(angle) + imaginary * math.cos(angle),
            )
            assert got[0, 2 * pair // 16, token, 2 * pair % 16 :][:2].tolist() == pytest.approx(turned, abs=1e-9)
    part = spec.encoding(0).heads(1, 3)
    assert torch.equal(part.rotate(x[:, 1:3], at, "query"), got[:, 1:3])
    with pytest.raises(ValueError, match="WideRoPE: built for n_heads=4, got a tensor with 2"):
        spec.encoding(0).rotate(x[:, :2], at, "query")


def test_axes_that_do_not_fill_the_head_are_refused():
    with pytest.raises(ConfigError, match="attention_head_dim: 128 channels, but the axes have"):
        read("FLUX.1-dev", axes_dims_rope=[16, 56, 48])


def test_other_classes_of_diffusers_are_refused_by_name():
    with pytest.raises(ConfigError, match="'UNet2DConditionModel' is not a known family"):
        spec_of({"_class_name": "UNet2DConditionModel"})


MINISTRAL = {"dim": 4096, "n_layers": 34, "head_dim": 128, "hidden_dim": 14336, "n_heads": 32, "n_kv_heads": 8,
             "norm_eps": 1e-5, "vocab_size": 131072, "rope_theta": 1000000.0, "max_position_embeddings": 262144,
             "yarn": {"original_max_position_embeddings": 16384, "factor": 16, "apply_scale": False, "beta": 32,
                      "alpha": 1},
             "llama_4_scaling": {"original_max_position_embeddings": 16384, "beta": 0.1}}  # fmt: skip
NEMO = {"dim": 5120, "n_layers": 40, "head_dim": 128, "hidden_dim": 14336, "n_heads": 32, "n_kv_heads": 8, "norm_eps": 1e-5,
        "vocab_size": 131072, "rope_theta": 1000000.0, "max_seq_len": 128000}  # fmt: skip


def test_params_json_is_read_from_its_folder(tmp_path):
    (tmp_path / "params.json").write_text(json.dumps(NEMO))
    spec = read_config(tmp_path)
    (use,) = spec.layers[0].uses
    assert (len(spec.layers), spec.d_model, spec.trained_length) == (40, 5120, 128000)
    assert (use.rotation.base, dict(use.arguments)["layout"]) == (1e6, "interleaved")


def test_params_json_has_the_positions_of_the_model_s_config_json():
    """Ministral 3: the same frequencies, scale and temperature as its config.json, whose rows of q and k are permuted."""
    rope = {"type": "yarn", "rope_theta": 1e6, "factor": 16.0, "original_max_position_embeddings": 16384, "beta_fast": 32.0,
            "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.1}  # fmt: skip
    other = spec_of({"model_type": "ministral3", "hidden_size": 4096, "num_attention_heads": 32, "head_dim": 128,
                     "num_hidden_layers": 34, "max_position_embeddings": 262144, "rope_parameters": rope})  # fmt: skip
    mine, theirs = spec_of(MINISTRAL).encoding(0), other.encoding(0)
    at = posenc.Positions.at(torch.tensor([[0, 1, 16383, 16384, 100000]]))
    x = torch.randn(1, 2, 5, 128, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    q, k = (mine.rotate(x, at, side) for side in ("query", "key"))
    halves = torch.cat([x[..., 0::2], x[..., 1::2]], -1)  # the same pairs in the other layout
    q_, k_ = (theirs.rotate(halves, at, side) for side in ("query", "key"))
    assert torch.allclose(q @ k.mT * mine.softmax_scale(128), q_ @ k_.mT * theirs.softmax_scale(128), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("window", "expected"), [(4096, [4096] * 4), ([None, 1024], [None, 1024] * 2), (None, [None] * 4)])
def test_windows_of_params_json(window, expected):
    spec = spec_of({**NEMO, "n_layers": 4, "sliding_window": window})
    assert [layer.window for layer in spec.layers] == expected


@pytest.mark.parametrize(("more", "why"), [({"qk_rope_head_dim": 64}, "latent attention"),
                                           ({"sliding_window": [1024] * 3}, "sliding_window")])  # fmt: skip
def test_what_params_json_says_beyond_this_is_refused(more, why):
    with pytest.raises(ConfigError, match=why):
        spec_of({**NEMO, **more})


@pytest.fixture(scope="session")
def diffusers(tmp_path_factory):
    """The package, on the path, from the wheel that pip downloads."""
    folder = tmp_path_factory.mktemp("diffusers")
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder)]
    subprocess.run([*pip, f"diffusers=={VERSION}"], check=True)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        wheel.extractall(folder)
    sys.path.insert(0, str(folder))
    yield folder
    sys.path.remove(str(folder))


REFERENCES = ((4, 3), (1, 5))


@pytest.mark.acceptance
def test_the_pipelines_number_tokens_as_the_builders_do(diffusers):
    """FLUX.1 with a reference image (Kontext) and FLUX.2: the functions of their pipelines."""
    from diffusers.pipelines.flux.pipeline_flux_kontext import FluxKontextPipeline
    from diffusers.pipelines.flux2.pipeline_flux2 import Flux2Pipeline

    image, reference = (FluxKontextPipeline._prepare_latent_image_ids(1, *size, "cpu", None) for size in ((2, 5), (4, 3)))
    reference[..., 0] = 1  # as the pipeline's prepare_latents does
    got = posenc.positions_by("flux_ids", text=6, height=2, width=5, references=[(4, 3)])
    assert torch.equal(got.coords[0].float(), torch.cat([torch.zeros(6, 3), image, reference]))
    text = Flux2Pipeline._prepare_text_ids(torch.zeros(1, 6, 8))
    image = Flux2Pipeline._prepare_latent_ids(torch.zeros(1, 8, 2, 5))
    references = Flux2Pipeline._prepare_image_ids([torch.zeros(1, 8, *size) for size in REFERENCES])
    got = posenc.positions_by("flux2_ids", text=6, height=2, width=5, references=REFERENCES)
    assert torch.equal(got.coords, torch.cat([text, image, references], dim=1))


@pytest.mark.acceptance
def test_qwen_image_turns_text_and_all_images_by_msrope(diffusers):
    from diffusers.models.transformers import transformer_qwenimage as qwen

    sizes = list(PUBLISHED["Qwen-Image"][4])
    images, text = qwen.QwenEmbedRope(10000, sizes, scale_rope=True)(
        [[(1, 5, 4), *((1, *size) for size in REFERENCES)]], torch.device("cpu"), max_txt_seq_len=6
    )
    at = posenc.positions_by("msrope_ids", text=6, height=5, width=4, references=REFERENCES)
    x = torch.randn(1, 2, at.length, sum(sizes), dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    theirs = qwen.apply_rotary_emb_qwen(x.transpose(1, 2), torch.cat([text, images]), use_real=False).transpose(1, 2)
    assert torch.allclose(read("Qwen-Image").encoding(0).rotate(x, at, "query"), theirs.double(), atol=1e-6)


@pytest.mark.acceptance
@pytest.mark.parametrize("layers", [1, 2, 9])
def test_qwen_image_layered_turns_layers_and_their_image_by_msrope(layers, diffusers):
    from diffusers.models.transformers import transformer_qwenimage as qwen

    sizes = list(PUBLISHED["Qwen-Image"][4])
    images, text = qwen.QwenEmbedLayer3DRope(10000, sizes, scale_rope=True)(
        [[*[(1, 5, 4)] * layers, (1, 7, 3)]], 6, torch.device("cpu")
    )
    at = posenc.positions_by("msrope_ids", text=6, height=5, width=4, references=[(5, 4)] * (layers - 1), layered=(7, 3))
    x = torch.randn(1, 2, at.length, sum(sizes), dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    theirs = qwen.apply_rotary_emb_qwen(x.transpose(1, 2), torch.cat([text, images]), use_real=False).transpose(1, 2)
    assert torch.allclose(read("Qwen-Image").encoding(0).rotate(x, at, "query"), theirs.double(), atol=1e-6)
