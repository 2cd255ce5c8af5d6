"""A finished trial: its description and all of its numbers, in one Parquet file.

about      configuration, provenance and times: JSON in the file's metadata under "posenc"
seal       SHA-256 of the whole file with the seal itself set to zeros, which detects any changed bit
rows       one number each, in long form; columns that do not apply to a kind of number are empty

kind        | other columns                              | value
bits        | change, mode, length, item, weight         | mean bits of the item's targets, of which there are `weight`
right       | the same                                   | share of them that the largest logit got right
exact       | the same                                   | 1 where all are right, else 0
retrieved   | the same                                   | 1 where all are of the row's answer, in any order, else 0
position    | length, position, weight                   | mean bits of the targets at that position of the row
curve       | step                                       | training loss in bits, mean since the point before
then        | change, step                               | the same of the training after a change
far         | step, length                               | loss in bits at the longest length after that step
attention   | step, layer, head, position                | mean probability at the distance query - key
similarity  | step, position, other                      | cosine of two rows of a learned table
link        | step, layer, head, item, note, weight      | probability of one token for another; `weight`: uniform attention

change      "" | interpolation | ntk | ntk_by_parts | yarn | self_extend: of the frequencies, after training
mode        same targets | non-overlapping | random positions: same targets, the mean over draws of random positions |
            last window: the targets of the longer lengths, each with exactly the trained length before it
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from posenc.support import strict_json

METADATA = b"posenc"
SEAL, UNSEALED = b"posenc seal ", b"0" * 64
SAME_TARGETS, NON_OVERLAPPING, RANDOM_POSITIONS = "same targets", "non-overlapping", "random positions"
LAST_WINDOW = "last window"

SCHEMA = pa.schema(
    [
        ("kind", pa.dictionary(pa.int32(), pa.string())),
        ("change", pa.dictionary(pa.int32(), pa.string())),
        ("mode", pa.dictionary(pa.int32(), pa.string())),
        ("note", pa.dictionary(pa.int32(), pa.string())),
        ("length", pa.int32()),
        ("item", pa.int32()),
        ("position", pa.int32()),
        ("other", pa.int32()),
        ("step", pa.int32()),
        ("layer", pa.int16()),
        ("head", pa.int16()),
        ("value", pa.float32()),
        ("weight", pa.float32()),
    ]
)


@dataclass(frozen=True)
class Record:
    """`about` is plain JSON: see `posenc.lab.trial.training.trial` for what it holds."""

    about: Mapping[str, Any]
    rows: pa.Table

    def to_parquet(self) -> bytes:
        """The same bytes for the same record."""
        about = json.dumps(self.about, sort_keys=True, allow_nan=False, ensure_ascii=False).encode()
        sink = io.BytesIO()
        metadata = {METADATA: about, b"seal": SEAL + UNSEALED}
        pq.write_table(self.rows.replace_schema_metadata(metadata), sink, compression="zstd")
        content = sink.getvalue()
        return sealed(content, digest(content))

    @classmethod
    def from_parquet(cls, content: bytes) -> Record:
        """The record in the bytes. Raises ValueError if they are not a record."""
        if SEAL not in content or content != sealed(content, digest(sealed(content, UNSEALED))):
            raise ValueError("not a record of posenc lab, or not all of one")
        table = pq.read_table(io.BytesIO(content))
        about = strict_json.loads((table.schema.metadata or {}).get(METADATA, b""))
        return cls(about, table.cast(SCHEMA).replace_schema_metadata(None))


def digest(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()


def sealed(content: bytes, seal: bytes) -> bytes:
    start = content.rindex(SEAL) + len(SEAL)
    return content[:start] + seal + content[start + len(seal) :]


class Rows:
    """Collects numbers; `table()` returns them as a table."""

    def __init__(self) -> None:
        self._columns: dict[str, list[Any]] = {name: [] for name in SCHEMA.names}

    def add(self, kind: str, value: float, **where: Any) -> None:
        """Adds a number. Raises TypeError for an unknown column."""
        if unknown := where.keys() - self._columns.keys():
            raise TypeError(f"unknown columns: {', '.join(sorted(unknown))}")
        for name, column in self._columns.items():
            column.append({"kind": kind, "value": value, **where}.get(name))

    def table(self) -> pa.Table:
        arrays = [pa.array(self._columns[field.name], type=field.type) for field in SCHEMA]
        return pa.Table.from_arrays(arrays, schema=SCHEMA)
