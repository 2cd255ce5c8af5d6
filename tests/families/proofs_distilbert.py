"""posenc.configs.families.distilbert, compared with the models' own code in transformers."""

from __future__ import annotations

import posenc
from families.harness import Proof, at_of, build, config_of, proof, spec_of, tokens
from families.proofs_marian import IDS
from families.silenced import added_by


@proof("distilbert", "xlm", "flaubert")
def distilbert(model_type: str) -> Proof:
    result = Proof(model_type, "learned table, or sinusoids, added to the embeddings")
    name, after, flag, width = {
        "distilbert": ("embeddings.position_embeddings", "embeddings.LayerNorm", "sinusoidal_pos_embds", "dim")
    }.get(model_type, ("position_embeddings", "layer_norm_emb", "sinusoidal_embeddings", "emb_dim"))
    for sines in (False, True):
        config = config_of(model_type, max_position_embeddings=40, **{flag: sines, width: 64, "n_layers": 2, "n_heads": 4})
        model, spec = build(config, attention=None), spec_of(config)
        text = tokens(IDS.shape)
        at, inputs = posenc.Positions.arange(*IDS.shape), {"input_ids": text}
        if model_type != "distilbert":
            at, inputs = at_of(IDS), inputs | {"position_ids": IDS}
        added_by(result, spec, model, name, after, at, inputs)
    return result
