"""posenc.configs.families.parakeet, compared with the models' own code in transformers."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import sdpa_mask

from families.harness import Proof, _probe, at_of, build, calls, config_of, module_named, proof, spec_of
from families.scores import bias_of
from posenc.configs.weights import with_weights

SIZES: dict[str, Any] = {
    "num_hidden_layers": 2,
    "num_key_value_heads": 4,
    "num_mel_bins": 16,
    "subsampling_conv_channels": 8,
    "subsampling_factor": 4,
    "conv_kernel_size": 3,
}

MOST = 64.0  # sums of 16 and of 64 products in fp32 of sinusoids at angles up to 24 that were rounded in fp32

# They take masks for true or false. An eager mask, 0 or -inf, comes out the wrong way round: hence one as sdpa has it.
AttentionInterface.register("probe_where_true", _probe)

AttentionMaskInterface.register("probe_where_true", sdpa_mask)


def drawn(model: torch.nn.Module) -> torch.nn.Module:
    """Every positional weight random."""
    for name, parameter in model.named_parameters():
        if name.endswith(("bias_u", "bias_v", "relative_k_proj.weight", "linear_pos.weight")):
            torch.nn.init.normal_(parameter, std=0.3)
    return model


@proof("parakeet_encoder", "nemotron_asr_streaming_encoder")
def parakeet_encoder(model_type: str) -> Proof:
    streaming = model_type == "nemotron_asr_streaming_encoder"
    result = Proof(model_type, "Transformer-XL's terms over frames" + " in chunks, within a window" * streaming)
    more = {"sliding_window": 8, "default_num_lookahead_tokens": 2} if streaming else {}
    config = config_of(model_type, **SIZES, **more)
    encoder, spec = drawn(build(config, attention="probe_where_true")), spec_of(config)
    sound = torch.randn(2, 96, 16, generator=torch.Generator().manual_seed(0))
    found = calls(encoder, input_features=sound, attention_mask=torch.ones(2, 96, dtype=torch.long), fixed=False)
    assert len(found) == len(spec.layers) == 2
    for number, call in enumerate(found):
        encoding, attention = with_weights(spec, number, encoder.state_dict()), encoder.layers[number].self_attn
        with torch.no_grad():
            u = attention.bias_u[:, None]
            q = call.q - u
            added = u @ call.k.transpose(-1, -2) * call.scaling
            at = at_of(torch.arange(q.shape[2])[None])
            got, theirs = bias_of(encoding, q, call.k, at), call.mask + added
            assert call.scaling == encoding.softmax_scale(q.shape[-1])
            seen = call.mask > -1e30
            if streaming:
                chunk = torch.arange(q.shape[2]) // 3
                behind = chunk[:, None] - chunk[None]
                result.equal("what each layer sees", seen, ((behind >= 0) & (behind <= 7 // 3)).expand_as(seen))
                eager, sdpa = (
                    build(config, attention=kind)(input_features=sound).last_hidden_state for kind in ("eager", "sdpa")
                )
                assert not torch.allclose(eager, sdpa, atol=0.1), "eager attention sees what it should not"
                assert any(finding.grade == "warning" for finding in spec.remarks)
            else:
                assert seen.all()
            result.close("what is added to the scores", got.where(seen, 0), theirs.where(seen, 0), MOST)
    return result


@proof("fastspeech2_conformer")
def fastspeech2_conformer(model_type: str) -> Proof:
    result = Proof(model_type, "Transformer-XL's terms, over phonemes and over frames")
    config = config_of(
        model_type,
        hidden_size=64,
        encoder_layers=2,
        decoder_layers=2,
        encoder_num_attention_heads=4,
        decoder_num_attention_heads=2,
        encoder_linear_units=16,
        decoder_linear_units=16,
        num_hidden_layers=None,
        num_attention_heads=None,
    )
    model, spec = drawn(build(config, attention=None)), spec_of(config)
    for part in ("encoder", "decoder"):
        stack = module_named(model, part)
        assert len(stack.conformer_layers) == len(spec[part].layers) == 2
        entered: list[tuple[Tensor, Tensor]] = []
        hooks = [
            layer.self_attn.register_forward_pre_hook(
                lambda module, args, named, entered=entered: entered.append((args[0], named["pos_emb"])), with_kwargs=True
            )
            for layer in stack.conformer_layers
        ]
        x = torch.randint(1, 30, (2, 20)) if part == "encoder" else torch.randn(2, 20, 64)
        with torch.no_grad():
            stack(x)
            for number, (hidden, sinusoid) in enumerate(entered):
                attention = stack.conformer_layers[number].self_attn
                q, k = (getattr(attention, f"linear_{side}")(hidden) for side in "qk")
                q, k = (side.unflatten(-1, (attention.num_heads, -1)).transpose(1, 2) for side in (q, k))
                u, v = attention.pos_bias_u[:, None], attention.pos_bias_v[:, None]
                r = attention.linear_pos(sinusoid).unflatten(-1, (attention.num_heads, -1)).transpose(1, 2)
                moved = attention.shift_relative_position_tensor((q + v) @ r.transpose(-1, -2))
                theirs = (u @ k.transpose(-1, -2) + moved) / math.sqrt(attention.dim_key)
                at = at_of(torch.arange(20)[None])
                encoding = with_weights(spec[part], number, model.state_dict())
                assert abs(encoding.softmax_scale(q.shape[-1]) - attention.dim_key**-0.5) < 1e-12
                result.close("what is added to the scores", bias_of(encoding, q, k, at), theirs, MOST)
        assert len(entered) == 2
        for hook in hooks:
            hook.remove()
    return result
