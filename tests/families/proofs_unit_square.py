"""Vision towers with coordinates or angles of their own: DINOv3, MLCD, V-JEPA 2."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

import posenc
from families.harness import Call, Proof, build, calls, config_of, proof, same_rotation, spec_of, unrotated
from families.proofs_vision_rotary import frequencies
from posenc.dialects import PositionSpec, float32
from posenc.dialects.weights import with_weights

SMALL: dict[str, Any] = {"hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 32,
                         "patch_size": 4, "num_key_value_heads": None}  # fmt: skip


def at_rest(model: Any, turning: Any, **inputs: Any) -> list[Call]:
    """Attention calls of a pass whose cosines are 1 and sines 0."""
    hook = turning.register_forward_hook(lambda layer, given, out: (torch.ones_like(out[0]), torch.zeros_like(out[1])))
    found = calls(model, **inputs)
    hook.remove()
    return found


def squares(height: int, width: int) -> Tensor:
    """The middle of every patch, from -1 to 1, row by row: [t, 2]."""
    middle = [[2 * (i + 0.5) / n - 1 for i in range(n)] for n in (height, width)]
    return torch.tensor([(y, x) for y in middle[0] for x in middle[1]], dtype=torch.float64)


def on_the_square(result: Proof, model: Any, spec: PositionSpec, before: Sequence[int], height: int, width: int) -> None:
    """Every layer with its tokens before the patches, which do not turn."""
    turning, picture = model.rope_embeddings, torch.randn(1, 3, 4 * height, 4 * width)
    rest, moved = at_rest(model, turning, pixel_values=picture), calls(model, pixel_values=picture)
    assert len(moved) == len(spec.layers) == len(before)
    for number, (first, call, prefix) in enumerate(zip(rest, moved, before, strict=True)):
        assert call.q.shape[2] == prefix + height * width
        at = posenc.Positions.at(torch.cat([torch.zeros(prefix, 2, dtype=torch.float64), squares(height, width)])[None])
        encoding = spec.encoding(number, arithmetic="float32")
        for side in ("query", "key", "value"):
            mine, theirs = encoding.rotate(getattr(first, side[0]), at, side), getattr(call, side[0])
            # Angles up to 2π: theirs rounds coordinate, 2π · coordinate and the product, ours frequency and product.
            result.close("queries, keys and values of every layer", mine, theirs, 10.0)
    d_head = moved[0].q.shape[-1]
    own, base = turning.inv_freq, spec.encoding(0).frequencies
    rope = dict(spec.layers[0].uses[0].arguments)["frequencies"]
    result.equal(f"{len(own)} frequencies of each axis",
                 torch.tensor(float32.unit_square(d_head, rope.base).values[: len(own)]), own)  # fmt: skip
    for mine, theirs in zip(base.values[: len(own)], own.double().tolist(), strict=True):
        assert math.isclose(mine, 2 * math.pi * theirs, rel_tol=3e-6)


@proof("dinov3_vit", "sapiens2")
def _(model_type: str) -> Proof:
    result = Proof(
        model_type, "RoPE by row and column from -1 to 1, in turns, halves paired; the class and registers do not turn"
    )
    more: dict[str, Any] = {"num_first_full_attention_layers": 1, "num_last_full_attention_layers": 1,
                            "num_key_value_attention_heads": 1} if model_type == "sapiens2" else {}  # fmt: skip
    for sizes in ({"num_register_tokens": 3, "rope_theta": 50.0}, {"num_register_tokens": 0}):
        config = config_of(model_type, image_size=16, **SMALL, **sizes, **more)
        model, spec = build(config), spec_of(config)
        for height, width in ((4, 4), (3, 6)):
            on_the_square(result, model, spec, [1 + config.num_register_tokens] * 3, height, width)
    return result


@proof("eomt_dinov3")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE by row and column from -1 to 1, in turns; queries come in before the last layers")
    for sizes in ({}, {"rope_parameters": {"rope_type": "default", "rope_theta": 30.0}}):
        queries = {"num_queries": 5, "num_blocks": 1, "num_upscale_blocks": 1, "num_register_tokens": 2}
        config = config_of(model_type, image_size=16, **queries, **SMALL, **sizes)
        model, spec = build(config, "EomtDinov3ForUniversalSegmentation"), spec_of(config)
        on_the_square(result, model, spec, [3, 3, 8], 4, 4)
    return result


@proof("mlcd", "mlcd_vision_model")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE by row and column, halves paired; the class token turns by trained angles")
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


@proof("vjepa2")
def _(model_type: str) -> Proof:
    result = Proof(
        model_type, "neighbours paired, angles laid out in halves: no rotation; a third of the head for each axis"
    )
    sizes = {"hidden_size": 52, "num_attention_heads": 2, "num_hidden_layers": 2, "pred_hidden_size": 40}
    config = config_of(model_type, patch_size=4, crop_size=12, frames_per_clip=4, pred_num_attention_heads=2,
                       pred_num_hidden_layers=3, **sizes)  # fmt: skip
    model, spec = build(config, "VJEPA2Model"), spec_of(config)
    for part, stack in (("encoder", model.encoder), ("predictor", model.predictor)):
        assert len(spec[part].layers) == len(stack.layer)
        ids = torch.tensor([[0, 1, 2, 3, 8, 9, 17, 26], [5, 4, 100, 1000, 9, 70000, 131071, 8]])
        for layer in stack.layer:
            attention = layer.attention
            x = torch.randn(*ids.shape, attention.hidden_size)
            rest, moved = (calls(attention, x, position_mask=p)[0] for p in (ids * 0, ids))
            at = posenc.Positions.at(torch.stack([ids // 9, ids % 9 // 3, ids % 3], dim=-1))
            encoding = spec[part].encoding(0, arithmetic="float32")
            zero = posenc.Positions.at(at.coords * 0)
            for side in ("query", "key", "value"):
                start = unrotated(getattr(rest, side[0]), encoding, zero, side)
                result.close(f"queries, keys and values, {part}", encoding.rotate(start, at, side), getattr(moved, side[0]))
    clip = torch.randn(1, 4, 3, 12, 12)
    found = calls(model.encoder, clip)
    grid = torch.tensor([(frame, row, column) for frame in range(2) for row in range(3) for column in range(3)])
    masks = torch.zeros(1, 18, dtype=torch.long)
    rest = [calls(layer.attention, torch.zeros(1, 18, 52), position_mask=masks)[0] for layer in model.encoder.layer]
    assert [call.q.shape for call in found] == [call.q.shape for call in rest]
    same_rotation(result, spec["encoder"], rest, found, grid.T[:, None], softmax=True)
    return result
