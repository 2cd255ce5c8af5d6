"""The rotation of queries and keys in one pass: a PyTorch operator, and the door to it.

    (a, b) -> (a cos - b sin, b cos + a sin)     pairs in layout `layout`, handed back in layout `returns`

fp32 arithmetic for float32, bfloat16 and float16, fp64 for float64; one rounding. On the CPU a C++ kernel (rotation.cpp),
which gives the bits of `layouts.turn`; on CUDA a Triton kernel; `layouts.turn` itself wherever there is neither.
Legend: b batch, h heads, t tokens, d channels, n pairs.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from posenc import kernels, layouts
from posenc.kernels.fast_path import plain_on_cpu, wants_gradient
from posenc.layouts import Layout

if TYPE_CHECKING:
    from jaxtyping import Float

ARITHMETIC = {
    torch.float32: torch.float32,
    torch.float64: torch.float64,
    torch.bfloat16: torch.float32,
    torch.float16: torch.float32,
}
TYPES = {torch.float32: 0, torch.float64: 1, torch.bfloat16: 2, torch.float16: 3}  # as rotation.cpp numbers them


def rotate(
    x: Float[Tensor, "b h t d"],
    cos: Float[Tensor, "b *h t n"],
    sin: Float[Tensor, "b *h t n"],
    layout: Layout,
    returns: Layout | None = None,
    *,
    start: int = 0,
    back: bool = False,
    out: Float[Tensor, "b h t d"] | None = None,
) -> Float[Tensor, "b h t d"]:
    """x with the 2n channels from `start` on turned, and all others as they are.

    cos, sin   one for each pair: [b, t, n], or [b, h, t, n] where heads differ; b and h may be 1. float64 for float64 x,
               float32 for all others
    returns    the layout of the turned channels, `layout` if left out
    back       turn by the negative angle, which undoes the turn
    out        where the result goes, any strides; x itself is turned in place. Without it, a new tensor that lies in memory
               as x does

    Differentiable, cos and sin included, without `out`. Raises ValueError for shapes that do not fit and for an `out` that
    shares memory with x without being x; TypeError for dtypes; RuntimeError for `out` where gradients are wanted.
    """
    half_in = layout == "half"
    half_out = half_in if returns is None else returns == "half"
    _check(x, cos, sin, layout, returns, start)
    if out is None:
        return _turned(x, cos, sin, start, half_in, half_out, back)
    _check_out(x, cos, sin, out)
    if plain_on_cpu(x, cos, sin, out):
        _into_on_cpu(x, cos, sin, start, half_in, half_out, back, out)
    else:
        torch.ops.posenc.rotate_into.default(x, cos, sin, start, half_in, half_out, back, out)
    return out


def rotate_both(
    q: Float[Tensor, "b h t d"],
    k: Float[Tensor, "b g t d"],
    cos: Float[Tensor, "b t n"],
    sin: Float[Tensor, "b t n"],
    layout: Layout,
    returns: Layout | None = None,
    *,
    start: int = 0,
) -> tuple[Float[Tensor, "b h t d"], Float[Tensor, "b g t d"]]:
    """`rotate` for queries and keys at the same positions: one step there and one back, which short inputs feel."""
    half_in, half_out = layout == "half", (returns or layout) == "half"
    _check(q, cos, sin, layout, returns, start)
    _check(k, cos, sin, layout, returns, start)
    return _both_turned(q, k, cos, sin, start, half_in, half_out, False)


def _turned(x: Tensor, cos: Tensor, sin: Tensor, *options: Any) -> Tensor:
    """The operator, or what it comes to: its CPU kernel, with a node for the gradient where one is wanted."""
    if not plain_on_cpu(x, cos, sin):
        return torch.ops.posenc.rotate.default(x, cos, sin, *options)  # type: ignore[no-any-return]
    if wants_gradient(x, cos, sin):
        return _Differentiable.apply(None, x, cos, sin, *options)  # type: ignore[no-any-return]
    return _on_cpu(x, cos, sin, *options)


def _both_turned(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, *options: Any) -> tuple[Tensor, Tensor]:
    if not plain_on_cpu(q, k, cos, sin) or wants_gradient(cos, sin):
        return _turned(q, cos, sin, *options), _turned(k, cos, sin, *options)
    if wants_gradient(q, k):
        return _Both.apply(q, k, cos, sin, *options)  # type: ignore[no-any-return]
    return _both_on_cpu(q, k, cos, sin, *options)


# The implementations.


def _on_cpu(x: Tensor, cos: Tensor, sin: Tensor, start: int, half_in: bool, half_out: bool, back: bool) -> Tensor:
    out = torch.empty_like(x)
    _into_on_cpu(x, cos, sin, start, half_in, half_out, back, out)
    return out


def _into_on_cpu(
    x: Tensor, cos: Tensor, sin: Tensor, start: int, half_in: bool, half_out: bool, back: bool, out: Tensor
) -> None:
    if native := _kernel():
        native(_packed(x, cos, sin, start, half_in, half_out, back, out), 1)
    else:
        _into_in_torch(x, cos, sin, start, half_in, half_out, back, out)


def _both_on_cpu(
    q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, start: int, half_in: bool, half_out: bool, back: bool
) -> tuple[Tensor, Tensor]:
    if (native := _kernel()) is None:
        return tuple(in_torch(x, cos, sin, start, half_in, half_out, back) for x in (q, k))  # type: ignore[return-value]
    turned_q, turned_k = torch.empty_like(q), torch.empty_like(k)
    of_q = _packed(q, cos, sin, start, half_in, half_out, back, turned_q)
    native(of_q + _packed(k, cos, sin, start, half_in, half_out, back, turned_k), 2)
    return turned_q, turned_k


def _on_cuda(x: Tensor, cos: Tensor, sin: Tensor, start: int, half_in: bool, half_out: bool, back: bool) -> Tensor:
    out = torch.empty_like(x)
    _into_on_cuda(x, cos, sin, start, half_in, half_out, back, out)
    return out


def _into_on_cuda(
    x: Tensor, cos: Tensor, sin: Tensor, start: int, half_in: bool, half_out: bool, back: bool, out: Tensor
) -> None:
    if (native := _triton()) is None:
        _into_in_torch(x, cos, sin, start, half_in, half_out, back, out)
    elif cos.ndim == 3:
        native(x, cos, sin, start, half_in, half_out, back, out)
    else:
        for head, (of_cos, of_sin) in enumerate(zip(cos.unbind(1), sin.unbind(1), strict=True)):
            which = slice(head, head + 1) if cos.shape[1] > 1 else slice(None)
            native(x[:, which], of_cos, of_sin, start, half_in, half_out, back, out[:, which])


def in_torch(x: Tensor, cos: Tensor, sin: Tensor, start: int, half_in: bool, half_out: bool, back: bool) -> Tensor:
    """The formula in plain torch: what the kernels must give."""
    cos, sin = _by_head(cos), _by_head(sin)
    turned = layouts.turn(x[..., start:], cos, -sin if back else sin, _layout(half_in), _layout(half_out))
    return torch.cat([x[..., :start], turned], dim=-1) if start else turned


def _into_in_torch(
    x: Tensor, cos: Tensor, sin: Tensor, start: int, half_in: bool, half_out: bool, back: bool, out: Tensor
) -> None:
    out.copy_(in_torch(x, cos, sin, start, half_in, half_out, back))


def _by_head(table: Tensor) -> Tensor:
    return table if table.ndim == 4 else table.unsqueeze(1)


def _layout(half: bool) -> Layout:
    return "half" if half else "interleaved"


# The C++ kernel: addresses, sizes and strides as one block of integers (struct Rotation), which ctypes hands over fastest.

_pack = struct.Struct("34q").pack


@functools.cache
def _kernel() -> Callable[[bytes, int], None] | None:
    library = kernels.library()
    if library is None:
        return None
    native: Any = library.posenc_rotate
    native.argtypes, native.restype = [ctypes.c_char_p, ctypes.c_int64], None
    return native  # type: ignore[no-any-return]


def _packed(
    x: Tensor, cos: Tensor, sin: Tensor, start: int, half_in: bool, half_out: bool, back: bool, out: Tensor
) -> bytes:
    size, of_cos, of_sin = cos.shape, cos.stride(), sin.stride()
    if len(size) == 3:  # no axis of heads
        size = (size[0], 1, size[1], size[2])  # type: ignore[assignment]
        of_cos = (of_cos[0], 0, of_cos[1], of_cos[2])
        of_sin = (of_sin[0], 0, of_sin[1], of_sin[2])
    return _pack(
        x.data_ptr(),
        out.data_ptr(),
        cos.data_ptr(),
        sin.data_ptr(),
        *x.shape,
        *size,
        start,
        *x.stride(),
        *out.stride(),
        *of_cos,
        *of_sin,
        TYPES[x.dtype],
        half_in,
        half_out,
        back,
        torch.get_num_threads(),
    )


@functools.cache
def _triton() -> Callable[..., None] | None:
    from posenc.kernels.rotation import triton_rotation

    return triton_rotation.rotate if triton_rotation.available() else None


# Gradients: the rotation turned back, and for the tables sums of products.


class _Differentiable(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, below: Any, x: Tensor, cos: Tensor, sin: Tensor, *options: Any) -> Tensor:
        ctx.options = options
        ctx.save_for_backward(x if ctx.needs_input_grad[2] or ctx.needs_input_grad[3] else None, cos, sin)
        if below is None:
            return _on_cpu(x, cos, sin, *options)
        with torch._C._AutoDispatchBelowAutograd():
            return torch.ops.posenc.rotate.default.redispatch(below, x, cos, sin, *options)  # type: ignore[no-any-return]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, cos, sin = ctx.saved_tensors
        start, half_in, half_out, back = ctx.options
        of_x = of_cos = of_sin = None
        if ctx.needs_input_grad[1]:
            of_x = _turned(gradient, cos, sin, start, half_out, half_in, not back)
        if x is not None:
            end = start + 2 * cos.shape[-1]
            a, b = layouts.split(x[..., start:end].to(cos.dtype), _layout(half_in))
            of_a, of_b = layouts.split(gradient[..., start:end].to(cos.dtype), _layout(half_out))
            of_cos, of_sin = of_a * a + of_b * b, of_a * b - of_b * a if back else of_b * a - of_a * b
            of_cos, of_sin = (
                each.sum_to_size(_by_head(cos).shape).reshape(cos.shape) if wanted else None
                for each, wanted in zip((of_cos, of_sin), ctx.needs_input_grad[2:4], strict=True)
            )
        return None, of_x, of_cos, of_sin, None, None, None, None


class _Both(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, *options: Any) -> tuple[Tensor, Tensor]:
        ctx.options = options
        ctx.save_for_backward(cos, sin)
        return _both_on_cpu(q, k, cos, sin, *options)

    @staticmethod
    def backward(ctx: Any, of_q: Tensor, of_k: Tensor) -> tuple[Tensor | None, ...]:
        start, half_in, half_out, back = ctx.options
        undone = _both_turned(of_q, of_k, *ctx.saved_tensors, start, half_out, half_in, not back)
        return *undone, None, None, None, None, None, None


def _autograd(keyset: Any, x: Tensor, cos: Tensor, sin: Tensor, *options: Any) -> Tensor:
    below = keyset & torch._C._after_autograd_keyset
    if torch.is_grad_enabled() and (x.requires_grad or cos.requires_grad or sin.requires_grad):
        turned: Tensor = _Differentiable.apply(below, x, cos, sin, *options)
        return turned
    with torch._C._AutoDispatchBelowAutograd():
        return torch.ops.posenc.rotate.default.redispatch(below, x, cos, sin, *options)  # type: ignore[no-any-return]


# Checks.


def _check(x: Tensor, cos: Tensor, sin: Tensor, layout: str, returns: str | None, start: int) -> None:
    """That a kernel may be trusted with these tensors: it sees addresses only."""
    if layout not in ("half", "interleaved") or returns not in (None, "half", "interleaved"):
        layouts.check(layout), layouts.check(returns or layout)
    dtype = ARITHMETIC.get(x.dtype)
    if dtype is None:
        raise TypeError(f"x: expected float64, float32, bfloat16 or float16, got {x.dtype}")
    if cos.dtype != dtype or sin.dtype != dtype:
        raise TypeError(f"cos, sin: expected {dtype} for x of {x.dtype}, got {cos.dtype} and {sin.dtype}")
    if cos.device != x.device or sin.device != x.device:
        raise ValueError(f"cos, sin: expected to be on {x.device} as x is, got {cos.device} and {sin.device}")
    if x.ndim != 4:
        raise ValueError(f"x: expected [b, h, t, d], got {list(x.shape)}")
    b, h, t, d = x.shape
    table = cos.shape
    fits = sin.shape == table and (
        (len(table) == 3 and table[1] == t and (table[0] == b or table[0] == 1))
        or (len(table) == 4 and table[2] == t and (table[0] == b or table[0] == 1) and (table[1] == h or table[1] == 1))
    )
    if not fits:
        raise ValueError(
            f"cos, sin: expected [{b} or 1, {t}, n] or [{b} or 1, {h} or 1, {t}, n] for x {list(x.shape)}, "
            f"got {list(table)} and {list(sin.shape)}"
        )
    if start < 0 or start + 2 * table[-1] > d:
        raise ValueError(f"start: {table[-1]} pairs from channel {start} on do not fit in {d} channels")


def _check_out(x: Tensor, cos: Tensor, sin: Tensor, out: Tensor) -> None:
    if out.shape != x.shape or out.dtype != x.dtype or out.device != x.device:
        raise ValueError(
            f"out: expected {x.dtype} {list(x.shape)} on {x.device} as x is, "
            f"got {out.dtype} {list(out.shape)} on {out.device}"
        )
    if torch.is_grad_enabled() and (x.requires_grad or cos.requires_grad or sin.requires_grad or out.requires_grad):
        raise RuntimeError(
            "out: has no gradient, and one is wanted of x, cos, sin or out; leave out= away, or call under torch.no_grad()"
        )
    if torch.compiler.is_compiling():  # a graph's tensors have no addresses
        return
    if _internal_overlap(out):
        raise ValueError(f"out: several places share memory (strides {list(out.stride())}); give one made by torch.empty")
    for name, given in {"x": x, "cos": cos, "sin": sin}.items():
        if given is not out and _shares_memory(given, out) and not (name == "x" and _same_memory(x, out)):
            raise ValueError(
                f"out: shares memory with {name}; give {'x itself or ' if name == 'x' else ''}memory of its own"
            )


def _same_memory(x: Tensor, out: Tensor) -> bool:
    return x.data_ptr() == out.data_ptr() and x.stride() == out.stride()


def _axes(x: Tensor) -> list[tuple[int, int]]:
    """(stride, size), the largest stride first."""
    return sorted(((stride, size) for stride, size in zip(x.stride(), x.shape, strict=True) if size > 1), reverse=True)


def _extent(axes: list[tuple[int, int]]) -> int:
    return 1 + sum(stride * (size - 1) for stride, size in axes)


def _internal_overlap(x: Tensor) -> bool:
    if x.is_contiguous():
        return False
    axes = _axes(x)
    return any(stride < _extent(axes[inner + 1 :]) for inner, (stride, _) in enumerate(axes))


def _shares_memory(x: Tensor, out: Tensor) -> bool:
    """Whether two tensors have an element in common; True where that cannot be told."""
    if x.untyped_storage().data_ptr() != out.untyped_storage().data_ptr() or not x.numel():
        return False
    first, second = (x, out) if x.data_ptr() <= out.data_ptr() else (out, x)
    apart, left = divmod(second.data_ptr() - first.data_ptr(), x.element_size())
    axes = _axes(first)
    if apart >= _extent(axes):
        return False
    if left or axes != _axes(second):
        return True
    for number, (stride, _) in enumerate(axes):  # slices of one projection: blocks side by side within a stride
        apart, inner = apart % stride, _extent(axes[number + 1 :])
        if apart > stride - inner:
            return True
        if apart >= inner:
            return False
    return True


_LIBRARY = torch.library.Library("posenc", "FRAGMENT")
_OPTIONS = "Tensor x, Tensor cos, Tensor sin, int start, bool half_in, bool half_out, bool back"
_LIBRARY.define(f"rotate({_OPTIONS}) -> Tensor")
_LIBRARY.impl("rotate", _autograd, "Autograd", with_keyset=True)
_LIBRARY.impl("rotate", _on_cpu, "CPU")
_LIBRARY.impl("rotate", _on_cuda, "CUDA")
_LIBRARY.impl("rotate", in_torch, "CompositeExplicitAutograd")
_LIBRARY._register_fake("rotate", lambda x, *_: torch.empty_like(x))
_LIBRARY.define(f"rotate_into({_OPTIONS}, Tensor(a!) out) -> ()")
_LIBRARY.impl("rotate_into", _into_on_cpu, "CPU")
_LIBRARY.impl("rotate_into", _into_on_cuda, "CUDA")
_LIBRARY.impl("rotate_into", _into_in_torch, "CompositeExplicitAutograd")
_LIBRARY._register_fake("rotate_into", lambda *_: None)
