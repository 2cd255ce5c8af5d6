"""Converts a checkpoint to the other layout: planned first, written to a temporary folder, read back, then renamed.

IN ── plan ──► .OUT.….posenc/ ── verify ──► rename ──► OUT        OUT is complete and verified, or does not exist
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch import Tensor

from posenc.configs.beside import RECORD
from posenc.configs.convert import sizes
from posenc.configs.convert.families import FUSED, SWITCH, SWITCHED, family, known_layout
from posenc.configs.convert.files import Advance, TensorFile, head, nbytes, opened, write
from posenc.configs.convert.plan import About, Change, Options, plan
from posenc.configs.convert.proof import check_bits, check_scores
from posenc.configs.convert.rows import Heads, permuted, row_permutation
from posenc.configs.convert.source import Found, gathered, layout_of, look
from posenc.configs.source import load
from posenc.frequencies import layouts
from posenc.frequencies.layouts import Layout

SPARE = 1 << 20  # bytes of the disk left free

BY_NAME = Options()
Progress = Callable[[str, int, int], None]
"(current stage, bytes done, bytes in all); copying and reading back both count."


def convert(
    source: Path | str,
    out: Path | str,
    to: Layout,
    *,
    layout_now: Layout | None = None,
    n_heads: int | None = None,
    n_kv_heads: int | None = None,
    d_head: int | None = None,
    rotary_dim: int | None = None,
    trailing: bool | None = None,
    options: Options = BY_NAME,
    progress: Progress = lambda what, done, of: None,
) -> dict[str, Any]:
    """Writes `source`, a safetensors file or a folder with a model, to `out` with its heads in layout `to`.

    Returns a report.

    layout_now           the layout of `source`; by default what its files record, what its family uses, or the other one
    n_heads … trailing   as in `Heads`; by default read from config.json
    options              how fused projections are laid out, which stacks, what to leave alone

    One tensor at a time is in memory. Raises ValueError if anything is unclear, FileExistsError if `out` exists, OSError if
    the disk is full; then nothing is left behind.
    """
    layouts.check(to)
    source, out = Path(source), Path(out)
    head_sizes = {
        "n_heads": n_heads,
        "n_kv_heads": n_kv_heads,
        "d_head": d_head,
        "rotary_dim": rotary_dim,
        "trailing": trailing,
    }
    sources = look(source, out)
    config = sizes.read_sizes(sources.folder)
    files = opened(sources.shards)
    tensors = gathered(files, sources.weight_map)
    now, known_from = layout_of(files, config, layout_now, to)
    heads = sizes.heads(config, head_sizes)
    options = options._replace(fused=options.fused or FUSED.get(family(config)))
    changes = plan(tensors, heads, options)
    total = sum(map(nbytes, tensors.values()))
    _check_space(out.parent, total + sum(path.stat().st_size for path in sources.others))
    advance = _counted(progress, 2 * total)
    with folder_next_to(out) as folder:
        for file in files:
            first = head(file.tensors, file.metadata | {RECORD: to})
            stage = advance(f"writing {file.path.name}")
            write(folder / file.path.name, first, _converted(file, changes, heads, now, to), stage)
            file.release()
        switched = _copy(sources, folder, config, to)
        written = [TensorFile(folder / file.path.name) for file in files]
        for old, new in zip(files, written, strict=True):
            if new.metadata != old.metadata | {RECORD: to}:
                raise ValueError(f"verification: the metadata of {new.path.name} differ from what was written")
            check_bits(old, new, changes, heads, now, to, advance(f"reading back {old.path.name}"))
            old.release()
            new.release()
        scores = check_scores(_reader(files), _reader(written), tensors, changes, heads, options.fused, now, to)
        _publish(folder if sources.weight_map is not None else folder / sources.shards[0].name, out)
    return {
        "in": str(source),
        "out": str(out),
        "from": now,
        "from_known_by": known_from,
        "to": to,
        "heads": {name: getattr(heads, name) for name in Heads.__dataclass_fields__},
        "files": len(files),
        "tensors": len(tensors),
        "permuted": sorted(changes),
        "bytes": total,
        "scores": scores._asdict() if scores else None,
        "copied": [str(path.relative_to(sources.folder)) for path in sources.others],
        "left_out": sources.left_out,
        "notes": _notes(config, to, scores is None, switched, sources),
    }


def _check_space(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if needed + SPARE > free:
        raise OSError(f"{folder}: {needed:,} bytes to write, {free:,} free")


def _counted(progress: Progress, total: int) -> Callable[[str], Advance]:
    done = 0

    def stage(what: str) -> Advance:
        def advance(n: int) -> None:
            nonlocal done
            done += n
            progress(what, done, total)

        progress(what, done, total)
        return advance

    return stage


def _converted(
    file: TensorFile, changes: Mapping[str, Change], heads: Heads, now: Layout, to: Layout
) -> Iterator[tuple[About, Tensor]]:
    for name, about in file.tensors.items():
        tensor, change = file.get(name), changes.get(name)
        if change is not None:
            index = row_permutation(about.shape[change.dim], change.starts, heads.turning, now, to)
            tensor = permuted(tensor, index, change.dim)
        yield about, tensor


def _copy(checkpoint: Found, folder: Path, config: dict[str, Any], to: Layout) -> bool:
    """Copies everything that is not a tensor; config.json gets the layout. Returns True if the family has a key for it."""
    switched = False
    for path in checkpoint.others:
        target = folder / path.relative_to(checkpoint.folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
        if target == folder / "config.json":
            switched = family(config) in SWITCHED
            _tell_config(target, config, {SWITCH: to == "interleaved"} if switched else {RECORD: to})
        _sync(target)
    return switched


def _tell_config(path: Path, config: dict[str, Any], layout: dict[str, Any]) -> None:
    """Writes the layout into the part of config.json that has the heads."""
    whole = load(path)
    part = next((section for section in whole.values() if section == config), whole)
    part |= layout
    path.write_text(json.dumps(whole, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _reader(files: Sequence[TensorFile]) -> Callable[[str], Tensor]:
    """A function that gets any tensor by name; one file is mapped at a time."""
    where, last = {name: file for file in files for name in file.tensors}, files[0]

    def get(name: str) -> Tensor:
        nonlocal last
        if where[name] is not last:
            last.release()
        last = where[name]
        return last.get(name)

    return get


@contextmanager
def folder_next_to(out: Path) -> Iterator[Path]:
    """A new folder next to `out`, always removed afterwards."""
    folder = out.parent / f".{out.name}.{secrets.token_hex(4)}.posenc"
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _publish(written: Path, out: Path) -> None:
    """Renames `written` to `out`. Does not replace a file or folder that has appeared there meanwhile."""
    for folder in (written, *written.rglob("*")):
        if folder.is_dir():
            _sync(folder)
    if written.is_dir():
        if out.exists():
            raise FileExistsError(f"{out}: exists; nothing is overwritten, give another path")
        os.rename(written, out)
    else:
        os.link(written, out)  # unlike rename, refuses where a file has appeared
    _sync(out.parent)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _notes(config: dict[str, Any], to: Layout, unscored: bool, switched: bool, sources: Found) -> list[str]:
    name, notes = family(config), []
    if switched:
        notes.append(f"{SWITCH} in config.json is now {str(to == 'interleaved').lower()}, so {name}'s own code reads OUT")
    elif name in SWITCHED:
        notes.append(f"config.json was not copied; {SWITCH} must be {str(to == 'interleaved').lower()} there")
    elif known_layout(config) not in (None, to):
        notes.append(f"transformers' {name} reads {known_layout(config)}: load OUT with code that reads {to}")
    if unscored:
        notes.append("no layer has both queries and keys with finite, nonzero scores, so scores were not compared")
    if sources.left_out:
        notes.append(f"left out, still {'half' if to == 'interleaved' else 'interleaved'}: {', '.join(sources.left_out)}")
    return notes
