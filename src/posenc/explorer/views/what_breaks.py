"""Seven bugs that libraries have shipped, each on the attention of one head that reads the same word everywhere.

right, wrong              [i, j]  attention weights as they should be, and with the bug; NaN where masked
right_hands, wrong_hands  [n]     angles of clock hands that show the cause, in radians; NaN: none there

The head is made for one task, such as looking three words back, so that the right map is one bright line. Facts say what
goes wrong, how it is mended, where it was reported and which law of `posenc check` catches it.
Legend: i query, j key, n tokens, channels or distances.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from posenc.explorer.data import Data, run
from posenc.explorer.parameters import Parameters as Base
from posenc.explorer.say import say
from posenc.support.data_files import beside
from posenc.support.languages import Words

ORDER = 180
POSITION = "i"

SETUP = """import torch
import posenc

index = torch.arange(40)
earlier = torch.ones(40, 40, dtype=torch.bool).tril()


def attention(q, k, sees=earlier, sharpness=1.0):
    logits = ((q @ k.mT) if q.ndim == 2 else (q @ k.mT)[0, 0]) * sharpness
    weights = logits.masked_fill(~(sees & earlier), -torch.inf).softmax(-1)
    return weights.masked_fill(~(sees & earlier), float("nan"))

"""
# What the code of a bug begins with: the rotation of RoPE, or a learned table.
BEGINNINGS = {
    "": "\n",
    "rotary": """
rope = posenc.create("rope", d_head=32, layout="half")
omega = torch.tensor(list(posenc.frequencies.rotary(32, 10000.0)), dtype=torch.float64)
word = torch.ones(1, 1, 40, 32, dtype=torch.float64)  # the same word everywhere


def turned(x, positions, side="key", by=rope):
    return by.rotate(x, posenc.Positions.at(positions.expand(1, 40)), side)


back = turned(word, torch.tensor(-3), "query")  # a query that meets the key three words back
""",
    "table": """
table = torch.randn(40, 32, generator=torch.Generator().manual_seed(0), dtype=torch.float64) / 2  # a row for each position
first = table[:1].expand(40, 32)  # a query that meets the key at position 0
""",
}


@dataclass(frozen=True)
class Bug:
    """A table of what_breaks.toml, which says what its columns are."""

    head: Words
    hands: Words
    what: Words
    mend: Words
    report: str
    kind: str
    law: str
    python: str
    begins: str = ""


BUGS = {name: Bug(**row) for name, row in beside(__file__, say).items()}

if TYPE_CHECKING:
    Name = str
else:
    Name = Literal[tuple(BUGS)]


class Parameters(Base):
    bug: Name = "bf16_positions"


EXPORTED = tuple(Parameters(bug=name) for name in BUGS)
ARRAYS = ("right", "wrong", "right_hands", "wrong_hands")


def data(params: Parameters) -> Data:
    bug = BUGS[params.bug]
    python = (SETUP + BEGINNINGS[bug.begins] + bug.python).rstrip() + "\n"
    variables = run(python)
    right, wrong = variables["right"].nan_to_num(), variables["wrong"].nan_to_num()
    seen = ~variables["wrong"].isnan()
    apart = (right - wrong)[seen].abs()
    facts = {
        **{name: getattr(bug, name).as_dict() for name in ("head", "hands", "what", "mend")},
        "report": bug.report,
        "law": bug.law,
        "largest": float(apart.max()),
        "moved": float(((right - wrong).abs().sum(-1) / 2)[seen.any(-1)].mean()),  # of each row's attention
    }
    return Data({name: variables[name] for name in ARRAYS}, python, facts)
