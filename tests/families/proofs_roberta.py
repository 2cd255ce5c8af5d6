"""posenc.configs.families.roberta, compared with the models' own code in transformers."""

from __future__ import annotations

import torch

import posenc
from families.adding import added
from families.harness import Proof, build, config_of, proof, spec_of
from families.scores import bias_of, nothing
from families.silenced import added_by
from posenc.configs.weights import with_weights

PADDING = 1
TEXT = torch.tensor([[5, 6, 7, 8, 9, 10], [PADDING, PADDING, 7, 8, 9, 10], [5, 6, 7, 8, PADDING, PADDING]])


@proof("mpnet")
def mpnet(model_type: str) -> Proof:
    result = Proof(model_type, "RoBERTa's table added to the embeddings, and a T5 bias in every layer")
    config = config_of(model_type, max_position_embeddings=40, pad_token_id=1)
    model, spec = build(config, attention=None), spec_of(config)
    table, bias = spec.layers[0].uses
    added_by(
        result,
        spec,
        model,
        "embeddings.position_embeddings",
        "embeddings.LayerNorm",
        posenc.Positions.from_mask(TEXT != 1),
        {"input_ids": TEXT},
        use=table,
    )
    found = []
    hooks = [
        layer.attention.attn.register_forward_pre_hook(
            lambda module, arguments, keywords: found.append((*arguments, *keywords.values())), with_kwargs=True
        )
        for layer in model.encoder.layer
    ]
    with torch.no_grad():
        model(input_ids=TEXT)
        for hook in hooks:
            hook.remove()
        expected = model.encoder.compute_position_bias(torch.zeros(1, 300, 64))
    assert len(found) == len(spec.layers)
    assert all(layer.uses[-1] == bias for layer in spec.layers)
    encoding = list(with_weights(spec, 0, model.state_dict()))[1]
    at = posenc.Positions.arange(1, 300)
    whole = bias_of(encoding, *nothing(4, 300), at)
    result.equal("bias at distances to 299", whole, expected)
    for arguments in found:
        given = [x for x in arguments if isinstance(x, torch.Tensor) and x.shape[-3:] == (4, 6, 6)]
        result.equal("bias of every layer", given[0][:1], whole[..., :6, :6])
    return result


AFTER = {"xlm-roberta-xl": "encoder.layer.0"}


@proof(
    "roberta",
    "xlm-roberta",
    "camembert",
    "data2vec-text",
    "ibert",
    "roberta-prelayernorm",
    "xlm-roberta-xl",
    "xmod",
    "longformer",
)
def roberta(model_type: str) -> Proof:
    result = Proof(
        model_type, "learned table added to the embeddings; rows count non-padding tokens, from pad_token_id + 1"
    )
    text = TEXT if model_type != "longformer" else torch.nn.functional.pad(TEXT, (0, 2), value=PADDING)  # whole windows
    sizes = {"attention_window": [4] * 4} if model_type == "longformer" else {}
    config = config_of(model_type, max_position_embeddings=40, pad_token_id=PADDING, **sizes)
    if model_type == "xmod":
        config.languages, config.default_language = ["en_XX"], "en_XX"
    model, spec = build(config, attention=None), spec_of(config)
    after = AFTER.get(model_type, "embeddings.LayerNorm")
    added(
        result,
        spec,
        model,
        after,
        posenc.Positions.from_mask(text != PADDING),
        {"input_ids": text},
        what="embeddings with positions, padded left and right",
        silent=("embeddings.token_type_embeddings.weight",),
    )
    return result
