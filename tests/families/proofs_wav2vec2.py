"""posenc.configs.families.wav2vec2, compared with the models' own code in transformers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import posenc
from families.adding import entering
from families.harness import Proof, at_of, build, config_of, modeling, proof, spec_of
from families.scores import bias_of
from families.silenced import Holding, added_by
from posenc.configs.weights import with_weights

FRAMES = 21

SIZES: dict[str, Any] = {
    "num_hidden_layers": 2,
    "num_conv_pos_embedding_groups": 4,
    "conv_dim": [16],
    "conv_kernel": [4],
    "conv_stride": [2],
    "num_codevectors_per_group": 4,
    "proj_codevector_dim": 8,
    "codevector_dim": 8,
    "layerdrop": 0.0,
}

REAL = torch.arange(FRAMES)[None] < torch.tensor([FRAMES, 13])[:, None]

AT = posenc.Positions.from_mask(REAL)


def sized(model_type: str, **sizes: Any) -> Any:
    """A tiny configuration, of the sizes that the family knows."""
    known = config_of(model_type).__dataclass_fields__
    return config_of(model_type, **{name: value for name, value in SIZES.items() if name in known} | sizes)


def frames() -> Tensor:
    return torch.randn(2, FRAMES, 64, generator=torch.Generator().manual_seed(2))


def drawn(module: torch.nn.Module, path: str = "pos_conv_embed") -> torch.nn.Module:
    """Every weight of the positional convolution and of batch norms random, statistics as well."""
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for name, value in (*module.named_parameters(), *module.named_buffers()):
            if path in name and value.is_floating_point():
                positive = "running_var" in name or "original0" in name
                new = torch.randn(value.shape, generator=generator) * 0.3
                value.copy_(new.abs() + 0.1 if positive else new)
    return module.eval()


def last(encoding: Any) -> Any:
    """What acts in attention, after what is added to the frames."""
    return [*encoding][-1] if isinstance(encoding, posenc.Stack) else encoding


@proof("wav2vec2", "hubert", "unispeech", "unispeech-sat")
def wav2vec2(model_type: str) -> Proof:
    result = Proof(model_type, "a convolution over the frames, added before the first layer; attention has no positions")
    variants: list[dict[str, Any]] = [{}, {"do_stable_layer_norm": True, "num_conv_pos_embeddings": 7}]
    if model_type == "hubert":
        variants.append({"conv_pos_batch_norm": True})
    for variant in variants:
        config = sized(model_type, **{"num_conv_pos_embeddings": 10} | variant)
        whole, spec = drawn(build(config, attention=None)), spec_of(config)
        after = "layers.0" if variant.get("do_stable_layer_norm") else "layer_norm"
        encoder = whole.encoder
        assert len(encoder.layers) == len(spec.layers)
        by_batch = variant.get("conv_pos_batch_norm", False)
        if by_batch:  # padding leaks through their batch norm: a row by itself is not what it is in a batch
            alone, padded = (
                entering(encoder, after, {"hidden_states": frames()[1:, :n], "attention_mask": REAL[1:, :n]})
                for n in (13, FRAMES)
            )
            assert not torch.allclose(alone, padded[:, :13], atol=1e-3)
            assert "conv_pos_batch_norm" in {finding.key for finding in spec.remarks if finding.grade == "warning"}
        real = torch.ones_like(REAL) if by_batch else REAL
        added_by(
            result,
            spec,
            encoder,
            "pos_conv_embed",
            after,
            posenc.Positions.from_mask(real),
            {"hidden_states": frames(), "attention_mask": real},
            8.0,
            "frames with what the convolution adds",
            arrange=lambda x, real=real: x * real[..., None],
        )
    return result


@proof("wavlm")
def wavlm(model_type: str) -> Proof:
    result = Proof(model_type, "a convolution over the frames, and T5's buckets, gated by every layer's hidden states")
    for stable in (False, True):
        config = sized(
            model_type, num_conv_pos_embeddings=10, num_buckets=16, max_bucket_distance=20, do_stable_layer_norm=stable
        )
        whole, spec = drawn(build(config, attention="eager")), spec_of(config)
        encoder = whole.encoder
        for name, weight in encoder.named_parameters():
            if "rel" in name:
                torch.nn.init.normal_(weight, 0.5)
        added_by(
            result,
            spec,
            encoder,
            "pos_conv_embed",
            "layers.0" if stable else "layer_norm",
            AT,
            {"hidden_states": frames(), "attention_mask": REAL},
            8.0,
            "frames with what the convolution adds",
            arrange=lambda x: x * REAL[..., None],
        )
        at = posenc.Positions.arange(2, FRAMES)
        for number, (x, theirs) in enumerate(gated(encoder)):
            assert len(spec.layers[number].uses) == (2 if number == 0 else 1)
            bias = last(with_weights(spec, number, encoder.state_dict()))
            with torch.no_grad():
                read = bias.read_hidden(x, at)
            q = torch.zeros(2, 4, FRAMES, 16)
            result.close("what every layer adds to the scores", bias_of(bias, q, q, read), theirs, 4.0)
    return result


def gated(encoder: Any) -> list[tuple[Tensor, Tensor]]:
    """What enters each attention of a pass, and what it adds to the scores [b, h, i, j]."""
    found, hooks = [], []
    for layer in encoder.layers:
        attention, own = layer.attention, layer.attention.torch_multi_head_self_attention

        def record(x: Tensor, mask: Any, bias: Tensor, own: Any = own) -> Any:
            found.append((x.clone(), bias.unflatten(0, (x.shape[0], -1)).detach().clone()))
            return own(x, mask, bias)

        attention.torch_multi_head_self_attention = record
        hooks.append(attention)
    with torch.no_grad():
        encoder(frames())
    for attention in hooks:
        del attention.torch_multi_head_self_attention
    assert len(found) == len(encoder.layers)
    return found


@proof("sew", "sew-d")
def sew(model_type: str) -> Proof:
    both = model_type == "sew-d"
    result = Proof(
        model_type,
        "a convolution sampled at every n-th frame, added to means of n frames" + "; DeBERTa's terms in every layer" * both,
    )
    for factor in (2, 3):
        config = sized(
            model_type, num_conv_pos_embeddings=10, squeeze_factor=factor, hidden_size=96, num_conv_pos_embedding_groups=4
        )
        encoder, spec = drawn(build(config, attention=None)).encoder, spec_of(config)
        convolution = with_weights(spec, 0, encoder.state_dict())
        convolution = next(iter(convolution)) if both else convolution
        x = torch.randn(2, FRAMES, 96, generator=torch.Generator().manual_seed(2)) * REAL[..., None]
        first = encoder.encoder.layer[0] if both else encoder.layer_norm
        entered: list[Tensor] = []
        hook = first.register_forward_pre_hook(lambda module, args, entered=entered: entered.append(args[0].clone()))
        with torch.no_grad():
            encoder(x.clone(), attention_mask=REAL)
            added = (convolution.embed(x, AT) - x)[:, ::factor]
            length = FRAMES // factor
            means = x[:, : length * factor].unflatten(1, (length, factor)).mean(2)
            seen = (REAL[:, : length * factor].unflatten(1, (length, factor))).all(2)[..., None]
            result.close("means with what the convolution adds", (means + added[:, :length]) * seen, entered[0] * seen, 8.0)
        hook.remove()
        if both:
            disentangled(result, config, factor)
    return result


def disentangled(result: Proof, config: Any, factor: int) -> None:
    """DeBERTa's terms of every layer, with position projected as content and by itself."""
    module = modeling("sew-d")
    for shared, terms, buckets, norm in (
        (True, ("p2c", "c2p"), 8, "layer_norm"),
        (False, ("c2p",), 8, "none"),
        (False, ("p2c", "c2p"), -1, "layer_norm"),
    ):
        own = type(config)(
            **{
                **config.to_dict(),
                "share_att_key": shared,
                "pos_att_type": terms,
                "norm_rel_ebd": norm,
                "position_buckets": buckets,
                "max_position_embeddings": 12,
            }
        )
        torch.manual_seed(0)
        encoder, spec = module.SEWDEncoder(own).eval(), spec_of(own)
        with torch.no_grad():
            for name, weight in encoder.named_parameters():
                if name.endswith(("LayerNorm.bias", "LayerNorm.weight", "_proj.bias", "rel_embeddings.weight")):
                    torch.nn.init.normal_(weight, 0.5, 0.3)
        found: list[tuple[Tensor, Tensor, Tensor]] = []
        for layer in encoder.encoder.layer:
            attention = layer.attention.self
            rule = attention.disentangled_attention_bias

            def record(q: Tensor, k: Tensor, *rest: Any, rule: Any = rule, found: Any = found) -> Tensor:
                out = rule(q, k, *rest)
                found.append((q, k, out))
                return out

            attention.disentangled_attention_bias = record
        with torch.no_grad():
            encoder(torch.randn(1, 40 * factor, config.hidden_size))
        assert len(found) == len(spec.layers)
        at = at_of(torch.arange(40)[None])
        for number, (q, k, theirs) in enumerate(found):
            encoding = last(with_weights(spec, number, encoder.state_dict()))
            result.close("what every layer adds to the scores", bias_of(encoding, q[None], k[None], at), theirs[None], 16.0)
            expected = 1 / (q.shape[-1] * (1 + len(terms))) ** 0.5
            assert abs(encoding.softmax_scale(q.shape[-1]) - expected) < 1e-12


@proof("data2vec-audio")
def data2vec_audio(model_type: str) -> Proof:
    result = Proof(model_type, "convolutions over the frames, added before the first layer; attention has no positions")
    for kernel in (5, 6):
        config = config_of(
            model_type,
            num_hidden_layers=2,
            num_conv_pos_embedding_groups=4,
            conv_pos_kernel_size=kernel,
            num_conv_pos_embeddings=3,
            conv_dim=[16],
            conv_kernel=[4],
            conv_stride=[2],
        )
        model, spec = build(config, attention=None), spec_of(config)
        with torch.no_grad():
            for parameter in model.encoder.pos_conv_embed.parameters():
                parameter.normal_(std=0.3)
        frames = torch.randn(2, 21, 64, generator=torch.Generator().manual_seed(2))
        at = posenc.Positions.from_mask(torch.ones(2, 21))
        assert len(model.encoder.layers) == len(spec.layers)
        whole = Holding(encoder=model.encoder)
        added_by(
            result,
            spec,
            whole,
            "pos_conv_embed",
            "encoder.layer_norm",
            at,
            {"hidden_states": frames},
            24.0,
            "frames with what the convolutions add",
        )
    return result
