"""posenc.configs.families.prophetnet, compared with the models' own code in transformers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import posenc
from families.adding import added
from families.harness import Proof, build, config_of, proof, spec_of, tokens
from families.scores import bias_of
from posenc.configs import PositionSpec
from posenc.configs.spec import Layer
from posenc.configs.weights import with_weights

LENGTH = 14


@proof("prophetnet")
def prophetnet(model_type: str) -> Proof:
    result = Proof(
        model_type, "learned tables in both stacks; T5 buckets with numbers computed from the hidden state in the decoder"
    )
    config = config_of(
        model_type,
        num_encoder_layers=2,
        num_decoder_layers=2,
        num_encoder_attention_heads=4,
        num_decoder_attention_heads=4,
        encoder_ffn_dim=16,
        decoder_ffn_dim=16,
        max_position_embeddings=17,
        num_buckets=8,
        relative_max_distance=12,
        ngram=2,
        num_hidden_layers=None,
        num_attention_heads=None,
    )
    model, spec = build(config, attention=None), spec_of(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.3)
    text = tokens((2, LENGTH))
    encoding = with_weights(spec["encoder"], 0, model.state_dict())
    at = posenc.Positions.arange(2, LENGTH)
    inputs = {"input_ids": text, "decoder_input_ids": text, "use_cache": False}
    added(result, spec["encoder"], model, "encoder.embeddings_layer_norm", at, inputs)
    main = spec["decoder"].layers[0].uses[0]
    table = with_weights(PositionSpec(model_type, layers=(Layer((main,)),)), 0, model.state_dict())
    with torch.no_grad():
        for length in (LENGTH, 17, 20):  # longer than the table: the last row
            there = model.encoder.position_embeddings((1, length), torch.device("cpu"))[0]
            got = encoding.embed(torch.zeros(1, length, 64), posenc.Positions.arange(1, length))
            result.equal("rows of the encoder's table, and beyond it", got, there)
        zero, own = torch.zeros(1, LENGTH, 64), model.decoder.position_embeddings
        rows, ids = own((1, LENGTH), torch.device("cpu"))
        one = posenc.Positions.arange(1, LENGTH)
        result.equal("rows of the main stream", table.embed(zero, one), rows)
        result.equal("rows of the predicting streams", table.embed(zero, one.shift(1)), own._forward(ids + 1))
    found: list[tuple[str, Tensor, Tensor]] = []
    model = model.double()
    for layer in model.decoder.layers:
        for name in ("get_main_relative_pos_embeddings", "get_predict_relative_pos_embeddings"):
            own = getattr(layer.self_attn, name)

            def look(hidden: Tensor, *rest: Any, own: Any = own, name: str = name) -> Tensor:
                out = own(hidden, *rest)
                found.append((name, hidden, out))
                return out

            setattr(layer.self_attn, name, look)
    with torch.no_grad():
        model(**inputs)
    assert len(found) == 2 * len(spec["decoder"].layers)
    q = torch.zeros(2, 4, LENGTH, 16).double()
    for number, (name, hidden, expected) in enumerate(found):
        encoding = with_weights(spec["decoder"], number // 2, model.state_dict())
        encoding = (list(encoding)[-1] if isinstance(encoding, posenc.Stack) else encoding).double()
        assert encoding.softmax_scale(16) == 0.25
        expected = expected.detach()
        if "main" in name:
            got = bias_of(encoding, q, q, encoding.read_hidden(hidden, at), at)
            result.close("bias of the main stream of every layer, in fp64", got, expected)
            continue
        result.close("its mix-up in whole predicting streams", mixed_up(encoding, hidden), expected[..., :LENGTH])
    with torch.no_grad():
        memory = model.encoder(input_ids=text)[0]
        cache = model.decoder(input_ids=text[:, :1], encoder_hidden_states=memory, use_cache=True).past_key_values
        for step in range(1, 5):
            found.clear()
            model.decoder(input_ids=text[:, step : step + 1], encoder_hidden_states=memory, past_key_values=cache)
            queries, keys = posenc.Positions.arange(2, 1, start=step + 1), posenc.Positions.arange(2, step + 2)
            for number, (name, hidden, expected) in enumerate(found):
                if "predict" not in name:
                    continue
                encoding = with_weights(spec["decoder"], number // 2, model.state_dict())
                encoding = (list(encoding)[-1] if isinstance(encoding, posenc.Stack) else encoding).double()
                for stream in range(2):
                    reading = encoding.read_hidden(hidden[:, :, stream], queries)
                    got = bias_of(encoding, q[:, :, :1], torch.zeros(2, 4, step + 2, 16).double(), reading, keys)
                    result.close("bias of the predicting streams, step by step", got, expected[:, stream])
    return result


@torch.no_grad()
def mixed_up(encoding: Any, hidden: Tensor) -> Tensor:
    """The numbers of all tokens, streams and heads in that order, read as streams, heads and tokens: [b, n, h, i, j]."""
    streams = [encoding.of_hidden(hidden[:, :, stream]) for stream in range(hidden.shape[2])]  # [b, t, h, buckets]
    numbers = torch.stack(streams, dim=2).flatten(1, 3).unflatten(1, (len(streams), -1, hidden.shape[1]))
    place = torch.arange(hidden.shape[1])
    bucket = encoding.buckets(place[:, None] + 1 - place)
    return numbers.gather(-1, bucket.expand(*numbers.shape[:3], *bucket.shape))
