"""posenc.configs.families.gemma4, compared with the models' own code in transformers."""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest
import torch
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from families.harness import IDS, Proof, at_of, build, calls, config_of, made_of, proof, spec_of, unrotated
from families.proofs_composites import GEMMA
from families.turning import FULL, LINEAR, LLAMA3, SLIDING, YARN, turned

LOCAL = {"rope_type": "default", "rope_theta": 5000.0}

PROPORTIONAL = {"rope_type": "proportional", "rope_theta": 100000.0, "partial_rotary_factor": 0.4, "factor": 3.0}


@proof("gemma4_text", "gemma4_unified_text")
def gemma4_text(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs; full layers have wider heads, of which a part rotates (proportional)")
    sizes = {
        "num_hidden_layers": 7,
        "sliding_window": 4,
        "head_dim": 16,
        "global_head_dim": 24,
        "hidden_size_per_layer_input": 8,
    }
    if model_type == "gemma4_unified_text":
        sizes.pop("hidden_size_per_layer_input")
    turned(result, **sizes)
    turned(result, rope_parameters={SLIDING: YARN, FULL: PROPORTIONAL}, use_bidirectional_attention="all", **sizes)
    mixed = {"layer_types": [FULL, SLIDING, FULL, SLIDING, FULL], "num_kv_shared_layers": 2}
    turned(result, rope_parameters={SLIDING: LINEAR, FULL: LLAMA3}, **{**sizes, "num_hidden_layers": 5, **mixed})
    odd = {**sizes, "num_hidden_layers": 2, "per_layer_config": {"1": {"head_dim": 20}}}
    turned(result, rope_parameters={SLIDING: LOCAL, FULL: PROPORTIONAL}, layer_types=[SLIDING, FULL], **odd)
    return result


@proof("embedding_gemma2_text")
def embedding_gemma2_text(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs, bidirectional; full layers have wider heads and another base")
    sizes = {
        "num_hidden_layers": 7,
        "sliding_window": 3,
        "head_dim": 16,
        "global_head_dim": 24,
        "hidden_size_per_layer_input": 8,
    }
    turned(result, **sizes)
    turned(result, rope_parameters={SLIDING: YARN, FULL: PROPORTIONAL}, sliding_window_pattern=3, **sizes)
    return result


@proof("gemma4_assistant", "gemma4_unified_assistant")
def gemma4_assistant(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE of queries as in its text model; keys are those of the main model")
    sizes = {
        "num_hidden_layers": 4,
        "head_dim": 16,
        "global_head_dim": 24,
        "num_kv_shared_layers": 4,
        "sliding_window": 4,
        "layer_types": [SLIDING, FULL, SLIDING, FULL],
    }
    if model_type == "gemma4_assistant":
        text = config_of("gemma4_text", hidden_size_per_layer_input=0, vocab_size_per_layer_input=0, **sizes)
    else:
        text = config_of("gemma4_unified_text", **sizes)
    config = config_of(model_type, text_config=text.to_dict(), backbone_hidden_size=32)
    name = "Gemma4UnifiedAssistantForCausalLM" if "unified" in model_type else "Gemma4AssistantForCausalLM"
    assert any(finding.key == "text_config.num_kv_shared_layers" for finding in spec_of(config).remarks)
    with pytest.raises(ValueError, match="layer types producing a cache"):
        build(config, name)  # the defect that the finding tells of; without its check the model is what it says
    with mock.patch.object(type(text), "kv_sharing_modes", property(lambda self: ["reuse"] * self.num_hidden_layers)):
        model, spec = build(config, name), spec_of(config)["text_config"]
    generator = torch.Generator().manual_seed(4)
    shared = {
        kind: tuple(torch.randn(2, 2, 9, width, generator=generator) for _ in "kv")
        for kind, width in ((SLIDING, 16), (FULL, 24))
    }
    passes = []
    for ids in (torch.zeros_like(IDS), IDS):
        given = {"inputs_embeds": torch.randn(2, IDS.shape[1], 64, generator=generator), "shared_kv_states": shared}
        passes.append(calls(model, position_ids=ids, logits_to_keep=torch.arange(IDS.shape[1]), **given))
    assert len(passes[1]) == len(spec.layers) == 4
    at, zero = at_of(IDS), at_of(torch.zeros_like(IDS))
    for number, (before, after) in enumerate(zip(*passes, strict=True)):
        layer, encoding = spec.layers[number], spec.encoding(number, exact="model")
        got = encoding.rotate(unrotated(before.q, encoding, zero, "query"), at, "query")
        result.close("queries of every layer at positions to 131071", got, after.q)
        result.equal("keys as they were given", after.k, shared[layer.kind][0])
        assert layer.uses[0].note
    return result


NO_POSITIONS = {
    "chameleon_vqgan": "convolutions; attention among their outputs has no positions",
    "emu3_vqgan": "convolutions over frames, rows and columns; attention among their outputs has no positions",
    "idefics_perciever": "learned queries; the image features already have positions",
}

NOT_PROVEN = {"gemma3n_vision": "timm builds this encoder; transformers has none of its code"}

PARTS = {
    "gemma3": {"text_config": "language_model", "vision_config": "vision_tower"},
    "gemma4": {"text_config": "language_model", "vision_config": "vision_tower", "audio_config": "audio_tower"},
    "gemma4_unified": {"text_config": "language_model"},
    "embedding_gemma2": {"text_config": "language_model", "vision_config": "vision_tower", "audio_config": "audio_tower"},
    "emu3": {"text_config": "text_model", "vq_config": "vqmodel"},
    "t5gemma2": {"encoder": "encoder", "decoder": "decoder"},
    "t5gemma2_encoder": {"text_config": "text_model", "vision_config": "vision_tower"},
}

TOWERS = {"vision_config": {"model_type": "gemma4_vision"}, "audio_config": {"model_type": "gemma4_audio"}}

GIVEN = {"emu3": {"vocabulary_map": {"<image>": 3}}, "gemma4": TOWERS, "embedding_gemma2": TOWERS}


@proof(*PARTS)
def gemma3(model_type: str) -> Proof:
    config = CONFIG_MAPPING[model_type](**GIVEN.get(model_type, {}))
    if model_type == "t5gemma2_encoder":
        config = CONFIG_MAPPING["t5gemma2"]().encoder  # which gives it what it lacks by itself
    return made_of(model_type, "as its parts; image and audio tokens count like text", PARTS[model_type], config)


@proof("diffusion_gemma_text")
def diffusion_gemma_text(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs; full layers have wider heads, of which a part rotates (proportional)")
    sizes: dict[str, Any] = GEMMA | {"num_hidden_layers": 7}
    turned(result, model_class="DiffusionGemmaEncoderTextModel", **sizes)
    both = {"sliding_attention": YARN, "full_attention": LLAMA3}
    turned(result, model_class="DiffusionGemmaEncoderTextModel", rope_parameters=both, **sizes)
    return result
