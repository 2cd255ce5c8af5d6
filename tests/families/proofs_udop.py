"""posenc.configs.families.udop, compared with the models' own code in transformers."""

from __future__ import annotations

import torch

import posenc
from families.harness import Proof, build, calls, config_of, proof, spec_of, tokens
from families.proofs_t5 import FEW, SIZES, far
from families.scores import bias_of
from families.silenced import added_by
from posenc.configs.weights import with_weights


@proof("udop")
def udop(model_type: str) -> Proof:
    result = Proof(
        model_type, "tables of box corners; T5 bias of position, x and y in the encoder, of position in the decoder"
    )
    other = [
        {"type": "vertical", "max_distance": 30, "relative_attention_num_buckets": 12},
        {"type": "1d", "max_distance": 9},
    ]
    for asked in (None, other):
        config = config_of(
            model_type, **SIZES | FEW, relative_bias_args=asked, max_2d_position_embeddings=40, image_size=8, patch_size=4
        )
        model, spec = build(config), spec_of(config)
        with torch.no_grad():
            for weight in (p for n, p in model.named_parameters() if "bias.weight" in n or "position_embeddings" in n):
                weight.normal_()
        corner = torch.rand(2, 12, 2, generator=torch.Generator().manual_seed(1))
        bbox = torch.cat([corner, corner + 0.3], dim=-1)  # some beyond 1
        text = tokens((2, 12))
        inputs = {"input_ids": text, "bbox": bbox, "decoder_input_ids": text[:, :9]}
        rows = posenc.Positions.at((bbox.clamp(0, 1) * 39).long())
        added_by(
            result,
            spec["boxes"],
            model,
            "encoder.cell_2d_embedding",
            "encoder.block.0",
            rows,
            inputs,
            4.0,
            what="corners of boxes",
        )
        found = calls(model, fixed=False, **inputs)
        encoder, decoder = found[:3], found[3::2]
        assert (len(encoder), len(decoder)) == (len(spec["encoder"].layers), len(spec["decoder"].layers))
        middle = torch.stack([bbox[..., [0, 2]].mean(-1), bbox[..., [1, 3]].mean(-1)], dim=-1)
        slot = torch.arange(12.0).expand(2, -1)[..., None]
        coords = torch.cat([slot, middle] if asked is None else [middle[..., 1:], slot], dim=-1)
        state = model.state_dict()
        for layer, call in enumerate(encoder):
            encoding = with_weights(spec["encoder"], layer, state)
            got = bias_of(encoding, call.q, call.k, posenc.Positions.at(coords))
            result.close(
                "bias of every layer of the encoder",
                got.flatten(),
                call.options["position_bias"].expand(got.shape).flatten(),
            )
            assert call.scaling == encoding.softmax_scale(16) == 1
        far(result, with_weights(spec["decoder"], 0, state), model.decoder.block[0].layer[0].SelfAttention)
        for layer, call in enumerate(decoder):
            encoding = with_weights(spec["decoder"], layer, state)
            assert call.scaling == encoding.softmax_scale(16) == 1
            got = bias_of(encoding, call.q, call.k, posenc.Positions.arange(2, 9))
            result.equal("bias of every layer of the decoder", got, call.options["position_bias"].expand(got.shape))
    return result
