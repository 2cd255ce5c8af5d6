"""Disentangled attention against He et al. 2020 by loops, and against DeBERTa, DeBERTa-v2 and SEW-D in transformers."""

import importlib
import math
from fractions import Fraction

import pytest
import torch
from torch import nn

from posenc import Positions, attend
from posenc.encodings.deberta import DeBERTa

from .by_hand import add, attention, close, draw, products

H, D = 4, 6
M = H * D


def drawn(module: nn.Module, seed: int = 0) -> nn.Module:
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64) / 3)
    return module


def bucket(delta: int, n_buckets: int, furthest: int) -> int:
    """With rationals: beyond m the smallest m + n with |δ|/m <= ((furthest-1)/m)^(n/(m-1)), up to n_buckets."""
    exact, size = n_buckets // 2, abs(delta)
    if size <= exact:
        return delta
    n = 0
    while n < n_buckets - exact and Fraction(size, exact) ** (exact - 1) > Fraction(furthest - 1, exact) ** n:
        n += 1
    return (exact + n) * (1 if delta > 0 else -1)


@pytest.mark.parametrize("sizes", [(256, 512), (32, 128), (16, 64), (8, 20), (64, 512)], ids=str)
def test_buckets_are_those_of_rationals(sizes):
    encoding = DeBERTa(8, 2, n_buckets=sizes[0], max_distance=sizes[1])
    near = range(-sizes[1] - 9, sizes[1] + 10)
    assert encoding.bucket(torch.tensor(list(near))).tolist() == [bucket(delta, *sizes) for delta in near]
    rows = encoding.row(torch.tensor([-100_000, 0, 100_000])).tolist()
    assert rows == [0, sizes[0], 2 * sizes[0] - 1]


@pytest.mark.parametrize("sizes", [(256, 512), (32, 128), (16, 64), (8, 20), (64, 512), (256, 1024), (48, 2048)], ids=str)
@pytest.mark.parametrize("family", ["deberta_v2", "sew_d"])
def test_every_distance_to_100000_is_the_row_of_the_families_I3(family, sizes):
    """Their logarithms are float32's; whole numbers give the same rows."""
    module = importlib.import_module(f"transformers.models.{family}.modeling_{family}")
    delta = torch.arange(-100_000, 100_001)
    their = (module.make_log_bucket_position(delta, *sizes).long() + sizes[0]).clamp(0, 2 * sizes[0] - 1)
    assert torch.equal(DeBERTa(8, 2, n_buckets=sizes[0], max_distance=sizes[1]).row(delta), their)


def by_loops(q, k, encoding, at_q, at_k, max_distance, n_buckets, terms):
    parameters = {name: value.detach().numpy() for name, value in encoding.named_parameters()}
    table = parameters["table"]
    if encoding.norm_eps is not None:
        mean, spread = table.mean(1, keepdims=True), table.var(1, keepdims=True)
        table = (table - mean) / (spread + encoding.norm_eps) ** 0.5 * parameters["norm"] + parameters["norm_offset"]
    span = max_distance if n_buckets is None else n_buckets
    scale = 1 / math.sqrt(D * (1 + len(terms)))

    def term(b, h, i, j):
        delta = at_q[b][i] - at_k[b][j]
        delta = delta if n_buckets is None else bucket(delta, n_buckets, max_distance)
        row = table[min(max(delta + span, 0), 2 * span - 1)]
        total = 0.0
        for name, content in (("key", q[b, h, i]), ("query", k[b, h, j])):
            if {"key": "c2p", "query": "p2c"}[name] in terms:
                weight, offset = parameters[name][h], parameters[f"{name}_offset"][h]
                turned = [sum(weight[c, e] * row[e] for e in range(M)) + offset[c] for c in range(D)]
                total += sum(content[c] * turned[c] for c in range(D))
        return total * scale

    return add(products(q, k, scale), term)


@pytest.mark.parametrize("terms", [("c2p", "p2c"), ("c2p",), ("p2c",)])
@pytest.mark.parametrize(("max_distance", "n_buckets", "norm_eps"), [(4, None, None), (20, 8, 1e-7)])
@pytest.mark.parametrize("impl", ["reference", "sdpa"])
def test_terms_by_loops(impl, max_distance, n_buckets, norm_eps, terms):
    encoding = DeBERTa(M, H, max_distance=max_distance, n_buckets=n_buckets, norm_eps=norm_eps, terms=terms).double()
    drawn(encoding)
    q, k, v = draw(1, 1, H, 4, D), draw(2, 1, H, 5, D), draw(3, 1, H, 5, D)
    at_q, at_k = [[4, 0, 30, 9]], [[3, 18, 5, 0, 4]]
    got = attend(
        *map(torch.from_numpy, (q, k, v)),
        encoding,
        Positions.at(torch.tensor(at_q)),
        Positions.at(torch.tensor(at_k)),
        causal=False,
        impl=impl,
    )
    logits = by_loops(q, k, encoding, at_q, at_k, max_distance, n_buckets, terms)
    close(got, attention(logits, v, lambda b, i, j: True))


def test_v1_whole_attention():
    """Longer than the table and shorter; left padding does not matter."""
    module = importlib.import_module("transformers.models.deberta.modeling_deberta")
    for terms, limit in ((["c2p", "p2c"], 6), (["c2p"], 64), (["p2c"], 64)):
        config = module.DebertaConfig(
            hidden_size=M, num_attention_heads=H, relative_attention=True, pos_att_type=terms, max_relative_positions=limit
        )
        their = drawn(module.DisentangledSelfAttention(config).double()).eval()
        encoding = DeBERTa(M, H, max_distance=limit, terms=tuple(terms)).double()
        table = torch.from_numpy(draw(7, 2 * limit, M)) / 3
        weights = {"table": table}
        if "c2p" in terms:
            weights |= {"key": their.pos_proj.weight.view(H, D, M), "key_offset": torch.zeros(H, D)}
        if "p2c" in terms:
            weights |= {"query": their.pos_q_proj.weight.view(H, D, M), "query_offset": their.pos_q_proj.bias.view(H, D)}
        encoding.load_state_dict(weights)
        x = torch.from_numpy(draw(8, 2, 17, M))
        expected = their(
            x, torch.ones(2, 1, 17, 17), relative_pos=module.build_relative_position(x, x), rel_embeddings=table
        )[0]
        q, k, v = their.in_proj(x).unflatten(-1, (H, 3 * D)).transpose(1, 2).chunk(3, dim=-1)
        q, v = q + their.q_bias.view(H, 1, D), v + their.v_bias.view(H, 1, D)
        out = attend(q, k, v, encoding, Positions.arange(2, 17, 5), causal=False)
        close(out.transpose(1, 2).flatten(-2), expected.detach(), atol=1e-6)  # a float32 scale: 6e-8 of logits near 10


@pytest.mark.parametrize("family", ["deberta_v2", "sew_d"])
@pytest.mark.parametrize("buckets", [8, -1])
@pytest.mark.parametrize("share", [False, True])
def test_v2_whole_attention(share, buckets, family):
    module = importlib.import_module(f"transformers.models.{family}.modeling_{family}")
    config = getattr(module, "DebertaV2Config" if family == "deberta_v2" else "SEWDConfig")(
        hidden_size=M,
        num_attention_heads=H,
        relative_attention=True,
        pos_att_type=["c2p", "p2c"],
        max_relative_positions=20,
        position_buckets=buckets,
        share_att_key=share,
        norm_rel_ebd="layer_norm",
        hidden_dropout=0.0,
        attention_dropout=0.0,
        activation_dropout=0.0,
    )
    their = drawn(module.DisentangledSelfAttention(config).double()).eval()
    span = 20 if buckets < 0 else buckets
    norm = drawn(nn.LayerNorm(M, eps=1e-7).double(), 3)
    table = torch.from_numpy(draw(7, 2 * span, M)) / 3
    key, query = (their.key_proj, their.query_proj) if share else (their.pos_key_proj, their.pos_query_proj)
    encoding = DeBERTa(M, H, max_distance=20, n_buckets=None if buckets < 0 else buckets, norm_eps=1e-7).double()
    encoding.load_state_dict(
        {
            "table": table,
            "norm": norm.weight,
            "norm_offset": norm.bias,
            "key": key.weight.view(H, D, M),
            "key_offset": key.bias.view(H, D),
            "query": query.weight.view(H, D, M),
            "query_offset": query.bias.view(H, D),
        }
    )
    x = torch.from_numpy(draw(8, 2, 50, M))
    expected = their(x, torch.ones(2, 1, 50, 50), rel_embeddings=norm(table))[0]
    q, k, v = (getattr(their, f"{n}_proj")(x).unflatten(-1, (H, D)).transpose(1, 2) for n in ("query", "key", "value"))
    out = attend(q, k, v, encoding, Positions.arange(2, 50, 9), causal=False)
    close(out.transpose(1, 2).flatten(-2), expected.detach(), atol=1e-6)  # a float32 scale: 6e-8 of logits near 10


def test_wrong_arguments():
    with pytest.raises(ValueError, match=r"terms: expected a sequence, each one of 'c2p', 'p2c', got \('p2p',\)"):
        DeBERTa(M, H, terms=("p2p",))
    for terms in ((), ("c2p", "c2p")):
        with pytest.raises(ValueError, match="terms: expected 'c2p', 'p2c' or both"):
            DeBERTa(M, H, terms=terms)
    for wrong in ({"n_buckets": 2}, {"n_buckets": 256, "max_distance": 100}):
        with pytest.raises(ValueError, match="n_buckets, max_distance"):
            DeBERTa(M, H, **wrong)
    with pytest.raises(ValueError, match="d_model: expected a multiple of n_heads"):
        DeBERTa(M + 1, H)
    with pytest.raises(ValueError, match="max_distance: expected a whole number"):
        DeBERTa(M, H, max_distance=0)
    with pytest.raises(ValueError, match=r"name: expected a projection of the terms \('c2p',\), got 'query'"):
        DeBERTa(M, H, terms=("c2p",)).projected("query", torch.float32)
    with pytest.raises(TypeError, match="needs integer positions"):
        attend(*[torch.zeros(1, H, 2, D)] * 3, DeBERTa(M, H), Positions.at(torch.rand(1, 2)))
    with pytest.raises(ValueError, match="built for d_head=6, got a tensor with 4"):
        attend(*[torch.zeros(1, H, 2, 4)] * 3, DeBERTa(M, H), Positions.arange(1, 2))


@pytest.mark.parametrize("side", ["queries", "keys"])
def test_real_positions_are_refused_on_either_side(side):
    encoding, x = DeBERTa(M, H).double(), torch.randn(1, H, 3, D, dtype=torch.float64)
    whole, real = Positions.arange(1, 3), Positions.at(torch.tensor([[0.0, 0.5, 1.0]]))
    at_q, at_k = (real, whole) if side == "queries" else (whole, real)
    with pytest.raises(TypeError, match="DeBERTa: needs integer positions"):
        encoding.bias(x, x, at_q, at_k)
