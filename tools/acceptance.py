"""Runs the acceptance tests in named targets; a target that passed is skipped until a file of the repository changes.

    python tools/acceptance.py               all targets, then their times and the sum
    python tools/acceptance.py lab laws      some targets
    python tools/acceptance.py --list        the targets and what is known of them

Results are kept in .acceptance/, one file a target, as soon as the target ends: a run that was stopped continues where
it was.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import sysconfig
import time
import venv
from pathlib import Path

PACKAGES = "import sysconfig; print(sysconfig.get_path('purelib'))"
ROOT = Path(__file__).parents[1]
RECORDS = ROOT / ".acceptance"
REST = "rest"  # the acceptance tests of all other files
OLDEST_TRANSFORMERS = "transformers-5.16"  # all tests of posenc.transformers, in an environment with that version
OLDEST_PACKAGES = ("transformers==5.16.1", "huggingface_hub==1.33.0", "httpx==0.28.1", "httpcore==1.0.9")
TARGETS = {
    "laws": ["tests/test_laws.py", "tests/test_laws_families.py", "tests/families"],
    "mutations": ["tests/test_mutations.py"],
    "backends": ["tests/oracles", "tests/test_compile.py", "tests/test_graphs.py", "tests/test_triton_rotation.py"],
    "lab": [
        "tests/test_compare.py",
        "tests/test_lab_engines.py",
        "tests/test_lab_sweep.py",
        "tests/test_shipped_results.py",
    ],
    OLDEST_TRANSFORMERS: ["tests/transformers_models"],
    "recipes": ["tests/test_recipes.py"],
    "packaging": ["tests/test_kernels.py", "tests/test_wheels.py"],
    REST: ["tests"],
}


def command(target: str) -> list[str]:
    """The pytest command of a target. Every acceptance test is in exactly one target that runs as installed."""
    if target == OLDEST_TRANSFORMERS:
        return [str(oldest_environment()), "-m", "pytest", *TARGETS[target]]
    elsewhere = (REST, OLDEST_TRANSFORMERS)
    others = [path for name, paths in TARGETS.items() if name not in elsewhere for path in paths] if target == REST else []
    return [sys.executable, "-m", "pytest", "-m", "acceptance", *TARGETS[target], *(f"--ignore={path}" for path in others)]


def oldest_environment() -> Path:
    """The python of an environment with OLDEST_PACKAGES and all else that is installed here; made where it is missing."""
    folder = RECORDS / "-".join((OLDEST_TRANSFORMERS, hashlib.sha256(repr(OLDEST_PACKAGES).encode()).hexdigest()[:8]))
    python = folder / "bin" / "python"
    complete = folder / "complete"
    if not complete.exists():
        venv.create(folder, with_pip=True, clear=True)
        quiet = ["--disable-pip-version-check", "--quiet"]
        subprocess.run([python, "-m", "pip", "install", *quiet, *OLDEST_PACKAGES], check=True)
        own = subprocess.run([python, "-c", PACKAGES], capture_output=True, text=True, check=True).stdout.strip()
        rest = f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n"
        (Path(own) / "zz_rest.pth").write_text(rest)
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


def passed(target: str, now: str) -> float | None:
    """The seconds that the target took, if it passed in this state of the repository."""
    record = RECORDS / f"{target}.json"
    known = json.loads(record.read_text()) if record.exists() else {}
    return known["seconds"] if known.get("state") == now else None


def run(target: str, now: str) -> float | None:
    """Runs a target and records that it passed; None if it failed."""
    record = RECORDS / f"{target}.json"
    record.unlink(missing_ok=True)
    begin = time.monotonic()
    status = subprocess.run(command(target), cwd=ROOT, check=False).returncode
    if status == 2:
        raise KeyboardInterrupt
    if status:
        return None
    seconds = time.monotonic() - begin
    if state() == now:  # otherwise it is not known which state the tests saw
        RECORDS.mkdir(exist_ok=True)
        record.write_text(json.dumps({"state": now, "seconds": seconds}))
    return seconds


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Runs the acceptance tests in named targets that can be resumed.")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)}; all unless some are named")
    parser.add_argument("--list", action="store_true", help="print the targets and which passed")
    asked = parser.parse_args(arguments)
    if unknown := [name for name in asked.targets if name not in TARGETS]:
        parser.error(f"unknown targets {', '.join(unknown)}: choose from {', '.join(TARGETS)}")
    now, targets = state(), asked.targets or list(TARGETS)
    times: dict[str, float | None] = {}
    for target in targets:
        known = passed(target, now)
        if known is None and not asked.list:
            print(f"acceptance: {target}", flush=True)
            known = run(target, now)
        elif known is not None and not asked.list:
            print(f"acceptance: {target} passed before, in this state of the repository")
        times[target] = known
    print()
    for target, seconds in times.items():
        print(
            f"{target:12}"
            + (f"{seconds / 60:7.1f} min" if seconds is not None else "  not run" if asked.list else "   failed")
        )
    print(f"{'sum':12}{sum(seconds for seconds in times.values() if seconds is not None) / 60:7.1f} min")
    return 0 if asked.list or None not in times.values() else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
