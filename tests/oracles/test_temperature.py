"""Temperatures by their formulas, by published values, and against the families that use them."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from transformers.models.beam.modeling_beam import compute_attention_scaling
from transformers.models.ministral3.modeling_ministral3 import get_llama_4_attn_scale
from transformers.models.mistral4 import modeling_mistral4
from transformers.models.mistral_large4.modeling_mistral_large4 import MistralLarge4TextSoftmaxScaling

from posenc import Positions, Stack, attend
from posenc.checking import laws
from posenc.encodings.alibi import ALiBi
from posenc.encodings.bases.temperature import (
    FloorLogTemperature,
    LearnedTemperature,
    LogLengthTemperature,
    LogTemperature,
    PowerTemperature,
    TemperedBias,
)
from posenc.encodings.learned import Learned
from posenc.encodings.rope import RoPE

from .by_hand import attention, close, draw, each, half_ulp, products

P = [0, 1, 6, 7, 8, 9, 15, 16, 2046, 2047, 2048, 4095, 8190, 8191, 8192, 16382, 16383, 99999, 131071]

FORMULAS = {
    "llama 4": (lambda: FloorLogTemperature(), lambda p: 1 + 0.1 * math.log(1 + (p + 1) // 8192)),
    "llama 4 small": (lambda: FloorLogTemperature(0.3, 8), lambda p: 1 + 0.3 * math.log(1 + (p + 1) // 8)),
    "ministral": (lambda: FloorLogTemperature(0.1, 16384, 0), lambda p: 1 + 0.1 * math.log(1 + p // 16384)),
    "odd length": (lambda: FloorLogTemperature(0.9, 7, 0), lambda p: 1 + 0.9 * math.log(1 + p // 7)),
    "beam": (lambda: PowerTemperature(), lambda p: (1 + (p + 1) / 2048) ** 0.1),
    "beam small": (lambda: PowerTemperature(0.7, 5), lambda p: (1 + (p + 1) / 5) ** 0.7),
    "inkling": (lambda: LogTemperature(), lambda p: 1 + 0.1 * math.log(max((p + 1) / 8192, 1))),
    "inkling small": (lambda: LogTemperature(0.4, 9), lambda p: 1 + 0.4 * math.log(max((p + 1) / 9, 1))),
    "log-n": (lambda: LogLengthTemperature(), lambda p: max(1.0, math.log(p + 1) / math.log(2048))),
    "log-n small": (lambda: LogLengthTemperature(8), lambda p: max(1.0, math.log(p + 1, 8))),
}


def at(rows):
    return Positions.at(torch.tensor(rows))


def tau(encoding, positions=P):
    """What a query of ones becomes."""
    ones = torch.ones(1, 1, len(positions), 1, dtype=torch.float64)
    return encoding.rotate(ones, at([positions]), "query")[0, 0, :, 0].tolist()


@pytest.mark.parametrize("name", FORMULAS)
def test_the_formula(name):
    make, formula = FORMULAS[name]
    assert tau(make()) == pytest.approx([formula(p) for p in P], rel=1e-14)


def test_the_off_by_one_between_llama_4_and_ministral_published():
    """At position 8191, the 8192nd token: 1.069 in Llama 4, 1.0 in Ministral 3; one token later both."""
    assert [round(v, 3) for v in tau(FloorLogTemperature(), [8190, 8191, 8192])] == [1.0, 1.069, 1.069]
    assert [round(v, 3) for v in tau(FloorLogTemperature(offset=0), [8190, 8191, 8192])] == [1.0, 1.0, 1.069]


def test_ministrals_and_mistral_4s_function():
    ids = torch.tensor([P, P[::-1]])
    for theirs in (get_llama_4_attn_scale, modeling_mistral4.get_llama_4_attn_scale):
        for beta, length in ((0.1, 16384), (0.3, 8192)):
            got = FloorLogTemperature(beta, length, 0).rotate(torch.ones(2, 1, len(P), 1), Positions.at(ids), "query")
            torch.testing.assert_close(got, theirs(ids, beta, length), atol=1e-6, rtol=0)


def test_beams_function():
    ids = torch.tensor([P, P[::-1]])
    got = PowerTemperature().rotate(torch.ones(2, 1, len(P), 1), Positions.at(ids), "query")
    torch.testing.assert_close(got, compute_attention_scaling(ids), atol=1e-6, rtol=0)


def test_llama_4s_attention():
    """The whole layer: with queries sharpened by ours and their own tuning off, their attention gives the same."""
    from transformers import Llama4TextConfig
    from transformers.models.llama4.modeling_llama4 import Llama4TextAttention

    torch.manual_seed(5)
    config = Llama4TextConfig(
        hidden_size=16,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=8,
        num_hidden_layers=1,
        floor_scale=4,
        attn_scale=0.7,
        no_rope_layers=[0],
        attn_temperature_tuning=True,
        use_qk_norm=False,
        attn_implementation="eager",
    )
    layer, x = Llama4TextAttention(config, 0).eval(), torch.randn(1, 12, 16)
    mask = torch.full((1, 1, 12, 12), -torch.inf).triu(1)
    with torch.no_grad():
        theirs, _ = layer(x, None, mask)
        q, k, v = (part(x).unflatten(-1, (-1, 8)).transpose(1, 2) for part in (layer.q_proj, layer.k_proj, layer.v_proj))
        k, v = k.expand_as(q), v.expand_as(q)
        ours = attend(q, k, v, FloorLogTemperature(0.7, 4), Positions.arange(1, 12))
        torch.testing.assert_close(layer.o_proj(ours.transpose(1, 2).flatten(2)), theirs, atol=1e-6, rtol=1e-5)
        other = attend(q, k, v, FloorLogTemperature(0.7, 4, 0), Positions.arange(1, 12))
        assert (layer.o_proj(other.transpose(1, 2).flatten(2)) - theirs).abs().max() > 1e-4


def test_inklings_attention_multiplies_queries_and_bias():
    """Their tau line, on queries and bias of a layer: run through their own module with the projections replaced."""
    from transformers.models.inkling.modeling_inkling import InklingAttention

    class Noted(Exception):
        pass

    seen = {}

    def note(module, query, key, value, mask, position_bias=None, **_):
        seen.update(query=query, bias=position_bias)
        raise Noted

    from transformers.models.inkling import modeling_inkling as theirs

    config = SimpleNamespace(
        layer_types=["full"],
        head_dim=4,
        num_attention_heads=2,
        num_key_value_heads=2,
        rel_extent=32,
        hidden_size=8,
        attention_dropout=0.0,
        d_rel=3,
        sconv_kernel_size=2,
        rms_norm_eps=1e-6,
        log_scaling_n_floor=None,
        log_scaling_alpha=0.25,
        _attn_implementation="noted",
    )
    torch.manual_seed(6)
    layer, x = InklingAttention(config, 0).eval(), torch.randn(1, 20, 8)
    torch.nn.init.normal_(layer.rel_logits_proj.proj if hasattr(layer.rel_logits_proj, "proj") else layer.r_proj.weight)
    original = theirs.ALL_ATTENTION_FUNCTIONS.get_interface
    theirs.ALL_ATTENTION_FUNCTIONS.get_interface = lambda *_: note
    try:
        results = []
        for floor in (None, 5):
            config.log_scaling_n_floor = floor
            with pytest.raises(Noted), torch.no_grad():
                layer(x, None)
            results.append(dict(seen))
    finally:
        theirs.ALL_ATTENTION_FUNCTIONS.get_interface = original
    plain, tempered = results
    ours, at_all = LogTemperature(0.25, 5), Positions.arange(1, 20)
    torch.testing.assert_close(ours.rotate(plain["query"], at_all, "query"), tempered["query"], atol=1e-6, rtol=1e-6)
    factor = tempered["bias"] / plain["bias"]
    wanted = torch.tensor(tau(ours, list(range(20))), dtype=torch.float32)[:, None].expand(20, 20)
    known = plain["bias"][0].abs() > 1e-3
    assert known.sum() > 100
    torch.testing.assert_close(factor[0][known], wanted.expand_as(known)[known], atol=1e-5, rtol=1e-5)


def test_mistral_large_4s_module():
    module = MistralLarge4TextSoftmaxScaling(3)
    ours = LearnedTemperature(3)
    with torch.no_grad():
        for parameter, value in ((module.scale, [0.3, -0.1, 1.2]), (module.bias, [1.0, 0.7, -0.4])):
            parameter.copy_(torch.tensor(value))
        ours.scale.copy_(module.scale)
        ours.intercept.copy_(module.bias)
        ids, x = torch.tensor([P, P[::-1]]), torch.randn(2, 3, len(P), 4)
        got = ours.rotate(x, Positions.at(ids), "query")
        torch.testing.assert_close(got, module(x, ids, head_dim_first=True), atol=1e-5, rtol=1e-6)
        exact = ours.double().rotate(torch.ones(1, 3, len(P), 1, dtype=torch.float64), at([P]), "query")
    for h, scale, bias in ((0, 0.3, 1.0), (1, -0.1, 0.7), (2, 1.2, -0.4)):
        for t, p in enumerate(P):
            assert exact[0, h, t, 0].item() == pytest.approx(scale * math.log(p + 1) + bias, rel=1e-6, abs=1e-6)


def test_fresh_learned_temperatures_and_slices():
    x, here = torch.randn(1, 4, 9, 2, dtype=torch.float64), Positions.arange(1, 9)
    assert torch.equal(LearnedTemperature(4).rotate(x, here, "query"), x)
    bare = LearnedTemperature(4, bias=False)
    assert [name for name, _ in bare.named_parameters()] == ["scale"]
    close(bare.rotate(x, here, "query"), x * torch.arange(1, 10).double().log()[:, None])
    for whole in (bare, LearnedTemperature(4)):
        laws.draw_parameters(whole, seed=3)
        close(whole.heads(1, 3).rotate(x[:, 1:3], here, "query"), whole.rotate(x, here, "query")[:, 1:3])
        assert any((row != whole.rotate(x, here, "query")[0, 0]).any() for row in whole.rotate(x, here, "query")[0, 1:])
        whole.rotate(x, whole.prepare(here, torch.float64), "query").sum().backward()
        assert all(parameter.grad.abs().sum() > 0 for parameter in whole.parameters())
    with pytest.raises(ValueError, match="built for n_heads=4, got queries of 2 heads"):
        bare.rotate(x[:, :2], here, "query")


ALL = {name: make for name, (make, _) in FORMULAS.items()} | {
    "learned": lambda: laws.draw_parameters(LearnedTemperature(3), seed=1),
    "ssmax": lambda: LearnedTemperature(3, bias=False),
}


@pytest.mark.parametrize("name", ALL)
def test_only_queries_are_multiplied_each_by_its_own_position(name):
    encoding, x = ALL[name](), torch.from_numpy(draw(1, 2, 3, 4, 5))
    rows = [[0, 17, 3, 9000], [5, 5, 20000, 1]]
    together = encoding.rotate(x, at(rows), "query")
    assert not torch.equal(together, x)
    for b, _, t in each(2, 1, 4):
        close(encoding.rotate(x[[b]][:, :, [t]], at([[rows[b][t]]]), "query"), together[[b]][:, :, [t]])
    close(encoding.rotate(x, encoding.prepare(at(rows), torch.float64), "query"), together)
    for side in ("key", "value", "output"):
        assert encoding.rotate(x, at(rows), side) is x
    with pytest.raises(ValueError, match="side: expected one of"):
        encoding.rotate(x, at(rows), "keys")
    with pytest.raises(ValueError, match="position -1"):
        encoding.rotate(x, at([[0, -1, 2, 3]]), "query")
    with pytest.raises(ValueError, match=r"positions \[1, 2\] for tokens"):
        encoding.rotate(x, at([[0, 1]]), "query")


@pytest.mark.parametrize("name", ALL)
def test_16_bit_queries_are_rounded_once(name):
    encoding, x = ALL[name](), torch.from_numpy(draw(2, 1, 3, 19, 4)).bfloat16()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        got = encoding.rotate(x, at([P]), "query")
    assert got.dtype == torch.bfloat16
    exact = encoding.rotate(x.double(), at([P]), "query").detach()
    assert (np.abs(got.detach().double().numpy() - exact.numpy()) <= half_ulp(exact.numpy(), 8) * (1 + 2**-10)).all()


def test_the_laws():
    quick = [law for law in laws.LAWS if law not in ("gradients", "transforms", "one_graph_over_lengths")]
    laws.check(ALL["llama 4 small"](), laws.Setting(dtype=torch.float64), quick)
    laws.check(ALL["llama 4 small"](), laws.Setting(dtype=torch.bfloat16), quick)
    laws.check(Stack(RoPE(8), ALL["inkling small"]()), laws.Setting(dtype=torch.float64), quick)


@pytest.mark.acceptance
def test_all_laws():
    laws.check(ALL["llama 4 small"](), laws.Setting(dtype=torch.float64))
    laws.check(Stack(RoPE(8), ALL["inkling small"]()), laws.Setting(dtype=torch.float64))


@pytest.mark.acceptance
@pytest.mark.parametrize("bias", [True, pytest.param(False, marks=pytest.mark.acceptance)])
def test_the_laws_of_learned_temperatures(bias):
    encoding = laws.draw_parameters(LearnedTemperature(4, bias=bias), seed=2)
    laws.check(encoding, laws.Setting(dtype=torch.float64))


def test_rotation_and_temperature_commute_and_the_logits_are_multiplied():
    """Stack(RoPE, τ): logit (i, j) is τ(i) times the rotated one."""
    q, k, v = (draw(seed, 1, 2, 6, 8) for seed in (1, 2, 3))
    here = Positions.arange(1, 6, 30)
    tensors = [torch.from_numpy(x) for x in (q, k, v)]
    rope, temperature = RoPE(8), FloorLogTemperature(0.5, 4)
    got = attend(*tensors, Stack(rope, temperature), here)
    close(got, attend(*tensors, Stack(temperature, rope), here))
    turned = [rope.rotate(x, here, side).numpy() for x, side in zip(tensors[:2], ("query", "key"), strict=True)]
    sharp = turned[0] * [[[[1 + 0.5 * math.log(1 + (30 + t + 1) // 4)] for t in range(6)]]]
    close(got, attention(products(sharp, turned[1]), v, lambda b, i, j: j <= i))


@pytest.mark.acceptance
def test_a_tempered_bias_is_multiplied_at_the_query():
    alibi, temperature = ALiBi(2), LogTemperature(0.5, 3)
    encoding = TemperedBias(alibi, temperature)
    q, k = torch.zeros(2, 2, 5, 4, dtype=torch.float64), torch.zeros(2, 2, 5, 4, dtype=torch.float64)
    here = Positions.arange(2, 5, torch.tensor([0, 40]))
    for prepared in (here, encoding.prepare(here, torch.float64)):
        term = encoding.bias(q, k, prepared, prepared)
        for b, h, i, j in each(2, 2, 5, 5):
            slope = 2.0 ** -(4 * (h + 1))
            p = i + 40 * b
            expected = -slope * abs(i - j) * (1 + 0.5 * math.log(max((p + 1) / 3, 1)))
            assert term(*map(torch.tensor, (b, h, i, j))).item() == pytest.approx(expected, rel=1e-14, abs=1e-300)
    assert "shift_invariant" not in encoding.traits
    assert encoding.identity == f"TemperedBias({alibi.identity}, {temperature.identity})"
    part = encoding.heads(1, 2).bias(q[:, :1], k[:, :1], here, here)
    whole = encoding.bias(q, k, here, here)
    b, i, j = torch.tensor(1), torch.tensor(4), torch.tensor(1)
    assert part(b, torch.tensor(0), i, j) == whole(b, torch.tensor(1), i, j)
    laws.check(
        laws.draw_parameters(Stack(temperature, TemperedBias(ALiBi(4), temperature)), seed=1),
        laws.Setting(dtype=torch.float64),
    )


def test_what_cannot_be_tempered_is_refused():
    with pytest.raises(ValueError, match="part: expected an encoding that is a bias and nothing else"):
        TemperedBias(Learned(8, 4), LogTemperature())
    with pytest.raises(TypeError, match="temperature: expected a Temperature, got RoPE"):
        TemperedBias(ALiBi(2), RoPE(8))


@pytest.mark.parametrize("bad", [0, -1.0, math.nan, None])
def test_numbers_that_are_none_are_refused(bad):
    for name, call in (
        ("scale", lambda: FloorLogTemperature(bad)),
        ("trained_length", lambda: FloorLogTemperature(trained_length=bad)),
        ("exponent", lambda: PowerTemperature(bad)),
        ("trained_length", lambda: PowerTemperature(trained_length=bad)),
        ("scale", lambda: LogTemperature(bad)),
        ("trained_length", lambda: LogTemperature(trained_length=bad)),
        ("trained_length", lambda: LogLengthTemperature(bad)),
    ):
        with pytest.raises(ValueError, match=f"{name}: expected a positive number"):
            call()
    with pytest.raises(ValueError, match=r"length: .* at least 2"):
        LogLengthTemperature(1)
    for offset in (2, 0.5, -1):
        with pytest.raises(ValueError, match="offset: expected 0 "):
            FloorLogTemperature(offset=offset)
