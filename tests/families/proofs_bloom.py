"""posenc.configs.families.bloom, compared with the models' own code in transformers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import posenc
from families.harness import Proof, build, config_of, proof, spec_of, tokens
from families.scores import bias_of, nothing

MASK = torch.tensor([[1] * 9, [0, 0, 1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1, 1, 0, 0]])


def seen(model: torch.nn.Module, ending: str, name: str, **inputs: Any) -> list[Tensor]:
    """The argument `name` of every module whose path ends so."""
    found: list[Tensor] = []
    modules = [module for path, module in model.named_modules() if path.endswith(ending)]
    hooks = [
        module.register_forward_pre_hook(lambda module, arguments, keywords: found.append(keywords[name]), with_kwargs=True)
        for module in modules
    ]
    with torch.no_grad():
        model(**inputs)
    for hook in hooks:
        hook.remove()
    return found


def from_first_key(bias: Tensor) -> Tensor:
    """What a causal softmax sees of it."""
    return (bias - bias[..., :1]).tril()


@proof("bloom")
def bloom(model_type: str) -> Proof:
    result = Proof(model_type, "ALiBi, computed from the key's position over unmasked tokens")
    for heads in (4, 6):
        config = config_of(
            model_type, hidden_size=96, n_head=heads, n_layer=3, num_attention_heads=None, num_hidden_layers=None
        )
        model, spec = build(config, attention=None), spec_of(config)
        for mask in (MASK, torch.ones_like(MASK)):
            found = seen(model, ".self_attention", "alibi", input_ids=tokens(mask.shape), attention_mask=mask)
            assert len(found) == len(spec.layers)
            at = posenc.Positions.from_mask(mask)
            q = torch.zeros(3, heads, 9, 96 // heads)
            for layer, theirs in enumerate(found):
                expected = theirs.view(3, heads, 1, 9).expand(-1, -1, 9, -1)
                got = bias_of(spec.encoding(layer), q, q, at)
                for row, real in enumerate(mask.bool()):
                    own, other = (from_first_key(bias[row][:, real][..., real]) for bias in (got, expected))
                    what = "bias of every layer, padded left and right, but for one number a row"
                    result.equal(what, own, other)
        assert len(spec.encoding(0).slopes) == heads
        attention = model.h[0].self_attention
        assert (attention.beta, attention.inv_norm_factor) == (1, spec.encoding(0).softmax_scale(96 // heads))
    result.exact.append("softmax scale")
    return result


@proof("mpt")
def mpt(model_type: str) -> Proof:
    result = Proof(model_type, "ALiBi, computed from the key's position, padding included")
    for heads, asked in ((4, {}), (6, {"alibi": False, "alibi_bias_max": 4}), (12, {})):
        config = config_of(
            model_type,
            d_model=96,
            n_heads=heads,
            n_layers=3,
            max_seq_len=40,
            attn_config=asked,
            hidden_size=None,
            num_attention_heads=None,
            num_hidden_layers=None,
        )
        model, spec = build(config, attention=None), spec_of(config)
        found = seen(model, ".attn", "position_bias", input_ids=tokens((1, 9)))
        assert len(found) == len(spec.layers)
        at = posenc.Positions.arange(1, 9)
        for layer, theirs in enumerate(found):
            got = bias_of(spec.encoding(layer), *nothing(heads, 9), at)
            result.close("bias of every layer's last query", got[0, :, -1:], theirs[:, :, -9:])
            if heads < 8:  # whose slopes are powers of 2
                expected = from_first_key(theirs[:, :, -9:].expand(-1, 9, -1)[None])
                result.equal("bias of every layer, but for one number a row", from_first_key(got), expected)
        assert len(spec.encoding(0).slopes) == heads
        grades = [finding.key for finding in spec.remarks if finding.grade == "error"]
        result.equal("what is not read is told", grades, [f"attn_config.{key}" for key in asked])
        scale = model.blocks[0].attn.softmax_scale
        assert abs(scale / spec.encoding(0).softmax_scale(96 // heads) - 1) < 1e-15
    result.exact.append("softmax scale")
    return result
