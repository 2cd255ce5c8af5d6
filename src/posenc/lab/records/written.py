"""What posenc lab writes as JSON, and what is therefore expected where it is read again.

    experiment.json      Manifest       the last sweep
    measurements/*.json  Cost, Properties
    trials/*.parquet     About          the description in a record

More names than these may stand there. `posenc.support.strict_json` reads the files first: each name once, finite
numbers.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any, NotRequired

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, Strict, Tag, ValidationError
from typing_extensions import TypedDict

from posenc.lab.experiment import Experiment
from posenc.lab.experiment.error_line import line
from posenc.support import strict_json

Key = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


def _split(command: str) -> str:
    shlex.split(command)
    return command


Command = Annotated[str, AfterValidator(_split)]
Option = Annotated[tuple[str, float], Strict(False)]  # JSON has lists


class Written(BaseModel):
    """No number is text, and no text a number."""

    model_config = ConfigDict(extra="allow", strict=True)


class Text(TypedDict):
    source: str
    sha256: str


class Chosen(TypedDict):
    task: str
    encoding: str
    learning_rate: float
    options: NotRequired[list[Option]]


class Manifest(Written):
    """The last sweep of a folder; `experiment` is checked by `Experiment`."""

    format: int
    experiment: dict[str, Any]
    keys: list[Key]
    tuning: list[Key]
    chosen: list[Chosen]
    failures: dict[str, str]
    text: Text | None
    command: Command
    cost: Key | None = None
    properties: Key | None = None
    context: Key | None = None


class Spread(TypedDict):
    median: float
    low: float
    high: float


class Times(TypedDict):
    prefill: Spread
    decode: Spread
    training: Spread


class Trained(TypedDict):
    batch: int
    length: int
    d_model: int
    n_layers: int


class Sizes(TypedDict):
    d_model: int
    n_heads: int
    prompt: int
    training: Trained


class Cost(Written):
    """The time of each encoding over that of none."""

    rounds: int
    sizes: Sizes
    ratios: dict[str, Times]


class Failed(TypedDict):
    failed: str


class Order(TypedDict):
    bidirectional: float | None
    causal: float | None


class Measured(TypedDict):
    order: Order
    reordered: float
    shift: float
    decode: float
    parameters: int
    table_bytes_per_token: float
    largest_position: float | None
    from_zero: bool
    sites: list[str]


def _kind(row: Any) -> str:
    return "failed" if isinstance(row, dict) and "failed" in row else "measured"


class Properties(Written):
    """What holds of each encoding without training."""

    order_without: Order
    rows: dict[
        str, Annotated[Annotated[Failed, Tag("failed")] | Annotated[Measured, Tag("measured")], Discriminator(_kind)]
    ]


class Seconds(TypedDict):
    training: float
    scoring: float


class About(Written):
    """The description in a record."""

    key: Key
    text: str
    numerics: int
    trial: dict[str, Any]
    provenance: dict[str, str]
    machine: dict[str, Any]
    seconds: Seconds
    failed: str | None
    finished: str
    cannot: dict[str, str]
    chance: dict[str, float]
    trained_tokens: int
    parameters: int
    encoding_parameters: int


class Context(Written):
    """What a match model reaches on the text, by length."""

    bits: dict[str, float]


MEASUREMENTS: dict[str, type[Written]] = {"cost": Cost, "properties": Properties, "context": Context}


def expect(kind: type[Written], data: Any) -> None:
    """Raises ValueError, one line with the place, for what is not as it was written."""
    try:
        kind.model_validate(data)
    except ValidationError as error:
        raise ValueError(line(error, kind)) from None


def read_manifest(path: Path) -> dict[str, Any]:
    """The last sweep. Raises ValueError, one line that names the file, for a damaged one, or that of another version."""
    manifest: dict[str, Any] = strict_json.read(path)
    try:
        expect(Manifest, manifest)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    try:
        experiment = Experiment.model_validate(manifest["experiment"])
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"{path}: this posenc cannot read the experiment in it: {line(error, Experiment)}; "
            "continue with the version that wrote it, or choose another folder"
        ) from None
    return manifest | {"experiment": experiment.model_dump(mode="json")}
