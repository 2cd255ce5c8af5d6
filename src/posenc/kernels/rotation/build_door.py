"""Builds the door (door.py) for the installed torch: python -m posenc.kernels.rotation.build_door"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import torch

from posenc.kernels.rotation.door import LIBRARY, SOURCE, fingerprint

OLDEST = "0x020b000000000000"  # torch 2.11, the oldest that posenc supports
FLAGS = ("-std=c++20", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-Wl,--as-needed")


def build(library: Path = LIBRARY) -> Path:
    """Compiles door.cc. Raises RuntimeError without a compiler, or where it does not compile."""
    compiler = os.environ.get("CXX") or next(filter(shutil.which, ("g++", "clang++", "c++")), None)
    if compiler is None or not sys.platform.startswith("linux"):
        raise RuntimeError("the door needs a C++ compiler on Linux; posenc works without it")
    root = Path(torch.__file__).parent
    new = library.with_suffix(".new")
    command = [
        *(*compiler.split(), *FLAGS, f'-DPOSENC_SOURCES="{fingerprint()}"', f"-DTORCH_TARGET_VERSION={OLDEST}"),
        *(f"-I{root / 'include'}", f"-I{root / 'include' / 'torch' / 'csrc' / 'api' / 'include'}", str(SOURCE)),
        *("-o", str(new), f"-L{root / 'lib'}", "-ltorch_cpu", "-ltorch", "-lc10"),
    ]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        new.unlink(missing_ok=True)
        raise RuntimeError(f"the door did not compile\n{ran.stderr}")
    new.replace(library)  # a process that has the old one open keeps it
    return library


if __name__ == "__main__":
    try:
        print(f"built {build().name} with torch {torch.__version__}")
    except RuntimeError as error:
        sys.exit(str(error))
