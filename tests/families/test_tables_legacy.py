"""Files of older versions, with other names of keys, against what their classes make of them."""

from __future__ import annotations

from typing import Any

import pytest
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from posenc.configs import read_config

OLD: dict[str, list[dict[str, Any]]] = {
    "bloom": [
        {"num_hidden_layers": 3, "num_attention_heads": 4, "hidden_size": 64},
        {"n_layer": 3, "n_head": 4, "hidden_size": 64},
    ],
    "mpt": [{"n_layers": 2, "n_heads": 6, "d_model": 96, "max_seq_len": 64, "attn_config": {"alibi_bias_max": 4}}],
    "gpt2": [{"n_positions": 99, "n_ctx": 99, "n_embd": 32, "n_head": 4, "n_layer": 2}],
    "gpt_neo": [{"attention_types": [[["global", "local"], 3]], "num_layers": 6, "num_heads": 4, "hidden_size": 64}],
    "deberta": [{"pos_att_type": "c2p|p2c", "relative_attention": True, "max_relative_positions": -1}],
    "deberta-v2": [
        {
            "pos_att_type": "p2c|c2p",
            "relative_attention": True,
            "position_buckets": 256,
            "norm_rel_ebd": "layer_norm",
            "share_att_key": True,
            "position_biased_input": False,
            "max_relative_positions": -1,
        }
    ],
    "t5": [{"num_layers": 3, "num_heads": 4, "d_model": 64, "d_kv": 16, "relative_attention_num_buckets": 32}],
    "switch_transformers": [{"num_layers": 4, "num_heads": 4, "d_model": 64, "d_kv": 16}],
    "longt5": [{"num_layers": 3, "num_decoder_layers": 2, "local_radius": 7, "encoder_attention_type": "transient-global"}],
    "xlnet": [{"n_layer": 2, "n_head": 4, "d_model": 64, "attn_type": "uni"}],
    "funnel": [{"block_sizes": [2, 1], "d_model": 64, "n_head": 4, "d_head": 16}],
    "bart": [{"encoder_layers": 2, "decoder_layers": 3, "d_model": 64, "max_position_embeddings": 64}],
    "led": [{"attention_window": [8, 16], "encoder_layers": 2, "decoder_layers": 1}, {"attention_window": 8}],
    "xlm": [{"emb_dim": 64, "n_heads": 4, "n_layers": 2, "sinusoidal_embeddings": True, "causal": True}],
    "distilbert": [{"dim": 64, "n_heads": 4, "n_layers": 2, "sinusoidal_pos_embds": True}],
    "reformer": [
        {"attn_layers": ["local", "lsh"], "axial_pos_shape": [8, 8], "axial_pos_embds_dim": [16, 48], "hidden_size": 64}
    ],
    "udop": [{"num_layers": 2, "relative_bias_args": [{"type": "1d"}, {"type": "vertical"}]}],
    "layoutlmv3": [{"has_spatial_attention_bias": False}],
    "prophetnet": [{"num_encoder_layers": 2, "num_decoder_layers": 2, "num_buckets": 16}],
}


@pytest.mark.parametrize(("model_type", "old"), [(name, old) for name, olds in OLD.items() for old in olds])
def test_a_file_is_read_as_its_class_reads_it(model_type: str, old: dict[str, Any]):
    got = read_config({"model_type": model_type, **old})
    expected = read_config(CONFIG_MAPPING[model_type](**old).to_dict())
    for (path, mine), (_, theirs) in zip(got.walk(), expected.walk(), strict=True):
        for ours, own in zip(mine.layers, theirs.layers, strict=True):
            assert [use.arguments for use in ours.uses] == [use.arguments for use in own.uses], path
            assert (ours.kind, ours.window, ours.causal) == (own.kind, own.window, own.causal), path
        assert (mine.trained_length, mine.d_model, mine.n_heads) == (theirs.trained_length, theirs.d_model, theirs.n_heads)


@pytest.mark.parametrize("model_type", sorted(OLD))
def test_a_file_that_says_nothing_is_what_the_class_assumes(model_type: str):
    got, expected = read_config({"model_type": model_type}), read_config(CONFIG_MAPPING[model_type]().to_dict())
    for (_, mine), (_, theirs) in zip(got.walk(), expected.walk(), strict=True):
        assert [layer.uses for layer in mine.layers and mine.layers[:1]] or mine.layers == theirs.layers
        for ours, own in zip(mine.layers, theirs.layers, strict=True):
            assert [use.arguments for use in ours.uses] == [use.arguments for use in own.uses]
