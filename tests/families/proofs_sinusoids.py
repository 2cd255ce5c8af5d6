"""Sinusoids of text models. Where the family multiplies position and frequency in fp32, one rounding for each position."""

from __future__ import annotations

import torch

import posenc
from families.adding import added, entering
from families.harness import Proof, at_of, build, config_of, proof, spec_of, tokens
from families.silenced import added_by

AT = posenc.Positions.arange(2, 12)
IDS = torch.tensor([[0, 1, 2, 3], [5, 17, 38, 39]])
PADDING = 1
TEXT = torch.tensor([[5, 6, 7, 8, 9, 10], [PADDING, PADDING, 7, 8, 9, 10], [5, 6, 7, 8, PADDING, PADDING]])
STACKS = {"d_model": 64, "max_position_embeddings": 40, "encoder_layers": 2, "decoder_layers": 2,
          "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 16,
          "decoder_ffn_dim": 16}  # fmt: skip


@proof("marian", "pegasus", "pegasus_x")
def _(model_type: str) -> Proof:
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
def _(model_type: str) -> Proof:
    result = Proof(model_type, "encoder and decoder: fairseq's sinusoids added to the embeddings; padding gets none")
    odd = {"d_model": 63, "encoder_attention_heads": 3, "decoder_attention_heads": 3, "hidden_size": None,
           "num_attention_heads": None}  # fmt: skip
    vocabularies = {"src_vocab_size": 32, "tgt_vocab_size": 32, "langs": ["en", "de"]} if model_type == "fsmt" else {}
    config = config_of(model_type, **STACKS | odd | vocabularies, pad_token_id=PADDING)
    model, spec = build(config, attention=None), spec_of(config)
    at = posenc.Positions.from_mask(TEXT != PADDING)
    arrange = (lambda x: x.transpose(0, 1)) if model_type == "fsmt" else (lambda x: x)
    for side in ("encoder", "decoder"):
        inputs = {"input_ids": TEXT, "decoder_input_ids": TEXT, "attention_mask": (TEXT != PADDING).long()}
        added_by(result, spec[side], model, f"{side}.embed_positions", f"{side}.layers.0", at, inputs, 8.0,
                 what="embeddings with positions, padded left and right", arrange=arrange)  # fmt: skip
    return result


@proof("xglm")
def _(model_type: str) -> Proof:
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
def _(model_type: str) -> Proof:
    result = Proof(model_type, "sinusoids added to the embeddings, sines first")
    config = config_of(model_type, n_positions=40, dff=16)
    model, spec = build(config, attention=None), spec_of(config)
    inputs = {"input_ids": tokens(IDS.shape), "position_ids": IDS}

    with_positions = entering(model, "h.0", inputs)
    model.pos_encoding = torch.zeros_like(model.pos_encoding)
    alone = entering(model, "h.0", inputs)
    result.close("embeddings with positions", spec.encoding(0).embed(alone, at_of(IDS)), with_positions, 40.0)
    return result


@proof("distilbert", "xlm", "flaubert")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "learned table, or sinusoids, added to the embeddings")
    name, after, flag, width = {
        "distilbert": ("embeddings.position_embeddings", "embeddings.LayerNorm", "sinusoidal_pos_embds", "dim"),
    }.get(model_type, ("position_embeddings", "layer_norm_emb", "sinusoidal_embeddings", "emb_dim"))
    for sines in (False, True):
        config = config_of(model_type, max_position_embeddings=40, **{flag: sines, width: 64, "n_layers": 2, "n_heads": 4})
        model, spec = build(config, attention=None), spec_of(config)
        text = tokens(IDS.shape)
        at, inputs = posenc.Positions.arange(*IDS.shape), {"input_ids": text}
        if model_type != "distilbert":
            at, inputs = at_of(IDS), inputs | {"position_ids": IDS}
        added_by(result, spec, model, name, after, at, inputs)
    return result


@proof("trocr")
def _(model_type: str) -> Proof:
    result = Proof(model_type, "learned table with two rows before position 0, or fairseq's sinusoids")
    sizes = {
        "hidden_size": None,
        "num_attention_heads": None,
        "d_model": 63,
        "decoder_layers": 2,
        "decoder_attention_heads": 3,
        "decoder_ffn_dim": 16,
    }
    for learned in (True, False):
        config = config_of(model_type, max_position_embeddings=40, pad_token_id=PADDING, layernorm_embedding=True,
                           use_learned_position_embeddings=learned, **sizes)  # fmt: skip
        model, spec = build(config, "TrOCRForCausalLM", attention=None), spec_of(config)
        if learned:
            added(result, spec, model, "layernorm_embedding", AT)
        else:
            at = posenc.Positions.from_mask(TEXT != PADDING)
            added_by(result, spec, model, "embed_positions", "layernorm_embedding", at, {"input_ids": TEXT}, 8.0)
    return result
