"""posenc.configs.families.clip, compared with the models' own code in transformers."""

from __future__ import annotations

from typing import Any

import torch
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

import posenc
from families.adding import added
from families.harness import Call, Proof, at_of, build, calls, config_of, made_of, proof, spec_of, tokens
from families.proofs_marian import LONG, sines
from families.proofs_vit import SMALL, grids, picture, randomly
from families.turning import SEEN, hidden
from posenc.configs import PositionSpec
from posenc.configs.weights import find

BICUBIC = "learned grid with a row for the class token, bicubic for images of another size"

TOWERS = {  # where the sum goes; whether other sizes must be asked for
    **dict.fromkeys(
        [
            "altclip_vision_model",
            "clip_vision_model",
            "clipseg_vision_model",
            "git_vision_model",
            "kosmos_2_vision_model",
            "metaclip_2_vision_model",
            "chinese_clip_vision_model",
        ],
        "pre_layrnorm",
    ),
    **dict.fromkeys(["owlv2_vision_model", "owlvit_vision_model"], "pre_layernorm"),
    **dict.fromkeys(
        ["blip_vision_model", "blip_2_vision_model", "instructblip_vision_model", "instructblipvideo_vision_model"],
        "layers.0",
    ),
    "flava_image_model": "layer.0",
}


@proof(*TOWERS)
def altclip_vision_model(model_type: str) -> Proof:
    result = Proof(model_type, BICUBIC + ", on request")
    config = config_of(model_type, **SMALL, image_size=10, patch_size=2)
    model, spec = randomly(tower_of(config), "position_embedding", "position_embeddings"), spec_of(config)
    grids(result, spec, model, TOWERS[model_type], native=(5, 5), interpolate_pos_encoding=True)
    if model_type in ("blip_vision_model", "flava_image_model"):  # they ask nobody for the attention they use
        assert len(spec.layers) == 2
    else:
        looking(result, spec, model, pixel_values=picture(5, 5))
    return result


@proof("xclip_vision_model")
def xclip_vision_model(model_type: str) -> Proof:
    result = Proof(model_type, BICUBIC + ", on request; frames have no order")
    sizes: dict[str, Any] = SMALL | {"image_size": 10, "patch_size": 2}
    config = config_of(model_type, **sizes, num_frames=1)
    model, spec = randomly(tower_of(config), "position_embedding"), spec_of(config)
    grids(result, spec, model, "pre_layernorm", native=(5, 5), interpolate_pos_encoding=True)
    several = build(config_of(model_type, **sizes, num_frames=3), "XCLIPVisionModel", attention=None)
    frames, order = torch.cat([picture(5, 5), -picture(5, 5), picture(5, 5).flip(-1)]), torch.tensor([2, 0, 1])
    with torch.no_grad():
        once, again = several(frames).last_hidden_state, several(frames[order]).last_hidden_state
    result.close("frames in another order", once[order], again, 8.0)  # frames are summed in another order, in every layer
    return result


@proof("internvl_vision", "qianfan_ocr_vision")
def internvl_vision(model_type: str) -> Proof:
    result = Proof(model_type, BICUBIC)
    config = config_of(model_type, **SMALL, image_size=[10, 10], patch_size=[2, 2], projection_dim=None)
    model, spec = randomly(tower_of(config), "position_embeddings"), spec_of(config)
    grids(result, spec, model, "layer.0" if model_type == "internvl_vision" else "layers.0", native=(5, 5))
    looking(result, spec, model, pixel_values=picture(5, 5))
    return result


def tower_of(config: Any) -> torch.nn.Module:
    return build(config, type(config).__name__.replace("Config", "Model"))


def looking(result: Proof, spec: PositionSpec, model: torch.nn.Module, **inputs: Any) -> list[Call]:
    """As many attention calls as posenc has layers, each with the mask that posenc says."""
    found = calls(model, **inputs)
    hidden(result, spec, found)
    return found


TEXT: dict[str, bool] = {  # whether later words are hidden
    "clip_text_model": True,
    "clipseg_text_model": True,
    "groupvit_text_model": True,
    "metaclip_2_text_model": True,
    "owlv2_text_model": True,
    "owlvit_text_model": True,
    "xclip_text_model": True,
    "align_text_model": False,
    "chinese_clip_text_model": False,
    "flava_text_model": False,
    "blip_text_model": False,
}

IDS = torch.tensor([[0, 1, 2, 3], [5, 0, 11, 10]])


@proof(*TEXT)
def clip_text_model(model_type: str) -> Proof:
    result = Proof(model_type, "learned table, counted from 0" + (", one way" if TEXT[model_type] else ""))
    config = config_of(model_type, max_position_embeddings=12, num_hidden_layers=2)
    model, spec = tower_of(config), spec_of(config)
    after = "embeddings.LayerNorm" if not TEXT[model_type] else "layers.0"
    silent = ("token_type_embeddings.weight",) if after != "layers.0" and model_type != "blip_text_model" else ()
    asked = {"input_ids": tokens(IDS.shape), "position_ids": IDS}
    if "owl" in model_type:
        asked["attention_mask"] = torch.ones(IDS.shape, dtype=torch.long)
    added(result, spec, model, after, at_of(IDS), asked, silent=silent)
    if model_type in ("blip_text_model", "flava_text_model", "groupvit_text_model"):
        seen(result, model, model_type)
    else:
        looking(result, spec, model, input_ids=tokens((2, SEEN)))
    only_there_but(spec, TEXT[model_type])
    return result


def seen(result: Proof, model: torch.nn.Module, model_type: str) -> None:
    """Whether another word at the end changes what becomes of the first; in BLIP a call can forbid it."""
    words, other = tokens((1, 8)), tokens((1, 8))
    other[0, -1] += 1

    def first(ids: torch.Tensor, **asked: bool) -> torch.Tensor:
        with torch.no_grad():
            return model(input_ids=ids, **asked).last_hidden_state[0, 0]

    result.equal("whether words see later words", torch.equal(first(words), first(other)), TEXT[model_type])
    if model_type == "blip_text_model":
        back = {"is_decoder": True, "use_cache": False}
        result.equal("only back where a call says so", first(words, **back), first(other, **back))


def only_there_but(spec: PositionSpec, causal: bool) -> None:
    assert len(spec.layers) == 2
    assert not spec.layers[1].uses
    assert spec.layers[0].causal is causal


@proof("altclip_text_model", "bridgetower_text_model")
def altclip_text_model(model_type: str) -> Proof:
    result = Proof(model_type, "learned table, counted over non-padding tokens, after the padding token's row")
    config = config_of(model_type, max_position_embeddings=14, num_hidden_layers=2, pad_token_id=1, bos_token_id=0)
    model, spec = tower_of(config), spec_of(config)
    words = tokens((2, 8))
    words[0, :3] = 1
    words[1, 5:] = 1
    added(
        result,
        spec,
        model,
        "embeddings.LayerNorm",
        posenc.Positions.from_mask(words != 1),
        {"input_ids": words},
        silent=("token_type_embeddings.weight",),
    )
    looking(result, spec, model, input_ids=tokens((2, SEEN)))
    only_there_but(spec, False)
    return result


@proof("bridgetower_vision_model")
def bridgetower_vision_model(model_type: str) -> Proof:
    result = Proof(model_type, BICUBIC + ", on request")
    config = config_of(model_type, **SMALL | {"hidden_size": 64}, image_size=10, patch_size=2)
    model, spec = randomly(tower_of(config), "position_embedding"), spec_of(config)
    own = model.forward
    model.forward = lambda pixel_values, **named: own(pixel_values, **named)  # type: ignore[method-assign]
    grids(result, spec, model, "ln_pre", native=(5, 5), interpolate_pos_encoding=True)
    return result


@proof("janus_vision_model", "ovis2_vision", "groupvit_vision_model")
def janus_vision_model(model_type: str) -> Proof:
    fixed = model_type != "janus_vision_model"
    result = Proof(model_type, "learned grid, no class token" + ("" if fixed else ", bicubic on request"))
    more: dict[str, Any] = {}
    if model_type == "groupvit_vision_model":
        more = {"depths": [1, 1], "num_group_tokens": [4, 2], "num_output_groups": [4, 2]}
    config = config_of(model_type, **SMALL, image_size=10, patch_size=2, **more)
    model, spec = randomly(tower_of(config), "position_embedding", "position_embeddings"), spec_of(config)
    others = {"others": ()} if fixed else {"interpolate_pos_encoding": True}
    first = "stages.0" if more else "layers.0"
    grids(result, spec, model, first, native=(5, 5), prefix=0, **others)  # type: ignore[arg-type]
    assert len(spec.layers) == 2
    return result


@proof("tipsv2_vision_model")
def tipsv2_vision_model(model_type: str) -> Proof:
    result = Proof(
        model_type, "learned grid, bilinear with antialiasing for images of another size; registers have no positions"
    )
    config = config_of(model_type, **SMALL, image_size=10, patch_size=2, num_register_tokens=3)
    model, spec = randomly(tower_of(config), "position_embeddings", "register_tokens"), spec_of(config)
    grids(result, spec, model, "layer.0", native=(5, 5), silent=3, others=((3, 7), (4, 4), (8, 6)))
    looking(result, spec, model, pixel_values=picture(5, 5))
    return result


@proof("tipsv2_text_model")
def tipsv2_text_model(model_type: str) -> Proof:
    result = Proof(model_type, "sinusoids [sin | cos] to 1/10 000, counted from 0")
    for width in (64, 60):
        config = config_of(model_type, hidden_size=width, num_hidden_layers=2, max_position_embeddings=256)
        model, spec = build(config, "Tipsv2TextModel"), spec_of(config)
        words = tokens((2, LONG))
        hidden(result, spec, calls(model, input_ids=tokens((2, SEEN))))
        sines(result, spec, model, posenc.Positions.arange(2, LONG), words, "position_embedding")
    return result


INSIDE = {"text_config": "text_model", "vision_config": "vision_model"}


@proof(
    "clip",
    "align",
    "altclip",
    "blip",
    "chinese_clip",
    "clipseg",
    "groupvit",
    "metaclip_2",
    "owlv2",
    "owlvit",
    "tipsv2",
    "vision-text-dual-encoder",
)
def clip(model_type: str) -> Proof:
    result = made_of(model_type, "an encoder for text and one for images, each with its own positions", INSIDE)
    told_apart(result)
    return result


def told_apart(result: Proof) -> None:
    """Every weight that posenc names is in the whole model's checkpoint once."""
    config = CONFIG_MAPPING[result.model_type]()
    with torch.device("meta"):
        state = build(config, attention=None).state_dict()
    keys = [
        weight.key
        for _, part in spec_of(config, defaults=True).walk()
        for layer in part.layers
        for use in layer.uses
        for weight in use.weights
    ]
    for key in keys:
        find(state, key)
    assert len(keys) == len(set(keys))
    result.exact.append(f"names of {len(keys)} weights in a checkpoint of both")
