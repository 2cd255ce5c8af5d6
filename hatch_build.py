"""Builds the C++ kernels while posenc is being installed or packed, where there is a compiler.

    src/posenc/**/*.cpp  ->  src/posenc/kernels/kernels.so

Without a compiler, or with POSENC_WITHOUT_KERNELS=1, posenc is installed without them and computes in plain torch:
`posenc list` and `posenc bench` say which runs. The library uses neither Python's nor PyTorch's ABI, so one build serves
every version of both; processor features are chosen when it runs.
"""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

KERNELS = Path(__file__).parent / "src" / "posenc" / "kernels"
# No contraction into fused multiply-adds: the kernels then give, bit for bit, what plain torch gives.
FLAGS = ["-std=c++17", "-O3", "-fPIC", "-shared", "-ffp-contract=off", "-fno-math-errno", "-fvisibility=hidden", "-pthread"]


class KernelBuildHook(BuildHookInterface):
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        library = KERNELS / "kernels.so"
        library.unlink(missing_ok=True)
        compiler = os.environ.get("CXX") or next(filter(shutil.which, ("g++", "clang++", "c++")), None)
        if os.environ.get("POSENC_WITHOUT_KERNELS") or compiler is None or sys.platform == "win32":
            self.app.display_warning("posenc: no C++ compiler is used; computing in plain torch")
            return
        sources = [path for path in loader()["sources"]() if path.suffix == ".cpp"]
        static = ["-static-libstdc++", "-static-libgcc"] if sys.platform == "linux" else []
        command = [
            *compiler.split(),
            *FLAGS,
            *static,
            f'-DPOSENC_SOURCES="{loader()["fingerprint"]()}"',
            f"-I{KERNELS}",
            *map(str, sources),
            "-o",
            str(library),
        ]
        built = subprocess.run(command, capture_output=True, text=True, check=False)
        if built.returncode:
            library.unlink(missing_ok=True)
            self.app.display_warning(f"posenc: the kernels did not compile; computing in plain torch\n{built.stderr}")
            return
        build_data["artifacts"].append("src/posenc/kernels/kernels.so")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"


def loader() -> dict[str, Any]:
    """What loads the library: it says which sources there are, and their fingerprint."""
    return runpy.run_path(str(KERNELS / "__init__.py"))
