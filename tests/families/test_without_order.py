"""Parts said to have no positions: no weight is of any, and what they attend to may come in any order."""

from __future__ import annotations

import re

import pytest
import torch

from families import proofs_flava, proofs_idefics2
from families.harness import build, config_of, modeling
from families.proofs_flava import OF_POSITIONS

CLASSES = {
    "align_vision_model": "AlignVisionModel",
    "flava_image_codebook": "FlavaImageCodebook",
    "flava_multimodal_model": "FlavaMultimodalModel",
    "janus_vqgan": "JanusVQVAE",
    "idefics2_perceiver": "Idefics2PerceiverResampler",
}
ORDER = torch.tensor([3, 1, 5, 0, 4, 2])


@pytest.mark.parametrize("model_type", sorted(proofs_idefics2.NO_POSITIONS | proofs_flava.NO_POSITIONS))
def test_no_weight_is_of_positions(model_type: str):
    with torch.device("meta"):
        model = build(config_of(model_type), CLASSES[model_type], attention=None)
    names = [name for name, _ in [*model.named_parameters(), *model.named_buffers()]]
    assert names
    assert not [name for name in names if OF_POSITIONS.search(name)]
    if "convolutional" in proofs_flava.NO_POSITIONS.get(model_type, ""):
        assert not [n for n, module in model.named_modules() if re.search(r"Attention$|AttnBlock$", type(module).__name__)]


def test_attention_of_janus_among_places_has_no_order():
    block = modeling("janus_vqgan").JanusVQVAEAttnBlock(32).eval()
    x = torch.randn(1, 32, 2, 3)
    with torch.no_grad():
        once, again = (block(y.unflatten(2, (2, 3))).flatten(2) for y in (x.flatten(2), x.flatten(2)[..., ORDER]))
    torch.testing.assert_close(once[..., ORDER], again)


def test_idefics_2_asks_patches_in_any_order():
    config = config_of(
        "idefics2_perceiver",
        hidden_size=32,
        resampler_n_heads=2,
        resampler_head_dim=16,
        resampler_depth=2,
        num_key_value_heads=1,
        resampler_n_latents=3,
    )
    model = build(config, "Idefics2PerceiverResampler", attention="eager")
    x = torch.randn(1, 6, 32)
    with torch.no_grad():
        once, again = (model(y, torch.ones(1, 6, dtype=torch.long)) for y in (x, x[:, ORDER]))
    torch.testing.assert_close(getattr(once, "last_hidden_state", once), getattr(again, "last_hidden_state", again))
