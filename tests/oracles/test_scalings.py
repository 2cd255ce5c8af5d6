"""Every scaling of rotary frequencies: the formula in its own words, published numbers, and transformers' functions."""

import math
from dataclasses import replace
from types import SimpleNamespace

import pytest
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from cases import cases
from posenc import frequencies
from posenc.frequencies import Frequencies, rotary

PLAIN = [(64, 1e4), (64, 150000.0), (128, 5e5), (96, 1e6), (26, 100.0)]
FP32 = 2e-6  # a handful of fp32 roundings, relative


def power(width, base):
    """base^(-2i/width) by logarithms."""
    return [math.exp(-math.log(base) * 2 * i / width) for i in range((width + 1) // 2)]


def close(got, expected, rel=1e-12):
    assert isinstance(got, Frequencies)
    assert got.values == pytest.approx(tuple(expected), rel=rel, abs=1e-300)


def theirs(rope_type, width, base, *, seq_len=None, max_length=4096, **parameters):
    config = SimpleNamespace(
        rope_parameters={"rope_type": rope_type, "rope_theta": base, **parameters},
        head_dim=width,
        hidden_size=width,
        num_attention_heads=1,
        max_position_embeddings=max_length,
        standardize_rope_params=lambda: None,
    )
    values, scale = ROPE_INIT_FUNCTIONS[rope_type](config, seq_len=seq_len)
    return values.double().tolist(), scale


def agrees(got, expected):
    values, scale = expected
    close(got, values, FP32)
    assert got.cos_sin_scale == pytest.approx(scale, rel=1e-12)


# Position interpolation and the base -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("width", "base"), PLAIN)
def test_linear_divides_every_frequency(width, base):
    for factor in (1.0, 2, 8.0, 3.7):
        got = frequencies.linear(rotary(width, base), factor)
        close(got, [w / factor for w in power(width, base)])
        agrees(got, theirs("linear", width, base, factor=factor))


@pytest.mark.parametrize("scale", ["ntk", "ntk_alpha"])
@pytest.mark.parametrize(("width", "base"), PLAIN)
def test_ntk_slows_the_slowest_pair_by_the_factor_and_the_fastest_not_at_all(width, base, scale):
    """Pair i gets factor^(-2i/(d-2)): 1 at i = 0, 1/factor at the last, i = d/2-1."""
    for factor in (2.0, 8, 1000.0):
        got = getattr(frequencies, scale)(rotary(width, base), factor)
        close(got, [w * factor ** (-2 * i / (width - 2)) for i, w in enumerate(power(width, base))])
        assert got[0] == 1.0
        assert got[-1] == pytest.approx(power(width, base)[-1] / factor, rel=1e-12)
        assert got.base == pytest.approx(base * math.exp(math.log(factor) * width / (width - 2)), rel=1e-12)
        close(rotary(width, got.base), got, 1e-15)


def test_ntk_alpha_published():
    """HunYuan: width 128, base 10000, alpha 1000 is a base of 11 158 840, the constant of a later release."""
    assert round(frequencies.ntk_alpha(rotary(128, 10000.0), 1000.0).base, -1) == 11158840


@pytest.mark.parametrize(("width", "base"), [(4, 1e4), *PLAIN])
def test_dynamic_grows_with_the_request(width, base):
    for factor, trained in ((2.0, 4096), (1.0, 2048), (4, 1000)):
        family = frequencies.dynamic(rotary(width, base), factor, trained)
        for n in (1, trained - 1, trained):
            assert family.at_length(n) == rotary(width, base)
            agrees(family.at_length(n), theirs("dynamic", width, base, seq_len=n, max_length=trained, factor=factor))
        for n in (trained + 1, 2 * trained, 10 * trained + 3):
            grown = factor * n / trained - (factor - 1)
            close(family.at_length(n), [w * grown ** (-2 * i / (width - 2)) for i, w in enumerate(power(width, base))])
            agrees(family.at_length(n), theirs("dynamic", width, base, seq_len=n, max_length=trained, factor=factor))


def test_dynamic_is_no_constant_and_forgets_D1_D4():
    family = frequencies.dynamic(rotary(64), 2.0, 2048)
    assert family.at_length(4096).base < family.at_length(8192).base
    assert family.at_length(4096).base == pytest.approx(1e4 * 3 ** (64 / 62), rel=1e-12)
    assert family.at_length(100) == family.at_length(2048) == rotary(64)
    assert hash(family) == hash(frequencies.dynamic(rotary(64), 2.0, 2048))
    assert isinstance(family, frequencies.ByLength)


# YaRN ----------------------------------------------------------------------------------------------------------------


def yarn_by_turns(width, base, factor, length, beta_fast, beta_slow, truncate):
    """From the number of turns: pair x turns length/(2π·base^(2x/d)) times; solve for the pairs that turn β times."""
    ends = [width / 2 * math.log(length / (2 * math.pi * beta), base) for beta in (beta_fast, beta_slow)]
    if truncate:
        ends = [math.floor(ends[0]), math.ceil(ends[1])]
    low, high = max(ends[0], 0), min(ends[1], width - 1)
    high = high + 0.001 if high == low else high
    values = []
    for i, w in enumerate(power(width, base)):
        kept = 1 - min(1, max(0, (i - low) / (high - low)))
        values.append(w * (kept + (1 - kept) / factor))
    return values


YARNS = [(32.0, 1.0, True), (32.0, 1.0, False), (16.0, 2.0, True), (64, 1, False), (4.0, 4.0, True), (7.5, 0.5, False)]


@cases("beta_fast, beta_slow, truncate", YARNS)
@cases("length", [300, 4096, 8192, 131072])
@cases("width, base", PLAIN)
def test_yarn_by_parts(width, base, length, beta_fast, beta_slow, truncate):
    options = {"beta_fast": beta_fast, "beta_slow": beta_slow, "truncate": truncate}
    for factor in (4.0, 32):
        got = frequencies.yarn(rotary(width, base), factor, length, **options)
        close(got, yarn_by_turns(width, base, factor, length, **options), 1e-9)
        agrees(got, theirs("yarn", width, base, factor=factor, original_max_position_embeddings=length, **options))


def test_yarn_range_published_D9():
    """gpt-oss: d=64, base 150000, trained 4096: 8.092779 to 17.398025 as they are, 8 to 18 truncated."""
    f = rotary(64, 150000.0)
    low, high = frequencies.yarn_range(f, 4096, truncate=False)
    assert (round(low, 6), round(high, 6)) == (8.092779, 17.398025)
    assert frequencies.yarn_range(f, 4096) == (8, 18)
    ours, truncated = (frequencies.yarn(f, 32.0, 4096, truncate=t) for t in (False, True))
    assert max(abs(b / a - 1) for a, b in zip(ours, truncated, strict=True)) == pytest.approx(0.76, abs=0.01)


def test_yarn_range_is_clamped_at_the_width_less_one_D9():
    """d=64, base 10000, trained 131072: the ramp ends at 34.55, past the last pair 31, and is not cut to it."""
    low, high = frequencies.yarn_range(rotary(64), 131072, truncate=False)
    assert round(high, 2) == 34.55
    assert low == pytest.approx(32 * math.log(131072 / (64 * math.pi), 10000), rel=1e-12)
    last = frequencies.yarn(rotary(64), 8.0, 131072, truncate=False)[31]
    slow = (31 - low) / (high - low)
    assert slow < 1
    assert last == pytest.approx(power(64, 1e4)[31] * (1 - slow + slow / 8), rel=1e-12)
    assert frequencies.yarn_range(rotary(16, 10.0), 10**9)[1] == 15
    assert frequencies.yarn_range(rotary(16), 10)[0] == 0


def test_yarn_ends_that_meet_are_held_apart():
    low, high = frequencies.yarn_range(rotary(64), 4096, beta_fast=8.0, beta_slow=8.0, truncate=False)
    assert high - low == pytest.approx(0.001, rel=1e-9)
    assert frequencies.yarn_range(rotary(64), 5) == (0, 0.001)  # both below the first pair


TABLE = [
    (64, {}, 1.4158883),
    (64, {"attention_factor": 1.0}, 1.0),
    (16, {"mscale": 1.0, "mscale_all_dim": 1.0}, 1.0),
    (16, {}, 1.2772589),
    (128, {}, 1.4852030),
    (1, {}, 1.0),
    (0.5, {}, 1.0),
    (40, {"mscale": 0.707, "mscale_all_dim": 1.0}, (0.0707 * math.log(40) + 1) / (0.1 * math.log(40) + 1)),
]


@pytest.mark.parametrize(("factor", "options", "expected"), TABLE)
def test_yarn_magnitude_published_D7(factor, options, expected):
    got = frequencies.yarn(rotary(128, 1e6), factor, 4096, **options)
    assert got.cos_sin_scale == pytest.approx(expected, abs=5e-8)
    assert got.softmax_scale == 1.0
    agrees(got, theirs("yarn", 128, 1e6, factor=factor, original_max_position_embeddings=4096, **options))


@pytest.mark.parametrize(("mscale", "published"), [(0.707, 1.590), (1.0, 1.874)])
def test_the_softmax_half_of_deepseek_published_D8(mscale, published):
    """factor 40: the cos and sin half is 1, the softmax half 1.590 (V2) or 1.874 (V3); each alone is half the truth."""
    from transformers.models.deepseek_v3 import modeling_deepseek_v3 as deepseek

    f = frequencies.yarn(rotary(64), 40.0, 4096, mscale=mscale, mscale_all_dim=mscale)
    both = frequencies.softmax_mscale(f, 40.0, mscale)
    assert (f.cos_sin_scale, f.softmax_scale, both.cos_sin_scale) == (1.0, 1.0, 1.0)
    assert round(both.softmax_scale, 3) == published
    assert both.softmax_scale == pytest.approx(deepseek.yarn_get_mscale(40.0, mscale) ** 2, rel=1e-14)
    assert both.values == f.values
    assert frequencies.softmax_mscale(both, 40.0, mscale).softmax_scale == pytest.approx(both.softmax_scale**2, rel=1e-14)
    assert frequencies.softmax_mscale(f, 0.5, mscale).softmax_scale == 1.0


def test_the_halves_are_the_same_logits_on_the_turning_slice():
    """Plain YaRN multiplies these logits by g², and so does DeepSeek's softmax scale."""
    plain = frequencies.yarn(rotary(64), 40.0, 4096)
    deepseek = frequencies.softmax_mscale(frequencies.yarn(rotary(64), 40.0, 4096, mscale=1.0, mscale_all_dim=1.0), 40, 1)
    assert plain.cos_sin_scale**2 == pytest.approx(deepseek.softmax_scale, rel=1e-14)


# LongRoPE and Llama 3 ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("width", "base"), [(96, 1e4), (64, 5e5), (25, 1e4)])
def test_longrope_has_two_sets_and_takes_one_by_the_length_of_the_request(width, base):
    pairs = (width + 1) // 2
    short, long = [1 + 0.05 * i for i in range(pairs)], [1.2 * 1.1**i for i in range(pairs)]
    family = frequencies.longrope(rotary(width, base), short, long, 4096, factor=32)
    for n, factors in ((1, short), (4096, short), (4097, long), (10**6, long)):
        got = family.at_length(n)
        close(got, [w / by for w, by in zip(power(width, base), factors, strict=True)])
        assert got.cos_sin_scale == pytest.approx(math.sqrt(1 + math.log(32) / math.log(4096)), rel=1e-14)
        agrees(
            got,
            theirs(
                "longrope",
                width,
                base,
                seq_len=n,
                short_factor=short,
                long_factor=long,
                factor=32,
                original_max_position_embeddings=4096,
            ),
        )
    assert isinstance(family, frequencies.ByLength)
    assert hash(family) == hash(frequencies.longrope(rotary(width, base), short, long, 4096, factor=32))


def test_longrope_magnitude_published():
    """Phi-3 with 131072 over 4096 positions: 1.1902380714; a factor up to 1 asks for none; what is given is taken."""
    ones = [1.0] * 48
    make = frequencies.longrope
    assert make(rotary(96), ones, ones, 4096, factor=32).at_length(1).cos_sin_scale == pytest.approx(1.1902380714238083)
    assert make(rotary(96), ones, ones, 4096, factor=1.0).at_length(1).cos_sin_scale == 1.0
    assert make(rotary(96), ones, ones, 4096, factor=0.5).at_length(9999).cos_sin_scale == 1.0
    for factor in (None, 32):
        given = make(rotary(96), ones, ones, 4096, factor=factor, attention_factor=1.7)
        assert given.short.cos_sin_scale == given.long.cos_sin_scale == 1.7


def llama3_by_wavelength(width, base, factor, low, high, length):
    """As Meta tells it, by wavelengths; the blend is linear in length/wavelength."""
    values = []
    for w in power(width, base):
        wavelength = 2 * math.pi / w
        if wavelength > length / low:
            values.append(w / factor)
        elif wavelength < length / high:
            values.append(w)
        else:
            s = (length / wavelength - low) / (high - low)
            values.append((1 - s) * w / factor + s * w)
    return values


@cases("numbers", [(8.0, 1.0, 4.0, 8192), (32.0, 1, 4, 8192), (3.3, 1.5, 2.5, 1000), (4, 2.0, 64.0, 131072)])
@cases("width, base", [*PLAIN, (25, 1e4)])
def test_llama3_keeps_divides_and_blends(width, base, numbers):
    factor, low, high, length = numbers
    got = frequencies.llama3(rotary(width, base), *numbers)
    close(got, llama3_by_wavelength(width, base, *numbers))
    agrees(
        got,
        theirs(
            "llama3",
            width,
            base,
            factor=factor,
            low_freq_factor=low,
            high_freq_factor=high,
            original_max_position_embeddings=length,
        ),
    )


def test_llama3_published_D11():
    """Llama 3.2, d=64: pairs 0-14 as they were, 15-17 blended, 18-31 divided by 32."""
    plain, got = power(64, 5e5), frequencies.llama3(rotary(64, 5e5), 32.0, 1.0, 4.0, 8192)
    slowed = [w / v for w, v in zip(plain, got, strict=True)]
    assert slowed[:15] == pytest.approx([1] * 15, rel=1e-12)
    assert all(1.01 < slow < 31 for slow in slowed[15:18])
    assert slowed[18:] == pytest.approx([32] * 14, rel=1e-12)


# By pair -------------------------------------------------------------------------------------------------------------


def test_multiplied_pair_by_pair():
    by = [math.exp(0.1 * i - 0.3) for i in range(8)]
    close(frequencies.multiplied(rotary(16), by), [w * m for w, m in zip(power(16, 1e4), by, strict=True)])
    scaled = frequencies.yarn(rotary(16), 4.0, 64)
    assert frequencies.multiplied(scaled, by).cos_sin_scale == scaled.cos_sin_scale
    for wrong in (by[:7], [*by, 1.0]):
        with pytest.raises(ValueError, match="by: expected one factor for each of 8 pairs"):
            frequencies.multiplied(rotary(16), wrong)


def test_resonance_makes_whole_wavelengths():
    """d=8: 6.28, 62.8, 628.3, 6283.2 become 6, 63, 628, 6283 positions; zero frequencies stay."""
    got = frequencies.resonance(rotary(8))
    assert [2 * math.pi / w for w in got] == pytest.approx([6, 63, 628, 6283], rel=1e-14)
    assert frequencies.resonance(Frequencies((1.0, 0.0))).values == (2 * math.pi / 6, 0.0)
    assert frequencies.resonance(Frequencies((4 * math.pi * 0.99,))).values == (2 * math.pi,)
    with pytest.raises(ValueError, match="below half a position"):
        frequencies.resonance(Frequencies((4 * math.pi * 1.01,)))


def test_clipped_fades_the_slowest_twenty():
    """The factors fall from 1 to 0 along half a cosine: by the double angle, cos²(πk/2(n-1))."""
    got = frequencies.clipped(rotary(128, 5e5))
    plain = power(128, 5e5)
    assert got[:44] == pytest.approx(plain[:44], rel=1e-12)
    for k in range(20):
        assert got[44 + k] == pytest.approx(plain[44 + k] * math.cos(math.pi * k / 38) ** 2, rel=1e-9, abs=1e-20)
    assert got[44] == rotary(128, 5e5)[44]
    assert got[63] == 0.0
    few = frequencies.clipped(rotary(8))  # four pairs fade in all: 1, 3/4, 1/4, 0
    assert few.values == pytest.approx((1.0, 0.075, 0.0025, 0.0), rel=1e-12, abs=1e-20)
    assert frequencies.clipped(rotary(8), 1).values == rotary(8).values


# The value around the numbers ----------------------------------------------------------------------------------------

ALL = {
    "linear": lambda f: frequencies.linear(f, 2.0),
    "ntk": lambda f: frequencies.ntk(f, 2.0),
    "ntk_alpha": lambda f: frequencies.ntk_alpha(f, 2.0),
    "dynamic": lambda f: frequencies.dynamic(f, 2.0, 64).at_length(128),
    "yarn": lambda f: frequencies.yarn(f, 2.0, 64),
    "longrope": lambda f: frequencies.longrope(f, [2.0] * 8, [3.0] * 8, 64, factor=2.0).at_length(1),
    "llama3": lambda f: frequencies.llama3(f, 2.0, 1.0, 4.0, 64),
    "multiplied": lambda f: frequencies.multiplied(f, [2.0] * 8),
    "resonance": frequencies.resonance,
    "clipped": frequencies.clipped,
}


@pytest.mark.parametrize("name", ALL)
def test_a_scaling_says_what_it_did_and_keeps_the_rest(name):
    before = replace(rotary(16), cos_sin_scale=1.5, softmax_scale=2.5, softmax_scale_from="somewhere")
    after = ALL[name](before)
    assert name in after.values_from
    assert before.values_from in after.values_from
    assert (after.softmax_scale, after.softmax_scale_from) == (2.5, "somewhere")
    share = {"yarn": 1 + 0.1 * math.log(2), "longrope": math.sqrt(1 + 1 / 6)}.get(name, 1.0)
    assert after.cos_sin_scale == pytest.approx(1.5 * share, rel=1e-14)
    if share != 1:
        assert name in after.cos_sin_scale_from
    assert after.width == 16
    assert (after.base is not None) == (name in ("ntk", "ntk_alpha", "dynamic"))
    assert hash(after) == hash(ALL[name](before))
    assert all(type(w) is float for w in after)
    assert rotary(16) == rotary(16, 10000.0)  # nothing was written


@pytest.mark.parametrize("name", ["ntk", "ntk_alpha", "dynamic", "yarn"])
def test_what_needs_a_base_refuses_frequencies_without_one(name):
    """Scaled twice, axes chosen before scaling, given as bare numbers: the formula would be wrong."""
    for f in (
        frequencies.linear(rotary(16), 2.0),
        Frequencies((1.0, 0.1)),
        frequencies.sections(rotary(16), [4, 4]),
        replace(rotary(16), values=(1.0,) * 8),
        frequencies.proportional(16, 1e4, 0.5),
    ):
        with pytest.raises(ValueError, match=r"f: expected rotary\(d, base\) as it is"):
            ALL[name](f)


@pytest.mark.parametrize(
    "name", ["linear", "ntk", "yarn", "dynamic", "longrope", "llama3", "multiplied", "resonance", "clipped"]
)
def test_parity_values_and_families_are_not_scaled(name):
    with pytest.raises(ValueError, match="fp32 values"):
        ALL[name](replace(rotary(16), arithmetic="float32"))
    with pytest.raises(TypeError, match="f: expected Frequencies, got DynamicNTK"):
        ALL[name](frequencies.dynamic(rotary(16), 2.0, 64))


@pytest.mark.parametrize("bad", [0, -1.0, math.nan, math.inf, "2", None, True])
def test_factors_that_are_no_positive_numbers_are_refused(bad):
    f, ones = rotary(16), [1.0] * 8
    calls = {
        "factor": [
            lambda: frequencies.linear(f, bad),
            lambda: frequencies.ntk(f, bad),
            lambda: frequencies.dynamic(f, bad, 64),
            lambda: frequencies.yarn(f, bad, 64),
            lambda: frequencies.llama3(f, bad, 1.0, 4.0, 64),
            lambda: frequencies.softmax_mscale(f, bad, 1.0),
            lambda: frequencies.longrope(f, ones, ones, 64, factor=bad),
        ],
        "alpha": [lambda: frequencies.ntk_alpha(f, bad)],
        "beta_fast": [lambda: frequencies.yarn(f, 2.0, 64, beta_fast=bad)],
        "beta_slow": [lambda: frequencies.yarn(f, 2.0, 64, beta_slow=bad)],
        "low_freq_factor": [lambda: frequencies.llama3(f, 2.0, bad, 4.0, 64)],
        "high_freq_factor": [lambda: frequencies.llama3(f, 2.0, 1.0, bad, 64)],
        "mscale_all_dim": [lambda: frequencies.softmax_mscale(f, 2.0, bad)],
        "short_factor": [lambda: frequencies.longrope(f, [bad, *ones[1:]], ones, 64, factor=2.0)],
        "long_factor": [lambda: frequencies.longrope(f, ones, [*ones[1:], bad], 64, factor=2.0)],
    }
    if bad is not None:
        calls["attention_factor"] = [
            lambda: frequencies.yarn(f, 2.0, 64, attention_factor=bad),
            lambda: frequencies.longrope(f, ones, ones, 64, attention_factor=bad),
        ]
        calls["mscale"] = [lambda: frequencies.yarn(f, 2.0, 64, mscale=bad, mscale_all_dim=1.0)]
    for name, refused in calls.items():
        for call in refused:
            with pytest.raises(ValueError, match=f"{name}: expected"):
                call()


@pytest.mark.parametrize("bad", [0, -1, 2.5, "64", None, True])
def test_lengths_that_are_no_counts_are_refused(bad):
    f, ones = rotary(16), [1.0] * 8
    for name, call in (
        ("trained_length", lambda: frequencies.dynamic(f, 2.0, bad)),
        ("trained_length", lambda: frequencies.yarn(f, 2.0, bad)),
        ("trained_length", lambda: frequencies.llama3(f, 2.0, 1.0, 4.0, bad)),
        ("trained_length", lambda: frequencies.longrope(f, ones, ones, bad, factor=2.0)),
        ("n", lambda: frequencies.dynamic(f, 2.0, 64).at_length(bad)),
        ("n", lambda: frequencies.longrope(f, ones, ones, 64, factor=2.0).at_length(bad)),
        ("n", lambda: frequencies.clipped(f, bad)),
    ):
        with pytest.raises(ValueError, match=f"{name}: expected a whole number from 1"):
            call()


def test_numbers_that_contradict_each_other_are_refused():
    f, ones = rotary(16), [1.0] * 8
    for words, call in (
        ("mscale, mscale_all_dim: one without the other", lambda: frequencies.yarn(f, 2.0, 64, mscale=1.0)),
        ("mscale, mscale_all_dim: one without the other", lambda: frequencies.yarn(f, 2.0, 64, mscale_all_dim=1.0)),
        ("beta_fast: expected at least beta_slow", lambda: frequencies.yarn(f, 2.0, 64, beta_fast=1.0, beta_slow=32.0)),
        ("low_freq_factor: expected at most", lambda: frequencies.llama3(f, 2.0, 4.0, 1.0, 64)),
        ("short_factor: expected one factor for each of 8", lambda: frequencies.longrope(f, ones[1:], ones, 64, factor=2)),
        ("long_factor: expected one factor for each of 8", lambda: frequencies.longrope(f, ones, ones * 2, 64, factor=2)),
        ("trained_length: .* at least 2", lambda: frequencies.longrope(f, ones, ones, 1, factor=2.0)),
        ("factor: expected the longest length", lambda: frequencies.longrope(f, ones, ones, 64)),
        ("factor: expected at least 1", lambda: frequencies.dynamic(f, 0.5, 64)),
        ("d > 2", lambda: frequencies.ntk(rotary(2), 2.0)),
        ("d > 2", lambda: frequencies.dynamic(rotary(2), 2.0, 64)),
        ("base above 1 and an even width", lambda: frequencies.yarn(rotary(25), 2.0, 64)),
        ("a ramp over pairs needs a base above 1", lambda: frequencies.dype(rotary(8, 1.0), 2.0, 0.5, 64)),
        ("base above 1 and an even width", lambda: frequencies.yarn(rotary(16, 1.0), 2.0, 64)),
    ):
        with pytest.raises(ValueError, match=words):
            call()
