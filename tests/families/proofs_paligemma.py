"""posenc.configs.families.paligemma, compared with the models' own code in transformers."""

from __future__ import annotations

import torch
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from families.harness import Proof, build, made_of, module_named, proof, spec_of, tokens
from families.proofs_llava import LANGUAGE, LIKE_WORDS, SMALL_TEXT, SMALL_TOWER, TOWER


@proof("pi0")
def pi0(model_type: str) -> Proof:
    parts = {"vlm_config": "vlm", "dit_config": "dit"}
    result = made_of(model_type, "PaliGemma, and a Gemma for actions that continues its positions", parts)
    text = {**SMALL_TEXT, "model_type": "gemma"}
    vision = {**SMALL_TOWER, "model_type": "siglip_vision_model"}
    inner = {
        "model_type": "paligemma",
        "text_config": text,
        "vision_config": vision,
        "projection_dim": 32,
        "image_token_index": 3,
    }
    model = build(CONFIG_MAPPING[model_type](vlm_config=inner, dit_config=text), attention=None)
    seen: list[torch.Tensor] = []
    for stack in (model.vlm.language_model, model.dit):
        stack.rotary_emb.register_forward_pre_hook(
            lambda module, given, named: seen.append(named.get("position_ids", given[-1])), with_kwargs=True
        )
    words = torch.tensor([[3, 3, 3, 3, 5, 6, 7]])
    inputs = {
        "input_ids": words,
        "pixel_values": torch.randn(1, 1, 3, 4, 4),
        "action_embeds": torch.randn(1, 3, 32),
        "pixel_attention_mask": torch.ones(1, 1, dtype=torch.bool),
    }
    with torch.no_grad():
        model(**inputs, attention_mask=torch.tensor([[1, 1, 1, 1, 1, 0, 1]]))
        result.equal(
            "how prompt, state and actions are counted",
            [ids[0].tolist() for ids in seen],
            [[0, 1, 2, 3, 4, 4, 5], [6, 7, 8]],
        )
        seen.clear()
        model(**inputs)
    assert [ids[0].tolist() for ids in seen] == [[1, 2, 3, 4, 5, 6, 7], [7, 8, 9]], "its finding is out of date"
    return result


@proof("paligemma")
def paligemma(model_type: str) -> Proof:
    result = made_of(model_type, f"{LIKE_WORDS}; counted from 1", LANGUAGE | TOWER)
    text = {
        "model_type": "gemma",
        "num_hidden_layers": 1,
        "hidden_size": 32,
        "num_attention_heads": 2,
        "head_dim": 16,
        "num_key_value_heads": 1,
        "intermediate_size": 16,
        "vocab_size": 40,
    }
    vision = {
        "model_type": "siglip_vision_model",
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 16,
        "image_size": 4,
        "patch_size": 2,
    }
    config = CONFIG_MAPPING[model_type](text_config=text, vision_config=vision, projection_dim=32)
    model, seen = build(config, attention=None), []
    rotary = module_named(model, "rotary_emb")
    rotary.register_forward_pre_hook(
        lambda module, given, named: seen.append(named.get("position_ids", given[-1])), with_kwargs=True
    )
    with torch.no_grad():
        model(input_ids=tokens((1, 7)))
    result.equal("where counting begins", seen[0][0], torch.arange(1, 8))
    assert spec_of(config).coordinates.en.startswith("1, 2, 3")
    return result
