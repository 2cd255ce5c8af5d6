"""Text models with parts for pictures and sound."""

from __future__ import annotations

import torch
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

import posenc
from families.harness import (
    IDS,
    Proof,
    build,
    calls,
    config_of,
    made_of,
    module_named,
    proof,
    same_rotation,
    spec_of,
    tokens,
)  # fmt: skip
from families.turning import LINEAR, LLAMA3, SEEN, YARN, also, by_kind, hidden, turned
from posenc.dialects.weights import with_weights

NO_POSITIONS = {
    "chameleon_vqgan": "convolutions; attention among their outputs has no positions",
    "emu3_vqgan": "convolutions over frames, rows and columns; attention among their outputs has no positions",
    "idefics_perciever": "learned vectors ask image features, which have positions already",
}
NOT_PROVEN = {"gemma3n_vision": "timm builds this tower; transformers holds none of its code"}


@proof("chameleon")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, halves paired, the whole head turns, all layers alike; images are tokens")
    codes = {"base_channels": 32, "latent_channels": 32, "embed_dim": 32, "num_embeddings": 4, "channel_multiplier": [1],
             "num_res_blocks": 1, "resolution": 8}  # fmt: skip
    sizes = {"num_hidden_layers": 2, "vq_config": codes, "vocabulary_map": {"<image>": 3}}
    model = turned(result, rope_parameters=YARN, **sizes)
    for parameters in (None, LINEAR, LLAMA3):
        also(result, model, rope_parameters=parameters, **sizes)
    return result


@proof("idefics")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, halves paired, the whole head turns; none towards images")
    vision = {"embed_dim": 32, "image_size": 8, "patch_size": 2, "num_hidden_layers": 1, "num_attention_heads": 2,
              "intermediate_size": 16}  # fmt: skip
    for parameters in (YARN, LINEAR, None):
        config = config_of(model_type, num_hidden_layers=3, rope_parameters=parameters, vision_config=vision,
                           additional_vocab_size=0, cross_layer_interval=1)  # fmt: skip
        model, spec = build(config), spec_of(config)
        by_kind(result, module_named(model, "rotary_emb"), spec)
        passes = []
        for ids in (torch.zeros_like(IDS), IDS, None):  # None: counted from 0, for the masks
            shape = (2, SEEN) if ids is None else IDS.shape
            given = {"image_encoder_embeddings": torch.randn(2, 1, 4, 32), "image_attention_mask": torch.ones(*shape, 1)}
            found = calls(model, input_ids=tokens(shape), position_ids=ids, **given)
            passes.append([call for call in found if not call.module.is_cross_attention])
        assert len(passes[1]) == len(spec.layers) == 3
        same_rotation(result, spec, passes[0], passes[1], IDS, 2.0)
        hidden(result, spec, passes[2])
    return result


@proof("evolla", "EvollaModel")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, halves paired, in the text model and in the encoder of proteins")
    protein = {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16,
               "vocab_size": 32, "rope_theta": 500.0, "pad_token_id": 1, "mask_token_id": 31}  # fmt: skip
    sizes = {"num_hidden_layers": 2, "aligner_num_add_layers": 1, "resampler_depth": 1, "resampler_heads": 2,
             "resampler_dim_head": 8, "resampler_num_latents": 3, "protein_encoder_config": protein}  # fmt: skip
    model = turned(result, model_class="EvollaModel", rope_parameters=YARN, **sizes)
    for parameters in (None, LINEAR, LLAMA3):
        also(result, model, rope_parameters=parameters, **sizes)

    encoder, spec = model.protein_encoder.model, spec_of(config_of(model_type, **sizes))["protein_encoder_config"]
    own = encoder.rotary_embeddings.forward
    passes = []
    for ids in (torch.zeros_like(IDS), IDS):  # the encoder counts by itself: 0, 1, 2, …
        encoder.rotary_embeddings.forward = lambda x, position_ids, ids=ids: own(x, ids)
        passes.append(calls(encoder, input_ids=tokens(IDS.shape)))
    same_rotation(result, spec, *passes, IDS)
    by_kind(result, encoder.rotary_embeddings, spec)

    config = config_of(model_type, **{**sizes, "protein_encoder_config": protein | {"position_embedding_type": "absolute"}})
    encoder, spec = build(config, "EvollaModel").protein_encoder.model, spec_of(config)["protein_encoder_config"]
    ids = tokens((2, 6))
    ids[1, 4:] = 1
    kept = ids != 1
    with torch.no_grad():
        theirs = encoder.embeddings(input_ids=ids, attention_mask=kept)
        text = encoder.embeddings.word_embeddings(ids) * (1 - 0.15 * 0.8)
        at = posenc.Positions.from_mask(kept)
        ours = with_weights(spec, 0, encoder.state_dict()).embed(text, at) * kept[..., None]
        result.close("embeddings of the table, padding among them", ours, theirs)
    return result


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
def _(model_type: str) -> Proof:
    config = CONFIG_MAPPING[model_type](**GIVEN.get(model_type, {}))
    if model_type == "t5gemma2_encoder":
        config = CONFIG_MAPPING["t5gemma2"]().encoder  # which gives it what it lacks by itself
    return made_of(
        model_type, "what its parts do; images and sound stand in the places of tokens", PARTS[model_type], config
    )
