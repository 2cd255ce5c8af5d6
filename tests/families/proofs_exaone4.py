"""posenc.configs.families.exaone4, compared with the models' own code in transformers."""

from __future__ import annotations

from typing import Any

from families.harness import Proof, build, config_of, proof, replace, spec_of
from families.turning import LINEAR, LLAMA3, YARN, also, compared, turned


@proof("exaone4", "exaone_moe", "kolibri1", "smollm3")
def exaone4(model_type: str) -> Proof:
    result = Proof(
        model_type,
        "RoPE, half pairs, in all but every few layers; "
        + ("layers without it may have a window" if model_type == "smollm3" else "layers without it are full"),
    )
    sizes: dict[str, Any] = {"num_hidden_layers": 6, "sliding_window": 4}
    if model_type == "smollm3":
        sizes |= {"use_sliding_window": True}
    elif model_type != "exaone4":
        sizes |= {"head_dim": 24}
    model = turned(result, rope_parameters=YARN, **sizes)
    if model_type == "smollm3":
        turned(result, rope_parameters=LINEAR, num_hidden_layers=2, no_rope_layers=[0, 1])
    if model_type == "exaone4":  # without any window all layers turn
        sizes_too = sizes | {"num_hidden_layers": 2, "layer_types": ["full_attention"] * 2}
        config = replace(config_of(model_type, **sizes_too), sliding_window=None)
        whole, spec = build(config), spec_of(config)
        assert all(layer.uses and layer.window is None for layer in spec.layers)
        compared(result, whole, spec)
    for parameters in (None, LLAMA3):
        also(result, model, rope_parameters=parameters, **sizes)
    return result


@proof("afmoe", "cwm", "dots1", "flint", "gemma2", "gpt_oss", "ministral", "vaultgemma")
def afmoe(model_type: str) -> Proof:
    only = model_type in ("afmoe", "flint")
    result = Proof(
        model_type,
        "RoPE, half pairs; "
        + ("layers without a window have no positions" if only else "layers with and without a window rotate alike"),
    )
    sizes = {"num_hidden_layers": 8, "sliding_window": 4, "head_dim": 16}
    if model_type == "dots1":
        sizes |= {"max_window_layers": 3, "n_shared_experts": 1}
    model = turned(result, rope_parameters=YARN, **sizes)
    turned(
        result,
        **{**sizes, "num_hidden_layers": 3, "sliding_window": 3},
        layer_types=["full_attention", "full_attention", "sliding_attention"],
    )
    for parameters in (None, LINEAR, LLAMA3, YARN | {"truncate": False}):
        also(result, model, rope_parameters=parameters, **sizes)
    return result
