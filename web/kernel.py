"""Compiles src/stretch/kernel.c for WebAssembly, with zig from PyPI (ziglang), which compiles the wheels' kernels too.

python web/kernel.py          writes kernel.wasm beside it
python web/kernel.py FILE     writes FILE
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parent / "src" / "stretch" / "kernel.c"
OPTIONS = "-target wasm32-freestanding -O3 -msimd128 -nostdlib -Wl,--no-entry,--export=__heap_base,--strip-all"


def main(to: Path) -> None:
    subprocess.run([sys.executable, "-m", "ziglang", "cc", *OPTIONS.split(), "-o", str(to), str(SOURCE)], check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else SOURCE.with_suffix(".wasm"))
