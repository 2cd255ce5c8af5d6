"""Trained weights in a file, so that a trial whose scoring changed is scored again and not trained again.

FOLDER/KEY16.pt     weights, and what was recorded in training; KEY is the trial's `weights_key`
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from posenc.lab.records import files
from posenc.lab.records.record import Record, Rows


@dataclass(frozen=True)
class KeptWeights:
    """`path` is the file of one trial, which may not exist yet; `key` is the key of the trial that runs now."""

    path: Path
    key: str

    @classmethod
    def of(cls, folder: Path, weights_key: str, key: str) -> KeptWeights:
        return cls(folder / f"{weights_key[:16]}.pt", key)

    def load(self) -> dict[str, Any] | None:
        """What `keep` wrote; None without a file."""
        if not self.path.exists():
            return None
        kept: dict[str, Any] = torch.load(io.BytesIO(self.path.read_bytes()), weights_only=True)
        return kept

    def keep(self, weights: dict[str, torch.Tensor], rows: Rows, tokens: int, seconds: float) -> None:
        """Writes the weights, the rows recorded in training, the trained tokens and the seconds of training."""
        table = Record({}, rows.table()).to_parquet()
        content = io.BytesIO()
        kept = {"weights": weights, "rows": table, "tokens": tokens, "seconds": seconds, "key": self.key}
        torch.save(kept, content)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        files.write(self.path, content.getvalue())


def rows_of(content: bytes) -> list[dict[str, Any]]:
    """The rows that `keep` wrote."""
    rows: list[dict[str, Any]] = Record.from_parquet(content).rows.to_pylist()
    return rows
