"""Writes src/posenc/configs/defaults_diffusers.json: what each class of diffusers' transformers assumes of a silent file.

    python tools/diffusers_defaults.py FOLDER [--check]     the folder of the package diffusers

Read off the constructors' source, without importing it. --check fails where the file is not what they say.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from pathlib import Path
from typing import Any

OUT = Path(__file__).parents[1] / "src/posenc/configs/defaults_diffusers.json"
KEPT = re.compile(
    "rope|rotary|axes|theta|pos_embed|positional|interpolation_scale|scale_factor$|mrope|max_size|max_pos|sliding_window"
    "|layer_types|(^|_)heads$|head_dim$|^(attention_|linear_)?head|num_(single_|visual_|text_|mmdit_|single_dit_|decoder_|hidden_)*"
    "(layers|blocks)$|^n_layers$|^n_heads$|depth|^dim$|^dit_dim$|^(hidden_size|model_dim|embed_dim)$|sample_size|^patch_size$"
    "|video_length|base_(height|width)|original_max_position"
)


def classes(folder: Path) -> dict[str, dict[str, Any]]:
    """Every configurable class of diffusers' transformers, with the defaults of its keys of position and size."""
    found: dict[str, dict[str, Any]] = {}
    for file in sorted((folder / "models" / "transformers").glob("*.py")):
        for node in ast.parse(file.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef) and any("ConfigMixin" in ast.unparse(base) for base in node.bases):
                found[node.name] = {
                    "class": node.name,
                    "folder": "",
                    "names": {},
                    "defaults": defaults(node),
                    "parts": {},
                    "base": None,
                }
    return dict(sorted(found.items()))


def defaults(node: ast.ClassDef) -> dict[str, Any]:
    made = next(one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "__init__").args
    given = zip(made.args[len(made.args) - len(made.defaults) :], made.defaults, strict=True)
    values = {name.arg: ast.literal_eval(value) for name, value in given if KEPT.search(name.arg)}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def written(folder: Path) -> str:
    rows = (f"{json.dumps(name)}: {json.dumps(about)}" for name, about in classes(folder).items())
    return "{\n" + ",\n".join(rows) + "\n}\n"


if __name__ == "__main__":
    made = written(Path(sys.argv[1]))
    if "--check" in sys.argv:
        sys.exit(OUT.read_text("utf-8") != made and f"{OUT.name} is not what diffusers says")
    OUT.write_text(made, "utf-8")
