"""Wheels for every platform, built on this one: tags, sizes, machines, and the bits of the one that runs here."""

import os
import shutil
import struct
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))
import wheels  # noqa: E402

# Prints why the kernels do not run, whose posenc it is, and a hash of rotations.
PROGRAM = """
import hashlib, sys, torch
sys.path.insert(0, sys.argv[1])
import posenc
from posenc import kernels
from posenc.kernels.rotation import rotate_both
torch.manual_seed(0)
told = hashlib.sha256()
for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    for pairs in (5, 16, 48):
        x = torch.randn(2, 3, 64, 2 * pairs + 3).to(dtype)
        cos, sin = torch.randn(2, 2, 64, pairs, dtype=wide)
        for turned in rotate_both(x, x[:, :1], cos, sin, "half", "half", start=2):
            told.update(turned.contiguous().view(torch.uint8).numpy().tobytes())
print(kernels.why_not(), posenc.__file__, told.hexdigest(), sep="|")
"""


def header(kind, number):
    """The first bytes of a library of that format and processor."""
    if kind == "ELF":
        return b"\x7fELF\x02\x01" + bytes(12) + struct.pack("<H", number)
    if kind == "Mach-O":
        return b"\xcf\xfa\xed\xfe" + struct.pack("<I", number)
    return b"MZ".ljust(0x3C, b"\0") + struct.pack("<I", 0x40) + b"PE\0\0" + struct.pack("<H", number)


@pytest.mark.parametrize(
    ("kind", "number", "said"),
    [
        ("ELF", 62, "ELF x86-64"),
        ("ELF", 183, "ELF aarch64"),
        ("ELF", 3, "another ELF"),
        ("Mach-O", 0x01000007, "Mach-O x86-64"),
        ("Mach-O", 0x0100000C, "Mach-O arm64"),
        ("PE", 0x8664, "PE x86-64"),
        ("PE", 0x14C, "another PE"),
    ],
)
def test_the_machine_of_a_library_is_read_from_its_header(kind, number, said):
    assert wheels.machine(header(kind, number)) == said


def test_glibc_versions_are_compared_as_numbers():
    assert wheels.glibc(b"GLIBC_2.9\0GLIBC_2.28\0GLIBC_2.3.4\0") == (2, 28)


def test_unknown_platforms_are_refused(tmp_path):
    with pytest.raises(SystemExit, match="unknown platforms amiga"):
        wheels.main([str(tmp_path), "amiga"])


def test_a_wheel_with_the_wrong_library_is_reported(tmp_path):
    wheel = tmp_path / "posenc-0-py3-none-win_amd64.whl"
    with zipfile.ZipFile(wheel, "w") as packed:
        packed.write(ROOT / "src/posenc/kernels/__init__.py", "posenc/kernels/__init__.py")
        packed.writestr("posenc-0.dist-info/WHEEL", "Tag: py3-none-any\n")
        packed.writestr("posenc/kernels/kernels.dll", header("ELF", 62))
    said = "\n".join(wheels.problems_of_wheel(wheel, "win_amd64"))
    for part in (
        "its tags are ['py3-none-any']",
        "py.typed is missing",
        "pages of encodings are missing, posenc/encodings/alibi.md among them",
        "catalogues of translations are missing: posenc/catalogue/zh.po",
        "is ELF x86-64, expected PE x86-64",
        "other sources",
    ):
        assert part in said


@pytest.mark.acceptance
def test_wheels_of_all_platforms_are_right_and_the_one_for_this_machine_gives_the_bits_of_plain_torch(tmp_path):
    files, found = wheels.build_all(tmp_path / "dist", [*wheels.PLATFORMS, wheels.ANY])
    assert found == []
    assert len(files) == 7
    assert all(file.stat().st_size < 3_200_000 for file in files)  # the pages of the encodings are 288 files of text
    if sysconfig.get_platform() == "linux-x86_64":
        (mine,) = (file for file in files if file.name.endswith("manylinux_2_28_x86_64.whl"))
        with zipfile.ZipFile(mine) as packed:
            packed.extractall(tmp_path / "site")
        native, plain = bits(tmp_path / "site"), bits(tmp_path / "site", POSENC_WITHOUT_KERNELS="1")
        assert native[0] == "None"
        assert plain[0] == "POSENC_WITHOUT_KERNELS is set"
        assert native[1].startswith(str(tmp_path))
        assert native[2] == plain[2]


# How this machine runs programs of another platform, and the Debian packages that it needs for that.
EMULATED = {
    "manylinux_2_28_aarch64": (["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"], "qemu-user and libc6-arm64-cross"),
    "win_amd64": (["wine"], "wine"),
}


@pytest.mark.acceptance
@pytest.mark.parametrize("platform", EMULATED)
@pytest.mark.skipif(sysconfig.get_platform() != "linux-x86_64", reason="emulators are called on Linux on x86-64")
def test_the_library_of_another_machine_gives_the_same_bits(platform, tmp_path):
    """One program calls every kernel of this machine's library and of the other's, and prints hashes of the results."""
    emulator, packages = EMULATED[platform]
    if not shutil.which(emulator[0]) or not all(Path(one).exists() for one in emulator[2:]):
        pytest.skip(f"needs the Debian packages {packages}")
    wheels.build_wheels(wheels.build_sdist(tmp_path), tmp_path, ["manylinux_2_28_x86_64", platform])
    here = told_by_kernels("manylinux_2_28_x86_64", tmp_path, [])
    there = told_by_kernels(platform, tmp_path, emulator)
    assert len(here) == 11
    assert there.pop("instructions") == ("neon" if "aarch64" in platform else here["instructions"])
    here.pop("instructions")
    assert there == here


def told_by_kernels(platform, folder, emulator):
    """What tests/run_kernels.cpp prints of the library in the wheel for that platform."""
    (wheel,) = folder.glob(f"*{platform}.whl")
    with zipfile.ZipFile(wheel) as packed:
        library = Path(packed.extract(f"posenc/kernels/{wheels.PLATFORMS[platform].library}", folder / platform))
    program = folder / f"{platform}.exe"
    compiler = [sys.executable, "-m", "ziglang", "c++", "-target", wheels.PLATFORMS[platform].target]
    source = ROOT / "tests" / "run_kernels.cpp"
    subprocess.run([*compiler, "-std=c++17", "-O3", source, "-o", program], check=True)
    environment = {**os.environ, "WINEDEBUG": "-all"}
    command = [*emulator, program, f"./{library.name}"]
    done = subprocess.run(command, cwd=library.parent, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return dict(line.rsplit(" ", 1) for line in done.stdout.split("\n") if line)


def bits(site, **more):
    """(why the kernels do not run, the file of posenc, bits of rotations) of a process of its own."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-c", PROGRAM, str(site)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**environment, **more})
    return done.stdout.strip().split("|")
