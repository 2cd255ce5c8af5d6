"""The C++ kernels, called through ctypes with pointers and strides, independent of the ABI of PyTorch and Python.

A wheel for a platform contains them; an installation from sources builds them where there is a compiler (hatch_build.py).
`library()` is None where they are missing, and `why_not()` says why; plain torch then computes the same bits.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
LIBRARY = HERE / {"win32": "kernels.dll", "darwin": "kernels.dylib"}.get(sys.platform, "kernels.so")


@functools.cache
def library() -> ctypes.CDLL | None:
    """The kernels, or None where there are none."""
    return None if why_not() else ctypes.CDLL(str(LIBRARY))


@functools.cache
def function(name: str) -> Callable[[bytes], None] | None:
    """The C++ function of that name, which takes one packed structure; None where there are no kernels."""
    if (kernels := library()) is None:
        return None
    native: Any = getattr(kernels, name)
    native.argtypes, native.restype = [ctypes.c_char_p], None
    return native  # type: ignore[no-any-return]


@functools.cache
def instructions() -> str | None:
    """The instructions that the kernels use on this processor: avx512_bf16, avx512, avx2, neon or portable; None without
    kernels. The environment variable POSENC_KERNELS names narrower ones."""
    if (kernels := library()) is None:
        return None
    kernels.posenc_instructions.restype = ctypes.c_char_p
    named: str = kernels.posenc_instructions().decode()
    return named


@functools.cache
def why_not() -> str | None:
    """The reason for running in plain torch; None where the kernels run."""
    if os.environ.get("POSENC_WITHOUT_KERNELS"):
        return "POSENC_WITHOUT_KERNELS is set"
    if not LIBRARY.exists():
        return "not there: posenc was installed without a C++ compiler or from the wheel for any platform"
    try:
        built = ctypes.CDLL(str(LIBRARY))
    except OSError as error:
        return f"does not load: {error}"
    built.posenc_sources.restype = ctypes.c_char_p
    if built.posenc_sources().decode() != fingerprint():
        return "built from other sources than these: install posenc again"
    return None


def sources() -> list[Path]:
    """The C++ files of the package, each beside the Python that calls it, and their headers."""
    return sorted(path for kind in ("*.cpp", "*.h") for path in HERE.parent.rglob(kind))


def fingerprint() -> str:
    """Of the sources; the build writes it into the library."""
    digest = hashlib.sha256()
    for source in sources():
        digest.update(source.relative_to(HERE.parent).as_posix().encode() + b"\0" + source.read_bytes() + b"\0")
    return digest.hexdigest()[:16]
