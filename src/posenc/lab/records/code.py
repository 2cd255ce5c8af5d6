"""What a result belongs to besides its trial: the version of the code, of torch, and the kind of device.

    sources of posenc ─► without those that only read, choose, keep or show ─► one SHA-256 of the code

Whatever is not named as apart is taken to change numbers, new files too: a hash too sensitive costs a run, one too
dull mixes results. The C++ kernels give the same bits as plain torch, but a mistake in them would not, so they count.
"""

from __future__ import annotations

import hashlib
import platform
from pathlib import Path
from typing import TYPE_CHECKING

import posenc

if TYPE_CHECKING:
    from posenc.lab.trial.training import Hardware

# What a trial is made of (experiment.py) is in its key already, field by field.
APART = (
    "__init__.py",
    "__main__.py",
    "benchmarks/",
    "cli.py",
    "commands/",
    "learn/",
    "dialects/",
    "explorer/",
    "laws/",
    "plots/",
    "bilingual.py",
    "lab/engines/",
    "lab/experiment/",
    "lab/findings/",
    "lab/records/",
    "lab/run/",
    "lab/views/",
)
SOURCES = (".py", ".cpp", ".h")


def code_hash() -> str:
    """Of the sources that can change a measured number."""
    root = Path(posenc.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.suffix in SOURCES and not name.startswith(APART):
            digest.update(f"{name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def surroundings(hardware: Hardware) -> dict[str, str]:
    """Of this process: what makes the same trial give other numbers, but for the text."""
    import torch

    if hardware.device == "cpu":
        device = f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}"
    else:
        device = torch.cuda.get_device_name(hardware.device)
    shared = f", {hardware.devices} sharing {hardware.shard}" if hardware.devices > 1 else ""
    return {
        "code": code_hash(),
        "torch": torch.__version__,
        "device": device + shared,
        "precision": hardware.precision,
    }
