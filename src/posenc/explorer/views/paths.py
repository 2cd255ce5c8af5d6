"""The rows of an encoding as a path in a plane, their similarity, and how both change during training."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from posenc.encodings.sinusoidal import sinusoidal_table
from posenc.explorer import trained
from posenc.explorer.data import Data
from posenc.explorer.parameters import Parameters as Base

ORDER = 100

Encoding = Literal["sinusoidal", "learned", "floater"]
STEP = 0.01  # of FLOATER's time, from one position to the next
BEYOND = 2  # FLOATER's path is drawn up to this multiple of the trained length


class Parameters(Base):
    encoding: Encoding = "sinusoidal"
    length: int = Field(default=64, ge=3, le=200)
    d_model: int = Field(default=48, ge=2, le=512)
    base: float = Field(default=10000.0, ge=1.01, le=1e12)


EXPORTED = (Parameters(), Parameters(encoding="learned"), Parameters(encoding="floater"), Parameters(base=100.0))


def data(asked: Parameters) -> Data:
    tables = _tables(asked)
    rows = tables[:, : trained.LENGTH] if asked.encoding != "sinusoidal" else tables
    unit = F.normalize(rows, dim=-1)
    similarity = unit @ unit.mT
    middle = rows.mean(1, keepdim=True)
    plane = torch.linalg.svd((rows - middle)[-1], full_matrices=False).Vh[:2]
    paths = (tables - middle) @ plane.T
    shown = ((rows - middle) @ plane.T).square().sum((1, 2)) / (rows - middle).square().sum((1, 2))
    half = similarity.shape[1] // 2
    near = similarity.diagonal(1, 1, 2).mean(1)
    far = torch.cat([similarity.diagonal(apart, 1, 2) for apart in range(half, len(similarity[0]))], 1).mean(1)
    norm, moved = rows.norm(dim=-1), tables.diff(dim=1).norm(dim=-1)
    arrays = {
        "similarity": similarity,
        "norm": norm,
        "paths": paths,
        "shown": shown,
        "near": near,
        "far": far,
        "moved": moved,
    }
    if asked.encoding == "sinusoidal":
        return Data(arrays, _python(asked), {"trained": None})
    return Data(arrays | _watched(asked.encoding), _python(asked), _facts())


def _tables(asked: Parameters) -> Tensor:
    """The rows, [snapshot, position, channel]. Those of FLOATER (first layer) continue beyond the trained length."""
    if asked.encoding == "sinusoidal":
        return sinusoidal_table(asked.length, asked.d_model, asked.base, dtype=torch.float64)[None]
    if asked.encoding == "learned":
        return trained.learned()
    try:
        return _solved()
    except ModuleNotFoundError as error:
        raise ValueError(str(error)) from error


@cache
@torch.no_grad()
def _solved() -> Tensor:
    positions = torch.arange(BEYOND * trained.LENGTH)
    return torch.stack([trained.floater(n).path(positions, torch.float64)[:, 0] for n in range(len(trained.STEPS))])


def _watched(encoding: str) -> dict[str, Any]:
    by_distance, first = trained.even()
    recorded = {name: trained.record()[f"{encoding}.{name}"] for name in ("attention", "first", "bits")}
    return {**recorded, "even": by_distance, "even_first": torch.tensor([first], dtype=torch.float64)}


def _facts() -> dict[str, Any]:
    return {"trained": trained.LENGTH, "steps": trained.STEPS, "from": trained.FROM, "step": STEP, **trained.about()}


def _python(asked: Parameters) -> str:
    if asked.encoding == "sinusoidal":
        sizes = f"{asked.length}, {asked.d_model}, {asked.base!r}"
        made = f"tables = posenc.sinusoidal_table({sizes}, dtype=torch.float64)[None]"
    elif asked.encoding == "learned":
        made = "tables = trained.learned()  # snapshot, position, channel"
    else:
        made = f"""with torch.no_grad():  # an ODE solved at every snapshot; the first layer's path
    times = torch.arange({BEYOND * trained.LENGTH})
    tables = torch.stack([trained.floater(n).path(times, torch.float64)[:, 0] for n in range({len(trained.STEPS)})])"""
    watched = (
        ""
        if asked.encoding == "sinusoidal"
        else f"""
record = trained.record()
attention, first, bits = (record["{asked.encoding}." + name] for name in ("attention", "first", "bits"))
even, even_first = trained.even()"""
    )
    rows = f"tables[:, :{trained.LENGTH}]" if asked.encoding == "floater" else "tables"
    return f"""import torch
import posenc
from posenc.explorer import trained

{made}
rows = {rows}
unit = torch.nn.functional.normalize(rows, dim=-1)
similarity = unit @ unit.mT
middle = rows.mean(1, keepdim=True)
plane = torch.linalg.svd((rows - middle)[-1], full_matrices=False).Vh[:2]
paths = (tables - middle) @ plane.T
shown = ((rows - middle) @ plane.T).square().sum((1, 2)) / (rows - middle).square().sum((1, 2))
norm, moved = rows.norm(dim=-1), tables.diff(dim=1).norm(dim=-1)

half = similarity.shape[1] // 2
near = similarity.diagonal(1, 1, 2).mean(1)  # neighbours; below: half a table apart or more
far = torch.cat([similarity.diagonal(apart, 1, 2) for apart in range(half, len(similarity[0]))], 1).mean(1){watched}"""
