"""posenc.configs.families.composites, compared with the models' own code in transformers."""

from __future__ import annotations

import contextlib
import importlib.util
import re
import sys
import types
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
import transformers
from torch import Tensor
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from families.harness import Proof, build, config_of, folder_of, made_of, modeling, module_named, proof, spec_of
from families.proofs_llava import LANGUAGE
from families.proofs_pe_audio import without_frames
from families.proofs_sam2 import held
from posenc.configs import PositionSpec


@proof("voxtral_realtime")
def voxtral_realtime(model_type: str) -> Proof:
    return made_of(
        model_type,
        "a rotary audio encoder and a rotary language model, both with windows",
        {"audio_config": "audio_tower", "text_config": "language_model"},
    )


TWO = {"audio_config": "audio_tower", "text_config": "language_model"}

HELD: dict[str, tuple[str, dict[str, str]]] = {
    "audioflamingo3": ("a Whisper-like encoder and a rotary language model", TWO),
    "glmasr": ("a rotary audio encoder and a rotary language model", TWO),
    "moss_transcribe_diarize": ("a Whisper-like encoder and a rotary language model", TWO),
    "qwen2_audio": ("a Whisper-like encoder and a rotary language model", TWO),
    "voxtral": ("a Whisper-like encoder and a rotary language model", TWO),
    "granite_speech": (
        "a conformer with relative vectors, a Q-Former and a rotary language model",
        {"encoder_config": "encoder", "projector_config": "qformer", "text_config": "language_model"},
    ),
    "granite_speech_plus": (
        "a conformer with relative vectors, a Q-Former and a rotary language model",
        {"encoder_config": "encoder", "projector_config": "qformer", "text_config": "language_model"},
    ),
    "granite_speech5_ctc": ("a conformer with relative vectors", {"encoder_config": "encoder"}),
    "lasr_ctc": ("a rotary conformer", {"encoder_config": "encoder"}),
    "parakeet_ctc": ("a conformer with Transformer-XL's terms", {"encoder_config": "encoder"}),
    "parakeet_rnnt": ("a conformer with Transformer-XL's terms", {"encoder_config": "encoder"}),
    "parakeet_tdt": ("a conformer with Transformer-XL's terms", {"encoder_config": "encoder"}),
    "nemotron_asr_streaming": ("a conformer with Transformer-XL's terms, in chunks", {"encoder_config": "encoder"}),
    "nemotron3_5_asr": ("a conformer with Transformer-XL's terms, in chunks", {"encoder_config": "encoder"}),
    "fastspeech2_conformer_with_hifigan": (
        "conformers with Transformer-XL's terms, and convolutions",
        {"model_config": "model", "vocoder_config": "vocoder"},
    ),
    "nemotron3_5_transcribe_audio": (
        "two rotary audio encoders",
        {"asr_config": "asr_encoder", "diarization_config": "diarization_model"},
    ),
    "nemo_speechlm": (
        "rotary audio encoders, and a language model without positions",
        {"audio_config": "audio_tower", "text_config": "language_model", "word_timestamp_config": "word_timestamp_encoder"},
    ),
    "nemotron_h_omni": (
        "a language model without positions, and a learned grid",
        {"text_config": "language_model", "vision_config": "vision_model"},
    ),
    "ultravbert": ("a text encoder and a learned grid", {"text_config": "text_model", "vision_config": "vision_model"}),
    "vibevoice_asr": (
        "convolutions, and a rotary language model",
        {
            "acoustic_tokenizer_encoder_config": "acoustic_tokenizer_encoder",
            "semantic_tokenizer_encoder_config": "semantic_tokenizer_encoder",
            "text_config": "language_model",
        },
    ),
    "canary": (
        "a conformer with Transformer-XL's terms, and a decoder with sinusoids",
        {"encoder_config": "encoder", "decoder_config": "decoder"},
    ),
    "musicgen": (
        "T5 for text, convolutions for audio, a decoder with sinusoids",
        {"text_encoder": "text_encoder", "audio_encoder": "audio_encoder", "decoder": "MusicgenForCausalLM"},
    ),
    "musicgen_melody": (
        "T5 for text, convolutions for audio, a decoder with sinusoids",
        {"text_encoder": "text_encoder", "audio_encoder": "audio_encoder", "decoder": "MusicgenMelodyForCausalLM"},
    ),
    "clap": (
        "a table that counts like RoBERTa's, and windows over a spectrogram",
        {"text_config": "text_model", "audio_config": "audio_model"},
    ),
}

CLASSES = {
    "granite_speech": "GraniteSpeechForConditionalGeneration",
    "granite_speech5_ctc": "GraniteSpeech5ForCTC",
    "nemotron_h_omni": "NemotronH_Omni_Reasoning_V3",
    "musicgen": "MusicgenForConditionalGeneration",
    "musicgen_melody": "MusicgenMelodyForConditionalGeneration",
}


@proof(*HELD)
def audioflamingo3(model_type: str) -> Proof:
    does, held = HELD[model_type]
    return made_of(model_type, does, held, model_class=CLASSES.get(model_type))


@proof("xcodec", "higgs_audio_v2_tokenizer")
def xcodec(model_type: str) -> Proof:
    result = Proof(model_type, "convolutions, and an encoder with a positional convolution")
    config = CONFIG_MAPPING[model_type]()
    spec = spec_of(config)
    assert [part.part for part in spec.parts] == ["acoustic_model_config", "semantic_model_config"]
    with torch.device("meta"), torchaudio_or_none():
        model = build(config, "XcodecModel" if model_type == "xcodec" else "HiggsAudioV2TokenizerModel", attention=None)
    result.equal("semantic_model_config", model.semantic_model.config.model_type, spec.parts[1].family)
    names = {type(part).__module__.split(".")[-2] for part in (model.acoustic_encoder, model.acoustic_decoder)}
    result.equal("acoustic_model_config", names, {spec.parts[0].family})
    return result


@contextlib.contextmanager
def torchaudio_or_none() -> Iterator[None]:
    """One file imports torchaudio to resample sound, which no comparison does; an empty module will do."""
    there = "torchaudio" in sys.modules or importlib.util.find_spec("torchaudio") is not None
    if not there:
        sys.modules["torchaudio"] = types.ModuleType("torchaudio")
    try:
        yield
    finally:
        if not there:
            del sys.modules["torchaudio"]


@proof("vibevoice")
def vibevoice(model_type: str) -> Proof:
    result = Proof(model_type, "convolutions, and a rotary language model")
    config = CONFIG_MAPPING[model_type]()
    spec = spec_of(config, defaults=True)
    with torch.device("meta"):
        model = build(config, attention=None)
    held = {
        "audio_config": module_named(model, "audio_tower"),
        "text_config": module_named(model, "language_model"),
        "semantic_model_config": module_named(model, "semantic_tokenizer_encoder"),
    }
    for part, module in held.items():
        result.equal(part, module.config.model_type, spec[part].family)
    assert not spec["diffusion_head_config"].layers
    assert not [
        name for name, _ in module_named(model, "diffusion_head").named_modules() if "attn" in name or "attention" in name
    ]
    assert {part.part for part in spec.parts} == {*held, "diffusion_head_config"}
    return result


WHOLE = {
    "chmv2": "CHMv2ForDepthEstimation",
    "depth_anything": "DepthAnythingForDepthEstimation",
    "prompt_depth_anything": "PromptDepthAnythingForDepthEstimation",
    "upernet": "UperNetForSemanticSegmentation",
    "vitmatte": "VitMatteForImageMatting",
    "vitpose": "VitPoseForPoseEstimation",
    "zoedepth": "ZoeDepthForDepthEstimation",
    "depth_pro": "DepthProForDepthEstimation",
}

NAMES = re.compile(r"position|rel_pos|relative_att|rotary|rope")

NOT_PROVEN = {
    "timm_backbone": "its code is in timm, another library, which is not installed here",
    "timm_wrapper": "its code is in timm, another library, which is not installed here",
}


def inside(result: Proof, model_type: str, **sizes: Any) -> PositionSpec:
    """The models that the parts of the spec name are inside, one for one, and no weight outside of them is of positions."""
    config = CONFIG_MAPPING[model_type](**sizes)
    if model_type == "vitmatte":  # its own default is a tuple, which its code cannot add to a list
        config.fusion_hidden_sizes = list(config.fusion_hidden_sizes)
    with torch.device("meta"):
        model = getattr(modeling(model_type), WHOLE[model_type])(config)
    spec = spec_of(config, defaults=True)
    families = sorted(part.family for part in spec.parts)
    found = {
        name: module.config.model_type
        for name, module in model.named_modules()
        if getattr(getattr(module, "config", None), "model_type", model_type) != model_type
    }
    outermost = {name: own for name, own in found.items() if not any(name.startswith(f"{other}.") for other in found)}
    result.equal(f"inside: {', '.join(families)}", sorted(outermost.values()), families)
    outside = [name for name, _ in model.named_parameters() if not any(name.startswith(f"{inner}.") for inner in outermost)]
    assert not [name for name in outside if NAMES.search(name)]
    return spec


@proof("depth_anything", "chmv2", "prompt_depth_anything", "upernet", "vitmatte", "vitpose", "depth_pro")
def depth_anything(model_type: str) -> Proof:
    result = Proof(model_type, "as its backbone does")
    inside(result, model_type)
    if model_type == "depth_pro":
        inside(result, model_type, use_fov_model=True)
    return result


@proof("slanext")
def slanext(model_type: str) -> Proof:
    result = Proof(model_type, "as its image encoder; a recurrent cell reads it")
    config = config_of(model_type)
    with torch.device("meta"):
        model = modeling(model_type).SLANeXtForTableRecognition(config)
    spec = spec_of(config)
    result.equal("the image encoder", spec["vision_config"].family, model.backbone.vision_tower.config.model_type)
    return result


@proof("gemma3n")
def gemma3n(model_type: str) -> Proof:
    result = Proof(model_type, "as its parts; image and audio tokens count like text")
    config, own = config_of(model_type), modeling(model_type)
    made = own.AutoModel.from_config

    def from_config(config: Any, **options: Any) -> torch.nn.Module:  # timm builds the tower for images, were it there
        return torch.nn.Identity() if config.model_type == "gemma3n_vision" else made(config, **options)

    with mock.patch.object(own.AutoModel, "from_config", from_config), torch.device("meta"):
        model = own.Gemma3nModel(config)
    parts = {part.part: part.family for part in spec_of(config).parts}
    built = {"text_config": model.language_model, "audio_config": model.audio_tower}
    for part, module in built.items():
        result.equal(f"{part} is {parts[part]}", module.config.model_type, parts[part])
    result.equal("its parts", set(parts), {*built, "vision_config"})
    return result


@proof("pe_audio")
def pe_audio(model_type: str) -> Proof:
    return made_of(
        model_type, "text as in ModernBERT, and audio", {"text_config": "text_model", "audio_config": "audio_encoder"}
    )


@proof("pe_video")
def pe_video(model_type: str) -> Proof:
    with without_frames(model_type):
        return made_of(
            model_type, "text as in ModernBERT, and video", {"text_config": "text_model", "video_config": "video_encoder"}
        )


@proof("pe_audio_video")
def pe_audio_video(model_type: str) -> Proof:
    with without_frames("pe_video"):
        return made_of(
            model_type,
            "text as in ModernBERT, audio, video and both",
            {"text_config": "text_model", "audio_video_config": "audio_video_encoder"},
        )


@proof("colpali", "colmodernvbert")
def colpali(model_type: str) -> Proof:
    name = {"colpali": "ColPaliForRetrieval", "colmodernvbert": "ColModernVBertForRetrieval"}[model_type]
    return made_of(model_type, "one vector for each token of the inner model", {"vlm_config": "vlm"}, None, name)


@proof("jev")
def jev(model_type: str) -> Proof:
    return made_of(model_type, "scores of answers from the inner model", {"text_config": "model"}, None, "JevForDecision")


@proof("glmga")
def glmga(model_type: str) -> Proof:
    text = {"model_type": "glm4v_text", "rope_parameters": GLM}
    config = CONFIG_MAPPING[model_type](text_config=text)
    result = made_of(model_type, "text with M-RoPE, each frame is an image", LANGUAGE | {"vision_config": "visual"}, config)
    as_theirs = Proof("glm46v", "")  # whose code it is
    coordinates(as_theirs, config, "Glm46VModel", split=True)
    result.exact += as_theirs.exact
    return result


@proof("sam2", "sam3_tracker", "edgetam", "sam3", "sam3_lite_text", "sam3_video")
def sam2(model_type: str) -> Proof:
    return held(model_type, "parts with positions of their own")


@proof("mistral_large4")
def mistral_large4(model_type: str) -> Proof:
    return made_of(
        model_type,
        "text as in Mistral Large 4, images as in Pixtral",
        {"text_config": "language_model", "vision_config": "vision_tower"},
    )


@proof("tipsv2_dpt")
def tipsv2_dpt(model_type: str) -> Proof:
    name = next(name for name in vars(modeling(model_type)) if name.startswith("Tipsv2DptFor"))
    return made_of(model_type, "convolutions on an encoder", {"backbone_config": "backbone"}, None, name)


@proof("modernvbert")
def modernvbert(model_type: str) -> Proof:
    return made_of(
        model_type,
        "ModernBERT over patches encoded by SigLIP",
        {"text_config": "text_model", "vision_config": "vision_model"},
    )


@proof("videoprism")
def videoprism(model_type: str) -> Proof:
    config = config_of(model_type)
    return made_of(
        model_type,
        "a video model and a text model",
        {"vision_config": "VideoPrismVideoModel", "text_config": "VideoPrismTextModel"},
        config,
    )


GLM = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [8, 12, 12], "partial_rotary_factor": 0.5}

INDEXER = {
    "indexer_n_heads": 2,
    "indexer_kv_heads": 1,
    "indexer_head_dim": 256,
    "indexer_budget": 4,
    "indexer_compress_ratio": 1,
}

COMPASS = {"full_attention": {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [24, 20, 20]}}

SAID: dict[str, dict[str, Any]] = {  # where the classes' own defaults make no model
    "glm4v": {"text_config": {"rope_parameters": GLM}},
    "glm46v": {"text_config": {"model_type": "glm4v_text", "rope_parameters": GLM}},
    "glm_image": {"text_config": {"rope_parameters": GLM}},
    "glm4v_moe": {"text_config": {"head_dim": 128}},
    "qwen4_exp": {"text_config": INDEXER},
    "cohere_compass": {"text_config": {"rope_parameters": COMPASS}},
    "qwen3_omni_moe_thinker": {"text_config": {"head_dim": 128}},
}


def assembled(model_type: str, does: str, parts: dict[str, str], model_class: str | None = None) -> tuple[Proof, Any]:
    """The model, built without storage, holds for each part a module whose configuration is of the family that posenc
    names: part of the spec -> end of the module's path."""
    result = Proof(model_type, does)
    config = CONFIG_MAPPING[model_type](**SAID.get(model_type, {}))
    spec = spec_of(config, defaults=True)
    with torch.device("meta"):
        if model_class is None:
            model = transformers.AutoModel.from_config(config)
        else:
            model = getattr(modeling(model_type), model_class)(config)
    for part, ending in parts.items():
        module, family = module_named(model, ending), spec[part].family
        result.equal(f"{part} is {family}", module.config.model_type, family)
        built = type(module).__module__.split(".")[-2]
        assert built in (folder_of(module.config), folder_of(config)), f"{model_type}: {part} is built by {built}"
    missing = {part.part for part in spec.parts} - set(parts)
    assert not missing, f"{model_type}: parts {missing} are not looked at"
    return result, config


IMAGE, CLIP = (1, 4, 6), (3, 4, 4)


def counted(groups: list[Any], merge: int, interval: float = 1.0, temporal: int = 1) -> Tensor:
    """By the sentence in `coordinates`: a number is so many words, a grid an image or clip; [3, t]."""
    places: list[tuple[int, int, int]] = []
    start = 0
    for group in groups:
        if isinstance(group, int):
            places += [(start + k,) * 3 for k in range(group)]
            start += group
        else:
            frames, height, width = group
            merging = temporal if frames > 1 else 1
            places += [
                (start + int(frame * (interval if frames > 1 else 1)), start + row, start + column)
                for frame in range(frames // merging)
                for row in range(height // merge)
                for column in range(width // merge)
            ]
            start += max(height, width) // merge
    return torch.tensor(places).T


def coordinates(
    result: Proof, config: Any, model_class: str, *, split: bool, interval: float = 1.0, temporal: int = 1, **options: Any
) -> None:
    """The family's own get_rope_index for words, an image, words, a clip, words; `split`: frame by frame, text between."""
    own = getattr(modeling(result.model_type), model_class)
    vision = SimpleNamespace(spatial_merge_size=2, tokens_per_second=4, temporal_merge_size=temporal)
    asked = SimpleNamespace(
        config=SimpleNamespace(vision_config=vision),
        get_vision_position_ids=lambda *a, **k: own.get_vision_position_ids(None, *a, **k),
    )
    clip: list[Any] = [(1, *CLIP[1:]), 1, (1, *CLIP[1:]), 1, (1, *CLIP[1:])] if split else [CLIP]
    groups: list[Any] = [3, IMAGE, 2, *clip, 4]
    if temporal > 1:
        groups, clip = [3, IMAGE, 2, (4, 4, 4), 4], [(4, 4, 4)]
    expected = counted(groups, 2, interval, temporal)
    kinds: list[int] = []
    for group in groups:
        if isinstance(group, int):
            kinds += [0] * group
        else:
            frames = group[0] // (temporal if group[0] > 1 else 1)
            kinds += [1 if group == IMAGE else 2] * (frames * group[1] * group[2] // 4)
    grids = {"image_grid_thw": torch.tensor([IMAGE]), "video_grid_thw": torch.tensor([(4, 4, 4) if temporal > 1 else CLIP])}
    ids, delta = own.get_rope_index(
        asked, torch.zeros(1, len(kinds), dtype=torch.long), torch.tensor([kinds]), **grids, **options
    )
    result.equal("(time, row, column) of words, an image, words, a clip, words", ids[:, 0], expected)
    result.equal("how far the next token is from its count", int(delta), int(expected.max()) + 1 - len(kinds))


FRAMES = {
    "qwen3_vl": "Qwen3VLModel",
    "qwen3_vl_moe": "Qwen3VLMoeModel",
    "qwen3_5": "Qwen3_5Model",
    "qwen3_5_moe": "Qwen3_5MoeModel",
    "qwen4_exp": "Qwen4ExpModel",
    "cohere_compass": "CohereCompassModel",
    "cosmos3_edge": "Cosmos3EdgeModel",
    "cosmos3_omni": "Cosmos3OmniModel",
    "glm4v": "Glm4vModel",
    "glm4v_moe": "Glm4vMoeModel",
    "glm46v": "Glm46VModel",
    "glm_ocr": "GlmOcrModel",
}

CLIPS = {"qwen2_vl": "Qwen2VLModel", "paddleocr_vl": "PaddleOCRVLModel"}


@proof(*FRAMES, *CLIPS)
def qwen3_vl(model_type: str) -> Proof:
    split = model_type in FRAMES
    does = "text by M-RoPE, every frame an image" if split else "text by M-RoPE, a clip one image with time"
    result, config = assembled(model_type, does, {"text_config": "language_model", "vision_config": "visual"})
    coordinates(result, config, (FRAMES | CLIPS)[model_type], split=split)
    return result


@proof("ernie4_5_vl_moe")
def ernie4_5_vl_moe(model_type: str) -> Proof:
    result, config = assembled(
        model_type,
        "text by M-RoPE, two frames of a clip counted as one",
        {"text_config": "language_model", "vision_config": "vision_tower"},
    )
    coordinates(result, config, "Ernie4_5_VLMoeModel", split=False, temporal=2)
    return result


@proof("glm_image")
def glm_image(model_type: str) -> Proof:
    result, _ = assembled(
        model_type,
        "text by M-RoPE; images to be drawn have places beforehand",
        {"text_config": "language_model", "vision_config": "visual", "vq_config": "vqmodel"},
    )
    own = modeling(model_type).GlmImageModel
    asked = SimpleNamespace(
        config=SimpleNamespace(image_start_token_id=7, image_end_token_id=8),
        get_vision_position_ids=lambda *a, **k: own.get_vision_position_ids(None, *a, **k),
    )
    words = [1, 1, 7, *[5] * 6, 8, 1, 7]  # an image of 2 × 3, then the start of one that is still to be drawn
    ids, _ = own.get_rope_index(asked, torch.tensor([words]), torch.tensor([[1, 2, 3], [1, 2, 2]]))
    result.equal("(time, row, column) of words, an image, words", ids[:, 0], counted([3, (1, 2, 3), 3], 1))
    later = counted([9, (1, 2, 2), 1], 1)[:, 9:]
    result.equal("those of the image to come", asked._cached_decode_position_ids[0], later)
    return result


TOWERS = {
    "video_llama_3": "vision_model",
    "mllama": "vision_model",
    "granite_docling": "vision_model",
    "minimax_m3_vl": "vision_tower",
    "mistral3": "vision_tower",
    "minicpmv4_6": "vision_tower",
    "minicpmv4_7": "vision_tower",
    "minicpm_ocr": "vision_tower",
    "kimi_k25": "vision_tower",
}


@proof(*TOWERS)
def video_llama_3(model_type: str) -> Proof:
    text = "text_model" if model_type == "granite_docling" else "language_model"
    parts = {"text_config": text, "vision_config": TOWERS[model_type]}
    return assembled(model_type, "a text model that counts patches like words, and a vision tower", parts)[0]


@proof("siglip", "siglip2", "aimv2")
def siglip(model_type: str) -> Proof:
    parts = {"text_config": "text_model", "vision_config": "vision_model"}
    return assembled(model_type, "a text and an image tower, each with its own positions", parts)[0]


@proof("shieldgemma2")
def shieldgemma2(model_type: str) -> Proof:
    parts = {"text_config": "language_model", "vision_config": "vision_tower"}
    return assembled(model_type, "Gemma 3 with SigLIP", parts, "ShieldGemma2ForImageClassification")[0]


@proof("colqwen2")
def colqwen2(model_type: str) -> Proof:
    return assembled(model_type, "Qwen2-VL under a projection", {"vlm_config": "vlm"}, "ColQwen2ForRetrieval")[0]


GEMMA: dict[str, Any] = {"num_experts": 4, "top_k_experts": 2, "sliding_window": 4, "head_dim": 16, "global_head_dim": 24}

BOTH = {"text_config": "language_model", "vision_config": "vision_tower"}

INSIDE = {"text_config": "TextModel", "vision_config": "VisionModel"}

MADE: dict[str, tuple[str, dict[str, str]]] = {
    "llama4": ("Llama 4's text model and its vision encoder, with separate positions", INSIDE),
    "muse_glimmer": ("a rotary text model and a windowed encoder", INSIDE),
    "muse_spark": (
        "a rotary text model, a windowed encoder, and convolutions over audio",
        {"text_config": "TextModel", "vision_config": "VisionModel", "audio_config": "AudioModel"},
    ),
    "step3p7": ("a rotary text model and an encoder, with separate positions", INSIDE),
    "inkling2": ("a bank of distance profiles in the text model, and a rotary encoder", BOTH),
    "inkling_mm_model": (
        "a bank of distance profiles in the text model; images and audio come without positions",
        {"text_config": "TextModel", "vision_config": "VisionModel", "audio_config": "AudioModel"},
    ),
    "nemotron3_diarization": ("a rotary audio encoder", {"audio_config": "audio_tower"}),
    "diffusion_gemma": ("Gemma 4's text model twice, as encoder and decoder, and its vision encoder", INSIDE),
}


@proof(*MADE)
def llama4(model_type: str) -> Proof:
    does, parts = MADE[model_type]
    config = None
    if model_type == "diffusion_gemma":  # its class gives no number of experts
        config = config_of(model_type, text_config=config_of("diffusion_gemma_text", **GEMMA).to_dict())
    return made_of(model_type, does, parts, config)
