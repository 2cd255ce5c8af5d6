"""Self-Extend, ReRoPE, LM-Infinite, dual chunks and STRING: every pair's distance by hand, and a rotation by that distance.

Jin et al. 2024, section 3; Su 2023; Han et al. 2024, section 4; An et al. 2024, section 3, and An et al. 2024b, figure 5.
"""

import numpy as np
import pytest
import torch

from posenc import Attention, Positions, attend
from posenc.checking import laws
from posenc.encodings.dual_chunk import DualChunk
from posenc.encodings.lm_infinite import LMInfinite
from posenc.encodings.rerope import ReRoPE
from posenc.encodings.rope import RoPE
from posenc.encodings.self_extend import SelfExtend
from posenc.encodings.shifted_rope import ShiftedRoPE
from sampling import a_third

from .by_hand import attention, close, draw, each, sees, turned

D, N = 6, 23


def self_extended(i, j, group=3, window=7):
    return i - j if i - j < window else i // group + window - window // group - j // group


def rectified(i, j, window=5):
    return min(i - j, window)


def leaky(i, j, window=5, leak=4.0):
    return i - j if i - j < window else window + (i - j - window) / leak


def infinite(i, j, near=6, starting=2, ceiling=4):
    return i - j if i - j < near else ceiling if j < starting else None


def dual(i, j, context=9, chunk=6):
    """The paper's three cases by the position that each side takes."""
    back = i // chunk - j // chunk
    query = [i % chunk, min(i % chunk + chunk, context - 1), context - 1][min(back, 2)]
    return query - j % chunk


def shifted(i, j, shift=8, local=3):
    return i - j if i - j < shift else i - j - shift + local


METHODS = {
    "self_extend": (lambda **o: SelfExtend(D, group=3, window=7, **o), self_extended),
    "rerope": (lambda **o: ReRoPE(D, window=5, **o), rectified),
    "leaky": (lambda **o: ReRoPE(D, window=5, leak=4.0, **o), leaky),
    "lm_infinite": (lambda **o: LMInfinite(D, near=6, starting=2, ceiling=4, **o), infinite),
    "dual_chunk": (lambda **o: DualChunk(D, trained_length=9, chunk=6, **o), dual),
    "shifted_rope": (lambda **o: ShiftedRoPE(D, shift=8, local=3, **o), shifted),
}


def expected(q, k, v, at_q, at_k, distance, layout="interleaved", base=10000.0):
    """R(distance)q · k for every pair that may see each other."""
    omega = [base ** (-2 * n / D) for n in range(D // 2)]
    share, logits = q.shape[1] // k.shape[1], np.zeros((*q.shape[:3], k.shape[2]))
    may = sees([at_q] * len(q), [at_k] * len(q))
    for b, h, i, j in each(*logits.shape):
        if may(b, i, j) and (far := distance(at_q[i], at_k[j])) is not None:
            angles = [far * one for one in omega]
            logits[b, h, i, j] = turned(q[b, h, i], angles, layout) @ k[b, h // share, j] / np.sqrt(D)
    return attention(logits, v, lambda b, i, j: may(b, i, j) and distance(at_q[i], at_k[j]) is not None)


@pytest.mark.parametrize("layout", ["interleaved", "half"])
@pytest.mark.parametrize("impl", ["reference", "sdpa", "auto"])
@pytest.mark.parametrize("name", METHODS)
def test_every_pair_by_its_distance(name, impl, layout):
    make, distance = METHODS[name]
    q, k, v = draw(1, 2, 4, N, D), draw(2, 2, 2, N, D), draw(3, 2, 2, N, D)
    got = attend(*map(torch.from_numpy, (q, k, v)), make(layout=layout), Positions.arange(2, N), impl=impl)
    close(got, expected(q, k, v, range(N), range(N), distance, layout))


@pytest.mark.parametrize("name", METHODS)
def test_elsewhere_and_with_other_frequencies(name):
    make, distance = METHODS[name]
    at_q, at_k = [9, 30, 31, 107], [0, 1, 7, 8, 25, 29, 30, 100]
    q, k, v = draw(1, 1, 2, 4, D), draw(2, 1, 2, 8, D), draw(3, 1, 2, 8, D)
    order = (Positions(*[torch.tensor([one])] * 2, torch.zeros(1, len(one), dtype=torch.long)) for one in (at_q, at_k))
    got = attend(*map(torch.from_numpy, (q, k, v)), make(base=50.0, layout="interleaved"), *order)
    close(got, expected(q, k, v, at_q, at_k, distance, base=50.0))


BROKEN = {
    "self_extend": lambda i, j: i - j if i - j < 7 else i // 3 + 7 - j // 3,
    "rerope": lambda i, j: min(i - j, 6),
    "leaky": lambda i, j: i - j if i - j < 5 else (i - j) / 4,
    "lm_infinite": lambda i, j: i - j if i - j < 6 else 6 if j < 2 else None,
    "dual_chunk": lambda i, j: min(dual(i, j, context=10), 9),
    "shifted_rope": lambda i, j: i - j if i - j < 8 else i - j - 8,
}


@pytest.mark.parametrize("name", METHODS)
def test_the_oracle_sees_a_broken_formula(name):
    q, k, v = (draw(seed, 1, 2, N, D) for seed in (1, 2, 3))
    got = attend(*map(torch.from_numpy, (q, k, v)), METHODS[name][0](layout="interleaved"), Positions.arange(1, N))
    with pytest.raises(AssertionError):
        close(got, expected(q, k, v, range(N), range(N), BROKEN[name]), atol=1e-3)


@pytest.mark.parametrize(
    "whole",
    [
        SelfExtend(D, window=N),
        ReRoPE(D, window=N),
        ReRoPE(D, window=2, leak=1.0),
        LMInfinite(D, near=N),
        DualChunk(D, trained_length=N + 1, chunk=N),
        ShiftedRoPE(D, shift=N, local=0),
    ],
    ids=lambda one: type(one).__name__,
)
def test_a_window_as_large_as_the_input_is_rope(whole):
    q, k, v = (torch.from_numpy(draw(seed, 1, 2, N, D)) for seed in (1, 2, 3))
    at = Positions.arange(1, N)
    close(attend(q, k, v, whole, at), attend(q, k, v, RoPE(D, layout=whole.layout), at))


@pytest.mark.parametrize("name", METHODS)
def test_no_distance_is_larger_than_promised(name):
    _, distance = METHODS[name]
    largest = max(far for i in range(60) for j in range(i + 1) if (far := distance(i, j)) is not None)
    promised = {"self_extend": 59 // 3 + 7 - 7 // 3, "leaky": 5 + 54 / 4, "rerope": 5, "lm_infinite": 5, "shifted_rope": 54}
    assert largest <= promised.get(name, 8)


def test_the_matrix_of_the_papers_figure():
    """Nine tokens, an offset of 3, and a W of 2: the distances 6, 7 and 8 are gone, and 0 … 5 begin again at 3."""
    encoding = ShiftedRoPE(D, shift=3, local=2)
    assert [shifted(8, j, 3, 2) for j in range(8, -1, -1)] == [0, 1, 2, 2, 3, 4, 5, 6, 7]
    (far,) = encoding._regions(torch.tensor([[8]]), torch.arange(9)[None])
    assert far.key is None
    assert (far.query[:, :, None] - torch.arange(9)).tolist() == [[[7, 6, 5, 4, 3, 2, 1, 0, -1]]]
    assert far.pairs.tolist() == [[[True] * 6 + [False] * 3]]
    with pytest.raises(ValueError, match="local: expected a number up to shift=3, got 4"):
        ShiftedRoPE(D, shift=3, local=4)


def test_chunkllama_on_a_model_of_4096():
    """Its own numbers: chunks of 3072 - 256, and positions that are clamped to 3072."""
    code = DualChunk(D, trained_length=3073, chunk=3072 - 256)
    query, key = torch.tensor([[9000]]), torch.tensor([[3000, 6000]])
    successive, inter = code._regions(query, key)
    assert (successive.pairs.tolist(), inter.pairs.tolist()) == ([[[False, True]]], [[[True, False]]])
    assert successive.query.item() == min(9000 % 2816 + 2816, 3072)
    assert inter.query.item() == 3072
    assert successive.key.tolist() == [[3000 % 2816, 6000 % 2816]]
    assert DualChunk(D).chunk == 3072


@pytest.mark.parametrize("name", a_third(METHODS))
def test_laws(name):
    encoding = METHODS[name][0]() if name in ("leaky", "dual_chunk", "shifted_rope") else None
    if encoding is None:
        encoding = {
            "self_extend": SelfExtend(8, group=2, window=4),
            "rerope": ReRoPE(8, window=4),
            "lm_infinite": LMInfinite(8, near=4, starting=2),
        }[name]
        setting = laws.Setting()
    else:
        setting = laws.Setting(d_model=24)
    quick = [law for law in laws.LAWS if law not in ("one_graph_over_lengths", "transforms", "checkpointed_equals_plain")]
    laws.check(encoding, setting, quick)


@pytest.mark.parametrize("name", METHODS)
def test_decoding_is_the_prefill(name):
    layer = Attention(24, 4, METHODS[name][0](), n_kv_heads=2).double()
    x, cache, outputs = torch.from_numpy(draw(4, 2, N, 24)), None, []
    for begin, end in ((0, 11), (11, 12), (12, N)):
        out, cache = layer.decode(x[:, begin:end], Positions.arange(2, end - begin, begin), cache)
        outputs.append(out)
    close(torch.cat(outputs, dim=1), layer(x, Positions.arange(2, N)).detach())


def test_a_scale_or_cap_of_the_call_is_refused():
    """They would act on the product that is taken back."""
    q, at = torch.zeros(1, 2, 4, D), Positions.arange(1, 4)
    for options in ({"scale": 0.5}, {"softcap": 30.0}):
        with pytest.raises(ValueError, match=r"scale, softcap: ReRoPE.* puts another product in the place of q·k"):
            attend(q, q, q, ReRoPE(D), at, **options)


def test_wrong_arguments():
    of_infinite = ({"near": 0}, {"ceiling": 0})
    for kind, options in ((SelfExtend, {"group": 0}), (ReRoPE, {"window": 0}), *((LMInfinite, one) for one in of_infinite)):
        with pytest.raises(ValueError, match=rf"{next(iter(options))}: expected a whole number from 1, got 0"):
            kind(D, **options)
    with pytest.raises(ValueError, match="chunk: expected fewer positions than trained_length=8, got 8"):
        DualChunk(D, trained_length=8, chunk=8)
    with pytest.raises(ValueError, match="leak: expected a positive number, got 0"):
        ReRoPE(D, leak=0)
    with pytest.raises(ValueError, match=r"SelfExtend.* is defined for causal attention only"):
        attend(*[torch.zeros(1, 2, 4, D)] * 3, SelfExtend(D), Positions.arange(1, 4), causal=False)
