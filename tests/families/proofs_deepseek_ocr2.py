"""posenc.configs.families.deepseek_ocr2, compared with the models' own code in transformers."""

from __future__ import annotations

import torch

import posenc
from families.harness import Proof, build, calls, config_of, frequencies, made_of, modeling, proof, rotary, spec_of
from families.hooked import turned_inside
from families.proofs_cohere import allowed
from families.turning import LLAMA3, YARN
from posenc.configs.weights import with_weights
from posenc.encoding import PositionalEncoding


@proof("deepseek_ocr2_sam_vision_model", "unlimited_ocr_sam_vision_model")
def deepseek_ocr2_sam_vision_model(model_type: str) -> Proof:
    result = Proof(model_type, "a bicubic grid; decomposed relative position bias over the image or within windows")
    config = config_of(
        model_type,
        hidden_size=32,
        num_attention_heads=2,
        num_hidden_layers=3,
        image_size=24,
        patch_size=4,
        window_size=4,
        global_attn_indexes=[1],
        output_channels=8,
        downsample_channels=[8, 8],
    )
    config._attn_implementation = "eager"
    name = next(name for name in vars(modeling(model_type)) if name.endswith("SamVisionEncoder"))
    model, spec = build(config, name, attention="eager"), spec_of(config)
    for end, parameter in model.named_parameters():
        if "rel_pos" in end or "pos_embed" in end:
            torch.nn.init.normal_(parameter)
    entered: list[torch.Tensor] = []
    model.layers[0].register_forward_pre_hook(lambda module, inputs: entered.append(inputs[0]))
    with torch.no_grad():
        for height, width in ((24, 24), (32, 16)):
            pixels = torch.randn(2, 3, height, width)
            patches = model.patch_embed(pixels)
            entered.clear()
            model.layers[0](patches + model.interpolate_pos_encoding(*patches.shape[1:3]))
            rows, columns = patches.shape[1:3]
            sized = (rows, columns) != (6, 6)
            at = posenc.Positions.grid(rows, columns, batch=2, sized=sized)
            encoding = with_weights(spec, 0, model.state_dict())
            table = next(iter(encoding)) if isinstance(encoding, posenc.Stack) else encoding
            got = table.embed(patches.flatten(1, 2), at)
            result.close("embeddings of the first layer, images of two sizes", got, entered[0].flatten(1, 2), 8.0)
        for number, module in enumerate(model.layers):
            side = module.window_size or 6
            layer = spec.layers[number]
            assert (layer.window, layer.causal) == (module.window_size**2 or None, False)
            q = torch.randn(4, side * side, 16)
            attention = module.attn
            theirs = attention.get_decomposed_rel_pos(
                q, attention.rel_pos_h, attention.rel_pos_w, (side, side), (side, side)
            )
            at = posenc.Positions.grid(side, side)
            encoding = with_weights(spec, number, model.state_dict())
            bias = last(encoding).bias(q[:, None], q[:, None], at.expand(4), at.expand(4))
            n = side * side
            b, i, j = torch.arange(4)[:, None, None, None], torch.arange(n)[:, None], torch.arange(n)[None]
            mine = bias(b, torch.zeros((), dtype=torch.long), i, j)[:, 0]
            result.close("bias of every layer", mine, theirs.reshape(4, n, n), 8.0)
            x = torch.randn(1, side, side, 32)
            _, weights = attention(x, output_attentions=True)
            q, k, _ = attention.qkv(x).reshape(1, n, 3, 2, 16).permute(2, 0, 3, 1, 4).unbind(0)
            term = last(encoding).bias(q, k, at, at)(
                *torch.meshgrid(torch.arange(1), torch.arange(2), torch.arange(n), torch.arange(n), indexing="ij")
            )
            probs = (q @ k.transpose(-1, -2) * encoding.softmax_scale(16) + term).softmax(-1)
            assert torch.allclose(probs, weights.reshape(1, 2, n, n), atol=1e-6)
    return result


def last(encoding: PositionalEncoding) -> PositionalEncoding:
    """The bias, where a table stands before it."""
    return list(encoding)[-1] if isinstance(encoding, posenc.Stack) else encoding


@proof("deepseek_ocr2_encoder")
def deepseek_ocr2_encoder(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs, over patches and the learned queries after them")
    for more in ({}, {"rope_parameters": YARN}, {"use_sliding_window": True, "sliding_window": 3, "max_window_layers": 2}):
        config = config_of(model_type, **more)
        model, spec = build(config, "DeepseekOcr2VisionEncoder"), spec_of(config)
        found = turned_inside(
            result,
            spec,
            model,
            model.rotary_emb,
            most=allowed(spec),
            softmax=True,
            num_patches=5,
            inputs_embeds=torch.randn(2, 8, 64),
        )
        frequencies(result, model.rotary_emb, spec)
        seen = torch.ones(8, 8).tril().bool()
        seen[:5, :5] = True
        assert all(torch.equal(call.mask[0, 0] > -1e30, seen) for call in found)
    return result


@proof("unlimited_ocr_vision_encoder")
def unlimited_ocr_vision_encoder(model_type: str) -> Proof:
    result = Proof(model_type, "a bicubic grid with a row for the class token")
    config = config_of(model_type, image_size=20, patch_size=4, num_hidden_layers=2)
    model, spec = build(config, "UnlimitedOcrVisionEncoder"), spec_of(config)
    torch.nn.init.normal_(model.embeddings.position_embedding.weight)
    table = with_weights(spec, 0, model.state_dict())
    for rows, columns in ((5, 5), (7, 3)):
        patches = torch.randn(2, 64, rows, columns)
        with torch.no_grad():
            theirs = model.embeddings(patches)
            bare = torch.cat([model.embeddings.class_embedding.expand(2, 1, -1), patches.flatten(2).transpose(1, 2)], dim=1)
            at = posenc.Positions.grid(rows, columns, batch=2, prefix=1, sized=rows != 5)
            result.close("embeddings, images of two sizes", table.embed(bare, at), theirs, 8.0)
    found = calls(model, patch_embeds=patches)
    assert len(found) == len(spec.layers) == 2
    assert all(call.mask is None for call in found)
    return result


@proof("deepseek_ocr2_text", "unlimited_ocr_text")
def deepseek_ocr2_text(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, half pairs, every layer")
    for scaled in (None, LLAMA3):
        config = config_of(
            model_type,
            rope_parameters=scaled,
            mlp_layer_types=["dense"] * 4,
            sliding_window=None if model_type.startswith("deepseek") else 3,
        )
        name = "DeepseekOcr2TextModel" if model_type.startswith("deepseek") else "UnlimitedOcrTextModel"
        model, spec = build(config, name), spec_of(config)
        found = rotary(result, config, spec, model)
        frequencies(result, model.rotary_emb, spec)
        seen = torch.ones(8, 8).tril().bool()
        assert all(torch.equal(call.mask[0, 0] > -1e30, seen) for call in found) or scaled
    return result


@proof("deepseek_ocr2_vision", "unlimited_ocr_vision")
def deepseek_ocr2_vision(model_type: str) -> Proof:
    name = "DeepseekOcr2VisionModel" if model_type.startswith("deepseek") else "UnlimitedOcrVisionModel"
    inside = {"sam_config": "sam_encoder", "encoder_config": "vision_encoder"}
    return made_of(model_type, "a SAM encoder and a second encoder", inside, model_class=name)


@proof("deepseek_ocr2", "unlimited_ocr")
def deepseek_ocr2(model_type: str) -> Proof:
    dense = {"mlp_layer_types": ["dense"] * 2, "num_hidden_layers": 2}  # without, DeepSeek-OCR 2 cannot be built
    return made_of(
        model_type,
        "separate image and text parts; an image token counts like a text token",
        {"text_config": "language_model", "vision_config": "vision_tower"},
        config_of(model_type, text_config=dense),
    )
