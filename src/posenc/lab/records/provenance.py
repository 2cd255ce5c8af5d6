"""Where a result comes from: the code, torch and the kind of device. Kept with a record, and never part of its key."""

from __future__ import annotations

import platform
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from posenc.lab.records.fingerprint import SOURCES, fingerprint

if TYPE_CHECKING:
    from posenc.lab.experiment import Trial
    from posenc.lab.trial.training import Hardware

SHOWN = (
    "posenc",
    "code",
    "revision",
    "torch",
    "device",
    "cpu_model",
)  # of records; `code` is the digest that posenc 0.1 wrote
PATIENCE = 10  # seconds that git may take


def provenance(trial: Trial, hardware: Hardware) -> dict[str, str]:
    """Of a trial that runs here: the fingerprint and the revision of the code, torch and the device."""
    return {"fingerprint": fingerprint(trial), "revision": revision(), **environment(hardware)}


def environment(hardware: Hardware) -> dict[str, str]:
    """What besides the code makes the same trial give other roundings: torch, and the kind of device."""
    import torch

    if hardware.device == "cpu":
        device = f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}"
    else:
        device = torch.cuda.get_device_name(hardware.device)
    return {"torch": torch.__version__, "device": device}


@cache
def revision() -> str:
    """The commit of posenc's own repository, with "-dirty" where its code was changed since; "" where there is none.

    Results are no code: those that a sweep adds to the repository do not count.
    """
    try:
        _git("ls-files", "--error-unmatch", "__init__.py")  # posenc may be installed inside another project's repository
        changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".")
        return _git("rev-parse", "HEAD") + "-dirty" * bool(changed)
    except (OSError, subprocess.SubprocessError):
        return ""


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(SOURCES), *arguments]
    return subprocess.run(command, capture_output=True, encoding="utf-8", check=True, timeout=PATIENCE).stdout.strip()


def summary(records: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The provenance of many records in one: each name with all values that occur, the most frequent first."""
    counts = {name: Counter[str]() for name in SHOWN}
    for about in records:
        for name, count in counts.items():
            if value := {**about["machine"], **about["provenance"]}.get(name):
                count[value] += 1
    return {name: ", ".join(value for value, _ in count.most_common()) for name, count in counts.items() if count}
