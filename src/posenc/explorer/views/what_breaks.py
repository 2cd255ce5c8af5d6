"""Six bugs that libraries have shipped, each on the scores that it changes.

right  [i, j]  the scores as they should be; NaN where masked
wrong  [i, j]  the same scores with the bug

Fact `bug` says what goes wrong, how it is mended and where it was reported.
Legend: i query, j key.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import torch

from posenc.explorer.data import Data, run
from posenc.explorer.parameters import Parameters as Base
from posenc.explorer.say import say
from posenc.support.languages import Words

ORDER = 165
POSITION = "i"

SETUP = """import torch
import posenc

random = torch.Generator().manual_seed(0)
q, k = torch.randn(2, 1, 1, 40, 32, generator=random, dtype=torch.float64)
at = posenc.Positions.arange(1, 40)


def scores(q, k):
    return (q @ k.mT)[0, 0] / 32**0.5

"""
MASKED = """
later = torch.ones(40, 40, dtype=torch.bool).triu(1)
right, wrong = (one.masked_fill(later, float("nan")) for one in (right, wrong))
"""


@dataclass(frozen=True)
class Bug:
    what: Words
    mend: Words
    report: str
    python: str


BUGS = {
    "bf16_positions": Bug(
        say(
            "Positions are cast to bfloat16, which has 8 significant bits: from 1000 to 1039 it holds only multiples of 4, "
            "so that four neighbours get the same angle."
        ),
        say("Compute positions and angles in fp32 or fp64, and round only the result."),
        "https://github.com/EleutherAI/gpt-neox/issues/1003",
        """rope = posenc.create("rope", d_head=32)
positions = torch.arange(1000, 1040)[None]
cast = posenc.Positions.at(positions.bfloat16().double())
at = posenc.Positions.at(positions)
right = scores(rope.rotate(q, at, "query"), rope.rotate(k, at, "key"))
wrong = scores(rope.rotate(q, cast, "query"), rope.rotate(k, cast, "key"))
""",
    ),
    "layout": Bug(
        say("The weights were trained with neighbouring channels as pairs; the code pairs channel c with channel c + d/2."),
        say("Permute the rows of the query and key weights once (posenc convert), or use the layout of the training."),
        "https://github.com/huggingface/transformers/issues/39687",
        """trained = posenc.create("rope", d_head=32, layout="interleaved")
code = posenc.create("rope", d_head=32, layout="half")
right = scores(trained.rotate(q, at, "query"), trained.rotate(k, at, "key"))
wrong = scores(code.rotate(q, at, "query"), code.rotate(k, at, "key"))
""",
    ),
    "left_padding": Bug(
        say(
            "Ten padding tokens stand before the text, and the positions are counted from the first of them: every word "
            "gets the row of a position ten further on."
        ),
        say("Count positions from the first token that is not padding."),
        "https://github.com/huggingface/transformers/issues/22161",
        """padding = 10
table = posenc.sinusoidal_table(40, 32, dtype=torch.float64)
right, wrong = torch.full((2, 40, 40), float("nan"), dtype=torch.float64)
text, counted, late = slice(padding, None), table[: 40 - padding], table[padding:]
right[text, text] = scores(q[:, :, text] + counted, k[:, :, text] + counted)
wrong[text, text] = scores(q[:, :, text] + late, k[:, :, text] + late)
""",
    ),
    "t5_buckets": Bug(
        say(
            "The distance is one too large, so that every bucket of T5 begins one position too early "
            "and bucket 0 is never used."
        ),
        say("The distance of a token to itself is 0 and belongs to bucket 0."),
        "https://github.com/lucidrains/x-transformers/pull/10",
        """t5 = posenc.create("t5", n_heads=1, n_buckets=8, max_distance=40).double()
t5 = posenc.laws.draw_parameters(t5, seed=0).requires_grad_(False)
distance = torch.arange(40)[:, None] - torch.arange(40)
right = t5.at_distance(distance.flatten()).view(40, 40)
wrong = t5.at_distance(distance.flatten() + 1).view(40, 40)
""",
    ),
    "packed_documents": Bug(
        say(
            "Two documents share one row. The positions run on from the first into the second, and the second "
            "attends to the first."
        ),
        say("Start the positions of each document at 0, and mask the other documents: one of the two is not enough."),
        "https://github.com/pytorch/torchtitan/issues/2559",
        """lengths = torch.tensor([18, 22])
table = posenc.sinusoidal_table(40, 32, dtype=torch.float64)
restarted = torch.cat([table[:length] for length in lengths])
document = torch.arange(2).repeat_interleave(lengths)
right = scores(q + restarted, k + restarted).masked_fill(document[:, None] != document, float("nan"))
wrong = scores(q + table, k + table)
""",
    ),
    "stale_cache": Bug(
        say(
            "Dynamic NTK raises the base when the text grows past 24 positions. The first 24 keys stay in the cache as "
            "they were rotated with the old base."
        ),
        say("Choose one base for a request, or rotate the cached keys again."),
        "https://github.com/huggingface/transformers/issues/25104",
        """old, new = (posenc.create("rope", d_head=32, base=base) for base in (10000.0, 10000.0 * 4 ** (32 / 30)))
keys = new.rotate(k, at, "key")
stale = torch.cat([old.rotate(k, at, "key")[:, :, :24], keys[:, :, 24:]], dim=2)
right = scores(new.rotate(q, at, "query"), keys)
wrong = scores(new.rotate(q, at, "query"), stale)
""",
    ),
}

if TYPE_CHECKING:
    Name = str
else:
    Name = Literal[tuple(BUGS)]


class Parameters(Base):
    bug: Name = "bf16_positions"


EXPORTED = tuple(Parameters(bug=name) for name in BUGS)


def data(asked: Parameters) -> Data:
    bug = BUGS[asked.bug]
    python = SETUP + bug.python + MASKED.rstrip() + "\n"
    made = run(python)
    right, wrong = made["right"], made["wrong"]
    seen = ~wrong.isnan()
    apart = (right.nan_to_num() - wrong)[seen].abs()
    facts = {
        "what": bug.what.as_dict(),
        "mend": bug.mend.as_dict(),
        "report": bug.report,
        "largest": float(apart.max()),
        "changed": float((apart > 1e-9).double().mean()),
        "limit": float(torch.stack([right, wrong]).nan_to_num().abs().max()),
    }
    return Data({"right": right, "wrong": wrong}, python, facts)
