"""Bias by distance for each head, and the weight that remains after it.

distance      [n]     i - j, the query's position minus the key's
index         [n]     table index of the bias: |i - j|, the bucket, or c = clip(j - i, -k, k)
bias, weight  [h, n]  e^bias, relative to the largest
slopes, horizon  [h]  of ALiBi; a head's horizon is where 1 % of the weight is left

Legend: h heads, n distances.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from pydantic import Field
from torch import Tensor

from posenc import laws
from posenc.catalogue import BY_NAME, create, directed
from posenc.encoding import DistanceBias
from posenc.encodings.alibi import ALiBi
from posenc.encodings.shaw import Shaw
from posenc.encodings.t5 import T5
from posenc.entry import Entry
from posenc.explorer.data import Data
from posenc.explorer.parameters import Parameters as Base
from posenc.explorer.parameters import encodings
from posenc.positions import Positions

ORDER = 110

D_HEAD = 64
LEFT = 0.01


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
Found = tuple[dict[str, Tensor], str, dict[str, object]]


@torch.no_grad()
def data(asked: Parameters) -> Data:
    """The data. The fact `starts` holds the first distance of every bucket or row; beyond the last the bias is constant."""
    start = 0 if asked.causal else 1 - asked.length
    distance = torch.arange(start, asked.length)
    arrays, lines, facts = {"alibi": _alibi, "t5": _t5, "shaw": _shaw}.get(asked.method, _other)(asked, distance)
    bias = arrays["bias"]
    python = f"""import torch
import posenc

distance = torch.arange({start}, {asked.length})  # i - j, the query's position minus the key's
{lines}
weight = (bias - bias.amax(dim=1, keepdim=True)).exp()"""
    weight = (bias - bias.amax(dim=1, keepdim=True)).exp()
    return Data({"distance": distance, **arrays, "weight": weight}, python, {"method": asked.method, **facts})


def _alibi(asked: Parameters, distance: Tensor) -> Found:
    alibi = ALiBi(asked.n_heads)
    slopes = torch.tensor(alibi.slopes, dtype=torch.float64)
    arrays = {
        "index": distance.abs(),
        "bias": alibi.at_distance(distance),
        "slopes": slopes,
        "horizon": -math.log(LEFT) / slopes,
    }
    lines = f"""slopes = torch.tensor(posenc.alibi_slopes({asked.n_heads}), dtype=torch.float64)
index = distance.abs()
bias = posenc.create("alibi", n_heads={asked.n_heads}).at_distance(distance)  # -slope * |i - j|
horizon = torch.tensor(100).double().log() / slopes  # where exp(bias) is 1 %"""
    return arrays, lines, {}


def _other(asked: Parameters, distance: Tensor) -> Found:
    """Any other bias that depends only on the distance, with its default options."""
    sizes = {"n_heads": asked.n_heads, **directed(asked.method, asked.causal)}
    encoding = laws.draw_parameters(create(asked.method, **sizes).double(), asked.seed)
    assert isinstance(encoding, DistanceBias)
    said = ", ".join(f"{name}={value}" for name, value in sizes.items())
    lines = f"""encoding = posenc.create("{asked.method}", {said})
encoding = posenc.laws.draw_parameters(encoding.double(), seed={asked.seed})  # random: nothing is trained here
index = distance.abs()
bias = encoding.at_distance(distance).detach()"""
    formula = BY_NAME[asked.method].formula
    return {"index": distance.abs(), "bias": encoding.at_distance(distance)}, lines, {"formula": formula}


def _t5(asked: Parameters, distance: Tensor) -> Found:
    options = {name: getattr(asked, name) for name in ("n_buckets", "max_distance", "bidirectional")}
    t5 = laws.draw_parameters(T5(asked.n_heads, **options).double(), asked.seed)
    assert isinstance(t5, T5)
    said = ", ".join(f"{name}={value}" for name, value in options.items())
    lines = f"""t5 = posenc.create("t5", n_heads={asked.n_heads}, {said})
t5 = posenc.laws.draw_parameters(t5.double(), seed={asked.seed})  # random: nothing is trained here
index = t5.bucket(distance)
bias = t5.at_distance(distance).detach()  # t5.table[index].T"""
    starts = [*range(t5.buckets.exact + 1), *t5.buckets.starts]
    return {"index": t5.bucket(distance), "bias": t5.at_distance(distance)}, lines, {"starts": starts}


def _shaw(asked: Parameters, distance: Tensor) -> Found:
    """The bias for one query per head, at position 0, and a key at every distance; it depends on that query."""
    shaw = laws.draw_parameters(Shaw(D_HEAD, max_distance=asked.k).double(), asked.seed)
    assert isinstance(shaw, Shaw)
    q = torch.randn(asked.n_heads, D_HEAD, generator=torch.Generator().manual_seed(asked.seed), dtype=torch.float64)
    q = q[None, :, None]
    here, there = torch.zeros(1, 1, dtype=torch.long), -distance[None]
    of_pair = shaw.bias(q, q.expand(-1, -1, there.shape[1], -1), Positions.at(here), Positions.at(there))
    bias = of_pair(here[0], torch.arange(asked.n_heads)[:, None], here[0], torch.arange(len(distance)))
    lines = f"""shaw = posenc.create("shaw", d_head={D_HEAD}, max_distance={asked.k})
shaw = posenc.laws.draw_parameters(shaw.double(), seed={asked.seed})  # random: nothing is trained here
q = torch.randn({asked.n_heads}, {D_HEAD}, generator=torch.Generator().manual_seed({asked.seed}), dtype=torch.float64)
index = (-distance).clamp(-{asked.k}, {asked.k})  # c = clip(j - i, -k, k)
bias = q @ shaw.keys.detach()[index + {asked.k}].T / {D_HEAD}**0.5"""
    return {"index": shaw.row(here, there)[0] - asked.k, "bias": bias}, lines, {"starts": list(range(asked.k + 1))}
