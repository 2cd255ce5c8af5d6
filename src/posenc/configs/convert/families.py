"""Layouts of model families by the `model_type` of config.json, from the code of transformers 5.23.0.

A layout recorded in the checkpoint overrides these tables, and so does --from.
"""

from __future__ import annotations

from typing import Any

from posenc.configs.beside import SWITCH as SWITCH
from posenc.configs.convert.rows import Fused
from posenc.frequencies.layouts import Layout


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


INTERLEAVED = _names("""
    bailing_hybrid blt codegen cohere cohere2 cohere2_moe deepseek_v2 ernie4_5 ernie4_5_moe glm glm4 glm_moe_dsa gptj
    helium llama4 longcat_flash moonshine moonshine_streaming roformer
""")
HALF = _names("""
    afmoe apertus arcee bitnet cwm dbrx diffllama doge dots1 emu3 esm eurobert exaone4 falcon falcon_h1 flex_olmo
    gemma gemma2 gemma3 glm4_moe gpt_neox gpt_neox_japanese gpt_oss granite granitemoe granitemoeshared
    hunyuan_v1_dense hunyuan_v1_moe jais2 jetmoe lfm2 llama mimo_v2_flash minicpm3 minimax minimax_m2 ministral
    ministral3 mistral mixtral modernbert modernbert_decoder nanochat nemotron olmo olmo2 olmo3 olmoe persimmon phi
    phi3 phi4_multimodal phimoe qwen2 qwen2_moe qwen2_vl qwen2_5_vl qwen3 qwen3_moe qwen3_next qwen3_vl qwen3_vl_moe
    qwen3_5 qwen3_5_moe seed_oss smollm3 solar_open stablelm starcoder2 vaultgemma
""")
# Their code reads either layout: config.json says which. True if left out.
SWITCHED = _names("axk1 deepseek_v3 glm4_moe_lite mistral4 youtu")

# Each query head is followed by a gate of its width.
GATED = _names("qwen3_next qwen3_5 qwen3_5_moe qwen4_exp")

# These turn a part of a head even where config.json does not say so.
PARTIAL_BY_DEFAULT = _names("""
    bamba dots3_note fuyu glm glm4 glm4_moe glm4v_moe glmasr gpt_neox laguna lfm3 mimo_v2_flash moonshine
    moonshine_streaming musicflamingo nemotron nemotron3_5_transcribe nemotron3_diarization neomme persimmon phi
    qwen3_5 qwen3_5_moe qwen3_next recurrent_gemma stablelm zaya
""")
FUSED: dict[str, Fused] = {
    **dict.fromkeys(("gpt_neox", "gpt_neox_japanese", "persimmon", "falcon", "internlm2"), "grouped"),
    **dict.fromkeys(("phi3", "phi4_multimodal", "modernbert", "dbrx", "chatglm", "baichuan", "qwen"), "concatenated"),
    "codegen": "blocks",
}
UNFIT = {
    "deepseek_v4": "its values rotate too, and its outputs are rotated back",
    "vjepa2": "its code pairs channels in two ways at once",
    "hunyuan_vl": "each channel of a pair reads its own coordinate, so channels cannot be permuted",
    "gemma4_vision": "it pairs halves within each half of a head",
}


def family(config: dict[str, Any]) -> str:
    """The model_type, without the suffix of a text part."""
    return str(config.get("model_type", "")).removesuffix("_text")


def known_layout(config: dict[str, Any]) -> Layout | None:
    """The layout of the family's code, if known."""
    name = family(config)
    if name in SWITCHED:
        return "interleaved" if config.get(SWITCH, True) else "half"
    return "interleaved" if name in INTERLEAVED else "half" if name in HALF else None
