"""The PyTorch operators posenc::rotate and posenc::rotate_into: C++ on the CPU, Triton on CUDA, plain torch elsewhere.

Eager code on the CPU calls the kernel directly, because the dispatcher takes longer than a small rotation. Under torch.func
and in forward mode the operator is its formula in plain torch, which has every derivative and every batching rule.
`options` are start, half_in, half_out, back, as `in_torch` takes them.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from posenc import kernels
from posenc.frequencies import layouts
from posenc.kernels.derivatives import autograd_kernel, below_autograd
from posenc.kernels.eager import exporting, plain_on_cpu, transformed, wants_gradient
from posenc.kernels.rotation.exported import exported
from posenc.kernels.rotation.plain import by_head, in_torch, layout_of

TYPES = {torch.float32: 0, torch.float64: 1, torch.bfloat16: 2, torch.float16: 3}  # as rotation.cpp numbers them

_pack = struct.Struct("34q").pack  # struct Rotation


def turned(x: Tensor, cos: Tensor, sin: Tensor, *options: Any) -> Tensor:
    """The operator, or in eager code on the CPU its kernel, with a gradient node if one is needed."""
    if not plain_on_cpu(x, cos, sin):
        if exporting():
            return exported(x, cos, sin, *options)
        return _ROTATE(x, cos, sin, *options)  # type: ignore[no-any-return]
    if wants_gradient(x, cos, sin):
        return _Differentiable.apply(None, x, cos, sin, *options)  # type: ignore[no-any-return]
    return _on_cpu(x, cos, sin, *options)


def both_turned(
    q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, cos_k: Tensor, sin_k: Tensor, *options: Any
) -> tuple[Tensor, Tensor]:
    """`turned` for queries and keys: one call of the kernel, and one node for both gradients."""
    tables = (cos, sin) if cos_k is cos and sin_k is sin else (cos, sin, cos_k, sin_k)
    if not plain_on_cpu(q, k, *tables) or wants_gradient(*tables):
        return turned(q, cos, sin, *options), turned(k, cos_k, sin_k, *options)
    if wants_gradient(q, k):
        return _Both.apply(q, k, cos, sin, cos_k, sin_k, *options)  # type: ignore[no-any-return]
    return _both_on_cpu(q, k, cos, sin, cos_k, sin_k, *options)


def turned_into(x: Tensor, cos: Tensor, sin: Tensor, *options_and_out: Any) -> None:
    """Writes to the last argument; no gradient is recorded."""
    out: Tensor = options_and_out[-1]
    if plain_on_cpu(x, cos, sin, out):
        _into_on_cpu(x, cos, sin, *options_and_out)
    elif transformed() or exporting():
        _into_in_torch(x, cos, sin, *options_and_out)
    else:
        torch.ops.posenc.rotate_into.default(x, cos, sin, *options_and_out)


# The C++ kernel (rotation.cpp): addresses, sizes and strides as one block of integers, which ctypes passes fast.


@functools.cache
def kernel() -> Callable[[bytes, int], None] | None:
    """Takes that many packed rotations and turns them one after the other; None where the C++ kernels are not built."""
    library = kernels.library()
    if library is None:
        return None
    native: Any = library.posenc_rotate
    native.argtypes, native.restype = [ctypes.c_char_p, ctypes.c_int64], None
    return native  # type: ignore[no-any-return]


def packed(
    x: Tensor, cos: Tensor, sin: Tensor, start: int, half_in: bool, half_out: bool, back: bool, out: Tensor
) -> bytes:
    """One rotation of x to `out`, as the kernel reads it."""
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


# The implementations.


def _on_cpu(x: Tensor, cos: Tensor, sin: Tensor, start: int, half_in: bool, half_out: bool, back: bool) -> Tensor:
    out = torch.empty_like(x)
    _into_on_cpu(x, cos, sin, start, half_in, half_out, back, out)
    return out


def _into_on_cpu(
    x: Tensor, cos: Tensor, sin: Tensor, start: int, half_in: bool, half_out: bool, back: bool, out: Tensor
) -> None:
    if native := kernel():
        native(packed(x, cos, sin, start, half_in, half_out, back, out), 1)
    else:
        _into_in_torch(x, cos, sin, start, half_in, half_out, back, out)


def _both_on_cpu(
    q: Tensor,
    k: Tensor,
    cos: Tensor,
    sin: Tensor,
    cos_k: Tensor,
    sin_k: Tensor,
    start: int,
    half_in: bool,
    half_out: bool,
    back: bool,
) -> tuple[Tensor, Tensor]:
    options = start, half_in, half_out, back
    if (native := kernel()) is None:
        return in_torch(q, cos, sin, *options), in_torch(k, cos_k, sin_k, *options)
    turned_q, turned_k = torch.empty_like(q), torch.empty_like(k)
    of_q = packed(q, cos, sin, start, half_in, half_out, back, turned_q)
    native(of_q + packed(k, cos_k, sin_k, start, half_in, half_out, back, turned_k), 2)
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


@functools.cache
def _triton() -> Callable[..., None] | None:
    from posenc.kernels.rotation import triton_rotation

    return triton_rotation.rotate if triton_rotation.available() else None


def _into_in_torch(
    x: Tensor, cos: Tensor, sin: Tensor, start: int, half_in: bool, half_out: bool, back: bool, out: Tensor
) -> None:
    out.copy_(in_torch(x, cos, sin, start, half_in, half_out, back))


# Gradients: the rotation turned back, and for the tables sums of products.


class _Differentiable(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, below: Any, x: Tensor, cos: Tensor, sin: Tensor, *options: Any) -> Tensor:
        ctx.options = options
        ctx.save_for_backward(x if ctx.needs_input_grad[2] or ctx.needs_input_grad[3] else None, cos, sin)
        if below is None:
            return _on_cpu(x, cos, sin, *options)
        return below_autograd(_ROTATE, below, x, cos, sin, *options)  # type: ignore[no-any-return]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, cos, sin = ctx.saved_tensors
        start, half_in, half_out, back = ctx.options
        of_x = of_cos = of_sin = None
        if ctx.needs_input_grad[1]:
            of_x = turned(gradient, cos, sin, start, half_out, half_in, not back)
        if x is not None:
            end = start + 2 * cos.shape[-1]
            a, b = layouts.split(x[..., start:end].to(cos.dtype), layout_of(half_in))
            of_a, of_b = layouts.split(gradient[..., start:end].to(cos.dtype), layout_of(half_out))
            of_cos, of_sin = of_a * a + of_b * b, of_a * b - of_b * a if back else of_b * a - of_a * b
            of_cos, of_sin = (
                each.sum_to_size(by_head(cos).shape).reshape(cos.shape) if wanted else None
                for each, wanted in zip((of_cos, of_sin), ctx.needs_input_grad[2:4], strict=True)
            )
        return None, of_x, of_cos, of_sin, None, None, None, None


class _Both(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, *tables_and_options: Any) -> tuple[Tensor, Tensor]:
        ctx.options = tables_and_options[4:]
        ctx.save_for_backward(*tables_and_options[:4])
        return _both_on_cpu(q, k, *tables_and_options)

    @staticmethod
    def backward(ctx: Any, of_q: Tensor, of_k: Tensor) -> tuple[Tensor | None, ...]:
        start, half_in, half_out, back = ctx.options
        undone = both_turned(of_q, of_k, *ctx.saved_tensors, start, half_out, half_in, not back)
        return *undone, None, None, None, None, None, None, None, None


# Registered by hand: the decorators for it would import torch's compiler, two seconds, at the first rotation.
_LIBRARY = torch.library.Library("posenc", "FRAGMENT")
_OPTIONS = "Tensor x, Tensor cos, Tensor sin, int start, bool half_in, bool half_out, bool back"
_LIBRARY.define(f"rotate({_OPTIONS}) -> Tensor")
_ROTATE = torch.ops.posenc.rotate.default
_LIBRARY.impl("rotate", autograd_kernel(_ROTATE, _Differentiable, in_torch), "Autograd", with_keyset=True)
_LIBRARY.impl("rotate", in_torch, "FuncTorchBatched")
_LIBRARY.impl("rotate", _on_cpu, "CPU")
_LIBRARY.impl("rotate", _on_cuda, "CUDA")
_LIBRARY.impl("rotate", in_torch, "CompositeExplicitAutograd")
_LIBRARY._register_fake("rotate", lambda x, *_: torch.empty_like(x))
_LIBRARY.define(f"rotate_into({_OPTIONS}, Tensor(a!) out) -> ()")
_LIBRARY.impl("rotate_into", _into_on_cpu, "CPU")
_LIBRARY.impl("rotate_into", _into_on_cuda, "CUDA")
_LIBRARY.impl("rotate_into", _into_in_torch, "CompositeExplicitAutograd")
_LIBRARY._register_fake("rotate_into", lambda *_: None)
