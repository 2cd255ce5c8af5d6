"""Builds a release, checks it, and prints what to upload. It uploads nothing.

    python tools/release.py [OUT]        OUT is dist unless given

Refused: uncommitted changes, a CHANGELOG that does not name the version or calls it unreleased, another version in
CITATION.cff, an OUT that already holds files, an sdist or wheel with a problem (tools/wheels.py).
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from pathlib import Path

from wheels import ANY, PLATFORMS, ROOT, build_all


def problems_before_building(out: Path) -> list[str]:
    """What prevents a release, as far as it can be seen before anything is built."""
    found = []
    if subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, encoding="utf-8", check=True).stdout:
        found.append("there are uncommitted changes: commit or remove them")
    heading = re.search(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    if heading is None or heading[1].split(",")[0] != version() or "unreleased" in heading[1]:
        found.append(
            f"the first heading of CHANGELOG.md is {heading and heading[1]!r}: it must name {version()} and a date"
        )
    if f"\nversion: {version()}\n" not in (ROOT / "CITATION.cff").read_text(encoding="utf-8"):
        found.append(f"CITATION.cff has another version than {version()}")
    if out.exists() and any(out.iterdir()):
        found.append(f"{out} is not empty: choose another folder or empty it")
    return found


def version() -> str:
    """The version in src/posenc/__init__.py."""
    written = re.search(
        r'^__version__ = "(.*)"$', (ROOT / "src/posenc/__init__.py").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert written, "src/posenc/__init__.py has no __version__"
    return written[1]


def main(arguments: list[str]) -> None:
    out = Path(arguments[0] if arguments else "dist")
    if found := problems_before_building(out):
        raise SystemExit("\n".join(found))
    files, found = build_all(out, [*PLATFORMS, ANY])
    if found:
        raise SystemExit("\n".join(found))
    print(f"\nposenc {version()} is built and checked. SHA-256, size and file:")
    for file in files:
        print(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.stat().st_size / 1e6:5.2f} MB  {file}")
    print("\nTo publish it, push the tag: .github/workflows/release.yml builds the same and uploads it.")
    print(f"  git tag v{version()} && git push origin v{version()}")
    print(f"Or, with a token: twine upload {' '.join(map(str, files))}")


if __name__ == "__main__":
    main(sys.argv[1:])
