"""The contents of a path: shards, their index, other files, and the layout of the heads."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from posenc.configs.beside import RECORD
from posenc.configs.convert.families import family, known_layout
from posenc.configs.convert.files import PICKLES, TensorFile
from posenc.configs.convert.plan import About
from posenc.frequencies import layouts
from posenc.frequencies.layouts import Layout
from posenc.support import strict_json

OTHER_WEIGHTS = PICKLES | {".safetensors", ".gguf", ".onnx", ".onnx_data", ".h5", ".msgpack", ".tflite", ".npz"}


class Found(NamedTuple):
    """The contents of a path. `weight_map` maps names to shards, is {} without an index, and None for a single file."""

    folder: Path
    shards: list[Path]
    weight_map: dict[str, str] | None
    others: list[Path]
    left_out: list[str]


def look(source: Path, out: Path) -> Found:
    """The contents of `source`.

    Raises FileNotFoundError, FileExistsError, or ValueError if it has no safetensors to convert.
    """
    if not source.exists():
        raise FileNotFoundError(f"{source}: no such file or folder")
    if out.exists() or out.is_symlink():
        raise FileExistsError(f"{out}: exists; nothing is overwritten, give another path")
    if not out.parent.is_dir():
        raise FileNotFoundError(f"{out.parent}: no such folder")
    if source.is_file():
        return Found(source.parent, [source], None, [], [])
    if source.resolve() in out.resolve().parents:
        raise ValueError(f"{out}: is inside {source}; give a path outside")
    index = _index(source)
    shards = sorted(source.glob("*.safetensors"))
    if not shards:
        pickles = sorted(path.name for path in source.iterdir() if path.suffix in PICKLES)
        why = f"; {pickles[0]} is a pickle, which may run code when read: save it as safetensors first" if pickles else ""
        raise ValueError(f"{source}: no .safetensors files{why}")
    if index and (strange := sorted({path.name for path in shards} ^ set(index.values()))):
        raise ValueError(f"{source / strange[0]}: is in the folder but not in its index, or the reverse; move it away")
    others, left_out = _others(source)
    return Found(source, shards, index, others, left_out)


def _index(folder: Path) -> dict[str, str]:
    paths = sorted(folder.glob("*.safetensors.index.json"))
    if not paths:
        return {}
    if len(paths) > 1:
        raise ValueError(f"{folder}: {len(paths)} indices ({', '.join(path.name for path in paths)}); keep one")
    try:
        weight_map = strict_json.read(paths[0])["weight_map"]
        index = {str(name): str(file) for name, file in weight_map.items()}
    except (KeyError, TypeError, AttributeError):
        raise ValueError(f"{paths[0]}: expected JSON with a weight_map from tensors to files") from None
    if odd := next((file for file in index.values() if Path(file).name != file), None):
        raise ValueError(f"{paths[0]}: {odd!r} is not a file of this folder")
    return index


def _others(folder: Path) -> tuple[list[Path], list[str]]:
    """Files to copy, and weights in other formats, which would stay in the old layout."""
    others, left_out = [], []
    for root, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            path = Path(root, name)
            if path.suffix in OTHER_WEIGHTS:
                if path.parent != folder or path.suffix != ".safetensors":
                    left_out.append(str(path.relative_to(folder)))
            elif path.is_file():
                others.append(path)
    return others, left_out


def gathered(files: Sequence[TensorFile], index: dict[str, str] | None) -> dict[str, About]:
    tensors: dict[str, About] = {}
    for file in files:
        if twice := tensors.keys() & file.tensors.keys():
            raise ValueError(f"{file.path}: {min(twice)} is in another file too")
        if index and (odd := {name for name, where in index.items() if where == file.path.name} ^ file.tensors.keys()):
            raise ValueError(f"{file.path}: {min(odd)} is in the index or in the file, but not in both")
        tensors |= file.tensors
    return tensors


def layout_of(files: Sequence[TensorFile], config: dict[str, Any], wanted: Layout | None, to: Layout) -> tuple[Layout, str]:
    """The layout of the source, and where it comes from."""
    recorded = {file.metadata.get(RECORD) for file in files}
    if len(recorded) > 1:
        raise ValueError(f"{RECORD}: the files record different layouts ({', '.join(sorted(map(str, recorded)))})")
    record, known, told = recorded.pop(), known_layout(config), config.get(RECORD)
    if told is not None and record not in (None, told):
        raise ValueError(f"{RECORD}: config.json says {told!r}, the files record {record!r}; one of them is wrong")
    where = "in its files" if record is not None else "in config.json"
    record = told if record is None else record
    other: Layout = "half" if to == "interleaved" else "interleaved"
    if record is not None:
        now, why = layouts.check(record), f"{RECORD} {where}"
        if wanted not in (None, now):
            raise ValueError(f"--from {wanted}: the {'files record' if 'files' in where else 'config.json says'} {now}")
    elif wanted is not None:
        now, why = layouts.check(wanted), "--from"
    elif known is not None:
        now, why = known, f"model_type {family(config)}"
    else:
        now, why = other, "not recorded; assumed to be the other one"
    if now == to:
        raise ValueError(
            f"{files[0].path}: its heads are already {to}, according to {why}; nothing to convert"
            f"{'' if record else '. If its weights are not, say --from ' + other}"
        )
    return now, why
