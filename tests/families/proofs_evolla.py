"""posenc.configs.families.evolla, compared with the models' own code in transformers."""

from __future__ import annotations

import torch

import posenc
from families.harness import IDS, Proof, build, calls, config_of, proof, same_rotation, spec_of, tokens
from families.turning import LINEAR, LLAMA3, YARN, also, by_kind, turned
from posenc.configs.weights import with_weights


@proof("evolla", "EvollaModel")
def evolla(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs, in the text model and in the protein encoder")
    protein = {
        "hidden_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 16,
        "vocab_size": 32,
        "rope_theta": 500.0,
        "pad_token_id": 1,
        "mask_token_id": 31,
    }
    sizes = {
        "num_hidden_layers": 2,
        "aligner_num_add_layers": 1,
        "resampler_depth": 1,
        "resampler_heads": 2,
        "resampler_dim_head": 8,
        "resampler_num_latents": 3,
        "protein_encoder_config": protein,
    }
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
