"""Builds the sdist and one wheel for each platform on one machine, and checks what is in them.

    python tools/wheels.py [OUT] [PLATFORM ...]        OUT is dist unless given; all platforms unless some are named

The kernels are compiled by zig (the PyPI package ziglang), which compiles for every platform. Wheels are built from the
unpacked sdist, so the sdist is complete if they are. Nothing in the repository's own tree is changed except OUT.
"""

from __future__ import annotations

import os
import re
import runpy
import struct
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
SDIST_LIMIT = 6_000_000  # bytes; 3.2 MB are the two trained models of the explorer
GLIBC = (2, 28)  # the oldest that manylinux_2_28 allows


@dataclass(frozen=True)
class Platform:
    """A platform's wheel: what zig calls the platform, and the library inside it."""

    target: str
    library: str
    machine: str  # as `machine` says


PLATFORMS = {
    "manylinux_2_28_x86_64": Platform("x86_64-linux-gnu.2.28", "kernels.so", "ELF x86-64"),
    "manylinux_2_28_aarch64": Platform("aarch64-linux-gnu.2.28", "kernels.so", "ELF aarch64"),
    "macosx_11_0_arm64": Platform("aarch64-macos.11.0", "kernels.dylib", "Mach-O arm64"),
    "macosx_11_0_x86_64": Platform("x86_64-macos.11.0", "kernels.dylib", "Mach-O x86-64"),
    "win_amd64": Platform("x86_64-windows-gnu", "kernels.dll", "PE x86-64"),
}
ANY = "any"  # without kernels: plain torch computes


def build_sdist(out: Path) -> Path:
    """Builds the sdist of this repository."""
    _hatchling(ROOT, "sdist", out)
    return max(out.glob("posenc-*.tar.gz"), key=lambda path: path.stat().st_mtime)


def build_wheels(sdist: Path, out: Path, platforms: list[str]) -> list[Path]:
    """Builds the wheels of these platforms from the unpacked sdist."""
    with tempfile.TemporaryDirectory() as folder, tarfile.open(sdist) as packed:
        packed.extractall(folder, filter="data")
        (sources,) = Path(folder).iterdir()
        for platform in platforms:
            print(f"building the wheel for {platform} …", flush=True)
            if platform == ANY:
                _hatchling(sources, "wheel", out, POSENC_WITHOUT_KERNELS="1")
            else:
                compiler = f"{sys.executable} -m ziglang c++ -target {PLATFORMS[platform].target}"
                _hatchling(sources, "wheel", out, CXX=compiler, POSENC_PLATFORM=platform)
    version = sdist.name.removeprefix("posenc-").removesuffix(".tar.gz")
    return [out / f"posenc-{version}-py3-none-{platform}.whl" for platform in platforms]


def _hatchling(sources: Path, kind: str, out: Path, **environment: str) -> None:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("POSENC_") and name != "CXX"}
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(out.resolve())]
    done = subprocess.run(
        command, cwd=sources, env={**inherited, **environment}, capture_output=True, encoding="utf-8", check=False
    )
    if done.returncode:
        raise SystemExit(f"the {kind} was not built\n{done.stdout}{done.stderr}")


def problems_of_sdist(sdist: Path) -> list[str]:
    """What is wrong with the sdist; empty where nothing is."""
    size = sdist.stat().st_size
    found = [] if size < SDIST_LIMIT else [f"{sdist.name}: {size} bytes, at most {SDIST_LIMIT} are allowed"]
    with tarfile.open(sdist) as packed:
        libraries = [name for name in packed.getnames() if name.endswith((".so", ".dll", ".dylib"))]
    return found + [f"{sdist.name}: holds the built library {name}" for name in libraries]


def problems_of_wheel(wheel: Path, platform: str) -> list[str]:
    """What is wrong with the wheel: its tag, its libraries, their machine, sources and required glibc."""
    if not wheel.is_file():
        return [f"{wheel.name}: was not built"]
    found = []
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
        (about,) = (packed.read(name).decode() for name in names if name.endswith(".dist-info/WHEEL"))
        libraries = {name: packed.read(name) for name in names if name.endswith((".so", ".dll", ".dylib"))}
        with tempfile.TemporaryDirectory() as folder:
            packed.extractall(folder)
            loader = runpy.run_path(str(Path(folder) / "posenc" / "kernels" / "__init__.py"))
            fingerprint = loader["fingerprint"]().encode()
    tags = re.findall(r"^Tag: (.*)$", about, re.MULTILINE)
    if tags != [f"py3-none-{platform}"]:
        found.append(f"{wheel.name}: its tags are {tags}")
    if "posenc/py.typed" not in names:
        found.append(f"{wheel.name}: py.typed is missing")
    pages = {page.relative_to(ROOT / "src").as_posix() for page in (ROOT / "src/posenc/encodings").rglob("*.md")}
    if missing := pages - set(names):
        found.append(f"{wheel.name}: {len(missing)} pages of encodings are missing, {min(missing)} among them")
    if absent := {path.relative_to(ROOT / "src").as_posix() for path in ROOT.glob("src/posenc/*/zh.po")} - set(names):
        found.append(f"{wheel.name}: catalogues of translations are missing: {', '.join(sorted(absent))}")
    expected = [] if platform == ANY else [f"posenc/kernels/{PLATFORMS[platform].library}"]
    if sorted(libraries) != expected:
        return [*found, f"{wheel.name}: its libraries are {sorted(libraries)}, expected {expected}"]
    for name, library in libraries.items():
        if machine(library) != PLATFORMS[platform].machine:
            found.append(f"{wheel.name}: {name} is {machine(library)}, expected {PLATFORMS[platform].machine}")
        if fingerprint not in library:
            found.append(f"{wheel.name}: {name} was built from other sources than the wheel holds")
        if platform.startswith("manylinux") and glibc(library) > GLIBC:
            found.append(f"{wheel.name}: {name} needs glibc {glibc(library)}, at most {GLIBC} is allowed")
    return found


def machine(library: bytes) -> str:
    """The format and processor of a shared library, read from its header."""
    if library[:6] == b"\x7fELF\x02\x01":
        return {62: "ELF x86-64", 183: "ELF aarch64"}.get(*struct.unpack_from("<H", library, 18), "another ELF")
    if library[:4] == b"\xcf\xfa\xed\xfe":
        return {0x01000007: "Mach-O x86-64", 0x0100000C: "Mach-O arm64"}.get(
            *struct.unpack_from("<I", library, 4), "another Mach-O"
        )
    if library[:2] == b"MZ":
        (header,) = struct.unpack_from("<I", library, 0x3C)
        if library[header : header + 4] == b"PE\0\0":
            return {0x8664: "PE x86-64"}.get(*struct.unpack_from("<H", library, header + 4), "another PE")
    return "no shared library"


def glibc(library: bytes) -> tuple[int, ...]:
    """The newest version of glibc among the symbols that the library needs."""
    return max((tuple(map(int, found)) for found in re.findall(rb"GLIBC_(\d+)\.(\d+)", library)), default=(0, 0))


def build_all(out: Path, platforms: list[str]) -> tuple[list[Path], list[str]]:
    """Builds and checks: the files, and what is wrong with them."""
    out.mkdir(parents=True, exist_ok=True)
    sdist = build_sdist(out)
    wheels = build_wheels(sdist, out, platforms)
    found = problems_of_sdist(sdist)
    for wheel, platform in zip(wheels, platforms, strict=True):
        found += problems_of_wheel(wheel, platform)
    return [sdist, *wheels], found


def main(arguments: list[str]) -> None:
    out, platforms = Path(arguments[0] if arguments else "dist"), arguments[1:] or [*PLATFORMS, ANY]
    if unknown := [name for name in platforms if name not in (*PLATFORMS, ANY)]:
        raise SystemExit(f"unknown platforms {', '.join(unknown)}: choose from {', '.join((*PLATFORMS, ANY))}")
    files, found = build_all(out, platforms)
    for file in files:
        print(f"{file.stat().st_size / 1e6:6.2f} MB  {file}")
    if found:
        raise SystemExit("\n".join(found))


if __name__ == "__main__":
    main(sys.argv[1:])
