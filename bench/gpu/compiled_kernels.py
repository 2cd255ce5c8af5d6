"""The Triton rotation compiled for GPUs that are not at hand: registers, memory and traffic. Nothing is launched.

registers, stack, shared   what ptxas gives a thread or a program; a stack would mean registers spilled to memory
bytes / floor              what the programs of one call read and write, against reading x, cos and sin once and
                           writing x once. cos and sin are read again by every program that turns other heads

python -m bench.gpu.compiled_kernels        needs triton with its ptxas and cuobjdump, no GPU
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

CAPABILITIES = {80: "A100", 90: "H100", 100: "B200"}
BATCH, HEADS, TOKENS, WIDTH = 1, 32, 2048, 128


@dataclass(frozen=True)
class Resources:
    """Registers and bytes of stack of a thread, bytes of shared memory, bytes that a call moves and must move at least."""

    registers: int
    stack: int
    shared: int
    moved: int
    floor: int


class NoGPU:
    """Stands for triton's driver of a GPU: kernels are compiled for it and launched nowhere."""

    def __init__(self, capability: int) -> None:
        from triton.backends.compiler import GPUTarget

        self.target, self.utils, self.programs = GPUTarget("cuda", capability, 32), self, list[int]()

    def get_current_target(self) -> Any:
        return self.target

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_device_properties(self, device: int) -> dict[str, int]:
        return {"max_shared_mem": 101376}

    def load_binary(self, *_: object) -> tuple[None, None, int, int, int]:
        return None, None, 0, 0, 1024

    def launcher_cls(self, source: object, metadata: object) -> Any:
        return lambda programs, *_: self.programs.append(programs)


def resources(capability: int, dtype: torch.dtype, half: bool, turning: int = WIDTH) -> Resources:
    """Compiles one rotation. The process must not have a GPU's driver active; triton must not be in its interpreter."""
    from triton.runtime import driver

    from posenc.kernels.rotation import triton_rotation
    from posenc.kernels.rotation.triton_kernel import turn

    driver.set_active(gpu := NoGPU(capability))
    turn.device_caches.clear()
    x, n = torch.empty(BATCH, HEADS, TOKENS, WIDTH, dtype=dtype), turning // 2
    table = torch.empty(BATCH, TOKENS, n)
    triton_rotation.rotate(x, table, table, 0, half, half, False, torch.empty_like(x))
    (kernel,) = turn.device_caches[0][0].values()
    _, tokens = triton_rotation.tile(HEADS, TOKENS, n)
    once, tables = 2 * x.numel() * x.element_size(), 2 * table.numel() * table.element_size()
    read = gpu.programs[0] * tokens * n * 2 * table.element_size()
    return Resources(*_usage(kernel.asm["cubin"]), once + read, once + tables)


def _usage(cubin: bytes) -> tuple[int, int, int]:
    """Registers, stack and shared memory of the only function, as cuobjdump prints them."""
    import triton

    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        dump = subprocess.run(
            [tool, "--dump-resource-usage", file.name], capture_output=True, encoding="ascii", check=True
        ).stdout
    counts = {name: int(count) for name, count in re.findall(r"\b(REG|STACK|SHARED):(\d+)", dump)}
    return counts["REG"], counts["STACK"], counts["SHARED"]


def lines() -> Iterator[str]:
    yield "| GPU | dtype | layout | channels that turn | registers | stack | shared | bytes / floor |"
    yield "|---|---|---|---|---|---|---|---|"
    for capability, name in CAPABILITIES.items():
        for dtype in (torch.bfloat16, torch.float32):
            for half, turning in ((True, WIDTH), (False, WIDTH), (True, WIDTH // 2)):
                usage = resources(capability, dtype, half, turning)
                cells = [f"sm_{capability} ({name})", str(dtype).removeprefix("torch.")]
                cells += ["half" if half else "interleaved", f"{turning} of {WIDTH}"]
                cells += [str(usage.registers), str(usage.stack), str(usage.shared), f"{usage.moved / usage.floor:.3f}"]
                yield f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    os.environ.pop("TRITON_INTERPRET", None)
    for line in lines():
        print(line, flush=True)
