"""The processor of this machine, as the system describes it. Needs no torch."""

from __future__ import annotations

import functools
import platform
from collections.abc import Mapping
from pathlib import Path


def model() -> str:
    """The name that its maker, or a virtual machine, gives it."""
    return fields().get("model name") or platform.processor() or platform.machine()


def identified() -> str:
    """The model with the numbers that tell processors apart to which virtual machines give one name."""
    numbers = [f"{name} {fields()[name]}" for name in ("cpu family", "model", "stepping") if name in fields()]
    return ", ".join([model(), *numbers])


def features() -> frozenset[str]:
    """The instruction sets that the system lists; empty where it lists none."""
    return frozenset(fields().get("flags", fields().get("Features", "")).split())


@functools.cache
def fields() -> Mapping[str, str]:
    """The lines of /proc/cpuinfo about one core; empty where there is no such file."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    return {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
