"""What a user's type checker sees of posenc."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
USER = """
import torch
import posenc

q = torch.zeros(1, 2, 8, 16)
encoding = posenc.create("rope", d_head=16)
reveal_type(posenc.attend(q, q, q, encoding, posenc.Positions.arange(1, 8)))
"""


def test_no_module_needs_jaxtyping():
    files = [
        path.name
        for path in (ROOT / "src").rglob("*.py")
        if re.search(r"(?m)^\s*(import|from) jaxtyping", path.read_text())
    ]
    assert files == []


@pytest.mark.acceptance
def test_a_users_mypy_sees_tensors_without_jaxtyping(tmp_path):
    """The errors of posenc's own files are silenced, as those of an installed package are."""
    (tmp_path / "user.py").write_text(USER)
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--config-file=",
        "--follow-imports=silent",
        f"--cache-dir={os.devnull}",
        "user.py",
    ]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert 'Revealed type is "torch._tensor.Tensor"' in done.stdout
