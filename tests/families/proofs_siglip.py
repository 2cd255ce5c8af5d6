"""posenc.configs.families.siglip, compared with the models' own code in transformers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

import posenc
from families.harness import Proof, build, calls, config_of, modeling, module_named, proof, spec_of, tokens
from families.proofs_qwen2_vl_vision import GRIDS, block_order, pixels, sizes_of
from posenc.configs import PositionSpec
from posenc.configs.weights import with_weights

SMALL: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "patch_size": 2,
    "num_key_value_heads": None,
}

IMAGES = ((3, 7), (9, 4), (5, 5))  # rows and columns of patches


def made(model_type: str, **sizes: Any) -> Any:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    fields = CONFIG_MAPPING[model_type].__dataclass_fields__
    return config_of(model_type, **{name: value if name in fields else None for name, value in (SMALL | sizes).items()})


def added(result: Proof, spec: PositionSpec, module: Any, coords: Tensor, most: float = 1.0, **inputs: Any) -> None:
    """What the family's embedding module returns against posenc's encoding of what its projection returns."""
    seen: list[Tensor] = []
    hook = module.patch_embedding.register_forward_hook(lambda layer, given, out: seen.append(out))
    with torch.no_grad():
        torch.nn.init.normal_(module.position_embedding.weight)
        expected = module(**inputs)
        hook.remove()
        before = seen[0].flatten(2).transpose(1, 2) if seen[0].ndim == 4 else seen[0]
        state = {f"embeddings.{name}": value for name, value in module.state_dict().items()}
        shape = (len(coords), coords.shape[1], expected.shape[-1])
        got = with_weights(spec, 0, state).embed(before.reshape(shape), posenc.Positions.at(coords))
    result.close("what enters the first layer", got, expected.reshape(shape), most)


def of_images(sizes: Sequence[tuple[int, int]] = IMAGES) -> Tensor:
    """(row, column, height, width) of every patch, image by image, row by row."""
    return torch.tensor([(y, x, high, wide) for high, wide in sizes for y in range(high) for x in range(wide)])


def nothing_after(result: Proof, spec: PositionSpec, model: torch.nn.Module, layers: int) -> None:
    """Position enters at the first layer only: no other use, and as many layers as the model."""
    assert len(spec.layers) == layers
    assert not any(layer.uses for layer in spec.layers[1:])
    names = [type(module).__name__ for module in model.modules()]
    assert not any("Rotary" in name or "Relative" in name or "Rope" in name for name in names), names


@proof("siglip_vision_model", "granite_docling_vision")
def siglip_vision_model(model_type: str) -> Proof:
    result = Proof(model_type, "learned grid, bicubic for images of another size, on request")
    config = made(model_type, image_size=10)
    spec, name = spec_of(config), "Siglip" if model_type.startswith("siglip") else "GraniteDocling"
    module = getattr(modeling(model_type), f"{name}VisionEmbeddings")(config)
    added(result, spec, module, of_images([(5, 5)])[None, :, :2], pixel_values=torch.randn(1, 3, 10, 10))
    for size in ((3, 7), (12, 5)):  # theirs has the places of cells in fp32
        picture = torch.randn(1, 3, 2 * size[0], 2 * size[1])
        added(result, spec, module, of_images([size])[None], 16.0, pixel_values=picture, interpolate_pos_encoding=True)
    nothing_after(result, spec, build(config, f"{name}VisionModel"), 2)
    return result


@proof("siglip2_vision_model")
def siglip2_vision_model(model_type: str) -> Proof:
    result = Proof(model_type, "learned grid, bilinear with antialiasing, to the size of each image")
    config = made(model_type, num_patches=36)
    spec, module = spec_of(config), modeling(model_type).Siglip2VisionEmbeddings(config)
    longest = max(high * wide for high, wide in IMAGES)
    rows = [
        torch.cat([of_images([size]), torch.tensor([[0, 0, *size]]).repeat(longest - size[0] * size[1], 1)])
        for size in IMAGES
    ]
    added(
        result,
        spec,
        module,
        torch.stack(rows),
        16.0,
        pixel_values=torch.randn(3, longest, 12),
        spatial_shapes=torch.tensor(IMAGES),
    )
    nothing_after(result, spec, build(config, "Siglip2VisionModel"), 2)
    return result


@proof("cosmos3_edge_vision")
def cosmos3_edge_vision(model_type: str) -> Proof:
    result = Proof(model_type, "learned grid, bilinear with antialiasing, patches in blocks")
    config = made(model_type, num_patches=36)
    spec, module = spec_of(config), modeling(model_type).Cosmos3EdgeVisionEmbeddings(config)
    coords = torch.cat([block_order(2), sizes_of()], dim=1)
    added(
        result, spec, module, coords[None], 16.0, pixel_values=pixels(config, len(coords), 1), grid_thw=torch.tensor(GRIDS)
    )
    nothing_after(result, spec, build(config, "Cosmos3EdgeVisionModel"), 2)
    return result


@proof("glm_image_vision")
def glm_image_vision(model_type: str) -> Proof:
    result = Proof(model_type, "learned grid, bilinear, patches in blocks")
    config = made(
        model_type,
        image_size=10,
        depth=2,
        num_heads=2,
        num_hidden_layers=None,
        num_attention_heads=None,
        spatial_merge_size=2,
    )
    spec, module = spec_of(config), modeling(model_type).GlmImageVisionEmbeddings(config)
    grids = [(1, high, wide) for _, high, wide in GRIDS]
    places, x = block_order(2, grids), torch.randn(sum(high * wide for _, high, wide in grids), 32)
    with torch.no_grad():
        torch.nn.init.normal_(module.position_embedding.weight)
        expected = module(x, [high * wide for _, high, wide in grids], torch.tensor(grids), *places.T)
        state = {f"embeddings.{name}": value for name, value in module.state_dict().items()}
        at = posenc.Positions.at(torch.cat([places, sizes_of(grids)], dim=1)[None])
        result.close("what enters the first layer", with_weights(spec, 0, state).embed(x[None], at)[0], expected, 16.0)
    model = build(config, "GlmImageVisionModel")
    nothing_after(result, spec, model, 2)
    counted: list[Tensor] = []
    model.embeddings.register_forward_pre_hook(lambda layer, given: counted.append(torch.stack(given[-2:], dim=1)))
    calls(model, pixel_values=pixels(config, len(places), 1), grid_thw=torch.tensor(grids))
    result.equal("the coordinates that the tower counts", counted[0], places)
    return result


@proof("minicpmv4_6_vision", "minicpmv4_7_vision", "minicpm_ocr_vision")
def minicpmv4_6_vision(model_type: str) -> Proof:
    result = Proof(model_type, "learned grid, nearest cell, for each image size")
    name = {"minicpmv4_6_vision": "MiniCPMV4_6", "minicpmv4_7_vision": "MiniCPMV4_7", "minicpm_ocr_vision": "MiniCPMOcr"}[
        model_type
    ]
    for side, images in ((14, (*IMAGES, (30, 17))), (5, IMAGES)):
        config = made(model_type, image_size=2 * side, insert_layer_id=0)
        spec, module = spec_of(config), getattr(modeling(model_type), f"{name}VisionEmbeddings")(config)
        coords = of_images(images)
        inputs = {"pixel_values": torch.randn(1, 3, 2, 2 * len(coords)), "target_sizes": torch.tensor(images)}
        added(result, spec, module, coords[None], **inputs)
    nothing_after(result, spec, build(config, f"{name}VisionModel"), 2)
    assert any(finding.key == "image_size" for finding in spec_of(made(model_type, image_size=54)).remarks)  # 27 to a side
    return result


@proof("aimv2_vision_model")
def aimv2_vision_model(model_type: str) -> Proof:
    result = Proof(model_type, "learned grid, or sinusoids of column and row")
    for native, sizes in ((False, [(5, 5)]), (True, [(5, 5), (3, 7)])):
        config = made(model_type, image_size=10, is_native=native)
        spec, module = spec_of(config), modeling(model_type).Aimv2VisionEmbeddings(config)
        for size in sizes:
            picture = torch.randn(1, 3, 2 * size[0], 2 * size[1])
            with torch.no_grad():
                x = module.rms_norm(module.patch_embed(picture).flatten(2).transpose(1, 2))
                state = {f"embeddings.{name}": value for name, value in module.state_dict().items()}
                at = posenc.Positions.at(of_images([size])[None, :, :2])
                result.close("what enters the first layer", with_weights(spec, 0, state).embed(x, at), module(picture))
        nothing_after(result, spec, build(config, "Aimv2VisionModel"), 2)
    return result


TEXTS = {"siglip_text_model": "SiglipText", "siglip2_text_model": "Siglip2Text", "aimv2_text_model": "Aimv2Text"}


@proof(*TEXTS)
def siglip_text_model(model_type: str) -> Proof:
    result = Proof(model_type, "learned table, added to the embeddings, counted from 0")
    config = config_of(model_type, max_position_embeddings=12, num_hidden_layers=2)
    spec, model = spec_of(config), build(config, TEXTS[model_type] + "Model")
    module, ids = module_named(model, "embeddings"), torch.tensor([[0, 1, 2, 3], [5, 0, 11, 10]])
    with torch.no_grad():
        text, expected = module.token_embedding(tokens(ids.shape)), module(input_ids=tokens(ids.shape), position_ids=ids)
        got = with_weights(spec, 0, model.state_dict()).embed(text, posenc.Positions.at(ids))
    result.close("what enters the first layer", got, expected)
    reached = calls(model, input_ids=tokens(ids.shape), attention_mask=torch.ones(ids.shape, dtype=torch.long))[0].mask
    hidden = reached is not None and bool((reached[0, 0].triu(1) < 0).any())
    result.equal("whether later tokens are hidden", spec.layers[0].causal, hidden)
    if model_type == "aimv2_text_model":
        assert calls(model, input_ids=tokens(ids.shape))[0].mask is None, (
            "AIMv2 makes a mask now: its finding is out of date"
        )
    nothing_after(result, spec, model, 2)
    return result


AUDIO = {
    "qwen2_5_omni_audio_encoder": "Qwen2_5OmniAudioEncoder",
    "qwen3_asr_encoder": "Qwen3ASREncoder",
    "qwen3_omni_moe_audio_encoder": "Qwen3OmniMoeAudioEncoder",
}


@proof(*AUDIO)
def qwen2_5_omni_audio_encoder(model_type: str) -> Proof:
    result = Proof(model_type, "sinusoids [sin | cos] to 1/10 000, counted from 0 in each chunk")
    sizes: dict[str, Any] = {
        "d_model": 32,
        "encoder_layers": 2,
        "encoder_attention_heads": 2,
        "encoder_ffn_dim": 16,
        "num_mel_bins": 8,
        "num_hidden_layers": None,
        "num_attention_heads": None,
        "hidden_size": None,
    }
    config = config_of(model_type, **sizes, **({} if "2_5" in model_type else {"downsample_hidden_size": 4}))
    spec, model = spec_of(config), build(config, AUDIO[model_type])
    n = 2 * config.n_window
    lengths: tuple[int, ...] = (n, n, n // 2 + 3)
    seen: dict[str, Tensor] = {}
    projected = model.conv2 if "2_5" in model_type else model.conv_out
    projected.register_forward_hook(lambda layer, given, out: seen.__setitem__("before", out.clone()))
    model.layers[0].register_forward_pre_hook(
        lambda layer, given, named: seen.__setitem__("after", given[0] if given else named["hidden_states"]),
        with_kwargs=True,
    )
    sound = torch.randn(8, sum(lengths), generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        if "asr" in model_type:
            model(F.pad(sound, (0, 3 * n - sum(lengths)))[None], (torch.arange(3 * n) < sum(lengths)).long()[None])
        else:
            model(sound, feature_lens=torch.tensor([sum(lengths)]))
    before = F.gelu(seen["before"]).transpose(1, 2) if "2_5" in model_type else seen["before"]
    halvings = 1 if "2_5" in model_type else 3
    kept = list(lengths)
    for _ in range(halvings):
        kept = [(length - 1) // 2 + 1 for length in kept]
    x = torch.cat([chunk[:length] for chunk, length in zip(before, kept, strict=True)])
    at = torch.cat([torch.arange(length) for length in kept])
    # Theirs multiplies position and frequency in fp32: an angle up to t is t · 2^-24 off, twice.
    got = spec.encoding(0).embed(torch.zeros_like(x)[None], posenc.Positions.at(at[None]))[0]
    result.close("what is added before the first layer", got, seen["after"] - x, 2.0 * max(kept))
    nothing_after(result, spec, model, 2)
    return result
