"""posenc.configs.families.marian, compared with the models' own code in transformers."""

from __future__ import annotations

import torch
from torch import Tensor

import posenc
from families.adding import entering
from families.harness import Proof, at_of, build, calls, config_of, module_named, proof, spec_of, tokens
from families.proofs_roberta import PADDING, TEXT
from families.silenced import added_by
from families.turning import SEEN, hidden
from posenc.configs import PositionSpec

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
def kosmos_2_text_model(model_type: str) -> Proof:
    result = Proof(model_type, "sinusoids [sin | cos] to 1/10 000, counted over non-padding tokens")
    config = config_of(
        model_type,
        embed_dim=64,
        layers=2,
        attention_heads=4,
        ffn_dim=32,
        max_position_embeddings=256,
        hidden_size=None,
        num_hidden_layers=None,
        num_attention_heads=None,
        pad_token_id=1,
    )
    name = "Kosmos2TextModel" if model_type == "kosmos_2_text_model" else "Kosmos2_5TextModel"
    model, spec = build(config, name), spec_of(config)
    words = tokens((2, LONG))
    words[0, :5] = 1
    words[1, 150:] = 1
    sines(result, spec, model, posenc.Positions.from_mask(words != 1), words, "embed_positions")
    hidden(result, spec, calls(model, input_ids=tokens((2, SEEN))))
    return result


AT = posenc.Positions.arange(2, 12)

IDS = torch.tensor([[0, 1, 2, 3], [5, 17, 38, 39]])


STACKS = {
    "d_model": 64,
    "max_position_embeddings": 40,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 16,
    "decoder_ffn_dim": 16,
}


@proof("marian", "pegasus", "pegasus_x")
def marian(model_type: str) -> Proof:
    result = Proof(model_type, "encoder and decoder: sinusoids added to the embeddings, sines first")
    config = config_of(model_type, **STACKS | ({"block_size": 4} if model_type == "pegasus_x" else {}))
    model, spec = build(config, attention=None), spec_of(config)
    text = tokens((2, 12))
    most = 12.0 if model_type == "pegasus_x" else 1.0
    for side in ("encoder", "decoder"):
        inputs = {"input_ids": text, "decoder_input_ids": text}
        added_by(result, spec[side], model, f"{side}.embed_positions", f"{side}.layers.0", AT, inputs, most)
    return result


@proof("m2m_100", "nllb-moe", "fsmt")
def m2m_100(model_type: str) -> Proof:
    result = Proof(model_type, "encoder and decoder: fairseq's sinusoids added to the embeddings; padding gets zero")
    odd = {
        "d_model": 63,
        "encoder_attention_heads": 3,
        "decoder_attention_heads": 3,
        "hidden_size": None,
        "num_attention_heads": None,
    }
    vocabularies = {"src_vocab_size": 32, "tgt_vocab_size": 32, "langs": ["en", "de"]} if model_type == "fsmt" else {}
    config = config_of(model_type, **STACKS | odd | vocabularies, pad_token_id=PADDING)
    model, spec = build(config, attention=None), spec_of(config)
    at = posenc.Positions.from_mask(TEXT != PADDING)
    arrange = (lambda x: x.transpose(0, 1)) if model_type == "fsmt" else (lambda x: x)
    for side in ("encoder", "decoder"):
        inputs = {"input_ids": TEXT, "decoder_input_ids": TEXT, "attention_mask": (TEXT != PADDING).long()}
        added_by(
            result,
            spec[side],
            model,
            f"{side}.embed_positions",
            f"{side}.layers.0",
            at,
            inputs,
            8.0,
            what="embeddings with positions, padded left and right",
            arrange=arrange,
        )
    return result


@proof("xglm")
def xglm(model_type: str) -> Proof:
    result = Proof(model_type, "fairseq's sinusoids from row 2 on, added to the embeddings")
    config = config_of(
        model_type,
        d_model=63,
        num_layers=2,
        attention_heads=3,
        ffn_dim=16,
        hidden_size=None,
        num_attention_heads=None,
        max_position_embeddings=40,
    )
    model, spec = build(config, attention=None), spec_of(config)
    inputs = {"input_ids": tokens(IDS.shape), "position_ids": IDS}
    added_by(result, spec, model, "embed_positions", "layers.0", at_of(IDS), inputs, 42.0)
    return result


@proof("ctrl")
def ctrl(model_type: str) -> Proof:
    result = Proof(model_type, "sinusoids added to the embeddings, sines first")
    config = config_of(model_type, n_positions=40, dff=16)
    model, spec = build(config, attention=None), spec_of(config)
    inputs = {"input_ids": tokens(IDS.shape), "position_ids": IDS}

    with_positions = entering(model, "h.0", inputs)
    model.pos_encoding = torch.zeros_like(model.pos_encoding)
    alone = entering(model, "h.0", inputs)
    result.close("embeddings with positions", spec.encoding(0).embed(alone, at_of(IDS)), with_positions, 40.0)
    return result
