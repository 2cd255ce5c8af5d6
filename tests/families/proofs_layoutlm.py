"""posenc.configs.families.layoutlm, compared with the models' own code in transformers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import posenc
from families.adding import added, entering
from families.harness import Proof, build, config_of, modeling, proof, spec_of, tokens
from families.proofs_roberta import PADDING, TEXT
from families.scores import bias_of
from families.silenced import Holding, added_by, named, silence
from posenc.configs import PositionSpec
from posenc.configs.weights import with_weights
from posenc.encodings.bases.learned_axes import with_sizes

SIX = 6.0  # terms that may be summed in another order


def boxes(shape: Any, largest: int = 40) -> Tensor:
    corner = torch.randint(0, largest // 2, (*shape, 2), generator=torch.Generator().manual_seed(3))
    size = torch.randint(0, largest // 2, (*shape, 2), generator=torch.Generator().manual_seed(4))
    return torch.cat([corner, corner + size], dim=-1)


def biases(model: torch.nn.Module, names: tuple[str, ...], **inputs: Any) -> list[tuple[Tensor, ...]]:
    """What every self-attention gets under these names."""
    found: list[tuple[Tensor, ...]] = []
    hooks = []
    for path, module in model.named_modules():
        if path.endswith("attention.self"):
            hooks.append(
                module.register_forward_pre_hook(
                    lambda module, arguments, keywords: found.append(tuple(keywords[name] for name in names)),
                    with_kwargs=True,
                )
            )
    with torch.no_grad():
        model(**inputs)
    for hook in hooks:
        hook.remove()
    return found


@proof("layoutlm")
def layoutlm(model_type: str) -> Proof:
    result = Proof(model_type, "learned tables for the text position and x, y, height and width of the box, summed")
    config = config_of(model_type, max_position_embeddings=40, max_2d_position_embeddings=48)
    model, spec = build(config, attention=None), spec_of(config)
    places, bbox = torch.tensor([[0, 1, 2, 3], [5, 17, 38, 39]]), boxes((2, 4))
    at = posenc.Positions.at(torch.cat([places[..., None], with_sizes(bbox)], dim=-1))
    inputs = {"input_ids": tokens((2, 4)), "position_ids": places, "bbox": bbox}
    added(result, spec, model, "embeddings.LayerNorm", at, inputs, SIX, silent=("embeddings.token_type_embeddings.weight",))
    return result


@proof("layoutlmv2", "layoutxlm")
def layoutlmv2(model_type: str) -> Proof:
    """Its whole model wants a vision library; embeddings and encoder are its own modules."""
    result = Proof(
        model_type, "learned tables for the text position and, concatenated, the box; T5 bias of text position, x and y"
    )
    own = modeling("layoutlmv2")
    for flags in ((True, True), (True, False), (False, True)):
        config = config_of(
            model_type,
            max_position_embeddings=40,
            max_2d_position_embeddings=48,
            coordinate_size=12,
            shape_size=8,
            rel_pos_bins=8,
            max_rel_pos=20,
            rel_2d_pos_bins=12,
            max_rel_2d_pos=30,
            has_relative_attention_bias=flags[0],
            has_spatial_attention_bias=flags[1],
        )
        torch.manual_seed(0)
        embeddings, encoder = own.LayoutLMv2Embeddings(config).eval(), own.LayoutLMv2Encoder(config).eval()
        spec, places, bbox = spec_of(config), torch.tensor([[0, 1, 2, 3], [5, 17, 38, 39]]), boxes((2, 4))
        state = Holding(embeddings=embeddings, encoder=encoder).state_dict()
        with torch.no_grad():
            zero = torch.zeros(2, 4, 64)
            got = with_weights(spec["positions"], 0, state).embed(zero, posenc.Positions.at(places))
            result.equal("positions", got, embeddings.position_embeddings(places))
            got = with_weights(spec["boxes"], 0, state).embed(zero, posenc.Positions.at(with_sizes(bbox)))
            result.equal("boxes", got, embeddings._calc_spatial_position_embeddings(bbox))
        inputs = {"attention_mask": torch.zeros(2, 1, 1, 4), "bbox": bbox, "position_ids": places}
        bbox[:, :2, 3] = torch.tensor([2, 16])  # 14 apart, where a bucket begins
        found = biases(encoder, ("rel_pos", "rel_2d_pos"), hidden_states=zero, **inputs)
        compare(result, spec, state, found, flags, places, bbox)
    return result


def compare(
    result: Proof,
    spec: PositionSpec,
    state: Any,
    found: Any,
    flags: Any,
    places: Tensor,
    bbox: Tensor,
    divided: bool = False,
) -> None:
    """The bias of every layer, from the sums that reach attention."""
    assert len(found) == len(spec.layers)
    coords = [places[..., None]] * flags[0] + [bbox[..., [0, 3]]] * flags[1]
    at = posenc.Positions.at(torch.cat(coords, dim=-1).squeeze(-1))
    q = torch.zeros(*places.shape, 64).unflatten(-1, (4, 16)).transpose(1, 2)
    for layer, terms in enumerate(found):
        expected = sum(term for term in terms if term is not None)
        expected = expected / q.shape[-1] ** 0.5 if divided else expected
        got = bias_of(with_weights(spec, layer, state), q, q, at)
        result.close("bias of every layer", got.flatten(), expected.expand(got.shape).flatten())


@proof("layoutlmv3")
def layoutlmv3(model_type: str) -> Proof:
    result = Proof(
        model_type, "RoBERTa's table, concatenated box tables, a table for patches; T5 bias of position, x and y, divided"
    )
    sizes = {
        "max_position_embeddings": 40,
        "max_2d_position_embeddings": 1024,
        "coordinate_size": 12,
        "shape_size": 8,
        "rel_pos_bins": 8,
        "max_rel_pos": 20,
        "rel_2d_pos_bins": 12,
        "max_rel_2d_pos": 30,
        "num_hidden_layers": 2,
        "input_size": 8,
        "patch_size": 4,
        "pad_token_id": PADDING,
    }
    config = config_of(model_type, **sizes)
    model, spec = build(config, attention=None), spec_of(config)
    bbox, text, image = boxes(TEXT.shape, 1000), TEXT, torch.randn(3, 3, 8, 8)
    bbox[:, :2, 3] = bbox[:, :1, 1] + torch.tensor([2, 16])  # 14 apart, where a bucket begins
    bbox[:, 1, 1] = bbox[:, 0, 1]
    text_alone = {"input_ids": text, "bbox": bbox, "attention_mask": (text != PADDING).long()}
    inputs = text_alone | {"pixel_values": image}
    state, sums = model.state_dict(), "embeddings.LayerNorm"
    tables = tuple(f"embeddings.{name}_position_embeddings" for name in "xyhw")
    at = posenc.Positions.from_mask(text != PADDING)
    added_by(
        result,
        spec["positions"],
        model,
        "embeddings.position_embeddings",
        sums,
        at,
        text_alone,
        what="positions",
        others=(*tables, "embeddings.token_type_embeddings"),
    )
    with torch.no_grad():
        with silence(
            *(named(model, name) for name in ("embeddings.position_embeddings", "embeddings.token_type_embeddings"))
        ):
            whole = entering(model, sums, text_alone)
            with silence(*(named(model, name) for name in tables)):
                alone = entering(model, sums, text_alone)
        got = with_weights(spec["boxes"], 0, state).embed(alone, posenc.Positions.at(with_sizes(bbox)))
        result.close("boxes", got, whole)
        model.pos_embed.normal_()
        whole = entering(model, "norm", inputs)
        kept, model.pos_embed.data = model.pos_embed.data.clone(), torch.zeros_like(model.pos_embed)
        alone = entering(model, "norm", inputs)
        model.pos_embed.data = kept
        got = with_weights(spec["patches"], 0, model.state_dict()).embed(alone, posenc.Positions.arange(3, 5))
        result.close("patches", got, whole)
    side = torch.tensor([0, 500, 1000])
    y, x = torch.meshgrid(side[:2], side[:2], indexing="ij")
    patches = torch.stack([x, y, x + 500, y + 500], dim=-1).view(-1, 4)
    page = torch.cat([torch.tensor([[1, 1, 999, 999]]), patches])[None].expand(3, -1, -1)
    for flags in ((True, True), (True, False)):
        config = config_of(model_type, **sizes, has_relative_attention_bias=flags[0], has_spatial_attention_bias=flags[1])
        model, spec = build(config, attention=None), spec_of(config)
        found = biases(model, ("rel_pos", "rel_2d_pos"), **inputs)
        places = torch.cat([torch.arange(6), torch.arange(5)])[None].expand(3, -1)
        compare(result, spec, model.state_dict(), found, flags, places, torch.cat([bbox, page], dim=1), divided=True)
    config = config_of(model_type, **sizes, has_relative_attention_bias=False)
    grades = [finding.key for finding in spec_of(config).remarks if finding.grade == "error"]
    result.equal("what is not used is told", grades, ["has_spatial_attention_bias"])
    model = build(config, attention=None)
    with torch.no_grad():
        model.encoder.rel_pos_x_bias.weight.fill_(float("nan"))
        assert model(**text_alone).last_hidden_state.isfinite().all()
    return result


@proof("lilt")
def lilt(model_type: str) -> Proof:
    result = Proof(model_type, "RoBERTa's table; a second, narrow stack for boxes and positions, scores summed")
    config = config_of(
        model_type,
        hidden_size=48,
        max_position_embeddings=40,
        max_2d_position_embeddings=48,
        channel_shrink_ratio=2,
        pad_token_id=PADDING,
        num_hidden_layers=2,
    )
    model, spec = build(config, attention=None), spec_of(config)
    bbox, at, state = boxes(TEXT.shape), posenc.Positions.from_mask(TEXT != PADDING), model.state_dict()
    inputs = {"input_ids": TEXT, "bbox": bbox, "attention_mask": (TEXT != PADDING).long()}
    added_by(
        result,
        spec,
        model,
        "embeddings.position_embeddings",
        "embeddings.LayerNorm",
        at,
        inputs,
        what="positions",
        others=("embeddings.token_type_embeddings",),
    )
    added_by(
        result,
        spec["layout"],
        model,
        "layout_embeddings.box_position_embeddings",
        "layout_embeddings.LayerNorm",
        at,
        inputs,
        what="positions in the narrow stack",
    )
    entered = entering(model, "layout_embeddings.box_linear_embeddings", inputs)
    with torch.no_grad():
        got = with_weights(spec["boxes"], 0, state).embed(torch.zeros(3, 6, 48), posenc.Positions.at(with_sizes(bbox)))
    result.equal("boxes", got, entered)
    return result
