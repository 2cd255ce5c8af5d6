"""posenc.configs.families.lightglue, compared with the models' own code in transformers."""

from __future__ import annotations

import torch

from families.harness import Call, Proof, build, calls, config_of, modeling, proof, same_rotation, spec_of
from families.proofs_dots3_note import Filled
from posenc.configs.weights import with_weights


class Matcher(torch.nn.Module):
    """LightGlue from key points onwards, as its own forward goes."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, points: torch.Tensor, x: torch.Tensor) -> None:
        turning = self.model.positional_encoder(points)[0]
        for layer in self.model.transformer_layers:
            x, _, _ = layer(x, turning, attention_mask=None)


@proof("lightglue")
def lightglue(model_type: str) -> Proof:
    result = Proof(model_type, "RoPE, interleaved pairs, angles from a learned matrix of (x, y), in self-attention")
    config = config_of(model_type, descriptor_dim=40, num_attention_heads=4, num_hidden_layers=2)
    model, spec = build(config), spec_of(config)
    points = modeling(model_type).normalize_keypoints(torch.rand(2, 7, 2) * torch.tensor([640.0, 480.0]), 480, 640)
    assert points.abs().max() <= 1
    x = torch.randn(2, 7, 40)
    passes = [calls(Matcher(model), given, x) for given in (torch.zeros_like(points), points)]
    for before, after in zip(
        passes[0][1::2], passes[1][1::2], strict=True
    ):  # what crosses over has been attended to before
        before.k, before.v = after.k, after.v
    assert len(passes[1]) == len(spec.layers) == 4
    same_rotation(result, Filled(spec, model), *passes, points.movedim(-1, 0), 4.0, softmax=True)
    x = torch.randn(2, 4, 7, 10)
    table = with_weights(spec, 0, model.state_dict())
    assert not torch.equal(table.rotate(x, _at(points), "query"), x)
    result.equal("parts", [part.family for part in spec.parts], ["superpoint"])
    return result


def _at(points: torch.Tensor) -> object:
    from families.harness import at_of

    return at_of(points.movedim(-1, 0))


class Transformer(torch.nn.Module):
    """EfficientLoFTR from coarse features onwards, as its own forward goes."""

    def __init__(self, config: object, module: object) -> None:
        super().__init__()
        self.rotary_emb = module.EfficientLoFTRRotaryEmbedding(config)
        self.local_feature_transformer = module.EfficientLoFTRLocalFeatureTransformer(config)

    def forward(self, x: torch.Tensor, still: bool) -> None:
        cos, sin = (part.expand(2, -1, -1, -1).reshape(2, -1, x.shape[2]) for part in self.rotary_emb(x))
        turning = (torch.ones_like(cos), torch.zeros_like(sin)) if still else (cos, sin)
        self.local_feature_transformer(x, position_embeddings=turning)


@proof("efficientloftr")
def efficientloftr(model_type: str) -> Proof:
    result = Proof(
        model_type, "RoPE, interleaved pairs, over all heads together, row and column alternately, from 1; self-attention"
    )
    for scaled in ({}, {"rope_parameters": {"rope_type": "linear", "rope_theta": 5000.0, "factor": 3.0}}):
        config = config_of(
            model_type, hidden_size=64, num_attention_heads=8, num_attention_layers=2, out_features=[8, 8, 16, 64], **scaled
        )
        config._attn_implementation = "probe"
        torch.manual_seed(0)
        model, spec = Transformer(config, modeling(model_type)).eval(), spec_of(config, defaults=True)
        rows, columns = 5, 3
        x = torch.randn(1, 2, 64, 4 * rows, 4 * columns)
        at_zero, moved = (_whole(calls(model, x, still)) for still in (True, False))
        assert len(moved) == len(spec.layers) + 2 == 6  # cross-attention is asked once for each image
        y, x = torch.meshgrid(torch.arange(1, rows + 1), torch.arange(1, columns + 1), indexing="ij")
        ids = torch.stack([y.flatten(), x.flatten()])[:, None].expand(2, 2, -1)
        turning = [number for number in range(6) if number % 3 == 0]
        own = spec.layers
        assert [bool(layer.uses) for layer in own] == [True, False, True, False]
        for number in turning:
            one = type(spec)("", layers=(own[number // 3 * 2],))
            same_rotation(result, one, [at_zero[number]], [moved[number]], ids)
        for number in set(range(6)) - set(turning):
            assert torch.equal(at_zero[number].q, moved[number].q)
            assert torch.equal(at_zero[number].k, moved[number].k)
        own = model.rotary_emb.inv_freq.repeat_interleave(2)
        parity = spec.encoding(0, exact="model").frequencies.values
        result.equal(f"{len(own)} frequencies", torch.tensor(parity, dtype=torch.float32), own)
    return result


def _whole(found: list[Call]) -> list[Call]:
    """The heads put together again, as they were turned."""
    for call in found:
        call.q, call.k, call.v = (x.transpose(1, 2).flatten(2)[:, None] for x in (call.q, call.k, call.v))
    return found
