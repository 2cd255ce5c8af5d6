"""Stored and loaded, copied, pickled, made on meta: the same numbers, for every encoding of words in a row."""

from __future__ import annotations

import copy
import io
import pickle

import pytest
import safetensors.torch
import torch

from field_bugs.worlds import ROW_BY_ROW, attention, same, tokens
from posenc import Attention, Positions
from sampling import foundation_first


def through_torch_save(model: Attention, empty: Attention) -> Attention:
    """The state dict as a file, read with weights_only."""
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    empty.load_state_dict(torch.load(file, weights_only=True))
    return empty


def through_safetensors(model: Attention, empty: Attention) -> Attention:
    empty.load_state_dict(safetensors.torch.load(safetensors.torch.save(model.state_dict())))
    return empty


def whole_module(model: Attention, empty: Attention) -> Attention:
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


def materialised(model: Attention, empty: Attention) -> Attention:
    empty = empty.to("meta").to_empty(device="cpu")
    empty.load_state_dict(model.state_dict())
    return empty


WAYS = {
    "torch.save": through_torch_save,
    "safetensors": through_safetensors,
    "the whole module": whole_module,
    "pickle": lambda model, empty: pickle.loads(pickle.dumps(model)),
    "deepcopy": lambda model, empty: copy.deepcopy(model),
    "assigned": lambda model, empty: (empty.load_state_dict(model.state_dict(), assign=True), empty)[1],
    "from meta": materialised,
}


@torch.no_grad()
def spoilt(model: Attention) -> Attention:
    """Other weights, so that what is not loaded shows."""
    for one in model.parameters():
        one.fill_(7.7)
    return model


@pytest.mark.parametrize("name", foundation_first(ROW_BY_ROW))
def test_every_way_to_store_a_layer(name):
    model, x, at = attention(name), tokens(2, 9), Positions.arange(2, 9, 20)
    with torch.no_grad():
        expected = model(x, at)
        for what, way in WAYS.items():
            same(way(model, spoilt(attention(name)))(x, at), expected, f"{name}, {what}")


@pytest.mark.parametrize("name", ["learned", "t5"])
def test_a_parameter_that_is_not_stored_is_noticed(name):
    model = attention(name)
    stored = {key: value for key, value in model.state_dict().items() if not key.endswith("table")}
    with pytest.raises(RuntimeError, match=r"Missing key.*table"):
        spoilt(attention(name)).load_state_dict(stored)
