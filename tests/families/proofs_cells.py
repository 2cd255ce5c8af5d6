"""TAPAS: positions within cells, beyond the table's end too."""

from __future__ import annotations

import torch

import posenc
from families.harness import Proof, build, config_of, proof, spec_of, tokens
from families.silenced import added_by


@proof("tapas")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "learned table added to the embeddings, counted anew in every cell")
    column = torch.tensor([[0, 0, 0, 0, 0, 0, 1, 1, 2, 1, 1, 2, 2, 0], [0, 0, 1, 1, 1, 2, 2, 1, 1, 2, 2, 0, 0, 0]])
    row = torch.tensor([[0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 0], [0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 0, 0, 0]])
    kinds = torch.zeros(2, 14, 7, dtype=torch.long)
    kinds[..., 1], kinds[..., 2] = column, row
    for anew in (True, False):
        config = config_of(model_type, max_position_embeddings=5 if anew else 40, reset_position_index_per_cell=anew)
        model, spec = build(config, attention=None), spec_of(config)
        at = posenc.Positions.within(column + 256 * row) if anew else posenc.Positions.arange(2, 14)
        added_by(result, spec, model, "embeddings.position_embeddings", "embeddings.LayerNorm", at,
                 {"input_ids": tokens((2, 14)), "token_type_ids": kinds},
                 others=tuple(f"embeddings.token_type_embeddings_{n}" for n in range(7)))  # fmt: skip
    return result
