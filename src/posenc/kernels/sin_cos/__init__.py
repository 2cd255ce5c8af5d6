"""sin and cos of position times frequency, computed in fp64 and rounded once: the tables of sinusoids and rotations.

For consecutive positions the notes' own theorem does the work, PE(p+k) = M_k·PE(p): sin and cos are taken for one block
of positions and for the block starts, and every other entry is one complex product of the two. Arbitrary positions are
computed one by one. Both stay within one rounding of fp64 to position 1 000 000 and beyond.

Two operators, posenc::consecutive_phasors and posenc::phasors_at: in C++ on the CPU (sin_cos.cpp), in plain torch
elsewhere and where there are no kernels. They take frequencies as text, "1.0,0.5": a fixed encoding has no buffers, and
512 numbers cost 12 µs a call as float[] and 1 µs as text. A tensor kept beside the encoding would be real where a compiler
expects a fake one, or stay behind when the model moves. Text is the same everywhere, exact, and is seen in a graph.

Legend: b batch, t tokens, n frequencies, 2 is (sin, cos).
"""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from posenc import kernels
from posenc.kernels.fast_path import constant, plain_on_cpu
from posenc.positions import Positions

if TYPE_CHECKING:
    from jaxtyping import Float, Int, Num

BLOCK = 16384  # entries of a block: 256 KiB of complex fp64 stay in the cache, and torch keeps so few on one thread
FILLED = (torch.float32, torch.float64)  # what the kernels write
KEPT = 256  # frequencies, as text and as numbers, that are kept ready


def phasors(at: Positions, frequencies: Sequence[Sequence[float]], dtype: torch.dtype) -> Float[Tensor, "b t n 2"]:
    """(sin, cos) of coordinate times frequency; `frequencies` holds one list per coordinate axis, concatenated in n."""
    axes = [axis for axis, of_axis in enumerate(frequencies) for _ in of_axis] if len(frequencies) > 1 else ()
    return of_pairs(at, [one for of_axis in frequencies for one in of_axis] if axes else frequencies[0], axes, dtype)


def of_pairs(
    at: Positions, frequencies: Sequence[float], axes: Sequence[int], dtype: torch.dtype, *, planes: bool = False
) -> Float[Tensor, "b t n 2"]:
    """(sin, cos) of coordinate times frequency, each frequency reading its own axis; no axes: there is one coordinate.

    In memory sin and cos are neighbours, [b, t, n, 2], or, with `planes`, apart: [2, b, t, n].
    """
    coords = at.coords if axes or at.coords.ndim == 2 else at.coords[..., 0]
    if coords.requires_grad:
        omega = torch.tensor(list(frequencies), dtype=torch.float64, device=coords.device)
        return anywhere(coords, omega, torch.tensor(list(axes), device=coords.device) if axes else None, dtype)
    text, direct = spelt(frequencies), plain_on_cpu(coords)
    table: Tensor
    if not at.consecutive or axes or coords.is_floating_point():
        one_by_one = _at_native if direct else torch.ops.posenc.phasors_at.default
        table = one_by_one(coords, text, spelt(axes), dtype, planes)
        return table
    starts = coords[:1, 0] if coords.stride(0) == 0 else coords[:, 0]  # arange() repeats one row
    in_a_row = _consecutive_native if direct else torch.ops.posenc.consecutive_phasors.default
    table = in_a_row(starts, coords.shape[1], text, dtype, planes)
    return table if len(starts) == len(coords) else table.expand(len(coords), -1, -1, -1)


def apart(
    at: Positions, frequencies: Sequence[float], axes: Sequence[int], dtype: torch.dtype
) -> tuple[Float[Tensor, "b t n"], Float[Tensor, "b t n"]]:
    """sin and cos as tensors of their own, contiguous; that a graph takes as inputs without asking where they begin."""
    coords = at.coords if axes or at.coords.ndim == 2 else at.coords[..., 0]
    if not plain_on_cpu(coords) or coords.requires_grad or dtype not in FILLED or _native() is None:
        sin, cos = of_pairs(at, frequencies, axes, dtype, planes=True).unbind(-1)
        return sin, cos if torch.compiler.is_compiling() else cos.clone()
    in_a_row = at.consecutive and not axes and not coords.is_floating_point()
    b, t, n = coords.shape[0], coords.shape[1], len(frequencies)
    rows = 1 if in_a_row and coords.stride(0) == 0 else b
    sin, cos = torch.empty(rows, t, n, dtype=dtype), torch.empty(rows, t, n, dtype=dtype)
    where = sin.data_ptr(), cos.data_ptr(), _three(t * n, n, 1), dtype == torch.float64
    if in_a_row:
        _fill_in_a_row(coords if rows == 1 else coords[:, 0], rows, t, _numbers(tuple(frequencies)), where)
    else:
        _fill_anywhere(coords, _numbers(tuple(frequencies)), spelt(axes), where)
    return (sin, cos) if rows == b else (sin.expand(b, -1, -1), cos.expand(b, -1, -1))


# Frequencies as text: the shortest that reads as the same number.


def spelt(numbers: Sequence[float]) -> str:
    return _spelt(numbers) if torch.compiler.is_compiling() else _kept_text(tuple(numbers))


def _spelt(numbers: Sequence[float]) -> str:
    return ",".join([repr(one) for one in numbers])


def read(text: str, kind: Callable[[str], Any] = float) -> list[Any]:
    return [kind(one) for one in text.split(",")] if text else []


_kept_text = functools.lru_cache(KEPT)(_spelt)


@functools.lru_cache(KEPT)
def _numbers(numbers: tuple[float, ...]) -> tuple[Any, int]:
    """As a C array, and how many."""
    return (ctypes.c_double * len(numbers))(*numbers), len(numbers)


@functools.lru_cache(KEPT)
def _doubles(text: str) -> tuple[Any, int]:
    return _numbers(tuple(read(text)))


@functools.lru_cache(KEPT)
def _whole(text: str) -> Any:
    numbers = read(text, int)
    return (ctypes.c_int64 * len(numbers))(*numbers) if numbers else None


# In C++.


@functools.cache
def _native() -> tuple[Any, Any] | None:
    """The kernels for consecutive positions and for arbitrary ones, or None."""
    library = kernels.library()
    if library is None:
        return None
    number, address, choice = ctypes.c_int64, ctypes.c_void_p, ctypes.c_int
    table: list[Any] = [address, address, address, choice, choice]
    consecutive, at = library.posenc_consecutive_phasors, library.posenc_phasors_at
    consecutive.argtypes = [address, number, number, address, number, *table]
    at.argtypes = [address, choice, address, number, number, address, address, number, *table]
    consecutive.restype = at.restype = None
    return consecutive, at


_three = struct.Struct("3q").pack  # strides


def _where(table: Tensor) -> tuple[Any, ...]:
    """Addresses of sin and cos, strides, and whether fp64."""
    row, token, pair, other = table.stride()
    sin = table.data_ptr()
    return sin, sin + other * table.element_size(), _three(row, token, pair), table.dtype == torch.float64


def _fill_in_a_row(starts: Tensor, rows: int, length: int, omega: tuple[Any, int], where: tuple[Any, ...]) -> None:
    """The first `rows` numbers of `starts` are where the rows start."""
    if starts.dtype != torch.int64 or rows > 1:
        starts = starts.to(torch.int64).contiguous()
    native = _native()
    assert native is not None
    native[0](starts.data_ptr(), rows, length, *omega, *where, torch.get_num_threads())


def _fill_anywhere(coords: Tensor, omega: tuple[Any, int], axes: str, where: tuple[Any, ...]) -> None:
    real = coords.is_floating_point()
    if coords.dtype not in (torch.int64, torch.float64):
        coords = coords.double() if real else coords.long()
    (frequencies, n), size, native = omega, coords.shape, _native()
    assert native is not None
    strides = _three(*(*coords.stride(), 0)[:3])
    native[1](
        coords.data_ptr(), real, strides, size[0], size[1], frequencies, _whole(axes), n, *where, torch.get_num_threads()
    )


def _consecutive_native(starts: Tensor, length: int, frequencies: str, dtype: torch.dtype, planes: bool = False) -> Tensor:
    if _native() is None or dtype not in FILLED:
        return _consecutive_plain(starts, length, frequencies, dtype, planes)
    table = _empty(starts, len(starts), length, frequencies.count(",") + 1, dtype, planes)
    _fill_in_a_row(starts, len(starts), length, _doubles(frequencies), _where(table))
    return table


def _at_native(coords: Tensor, frequencies: str, axes: str, dtype: torch.dtype, planes: bool = False) -> Tensor:
    if _native() is None or dtype not in FILLED:
        return _at_plain(coords, frequencies, axes, dtype, planes)
    table = _empty(coords, coords.shape[0], coords.shape[1], frequencies.count(",") + 1, dtype, planes)
    _fill_anywhere(coords, _doubles(frequencies), axes, _where(table))
    return table


# In plain torch.


def anywhere(
    coords: Num[Tensor, "b t *axes"], omega: Float[Tensor, "n"], axes: Int[Tensor, "n"] | None, dtype: torch.dtype
) -> Float[Tensor, "b t n 2"]:
    """One sin and one cos for each position and frequency, whatever the positions."""
    read_by = coords[..., None] if axes is None else coords[..., axes]
    angle = read_by.double() * omega
    return torch.stack([angle.sin(), angle.cos()], dim=-1).to(dtype)


def consecutive(
    starts: Int[Tensor, "b"], length: int, omega: Float[Tensor, "n"], dtype: torch.dtype
) -> Float[Tensor, "b t n 2"]:
    """The same for starts[b], starts[b]+1, …: sin θ + i·cos θ = i·e^(-iθ), so that a product adds the angles."""
    block = min(max(BLOCK // len(omega), 1), length)
    turn = torch.polar(torch.ones_like(omega), -torch.arange(block, device=omega.device)[:, None] * omega)
    first = torch.arange(0, length, block, device=omega.device)
    angle = (starts[:, None] + first).double()[..., None] * omega
    begin = torch.complex(angle.sin(), angle.cos())  # [b, blocks, n]
    table = torch.empty(len(starts), length, len(omega), 2, dtype=dtype, device=starts.device)
    product = torch.empty_like(turn)
    for row in range(len(starts)):
        for number in range(begin.shape[1]):
            torch.mul(turn, begin[row, number], out=product)
            part = table[row, number * block : (number + 1) * block]
            part.copy_(torch.view_as_real(product)[: part.shape[0]])
    return table


def _consecutive_plain(starts: Tensor, length: int, frequencies: str, dtype: torch.dtype, planes: bool = False) -> Tensor:
    return _laid_out(
        consecutive(starts, length, constant(tuple(read(frequencies)), torch.float64, starts.device), dtype), planes
    )


def _at_plain(coords: Tensor, frequencies: str, axes: str, dtype: torch.dtype, planes: bool = False) -> Tensor:
    omega = constant(tuple(read(frequencies)), torch.float64, coords.device)
    which = constant(tuple(read(axes, int)), torch.int64, coords.device) if axes else None
    return _laid_out(anywhere(coords, omega, which, dtype), planes)


def _laid_out(table: Tensor, planes: bool) -> Tensor:
    return table.movedim(-1, 0).contiguous().movedim(0, -1) if planes else table


def _empty(like: Tensor, b: int, t: int, n: int, dtype: torch.dtype, planes: bool) -> Tensor:
    strides = (t * n, n, 1, b * t * n) if planes else (t * n * 2, n * 2, 2, 1)
    return torch.empty_strided((b, t, n, 2), strides, dtype=dtype, device=like.device)


# Operators of their own, so that a compiled graph holds one node and no complex number. Registered by hand: the decorator
# for it would import torch's compiler, two seconds, at the first table.


def _consecutive_shape(starts: Tensor, length: int, frequencies: str, dtype: torch.dtype, planes: bool = False) -> Tensor:
    return _empty(starts, starts.shape[0], length, frequencies.count(",") + 1, dtype, planes)


def _at_shape(coords: Tensor, frequencies: str, axes: str, dtype: torch.dtype, planes: bool = False) -> Tensor:
    return _empty(coords, coords.shape[0], coords.shape[1], frequencies.count(",") + 1, dtype, planes)


_LIBRARY = torch.library.Library("posenc", "FRAGMENT")
_LIBRARY.define(
    "consecutive_phasors(Tensor starts, SymInt length, str frequencies, ScalarType dtype, bool planes=False) -> Tensor"
)
_LIBRARY.define("phasors_at(Tensor coords, str frequencies, str axes, ScalarType dtype, bool planes=False) -> Tensor")
for _name, _on_cpu, _elsewhere, _shape in (
    ("consecutive_phasors", _consecutive_native, _consecutive_plain, _consecutive_shape),
    ("phasors_at", _at_native, _at_plain, _at_shape),
):
    _LIBRARY.impl(_name, _elsewhere, "CompositeExplicitAutograd")
    _LIBRARY.impl(_name, _on_cpu, "CPU")
    _LIBRARY._register_fake(_name, _shape)
