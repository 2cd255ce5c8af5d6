"""posenc.configs.families.speecht5, compared with the models' own code in transformers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import posenc
from families.adding import entering
from families.harness import Proof, at_of, config_of, modeling, proof, spec_of
from families.scores import bias_of
from families.silenced import named, silence
from posenc import Scores
from posenc.configs.weights import with_weights

SIZES: dict[str, Any] = {
    "hidden_size": 64,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 16,
    "decoder_ffn_dim": 16,
    "conv_dim": [16],
    "conv_kernel": [4],
    "conv_stride": [2],
    "num_conv_pos_embeddings": 10,
    "vocab_size": 32,
    "num_conv_pos_embedding_groups": 4,
    "encoder_max_relative_position": 6,
    "pad_token_id": 1,
    "speech_decoder_prenet_units": 16,
    "speech_decoder_prenet_dropout": 0.0,
    "num_mel_bins": 8,
    "num_hidden_layers": None,
    "num_attention_heads": None,
}

TEXT = torch.tensor([[5, 6, 7, 8, 9, 10], [1, 1, 7, 8, 9, 10], [5, 6, 7, 8, 1, 1]])


@proof("speecht5")
def speecht5(model_type: str) -> Proof:
    result = Proof(
        model_type,
        "relative vectors in the encoder; a convolution and sinusoids for speech input, scaled "
        "sinusoids for text input and speech output, fairseq's for text output",
    )
    config, module = config_of(model_type, **SIZES), modeling(model_type)
    spec = spec_of(config)
    torch.manual_seed(0)
    speech = module.SpeechT5EncoderWithSpeechPrenet(config).eval()
    text = module.SpeechT5EncoderWithTextPrenet(config).eval()
    says = module.SpeechT5DecoderWithTextPrenet(config).eval()
    speaks = module.SpeechT5DecoderWithSpeechPrenet(config).eval()
    sound = torch.randn(2, 48, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        # speech in: the convolution, then sinusoids
        after = "layer_norm"
        inputs: dict[str, Any] = {"input_values": sound}
        own = named(speech, "prenet.pos_conv_embed.conv")
        torch.nn.init.normal_(own.parametrizations.weight.original1)
        both = entering(speech, "wrapped_encoder.layer_norm", inputs)
        with silence(named(speech, "prenet.pos_conv_embed"), named(speech, "prenet.pos_sinusoidal_embed")):
            alone = entering(speech, "wrapped_encoder.layer_norm", inputs)
        first = spec["speech_encoder"]
        encoding = [*with_weights(first, 0, speech.state_dict())]
        assert [type(part).__name__ for part in encoding] == ["Convolutional", "Sinusoidal", "Shaw"]
        at = posenc.Positions.arange(2, both.shape[1])
        result.close("frames with positions", encoding[1].embed(encoding[0].embed(alone, at), at), both, 16.0)
        padded = torch.tensor([[0, 0, 0, 1], [1, 1, 0, 0]])  # as they count: 1 for padding
        own_rows = speech.prenet.pos_sinusoidal_embed(padded)
        got = encoding[1].embed(torch.zeros(2, 4, 64), posenc.Positions.from_mask(padded != 1))
        result.close("frames with positions, padded", got + 1, own_rows + 1, 8.0)
        # text in, speech out: times alpha
        for model, part, side, x in (
            (text, "text_encoder", "encoder", {"input_values": TEXT}),
            (speaks, "speech_decoder", "decoder", {"input_values": torch.randn(2, 7, 8)}),
        ):
            model.prenet.encode_positions.alpha.fill_(0.7)
            encoding = with_weights(spec[part], 0, {f"{side}.{name}": v for name, v in model.state_dict().items()})
            encoding = next(iter(encoding)) if isinstance(encoding, posenc.Stack) else encoding
            hidden: list[Tensor] = []
            hook = model.prenet.encode_positions.register_forward_pre_hook(
                lambda m, args, hidden=hidden: hidden.append(args[0])
            )
            given = x["input_values"]
            theirs = model.prenet(given)
            hook.remove()
            at = posenc.Positions.arange(len(given), given.shape[1])
            result.close(f"{part.replace('_', ' ')} with positions", encoding.embed(hidden[0], at), theirs, 8.0)
        # text out
        own_rows = says.prenet.embed_positions(TEXT)
        got = spec["text_decoder"].encoding(0).embed(torch.zeros_like(own_rows), posenc.Positions.from_mask(TEXT != 1))
        result.close("text decoder's positions, padded", got + 1, own_rows + 1, 8.0)
        # relative vectors, of both encoders' layers
        vectors(result, spec, speech, text, after)
    return result


def vectors(result: Proof, spec: Any, speech: Any, text: Any, after: str) -> None:
    for model, part in ((speech, "speech_encoder"), (text, "text_encoder")):
        encoder = model.wrapped_encoder
        assert len(encoder.layers) == len(spec[part].layers)
        x = torch.randn(2, 20, 64)
        bias = encoder.embed_positions(x)
        for number, layer in enumerate(encoder.layers):
            q = (layer.attention.q_proj(x) * layer.attention.scaling).unflatten(-1, (4, 16)).transpose(1, 2)
            theirs = torch.einsum("bhid,ijd->bhij", q, bias)
            state = {f"{part.split('_')[1]}.{name}": value for name, value in model.state_dict().items()}
            encoding = with_weights(spec[part], number, state)
            encoding = [*encoding][-1] if isinstance(encoding, posenc.Stack) else encoding
            got = bias_of(encoding, q / layer.attention.scaling, q, at_of(torch.arange(20)[None]))
            result.close("what is added to the scores", got, theirs, 8.0)


@proof("vits")
def vits(model_type: str) -> Proof:
    result = Proof(model_type, "relative vectors for keys and values near the query, none beyond")
    for window, length in ((4, 20), (4, 3)):
        config = config_of(model_type, window_size=window, num_hidden_layers=2, ffn_dim=16)
        torch.manual_seed(0)
        encoder, spec = modeling(model_type).VitsEncoder(config).eval(), spec_of(config)
        assert len(encoder.layers) == len(spec.layers)
        x = torch.randn(2, length, 64)
        at = at_of(torch.arange(length).expand(2, -1))
        with torch.no_grad():
            for number, layer in enumerate(encoder.layers):
                attention = layer.attention
                torch.nn.init.eye_(attention.out_proj.weight)
                torch.nn.init.zeros_(attention.out_proj.bias)
                theirs, probs = attention(x, output_attentions=True)
                encoding = with_weights(spec, number, encoder.state_dict())
                q, k, v = (getattr(attention, f"{side}_proj")(x).unflatten(-1, (4, 16)).transpose(1, 2) for side in "qkv")
                logits = q @ k.transpose(-1, -2) * encoding.softmax_scale(16) + bias_of(encoding, q, k, at)
                seen = torch.ones(1, 1, length, length, dtype=torch.bool)
                scores = Scores(logits, q, v, at, at, seen)
                out = encoding.finish(scores)
                result.close("attention weights of every layer", scores.kept["weights"], probs, 32.0)
                result.close("what attention gives", out.transpose(1, 2).flatten(2), theirs, 32.0)
    return result
