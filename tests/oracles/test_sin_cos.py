"""Tables of sin and cos: blocks of consecutive positions and positions one by one, against the formula.

Everything runs twice: in the C++ kernels, where there are any, and in plain torch.
"""

import itertools
import math
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from cases import cases
from posenc import Positions, kernels
from posenc.encodings.rope import RoPE
from posenc.encodings.sinusoidal import Sinusoidal
from posenc.frequencies import Frequencies
from posenc.kernels.sin_cos import native, sin_cos, sin_cos_table
from posenc.kernels.sin_cos.text import floats, integers, written

from .by_hand import close

NATIVE = kernels.library() is not None
FREQUENCIES = [1.0, 0.37, 0.01]


def expected(rows, frequencies=FREQUENCIES) -> np.ndarray:
    return np.array([[[(math.sin(p * f), math.cos(p * f)) for f in frequencies] for p in row] for row in rows])


def text(numbers) -> str:
    return ",".join(repr(one) for one in numbers)


def computed(coords, frequencies, axes, dtype, in_a_row, apart):
    """(sin, cos) in the last axis, by either operator."""
    arguments = coords, text(frequencies), text(axes), dtype, in_a_row
    return torch.stack(torch.ops.posenc.sin_cos(*arguments), -1) if apart else torch.ops.posenc.sin_cos_table(*arguments)


def consecutive(starts, length, frequencies, dtype, apart=False):
    coords = starts[:, None] + torch.arange(length, device=starts.device)
    return computed(coords, frequencies, (), dtype, True, apart)


def anywhere(coords, frequencies, dtype, apart=False, axes=()):
    return computed(coords, frequencies, axes, dtype, False, apart)


@pytest.fixture(autouse=True, params=["native", "plain"])
def way(request, monkeypatch):
    """The kernels, and what runs where there are none."""
    if request.param == "plain":
        monkeypatch.setattr(native, "functions", lambda: None)
    elif not NATIVE:
        pytest.skip(f"no kernels: {kernels.why_not()}")
    return request.param


WIDE = [10000.0 ** (-i / 512) for i in range(512)]  # so many frequencies that a block holds few positions


@cases("length", [1, 2, 31, 32, 33, 63, 64, 65, 133])
@cases("start", [0, -70, 4000])
def test_every_block_goes_on_where_the_last_one_ends(length, start):
    got = consecutive(torch.tensor([start, 5]), length, WIDE, torch.float64)
    angle = np.array([range(start, start + length), range(5, 5 + length)])[..., None] * np.array(WIDE)
    close(got, np.stack([np.sin(angle), np.cos(angle)], axis=-1), atol=4e-12)


def test_every_row_starts_where_it_says():
    starts = [5, 0, 1000]
    rows = [range(start, start + 70) for start in starts]
    close(consecutive(torch.tensor(starts), 70, FREQUENCIES, torch.float64), expected(rows))
    close(sin_cos_table(Positions.arange(3, 70, torch.tensor(starts)), [FREQUENCIES], torch.float64), expected(rows))
    close(sin_cos_table(Positions.arange(3, 70, 9), [FREQUENCIES], torch.float64), expected([range(9, 79)] * 3))
    shifted = Positions.arange(3, 70, torch.tensor(starts)).shift(torch.tensor([1, 20, -3]))
    moved = [range(start + by, start + by + 70) for start, by in zip(starts, (1, 20, -3), strict=True)]
    close(sin_cos_table(shifted, [FREQUENCIES], torch.float64), expected(moved))


@pytest.mark.parametrize("start", [2**24 + 1, -(2**24) - 3, 2**31 + 1])
def test_runs_that_start_where_fp32_has_no_odd_numbers(start):
    """Starts are exact to fp64: fp32 would move the whole run by one position."""
    got = consecutive(torch.tensor([start, 1]), 70, FREQUENCIES, torch.float64)
    close(got, expected([range(start, start + 70), range(1, 71)]), atol=1e-6)
    direct = sin_cos_table(Positions.arange(1, 70, start), [FREQUENCIES], torch.float64)
    close(direct, expected([range(start, start + 70)]), atol=1e-6)


def test_real_shift_of_consecutive_positions():
    """Still counting up by one, but from 0.5: not the blocks of whole positions."""
    at = Positions.arange(1, 5).shift(0.5)
    close(sin_cos_table(at, [FREQUENCIES], torch.float64), expected([[0.5, 1.5, 2.5, 3.5, 4.5]]))


def test_positions_one_by_one():
    rows = [[3, -8, 3, 700.5], [0, 1, 2, 3]]
    close(anywhere(torch.tensor(rows, dtype=torch.float64), FREQUENCIES, torch.float64), expected(rows))
    close(sin_cos_table(Positions.at(torch.tensor(rows)), [FREQUENCIES], torch.float64), expected(rows))


def test_positions_in_16_bits_are_not_rounded_again():
    """Integers of any width are exact; reals are what they are."""
    for dtype in (torch.int16, torch.int32):
        got = sin_cos_table(Positions.at(torch.tensor([[30_001, 257]], dtype=dtype)), [FREQUENCIES], torch.float64)
        close(got, expected([[30_001, 257]]))
    got = anywhere(torch.tensor([[0.1]], dtype=torch.float16), FREQUENCIES, torch.float64)
    close(got, expected([[float(np.float16(0.1))]]))


def test_axes_stand_one_after_the_other():
    coords = [[[3, 10], [0, 7]]]
    got = sin_cos_table(Positions.at(torch.tensor(coords)), [[1.0, 0.5], [0.1]], torch.float64)
    both = np.concatenate([expected([[3, 0]], [1.0, 0.5]), expected([[10, 7]], [0.1])], axis=2)
    close(got, both)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_asked_dtype_comes_back(dtype):
    assert consecutive(torch.tensor([2]), 3, FREQUENCIES, dtype).dtype == dtype
    assert anywhere(torch.tensor([[2, 9]]), FREQUENCIES, dtype).dtype == dtype


def test_shapes_known_without_values():
    """The operators' fakes: what a compiler reads must be what eager code makes."""
    coords = torch.tensor([[1], [2], [3]]) + torch.arange(70)
    for operator in (torch.ops.posenc.sin_cos, torch.ops.posenc.sin_cos_table):
        for dtype, run in itertools.product((torch.float32, torch.float64), (True, False)):
            arguments = text(FREQUENCIES), "", dtype, run
            real = operator(coords, *arguments)
            with FakeTensorMode():
                fake = operator(torch.empty(3, 70, dtype=torch.int64), *arguments)
            meta = operator(coords.to("meta"), *arguments)
            for known in (fake, meta):
                for told, made in zip(tensors(known), tensors(real), strict=True):
                    assert made.is_contiguous()
                    assert (told.shape, told.dtype, told.stride()) == (made.shape, made.dtype, made.stride())


def tensors(result) -> tuple:
    return result if isinstance(result, tuple) else (result,)


def test_fp32_is_one_rounding_away():
    rows = [range(999_000, 999_200)]
    for at in (Positions.arange(1, 200, 999_000), Positions.at(torch.arange(999_000, 999_200)[None])):
        got = sin_cos_table(at, [FREQUENCIES], torch.float32)
        assert np.abs(got.double().numpy() - expected(rows)).max() <= 3.1e-8


# Accuracy, by the formula in fp64: numpy's sine of the same fp64 angle, and mpmath's of the exact product. --------------

HALF_A_PLACE = 2.0**-25  # of fp32 between 1/2 and 1: nothing rounds a sine by more
FP64_ANGLE = 2.0**-53  # relative: how far an angle moves where it is rounded to fp64


def formula(rows, frequencies) -> np.ndarray:
    angle = np.asarray(rows, dtype=np.float64)[..., None] * np.asarray(frequencies)
    return np.stack([np.sin(angle), np.cos(angle)], axis=-1)


def spread(n: int) -> list[float]:
    return [10000.0 ** (-i / n) for i in range(n)]


@cases("apart", [False, True])
@cases("n", [1, 3, 64, 512, 600])
@cases("length", [1, 2, 31, 32, 33, 63, 64, 65, 129, 257])
def test_consecutive_positions_by_the_formula(n, length, apart):
    starts = [0, 999_000, -70]
    rows = [range(start, start + length) for start in starts]
    for dtype, bound in ((torch.float32, 3.0e-8), (torch.float64, 0.0)):
        got = consecutive(torch.tensor(starts), length, spread(n), dtype, apart)
        assert got.shape == (3, length, n, 2)
        moved = 3 * FP64_ANGLE * np.abs(np.asarray(rows, dtype=np.float64)).max(axis=1)  # of start, of turn, of numpy's own
        assert np.all(
            np.abs(got.double().numpy() - formula(rows, spread(n))) <= (bound + 1e-15 + moved)[:, None, None, None]
        )


@pytest.mark.parametrize("n", [1, 64, 512])
def test_an_entry_does_not_know_how_many_follow(n, way):
    """In the kernels bit for bit; torch's own sine differs in the last bit between a full vector and what is left over."""
    long = consecutive(torch.tensor([5]), 300, spread(n), torch.float64)
    for length in (1, 2, 31, 64, 65, 299):
        short = consecutive(torch.tensor([5]), length, spread(n), torch.float64)
        assert (short - long[:, :length]).abs().max() <= (0 if way == "native" else 1e-15)


@cases("dtype", [torch.int64, torch.int32, torch.float64])
@cases("n", [1, 3, 64, 512, 600])
def test_arbitrary_positions_by_the_formula(n, dtype):
    rows = [
        [0, 1, -1, 2**31 - 1, -(2**31) + 1],
        [1_600_000, -1_600_001, 1_647_099, 1_647_100, 7],
        [22, 355, 710, 99, 10**9],
    ]
    coords = torch.tensor(rows, dtype=dtype)
    for kind, bound in ((torch.float64, 3e-16), (torch.float32, HALF_A_PLACE + 3e-16)):
        got = anywhere(coords, spread(n), kind)
        assert np.abs(got.double().numpy() - formula(rows, spread(n))).max() <= bound


def test_real_positions_by_the_formula():
    """Random ones of every magnitude to 1e9; tiny ones; and next to whole quarter turns, where digits cancel."""
    generator = np.random.default_rng(0)
    random = generator.standard_normal(4000) * 10.0 ** generator.uniform(-12, 9, 4000)
    quarters = np.arange(-1_000_000, 1_000_000, 997) * (math.pi / 2)
    for row in (random, quarters, np.nextafter(quarters, 1e9), np.array([0.0, 1e-300, 5e-324, -1e-20])):
        got = anywhere(torch.from_numpy(row)[None], [1.0, -0.37], torch.float64).numpy()
        assert np.abs(got - formula([row], [1.0, -0.37])).max() <= 3e-16


def test_against_many_digits():
    """mpmath at the exact product: what is left is the angle's rounding to fp64, and one rounding to fp32."""
    mpmath = pytest.importorskip("mpmath")
    mpmath.mp.prec = 200
    frequencies = spread(7)
    positions = [0, 1, 777, 131_071, 999_999, 1_000_000]
    placed = anywhere(torch.tensor([positions]), frequencies, torch.float32)[0]
    last = [consecutive(torch.tensor([p - 3]), 4, frequencies, torch.float32)[0, -1] for p in positions]
    for got in (placed, torch.stack(last)):
        for t, position in enumerate(positions):
            for i, frequency in enumerate(frequencies):
                angle = mpmath.mpf(position) * mpmath.mpf(frequency)
                for value, exact in zip(got[t, i].tolist(), (mpmath.sin(angle), mpmath.cos(angle)), strict=True):
                    assert abs(value - exact) <= HALF_A_PLACE + 3e-10


def test_infinite_and_missing_positions_give_nan():
    got = anywhere(torch.tensor([[math.nan, math.inf, -math.inf, 0.0]], dtype=torch.float64), FREQUENCIES, torch.float32)
    assert got[0, :3].isnan().all()
    assert not got[0, 3].isnan().any()


@pytest.mark.parametrize("apart", [False, True])
def test_every_frequency_reads_its_axis(apart):
    coords = torch.tensor([[[3, 10, -4], [0, 7, 1]]])
    for given in (coords, coords.double(), coords.to(torch.int16), coords.movedim(-1, 0).contiguous().movedim(0, -1)):
        got = anywhere(given, [1.0, 0.5, 0.1, 0.3], torch.float64, apart, axes=(2, 0, 1, 2))
        angle = [[-4 * 1.0, 3 * 0.5, 10 * 0.1, -4 * 0.3], [1 * 1.0, 0.0, 7 * 0.1, 1 * 0.3]]
        close(got, np.stack([np.sin(angle), np.cos(angle)], axis=-1)[None])


def test_positions_that_are_views():
    whole = torch.arange(60).view(3, 20)
    for coords in (whole[:, ::3], whole.T, whole[:1].expand(4, 20), whole[1:, 5:6]):
        close(anywhere(coords, FREQUENCIES, torch.float64), formula(coords.numpy(), FREQUENCIES))
    starts = torch.tensor([5, 0, 1000, 7])[::2]
    close(consecutive(starts, 3, FREQUENCIES, torch.float64), formula([[5, 6, 7], [1000, 1001, 1002]], FREQUENCIES))


def test_gradients_of_real_positions():
    coords = torch.tensor([[0.3, -2.0]], dtype=torch.float64, requires_grad=True)
    sin_cos_table(Positions.at(coords), [FREQUENCIES], torch.float64)[..., 0].sum().backward()
    slope = [sum(f * math.cos(p * f) for f in FREQUENCIES) for p in (0.3, -2.0)]
    close(coords.grad, np.array([slope]))


def test_derivatives_of_real_positions():
    """Forward mode, torch.func and vmap; the slope of sin is cos times the frequency."""
    from torch.autograd import forward_ad

    coords, rope = torch.tensor([[0.3, -2.0]], dtype=torch.float64), Frequencies(tuple(FREQUENCIES))
    slopes = np.array([[[f * math.cos(p * f) for f in FREQUENCIES] for p in (0.3, -2.0)]])
    for sines in (
        lambda coords: anywhere(coords, FREQUENCIES, torch.float64)[..., 0],
        lambda coords: sin_cos_table(Positions.at(coords), [FREQUENCIES], torch.float64)[..., 0],
        lambda coords: sin_cos(Positions.at(coords), rope, torch.float64)[0],
    ):
        ones = torch.ones_like(coords)
        close(torch.func.jvp(sines, (coords,), (ones,))[1], slopes)
        close(torch.func.grad(lambda coords: sines(coords).sum())(coords), slopes.sum(-1))  # noqa: B023
        with forward_ad.dual_level():
            close(forward_ad.unpack_dual(sines(forward_ad.make_dual(coords, ones))).tangent, slopes)
        for rows in (torch.tensor([[[0.3, 9.0]], [[1.0, -7.5]]], dtype=torch.float64), torch.tensor([[[3, 9]], [[1, 7]]])):
            close(torch.func.vmap(sines)(rows), np.stack([formula(row.numpy(), FREQUENCIES)[..., 0] for row in rows]))


def test_numbers_are_written_so_that_they_read_the_same():
    drawn = np.random.default_rng(1).standard_normal(500) * 10.0 ** np.random.default_rng(2).uniform(-300, 300, 500)
    values = (*drawn.tolist(), 0.0, 5e-324, 1.0, 1e22, -0.1)
    assert floats(written(values)) == values
    assert integers(written((2, 0, 1))) == (2, 0, 1)
    assert floats(written(())) == integers("") == ()


# The operators in a compiler. ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sin_cos", "sin_cos_table"])
def test_the_operators_are_proper_ones(name):
    tests = ("test_schema", "test_faketensor", "test_aot_dispatch_dynamic")
    operator, run = getattr(torch.ops.posenc, name).default, torch.tensor([[1], [5]]) + torch.arange(7)
    for coords, axes, dtype, in_a_row in (
        (run, "", torch.float32, True),
        (torch.tensor([[1, 5]]), "", torch.float32, False),
        (torch.rand(1, 3, 2), "1,0", torch.float64, False),
    ):
        torch.library.opcheck(operator, (coords, "1.0,0.5", axes, dtype, in_a_row), test_utils=tests)


def test_one_graph_over_lengths():
    graphs = []

    def counted(graph, inputs):
        graphs.append(graph)
        return graph.forward

    encodings = Sinusoidal(6), RoPE(6, axes=3)

    def tables(coords):
        ranged = encodings[0].tables(Positions.arange(1, coords.shape[1], 3), torch.float32)
        placed = encodings[0].tables(Positions.at(coords), torch.float32)
        of_axes = encodings[1].tables(Positions.at(coords[..., None].expand(-1, -1, 3)), torch.float32)
        return torch.cat([*ranged, *placed, *of_axes], dim=-1)

    compiled = torch.compile(tables, backend=counted, fullgraph=True, dynamic=True)
    for length in (7, 64, 65, 100):
        coords = torch.arange(length)[None] * 11
        assert torch.equal(compiled(coords), tables(coords))
    assert len(graphs) == 1


def test_exported():
    """The graph is plain torch; the frequencies, which the operator takes as text, are its one constant, in fp64."""

    class Tables(torch.nn.Module):
        def forward(self, coords):
            return sin_cos_table(Positions.at(coords), [FREQUENCIES], torch.float32)

    length = torch.export.Dim("length", min=2, max=4096)
    program = torch.export.export(Tables(), (torch.arange(9)[None],), dynamic_shapes=({1: length},))
    coords = torch.arange(30)[None]
    assert torch.equal(program.module()(coords), sin_cos_table(Positions.at(coords), [FREQUENCIES], torch.float32))
    called = [str(node.target) for node in program.graph.nodes if node.op == "call_function"]
    assert "aten.sin.default" in called
    assert not [target for target in called if "posenc" in target]
    (constant,) = program.constants.values()
    assert torch.equal(constant, torch.tensor(FREQUENCIES, dtype=torch.float64))
    assert not program.state_dict


def test_a_fake_first_call_leaves_nothing_fake_behind():
    """What is kept between calls are texts and C arrays: no mode and no device gets into them."""
    frequencies = [0.123, 0.0456]
    with FakeTensorMode(), torch.inference_mode():
        sin_cos_table(Positions.at(torch.empty(1, 3)), [frequencies], torch.float32)
    with torch.device("meta"):
        sin_cos_table(Positions.at(torch.tensor([[1.0, 2.0]], device="cpu")), [frequencies], torch.float32)
    close(
        sin_cos_table(Positions.at(torch.tensor([[1.0, 2.0]])), [frequencies], torch.float64),
        expected([[1, 2]], frequencies),
    )


@pytest.mark.acceptance
def test_import_does_not_bring_the_compiler():
    compilers = ("torch._dynamo", "torch._inductor")
    code = f"import sys, posenc, posenc.kernels.sin_cos; print([m for m in sys.modules if m in {compilers}])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
