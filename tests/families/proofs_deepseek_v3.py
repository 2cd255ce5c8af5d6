"""posenc.configs.families.deepseek_v3, compared with the models' own code in transformers."""

from __future__ import annotations

import contextlib
import types
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from families.harness import (
    IDS,
    Proof,
    at_of,
    attending,
    build,
    calls,
    config_of,
    frequencies,
    modeling,
    module_named,
    proof,
    same_rotation,
    spec_of,
    tokens,
)
from families.proofs_cohere import allowed
from families.turning import LLAMA3, YARN

SIZES: dict[str, Any] = {
    "qk_nope_head_dim": 12,
    "qk_rope_head_dim": 8,
    "v_head_dim": 10,
    "kv_lora_rank": 16,
    "q_lora_rank": 24,
    "num_key_value_heads": 4,
    "num_hidden_layers": 3,
}

BOTH = YARN | {"factor": 40.0, "mscale": 0.7, "mscale_all_dim": 0.7}

ONE = YARN | {"factor": 40.0, "mscale_all_dim": 1.0}

MAGNITUDE = YARN | {"factor": 40.0, "mscale": 0.5, "mscale_all_dim": 1.0}


def turned(result: Proof, most: float | None = None, **sizes: Any) -> torch.nn.Module:
    """The family's forward against the spec, layer by layer, linear layers left out; softmax scale and frequencies too."""
    config = config_of(result.model_type, **SIZES | sizes)
    model, spec = build(config), spec_of(config)
    inputs = {"input_ids": tokens(IDS.shape)}
    at_zero, moved = (calls(model, **inputs, position_ids=ids) for ids in (torch.zeros_like(IDS), IDS))
    numbers = _attending(config, len(spec.layers))
    assert [call.layer for call in moved] == numbers, f"{[call.layer for call in moved]}, expected {numbers}"
    spec = attending(spec, moved)
    assert len(spec.layers) == len(moved)
    same_rotation(result, spec, at_zero, moved, IDS, most or allowed(spec), softmax=True)
    if spec.layers[0].uses:
        frequencies(result, module_named(model, "rotary_emb"), spec)
    return model


def _attending(config: Any, count: int) -> list[int]:
    """Which of the family's layers attend, by its own list of kinds."""
    kinds = getattr(config, "layer_types", None) or ["full_attention"] * count
    return [number for number, kind in enumerate(kinds) if kind != "linear_attention"]


@proof("deepseek_v3", "youtu", "glm4_moe_lite", "axk1")
def deepseek_v3(model_type: str) -> Proof:
    result = Proof(model_type, "latent attention: last channels, interleaved pairs in, half pairs out")
    turned(result)
    turned(result, rope_interleave=False, rope_parameters=BOTH)
    for scaled in (BOTH, ONE, MAGNITUDE, LLAMA3 | {"mscale_all_dim": 0.7}):
        turned(result, num_hidden_layers=1, rope_parameters=scaled)
    return result


@proof("deepseek_v2")
def deepseek_v2(model_type: str) -> Proof:
    result = Proof(model_type, "latent attention: last channels, interleaved pairs")
    turned(result, most=2.0)  # torch.polar and the product of complex numbers round differently
    turned(result, most=3.0, rope_parameters=MAGNITUDE)
    return result


@proof("minicpm3")
def minicpm3(model_type: str) -> Proof:
    result = Proof(model_type, "latent attention: last channels, half pairs")
    turned(result)
    turned(result, rope_parameters=BOTH)
    return result


@proof("longcat_flash")
def longcat_flash(model_type: str) -> Proof:
    result = Proof(model_type, "latent attention twice per layer: last channels, interleaved pairs in, half pairs out")
    for scaled in (None, MAGNITUDE):
        turned(result, num_layers=2, num_hidden_layers=None, head_dim=8, qk_head_dim=None, rope_parameters=scaled)
    return result


@contextlib.contextmanager
def relu_seen(module: Any) -> Iterator[list[Tensor]]:
    """What a modeling module hands to F.relu: the indexer's products of queries and keys."""
    seen: list[Tensor] = []
    original = module.F
    shim = types.SimpleNamespace(**vars(original))

    def relu(x: Tensor, *arguments: Any, **keywords: Any) -> Tensor:
        seen.append(x.detach().clone())
        return original.relu(x, *arguments, **keywords)

    shim.relu = relu
    module.F = shim
    try:
        yield seen
    finally:
        module.F = original


def indexed(
    result: Proof,
    scaled_inside: bool = True,
    *,
    most: float = 8.0,
    ready: Any = lambda model: model,
    encodings: Any = lambda inside, layer, model: inside.encoding(layer, exact="model"),
    **sizes: Any,
) -> None:
    """The products of the indexer's queries and keys, made from what its projections gave, against the family's own."""
    config = config_of(result.model_type, **SIZES | {"index_head_dim": 12, "index_n_heads": 3, "index_topk": 4} | sizes)
    model, spec = ready(build(config)), spec_of(config)
    indexers = [(name, module) for name, module in model.named_modules() if name.endswith("indexer")]
    before: list[Tensor] = []
    hooks = [
        part.register_forward_hook(lambda module, inputs, output: before.append(output.detach().clone()))
        for _, module in indexers
        for part in (module.wq_b, module.k_norm)
    ]
    with relu_seen(modeling(result.model_type)) as seen:
        calls(model, input_ids=tokens(IDS.shape), position_ids=IDS)
    for hook in hooks:
        hook.remove()
    layers = [number for number, layer in enumerate(spec["indexer"].layers) if layer.kind == "indexer"]
    assert layers == [int(name.split(".")[-3]) for name, _ in indexers], f"{layers}: {[name for name, _ in indexers]}"
    assert (len(seen), len(before)) == (len(indexers), 2 * len(indexers))
    for number, layer in enumerate(layers):
        encoding = encodings(spec["indexer"], layer, model)
        q, k = before[2 * number], before[2 * number + 1]
        q = q.unflatten(-1, (3, -1)).transpose(1, 2)
        axes = encoding.axes
        at = at_of(IDS if axes == 1 else IDS.expand(axes, *IDS.shape))  # of text, the same on every axis
        q, k = encoding.rotate(q, at, "query"), encoding.rotate(k[:, None], at, "key")
        scores = q.double() @ k.double().transpose(-1, -2)
        scores = scores / 12**0.5 if scaled_inside else scores
        result.close("products of the indexer's queries and keys", scores.transpose(1, 2), seen[number], most)
