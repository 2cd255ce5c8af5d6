"""Class H: ALiBi."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest
import torch

import posenc
from field_bugs.reference import slopes, softmax
from field_bugs.worlds import attention, heads, near, tokens
from posenc import Positions, alibi_slopes
from posenc.attention import plan
from posenc.attention.backends import reference, sdpa, toeplitz
from posenc.attention.options import PLAIN
from posenc.encodings import alibi as module
from posenc.encodings.alibi import ALiBi
from posenc.encodings.kerple import KERPLE
from test_laws import build

at_distance = ALiBi.at_distance


def of_pairs(encoding, at_q: Positions, at_k: Positions, n_heads: int = 4) -> np.ndarray:
    """The bias of every pair, [h, i, j], fp64."""
    q, k = heads(1, at_q.length, n_heads=n_heads), heads(1, at_k.length, n_heads=n_heads)
    bias = encoding.bias(q, k, at_q, at_k)
    index = [
        torch.arange(size).view(*[-1 if n == axis else 1 for n in range(3)])
        for axis, size in enumerate((n_heads, at_q.length, at_k.length))
    ]
    return bias(torch.tensor(0), *index).detach().double().numpy()


# H1, H2 -----------------------------------------------------------------------------------------------------------------


def test_H1_slopes_of_every_number_of_heads():
    assert alibi_slopes(6) == (0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125)
    assert alibi_slopes(1) == (2**-8,)
    for n in range(1, 129):
        np.testing.assert_allclose(alibi_slopes(n), slopes(n), rtol=1e-12, err_msg=f"{n} heads")
        np.testing.assert_allclose(posenc.create("alibi", n_heads=n).slopes, slopes(n), rtol=1e-12)


def plant_H1_slopes_of_the_formula_for_powers_of_two(patch):
    patch.setattr(module, "alibi_slopes", lambda n, bias_max=8.0: tuple(2 ** (-bias_max * h / n) for h in range(1, n + 1)))


def plant_H1_the_exponent_is_off_by_one(patch):
    made = alibi_slopes
    patch.setattr(module, "alibi_slopes", lambda n, bias_max=8.0: tuple(s * 2 ** (bias_max / n) for s in made(n, bias_max)))


def test_H2_a_rank_has_its_slice_of_all_slopes():
    whole = posenc.create("alibi", n_heads=40)
    for start in (0, 20):
        assert whole.heads(start, start + 20).slopes == tuple(alibi_slopes(40)[start : start + 20])
        assert whole.heads(start, start + 20).slopes != alibi_slopes(20)
    q = heads(1, 6, n_heads=40)
    at = Positions.arange(1, 6)
    expected = posenc.attend(q, q, q, whole, at)
    for start in (0, 20):
        mine = q[:, start : start + 20]
        near(posenc.attend(mine, mine, mine, whole.heads(start, start + 20), at), expected[:, start : start + 20])


def test_H2_other_biases_of_heads_are_sliced_too():
    for name in ("t5", "kerple", "deberta", "transformer_xl", "swin_v2", "fire"):
        encoding = build(name)
        at, q = Positions.arange(1, 6), heads(1, 6)
        expected = posenc.attend(q, q, q, encoding, at)
        for start in (0, 2):
            mine = q[:, start : start + 2]
            part = posenc.attend(mine, mine, mine, encoding.heads(start, start + 2), at)
            # Swin V2's logits reach 10 of the cosine and 16 of the bias, and an error of 26·2⁻²⁴ in each of four roundings.
            near(part, expected[:, start : start + 2], name, atol=6e-6 if name == "swin_v2" else 2e-6)


def plant_H2_slopes_of_the_heads_of_the_rank(patch):
    patch.setattr(ALiBi, "heads", lambda self, start, stop: ALiBi(stop - start))


def plant_H2_every_rank_has_the_first_heads(patch):
    patch.setattr(KERPLE, "heads", lambda self, start, stop, of=KERPLE.heads: of(self, 0, stop - start))


# H3, H4, H5 -------------------------------------------------------------------------------------------------------------


def test_H3_a_decoded_row_is_the_last_row():
    for name in ("alibi", "falcon_alibi"):
        encoding = build(name)
        q, k = heads(1, 9), heads(1, 9, seed=1)
        whole = posenc.attend(q, k, k, encoding, Positions.arange(1, 9))
        for n in range(1, 10):
            row = posenc.attend(
                q[:, :, n - 1 : n], k[:, :, :n], k[:, :, :n], encoding, Positions.decode([n - 1]), Positions.arange(1, n)
            )
            near(row, whole[:, :, n - 1 : n], f"{name} {n} tokens")


def plant_H3_a_bias_of_one_query_is_zero(patch):
    def bias(self, q, k, at_q, at_k):
        slope = torch.tensor(self.slopes)
        return lambda b, h, i, j: -slope[h] * (at_q.coords[b, i] - at_k.coords[b, j]).abs() * (at_q.length > 1)

    patch.setattr(ALiBi, "bias", bias)
    patch.setattr(ALiBi, "structure", posenc.PositionalEncoding.structure)


def test_H4_the_bias_never_grows_with_the_distance():
    for name in ("alibi", "falcon_alibi", "kerple"):
        row = of_pairs(build(name), Positions.decode([20]), Positions.arange(1, 21))[:, 0]
        assert (np.diff(row) >= 0).all(), name
        assert (row[:, -1] > row[:, 0]).all(), name
    after = of_pairs(build("alibi"), Positions.decode([0]), Positions.arange(1, 21))[:, 0]
    assert (np.diff(after) < 0).all()


def plant_H4_distance_is_rewarded(patch):
    patch.setattr(ALiBi, "at_distance", lambda self, delta: -at_distance(self, delta))


class OfTheKeyAlone(ALiBi):
    """slope·(position of the key): the same as ALiBi where only earlier keys are seen."""

    def bias(self, q, k, at_q, at_k):
        slope = torch.tensor(self.slopes, dtype=torch.float64)
        return lambda b, h, i, j: slope[h] * (at_k.coords[b, j] + 0 * at_q.coords[b, i])


def test_H5_the_bias_of_the_key_alone_is_for_causal_attention_only():
    q, at = heads(1, 7), Positions.arange(1, 7)
    mine, short = ALiBi(4), OfTheKeyAlone(4)
    near(posenc.attend(q, q, q, short, at, impl="reference"), posenc.attend(q, q, q, mine, at), "causal", 1e-5)
    both_ways = [posenc.attend(q, q, q, one, at, causal=False, impl="reference") for one in (mine, short)]
    assert float((both_ways[0] - both_ways[1]).abs().max()) > 0.01
    bias = of_pairs(mine, at, at)
    distance = np.abs(np.subtract.outer(range(7), range(7)))
    np.testing.assert_allclose(bias, -np.array(slopes(4))[:, None, None] * distance, rtol=1e-12)


def plant_H5_the_key_alone_in_both_directions(patch):
    patch.setattr(ALiBi, "bias", OfTheKeyAlone.bias)
    patch.setattr(ALiBi, "structure", posenc.PositionalEncoding.structure)


# H6, H7 -----------------------------------------------------------------------------------------------------------------


def expected_attention(q: torch.Tensor, scale: float) -> np.ndarray:
    """softmax(scale·q·k - slope·distance)·v over earlier keys, q = k = v."""
    x = q[0].double().numpy()
    distance = np.subtract.outer(range(x.shape[1]), range(x.shape[1]))
    logits = scale * x @ x.transpose(0, 2, 1) - np.array(slopes(len(x)))[:, None, None] * np.abs(distance)
    return softmax(logits, distance >= 0) @ x


def test_H6_the_bias_is_added_after_the_scale():
    q, at = heads(1, 7), Positions.arange(1, 7)
    for impl in ("reference", "sdpa", "toeplitz"):
        for scale in (None, 1.0, 0.1):
            got = posenc.attend(q, q, q, ALiBi(4), at, scale=scale, impl=impl if scale is None else "auto")
            near(got[0], expected_attention(q, 1 / math.sqrt(8) if scale is None else scale), f"{impl} {scale}", 1e-5)


def test_H6_falcon_scales_its_bias_and_says_so():
    """Falcon adds its bias before the division by √d: that is another encoding, with a name."""
    at = Positions.arange(1, 7)
    bias = of_pairs(build("falcon_alibi"), at, at)
    steps = np.diff(bias, axis=-1) * np.ones((4, 7, 1))
    expected = np.array(slopes(4))[:, None, None] / math.sqrt(8) * np.ones_like(steps)
    np.testing.assert_allclose(steps, expected, rtol=0.02)


def plant_H6_the_bias_is_scaled_too(patch):
    patch.setattr(ALiBi, "at_distance", lambda self, delta: at_distance(self, delta) / math.sqrt(8))


def test_H7_the_future_is_hidden_whatever_the_bias():
    for name in ("alibi", "t5", "kerple", "fire", "shaw", "transformer_xl", "deberta", "cope"):
        q, v = heads(1, 6), heads(1, 6, seed=2)
        changed = v.clone()
        changed[:, :, 4:] += 100
        at = Positions.arange(1, 6)
        outs = [posenc.attend(q, q, one, build(name), at) for one in (v, changed)]
        near(outs[0][:, :, :4], outs[1][:, :, :4], name, 1e-6)
        assert not torch.equal(outs[0][:, :, 4:], outs[1][:, :, 4:])


def plant_H7_the_bias_takes_the_masks_place(patch):
    made = reference.allowed
    everything = lambda at_q, at_k, causal, options=PLAIN: made(at_q, at_k, False, options)  # noqa: E731
    for backend in (reference, sdpa):
        patch.setattr(backend, "allowed", everything)
    patch.setattr(toeplitz, "refuses", lambda *_: "planted")


# H8, H9 -----------------------------------------------------------------------------------------------------------------


def test_H8_every_backend_has_the_same_distance_in_cross_attention():
    q, k = heads(1, 3), heads(1, 8, seed=1)
    for start in (0, 4, 40):
        at_q, at_k = Positions.arange(1, 3, start), Positions.arange(1, 8)
        expected = posenc.attend(q, k, k, ALiBi(4), at_q, at_k, causal=False, impl="reference")
        distance = np.abs(np.subtract.outer(range(start, start + 3), range(8)))
        np.testing.assert_allclose(
            of_pairs(ALiBi(4), at_q, at_k), -np.array(slopes(4))[:, None, None] * distance, rtol=1e-12
        )
        for impl in ("sdpa", "toeplitz", "auto"):
            near(posenc.attend(q, k, k, ALiBi(4), at_q, at_k, causal=False, impl=impl), expected, f"{impl} {start}")


def plant_H8_one_backend_aligns_the_last_positions(patch):
    made = toeplitz.attend

    def aligned(call):
        end = call.at_k.coords[:, -1] - call.at_q.coords[:, -1]
        return made(call._replace(at_q=call.at_q.shift(end)))

    patch.setattr(toeplitz, "attend", aligned)


def test_H9_distances_stay_distinct_for_tokens_of_16_bits():
    at_q, at_k = Positions.decode([2047]), Positions.arange(1, 2048)
    assert len(np.unique(of_pairs(ALiBi(4), at_q, at_k)[0])) == 2048
    one = torch.zeros(1, 1, 1, 8, dtype=torch.bfloat16)
    values = torch.zeros(1, 1, 2048, 1, dtype=torch.bfloat16)
    values[0, 0, 2046] = 1  # with q·k = 0 the weight of the key before the last is 2^-8's share
    got = posenc.attend(one, torch.zeros(1, 1, 2048, 8, dtype=torch.bfloat16), values, ALiBi(1), at_q, at_k)
    weights = np.exp(-(2.0**-8) * np.arange(2048)[::-1])
    assert abs(float(got) - weights[2046] / weights.sum()) < 2e-5


def plant_H9_distances_in_bfloat16(patch):
    patch.setattr(ALiBi, "at_distance", lambda self, delta: at_distance(self, delta.bfloat16().double()))


# H10 --------------------------------------------------------------------------------------------------------------------


def growth(call) -> int:
    """By how many bytes the largest resident memory of the process grows in a call."""
    status, clear = Path("/proc/self/status"), Path("/proc/self/clear_refs")
    if not clear.exists():
        pytest.skip("resident memory is read from /proc")

    def read(name: str) -> int:
        return 1024 * int(re.search(rf"{name}:\s+(\d+) kB", status.read_text())[1])

    clear.write_text("5")
    before = read("VmRSS")
    call()
    return read("VmHWM") - before


def test_H10_no_bias_of_every_pair_is_held():
    n, n_heads = 2048, 4
    q, at = heads(1, n, 8, n_heads), Positions.arange(1, n)
    for encoding in (ALiBi(n_heads), posenc.create("t5", n_heads=n_heads)):
        with torch.no_grad():
            posenc.attend(q[:, :, :64], q[:, :, :64], q[:, :, :64], encoding, Positions.arange(1, 64))
            grown = growth(lambda encoding=encoding: posenc.attend(q, q, q, encoding, at))
        assert grown < 8 * 2**20, f"{type(encoding).__name__}: {grown >> 20} MiB; one head of all pairs has 16"


def plant_H10_the_fast_path_is_not_taken(patch):
    patch.setattr(plan, "candidates", lambda device, encoding: ("reference",))
    patch.setattr(reference, "_in_blocks", lambda *_: [])


def test_H3_a_layer_decodes_with_its_bias():
    for name in ("alibi", "kerple", "fire", "t5"):
        model, x = attention(name), tokens(1, 6)
        expected, cache = model(x, Positions.arange(1, 6)), None
        for n in range(6):
            out, cache = model.decode(x[:, n : n + 1], Positions.decode([n]), cache)
            near(out, expected[:, n : n + 1], f"{name} {n}")
