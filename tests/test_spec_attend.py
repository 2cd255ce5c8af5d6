"""spec.attend(layer, q, k, v, at) does what that layer of the model does, window and chunk included."""

import pytest
import torch

import posenc
from families.harness import build, calls, config_of
from posenc import Positions

CASES = {
    "llama": {},
    "mistral": {"sliding_window": 4},
    "gemma3_text": {"sliding_window": 4, "head_dim": 16, "layer_types": ["sliding_attention", "full_attention"] * 2},
    "llama4_text": {"attention_chunk_size": 4, "head_dim": 16, "use_qk_norm": False, "attn_temperature_tuning": False},
    "modernbert": {"local_attention": 5, "num_hidden_layers": 4},
}


@pytest.mark.parametrize("model_type", CASES)
def test_every_layer_sees_the_keys_that_the_models_mask_shows(model_type):
    """Values are unit vectors, so the output is the probabilities; the model's own mask says which are zero."""
    length = 12
    config = config_of(model_type, **CASES[model_type])
    model, spec = build(config), posenc.read_config(config.to_dict())
    seen = calls(model, input_ids=torch.arange(3, 3 + length)[None], attention_mask=torch.ones(1, length))
    assert len(seen) == len(spec.layers) == 4
    for call, layer in zip(seen, range(4), strict=True):
        q, k = (
            torch.randn(1, call.q.shape[1], length, call.q.shape[3]),
            torch.randn(1, call.k.shape[1], length, call.k.shape[3]),
        )
        v = torch.eye(length).expand(1, k.shape[1], length, length)
        out = spec.attend(layer, q, k, v, Positions.arange(1, length))
        shown = torch.ones(length, length, dtype=torch.bool) if call.mask is None else call.mask[0, 0] == 0
        assert torch.equal(out[0, 0] > 0, shown), f"layer {layer}"


def test_options_of_the_caller_replace_the_layers_own():
    spec = posenc.read_config(config_of("mistral", sliding_window=4).to_dict())
    q, k = torch.randn(1, 4, 9, 16), torch.randn(1, 2, 9, 16)
    v = torch.eye(9).expand(1, 2, 9, 9)
    at = Positions.arange(1, 9)
    assert int((spec.attend(0, q, k, v, at)[0, 0, -1] > 0).sum()) == 4
    assert int((spec.attend(0, q, k, v, at, window=(1, 0))[0, 0, -1] > 0).sum()) == 2
    with pytest.raises(IndexError, match="layer: mistral has layers 0 … 3, got 4"):
        spec.attend(4, q, k, v, at)


def test_what_is_not_read_is_warned_of_once_in_one_line(recwarn):
    plain = {"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2}
    posenc.read_config(plain)
    assert not recwarn.list
    posenc.read_config(plain | {"rope_thta": 5, "rope_scaling": {"rope_type": "linear", "factor": 2, "facto": 9}})
    (warning,) = recwarn.list
    assert "rope_thta: " in str(warning.message)
    assert "rope_scaling.facto: not a key of linear" in str(warning.message)
    assert warning.filename == __file__
