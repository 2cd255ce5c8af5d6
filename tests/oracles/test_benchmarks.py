"""The formulas that the benchmark judges by, computed here in another way: loops, complex numbers, definitions."""

import cmath
import math
from fractions import Fraction

import pytest
import torch
from bench import bars, gate, plan, timing, truth
from bench.cpu_contention import Contention
from bench.timing import Measured, Round


@pytest.mark.parametrize("layout", ["half", "interleaved"])
def test_rotation_is_a_complex_product(layout):
    x = torch.randn(2, 3, 4, 6, generator=torch.Generator().manual_seed(0))
    positions = torch.tensor([[0, 1, 7, 100], [5, 4, 3, 999]])
    for sign in (1, -1):
        got = truth.rotated(x, positions, layout, sign)
        assert got.dtype == torch.float64
        for b in range(2):
            for t in range(4):
                for pair in range(3):
                    first, second = (pair, pair + 3) if layout == "half" else (2 * pair, 2 * pair + 1)
                    turn = cmath.exp(1j * sign * int(positions[b, t]) / 10000 ** (2 * pair / 6))
                    for h in range(3):
                        z = complex(x[b, h, t, first].item(), x[b, h, t, second].item()) * turn
                        assert abs(got[b, h, t, first].item() - z.real) < 1e-12
                        assert abs(got[b, h, t, second].item() - z.imag) < 1e-12


def test_sinusoids():
    got = truth.sinusoids(5, 3, 4)
    for row, p in enumerate((5, 6, 7)):
        for c in range(4):
            angle = p / 10000 ** ((c - c % 2) / 4)
            assert got[row, c].item() == pytest.approx(math.cos(angle) if c % 2 else math.sin(angle), abs=1e-14)


def test_slopes_and_buckets():
    assert truth.slopes(8) == [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256]
    assert truth.slopes(16)[0] == pytest.approx(2**-0.5)

    def bucket(n):
        """The last m for which (n/16)^16 >= 8^m, in whole numbers."""
        n = max(n, 0)
        if n < 16:
            return n
        m = 0
        while m < 15 and Fraction(n, 16) ** 16 >= 8 ** (m + 1):
            m += 1
        return 16 + m

    distances = list(range(-3, 400))
    assert truth.bucket(torch.tensor(distances)).tolist() == [bucket(n) for n in distances]


def test_attention_by_loops():
    source = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(1, 5, 4, dtype=torch.float64, generator=source) for _ in range(3))
    may = torch.ones(5, 5).tril().bool()[None].clone()
    may[0, 3] = False
    rows = torch.tensor([0, 2, 3, 4])

    def term(logits, rows):
        return logits - 0.3 * (rows[:, None] - torch.arange(5)).double()

    got = truth.attention(q, k, v, term, may, rows, 0.5, lambda probs, rows: probs.sum(-1, keepdim=True) * 10)
    for row, i in enumerate(rows.tolist()):
        seen = [j for j in range(5) if may[0, i, j]]
        weights = [math.exp(float(q[0, i] @ k[0, j]) * 0.5 - 0.3 * (i - j)) for j in seen]
        for d in range(4):
            expected = (
                sum(w * v[0, j, d].item() for w, j in zip(weights, seen, strict=True)) / sum(weights) if seen else 0.0
            )
            assert got[0, row, d].item() == pytest.approx(expected + (10 if seen else 0), abs=1e-12)


def test_a_ratio_is_the_median_within_rounds():
    rounds = [Round({"ours": a, "floor": b}) for a, b in ((1.0, 2.0), (30.0, 10.0), (8.0, 2.0))]
    ratio = Measured(rounds, 0, False).ratio("ours", "floor")
    assert (ratio.low, ratio.median, ratio.high, ratio.count) == (1.75, 3.0, 3.5, 3)
    assert timing.spread([4.0]).median == 4.0


def test_others_share_of_the_cores():
    def calm(others):
        readings = iter([(10.0, 50.0, 3.0), (12.0, 50.0 + 1.5 + others, 4.5)])
        return Contention(lambda: next(readings), cores=4).undisturbed()

    assert calm(0.05 * 2 * 4 * 0.99)  # elapsed 2 s on 4 cores
    assert not calm(0.05 * 2 * 4 * 1.01)


def test_the_gate():
    exact = torch.tensor([[2.0, -3.0]], dtype=torch.float64)
    assert gate.largest_error(torch.tensor([[2.25, -3.5]]), exact) == 0.5
    assert gate.largest_error(torch.tensor([[math.nan, -3.0]]), exact) == math.inf
    assert gate.judge([exact + 1.0], [exact], [1.0]).passed
    assert not gate.judge([exact + 1.0], [exact], [0.99]).passed
    assert not gate.judge([], [exact], [1.0]).passed
    assert gate.rounding(torch.float32) == 2**-24
    assert gate.rounding(torch.bfloat16) == 2**-8


def test_limits_of_bars():
    def met(measure, got, case):
        speedup = {"a": {"median": 99.0}, "b": {"median": got}}
        row = {"name": "posenc", "status": "measured", "ratio": {"median": got}, "speedup": speedup, "peak_bytes": 7 + got}
        setting = {"device": "cpu", "threads": 1, "allocator": "large", "floor": {"peak_bytes": 7}}
        result = {"case": case.as_json(), "kind": "memory" if measure == "memory" else "time", **setting, "rows": [row]}
        return [one["met"] for one in bars.verdicts([result]) if one["measure"] == measure]

    alibi = next(case for case in plan.bias() if case.name == "ALiBi")
    assert (met("ratio", 1.15, alibi), met("ratio", 1.16, alibi)) == ([True], [False])
    table = plan.table()[0]
    assert (met("speedup", 5.0, table), met("speedup", 4.99, table)) == ([True], [False])
    assert (met("ratio", 2.0, table), met("ratio", 2.01, table)) == ([True], [False])
    allowed = 16 * 2**20 + 64 * 16 * 2048
    assert (met("memory", allowed, alibi), met("memory", allowed + 1, alibi)) == ([True], [False])


def test_what_is_moved():
    from bench.rope import build

    case = next(case for case in plan.rope() if case.name == "forward")
    assert build(case).moved == 2 * 4 * (32 + 8) * 2048 * 128  # read and written
    both = next(case for case in plan.rope() if (case.name, case.dtype) == ("forward + backward", "bfloat16"))
    assert build(both).moved == 2 * 2 * 2 * (32 + 8) * 2048 * 128
