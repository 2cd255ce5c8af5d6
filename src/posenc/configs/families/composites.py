"""Models made only of other models: the parts that the class has, each read by its own reader; nothing is added."""

from __future__ import annotations

from posenc.configs.coordinates import EACH_PART, LIKE_TEXT, SEQUENCE, VIDEO_FRAMES, VIDEO_MERGED, three_axes
from posenc.configs.family import family, parts
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.spec import PositionSpec
from posenc.support.languages import clauses

DRAWN = clauses(three_axes(say("patches")), say("images to generate follow, one grid each, the last one first"))
# How tokens are numbered -> model types. nemotron3_5_transcribe_audio's sinusoids number speakers.
COUNTED = {
    LIKE_TEXT: """
        apertus1p5 aria audioflamingo3 aya_vision blip-2 cohere2_vision deepseek_vl deepseek_vl_hybrid emu3
        fast_vlm gemma3n glmasr got_ocr2 granite_docling hyperclovax_vision_v2 idefics2 idefics3 instructblip
        instructblipvideo internvl janus kosmos-2 kosmos-2.5 lfm2_vl lfm3_vl lighton_ocr llava llava_next
        llava_next_video llava_onevision minicpm_ocr minicpmv4_6 minicpmv4_7 minimax_m3_vl mistral3 mllama
        moss_transcribe_diarize omniasr ovis2 perception_lm pp_chart2table qianfan_ocr qwen2_audio shieldgemma2
        smolvlm vibevoice vibevoice_asr video_llama_3 vipllava voxtral
    """,
    SEQUENCE: """
        canary diffusion_gemma fastspeech2_conformer_with_hifigan granite_speech5_ctc higgs_audio_v2_tokenizer
        inkling2 inkling2_loop inkling_mm_model lasr_ctc llama4 mistral_large4 modernvbert muse_glimmer
        muse_spark musicgen musicgen_melody nemotron3_5_asr nemotron3_5_transcribe_audio nemotron3_diarization
        nemotron_asr_streaming omniasr_ctc parakeet_ctc parakeet_rnnt parakeet_tdt sam sam_hq slanext step3p7
        ultravbert videoprism voxtral_realtime xcodec
    """,
    EACH_PART: """
        aimv2 chmv2 clap colmodernvbert colpali colqwen2 depth_anything edgetam jev pe_audio pe_audio_video
        pe_video pix2struct pp_ocrv6_tiny_rec prompt_depth_anything sam2 sam3 sam3_lite_text sam3_tracker
        sam3_video siglip siglip2 slanet tipsv2_dpt upernet vitmatte vitpose
    """,
    VIDEO_FRAMES: """
        cohere_compass cosmos3_edge cosmos3_omni glm46v glm4v glm4v_moe glm_ocr glmga qwen3_5 qwen3_5_moe
        qwen3_vl qwen3_vl_moe qwen4_exp
    """,
    VIDEO_MERGED: """
        ernie4_5_vl_moe
    """,
    DRAWN: """
        glm_image
    """,
}
WHERE = {name: where for where, names in COUNTED.items() for name in names.split()}


@family(*WHERE)
def composite(keys: Keys) -> PositionSpec:
    """The text model first, then the parts as the class has them."""
    names = sorted(keys.facts["parts"], key=lambda name: name != "text_config")
    return PositionSpec(keys.family, parts=parts(keys, *names), coordinates=WHERE[keys.family])
