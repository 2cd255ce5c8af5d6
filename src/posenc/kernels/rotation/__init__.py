"""The rotation of queries and keys in one pass over memory: the public functions and their checks, then the operator.

    (a, b) -> (a cos - b sin, b cos + a sin)     pairs in layout `layout`, returned in layout `returns`

    plain        the formula in plain torch
    few_tokens   cos and sin computed within, for the few tokens of a decoding step
    triton_*     the Triton kernel, for CUDA

fp32 arithmetic for float32, bfloat16 and float16, fp64 for float64; one rounding. The kernels give the bits of the formula.
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

from posenc import kernels
from posenc.frequencies import layouts
from posenc.frequencies.layouts import Layout
from posenc.kernels.derivatives import autograd_kernel, below_autograd
from posenc.kernels.eager import exporting, plain_on_cpu, transformed, wants_gradient
from posenc.kernels.rotation.exported import exported
from posenc.kernels.rotation.plain import by_head, in_torch, layout_of

if TYPE_CHECKING:
    from posenc.support.shapes import Float

ARITHMETIC = {
    torch.float32: torch.float32,
    torch.float64: torch.float64,
    torch.bfloat16: torch.float32,
    torch.float16: torch.float32,
}
NARROW = (torch.bfloat16, torch.float16)


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
               float32 for all others; tables in bfloat16 or float16, as models hand them over, are widened. Tables that
               hold every entry twice go through `undoubled` first
    returns    the layout of the turned channels, `layout` if left out
    back       turn by the negative angle, which undoes the turn
    out        where the result goes, any strides: x itself, or memory of its own. Without it, a new tensor with the
               strides of x

    Differentiable, cos and sin included, without `out`. Raises ValueError for shapes that do not fit and for an `out` in
    the memory of x, cos or sin that is not x itself; TypeError for dtypes; RuntimeError for `out` where gradients are
    wanted.
    """
    half_in = layout == "half"
    half_out = half_in if returns is None else returns == "half"
    if cos.dtype in NARROW or sin.dtype in NARROW:
        cos, sin = (table.to(ARITHMETIC.get(x.dtype, table.dtype)) for table in (cos, sin))
    _check(x, cos, sin, layout, returns, start)
    if out is None:
        return turned(x, cos, sin, start, half_in, half_out, back)
    _check_out(x, cos, sin, out)
    turned_into(x, cos, sin, start, half_in, half_out, back, out)
    return out


def undoubled(table: Float[Tensor, "*s d"], layout: Layout) -> Float[Tensor, "*s n"]:
    """cos or sin with one entry for each pair, of a table with one for each channel, d = 2n, as transformers makes them.

        half         f₀ f₁ … f₀ f₁ …      the first half
        interleaved  f₀ f₀ f₁ f₁ …        every other entry

    Raises ValueError for an unknown layout and for an odd number of channels.
    """
    layouts.check(layout)
    if table.ndim < 1 or table.shape[-1] % 2:
        raise ValueError(f"table: expected an even number of channels in the last axis, got {list(table.shape)}")
    return table[..., : table.shape[-1] // 2] if layout == "half" else table[..., ::2]


def rotate_both(
    q: Float[Tensor, "b h t d"],
    k: Float[Tensor, "b g t d"],
    cos: Float[Tensor, "b t n"],
    sin: Float[Tensor, "b t n"],
    layout: Layout,
    returns: Layout | None = None,
    *,
    start: int = 0,
    back: bool = False,
    of_keys: tuple[Float[Tensor, "b t n"], Float[Tensor, "b t n"]] | None = None,
) -> tuple[Float[Tensor, "b h t d"], Float[Tensor, "b g t d"]]:
    """`rotate` for queries and keys at the same positions: one call and one node of the graph, which is faster for short
    inputs. `of_keys`: cos and sin of the keys, where they are not those of the queries (xPos)."""
    half_in, half_out = layout == "half", (returns or layout) == "half"
    cos_k, sin_k = (cos, sin) if of_keys is None else of_keys
    _check(q, cos, sin, layout, returns, start)
    alike = of_keys is None and cos.ndim == 3 and k.ndim == 4 and k.dtype == q.dtype and k.device == q.device
    if not alike or k.shape[0] != q.shape[0] or k.shape[2:] != q.shape[2:]:
        _check(k, cos_k, sin_k, layout, returns, start)
    return both_turned(q, k, cos, sin, cos_k, sin_k, start, half_in, half_out, back)


def _check(x: Tensor, cos: Tensor, sin: Tensor, layout: str, returns: str | None, start: int) -> None:
    """Checks the tensors, because a kernel only receives addresses."""
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
    if torch.compiler.is_compiling() or transformed():  # such tensors have no addresses
        return
    if _overlaps_itself(out):
        raise ValueError(f"out: several elements share memory (strides {list(out.stride())}); give one made by torch.empty")
    memory = out.untyped_storage().data_ptr()
    for name, tensor in {"x": x, "cos": cos, "sin": sin}.items():
        is_x = name == "x" and x.data_ptr() == out.data_ptr() and x.stride() == out.stride()
        if tensor.untyped_storage().data_ptr() == memory and memory and not is_x:
            itself = "x itself or " if name == "x" else ""
            raise ValueError(f"out: is in the same storage as {name}; give {itself}a tensor of its own")


def _overlaps_itself(x: Tensor) -> bool:
    """Whether two indices lead to one address: an axis must step beyond all that the narrower axes reach."""
    reach = 0
    for stride, size in sorted((stride, size) for stride, size in zip(x.stride(), x.shape, strict=True) if size > 1):
        if stride <= reach:
            return True
        reach += stride * (size - 1)
    return False


# The PyTorch operators posenc::rotate and posenc::rotate_into: C++ on the CPU, Triton on CUDA, plain torch elsewhere.
# Eager code on the CPU calls the kernel directly, because the dispatcher takes longer than a small rotation. Under
# torch.func and in forward mode the operator is its formula in plain torch, which has every derivative and every batching
# rule. `options` are start, half_in, half_out, back, as `in_torch` takes them.

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
    plain = plain_on_cpu(q, k, *tables)
    if plain and not wants_gradient(q, k, *tables):
        return _both_on_cpu(q, k, cos, sin, cos_k, sin_k, *options)
    if plain and not wants_gradient(*tables):
        return _Both.apply(q, k, cos, sin, cos_k, sin_k, *options)  # type: ignore[no-any-return]
    return turned(q, cos, sin, *options), turned(k, cos_k, sin_k, *options)


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
