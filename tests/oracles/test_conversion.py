"""Layout conversion and re-rotation against explicit loops in fp64; the two layouts against transformers' own functions."""

import importlib
import math

import numpy as np
import pytest
import torch

import posenc
from posenc.configs.convert.rows import Heads, convert_rows
from posenc.encodings.bases.learned_rope import LeRoPE, MixedRoPE
from posenc.encodings.rope import RoPE
from posenc.encodings.xpos import XPos
from posenc.frequencies import Frequencies

from .by_hand import channels, close, draw, near_once_rounded, turned

LAYOUTS = ["half", "interleaved"]
POSITIONS = [3, 17, 1000, 8191]


def head_scores(q, k, rotary_dim, trailing, layout, base=50.0):
    """q_i·k_j for every pair of positions, q [i, d] and k [j, d] turned by hand on their first or last channels."""
    offset = q.shape[1] - rotary_dim if trailing else 0
    out = np.zeros((len(q), len(k)))
    for i, at_q in enumerate(POSITIONS):
        for j, at_k in enumerate(POSITIONS):
            pair = []
            for x, at in ((q[i], at_q), (k[j], at_k)):
                angles = [at * base ** (-2 * n / rotary_dim) for n in range(rotary_dim // 2)]
                end = offset + rotary_dim
                pair.append([*x[:offset], *turned(x[offset:end], angles, layout), *x[end:]])
            out[i, j] = sum(a * b for a, b in zip(*pair, strict=True))
    return out


def heads_of(rows, part, n, g, d, gated=False, latent=0):
    """Where each query and each key head's rows are, straight from how the projection is drawn: two lists of slices."""
    if part == "q":
        step = 2 * d if gated else d
        return [rows[h * step : h * step + d] for h in range(n)], []
    if part == "k":
        return [], [rows[h * d : h * d + d] for h in range(g)]
    if part == "latent":
        return [], [rows[latent:]]
    cut = [rows[at : at + d] for at in range(0, len(rows), d)]
    if part == "concatenated":
        return cut[:n], cut[n : n + g]
    if part == "grouped":
        q, k, share = [], [], n // g
        for group in range(g):
            one = cut[group * (share + 2) : (group + 1) * (share + 2)]
            q, k = q + one[:share], [*k, one[share]]
        return q, k
    q, k, each = [], [], n // 4
    for block in range(4):
        one = cut[block * 3 * each : (block + 1) * 3 * each]
        q, k = q + one[:each], k + one[2 * each :]
    return q, k


CASES = [
    # parts, n_heads, n_kv_heads, d_head, rotary_dim, trailing, gated, latent
    (("q", "k"), 4, 4, 6, 6, False, False, None),
    (("q", "k"), 4, 2, 8, 8, False, False, None),
    (("q", "k"), 6, 1, 8, 4, False, False, None),
    (("q", "k"), 4, 2, 10, 6, True, False, None),
    (("q", "k"), 2, 1, 6, 4, False, True, None),
    (("q", "latent"), 3, 3, 10, 4, True, False, 5),
    (("concatenated",), 4, 2, 6, 6, False, False, None),
    (("concatenated",), 3, 3, 8, 4, False, False, None),
    (("grouped",), 4, 4, 6, 2, False, False, None),
    (("grouped",), 6, 2, 6, 6, False, False, None),
    (("grouped",), 4, 1, 8, 8, False, False, None),
    (("blocks",), 8, 8, 4, 4, False, False, None),
]


@pytest.mark.parametrize("source", LAYOUTS)
@pytest.mark.parametrize(("parts", "n", "g", "d", "rotary_dim", "trailing", "gated", "latent"), CASES)
def test_scores_are_equal_in_both_layouts(parts, n, g, d, rotary_dim, trailing, gated, latent, source):
    target = LAYOUTS[1 - LAYOUTS.index(source)]
    sizes = Heads(n, d, g, rotary_dim, trailing, latent, gated)
    rows = {
        "q": n * d * (2 if gated else 1),
        "k": g * d,
        "latent": (latent or 0) + rotary_dim,
        "concatenated": (n + 2 * g) * d,
        "grouped": (n + 2 * g) * d,
        "blocks": 3 * n * d,
    }
    scores = {}
    for name in (source, target):
        queries, keys = [], []
        for seed, part in enumerate(parts):
            w = torch.from_numpy(draw(seed, rows[part], 5))
            bias = torch.from_numpy(draw(seed + 7, rows[part]))
            if name == target:
                w, bias = (convert_rows(one, part, sizes, source, target) for one in (w, bias))
            out = np.array([w.numpy() @ x + bias.numpy() for x in draw(3, len(POSITIONS), 5)]).T  # [rows, t]
            q, k = heads_of(out, part, n, g, d, gated, latent or 0)
            queries, keys = queries + q, keys + k
        share = len(queries) // len(keys)
        scores[name] = []
        for h, q in enumerate(queries):
            key = keys[h // share]
            if parts[-1] == "latent":  # only the slice is shared; the rest of the score never turns
                q = q[-rotary_dim:]
            scores[name].append(head_scores(q.T, key.T, rotary_dim, trailing, name))
    close(np.array(scores[target]), np.array(scores[source]), atol=1e-10)


def test_unconverted_weights_score_differently():
    w_q, w_k, x = draw(1, 6, 5), draw(2, 6, 5), draw(3, 4, 5)
    half, interleaved = (head_scores(x @ w_q.T, x @ w_k.T, 6, False, layout) for layout in LAYOUTS)
    assert np.abs(half - interleaved).max() > 0.1


@pytest.mark.parametrize(("n", "g"), [(4, 4), (4, 2), (6, 1)])
@pytest.mark.parametrize("part", ["concatenated", "grouped", "blocks"])
def test_every_head_of_a_fused_projection_is_found_once(part, n, g):
    if part == "blocks" and n != g:
        with pytest.raises(ValueError, match="4 blocks need as many key heads"):
            Heads(n, 8, g).slices(part)
        return
    q, k, rows = Heads(n, 8, g).slices(part)
    assert (len(q), len(k), rows) == (n, g, (n + 2 * g) * 8)
    assert len({*q, *k}) == n + g


@pytest.mark.parametrize("part", ["q", "k", "concatenated", "grouped", "blocks", "latent"])
def test_rows_that_do_not_turn_stay_and_back_again_is_the_identity(part):
    sizes = Heads(4, 10, 4, 6, True, 3)
    rows = sizes.slices(part).rows
    w = torch.arange(rows)
    there = convert_rows(w, part, sizes, "half", "interleaved")
    assert torch.equal(convert_rows(there, part, sizes, "interleaved", "half"), w)
    starts = [*sizes.slices(part).q, *sizes.slices(part).k]
    turning = {row for start in starts for row in range(start, start + 6)}
    assert {row for row in range(rows) if there[row] != row} <= turning
    for start in starts:
        for pair in range(3):
            one, other = channels(pair, 6, "interleaved")
            assert there[start + one] == start + pair
            assert there[start + other] == start + pair + 3


DTYPES = [
    torch.float64,
    torch.float32,
    torch.bfloat16,
    torch.float16,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
    torch.int8,
    torch.uint8,
    torch.int32,
    torch.int64,
    torch.bool,
    torch.float8_e8m0fnu,
]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_bit_of_every_dtype_survives_nan_payloads_too(dtype):
    size = torch.empty(0, dtype=dtype).element_size()
    bits = torch.from_numpy(np.random.default_rng(1).integers(0, 2 if dtype == torch.bool else 256, (16, 3 * size)))
    w = bits.to(torch.uint8).view(dtype)
    there = convert_rows(w, "q", Heads(2, 8), "half", "interleaved")
    assert there.dtype == dtype
    assert torch.equal(there.view(torch.uint8)[1], bits[4].to(torch.uint8))
    assert torch.equal(convert_rows(there, "q", Heads(2, 8), "interleaved", "half").view(torch.uint8), w.view(torch.uint8))


# The layouts themselves: transformers' GPT-J turns neighbours, its Llama turns halves.


def theirs(name, q, k, at):
    """q and k [b, h, t, d] rotated by transformers' own functions, base 10 000, angles from numpy in fp64."""
    d = q.shape[-1]
    angle = at[:, :, None].double() * torch.tensor([10000.0 ** (-2 * n / d) for n in range(d // 2)], dtype=torch.float64)
    if name == "interleaved":
        gptj = importlib.import_module("transformers.models.gptj.modeling_gptj")
        turn = [gptj.apply_rotary_pos_emb(x.transpose(1, 2), angle.sin(), angle.cos()).transpose(1, 2) for x in (q, k)]
        return turn[0], turn[1]
    llama = importlib.import_module("transformers.models.llama.modeling_llama")
    both = torch.cat([angle, angle], dim=-1)
    return llama.apply_rotary_pos_emb(q, k, both.cos(), both.sin())


@pytest.mark.parametrize("source", LAYOUTS)
def test_converted_weights_score_the_same_in_the_functions_of_gptj_and_llama(source):
    target = LAYOUTS[1 - LAYOUTS.index(source)]
    n, g, d, x = 4, 2, 8, torch.from_numpy(draw(5, 2, 6, 12))
    at = torch.tensor([[1, 2, 50, 51, 4000, 131071], [0, 9, 10, 11, 12, 13]])
    w_q, w_k = torch.from_numpy(draw(6, n * d, 12)), torch.from_numpy(draw(7, g * d, 12))

    def scores(w_q, w_k, layout):
        q, k = ((x @ w.T).unflatten(-1, (-1, d)).transpose(1, 2) for w in (w_q, w_k))
        q, k = theirs(layout, q, k, at)
        return q @ k.repeat_interleave(n // g, dim=1).mT

    sizes = Heads(n, d, g)
    new = [convert_rows(w, part, sizes, source, target) for w, part in ((w_q, "q"), (w_k, "k"))]
    before = scores(w_q, w_k, source)
    close(scores(*new, target), before, atol=1e-9)
    assert (scores(w_q, w_k, target) - before).abs().max() > 1


@pytest.mark.parametrize("source", LAYOUTS)
def test_cached_keys_convert_as_the_functions_of_gptj_and_llama_leave_them(source):
    target = LAYOUTS[1 - LAYOUTS.index(source)]
    at = torch.tensor([[5, 6, 700]])
    k = torch.from_numpy(draw(8, 1, 2, 3, 8))
    cached = theirs(source, k, k, at)[1]
    elsewhere = posenc.convert_keys(k, source, target)
    close(posenc.convert_keys(cached, source, target), theirs(target, elsewhere, elsewhere, at)[1])


def test_cached_keys_keep_the_channels_that_do_not_turn():
    k = torch.arange(10.0)
    assert posenc.convert_keys(k, "half", "interleaved", rotary_dim=6).tolist() == [0, 3, 1, 4, 2, 5, 6, 7, 8, 9]
    trailing = posenc.convert_keys(k, "half", "interleaved", rotary_dim=6, trailing=True)
    assert trailing.tolist() == [0, 1, 2, 3, 4, 7, 5, 8, 6, 9]
    assert torch.equal(posenc.convert_keys(trailing, "interleaved", "half", rotary_dim=6, trailing=True), k)
    for rotary_dim, said in {
        5: "an even number from 2 up to d_head=10, got 5",
        0: "a whole number from 1 or None, got 0",
        12: "an even number from 2 up to d_head=10, got 12",
    }.items():
        with pytest.raises(ValueError, match=f"rotary_dim: expected {said}"):
            posenc.convert_keys(k, "half", "interleaved", rotary_dim=rotary_dim)
    with pytest.raises(ValueError, match="target: expected one of"):
        posenc.convert_keys(k, "half", "pairs")


# Re-rotation: R(p + by) = R(by) R(p).


def rotated_by_hand(k, positions, d, rotary_dim, trailing, layout, base, sign=1, scale=1.0):
    """Keys [b, g, t, d] at positions [b][t]."""
    out, offset = np.array(k), d - rotary_dim if trailing else 0
    for b, g, t in np.ndindex(k.shape[:3]):
        angles = [sign * positions[b][t] * base ** (-2 * n / rotary_dim) for n in range(rotary_dim // 2)]
        end = offset + rotary_dim
        out[b, g, t, offset:end] = turned(k[b, g, t, offset:end], angles, layout, [scale] * (rotary_dim // 2))
    return out


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("rotary_dim", "trailing", "reverse"), [(8, False, False), (4, False, True), (6, True, False)])
@pytest.mark.parametrize("by", [12, -7, 0.25, -3.3])
def test_moved_keys_are_those_of_the_new_position(layout, rotary_dim, trailing, reverse, by):
    k, at, sign = draw(1, 2, 3, 4, 8), [[0, 5, 9, 100], [3, 4, 1000, 131071]], -1 if reverse else 1
    rope = RoPE(8, base=500.0, layout=layout, rotary_dim=rotary_dim, trailing=trailing, reverse=reverse)
    here = rotated_by_hand(k, at, 8, rotary_dim, trailing, layout, 500.0, sign)
    there = [[p + by for p in row] for row in at]
    moved = posenc.rerotate(torch.from_numpy(here), by=by, encoding=rope)
    close(moved, rotated_by_hand(k, there, 8, rotary_dim, trailing, layout, 500.0, sign), atol=1e-10)


def test_each_token_by_its_own_amount():
    k, at, by = draw(2, 2, 1, 3, 6), [[10, 20, 30], [1, 2, 3]], [[-10, -5, 2], [0, 7, 500]]
    rope = RoPE(6, layout="half")
    here = torch.from_numpy(rotated_by_hand(k, at, 6, 6, False, "half", 10000.0))
    there = [[p + m for p, m in zip(*rows, strict=True)] for rows in zip(at, by, strict=True)]
    want = rotated_by_hand(k, there, 6, 6, False, "half", 10000.0)
    close(posenc.rerotate(here, by=torch.tensor(by), encoding=rope), want)
    close(posenc.rerotate(here, by=torch.tensor(by).double(), encoding=rope), want)
    one_row = posenc.rerotate(here, by=torch.tensor(by[:1]), encoding=rope)
    close(one_row[0], want[0])
    assert not np.allclose(one_row[1], want[1])


@pytest.mark.parametrize("returns", LAYOUTS)
def test_a_magnitude_is_not_applied_again_and_the_returned_layout_is_kept(returns):
    values = (1.0, 0.3, 0.01)
    rope = RoPE(6, layout="interleaved", returns=returns, frequencies=Frequencies(values, cos_sin_scale=1.25))
    k, at = draw(3, 1, 2, 4, 6), posenc.Positions.at(torch.tensor([[0, 3, 8, 900]]))
    want = np.zeros_like(k)
    for g, t in np.ndindex(2, 4):
        angles = [(at.coords[0, t].item() + 40) * value for value in values]
        pairs = turned(k[0, g, t], angles, "interleaved", [1.25] * 3)
        want[0, g, t] = pairs if returns == "interleaved" else [*pairs[::2], *pairs[1::2]]
    here = rope.rotate(torch.from_numpy(k), at, "key")
    close(posenc.rerotate(here, by=40, encoding=rope), want)
    moved_twice = posenc.rerotate(posenc.rerotate(here, by=25, encoding=rope), by=15, encoding=rope)
    close(moved_twice, want)


@pytest.mark.parametrize(("dtype", "bits"), [(torch.bfloat16, 8), (torch.float16, 11), (torch.float32, 24)])
def test_rounded_once(dtype, bits):
    k = torch.from_numpy(draw(4, 1, 2, 6, 8)).to(dtype)
    for by in (-1000, 131071, 0.1):
        want = rotated_by_hand(k.double().numpy(), [[by] * 6], 8, 8, False, "half", 10000.0)
        moved = posenc.rerotate(k, by=by, encoding=RoPE(8, layout="half"))
        assert moved.dtype == dtype
        near_once_rounded(moved.double().numpy(), want, bits, 4.0)
    for encoding in (XPos(8), LeRoPE(8), MixedRoPE(8, 2, axes=1)):
        moved, exact = (posenc.rerotate(keys, by=5, encoding=encoding).detach() for keys in (k, k.double()))
        assert (moved.dtype, exact.dtype) == (dtype, torch.float64)
        near_once_rounded(moved.double().numpy(), exact.numpy(), bits, 4.0)


@pytest.mark.parametrize("trailing", [False, True])
def test_a_magnitude_stays_on_the_channels_that_turn(trailing):
    rope = RoPE(8, layout="half", trailing=trailing, frequencies=Frequencies((1.0, 0.1), cos_sin_scale=1.5))
    k, at = draw(10, 1, 1, 3, 8), [[2, 5, 70]]
    part = slice(4, 8) if trailing else slice(0, 4)
    here, want = np.array(k), np.array(k)
    for t, p in enumerate(at[0]):
        here[0, 0, t, part] = turned(k[0, 0, t, part], [p, p * 0.1], "half", [1.5] * 2)
        want[0, 0, t, part] = turned(k[0, 0, t, part], [p + 3, (p + 3) * 0.1], "half", [1.5] * 2)
    close(posenc.rerotate(torch.from_numpy(here), by=3, encoding=rope), want)
    moved = posenc.rerotate(torch.from_numpy(here).bfloat16(), by=3, encoding=rope)
    exact = posenc.rerotate(torch.from_numpy(here).bfloat16().double(), by=3, encoding=rope)
    near_once_rounded(moved.double().numpy(), exact.numpy(), 8, 4.0)


def test_several_axes_move_along_each():
    rope = RoPE(8, axes=2, base=100.0)
    k = torch.from_numpy(draw(5, 1, 1, 3, 8))
    at, by = torch.tensor([[[1, 2], [30, 4], [5, 60]]]), torch.tensor([[[7, -1], [0, 3], [2.5, 0]]])
    fresh = rope.rotate(k, posenc.Positions.at(at + by.double()), "key")
    close(posenc.rerotate(rope.rotate(k, posenc.Positions.at(at), "key"), by=by, encoding=rope), fresh)


def test_learned_frequencies_move_by_what_was_learned():
    torch.manual_seed(0)
    k = torch.from_numpy(draw(9, 1, 2, 3, 8))
    rope = LeRoPE(8, base=100.0)
    torch.nn.init.normal_(rope.alpha)
    omega = [100.0 ** (-2 * n / 8) * math.exp(alpha) for n, alpha in enumerate(rope.alpha.tolist())]
    moved = posenc.rerotate(k, by=7, encoding=rope).detach()
    close(moved, np.array([[[turned(x, [7 * w for w in omega], "interleaved") for x in head] for head in k[0].numpy()]]))
    mixed = MixedRoPE(8, 2)
    where, by = torch.tensor([[[1, 2], [3, 4], [9, 0]]]), torch.tensor([[[5, -1], [0, 2], [1, 1]]])
    fresh = mixed.rotate(k, posenc.Positions.at(where + by), "key")
    there = posenc.rerotate(mixed.rotate(k, posenc.Positions.at(where), "key"), by=by, encoding=mixed)
    close(there, fresh)
    assert not torch.allclose(fresh, mixed.rotate(k, posenc.Positions.at(where), "key"))


def test_xpos_decays_on():
    xpos, k = XPos(8), torch.from_numpy(draw(6, 1, 2, 3, 8))
    at = posenc.Positions.at(torch.tensor([[4, 9, 300]]))
    close(posenc.rerotate(xpos.rotate(k, at, "key"), by=-4, encoding=xpos), xpos.rotate(k, at.shift(-4), "key"))


def test_streaming_evicts_the_middle_and_counts_on():
    """Attention over a cache that dropped tokens 4 … 103 equals attention over the kept tokens at positions 0, 1, 2, …"""
    rope, kept = RoPE(8), [*range(4), *range(104, 120)]
    k, q = torch.from_numpy(draw(7, 1, 2, 120, 8)), torch.from_numpy(draw(8, 1, 2, 1, 8))
    cached = rope.rotate(k, posenc.Positions.arange(1, 120), "key")
    moved = torch.cat([cached[:, :, :4], posenc.rerotate(cached[:, :, 104:], by=-100, encoding=rope)], dim=2)
    query = rotated_by_hand(q.numpy(), [[20]], 8, 8, False, "interleaved", 10000.0)
    keys = rotated_by_hand(k[:, :, kept].numpy(), [list(range(20))], 8, 8, False, "interleaved", 10000.0)
    close(torch.from_numpy(query) @ moved.mT, query @ np.swapaxes(keys, -1, -2), atol=1e-11)


def test_what_cannot_be_moved_is_refused():
    k, rope = torch.zeros(2, 1, 3, 8), RoPE(8)
    with pytest.raises(TypeError, match="encoding: expected the RoPE or xPos that rotated the keys, got ALiBi"):
        posenc.rerotate(k, by=1, encoding=posenc.create("alibi", n_heads=4))
    with pytest.raises(ValueError, match="keys: expected"):
        posenc.rerotate(k[0], by=1, encoding=rope)
    with pytest.raises(ValueError, match=r"keys: expected a tensor .* of real numbers"):
        posenc.rerotate(k.to(torch.int8), by=1, encoding=rope)
    said = r"by: expected a finite number or a tensor \[b, t, \*axes\] of numbers, got Tensor torch.int64 \[3\]"
    with pytest.raises(ValueError, match=said):
        posenc.rerotate(k, by=torch.arange(3), encoding=rope)
    with pytest.raises(ValueError, match="by: expected"):
        posenc.rerotate(k, by=torch.zeros(3, 3), encoding=rope)
    with pytest.raises(ValueError, match="finite"):
        posenc.rerotate(k, by=float("nan"), encoding=rope)
    with pytest.raises(ValueError, match="leaves keys as they are"):
        posenc.rerotate(k, by=1, encoding=RoPE(8, sides=("query",)))


# Other frequencies.


OF_FREQUENCIES = {
    "base": (Frequencies((1.0, 0.1, 0.01)), Frequencies((1.0, 0.3, 0.09))),
    "magnitude": (Frequencies((1.0, 0.1, 0.01), cos_sin_scale=1.2), Frequencies((1.0, 0.05, 0.002), cos_sin_scale=1.5)),
    "stands still": (Frequencies((1.0, 0.1, 0.01)), Frequencies((1.0, 0.0, 0.0))),
}


@pytest.mark.parametrize("trailing", [False, True])
@pytest.mark.parametrize(("layout", "returns"), [("half", "half"), ("interleaved", "interleaved"), ("interleaved", "half")])
@pytest.mark.parametrize("what", OF_FREQUENCIES)
def test_keys_of_other_frequencies_are_those_rotated_by_hand(what, layout, returns, trailing):
    """Positions of each row of its own; a head of 8 channels, of which 6 turn."""
    before, after = OF_FREQUENCIES[what]
    k, at = draw(21, 2, 2, 4, 8), [[0, 1, 5, 900], [7, 8, 9, 70000]]
    part = slice(2, 8) if trailing else slice(0, 6)

    def by_hand(frequencies):
        out = np.array(k)
        for b, g, t in np.ndindex(2, 2, 4):
            angles = [at[b][t] * value for value in frequencies]
            turn = turned(k[b, g, t, part], angles, layout, [frequencies.cos_sin_scale] * 3)
            if returns != layout:  # interleaved to half: the first of all pairs, then the second
                turn = np.concatenate([turn[0::2], turn[1::2]])
            out[b, g, t, part] = turn
        return out

    old, new = (RoPE(8, layout=layout, returns=returns, trailing=trailing, frequencies=one) for one in (before, after))
    where = posenc.Positions.at(torch.tensor(at))
    close(posenc.rescale_keys(torch.from_numpy(by_hand(before)), where, old, new), by_hand(after), atol=1e-10)
    cached = torch.from_numpy(by_hand(before)).bfloat16()
    exact = posenc.rescale_keys(cached.double(), where, old, new)
    near_once_rounded(posenc.rescale_keys(cached, where, old, new).double().numpy(), exact.numpy(), 8, 4.0)


def test_another_yarn_factor_in_the_middle_of_a_conversation():
    plain, yarn = (
        posenc.create("rope", d_head=16, layout="half"),
        posenc.create("yarn", d_head=16, factor=4.0, trained_length=32),
    )
    k = torch.from_numpy(draw(22, 1, 2, 40, 16))
    first, every = posenc.Positions.arange(1, 30), posenc.Positions.arange(1, 40)
    cached = plain.rotate(k[:, :, :30], first, "key")
    later = yarn.rotate(k[:, :, 30:], posenc.Positions.arange(1, 10, 30), "key")
    whole = torch.cat([posenc.rescale_keys(cached, first, plain, yarn), later], dim=2)
    close(whole, yarn.rotate(k, every, "key"))


def test_keys_that_cannot_be_rescaled_are_refused():
    k, at, rope = torch.zeros(1, 2, 3, 8), posenc.Positions.arange(1, 3), RoPE(8)
    with pytest.raises(TypeError, match="old: expected a RoPE, whose rotation can be taken back, got ALiBi"):
        posenc.rescale_keys(k, at, posenc.create("alibi", n_heads=2), rope)
    with pytest.raises(TypeError, match="new: expected a RoPE"):
        posenc.rescale_keys(k, at, rope, XPos(8))
    for other in (RoPE(8, layout="half"), RoPE(8, rotary_dim=4), RoPE(8, reverse=True)):
        with pytest.raises(ValueError, match=r"new: expected \w+="):
            posenc.rescale_keys(k, at, rope, other)
    with pytest.raises(ValueError, match=r"at: has positions \[1, 4\] for tokens \[1, 3\] of keys"):
        posenc.rescale_keys(k, posenc.Positions.arange(1, 4), rope, rope)
