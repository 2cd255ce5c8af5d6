"""Class G: strides, widths, batch axes and gradients of what is computed."""

from __future__ import annotations

import functools

import pytest
import torch

import posenc
import posenc.encodings.rope
from field_bugs.reference import frequencies, rotated, rounded_once
from field_bugs.worlds import ROTARY, heads, near, same, tokens
from posenc import Positions
from posenc.encodings.rope import RoPE
from posenc.encodings.sinusoidal import Sinusoidal
from posenc.kernels import rotation
from posenc.kernels.rotation import rotate
from test_laws import build

WIDTHS = (2, 6, 48, 72, 80, 96, 112, 160)

# G3 ---------------------------------------------------------------------------------------------------------------------


def views(dtype: torch.dtype) -> dict[str, torch.Tensor]:
    """[2, 4, 5, 8] that lie in memory in other ways than densely."""
    wide = heads(2, 5, 12, 8, dtype, seed=2)
    return {
        "transposed": heads(2, 5, 8, 4, dtype).transpose(1, 2).contiguous().transpose(1, 2),
        "the tail of wider channels": wide[:, :4, :, 4:],
        "every other head": wide[:, ::2, :, :8],
        "one head for all": heads(2, 5, 8, 1, dtype).expand(2, 4, 5, 8),
        "one row for all": heads(1, 5, 8, 4, dtype).expand(2, 4, 5, 8),
        "channels last but one": heads(2, 8, 5, 4, dtype).transpose(-1, -2),
        "from an odd address": heads(1, 321, 1, 1, dtype).flatten()[1:].view(2, 4, 5, 8),
    }


def test_G3_how_tokens_lie_in_memory_does_not_matter():
    at = Positions.arange(2, 5, 40)
    for name in ROTARY:
        encoding = build(name)
        for dtype in (torch.float32, torch.bfloat16):
            for what, x in views(dtype).items():
                before = x.clone()
                got = encoding.rotate(x, at, "query")
                same(got, encoding.rotate(x.contiguous(), at, "query"), f"{name} {what}")
                same(x, before, f"{name} {what}: the input was written to")
    embedding, wide = Sinusoidal(8), heads(2, 5, 24, 1)[:, 0]
    same(embedding.embed(wide[..., ::3], at), embedding.embed(wide[..., ::3].contiguous(), at))


def test_G3_only_what_is_asked_to_be_written_is_written():
    at, x = Positions.arange(2, 5), heads(2, 5)
    expected = RoPE(8).rotate(x.clone(), at, "query")
    assert RoPE(8).rotate(x, at, "query", out=x) is x
    same(x, expected)


def plant_G3_every_tensor_is_taken_for_dense(patch):
    made = posenc.encodings.rope.rotate

    def dense(x, *given, **named):
        return made(x.as_strided(x.shape, torch.empty(x.shape, device="meta").stride()), *given, **named)

    patch.setattr(posenc.encodings.rope, "rotate", dense)


def plant_G3_the_input_is_written_to(patch):
    made = posenc.encodings.rope.rotate
    patch.setattr(posenc.encodings.rope, "rotate", lambda x, *given, **named: x.copy_(made(x, *given, **named)))


# G4 ---------------------------------------------------------------------------------------------------------------------


def guarded(shape: tuple[int, ...], dtype: torch.dtype, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    """A tensor inside of a larger one of NaN, and the larger one."""
    wide = torch.full((*shape[:-2], shape[-2] + 2, shape[-1] + 16), float("nan"), dtype=dtype, device=device)
    return wide[..., 1:-1, 8:-8], wide


def nothing_outside_is_touched(device: str) -> None:
    omega = {d: frequencies(d) for d in WIDTHS}
    for d in WIDTHS:
        for dtype in (torch.float32, torch.bfloat16):
            x, around = guarded((2, 3, 5, d), dtype, device)
            given = torch.randn(2, 3, 5, d, generator=torch.Generator().manual_seed(d)).to(dtype)
            x.copy_(given)
            out, outside = guarded((2, 3, 5, d), dtype, device)
            at = Positions.arange(2, 5, 30, device=device)
            for layout in ("half", "interleaved"):
                RoPE(d, layout=layout).rotate(x, at, "query", out=out)
                rounded_once(out.cpu(), rotated(given, range(30, 35), omega[d], layout), f"{d} {dtype} {layout}")
            for whole, inside in ((around, x), (outside, out)):
                count = whole.numel() - inside.numel()
                assert int(torch.isnan(whole).sum()) == count, f"{d} {dtype}: memory around the tokens was written to"


def test_G4_widths_that_are_no_power_of_two():
    nothing_outside_is_touched("cpu")


@pytest.mark.cuda
def test_G4_on_cuda():
    nothing_outside_is_touched("cuda")


def plant_G4_the_width_is_taken_for_a_power_of_two(patch):
    made = posenc.encodings.rope.rotate

    def cut(x, cos, sin, *given, out=None, **named):
        pairs = 2 ** (cos.shape[-1].bit_length() - 1)
        result = made(x, cos[..., :pairs], sin[..., :pairs], *given, **named)
        return result if out is None else out.copy_(result)

    patch.setattr(posenc.encodings.rope, "rotate", cut)


# G5 ---------------------------------------------------------------------------------------------------------------------


def test_G5_the_gradient_of_a_rotation_is_the_rotation_back():
    at = Positions.arange(1, 5, 30)
    for name in ("rope", "rope half", "rope partial reversed"):
        encoding = build(name)
        x, upstream = heads(1, 5, dtype=torch.float64).requires_grad_(), heads(1, 5, dtype=torch.float64, seed=1)
        out = encoding.rotate(x, at, "query")
        assert out.requires_grad, name
        (gradient,) = torch.autograd.grad((out * upstream).sum(), x)
        near(encoding.rotate(gradient, at, "query"), upstream, name, 1e-12)
        near(gradient.norm(dim=-1), upstream.norm(dim=-1), name, 1e-12)


def squares(encoding, at, x):
    return encoding.rotate(x, at, "query").square()


def test_G5_gradients_can_be_differentiated_again():
    at = Positions.arange(1, 3, 30)
    for encoding in (RoPE(8), build("xpos")):
        x = heads(1, 3, dtype=torch.float64, n_heads=1).requires_grad_()
        assert encoding.rotate(x, at, "query").requires_grad
        squared = functools.partial(squares, encoding, at)
        assert torch.autograd.gradgradcheck(squared, (x,), raise_exception=False), type(encoding).__name__


def test_G5_gradients_reach_embeddings_and_their_tables():
    for name in ("sinusoidal", "learned"):
        encoding, x = build(name), tokens(1, 5).requires_grad_()
        encoding.embed(x, Positions.arange(1, 5)).sum().backward()
        same(x.grad, torch.ones_like(x), name)
    assert float(encoding.table.grad.abs().sum()) > 0


def plant_G5_the_rotation_is_applied_without_gradients(patch):
    made = posenc.encodings.rope.rotate
    patch.setattr(posenc.encodings.rope, "rotate", lambda x, *given, **named: made(x.detach(), *given, **named))


def plant_G5_the_gradient_is_not_turned_back(patch):
    def backward(ctx, gradient):
        return None, gradient, None, None, None, None, None, None

    patch.setattr(rotation._Differentiable, "backward", staticmethod(backward))


# G6 ---------------------------------------------------------------------------------------------------------------------


def test_G6_an_offset_of_every_row_is_of_rows_and_not_of_tokens():
    for batch, length in ((2, 1), (3, 3), (1, 3)):
        starts = 10 * torch.arange(batch) + 5
        at, x = Positions.arange(batch, length, starts), heads(batch, length)
        assert at.coords.tolist() == [[int(start) + t for t in range(length)] for start in starts]
        got = RoPE(8).rotate(x, at, "query")
        assert got.shape == x.shape
        for row, start in enumerate(starts.tolist()):
            near(got[row], rotated(x[row], range(start, start + length), frequencies(8)), f"row {row}")
        moved = Positions.arange(batch, length).shift(starts)
        same(RoPE(8).rotate(x, moved, "query"), got)


def plant_G6_the_offset_is_added_along_the_tokens(patch):
    made = Positions.arange.__func__

    def along(cls, batch, length, start=0, **named):
        if isinstance(start, torch.Tensor):
            count = torch.arange(length)[None] + (start[None, :length] if len(start) >= length else start[:1])
            return Positions.at(count.expand(batch, length))
        return made(cls, batch, length, start, **named)

    patch.setattr(Positions, "arange", classmethod(along))


# A kernel that a range of positions does not reach -----------------------------------------------------------------------


def test_G4_tables_that_turn_a_part_leave_the_rest_alone():
    """Every start and width: channels before and after pass bit by bit."""
    x, draw = heads(1, 3, 20), torch.Generator().manual_seed(1)
    for pairs in (1, 3, 5, 10):
        angle = torch.rand(1, 3, pairs, generator=draw)
        for start in range(0, 20 - 2 * pairs + 1, 3):
            out = rotate(x, angle.cos(), angle.sin(), "half", start=start)
            same(out[..., :start], x[..., :start])
            same(out[..., start + 2 * pairs :], x[..., start + 2 * pairs :])
            near(out[..., start : start + 2 * pairs].norm(dim=-1), x[..., start : start + 2 * pairs].norm(dim=-1), "", 1e-5)
