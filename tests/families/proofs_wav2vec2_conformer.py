"""posenc.configs.families.wav2vec2_conformer, compared with the models' own code in transformers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from families.harness import Proof, at_of, calls, config_of, modeling, proof, spec_of
from posenc.configs.input_rotation import InputRotation
from posenc.configs.weights import with_weights

FRAMES = 20

SIZES: dict[str, Any] = {
    "num_hidden_layers": 2,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "intermediate_size": 32,
    "conv_depthwise_kernel_size": 3,
    "num_conv_pos_embedding_groups": 4,
}


def conformer(result: Proof, encoder: Any, spec: Any, kind: str | None) -> None:
    """Every layer of an encoder of frames [b, t, m] against the spec, from what enters its attention."""
    for name, parameter in encoder.named_parameters():
        if name.endswith(("pos_bias_u", "pos_bias_v", "linear_pos.weight", "distance_embedding.weight")):
            torch.nn.init.normal_(parameter, std=0.3)
    entered: list[Tensor] = []
    for layer in encoder.layers:
        layer.self_attn.register_forward_pre_hook(
            lambda module, args, named: entered.append(args[0] if args else named["hidden_states"]), with_kwargs=True
        )
    x = torch.randn(2, FRAMES, 64, generator=torch.Generator().manual_seed(0))
    found = calls(encoder, x, fixed=False)
    assert len(found) == len(encoder.layers)
    at = at_of(torch.arange(FRAMES).expand(2, -1))
    for number, (call, hidden) in enumerate(zip(found, entered, strict=True)):
        one(
            result,
            with_weights(spec, number, encoder.state_dict()),
            encoder.layers[number].self_attn,
            call,
            hidden,
            at,
            kind,
        )
        if kind == "rotary":
            parity = spec.encoding(number, exact="model")
            result.equal("frequencies", torch.tensor(parity.frequencies.values), encoder.embed_positions.inv_freq)


@torch.no_grad()
def one(result: Proof, encoding: Any, attention: Any, call: Any, hidden: Tensor, at: Any, kind: str | None) -> None:
    given = encoding.inputs(hidden, at) if isinstance(encoding, InputRotation) else hidden
    parts = {side: getattr(attention, f"linear_{side}")(given if side != "v" else hidden) for side in "qkv"}
    q, k, v = (part.unflatten(-1, (-1, call.q.shape[-1])).transpose(1, 2) for part in parts.values())
    if kind == "rotary":  # ours has fp64 angles, theirs fp32 ones of up to 19 radians, then a projection
        result.close("queries and keys, made of turned hidden states", q, call.q, 16.0)
        result.close("queries and keys, made of turned hidden states", k, call.k, 16.0)
        result.close("values", v, call.v)
        return
    b, h, i, j = torch.meshgrid(*(torch.arange(size) for size in (2, q.shape[1], FRAMES, FRAMES)), indexing="ij")
    theirs = (call.q - q) @ k.transpose(-1, -2) * call.scaling  # u·k, where they add u to the queries
    term = call.options["position_bias"]
    if kind is None:
        assert term is None
        result.equal("queries without positions", call.q, q)
        return
    got = encoding.bias(q, k, at, at)(b, h, i, j)
    # Sums of 16 and of 64 products in fp32, in another order, of sinusoids at angles up to 19 that are rounded in fp32.
    result.close("what is added to the scores", got, term + theirs, 32.0)


@proof("wav2vec2-bert", "wav2vec2-conformer")
def wav2vec2_bert(model_type: str) -> Proof:
    both = model_type == "wav2vec2-bert"
    result = Proof(
        model_type,
        "Transformer-XL's terms, a rotation of the projections' input, or "
        + ("relative vectors with a limit on each side" if both else "nothing"),
    )
    name = {"wav2vec2-bert": "Wav2Vec2BertEncoder", "wav2vec2-conformer": "Wav2Vec2ConformerEncoder"}[model_type]
    for kind in ("relative", "rotary", *(["relative_key"] if both else []), None):
        sizes = SIZES | ({"left_max_position_embeddings": 5, "right_max_position_embeddings": 2} if both else {})
        fields = config_of(model_type).__dataclass_fields__
        config = config_of(model_type, **{key: value for key, value in sizes.items() if key in fields})
        config.position_embeddings_type, config._attn_implementation = kind, "probe"
        torch.manual_seed(0)
        encoder, spec = getattr(modeling(model_type), name)(config).eval(), spec_of(config)
        assert len(spec.layers) == 2
        conformer(result, encoder, spec, kind)
    return result
