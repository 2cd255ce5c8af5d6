"""posenc.configs.families.sam3, compared with the models' own code in transformers."""

from __future__ import annotations

import torch
from torch import Tensor

import posenc
from families.harness import Proof, build, calls, config_of, proof, spec_of
from families.proofs_qwen2_vl_vision import frequencies
from families.proofs_sam2 import cells, own
from posenc.configs.weights import with_weights
from posenc.encodings.learned import Learned


@proof("sam3_vit_model")
def sam3_vit_model(model_type: str) -> Proof:
    result = Proof(
        model_type, "RoPE over column and row, interleaved pairs, in windows or scaled over the image; a tiled grid"
    )
    for window, base in ((3, 10000.0), (6, 500.0)):
        sizes = {"hidden_size": 32, "num_attention_heads": 2, "num_hidden_layers": 3, "image_size": 24, "patch_size": 4}
        config = config_of(
            model_type,
            window_size=window,
            pretrain_image_size=16,
            global_attn_indexes=[1],
            **sizes,
            rope_parameters={"rope_type": "axial", "rope_theta": base},
        )
        model, spec = build(config), spec_of(config)
        picture, seen = torch.randn(1, 3, 24, 24), []
        for layer in model.layers:
            seen.append(layer.rotary_emb)
        hooks = [
            turning.register_forward_hook(lambda m, given, out: (torch.ones_like(out[0]), torch.zeros_like(out[1])))
            for turning in seen
        ]
        rest = calls(model, pixel_values=picture)
        for hook in hooks:
            hook.remove()
        moved = calls(model, pixel_values=picture)
        assert [layer.kind == "full_attention" for layer in spec.layers] == [False, True, False]
        for number, (first, call) in enumerate(zip(rest, moved, strict=True)):
            at = posenc.Positions.at((cells(6, 6) if number == 1 else cells(window, window))[None])
            encoding = spec.encoding(number, exact="model")
            for side in ("query", "key", "value"):
                mine, theirs = encoding.rotate(getattr(first, side[0]), at, side), getattr(call, side[0])
                result.close("queries, keys and values of every layer", mine, theirs, 4.0)  # angles to 6, rounded twice
        frequencies(result, seen[0], spec)
        with torch.no_grad():
            patches = model.embeddings.patch_embeddings(picture)
            got = with_weights(spec, 0, model.state_dict()).embed(
                patches, posenc.Positions.at(cells(6, 6, sized=True)[None])
            )
            result.close("what enters the first layer", got, model.embeddings(picture))
    return result


@proof("sam3_geometry_encoder", "sam3_lite_text_geometry_encoder")
def sam3_geometry_encoder(model_type: str) -> Proof:
    result = Proof(model_type, "sinusoids of the centre of a box, half of the channels for each axis")
    config = config_of(model_type, hidden_size=32, num_attention_heads=2, num_layers=2, intermediate_size=16)
    spec, module = spec_of(config), own(model_type, "GeometryEncoder")(config).eval()
    boxes = torch.rand(5, 4, generator=torch.Generator().manual_seed(3))
    theirs = module._encode_box_coordinates(*boxes.T)
    at = posenc.Positions.at(boxes[None][..., [1, 0]].double())
    result.close("sinusoids of boxes", spec.encoding(0).embed(torch.zeros(1, 5, 32), at)[0], theirs[:, :32], 16.0)
    result.equal("height and width beside them", theirs[:, 32:], boxes[:, [3, 2]])
    assert len(spec.layers) == 2 * len(module.layers)
    return result


@proof("sam3_detr_encoder", "sam3_lite_text_detr_encoder")
def sam3_detr_encoder(model_type: str) -> Proof:
    result = Proof(model_type, "no positions of its own: the neck's sinusoids are added in every layer")
    config = config_of(
        model_type, hidden_size=32, num_attention_heads=2, num_layers=2, num_hidden_layers=None, intermediate_size=16
    )
    config._attn_implementation = "eager"
    spec, module = spec_of(config), own(model_type, "DetrEncoder")(config).eval()
    generator = torch.Generator().manual_seed(3)
    image, places, text = (torch.randn(*shape, generator=generator) for shape in ((1, 32, 3, 4), (1, 32, 3, 4), (1, 5, 32)))
    order = torch.randperm(12, generator=generator)

    def moved(maps: Tensor) -> Tensor:
        return maps.flatten(2)[..., order].reshape(maps.shape)

    with torch.no_grad():
        first = module([image], text, [places]).last_hidden_state
        other = module([moved(image)], text[:, [3, 0, 4, 1, 2]], [moved(places)]).last_hidden_state
    result.close("patches and words in another order, with what is added to them", other, first[:, order], 64.0)
    assert len(spec.layers) == 2 * len(module.layers)
    return result


@proof("sam3_detr_decoder", "sam3_lite_text_detr_decoder")
def sam3_detr_decoder(model_type: str) -> Proof:
    result = Proof(model_type, "sinusoids of boxes, and a bias by the distance from the sides of boxes")
    sizes = {"hidden_size": 32, "num_attention_heads": 2, "num_layers": 2, "num_hidden_layers": None}
    config = config_of(model_type, num_queries=3, intermediate_size=16, **sizes)
    spec, module = spec_of(config), own(model_type, "DetrDecoder")(config).eval()
    boxes = torch.rand(2, 5, 4, generator=torch.Generator().manual_seed(3))
    got = spec.encoding(0).embed(torch.zeros(2, 5, 64), posenc.Positions.at(boxes.double()))
    result.close("sinusoids of boxes", got, module.position_encoding.encode_boxes(boxes), 16.0)
    assert len(spec.layers) == 3 * len(module.layers)
    assert [len(layer.uses) for layer in spec.layers] == [1, 0, 1] * 2
    height, width = 3, 5
    with torch.no_grad():
        encoding = with_weights(spec, 2, module.state_dict())
        theirs = module._get_rpb_matrix(boxes, (torch.tensor(height), torch.tensor(width)))
        q, places = torch.zeros(2, 2, 5, 16), cells(height, width).double() / torch.tensor([height, width])
        k = q[:, :, :1].expand(-1, -1, len(places), -1)
        of_pair = encoding.bias(q, k, posenc.Positions.at(boxes.double()), posenc.Positions.at(places[None]))
        assert of_pair is not None
        index = torch.meshgrid(*(torch.arange(n) for n in (2, 2, 5, height * width)), indexing="ij")
    # Two layers in fp32 there.
    result.close("the bias of boxes", of_pair(*index), theirs, 32.0)
    return result


@proof("sam3_mask_decoder", "sam3_lite_text_mask_decoder")
def sam3_mask_decoder(model_type: str) -> Proof:
    result = Proof(model_type, "no positions: one attention to the prompt, and convolutions")
    config = config_of(model_type, hidden_size=32, num_attention_heads=2, num_upsampling_stages=1)
    config._attn_implementation = "eager"
    spec, module = spec_of(config), own(model_type, "MaskDecoder")(config).eval()
    generator = torch.Generator().manual_seed(3)
    queries, encoded, prompt = (torch.randn(*shape, generator=generator) for shape in ((1, 3, 32), (1, 12, 32), (1, 5, 32)))
    maps = [torch.randn(1, 32, 6, 8, generator=generator), torch.randn(1, 32, 3, 4, generator=generator)]
    with torch.no_grad():
        first, other = (
            module(queries, maps, encoded, prompt_features=p).pred_masks for p in (prompt, prompt[:, [3, 0, 4, 1, 2]])
        )
    result.close("masks from words in another order", other, first, 256.0)  # a convolution of sums in another order
    assert len(spec.layers) == len([m for m in module.modules() if type(m).__name__.endswith("Attention")])
    return result


@proof("sam3_lite_text_text_model")
def sam3_lite_text_text_model(model_type: str) -> Proof:
    result = Proof(model_type, "a learned table, interpolated to the length of the text")
    config = config_of(model_type, hidden_size=32, num_attention_heads=2, num_hidden_layers=4, max_position_embeddings=12)
    spec, model = spec_of(config), build(config, "Sam3LiteTextTextModel")
    with torch.no_grad():
        torch.nn.init.normal_(model.embeddings.position_embedding.position_embedding)
        table = with_weights(spec, 0, model.state_dict())
        assert isinstance(table, Learned)
        for length in (12, 7, 15):
            words = torch.zeros(1, length, dtype=torch.long)
            fitting = table if length == 12 else table.resize(length, "centres")
            got = fitting.embed(model.embeddings.token_embedding(words), posenc.Positions.arange(1, length))
            result.close("what enters the first layer", got, model.embeddings(words), 1.0 if length == 12 else 8.0)
    attends = ["full_attention" if hasattr(layer, "self_attn") else "convolution" for layer in model.layers]
    result.equal("which layers attend", [layer.kind for layer in spec.layers], attends)
    return result
