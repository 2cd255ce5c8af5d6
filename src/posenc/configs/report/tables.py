"""The structure of a learned table: similarity of rows by distance, whether only distance matters, untrained rows.

Legend: p positions, d channels, S[a, b] = cos of the angle between rows a and b.
"""

from __future__ import annotations

from os import PathLike
from typing import Any

import torch
from torch import Tensor

from posenc.configs import PositionSpec
from posenc.configs.checkpoint import Checkpoint
from posenc.configs.weights import find

LAGS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
DEAD = 0.05  # of the median norm
MOST = 4096  # rows compared with each other


def measured(spec: PositionSpec, checkpoint: str | PathLike[str]) -> list[dict[str, Any]]:
    """The structure of every two-dimensional positional weight of the spec, in the order of its layers."""
    state = Checkpoint(checkpoint)
    rows = []
    for path, part in spec.walk():
        seen = set()
        for number, layer in enumerate(part.layers):
            for use in layer.uses:
                for weight in use.weights:
                    key = weight.key.format(layer=number)
                    if key in seen:
                        continue
                    seen.add(key)
                    table = find(state, key, part.part.removesuffix("_config"))
                    table = table.T if weight.transpose else table
                    if table.ndim == 2 and min(table.shape) > 1:
                        offset = int(dict(use.arguments).get("row_offset", 0)) if use.name == "Learned" else 0
                        about = {
                            "part": path,
                            "layer": number,
                            "encoding": use.name,
                            "weight": key,
                            "shape": list(table.shape),
                        }
                        rows.append(about | structure(table[offset:]))
    return rows


def structure(table: Tensor) -> dict[str, Any]:
    """Figures of one table of rows [p, d].

    similarity     distance -> mean cosine of rows at that distance
    by_distance    share of the variance of S[a, b], a ≠ b, that |a - b| alone explains: 1 for a purely relative table
    offset_symmetry  mean of |S[p, p+k] - S[p, p-k]| over positions and the distances above: 0 if a row is equally similar
    to the
                   k-th row after and before it
    dead_rows      rows with a norm below a twentieth of the median: hardly trained, or padding
    norms          smallest, median, largest
    """
    rows = table.detach().double()
    norms = rows.norm(dim=1)
    median = float(norms.median())
    alive = norms >= DEAD * median
    kept = rows[alive][:MOST]
    unit = kept / kept.norm(dim=1, keepdim=True).clamp(min=1e-30)
    similarity = unit @ unit.T
    count = len(kept)
    means = torch.stack([similarity.diagonal(k).mean() for k in range(1, count)]) if count > 1 else torch.zeros(0)
    lag = (torch.arange(count)[:, None] - torch.arange(count)).abs()
    off = lag > 0
    explained = 0.0
    if count > 2:
        predicted = means[(lag - 1).clamp(min=0)]
        total = float(similarity[off].var(unbiased=False))
        explained = 1 - float((similarity - predicted)[off].pow(2).mean()) / total if total > 0 else 1.0
    uneven = [(similarity.diagonal(k)[k:] - similarity.diagonal(k)[:-k]).abs().mean() for k in LAGS if 2 * k < count]
    return {
        "rows": len(table),
        "similarity": {str(k): float(means[k - 1]) for k in LAGS if k < count},
        "by_distance": explained,
        "offset_symmetry": float(torch.stack(uneven).mean()) if uneven else 0.0,
        "dead_rows": (~alive).nonzero().flatten().tolist(),
        "norms": [float(norms.min()), median, float(norms.max())],
    }
