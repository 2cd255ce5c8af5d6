"""posenc.configs.families.detr, compared with the models' own code in transformers."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import Tensor

import posenc
from families.harness import Proof, build, config_of, modeling, proof, spec_of
from families.projections import RESNET, SINES, SMALL, config, entered, images, of, pixels, sums
from families.proofs_vit import places, randomly
from posenc.configs.weights import with_weights


@proof("detr", "table-transformer", "conditional_detr")
def detr(model_type: str) -> Proof:
    conditional = model_type == "conditional_detr"
    more = "; sinusoids of the points they look at" if conditional else ""
    result = Proof(
        model_type,
        "sinusoids of non-padding pixels or row and column tables, on queries and keys of every "
        "layer; a vector for each object query" + more,
    )
    for kind in ("sine", "learned"):
        made = config(model_type, backbone_config=RESNET, position_embedding_type=kind)
        model, spec = randomly(build(made, attention="eager"), "query_position_embeddings.weight"), spec_of(made)
        seen, masks = entered(model, images())
        height, width = masks[0].shape[1:]
        at = pixels(masks) if kind == "sine" else posenc.Positions.at(places(height, width).coords.expand(2, -1, -1))
        image = with_weights(spec["encoder"], 0, model.state_dict())
        for n in range(2):
            what = "queries and keys of the encoder"
            sums(result, what, image, seen, f"encoder.layers.{n}.self_attn", ("q_proj", "k_proj"), "v_proj", at)
        assert len(spec["encoder"].layers) == 2
        assert len(spec["decoder"].layers) == 4
        result.equal("its backbone", spec["backbone_config"].family, made.backbone_config.model_type)
        query, number = with_weights(spec["decoder"], 0, model.state_dict()), posenc.Positions.arange(1, 7)
        for n in range(2):
            own, cross = f"decoder.layers.{n}.self_attn", f"decoder.layers.{n}.encoder_attn"
            if not conditional:
                sums(result, "object queries", query, seen, own, ("q_proj", "k_proj"), "v_proj", number, 1.0)
                sums(result, "keys of the image in the decoder", image, seen, cross, ("k_proj",), "v_proj", at)
                continue
            zero = torch.zeros(1, 7, 32)
            with torch.no_grad():
                given = of(seen, own, "q_pos_proj")[:1]
                result.close("vectors of object queries", query.embed(zero, number), given)
                key = of(seen, cross, "k_pos_proj")
                result.close("keys of the image in the decoder", image.embed(torch.zeros_like(key), at), key, SINES)
        if conditional:
            points = model.decoder.ref_point_head(model.query_position_embeddings.weight)[None].sigmoid().detach()
            sinusoids = spec["decoder"].encoding(1).embed(torch.zeros(1, 7, 32), posenc.Positions.at(points))
            result.close(
                "sinusoids of reference points",
                sinusoids,
                of(seen, "decoder.layers.0.encoder_attn", "q_pos_sine_proj")[:1],
                SINES,
            )
    return result


@proof("dab-detr")
def dab_detr(model_type: str) -> Proof:
    result = Proof(
        model_type, "sinusoids of non-padding pixels, two bases, times a network of the content; sinusoids of boxes"
    )
    made = config(
        model_type, backbone_config=RESNET, hidden_size=32, temperature_height=10, temperature_width=30, d_model=None
    )
    model, spec = build(made, attention="eager"), spec_of(made)
    asked: list[Tensor] = []
    position = next(m for m in model.modules() if type(m).__name__ == "DabDetrSinePositionEmbedding")
    position.register_forward_hook(lambda layer, given, out: asked.append(out))
    refined: list[tuple[Tensor, Tensor]] = []
    module = modeling(model_type)
    plain = module.encode_sinusoidal_position_embedding
    module.encode_sinusoidal_position_embedding = lambda box, **options: (
        refined.append((box, plain(box, **options))) or (refined[-1][1])
    )
    try:
        seen, masks = entered(model, images())
    finally:
        module.encode_sinusoidal_position_embedding = plain
    at, image = pixels(masks), spec["encoder"].encoding(0)
    given = asked[0].flatten(2).transpose(1, 2)
    result.close("sinusoids of pixels", image.embed(torch.zeros_like(given), at), given, SINES)
    for n in range(2):
        own = f"encoder.layers.{n}.self_attn"
        x = of(seen, own, "v_proj")
        with torch.no_grad():
            factor = model.encoder.query_scale(x)
            sine = image.embed(torch.zeros_like(x), at)
            for name in ("q_proj", "k_proj"):
                result.close("queries and keys of the encoder", x + sine * factor, of(seen, own, name), SINES)
    assert len(refined) == 2
    for number, (box, sinusoids) in enumerate(refined):
        encoding = spec["decoder"].encoding(2 * number)
        got = encoding.embed(torch.zeros_like(sinusoids), posenc.Positions.at(box.detach()))
        result.close("sinusoids of the boxes of every layer", got, sinusoids.detach(), SINES)
    assert len(spec["decoder"].layers) == 4
    return result


@proof("deformable_detr", "grounding-dino", "mm-grounding-dino")
def deformable_detr(model_type: str) -> Proof:
    grounding = model_type != "deformable_detr"
    more = "; of text positions in each phrase; of boxes" if grounding else "; a vector for each object query"
    result = Proof(model_type, "sinusoids of non-padding pixels, per feature map, on queries of every encoder layer" + more)
    bert = {
        "model_type": "bert",
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 16,
        "vocab_size": 1100,
    }
    more = {"text_config": bert, "positional_embedding_temperature": 15} if grounding else {}
    for kind in ("sine", "learned"):
        made = config(
            model_type,
            backbone_config=RESNET | {"out_indices": [2, 3, 4]},
            position_embedding_type=kind,
            **more,
            encoder_n_points=2,
            decoder_n_points=2,
        )
        model, spec = (
            randomly(build(made, attention="eager"), "level_embed", "query_position_embeddings.weight"),
            spec_of(made),
        )
        text = {"input_ids": torch.tensor([[101, 7, 8, 1012, 9, 5, 6, 1012, 102]] * 2)} if grounding else {}
        phrases: list[Tensor] = []
        if grounding:
            layer = model.encoder.layers[0]
            layer.text_enhancer_layer.register_forward_pre_hook(
                lambda layer, given, named, phrases=phrases: phrases.append(named["position_embeddings"]), with_kwargs=True
            )
        seen, masks = entered(model, images() | text)
        masks = masks[:4] if len(masks) >= 4 else masks
        if kind == "sine":
            at = pixels(masks, centred=not grounding)
        else:
            at = posenc.Positions.cat([posenc.Positions.at(places(*m.shape[1:]).coords.expand(2, -1, -1)) for m in masks])
        levels = torch.cat([model.level_embed[n].expand(m[0].numel(), -1) for n, m in enumerate(masks)]).detach()
        stack = spec["encoder"]
        number = next(n for n, layer in enumerate(stack.layers) if layer.kind == "deformable")
        image = with_weights(stack, number, model.state_dict())
        for n in range(2):
            own = f"encoder.layers.{n}" + (".deformable_layer.self_attn" if grounding else ".self_attn")
            names = ("sampling_offsets",)
            sums(result, "queries of the encoder", image, seen, own, names, "value_proj", at, SINES, besides=levels)
        if not grounding:
            query = with_weights(spec["decoder"], 0, model.state_dict())
            both = query.embed(torch.zeros(1, 7, 64), posenc.Positions.arange(1, 7)).detach()
            x = of(seen, "decoder.layers.0.self_attn", "v_proj")
            result.close("content of object queries", both[..., 32:].expand(2, -1, -1), x)
            result.close("object queries", x + both[..., :32], of(seen, "decoder.layers.0.self_attn", "q_proj"))
        else:
            # [CLS], two words and a stop, three words and a stop, [SEP]: counted anew after each stop
            counted = torch.tensor([[0, 0, 1, 2, 0, 1, 2, 3, 0]] * 2)
            got = stack.encoding(1).embed(torch.zeros_like(phrases[0]), posenc.Positions.at(counted))
            # whole numbers times 2π in fp32: angles to 6π
            result.close("positions of text", got, phrases[0], 32.0)
    return result


@proof("maskformer")
def maskformer(model_type: str) -> Proof:
    result = Proof(model_type, "sinusoids of pixels on the image's keys, a vector for each object query")
    inner = {k: v for k, v in SMALL.items() if v is not None} | {"model_type": "detr"}
    plain = {"hidden_size": None, "num_hidden_layers": None, "num_attention_heads": None}
    made = config_of(
        model_type,
        backbone_config=RESNET | {"out_indices": [1, 2, 3, 4]},
        decoder_config=inner,
        fpn_feature_size=32,
        mask_feature_size=32,
        **plain,
    )
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
def mask2former(model_type: str) -> Proof:
    first = model_type == "mask2former"
    result = Proof(
        model_type,
        "sinusoids of pixels, per feature map, a vector for each object query"
        + ("" if first else "; a learned table for the text of the task"),
    )
    sizes = (
        {"feature_size": 32, "hidden_dim": 32, "mask_feature_size": 32, "encoder_feedforward_dim": 16}
        if first
        else {
            "conv_dim": 64,
            "hidden_dim": 64,
            "mask_dim": 64,
            "encoder_feedforward_dim": 16,
            "text_encoder_width": 64,
            "text_encoder_num_layers": 1,
            "text_encoder_vocab_size": 32,
            "text_encoder_context_length": 6,
            "task_seq_len": 6,
            "is_training": True,
        }
    )
    made = config(
        model_type,
        backbone_config=RESNET | {"out_indices": [1, 2, 3, 4]},
        **sizes,
        dim_feedforward=16,
        num_attention_heads=2,
        decoder_layers=3,
        encoder_layers=2,
        num_queries=8,
        text_encoder_n_ctx=2,
    )
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
    decoder = next(
        m
        for name, m in model.named_modules()
        if name.endswith("pixel_decoder") or (name.endswith("decoder") and hasattr(m, "level_embed"))
    )
    levels = torch.cat([decoder.level_embed[n].expand(m[0].numel(), -1) for n, m in enumerate(masks[:3])]).detach()
    for n in range(2):
        sums(
            result,
            "queries of the pixel decoder",
            encoding,
            seen,
            f"encoder.layers.{n}.self_attn",
            ("sampling_offsets",),
            "value_proj",
            at,
            SINES,
            besides=levels,
        )
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
