"""The C++ kernels: built where there is a compiler, refused where their sources have changed, never missed silently."""

import functools
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import types
from pathlib import Path

import pytest

from posenc import kernels
from sampling import one_in

ROOT = Path(__file__).parents[1]
HAS_COMPILER = any(map(shutil.which, ("g++", "clang++", "c++")))


@pytest.fixture
def hatch_build(monkeypatch):
    """hatch_build.py with a stand-in for hatchling, which lives in the build environment only."""
    hook = types.ModuleType("interface")
    hook.BuildHookInterface = object
    for name in ("hatchling", "hatchling.builders", "hatchling.builders.hooks", "hatchling.builders.hooks.plugin"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, "hatchling.builders.hooks.plugin.interface", hook)
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def build(hatch_build, copy, monkeypatch):
    """Runs the hook on a copy of the sources: what it tells hatchling, and its warnings."""
    monkeypatch.setattr(hatch_build, "KERNELS", copy)
    hook, said, data = hatch_build.KernelBuildHook(), [], {"artifacts": []}
    hook.app = types.SimpleNamespace(display_warning=said.append)
    hook.initialize("standard", data)
    return data, "".join(said)


@pytest.fixture
def copy(tmp_path):
    """The kernels' folder in a copy of all that the library is built from."""
    for path in (kernels.HERE / "__init__.py", *kernels.sources()):
        copied = tmp_path / path.relative_to(kernels.HERE.parent)
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copied)
    return tmp_path / "kernels"


def reason(folder):
    """What the loader of that folder says."""
    spec = importlib.util.spec_from_file_location("copied_kernels", folder / "__init__.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.why_not()


@pytest.mark.skipif(not HAS_COMPILER and not os.environ.get("CI"), reason="no C++ compiler on this machine")
def test_where_there_is_a_compiler_the_kernels_run():
    assert kernels.why_not() is None
    assert kernels.library() is not None


@pytest.mark.skipif(platform.machine() != "x86_64", reason="variants are chosen on x86-64 only")
def test_the_kernels_say_which_instructions_they_use():
    """The widest that the processor has, or no wider than POSENC_KERNELS says."""
    code = "from posenc import kernels; print(kernels.instructions())"

    def told(**environment):
        given = {**os.environ, **environment}
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=given).stdout

    widths = ["portable", "avx2", "avx512", "avx512_bf16"]
    widest = widths.index(told().strip())
    for number, name in enumerate(widths):
        assert told(POSENC_KERNELS=name).strip() == widths[min(number, widest)]
    assert told(POSENC_WITHOUT_KERNELS="1").strip() == "None"


STAND_IN = """
import sys
asked = [open(name).read() for name in sys.argv if name.endswith(".o") and "-shared" in sys.argv]
open(sys.argv[sys.argv.index("-o") + 1], "w").write("\\n".join([*asked, " ".join(sys.argv)]))
"""


def test_the_build_hook_tells_the_compiler_the_loaders_sources(hatch_build, copy, monkeypatch, tmp_path):
    """The compiler is a stand-in that writes down what it was asked; make acceptance runs the real one."""
    compiler = tmp_path / "compiler.py"
    compiler.write_text(STAND_IN)
    monkeypatch.setenv("CXX", f"{sys.executable} {compiler}")
    data, said = build(hatch_build, copy, monkeypatch)
    assert said == ""
    assert data["artifacts"] == [f"src/posenc/kernels/{kernels.LIBRARY.name}"]
    assert data["pure_python"] is False
    assert data["tag"].startswith("py3-none-")
    *asked, linked = (copy / kernels.LIBRARY.name).read_text().splitlines()
    compiled = {
        str(copy.parent / path.relative_to(kernels.HERE.parent)) for path in kernels.sources() if path.suffix == ".cpp"
    }
    assert {line.split(" -c ")[1].split()[0] for line in asked} == compiled
    for line in asked:
        assert f'-DPOSENC_SOURCES="{kernels.fingerprint()}"' in line
        assert all(flag in line for flag in hatch_build.FLAGS)
    assert "-shared" in linked
    assert linked.count(".o ") == len(compiled)


@pytest.mark.acceptance
def test_build_hook_and_loader_name_the_sources_alike(hatch_build, copy, monkeypatch):
    if not HAS_COMPILER:
        pytest.skip("no C++ compiler on this machine")
    data, said = build(hatch_build, copy, monkeypatch)
    assert said == ""
    assert data["artifacts"] == ["src/posenc/kernels/kernels.so"]
    assert data["pure_python"] is False
    assert data["tag"].startswith("py3-none-")
    assert reason(copy) is None


@pytest.mark.acceptance
def test_kernels_of_other_sources_are_refused(hatch_build, copy, monkeypatch):
    if not HAS_COMPILER:
        pytest.skip("no C++ compiler on this machine")
    build(hatch_build, copy, monkeypatch)
    with (copy.parent / "attention" / "backends" / "toeplitz" / "bias_gradients.cpp").open("a") as source:
        source.write("// changed\n")
    assert "built from other sources than these: install posenc again" in reason(copy)


def test_a_library_that_does_not_load_is_named(copy):
    (copy / "kernels.so").write_bytes(b"not a library")
    assert "does not load" in reason(copy)


def test_without_a_compiler_posenc_is_installed_without_kernels(hatch_build, copy, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.delenv("CXX", raising=False)
    data, said = build(hatch_build, copy, monkeypatch)
    assert data == {"artifacts": []}
    assert "computing in plain torch" in said
    assert "not there: posenc was installed without a C++ compiler" in reason(copy)


@pytest.mark.acceptance
def test_kernels_that_do_not_compile_leave_none_behind(hatch_build, copy, monkeypatch):
    if not HAS_COMPILER:
        pytest.skip("no C++ compiler on this machine")
    (copy / "broken.cpp").write_text("int broken( {\n")
    data, said = build(hatch_build, copy, monkeypatch)
    assert data == {"artifacts": []}
    assert "did not compile" in said
    assert "broken.cpp" in said
    assert not (copy / "kernels.so").exists()


# Bits of rotations and tables over layouts, dtypes, widths that fill no vector, tables one by one and in a row; of
# rotations that are too large for a cache, with infinities and the smallest numbers.
PROGRAM = """
import hashlib, itertools, torch
from posenc import Positions, kernels
from posenc.kernels.rotation import rotate, rotate_both
from posenc.kernels.sin_cos import sin_cos_table

torch.manual_seed(0)
told = hashlib.sha256()
dtypes, layouts = (torch.float32, torch.float64, torch.bfloat16, torch.float16), ("half", "interleaved")
for dtype, layout, returns, pairs in itertools.product(dtypes, layouts, layouts, (1, 5, 16, 33, 48)):
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    x = torch.randn(2, 3, 7, 2 * pairs + 3).to(dtype)
    cos, sin = torch.randn(2, 2, 7, pairs, dtype=wide)
    back = rotate(x, cos, sin, layout, returns, start=2, back=True)
    for turned in (back, *rotate_both(x, x[:, :1], cos, sin, layout, returns)):
        told.update(turned.contiguous().view(torch.uint8).numpy().tobytes())
for dtype, layout in itertools.product((torch.float32, torch.bfloat16), layouts):
    x = torch.randn(1, 16, 1100, 128).to(dtype)
    x[..., 3], x[..., 70], x[..., 71] = torch.inf, 1e-40, -torch.inf
    turned = rotate(x, *torch.randn(2, 1, 1, 1100, 64), layout, layout)
    told.update(turned.view(torch.uint8).numpy().tobytes())
tables, anywhere = hashlib.sha256(), torch.rand(2, 50, dtype=torch.float64) * 1e7
for at in (Positions.arange(2, 300, torch.tensor([999_000, -5])), Positions.at(anywhere)):
    for dtype in dtypes[:2]:
        table = sin_cos_table(at, [[0.9**n for n in range(37)]], dtype)
        tables.update(table.contiguous().numpy().tobytes())
print(kernels.why_not(), told.hexdigest(), tables.hexdigest())
"""


@functools.cache
def bits(**more):
    """(why the kernels do not run, bits of rotations, bits of tables) of a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, env={**os.environ, **more}
    )
    why, rotations, tables = done.stdout.strip().rsplit(" ", 2)
    return why, rotations, tables


@pytest.mark.acceptance
def test_without_kernels_rotations_have_the_same_bits():
    native, plain = bits(), bits(POSENC_WITHOUT_KERNELS="1")
    assert plain[0] == "POSENC_WITHOUT_KERNELS is set"
    assert native[0] == str(kernels.why_not())
    assert native[1] == plain[1]


@pytest.mark.parametrize("instructions", one_in(3, ["avx2", "avx512", "portable"]))
def test_every_processor_gives_the_same_bits(instructions):
    assert bits(POSENC_KERNELS=instructions) == bits()
