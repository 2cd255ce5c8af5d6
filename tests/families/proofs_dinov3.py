"""posenc.configs.families.dinov3, compared with the models' own code in transformers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

import posenc
from families.harness import Call, Proof, build, calls, config_of, proof, spec_of
from posenc.configs import PositionSpec, float32

SMALL: dict[str, Any] = {
    "hidden_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "patch_size": 4,
    "num_key_value_heads": None,
}


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
        encoding = spec.encoding(number, exact="model")
        for side in ("query", "key", "value"):
            mine, theirs = encoding.rotate(getattr(first, side[0]), at, side), getattr(call, side[0])
            # Angles up to 2π: theirs rounds coordinate, 2π · coordinate and the product, ours frequency and product.
            result.close("queries, keys and values of every layer", mine, theirs, 10.0)
    d_head = moved[0].q.shape[-1]
    own, base = turning.inv_freq, spec.encoding(0).frequencies
    rope = dict(spec.layers[0].uses[0].arguments)["frequencies"]
    result.equal(
        f"{len(own)} frequencies of each axis", torch.tensor(float32.unit_square(d_head, rope.base).values[: len(own)]), own
    )
    for mine, theirs in zip(base.values[: len(own)], own.double().tolist(), strict=True):
        assert math.isclose(mine, 2 * math.pi * theirs, rel_tol=3e-6)


@proof("dinov3_vit", "sapiens2")
def dinov3_vit(model_type: str) -> Proof:
    result = Proof(
        model_type, "RoPE over row and column from -1 to 1, half pairs; class and register tokens are not rotated"
    )
    more: dict[str, Any] = (
        {"num_first_full_attention_layers": 1, "num_last_full_attention_layers": 1, "num_key_value_attention_heads": 1}
        if model_type == "sapiens2"
        else {}
    )
    for sizes in ({"num_register_tokens": 3, "rope_theta": 50.0}, {"num_register_tokens": 0}):
        config = config_of(model_type, image_size=16, **SMALL, **sizes, **more)
        model, spec = build(config), spec_of(config)
        for height, width in ((4, 4), (3, 6)):
            on_the_square(result, model, spec, [1 + config.num_register_tokens] * 3, height, width)
    return result


@proof("eomt_dinov3")
def eomt_dinov3(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE over row and column from -1 to 1; queries are added before the last layers")
    for sizes in ({}, {"rope_parameters": {"rope_type": "default", "rope_theta": 30.0}}):
        queries = {"num_queries": 5, "num_blocks": 1, "num_upscale_blocks": 1, "num_register_tokens": 2}
        config = config_of(model_type, image_size=16, **queries, **SMALL, **sizes)
        model, spec = build(config, "EomtDinov3ForUniversalSegmentation"), spec_of(config)
        on_the_square(result, model, spec, [3, 3, 8], 4, 4)
    return result
