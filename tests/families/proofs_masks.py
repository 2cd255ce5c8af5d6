"""Object queries that make masks: MaskFormer, Mask2Former, OneFormer."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import Tensor

import posenc
from families.harness import Proof, build, config_of, proof, spec_of
from families.projections import RESNET, SINES, SMALL, config, entered, images, pixels, sums
from families.proofs_vit import randomly
from posenc.dialects.weights import with_weights


@proof("maskformer")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "sinusoids of pixels on the image's keys, a vector for each object query")
    inner = {k: v for k, v in SMALL.items() if v is not None} | {"model_type": "detr"}
    plain = {"hidden_size": None, "num_hidden_layers": None, "num_attention_heads": None}
    made = config_of(model_type, backbone_config=RESNET | {"out_indices": [1, 2, 3, 4]}, decoder_config=inner,
                     fpn_feature_size=32, mask_feature_size=32, **plain)  # fmt: skip
    model, spec = build(made, attention="eager"), spec_of(made)["decoder_config"]
    seen, masks = entered(model, images())
    query, image = with_weights(spec, 0, model.state_dict()), spec.encoding(1)
    for n in range(2):
        own, cross = f"decoder.layers.{n}.self_attn", f"decoder.layers.{n}.encoder_attn"
        at = posenc.Positions.arange(1, 7)
        sums(result, "object queries", query, seen, own, ("q_proj", "k_proj"), "v_proj", at, 1.0)
        sums(result, "keys of the image", image, seen, cross, ("k_proj",), "v_proj", pixels(masks), SINES)
    assert len(spec.layers) == 4
    return result


@proof("mask2former", "oneformer")
def _(model_type: str) -> Proof:
    first = model_type == "mask2former"
    result = Proof(model_type, "sinusoids of pixels, map by map, a vector for each object query" + (
                   "" if first else "; a learned table for the text of the task"))  # fmt: skip
    sizes = {"feature_size": 32, "hidden_dim": 32, "mask_feature_size": 32, "encoder_feedforward_dim": 16} if first else {
        "conv_dim": 64, "hidden_dim": 64, "mask_dim": 64, "encoder_feedforward_dim": 16, "text_encoder_width": 64,
        "text_encoder_num_layers": 1, "text_encoder_vocab_size": 32, "text_encoder_context_length": 6, "task_seq_len": 6,
        "is_training": True}  # fmt: skip
    made = config(model_type, backbone_config=RESNET | {"out_indices": [1, 2, 3, 4]}, **sizes, dim_feedforward=16,
                  num_attention_heads=2, decoder_layers=3, encoder_layers=2, num_queries=8,
                  text_encoder_n_ctx=2)  # fmt: skip
    model, spec = randomly(build(made, attention=None), "level_embed", "queries_embedder.weight"), spec_of(made)
    inputs = images()
    if not first:
        inputs |= {"task_inputs": torch.randint(0, 32, (2, 6)), "text_inputs": torch.randint(0, 32, (2, 6, 6))}
    added: dict[str, list[tuple[Tensor, ...]]] = {"image": [], "queries": []}
    layers = [
        m
        for m in model.modules()
        if type(m).__name__.endswith(("MaskedAttentionDecoderLayer", "FormerTransformerDecoderLayer"))
    ]
    assert len(layers) == made.decoder_layers - 1

    def look(layer: Any, given: Any, named: dict[str, Any]) -> None:
        every = inspect.signature(layer.forward).bind(*given, **named).arguments
        image = next(
            value for name, value in every.items() if name in ("position_embeddings", "multi_stage_positional_embeddings")
        )
        queries = next(value for name, value in every.items() if name in ("query_position_embeddings", "query_embeddings"))
        added["image"].append(tuple(image))
        added["queries"].append((queries,))

    for layer in layers:
        layer.register_forward_pre_hook(look, with_kwargs=True)
    seen, masks = entered(model, inputs)
    stack, encoding = spec["pixel_decoder"], spec["pixel_decoder"].encoding(0)
    at = pixels(masks[:3])
    decoder = next(m for name, m in model.named_modules() if name.endswith("pixel_decoder") or (name.endswith("decoder")
                   and hasattr(m, "level_embed")))  # fmt: skip
    levels = torch.cat([decoder.level_embed[n].expand(m[0].numel(), -1) for n, m in enumerate(masks[:3])]).detach()
    for n in range(2):
        sums(result, "queries of the pixel decoder", encoding, seen, f"encoder.layers.{n}.self_attn", ("sampling_offsets",),
             "value_proj", at, SINES, besides=levels)  # fmt: skip
    assert len(stack.layers) == 2
    image, table = spec["decoder"].encoding(0), with_weights(spec["decoder"], 1, model.state_dict())
    assert len(spec["decoder"].layers) == 2 * len(layers)
    for given, (queries,) in zip(added["image"], added["queries"], strict=True):
        for mask, sine in zip(masks[3:6], given, strict=True):
            x = sine.transpose(0, 1)[:1]
            got = image.embed(torch.zeros_like(x), posenc.Positions.pixels(mask[:1]))
            result.close("what is added to the image's keys in the decoder", got, x.detach(), SINES)
        x = queries.transpose(0, 1)[:1].detach()
        got = table.embed(torch.zeros_like(x), posenc.Positions.arange(1, x.shape[1])).detach()
        result.close("what is added to object queries", got, x)
    if not first:
        _text(result, spec["text_encoder"], model.text_mapper.text_encoder)
    return result


def _text(result: Proof, spec: Any, encoder: Any) -> None:
    seen: list[Tensor] = []
    encoder.transformer.register_forward_pre_hook(lambda layer, given: seen.append(given[0]))
    ids = torch.randint(0, 32, (2, 6))
    with torch.no_grad():
        torch.nn.init.normal_(encoder.positional_embedding)
        encoder(ids)
        state = {f"text_encoder.{name}": value for name, value in encoder.state_dict().items()}
        got = with_weights(spec, 0, state).embed(encoder.token_embedding(ids), posenc.Positions.arange(2, 6))
        result.close("text of the task", got, seen[0].transpose(0, 1))
