"""The compiled loops of the page's models are what their source compiles to."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

WEB = Path(__file__).parents[2] / "web"


@pytest.mark.acceptance
def test_the_committed_kernel_is_what_its_source_compiles_to(tmp_path):
    pytest.importorskip("ziglang")
    subprocess.run([sys.executable, WEB / "kernel.py", tmp_path / "kernel.wasm"], check=True)
    assert (tmp_path / "kernel.wasm").read_bytes() == (WEB / "src" / "stretch" / "kernel.wasm").read_bytes()
