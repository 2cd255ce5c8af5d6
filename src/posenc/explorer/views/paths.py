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


def data(params: Parameters) -> Data:
    tables = _tables(params)
    rows = tables[:, : trained.LENGTH] if params.encoding != "sinusoidal" else tables
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
    velocity = _velocities(tables) if params.encoding == "floater" else None
    arrays = {
        **({} if velocity is None else {"velocity": velocity @ plane.T, "speed": velocity.norm(dim=-1)}),
        "similarity": similarity,
        "norm": norm,
        "paths": paths,
        "shown": shown,
        "near": near,
        "far": far,
        "moved": moved,
    }
    if params.encoding == "sinusoidal":
        return Data(arrays, _python(params), {"trained": None})
    facts = {"trained": trained.LENGTH, "steps": trained.STEPS, "from": trained.FROM, "step": STEP, **trained.about()}
    return Data(arrays | _watched(params.encoding), _python(params), facts)


def _tables(params: Parameters) -> Tensor:
    """The rows, [snapshot, position, channel]. Those of FLOATER (first layer) continue beyond the trained length."""
    if params.encoding == "sinusoidal":
        return sinusoidal_table(params.length, params.d_model, params.base, dtype=torch.float64)[None]
    if params.encoding == "learned":
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


@torch.no_grad()
def _velocities(tables: Tensor) -> Tensor:
    """STEP·h(τ, x(τ)) at every position of every snapshot: where the path goes, for one position."""
    time = STEP * torch.arange(tables.shape[1], dtype=torch.float64)[:, None]
    models = [trained.floater(n).double() for n in range(len(tables))]
    inner = [model.inner(torch.cat([x, time], 1)).tanh() for model, x in zip(models, tables, strict=True)]
    return STEP * torch.stack([model.outer(torch.cat([h, time], 1)) for model, h in zip(models, inner, strict=True)])


def _watched(encoding: str) -> dict[str, Any]:
    by_distance, first = trained.even()
    recorded = {name: trained.record()[f"{encoding}.{name}"] for name in ("attention", "first", "bits")}
    return {**recorded, "even": by_distance, "even_first": torch.tensor([first], dtype=torch.float64)}


def _python(params: Parameters) -> str:
    if params.encoding == "sinusoidal":
        sizes = f"{params.length}, {params.d_model}, {params.base!r}"
        line = f"tables = posenc.sinusoidal_table({sizes}, dtype=torch.float64)[None]"
    elif params.encoding == "learned":
        line = "tables = trained.learned()  # snapshot, position, channel"
    else:
        line = f"""with torch.no_grad():  # an ODE solved at every snapshot; the first layer's path
    times = torch.arange({BEYOND * trained.LENGTH})
    tables = torch.stack([trained.floater(n).path(times, torch.float64)[:, 0] for n in range({len(trained.STEPS)})])"""
    watched = (
        ""
        if params.encoding == "sinusoidal"
        else f"""
record = trained.record()
attention, first, bits = (record["{params.encoding}." + name] for name in ("attention", "first", "bits"))
even, even_first = trained.even()"""
    )
    if params.encoding == "floater":
        watched += """

# where the path goes, for one position: step · h(τ, x(τ))
time = 0.01 * times.double()[:, None]
with torch.no_grad():
    models = [trained.floater(n).double() for n in range(len(tables))]
    inner = [model.inner(torch.cat([x, time], 1)).tanh() for model, x in zip(models, tables)]
    flow = 0.01 * torch.stack([model.outer(torch.cat([h, time], 1)) for model, h in zip(models, inner)])
velocity, speed = flow @ plane.T, flow.norm(dim=-1)"""
    rows = f"tables[:, :{trained.LENGTH}]" if params.encoding == "floater" else "tables"
    return f"""import torch
import posenc
from posenc.explorer import trained

{line}
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
