"""posenc.configs.families.kimi_linear, compared with the models' own code in transformers."""

from __future__ import annotations

from families.harness import Proof, made_of, proof
from families.proofs_deepseek_v3 import MAGNITUDE, turned


@proof("bailing_hybrid")
def bailing_hybrid(model_type: str) -> Proof:
    result = Proof(model_type, "latent attention in every sixth layer, last channels, interleaved pairs in, half pairs out")
    turned(result, num_hidden_layers=5, layer_group_size=2, head_dim=16)
    turned(result, num_hidden_layers=3, layer_group_size=3, head_dim=16, rope_parameters=MAGNITUDE)
    return result


@proof("kimi_linear")
def kimi_linear(model_type: str) -> Proof:
    result = Proof(model_type, "no positions: order comes from the linear attention layers")
    turned(result, num_hidden_layers=5, linear_head_dim=16, linear_num_heads=4)
    turned(
        result,
        num_hidden_layers=4,
        linear_head_dim=16,
        linear_num_heads=4,
        layer_types=None,
        linear_attn_config={
            "full_attn_layers": [2, 4],
            "kda_layers": [1, 3],
            "head_dim": 16,
            "num_heads": 4,
            "short_conv_kernel_size": 4,
        },
    )
    return result


@proof("glm5_next_text")
def glm5_next_text(model_type: str) -> Proof:
    result = Proof(model_type, "no positions: order comes from the linear attention layers")
    turned(
        result,
        num_hidden_layers=8,
        qk_rope_head_dim=0,
        linear_head_dim=16,
        linear_num_heads=4,
        index_head_dim=12,
        index_n_heads=3,
        index_topk=4,
        index_kpool=2,
    )
    return result


@proof("glm5_next")
def glm5_next(model_type: str) -> Proof:
    return made_of(
        model_type,
        "separate text and image parts; an image token counts like a text token",
        {"text_config": "language_model", "vision_config": "visual"},
    )
