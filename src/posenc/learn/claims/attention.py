"""Claims about attention: word order, the example computed by hand, relative scores.

Legend: t tokens, d channels; rows are tokens.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from posenc.attention import attend
from posenc.catalogue import lookup
from posenc.encoding import PositionalEncoding, scale_of
from posenc.encodings.nope import NoPE
from posenc.encodings.rope import RoPE, rotation_matrix
from posenc.encodings.sinusoidal import sinusoidal_table
from posenc.encodings.transformer_xl import TransformerXL
from posenc.learn.claims.evidence import Evidence, Verdict, verdict
from posenc.learn.notes import compare
from posenc.learn.say import say
from posenc.learn.walk import (
    NINE,
    PRINTED_CODES,
    PRINTED_Q,
    PRINTED_SCORES,
    PRINTED_WEIGHTS,
    Printed,
    Unscaled,
    attention_weights,
)
from posenc.pictures import measures
from posenc.pictures.measures.order import word_vectors
from posenc.positions import Positions

if TYPE_CHECKING:
    from posenc.support.shapes import Float

Rows = Sequence[Sequence[float]]
EXACT = 1e-12  # what rounding in fp64 stays below


def attention(
    x: Float[Tensor, "t d"], encoding: PositionalEncoding, *, causal: bool = False, seed: int = 0
) -> Float[Tensor, "t d"]:
    """One head with random projections. `embed` is not called: the caller adds positions to x."""
    random = torch.Generator().manual_seed(seed)
    d = x.shape[1]
    q, k, v = (x @ torch.randn(d, d, generator=random, dtype=torch.float64) / math.sqrt(d) for _ in range(3))
    at = Positions.arange(1, len(x))
    return attend(q[None, None], k[None, None], v[None, None], encoding, at, causal=causal)[0, 0]


def some_words(t: int = 6, d: int = 8) -> Float[Tensor, "t d"]:
    return torch.randn(t, d, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def apart(a: Tensor, b: Tensor) -> float:
    return float((a - b).abs().max())


def permutation_invariant(x: Float[Tensor, "t d"] | None = None) -> Evidence:
    """Compares A(PX) with A(X) and with P·A(X): all tokens, their mean, a causal mask, and the last token under it."""
    x = some_words() if x is None else x
    turned, blind = x.flip(0), NoPE()
    prefix_turned = torch.cat([x[:-1].flip(0), x[-1:]])
    out, out_turned = attention(x, blind), attention(turned, blind)
    masked, masked_turned = (attention(words, blind, causal=True) for words in (x, turned))
    numbers = {
        "invariance_error": apart(out_turned, out),
        "equivariance_error": apart(out_turned, out.flip(0)),
        "pooled_error": apart(out_turned.mean(dim=0), out.mean(dim=0)),
        "causal_equivariance_error": apart(masked_turned, masked.flip(0)),
        "causal_last_token_error": apart(attention(prefix_turned, blind, causal=True)[-1], masked[-1]),
    }
    exact, broken = numbers["equivariance_error"], numbers["causal_equivariance_error"]
    return Evidence(verdict(numbers["invariance_error"] < EXACT), numbers, {"exact": exact, "broken": broken})


def query_by_hand(x: Rows = NINE, w: Rows = NINE) -> Evidence:
    q = _fp64(x) @ _fp64(w)
    wrong = _wrong(PRINTED_Q, q)
    return Evidence(verdict(wrong == 0), {"Q": q.tolist(), "wrong": wrong}, {"q": _shown(q, 2)})


def scores_by_hand(
    q: Printed = PRINTED_Q, scores: Printed = PRINTED_SCORES, weights: Printed = PRINTED_WEIGHTS
) -> Evidence:
    """Checks each printed matrix against the printed one before it, and computes all of them from X and W."""
    own_q, own_scores = _fp64(_numbers(q)), _fp64(_numbers(scores))
    right_q = _fp64(NINE) @ _fp64(NINE)
    numbers = {
        "scores_of_its_Q": (own_q @ own_q.T).tolist(),
        "weights_of_its_scores": own_scores.softmax(dim=-1).tolist(),
        "softmax_0_1_2": torch.arange(3).double().softmax(dim=0).tolist(),
        "scores": (right_q @ right_q.T).tolist(),
        "weights": attention_weights(right_q, right_q, Unscaled()).tolist(),
        "weights_scaled": attention_weights(right_q, right_q, NoPE()).tolist(),
    }
    slips = [_wrong(scores, own_q @ own_q.T), _wrong(weights, own_scores.softmax(dim=-1))]
    softmax = _shown(_fp64(numbers["weights"]), 3)
    return Evidence(verdict(not any(slips)), numbers, {"first": slips[0], "second": slips[1], "softmax": softmax})


def position_codes(printed: Printed = PRINTED_CODES) -> Evidence:
    """The table at d = 3 for positions 1, 2, 3; no sine or cosine exceeds 1."""
    table = sinusoidal_table(3, 3, start=1, dtype=torch.float64)
    wrong, beyond = _wrong(printed, table), int((_fp64(_numbers(printed)).abs() > 1).sum())
    return Evidence(
        verdict(wrong == 0),
        {"table": table.tolist(), "wrong": wrong, "above_one": beyond},
        {"table_shown": _shown(table, 4)},
    )


def reversed_weights(x: Rows = NINE, w: Rows = NINE) -> Evidence:
    q = _fp64(x) @ _fp64(w)
    forward, backward = attention_weights(q, q, NoPE()), attention_weights(q.flip(0), q.flip(0), NoPE())
    change, moved = apart(backward, forward), apart(backward, forward.flip(0, 1))
    return Evidence(verdict(change < EXACT), {"change": change, "error_of_PAPt": moved})


def relative_score(i: int = 5, j: int = 2, d_head: int = 8) -> Evidence:
    """The relative score for column vectors, which R rotates by +pω, and for row vectors, where R is the transpose."""
    q, k = some_words(2, d_head)
    rope = RoPE(d_head)
    q_hat, k_hat = (
        rope.rotate(x[None, None, None], Positions.arange(1, 1, start=p), "query")[0, 0, 0] for x, p in ((q, i), (k, j))
    )
    score, turn = float(q_hat @ k_hat), rotation_matrix(i - j, d_head)
    columns, rows = (abs(float(q @ matrix @ k) - score) for matrix in (turn, turn.T))
    both, either = columns < EXACT and rows < EXACT, columns < EXACT or rows < EXACT
    return Evidence(
        Verdict.TRUE if both else Verdict.CONVENTION if either else Verdict.FALSE,
        {"error_rows": rows, "error_columns": columns},
    )


def positions_move_too(causal: bool = False) -> Evidence:
    """Compares the note's A(P(X + p)), and A(PX + p), which depends on order, with P·A(X + p)."""
    x, blind = some_words(), NoPE()
    p = sinusoidal_table(len(x), x.shape[1], dtype=torch.float64)
    out = attention(x + p, blind, causal=causal).flip(0)
    together = apart(attention((x + p).flip(0), blind, causal=causal), out)
    separate = apart(attention(x.flip(0) + p, blind, causal=causal), out)
    return Evidence(verdict(together > EXACT), {"together": together, "words_alone": separate})


def same_attention(x: Rows = NINE, w: Rows = NINE) -> Evidence:
    q = _fp64(x) @ _fp64(w)
    weights = attention_weights(q, q, Unscaled())
    spread = float((weights.amax(dim=0) - weights.amin(dim=0)).max())
    on_last = weights[:, -1].tolist()
    shown = ", ".join(f"{weight:.3f}" for weight in on_last)
    return Evidence(verdict(spread < 0.05), {"weights_on_cat": on_last, "spread": spread}, {"shown": shown})


def scale_left_out(x: Rows = NINE, w: Rows = NINE) -> Evidence:
    q = _fp64(x) @ _fp64(w)
    difference = apart(attention_weights(q, q, Unscaled()), attention_weights(q, q, NoPE()))
    d = q.shape[1]
    return Evidence(verdict(difference < EXACT), {"largest_difference": difference, "d": d})


def set_of_words(words: tuple[str, ...] = ("我", "爱", "你", "我")) -> Evidence:
    """In a set a repeated word counts once: measures how the output at another word changes if the repeat is removed."""
    once = tuple(dict.fromkeys(words))
    watcher = max(once, key=lambda word: (-words.count(word), once.index(word)))
    full, reduced = (attention(word_vectors(sentence, 8), NoPE())[sentence.index(watcher)] for sentence in (words, once))
    change = apart(full, reduced)
    return Evidence(verdict(change < EXACT), {"change": change}, {"watcher": watcher})


def taylor_without_half(split: Callable[..., measures.TaylorTerms] = measures.taylor_split) -> Evidence:
    """The order of the remainder: the number of powers of ten by which it falls if ε falls by one."""
    thousandth, tenth = split(eps=1e-3), split(eps=1e-4)
    right = _order(thousandth.remainder, tenth.remainder)
    printed = _order(thousandth.remainder_without_half, tenth.remainder_without_half)
    large, small = abs(thousandth.remainder_without_half), abs(thousandth.remainder)
    return Evidence(
        verdict(printed > 2.5),
        {
            "order_as_printed": printed,
            "order_with_half": right,
            "remainder_as_printed": thousandth.remainder_without_half,
            "remainder_with_half": thousandth.remainder,
        },
        {"large": large, "small": small},
    )


def _order(at_eps: float, at_tenth: float) -> float:
    return math.log10(abs(at_eps) / abs(at_tenth))


def no_projection_of_r(w_r: Tensor | None = None, d_head: int = 8) -> Evidence:
    """Compares the note's q·R with the paper's q·W_R R, both without 1/√d."""
    txl = TransformerXL(d_head, 1, d_head=d_head).double()
    if w_r is None:
        w_r = torch.randn(d_head, d_head, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    q, at = some_words(5, d_head), Positions.arange(1, 5)
    with torch.no_grad():
        txl.w_r.copy_(w_r)
        term = txl.terms(q[None, None], q[None, None], at, at).content_position[0, 0] / scale_of(txl, d_head)
    distance = torch.arange(5)[:, None] - torch.arange(5)
    around = sinusoidal_table(9, d_head, start=-4, dtype=torch.float64)[distance + 4]  # [i, j, d], sin and cos in turn
    r = torch.cat([around[..., 0::2], around[..., 1::2]], dim=-1)
    difference = apart(torch.einsum("id,ijd->ij", q, r), term)
    return Evidence(verdict(difference < EXACT), {"largest_difference": difference})


def gpt2_sinusoid(model: str = "GPT-2", trained: int = 1024, position: int = 4096) -> Evidence:
    """Looks up the model's encoding in the catalogue, and whether it is defined at that position."""
    name = next(entry.name for entry in lookup.ENTRIES if model in entry.users())
    encoding = lookup.create(name, d_model=8, n_heads=1, max_positions=trained)
    try:
        encoding.embed(torch.zeros(1, 1, 8), Positions.arange(1, 1, start=position - 1))
        error = ""
    except ValueError as raised:
        error = str(raised)
    there = say("raises an error, for there is no row") if error else say("is defined")
    return Evidence(
        verdict(name == "sinusoidal" and (not error)),
        {"encoding": name, "error": error},
        {"position": position - 1, "there": there},
    )


def _fp64(rows: Rows) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def _numbers(printed: Printed) -> list[list[float]]:
    return [[float(shown) for shown in row] for row in printed]


def _wrong(printed: Printed, right: Tensor) -> int:
    return sum(
        compare(shown, float(value)) != "same"
        for row, values in zip(printed, right, strict=True)
        for shown, value in zip(row, values, strict=True)
    )


def _shown(matrix: Tensor, digits: int) -> str:
    return "".join(f"[{' '.join(f'{entry:.{digits}f}' for entry in row)}]" for row in matrix.tolist())
