"""posenc.configs.families.sam2, compared with the models' own code in transformers."""

from __future__ import annotations

import inspect
from typing import Any

import torch
import transformers
from torch import Tensor
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

import posenc
from families.harness import Proof, build, calls, config_of, modeling, proof, spec_of
from families.proofs_dinov3 import at_rest
from families.proofs_qwen2_vl_vision import frequencies
from posenc.configs.weights import with_weights

PREFIX = {
    "sam2": "Sam2",
    "sam2_video": "Sam2Video",
    "sam3": "Sam3",
    "sam3_tracker": "Sam3Tracker",
    "edgetam": "EdgeTam",
    "sam3_tracker_video": "Sam3TrackerVideo",
    "edgetam_video": "EdgeTamVideo",
    "sam3_lite_text": "Sam3LiteText",
    "sam3_video": "Sam3Video",
}


def own(model_type: str, name: str) -> Any:
    """A class of the folder that a model type is from: own("sam2_mask_decoder", "MaskDecoder") is Sam2MaskDecoder."""
    folder = CONFIG_MAPPING[model_type].__module__.split(".")[-2]
    return getattr(modeling(model_type), PREFIX[folder] + name)


def cells(height: int, width: int, sized: bool = False) -> Tensor:
    """(row, column), or (row, column, height, width), row by row."""
    return torch.tensor([(y, x, height, width)[: 4 if sized else 2] for y in range(height) for x in range(width)])


@proof("sam2_hiera_det_model")
def sam2_hiera_det_model(model_type: str) -> Proof:
    result = Proof(model_type, "two learned grids, one bicubic and one tiled; windows without positions")
    stages = {
        "embed_dim_per_stage": [16, 16, 32, 32],
        "num_attention_heads_per_stage": [1, 1, 2, 2],
        "blocks_per_stage": [1, 2, 1, 1],
        "window_size_per_stage": [4, 4, 2, 2],
    }
    config = config_of(
        model_type,
        hidden_size=16,
        global_attention_blocks=[2],
        image_size=[64, 64],
        **stages,
        window_positional_embedding_background_size=[3, 5],
    )
    model, spec = build(config), spec_of(config)
    with torch.no_grad():
        torch.nn.init.normal_(model.pos_embed)
        torch.nn.init.normal_(model.pos_embed_window)
        encoding = with_weights(spec, 0, model.state_dict())
        for height, width in ((16, 16), (8, 12)):
            x = torch.zeros(1, height * width, 16)
            got = encoding.embed(x, posenc.Positions.at(cells(height, width, sized=True)[None]))
            # Theirs has the places of cells in fp32.
            result.close("what is added to the patches", got, model._get_pos_embed((height, width)).flatten(1, 2), 16.0)
    windows = ["window_attention" if block.window_size else "full_attention" for block in model.blocks]
    result.equal("which blocks see windows", [layer.kind for layer in spec.layers], windows)
    return result


@proof("sam2_vision_model", "sam3_vision_model", "edgetam_vision_model")
def sam2_vision_model(model_type: str) -> Proof:
    result = Proof(model_type, "sinusoids of row and column for each feature map of the neck; the backbone's own positions")
    config = CONFIG_MAPPING[model_type]()
    spec = spec_of(config, defaults=True)
    with torch.device("meta"):
        neck = own(model_type, "VisionNeck")(config)
    width = config.fpn_hidden_size
    if model_type == "edgetam_vision_model":  # a convolutional model of timm
        assert config.backbone_config.model_type == "timm_wrapper"
        assert config.backbone_config.architecture.startswith("repvit") or "repvit" in str(config.backbone_config.to_dict())
        assert not spec.parts
    else:
        result.equal("the backbone", [part.family for part in spec.parts], [config.backbone_config.model_type])
    for height, width_of in ((4, 6), (7, 3)):
        expected = neck.position_encoding(torch.Size([2, width, height, width_of]), "cpu", torch.float32)
        at = posenc.Positions.pixels(torch.ones(2, height, width_of))
        got = spec.encoding(0).embed(torch.zeros(2, height * width_of, width), at)
        # Angles up to 2π, of which theirs rounds every step in fp32.
        result.close("sinusoids of a map", got, expected.flatten(2).transpose(1, 2), 16.0)
    return result


PROMPTS = (
    "sam2_prompt_encoder",
    "sam2_video_prompt_encoder",
    "sam3_tracker_prompt_encoder",
    "sam3_tracker_video_prompt_encoder",
    "edgetam_prompt_encoder",
    "edgetam_video_prompt_encoder",
)


@proof(*PROMPTS)
def sam2_prompt_encoder(model_type: str) -> Proof:
    result = Proof(model_type, "random Fourier features of points plus half a pixel")
    config = config_of(model_type, hidden_size=32, image_size=64, patch_size=16)
    spec, module = spec_of(config), own(model_type, "PromptEncoder")(config).eval()
    points = torch.tensor([[[[0.0, 0.0], [10.0, 20.0], [63.0, 5.0]]]])
    with torch.no_grad():
        torch.nn.init.zeros_(module.point_embed.weight)
        theirs = module._embed_points(points, torch.ones(1, 1, 3, dtype=torch.long), pad=False)[0]
        encoding = with_weights(spec, 0, module.state_dict())
        mine = encoding.embed(torch.zeros(1, 3, 32), posenc.Positions.at((points[0].double() + 0.5) / 64))
    # Angles 2π · projection, up to about 20, in fp32 there.
    result.close("the features of points", mine, theirs, 64.0)
    return result


DECODERS = (
    "sam2_mask_decoder",
    "sam2_video_mask_decoder",
    "sam3_tracker_mask_decoder",
    "sam3_tracker_video_mask_decoder",
    "edgetam_mask_decoder",
    "edgetam_video_mask_decoder",
)


@proof(*DECODERS)
def sam2_mask_decoder(model_type: str) -> Proof:
    result = Proof(model_type, "no positions of its own: those of prompts and image are added in every layer")
    config = config_of(model_type, hidden_size=32, num_attention_heads=2, num_hidden_layers=2, mlp_dim=16)
    config._attn_implementation = "eager"
    spec, module = spec_of(config), own(model_type, "TwoWayTransformer")(config).eval()
    generator = torch.Generator().manual_seed(3)
    prompts, image, places = (
        torch.randn(*shape, generator=generator) for shape in ((1, 1, 5, 32), (1, 32, 3, 4), (1, 32, 3, 4))
    )
    order, words = torch.randperm(12, generator=generator), torch.tensor([3, 0, 4, 1, 2])

    def moved(maps: Tensor) -> Tensor:
        return maps.flatten(2)[..., order].reshape(maps.shape)

    with torch.no_grad():
        names = ["point_embeddings", "image_embeddings", "image_positional_embeddings"]
        extra = (
            {"attention_similarity": None} if "attention_similarity" in inspect.signature(module.forward).parameters else {}
        )
        first = module(**dict(zip(names, (prompts, image, places), strict=True)), **extra)[0]
        other = module(**dict(zip(names, (prompts[:, :, words], moved(image), moved(places)), strict=True)), **extra)[0]
    result.close("prompts and patches in another order, with what is added to them", other, first[:, :, words], 64.0)
    attentions = [m for m in module.modules() if type(m).__name__.endswith("Attention")]
    result.equal("how many attentions there are", len(spec.layers), len(attentions))
    return result


@proof("sam2_video", "sam3_tracker_video", "edgetam_video")
def sam2_video(model_type: str) -> Proof:
    result = held(
        model_type, "RoPE over column and row, interleaved pairs, over remembered frames; object pointers are not rotated"
    )
    edge = model_type == "edgetam_video"
    config = CONFIG_MAPPING[model_type]()
    config.memory_attention_hidden_size, config.memory_attention_num_layers = 64, 2
    config.memory_attention_num_attention_heads, config.memory_attention_rope_feat_sizes = 2, [4, 4]
    if edge:
        config.memory_attention_rope_k_sizes = [2, 2]
    config._attn_implementation = "probe"
    spec, module = spec_of(config, defaults=True), own(model_type, "MemoryAttention")(config).eval()
    grid, small, still = cells(4, 4), cells(2, 2), torch.zeros(3, 2, dtype=torch.long)
    frame = torch.cat([still, small]) if edge else grid  # three latents without place, then a coarser grid
    remembered = torch.cat([frame, frame, still[:2]])  # two frames and two pointers
    generator = torch.Generator().manual_seed(3)
    given = {
        "current_vision_features": torch.randn(16, 1, 64, generator=generator),
        "memory": torch.randn(len(remembered), 1, 64, generator=generator),
        "memory_posision_embeddings": torch.randn(len(remembered), 1, 64, generator=generator),
        "num_object_pointer_tokens": 2,
        **({"num_spatial_memory_tokens": 2} if edge else {}),
    }
    rest, moved = at_rest(module, module.rotary_emb, **given), calls(module, **given)
    assert len(moved) == len(spec.layers) == 4
    for number, (first, call) in enumerate(zip(rest, moved, strict=True)):
        encoding = spec.encoding(number, exact="model")
        keys = grid if spec.layers[number].kind == "memory_self" else remembered
        for side, places in (("query", grid), ("key", keys), ("value", keys)):
            mine = encoding.rotate(getattr(first, side[0]), posenc.Positions.at(places[None]), side)
            result.close("queries, keys and values of every layer", mine, getattr(call, side[0]))
    frequencies(result, module.rotary_emb, spec)
    return result


PARTS = {
    "vision_config": "VisionModel",
    "prompt_encoder_config": "PromptEncoder",
    "mask_decoder_config": "MaskDecoder",
    "text_config": "Text",
    "geometry_encoder_config": "GeometryEncoder",
    "detr_encoder_config": "DetrEncoder",
    "detr_decoder_config": "DetrDecoder",
    "detector_config": "Sam3Model",
    "tracker_config": "Sam3TrackerVideoModel",
}


def held(model_type: str, does: str) -> Proof:
    """The model, built without storage, holds for each part a module that takes a configuration of just that family."""
    result = Proof(model_type, does)
    hiera = {"vision_config": {"backbone_config": {"model_type": "sam2_hiera_det_model"}}}  # in the place of timm's
    config = CONFIG_MAPPING[model_type](**(hiera if model_type == "edgetam" else {}))
    spec = spec_of(config, defaults=True)
    with torch.device("meta"):
        model = transformers.AutoModel.from_config(config)
    for part in spec.parts:
        asked = getattr(config, part.part)
        taken = [module for _, module in model.named_modules() if PARTS[part.part] in type(module).__name__]
        classes = {
            inspect.signature(type(module).__init__).parameters["config"].annotation
            for module in taken
            if "config" in inspect.signature(type(module).__init__).parameters
        }
        names = {getattr(found, "__name__", str(found)) for found in classes}
        result.equal(f"{part.part} is {part.family}", part.family, asked.model_type)
        assert type(asked).__name__ in names, f"{model_type}: {part.part}: {type(asked).__name__} is none of {names}"
    return result
