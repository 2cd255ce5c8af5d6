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
from posenc.support.languages import Words

ORDER = 165
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
ROTARY = """
rope = posenc.create("rope", d_head=32, layout="half")
omega = torch.tensor(list(posenc.frequencies.rotary(32, 10000.0)), dtype=torch.float64)
word = torch.ones(1, 1, 40, 32, dtype=torch.float64)  # the same word everywhere


def turned(x, positions, side="key", by=rope):
    return by.rotate(x, posenc.Positions.at(positions.expand(1, 40)), side)


back = turned(word, torch.tensor(-3), "query")  # a query that meets the key three words back
"""
TABLE = """
table = torch.randn(40, 32, generator=torch.Generator().manual_seed(0), dtype=torch.float64) / 2  # a row for each position
first = table[:1].expand(40, 32)  # a query that meets the key at position 0
"""
PAIR = 3  # whose hand is drawn: 10 degrees a position


@dataclass(frozen=True)
class Bug:
    """`kind` is a key of posenc.checking.bugs.BUGS; `law` the law that catches it, or what `posenc check` recognises."""

    head: Words
    hands: Words
    what: Words
    mend: Words
    report: str
    kind: str
    law: str
    python: str


BACK = say("This head looks three words back: one bright line.")
FIRST = say("This head looks at the first word of its text: one bright column.")
EACH_POSITION = say("the clock hand of each position, 10 degrees a step")

BUGS = {
    "bf16_positions": Bug(
        BACK,
        EACH_POSITION,
        say(
            "Positions are cast to bfloat16, which has 8 significant bits: from 512 to 1023 it holds only multiples of 4, "
            "so that the hand sticks for four words and then jumps."
        ),
        say("Compute positions and angles in fp32 or fp64, and round only the result."),
        "https://github.com/EleutherAI/gpt-neox/issues/1003",
        "low precision angles",
        "neighbours_stay_distinct",
        ROTARY
        + f"""positions = index + 900
cast = positions.bfloat16().double()
right = attention(turned(back, positions, "query"), turned(word, positions))
wrong = attention(turned(back, cast, "query"), turned(word, cast))
right_hands, wrong_hands = positions * omega[{PAIR}], cast * omega[{PAIR}]
""",
    ),
    "layout": Bug(
        BACK,
        say("the clock hand of each channel at position 3"),
        say("The weights were trained with neighbouring channels as pairs; the code pairs channel c with channel c + d/2."),
        say("Permute the rows of the query and key weights once (posenc convert), or use the layout of the training."),
        "https://github.com/huggingface/transformers/issues/39687",
        "layout",
        "identify: layout",
        ROTARY
        + """trained = posenc.create("rope", d_head=32, layout="interleaved")
q = turned(word, torch.tensor(-3), "query", trained)
right = attention(turned(q, index, "query", trained), turned(word, index, "key", trained))
wrong = attention(turned(q, index, "query"), turned(word, index))
right_hands, wrong_hands = 3 * omega.repeat_interleave(2), 3 * omega.repeat(2)
""",
    ),
    "left_padding": Bug(
        FIRST,
        EACH_POSITION,
        say(
            "Ten padding tokens stand before the text, and the positions are counted from the first of them: no word is at "
            "position 0 any more."
        ),
        say("Count positions from the first token that is not padding."),
        "https://github.com/huggingface/transformers/issues/22161",
        "padding",
        "padded_equals_unpadded",
        TABLE
        + f"""text = (index >= 10)[:, None] & (index >= 10)
right = attention(first, table[(index - 10).clamp(min=0)], text)
wrong = attention(first, table[index], text)
omega = posenc.frequencies.rotary(32, 10000.0)[{PAIR}]
right_hands = torch.where(index >= 10, (index - 10) * omega, float("nan"))
wrong_hands = index * omega
""",
    ),
    "cache_twice": Bug(
        BACK,
        EACH_POSITION,
        say(
            "The first 24 words are in the cache. A new word's position is its number plus the length of the cache, "
            "although the number already counts the cache."
        ),
        say("Pass the position of each new token, which counts the cached ones once."),
        "https://github.com/skyzh/tiny-llm/pull/46",
        "decode offset",
        "decode_equals_prefill",
        ROTARY
        + f"""twice = torch.where(index < 24, index, 2 * index)
right = attention(turned(back, index, "query"), turned(word, index))
wrong = attention(turned(back, twice, "query"), turned(word, twice))
right_hands, wrong_hands = index * omega[{PAIR}], twice * omega[{PAIR}]
""",
    ),
    "packed_documents": Bug(
        FIRST,
        EACH_POSITION,
        say(
            "Two documents share one row. The positions run on from the first into the second, and the second "
            "attends to the first."
        ),
        say("Start the positions of each document at 0, and mask the other documents: one of the two is not enough."),
        "https://github.com/pytorch/torchtitan/issues/2559",
        "packing",
        "packed_equals_separate",
        TABLE
        + f"""lengths = torch.tensor([18, 22])
document = torch.arange(2).repeat_interleave(lengths)
restarted = torch.cat([torch.arange(length) for length in lengths])
right = attention(first, table[restarted], document[:, None] == document)
wrong = attention(first, table[index])
omega = posenc.frequencies.rotary(32, 10000.0)[{PAIR}]
right_hands, wrong_hands = restarted * omega, index * omega
""",
    ),
    "t5_buckets": Bug(
        BACK,
        say("the bucket of each distance from 0 on, as a clock hand"),
        say(
            "The distance is one too large, so that every bucket of T5 begins one position too early "
            "and bucket 0 is never used."
        ),
        say("The distance of a token to itself is 0 and belongs to bucket 0."),
        "https://github.com/lucidrains/x-transformers/pull/10",
        "buckets",
        "identify: buckets",
        """
t5 = posenc.create("t5", n_heads=1, n_buckets=16, max_distance=40).double().requires_grad_(False)
t5.table.copy_(5.0 * (torch.arange(16) == 3)[:, None])  # only distance 3 is worth anything
distance = index[:, None] - index
right, wrong = (
    attention(torch.eye(40).double(), 2 * t5.at_distance((distance + more).flatten()).view(40, 40).T) for more in (0, 1)
)
right_hands, wrong_hands = (t5.bucket(index + more) * torch.pi / 8 for more in (0, 1))
""",
    ),
    "stale_cache": Bug(
        say("This head looks twelve words back: one bright line."),
        say("the clock hand of each key, 2 degrees a step"),
        say(
            "Dynamic NTK raises the base when the text grows past 24 positions. The first 24 keys stay in the cache as "
            "they were rotated with the old base."
        ),
        say("Choose one base for a request, or rotate the cached keys again."),
        "https://github.com/huggingface/transformers/issues/25104",
        "length state",
        "short_calls_equal_long_calls",
        ROTARY
        + """new = posenc.create("rope", d_head=32, layout="half", base=10000.0 * 4 ** (32 / 30))
q = turned(word, torch.tensor(-12), "query", new)
keys, old = turned(word, index, "key", new), turned(word, index)
right = attention(turned(q, index, "query", new), keys)
wrong = attention(turned(q, index, "query", new), torch.cat([old[:, :, :24], keys[:, :, 24:]], dim=2))
raised = posenc.frequencies.rotary(32, 10000.0 * 4 ** (32 / 30))[6]
right_hands, wrong_hands = index * raised, index * torch.where(index < 24, omega[6], raised)
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
ARRAYS = ("right", "wrong", "right_hands", "wrong_hands")


def data(params: Parameters) -> Data:
    bug = BUGS[params.bug]
    python = (SETUP + bug.python).rstrip() + "\n"
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
