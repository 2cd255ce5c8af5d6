"""Text models that count what a picture gives like words: which families their parts are, and where counting begins."""

from __future__ import annotations

from typing import Any

import torch
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from families.harness import Proof, build, made_of, module_named, proof, spec_of, tokens
from families.proofs_vision_language import GLM, coordinates

LIKE_WORDS = "a text model that counts patches like words, and a vision tower"
LANGUAGE, TEXT = {"text_config": "language_model"}, {"text_config": "text_model"}
TOWER, MODEL = {"vision_config": "vision_tower"}, {"vision_config": "vision_model"}
PLAIN: dict[str, dict[str, str]] = {
    **dict.fromkeys(["aria", "aya_vision", "cohere2_vision", "got_ocr2", "internvl", "lfm2_vl", "lfm3_vl",
                     "llava", "llava_next", "llava_next_video", "llava_onevision", "ovis2", "qianfan_ocr", "vipllava"],
                    LANGUAGE | TOWER),
    **dict.fromkeys(["deepseek_vl", "hyperclovax_vision_v2"], LANGUAGE | MODEL),
    **dict.fromkeys(["idefics3", "smolvlm", "kosmos-2", "kosmos-2.5"], TEXT | MODEL),
    "deepseek_vl_hybrid": LANGUAGE | {"high_res_vision_config": "SamVisionModel", "vision_config": "SiglipVisionModel"},
    "exaone4_5": LANGUAGE | {"vision_config": "visual"},
    "idefics2": TEXT | MODEL | {"perceiver_config": "perceiver_resampler"},
    "janus": LANGUAGE | MODEL | {"vq_config": "vqmodel"},
    "lighton_ocr": LANGUAGE | {"vision_config": "vision_encoder"},
    "video_llava": LANGUAGE | {"vision_config": "video_tower"},
    **dict.fromkeys(["blip-2", "instructblip", "instructblipvideo"],
                    LANGUAGE | MODEL | {"qformer_config": "qformer"}),
    "pi0": {"vlm_config": "vlm", "dit_config": "dit"},
    "fuyu": LANGUAGE,
}  # fmt: skip
SAID: dict[str, dict[str, Any]] = {  # where the class's own defaults make no model
    "aya_vision": {"vision_config": {"model_type": "siglip_vision_model", "num_attention_heads": 16}},
}


@proof(*PLAIN)
def _(model_type: str) -> Proof:
    return made_of(model_type, LIKE_WORDS, PLAIN[model_type], CONFIG_MAPPING[model_type](**SAID.get(model_type, {})))


TIMM = {"fast_vlm", "perception_lm"}  # whose own towers timm builds: one of transformers stands in their place


@proof(*TIMM)
def _(model_type: str) -> Proof:
    vision = {"model_type": "clip_vision_model", "model_args": {"embed_dim": 768}}
    config = CONFIG_MAPPING[model_type](vision_config=vision)
    return made_of(model_type, LIKE_WORDS + ", most often of timm's", LANGUAGE | TOWER, config)


@proof("colpali", "colmodernvbert")
def _(model_type: str) -> Proof:
    name = {"colpali": "ColPaliForRetrieval", "colmodernvbert": "ColModernVBertForRetrieval"}[model_type]
    return made_of(model_type, "one vector for each token of the model inside", {"vlm_config": "vlm"}, None, name)


@proof("jev")
def _(model_type: str) -> Proof:
    return made_of(model_type, "scores of answers by the model inside", {"text_config": "model"}, None, "JevForDecision")


@proof("glmga")
def _(model_type: str) -> Proof:
    text = {"model_type": "glm4v_text", "rope_parameters": GLM}
    config = CONFIG_MAPPING[model_type](text_config=text)
    result = made_of(model_type, "text by M-RoPE, every frame an image", LANGUAGE | {"vision_config": "visual"}, config)
    as_theirs = Proof("glm46v", "")  # whose code it is
    coordinates(as_theirs, config, "Glm46VModel", split=True)
    result.exact += as_theirs.exact
    return result


@proof("paligemma")
def _(model_type: str) -> Proof:
    result = made_of(model_type, f"{LIKE_WORDS}; counted from 1", LANGUAGE | TOWER)
    text = {"model_type": "gemma", "num_hidden_layers": 1, "hidden_size": 32, "num_attention_heads": 2, "head_dim": 16,
            "num_key_value_heads": 1, "intermediate_size": 16, "vocab_size": 40}  # fmt: skip
    vision = {"model_type": "siglip_vision_model", "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
              "intermediate_size": 16, "image_size": 4, "patch_size": 2}  # fmt: skip
    config = CONFIG_MAPPING[model_type](text_config=text, vision_config=vision, projection_dim=32)
    model, seen = build(config, attention=None), []
    rotary = module_named(model, "rotary_emb")
    rotary.register_forward_pre_hook(lambda module, given, named: seen.append(named.get("position_ids", given[-1])),
                                     with_kwargs=True)  # fmt: skip
    with torch.no_grad():
        model(input_ids=tokens((1, 7)))
    result.equal("where counting begins", seen[0][0], torch.arange(1, 8))
    assert spec_of(config).coordinates.startswith("1, 2, 3")
    return result
