"""The table of docs/images.md: image, video and audio models of diffusers, as posenc inspect reads their classes."""

from __future__ import annotations

from posenc.configs.as_python import as_python
from posenc.configs.families.diffusion_transformers import MODELS, ROWS, positions_of
from posenc.configs.read import spec_of
from posenc.support.languages import Language, Words

HEADINGS = (Words("model", "模型"), Words("coordinates", "坐标"), Words("encoding", "编码"), Words("positions", "位置"))


def diffusion_table(language: Language) -> str:
    """A row for each class, or for each part of one; models of one class whose calls differ have rows of their own."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for model, config in MODELS.items():
        for path, part in spec_of(config).walk():
            if part.layers:
                uses = dict.fromkeys(as_python(use) for layer in part.layers for use in layer.uses)
                code = "<br>".join(f"`{call.replace(chr(10), '; ')}`" for call in uses) or "–"
                at = f"`{positions}`" if (positions := positions_of(part)) else "–"
                cells = (config["_class_name"], path, part.coordinates.in_language(language), code, at)
                rows.setdefault(cells, []).append(model)
    headings = " | ".join(words.in_language(language) for words in HEADINGS)
    lines = [f"| {headings} |", "|---|---|---|---|"]
    lines += [
        f"| {', '.join(models)}{f' ({path})' * bool(path)}<br>`{name}` | {where} | {code} | {at} |"
        for (name, path, where, code, at), models in rows.items()
    ]
    unnamed = [name for name, row in ROWS.items() if not row["models"]]
    return "\n".join([*lines, "", _also(unnamed).in_language(language)])


def _also(names: list[str]) -> Words:
    listed = ", ".join(f"`{name}`" for name in names)
    return Words(f"Read as well, with factors that only the file has: {listed}.", f"{listed} 也能读取，其系数只在文件中。")
