"""Bias by distance for each head, and the weight that remains after it.

distance      [n]     i - j, the query's position minus the key's
index         [n]     table index of the bias: |i - j|, the bucket, or c = clip(j - i, -k, k)
bias, weight  [h, n]  e^bias, relative to the largest
slopes, horizon  [h]  of ALiBi; a head's horizon is where 1 % of the weight is left

Legend: h heads, n distances.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from pydantic import Field

from posenc.catalogue.entry import Entry
from posenc.catalogue.lookup import BY_NAME, directed
from posenc.encoding import DistanceBias
from posenc.encodings.shaw import Shaw
from posenc.encodings.t5 import T5
from posenc.explorer.data import Data, computed
from posenc.explorer.parameters import Parameters as Base
from posenc.explorer.parameters import encodings
from posenc.explorer.template import program

ORDER = 140
POSITION = "i"


def _shown(entry: Entry) -> bool:
    """True for biases that depend only on the distance, and for Shaw, whose bias also depends on the query."""
    return issubclass(entry.load(), (DistanceBias, Shaw))


if TYPE_CHECKING:
    Method = str
else:
    Method = encodings(_shown)


class Parameters(Base):
    method: Method = "alibi"
    n_heads: int = Field(default=8, ge=1, le=32)
    length: int = Field(default=64, ge=2, le=1024)
    causal: bool = True
    n_buckets: int = Field(default=32, ge=4, le=128)
    max_distance: int = Field(default=128, ge=2, le=1024)
    bidirectional: bool = False
    k: int = Field(default=16, ge=0, le=128)
    seed: int = Field(default=0, ge=0, le=999)


OF_ITS_OWN = ("alibi", "t5", "shaw")  # others have their default options


@torch.no_grad()
def data(params: Parameters) -> Data:
    """The data. The fact `starts` holds the first distance of every bucket or row; beyond the last the bias is constant."""
    method = params.method
    start = 0 if params.causal else 1 - params.length
    sizes = {"n_heads": params.n_heads, **directed(method, params.causal)}
    options = ", ".join(f"{name}={value}" for name, value in sizes.items())
    part = method if method in OF_ITS_OWN else "other"
    python = program(__file__, part, start=start, options=options, **params.model_dump())
    slopes = ("slopes", "horizon") if method == "alibi" else ()
    return computed(python, ("distance", "index", "bias", "weight", *slopes), {"method": method, **_facts(params)})


def _facts(params: Parameters) -> dict[str, Any]:
    if params.method == "alibi":
        return {}
    if params.method == "shaw":
        return {"starts": list(range(params.k + 1))}
    if params.method != "t5":
        return {"formula": BY_NAME[params.method].formula}
    options = {name: getattr(params, name) for name in ("n_buckets", "max_distance", "bidirectional")}
    buckets = T5(params.n_heads, **options).buckets
    return {"starts": [*range(buckets.exact + 1), *buckets.starts]}
