"""`make gpu` without a GPU: it says so; every step's logic runs on the CPU in tiny sizes; a step has a limit."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from bench.gpu import correctness, long_attention, rotation

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))
import gpu  # noqa: E402


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_device_one_line_says_so_and_nothing_is_written(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(gpu, "RESULTS", tmp_path / "RESULTS-gpu.md")
    assert gpu.main([]) == gpu.NO_DEVICE == 3
    assert capsys.readouterr().out.strip() == (
        f"make gpu: torch {torch.__version__} finds no CUDA device here; nothing was measured"
    )
    assert not list(tmp_path.iterdir())


def test_make_gpu_runs_it():
    said = subprocess.run(["make", "-n", "gpu"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "tools/gpu.py" in said


@pytest.mark.acceptance
def test_every_encoding_backend_and_dtype_has_its_laws():
    found = list(correctness.lines("cpu", 60, ["rope"]))
    backends = {(cells(line)[1], cells(line)[2]) for line in found[2:-1]}
    assert backends == {(impl, dtype) for impl in ("auto", "sdpa", "reference") for dtype in ("float32", "bfloat16")}
    assert all(int(cells(line)[3]) > 15 and cells(line)[5] == "–" for line in found[2:-1])
    assert found[-1].strip() == "1 of 1 encodings, 0 laws broken."


@pytest.mark.acceptance
def test_a_broken_law_is_told_and_fails(monkeypatch, capsys):
    from posenc.encodings.alibi import ALiBi

    true = ALiBi.at_distance
    monkeypatch.setattr(ALiBi, "at_distance", lambda self, delta: true(self, delta) + delta**2 * (len(delta) > 12))
    assert correctness.main(["--device", "cpu", "alibi"]) == 1
    assert "decode_equals_prefill: " in capsys.readouterr().out


def test_what_is_not_reached_in_time_is_named():
    assert "Not reached in 0 s: rope, alibi." in "".join(correctness.lines("cpu", 0, ["rope", "alibi"]))


@pytest.mark.acceptance
def test_long_attention_has_a_row_for_each_length_and_method(monkeypatch):
    monkeypatch.setattr(long_attention, "WINDOW", 8)
    found = [cells(line) for line in long_attention.lines("cpu", (16,), 1e-4, ("alibi", "rope, window 8"))][2:]
    assert [row[:2] for row in found] == [["16", "alibi"], ["16", "rope, window 8"]]
    for row in found:
        assert float(row[2]) > 0
        assert float(row[4]) > 0
    assert long_attention.share("rope, window 8", 32) == (8 * 9 / 2 + 24 * 8) / (32 * 33 / 2)


def test_a_method_that_cannot_run_is_told_and_not_tried_at_a_longer_length(monkeypatch):
    def full(*_):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 128 GiB")

    monkeypatch.setattr(long_attention, "_calls", full)
    *_, first, second = long_attention.lines("cpu", (16, 32), 1e-3, ("fire",))
    assert first.endswith("OutOfMemoryError: CUDA out of memory. Tried to allocate 128 GiB")
    assert "not tried: OutOfMemoryError" in second


@pytest.mark.acceptance
def test_rotation_has_every_dtype_layout_and_part():
    found = [cells(line) for line in rotation.lines("cpu", rotation.TINY[1:], 1e-4)][2:]
    assert len(found) == 2 * 2 * 2
    assert {row[3] for row in found} == {"128 of 128", "64 of 128"}
    assert all(float(row[4]) > 0 for row in found)


@pytest.mark.acceptance
@pytest.mark.skipif(sys.platform != "linux", reason="triton is made for Linux only")
def test_kernels_compile_without_spilling_and_move_little_more_than_they_must():
    said = subprocess.run(
        [sys.executable, "-c", RESOURCES], capture_output=True, text=True, check=True, env={"PATH": "/usr/bin:/bin"}
    ).stdout.split()
    registers, stack, moved = int(said[0]), int(said[1]), float(said[2])
    assert 16 < registers <= 128
    assert stack == 0
    assert 1 < moved < 1.3


RESOURCES = f"""
import sys, torch
sys.path.insert(0, {str(ROOT / "src")!r})
from bench.gpu.compiled_kernels import resources
found = resources(90, torch.bfloat16, True)
print(found.registers, found.stack, found.moved / found.floor)
"""


def test_a_step_is_written_as_it_goes_and_stopped_at_its_limit(tmp_path):
    path = tmp_path / "results.md"
    endless = "import time; print('| first |', flush=True); time.sleep(60)"
    assert not gpu.run(gpu.Step("x", "Endless", (), ("-c", endless)), path, rehearse=True, limit=1.5)
    assert path.read_text() == "\n## Endless\n\n| first |\n\nStopped after 2 s.\n"
    assert not gpu.run(gpu.Step("y", "Broken", (), ("-c", "raise SystemExit('no such thing')")), path, rehearse=True)
    assert "**Failed** with exit code 1" in path.read_text()
    assert "    no such thing" in path.read_text()
    assert not gpu.run(gpu.Step("z", "Missing", (), (), ("no_such_module",)), path, rehearse=True)
    assert path.read_text().endswith("Not run: no_such_module is not installed.\n")


def test_every_step_stays_below_five_minutes_and_those_with_a_device_name_it():
    assert gpu.LIMIT < 300
    assert [step.name for step in gpu.STEPS if "cuda" not in step.command] == ["tests", "kernels"]


@pytest.mark.acceptance
def test_a_rehearsal_runs_every_step(capsys):
    assert gpu.main(["--rehearse"]) == 0, gpu.REHEARSAL.read_text()
    written = gpu.REHEARSAL.read_text()
    assert all(f"## {step.title}" in written for step in gpu.STEPS)
