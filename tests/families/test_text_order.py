"""Whether later tokens are hidden: the last token is changed, and the first one's output changes with it, or does not."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from families.harness import build, config_of, spec_of, tokens

BERTS = (
    "bert",
    "electra",
    "ernie",
    "megatron-bert",
    "rembert",
    "bert-generation",
    "big_bird",
    "roc_bert",
    "roberta",
    "xlm-roberta",
    "camembert",
    "data2vec-text",
    "roberta-prelayernorm",
    "xlm-roberta-xl",
)
ALWAYS = (
    "splinter",
    "squeezebert",
    "albert",
    "mobilebert",
    "convbert",
    "visual_bert",
    "ibert",
    "mpnet",
    "deberta",
    "deberta-v2",
    "fnet",
    "layoutlm",
    "lilt",
    "distilbert",
    "gpt2",
    "gpt-sw3",
    "gpt_bigcode",
    "openai-gpt",
    "opt",
    "biogpt",
    "gpt_neo",
    "xglm",
    "ctrl",
    "bloom",
    "mpt",
    "imagegpt",
    "tapas",
    "cpmant",
)
SIZES: dict[str, dict[str, Any]] = {
    "big_bird": {"attention_type": "original_full"},
    "squeezebert": {"embedding_size": 64},
    "roc_bert": {"shape_vocab_size": 32, "pronunciation_vocab_size": 32},
    "opt": {"ffn_dim": 16},
    "ctrl": {"dff": 16},
    "lilt": {"hidden_size": 48, "channel_shrink_ratio": 2},
    "cpmant": {"dim_head": 16, "dim_ff": 16, "prompt_length": 4},
    "gpt_neo": {"attention_types": [[["global", "local"], 2]]},
    "mpt": {"max_seq_len": 16},
    "xlnet": {
        "d_model": 64,
        "n_layer": 2,
        "n_head": 4,
        "d_inner": 16,
        "hidden_size": None,
        "num_attention_heads": None,
        "num_hidden_layers": None,
    },
    "distilbert": {"dim": 64, "n_heads": 4, "n_layers": 2},
    "xglm": {"attention_heads": 4, "ffn_dim": 16, "d_model": 64},
}
CASES = [
    *((name, {"is_decoder": decoder}) for name in BERTS for decoder in (False, True)),
    *((name, {}) for name in ALWAYS),
    *((name, {"causal": causal}) for name in ("xlm", "flaubert") for causal in (False, True)),
    *(("xlnet", {"attn_type": kind}) for kind in ("bi", "uni")),
]


@pytest.mark.parametrize(("model_type", "said"), CASES)
def test_later_tokens_are_hidden_where_the_spec_says_so(model_type: str, said: dict[str, Any]):
    config = config_of(model_type, **SIZES.get(model_type, {}), **said)
    model, spec = build(config, attention=None), spec_of(config)
    text = tokens((1, 8), 31)
    changed = text.clone()
    changed[:, -1] = text[:, -1] % 28 + 3  # another token, none of the special ones
    assert not torch.equal(text, changed)
    with torch.no_grad():
        before, after = (model(input_ids=ids)[0][:, -8] for ids in (text, changed))
    assert torch.equal(before, after) == all(layer.causal for layer in spec.layers)
    assert len({layer.causal for layer in spec.layers}) == 1
