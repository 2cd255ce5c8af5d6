"""A saved folder that AutoModel loads with what was attached, where posenc is installed, and that raises elsewhere.

config.json         "model_type": "posenc_llama", which transformers does not have, and "architectures": ["PosencLlama…"],
                    which no server has without posenc's plug-in; "auto_map" names the two classes of
modeling_posenc.py  which makes them with `auto_classes`; without posenc, transformers says that it is missing
README.md           a section that says what is attached, for people
"""

from __future__ import annotations

import json
import os
import re
import warnings
from pathlib import Path
from typing import Any

from posenc.configs.attached import KEY, NAMED, PREFIX, by_part
from posenc.configs.report.remarks import listed
from posenc.configs.source import CONSTANTS
from posenc.support import strict_json

FILE = "modeling_posenc"
USUAL = ("AutoModelForCausalLM", "AutoModelForSeq2SeqLM")  # of several names, such as AutoModelForPreTraining, the card's
SOURCE = '''"""Loads this folder with the positional encoding that is attached to it. Needs posenc."""

from posenc.transformers.auto_classes import config_class, model_class

Config = config_class("{model_type}")
{classes}
'''
SECTION = re.compile(r"<!-- posenc -->.*?<!-- /posenc -->\n?", re.DOTALL)
CARD = """<!-- posenc -->
## Positional encoding

{model} with another positional encoding, attached by posenc:

{rows}

```python
from transformers import {auto}

model = {auto}.from_pretrained(FOLDER, trust_remote_code=True)  # needs posenc
```
<!-- /posenc -->
"""


def finish(folder: Path, model: Any) -> None:
    """Writes what AutoModel needs into a folder that transformers has just written. Other files stay as they are."""
    path = folder / "config.json"
    config = strict_json.loads(path.read_bytes(), CONSTANTS)
    base, saved = config["model_type"], type(model)
    config["model_type"] = PREFIX + base
    config["architectures"] = [NAMED + name for name in config.get("architectures") or []]
    if not (classes := auto_classes(saved)):
        _write_config(path, config)
        warnings.warn(
            f"posenc: {saved.__name__} is no class of transformers, so that nothing loads this folder; make the model, "
            "attach the encoding and load the weights with load_state_dict",
            stacklevel=3,
        )
        return
    config["auto_map"] = {"AutoConfig": f"{FILE}.Config"} | {auto: f"{FILE}.{name}" for auto, name in classes.items()}
    lines = (f'{name} = model_class("{name}", Config)' for name in dict.fromkeys(classes.values()))
    _write(folder / f"{FILE}.py", SOURCE.format(model_type=base, classes="\n".join(lines)))
    _write_config(path, config)
    named = [name for name, class_name in classes.items() if class_name == saved.__name__]
    auto = next((name for name in (*USUAL, *named) if name in named), "AutoModel")
    _write_card(folder / "README.md", CARD.format(model=saved.__name__, rows=_rows(config[KEY]), auto=auto))


def auto_classes(saved: type) -> dict[str, str]:
    """The names of transformers' auto classes that load the saved class, or its body, and what each of them loads.

    None for a class that is not transformers'.
    """
    import transformers
    from transformers.models.auto import modeling_auto

    if getattr(transformers, saved.__name__, None) is not saved:
        return {}
    classes: dict[str, str] = {}
    body = None
    for name, auto in vars(modeling_auto).items():
        mapping = getattr(auto, "_model_mapping", None)
        if not name.startswith("AutoModel") or mapping is None:
            continue
        of_config = mapping.get(saved.config_class, None)
        kinds = of_config if isinstance(of_config, (tuple, list)) else (of_config,)
        if name == "AutoModel":
            body = kinds[0]
        if saved in kinds:
            classes[name] = saved.__name__
    if body is not None:
        classes.setdefault("AutoModel", body.__name__)
    return classes


def _rows(entry: dict[str, Any]) -> str:
    """One row for each encoding of each part of the model: its layers, its name, and its arguments."""
    rows = []
    for part, layers in sorted(by_part(entry["layers"]).items(), reverse=True):  # the encoder first
        for number in sorted(set(layers.values())):
            of = sorted(n for n, index in layers.items() if index == number)
            rows.append(f"| {part} {listed(of, len(of))} | {_name(entry['encodings'][number])} |".replace("|  ", "| "))
    return "\n".join(["| layers | encoding |", "|---|---|", *rows])


def _name(entry: dict[str, Any]) -> str:
    if "stack" in entry:
        return " + ".join(map(_name, entry["stack"]))
    return str(entry["class"].rpartition(".")[2].rpartition(":")[2])


def _write_card(path: Path, section: str) -> None:
    """Adds the section to a model card, or replaces the one that is there."""
    if not path.exists():
        text = f"---\nlibrary_name: transformers\ntags:\n- posenc\n---\n\n{section}"
    else:
        text = path.read_text("utf-8")
        text = SECTION.sub(lambda _: section, text) if SECTION.search(text) else f"{text.rstrip()}\n\n{section}"
    _write(path, text)


def _write_config(path: Path, config: dict[str, Any]) -> None:
    _write(path, json.dumps(config, indent=2, ensure_ascii=False, sort_keys=True) + "\n")


def _write(path: Path, text: str) -> None:
    """All of the file or none of it."""
    new_file = path.with_name(f"{path.name}.new")
    new_file.write_text(text, "utf-8")
    os.replace(new_file, path)
