"""posenc.configs.families.moonshine, compared with the models' own code in transformers."""

from __future__ import annotations

import torch

from families.harness import Proof, at_of, build, calls, config_of, frequencies, proof, spec_of, tokens
from families.hooked import turned_inside
from families.proofs_cohere import allowed
from families.turning import YARN
from posenc.configs.weights import with_weights


def hidden_all(found: list) -> None:
    """Every token sees every token."""
    assert all(call.mask is None or not (call.mask < 0).any() for call in found)


@proof("moonshine")
def moonshine(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, interleaved pairs, 90 % of a head, in encoder and decoder")
    for more in ({}, {"rope_parameters": YARN | {"partial_rotary_factor": 0.5}}, {"decoder_num_attention_heads": 2}):
        sizes = {
            "encoder_num_hidden_layers": 2,
            "decoder_num_hidden_layers": 3,
            "encoder_num_attention_heads": 4,
            "decoder_num_attention_heads": 4,
            "num_hidden_layers": None,
            "num_attention_heads": None,
            "num_key_value_heads": None,
            "max_position_embeddings": 64,
        }
        config = config_of(model_type, **sizes | more)
        spec = spec_of(config)
        model = build(config)
        only = {"only": lambda call: not call.module.is_causal}
        encoder, decoder = model.encoder, model.decoder
        sound = torch.randn(2, 127 + 64 * (6 + 3 * 2 + 3 * 2 * 7))
        found = turned_inside(
            result,
            spec["encoder"],
            encoder,
            encoder.rotary_emb,
            most=allowed(spec["encoder"]),
            input_values=sound,
            softmax=True,
            **only,
        )
        hidden_all(found)
        states = torch.randn(2, 5, 64)
        found = turned_inside(
            result,
            spec["decoder"],
            decoder,
            decoder.rotary_emb,
            most=allowed(spec["decoder"]),
            softmax=True,
            input_ids=tokens((2, 8)),
            encoder_hidden_states=states,
            only=lambda call: call.module.is_causal,
        )
        frequencies(result, decoder.rotary_emb, spec["decoder"])
        frequencies(result, encoder.rotary_emb, spec["encoder"])
    assert "decoder_num_attention_heads" in {finding.key for finding in spec.remarks}
    return result


@proof("moonshine_streaming_encoder")
def moonshine_streaming_encoder(model_type: str) -> Proof:
    result = Proof(model_type, "no positions: convolutions, and windows that differ by layer")
    config = config_of(
        model_type,
        num_hidden_layers=4,
        sliding_windows=[[5, 3], [4, 0], [2, 1], [16, 4]],
        hidden_size=64,
        num_attention_heads=4,
        num_key_value_heads=4,
    )
    model, spec = build(config, "MoonshineStreamingEncoder"), spec_of(config)
    sound = torch.randn(1, 80 * 4 * 10)
    found = calls(model, input_values=sound, attention_mask=torch.ones(1, sound.shape[1], dtype=torch.long))
    assert len(found) == len(spec.layers) == 4
    for call, (behind, ahead), layer in zip(found, config.sliding_windows, spec.layers, strict=True):
        n = call.q.shape[2]
        i, j = torch.arange(n)[:, None], torch.arange(n)[None]
        seen = (j > i - behind) & (j < i + max(ahead, 1))
        result.equal("what each layer sees", seen, call.mask[0, 0] > -1e30)
        most = max(int(row.sum()) for row in seen) if n > 20 else layer.window
        assert layer.window == behind + max(ahead - 1, 0) == most or n <= layer.window
        assert layer.causal == (not (seen & (j > i)).any())
    bare = calls(model, input_values=sound)
    assert all(call.mask is None for call in bare)
    return result


@proof("moonshine_streaming")
def moonshine_streaming(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, interleaved pairs, 80 % of a head, in the decoder; a table on the encoder's output")
    for more in ({}, {"rope_parameters": YARN | {"partial_rotary_factor": 0.5}}):
        config = config_of(
            model_type,
            encoder_config={"hidden_size": 32, "num_attention_heads": 2, "num_key_value_heads": 2},
            max_position_embeddings=64,
            num_key_value_heads=4,
            **more,
        )
        model, spec = build(config, "MoonshineStreamingDecoder"), spec_of(config)
        seen: list[torch.Tensor] = []
        hook = model.proj.register_forward_pre_hook(lambda module, inputs, seen=seen: seen.append(inputs[0].clone()))
        states = torch.randn(2, 5, 32)
        kept = states.clone()
        turned_inside(
            result,
            spec["decoder"],
            model,
            model.rotary_emb,
            most=allowed(spec["decoder"]),
            softmax=True,
            input_ids=tokens((2, 8)),
            encoder_hidden_states=states,
            only=lambda call: call.q.shape[2] == call.k.shape[2],
        )
        hook.remove()
        at = at_of(torch.arange(5).expand(2, -1))
        table = with_weights(spec["memory"], 0, model.state_dict())
        with torch.no_grad():
            once = table.embed(kept, at)
            result.close("what cross-attention is given", once, seen[0], 1.0)
            assert torch.allclose(table.embed(once, at), seen[1]), "added in place: the second call adds it again"
        frequencies(result, model.rotary_emb, spec["decoder"])
    return result
