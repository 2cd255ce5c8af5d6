"""Text models made of others: which they hold, and that the parts are those."""

from __future__ import annotations

import torch
import transformers
from transformers import CONFIG_MAPPING, BartConfig, BertConfig, DPRConfig, GPT2Config, RobertaConfig

import posenc
from families.adding import added
from families.harness import Proof, build, config_of, folder_of, made_of, module_named, proof, spec_of, tokens

MODELS = {"rag": {"question_encoder": "question_encoder", "generator": "generator"},
          "encoder-decoder": {"encoder": "encoder", "decoder": "decoder"}}  # fmt: skip
CLASSES = {"rag": "RagModel", "encoder-decoder": "EncoderDecoderModel"}


@proof("encoder-decoder", "rag")
def _(model_type: str) -> Proof:
    loaded = CONFIG_MAPPING[model_type]
    small = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8, "vocab_size": 16}
    choices = {
        "encoder-decoder": [{"encoder": RobertaConfig(**small).to_dict(),
                             "decoder": GPT2Config(n_embd=16, n_layer=2, n_head=2, vocab_size=16,
                                                   add_cross_attention=True).to_dict()},
                            {"encoder": BertConfig(**small).to_dict(),
                             "decoder": BertConfig(**small, is_decoder=True, add_cross_attention=True).to_dict()}],
        "rag": [{"question_encoder": DPRConfig(**small).to_dict(), "generator": BartConfig().to_dict()}],
    }[model_type]  # fmt: skip
    result = Proof(model_type, f"made of two: {', '.join(MODELS[model_type])}, each by itself")
    for choice in choices:
        config = loaded(**choice)
        found = made_of(model_type, result.does, MODELS[model_type], config, CLASSES[model_type])
        spec = spec_of(config)
        result.exact += [fact for fact in found.exact if fact not in result.exact]
        result.equal("parts as a file names them", [part.family for part in spec.parts],
                     [part["model_type"] for part in choice.values()])  # fmt: skip
        if model_type == "encoder-decoder":
            result.equal("which part is causal", [part.layers[0].causal for part in spec.parts], [False, True])
    return result


@proof("pp_formulanet_text")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "learned table added to the embeddings, two rows before position 0")
    config = config_of(model_type, d_model=64, decoder_layers=2, decoder_attention_heads=4, decoder_ffn_dim=16,
                       max_position_embeddings=40)  # fmt: skip
    model, spec = build(config, "PPFormulaNetTextModel", attention=None), spec_of(config)
    at = posenc.Positions.arange(2, 40)
    added(result, spec, model, "layernorm_embedding", at, {"input_ids": tokens((2, 40))})
    with torch.no_grad():
        result.equal("number of layers", len(model.layers), len(spec.layers))
    return result


@proof("pp_formulanet", "pp_chart2table")
def _(model_type: str) -> Proof:
    parts = {"pp_formulanet": {"text_config": "PPFormulaNetTextModel", "vision_config": "PPFormulaNetVisionModel"},
             "pp_chart2table": {"text_config": "language_model", "vision_config": "vision_tower"}}[model_type]  # fmt: skip
    config = CONFIG_MAPPING[model_type]()
    spec = spec_of(config, defaults=True)
    result = Proof(model_type, "a picture's patches and the text that is read off them, each by itself")
    loaded = transformers.AutoModelForImageTextToText
    with torch.device("meta"):
        model = loaded.from_config(config)
    for part, ending in parts.items():
        module = module_named(model, ending)
        result.equal(f"{part} is {spec[part].family}", module.config.model_type, spec[part].family)
        assert folder_of(module.config) in (folder_of(config), "qwen2", "got_ocr2")
    assert {part.part for part in spec.parts} == set(parts)
    return result
