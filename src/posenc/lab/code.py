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
    from posenc.lab.training import Hardware

# What a trial is made of (experiment.py) is in its key already, field by field.
APART = (
    "__init__.py",
    "__main__.py",
    "benchmarks/",
    "cli.py",
    "commands/",
    "claims/",
    "dialects/",
    "explorer/",
    "laws.py",
    "notes.py",
    "plots/",
    "walk.py",
    "words.py",
    *(
        f"lab/{name}"
        for name in (
            "admission.py",
            "answer.py",
            "code.py",
            "compare.py",
            "engines/",
            "experiment.py",
            "files.py",
            "findings.py",
            "html.py",
            "judges.py",
            "page.py",
            "picture.py",
            "prose.py",
            "published.py",
            "recipe.py",
            "relative_cost.py",
            "remembered.py",
            "report/",
            "results.py",
            "statistics.py",
            "store.py",
            "summary.py",
            "svg.py",
            "sweep.py",
            "table.py",
            "time_left.py",
            "titles.py",
            "verdict.py",
            "workers.py",
        )
    ),
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
