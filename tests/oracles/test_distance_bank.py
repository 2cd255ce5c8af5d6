"""Biases that tokens mix for themselves: Inkling's bank and ProphetNet's buckets, by loops and against their modules."""

import importlib
import math

import numpy as np
import pytest
import torch

from posenc import Positions, attend
from posenc.encodings.bases.distance_bank import DistanceBank
from posenc.encodings.of_families.t5_content import T5OfContent

from .by_hand import add, attention, close, draw, products, sees
from .test_deberta import drawn
from .test_t5 import bucket
from .test_t5_families import matrix

H, D = 4, 6
M = H * D


def split(x: torch.Tensor) -> torch.Tensor:
    return x.unflatten(-1, (H, D)).transpose(1, 2)


@pytest.mark.parametrize("impl", ["reference", "sdpa"])
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("limit", [None, 0.9])
@pytest.mark.parametrize("floor", [None, 3])
@pytest.mark.parametrize("reads", ["hidden", "query"])
def test_bank_by_loops(reads, floor, limit, causal, impl):
    """Queries and the bias grow together beyond the floor."""
    d_in = M if reads == "hidden" else D
    encoding = drawn(
        DistanceBank(H, d_in, profiles=3, extent=4, reads=reads, floor=floor, alpha=0.7, limit=limit, scale=1 / D).double()
    )
    project, bank = encoding.project.detach().numpy(), encoding.bank.detach().numpy()
    x, q, k, v = draw(4, 1, 7, M), *(draw(seed, 1, H, 7, D) for seed in (1, 2, 3))
    places = [0, 1, 2, 3, 5, 6, 60]
    grown = np.array([1 + 0.7 * math.log(max((p + 1) / floor, 1)) if floor else 1.0 for p in places])

    def term(b, h, i, j):
        distance = places[i] - places[j]
        if not 0 <= distance < 4:
            return 0.0
        of = x[b, i] if reads == "hidden" else q[b, h, i] * grown[i]
        r = [sum(project[h, n, m] * of[m] for m in range(d_in)) for n in range(3)]
        if limit:
            r = [r[n] * float(encoding.mixing.detach()[h, n]) for n in range(3)]
            r = [one * min(1.0, limit / (math.hypot(*r) + 1e-6)) for one in r]
        return (grown[i] if reads == "hidden" else 1) * sum(r[n] * bank[n, distance] for n in range(3))

    at = Positions.at(torch.tensor([places]))
    at_q = encoding.read_hidden(torch.from_numpy(x), at) if reads == "hidden" else at
    got = attend(*map(torch.from_numpy, (q, k, v)), encoding, at_q, at, causal=causal, impl=impl)
    logits = add(products(q * grown[:, None], k, 1 / D), term)
    close(got, attention(logits, v, sees([range(7)], [range(7)], causal=causal)))


@pytest.mark.parametrize("sliding", [False, True])
def test_whole_attention_of_inkling(sliding):
    """Short convolutions on keys and values included, as the model feeds them."""
    module = importlib.import_module("transformers.models.inkling.modeling_inkling")
    config = module.InklingTextConfig(
        hidden_size=M,
        num_hidden_layers=2,
        num_attention_heads=H,
        num_key_value_heads=2,
        head_dim=D,
        d_rel=3,
        swa_num_attention_heads=H,
        swa_num_key_value_heads=2,
        swa_head_dim=D,
        sliding_window_size=5,
        rel_extent=11,
        log_scaling_n_floor=4,
        layer_types=["hybrid_sliding", "hybrid"],
    )
    config._attn_implementation = "eager"
    their = drawn(module.InklingAttention(config, 0 if sliding else 1).double()).eval()
    extent, length = (5, 17) if sliding else (11, 17)
    x = torch.from_numpy(draw(5, 2, length, M)).float().double()
    index = torch.arange(length)
    hidden = index[None] > index[:, None]
    if sliding:
        hidden |= index[:, None] - index[None] >= 5
    mask = torch.zeros(length, length, dtype=torch.float64).masked_fill(hidden, float("-inf"))[None, None]
    with torch.no_grad():
        expected = their(x, mask)[0]
        encoding = DistanceBank(H, M, profiles=3, extent=extent, floor=None if sliding else 4, alpha=0.1, scale=1 / D)
        encoding = encoding.double()
        encoding.load_state_dict({"project": their.r_proj.weight.view(H, 3, M), "bank": their.rel_logits_proj.proj})
        q = their.q_norm(their.q_proj(x).unflatten(-1, (H, D))).transpose(1, 2)
        k = their.k_norm(their.k_sconv(their.k_proj(x)).unflatten(-1, (2, D))).transpose(1, 2)
        v = their.v_sconv(their.v_proj(x)).unflatten(-1, (2, D)).transpose(1, 2)
        at = Positions.arange(2, length)
        ones, nears = zip(*((slice(i, i + 1), slice(max(0, i - 4), i + 1)) for i in range(length)), strict=True)
        if sliding:  # attention has no window here: the queries go one by one, with the keys that they may see
            at_q = encoding.read_hidden(x, at)
            rows = [
                attend(q[:, :, i], k[:, :, j], v[:, :, j], encoding, at_q.take(index[i]), at.take(index[j]))
                for i, j in zip(ones, nears, strict=True)
            ]
            out = torch.cat(rows, dim=2)
        else:
            out = attend(q, k, v, encoding, encoding.read_hidden(x, at), at)
        close(their.o_proj(out.transpose(1, 2).flatten(-2)), expected, atol=3e-6)  # norms and softmax in float32


@pytest.mark.parametrize("kind", ["Sliding", "Full"])
def test_bias_of_inkling_2_is_of_limited_length(kind):
    module = importlib.import_module("transformers.models.inkling2.modeling_inkling2")
    config = module.Inkling2TextConfig(
        hidden_size=M,
        num_hidden_layers=2,
        num_attention_heads=H,
        num_key_value_heads=2,
        head_dim=D,
        d_rel=3,
        swa_num_attention_heads=H,
        swa_num_key_value_heads=2,
        swa_head_dim=D,
        sliding_window_size=5,
        rel_extent=11,
        log_scaling_n_floor=4,
        layer_types=["hybrid_sliding", "hybrid"],
        rel_l2_clip_threshold=0.8,
    )
    config._attn_implementation = "eager"
    their = drawn(getattr(module, f"Inkling2{kind}Attention")(config, ["Sliding", "Full"].index(kind)).double()).eval()
    x, length = torch.from_numpy(draw(5, 2, 17, M)) / 4, 17
    at, caught = Positions.arange(2, length), []
    their.rel_logits_proj.register_forward_hook(lambda module, given, out: caught.append(out.detach()))
    mask = torch.zeros(1, 1, length, length, dtype=torch.float64)
    with torch.no_grad():
        their(x, mask) if kind == "Sliding" else their(x, x, x, mask, position_ids=at.coords)
    extent, floor = (5, None) if kind == "Sliding" else (11, 4)
    encoding = DistanceBank(
        H, M, profiles=3, extent=extent, floor=floor, alpha=config.log_scaling_alpha, limit=0.8
    ).double()
    encoding.load_state_dict(
        {
            "project": their.r_proj.weight.view(H, 3, M),
            "bank": their.rel_logits_proj.proj,
            "mixing": their.rel_l2_clip.scale,
        }
    )
    q, at_q = torch.zeros(2, H, length, D, dtype=torch.float64), encoding.read_hidden(x, at)
    lengths = at_q.states[encoding.identity][0].norm(dim=-1)
    assert lengths.max() < 0.8 + 1e-6
    assert lengths.min() < 0.7  # some are shortened, some are not
    close(matrix(encoding, q, q, at_q, at), caught[0], atol=2e-6)  # their lengths are float32's


def test_wrong_arguments():
    for name in ("d_in", "profiles", "extent", "floor"):
        with pytest.raises(ValueError, match=f"{name}: expected a whole number from 1, got 0"):
            DistanceBank(H, **{"d_in": M, name: 0})
    with pytest.raises(ValueError, match="limit: expected a positive number"):
        DistanceBank(H, M, limit=0)
    with pytest.raises(ValueError, match="alpha: expected a finite number"):
        DistanceBank(H, M, alpha=math.nan)
    with pytest.raises(ValueError, match="built for d_in=24, got a tensor with 20"):
        DistanceBank(H, M).read_hidden(torch.zeros(1, 2, 20), Positions.arange(1, 2))
    with pytest.raises(TypeError, match="needs integer positions"):
        attend(*[torch.zeros(1, H, 2, D)] * 3, DistanceBank(H, D, reads="query"), Positions.at(torch.rand(1, 2)))
    with pytest.raises(ValueError, match="d_in: expected a whole number"):
        T5OfContent(H, 0)


def test_start_values():
    torch.manual_seed(0)
    buckets = T5OfContent(4, 64, n_buckets=32)
    assert buckets.project.std().item() == pytest.approx(0.02, rel=0.05)
    assert not buckets.offset.any()


# Buckets ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reads", ["hidden", "query"])
def test_buckets_of_content_by_loops(reads):
    d_in = M if reads == "hidden" else D
    encoding = drawn(T5OfContent(H, d_in, n_buckets=8, max_distance=20, reads=reads, scale=0.4).double())
    project, offset = (p.detach().numpy() for p in encoding.parameters())
    x, q, k, v = draw(4, 1, 5, M), *(draw(seed, 1, H, 5, D) for seed in (1, 2, 3))
    places = [0, 3, 4, 19, 40]

    def term(b, h, i, j):
        of, row = x[b, i] if reads == "hidden" else q[b, h, i], bucket(places[i] - places[j], 8, 20, False)
        return sum(project[h, row, m] * of[m] for m in range(d_in)) + offset[h, row]

    at = Positions.at(torch.tensor([places]))
    at_q = encoding.read_hidden(torch.from_numpy(x), at) if reads == "hidden" else at
    got = attend(*map(torch.from_numpy, (q, k, v)), encoding, at_q, at)
    close(got, attention(add(products(q, k, 0.4), term), v, sees([range(5)], [range(5)])))


def test_bias_of_prophetnet():
    module = importlib.import_module("transformers.models.prophetnet.modeling_prophetnet")
    config = module.ProphetNetConfig(hidden_size=M, num_decoder_attention_heads=H, num_buckets=8, relative_max_distance=20)
    their = drawn(module.ProphetNetNgramSelfAttention(config).double())
    x = torch.from_numpy(draw(5, 2, 50, M))
    index = torch.arange(1, 51).expand(2, -1)
    main, _ = module.compute_all_stream_relative_buckets(8, 20, index)
    expected = their.get_main_relative_pos_embeddings(x, torch.zeros(2, H, 50, 50), index, main)
    encoding = T5OfContent(H, M, n_buckets=8, max_distance=20).double()
    linear = their.relative_pos_embeddings
    encoding.load_state_dict({"project": linear.weight.view(8, H, M).transpose(0, 1), "offset": linear.bias.view(8, H).T})
    at = Positions.at(index)
    q = torch.zeros(2, H, 50, D, dtype=torch.float64)
    close(matrix(encoding, q, q, encoding.read_hidden(x, at), at), expected.detach())
