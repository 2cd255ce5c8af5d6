"""Properties of an encoding that need no training, measured in fp64 with random parameters.

order            how much the output changes when a sentence is reversed, beyond the same reversal
reordered        the same for random re-orderings
shift            max |A(X, p + s) - A(X, p)|
decode           max |token by token with a cache - all at once|
memory           bytes of prepared tables per token, number of parameters
positions        the largest position, if there is one
"""

from __future__ import annotations

from typing import Any

import torch

from posenc.attention.module import Attention
from posenc.encoding import SEAMS, PositionalEncoding
from posenc.lab.experiment import Size, Trial
from posenc.lab.experiment.arm import Arm
from posenc.lab.trial.training import new_model
from posenc.pictures.measures import SENTENCE_PAIRS, order_sensitivity, sentence_sensitivity
from posenc.pictures.measures.layers import normal, redrawn, seeded
from posenc.positions import Positions

SHIFTS = (1, 40)
TOKENS = 16
SAME = 1e-9  # in fp64, outputs of size one: rounding is 1e-15, an ODE solver's choice of steps up to 1e-10


def properties(trial: Trial) -> dict[str, Any]:
    """All properties of the trial's encoding at its size, as plain JSON."""
    model, arm, size = new_model(trial), trial.arm, trial.size
    encoding = model.encoding(0)
    return {
        "order": {"bidirectional": order(arm, size, causal=False), "causal": order(arm, size, causal=True)},
        "reordered": reordered(arm, size),
        "shift": shift(encoding, size),
        "decode": decode(encoding, size),
        "parameters": model.encoding_parameters(),
        "table_bytes_per_token": table_bytes_per_token(encoding),
        "largest_position": encoding.largest_position(),
        "from_zero": not _takes_negative_positions(encoding, size),
        "sites": [seam.upper() for seam in SEAMS if seam in encoding.seams],
    }


def _takes_negative_positions(encoding: PositionalEncoding, size: Size) -> bool:
    try:
        encoding.embed(torch.zeros(1, 1, size.d_model), Positions.arange(1, 1, -1))
    except ValueError:
        return False
    return True


def order_without(size: Size) -> dict[str, float]:
    """`order` of a model without positions."""
    nothing = PositionalEncoding()
    return {"bidirectional": _order(nothing, size, causal=False), "causal": _order(nothing, size, causal=True)}


def order(arm: Arm, size: Size, *, causal: bool) -> float | None:
    """The largest |A(PX + p) - P·A(X + p)| over the sentence pairs; None for causal-only encodings without a mask."""
    encoding = _for_order(arm, size, causal)
    return None if not causal and "causal_only" in encoding.traits else _order(encoding, size, causal)


def reordered(arm: Arm, size: Size) -> float:
    """The same over random re-orderings of six words, bidirectional where that is defined.

    The sentence pairs are reversals. A symmetric bias such as ALiBi's does not change under reversal and misses them.
    """
    encoding = _for_order(arm, size, causal=False)
    causal = "causal_only" in encoding.traits
    return order_sensitivity(encoding, d_model=size.d_model, n_heads=size.n_heads, causal=causal)


def _for_order(arm: Arm, size: Size, causal: bool) -> PositionalEncoding:
    encoding = arm.create(d_model=size.d_model, n_heads=size.n_heads, n_layers=1, positions=8, causal=causal)[0]
    assert isinstance(encoding, PositionalEncoding)
    return encoding


def _order(encoding: PositionalEncoding, size: Size, causal: bool) -> float:
    return max(
        sentence_sensitivity(encoding, pair, d_model=size.d_model, n_heads=size.n_heads, causal=causal)
        for pair in SENTENCE_PAIRS
    )


@torch.no_grad()
def shift(encoding: PositionalEncoding, size: Size) -> float:
    attention, x = _attention(encoding, size)
    here = Positions.arange(1, TOKENS)
    still = attention(x, here)
    return max(float((attention(x, here.shift(by)) - still).abs().max()) for by in SHIFTS)


@torch.no_grad()
def decode(encoding: PositionalEncoding, size: Size) -> float:
    """The largest difference when a third of the tokens is a prompt and the others follow one at a time."""
    attention, x = _attention(encoding, size)
    prompt = TOKENS // 3
    out, cache = attention.decode(x[:, :prompt], Positions.arange(1, prompt))
    outs = [out]
    for n in range(prompt, TOKENS):
        out, cache = attention.decode(x[:, n : n + 1], Positions.decode([n]), cache)
        outs.append(out)
    return float((torch.cat(outs, dim=1) - attention(x, Positions.arange(1, TOKENS))).abs().max())


def _attention(encoding: PositionalEncoding, size: Size) -> tuple[Attention, torch.Tensor]:
    random = seeded(0)
    attention = Attention(size.d_model, size.n_heads, redrawn(encoding, random)).double()
    for linear in (attention.query, attention.key, attention.value, attention.out):
        linear.weight.data = normal(*linear.weight.shape, random=random) * size.d_model**-0.5
    return attention, normal(1, TOKENS, size.d_model, random=random)


@torch.enable_grad()  # without, few tokens have no tables
def table_bytes_per_token(encoding: PositionalEncoding, tokens: int = 32) -> float:
    """Bytes per token of the tables that `prepare` computes once for all layers, in float32."""
    prepared = encoding.prepare(Positions.arange(1, tokens))
    return sum(table.numel() * table.element_size() for tables in prepared.tables.values() for table in tables) / tokens
