"""Scores by distance: products of sinusoidal rows, RoPE's score and its bound, and random vectors.

All curves are functions of the lag k. `vectors` are a query and a key that the page rotates to any two positions:

    sinusoidal   1 0 1 0 …: rotated by p·ω they are PE(p), cosine before sine
    rope         all ones
    random       the first row of each sample

Legend: k lags from −reach to reach, d channels, r rows of a sample.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from pydantic import Field

from posenc.explorer.data import Data, computed
from posenc.explorer.parameters import Parameters as Base
from posenc.pictures import measures

ORDER = 90
POSITION = "p"

ROWS = 256
CURVES = {"sinusoidal": ("similarity",), "rope": ("score", "bound"), "random": ("independent", "spread", "one", "equal")}


class Parameters(Base):
    kind: Literal["sinusoidal", "rope", "random"] = "sinusoidal"
    d: int = Field(default=128, ge=2, le=512, multiple_of=2)
    base: float = Field(default=10000.0, ge=1.01, le=1e12)
    reach: int = Field(default=64, ge=8, le=512)


EXPORTED = (
    *(Parameters(kind=kind) for kind in ("sinusoidal", "rope", "random")),
    *(Parameters(kind="sinusoidal", d=d) for d in (64, 256, 512)),
    *(Parameters(kind="rope", d=d) for d in (64, 256)),
    *(Parameters(kind=kind, base=base) for kind in ("sinusoidal", "rope") for base in (100.0, 1e6)),
    *(Parameters(kind=kind, reach=512) for kind in ("sinusoidal", "rope", "random")),
)


def data(params: Parameters) -> Data:
    curves = computed(_python(params), ("lags", "omega", "vectors", *CURVES[params.kind]))
    falling = [name for name in ("similarity", "score", "bound") if name in curves.arrays]
    rises = {name: measures.first_rise(curves.arrays[name][params.reach :]) for name in falling}
    return replace(curves, facts={"rises": rises, "rows": ROWS})


def _python(params: Parameters) -> str:
    sizes = f"{params.d}, lags, base={params.base!r}"
    lines = {
        "sinusoidal": f"similarity = measures.sinusoidal_similarity({sizes})  # PE(p)·PE(p+k), for every p\n"
        f"vectors = torch.tensor([1.0, 0.0]).repeat({params.d // 2}).expand(2, -1)  # turned by p·ω: PE(p)\n"
        "measures.first_rise(similarity[lags >= 0])",
        "rope": f"vectors = torch.ones(2, {params.d})  # a query and a key\n"
        f"score = measures.rope_score({sizes})\nbound = measures.rope_bound({sizes})\n"
        "measures.first_rise(score[lags >= 0]), measures.first_rise(bound[lags >= 0])",
        "random": f"random = torch.Generator().manual_seed(0)\n"
        f"q, k = (torch.randn({ROWS}, {params.d}, generator=random, dtype=torch.float64) for _ in range(2))\n"
        f"scores = measures.rope_score_of(q, k, lags, base={params.base!r})\n"
        "independent, spread, one = scores.mean(dim=0), scores.std(dim=0), scores[0]\n"
        f"equal = measures.rope_score_of(q, q, lags, base={params.base!r}).mean(dim=0)\n"
        "vectors = torch.stack([q[0], k[0]])",
    }[params.kind]
    return f"""import torch
import posenc
from posenc import measures

lags = torch.arange({-params.reach}, {params.reach + 1})
omega = torch.tensor(posenc.frequencies.rotary({params.d}, {params.base!r}), dtype=torch.float64)
{lines}"""
