"""An optional way into the C++ kernels for one decoded token: one operator instead of ctypes and two allocations.

    python -m posenc.kernels.rotation.build_door      builds it for the installed torch: a C++ compiler, some seconds

It is written against PyTorch's stable C ABI: a build serves the torch it was built with and later ones. Wheels do not
contain it; where it is missing, everything is computed as without it, with the same bits (`why_not()` says why).
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from posenc import kernels
from posenc.kernels.fast_path import plain_on_cpu, wants_gradient
from posenc.kernels.rotation.native import TYPES

if TYPE_CHECKING:
    from posenc.frequencies import Frequencies
    from posenc.positions import Positions

SOURCE = Path(__file__).with_name("door.cc")
LIBRARY = SOURCE.with_name("libdoor.so")  # door.so would be a module of Python
MOST = 64  # tokens of a call that computes its tables within


def fingerprint() -> str:
    return hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]


@functools.cache
def why_not() -> str | None:
    """The reason why the operator is not used; None if it is."""
    if (missing := kernels.why_not()) is not None:
        return missing
    if not LIBRARY.exists():
        return "not built: python -m posenc.kernels.rotation.build_door builds it"
    try:
        library = ctypes.CDLL(str(LIBRARY))
    except OSError as error:
        return f"does not load: {error}"
    library.posenc_door_sources.restype = ctypes.c_char_p
    if library.posenc_door_sources().decode() != fingerprint():
        return "built from another source than this: build it again"
    native: Any = kernels.library()
    address = ctypes.c_void_p
    library.posenc_door_open.argtypes, library.posenc_door_open.restype = [address, address], None
    library.posenc_door_open(
        ctypes.cast(native.posenc_rotate, address), ctypes.cast(native.posenc_sin_cos_consecutive, address)
    )
    return None


@functools.cache
def operator() -> Callable[..., tuple[Tensor, Tensor]] | None:
    """`rotate_at` of door.cc, or None."""
    return torch.ops.posenc_door.rotate_at.default if why_not() is None else None


def serves(frequencies: Frequencies) -> bool:
    """Whether it computes cos and sin of these: of one axis, in fp64, not scaled."""
    return frequencies.arithmetic == "float64" and frequencies.n_axes == 1 and frequencies.cos_sin_scale == 1


def rotated_at(
    q: Tensor, k: Tensor, at: Positions, frequencies: tuple[float, ...], start: int, half_in: bool, half_out: bool
) -> tuple[Tensor, Tensor] | None:
    """q and k [b, h, t, d] turned by tables that are computed within; None for calls that it does not serve, or wrong ones.

    It serves few tokens at consecutive positions, in eager code on the CPU without a gradient.
    """
    if torch.compiler.is_compiling() or (rotate_at := operator()) is None:
        return None
    coords = at.coords
    if at.consecutive_in != "row" or not plain_on_cpu(q, k, coords) or wants_gradient(q, k):
        return None
    of_q, of_k, of_at, kind = q.shape, k.shape, coords.shape, TYPES.get(q.dtype)
    if kind is None or k.dtype != q.dtype or coords.dtype != torch.int64 or len(of_q) != 4 or len(of_k) != 4:
        return None
    rows, tokens = of_at
    fits = of_q[0] == of_k[0] and of_q[2] == of_k[2] == tokens and rows in (1, of_q[0]) and of_q[3] == of_k[3]
    if not fits or rows * tokens > MOST or start + 2 * len(frequencies) > of_q[3]:
        return None
    return rotate_at(q, k, coords, _omega(frequencies), start, half_in, half_out, kind, torch.get_num_threads())


@functools.lru_cache(256)
def _omega(values: tuple[float, ...]) -> Tensor:
    with torch.inference_mode(False):
        return torch.tensor(values, dtype=torch.float64)
