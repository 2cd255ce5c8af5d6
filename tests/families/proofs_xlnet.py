"""posenc.configs.families.xlnet, compared with the models' own code in transformers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import posenc
from families.harness import Proof, build, config_of, proof, spec_of, tokens
from families.scores import bias_of
from posenc.configs.weights import with_weights
from posenc.positions import may_attend


def scores(encoding: Any, q: Tensor, k: Tensor, at_q: posenc.Positions, at_k: posenc.Positions) -> Tensor:
    return q @ k.transpose(-1, -2) * encoding.softmax_scale(q.shape[-1]) + bias_of(encoding, q, k, at_q, at_k)


def drawn(config: Any, model_class: str | None = None) -> torch.nn.Module:
    model = build(config, model_class, attention=None).double()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" not in name:
                parameter.normal_(std=0.2, generator=torch.Generator().manual_seed(len(name)))
    return model


@proof("xlnet")
def xlnet(model_type: str) -> Proof:
    result = Proof(model_type, "four terms of sinusoids of the distance, and a segment term")
    for kind in ("bi", "uni"):
        config = config_of(
            model_type,
            d_model=64,
            n_layer=3,
            n_head=4,
            d_inner=16,
            attn_type=kind,
            d_head=None,
            hidden_size=None,
            num_attention_heads=None,
            num_hidden_layers=None,
        )
        model, spec = drawn(config), spec_of(config)
        state, length = model.state_dict(), 9
        kinds = torch.tensor([[0] * 5 + [1] * 3 + [2], [0] * 2 + [1] * 6 + [2]])
        for memory in (0, 4):
            found: list[tuple[Tensor, Tensor]] = []
            for layer in model.layer:
                own = type(layer.rel_attn).rel_attn_core

                def look(
                    q: Tensor, k: Tensor, *rest: Any, own: Any = own, layer: Any = layer, seen: Any = found, **more: Any
                ) -> Any:
                    seen.append((q.permute(1, 2, 0, 3), k.permute(1, 2, 0, 3)))
                    return own(layer.rel_attn, q, k, *rest, **more)

                layer.rel_attn.rel_attn_core = look
            mems = [torch.randn(memory, 2, 64).double() for _ in model.layer] if memory else None
            with torch.no_grad():
                out = model(input_ids=tokens((2, length)), token_type_ids=kinds, mems=mems, output_attentions=True)
            segment = torch.cat([torch.zeros(2, memory).long(), kinds], dim=1)
            index = torch.arange(-memory, length).expand(2, -1)
            at_k = posenc.Positions.at(torch.stack([index, segment], dim=-1))
            at_q = at_k.take(torch.arange(memory, memory + length))
            assert len(found) == len(spec.layers) == len(out.attentions)
            for number, ((q, k), expected) in enumerate(zip(found, out.attentions, strict=True)):
                encoding = with_weights(spec, number, state)
                hidden = ~may_attend(at_q, at_k, spec.layers[number].causal)
                got = scores(encoding, q, k, at_q, at_k).masked_fill(hidden, -torch.inf).softmax(-1)
                # its sinusoids are fp32's: one rounding for each position
                result.close("probabilities of every layer, with memory and without", got, expected, 26.0)
    return result


@proof("funnel")
def funnel(model_type: str) -> Proof:
    result = Proof(model_type, "XLNet's terms; blocks pool tokens, which keep their positions; the class token has none")
    plain = {
        "block_sizes": [1, 2, 1],
        "block_repeats": [1, 2, 1],
        "d_model": 64,
        "n_head": 4,
        "d_head": 16,
        "d_inner": 16,
        "hidden_size": None,
        "num_attention_heads": None,
        "num_hidden_layers": None,
    }
    for more in (
        {},
        {"attention_type": "factorized"},
        {"separate_cls": False},
        {"truncate_seq": False},
        {"pool_q_only": False},
    ):
        config = config_of(model_type, **plain, **more)
        model, spec = drawn(config, "FunnelModel"), spec_of(config)
        kinds = torch.tensor([[2] + [0] * 7 + [1] * 8, [2] + [0] * 3 + [1] * 12])
        found: list[tuple[Tensor, Tensor, Tensor]] = []
        hooks = []
        for module in model.modules():
            if type(module).__name__ == "FunnelRelMultiheadAttention":
                hooks.append(
                    module.register_forward_hook(
                        lambda module, given, out, found=found: found.append(
                            (module.q_head(given[0]), module.k_head(given[1]), out[1])
                        )
                    )
                )
        with torch.no_grad():
            model(input_ids=tokens((2, 16)), token_type_ids=kinds, output_attentions=True)
        for hook in hooks:
            hook.remove()
        state = model.state_dict()
        layers = [(part, n) for part in ("encoder", "decoder") for n in range(len(spec[part].layers))]
        assert len(found) == len(layers)
        places, block = torch.arange(16), 0
        segment, segments, place = torch.where(kinds == 2, -1, kinds), {}, {}
        for pooled in range(3):  # positions and segments of every block, as the note of the spec says
            place[pooled], segments[pooled] = places, segment
            apart, cut = config.separate_cls, config.separate_cls and config.truncate_seq
            if apart:
                kept = torch.arange(1, len(places) - cut, 2)
                places = torch.cat([torch.tensor([1 - 2 ** (pooled + 1)]), places[kept]])
                segment = torch.cat([segment[:, :1], segment[:, kept]], dim=1)
            else:
                places, segment = places[::2], segment[:, ::2]
        before = 0
        for (part, number), (q, k, expected) in zip(layers, found, strict=True):
            layer, encoding = spec[part].layers[number], with_weights(spec[part], number, state)
            block = int(layer.kind.removeprefix("block_"))
            first = block != before and config.pool_q_only and part == "encoder"
            at_q, at_k = (
                posenc.Positions.at(torch.stack([place[b].expand(2, -1), segments[b]], dim=-1))
                for b in (block, before if first else block)
            )
            before = block
            q, k = (x.unflatten(-1, (4, 16)).transpose(1, 2) for x in (q, k))
            mine = scores(encoding, q, k, at_q, at_k)  # theirs are rounded to fp32 before the softmax
            result.close("probabilities of every layer", mine.softmax(-1), expected.double(), 1 + float(mine.abs().max()))
    return result
