"""Which sinusoid an embedding or a table is; learned tables are told apart from formulas."""

from __future__ import annotations

from typing import Any

import torch

from posenc.checking.recognition import recognise
from posenc.checking.result import Identity
from posenc.checking.subject import Subject, arange

ROWS = 512


def identity(subject: Subject) -> Identity:
    """What `posenc.checking.recognition` says of the rows that are added, and the factor on the tokens."""
    rows = min(ROWS, subject.reach + 1)
    at = arange(0, rows)
    if subject.seam == "table":
        return _of(subject.rows(torch.zeros(1, rows, 1), at)[0], {})
    x = subject.tokens(1, rows)
    zero, plain, double = (subject.rows(factor * x, at)[0].detach().double() for factor in (0.0, 1.0, 2.0))
    scale = ((plain - zero) * x[0]).sum() / x[0].double().square().sum()
    facts: dict[str, Any] = {"token_scale": round(float(scale), 5)}
    if float((double - plain - (plain - zero)).abs().max()) > 1e-3 * float(plain.abs().max()):
        return Identity({}, None, "what is added depends on the token")
    if float((plain - zero - scale * x[0]).abs().max()) > 1e-3 * float(plain.abs().max()):
        return Identity({}, None, "tokens are changed by more than a factor and a term")
    return _of(zero.float(), facts)


def _of(table: torch.Tensor, facts: dict[str, Any]) -> Identity:
    half = table.shape[-1] // 2
    found = recognise(table.detach().numpy())
    parts = ""
    if found.formula is None and table.shape[-1] % 2 == 0 and half > 1:  # cosines and sines handed over as a pair
        found = recognise(table[:, :half].detach().numpy())
        parts = "first half: "
    formula = found.formula
    sentence = parts + "; ".join(one.words.en.rstrip(".") for one in found.findings[:3])
    if facts.get("token_scale", 1.0) != 1.0:
        sentence = f"tokens times {facts['token_scale']:g}; {sentence}"
    if formula is None:
        return Identity(facts, None, "no known formula: learned, or one of its own")
    facts |= {
        "layout": formula.layout,
        "base": formula.base,
        "offset": formula.offset,
        "scale": round(formula.scale, 6),
        "denominator": formula.denominator,
        "amplitude": round(formula.amplitude, 6),
        "arithmetic": found.arithmetic,
    }
    usual = formula.base == 10_000 and formula.offset == 0 and formula.scale == 1 and formula.amplitude == 1
    convention = None
    if usual and formula.denominator == "d/2":
        convention = {"interleaved": "Vaswani et al. 2017", "sin_cos": "tensor2tensor with d/2, T5X and others"}.get(
            formula.layout
        )
    if usual and formula.denominator == "d/2-1" and formula.layout == "sin_cos":
        convention = "tensor2tensor, Whisper, fairseq"
    return Identity(facts, convention, sentence + (f"; matches {convention}" if convention else ""))
