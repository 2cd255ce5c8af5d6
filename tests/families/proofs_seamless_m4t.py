"""posenc.configs.families.seamless_m4t, compared with the models' own code in transformers."""

from __future__ import annotations

from typing import Any

import torch

import posenc
from families.harness import Proof, calls, config_of, modeling, proof, spec_of
from families.proofs_wav2vec2_conformer import FRAMES, conformer
from posenc.configs.weights import with_weights

SIZES: dict[str, Any] = {
    "hidden_size": 64,
    "speech_encoder_layers": 2,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "t2u_encoder_layers": 2,
    "t2u_decoder_layers": 2,
    "encoder_ffn_dim": 32,
    "decoder_ffn_dim": 32,
    "speech_encoder_intermediate_size": 32,
    "t2u_encoder_ffn_dim": 32,
    "t2u_decoder_ffn_dim": 32,
    "speech_encoder_attention_heads": 4,
    "conv_depthwise_kernel_size": 3,
    "vocab_size": 32,
    "t2u_vocab_size": 32,
    "pad_token_id": 2,
    "t2u_pad_token_id": 1,
    "num_hidden_layers": None,
    "num_attention_heads": None,
    "decoder_start_token_id": 3,
    "char_vocab_size": 32,
    "char_pad_token_id": 0,
    "variance_predictor_embed_dim": 64,
}

MOST = 2.0 * 14  # their frequencies and angles, up to 14, each round once in fp32


@proof("seamless_m4t", "seamless_m4t_v2")
def seamless_m4t(model_type: str) -> Proof:
    second = model_type == "seamless_m4t_v2"
    result = Proof(
        model_type,
        "sinusoids, sin | cos, for text and units; for speech "
        + (
            "relative vectors with a limit on each side, in chunks"
            if second
            else "Transformer-XL's terms or a rotation of the projections' input"
        ),
    )
    module, stem = modeling(model_type), "SeamlessM4Tv2" if second else "SeamlessM4T"
    fields = config_of(model_type, num_hidden_layers=None, num_attention_heads=None).__dataclass_fields__
    sizes = {name: value for name, value in SIZES.items() if name in fields or value is None}
    if second:
        sizes |= {
            "left_max_position_embeddings": 5,
            "right_max_position_embeddings": 2,
            "speech_encoder_chunk_size": 7,
            "speech_encoder_left_chunk_num": 1,
        }
    for kind in ("relative_key", None) if second else ("relative", "rotary", None):
        config = config_of(model_type, **sizes)
        config.position_embeddings_type, config._attn_implementation = kind or "none", "probe"
        torch.manual_seed(0)
        encoder = getattr(module, f"{stem}ConformerEncoder")(config).eval()
        spec = spec_of(config)
        conformer(result, encoder, spec["speech_encoder"], kind)
        if second:
            mask = calls(encoder, torch.zeros(2, FRAMES, 64), fixed=False)[0].mask
            chunk = torch.arange(FRAMES) // 7
            behind = chunk[:, None] - chunk[None]
            assert mask.dtype == torch.bool  # which sdpa takes as a mask, while eager adds it to the scores
            assert torch.equal(mask[0, 0], (behind >= 0) & (behind <= 1))
    adapters = len(spec["speech_encoder"].layers) - 2
    assert adapters == (config.num_adapter_layers if config.add_adapter else 0)

    ids = torch.tensor([[5, 6, 7, 8, 9, 4, 5, 6, 7, 8, 9, 4], [2, 2, 8, 9, 5, 6, 7, 8, 2, 2, 2, 2]])
    at = posenc.Positions.from_mask(ids != 2)
    sinusoids = getattr(module, f"{stem}SinusoidalPositionalEmbedding")
    for part, name in (("text_encoder", "Encoder"), ("text_decoder", "Decoder")):
        config._attn_implementation = "eager"
        stack = getattr(module, f"{stem}{name}")(config).eval()
        assert isinstance(stack.embed_positions, sinusoids)
        assert len(stack.layers) == len(spec[part].layers)
        with torch.no_grad():
            own = stack.embed_positions(ids)
            got = spec[part].encoding(0).embed(torch.zeros_like(own), at)
            kept = ids != 2
            result.close("what is added to embeddings", got[kept], own[kept], MOST)
            assert not own[~kept].any()
            assert not got[~kept].any()
    units = getattr(module, f"{stem}TextToUnitForConditionalGeneration")(config).eval().model
    assert not hasattr(units.encoder, "embed_positions")
    assert not spec["t2u_encoder"].layers[0].uses
    with torch.no_grad():
        if second:
            units.decoder.pos_emb_alpha.fill_(0.7)
            own = 0.7 * units.decoder.embed_positions(inputs_embeds=torch.zeros(2, 12, 64))
            own = own.expand(2, -1, -1)
            encoding = with_weights(spec["t2u_decoder"], 0, units.decoder.state_dict())
            at = posenc.Positions.arange(2, 12)
        else:
            own = units.decoder.embed_positions(torch.where(ids == 2, 1, ids))
            encoding = spec["t2u_decoder"].encoding(0)
        got = encoding.embed(torch.zeros(2, 12, 64), at)
        kept = torch.ones_like(ids, dtype=torch.bool) if second else kept
        result.close("what is added to units", got[kept], own[kept], MOST)
    return result
