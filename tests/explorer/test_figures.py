"""The figures that Lighthouse would give hold for every view, as the command that prints them says."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOL = runpy.run_path(str(ROOT / "tools/explorer_figures.py"))


def test_each_figure_has_a_limit():
    """The command fails for one violation, one large shift, one slow drawing or slow frames, and for nothing else."""
    figures = TOOL["Figures"]
    assert figures([], TOOL["MOST_SHIFT"], 0.49, TOOL["MOST_FRAME"]).too_large() == []
    assert figures(["label: <input>"], 0, 0.1, 17).too_large() == ["label: <input>"]
    assert figures([], 0.11, 0.1, 17).too_large() == ["layout shift 0.110"]
    assert figures([], 0, 0.5, 17).too_large() == ["first drawing after 0.50 s"]
    assert figures([], 0, 0.1, 20.1).too_large() == ["frames of 20.1 ms"]


@pytest.mark.acceptance
def test_the_figures_of_every_view_hold():
    done = subprocess.run(
        [sys.executable, "tools/explorer_figures.py"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    print(done.stdout)
    assert done.returncode == 0, done.stderr
    for name in TOOL["NAMES"]:
        assert f"\n{name:16} en" in done.stdout
        assert f"\n{name:16} zh" in done.stdout
    assert "\nexport " in done.stdout
