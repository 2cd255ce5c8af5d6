"""What two trained models write after texts of up to eight times the trained length: ALiBi, RoPE, and RoPE with YaRN.

A tale that the models have not read stands before the reader's words, as long as it takes.

    words    [m]   mean bits of the reader's words
    added    [m]   what the length adds to them: `words` less those of the same model and words at the trained length

Legend: m models, t bytes.
"""

from __future__ import annotations

from pydantic import Field

from posenc.explorer import stretch
from posenc.explorer.data import Data, run
from posenc.explorer.parameters import Parameters as Base
from posenc.explorer.template import program

ORDER = 5
MODELS = ("alibi", "rope", "yarn")
TRAINED, LONGEST = 128, 1024  # bytes
NEAR = 32  # bytes that the drawn loss is the mean of


class Parameters(Base):
    prompt: str = Field(
        default=stretch.PROMPTS["zh"], max_length=200, json_schema_extra={"in_english": stretch.PROMPTS["en"]}
    )
    length: int = Field(default=4 * TRAINED, ge=TRAINED, le=LONGEST, multiple_of=TRAINED)


def data(params: Parameters) -> Data:
    read, short = params.length - stretch.WRITTEN, TRAINED - stretch.WRITTEN  # bytes; at the trained length
    count = min(len(params.prompt.encode()) or NEAR, short - 1)
    factor = params.length / TRAINED
    python = program(__file__, text=repr(params.prompt), read=read, short=short, factor=factor, count=count)
    variables, about = run(python), stretch.about()
    facts = {
        "models": MODELS,
        "prompt": stretch.readable(variables["prompt"]),
        "texts": [stretch.readable(bytes(row)) for row in variables["written"].tolist()],
        "trained": TRAINED,
        "longest": LONGEST,
        "near": NEAR,
        "keys": {name: key[:16] for name, key in about["keys"].items()},
        **{name: about[name] for name in ("size", "seed", "training", "training_loss", "preset", "command", "date")},
    }
    return Data({name: variables[name] for name in ("bits", "loss", "written", "words", "added")}, python, facts)
