"""--out DIR: the report, the page, every fragment and the plot. The folder appears complete or not at all."""

from __future__ import annotations

import io
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from posenc.configs.report.extension import Extension
from posenc.configs.report.names import kind
from posenc.support.languages import Language

if TYPE_CHECKING:
    from posenc.pictures.plots.picture import Curves


def write(out: Path, data: dict[str, Any], extensions: list[Extension], language: Language = "en") -> None:
    """Raises FileExistsError if `out` exists, FileNotFoundError if its parent does not."""
    if not out.parent.is_dir():
        raise FileNotFoundError(f"--out {out}: no folder {out.parent}")
    folder = Path(tempfile.mkdtemp(dir=out.parent, prefix=f".{out.name}-"))
    try:
        (folder / "report.json").write_text(
            json.dumps(data, ensure_ascii=False, indent=1, allow_nan=False), encoding="utf-8"
        )
        (folder / "report.txt").write_text(page(data, extensions, language), encoding="utf-8")
        for extension in [extension for extension in extensions if extension.fragment]:
            text = json.dumps(extension.fragment, indent=2)
            (folder / f"config-{extension.method}.json").write_text(text + "\n", encoding="utf-8")
        drawn = picture(data, extensions)
        if drawn is not None:
            from posenc.pictures.plots.figures import save

            save(drawn, folder / "frequencies.png")
        folder.chmod(0o755)
        if out.exists():
            raise FileExistsError(f"--out {out}: exists; give a new folder")
        os.rename(folder, out)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def page(data: dict[str, Any], extensions: list[Extension], language: Language = "en") -> str:
    from rich.console import Console

    from posenc.configs.report.page import Page

    file = io.StringIO()
    Page(Console(file=file, width=80, highlight=False), language, verbose=True).show(data, extensions)
    return file.getvalue()


def picture(data: dict[str, Any], extensions: list[Extension], wanted: int | None = None) -> Curves | None:
    """Wavelength by pair, before and after each method; without extensions, each set of frequencies of the model.

    Across it: the trained and the usable length, the `wanted` one, every window or chunk.
    """
    if extensions:
        first = extensions[0]
        lines = [("now", list(first.before))] + [(e.method, list(e.after)) for e in extensions]
        title = f"Wavelengths for {first.length:,} positions"
    else:
        uses = [(group, use) for part in data["parts"] for group in part["groups"] for use in group["encodings"]]
        lines = [
            (f"{kind(group['kind']).en}, base {use['rotation']['base']:,.10g}", use["rotation"]["frequencies"])
            for group, use in uses
            if "rotation" in use
        ]
        title = f"Wavelengths of {data['family']}"
    return _curves(title, dict(lines), _across(data, extensions, wanted)) if lines else None


def _across(data: dict[str, Any], extensions: list[Extension], wanted: int | None) -> dict[str, int]:
    """Lengths drawn across the curves, by their names: trained, usable, of every window or chunk, wanted."""
    lengths: dict[str, int] = {}
    part = next((p for p in data["parts"] if p["part"] == data["verdict"]["part"]), data["parts"][0])
    trained = data["verdict"]["trained"]
    if extensions:
        trained, wanted = round(extensions[0].length / extensions[0].factor), extensions[0].length
    for name, length in (("trained", trained), ("usable", part["usable_length"]), ("wanted", wanted)):
        if length and length not in lengths.values():
            lengths[f"{name} length {length:,}"] = length
    groups = [group for part in data["parts"] for group in part["groups"]]
    return lengths | {
        f"{name} {group[name]:,}": group[name] for group in groups for name in ("window", "chunk") if group[name]
    }


def _curves(title: str, lines: dict[str, list[float]], across: dict[str, int]) -> Curves:
    from posenc.pictures.plots.picture import Curves, Line

    alike: dict[tuple[float, ...], list[str]] = {}
    for name, values in lines.items():  # curves that would hide one another share a name
        alike.setdefault(tuple(float(f"{value:.4g}") for value in values), []).append(name)
    drawn = []
    for rounded, names in alike.items():
        moving = [(pair, 2 * torch.pi / abs(value)) for pair, value in enumerate(rounded) if value]
        x, y = zip(*moving, strict=True)
        drawn.append(Line(", ".join(names), torch.tensor(x, dtype=torch.float64), torch.tensor(y, dtype=torch.float64)))
    for name, length in across.items():
        ends = torch.tensor([0.0, max(float(line.x[-1]) for line in drawn)], dtype=torch.float64)
        drawn.append(Line(name, ends, torch.full_like(ends, float(length))))
    idea = (
        "A pair above a length does not complete a turn within it,",
        "so beyond it that pair has angles not seen in training.",
    )
    return Curves(title, idea, lines=tuple(drawn), x="pair of channels", y="positions for one turn", log_y=True)
