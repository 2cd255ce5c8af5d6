"""LUKE's mentions, LXMERT's regions and BROS's boxes."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

import posenc
from families.adding import entering
from families.harness import Proof, build, config_of, proof, spec_of, tokens
from families.proofs_boxes import TEXT
from families.scores import bias_of
from families.silenced import Holding, added_by
from posenc.dialects.weights import with_weights


@proof("luke")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "RoBERTa's table for words; for entities the mean of the rows of their mentions")
    config = config_of(model_type, max_position_embeddings=40, pad_token_id=1, max_mention_length=4, entity_vocab_size=8,
                       entity_emb_size=16)  # fmt: skip
    model, spec = build(config, attention=None), spec_of(config)
    at = posenc.Positions.from_mask(TEXT != 1)
    added_by(result, spec, model, "embeddings.position_embeddings", "embeddings.LayerNorm", at, {"input_ids": TEXT},
             others=("embeddings.token_type_embeddings",))  # fmt: skip
    places = torch.tensor([[[3, 4, -1, -1], [39, -1, -1, -1], [0, 1, 2, 3], [-1, -1, -1, -1]]]).expand(3, -1, -1)
    with torch.no_grad():
        entities, ids = model.entity_embeddings, torch.tensor([[2, 3, 4, 0]]).expand(3, -1)
        entities.token_type_embeddings.weight.zero_()
        whole = entering(Holding(entities=entities), "entities.LayerNorm", {"entity_ids": ids, "position_ids": places})
        alone = entities.entity_embedding_dense(entities.entity_embeddings(ids))
        got = with_weights(spec["entities"], 0, model.state_dict()).embed(alone, posenc.Positions.at(places))
    result.close("mentions of entities, one to four and none", got, whole)
    return result


@proof("lxmert")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "learned table for words; boxes of regions through a linear layer and a norm")
    config = config_of(model_type, max_position_embeddings=40, l_layers=2, x_layers=1, r_layers=1, visual_feat_dim=12,
                       num_hidden_layers=None)  # fmt: skip
    model, spec = build(config, attention=None), spec_of(config)
    text, generator = tokens((2, 9)), torch.Generator().manual_seed(3)
    features, boxes = (torch.randn(2, 5, n, generator=generator) for n in (12, 4))
    inputs = {"input_ids": text, "token_type_ids": torch.zeros_like(text), "visual_feats": features, "visual_pos": boxes}
    at = posenc.Positions.arange(2, 9)
    added_by(result, spec["language"], model, "embeddings.position_embeddings", "embeddings.LayerNorm", at, inputs,
             others=("embeddings.token_type_embeddings",))  # fmt: skip
    own = model.encoder.visn_fc
    with torch.no_grad():
        own.box_layer_norm.weight.normal_()
        alone = own.visn_layer_norm(own.visn_fc(features))
        got = with_weights(spec["vision"], 0, model.state_dict()).embed(alone, posenc.Positions.at(boxes))
        result.close("regions with their boxes", got, own(features, boxes), 2.0)
    layers = (len(model.encoder.layer), len(model.encoder.x_layers))
    result.equal("layers", layers, (2, len(spec["language"].layers) - 2))
    return result


@proof("bros")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "learned table for the place; queries ask projected sinusoids of where boxes lie")
    config = config_of(model_type, hidden_size=128, max_position_embeddings=40, bbox_scale=50.0)
    model, spec = build(config, attention=None), spec_of(config)
    text = tokens((2, 9))
    corner = torch.rand(2, 9, 2, generator=torch.Generator().manual_seed(1))
    bbox = torch.cat([corner, corner + 0.2], dim=-1)
    at = posenc.Positions.arange(2, 9)
    added_by(result, spec["places"], model, "embeddings.position_embeddings", "embeddings.LayerNorm", at,
             {"input_ids": text, "bbox": bbox}, others=("embeddings.token_type_embeddings",))  # fmt: skip
    found: list[tuple[Tensor, Tensor, Tensor]] = []
    hooks = []
    for layer in model.encoder.layer:

        def look(module: Any, given: Any, keywords: Any, out: Any) -> None:
            x = keywords["hidden_states"] if "hidden_states" in keywords else given[0]
            q, k = (part(x).unflatten(-1, (4, 32)).transpose(1, 2) for part in (module.query, module.key))
            found.append((q, k, out[1]))

        hooks.append(layer.attention.self.register_forward_hook(look, with_kwargs=True))
    model = model.double()
    with torch.no_grad():
        model.bbox_embeddings.bbox_projection.weight.normal_()
        model(input_ids=text, bbox=bbox.double())
        for hook in hooks:
            hook.remove()
        assert len(found) == len(spec.layers)
        for number, (q, k, expected) in enumerate(found):
            encoding = with_weights(spec, number, model.state_dict()).double()
            bias = bias_of(encoding, q, k, posenc.Positions.at(bbox.double()))
            got = (q @ k.transpose(-1, -2) / math.sqrt(32) + bias).softmax(-1)
            # its frequencies are fp32's: angles to 60, and scores of as much
            result.close("probabilities of every layer, in fp64", got, expected, 60.0)
    return result
