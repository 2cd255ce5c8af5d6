"""RoBERTa's numbering: left, right and inner padding, none."""

from __future__ import annotations

import torch

import posenc
from families.adding import added
from families.harness import Proof, build, config_of, proof, spec_of

PADDING = 1
TEXT = torch.tensor([[5, 6, 7, 8, 9, 10], [PADDING, PADDING, 7, 8, 9, 10], [5, 6, 7, 8, PADDING, PADDING]])
AFTER = {"xlm-roberta-xl": "encoder.layer.0"}


@proof("roberta", "xlm-roberta", "camembert", "data2vec-text", "ibert", "roberta-prelayernorm", "xlm-roberta-xl", "xmod",
       "longformer")  # fmt: skip
def _(model_type: str) -> Proof:
    result = Proof(
        model_type, "learned table added to the embeddings; rows count what is not padding, from pad_token_id + 1"
    )
    text = TEXT if model_type != "longformer" else torch.nn.functional.pad(TEXT, (0, 2), value=PADDING)  # whole windows
    sizes = {"attention_window": [4] * 4} if model_type == "longformer" else {}
    config = config_of(model_type, max_position_embeddings=40, pad_token_id=PADDING, **sizes)
    if model_type == "xmod":
        config.languages, config.default_language = ["en_XX"], "en_XX"
    model, spec = build(config, attention=None), spec_of(config)
    after = AFTER.get(model_type, "embeddings.LayerNorm")
    added(result, spec, model, after, posenc.Positions.from_mask(text != PADDING), {"input_ids": text},
          what="embeddings with positions, padded left and right",
          silent=("embeddings.token_type_embeddings.weight",))  # fmt: skip
    return result
