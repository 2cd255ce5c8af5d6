"""The machine and the versions of a measurement. Needs no torch."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
from typing import Any

from posenc import __version__
from posenc.kernels import processor


def facts() -> dict[str, Any]:
    why_not = kernels()
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "cpu": cpu(),
        "cores": os.cpu_count(),
        "memory_gib": memory_gib(),
        "system": f"{platform.system()} {platform.machine()}",
        "libc": " ".join(platform.libc_ver()).strip(),
        "python": platform.python_version(),
        "posenc": __version__,
        "torch": version("torch"),
        "numpy": version("numpy"),
        "triton": version("triton"),
        "kernels": f"C++ ({instructions()})" if why_not is None else "plain torch",
        "why_no_kernels": why_not,
    }


def version(distribution: str) -> str | None:
    """Of an installed package, by the name of its distribution; None if it is not installed."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def kernels() -> str | None:
    """The reason why the C++ kernels do not run; None if they do."""
    from posenc.kernels import why_not

    return why_not()


def instructions() -> str | None:
    """The instructions that the C++ kernels use here; None if they do not run."""
    from posenc.kernels import instructions

    return instructions()


def running(language: str = "en") -> str:
    """One line about the implementations that posenc's operators use on this machine."""
    why, triton = kernels(), version("triton")
    if language == "zh":
        on_cpu = f"C++（{instructions()}）" if why is None else f"纯 torch（{why}）"
        return f"CPU 内核：{on_cpu}；GPU 内核：{f'Triton {triton}' if triton else '纯 torch（未装 Triton）'}"
    on_cpu = f"C++ ({instructions()})" if why is None else f"plain torch ({why})"
    return f"Kernels on the CPU: {on_cpu}; on a GPU: {f'Triton {triton}' if triton else 'plain torch (no Triton)'}"


def cpu() -> str:
    """The model, and the widest of the instruction sets that decide its speed."""
    widest = next((name for name in ("avx512f", "avx2", "asimd") if name in processor.features()), "")
    return f"{processor.model()} ({widest})" if widest else processor.model()


def memory_gib() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (ValueError, OSError, AttributeError):
        return None
