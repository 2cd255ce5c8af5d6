"""The one-pass rotation by loops over pairs in fp64, whatever dtype, layout, strides and place; and nothing besides."""

import itertools
import os
import subprocess
import sys

import numpy as np
import pytest
import torch

from posenc import Positions, create, kernels
from posenc.encodings.rope import RoPE
from posenc.kernels import rotation
from posenc.kernels.rotation import rotate, rotate_both
from posenc.kernels.rotation.plain import in_torch
from posenc.structure import rotated
from sampling import every_second, thinned

from .by_hand import close, draw

DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
LAYOUTS = ["half", "interleaved"]
BOTH = list(itertools.product(LAYOUTS, LAYOUTS))
EACH = every_second(LAYOUTS, LAYOUTS, (False, True))
halved = pytest.mark.parametrize(("layout", "returns", "dtype"), every_second(LAYOUTS, LAYOUTS, DTYPES), ids=str)


def channels(layout, start, n):
    """Which two channels pair i is."""
    return [(start + i, start + n + i) if layout == "half" else (start + 2 * i, start + 2 * i + 1) for i in range(n)]


def by_loops(x, cos, sin, layout, returns, start=0, back=False):
    x, cos, sin = (np.array(each.double().tolist()) for each in (x, cos, sin))
    if cos.ndim == 3:
        cos, sin = cos[:, None], sin[:, None]
    cos, sin = (np.broadcast_to(each, (*x.shape[:3], each.shape[-1])) for each in (cos, sin))
    out, n = x.copy(), cos.shape[-1]
    for i, ((a, b), (c, d)) in enumerate(zip(channels(layout, start, n), channels(returns, start, n), strict=True)):
        s = -sin[..., i] if back else sin[..., i]
        out[..., c] = x[..., a] * cos[..., i] - x[..., b] * s
        out[..., d] = x[..., b] * cos[..., i] + x[..., a] * s
    return out


def inputs(b, h, t, d, n, dtype, rows=None, heads=None, seed=3):
    table = torch.float64 if dtype == torch.float64 else torch.float32
    angle = torch.from_numpy(draw(seed, *((rows or b,) if heads is None else (rows or b, heads)), t, n)).to(table)
    return torch.from_numpy(draw(seed + 1, b, h, t, d)).to(dtype), angle.cos(), angle.sin()


def right(got, x, cos, sin, layout, returns, start=0, back=False):
    """Within rounding of the loops, and the very bits of the plain formula."""
    expected = torch.from_numpy(by_loops(x, cos, sin, layout, returns, start, back))
    eps = torch.finfo(x.dtype).eps
    assert got.dtype == x.dtype
    size = expected.abs() + x.abs().amax(-1, keepdim=True).double() * (2 * torch.finfo(cos.dtype).eps / eps)
    assert ((got.double() - expected).abs() <= size * eps * 0.51 + 2 * torch.finfo(x.dtype).smallest_normal * eps).all()
    same(got, in_torch(x, cos, sin, start, layout == "half", returns == "half", back))


def same(got, expected):
    """Bit for bit, but for what a NaN carries."""
    number = {2: torch.int16, 4: torch.int32, 8: torch.int64}[got.element_size()]
    assert got.shape == expected.shape
    assert torch.equal(got.isnan(), expected.isnan())
    assert torch.equal(*(each.nan_to_num(0.0, torch.inf, -torch.inf).contiguous().view(number) for each in (got, expected)))


@halved
def test_every_pair_turns_by_its_own_angle(layout, returns, dtype):
    for b, h, t, d in itertools.product((1, 2, 3), (1, 3), (1, 2, 5), (2, 6, 64, 72, 96, 128)):
        for back in (False, True):
            given = *inputs(b, h, t, d, d // 2, dtype), layout
            right(rotate(*given, returns, back=back), *given, returns, back=back)
    given = *inputs(2, 3, 257, 72, 36, dtype, rows=1), layout
    right(rotate(*given, returns), *given, returns)


@halved
def test_part_of_the_channels_turns_from_any_one_on(layout, returns, dtype):
    for d, n, start in ((8, 2, 0), (8, 2, 4), (8, 2, 3), (9, 4, 1), (128, 32, 0), (192, 32, 128), (130, 64, 1), (6, 0, 2)):
        given = *inputs(2, 3, 5, d, n, dtype, rows=1), layout
        right(rotate(*given, returns, start=start), *given, returns, start)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_tables_of_rows_and_heads(layout, dtype):
    for rows, heads in itertools.product((1, 3), (None, 1, 4)):
        x, cos, sin = inputs(3, 4, 5, 36, 18, dtype, rows=rows, heads=heads)
        right(rotate(x, cos, sin, layout), x, cos, sin, layout, layout)
        shared = cos[:1].expand(3, *cos.shape[1:]), sin[:1].expand(3, *sin.shape[1:])
        right(rotate(x, *shared, layout), x, *shared, layout, layout)
        paired = torch.stack([sin, cos], dim=-1)  # lie as (sin, cos)
        right(rotate(x, paired[..., 1], paired[..., 0], layout), x, cos, sin, layout, layout)
        right(rotate(x, cos, paired[..., 0], layout), x, cos, sin, layout, layout)


def views(b, h, t, d, dtype):
    """The same shape, lying in memory in the ways that projections and caches leave it."""
    of = lambda *shape: torch.from_numpy(draw(5, *shape)).to(dtype)  # noqa: E731
    yield "contiguous", of(b, h, t, d)
    yield "heads transposed", of(b, t, h, d).transpose(1, 2)
    yield "slice of a fused projection", of(b, t, 3 * h * d)[..., h * d : 2 * h * d].unflatten(-1, (h, d)).transpose(1, 2)
    yield "slice of the channels", of(b, h, t, 2 * d + 1)[..., 1 : d + 1]
    yield "channels apart", of(b, h, t, 2 * d)[..., ::2]
    yield "channels first", of(d, b, h, t).movedim(0, -1)
    yield "every other token of a longer cache", of(b, h, 2 * t, d)[:, :, ::2]
    yield "one row for all", of(1, h, t, d).expand(b, h, t, d)
    yield "one head for all", of(b, 1, t, d).expand(b, h, t, d)
    yield "one number for all channels", of(b, h, t, 1).expand(b, h, t, d)


@halved
def test_memory_may_lie_in_any_way(layout, returns, dtype):
    _, cos, sin = inputs(2, 3, 5, 72, 34, dtype)
    for name, x in views(2, 3, 5, 72, dtype):
        right(rotate(x, cos, sin, layout, returns, start=2), x, cos, sin, layout, returns, 2)
        for place, out in views(2, 3, 5, 72, dtype):
            if "for all" not in place:
                out.fill_(torch.nan)
                assert rotate(x, cos, sin, layout, returns, start=2, out=out) is out, (name, place)
                right(out, x, cos, sin, layout, returns, 2)
        if "for all" not in name:
            before = x.clone()
            assert rotate(x, cos, sin, layout, returns, start=2, out=x) is x
            right(x, before, cos, sin, layout, returns, 2)
            x.copy_(before)
            rotate(x, cos, sin, layout, returns, start=2, out=x[:])  # the same memory by another name
            right(x, before, cos, sin, layout, returns, 2)


GUARD = 77.0


@halved
def test_nothing_is_left_unwritten_and_nothing_written_beside(layout, returns, dtype):
    for (b, h, t, d), n, start in (
        ((2, 3, 5, 72), 34, 2),
        ((1, 3, 7, 128), 64, 0),
        ((2, 2, 3, 96), 48, 0),
        ((1, 1, 1, 2), 1, 0),
    ):
        x, cos, sin = inputs(b, h, t, d, n, dtype)
        for order in ((0, 1, 2, 3), (0, 2, 1, 3), (3, 2, 1, 0)):
            sizes = [(b, h, t, d)[axis] for axis in order]
            whole = torch.full([size + 4 for size in sizes], GUARD, dtype=dtype)
            inside = whole[tuple(slice(2, 2 + size) for size in sizes)].permute([order.index(axis) for axis in range(4)])
            band = torch.ones_like(whole, dtype=torch.bool)
            band[tuple(slice(2, 2 + size) for size in sizes)] = False
            for place in (None, x):
                inside.fill_(torch.nan) if place is None else inside.copy_(x)
                rotate(x if place is None else inside, cos, sin, layout, returns, start=start, out=inside)
                right(inside, x, cos, sin, layout, returns, start)
                assert (whole[band] == GUARD).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_large_outputs_are_whole_and_threads_change_nothing(layout, dtype):
    x, cos, sin = inputs(2, 9, 1031, 128, 64, dtype, rows=1)
    expected = in_torch(x, cos, sin, 0, layout == "half", layout == "half", False)
    before = torch.get_num_threads()
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            same(rotate(x, cos, sin, layout), expected)
            whole = torch.full((2, 9, 1033, 128), GUARD, dtype=dtype)
            rotate(x, cos, sin, layout, out=whole[:, :, 1:-1])
            same(whole[:, :, 1:-1], expected)
            assert (whole[:, :, [0, -1]] == GUARD).all()
            beside = torch.full((2, 1031, 9, 129), GUARD, dtype=dtype)  # rows that begin anywhere
            rotate(x, cos, sin, layout, out=beside[..., 1:].transpose(1, 2))
            same(beside[..., 1:].transpose(1, 2), expected)
            assert (beside[..., 0] == GUARD).all()
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_every_16_bit_number_and_every_tie_is_rounded_as_torch_does(dtype, layout):
    every = torch.arange(65536, dtype=torch.int32).to(torch.int16).view(dtype)
    x = every.view(1, 1, 512, 128)
    for c, s in ((1.0, 0.0), (0.3, -0.7), (1e-5, 3e-6), (300.0, 7.0), (1e-40, 1e-39)):
        cos, sin = torch.full((1, 512, 64), c), torch.full((1, 512, 64), s)
        same(rotate(x, cos, sin, layout), in_torch(x, cos, sin, 0, layout == "half", layout == "half", False))
    middle = ((every.double() + every.roll(-1).double()) / 2).float().view(torch.int32)
    one = torch.ones(1, 1, 1024, 128, dtype=dtype)
    for beside in (-1, 0, 1):
        cos = (middle + beside).view(torch.float32).view(1, 1024, 64)
        sin = torch.zeros_like(cos)
        same(rotate(one, cos, sin, layout), in_torch(one, cos, sin, 0, layout == "half", layout == "half", False))


@pytest.mark.parametrize("dtype", DTYPES)
def test_any_bits_at_all(dtype):
    number = {2: torch.int16, 4: torch.int32, 8: torch.int64}
    random = torch.Generator().manual_seed(11)
    table = torch.float64 if dtype == torch.float64 else torch.float32

    def bits(of, *shape):
        integer = number[of.itemsize]
        limits = torch.iinfo(integer)
        return torch.randint(limits.min, limits.max, shape, dtype=integer, generator=random).view(of)

    for d in (72, 128):
        x, cos, sin = bits(dtype, 2, 3, 97, d), bits(table, 2, 97, d // 2), bits(table, 2, 97, d // 2)
        for layout, returns in BOTH:
            expected = in_torch(x, cos, sin, 0, layout == "half", returns == "half", True)
            same(rotate(x, cos, sin, layout, returns, back=True), expected)


def test_a_new_tensor_lies_as_x_does():
    for name, x in views(2, 3, 5, 8, torch.float32):
        _, cos, sin = inputs(2, 3, 5, 8, 4, torch.float32)
        assert rotate(x, cos, sin, "half").stride() == torch.empty_like(x).stride(), name


def test_negative_views_are_read_as_what_they_mean():
    _, cos, sin = inputs(1, 2, 3, 4, 2, torch.float32)
    x = torch.complex(torch.ones(1, 2, 3, 4), torch.from_numpy(draw(1, 1, 2, 3, 4)).float()).conj().imag
    assert x.is_neg()
    right(rotate(x, cos, sin, "half"), x.resolve_neg(), cos, sin, "half", "half")
    cos = torch.complex(cos, cos).conj().imag
    right(rotate(x, cos, sin, "half"), x.resolve_neg(), cos.resolve_neg(), sin, "half", "half")


def test_nothing_turns_in_empty_tensors():
    for shape in ((0, 2, 3, 4), (1, 0, 3, 4), (1, 2, 0, 4)):
        x, cos, sin = inputs(*shape, 2, torch.float32)
        assert rotate(x, cos, sin, "half").shape == shape


# Gradients, graphs.


@pytest.mark.parametrize(("layout", "returns", "back"), thinned(2, EACH))
def test_gradients_of_x_and_of_the_tables_twice(layout, returns, back):
    for rows, heads in ((1, None), (2, None), (2, 1), (1, 3)):
        x, cos, sin = (each.requires_grad_() for each in inputs(2, 3, 2, 7, 2, torch.float64, rows=rows, heads=heads))
        turn = lambda x, cos, sin: rotate(x, cos, sin, layout, returns, start=1, back=back)  # noqa: E731
        assert torch.autograd.gradcheck(turn, (x, cos, sin))
        assert torch.autograd.gradgradcheck(turn, (x, cos, sin))
        assert torch.autograd.gradcheck(lambda x: turn(x, cos.detach(), sin.detach()), (x,))  # noqa: B023
        assert torch.autograd.gradcheck(lambda sin: turn(x.detach(), cos.detach(), sin), (sin,))  # noqa: B023


@pytest.mark.parametrize(("layout", "returns", "back"), EACH)
def test_transforms_of_torch_func_and_forward_mode(layout, returns, back):
    """jvp by central differences, vmap by a loop, grad by backward: of the function and of the operator below it."""
    from torch.autograd import forward_ad

    given = inputs(2, 3, 2, 7, 2, torch.float64)
    options = (1, layout == "half", returns == "half", back)
    for turn in (
        lambda *given: rotate(*given, layout, returns, start=1, back=back),
        lambda *given: torch.ops.posenc.rotate(*given, *options),
    ):
        along = [torch.from_numpy(draw(5, *each.shape)) for each in given]
        step, ahead, behind = 1e-6, *([x + s * y for x, y in zip(given, along, strict=True)] for s in (1e-6, -1e-6))
        expected = (turn(*ahead) - turn(*behind)) / (2 * step)
        close = lambda got, expected: torch.testing.assert_close(got, expected, atol=1e-8, rtol=1e-8)  # noqa: E731
        close(torch.func.jvp(turn, tuple(given), tuple(along))[1], expected)
        with forward_ad.dual_level():
            dual = turn(*map(forward_ad.make_dual, given, along))
            close(forward_ad.unpack_dual(dual).tangent, expected)
        looped = torch.stack([turn(x[None], c[None], s[None]) for x, c, s in zip(*given, strict=True)])
        batched = torch.func.vmap(lambda *one: turn(*(x[None] for x in one)))(*given)  # noqa: B023
        assert torch.equal(batched, looped)
        total = lambda *given: turn(*given).square().sum()  # noqa: B023, E731
        recorded = [x.clone().requires_grad_() for x in given]
        gradients = torch.autograd.grad(total(*recorded), recorded)
        for got, one in zip(torch.func.grad(total, argnums=(0, 1, 2))(*given), gradients, strict=True):
            close(got, one)
    out = torch.zeros_like(given[0])
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(given[0], along[0])
        rotate(dual, *given[1:], layout, returns, start=1, back=back, out=out)
        expected = rotate(along[0], *given[1:], layout, returns, start=1, back=back)
        close(forward_ad.unpack_dual(out).tangent, expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_gradients_are_rounded_once(dtype):
    x, cos, sin = inputs(2, 3, 5, 72, 34, dtype)
    g = torch.from_numpy(draw(9, 2, 3, 5, 72)).to(dtype)
    (got,) = torch.autograd.grad(rotate(x.requires_grad_(), cos, sin, "half", "interleaved", start=3), x, g)
    right(got, g, cos, sin, "interleaved", "half", 3, back=True)


@pytest.mark.acceptance
def test_opcheck():
    x, cos, sin = inputs(2, 3, 5, 8, 3, torch.float64)
    operators = torch.ops.posenc
    for wanted in ([], [x, cos, sin], [sin]):
        given = [each.detach().requires_grad_(any(each is one for one in wanted)) for each in (x, cos, sin)]
        torch.library.opcheck(operators.rotate.default, (*given, 1, True, False, True))
        transposed = given[0].transpose(1, 2).contiguous().transpose(1, 2)
        torch.library.opcheck(operators.rotate.default, (transposed, *given[1:], 0, False, False, False))
    torch.library.opcheck(operators.rotate_into.default, (x, cos, sin, 1, True, False, True, torch.empty_like(x)))
    torch.library.opcheck(operators.rotate_into.default, (x, cos, sin, 1, True, False, True, x))


def test_one_graph_over_lengths_and_an_export():
    rope = create("rope", d_head=16, layout="half")

    def whole(x, at):
        beside, place = torch.empty_like(x), x * 1
        rope.rotate(x, at, "key", out=beside)
        rope.rotate(place, at, "query", out=place)
        return rope.rotate(x, at, "query"), beside, place

    graphs = []

    def count(graph, _):
        graphs.append(graph)
        return graph.forward

    compiled = torch.compile(whole, backend=count, fullgraph=True, dynamic=True)
    for length in (7, 5, 33):
        x, at = torch.from_numpy(draw(1, 2, 3, length, 16)).float(), rope.prepare(Positions.arange(2, length))
        for got, expected in zip(compiled(x, at), whole(x, at), strict=True):
            same(got, expected)
    assert len(graphs) == 1
    assert "posenc.rotate.default" in str(graphs[0].graph)

    class Turns(torch.nn.Module):
        def forward(self, x, cos, sin):
            return rotate(x, cos, sin, "half")

    length = torch.export.Dim("length", min=2)
    program = torch.export.export(
        Turns(), inputs(1, 2, 6, 8, 4, torch.float32), dynamic_shapes=({2: length}, {1: length}, {1: length})
    )
    called = [str(node.target) for node in program.graph.nodes if node.op == "call_function"]
    assert "aten.mul.Tensor" in called
    assert not [target for target in called if "posenc" in target]
    x, cos, sin = inputs(1, 2, 9, 8, 4, torch.float32)
    same(program.module()(x, cos, sin), rotate(x, cos, sin, "half"))


def test_compiled_gradients():
    x, cos, sin = (each.requires_grad_() for each in inputs(2, 3, 5, 16, 8, torch.float32))
    turn = lambda *given: (rotate(*given, "half", "interleaved", back=True) * 3).sin().sum()  # noqa: E731
    compiled = torch.compile(turn, fullgraph=True, backend="aot_eager")
    for got, expected in zip(
        *(torch.autograd.grad(one(x, cos, sin), (x, cos, sin)) for one in (compiled, turn)), strict=True
    ):
        close(got.double(), expected.double().numpy(), atol=1e-5)


# At the door.


def test_what_does_not_fit_is_refused():
    x, cos, sin = inputs(2, 3, 5, 8, 3, torch.float32)
    shapes = "cos, sin: expected \\[[12] or 1, 5, n\\]"
    for wrong, given, of in (
        ("layout", (x, cos, sin, "halves"), ValueError),
        ("layout", (x, cos, sin, "half", "both"), ValueError),
        ("x: expected \\[b, h, t, d\\]", (x[0], cos, sin, "half"), ValueError),
        ("x: expected float64", (x.int(), cos, sin, "half"), TypeError),
        ("cos, sin: expected torch.float32", (x, cos.double(), sin, "half"), TypeError),
        ("cos, sin: expected torch.float64", (x.double(), cos.double(), sin, "half"), TypeError),
        (shapes, (x, cos[:, :4], sin[:, :4], "half"), ValueError),
        (shapes, (x, cos, sin[..., :2], "half"), ValueError),
        (shapes, (x[:1], cos, sin, "half"), ValueError),
        (shapes, (x, *(each[:, None].expand(2, 2, 5, 3) for each in (cos, sin)), "half"), ValueError),
        (shapes, (x, cos[0], sin[0], "half"), ValueError),
    ):
        with pytest.raises(of, match=wrong):
            rotate(*given)
    for start in (-1, 3):
        with pytest.raises(ValueError, match="start: 3 pairs from channel"):
            rotate(x, cos, sin, "half", start=start)
    with pytest.raises(ValueError, match="to be on cpu"):
        rotate(x, cos.to("meta"), sin, "half")


def test_an_out_that_does_not_fit_is_refused():
    x, cos, sin = inputs(2, 3, 5, 8, 3, torch.float32)
    for out in (torch.empty(2, 3, 5, 9), torch.empty(2, 3, 5, 8, dtype=torch.float64), x.to("meta")):
        with pytest.raises(ValueError, match=r"out: expected torch\.float32"):
            rotate(x, cos, sin, "half", out=out)
    memory = torch.zeros(4 * x.numel())
    of = lambda first, *stride: memory.as_strided(x.shape, stride or x.stride(), first)  # noqa: E731
    for first in (1, 8, x.numel() - 1, x.numel()):  # whether they overlap or stand side by side
        with pytest.raises(ValueError, match="out: is in the same storage as x; give x itself or a tensor of its own"):
            rotate(of(0), cos, sin, "half", out=of(first))
        with pytest.raises(ValueError, match="out: is in the same storage as x"):
            rotate(of(first), cos, sin, "half", out=of(0))
    with pytest.raises(ValueError, match="out: is in the same storage as x"):  # begins where x does, with other strides
        rotate(of(0), cos, sin, "half", out=of(0, 120, 8, 24, 1))
    rotate(of(0, 360, 24, 72, 1), cos, sin, "half", out=of(0, 360, 24, 72, 1))  # x itself by another name
    for one, other in ((memory[: cos.numel()].view_as(cos), sin), (cos, memory[: cos.numel()].view_as(cos))):
        name = "sin" if one is cos else "cos"
        with pytest.raises(ValueError, match=f"out: is in the same storage as {name}; give a tensor of its own"):
            rotate(x, one, other, "half", out=of(0))
    with pytest.raises(ValueError, match="out: several elements share memory"):
        rotate(x, cos, sin, "half", out=torch.empty(1, 3, 5, 8).expand(2, 3, 5, 8))
    with pytest.raises(ValueError, match="out: several elements share memory"):
        rotate(x, cos, sin, "half", out=of(0, 120, 40, 8, 2))


def test_an_out_has_no_gradient():
    x, cos, sin = inputs(2, 3, 5, 8, 3, torch.float32)
    for given, out in (
        ((x.clone().requires_grad_(), cos, sin), torch.empty_like(x)),
        ((x, cos.clone().requires_grad_(), sin), torch.empty_like(x)),
        ((x, cos, sin.clone().requires_grad_()), x),
        ((x, cos, sin), torch.empty_like(x).requires_grad_()),
    ):
        with pytest.raises(RuntimeError, match="out: has no gradient"):
            rotate(*given, "half", out=out)
    with torch.no_grad():
        rotate(x.requires_grad_(), cos, sin, "half", out=x)


# Kernel or not.


def test_the_kernel_runs_where_it_is_built():
    """What this file measures is the kernel, not the formula beside itself."""
    from posenc.kernels import rotation

    assert kernels.why_not() is None, kernels.why_not()
    assert rotation.kernel() is not None


@pytest.mark.acceptance
def test_without_the_kernels_the_bits_are_the_same(tmp_path):
    program = """
import sys, torch
from posenc import kernels
from posenc.kernels.rotation import rotate
from posenc.positions import Positions
from posenc import create
x, cos, sin, expected = torch.load(sys.argv[1])
assert kernels.library() is None
out = torch.full_like(x, torch.nan)
for got in (rotate(x, cos, sin, "half", "interleaved", start=1, back=True),
            rotate(x, cos, sin, "half", "interleaved", start=1, back=True, out=out),
            torch.ops.posenc.rotate(x, cos, sin, 1, True, False, True)):
    assert torch.equal(got, expected)
rotate(x, cos, sin, "half", "interleaved", start=1, back=True, out=x)
assert torch.equal(x, expected)
"""
    x, cos, sin = inputs(2, 3, 5, 9, 4, torch.bfloat16)
    torch.save((x, cos, sin, rotate(x, cos, sin, "half", "interleaved", start=1, back=True)), tmp_path / "given.pt")
    subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "given.pt")],
        check=True,
        env={**os.environ, "POSENC_WITHOUT_KERNELS": "1"},
    )


@pytest.mark.acceptance
def test_importing_it_imports_no_compiler():
    program = (
        "import sys, posenc.kernels.rotation; assert not {'torch._dynamo', 'torch._inductor', 'triton'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


# The seam.


@pytest.mark.parametrize("name", ["nope", "rope", "xpos", "alibi"])
def test_every_encoding_takes_an_out(name):
    encoding = create(name, **({"n_heads": 3} if name == "alibi" else {} if name == "nope" else {"d_head": 8}))
    x, at = torch.from_numpy(draw(1, 2, 3, 5, 8)).float(), Positions.arange(2, 5, 3)
    for side in ("query", "key", "value", "output"):
        expected = encoding.rotate(x.clone(), at, side)
        out, place = torch.full_like(x, torch.nan), x.clone()
        assert encoding.rotate(x, at, side, out=out) is out
        assert encoding.rotate(place, at, side, out=place) is place
        same(out, expected), same(place, expected)
    with pytest.raises(ValueError, match=r"out: expected torch\.float32"):
        encoding.rotate(x, at, "query", out=x.double())


# Queries and keys at once.


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("layout", "returns"), [("half", "half"), ("half", "interleaved"), ("interleaved", "interleaved")])
def test_both_at_once_are_each_by_itself(layout, returns, dtype):
    q, cos, sin = inputs(2, 4, 5, 14, 6, dtype)
    k = inputs(2, 2, 5, 14, 6, dtype, seed=9)[0]
    with_gradient = [x.clone().requires_grad_() for x in (q, k)]
    for pair in ((q, k), with_gradient):
        for got, x in zip(rotate_both(*pair, cos, sin, layout, returns, start=1), (q, k), strict=True):
            right(got.detach(), x, cos, sin, layout, returns, start=1)
    incoming = [torch.randn_like(x) for x in (q, k)]
    torch.autograd.backward(rotate_both(*with_gradient, cos, sin, layout, returns, start=1), incoming)
    for x, grad in zip(with_gradient, incoming, strict=True):
        right(x.grad, grad, cos, sin, returns, layout, start=1, back=True)


def test_both_at_once_twice_and_with_learned_tables():
    q, cos, sin = inputs(1, 2, 3, 6, 2, torch.float64)
    k = inputs(1, 1, 3, 6, 2, torch.float64, seed=9)[0]
    for wanted in ((q, k), (q, k, cos, sin), (q,)):
        for x in (q, k, cos, sin):
            x.requires_grad_(any(x is one for one in wanted))
        given = (q, k, cos, sin)
        torch.autograd.gradcheck(lambda *given: rotate_both(*given, "half", "interleaved"), given)
        torch.autograd.gradgradcheck(lambda *given: rotate_both(*given, "half", "interleaved"), given)


def test_both_at_once_with_other_tables_for_the_keys():
    q, cos, sin = inputs(2, 4, 5, 14, 6, torch.float32)
    k, cos_k, sin_k = inputs(2, 2, 5, 14, 6, torch.float32, seed=9)
    turned = {"layout": "half", "returns": "interleaved", "start": 1}
    with_gradient = [x.clone().requires_grad_() for x in (q, k)]
    for pair in ((q, k), with_gradient):
        got = rotate_both(*pair, cos, sin, **turned, of_keys=(cos_k, sin_k))
        right(got[0].detach(), q, cos, sin, **turned)
        right(got[1].detach(), k, cos_k, sin_k, **turned)
    incoming = [torch.randn_like(x) for x in (q, k)]
    torch.autograd.backward(got, incoming)
    undone = {"layout": "interleaved", "returns": "half", "start": 1, "back": True}
    right(with_gradient[0].grad, incoming[0], cos, sin, **undone)
    right(with_gradient[1].grad, incoming[1], cos_k, sin_k, **undone)
    with pytest.raises(TypeError, match=r"cos, sin: expected torch\.float32"):
        rotate_both(q, k, cos, sin, "half", of_keys=(cos_k.double(), sin_k.double()))


def test_an_encoding_turns_both_as_it_turns_each():
    """Own ways of turning are respected, and sides and positions that differ."""

    class Shifted(RoPE):
        def rotate(self, x, at, side, out=None):
            return super().rotate(x, at.shift(1) if side == "key" else at, side, out)

    q, k = inputs(2, 4, 5, 8, 4, torch.float32)[0], inputs(2, 2, 5, 8, 4, torch.float32, seed=9)[0]
    here, there = Positions.arange(2, 5), Positions.arange(2, 5, 7)
    for encoding in (
        RoPE(8),
        RoPE(8, layout="half", rotary_dim=4, trailing=True, returns="interleaved"),
        Shifted(8),
        RoPE(8, sides=("query",)),
        create("nope"),
        create("xpos", d_head=8),
    ):
        for at_q, at_k in ((here, here), (here, there)):
            expected = encoding.rotate(q, at_q, "query"), encoding.rotate(k, at_k, "key")
            for got, one in zip(rotated(encoding, q, k, at_q, at_k), expected, strict=True):
                assert torch.equal(got, one)


def test_without_kernels_the_same_in_this_process(monkeypatch):
    from posenc.kernels import rotation

    monkeypatch.setattr(rotation, "kernel", lambda: None)
    q, cos, sin = inputs(2, 3, 5, 9, 4, torch.bfloat16)
    out = torch.full_like(q, torch.nan)
    for back in (False, True):
        for got in (
            rotate(q, cos, sin, "half", "interleaved", start=1, back=back),
            rotate(q, cos, sin, "half", "interleaved", start=1, back=back, out=out),
        ):
            right(got, q, cos, sin, "half", "interleaved", start=1, back=back)
    for got, x in zip(rotate_both(q, q[:, :1], cos, sin, "interleaved"), (q, q[:, :1]), strict=True):
        right(got, x, cos, sin, "interleaved", "interleaved")


@pytest.mark.parametrize("layout", ["half", "interleaved"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_tables_as_models_hand_them_over_doubled_and_in_16_bits(layout, dtype):
    """transformers' own functions on its own doubled tables, in float64 arithmetic on the same narrow numbers."""
    angle = torch.rand(2, 5, 4, generator=torch.Generator().manual_seed(0)) * 6
    doubled = angle.repeat(1, 1, 2) if layout == "half" else angle.repeat_interleave(2, dim=-1)
    cos, sin = doubled.cos().to(dtype), doubled.sin().to(dtype)
    x = torch.randn(2, 3, 5, 8, generator=torch.Generator().manual_seed(1)).to(dtype)
    wide = x.double()
    if layout == "half":
        other = torch.cat([-wide[..., 4:], wide[..., :4]], dim=-1)
    else:
        other = torch.stack([-wide[..., 1::2], wide[..., ::2]], dim=-1).flatten(-2)
    expected = wide * cos.double()[:, None] + other * sin.double()[:, None]
    got = rotation.rotate(x, rotation.undoubled(cos, layout), rotation.undoubled(sin, layout), layout)
    assert got.dtype == dtype
    torch.testing.assert_close(got.double(), expected, rtol=torch.finfo(dtype).eps, atol=2e-7)


def test_undoubled_refuses_odd_tables_and_unknown_layouts():
    with pytest.raises(ValueError, match="table: expected an even number of channels"):
        rotation.undoubled(torch.zeros(2, 3), "half")
    with pytest.raises(ValueError, match="layout"):
        rotation.undoubled(torch.zeros(2, 4), "halves")
