"""The measures against loops and figures that share nothing with them."""

from __future__ import annotations

import cmath
import math

import mpmath
import numpy as np
import pytest
import torch

import posenc
from posenc.catalogue.lookup import FOUNDATION
from posenc.encoding import PositionalEncoding
from posenc.encodings.alibi import ALiBi
from posenc.encodings.cope import CoPE
from posenc.encodings.learned import Learned
from posenc.encodings.nope import NoPE
from posenc.encodings.rope import RoPE
from posenc.encodings.sinusoidal import Sinusoidal
from posenc.encodings.t5 import T5
from posenc.encodings.xpos import XPos
from posenc.pictures import measures
from posenc.pictures.measures import order
from posenc.pictures.measures.layers import Layers, normal, redrawn, seeded

SIZES = {"d_model": 16, "n_heads": 4}


def omegas(d: int, base: float = 10000.0) -> list[float]:
    return [base ** (-2 * i / d) for i in range(d // 2)]


def row(p: float, d: int, base: float = 10000.0) -> np.ndarray:
    return np.array([wave(p * w) for w in omegas(d, base) for wave in (math.sin, math.cos)])


# The shift matrix (S11)


def test_the_first_shift_of_one_pair_is_the_rotation_by_one_radian():
    expected = torch.tensor([[math.cos(1), math.sin(1)], [-math.sin(1), math.cos(1)]], dtype=torch.float64)
    assert torch.equal(measures.shift_matrix(1, 2), expected)


@pytest.mark.parametrize("k", [1, 7, -3, 0.5])
def test_the_shift_matrix_moves_every_row_on(k):
    """At 1 000 000 the angles of the two rows are rounded by up to 2^-34 each."""
    matrix = measures.shift_matrix(k, 512).numpy()
    for position, error in ((0, 1e-15), (10, 1e-14), (1_000_000, 2.0**-33)):
        assert np.abs(matrix @ row(position, 512) - row(position + k, 512)).max() <= error


def test_the_figure_of_the_notes_at_a_million():
    moved = measures.shift_matrix(3, 128).numpy() @ row(1_000_000, 128)
    assert np.abs(moved - row(1_000_003, 128)).max() == pytest.approx(7e-11, rel=0.1)


@pytest.mark.parametrize("k", [1, 0.5, 4096])
def test_the_shift_matrix_itself_is_exact_wherever_the_row_stands(k):
    def exact(p: float) -> list[mpmath.mpf]:
        return [wave(mpmath.mpf(p) * w) for w in omegas(64) for wave in (mpmath.sin, mpmath.cos)]

    with mpmath.workdps(40):
        for position in (3, 10**6, 10**12):
            before, after = exact(position), exact(position + k)
            for i, line in enumerate(measures.shift_matrix(k, 64).tolist()):
                assert abs(sum(a * b for a, b in zip(line, before, strict=True)) - after[i]) < max(1, k) * 3e-16


def test_shifts_compose_and_their_transpose_goes_back():
    m = measures.shift_matrix
    assert torch.allclose(m(3, 32, 100.0) @ m(4.5, 32, 100.0), m(7.5, 32, 100.0), atol=1e-14)
    assert torch.allclose(m(5, 32).T, m(-5, 32), atol=0)
    rows = row(11, 32) @ measures.shift_matrix(6, 32).numpy().T  # rows take the transpose
    assert np.abs(rows - row(17, 32)).max() < 1e-14


def test_an_odd_width_has_no_shift_matrix():
    with pytest.raises(ValueError, match="even width, got 7; an odd one drops its last cosine"):
        measures.shift_matrix(1, 7)
    with pytest.raises(ValueError, match="k: expected a finite"):
        measures.shift_matrix(float("nan"), 8)


# Uniqueness and collisions (S13)


@pytest.mark.parametrize(("d", "distance", "lag"), [(2, 6.03e-5, 710), (4, 0.0444, 1885), (8, 0.645, 63), (512, 3.714, 1)])
def test_the_closest_two_of_4096_rows(d, distance, lag):
    closest = measures.uniqueness(d)
    assert closest.lag == lag
    assert closest.distance == pytest.approx(distance, rel=1e-3)


@pytest.mark.parametrize(("d", "base"), [(2, 10000.0), (6, 10000.0), (6, 3.0)])
def test_uniqueness_is_the_minimum_over_all_pairs_of_rows(d, base):
    rows = [row(p, d, base) for p in range(60)]
    pairs = [(float(np.linalg.norm(rows[b] - rows[a])), b - a) for a in range(60) for b in range(a + 1, 60)]
    closest = measures.uniqueness(d, 60, base)
    smallest = min(distance for distance, _ in pairs)
    assert closest.distance == pytest.approx(smallest, rel=1e-9)
    assert closest.lag in {lag for distance, lag in pairs if distance < smallest * (1 + 1e-9)}


def test_the_last_lag_counts():
    assert measures.uniqueness(2, 711).lag == 710
    assert measures.uniqueness(2, 710).lag == 333


def test_uniqueness_needs_two_rows_and_whole_pairs():
    with pytest.raises(ValueError, match="at least two rows, got 1"):
        measures.uniqueness(8, 1)
    with pytest.raises(ValueError, match="depends on more than their lag"):
        measures.uniqueness(7)


@pytest.mark.parametrize(("dtype", "repeats"), [(torch.bfloat16, 287), (torch.float16, 198)])
def test_the_rounded_table_of_one_pair_repeats(dtype, repeats):
    assert 1024 - measures.distinct_rows_of_rounded_table(2, 1024, dtype) == repeats


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("d", [4, 8, 64])
def test_wider_tables_stay_distinct_when_rounded_once(d, dtype):
    assert measures.distinct_rows_of_rounded_table(d, 16384, dtype) == 16384


def test_positions_that_are_cast_first_collide():
    distinct = measures.distinct_rows_of_rounded_positions
    assert distinct(8, 4096, torch.bfloat16) == 769
    assert (distinct(8, 257, torch.bfloat16), distinct(8, 258, torch.bfloat16)) == (257, 257)
    assert (distinct(8, 2049, torch.float16), distinct(8, 2050, torch.float16)) == (2049, 2049)


@pytest.mark.parametrize(("d", "distance"), [(8, 0.964), (512, 3.714)])
def test_neighbours_are_equally_far_apart_everywhere(d, distance):
    assert measures.neighbour_distance(d) == pytest.approx(distance, abs=5e-4)
    for p in (0, 17, 5000):
        assert np.linalg.norm(row(p + 1, d) - row(p, d)) == pytest.approx(measures.neighbour_distance(d), rel=1e-9)


def test_pairs_that_never_finish_a_turn():
    assert measures.unfinished_pairs(128, 4096) == 18
    assert measures.unfinished_pairs(128, 4096) == sum(2 * math.pi / w > 4096 for w in omegas(128))
    assert measures.unfinished_pairs(128, 10**6) == 0
    assert measures.wavelengths(512)[-1] == pytest.approx(60611, abs=0.5)


# Decay (S21)


def turned(x: np.ndarray, p: float, base: float = 10000.0) -> np.ndarray:
    """R(p)x, pair by pair."""
    out = np.empty_like(x)
    for i, w in enumerate(omegas(len(x), base)):
        c, s = math.cos(p * w), math.sin(p * w)
        out[2 * i], out[2 * i + 1] = x[2 * i] * c - x[2 * i + 1] * s, x[2 * i] * s + x[2 * i + 1] * c
    return out


def test_sinusoidal_similarity_is_the_product_of_rows_wherever_they_stand():
    lags = torch.arange(-40, 41)
    similarity = measures.sinusoidal_similarity(24, lags, 500.0)
    for p in (0, 100, 12345):
        expected = [row(p, 24, 500.0) @ row(p + int(k), 24, 500.0) for k in lags]
        assert np.abs(similarity.numpy() - expected).max() < 1e-10
    assert torch.equal(similarity, similarity.flip(0))  # symmetric in k
    assert similarity[40] == 12  # d/2 at lag 0


def test_rope_scores_are_products_of_turned_vectors():
    random = np.random.default_rng(0)
    q, k = random.standard_normal((3, 10)), random.standard_normal((3, 10))
    lags = torch.tensor([0, 1, 5, 300, -7])
    scores = measures.rope_score_of(torch.tensor(q), torch.tensor(k), lags, 700.0)
    for r in range(3):
        for n, lag in enumerate(lags.tolist()):
            expected = turned(q[r], 50 + lag, 700.0) @ turned(k[r], 50, 700.0)
            assert float(scores[r, n]) == pytest.approx(expected, abs=1e-11)
    ones = torch.ones(1, 10, dtype=torch.float64)
    assert torch.allclose(measures.rope_score_of(ones, ones, lags)[0], measures.rope_score(10, lags))


def test_the_bound_is_the_mean_size_of_the_partial_sums():
    for lag in (0, 1, 18, 19, 777):
        sums = [sum(cmath.exp(1j * lag * w) for w in omegas(64)[:i]) for i in range(1, 33)]
        expected = sum(map(abs, sums)) / 32
        assert float(measures.rope_bound(64, torch.tensor([lag]))) == pytest.approx(expected, rel=1e-12)


def test_the_bound_bounds_every_score():
    random = np.random.default_rng(1)
    q, k, lags = random.standard_normal((200, 16)), random.standard_normal((200, 16)), torch.arange(0, 500, 7)
    scores = measures.rope_score_of(torch.tensor(q), torch.tensor(k), lags).abs().numpy()
    h = (q[:, 0::2] + 1j * q[:, 1::2]) * (k[:, 0::2] - 1j * k[:, 1::2])
    steps = np.abs(np.diff(np.concatenate([h, np.zeros((200, 1))], axis=1), axis=1)).max(axis=1)
    bound = steps[:, None] * 8 * measures.rope_bound(16, lags).numpy()
    assert (scores <= bound * (1 + 1e-12)).all()
    assert (scores / bound).max() > 0.25  # and is no idle one


@pytest.mark.parametrize(("d", "rise"), [(64, 5), (128, 11), (256, 24)])
def test_the_score_of_ones_is_not_monotone(d, rise):
    assert measures.first_rise(measures.rope_score(d, torch.arange(300))) == rise


def test_neither_is_the_bound():
    assert measures.first_rise(measures.rope_bound(128, torch.arange(300))) == 18
    assert measures.first_rise(torch.tensor([3.0, 2.0, 2.0, 1.0])) is None


def test_independent_vectors_show_no_decay_and_equal_ones_do():
    random, lags = seeded(0), torch.tensor([0, 10, 100, 1000, 10000])
    q, k = normal(4096, 64, random=random), normal(4096, 64, random=random)
    independent = measures.rope_score_of(q, k, lags)
    assert float(independent.mean(dim=0).abs().max()) < 4 * 8 / 64  # four standard errors: √64 / √4096 each
    spread = independent.std(dim=0)
    assert float(spread.max() / spread.min()) < 1.06
    same = measures.rope_score_of(q, q, lags).mean(dim=0)
    assert float(same[3]) < float(same[0]) / 2


# Order (S7, S20)


def attention_by_loops(x: np.ndarray, weights: list[np.ndarray], heads: int, kv_heads: int, causal: bool) -> np.ndarray:
    wq, wk, wv, wo = weights
    t, d = x.shape
    dh = d // heads
    q, k, v = x @ wq.T, x @ wk.T, x @ wv.T
    merged = np.zeros((t, d))
    for h in range(heads):
        g = h // (heads // kv_heads)
        for i in range(t):
            seen = [j for j in range(t) if j <= i or not causal]
            scores = [q[i, h * dh : (h + 1) * dh] @ k[j, g * dh : (g + 1) * dh] / math.sqrt(dh) for j in seen]
            top = max(scores)
            powers = [math.exp(score - top) for score in scores]
            for j, power in zip(seen, powers, strict=True):
                merged[i, h * dh : (h + 1) * dh] += power / sum(powers) * v[j, g * dh : (g + 1) * dh]
    return merged @ wo.T


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("n_layers", [1, 2])
def test_the_layers_are_real_attention_with_a_residual_between_them(causal, n_layers):
    layers = Layers.draw(8, 4, 2, n_layers, seeded(3))
    x = normal(1, 5, 8, random=seeded(4))
    table = np.stack([row(p, 8) for p in range(5)])
    expected = x[0].numpy() + table  # the sinusoid is added once, at layer 0
    for n, weights in enumerate(layers.weights):
        added = attention_by_loops(expected, [weight.numpy() for weight in weights], 4, 2, causal)
        expected = added if n == n_layers - 1 else expected + added
    encoding = Sinusoidal(8)
    out = layers(x, encoding, posenc.Positions.arange(1, 5), causal)
    assert np.abs(out[0].numpy() - expected).max() < 1e-13


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_without_positions_attention_is_blind_to_order_until_a_mask_comes(layers, seed):
    assert measures.order_sensitivity(NoPE(), **SIZES, causal=False, layers=layers, seed=seed) < 1e-14
    assert measures.order_sensitivity(NoPE(), **SIZES, causal=True, layers=layers, seed=seed) > 0.1


@pytest.mark.parametrize("name", [name for name in FOUNDATION if name != "nope"])
def test_every_encoding_sees_order(name):
    encoding = posenc.create(name, **SIZES, n_layers=2)
    for layers in (1, 2):
        assert measures.order_sensitivity(encoding, **SIZES, n_kv_heads=2, causal=True, layers=layers) > 0.1
        if "causal_only" in encoding.traits:
            with pytest.raises(ValueError, match="causal attention only"):
                measures.order_sensitivity(encoding, **SIZES, causal=False, layers=layers)
        else:
            assert measures.order_sensitivity(encoding, **SIZES, causal=False, layers=layers) > 0.03
    assert measures.last_token_sensitivity(encoding, **SIZES) > 0.01


def test_a_table_of_zeros_does_not_hide_its_seam():
    learned, t5 = Learned(16, 8), T5(4, bidirectional=True)
    for encoding in (learned, t5):
        torch.nn.init.zeros_(encoding.table)
        assert measures.order_sensitivity(encoding, **SIZES, causal=False) > 0.1
        assert not encoding.table.any()  # a copy was drawn anew, not the caller's


def test_parameters_are_drawn_with_half_a_unit_of_spread():
    table = redrawn(Learned(64, 500), seeded(0)).table
    assert table.dtype == torch.float64
    assert float(table.detach().std()) == pytest.approx(0.5, rel=0.02)


def test_the_words_move_and_the_positions_stay():
    """With an encoding of its own making: a token's vector is its word and its place, and attention is the identity's."""

    class Ramp(PositionalEncoding):
        def embed(self, x, at):
            return x + at.coords[..., None].to(x.dtype)

    orders = torch.tensor([[1, 0]])
    words = normal(2, 4, random=seeded(9))
    weights = Layers.draw(4, 1, None, 1, seeded(1))  # the weights that seed 0 draws
    numbers = [weight.numpy() for weight in weights.weights[0]]
    x, places = words.numpy(), np.array([[0.0], [1.0]])
    before = attention_by_loops(x + places, numbers, 1, 1, False)
    after = attention_by_loops(x[[1, 0]] + places, numbers, 1, 1, False)
    measured = measures.order_sensitivity_of(Ramp(), words, orders, n_heads=1, causal=False, seed=0)
    assert measured == pytest.approx(np.abs(after - before[[1, 0]]).max(), rel=1e-12)


def test_the_same_seed_gives_the_same_number_and_nothing_global_moves():
    state = torch.get_rng_state()
    first, again, other = (measures.order_sensitivity(RoPE(4), **SIZES, causal=False, seed=seed) for seed in (5, 5, 6))
    assert first == again != other
    assert torch.equal(torch.get_rng_state(), state)


def test_the_sentence_pairs_of_the_notes():
    assert [("".join(pair.before), "".join(pair.after)) for pair in measures.SENTENCE_PAIRS] == [
        ("我爱你", "你爱我"),
        ("猫追老鼠", "老鼠追猫"),
        ("猫吃鱼", "鱼吃猫"),
        ("我喜欢猫", "猫喜欢我"),
    ]
    for pair in measures.SENTENCE_PAIRS:
        assert measures.sentence_sensitivity(NoPE(), pair, **SIZES, causal=False) < 1e-14
        for encoding in (Sinusoidal(16), RoPE(4)):
            assert measures.sentence_sensitivity(encoding, pair, **SIZES, causal=False) > 0.01
        assert measures.sentence_sensitivity(NoPE(), pair, **SIZES, causal=True) > 0.1


def test_a_symmetric_bias_cannot_tell_a_sentence_from_its_mirror_image():
    """All four pairs are mirror images of one another, and ALiBi without a mask knows |i - j| only."""
    for pair in measures.SENTENCE_PAIRS:
        assert pair.after == pair.before[::-1]
        assert measures.sentence_sensitivity(ALiBi(4), pair, **SIZES, causal=False) < 1e-14
        assert measures.sentence_sensitivity(ALiBi(4), pair, **SIZES, causal=True) > 0.1
    turned_round = measures.SentencePair(("我", "爱", "你"), ("爱", "我", "你"))
    assert measures.sentence_sensitivity(ALiBi(4), turned_round, **SIZES, causal=False) > 0.01


def test_a_word_that_repeats_is_matched_occurrence_by_occurrence():
    pair = measures.SentencePair(("猫", "追", "猫", "吗"), ("吗", "猫", "猫", "追"))
    assert measures.sentence_sensitivity(NoPE(), pair, **SIZES, causal=False) < 1e-14
    assert measures.sentence_sensitivity(Sinusoidal(16), pair, **SIZES, causal=False) > 0.1
    assert order._order_of(pair).tolist() == [3, 0, 2, 1]
    with pytest.raises(ValueError, match="the same words in two orders, got 猫 and 鱼"):
        measures.sentence_sensitivity(NoPE(), measures.SentencePair(("猫",), ("鱼",)), **SIZES, causal=False)


def test_one_causal_layer_cannot_tell_the_order_of_the_prefix_and_two_can():
    for seed in range(3):
        assert measures.last_token_sensitivity(NoPE(), **SIZES, layers=1, seed=seed) < 1e-14
        assert measures.last_token_sensitivity(NoPE(), **SIZES, layers=2, seed=seed) > 0.01


def test_a_recurrent_network_reads_order_and_pooled_attention_does_not():
    for pair in measures.SENTENCE_PAIRS:
        found = measures.rnn_sensitivity(pair)
        assert found.rnn > 0.1
        assert found.attention < 1e-14
    same_end = measures.SentencePair(("我", "爱", "你"), ("爱", "我", "你"))
    assert measures.rnn_sensitivity(same_end).rnn > 0.1  # it remembers more than the last word


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"length": 1}, "length: expected at least two words"),
        ({"n_heads": 3}, "d_model a multiple of n_heads"),
        ({"n_kv_heads": 3}, "n_heads of n_kv_heads"),
        ({"layers": 0}, "layers: expected a whole number from 1"),
    ],
)
def test_sizes_that_do_not_fit_are_named(sizes, message):
    with pytest.raises(ValueError, match=message):
        measures.order_sensitivity(NoPE(), **{**SIZES, "causal": False, **sizes})


# The Taylor split (S8)


@pytest.mark.parametrize("causal", [False, True])
def test_the_terms_are_the_derivatives_of_attention(causal):
    """Against central differences of attention written with loops."""
    eps, m, n, d, t = 0.02, 1, 3, 8, 5
    random = seeded(7)
    x = normal(1, t, d, random=random)[0].numpy()
    weights = [weight.numpy() for weight in Layers.draw(d, 2, None, 1, random).weights[0]]

    def f(a: float, b: float) -> float:
        moved = x.copy()
        moved[m] += a * eps * row(m, d)
        moved[n] += b * eps * row(n, d)
        return attention_by_loops(moved, weights, 2, 2, causal)[n, 4]

    h = 0.05
    terms = measures.taylor_split(eps=eps, m=m, n=n, length=t, d_model=d, causal=causal, channel=4, seed=7)
    assert terms.value == pytest.approx(f(0, 0), rel=1e-12)
    assert terms.gradient_m == pytest.approx((f(h, 0) - f(-h, 0)) / (2 * h), rel=1e-4)
    assert terms.gradient_n == pytest.approx((f(0, h) - f(0, -h)) / (2 * h), rel=1e-4)
    assert terms.curvature_m == pytest.approx((f(h, 0) - 2 * f(0, 0) + f(-h, 0)) / (2 * h * h), rel=1e-3)
    assert terms.curvature_n == pytest.approx((f(0, h) - 2 * f(0, 0) + f(0, -h)) / (2 * h * h), rel=1e-3)
    assert terms.mixed == pytest.approx((f(h, h) - f(h, -h) - f(-h, h) + f(-h, -h)) / (4 * h * h), rel=1e-3)
    assert sum(terms) == pytest.approx(f(1, 1), rel=1e-12)
    sizes = [abs(term) for term in terms[1:6]]
    assert terms.relative_share == pytest.approx(abs(terms.mixed) / sum(sizes))


@pytest.mark.parametrize("seed", range(3))
def test_the_remainder_is_third_order_with_the_halves_and_second_without(seed):
    one, half = (measures.taylor_split(eps=eps, seed=seed) for eps in (2e-3, 1e-3))
    assert one.remainder / half.remainder == pytest.approx(8, rel=0.03)
    assert one.remainder_without_half / half.remainder_without_half == pytest.approx(4, rel=0.03)
    assert abs(half.remainder) < 1e-8 < 100 * abs(half.remainder_without_half)
    assert abs(half.remainder_without_half) > 100 * abs(half.remainder)


def test_the_share_of_the_mixed_term_grows_with_the_positions():
    small, large = (measures.relative_share(eps=eps) for eps in (0.01, 1.0))
    assert 0 < small < 0.01 < large < 0.5


def test_the_split_needs_two_tokens():
    with pytest.raises(ValueError, match="two different tokens of 0 … 4, got 2 and 2"):
        measures.taylor_split(m=2, n=2)
    with pytest.raises(ValueError, match="channel: expected 0 … 7"):
        measures.taylor_split(channel=8)


# Scores


def test_what_alibi_adds_is_its_slope_times_the_distance():
    added = measures.added_to_logits(ALiBi(2, slopes=(0.5, 0.25)), n_heads=2, d_head=4, length=6, causal=False)
    for h, slope in enumerate((0.5, 0.25)):
        for i in range(6):
            for j in range(6):
                assert float(added[h, i, j]) == pytest.approx(-slope * abs(i - j), abs=1e-14)


def test_what_is_masked_has_no_number_and_what_adds_nothing_adds_zero():
    added = measures.added_to_logits(RoPE(4), n_heads=1, d_head=4, length=5, causal=True)[0]
    later = torch.ones(5, 5).triu(1).bool()
    assert torch.equal(added.isnan(), later)
    assert not added[~later].any()


def test_what_cope_adds_depends_on_the_gates():
    """One head, by the loops of its definition."""
    encoding = redrawn(CoPE(4, n_positions=3), seeded(0))
    added = measures.added_to_logits(encoding, n_heads=1, d_head=4, length=5, causal=True, seed=2)[0].numpy()
    random = seeded(2)
    q, k = (normal(1, 1, 5, 4, random=random)[0, 0].numpy() for _ in range(2))
    table = encoding.table.detach().numpy()
    for i in range(5):
        for j in range(i + 1):
            gates = [1 / (1 + math.exp(-(q[i] @ k[t]) / 2)) for t in range(j, i + 1)]
            place = min(sum(gates), 2.0)
            low, high = math.floor(place), math.ceil(place)
            expected = q[i] @ table[low] + (place - low) * (q[i] @ table[high] - q[i] @ table[low])
            assert added[i, j] == pytest.approx(expected, abs=1e-12)


def test_the_score_of_ones_by_an_encoding_itself():
    lags = torch.arange(50)
    assert torch.allclose(measures.score_of_ones(RoPE(16), lags, 16), measures.rope_score(16, lags) / 16, atol=1e-14)
    faded = measures.score_of_ones(XPos(16), lags, 16)
    for lag in (0, 3, 49):
        expected = sum(((2 * i / 16 + 0.4) / 1.4) ** (lag / 512) * math.cos(lag * w) for i, w in enumerate(omegas(16))) / 8
        assert float(faded[lag]) == pytest.approx(expected, abs=1e-12)


def test_the_similarity_of_rows_is_the_mean_of_their_products():
    table = normal(7, 3, random=seeded(0))
    similarity = measures.row_similarity(table)
    products = [np.mean([float(table[p] @ table[p + k]) for p in range(7 - k)]) for k in range(7)]
    assert np.abs(similarity.numpy() - np.array(products) / products[0]).max() < 1e-14
