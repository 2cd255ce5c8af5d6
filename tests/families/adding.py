"""Encodings added to embeddings: the family's sum with and without its positional weights, against posenc's embed.

The family's model runs twice, once with the positional weights set to zero: what then enters the module after the sum is
the embedding alone. posenc adds its encoding, filled from the same weights, to that; the other run is what it must give.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import posenc
from families.harness import Proof, tokens
from posenc.configs import PositionSpec
from posenc.configs.weights import find, with_weights


def entering(model: torch.nn.Module, ending: str, inputs: dict[str, Any]) -> Tensor:
    """The first tensor that enters the first module whose path ends so, in a forward pass."""
    seen: list[Tensor] = []

    def look(module: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        found = [*arguments, *keywords.values()]
        seen.append(next(value for value in found if isinstance(value, Tensor)).detach().clone())

    module = next(module for name, module in model.named_modules() if name.endswith(ending))
    hook = module.register_forward_pre_hook(look, with_kwargs=True)
    try:
        with torch.no_grad():
            model(**inputs)
    finally:
        hook.remove()
    return seen[0]


def added(
    proof: Proof,
    spec: PositionSpec,
    model: torch.nn.Module,
    after: str,
    at: posenc.Positions,
    inputs: dict[str, Any] | None = None,
    most: float = 1.0,
    what: str = "embeddings with positions",
    silent: tuple[str, ...] = (),
) -> None:
    """`after`: path of the module that the sum enters; `at`: where posenc sits the tokens of these inputs.

    silent  ends of other weights in the sum (token types), set to zero in both runs, so that two terms round once
    """
    inputs = {"input_ids": tokens(at.coords.shape[:2])} if inputs is None else inputs
    with torch.no_grad():
        for ending in silent:
            find(dict(model.named_parameters()), ending).zero_()
    encoding = with_weights(spec, 0, model.state_dict())
    with_positions = entering(model, after, inputs)
    state = dict(model.named_parameters()) | dict(model.named_buffers())
    tables = [find(state, weight.key.format(layer=0)) for use in spec.layer(0).uses for weight in use.weights]
    assert tables, f"{proof.model_type}: no positional weights are named"
    kept = [table.detach().clone() for table in tables]
    with torch.no_grad():
        for table in tables:
            table.zero_()
        alone = entering(model, after, inputs)
        for table, value in zip(tables, kept, strict=True):
            table.copy_(value)
        assert not torch.equal(alone, with_positions), f"{proof.model_type}: the named weights make no difference"
        proof.close(what, encoding.embed(alone, at), with_positions, most)
    assert not any(layer.uses for layer in spec.layers[1:] if layer.uses and layer.uses == spec.layers[0].uses)
