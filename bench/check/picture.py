"""Writes docs/pictures/check.svg: `posenc check` on rotary-embedding-torch, as the terminal shows it."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import textwrap
from html import escape
from pathlib import Path

PICTURE = Path(__file__).parents[2] / "docs/pictures/check.svg"
FILE = """from rotary_embedding_torch import RotaryEmbedding
from posenc.checking.adapters import ByOffset

rotate = ByOffset(RotaryEmbedding(dim=64))
"""
WIDTH, LINE, SIZE = 100, 19, 13
COLOURS = {"✗": "#f38ba8", "$": "#a6e3a1", "is:": "#89dceb", "·": "#7f849c"}


def output() -> list[str]:
    """What the command prints, without the laws that say nothing here, wrapped."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "rope.py").write_text(FILE, "utf-8")
        done = subprocess.run(
            [sys.executable, "-m", "posenc", "check", "rope.py"],
            cwd=folder,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
    if done.returncode != 1:
        raise RuntimeError(f"expected a failed law, got exit code {done.returncode}: {done.stderr[-500:]}")
    lines = [line for line in done.stdout.splitlines() if not line.startswith("·")]
    return [part for line in lines for part in textwrap.wrap(line, WIDTH, subsequent_indent="      ") or [""]]


def svg(lines: list[str]) -> str:
    """The lines as a dark terminal."""
    rows = []
    for n, line in enumerate(lines):
        colour = next((value for mark, value in COLOURS.items() if line.startswith(mark)), "#cdd6f4")
        y = 30 + n * LINE
        rows.append(f'<text x="18" y="{y}" fill="{colour}" xml:space="preserve">{escape(line)}</text>')
    height = 30 + len(lines) * LINE
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 840 {height}" font-size="{SIZE}" '
        'font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace">\n'
        f'<rect width="840" height="{height}" rx="8" fill="#1e1e2e"/>\n' + "\n".join(rows) + "\n</svg>\n"
    )


if __name__ == "__main__":
    shown = ["$ cat rope.py", *FILE.splitlines(), "", "$ posenc check rope.py", *output()]
    PICTURE.write_text(svg(shown), encoding="utf-8")
    sys.stdout.write(f"{PICTURE}\n")
