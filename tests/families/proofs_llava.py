"""posenc.configs.families.llava, compared with the models' own code in transformers."""

from __future__ import annotations

from typing import Any

import torch
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from families.harness import Proof, build, made_of, module_named, proof

LIKE_WORDS = "a text model that counts image patches like words, and a vision encoder"

LANGUAGE, TEXT = {"text_config": "language_model"}, {"text_config": "text_model"}

TOWER, MODEL = {"vision_config": "vision_tower"}, {"vision_config": "vision_model"}

PLAIN: dict[str, dict[str, str]] = {
    **dict.fromkeys(
        [
            "aria",
            "aya_vision",
            "cohere2_vision",
            "got_ocr2",
            "internvl",
            "lfm2_vl",
            "lfm3_vl",
            "llava",
            "llava_next",
            "llava_next_video",
            "llava_onevision",
            "ovis2",
            "qianfan_ocr",
            "vipllava",
        ],
        LANGUAGE | TOWER,
    ),
    **dict.fromkeys(["deepseek_vl", "hyperclovax_vision_v2"], LANGUAGE | MODEL),
    **dict.fromkeys(["idefics3", "smolvlm", "kosmos-2", "kosmos-2.5"], TEXT | MODEL),
    "deepseek_vl_hybrid": LANGUAGE | {"high_res_vision_config": "SamVisionModel", "vision_config": "SiglipVisionModel"},
    "exaone4_5": LANGUAGE | {"vision_config": "visual"},
    "idefics2": TEXT | MODEL | {"perceiver_config": "perceiver_resampler"},
    "janus": LANGUAGE | MODEL | {"vq_config": "vqmodel"},
    "lighton_ocr": LANGUAGE | {"vision_config": "vision_encoder"},
    "video_llava": LANGUAGE | {"vision_config": "video_tower"},
    **dict.fromkeys(["blip-2", "instructblip", "instructblipvideo"], LANGUAGE | MODEL | {"qformer_config": "qformer"}),
    "fuyu": LANGUAGE,
}

SAID: dict[str, dict[str, Any]] = {  # where the class's own defaults make no model
    "aya_vision": {"vision_config": {"model_type": "siglip_vision_model", "num_attention_heads": 16}}
}


@proof(*PLAIN)
def aria(model_type: str) -> Proof:
    config, parts = CONFIG_MAPPING[model_type](**SAID.get(model_type, {})), PLAIN[model_type]
    result = made_of(model_type, LIKE_WORDS, parts, config)
    words = {"input_ids": torch.ones(1, 7, dtype=torch.long)}
    if model_type in ("blip-2", "instructblip", "instructblipvideo"):
        config = tiny_blip(model_type)
        frames = (1, 1) if model_type == "instructblipvideo" else (1,)
        words = {"input_ids": torch.tensor([[3, 3, 5, 6, 7, 8, 9]]), "pixel_values": torch.randn(*frames, 3, 4, 4)}
        words |= {"qformer_input_ids": torch.ones(1, 2, dtype=torch.long)} if model_type != "blip-2" else {}
    elif model_type in ("exaone4_5", "fuyu"):
        tower = {
            "depth": 1,
            "hidden_size": 32,
            "num_heads": 2,
            "num_key_value_heads": 1,
            "intermediate_size": 16,
            "out_hidden_size": 32,
            "model_type": "exaone4_5_vision",
        }
        config = CONFIG_MAPPING[model_type](
            text_config={**SMALL_TEXT, "model_type": config.text_config.model_type},
            **({"vision_config": tower} if model_type == "exaone4_5" else {}),
        )
    with torch.device("cpu" if config.text_config.hidden_size == 32 else "meta"):
        if model_type == "kosmos-2":
            words = {
                "input_ids": torch.ones(1, 70, dtype=torch.long),
                "image_embeds": torch.zeros(1, 64, 2048),
                "image_embeds_position_mask": torch.ones(1, 70, dtype=torch.long),
            }
        model = build(config, attention=None)
        ids = position_ids(model, parts["text_config"], **{name: value.to(model.device) for name, value in words.items()})
    if ids is None:  # the text model counts by itself
        result.exact.append("no position ids of its own")
    else:
        result.equal("its position ids", ids[0], torch.arange(7))
    return result


class Seen(Exception):
    """What the text model is given has been seen; the rest of the pass need not be made."""


def position_ids(model: torch.nn.Module, ending: str, **inputs: torch.Tensor) -> torch.Tensor | None:
    """What the model around a text model gives it as position_ids."""
    given: list[torch.Tensor | None] = []

    def look(module: torch.nn.Module, arguments: Any, named: dict[str, Any]) -> None:
        given.append(named.get("position_ids"))
        raise Seen

    hook = module_named(model, ending).register_forward_pre_hook(look, with_kwargs=True)
    try:
        with torch.no_grad():
            model(**inputs)
    except Seen:
        return given[0]
    finally:
        hook.remove()
    raise AssertionError("the text model was not asked")


SMALL_TEXT: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "vocab_size": 40,
    "num_key_value_heads": 1,
    "head_dim": 16,
}

SMALL_TOWER: dict[str, Any] = {
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "image_size": 4,
    "patch_size": 2,
}


def tiny_blip(model_type: str) -> Any:
    text = {
        "model_type": "opt",
        "hidden_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "ffn_dim": 16,
        "vocab_size": 40,
        "word_embed_proj_dim": 32,
    }
    asking = {
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 16,
        "vocab_size": 40,
    }
    return CONFIG_MAPPING[model_type](
        text_config=text,
        qformer_config=asking,
        vision_config=SMALL_TOWER,
        num_query_tokens=2,
        image_token_index=3,
        video_token_index=3,
    )


TIMM = {"fast_vlm", "perception_lm"}  # whose own towers timm builds: one of transformers stands in their place


@proof(*TIMM)
def perception_lm(model_type: str) -> Proof:
    vision = {"model_type": "clip_vision_model", "model_args": {"embed_dim": 768}}
    config = CONFIG_MAPPING[model_type](vision_config=vision)
    result = made_of(model_type, LIKE_WORDS + ", most often of timm's", LANGUAGE | TOWER, config)
    with torch.device("meta"):
        ids = position_ids(build(config, attention=None), "language_model", input_ids=torch.ones(1, 7, dtype=torch.long))
    assert ids is None
    return result
