"""posenc.configs.families.vit_mae, compared with the models' own code in transformers."""

from __future__ import annotations

import torch

from families.adding import added
from families.harness import Proof, build, config_of, proof, spec_of
from families.proofs_vit import BICUBIC, SMALL, only_there, picture, places, randomly
from posenc.configs.weights import with_weights
from posenc.encodings.sinusoidal import Sinusoidal


@proof("vit_mae")
def vit_mae(model_type: str) -> Proof:
    result = Proof(model_type, "learned grids initialised as sinusoids; the decoder's is interpolated as one long row")
    more = {"decoder_hidden_size": 16, "decoder_num_hidden_layers": 2, "decoder_num_attention_heads": 2}
    config = config_of(
        model_type, **SMALL, **more, image_size=10, patch_size=2, mask_ratio=0.0, decoder_intermediate_size=16
    )
    model, spec = build(config, "ViTMAEForPreTraining"), spec_of(config)
    model.vit.embeddings.patch_embeddings.projection._is_hf_initialized = False
    model.vit.embeddings.initialize_weights()
    first = Sinusoidal(32, axes=2, layout="sin_cos", reads=(1, 0), silent="negative")
    at = places(5, 5, 0, 1)
    table = first.embed(torch.zeros(1, 26, 32), at)
    result.close("what the table starts as", table, model.vit.embeddings.position_embeddings.detach())
    randomly(model, "position_embeddings", "decoder_pos_embed")
    for size in ((5, 5), (3, 7), (8, 8)):
        asked = {"interpolate_pos_encoding": True} if size != (5, 5) else {}
        noise = torch.arange(size[0] * size[1])[None].float()  # in order, none masked
        inputs = {"pixel_values": picture(*size), "noise": noise, **asked}
        most = 16.0 if asked else 1.0
        added(result, spec, model, "vit.layers.0", places(*size, 1, sized=True), inputs, most, BICUBIC)
        row = places(1, size[0] * size[1], 1, sized=True)
        # cells are 1 of 25 apart over the whole row: torch finds their places in fp32
        added(result, spec["decoder"], model, "decoder_layers.0", row, inputs, 64.0 if asked else 1.0, "the decoder's")
    only_there(spec)
    return result


@proof("hiera")
def hiera(model_type: str) -> Proof:
    result = Proof(model_type, "learned grid of the finest stage, bicubic on request; of the coarsest before the decoder")
    config = config_of(
        model_type,
        embed_dim=16,
        image_size=[32, 32],
        depths=[1, 1, 1],
        num_heads=[1, 2, 4],
        num_query_pool=1,
        masked_unit_attention=[True, False, False],
        masked_unit_size=[4, 4],
        decoder_hidden_size=16,
        decoder_depth=1,
        decoder_num_heads=2,
        hidden_size=None,
        num_hidden_layers=None,
        num_attention_heads=None,
    )
    model, spec = randomly(build(config, "HieraForPreTraining"), "position_embeddings"), spec_of(config)
    assert len(spec.layers) == 3
    only_there(spec)
    embeddings = model.hiera.embeddings
    embeddings.patch_embeddings.is_mae = False
    encoding = with_weights(spec, 0, model.state_dict())
    with torch.no_grad():
        for size in ((8, 8), (6, 9), (12, 12)):
            image = picture(*size, 4)
            patches, _, _ = embeddings.patch_embeddings(image)
            whole, _, _ = embeddings(image, interpolate_pos_encoding=size != (8, 8))
            got = encoding.embed(patches, places(*size, sized=True))
            result.close("embeddings of images of three sizes", got, whole, 16.0)
    embeddings.patch_embeddings.is_mae = True
    inputs = {"pixel_values": picture(8, 8, 4), "noise": torch.arange(4)[None].float()}
    added(result, spec["decoder"], model, "decoder.decoder_block", places(4, 4), inputs, what="what enters the decoder")
    return result
