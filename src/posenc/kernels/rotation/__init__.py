"""The rotation of queries and keys in one pass over memory: the public functions and their checks.

    (a, b) -> (a cos - b sin, b cos + a sin)     pairs in layout `layout`, returned in layout `returns`

    plain            the formula in plain torch
    triton_*         the Triton kernel, for CUDA
    torch_operator   the PyTorch operator that chooses among them and the C++ kernel (rotation.cpp), and its gradients

fp32 arithmetic for float32, bfloat16 and float16, fp64 for float64; one rounding. The kernels give the bits of the formula.
Legend: b batch, h heads, t tokens, d channels, n pairs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from posenc.frequencies import layouts
from posenc.frequencies.layouts import Layout
from posenc.kernels.eager import transformed
from posenc.kernels.rotation.torch_operator import both_turned, turned, turned_into

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
