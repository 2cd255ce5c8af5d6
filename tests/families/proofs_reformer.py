"""posenc.configs.families.reformer, compared with the models' own code in transformers."""

from __future__ import annotations

import torch

import posenc
from families.harness import Proof, build, config_of, proof, spec_of, tokens
from families.silenced import added_by


@proof("reformer")
def reformer(model_type: str) -> Proof:
    result = Proof(model_type, "axial table: row and column of the position concatenated; or a plain table")
    for axial in (True, False):
        config = config_of(
            model_type,
            attn_layers=["local", "lsh", "local"],
            axial_pos_shape=(5, 8),
            axial_pos_embds=axial,
            axial_pos_embds_dim=(24, 40),
            max_position_embeddings=40,
            local_attn_chunk_length=4,
            lsh_attn_chunk_length=4,
            num_buckets=4,
            attention_head_size=16,
            feed_forward_size=16,
            num_hidden_layers=None,
            hash_seed=1,
        )
        model, spec = build(config, attention=None), spec_of(config)
        with torch.no_grad():
            for parameter in model.embeddings.position_embeddings.parameters():
                parameter.normal_()
        ids = torch.stack([torch.arange(12), torch.arange(28, 40)])
        inputs = {"input_ids": tokens((2, 12)), "position_ids": ids}
        added_by(result, spec, model, "embeddings.position_embeddings", "encoder", posenc.Positions.at(ids), inputs)
        result.equal("kinds of layers", [layer.kind for layer in spec.layers], list(config.attn_layers))
        names = [type(layer.attention.self_attention).__name__ for layer in model.encoder.layers]
        result.equal("kinds of layers", names, ["LocalSelfAttention", "LSHSelfAttention", "LocalSelfAttention"])
    return result
