"""posenc.configs.families.gemma3, compared with the models' own code in transformers."""

from __future__ import annotations

from typing import Any

from families.harness import Call, Proof, build, config_of, proof, spec_of
from families.proofs_mellum import PLAIN, SETTINGS
from families.proofs_t5gemma import ENCODED, SIZES
from families.turning import FULL, LINEAR, SLIDING, YARN, also, by_kind, compared, turned


def own_part(call: Call) -> Call | None:
    """Of one attention to both, the keys that are the decoder's own; the encoder's, behind them, have not turned."""
    n = call.q.shape[2]
    call.k, call.v = call.k[:, :, :n], call.v[:, :, :n]
    call.mask = None if call.mask is None else call.mask[..., :n]
    return call


@proof("gemma3_text", "gemma3n_text", "olmo3", "laguna", "mellum", "mimo_v2_flash")
def gemma3_text(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs; sliding and full layers with their own bases and scalings")
    sizes = {"num_hidden_layers": 7, "sliding_window": 4, "head_dim": 16}
    if model_type == "olmo3":
        sizes.pop("head_dim")
    if model_type == "gemma3n_text":
        sizes |= {"num_hidden_layers": 10, "num_kv_shared_layers": 5, "hidden_size_per_layer_input": 8, "laurel_rank": 8}
    if model_type == "mimo_v2_flash":
        sizes |= {"v_head_dim": 16}
    mixed = {"layer_types": [FULL, SLIDING, SLIDING, FULL, FULL], "num_hidden_layers": 5}
    turned(result, **sizes)
    model = turned(result, rope_parameters=SETTINGS[0], **({**sizes, **mixed} if "3n" not in model_type else sizes))
    also(result, model, rope_parameters=SETTINGS[1], **sizes)
    if model_type in ("laguna", "mimo_v2_flash"):
        half = {SLIDING: PLAIN | {"partial_rotary_factor": 0.75}, FULL: YARN | {"partial_rotary_factor": 0.5}}
        turned(result, rope_parameters=half, **{**sizes, **mixed})
    if model_type == "gemma3_text":
        turned(result, use_bidirectional_attention=True, **sizes)
        turned(result, sliding_window_pattern=3, **sizes)
    if model_type == "mimo_v2_flash":
        turned(result, sliding_window_size=4, **sizes)
    return result


@proof("t5gemma2_text", "t5gemma2_decoder")
def t5gemma2_text(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs; sliding and full layers with their own bases")
    both = {SLIDING: LINEAR, FULL: YARN}
    for sizes in ({}, {"sliding_window": 4}, {"rope_parameters": both}):
        config = config_of(model_type, **{**SIZES, "num_hidden_layers": 7, **sizes})
        decodes = model_type == "t5gemma2_decoder"
        model, spec = build(config, "T5Gemma2Decoder" if decodes else "T5Gemma2TextEncoder"), spec_of(config)
        given: dict[str, Any] = {"encoder_hidden_states": ENCODED} if decodes else {}
        compared(result, model, spec, keep=own_part, **given)
        by_kind(result, model.rotary_emb, spec)
    return result
