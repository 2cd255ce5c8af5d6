"""posenc.configs.families.encoder_decoder, compared with the models' own code in transformers."""

from __future__ import annotations

import torch
import transformers
from transformers import BartConfig, BertConfig, DPRConfig, GPT2Config, RobertaConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from families.harness import Proof, build, config_of, folder_of, made_of, module_named, proof, spec_of

MODELS = {
    "rag": {"question_encoder": "question_encoder", "generator": "generator"},
    "encoder-decoder": {"encoder": "encoder", "decoder": "decoder"},
}

CLASSES = {"rag": "RagModel", "encoder-decoder": "EncoderDecoderModel"}


@proof("encoder-decoder", "rag")
def encoder_decoder(model_type: str) -> Proof:
    loaded = CONFIG_MAPPING[model_type]
    small = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8, "vocab_size": 16}
    choices = {
        "encoder-decoder": [
            {
                "encoder": RobertaConfig(**small).to_dict(),
                "decoder": GPT2Config(n_embd=16, n_layer=2, n_head=2, vocab_size=16, add_cross_attention=True).to_dict(),
            },
            {
                "encoder": BertConfig(**small).to_dict(),
                "decoder": BertConfig(**small, is_decoder=True, add_cross_attention=True).to_dict(),
            },
        ],
        "rag": [{"question_encoder": DPRConfig(**small).to_dict(), "generator": BartConfig().to_dict()}],
    }[model_type]
    result = Proof(model_type, f"made of two: {', '.join(MODELS[model_type])}, separate parts")
    for choice in choices:
        config = loaded(**choice)
        found = made_of(model_type, result.does, MODELS[model_type], config, CLASSES[model_type])
        spec = spec_of(config)
        result.exact += [fact for fact in found.exact if fact not in result.exact]
        result.equal(
            "parts as a file names them",
            [part.family for part in spec.parts],
            [part["model_type"] for part in choice.values()],
        )
        if model_type == "encoder-decoder":
            result.equal("which part is causal", [part.layers[0].causal for part in spec.parts], [False, True])
    return result


@proof("pp_formulanet", "pp_chart2table")
def pp_formulanet(model_type: str) -> Proof:
    parts = {
        "pp_formulanet": {"text_config": "PPFormulaNetTextModel", "vision_config": "PPFormulaNetVisionModel"},
        "pp_chart2table": {"text_config": "language_model", "vision_config": "vision_tower"},
    }[model_type]
    config = CONFIG_MAPPING[model_type]()
    spec = spec_of(config, defaults=True)
    result = Proof(model_type, "image patches and the text decoded from them, separate parts")
    loaded = transformers.AutoModelForImageTextToText
    with torch.device("meta"):
        model = loaded.from_config(config)
    for part, ending in parts.items():
        module = module_named(model, ending)
        result.equal(f"{part} is {spec[part].family}", module.config.model_type, spec[part].family)
        assert folder_of(module.config) in (folder_of(config), "qwen2", "got_ocr2")
    assert {part.part for part in spec.parts} == set(parts)
    return result


@proof("speech-encoder-decoder")
def speech_encoder_decoder(model_type: str) -> Proof:
    result = Proof(model_type, "any speech encoder, any text decoder")
    for encoder, decoder in (("wav2vec2", "bert"), ("hubert", "bart")):
        inner = {
            "encoder": config_of(encoder, num_hidden_layers=1).to_dict(),
            "decoder": config_of(
                decoder,
                **(
                    {"num_hidden_layers": 1}
                    if decoder == "bert"
                    else {"hidden_size": None, "num_hidden_layers": None, "num_attention_heads": None}
                ),
            ).to_dict(),
        }
        config = CONFIG_MAPPING[model_type](**inner)
        spec = spec_of(config)
        with torch.device("meta"):
            model = build(config, "SpeechEncoderDecoderModel", attention=None)
        for part in ("encoder", "decoder"):
            result.equal(f"{part} is its own family", getattr(model, part).config.model_type, spec[part].family)
    return result


@proof("nougat")
def nougat(model_type: str) -> Proof:
    result = Proof(model_type, "Donut's Swin and the text model of mBART")
    sections = {"encoder": {"model_type": "donut-swin"}, "decoder": {"model_type": "mbart"}}
    spec = spec_of(CONFIG_MAPPING[model_type](**sections), defaults=True)
    whole = CONFIG_MAPPING["vision-encoder-decoder"](**sections)  # the class that such models are built with
    with torch.device("meta"):
        model = build(whole, "VisionEncoderDecoderModel", attention=None)
    for part in ("encoder", "decoder"):
        result.equal(f"{part} is {spec[part].family}", getattr(model, part).config.model_type, spec[part].family)
    try:
        CONFIG_MAPPING[model_type]()
    except ValueError:
        return result
    raise AssertionError("NougatConfig makes sections by itself now: its finding is out of date")


@proof("vision-encoder-decoder")
def vision_encoder_decoder(model_type: str) -> Proof:
    parts = {"encoder": "encoder", "decoder": "decoder"}
    return made_of(model_type, "an image encoder and a text decoder", parts, None, "VisionEncoderDecoderModel")
