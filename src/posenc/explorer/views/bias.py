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

ORDER = 140
POSITION = "i"

D_HEAD = 64


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


EXPORTED = (
    Parameters(),
    *(Parameters(n_heads=n_heads) for n_heads in (1, 4, 6, 12, 16, 32)),
    Parameters(length=512),
    Parameters(causal=False),
    Parameters(method="t5"),
    Parameters(method="t5", length=256),
    Parameters(method="t5", causal=False, bidirectional=True),
    Parameters(method="t5", n_buckets=8, max_distance=32),
    Parameters(method="shaw"),
    Parameters(method="shaw", causal=False),
    Parameters(method="shaw", k=4),
)
Found = tuple[str, dict[str, Any]]  # lines of the program, facts


@torch.no_grad()
def data(params: Parameters) -> Data:
    """The data. The fact `starts` holds the first distance of every bucket or row; beyond the last the bias is constant."""
    start = 0 if params.causal else 1 - params.length
    lines, facts = {"alibi": _alibi, "t5": _t5, "shaw": _shaw}.get(params.method, _other)(params)
    python = f"""import torch
import posenc

distance = torch.arange({start}, {params.length})  # i - j, the query's position minus the key's
{lines}
weight = (bias - bias.amax(dim=1, keepdim=True)).exp()"""
    slopes = ("slopes", "horizon") if params.method == "alibi" else ()
    return computed(python, ("distance", "index", "bias", "weight", *slopes), {"method": params.method, **facts})


def _alibi(params: Parameters) -> Found:
    lines = f"""slopes = torch.tensor(posenc.alibi_slopes({params.n_heads}), dtype=torch.float64)
index = distance.abs()
bias = posenc.create("alibi", n_heads={params.n_heads}).at_distance(distance)  # -slope * |i - j|
horizon = torch.tensor(100).double().log() / slopes  # where exp(bias) is 1 %"""
    return lines, {}


def _other(params: Parameters) -> Found:
    """Any other bias that depends only on the distance, with its default options."""
    sizes = {"n_heads": params.n_heads, **directed(params.method, params.causal)}
    arguments = ", ".join(f"{name}={value}" for name, value in sizes.items())
    lines = f"""encoding = posenc.create("{params.method}", {arguments})
encoding = posenc.laws.draw_parameters(encoding.double(), seed={params.seed})  # random: nothing is trained here
index = distance.abs()
bias = encoding.at_distance(distance).detach()"""
    return lines, {"formula": BY_NAME[params.method].formula}


def _t5(params: Parameters) -> Found:
    options = {name: getattr(params, name) for name in ("n_buckets", "max_distance", "bidirectional")}
    buckets = T5(params.n_heads, **options).buckets
    arguments = ", ".join(f"{name}={value}" for name, value in options.items())
    lines = f"""t5 = posenc.create("t5", n_heads={params.n_heads}, {arguments})
t5 = posenc.laws.draw_parameters(t5.double(), seed={params.seed})  # random: nothing is trained here
index = t5.bucket(distance)
bias = t5.at_distance(distance).detach()  # t5.table[index].T"""
    return lines, {"starts": [*range(buckets.exact + 1), *buckets.starts]}


def _shaw(params: Parameters) -> Found:
    """The bias for one query per head; it depends on that query."""
    lines = f"""shaw = posenc.create("shaw", d_head={D_HEAD}, max_distance={params.k})
shaw = posenc.laws.draw_parameters(shaw.double(), seed={params.seed})  # random: nothing is trained here
q = torch.randn({params.n_heads}, {D_HEAD}, generator=torch.Generator().manual_seed({params.seed}), dtype=torch.float64)
index = (-distance).clamp(-{params.k}, {params.k})  # c = clip(j - i, -k, k)
bias = q @ shaw.keys.detach()[index + {params.k}].T / {D_HEAD}**0.5"""
    return lines, {"starts": list(range(params.k + 1))}
