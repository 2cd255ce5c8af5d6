"""posenc.configs.families.inkling, compared with the models' own code in transformers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

import posenc
from families.harness import Proof, at_of, build, calls, config_of, proof, spec_of, tokens
from families.proofs_llama4_vision import IMAGES, TOWER, rotation
from families.proofs_qwen2_vl_vision import block_order, sizes_of
from families.turning import visible
from posenc.configs.weights import with_weights

SIZES: dict[str, Any] = {
    "num_hidden_layers": 7,
    "head_dim": 24,
    "swa_head_dim": 16,
    "num_attention_heads": 4,
    "swa_num_attention_heads": 2,
    "num_key_value_heads": 2,
    "swa_num_key_value_heads": 1,
    "sliding_window_size": 5,
    "rel_extent": 8,
    "d_rel": 4,
    "log_scaling_n_floor": 6,
    "log_scaling_alpha": 0.7,
}


@proof("inkling_text", "inkling2_text")
def inkling_text(model_type: str) -> Proof:
    result = Proof(model_type, "a bias from distance profiles that each token mixes; temperature in full layers")
    sizes = dict(SIZES)
    if model_type == "inkling2_text":
        sizes |= {"rel_l2_clip_threshold": 0.5, "n_layers_per_attn_res_block": 7, "number_of_conv_states": None}
    config = config_of(model_type, **{name: value for name, value in sizes.items() if value is not None})
    model = build(config, {"inkling_text": "InklingTextModel", "inkling2_text": "Inkling2TextModel"}[model_type])
    spec = spec_of(config)
    same_bias(result, model, spec)
    if model_type == "inkling_text":
        plain = config_of(
            model_type, **{**sizes, "log_scaling_n_floor": None, "local_layer_ids": [1], "num_hidden_layers": 2}
        )
        same_bias(result, build(plain, "InklingTextModel"), spec_of(plain))
    return result


def untempered(attention: Any, x: Tensor) -> Tensor:
    """Queries before temperature, from their own projection and norm."""
    q = attention.q_proj(x).view(*x.shape[:2], -1, attention.head_dim)
    norm = attention.q_norm if hasattr(attention, "q_norm") else attention.q_l2_clip
    return norm(q).transpose(1, 2)


def same_bias(
    result: Proof,
    model: Any,
    spec: Any,
    names: tuple[str, ...] = ("rel_logits_proj.proj", "r_proj.weight", "rel_l2_clip.scale"),
    queries: Callable[[Any, Tensor], Tensor] = untempered,
) -> None:
    """Of every layer: its bias, and its queries against those of the same layer without temperature."""
    for name, parameter in model.named_parameters():
        if name.endswith(names):
            torch.nn.init.normal_(parameter, std=0.5)
    entered: list[Tensor] = []
    for layer in model.layers:
        layer.self_attn.register_forward_pre_hook(_keep(entered), with_kwargs=True)
    n = 12
    ids = torch.arange(n).expand(2, -1)
    every = calls(model, fixed=False, input_ids=tokens((2, n)), position_ids=ids)
    found = [call for call in every if "position_bias" in call.options]  # not attention over the depth of the model
    assert len(found) == len(spec.layers) == len(entered)
    for number, (call, x, layer) in enumerate(zip(found, entered, spec.layers, strict=True)):
        encoding = with_weights(spec, number, model.state_dict())
        heads = call.q.shape[1]
        at = at_of(ids)
        read = encoding.read_hidden(x, at)
        wide_k = call.k.repeat_interleave(call.q.shape[1] // call.k.shape[1], dim=1)
        term = encoding.bias(call.q, wide_k, read, at)
        b, h, i, j = torch.meshgrid(*(torch.arange(size) for size in (2, heads, n, n)), indexing="ij")
        with torch.no_grad():
            # Theirs mixes in another order: sums of 64, then of 4 products, and once more for τ.
            result.close("bias of every layer", term(b, h, i, j), call.options["position_bias"], 4.0)
        mask = call.mask[0, 0] > -1e30
        assert torch.equal(mask, visible(layer, n)), f"layer {number}"
        assert call.options["sliding_window"] == layer.window
        mine = encoding.softmax_scale(call.q.shape[-1])
        assert abs(mine - call.scaling) < 1e-12, (mine, call.scaling)
        with torch.no_grad():
            q = encoding.rotate(queries(model.layers[number].self_attn, x), at, "query")
        result.close("queries of every layer", q, call.q, 2.0)
    result.equal("softmax scale, windows", True, True)


def _keep(entered: list[Tensor]) -> Any:
    return lambda module, args, keywords: entered.append(args[0] if args else keywords["hidden_states"])


@proof("inkling2_vision")
def inkling2_vision(model_type: str) -> Proof:
    result = Proof(
        model_type, "RoPE over column and row, from 1, interleaved pairs; a learned grid (bilinear) and a class token"
    )
    config = config_of(
        model_type,
        patch_size=2,
        spatial_merge_size=2,
        posemb_grid_size=5,
        text_hidden_size=32,
        projection_hidden_dim=32,
        **TOWER,
    )
    model, spec = build(config, "Inkling2VisionModel"), spec_of(config)
    torch.nn.init.normal_(model.embeddings.position_embedding.weight)
    images = torch.tensor([[1, h // 2, w // 2] for _, h, w in IMAGES])
    pixels = torch.randn(int(images.prod(-1).sum()), 4, 4, 3, generator=torch.Generator().manual_seed(2)) * 1e-3
    inputs = {"pixel_values": pixels, "image_grid_thw": images}
    nought = torch.zeros(1, 2, dtype=torch.long)
    own = torch.cat([part for size in IMAGES for part in (nought, block_order(2, [size]) + 1)])
    rotation(result, model, spec, own, **inputs)

    seen: list[Tensor] = []
    model.pre_layernorm.register_forward_pre_hook(lambda module, args: seen.append(args[0]))
    with torch.no_grad():
        model(**inputs)
        patches = pixels.reshape(-1, 2, 2, 2, 2, 3).transpose(2, 3).reshape(-1, 12)
        words, classes = model.embeddings.patch_embedding(patches), model.embeddings.class_embedding[None]
        classes = classes + model.embeddings.cls_position_embedding
        x = torch.cat([classes, words[:24], classes, words[24:]])
        coords = [
            part
            for size in IMAGES
            for part in (torch.tensor([[-1, -1, 1, 1]]), torch.cat([block_order(2, [size]), sizes_of([size])], dim=1))
        ]
        got = with_weights(spec, 0, model.state_dict()).embed(x[None], posenc.Positions.at(torch.cat(coords)[None]))[0]
        result.close("what enters the first layer", got, seen[0], 16.0)
    return result
