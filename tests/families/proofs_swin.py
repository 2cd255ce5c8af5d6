"""posenc.configs.families.swin, compared with the models' own code in transformers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import posenc
from families.harness import Proof, build, calls, config_of, proof, spec_of
from families.proofs_vit import grids, picture, places, randomly
from posenc.configs.weights import with_weights


@proof("donut-swin")
def donut_swin(model_type: str) -> Proof:
    result = Proof(model_type, "learned bias for each head and difference within a window, shifted in odd layers")
    config = config_of(model_type, **STAGES)
    model, spec = randomly(build(config, attention=None), BIAS), spec_of(config)
    with torch.no_grad():
        model(pixel_values=picture(16, 16, 1))  # which takes the shift from stages no larger than a window
    layers = [layer for stage in model.encoder.layers for layer in stage.blocks]
    assert len(layers) == len(spec.layers)
    for number, (layer, own) in enumerate(zip(spec.layers, layers, strict=True)):
        module, encoding = own.attention.self, with_weights(spec, number, model.state_dict())
        assert (own.shift_size > 0) == (layer.kind == "shifted_window")
        assert encoding.window == tuple(module.window_size) == (own.window_size,) * 2
        x = torch.randn(2, 16, module.all_head_size, generator=torch.Generator().manual_seed(3))
        with torch.no_grad():
            _, theirs = module(x, output_attentions=True)
            q, k = (
                part(x).unflatten(-1, (module.num_attention_heads, -1)).transpose(1, 2)
                for part in (module.query, module.key)
            )
        at = posenc.Positions.at(places(4, 4).coords.expand(2, -1, -1))
        # logits to 16, whose rounding is a rounding of the logarithm of the weights
        result.close("attention weights in a window, of every layer", weights_of(encoding, q, k, at), theirs, 64.0)
    return result


STAGES: dict[str, Any] = {
    "image_size": 16,
    "patch_size": 1,
    "window_size": 4,
    "depths": [2, 2, 2],
    "num_heads": [1, 2, 4],
    "embed_dim": 8,
    "hidden_size": None,
    "num_hidden_layers": None,
    "num_attention_heads": None,
    "intermediate_size": None,
    "num_channels": 3,
}


def of_pairs(encoding: Any, at_q: posenc.Positions, at_k: posenc.Positions, heads: int) -> Tensor:
    """The bias of every pair, [b, h, i, j], where queries and keys do not matter."""
    return between(encoding, *(torch.zeros(at.batch, heads, at.length, 4) for at in (at_q, at_k)), at_q, at_k)


def between(encoding: Any, q: Tensor, k: Tensor, at_q: posenc.Positions, at_k: posenc.Positions) -> Tensor:
    """The bias of every pair of these queries and keys."""
    index = torch.meshgrid(*(torch.arange(n) for n in (*q.shape[:3], k.shape[2])), indexing="ij")
    with torch.no_grad():
        found: Tensor = encoding.bias(q, k, at_q, at_k)(*index)
    return found


def weights_of(encoding: Any, q: Tensor, k: Tensor, at: posenc.Positions) -> Tensor:
    """softmax of scaled products and bias, [b, h, i, j]."""
    with torch.no_grad():
        q, k = encoding.rotate(q, at, "query"), encoding.rotate(k, at, "key")
        logits = q @ k.transpose(-1, -2) * encoding.softmax_scale(q.shape[-1])
        return (logits + between(encoding, q, k, at, at)).softmax(-1)


@proof("swin")
def swin(model_type: str) -> Proof:
    result = Proof(model_type, "learned bias for each head and difference within a window, shifted in odd layers")
    config = config_of(model_type, **STAGES, use_absolute_embeddings=True)
    model, spec = randomly(build(config), BIAS, "position_embeddings"), spec_of(config)
    kinds = [layer.kind for layer in spec.layers]
    assert kinds == ["window", "shifted_window"] * 2 + ["window"] * 2
    blocks = [block for stage in model.encoder.layers for block in stage.blocks]
    asked = {"interpolate_pos_encoding": True}
    grids(result, first_layer(spec), model, "blocks.0", native=(16, 16), prefix=0, others=((8, 12),), patch=1, **asked)
    model = randomly(build(config), BIAS)  # the sizes above have changed windows for good
    blocks = [block for stage in model.encoder.layers for block in stage.blocks]
    at = places(4, 4)
    found = calls(model, pixel_values=picture(16, 16, 1))
    for number, (layer, call, block) in enumerate(zip(spec.layers, found, blocks, strict=True)):
        bias = of_pairs(with_weights(_biases(spec), number, model.state_dict()), at, at, call.q.shape[1])
        theirs = call.mask.detach()
        assert (len(theirs) > 1) == (layer.kind == "shifted_window") == (block.shift_size > 0)
        result.close("bias of every pair in a window, of every layer", bias, theirs[:1])
        kept = theirs > -50  # elsewhere -100 stands for: from another side of the image
        result.equal("shifted windows add the same", bias.expand_as(theirs)[kept], theirs[kept])
    return result


BIAS = "relative_position_bias_table"


def first_layer(spec: Any) -> Any:
    """The same spec, of layer 0 only what is added to the embeddings."""
    from dataclasses import replace

    return replace(spec, layers=(replace(spec.layers[0], uses=spec.layers[0].uses[:1]),))


def _biases(spec: Any) -> Any:
    from dataclasses import replace

    return replace(spec, layers=tuple(replace(layer, uses=layer.uses[-1:]) for layer in spec.layers))


@proof("maskformer-swin", "swinv2", "swin2sr")
def maskformer_swin(model_type: str) -> Proof:
    continuous = model_type != "maskformer-swin"
    result = Proof(
        model_type,
        "window bias from a network of the logarithm of the difference, cosine attention"
        if continuous
        else "learned bias for each head and difference within a window",
    )
    more = {"pretrained_window_sizes": [3, 0, 5]} if model_type == "swinv2" else {}
    sizes = STAGES | {"num_heads": [2, 2, 2]} if model_type == "swin2sr" else STAGES
    config = config_of(model_type, **sizes | {"image_size": 12}, **more)
    model = randomly(build(config, attention=None), BIAS, "logit_scale", "continuous_position_bias_mlp.2.weight")
    spec = spec_of(config)
    attention = [(n, m) for n, m in model.named_modules() if type(m).__name__.endswith("SelfAttention")]
    assert len(attention) == len(spec.layers)
    owners = [
        m
        for m in model.modules()
        if type(m).__name__.endswith("SwinLayer")
        or type(m).__name__.endswith("v2Layer")
        or type(m).__name__ == "Swin2SRLayer"
    ]
    for number, ((_, module), owner) in enumerate(zip(attention, owners, strict=True)):
        encoding = with_weights(spec, number, model.state_dict())
        side = module.window_size[0]
        assert encoding.window == tuple(module.window_size)
        assert (owner.shift_size > 0) == (spec.layers[number].kind == "shifted_window")
        x = torch.randn(2, side * side, module.all_head_size, generator=torch.Generator().manual_seed(3))
        with torch.no_grad():
            _, theirs = module(x, output_attentions=True)
            q, k = (
                layer(x).unflatten(-1, (module.num_attention_heads, -1)).transpose(1, 2)
                for layer in (module.query, module.key)
            )
        at = posenc.Positions.at(places(side, side).coords.expand(2, -1, -1))
        # logits to 16, whose rounding is a rounding of the logarithm of the weights
        result.close("attention weights in a window, of every layer", weights_of(encoding, q, k, at), theirs, 64.0)
    return result


@proof("levit")
def levit(model_type: str) -> Proof:
    result = Proof(model_type, "learned bias for each head and distance in rows and columns, fewer queries between stages")
    config = config_of(
        model_type,
        image_size=80,
        hidden_sizes=[16, 16, 16],
        num_attention_heads=[1, 2, 2],
        depths=[2, 1, 1],
        key_dim=[8, 8, 8],
    )
    model, spec = randomly(build(config, attention=None), "attention_biases"), spec_of(config)
    found = [m for m in model.modules() if hasattr(m, "attention_biases")]
    assert len(found) == len(spec.layers)
    side = 5
    for number, (layer, module) in enumerate(zip(spec.layers, found, strict=True)):
        keys = places(side, side)
        queries = keys
        if layer.kind == "subsampling":
            side = (side - 1) // 2 + 1
            queries = posenc.Positions.at(places(side, side).coords * 2)
        got = of_pairs(with_weights(spec, number, model.state_dict()), queries, keys, module.num_attention_heads)
        result.close("bias of every pair of every layer", got[0], module.get_attention_biases("cpu").detach())
    with torch.no_grad():
        model(torch.randn(1, 3, 80, 80))
    return result
