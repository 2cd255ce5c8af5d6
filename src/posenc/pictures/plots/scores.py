"""Pictures of what an encoding does to the scores: decay with distance, bias maps, Transformer-XL's terms.

Legend: h heads, i query, j key, k lags.
"""

from __future__ import annotations

import torch

from posenc.encoding import DistanceBias, PositionalEncoding
from posenc.encodings.rope import RoPE
from posenc.encodings.transformer_xl import TransformerXL
from posenc.pictures import measures
from posenc.pictures.measures.layers import normal, seeded
from posenc.pictures.plots.picture import Curves, Line, Mark, Matrices, Panel, number
from posenc.pictures.plots.tables import table_of
from posenc.positions import Positions
from posenc.support.checked import checked

RANDOM_ROWS = 256


@checked
def decay(encoding: PositionalEncoding, *, length: int = 256, width: int = 128) -> Curves:
    """The score against distance.

    ROTATE         q̂·k̂/d for vectors of ones; for RoPE also its bound and the mean over independent random q and k
    EMBED          the similarity of rows that far apart, mean over positions
    DistanceBias   the bias of every head
    """
    if isinstance(encoding, DistanceBias):
        return _bias_by_distance(encoding, length)
    if isinstance(encoding, RoPE):
        return rope_decay(length=length, d_head=width, base=encoding.frequencies.base or 10000.0)
    lags = torch.arange(length)
    if "rotate" in encoding.seams:
        line = Line("q = k = ones", lags, measures.score_of_ones(encoding, lags, width))
        idea = "The score of a query and a key of ones: RoPE's waves, faded by a factor per pair."
    else:
        table = table_of(encoding, 2 * length, width)
        if not table.any():  # Convolutional: it reads what it is added to
            raise ValueError(f"encoding: {type(encoding).__name__} adds nothing to zeros, so its rows have no similarity")
        line = Line("mean of PE(p)·PE(p+k)", lags, measures.row_similarity(table)[:length])
        idea = "How alike two rows are, by their distance, relative to a row with itself; the mean over positions."
    return Curves(
        f"{type(encoding).__name__}: score against distance",
        (idea, _rises(line)),
        (line,),
        "lag k",
        "relative score",
        marks=_first_rise(line),
    )


@checked
def sinusoidal_decay(*, length: int = 256, d_model: int = 128, base: float = 10000.0) -> Curves:
    """PE(p)·PE(p+k) for lags on both sides, relative to lag 0: symmetric, and not monotone."""
    lags = torch.arange(1 - length, length)
    line = Line("PE(p)·PE(p+k)", lags, measures.sinusoidal_similarity(d_model, lags, base) / (d_model / 2))
    right = Line(line.name, lags[length - 1 :], line.y[length - 1 :])
    return Curves(
        f"Sinusoidal: similarity of two rows by their lag, d_model = {d_model}",
        ("The same for k and −k and for every p: the sum of cos kω over the pairs.", _rises(right)),
        (line,),
        "lag k",
        "relative score",
        marks=_first_rise(right),
    )


@checked
def rope_decay(*, length: int = 256, d_head: int = 128, base: float = 10000.0, seed: int = 0) -> Curves:
    """RoPE's score of vectors of ones, the bound of Su et al. 2021, section 3.4.3, and random vectors, without decay."""
    lags = torch.arange(length)
    random = seeded(seed)
    q, k = (normal(RANDOM_ROWS, d_head, random=random) for _ in range(2))
    bound = measures.rope_bound(d_head, lags, base)
    lines = (
        Line("bound, relative", lags, bound / bound[0]),
        Line("q = k = ones", lags, measures.rope_score(d_head, lags, base) / d_head),
        Line(
            f"independent random q, k (mean of {RANDOM_ROWS})",
            lags,
            measures.rope_score_of(q, k, lags, base).mean(dim=0) / d_head,
        ),
    )
    return Curves(
        f"RoPE: score and bound against distance, d_head = {d_head}",
        (
            "The bound falls in the mean; neither curve falls steadily, and random queries and keys show no decay at all.",
            f"{_rises(lines[1])} The bound first rises at {_step(lines[0])}.",
        ),
        lines,
        "lag k",
        "relative score",
        marks=_first_rise(lines[0], "bound: ") + _first_rise(lines[1], "ones: "),
    )


@torch.no_grad()
def _bias_by_distance(encoding: DistanceBias, length: int) -> Curves:
    lags = torch.arange(length)
    bias = encoding.at_distance(lags).double()
    names = [f"head {head}" for head in range(len(bias))]
    return Curves(
        f"{type(encoding).__name__}: bias against distance",
        (
            "What is added to the score of a key that lies k positions back, one line per head.",
            f"At lag {length - 1} it runs from {number(float(bias[:, -1].min()))} to {number(float(bias[:, -1].max()))}; "
            "the softmax takes e to that power.",
        ),
        tuple(Line(name, lags, row) for name, row in zip(names, bias, strict=True)),
        "lag k = i − j",
        "bias",
    )


@checked
def bias(
    encoding: PositionalEncoding, *, n_heads: int, d_head: int, length: int = 32, causal: bool = False, seed: int = 0
) -> Matrices:
    """What is added to the logits of random queries and keys, one map per head. Bias and context seams."""
    added = measures.added_to_logits(encoding, n_heads=n_heads, d_head=d_head, length=length, causal=causal, seed=seed)
    reads = "; it depends on the queries and keys, here random ones" if not isinstance(encoding, DistanceBias) else ""
    return Matrices(
        f"{type(encoding).__name__}: added to the score, query × key",
        (
            f"Blue takes attention away, red adds to it{'; grey is never seen' if causal else ''}{reads}.",
            f"From {number(float(added.nan_to_num().min()))} to {number(float(added.nan_to_num().max()))} over {n_heads} "
            f"head{'s' * (n_heads > 1)}; the colours end at ±{number(_limit(added))}.",
        ),
        tuple(Panel(f"head {head}{_slope(encoding, head)}", terms_of_head) for head, terms_of_head in enumerate(added)),
        "query",
        "key",
        "added to the score",
        _limit(added),
    )


@checked
@torch.no_grad()
def terms(encoding: TransformerXL, *, length: int = 32, seed: int = 0) -> Matrices:
    """The four terms of Transformer-XL's score, of head 0, separately: Dai et al. 2019, section 3.3."""
    heads, d_head = encoding.u.shape
    random, at = seeded(seed), Positions.arange(1, length)
    q, k = (normal(1, heads, length, d_head, random=random) for _ in range(2))
    four = encoding.terms(q, k, at, at)
    names = (
        "q·k  content to content",
        "q·W R(i−j)  content to position",
        "u·k  content at large",
        "v·W R(i−j)  position at large",
    )
    maps = torch.stack([term[0, 0] for term in four])
    sizes = ", ".join(f"{float(term.std(correction=0)):.2f}" for term in maps)
    return Matrices(
        "TransformerXL: the four terms of the score, head 0",
        (
            "The first two read the query; the third is one row for all queries; "
            "the last is the same along every diagonal.",
            f"Spread of the terms: {sizes}; random queries and keys.",
        ),
        tuple(Panel(name, term) for name, term in zip(names, maps, strict=True)),
        "query",
        "key",
        "term",
        _limit(maps),
    )


def _limit(values: torch.Tensor) -> float:
    """The end of the colours: the largest size, but no more than 5, where a weight has changed by e⁵ = 148 times."""
    return min(float(values.nan_to_num().abs().max()) or 1.0, 5.0)


def _slope(encoding: PositionalEncoding, head: int) -> str:
    slopes = getattr(encoding, "slopes", None)
    return f", slope {number(slopes[head])}" if slopes else ""


def _step(line: Line) -> str:
    at = measures.first_rise(line.y)
    return "no lag" if at is None else f"{int(line.x[at])} → {int(line.x[at]) + 1}"


def _rises(line: Line) -> str:
    at = measures.first_rise(line.y)
    if at is None:
        return "It never rises in this range."
    share = float((line.y[1:] > line.y[:-1]).double().mean())
    return f"The score first rises at lag {_step(line)}; {share:.0%} of all steps rise."


def _first_rise(line: Line, whose: str = "") -> tuple[Mark, ...]:
    at = measures.first_rise(line.y)
    return () if at is None else (Mark(float(line.x[at]), float(line.y[at]), f"{whose}first rise {_step(line)}"),)
