"""Sines and cosines of the text models of Kosmos and TIPS 2."""

from __future__ import annotations

import torch
from torch import Tensor

import posenc
from families.adding import entering
from families.harness import Proof, build, calls, config_of, module_named, proof, spec_of, tokens
from families.turning import SEEN, hidden
from posenc.dialects import PositionSpec

LONG = 200


def sines(result: Proof, spec: PositionSpec, model: torch.nn.Module, at: posenc.Positions, words: Tensor, end: str) -> None:
    """What enters the first layer, with the family's table and with nothing in its place."""
    table = module_named(model, end)
    added = entering(model, "layers.0", {"input_ids": words})
    table.weights = torch.zeros_like(table.weights)
    alone = entering(model, "layers.0", {"input_ids": words})
    # theirs multiplies position and frequency in fp32: an angle up to t is t · 2^-24 off, twice
    result.close(f"what enters the first layer, to position {LONG}", spec.encoding(0).embed(alone, at), added, 1.0 + LONG)
    assert not any(layer.uses for layer in spec.layers[1:])


@proof("kosmos_2_text_model", "kosmos_2_5_text_model")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "sinusoids [sin | cos] to 1/10 000, counted over tokens that are no padding")
    config = config_of(model_type, embed_dim=64, layers=2, attention_heads=4, ffn_dim=32, max_position_embeddings=256,
                       hidden_size=None, num_hidden_layers=None, num_attention_heads=None, pad_token_id=1)  # fmt: skip
    name = "Kosmos2TextModel" if model_type == "kosmos_2_text_model" else "Kosmos2_5TextModel"
    model, spec = build(config, name), spec_of(config)
    words = tokens((2, LONG))
    words[0, :5] = 1
    words[1, 150:] = 1
    sines(result, spec, model, posenc.Positions.from_mask(words != 1), words, "embed_positions")
    hidden(result, spec, calls(model, input_ids=tokens((2, SEEN))))
    return result


@proof("tipsv2_text_model")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "sinusoids [sin | cos] to 1/10 000, counted from 0")
    for width in (64, 60):
        config = config_of(model_type, hidden_size=width, num_hidden_layers=2, max_position_embeddings=256)
        model, spec = build(config, "Tipsv2TextModel"), spec_of(config)
        words = tokens((2, LONG))
        hidden(result, spec, calls(model, input_ids=tokens((2, SEEN))))
        sines(result, spec, model, posenc.Positions.arange(2, LONG), words, "position_embedding")
    return result
