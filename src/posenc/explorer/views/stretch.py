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

ORDER = 5
MODELS = ("alibi", "rope", "yarn")
TRAINED, LONGEST = 128, 1024  # bytes
NEAR = 32  # bytes that the drawn loss is the mean of


class Parameters(Base):
    prompt: str = Field(
        default=stretch.PROMPTS["zh"], max_length=200, json_schema_extra={"in_english": stretch.PROMPTS["en"]}
    )
    length: int = Field(default=TRAINED, ge=TRAINED, le=LONGEST, multiple_of=TRAINED)


EXPORTED = tuple(
    Parameters(prompt=prompt, length=times * TRAINED) for prompt in stretch.PROMPTS.values() for times in (1, 2, 4, 8)
)


def data(params: Parameters) -> Data:
    python = program(params)
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


def program(params: Parameters) -> str:
    """The program that the page shows."""
    factor = params.length / TRAINED
    trained = TRAINED - stretch.WRITTEN  # bytes that are read at the trained length
    count = min(len(params.prompt.encode()) or NEAR, trained - 1)
    return f"""import posenc
import torch
from posenc.explorer import stretch  # python -m posenc.explorer.train_stretch trains the two models

text = {params.prompt!r}
prompt, at_1x = stretch.prompt(text, {params.length - stretch.WRITTEN}), stretch.prompt(text, {trained})  # bytes
alibi, rope, yarn = stretch.load("alibi"), stretch.load("rope"), stretch.load("rope")
scaled = posenc.create("yarn", d_head=32, factor={factor!r}, trained_length={TRAINED}, layout="interleaved")  # as trained
posenc.replace_encoding(yarn, scaled)

reads = [model.read(prompt) for model in (alibi, rope, yarn)]
bits = torch.stack([read.bits for read in reads])  # of every byte of the prompt but the first
loss = bits.unfold(-1, {NEAR}, 1).mean(-1)  # loss[m, n]: the mean up to the byte at position n + {NEAR}
written = torch.tensor([list(read.written) for read in reads])  # the {stretch.WRITTEN} bytes after the prompt
words = bits[:, -{count}:].mean(-1)  # of the text's bytes, as far as 1× holds them
added = words - torch.stack([model.bits(at_1x)[-{count}:].mean() for model in (alibi, rope, rope)])  # YaRN is RoPE at 1×"""
