"""The parity mode against transformers itself, bit for bit: frequencies, then cos and sin."""

import importlib
import itertools
import math
from types import SimpleNamespace

import pytest
import torch
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

from cases import cases
from posenc import Positions, frequencies
from posenc.configs import float32
from posenc.encodings.rope import RoPE

WIDTHS = [2, 4, 6, 16, 26, 64, 96, 128, 130, 256]
BASES = [10000, 10000.0, 5e5, 1e6, 11158840, 100.0]
FAR = [0, 1, 2, 3, 511, 4095, 4096, 8191, 32768, 65537, 99999, 131071]


def theirs(rope_type, width, base, *, seq_len=None, max_length=4096, **parameters):
    """What transformers' own function makes of these parameters: the values and the factor on cos and sin."""
    parameters = {"rope_type": rope_type, "rope_theta": base, **parameters}
    config = SimpleNamespace(
        rope_parameters=parameters,
        head_dim=width,
        hidden_size=width,
        num_attention_heads=1,
        max_position_embeddings=max_length,
        standardize_rope_params=lambda: None,
    )
    values, scale = ROPE_INIT_FUNCTIONS[rope_type](config, seq_len=seq_len)
    return values, scale


def same(got, values, scale=1.0):
    """Equal bits: fp32 values as Python numbers are exact."""
    assert got.arithmetic == "float32"
    assert got.values == tuple(values.tolist())
    assert got.cos_sin_scale == scale
    assert got.softmax_scale == 1.0


def plain(width, base):
    """The frequencies of a Llama whose file asks for no scaling."""
    return LlamaRotaryEmbedding(llama(width, {"rope_type": "default", "rope_theta": base})).inv_freq


def llama(width, parameters, max_length=4096, **more):
    return LlamaConfig(
        hidden_size=2 * width,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=width,
        max_position_embeddings=max_length,
        rope_parameters=dict(parameters),
        **more,
    )


@cases("base", BASES)
@cases("width", WIDTHS)
def test_default_linear_and_alpha(width, base):
    same(float32.default(width, base), plain(width, base))
    for factor in (2, 8.0, 3.7):
        same(float32.linear(width, base, factor), *theirs("linear", width, base, factor=factor))


@pytest.mark.parametrize(("d_head", "fraction"), [(128, 0.25), (100, 0.25), (80, 0.4), (192, 0.334), (64, 0.9), (36, 0.8)])
def test_partial_widths_odd_ones_included(d_head, fraction):
    """100 · 0.25 = 25 channels: 13 pairs with 25 in the exponent."""
    got = float32.partial(d_head, 1e4, fraction)
    values, scale = theirs("linear", d_head, 1e4, factor=1.0, partial_rotary_factor=fraction)
    same(got, values, scale)
    if (d_head, fraction) == (100, 0.25):
        assert len(got) == 13


@pytest.mark.parametrize("module", ["hunyuan_v1_dense", "hunyuan_v1_moe", "hunyuan_vl"])
@pytest.mark.parametrize(("width", "alpha"), [(128, 1000.0), (64, 50.0), (96, 3)])
def test_ntk_alpha_is_hunyuans(module, width, alpha):
    modeling = importlib.import_module(f"transformers.models.{module}.modeling_{module}")
    classes = [thing for name, thing in vars(modeling).items() if name.endswith("RotaryEmbedding") and "Vision" not in name]
    config = SimpleNamespace(head_dim=width, rope_parameters={"rope_theta": 10000.0, "alpha": alpha})
    for embedding in classes:
        same(float32.ntk_alpha(width, 10000.0, alpha), *embedding.compute_ntk_alpha_rope_parameters(config))
    assert classes


@cases("factor", [2, 4.0, 1.7])
@cases("width", [4, 64, 128, 130])
def test_dynamic_before_and_beyond_the_trained_length(width, factor):
    """A fresh model computes in Python numbers, a grown one with a length that is a tensor: not the same bits."""
    parameters = {"rope_type": "dynamic", "rope_theta": 5e5, "factor": factor}
    ours = float32.dynamic(width, 5e5, factor, 4096)
    for n in (1, 4095, 4096, 4097, 10007, 131072):
        model = LlamaRotaryEmbedding(llama(width, parameters))  # fresh: theirs remembers longer requests
        model(torch.zeros(1), torch.tensor([[n - 1]]))
        same(ours.at_length(n), model.inv_freq)


YARNS = [
    {"factor": 4.0, "original_max_position_embeddings": 8192},
    {"factor": 64, "original_max_position_embeddings": 4096, "attention_factor": 1.0},
    {"factor": 40, "original_max_position_embeddings": 4096, "mscale": 1.0, "mscale_all_dim": 1.0},
    {"factor": 40, "original_max_position_embeddings": 4096, "mscale": 0.707, "mscale_all_dim": 1.0},
    {"factor": 40, "original_max_position_embeddings": 4096, "mscale": 0.707},
    {"factor": 40, "original_max_position_embeddings": 4096, "mscale": 0.0, "mscale_all_dim": 1.0},
    {"factor": 32.0, "original_max_position_embeddings": 4096, "truncate": False},
    {"factor": 8.5, "original_max_position_embeddings": 131072, "beta_fast": 0, "beta_slow": 0},
    {"factor": 8, "original_max_position_embeddings": 300, "beta_fast": 4, "beta_slow": 4.0},
    {"factor": 8.5, "original_max_position_embeddings": 131072, "beta_fast": 0, "beta_slow": None, "truncate": False},
    {"factor": 0.5, "original_max_position_embeddings": 2048, "beta_fast": 16, "beta_slow": 2},
    {"factor": 3, "original_max_position_embeddings": 5, "beta_fast": 32, "beta_slow": 32},
]


@cases("parameters", YARNS)
@cases("width, base", list(itertools.product([2, 6, 64, 128], [1e4, 150000, 1e6])))
def test_yarn(width, base, parameters):
    ours = {("trained_length" if name.startswith("original") else name): value for name, value in parameters.items()}
    same(float32.yarn(width, base, **ours), *theirs("yarn", width, base, **parameters))


def test_yarns_gap_between_ends_that_meet():
    """Ends that meet 0.0005 before pair 5: half of that pair is slowed, since they are held 0.001 apart."""
    beta = 4096 / (2 * math.pi) * 1e4 ** (-2 * 4.9995 / 64)
    options = {"beta_fast": beta, "beta_slow": beta, "truncate": False}
    got = float32.yarn(64, 1e4, 8.0, 4096, **options)
    same(got, *theirs("yarn", 64, 1e4, factor=8.0, original_max_position_embeddings=4096, **options))
    assert got[5] == pytest.approx(1e4 ** (-10 / 64) * (0.5 + 0.5 / 8), rel=1e-3)


def test_yarn_refuses_what_transformers_cannot_compute():
    with pytest.raises(ValueError, match="width: yarn expects an even number"):
        float32.yarn(25, 1e4, 4.0, 4096)
    with pytest.raises(RuntimeError):
        theirs("yarn", 25, 1e4, factor=4.0, original_max_position_embeddings=4096)


@cases("more", [{"factor": 32.0}, {"factor": 0.5}, {"attention_factor": 1.19}, {"factor": 4, "attention_factor": 1}])
@cases("width, base", [(96, 10000.0), (128, 10000), (25, 1e6)])
def test_longrope(width, base, more):
    pairs = (width + 1) // 2
    short, long = [1.0 + 0.03 * i for i in range(pairs)], [1.1 * 1.2**i for i in range(pairs)]
    ours = float32.longrope(width, base, short, long, 4096, **more)
    for n in (1, 4096, 4097, 131072):
        same(
            ours.at_length(n),
            *theirs(
                "longrope",
                width,
                base,
                seq_len=n,
                short_factor=short,
                long_factor=long,
                original_max_position_embeddings=4096,
                **more,
            ),
        )


def test_longrope_infers_its_factor_from_the_lengths():
    factors = [1.0] * 32
    values, scale = theirs(
        "longrope",
        64,
        1e4,
        short_factor=factors,
        long_factor=factors,
        max_length=131072,
        original_max_position_embeddings=4096,
    )
    same(float32.longrope(64, 1e4, factors, factors, 4096, factor=131072 / 4096).at_length(1), values, scale)


@cases("numbers", [(8.0, 1.0, 4.0, 8192), (32, 1, 4, 8192), (3.3, 1.5, 2.5, 1000), (4, 2.0, 64.0, 131072)])
@cases("width, base", list(itertools.product([2, 25, 64, 128], [1e4, 500000, 1e6])))
def test_llama3(width, base, numbers):
    factor, low, high, length = numbers
    same(
        float32.llama3(width, base, *numbers),
        *theirs(
            "llama3",
            width,
            base,
            factor=factor,
            low_freq_factor=low,
            high_freq_factor=high,
            original_max_position_embeddings=length,
        ),
    )


@cases("factor", [1.0, 8, 2.5])
@cases("fraction", [0.0001, 0.25, 0.5, 0.77, 1.0])
@cases("width, base", [(256, 1e6), (512, 1e6), (64, 1e4), (100, 1e4)])
def test_proportional(width, base, fraction, factor):
    same(
        float32.proportional(width, base, fraction, factor),
        *theirs("proportional", width, base, partial_rotary_factor=fraction, factor=factor),
    )


@pytest.mark.parametrize("d_head", [16, 64, 128])
def test_axial_vision_towers(d_head):
    """Any axial module: its inv_freq is ours for half a head, its angles ours for two axes."""
    from transformers.models.qwen2_vl.modeling_qwen2_vl import Qwen2VLVisionRotaryEmbedding as Rotary

    config = SimpleNamespace(head_dim=d_head, rope_parameters={"rope_type": "axial", "rope_theta": 10000.0})
    module = Rotary(config)
    same(float32.default(d_head // 2, 10000.0), module.inv_freq)
    ids = torch.randint(0, 1000, (40, 2), generator=torch.Generator().manual_seed(1))
    cos, sin = module(torch.zeros(1), ids)
    encoding = RoPE(d_head, layout="half", frequencies=frequencies.axial(float32.default(d_head // 2, 10000.0)))
    ours = encoding.tables(Positions.at(ids[None]), torch.float32)
    assert torch.equal(ours[0][0], cos[..., : d_head // 2])
    assert torch.equal(ours[1][0], sin[..., : d_head // 2])


def test_dinov3s_unit_square():
    from transformers.models.dinov3_vit.configuration_dinov3_vit import DINOv3ViTConfig
    from transformers.models.dinov3_vit.modeling_dinov3_vit import DINOv3ViTRopePositionEmbedding

    for d_head in (16, 64, 128):
        config = DINOv3ViTConfig(hidden_size=2 * d_head, num_attention_heads=2, image_size=80, patch_size=16)
        module = DINOv3ViTRopePositionEmbedding(config).eval()
        cos, sin = module(torch.zeros(1, 3, 48, 80))
        rows = [(2.0 * (torch.arange(0.5, n) / n) - 1.0) for n in (3, 5)]
        coords = 2 * torch.pi * torch.cartesian_prod(*rows)[None]
        got = RoPE(d_head, layout="half", frequencies=float32.unit_square(d_head)).tables(
            Positions.at(coords), torch.float32
        )
        assert torch.equal(got[0][0], cos[:, : d_head // 2])
        assert torch.equal(got[1][0], sin[:, : d_head // 2])


def test_exponentiated_is_mistral_large_4s():
    from transformers.models.mistral_large4.modeling_mistral_large4 import MistralLarge4TextRotaryEmbedding

    parameters = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 8.0, "original_max_position_embeddings": 4096}
    module = MistralLarge4TextRotaryEmbedding(llama(64, parameters))
    module.alpha.copy_(0.3 * torch.randn(32, generator=torch.Generator().manual_seed(2)))
    at = torch.tensor([FAR])
    cos, sin = module(torch.zeros(1), at)
    ours = float32.exponentiated(float32.yarn(64, 1e4, 8.0, 4096), module.alpha)
    got = RoPE(64, layout="half", frequencies=ours).tables(Positions.at(at), torch.float32)
    assert torch.equal(got[0], cos[..., :32])
    assert torch.equal(got[1], sin[..., :32])
    with pytest.raises(ValueError, match=r"alpha: expected \[32\]"):
        float32.exponentiated(ours, module.alpha[:3])


CASES = {
    "default": ({}, lambda: float32.default(128, 5e5)),
    "linear": ({"factor": 8.0}, lambda: float32.linear(128, 5e5, 8.0)),
    "yarn": ({"factor": 16.0, "original_max_position_embeddings": 8192}, lambda: float32.yarn(128, 5e5, 16.0, 8192)),
    "llama3": (
        {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192},
        lambda: float32.llama3(128, 5e5, 8.0, 1.0, 4.0, 8192),
    ),
    "longrope": (
        {"factor": 32.0, "short_factor": [1.5] * 64, "long_factor": [3.5] * 64, "original_max_position_embeddings": 4096},
        lambda: float32.longrope(128, 5e5, [1.5] * 64, [3.5] * 64, 4096, factor=32.0),
    ),
    "dynamic": ({"factor": 2.0}, lambda: float32.dynamic(128, 5e5, 2.0, 131072)),
    "proportional": ({"partial_rotary_factor": 0.25}, lambda: float32.proportional(128, 5e5, 0.25)),
}


@pytest.mark.parametrize("rope_type", CASES)
def test_cos_and_sin_of_a_llama_to_position_131071(rope_type):
    parameters, make = CASES[rope_type]
    module = LlamaRotaryEmbedding(llama(128, {"rope_type": rope_type, "rope_theta": 5e5, **parameters}, max_length=131072))
    encoding = RoPE(
        128, layout="half", frequencies=make(), **({"length": 131072} if rope_type in ("longrope", "dynamic") else {})
    )
    for at in (torch.tensor([FAR, FAR[::-1]]), torch.arange(131072)[None, 1::97]):
        at = torch.cat([at, torch.full((len(at), 1), 131071)], dim=1)
        cos, sin = module(torch.zeros(1), at)
        got = encoding.tables(Positions.at(at), torch.float32)
        assert torch.equal(got[0], cos[..., :64])
        assert torch.equal(got[1], sin[..., :64])
    consecutive = encoding.tables(Positions.arange(1, 300, 130772), torch.float32)
    cos, sin = module(torch.zeros(1), torch.arange(130772, 131072)[None])
    assert torch.equal(consecutive[0], cos[..., :64])
    assert torch.equal(consecutive[1], sin[..., :64])


def test_dynamic_at_the_trained_length_is_still_fresh():
    """At factor 3.3 and length 6001 the two ways to compute differ; the trained length itself belongs to the first."""
    model = LlamaRotaryEmbedding(llama(64, {"rope_type": "dynamic", "rope_theta": 5e5, "factor": 3.3}, max_length=6001))
    model(torch.zeros(1), torch.tensor([[6000]]))
    same(float32.dynamic(64, 5e5, 3.3, 6001).at_length(6001), model.inv_freq)


def test_nothing_depends_on_torchs_defaults():
    wanted = [make() for _, make in CASES.values()] + [
        float32.unit_square(64),
        float32.dynamic(8, 1e4, 2.0, 8).at_length(99),
    ]
    torch.set_default_dtype(torch.float64)
    try:
        with torch.device("meta"):
            got = [make() for _, make in CASES.values()]
            got += [float32.unit_square(64), float32.dynamic(8, 1e4, 2.0, 8).at_length(99)]
    finally:
        torch.set_default_dtype(torch.float32)
    assert got == wanted


def test_the_fp64_functions_are_the_same_within_fp32():
    """One definition, two arithmetics: every rope_type agrees with its fp64 counterpart to a few roundings."""
    f = frequencies.rotary(128, 5e5)
    pairs = [
        (float32.default(128, 5e5), f),
        (float32.linear(128, 5e5, 8.0), frequencies.linear(f, 8.0)),
        (float32.ntk_alpha(128, 5e5, 50.0), frequencies.ntk_alpha(f, 50.0)),
        (float32.dynamic(128, 5e5, 2.0, 4096).at_length(9000), frequencies.dynamic(f, 2.0, 4096).at_length(9000)),
        (float32.yarn(128, 5e5, 16.0, 8192), frequencies.yarn(f, 16.0, 8192)),
        (float32.llama3(128, 5e5, 8.0, 1.0, 4.0, 8192), frequencies.llama3(f, 8.0, 1.0, 4.0, 8192)),
        (
            float32.longrope(128, 5e5, [1.5] * 64, [3.5] * 64, 4096, factor=8.0).at_length(4097),
            frequencies.longrope(f, [1.5] * 64, [3.5] * 64, 4096, factor=8.0).at_length(4097),
        ),
        (float32.proportional(128, 5e5, 0.25, 2.0), frequencies.proportional(128, 5e5, 0.25, 2.0)),
        (float32.partial(100, 5e5, 0.25), frequencies.partial(100, 5e5, 0.25, odd=True)),
    ]
    for got, exact in pairs:
        assert got.values == pytest.approx(exact.values, rel=2e-6)
        assert got.cos_sin_scale == pytest.approx(exact.cos_sin_scale, rel=1e-15)


@pytest.mark.parametrize(
    "call",
    [
        lambda: float32.default(0, 1e4),
        lambda: float32.default(8, -1.0),
        lambda: float32.linear(8, 1e4, 0.0),
        lambda: float32.dynamic(2, 1e4, 2.0, 8),
        lambda: float32.ntk_alpha(2, 1e4, 2.0),
        lambda: float32.longrope(8, 1e4, [1.0] * 4, [1.0] * 4, 4096),
        lambda: float32.longrope(8, 1e4, [1.0] * 3, [1.0] * 4, 4096, factor=2.0),
    ],
)
def test_numbers_that_are_none_are_refused(call):
    with pytest.raises(ValueError, match=r"expected|needs d > 2"):
        call()
