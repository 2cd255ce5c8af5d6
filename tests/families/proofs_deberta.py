"""posenc.configs.families.deberta, compared with the models' own code in transformers."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

import posenc
from families.adding import added
from families.harness import Proof, build, config_of, modeling, proof, spec_of, tokens
from families.scores import bias_of
from families.silenced import added_by
from posenc.configs import PositionSpec
from posenc.configs.weights import with_weights

BOTH = {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]}

LOG = BOTH | {"position_buckets": 6, "norm_rel_ebd": "layer_norm", "share_att_key": True, "position_biased_input": False}

LENGTH = 24


def terms(result: Proof, model: torch.nn.Module, spec: PositionSpec, name: str) -> None:
    """What the method `name` of every layer adds to the scores."""
    found: list[tuple[Tensor, Tensor, Tensor]] = []
    model = model.double()
    for layer in model.encoder.layer:
        attention = layer.attention.self
        own = getattr(attention, name)

        def look(q: Tensor, k: Tensor, *rest: Any, own: Any = own, **more: Any) -> Tensor:
            out = own(q, k, *rest, **more)
            found.append((q, k, out))
            return out

        setattr(attention, name, look)
    with torch.no_grad():
        model(input_ids=tokens((2, LENGTH)))
    assert len(found) == len(spec.layers)
    heads = spec.n_heads
    at = posenc.Positions.arange(2, LENGTH)
    for layer, (q, k, expected) in enumerate(found):
        encoding = with_weights(spec, layer, model.state_dict())
        encoding = list(encoding)[-1] if isinstance(encoding, posenc.Stack) else encoding
        q, k, expected = (x.view(2, heads, *x.shape[-2:]) for x in (q, k, expected))
        scale = encoding.softmax_scale(q.shape[-1])
        assert math.isclose(scale, (q.shape[-1] * (1 + len(encoding.terms))) ** -0.5)
        if name == "disentangled_att_bias":  # version 1 hands over divided queries
            q = q / torch.sqrt(torch.tensor(q.shape[-1] * (1 + len(encoding.terms)), dtype=torch.float)).double() ** -1
        result.close("position terms of every layer, in fp64", bias_of(encoding, q, k, at), expected)


@proof("deberta")
def deberta(model_type: str) -> Proof:
    result = Proof(model_type, "disentangled attention: content to position, position to content; optional table")
    for more in (BOTH, BOTH | {"pos_att_type": "c2p", "max_relative_positions": 5}):
        config = config_of(model_type, max_position_embeddings=32, position_biased_input=False, **more)
        model, spec = build(config, attention=None), spec_of(config)
        terms(result, model, spec, "disentangled_att_bias")
    at = posenc.Positions.arange(2, LENGTH)
    config = config_of(model_type, max_position_embeddings=32)
    added(result, spec_of(config), build(config, attention=None), "embeddings.LayerNorm", at)
    return result


@proof("deberta-v2")
def deberta_v2(model_type: str) -> Proof:
    result = Proof(model_type, "disentangled attention with logarithmic buckets; optional table")
    for more in (
        BOTH | {"position_biased_input": False},
        LOG,
        LOG | {"pos_att_type": ["p2c"], "share_att_key": False, "max_relative_positions": 16},
    ):
        config = config_of(model_type, max_position_embeddings=32, **more)
        model, spec = build(config, attention=None), spec_of(config)
        terms(result, model, spec, "disentangled_attention_bias")
    distances = torch.arange(-600, 601)
    for buckets, limit in ((6, 32), (256, 512)):
        theirs = modeling(model_type).make_log_bucket_position(distances, buckets, limit).long()
        use = posenc.encodings.deberta.DeBERTa(64, 4, n_buckets=buckets, max_distance=limit)
        inside = theirs.abs() <= buckets  # beyond, both are cut to the last row
        result.equal(
            f"buckets at distances to {limit}",
            use.row(distances)[inside],
            (theirs + buckets).clamp(0, 2 * buckets - 1)[inside],
        )
    at = posenc.Positions.arange(2, LENGTH)
    config = config_of(model_type, max_position_embeddings=32, embedding_size=32, **BOTH)
    spec, model = spec_of(config), build(config, attention=None)
    added_by(
        result,
        spec,
        model,
        "embeddings.position_embeddings",
        "embeddings.embed_proj",
        at,
        {"input_ids": tokens((2, LENGTH))},
        use=spec.layers[0].uses[0],
    )
    assert [len(layer.uses) for layer in spec.layers] == [2, 1, 1, 1]
    return result
