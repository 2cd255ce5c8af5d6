"""Text models that count what a picture gives like words: which families their parts are, and where counting begins."""

from __future__ import annotations

from typing import Any

from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from families.harness import Proof, made_of, proof

LIKE_WORDS = "a text model that counts patches like words, and a vision tower"
LANGUAGE, TEXT = {"text_config": "language_model"}, {"text_config": "text_model"}
TOWER, MODEL = {"vision_config": "vision_tower"}, {"vision_config": "vision_model"}
PLAIN: dict[str, dict[str, str]] = {
    **dict.fromkeys(["aria", "aya_vision", "cohere2_vision", "got_ocr2", "internvl", "lfm2_vl", "lfm3_vl",
                     "llava", "llava_next", "llava_next_video", "llava_onevision", "ovis2", "qianfan_ocr", "vipllava"],
                    LANGUAGE | TOWER),
    **dict.fromkeys(["deepseek_vl", "hyperclovax_vision_v2"], LANGUAGE | MODEL),
    **dict.fromkeys(["idefics3", "smolvlm", "kosmos-2", "kosmos-2.5"], TEXT | MODEL),
    "deepseek_vl_hybrid": LANGUAGE | {"high_res_vision_config": "high_res_vision_model", "vision_config": "vision_model"},
    "exaone4_5": LANGUAGE | {"vision_config": "visual"},
    "idefics2": TEXT | MODEL | {"perceiver_config": "perceiver_resampler"},
    "janus": LANGUAGE | MODEL | {"vq_config": "vqmodel"},
    "lighton_ocr": LANGUAGE | {"vision_config": "vision_encoder"},
    "video_llava": LANGUAGE | {"vision_config": "video_tower"},
    **dict.fromkeys(["blip-2", "instructblip", "instructblipvideo"],
                    LANGUAGE | MODEL | {"qformer_config": "qformer"}),
    "pi0": {"vlm_config": "vlm", "dit_config": "dit"},
    "paligemma": LANGUAGE | TOWER,
    "fuyu": LANGUAGE,
}  # fmt: skip
SAID: dict[str, dict[str, Any]] = {  # where the class's own defaults make no model
    "aya_vision": {"vision_config": {"model_type": "siglip_vision_model", "num_attention_heads": 16}},
}


@proof(*PLAIN)
def _(model_type: str) -> Proof:
    return made_of(model_type, LIKE_WORDS, PLAIN[model_type], CONFIG_MAPPING[model_type](**SAID.get(model_type, {})))
