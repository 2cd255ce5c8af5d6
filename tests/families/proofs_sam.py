"""posenc.configs.families.sam, compared with the models' own code in transformers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import posenc
from families.harness import Proof, build, config_of, modeling, proof, spec_of
from families.proofs_swin import weights_of
from families.proofs_vit import SMALL, picture, places, randomly
from posenc.configs.weights import with_weights

BUILT_BY = {"pp_chart2table_vision": "got_ocr2"}

RELATIVE = ("rel_pos_h", "rel_pos_w", "position_embeddings", "pos_embed")


def attended(
    result: Proof, spec: Any, model: torch.nn.Module, sizes: dict[int, tuple[int, int]], most: float = 8.0
) -> None:
    """Weights of every layer's attention at its window or image; `sizes` are those of images of another size."""
    modules = [m for m in model.modules() if hasattr(m, "rel_pos_h")]
    assert len(modules) == len(spec.layers)
    for number, module in enumerate(modules):
        encoding = with_weights(spec, number, model.state_dict())
        encoding = list(encoding)[-1] if isinstance(encoding, posenc.Stack) else encoding
        for size in {encoding.window, sizes.get(number, encoding.window)}:
            own = encoding if size == encoding.window else encoding.resized(size)
            x = torch.randn(2, *size, 32, generator=torch.Generator().manual_seed(3))
            with torch.no_grad():
                found = module(x, output_attentions=True)
                qkv = module.qkv(x.flatten(1, 2)).unflatten(-1, (3, 2, 16)).permute(2, 0, 3, 1, 4)
                at = posenc.Positions.at(places(*size).coords.expand(2, -1, -1))
                got = weights_of(own, qkv[0], qkv[1], at)
            theirs: Tensor = next(t for t in found[1:] if t is not None)
            result.close("attention weights of every layer", got, theirs.reshape(got.shape), most)


@proof("vitdet")
def vitdet(model_type: str) -> Proof:
    result = Proof(model_type, "learned grid, bicubic, and decomposed relative position bias, some layers in windows")
    config = config_of(
        model_type,
        **SMALL | {"num_hidden_layers": 3},
        image_size=12,
        pretrain_image_size=8,
        patch_size=2,
        window_size=3,
        window_block_indices=[0, 2],
        use_absolute_position_embeddings=True,
        use_relative_position_embeddings=True,
    )
    model, spec = randomly(build(config, attention=None), *RELATIVE), spec_of(config)
    assert [layer.kind for layer in spec.layers] == ["window", "full_attention", "window"]
    assert [layer.window_size > 0 for layer in model.encoder.layer] == [layer.kind == "window" for layer in spec.layers]
    attended(result, spec, model, {1: (4, 7)})
    table = next(iter(with_weights(spec, 0, model.state_dict())))
    for size in ((6, 6), (4, 4), (3, 7)):
        image = picture(*size)
        with torch.no_grad():
            patches = model.embeddings.projection(image).flatten(2).transpose(1, 2)
            whole = model.embeddings(image).flatten(2).transpose(1, 2)
            result.close(
                "embeddings of images of three sizes", table.embed(patches, places(*size, sized=True)), whole, 16.0
            )
    return result


@proof("seggpt")
def seggpt(model_type: str) -> Proof:
    result = Proof(model_type, "learned grid, bicubic, and decomposed relative position bias")
    config = config_of(
        model_type,
        **SMALL,
        image_size=[12, 6],
        pretrain_image_size=8,
        patch_size=2,
        mlp_dim=32,
        merge_index=0,
        intermediate_hidden_state_indices=[1],
        decoder_hidden_size=8,
    )
    model, spec = randomly(build(config, attention=None), *RELATIVE), spec_of(config)
    attended(result, spec, model, {0: (4, 7)})
    table = next(iter(with_weights(spec, 0, model.state_dict())))
    embeddings = model.embeddings
    with torch.no_grad():
        for name, parameter in embeddings.named_parameters():
            if "token" in name:
                parameter.zero_()
        for size in ((6, 3),):
            at, images = places(*size, sized=True), (picture(*size), picture(*size) + 1)
            patches = torch.cat([embeddings.patch_embeddings(image).flatten(1, 2) for image in images])
            kept = torch.zeros(1, size[0] * size[1], dtype=torch.bool)
            whole = embeddings(images[0], images[1], kept).flatten(1, 2)
            got = table.embed(patches, posenc.Positions.at(at.coords.expand(2, -1, -1)))
            result.close("embeddings of pictures and masks, twice as high as wide", got, whole, 16.0)
    return result


@proof(
    "sam_vision_model",
    "sam_hq_vision_model",
    "slanext_vision",
    "got_ocr2_vision",
    "pp_formulanet_vision",
    "pp_chart2table_vision",
)
def sam_vision_model(model_type: str) -> Proof:
    result = Proof(model_type, "learned grid, and decomposed relative position bias, most layers in windows")
    config = config_of(
        model_type,
        **SMALL | {"num_hidden_layers": 3},
        image_size=20,
        patch_size=4,
        window_size=3,
        global_attn_indexes=[1],
        mlp_dim=32,
        output_channels=8,
    )
    name = {
        "sam_vision_model": "SamVisionModel",
        "sam_hq_vision_model": "SamHQVisionModel",
        "slanext_vision": "SLANeXtVisionEncoder",
        "got_ocr2_vision": "GotOcr2VisionEncoder",
        "pp_formulanet_vision": "PPFormulaNetVisionModel",
        "pp_chart2table_vision": "GotOcr2VisionEncoder",
    }[model_type]
    config._attn_implementation = "eager"
    model, spec = (
        randomly(getattr(modeling(BUILT_BY.get(model_type, model_type)), name)(config).eval(), *RELATIVE),
        spec_of(config),
    )
    assert [layer.kind for layer in spec.layers] == ["window", "full_attention", "window"]
    attended(result, spec, model, {})
    tower = getattr(model, "vision_encoder", model)
    with torch.no_grad():
        patches = tower.patch_embed(picture(5, 5, 4)).flatten(1, 2)
        got = next(iter(with_weights(spec, 0, model.state_dict()))).embed(patches, places(5, 5))
        result.close("what enters the first layer", got, patches + tower.pos_embed.flatten(1, 2))
    return result


def _whole(model_type: str, attention: str | None = None) -> tuple[Any, torch.nn.Module]:
    family = "sam_hq" if "hq" in model_type else "sam"
    vision = {
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "image_size": 40,
        "patch_size": 4,
        "window_size": 3,
        "global_attn_indexes": [0],
        "mlp_dim": 16,
        "output_channels": 16,
        "num_pos_feats": 8,
    }
    prompts = {"hidden_size": 16, "image_size": 40, "patch_size": 4}
    decoder = {
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "mlp_dim": 16,
        "iou_head_hidden_dim": 16,
        "vit_dim": 16,
    }
    if family == "sam":
        decoder.pop("vit_dim")
    config = config_of(family, vision_config=vision, prompt_encoder_config=prompts, mask_decoder_config=decoder)
    return config, build(config, {"sam": "SamModel", "sam_hq": "SamHQModel"}[family], attention=attention)


# Theirs turns by angles to 2π · 4 · scale in fp32: at scale 8, to 200, half a rounding of which is 2^-17.
ANGLES = 256.0


@proof("sam_prompt_encoder", "sam_hq_prompt_encoder")
def sam_prompt_encoder(model_type: str) -> Proof:
    result = Proof(model_type, "sines and cosines of a random projection of points and corners")
    config, model = _whole(model_type)
    spec = spec_of(config)["prompt_encoder_config"]
    encoding = with_weights(spec, 0, model.state_dict())
    points = torch.tensor([[[[3.0, 17.0], [39.0, 0.0], [20.0, 31.0]]]])
    with torch.no_grad():
        for table in [*model.prompt_encoder.point_embed, model.prompt_encoder.not_a_point_embed]:
            table.weight.zero_()
        boxes = points[:, :, :2].flatten(-2)  # two corners
        got, _ = model.prompt_encoder(points, torch.ones(1, 1, 3, dtype=torch.long), boxes, None)
        at = torch.cat([points, points[:, :, :2]], dim=2)[0] + 0.5
        expected = encoding.embed(torch.zeros(1, 5, 16), posenc.Positions.at(at / 40))
    result.close("vectors of points and corners of boxes", expected, got[0], ANGLES)
    return result


@proof("sam_mask_decoder", "sam_hq_mask_decoder")
def sam_mask_decoder(model_type: str) -> Proof:
    result = Proof(
        model_type, "sines and cosines of a random projection of positions, added to the image's queries and keys"
    )
    config, model = _whole(model_type, "eager")
    spec = spec_of(config)["mask_decoder_config"]
    encoding = with_weights(spec, 0, model.state_dict())
    transformer = model.mask_decoder.transformer
    assert len(spec.layers) == len(transformer.layers) + 1
    seen: list[tuple[Tensor, Tensor]] = []  # what the image's tokens are as keys, and as values

    def look(layer: Any, given: Any, named: dict[str, Tensor]) -> None:
        seen.append((named["key"], named["value"]))

    for layer in transformer.layers:
        layer.cross_attn_token_to_image.register_forward_pre_hook(look, with_kwargs=True)
    transformer.final_attn_token_to_image.register_forward_pre_hook(look, with_kwargs=True)
    with torch.no_grad():
        model(torch.randn(1, 3, 40, 40), input_points=torch.tensor([[[[3.0, 17.0]]]]))
    at = posenc.Positions.at((places(10, 10).coords.flip(-1) + 0.5) / 10)
    assert len(seen) == len(spec.layers)
    for key, value in seen:
        with torch.no_grad():
            result.close("keys of the image in every layer", encoding.embed(value[0], at), key[0], ANGLES)
    return result


@proof("sam", "sam_hq")
def sam(model_type: str) -> Proof:
    parts = {
        "vision_config": "vision_encoder",
        "prompt_encoder_config": "prompt_encoder",
        "mask_decoder_config": "mask_decoder",
    }
    result = Proof(model_type, "image encoder, prompts and mask decoder; one random matrix for the last two")
    config, model = _whole(model_type)
    spec = spec_of(config)
    for part, name in parts.items():
        own = type(getattr(config, part)).model_type or part
        result.equal(f"{part} is {spec[part].family}", spec[part].family, own)
        assert hasattr(model, name)
    assert model.prompt_encoder.shared_embedding.positional_embedding is model.shared_image_embedding.positional_embedding
    result.equal("one matrix for prompts and places", True, True)
    return result
