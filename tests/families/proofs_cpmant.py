"""posenc.configs.families.cpmant, compared with the models' own code in transformers."""

from __future__ import annotations

from typing import Any

import torch

import posenc
from families.harness import Proof, build, config_of, proof, spec_of
from families.scores import bias_of
from posenc.configs.weights import with_weights

TEXT = torch.tensor([[5, 6, 7, 8, 9, 10, 11], [0, 0, 7, 8, 9, 10, 11]])


@proof("cpmant")
def cpmant(model_type: str) -> Proof:
    result = Proof(model_type, "T5 bias within a segment, one learned number for each pair of different segments")
    config = config_of(
        model_type,
        dim_head=16,
        dim_ff=16,
        prompt_length=5,
        segment_types=4,
        prompt_types=4,
        position_bias_num_buckets=16,
        position_bias_max_distance=9,
    )
    model, spec = build(config, attention=None), spec_of(config)
    found: list[tuple[Any, ...]] = []
    hooks = [
        layer.register_forward_pre_hook(
            lambda module, arguments, keywords: found.append((*arguments, *keywords.values())), with_kwargs=True
        )
        for layer in model.encoder.layers
    ]
    with torch.no_grad():
        model(input_ids=TEXT)
    for hook in hooks:
        hook.remove()
    assert len(found) == len(spec.layers)
    segment = torch.cat([torch.zeros(2, 5).long(), torch.where(TEXT != 0, 2, 0)], dim=1)
    at = posenc.Positions.at(torch.stack([torch.arange(12).expand(2, -1), segment], dim=-1))
    q = torch.zeros(2, 4, 12, 16)
    for layer, arguments in enumerate(found):
        expected = next(x for x in arguments if isinstance(x, torch.Tensor) and x.shape == (2, 4, 12, 12))
        encoding = with_weights(spec, layer, model.state_dict())
        result.equal("bias of every layer", bias_of(encoding, q, q, at), expected)
    own = model.position_bias
    kinds = torch.arange(4).repeat(10)[None]
    at = posenc.Positions.at(torch.stack([torch.arange(40)[None], kinds], dim=-1))
    with torch.no_grad():
        expected = own(at.coords[..., 0], at.coords[..., 0], kinds, kinds)
    q = torch.zeros(1, 4, 40, 16)
    result.equal("every pair of segments", bias_of(encoding, q, q, at), expected)
    return result
