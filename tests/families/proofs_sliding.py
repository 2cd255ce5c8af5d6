"""One rotation for all layers; the windows differ from layer to layer, and some families turn only behind a window."""

from __future__ import annotations

from families.harness import Proof, build, config_of, frequencies, proof, spec_of
from families.turning import LINEAR, LLAMA3, YARN, also, compared, turned


@proof("doge", "mistral", "mixtral", "starcoder2")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, halves paired, all layers alike, one window for all where there is one")
    own = {"head_dim": 16} if model_type == "mixtral" else {}  # yarn fails there with head_dim null
    model = turned(result, sliding_window=4, num_hidden_layers=2, rope_parameters=YARN, **own)
    turned(result, sliding_window=None, num_hidden_layers=1)
    for parameters in (LINEAR, LLAMA3):
        also(result, model, rope_parameters=parameters)
    return result


@proof("qwen2", "qwen2_moe", "qwen3", "qwen3_moe")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, halves paired, all layers alike; windows where use_sliding_window says so")
    own = {"head_dim": 24} if "qwen3" in model_type else {}
    window = {"sliding_window": 4} | ({} if model_type == "qwen3_moe" else {"max_window_layers": 3})
    model = turned(result, use_sliding_window=True, num_hidden_layers=5, rope_parameters=YARN, **window, **own)
    turned(result, use_sliding_window=False, num_hidden_layers=2, **window, **own)
    for parameters in (LINEAR, LLAMA3):
        also(result, model, rope_parameters=parameters, **own)
    return result


@proof("afmoe", "cwm", "dots1", "flint", "gemma2", "gpt_oss", "ministral", "vaultgemma")
def _(model_type: str) -> Proof:
    only = model_type in ("afmoe", "flint")
    result = Proof(
        model_type,
        "RoPE, halves paired; "
        + ("layers without a window do not turn" if only else "layers with and without a window turn alike"),
    )
    sizes = {"num_hidden_layers": 8, "sliding_window": 4, "head_dim": 16}
    if model_type == "dots1":
        sizes |= {"max_window_layers": 3, "n_shared_experts": 1}
    model = turned(result, rope_parameters=YARN, **sizes)
    turned(result, **{**sizes, "num_hidden_layers": 3, "sliding_window": 3},
           layer_types=["full_attention", "full_attention", "sliding_attention"])  # fmt: skip
    for parameters in (None, LINEAR, LLAMA3, YARN | {"truncate": False}):
        also(result, model, rope_parameters=parameters, **sizes)
    return result


@proof("granite_swa", "granitemoe_swa")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, halves paired; each layer has its window and its base, at base 0 it does not turn")
    sizes = {"num_hidden_layers": 6, "sliding_window": 4}
    model = turned(result, rope_parameters=YARN, **sizes)
    for parameters in (LINEAR, LLAMA3):
        also(result, model, rope_parameters=parameters, **sizes)
    bases = [0, 30000.0, 500.0, 30000.0, 0, 1e6]
    config = config_of(model_type, rope_parameters=LINEAR, layer_rope_theta=bases, **sizes)
    model, spec = build(config), spec_of(config)
    compared(result, model, spec)
    for number in (1, 2, 5):
        frequencies(result, model.rotary_embs[sorted(set(bases) - {0}).index(bases[number])], spec, number)
    return result
