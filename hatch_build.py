"""Builds the C++ kernels when posenc is installed or packaged, if a compiler is found.

    src/posenc/**/*.cpp  ->  src/posenc/kernels/kernels.so (.dll for Windows, .dylib for macOS)

CXX names another compiler. POSENC_PLATFORM names the platform of the wheel where CXX compiles for another machine than
this one, for example manylinux_2_28_aarch64: tools/wheels.py sets both.

Without a compiler, or with POSENC_WITHOUT_KERNELS=1, posenc is installed without them and uses plain torch;
`posenc list` and `posenc bench` print which is used. The library uses neither Python's nor PyTorch's ABI, so one build
works with every version of both. Processor features are detected at run time.
"""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

KERNELS = Path(__file__).parent / "src" / "posenc" / "kernels"
LIBRARIES = {"win": "kernels.dll", "macosx": "kernels.dylib", "": "kernels.so"}  # by how the platform's name begins
# Without fused multiply-adds the kernels give the same results as plain torch, bit for bit.
FLAGS = ["-std=c++17", "-O3", "-fPIC", "-ffp-contract=off", "-fno-math-errno", "-fvisibility=hidden", "-pthread"]


class KernelBuildHook(BuildHookInterface):
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        for name in LIBRARIES.values():
            (KERNELS / name).unlink(missing_ok=True)
        platform = os.environ.get("POSENC_PLATFORM") or sysconfig.get_platform().replace("-", "_").replace(".", "_")
        library = KERNELS / next(name for start, name in LIBRARIES.items() if platform.startswith(start))
        compiler = os.environ.get("CXX") or next(filter(shutil.which, ("g++", "clang++", "c++")), None)
        # Microsoft's compiler has other flags.
        for_this_windows = sys.platform == "win32" and "POSENC_PLATFORM" not in os.environ
        if os.environ.get("POSENC_WITHOUT_KERNELS") or compiler is None or for_this_windows:
            self.app.display_warning("posenc: no C++ compiler is used; computing in plain torch")
            return
        static = ["-s"] if sys.platform == "linux" else []
        if sys.platform == "linux" and "POSENC_PLATFORM" not in os.environ:  # zig links its C++ library statically
            static += ["-static-libstdc++", "-static-libgcc"]
        error = compiled([*compiler.split(), *FLAGS], ["-shared", *static], library)
        if error:
            library.unlink(missing_ok=True)
            if "POSENC_PLATFORM" in os.environ:
                raise RuntimeError(f"the kernels for {platform} did not compile\n{error}")
            self.app.display_warning(f"posenc: the kernels did not compile; computing in plain torch\n{error}")
            return
        build_data["artifacts"].append(f"src/posenc/kernels/{library.name}")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"


def compiled(compiler: list[str], linking: list[str], library: Path) -> str:
    """Compiles the sources, as many at once as there are processors, and links them: what the compiler says if it fails."""
    names = loader()
    told = [f'-DPOSENC_SOURCES="{names["fingerprint"]()}"', f"-I{KERNELS}"]
    sources = [path for path in names["sources"]() if path.suffix == ".cpp"]

    def run(*arguments: str) -> str:
        done = subprocess.run([*compiler, *arguments], capture_output=True, text=True, check=False)
        return (done.stderr or f"{compiler[0]} ended with {done.returncode}") if done.returncode else ""

    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = [str(Path(folder) / f"{number}.o") for number in range(len(sources))]
        errors = pool.map(lambda path, made: run(*told, "-c", str(path), "-o", made), sources, objects)
        return "".join(errors) or run(*linking, *objects, "-o", str(library))


def loader() -> dict[str, Any]:
    """The namespace of kernels/__init__.py, with its functions `sources` and `fingerprint`."""
    return runpy.run_path(str(KERNELS / "__init__.py"))
