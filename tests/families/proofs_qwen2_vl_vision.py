"""posenc.configs.families.qwen2_vl_vision, compared with the models' own code in transformers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.vision_utils import get_vision_window_index

import posenc
from families.harness import Call, Proof, build, calls, config_of, module_named, proof, same_rotation, spec_of
from families.proofs_dinov3 import SMALL, at_rest
from posenc.configs import PositionSpec, read_config
from posenc.configs.weights import with_weights


@proof("exaone4_5_vision")
def exaone4_5_vision(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE over row and column, half pairs, grouped heads, in windows except some layers")
    sizes = {
        "fullatt_block_indexes": [1],
        "window_size": 8,
        "patch_size": 2,
        "out_hidden_size": 32,
        "num_key_value_heads": 1,
    }
    for parameters in (None, {"rope_type": "axial", "rope_theta": 500.0}):
        model, spec, inputs = made(model_type, "Exaone4_5_VisionModel", rope_parameters=parameters, **sizes)
        assert [layer.kind for layer in spec.layers] == ["window_attention", "full_attention", "window_attention"]
        tokens = len(block_order(2))
        one = {"window_index": torch.arange(tokens // 4), "cu_window_seqlens": torch.tensor([0, tokens], dtype=torch.int32)}
        rotation(result, model, spec, block_order(2), **inputs, **one)  # one window, so that tokens stay where they are
    segments = [len([c for c in calls(model, **inputs) if c.module is block.attn]) for block in model.blocks]
    frames = sum(frames for frames, _, _ in GRIDS)
    assert segments[1] == frames < segments[0] == segments[2], segments  # windows in layers 0 and 2, frames in layer 1
    return result


@proof("lfm3_vl_vision")
def lfm3_vl_vision(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE over row and column, half pairs, in some layers; the others are convolutions")
    kinds = ["conv", "full_attention", "conv", "full_attention"]
    for said in (kinds, None):
        model, spec, inputs = made(
            model_type, "Lfm3VlVisionModel", num_hidden_layers=4, num_key_value_heads=1, layer_types=said
        )
        inputs["pixel_values"] = inputs.pop("hidden_states")
        result.equal("which layers attend", [layer.kind for layer in spec.layers], model.config.layer_types)
        assert [layer.is_attention_layer for layer in model.layers] == [bool(layer.uses) for layer in spec.layers]
        attending = replace(spec, layers=tuple(layer for layer in spec.layers if layer.uses))
        rotation(result, model, attending, block_order(2), **inputs)
    silent = {key: value for key, value in model.config.to_dict().items() if key != "layer_types"}
    assert read_config(silent).layers == spec.layers
    return result


@proof("mlcd", "mlcd_vision_model")
def mlcd(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE over row and column, half pairs; the class token is rotated by learned angles")
    config = config_of(model_type, image_size=16, **SMALL)
    model, spec = build(config, "MLCDVisionModel"), spec_of(config)
    picture = torch.randn(2, 3, 16, 24)
    with torch.no_grad():
        learned = model.class_pos_emb.clone()
        model.class_pos_emb.zero_()
        rest = at_rest(model, model.vision_rotary_embedding, pixel_values=picture)
        model.class_pos_emb.copy_(learned)
    moved = calls(model, pixel_values=picture)
    assert len(moved) == len(spec.layers)
    at = posenc.Positions.grid(4, 6, prefix=1)
    for number, (first, call) in enumerate(zip(rest, moved, strict=True)):
        encoding = with_weights(spec, number, model.state_dict())
        for side in ("query", "key", "value"):
            mine = encoding.rotate(getattr(first, side[0]), at, side).detach()
            # Theirs rounds angles up to 6 in fp32, ours only the cosine.
            result.close("queries, keys and values of every layer", mine, getattr(call, side[0]), 6.0)
    frequencies(result, model.vision_rotary_embedding, spec)
    return result


GRIDS = ((2, 4, 6), (1, 2, 4), (1, 6, 4))  # frames, rows, columns of patches: a clip and two images

TOWER: dict[str, Any] = {
    "hidden_size": 64,
    "depth": 3,
    "num_heads": 2,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "num_key_value_heads": None,
}


def whole(found: Sequence[Call]) -> list[Call]:
    """The calls of one layer, one for each sequence, put together again."""
    order = list(dict.fromkeys(id(call.module) for call in found))
    groups = [[call for call in found if id(call.module) == number] for number in order]
    return [
        replace(group[0], layer=None, **{side: torch.cat([getattr(c, side) for c in group], dim=2) for side in "qkv"})
        for group in groups
    ]


def block_order(merge: int, grids: Sequence[tuple[int, int, int]] = GRIDS) -> Tensor:
    """(row, column) of every patch, block by block, as `coordinates` says it: [t, 2]."""
    places = []
    for frames, height, width in grids:
        places += [
            (block_y * merge + y, block_x * merge + x)
            for _ in range(frames)
            for block_y in range(height // merge)
            for block_x in range(width // merge)
            for y in range(merge)
            for x in range(merge)
        ]
    return torch.tensor(places)


def far(tokens: int, axes: int = 2) -> Tensor:
    """Coordinates that share nothing, up to 131071: [t, axes]."""
    return torch.randint(0, 131072, (tokens, axes), generator=torch.Generator().manual_seed(5))


def sizes_of(grids: Sequence[tuple[int, int, int]] = GRIDS) -> Tensor:
    """(height, width) of the image that every patch is from: [t, 2]."""
    return torch.tensor([(height, width) for frames, height, width in grids for _ in range(frames * height * width)])


def rotation(result: Proof, model: Any, spec: PositionSpec, own: Tensor, **inputs: Any) -> None:
    """Queries, keys and values at coordinates of ours and at `own`, which the family must count by itself: [t, axes]."""
    at_zero = whole(calls(model, **inputs, position_ids=torch.zeros_like(own)))
    assert len(at_zero) == len(spec.layers), f"{len(at_zero)} layers of theirs, {len(spec.layers)} of ours"
    for ids, given in ((far(*own.shape), True), (own, False)):
        moved = whole(calls(model, **inputs, **({"position_ids": ids} if given else {})))
        same_rotation(result, spec, at_zero, moved, ids.T[:, None], softmax=True)
    result.compared.append("the coordinates that the tower counts itself, for a clip and two images")
    frequencies(
        result, module_named(model, "rotary_pos_emb" if hasattr(model, "rotary_pos_emb") else "RotaryEmbedding"), spec
    )


def frequencies(result: Proof, module: Any, spec: PositionSpec) -> None:
    """The family's own, of one axis, against ours of every axis."""
    own, mine = module.inv_freq, rotary_of(spec.encoding(0, exact="model")).frequencies
    for axis in range(mine.n_axes):
        of_axis = [value for value, which in zip(mine.values, mine.axes, strict=True) if which == axis]
        result.equal(f"{len(own)} frequencies of each axis", torch.tensor(of_axis), own)


def rotary_of(encoding: Any) -> Any:
    parts = encoding if isinstance(encoding, posenc.Stack) else [encoding]
    return next(part for part in parts if hasattr(part, "rotary_dim"))


def embedding(
    result: Proof, model: Any, spec: PositionSpec, coords: Tensor, before: Any, after: Any, most: float, **inputs: Any
) -> None:
    """What the tower adds to the embeddings of patches: between the output of `before` and the input of `after`."""
    seen: dict[str, Tensor] = {}

    def leaving(module: Any, given: Any, out: Tensor) -> None:
        seen["before"] = out.clone()

    def entering(module: Any, given: Any, named: Any) -> None:
        seen["after"] = (given[0] if given else named.get("hidden_states", named.get("inputs_embeds"))).clone()

    hooks = [before.register_forward_hook(leaving), after.register_forward_pre_hook(entering, with_kwargs=True)]
    with torch.no_grad():
        model(**inputs)
        for hook in hooks:
            hook.remove()
        first = with_weights(spec, 0, model.state_dict())
        x, y = (seen[name].reshape(len(coords), -1) for name in ("before", "after"))
        got = first.embed(x[None], posenc.Positions.at(coords[None]))[0]
        result.close("what enters the first layer", got, y, most)


def pixels(config: Any, tokens: int, frames: int) -> Tensor:
    channels = getattr(config, "in_channels", None) or getattr(config, "num_channels", 3)
    generator = torch.Generator().manual_seed(2)
    return torch.randn(tokens, channels * frames * config.patch_size**2, generator=generator) * 1e-3


PLAIN = {
    "qwen2_vl_vision": "Qwen2VisionTransformerPretrainedModel",
    "ernie4_5_vl_moe_vision": "Ernie4_5_VLMoeVisionTransformerPretrainedModel",
    "glm_ocr_vision": "GlmOcrVisionModel",
}

WINDOWS = {
    "qwen2_5_vl_vision": "Qwen2_5_VisionTransformerPretrainedModel",
    "qwen2_5_omni_vision_encoder": "Qwen2_5OmniVisionEncoder",
}

GRID = {
    "qwen3_vl_vision": "Qwen3VLVisionModel",
    "qwen3_vl_moe_vision": "Qwen3VLMoeVisionModel",
    "qwen3_omni_moe_vision_encoder": "Qwen3OmniMoeVisionEncoder",
    "qwen3_5_vision": "Qwen3_5VisionModel",
    "qwen3_5_moe_vision": "Qwen3_5MoeVisionModel",
    "qwen4_exp_vision": "Qwen4ExpVisionModel",
    "cohere_compass_vision": "CohereCompassVisionModel",
    "glm4v_vision": "Glm4vVisionModel",
    "glm4v_moe_vision": "Glm4vMoeVisionModel",
}


def made(
    model_type: str, model_class: str, grids: Sequence[tuple[int, int, int]] = GRIDS, **sizes: Any
) -> tuple[Any, PositionSpec, dict[str, Any]]:
    fields = CONFIG_MAPPING[model_type].__dataclass_fields__
    config = config_of(model_type, **{name: value if name in fields else None for name, value in (TOWER | sizes).items()})
    model = build(config, model_class)
    tokens = sum(frames * height * width for frames, height, width in grids)
    frames = getattr(config, "temporal_patch_size", 1)
    return model, spec_of(config), {"hidden_states": pixels(config, tokens, frames), "grid_thw": torch.tensor(grids)}


@proof(*PLAIN)
def qwen2_vl_vision(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE over row and column, half pairs, patches in blocks")
    sizes: dict[str, Any] = {"embed_dim": 64, "hidden_size": 32} if model_type == "qwen2_vl_vision" else {}
    model, spec, inputs = made(model_type, PLAIN[model_type], **sizes)
    rotation(result, model, spec, block_order(2), **inputs)
    model, spec, inputs = made(
        model_type, PLAIN[model_type], rope_parameters={"rope_type": "axial", "rope_theta": 500.0}, **sizes
    )
    rotation(result, model, spec, block_order(2), **inputs)
    return result


@proof(*WINDOWS)
def qwen2_5_vl_vision(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE over row and column, half pairs, in windows except some layers")
    sizes = {"fullatt_block_indexes": [1], "window_size": 8, "patch_size": 2, "out_hidden_size": 32}
    model, spec, inputs = made(model_type, WINDOWS[model_type], **sizes)
    assert [layer.kind for layer in spec.layers] == ["window_attention", "full_attention", "window_attention"]
    tokens = len(block_order(2))
    one = {"window_index": torch.arange(tokens // 4), "cu_window_seqlens": torch.tensor([0, tokens], dtype=torch.int32)}
    rotation(result, model, spec, block_order(2), **inputs, **one)  # one window, so that tokens stay where they are
    segments = [len([c for c in calls(model, **inputs) if c.module is block.attn]) for block in model.blocks]
    frames = sum(frames for frames, _, _ in GRIDS)
    assert segments[1] == frames < segments[0] == segments[2], segments  # windows in layers 0 and 2, frames in layer 1
    order, _ = get_vision_window_index(torch.tensor(GRIDS), 2, 8, 2)
    places = block_order(2).reshape(-1, 4, 2)[order].reshape(-1, 2)
    rest = whole(calls(model, **inputs, position_ids=torch.zeros(tokens, 2, dtype=torch.long)))
    same_rotation(result, spec, rest, whole(calls(model, **inputs)), places.T[:, None])  # in their order, at their places
    return result


@proof(*GRID)
def qwen3_vl_vision(model_type: str) -> Proof:
    bicubic = model_type.startswith("glm4v")
    how = "bicubic" if bicubic else "bilinear, corner on corner"
    result = Proof(model_type, f"RoPE over row and column, and a learned grid ({how})")
    sizes: dict[str, Any] = {
        "num_position_embeddings": 25,
        "patch_size": 2,
        "out_hidden_size": 32,
        "deepstack_visual_indexes": [1],
    }
    grids = GRIDS
    if bicubic:  # GLM-4V is given every frame as an image of its own
        sizes |= {"image_size": 10}
        grids = tuple((1, height, width) for frames, height, width in GRIDS for _ in range(frames))
    model, spec, inputs = made(model_type, GRID[model_type], grids, **sizes)
    rotation(result, model, spec, block_order(2), **inputs)
    before = model.post_conv_layernorm if bicubic else model.patch_embed
    table = model.embeddings.position_embedding if bicubic else model.pos_embed
    torch.nn.init.normal_(table.weight)
    # Theirs has places of cells in fp32, some 5 cells · 2^-24 off, against vectors that differ by several of their entries.
    coords = torch.cat([block_order(2), sizes_of()], dim=1)
    embedding(result, model, spec, coords, before, model.blocks[0], 16.0, **inputs)
    return result


def raster(grids: Sequence[tuple[int, int, int]] = GRIDS) -> Tensor:
    return block_order(1, grids)


@proof("video_llama_3_vision")
def video_llama_3_vision(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE over row and column, half pairs, patches in blocks of the size of each input")
    model, spec, inputs = made(model_type, "VideoLlama3VisionModel", patch_size=2)
    inputs = {
        "pixel_values": inputs["hidden_states"],
        "grid_thw": inputs["grid_thw"],
        "merge_sizes": torch.tensor([2, 1, 2]),
    }
    own = torch.cat([block_order(merge, [size]) for merge, size in zip((2, 1, 2), GRIDS, strict=True)])
    rotation(result, model, spec, own, **inputs)
    return result


@proof("paddleocr_vl_vision")
def paddleocr_vl_vision(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE over row and column, and a learned grid (bilinear), row by row")
    model, spec, inputs = made(model_type, "PaddleOCRVisionModel", patch_size=2, image_size=10)
    patches = {"pixel_values": inputs["hidden_states"].reshape(1, -1, 3, 2, 2), "grid_thw": inputs["grid_thw"]}
    rotation(result, model, spec, raster(), **patches)
    inside = model.vision_model
    torch.nn.init.normal_(inside.embeddings.position_embedding.weight)
    coords = torch.cat([raster(), sizes_of()], dim=1)
    embedding(result, model, spec, coords, inside.embeddings.patch_embedding, inside.encoder, 16.0, **patches)
    return result


@proof("pixtral")
def pixtral(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE over row and column, which share one spectrum, half pairs")
    config = config_of(model_type, hidden_size=64, num_attention_heads=2, patch_size=2, num_hidden_layers=3, image_size=8)
    model, spec = build(config, "PixtralVisionModel"), spec_of(config)
    images, own = torch.randn(2, 3, 12, 8) * 1e-3, block_order(1, [(1, 4, 4), (1, 6, 3)])
    turning = model.patch_positional_embedding
    given: list[Tensor] = []
    hook = turning.register_forward_pre_hook(lambda module, args: (args[0], given[0]) if given else None)
    moves = {}
    for name, ids in (("zero", torch.zeros_like(own)), ("far", far(len(own))), ("own", None)):
        given[:] = [] if ids is None else [ids]
        moves[name] = whole(calls(model, pixel_values=images, image_sizes=[(8, 8), (12, 6)]))
    hook.remove()
    assert len(moves["zero"]) == len(spec.layers)
    for name, ids in (("far", far(len(own))), ("own", own)):
        same_rotation(result, spec, moves["zero"], moves[name], ids.T[:, None], softmax=True)
    mine = rotary_of(spec.encoding(0, exact="model")).frequencies.values
    result.equal("16 frequencies, rows' then columns'", torch.tensor(mine), turning.inv_freq)
    return result
