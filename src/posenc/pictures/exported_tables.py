"""What an encoding adds, as arrays in a file for programs outside torch: npz, safetensors or a C header.

    rotations        cos, sin     [t, n]         xPos: log_decay [t, n] too
    embeddings       table        [t, d]
    distance biases  bias         [h, 2t - 1]    column c is the distance query - key = t - 1 - c

Everything is computed in fp64 at positions 0 … t-1 and rounded once. The metadata says what each array holds, with its
axes, layout, base and units. Legend: t positions, n pairs, d channels, h heads.
"""

from __future__ import annotations

import copy
import io
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from posenc.encoding import SEAMS, PositionalEncoding, Seam, scale_of
from posenc.encodings.rope import RoPE
from posenc.encodings.xpos import XPos
from posenc.positions import Positions
from posenc.structure import distance_terms
from posenc.support import checks
from posenc.support.checked import checked

Format = Literal["npz", "safetensors", "c"]
Precision = Literal["float32", "float64"]
SUFFIXES: dict[Format, str] = {"npz": ".npz", "safetensors": ".safetensors", "c": ".h"}
MOST = 2**26  # numbers of a file: 256 MiB in float32
MOST_IN_C = 2**21  # numbers of a header: 24 bytes each as text
PAIRS = {"half": "pair i is channels (i, i + n)", "interleaved": "pair i is channels (2i, 2i + 1)"}


@dataclass(frozen=True, eq=False)
class ExportedTables:
    """The arrays by name, and the metadata: what can be written as JSON."""

    arrays: dict[str, NDArray[Any]]
    metadata: dict[str, Any]


@checked
def exported_tables(encoding: PositionalEncoding, length: int, precision: Precision = "float32") -> ExportedTables:
    """The arrays of an encoding at positions 0 … length-1.

    Raises ValueError for an encoding whose effect is no such array (it reads queries, logits or several coordinates), for
    one that does nothing, and for more than 2²⁶ numbers.
    """
    checks.one_of(get_args(Precision), precision=precision)
    name = type(encoding).__name__
    if encoding.axes != 1:
        raise ValueError(f"{name}: reads {encoding.axes} coordinates per token; tables by position need one")
    makers: dict[frozenset[Seam], Callable[[Any, int], ExportedTables]] = {
        frozenset({"embed"}): _of_embedding,
        frozenset({"rotate"}): _of_rotation,
        frozenset({"bias"}): _of_bias,
    }
    if encoding.seams not in makers:
        acts = f"acts at {', '.join(sorted(encoding.seams, key=SEAMS.index))}" if encoding.seams else "does nothing"
        raise ValueError(
            f"{name}: {acts}: there is no table of positions; tables are those of embeddings, rotations and biases"
        )
    if turns_embeddings(encoding):
        raise ValueError(f"{name}: it turns embeddings and adds no vector to them: there is no table of positions")
    with torch.no_grad():
        export = makers[encoding.seams](copy.deepcopy(encoding).double(), length)
    arrays = {key: np.ascontiguousarray(array.astype(precision)) for key, array in export.arrays.items()}
    about = {
        "encoding": name,
        "configuration": {key: _plain(value) for key, value in encoding.configuration.items() if value is not None},
        "positions": f"0 … {length - 1}",
        "dtype": precision,
        **export.metadata,
    }
    return ExportedTables(arrays, about)


@checked
def write_tables(tables: ExportedTables, path: str | os.PathLike[str], form: Format, *, replace: bool = False) -> Path:
    """Writes the tables to `path` in one step: an interrupted run leaves an old file as it was.

    npz           the arrays, and "metadata": JSON as text
    safetensors   the arrays, and the metadata as JSON under the key "posenc"
    c             a header with one static const array each, row by row; the metadata as comment and macros

    Raises FileExistsError for a file that exists without `replace`, ValueError for more numbers than a header may hold.
    """
    checks.one_of(get_args(Format), form=form)
    path = Path(path)
    if path.is_dir() or (path.exists() and not replace):
        raise FileExistsError(f"{path}: is a folder" if path.is_dir() else f"{path}: exists; --force replaces it")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path}: there is no folder {path.parent}")
    written = {"npz": _npz, "safetensors": _safetensors, "c": _header}[form](tables)
    temporary = path.with_name(f".{path.name}-{os.getpid()}")
    try:
        temporary.write_bytes(written)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    return path


@torch.no_grad()
def turns_embeddings(encoding: PositionalEncoding) -> bool:
    """Whether `embed` turns embeddings instead of adding to them: each token alone, zeros stay zeros, and ones change."""
    width: Any = encoding.configuration.get("d_model")
    if "embed" not in encoding.seams or "local" not in encoding.traits or not checks.is_whole(width):
        return False
    zeros = next(encoding.parameters(), torch.zeros(1)).new_zeros(1, 1, width)
    first = torch.zeros(1, 1, *([encoding.axes] if encoding.axes > 1 else []), dtype=torch.int64, device=zeros.device)
    if encoding.embed(zeros, Positions.at(first)).any():
        return False
    second = first.clone()
    second.view(-1)[0] = 1
    added, ones = (encoding.embed(zeros + start, Positions.at(second)) for start in (0, 1))
    return not added.any() and bool((ones != 1).any())


# What each seam adds -----------------------------------------------------------------------------------------------------


def _of_embedding(encoding: PositionalEncoding, length: int) -> ExportedTables:
    width: Any = encoding.configuration.get("d_model")
    if not checks.is_whole(width):
        raise ValueError(f"{type(encoding).__name__}: its configuration names no d_model; there is no table [t, d_model]")
    _bounded(length * width)
    table = encoding.embed(torch.zeros(1, length, width, dtype=torch.float64), Positions.arange(1, length))[0]
    return ExportedTables(
        {"table": table.numpy()},
        {"use": "x + table[position]", "arrays": {"table": _about("t d", "the addend of every channel", "embedding")}},
    )


def _of_rotation(encoding: PositionalEncoding, length: int) -> ExportedTables:
    if not isinstance(encoding, (RoPE, XPos)):
        raise ValueError(f"{type(encoding).__name__}: its rotation is no table of cos and sin by position")
    frequencies = encoding.frequencies_now() if isinstance(encoding, RoPE) else encoding.frequencies
    _bounded(2 * length * len(frequencies))
    parts = encoding.tables if isinstance(encoding, RoPE) else encoding.cos_sin_log_decay
    cos, sin, *rest = (table[0].numpy() for table in parts(Positions.arange(1, length), torch.float64))
    arrays = {"cos": cos, "sin": sin, "frequencies": np.array(frequencies.values)}
    about = {
        "cos": _about("t n", "cosine of position · frequency" + _scaled(frequencies.cos_sin_scale), "none"),
        "sin": _about("t n", "sine of position · frequency" + _scaled(frequencies.cos_sin_scale), "none"),
        "frequencies": _about("n", "angle from one position to the next", "radians per position"),
    }
    use = "(a, b) -> (a·cos - b·sin, b·cos + a·sin) for every pair of queries and keys"
    if rest:
        arrays["log_decay"], about["log_decay"] = rest[0], _about("t n", "logarithm of the decay", "none")
        use += "; then queries · exp(log_decay), keys · exp(-log_decay)"
    d_head, turning = encoding.d_head, 2 * len(frequencies)
    start = encoding.start if isinstance(encoding, RoPE) else 0
    metadata: dict[str, Any] = {
        "use": use,
        "layout": encoding.layout,
        "pairs": f"{PAIRS[encoding.layout]} of channels {start} … {start + turning - 1}, n = {len(frequencies)}",
        "d_head": d_head,
        "base": encoding.configuration["base"],
        "softmax_scale": scale_of(encoding, d_head),
        "arrays": about,
    }
    if isinstance(encoding, RoPE) and encoding.returns != encoding.layout:
        metadata["returned_layout"] = encoding.returns
    return ExportedTables(arrays, metadata)


def _of_bias(encoding: PositionalEncoding, length: int) -> ExportedTables:
    terms = distance_terms(encoding, encoding.structure())
    if not terms:
        raise ValueError(
            f"{type(encoding).__name__}: its bias is not one of the distance alone; there is no table of distances"
        )
    distances = torch.arange(length - 1, -length, -1)
    _bounded(len(distances))  # one head; the rest once their number is known
    bias = sum(part.at_distance(distances).double() for part in terms)
    assert isinstance(bias, torch.Tensor)
    _bounded(bias.numel())
    return ExportedTables(
        {"bias": bias.numpy()},
        {
            "use": "q·k·scale + bias[h, t - 1 - (i - j)] for query i and key j",
            "arrays": {"bias": _about("h 2t-1", f"column c is the distance query - key = {length - 1} - c", "logit")},
        },
    )


def _about(axes: str, holds: str, unit: str) -> dict[str, str]:
    return {"axes": axes, "holds": holds, "unit": unit}


def _scaled(scale: float) -> str:
    return "" if scale == 1 else f", times {scale!r}"


def _plain(value: Any) -> Any:
    """The value as JSON can hold it; other kinds as text."""
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value if isinstance(value, (str, int, float, bool)) else str(value)


def _bounded(numbers: int) -> None:
    if numbers > MOST:
        raise ValueError(f"length: {numbers:,} numbers are more than {MOST:,}; give a smaller length or size")


# Formats -----------------------------------------------------------------------------------------------------------------


def _npz(tables: ExportedTables) -> bytes:
    file = io.BytesIO()
    held: dict[str, Any] = {"metadata": np.array(json.dumps(tables.metadata, ensure_ascii=False)), **tables.arrays}
    np.savez(file, **held)
    return file.getvalue()


def _safetensors(tables: ExportedTables) -> bytes:
    from safetensors.numpy import save

    written: bytes = save(tables.arrays, metadata={"posenc": json.dumps(tables.metadata, ensure_ascii=False)})
    return written


def _header(tables: ExportedTables) -> bytes:
    numbers = sum(array.size for array in tables.arrays.values())
    if numbers > MOST_IN_C:
        raise ValueError(
            f"form: {numbers:,} numbers are more than the {MOST_IN_C:,} of a C header; take npz or safetensors"
        )
    guard = f"POSENC_{tables.metadata['encoding'].upper()}_H"
    about = json.dumps(tables.metadata, ensure_ascii=False, indent=1).replace("*/", "* /")
    lines = [f"/* Tables of positions, written by posenc.\n\n{about}\n*/", f"#ifndef {guard}", f"#define {guard}", ""]
    for name, array in tables.arrays.items():
        kind, suffix = ("float", "f") if array.dtype == np.float32 else ("double", "")
        sizes = "".join(f"[{size}]" for size in array.shape)
        lines.append(f"static const {kind} posenc_{name}{sizes} = {_braced(array, suffix)};\n")
    return "\n".join([*lines, f"#endif /* {guard} */", ""]).encode()


def _braced(array: NDArray[Any], suffix: str) -> str:
    """A C initialiser. Each number is the shortest decimal that reads as the same bits."""
    if array.ndim > 1:
        return "{\n" + ",\n".join(_braced(row, suffix) for row in array) + "}"
    return "{" + ", ".join(_number(number) + suffix for number in array) + "}"


def _number(number: Any) -> str:
    return np.format_float_scientific(number, unique=True, trim="0")
