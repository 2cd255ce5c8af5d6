"""posenc.configs.families.vit, compared with the models' own code in transformers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import posenc
from families.adding import added, entering
from families.harness import Proof, build, calls, config_of, proof, spec_of
from posenc.configs import PositionSpec
from posenc.configs.weights import with_weights


@proof("radio")
def radio(model_type: str) -> Proof:
    result = Proof(model_type, "learned grid, interpolated to a square, of which the image uses the upper left")
    config = config_of(model_type, num_hidden_layers=2, patch_size=2, max_img_size=16, image_size=8)
    model, spec = build(config), spec_of(config)
    torch.nn.init.normal_(model.embeddings.position_embedding)
    encoding, prefix = with_weights(spec, 0, model.state_dict()), config.num_cls_tokens + config.num_registers
    assert not any(layer.uses for layer in spec.layers[1:])
    with torch.no_grad():
        for height, width in ((8, 8), (3, 5), (6, 2)):
            pixels = torch.rand(1, 3, height * 2, width * 2)
            patches = model.embeddings.patch_projection(model.embeddings._image_to_patches(pixels))
            tokens = torch.cat([model.embeddings.cls_register_token[None], patches], dim=1)
            # torch finds places in fp32: near cell 8, to 8 roundings of a cell
            places = posenc.Positions.grid(height, width, sized=True).coords.clone()
            places[..., 2:] = max(height, width)
            first = torch.full((1, prefix, 4), -1).index_fill(-1, torch.tensor([2, 3]), max(height, width))
            at = posenc.Positions.at(torch.cat([first, places], dim=1))
            result.close(
                "embedded patches of images of three shapes", encoding.embed(tokens, at), model.embeddings(pixels), 8
            )
    assert len(calls(model, torch.rand(1, 3, 8, 8))) == len(spec.layers)
    return result


@proof("dpt")
def dpt(model_type: str) -> Proof:
    result = Proof(model_type, "learned grid, bilinear for images of another size, or as its backbone")
    config = config_of(model_type, **SMALL, image_size=10, patch_size=2, backbone_out_indices=[0, 1, 0, 1])
    model = randomly(build(config), "position_embeddings")
    grids(result, spec_of(config), model, "layer.0", native=(5, 5))
    backbone = {"model_type": "dinov2", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = config_of(model_type, backbone_config=backbone)
    from transformers import DPTForDepthEstimation

    with torch.device("meta"):
        whole = DPTForDepthEstimation(config)
    result.equal("the backbone", spec_of(config)["backbone_config"].family, whole.backbone.config.model_type)
    assert not hasattr(whole, "dpt") or whole.dpt is None
    return result


@proof("audio-spectrogram-transformer")
def audio_spectrogram_transformer(model_type: str) -> Proof:
    result = Proof(model_type, "a learned table over patches of frequency and time, after two special tokens")
    config = config_of(
        model_type, num_hidden_layers=2, num_mel_bins=16, max_length=30, patch_size=4, frequency_stride=3, time_stride=2
    )
    model, spec = randomly(build(config, attention=None), "position_embeddings"), spec_of(config)
    inputs = {"input_values": torch.randn(2, 30, 16, generator=torch.Generator().manual_seed(0))}
    at = posenc.Positions.at(posenc.Positions.grid(5, 14, prefix=2, sized=True).coords.expand(2, -1, -1))
    after = next(
        name for name, _ in model.named_modules() if name.endswith((".layers.0", ".layer.0")) or name == "layers.0"
    )
    added(result, spec, model, after, at, inputs)
    return result


SMALL: dict[str, Any] = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": None}

OTHERS = ((3, 7), (9, 4), (8, 8))  # rows and columns of patches


def places(height: int, width: int, prefix: int = 0, silent: int = 0, sized: bool = False) -> posenc.Positions:
    """`prefix` tokens with rows of their own, `silent` ones without, then patches row by row."""
    at = posenc.Positions.grid(height, width, prefix=prefix, sized=sized).coords
    nothing = torch.full((1, silent, at.shape[-1]), -1).index_fill(-1, torch.arange(2, at.shape[-1]), max(height, width))
    return posenc.Positions.at(torch.cat([at[:, :prefix], nothing, at[:, prefix:]], dim=1))


def randomly(model: torch.nn.Module, *endings: str) -> torch.nn.Module:
    """The same model, parameters of these names random: they start as zeros in many."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith(endings):
                torch.nn.init.normal_(parameter)
    return model


def picture(height: int, width: int, patch: int = 2) -> Tensor:
    return torch.randn(1, 3, patch * height, patch * width, generator=torch.Generator().manual_seed(5))


def grids(
    result: Proof,
    spec: PositionSpec,
    model: torch.nn.Module,
    first: str,
    *,
    native: tuple[int, int],
    prefix: int = 1,
    silent: int = 0,
    others: tuple[tuple[int, int], ...] = OTHERS,
    patch: int = 2,
    **asked: Any,
) -> None:
    """`first`: path of the first layer; `asked` goes with calls whose image has another size. Sides of fp32 steps there."""
    what = "what enters the first layer"
    added(result, spec, model, first, places(*native, prefix, silent), {"pixel_values": picture(*native, patch)}, what=what)
    for size in others:
        at, image = places(*size, prefix, silent, sized=True), {"pixel_values": picture(*size, patch)}
        added(result, spec, model, first, at, image | asked, 16.0, f"{what}, images of other sizes")
    only_there(spec)


def only_there(spec: PositionSpec) -> None:
    assert not any(layer.uses for layer in spec.layers[1:])
    assert not any(layer.causal or layer.window for layer in spec.layers)


BICUBIC = "learned grid, bicubic for images of another size"

KIN = {
    "vit": (1, True),
    "vit_msn": (1, True),
    "deit": (2, True),
    "ijepa": (0, True),
    "dinov2": (1, False),
    "pixio": (3, False),
}


@proof(*KIN)
def vit(model_type: str) -> Proof:
    prefix, asks = KIN[model_type]
    result = Proof(model_type, BICUBIC + (", on request" if asks else ""))
    more = {"n_cls_tokens": 3} if model_type == "pixio" else {}
    config = config_of(model_type, **SMALL, image_size=10, patch_size=2, **more)
    model, spec = randomly(build(config), "position_embeddings"), spec_of(config)
    first = "layers.0" if any(name.endswith("layers.0") for name, _ in model.named_modules()) else "layer.0"
    grids(result, spec, model, first, native=(5, 5), prefix=prefix, **({"interpolate_pos_encoding": True} if asks else {}))
    assert len(spec.layers) == 2
    return result


@proof("dinov2_with_registers")
def dinov2_with_registers(model_type: str) -> Proof:
    result = Proof(model_type, f"{BICUBIC}, antialiased; registers have no positions")
    config = config_of(model_type, **SMALL, image_size=10, patch_size=2, num_register_tokens=3)
    model = randomly(build(config), "position_embeddings", "register_tokens")
    grids(result, spec_of(config), model, "layer.0", native=(5, 5), silent=3, others=((3, 7), (4, 4), (8, 6)))
    return result


@proof("vitpose_backbone")
def vitpose_backbone(model_type: str) -> Proof:
    result = Proof(model_type, "learned grid; the class token's row is added to every patch")
    config = config_of(model_type, **SMALL, image_size=[32, 24], patch_size=[8, 8], part_features=8, num_experts=1)
    model, spec = randomly(build(config, "VitPoseBackbone"), "position_embeddings"), spec_of(config)
    encoding = with_weights(spec, 0, model.state_dict())
    image = torch.randn(1, 3, 32, 24)
    table = model.embeddings.position_embeddings
    with torch.no_grad():
        patches = model.embeddings.patch_embeddings(image)
        height, width = model.embeddings.patch_embeddings.projection(image).shape[-2:]
        expected = entering(model, "layer.0", {"pixel_values": image})
        got = encoding.embed(patches, places(height, width)) + table[:, :1]
    result.close("what enters the first layer, less the same row for all", got - table[:, :1], expected - table[:, :1], 4.0)
    only_there(spec)
    return result


@proof("vivit")
def vivit(model_type: str) -> Proof:
    result = Proof(model_type, "learned table over the tubelets of a video, the class token's row first")
    config = config_of(model_type, **SMALL, image_size=[6, 4], num_frames=6, tubelet_size=[2, 2, 2])
    model, spec = randomly(build(config), "position_embeddings"), spec_of(config)
    video = {"pixel_values": torch.randn(1, 6, 3, 6, 4)}
    added(
        result,
        spec,
        model,
        "layers.0",
        posenc.Positions.arange(1, 3 * 3 * 2 + 1),
        video,
        what="what enters the first layer",
    )
    only_there(spec)
    return result


@proof("mgp-str")
def mgp_str(model_type: str) -> Proof:
    result = Proof(model_type, "learned grid with a row for the class token")
    config = config_of(
        model_type,
        **SMALL,
        image_size=[8, 12],
        patch_size=2,
        max_token_length=5,
        num_character_labels=8,
        num_bpe_labels=8,
        num_wordpiece_labels=8,
    )
    model, spec = randomly(build(config, "MgpstrModel", attention=None), "pos_embed"), spec_of(config)
    added(
        result,
        spec,
        model,
        "blocks.0",
        places(4, 6, 1),
        {"pixel_values": picture(4, 6)},
        what="what enters the first layer",
    )
    assert len(model.encoder.blocks) == len(spec.layers) == 2
    assert not spec.layers[1].uses
    return result
