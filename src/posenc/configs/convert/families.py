"""What a conversion asks of a model family: its layout, and how its projections are stored (code of transformers 5.23.0).

A layout recorded in the checkpoint overrides that of the family, and so does --from.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from posenc.configs import ConfigError, spec_of
from posenc.configs.beside import RECORD
from posenc.configs.beside import SWITCH as SWITCH
from posenc.configs.convert.rows import Fused
from posenc.configs.spec import Layer
from posenc.frequencies.layouts import Layout


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


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
SIZES = {"hidden_size": 1024, "num_attention_heads": 16, "num_hidden_layers": 1}  # where a file has none
UNFIT = {
    "deepseek_v4": "its values rotate too, and its outputs are rotated back",
    "vjepa2": "its code pairs channels in two ways at once",
    "hunyuan_vl": "each channel of a pair reads its own coordinate, so channels cannot be permuted",
    "gemma4_vision": "it pairs halves within each half of a head",
}


def family(config: Mapping[str, Any]) -> str:
    """The model_type, without the suffix of a text part."""
    return str(config.get("model_type", "")).removesuffix("_text")


def known_layout(config: Mapping[str, Any]) -> Layout | None:
    """The layout of the family's code, as its reader says; None if nothing rotates, layers differ or it is not known."""
    if family(config) in UNFIT:
        return None
    plain = {key: value for key, value in config.items() if key != RECORD}
    try:
        spec = spec_of(plain)
    except ConfigError:  # sizes alone are missing, if anything
        try:
            spec = spec_of(SIZES | plain)
        except ConfigError:
            return None
    parts = [layers for _, part in spec.walk() if (layers := [layer for layer in part.layers if _layouts(layer)])]
    causal = [layers for layers in parts if all(layer.causal for layer in layers)]
    found = {layout for layer in next(iter(causal or parts), []) for layout in _layouts(layer)}
    return found.pop() if len(found) == 1 else None


def _layouts(layer: Layer) -> set[Layout]:
    return {dict(use.arguments)["layout"] for use in layer.uses if use.rotation and "layout" in dict(use.arguments)}
