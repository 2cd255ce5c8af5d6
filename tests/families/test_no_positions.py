"""Attention of models that are said to have no positions: what enters in another order leaves so, or as before."""

from __future__ import annotations

import importlib

import torch

from families.harness import config_of, modeling

ORDER = torch.randperm(12, generator=torch.Generator().manual_seed(0))
SEED = torch.Generator().manual_seed(1)


def same(one: torch.Tensor, other: torch.Tensor) -> None:
    torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


@torch.no_grad()
def test_pixels_of_chameleons_codes():
    module = modeling("chameleon_vqgan").ChameleonVQVAEEncoderAttnBlock(32).eval()
    pixels = torch.randn(2, 32, 12, generator=SEED)
    out = module(pixels.unflatten(-1, (3, 4))).flatten(2)
    same(module(pixels[..., ORDER].unflatten(-1, (3, 4))).flatten(2), out[..., ORDER])


@torch.no_grad()
def test_pixels_of_emu3s_codes():
    config = config_of("emu3_vqgan", hidden_size=32, num_attention_heads=2)
    config._attn_implementation = "eager"
    module = modeling("emu3_vqgan").Emu3VQVAEAttentionBlock(config).eval()
    pixels = torch.randn(2, 12, 32, generator=SEED)
    same(module(pixels[:, ORDER])[0], module(pixels)[0][:, ORDER])


@torch.no_grad()
def test_image_features_that_idefics_resamples():
    perceiver = importlib.import_module("transformers.models.idefics.perceiver").IdeficsPerceiverResampler
    module = perceiver(
        config_of("idefics", vision_config={"embed_dim": 32}), embed_dim=32, depth=2, n_heads=2, head_dim=8, n_latents=3
    ).eval()
    features = torch.randn(2, 12, 32, generator=SEED)
    same(module(features[:, ORDER]), module(features))
