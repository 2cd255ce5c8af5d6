"""Measures posenc on the GPU of this machine, step by step, and writes bench/RESULTS-gpu.md as it goes: `make gpu`.

    python tools/gpu.py                    all steps in order, each under five minutes; needs no network
    python tools/gpu.py rotation tables    some of them
    python tools/gpu.py --list             what each does
    python tools/gpu.py --rehearse         the same on the CPU with tiny sizes, into build/: a test of the steps

The installed torch is used, whichever it is. Exit code 0: every step ran to its end; 1: one failed or found an error, or
was stopped by its limit; 3: there is no CUDA device, and nothing was done.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "bench" / "RESULTS-gpu.md"
REHEARSAL = ROOT / "build" / "RESULTS-gpu-rehearsal.md"
NO_DEVICE = 3
LIMIT = 295.0  # seconds of a step


@dataclass(frozen=True)
class Step:
    """A command whose output becomes a section. `needs` are modules without which it cannot run."""

    name: str
    title: str
    command: tuple[str, ...]
    rehearsal: tuple[str, ...]
    needs: tuple[str, ...] = ()
    verbatim: bool = False  # the output is no Markdown


GPU = "bench.gpu"
BENCH = ("-m", "bench")
ON_DEVICE = ("--device", "cuda", "--threads", "1", "--no-memory", "--markdown")
ON_CPU = (
    "--scale",
    "tiny",
    "--threads",
    "1",
    "--no-memory",
    "--peers",
    "none",
    "--seconds",
    "0.001",
    "--rounds",
    "3",
    "--markdown",
)
TERMINAL = ("rich", "typer")
LAB = ("-m", "posenc", "lab", "run")
LAB_NEEDS = ("pydantic", "yaml", "lightning_fabric", "pyarrow", "duckdb", "typer")
STEPS = (
    Step(
        "tests",
        "What only a CUDA device shows",
        ("-m", "pytest", "-q", "-x", "-n", "0", "tests/test_cuda.py"),
        ("-m", "pytest", "-q", "-n", "0", "--collect-only", "tests/test_cuda.py"),
        ("pytest", "xdist"),
        verbatim=True,
    ),
    Step(
        "correctness",
        "The laws with every backend, fp32 and bf16",
        ("-m", f"{GPU}.correctness", "--device", "cuda", "--seconds", "270"),
        ("-m", f"{GPU}.correctness", "--device", "cpu", "--seconds", "270", "rope"),
    ),
    Step(
        "rotation",
        "Rotation against the copy",
        ("-m", f"{GPU}.rotation", "--device", "cuda"),
        ("-m", f"{GPU}.rotation", "--device", "cpu", "--tiny"),
    ),
    Step("peers", "Rotation beside other libraries", (*BENCH, "rope", *ON_DEVICE), (*BENCH, "rope", *ON_CPU), TERMINAL),
    Step(
        "attention",
        "Biases and windows against attention without a bias",
        ("-m", f"{GPU}.long_attention", "--device", "cuda"),
        ("-m", f"{GPU}.long_attention", "--device", "cpu", "--lengths", "16", "32", "--seconds", "0.001"),
    ),
    Step("bias", "Biases beside other libraries", (*BENCH, "bias", *ON_DEVICE), (*BENCH, "bias", *ON_CPU), TERMINAL),
    Step("tables", "Tables", (*BENCH, "table", *ON_DEVICE), (*BENCH, "table", *ON_CPU), TERMINAL),
    Step(
        "kernels",
        "The compiled rotation",
        ("-m", f"{GPU}.compiled_kernels"),
        ("-m", f"{GPU}.compiled_kernels"),
        ("triton",),
    ),
    Step(
        "lab",
        "The lab's preset gpu, as far as the time goes",
        (*LAB, "gpu", "--device", "cuda", "--out", "build/lab-gpu"),
        (*LAB, "--help"),
        LAB_NEEDS,
        verbatim=True,
    ),
    Step(
        "long_text",
        "The lab's preset long_text, as far as the time goes; called again, it continues",
        (*LAB, "long_text", "--device", "cuda", "--workers", "8", "--out", "build/lab-long-text"),
        (*LAB, "--help"),
        LAB_NEEDS,
        verbatim=True,
    ),
)


class Output:
    """The lines of a step, in the file as soon as they are printed."""

    def __init__(self, path: Path, verbatim: bool) -> None:
        self.path, self.verbatim, self.lines = path, verbatim, 0

    def add(self, line: str) -> None:
        self.lines += 1
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"    {line}\n" if self.verbatim else f"{line}\n")


def run(step: Step, path: Path, rehearse: bool, limit: float = LIMIT) -> bool:
    """Runs a step and writes its section; whether it ran to its end without an error."""
    with path.open("a", encoding="utf-8") as file:
        file.write(f"\n## {step.title}\n\n")
    missing = [name for name in step.needs if importlib.util.find_spec(name) is None]
    if missing:
        with path.open("a", encoding="utf-8") as file:
            file.write(f"Not run: {', '.join(missing)} is not installed.\n")
        return False
    begun, output = time.monotonic(), Output(path, step.verbatim)
    command = [sys.executable, *(step.rehearsal if rehearse else step.command)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])}
    environment |= {"PYTHONUNBUFFERED": "1", "COLUMNS": "160", "HF_HUB_OFFLINE": "1"}
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        cwd=ROOT,
        env=environment,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    stopped = threading.Event()

    def stop() -> None:
        stopped.set()
        process.kill()

    errors: list[str] = []
    reader = threading.Thread(target=lambda: errors.extend(process.stderr or ()))
    watch = threading.Timer(limit, stop)
    reader.start()
    watch.start()
    for line in process.stdout:
        output.add(line.rstrip())
    code = process.wait()
    watch.cancel()
    reader.join()
    taken = time.monotonic() - begun
    with path.open("a", encoding="utf-8") as file:
        if stopped.is_set():
            file.write(f"\nStopped after {limit:.0f} s.\n")
        elif code:
            told = "".join(f"    {line.rstrip()}\n" for line in errors[-15:])
            file.write(f"\n**Failed** with exit code {code} after {taken:.0f} s:\n\n{told}")
        else:
            file.write(f"\n{taken:.0f} s.\n")
    return not stopped.is_set() and code == 0


def heading(device: str) -> str:
    import torch

    import posenc

    system = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    return (
        "# Measured on a GPU\n\n"
        f"{device}; {system}; torch {torch.__version__}, posenc {posenc.__version__}.\n"
        "Written by `make gpu`, step by step; ratios are medians over rounds in which all take turns.\n"
    )


def main(asked: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("steps", nargs="*", metavar="STEP", help="all if left out; --list names them")
    parser.add_argument("--list", action="store_true", help="print the steps and exit")
    parser.add_argument("--rehearse", action="store_true", help="tiny sizes on the CPU, into build/")
    given = parser.parse_args(asked)
    if given.list:
        for step in STEPS:
            print(f"{step.name:12} {step.title}")
        return 0
    if unknown := sorted(set(given.steps) - {step.name for step in STEPS}):
        parser.error(f"steps: expected some of {', '.join(step.name for step in STEPS)}, got {', '.join(unknown)}")
    sys.path.insert(0, str(ROOT / "src"))
    import torch

    if not given.rehearse and not torch.cuda.is_available():
        print(f"make gpu: torch {torch.__version__} finds no CUDA device here; nothing was measured")
        return NO_DEVICE
    device = "A rehearsal on the CPU: no figure here means anything" if given.rehearse else torch.cuda.get_device_name()
    path = REHEARSAL if given.rehearse else RESULTS
    path.parent.mkdir(exist_ok=True)
    path.write_text(heading(device), encoding="utf-8")
    failed = []
    for step in STEPS:
        if given.steps and step.name not in given.steps:
            continue
        print(f"{step.name}: {step.title} …", flush=True)
        if not run(step, path, given.rehearse):
            failed.append(step.name)
    print(f"{path.relative_to(ROOT)}" + (f"; not to their end: {', '.join(failed)}" if failed else ""))
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
