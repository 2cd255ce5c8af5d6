"""Sinusoidal positions against the formula by loops, published rows and exact angles. Vaswani et al. 2017, section 3.5."""

import math

import numpy as np
import pytest
import torch

from posenc import Positions, create, sinusoidal_table
from posenc.encodings.sinusoidal import Sinusoidal

from .by_hand import close, draw, exact_angle, half_ulp


def row(position: float, d: int, base: float = 10000.0, layout="interleaved", denominator="d/2") -> list[float]:
    """PE(position), channel by channel: an odd width has ⌈d/2⌉ frequencies and drops the last cosine."""
    n = math.ceil(d / 2)
    sines, cosines = [], []
    for i in range(n):
        exponent = 2 * i / d if denominator == "d/2" else (i / (n - 1) if n > 1 else 0.0)
        sines.append(math.sin(position / base**exponent))
        cosines.append(math.cos(position / base**exponent))
    if layout == "sin_cos":
        return sines + cosines[: d // 2]
    if layout == "cos_sin":
        return cosines[: d // 2] + sines
    return [value for pair in zip(sines, cosines, strict=True) for value in pair][:d]


def table(positions, d: int, **options) -> np.ndarray:
    return np.array([[row(p, d, **options) for p in of_row] for of_row in positions])


def encoded(encoding: Sinusoidal, at: Positions, dtype=torch.float64) -> np.ndarray:
    batch = at.batch
    return encoding.embed(torch.zeros(batch, at.length, encoding.d_model, dtype=dtype), at).double().numpy()


def test_published_rows_S1():
    """d=8 and d=4 at position 2; base 100, d=4 at positions 0, 1, 2."""
    eight = [0.9093, -0.4161, 0.1987, 0.9801, 0.0200, 0.9998, 0.0020, 1.0000]
    np.testing.assert_array_equal(sinusoidal_table(3, 8, dtype=torch.float64)[2].numpy().round(4), eight)
    four = [0.9093, -0.4161, 0.0200, 0.9998]
    np.testing.assert_array_equal(sinusoidal_table(3, 4, dtype=torch.float64)[2].numpy().round(4), four)
    hundred = [[0, 1, 0, 1], [0.8415, 0.5403, 0.0998, 0.9950], [0.9093, -0.4161, 0.1987, 0.9801]]
    np.testing.assert_array_equal(sinusoidal_table(3, 4, base=100.0, dtype=torch.float64).numpy().round(4), hundred)


def test_worked_sums_S14():
    """猫 吃 鱼 with base 100; the note's own embeddings and sums."""
    words = np.array([[0.5, 0.2, -0.1, 0.3], [0.3, -0.4, 0.6, 0.1], [-0.2, 0.7, 0.4, -0.5]])
    sums = [[0.5, 1.2, -0.1, 1.3], [1.1415, 0.1403, 0.6998, 1.0950], [0.7093, 0.2839, 0.5987, 0.4801]]
    out = Sinusoidal(4, base=100.0).embed(torch.from_numpy(words)[None], Positions.arange(1, 3))
    close(out[0].numpy(), sums, atol=5.1e-5)


@pytest.mark.parametrize("layout", ["interleaved", "sin_cos", "cos_sin"])
@pytest.mark.parametrize("denominator", ["d/2", "d/2-1"])
@pytest.mark.parametrize("d", range(1, 10))
def test_every_layout_denominator_and_width_J3(d, denominator, layout):
    options = {"layout": layout, "denominator": denominator, "base": 500.0}
    encoding = Sinusoidal(d, **options)
    starts = [3, 1000]
    rows = [range(start, start + 5) for start in starts]
    together = encoded(encoding, Positions.arange(2, 5, torch.tensor(starts)))
    close(together, table(rows, d, **options))
    scattered = [[7, 2, 2, 900, -4], [0, 1, 5000, 33, 8]]
    one_by_one = encoded(encoding, Positions.at(torch.tensor(scattered)))
    close(one_by_one, table(scattered, d, **options))


@pytest.mark.parametrize("offset", [2, -3, 0.5])
def test_offset_moves_every_position(offset):
    encoding = Sinusoidal(6, offset=offset)
    expected = table([[p + offset for p in range(4, 9)]], 6)
    close(encoded(encoding, Positions.arange(1, 5, 4)), expected)
    close(encoded(encoding, Positions.at(torch.arange(4, 9)[None])), expected)


def test_real_positions():
    positions = [[0.25, -1.5, 3.14159, 1e5 + 0.125]]
    got = encoded(Sinusoidal(8), Positions.at(torch.tensor(positions, dtype=torch.float64)))
    close(got, table(positions, 8), atol=1e-11)


@pytest.mark.parametrize("layout", ["interleaved", "sin_cos", "cos_sin"])
@pytest.mark.parametrize("each_width", [6, 3])
def test_two_axes_share_the_channels_first_axis_first(each_width, layout):
    """Also where the width of an axis is odd and drops its last cosine."""
    y, x = [0, 5, 2, 9], [7, 1, 2, 0]
    at = Positions.at(torch.tensor([list(zip(y, x, strict=True))]))
    got = encoded(Sinusoidal(2 * each_width, axes=2, layout=layout), at)
    expected = np.concatenate([table([y], each_width, layout=layout), table([x], each_width, layout=layout)], axis=-1)
    close(got, expected)


def test_added_to_the_embeddings_row_by_row():
    x, positions = draw(1, 2, 3, 6), [[5, 1, 8], [0, 40, 2]]
    got = Sinusoidal(6).embed(torch.from_numpy(x), Positions.at(torch.tensor(positions)))
    close(got.numpy(), x + table(positions, 6))


@pytest.mark.parametrize("start", [0, 131071, 1_000_000 - 8191])
def test_fp32_table_is_one_rounding_from_fp64(start):
    """[8192, 1024]: at most 3.1e-8 from fp64 up to position 1 000 000."""
    omega = np.array([10000.0 ** (-2 * i / 1024) for i in range(512)])
    angle = np.arange(start, start + 8192, dtype=np.float64)[:, None] * omega
    got = sinusoidal_table(8192, 1024, start=start)
    assert got.dtype == torch.float32
    got = got.numpy()
    assert np.abs(got[:, 0::2] - np.sin(angle)).max() <= 3.1e-8
    assert np.abs(got[:, 1::2] - np.cos(angle)).max() <= 3.1e-8


@pytest.mark.parametrize("position", [40, 2000, 16_000, 131_071, 999_999, 1_000_000])
def test_exact_angles_to_a_million_A8(position):
    """Against angles reduced modulo 2π in 40 decimals, consecutive and one by one."""
    d = 32
    angles = [exact_angle(position, 10000, 2 * i, d) for i in range(d // 2)]
    exact = np.array([value for angle in angles for value in (math.sin(angle), math.cos(angle))])
    run = sinusoidal_table(130, d, start=position - 129)[129]
    alone = Sinusoidal(d).embed(torch.zeros(1, 1, d), Positions.at(torch.tensor([[position]])))[0, 0]
    for got in (run, alone):
        assert np.abs(got.double().numpy() - exact).max() <= 3.1e-8
    for got in (
        sinusoidal_table(130, d, start=position - 129, dtype=torch.float64)[129],
        encoded(Sinusoidal(d), Positions.at(torch.tensor([[position]])))[0, 0],
    ):
        assert np.abs(np.asarray(got) - exact).max() <= 3e-10


@pytest.mark.parametrize(("dtype", "bits"), [(torch.bfloat16, 8), (torch.float16, 11), (torch.float32, 24)])
def test_tables_round_once(dtype, bits):
    exact = table([range(500, 800)], 16)[0]
    got = sinusoidal_table(300, 16, start=500, dtype=dtype).double().numpy()
    assert (np.abs(got - exact) <= half_ulp(exact, bits) * (1 + 2**-12) + 2**-26).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_rows_are_distinct_A1(dtype):
    """Tables rounded once keep every row apart for d >= 4; only d=2 repeats, 287 and 198 times in 1024 rows (S13)."""
    for d in (4, 8, 64):
        assert len(torch.unique(sinusoidal_table(4096, d, dtype=dtype), dim=0)) == 4096
    repeats = 1024 - len(torch.unique(sinusoidal_table(1024, 2, dtype=dtype), dim=0))
    assert repeats == {torch.float32: 0, torch.bfloat16: 287, torch.float16: 198}[dtype]


@pytest.mark.parametrize(("d", "distance", "lag"), [(2, 6.03e-5, 710), (4, 0.0444, 1885), (8, 0.645, 63), (512, 3.714, 1)])
def test_smallest_distance_between_rows_S13(d, distance, lag):
    """|PE(p) - PE(p+k)| depends on k only, so row 0 against all others decides."""
    rows = sinusoidal_table(4096, d, dtype=torch.float64).numpy()
    away = np.sqrt(((rows[1:] - rows[0]) ** 2).sum(axis=1))
    assert away.argmin() + 1 == lag
    assert float(f"{away.min():.3g}") == distance or round(away.min(), 3) == distance


def test_shifting_is_a_rotation_of_each_pair_S11():
    """PE(p+k) = M_k·PE(p) with blocks [[cos, sin], [-sin, cos]] on (sin, cos)."""
    k, d = 17, 8
    before, after = (sinusoidal_table(5, d, start=start, dtype=torch.float64).numpy() for start in (10, 10 + k))
    for i in range(d // 2):
        angle = k * 10000.0 ** (-2 * i / d)
        sine, cosine = before[:, 2 * i], before[:, 2 * i + 1]
        close(after[:, 2 * i], math.cos(angle) * sine + math.sin(angle) * cosine)
        close(after[:, 2 * i + 1], -math.sin(angle) * sine + math.cos(angle) * cosine)


def test_moments_of_the_square_table():
    """[512, 512]: mean .267, variance .429, mean square ½; every row has length √(d/2)."""
    values = sinusoidal_table(512, 512, dtype=torch.float64)
    assert round(values.mean().item(), 3) == 0.267
    assert round(values.var(correction=0).item(), 3) == 0.429
    close(values.norm(dim=1), np.full(512, 16.0))


def test_acts_at_the_first_layer_only():
    encoding, x, at = Sinusoidal(4), torch.zeros(1, 2, 4), Positions.arange(1, 2)
    assert encoding.at_layer(0) is encoding
    assert torch.equal(encoding.at_layer(1).embed(x, at), x)


def test_defaults_are_those_of_the_paper():
    built = create("sinusoidal", d_model=6, n_heads=2)
    close(encoded(built, Positions.arange(1, 3)), table([range(3)], 6))
    assert sinusoidal_table(2, 3).dtype == torch.float32
    assert sinusoidal_table(2, 3).shape == (2, 3)


def test_wrong_arguments():
    with pytest.raises(ValueError, match=r"layout: expected one of .*half"):
        Sinusoidal(8, layout="half")
    with pytest.raises(ValueError, match="denominator: expected one of"):
        Sinusoidal(8, denominator="d")
    with pytest.raises(ValueError, match="axes: 8 channels cannot be shared evenly by 3"):
        Sinusoidal(8, axes=3)
    with pytest.raises(ValueError, match="length: expected a whole number from 1"):
        sinusoidal_table(0, 4)
    with pytest.raises(TypeError, match="dtype: expected a floating dtype"):
        sinusoidal_table(2, 4, dtype=torch.int64)
    with pytest.raises(ValueError, match="built for d_model=8, got a tensor with 6"):
        Sinusoidal(8).embed(torch.zeros(1, 2, 6), Positions.arange(1, 2))
    with pytest.raises(ValueError, match=r"reads 1 coordinate\(s\) per token"):
        Sinusoidal(8).embed(torch.zeros(1, 4, 8), Positions.grid(2, 2))
    with pytest.raises(ValueError, match=r"reads 2 coordinate\(s\) per token"):
        Sinusoidal(8, axes=2).embed(torch.zeros(1, 4, 8), Positions.arange(1, 4))
