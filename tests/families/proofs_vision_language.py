"""Models put together: which families their parts are, and the coordinates that they give to text, images and clips."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
import transformers
from torch import Tensor
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from families.harness import (
    IDS,
    Proof,
    build,
    calls,
    config_of,
    folder_of,
    frequencies,
    modeling,
    module_named,
    proof,
    rotary,
    spec_of,
)
from posenc.dialects import read_config

GLM = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [8, 12, 12], "partial_rotary_factor": 0.5}
INDEXER = {"indexer_n_heads": 2, "indexer_kv_heads": 1, "indexer_head_dim": 256, "indexer_budget": 4,
           "indexer_compress_ratio": 1}  # fmt: skip
COMPASS = {"full_attention": {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [24, 20, 20]}}
SAID: dict[str, dict[str, Any]] = {  # where the classes' own defaults make no model
    "glm4v": {"text_config": {"rope_parameters": GLM}},
    "glm46v": {"text_config": {"model_type": "glm4v_text", "rope_parameters": GLM}},
    "glm_image": {"text_config": {"rope_parameters": GLM}}, "glm4v_moe": {"text_config": {"head_dim": 128}},
    "qwen4_exp": {"text_config": INDEXER}, "cohere_compass": {"text_config": {"rope_parameters": COMPASS}},
    "qwen3_omni_moe_thinker": {"text_config": {"head_dim": 128}},
}  # fmt: skip


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


# --- coordinates ------------------------------------------------------------------------------------------------------

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


def coordinates(result: Proof, config: Any, model_class: str, *, split: bool, interval: float = 1.0, temporal: int = 1,
                **options: Any) -> None:  # fmt: skip
    """The family's own get_rope_index for words, an image, words, a clip, words; `split`: frame by frame, text between."""
    own = getattr(modeling(result.model_type), model_class)
    vision = SimpleNamespace(spatial_merge_size=2, tokens_per_second=4, temporal_merge_size=temporal)
    asked = SimpleNamespace(config=SimpleNamespace(vision_config=vision),
                            get_vision_position_ids=lambda *a, **k: own.get_vision_position_ids(None, *a, **k))  # fmt: skip
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


FRAMES = {"qwen3_vl": "Qwen3VLModel", "qwen3_vl_moe": "Qwen3VLMoeModel", "qwen3_5": "Qwen3_5Model",
          "qwen3_5_moe": "Qwen3_5MoeModel", "qwen4_exp": "Qwen4ExpModel", "cohere_compass": "CohereCompassModel",
          "cosmos3_edge": "Cosmos3EdgeModel", "cosmos3_omni": "Cosmos3OmniModel", "glm4v": "Glm4vModel",
          "glm4v_moe": "Glm4vMoeModel", "glm46v": "Glm46VModel", "glm_ocr": "GlmOcrModel"}  # fmt: skip
CLIPS = {"qwen2_vl": "Qwen2VLModel", "paddleocr_vl": "PaddleOCRVLModel"}


@proof(*FRAMES, *CLIPS)
def _(model_type: str) -> Proof:
    split = model_type in FRAMES
    does = "text by M-RoPE, every frame an image" if split else "text by M-RoPE, a clip one image with time"
    result, config = assembled(model_type, does, {"text_config": "language_model", "vision_config": "visual"})
    coordinates(result, config, (FRAMES | CLIPS)[model_type], split=split)
    return result


@proof("qwen2_5_vl")
def _(model_type: str) -> Proof:
    result, config = assembled(model_type, "text by M-RoPE, a clip one image with time in seconds",
                               {"text_config": "language_model", "vision_config": "visual"})  # fmt: skip
    coordinates(result, config, "Qwen2_5_VLModel", split=False, interval=4 * 0.6, second_per_grid_ts=torch.tensor([0.6]))
    return result


@proof("ernie4_5_vl_moe")
def _(model_type: str) -> Proof:
    result, config = assembled(model_type, "text by M-RoPE, two frames of a clip counted as one",
                               {"text_config": "language_model", "vision_config": "vision_tower"})  # fmt: skip
    coordinates(result, config, "Ernie4_5_VLMoeModel", split=False, temporal=2)
    return result


@proof("glm_image")
def _(model_type: str) -> Proof:
    result, _ = assembled(model_type, "text by M-RoPE; images to be drawn have places beforehand",
                          {"text_config": "language_model", "vision_config": "visual", "vq_config": "vqmodel"})  # fmt: skip
    own = modeling(model_type).GlmImageModel
    asked = SimpleNamespace(config=SimpleNamespace(image_start_token_id=7, image_end_token_id=8),
                            get_vision_position_ids=lambda *a, **k: own.get_vision_position_ids(None, *a, **k))  # fmt: skip
    words = [1, 1, 7, *[5] * 6, 8, 1, 7]  # an image of 2 × 3, then the start of one that is still to be drawn
    ids, _ = own.get_rope_index(asked, torch.tensor([words]), torch.tensor([[1, 2, 3], [1, 2, 2]]))
    result.equal("(time, row, column) of words, an image, words", ids[:, 0], counted([3, (1, 2, 3), 3], 1))
    later = counted([9, (1, 2, 2), 1], 1)[:, 9:]
    result.equal("those of the image to come", asked._cached_decode_position_ids[0], later)
    return result


# --- one coordinate ---------------------------------------------------------------------------------------------------

TOWERS = {"video_llama_3": "vision_model", "mllama": "vision_model", "granite_docling": "vision_model",
          "minimax_m3_vl": "vision_tower", "mistral3": "vision_tower", "minicpmv4_6": "vision_tower",
          "minicpmv4_7": "vision_tower", "minicpm_ocr": "vision_tower", "kimi_k25": "vision_tower"}  # fmt: skip


@proof(*TOWERS)
def _(model_type: str) -> Proof:
    text = "text_model" if model_type == "granite_docling" else "language_model"
    parts = {"text_config": text, "vision_config": TOWERS[model_type]}
    return assembled(model_type, "a text model that counts patches like words, and a vision tower", parts)[0]


@proof("molmo2")
def _(model_type: str) -> Proof:
    parts = {"text_config": "language_model", "vision_config": "vision_tower", "adapter_config": "multi_modal_projector"}
    return assembled(model_type, "a text model that counts patches like words, a vision tower, a pooling", parts)[0]


@proof("siglip", "siglip2", "aimv2")
def _(model_type: str) -> Proof:
    parts = {"text_config": "text_model", "vision_config": "vision_model"}
    return assembled(model_type, "a text and an image tower, each with its own positions", parts)[0]


@proof("shieldgemma2")
def _(model_type: str) -> Proof:
    parts = {"text_config": "language_model", "vision_config": "vision_tower"}
    return assembled(model_type, "Gemma 3 with SigLIP", parts, "ShieldGemma2ForImageClassification")[0]


@proof("colqwen2")
def _(model_type: str) -> Proof:
    return assembled(model_type, "Qwen2-VL under a projection", {"vlm_config": "vlm"}, "ColQwen2ForRetrieval")[0]


@proof("qwen3_asr")
def _(model_type: str) -> Proof:
    parts = {"text_config": "language_model", "audio_config": "audio_tower"}
    return assembled(model_type, "a text model that counts frames of sound like words, and an encoder of sound", parts)[0]


# --- speech -----------------------------------------------------------------------------------------------------------


@proof("qwen2_5_omni_thinker", "qwen3_omni_moe_thinker")
def _(model_type: str) -> Proof:
    parts = {"text_config": "language_model", "vision_config": "visual", "audio_config": "audio_tower"}
    result, _ = assembled(model_type, "text by M-RoPE beside towers for images and sound", parts)
    name = ("Qwen2_5Omni" if "2_5" in model_type else "Qwen3OmniMoe") + "PreTrainedModelForConditionalGeneration"
    own = getattr(modeling(model_type), name)
    said = SimpleNamespace(image_token_id=7, video_token_id=8, audio_token_id=9, vision_start_token_id=5,
                           audio_start_token_id=6, position_id_per_seconds=25, seconds_per_chunk=2)  # fmt: skip
    asked = SimpleNamespace(config=said, spatial_merge_size=2,
                            get_llm_pos_ids_for_vision=lambda *a: own.get_llm_pos_ids_for_vision(None, *a))  # fmt: skip
    image, clip = (1, 4, 6), (3, 4, 4)  # with a token before and after each, which counts as a word
    words = [1, 1, 5, *[7] * 6, 4, 1, 5, *[8] * 12, 4, 1]
    ids, _ = own.get_rope_index(
        asked, torch.tensor([words]), torch.tensor([image]), torch.tensor([clip]), torch.ones(1, len(words)),
        second_per_grids=torch.tensor([0.5]),
    )  # fmt: skip
    expected: list[tuple[float, ...]] = [(k, k, k) for k in range(3)] + [
        (3, 3 + y, 3 + x) for y in range(2) for x in range(3)
    ]
    start: float = 6  # after the largest coordinate of the image, 3 + 2
    expected += [(start + k,) * 3 for k in range(3)]
    start += 3
    times = [frame * 0.5 * 25 if "qwen3" in model_type else int(frame * 0.5 * 25) for frame in range(3)]
    expected += [(start + time, start + y, start + x) for time in times for y in range(2) for x in range(2)]
    start += times[-1] + 1
    expected += [(start + k,) * 3 for k in range(2)]
    result.equal("(time, row, column) of words, an image, words, a clip, words", ids[:, 0].double(),
                 torch.tensor(expected, dtype=torch.float64).T)  # fmt: skip
    return result


@proof("qwen2_5_omni_token2wav")
def _(model_type: str) -> Proof:
    parts = {"dit_config": "code2wav_dit_model", "bigvgan_config": "code2wav_bigvgan_model"}
    return assembled(
        model_type, "codes to sound: a diffusion transformer and convolutions", parts, "Qwen2_5OmniToken2WavModel"
    )[0]


@proof("qwen2_5_omni")
def _(model_type: str) -> Proof:
    parts = {"thinker_config": "thinker", "talker_config": "talker", "token2wav_config": "token2wav"}
    return assembled(model_type, "a thinker, a talker and a speech decoder", parts, "Qwen2_5OmniForConditionalGeneration")[
        0
    ]


@proof("qwen3_omni_moe")
def _(model_type: str) -> Proof:
    """Its talker and decoder have no model type: the decoder is compared here, the talker's parts elsewhere."""
    result = Proof(model_type, "a thinker, a talker and a speech decoder (RoPE in windows)")
    rope = {"rope_type": "default", "rope_theta": 1e4}
    sizes = {"hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 4, "num_hidden_layers": 2,
             "sliding_window": 4, "rope_parameters": rope}  # fmt: skip
    talker_config = {"text_config": {"shared_expert_intermediate_size": 16}, "spatial_merge_size": 2}
    config = CONFIG_MAPPING[model_type](thinker_config={"text_config": {"head_dim": 128}}, talker_config=talker_config,
                                        code2wav_config=sizes)  # fmt: skip
    spec = read_config(config.to_dict(), defaults=True)
    assert [part.part for part in spec.parts] == ["thinker_config", "talker_config", "code2wav_config"]
    inner = config.code2wav_config
    model, decoder = build(inner, "Qwen3OmniMoeCode2WavTransformerModel"), spec["code2wav_config"]
    embeddings = torch.randn(*IDS.shape, 64, generator=torch.Generator().manual_seed(3))
    rotary(result, inner, decoder, model, inputs={"inputs_embeds": embeddings})
    frequencies(result, module_named(model, "rotary_emb"), decoder)
    talker = spec["talker_config"]
    with torch.device("meta"):
        whole = modeling(model_type).Qwen3OmniMoeForConditionalGeneration(config)
    for part, ending in (("text_config", "talker.model"), ("code_predictor_config", "talker.code_predictor")):
        result.equal(f"talker: {part}", module_named(whole, ending).config.model_type, talker[part].family)
    result.equal("thinker", module_named(whole, "thinker").config.model_type, spec["thinker_config"].family)
    return result


@proof("molmo2_adapter")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "no positions: pools a set of patches")
    config = config_of(model_type, vision_feature_layer=[0], head_dim=16, hidden_size=64, text_hidden_size=32)
    model = build(config, "Molmo2Adapter")
    patches, chosen = torch.randn(1, 12, 64), torch.tensor([[0, 1, 4, 5], [2, 3, 6, 7]])
    first, other = (calls(model, image_features=patches, pooled_patches_idx=order, fixed=False)
                    for order in (chosen, chosen[..., [2, 0, 3, 1]]))  # fmt: skip
    assert len(first) == len(spec_of(config).layers)
    result.equal("keys in another order are the same keys", first[0].k[:, :, [2, 0, 3, 1]], other[0].k)
    result.close("queries do not change with order", other[0].q, first[0].q, 8.0)  # a mean, summed in another order
    return result


NO_POSITIONS = {
    "glm_image_vqmodel": "a codebook between convolutions",
    "qwen2_5_omni_bigvgan": "transposed convolutions",
    "sapiens2_head": "convolutions",
}
