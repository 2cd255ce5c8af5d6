"""Which sinusoid an embedding or a table is; learned tables are told apart from formulas."""

from __future__ import annotations

from typing import Any

import torch

from posenc.checking.recognition import Formula, recognise
from posenc.checking.result import Difference, Identity
from posenc.checking.say import say
from posenc.checking.subject import Subject, arange, in_pairs

ROWS = 512
USUAL = "Vaswani et al. 2017"
KNOWN: dict[tuple[str, str], str] = {
    ("interleaved", "d/2"): USUAL,
    ("sin_cos", "d/2"): "tensor2tensor with d/2, T5X and others",
    ("sin_cos", "d/2-1"): "tensor2tensor, Whisper, fairseq",
    ("cos_sin", "d/2-1"): "MusicGen",
}


def identity(subject: Subject) -> Identity:
    """What `posenc.checking.recognition` says of the rows that are added, and the factor on the tokens."""
    rows = min(ROWS, subject.reach + 1)
    at = arange(0, rows)
    if subject.seam == "table":
        table = subject.rows(torch.zeros(1, rows, 1), at)[0]
        return _of(subject, table, {}, turns=in_pairs(subject.function(at.numpy() if subject.is_numpy else at), 1, rows))
    x = subject.tokens(1, rows)
    zero, plain, double = (subject.rows(factor * x, at)[0].detach().double() for factor in (0.0, 1.0, 2.0))
    scale = float(((plain - zero) * x[0]).sum() / x[0].double().square().sum())
    scale = 1.0 if abs(scale - 1) < subject.rounding else scale
    facts: dict[str, Any] = {"token_scale": round(scale, 5)}
    off = (1e-3 + 4 * subject.rounding) * float(plain.abs().max())
    if float((double - plain - (plain - zero)).abs().max()) > off:
        depends = Difference("token", say("what is added depends on the token"))
        return Identity({}, None, "what is added depends on the token", USUAL, (depends,))
    if float((plain - zero - scale * x[0]).abs().max()) > off:
        changed = Difference("token", say("tokens are changed by more than a factor and a term"))
        return Identity({}, None, "tokens are changed by more than a factor and a term", USUAL, (changed,))
    return _of(subject, zero.float(), facts)


def _of(subject: Subject, table: torch.Tensor, facts: dict[str, Any], *, turns: bool = False) -> Identity:
    """`turns`: each pair of numbers is a turn, a complex number."""
    half = table.shape[-1] // 2
    recognised = recognise(table.detach().double().numpy())
    parts = ""
    if recognised.formula is None and table.shape[-1] % 2 == 0 and half > 1:  # cosines and sines handed over as a pair
        recognised = recognise(table[:, :half].detach().double().numpy())
        parts = "first half: "
    formula = recognised.formula
    sentence = parts + "; ".join(finding.words.en.rstrip(".") for finding in recognised.findings[:3])
    if facts.get("token_scale", 1.0) != 1.0:
        sentence = f"tokens times {facts['token_scale']:g}; {sentence}"
    if formula is None:
        module = subject.module
        learned = module is not None and any(parameter.requires_grad for parameter in module.parameters())
        unknown = (
            () if learned else (Difference("formula", say("the rows follow no known formula, and nothing learns them")),)
        )
        return Identity(facts, None, "no known formula: learned, or one of its own", USUAL, unknown)
    facts |= {
        "layout": formula.layout,
        "base": formula.base,
        "offset": formula.offset,
        "scale": round(formula.scale, 6),
        "denominator": formula.denominator,
        "amplitude": round(formula.amplitude, 6),
        "arithmetic": recognised.arithmetic,
    }
    differences, convention = _differences(formula, facts, turns=turns), None
    if not differences:
        convention = KNOWN.get((formula.layout, formula.denominator))
    bug = "one angle each" if formula.layout == "per_channel" else None
    return Identity(
        facts, convention, sentence + (f"; matches {convention}" if convention else ""), USUAL, differences, bug
    )


def _differences(formula: Formula, facts: dict[str, Any], *, turns: bool) -> tuple[Difference, ...]:
    """From the sinusoids that are known, and from a RoPE cache, which has any base."""
    differences = []
    cache = formula.layout.startswith("rope_") or (formula.layout == "cos_sin" and "token_scale" not in facts)
    cache = cache or (turns and formula.layout == "interleaved_cos")
    if formula.layout == "per_channel":
        differences.append(Difference("layout", say("every channel has its own frequency")))
    elif not cache and (formula.layout, formula.denominator) not in KNOWN:
        differences.append(Difference("layout", say("no known table has this order of channels with this denominator")))
    if formula.base_seen and formula.base != 10_000 and not cache:
        slip = say("base {base:g} instead of 10 000", base=formula.base)
        half = say("base 100 instead of 10 000: the same as half of the exponent, i/d for 2i/d")
        differences.append(Difference("base", half if formula.base == 100 else slip))
    if formula.offset:
        differences.append(Difference("offset", say("row 0 is position {offset:g}", offset=formula.offset)))
    if formula.scale != 1:
        differences.append(Difference("scale", say("positions count in steps of {scale:.6g}", scale=formula.scale)))
    if abs(formula.amplitude - 1) > 1e-6:
        differences.append(Difference("amplitude", say("all numbers are multiplied by {size:.6g}", size=formula.amplitude)))
    scale = facts.get("token_scale", 1.0)
    if min(abs(scale - 1), abs(scale - formula.width**0.5)) > 1e-3:
        differences.append(Difference("token_scale", say("tokens are multiplied by {scale:g}", scale=scale)))
    return tuple(differences)
