"""What enters the projections of queries and keys of a detector, against what enters that of values.

A small residual network stands before them; images are padded on the right and below, so that counts differ from places.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import posenc
from families.harness import Proof, config_of

RESNET = {
    "model_type": "resnet",
    "embedding_size": 8,
    "hidden_sizes": [8, 8, 8, 8],
    "depths": [1, 1, 1, 1],
    "layer_type": "basic",
}
SMALL: dict[str, Any] = {
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 16,
    "decoder_ffn_dim": 16,
    "num_queries": 7,
    "hidden_size": None,
    "num_hidden_layers": None,
    "num_attention_heads": None,
    "intermediate_size": None,
    "backbone": None,
    "use_timm_backbone": False,
    "use_pretrained_backbone": False,
}
LINES = (
    "q_proj",
    "k_proj",
    "v_proj",
    "sampling_offsets",
    "value_proj",
    "q_content_proj",
    "q_pos_proj",
    "k_pos_proj",
    "q_pos_sine_proj",
    "k_content_proj",
    "query",
    "key",
    "value",
)
SINES = 16.0  # theirs computes angles to 2π in fp32


def images(height: int = 64, width: int = 96) -> dict[str, Tensor]:
    mask = torch.ones(2, height, width, dtype=torch.long)
    mask[1, 40:], mask[1, :, 60:] = 0, 0
    return {
        "pixel_values": torch.randn(2, 3, height, width, generator=torch.Generator().manual_seed(2)),
        "pixel_mask": mask,
    }


def entered(model: torch.nn.Module, inputs: dict[str, Any]) -> tuple[dict[str, Tensor], list[Tensor]]:
    """What enters each projection, by its path, and the masks of the maps whose positions were asked for."""
    seen: dict[str, Tensor] = {}
    masks: list[Tensor] = []

    def look(name: str) -> Any:
        return lambda module, given, named: seen.__setitem__(
            name, (given[0] if given else next(iter(named.values()))).clone()
        )

    def ask(module: Any, given: Any, named: dict[str, Any]) -> None:
        if "width" in named:  # of plain rows and columns
            return
        shape = named["shape"] if "shape" in named else given[0] if isinstance(given[0], torch.Size) else given[0].shape
        last = named.get("mask", named.get("pixel_mask", given[-1] if given and isinstance(given[-1], Tensor) else None))
        mask = torch.ones(shape[0], *shape[-2:]) if last is None or last.ndim != 3 else last
        masks.append(mask.bool())

    hooks = []
    for name, module in model.named_modules():
        if name.rpartition(".")[2] in LINES and isinstance(module, torch.nn.Linear):
            hooks.append(module.register_forward_pre_hook(look(name), with_kwargs=True))
        if "PositionEmbedding" in type(module).__name__:
            hooks.append(module.register_forward_pre_hook(ask, with_kwargs=True))
    with torch.no_grad():
        model(**inputs)
    for hook in hooks:
        hook.remove()
    return seen, masks


def of(seen: dict[str, Tensor], path: str, name: str) -> Tensor:
    found = [x for key, x in seen.items() if key.endswith(f"{path}.{name}")]
    assert len(found) == 1, f"{path}.{name}: {len(found)} of {list(seen)[:30]}"
    x = found[0]
    return x if x.ndim == 3 else x[None]


def sums(
    result: Proof,
    what: str,
    encoding: Any,
    seen: dict[str, Tensor],
    path: str,
    names: tuple[str, ...],
    plain: str,
    at: posenc.Positions,
    most: float = SINES,
    besides: Tensor | float = 0.0,
) -> None:
    """What enters `names` is what enters `plain` with the encoding (and something besides) added."""
    x = of(seen, path, plain)
    at = at if at.batch == len(x) else at.expand(len(x))
    real = at.document >= 0  # what padding gets is never read, and in one family is an angle of 3 million
    for name in names:
        with torch.no_grad():
            got = encoding.embed(x + besides, at)
        result.close(what, got[real], of(seen, path, name)[real], most)


def pixels(masks: list[Tensor], **options: Any) -> posenc.Positions:
    return posenc.Positions.cat([posenc.Positions.pixels(mask, **options) for mask in masks])


def config(model_type: str, **more: Any) -> Any:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    known = set(CONFIG_MAPPING[model_type].__dataclass_fields__) | set(CONFIG_MAPPING[model_type].attribute_map or {})
    sizes = {
        name: value for name, value in (SMALL | more).items() if name in known or name == "backbone_config" or value is None
    }
    return config_of(model_type, **sizes)
