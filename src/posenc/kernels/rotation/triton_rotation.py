"""Rotation of pairs on CUDA: one pass over the tensor, one rounding, by a kernel that triton compiles at first use.

    (a, b) -> (a·cos − b·sin, b·cos + a·sin)

It is bound by memory, so the plan is: read x once and write it once, in words of 16 bytes; read cos and sin once for
several heads; keep enough bytes in flight. Nothing is read on the host and nothing allocated, so that a CUDA graph can
hold it; capture after a first call, which compiles. The arithmetic is not fused into multiply-adds: results are the
bits of plain torch, as those of the kernels for CPU are.

Device code: posenc.kernels.rotation.triton_kernel. Legend: b batch, h heads, t tokens, d channels, n pairs.
"""

from __future__ import annotations

import importlib.util
import os
from contextlib import AbstractContextManager, nullcontext
from math import gcd
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from posenc.support.shapes import Float

# The sizes are reasoned from the code compiled for sm_90 (56 to 104 registers a thread); no GPU was at hand to time them.
WARPS = 4
# A tile gives each of the 128 threads 16 pairs: 64 bytes of bf16 or 128 of fp32 in flight. At 80 registers six programs
# share a multiprocessor, about 50 KB in flight together; 4.8 TB/s for 700 ns over 132 of them ask for 25.
TILE_PAIRS = 2048
# Half of the tile is tokens of one head, so that every thread keeps its cos and sin in registers for two heads.
HEAD_PAIRS = TILE_PAIRS // 2
# Further heads of the same tokens follow in a loop, while this many programs remain: about one wave of a large GPU.
PROGRAMS = 1024
# cos and sin of fp32 weigh as much as one head of bf16, read and written; after eight heads they no longer count.
MOST_TILES = 4
WIDEST = 16  # elements: no load is wider


def why_not() -> str | None:
    """The reason why no rotation can run in triton here; None where it can."""
    if importlib.util.find_spec("triton") is None:
        return "triton is not installed"
    if not interpreted() and not torch.cuda.is_available():
        return "there is no CUDA device"
    return None


def available() -> bool:
    return why_not() is None


def interpreted() -> bool:
    """Whether triton runs kernels in Python, on CPU tensors: TRITON_INTERPRET=1, set before triton is imported."""
    return os.environ.get("TRITON_INTERPRET", "0").lower() in ("1", "true", "on", "yes", "y")


def rotate(
    x: Float[Tensor, "b h t d"],
    cos: Float[Tensor, "#b t n"],
    sin: Float[Tensor, "#b t n"],
    start: int,
    half_in: bool,
    half_out: bool,
    back: bool,
    out: Float[Tensor, "b h t d"],
) -> None:
    """Writes x with channels start … start+2n−1 turned to `out`, the other channels copied.

    half_in   pair i of x is (i, i + n), else (2i, 2i + 1); half_out the same of out
    back      turns by −angle
    out       any strides; x itself, or memory that x does not overlap
    x, out    one dtype. cos and sin: fp64 for fp64, else fp32, which is also what the arithmetic is done in

    Raises ValueError for shapes and dtypes that do not fit: the kernel would reach beyond the tensors.
    """
    b, h, t, d = x.shape
    n = cos.shape[-1]
    _check(x, cos, sin, start, out)
    if x.numel() == 0:
        return
    from posenc.kernels.rotation.triton_kernel import turn

    tile_heads, tile_tokens = tile(h, t, n)
    token_blocks = -(-t // tile_tokens)
    tiles = -(-h // tile_heads) * token_blocks * b
    heads_each = tile_heads * min(max(tiles // PROGRAMS, 1), MOST_TILES)
    head_groups = -(-h // heads_each)
    steps = [_steps(tensor) for tensor in (x, out, cos, sin)]
    x_align, out_align = _align(steps[0]), _align(steps[1])
    table_align = gcd(_align(steps[2]), _align(steps[3]))
    units = (x_align, out_align, table_align, table_align)
    strides = [s for of, unit in zip(steps, units, strict=True) for s in (*(step // unit for step in of[:-1]), of[-1])]
    on_device: AbstractContextManager[object] = torch.cuda.device(x.device) if x.is_cuda else nullcontext()
    with on_device:
        turn[(token_blocks * head_groups * b,)](
            x,
            cos,
            sin,
            out,
            h,
            t,
            token_blocks,
            head_groups,
            heads_each,
            *strides,
            channels=d,
            start=start,
            pairs=n,
            half_in=half_in,
            half_out=half_out,
            back=back,
            in_place=x.data_ptr() == out.data_ptr() and steps[0] == steps[1],
            tile_heads=tile_heads,
            tile_tokens=tile_tokens,
            x_align=x_align,
            out_align=out_align,
            table_align=table_align,
            num_warps=WARPS,
            num_stages=1,
            enable_fp_fusion=False,
        )


def tile(heads: int, tokens: int, pairs: int) -> tuple[int, int]:
    """Heads and tokens of a tile, powers of two, so that lengths make few kernels: short ones give their place to heads."""
    width = _power(pairs)
    tile_tokens = min(_power(tokens), max(HEAD_PAIRS // width, 1))
    return min(_power(heads), max(TILE_PAIRS // (width * tile_tokens), 1)), tile_tokens


def _power(size: int) -> int:
    """The least power of two from size up."""
    return 1 << (size - 1).bit_length()


def _steps(tensor: Tensor) -> tuple[int, ...]:
    """Strides, 0 along axes of one entry: those are never walked, and torch leaves any number there."""
    return tuple(stride if size > 1 else 0 for size, stride in zip(tensor.shape, tensor.stride(), strict=True))


def _align(strides: tuple[int, ...]) -> int:
    """The largest power of two, up to the widest load, that divides every stride between rows of channels."""
    return gcd(WIDEST, *strides[:-1])


def _check(x: Tensor, cos: Tensor, sin: Tensor, start: int, out: Tensor) -> None:
    b, _, t, d = x.shape
    n, table = cos.shape[-1], torch.float64 if x.dtype == torch.float64 else torch.float32
    if not (cos.shape == sin.shape and cos.shape[:2] in ((b, t), (1, t)) and n >= 1):
        raise ValueError(f"cos, sin: expected [{b} or 1, {t}, pairs] both, got {list(cos.shape)} and {list(sin.shape)}")
    if not (cos.dtype == sin.dtype == table):
        raise ValueError(f"cos, sin: expected {table} for x of {x.dtype}, got {cos.dtype} and {sin.dtype}")
    if not 0 <= start <= d - 2 * n:
        raise ValueError(f"start: expected 0 to {d - 2 * n}, as {n} pairs turn among {d} channels, got {start}")
    if out.shape != x.shape or out.dtype != x.dtype:
        raise ValueError(f"out: expected {list(x.shape)} of {x.dtype}, got {list(out.shape)} of {out.dtype}")
    if not (x.device == cos.device == sin.device == out.device):
        raise ValueError(f"x, cos, sin, out: expected one device, got {x.device}, {cos.device}, {sin.device}, {out.device}")
