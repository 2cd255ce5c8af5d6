"""The device side of posenc.kernels.rotation.triton_rotation: one program turns a tile of heads and tokens after another.

Imports triton, so it is imported only where a rotation runs on CUDA or in triton's interpreter.

Legend of shapes: g heads of a tile, t its tokens, n pairs, c channels; n and c padded to a power of two.
Rows, blocks and strides multiply as int64: a cache of keys has more than 2^31 elements.
"""

from __future__ import annotations

import triton
import triton.language as tl

# Sizes that change from call to call are not specialised on, or every length would be compiled anew.
VARYING = (
    "heads",
    "tokens",
    "token_blocks",
    "head_groups",
    "heads_each",
    "x_b",
    "x_h",
    "x_t",
    "out_b",
    "out_h",
    "out_t",
    "cos_b",
    "cos_t",
    "sin_b",
    "sin_t",
)


@triton.jit
def load(rows: tl.tensor, first: tl.constexpr, index: tl.tensor, stride: tl.tensor, mask: tl.tensor) -> tl.tensor:
    return tl.load(rows + (first + index).to(tl.int64) * stride, mask=mask)


@triton.jit
def store(
    rows: tl.tensor, first: tl.constexpr, index: tl.tensor, stride: tl.tensor, value: tl.tensor, mask: tl.tensor
) -> None:
    tl.store(rows + (first + index).to(tl.int64) * stride, value.to(rows.dtype.element_ty), mask=mask)


@triton.jit
def copy(
    x_rows: tl.tensor,
    x_c: tl.tensor,
    out_rows: tl.tensor,
    out_c: tl.tensor,
    seen: tl.tensor,
    first: tl.constexpr,
    count: tl.constexpr,
) -> None:
    """Channels first … first + count − 1 pass through."""
    width: tl.constexpr = triton.next_power_of_2(count)
    index = tl.arange(0, width)[None, None, :]
    mask = seen & (index < count)
    store(out_rows, first, index, out_c, load(x_rows, first, index, x_c, mask), mask)


@triton.jit(do_not_specialize=VARYING)
def turn(
    x: tl.tensor,
    cos: tl.tensor,
    sin: tl.tensor,
    out: tl.tensor,
    heads: tl.tensor,
    tokens: tl.tensor,
    token_blocks: tl.tensor,
    head_groups: tl.tensor,
    heads_each: tl.tensor,
    x_b: tl.tensor,
    x_h: tl.tensor,
    x_t: tl.tensor,
    x_c: tl.tensor,
    out_b: tl.tensor,
    out_h: tl.tensor,
    out_t: tl.tensor,
    out_c: tl.tensor,
    cos_b: tl.tensor,
    cos_t: tl.tensor,
    cos_n: tl.tensor,
    sin_b: tl.tensor,
    sin_t: tl.tensor,
    sin_n: tl.tensor,
    channels: tl.constexpr,
    start: tl.constexpr,
    pairs: tl.constexpr,
    half_in: tl.constexpr,
    half_out: tl.constexpr,
    back: tl.constexpr,
    in_place: tl.constexpr,
    tile_heads: tl.constexpr,
    tile_tokens: tl.constexpr,
    x_align: tl.constexpr,
    out_align: tl.constexpr,
    table_align: tl.constexpr,
) -> None:
    """(a, b) -> (a·cos − b·sin, b·cos + a·sin) for one block of tokens and `heads_each` heads of one row of the batch."""
    # Strides between rows come in units of *_align channels: so the compiler knows how wide it may read.
    x_b, x_h, x_t = x_b * x_align, x_h * x_align, x_t * x_align
    out_b, out_h, out_t = out_b * out_align, out_h * out_align, out_t * out_align
    cos_b, cos_t, sin_b, sin_t = cos_b * table_align, cos_t * table_align, sin_b * table_align, sin_t * table_align

    program = tl.program_id(0)
    block, group = program % token_blocks, program // token_blocks % head_groups
    row = (program // token_blocks // head_groups).to(tl.int64)
    width: tl.constexpr = triton.next_power_of_2(pairs)
    pair, both = tl.arange(0, width)[None, None, :], tl.arange(0, 2 * width)[None, None, :]

    # cos and sin once, for all heads of this program: [1, t, n].
    token = (block.to(tl.int64) * tile_tokens + tl.arange(0, tile_tokens))[None, :, None]
    mask = (token < tokens) & (pair < pairs)
    c = load(cos + row * cos_b + token * cos_t, 0, pair, cos_n, mask)
    s = load(sin + row * sin_b + token * sin_t, 0, pair, sin_n, mask)
    if back:
        s = -s

    for first_head in range(group * heads_each, tl.minimum((group + 1) * heads_each, heads), tile_heads):
        head = (first_head + tl.arange(0, tile_heads)).to(tl.int64)[:, None, None]
        seen = (head < heads) & (token < tokens)
        x_rows = x + row * x_b + head * x_h + token * x_t
        out_rows = out + row * out_b + head * out_h + token * out_t
        if half_in:
            a = load(x_rows, start, pair, x_c, seen & (pair < pairs))
            b = load(x_rows, start + pairs, pair, x_c, seen & (pair < pairs))
        else:  # neighbours are read together and parted in registers
            ab = load(x_rows, start, both, x_c, seen & (both < 2 * pairs))
            a, b = tl.split(tl.reshape(ab, (tile_heads, tile_tokens, width, 2)))
        a, b = a.to(c.dtype), b.to(c.dtype)
        a, b = a * c - b * s, b * c + a * s
        if in_place and half_in != half_out:
            tl.debug_barrier()  # a channel is written by another thread than the one that reads it
        if half_out:
            store(out_rows, start, pair, out_c, a, seen & (pair < pairs))
            store(out_rows, start + pairs, pair, out_c, b, seen & (pair < pairs))
        else:
            ab = tl.reshape(tl.join(a, b), (tile_heads, tile_tokens, 2 * width))
            store(out_rows, start, both, out_c, ab, seen & (both < 2 * pairs))
        if not in_place:
            if start > 0:
                copy(x_rows, x_c, out_rows, out_c, seen, 0, start)
            if start + 2 * pairs < channels:
                copy(x_rows, x_c, out_rows, out_c, seen, start + 2 * pairs, channels - start - 2 * pairs)
