"""posenc.configs.families.luke, compared with the models' own code in transformers."""

from __future__ import annotations

import torch

import posenc
from families.adding import entering
from families.harness import Proof, build, config_of, proof, spec_of
from families.proofs_roberta import TEXT
from families.silenced import Holding, added_by
from posenc.configs.weights import with_weights


@proof("luke")
def luke(model_type: str) -> Proof:
    result = Proof(model_type, "RoBERTa's table for words; for entities the mean of the rows of their mentions")
    config = config_of(
        model_type,
        max_position_embeddings=40,
        pad_token_id=1,
        max_mention_length=4,
        entity_vocab_size=8,
        entity_emb_size=16,
    )
    model, spec = build(config, attention=None), spec_of(config)
    at = posenc.Positions.from_mask(TEXT != 1)
    added_by(
        result,
        spec,
        model,
        "embeddings.position_embeddings",
        "embeddings.LayerNorm",
        at,
        {"input_ids": TEXT},
        others=("embeddings.token_type_embeddings",),
    )
    places = torch.tensor([[[3, 4, -1, -1], [39, -1, -1, -1], [0, 1, 2, 3], [-1, -1, -1, -1]]]).expand(3, -1, -1)
    with torch.no_grad():
        entities, ids = model.entity_embeddings, torch.tensor([[2, 3, 4, 0]]).expand(3, -1)
        entities.token_type_embeddings.weight.zero_()
        whole = entering(Holding(entities=entities), "entities.LayerNorm", {"entity_ids": ids, "position_ids": places})
        alone = entities.entity_embedding_dense(entities.entity_embeddings(ids))
        got = with_weights(spec["entities"], 0, model.state_dict()).embed(alone, posenc.Positions.at(places))
    result.close("mentions of entities, one to four and none", got, whole)
    return result
