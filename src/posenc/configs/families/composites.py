"""Models made only of other models: each part is read by its own reader, and nothing is added."""

from __future__ import annotations

from posenc.configs.coordinates import EACH_PART, LIKE_TEXT, SEQUENCE, VIDEO_FRAMES, VIDEO_MERGED, three_axes
from posenc.configs.family import family
from posenc.configs.keys import Keys
from posenc.configs.own_parts import own_parts
from posenc.configs.say import say
from posenc.configs.spec import PositionSpec
from posenc.support.languages import clauses

DRAWN = clauses(three_axes(say("patches")), say("images to generate follow, one grid each, the last one first"))
# Model types, the sections of their file, how tokens are numbered.
TABLE = (
    ("apertus1p5", "text_config vision_config audio_config", LIKE_TEXT),
    ("audioflamingo3 glmasr moss_transcribe_diarize omniasr qwen2_audio voxtral", "audio_config text_config", LIKE_TEXT),
    ("canary", "encoder_config decoder_config", SEQUENCE),
    ("chmv2 depth_anything pp_ocrv6_tiny_rec prompt_depth_anything slanet", "backbone_config", EACH_PART),
    ("clap pe_audio", "text_config audio_config", EACH_PART),
    ("colmodernvbert colpali colqwen2", "vlm_config", EACH_PART),
    ("cosmos3_edge glm46v glm4v glm4v_moe glm_ocr glmga", "text_config vision_config", VIDEO_FRAMES),
    ("diffusion_gemma inkling2 inkling2_loop llama4 mistral_large4", "text_config vision_config", SEQUENCE),
    ("edgetam sam2 sam3_tracker", "vision_config prompt_encoder_config mask_decoder_config", EACH_PART),
    ("emu3", "text_config vq_config", LIKE_TEXT),
    ("ernie4_5_vl_moe", "text_config vision_config", VIDEO_MERGED),
    ("fastspeech2_conformer_with_hifigan", "model_config vocoder_config", SEQUENCE),
    ("gemma3n", "text_config vision_config audio_config", LIKE_TEXT),
    ("glm_image", "text_config vision_config vq_config", DRAWN),
    ("granite_docling minicpm_ocr minicpmv4_6 minicpmv4_7", "text_config vision_config", LIKE_TEXT),
    ("granite_speech5_ctc lasr_ctc parakeet_ctc", "encoder_config", SEQUENCE),
    ("higgs_audio_v2_tokenizer xcodec", "acoustic_model_config semantic_model_config", SEQUENCE),
    ("inkling_mm_model muse_spark", "text_config vision_config audio_config", SEQUENCE),
    ("jev", "text_config", EACH_PART),
    ("minimax_m3_vl mistral3 mllama shieldgemma2 video_llama_3", "text_config vision_config", LIKE_TEXT),
    ("modernvbert muse_glimmer ultravbert", "text_config vision_config", SEQUENCE),
    ("musicgen musicgen_melody", "text_encoder audio_encoder decoder", SEQUENCE),
    ("nemotron3_5_asr nemotron_asr_streaming parakeet_rnnt parakeet_tdt", "encoder_config", SEQUENCE),
    ("nemotron3_5_transcribe_audio", "asr_config diarization_config", SEQUENCE),  # its sinusoids number speakers
    ("nemotron3_diarization omniasr_ctc", "audio_config", SEQUENCE),
    ("pe_audio_video", "text_config audio_video_config", EACH_PART),
    ("pe_video", "text_config video_config", EACH_PART),
    (
        "sam3 sam3_lite_text",
        "vision_config text_config geometry_encoder_config detr_encoder_config detr_decoder_config mask_decoder_config",
        EACH_PART,
    ),
    ("sam3_video", "detector_config tracker_config", EACH_PART),
    ("siglip siglip2 aimv2", "text_config vision_config", EACH_PART),
    ("slanext", "vision_config", SEQUENCE),
    ("tipsv2_dpt upernet vitmatte vitpose", "backbone_config", EACH_PART),
    ("vibevoice", "audio_config semantic_model_config text_config diffusion_head_config", LIKE_TEXT),
    ("vibevoice_asr", "acoustic_tokenizer_encoder_config semantic_tokenizer_encoder_config text_config", LIKE_TEXT),
    ("videoprism", "vision_config text_config", SEQUENCE),
    ("voxtral_realtime", "audio_config text_config", SEQUENCE),
)
SECTIONS = {name: (sections.split(), where) for names, sections, where in TABLE for name in names.split()}


@family(*SECTIONS)
def composite(keys: Keys) -> PositionSpec:
    sections, coordinates = SECTIONS[keys.family]
    return PositionSpec(keys.family, parts=own_parts(keys, *sections), coordinates=coordinates)
