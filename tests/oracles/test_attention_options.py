"""attend's options against loops in float64 that share no code with it, alone and in random combinations."""

import math
import random

import pytest
import torch

import posenc
from posenc import Positions, Stack, attend, attend_rotated
from posenc.attention import windows
from posenc.attention.backends import BACKENDS
from posenc.attention.call import Call
from posenc.attention.options import Options
from posenc.encodings.nope import NoPE
from sampling import one_in

B, H, G, D = 2, 4, 2, 8


def draw(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed + sum(shape)), dtype=torch.float64).to(dtype)


def by_hand(
    q,
    k,
    v,
    order_q,
    order_k,
    *,
    slopes=None,
    causal=True,
    mask=None,
    scale=None,
    window=None,
    chunk=None,
    softcap=None,
    sinks=None,
):
    """One query and one head at a time; slopes are ALiBi's. Returns output and log-sum-exp."""
    b, h, n, d = q.shape
    m, groups = k.shape[2], h // k.shape[1]
    out, lse = torch.zeros(b, h, n, v.shape[3], dtype=torch.float64), torch.full((b, h, n), -math.inf, dtype=torch.float64)
    for row in range(b):
        for head in range(h):
            for i in range(n):
                seen, logits = [], []
                for j in range(m):
                    p, r = int(order_q[row][i]), int(order_k[row][j])
                    if causal and r > p:
                        continue
                    if window and window[0] is not None and p - r > window[0]:
                        continue
                    if window and window[1] is not None and r - p > window[1]:
                        continue
                    if chunk and p // chunk != r // chunk:
                        continue
                    said = None if mask is None else mask.expand(b, h, n, m)[row, head, i, j]
                    if mask is not None and mask.dtype == torch.bool and not bool(said):
                        continue
                    logit = float(q[row, head, i].double() @ k[row, head // groups, j].double())
                    logit *= 1 / math.sqrt(d) if scale is None else scale
                    if softcap:
                        logit = softcap * math.tanh(logit / softcap)
                    if slopes:
                        logit -= slopes[head] * abs(p - r)
                    if mask is not None and mask.dtype != torch.bool:
                        logit += float(said)
                    seen.append(j)
                    logits.append(logit)
                if not seen:
                    continue
                total = sum(math.exp(one) for one in logits)
                lse[row, head, i] = math.log(total)
                if sinks is not None:
                    total += math.exp(float(sinks[head]))
                for j, logit in zip(seen, logits, strict=True):
                    out[row, head, i] += math.exp(logit) / total * v[row, head // groups, j].double()
    return out, lse


def world(n=9, m=None, start=0):
    m = n if m is None else m
    q, k, v = draw(B, H, n, D), draw(B, G, m, D, seed=1), draw(B, G, m, D + 2, seed=2)
    at_k = Positions.arange(B, m)
    at_q = at_k if n == m and not start else Positions.arange(B, n, start)
    return q, k, v, at_q, at_k


OPTIONS = {
    "mask": {"mask": draw(B, 1, 9, 9) > -0.5},
    "added mask": {"mask": draw(1, H, 9, 9)},
    "mask of keys": {"mask": draw(B, 1, 1, 9) > -1},
    "scale": {"scale": 0.7},
    "window": {"window": (2, 0)},
    "open window": {"window": (None, 1), "causal": False},
    "two-sided window": {"window": (3, 2), "causal": False},
    "empty window": {"window": (0, 0)},
    "chunk": {"chunk": 4},
    "softcap": {"softcap": 0.5},
    "sinks": {"sinks": draw(H)},
}


def able(impl, options):
    named = {name for name in options if name != "causal"}
    return impl == "auto" or named <= BACKENDS[impl].OPTIONS


@pytest.mark.parametrize("impl", ["auto", "reference", "sdpa"])
@pytest.mark.parametrize("bias", [False, True], ids=["plain", "alibi"])
@pytest.mark.parametrize("name", OPTIONS)
def test_each_option_is_its_formula(name, bias, impl):
    options = OPTIONS[name]
    encoding = posenc.create("alibi" if bias else "nope", n_heads=H)
    q, k, v, at, _ = world()
    if not able(impl, options):
        with pytest.raises(ValueError, match=f"impl='{impl}' cannot express.*does not serve"):
            attend(q, k, v, encoding, at, impl=impl, **options)
        return
    expected, _ = by_hand(q, k, v, at.order, at.order, slopes=encoding.slopes if bias else None, **options)
    torch.testing.assert_close(attend(q, k, v, encoding, at, impl=impl, **options), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("seed", one_in(3, range(40)))
def test_random_combinations_of_options(seed):
    choose = random.Random(seed)
    encoding = posenc.create(choose.choice(["alibi", "nope"]), n_heads=H)
    n, m = choose.choice([(9, 9), (1, 9), (4, 9), (150, 150), (3, 200)])
    if n * m > 2000:
        n, m = (70, 70) if n == m else (3, 90)
    start = m - n
    q, k, v, at_q, at_k = world(n, m, start)
    options = {}
    if choose.random() < 0.5:
        options["mask"] = choose.choice([draw(B, 1, n, m) > -1, draw(1, H, n, m), draw(B, 1, 1, m) > -1])
    if choose.random() < 0.4:
        options["scale"] = choose.choice([0.3, 1.0, 2.5])
    if choose.random() < 0.5:
        options["window"] = choose.choice([(2, 0), (5, None), (30, 3), (None, 0), (0, 0), (100, 100)])
    if choose.random() < 0.3:
        options["chunk"] = choose.choice([1, 3, 8, 64, 500])
    if choose.random() < 0.3:
        options["softcap"] = 0.8
    if choose.random() < 0.3:
        options["sinks"] = draw(H, seed=9)
    causal = choose.random() < 0.7
    slopes = getattr(encoding, "slopes", None)
    expected, lse = by_hand(q, k, v, at_q.order, at_k.order, slopes=slopes, causal=causal, **options)
    for impl in ("auto", "reference", "sdpa"):
        if able(impl, options):
            got = attend(q, k, v, encoding, at_q, at_k, causal=causal, impl=impl, **options)
            torch.testing.assert_close(got, expected, rtol=1e-11, atol=1e-11, msg=lambda said, impl=impl: f"{impl}: {said}")
    got, got_lse = attend(q, k, v, encoding, at_q, at_k, causal=causal, return_lse=True, **options)
    torch.testing.assert_close(got, expected, rtol=1e-11, atol=1e-11)
    torch.testing.assert_close(got_lse, lse, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("name", ["rope", "alibi", "t5", "shaw", "transformer_xl", "cope", "xpos", "nope"])
@pytest.mark.parametrize("options", [{"window": (40, 0)}, {"chunk": 48}, {"window": (30, 0), "softcap": 2.0}], ids=str)
def test_blocks_give_what_the_whole_gives(name, options):
    """Several blocks of queries (64 each) against the reference, which computes all pairs and masks them."""
    encoding = posenc.laws.draw_parameters(posenc.create(name, d_model=32, n_heads=4, max_positions=512))
    n = 200
    q, k, v = (draw(1, 4, n, 8, seed=s, dtype=torch.float32) for s in range(3))
    at = encoding.prepare(Positions.arange(1, n))
    whole = attend(q, k, v, encoding, at, impl="reference", **options)
    torch.testing.assert_close(attend(q, k, v, encoding, at, **options), whole, rtol=2e-5, atol=2e-5)
    last = Positions.arange(1, 3, n - 3)
    some = attend(q[:, :, -3:], k, v, encoding, last, Positions.arange(1, n), **options)
    torch.testing.assert_close(some, whole[:, :, -3:], rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize(("options", "seen"), [({"window": (63, 0)}, 64), ({"chunk": 64}, 64)], ids=str)
def test_work_grows_with_the_window_and_not_with_the_length(options, seen):
    """Multiplications of a whole pass, and keys that one decoded token reads."""
    from torch.utils.flop_counter import FlopCounterMode

    def flops(n, **given):
        q, k, v = (draw(1, 2, n, 16, seed=s) for s in range(3))
        with FlopCounterMode(display=False) as counted:
            attend(q, k, v, posenc.create("alibi", n_heads=2), Positions.arange(1, n), softcap=9.0, **given)
        return counted.get_total_flops()

    once, twice = flops(1024, **options), flops(2048, **options)
    assert twice < 2.2 * once
    assert once < 0.35 * flops(1024)
    q, k, v = (draw(1, 2, 1 if s == 0 else 4096, 16, seed=s) for s in range(3))
    with FlopCounterMode(display=False) as counted:
        attend(
            q, k, v, posenc.create("nope"), Positions.arange(1, 1, 4095), Positions.arange(1, 4096), softcap=9.0, **options
        )
    assert counted.get_total_flops() == 2 * 2 * 2 * seen * 16


def test_keys_outside_a_window_are_not_read():
    """Poisoned keys and values outside of the window leave the output finite and unchanged."""
    q, k, v, at_q, at_k = world(3, 200, 197)
    encoding = posenc.create("alibi", n_heads=H)
    clean = attend(q, k, v, encoding, at_q, at_k, window=(20, 0))
    k[:, :, :150], v[:, :, :150] = math.nan, math.nan
    torch.testing.assert_close(attend(q, k, v, encoding, at_q, at_k, window=(20, 0)), clean, rtol=0, atol=0)


def test_dropout_drops_that_share_and_keeps_the_mean():
    encoding, at = posenc.create("nope"), Positions.arange(1, 64)
    q, k = torch.zeros(1, 1, 64, 8), torch.zeros(1, 1, 64, 8)
    v = torch.eye(64)[None, None]  # the output is the matrix of probabilities
    for impl in ("reference", "sdpa"):
        torch.manual_seed(0)
        probs = torch.stack([attend(q, k, v, encoding, at, dropout=0.25, causal=False, impl=impl)[0, 0] for _ in range(20)])
        kept = probs[probs > 0]
        torch.testing.assert_close(kept, torch.full_like(kept, 1 / 64 / 0.75))
        assert abs(float((probs == 0).double().mean()) - 0.25) < 0.01
    assert torch.equal(attend(q, k, v, encoding, at, dropout=0.0), attend(q, k, v, encoding, at))


def test_merging_two_ranges_of_keys_by_their_log_sum_exp_is_the_whole():
    q, k, v, at, _ = world(12)
    encoding = posenc.create("alibi", n_heads=H)
    whole, total = attend(q, k, v, encoding, at, causal=False, return_lse=True)
    near, far = torch.zeros(1, 1, 12, 12, dtype=torch.bool), torch.ones(1, 1, 12, 12, dtype=torch.bool)
    near[..., :5], far[..., :5] = True, False
    parts = [attend(q, k, v, encoding, at, causal=False, mask=mask, return_lse=True) for mask in (near, far)]
    merged = sum(out * (lse - total).exp()[..., None] for out, lse in parts)
    torch.testing.assert_close(merged, whole, rtol=1e-12, atol=1e-12)


def test_gradients_of_sinks_masks_and_scaled_logits():
    q, k, v, at, _ = world(5)
    encoding = posenc.create("alibi", n_heads=H)
    sinks, mask = draw(H).requires_grad_(), draw(1, H, 5, 5).requires_grad_()
    q, k, v = (x.requires_grad_() for x in (q, k, v))

    def call(q, k, v, sinks, mask):
        return attend(q, k, v, encoding, at, sinks=sinks, mask=mask, softcap=1.0, window=(3, 0), impl="reference")

    assert torch.autograd.gradcheck(call, (q, k, v, sinks, mask), fast_mode=True)


WRONG = [
    ({"mask": [[1]]}, TypeError, "mask: expected a tensor"),
    ({"mask": torch.ones(1, 1, 9, 9, dtype=torch.int64)}, TypeError, "mask: expected bool"),
    ({"mask": torch.ones(2, 9, dtype=torch.bool)}, ValueError, "mask: .*Positions.from_mask"),
    ({"mask": torch.ones(1, 1, 8, 9, dtype=torch.bool)}, ValueError, "mask: expected 4 axes"),
    ({"scale": 0.0}, ValueError, "scale: expected a positive number, got 0.0"),
    ({"scale": math.nan}, ValueError, "scale: "),
    ({"scale": "a"}, ValueError, "scale: "),
    ({"window": 4}, ValueError, r"window: expected \(left, right\)"),
    ({"window": (-1, 0)}, ValueError, "window: "),
    ({"window": (True, 0)}, ValueError, "window: "),
    ({"window": (1, 2, 3)}, ValueError, "window: "),
    ({"chunk": 0}, ValueError, "chunk: expected a whole number from 1, got 0"),
    ({"chunk": 2.0}, ValueError, "chunk: "),
    ({"softcap": -1}, ValueError, "softcap: expected a positive number"),
    ({"sinks": [1.0]}, TypeError, "sinks: expected a tensor"),
    ({"sinks": torch.zeros(3)}, ValueError, "sinks: expected one floating number for each of 4 query heads"),
    ({"sinks": torch.zeros(4, dtype=torch.int64)}, ValueError, "sinks: "),
    ({"dropout": 1.0}, ValueError, "dropout: expected a probability"),
    ({"dropout": -0.1}, ValueError, "dropout: "),
    ({"dropout": None}, ValueError, "dropout: "),
    ({"return_lse": "yes"}, TypeError, "return_lse: expected True or False"),
]


@pytest.mark.parametrize(("options", "error", "said"), WRONG, ids=lambda value: str(value)[:30])
@pytest.mark.parametrize("function", [attend, attend_rotated], ids=["attend", "attend_rotated"])
def test_wrong_options_are_refused_by_name(function, options, error, said):
    q, k, v, at, _ = world()
    with pytest.raises(error, match=said):
        function(q, k, v, posenc.create("nope"), at, at, **options)


@pytest.mark.parametrize("impl", BACKENDS)
def test_a_backend_asked_for_by_name_refuses_options_that_it_lacks(impl):
    q, k, v, at, _ = world()
    q, k, v = q.float(), k.float(), v.float()
    encoding = posenc.create("shaw", d_head=D) if impl == "relative" else posenc.create("alibi", n_heads=H)
    every = {
        "mask": torch.ones(1, 1, 9, 9, dtype=torch.bool),
        "scale": 1.0,
        "window": (2, 0),
        "chunk": 4,
        "softcap": 1.0,
        "sinks": torch.zeros(H),
        "dropout": 0.1,
        "return_lse": True,
    }
    for name, value in every.items():
        if name not in BACKENDS[impl].OPTIONS:
            with pytest.raises(ValueError, match=f"impl='{impl}' cannot express .*: it does not serve {name}; use impl="):
                attend(q, k, v, encoding, at, impl=impl, **{name: value})


def test_a_stack_takes_options_too():
    stack = Stack(posenc.create("rope", d_head=D), posenc.create("alibi", n_heads=H))
    q, k, v, at, _ = world()
    expected = attend(q, k, v, stack, at, impl="reference", window=(4, 0), softcap=3.0)
    torch.testing.assert_close(attend(q, k, v, stack, at, window=(4, 0), softcap=3.0), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("start", [0, 37])
@pytest.mark.parametrize(
    "given",
    [{"window": (40, 0)}, {"window": (20, 30)}, {"chunk": 64}, {"chunk": 48}, {"window": (70, 5), "chunk": 96}],
    ids=str,
)
def test_a_block_is_given_the_keys_that_it_may_see_and_no_others(given, start, causal):
    """The range of keys of every block of queries is the smallest that holds all pairs of a loop."""
    n, (left, right), chunk = 300, given.get("window", (None, None)), given.get("chunk")
    at = Positions.arange(2, n, start)
    q = torch.zeros(2, 1, n, 1)
    options = Options(window=given.get("window"), chunk=chunk)
    cut = windows.ranges_of(Call.of(q, q, q, NoPE(), at, at, causal, options))
    assert [queries.start for queries, _ in cut] == [0, *(queries.stop for queries, _ in cut[:-1])]
    for queries, keys in cut:
        seen = [
            j
            for i in range(queries.start, queries.stop)
            for j in range(n)
            if (not causal or j <= i)
            and (left is None or i - j <= left)
            and (right is None or j - i <= right)
            and (chunk is None or (start + i) // chunk == (start + j) // chunk)
        ]
        assert (keys.start, keys.stop) == (min(seen), max(seen) + 1)


def test_dropout_in_a_long_row_under_a_bias_is_not_forgotten():
    """Blocks of queries, which such a row is cut into, have none."""
    q = torch.randn(1, 2, 600, 8)
    out = attend(
        q, q, torch.ones_like(q), posenc.create("alibi", n_heads=2), Positions.arange(1, 600), dropout=0.9, impl="sdpa"
    )
    assert out.std() > 0.1  # without dropout every entry is 1
