"""The C++ kernels, called through ctypes: pointers and strides in, nothing of PyTorch's or Python's ABI.

Built at install where there is a compiler (hatch_build.py). `library()` is None otherwise, and `why_not()` says why;
what they compute is then computed in plain torch, to the same bits.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
from pathlib import Path

HERE = Path(__file__).parent


@functools.cache
def library() -> ctypes.CDLL | None:
    """The kernels, or None where there are none."""
    return None if why_not() else ctypes.CDLL(str(HERE / "kernels.so"))


@functools.cache
def why_not() -> str | None:
    """The reason for running in plain torch; None where the kernels run."""
    if os.environ.get("POSENC_WITHOUT_KERNELS"):
        return "POSENC_WITHOUT_KERNELS is set"
    if not (HERE / "kernels.so").exists():
        return "not built: there was no C++ compiler when posenc was installed"
    try:
        built = ctypes.CDLL(str(HERE / "kernels.so"))
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
