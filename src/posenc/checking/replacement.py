"""The lines that put `posenc.create(…)` in the place of an implementation.

They are given only where the encoding that they make gives what the implementation gives, at the first ROWS positions.

Legend: b batch, h heads, t tokens, i query, j key, d channels.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

import posenc
from posenc.checking.encodings import as_subject
from posenc.checking.result import Identity
from posenc.checking.subject import Subject, arange, relative_to_first
from posenc.encoding import PositionalEncoding
from posenc.positions import Positions

ROWS = 129
CLOSE = 1e-4  # of the largest number: float32 angles lose 1e-5 at these positions
MOST_ROWS_BEFORE = 3  # of a learned table, before position 0
AT = "at = posenc.Positions.at(positions)  # [b, t]"
PUT = {  # how it is put there
    "rotate": "q, k = posenc.rotate(q, k, encoding, at)  # [b, h, t, d_head]",
    "embed": "x = encoding.embed(x, at)  # [b, t, d_model]",
    "bias": "out = posenc.attend(q, k, v, encoding, at)  # [b, h, t, d_head]; causal",
}
SCALINGS = (  # what posenc.checking.identify.scalings calls it, and the code of its frequencies
    (r"linear, factor (\S+)", "linear({plain}, {0})"),
    (r"ntk, factor (\d+) from base (\S+)", "ntk(posenc.frequencies.rotary({d}, {1}), {0})"),
    (r"llama3, factor (\S+), original length (\d+)", "llama3({plain}, {0}, 1.0, 4.0, {1})"),
    (r"yarn, factor (\S+), original length (\d+)(?: to \d+)?", "yarn({plain}, {0}, {1})"),
    (r"yarn, no truncation, factor (\S+), original length (\d+)", "yarn({plain}, {0}, {1}, truncate=False)"),
)


def replacement(subject: Subject, known: Identity) -> str:
    """The lines, or "" where no encoding of posenc was found that gives the same. Raises nothing."""
    tried = {"rotate": _rotation, "embed": _added, "table": _table, "bias": _bias, "attention": _attention}
    try:
        for seam, created, after, put in tried[subject.seam](subject, known.facts):
            encoding: PositionalEncoding = eval(created, {"posenc": posenc})  # the very text that is printed
            if after:
                encoding.load_state_dict({"table": _weights(subject)[after]})
            if _attends(subject, encoding, put) if seam == "attention" else _same(subject, encoding, known.facts):
                copied = [f'encoding.load_state_dict({{"table": {after}}})'] if after else []
                return "\n".join([f"encoding = {created}", *copied, AT, put or PUT[seam]])
    except Exception:
        return ""
    return ""


Tried = Iterator[tuple[str, str, str, str]]  # seam; posenc.create(…); the name of the weights to copy; how it is put there


def _rotation(subject: Subject, facts: Mapping[str, Any]) -> Tried:
    d, turning, base = facts["d_head"], facts["rotary_dim"], float(facts.get("base", 10000.0))
    options = [f"d_head={d}", f'layout="{facts["layout"]}"']
    scaled = "".join(_scaled(facts.get("scaling", ""), turning, base))
    if facts.get("proportional"):
        options += [f"frequencies=posenc.frequencies.proportional({d}, {base}, {turning / d})"]
    elif scaled:
        options += [f"frequencies=posenc.frequencies.{scaled}"]
    else:
        options += [f"base={base}", *([f"rotary_dim={turning}"] if turning != d else [])]
    options += ["trailing=True"] * bool(facts.get("trailing")) + ["reverse=True"] * (facts["sign"] == "negative")
    yield "rotate", f'posenc.create("rope", {", ".join(options)})', "", ""


def _scaled(scaling: str, d: int, base: float) -> Iterator[str]:
    for pattern, code in SCALINGS:
        if found := re.fullmatch(pattern, scaling):
            yield code.format(*found.groups(), plain=f"posenc.frequencies.rotary({d}, {base})", d=d)


def _added(subject: Subject, facts: Mapping[str, Any]) -> Tried:
    if "layout" in facts:
        times = facts.get("token_scale", 1.0)
        factor = f"{subject.width}**0.5" if abs(times - subject.width**0.5) < CLOSE * times else f"{times:g}"
        put = "" if times == 1 else PUT["embed"].replace("embed(x,", f"embed({factor} * x,")
        yield "embed", _sinusoidal(subject.width, facts), "", put
    for name, table in _weights(subject).items():
        if table.ndim == 2 and table.shape[1] == subject.width:
            for before in range(MOST_ROWS_BEFORE):
                offset = f", row_offset={before}" if before else ""
                sizes = f"d_model={subject.width}, max_positions={len(table) - before}"
                yield "embed", f'posenc.create("learned", {sizes}{offset})', name, ""


def _sinusoidal(width: int, facts: Mapping[str, Any]) -> str:
    usual = {"layout": "interleaved", "base": 10000.0, "denominator": "d/2", "offset": 0, "scale": 1.0, "amplitude": 1.0}
    said = (f"{key}={facts[key]!r}" for key, value in usual.items() if facts[key] != value)
    return f'posenc.create("sinusoidal", {", ".join([f"d_model={width}", *said])})'.replace("'", '"')


def _table(subject: Subject, facts: Mapping[str, Any]) -> Tried:
    """Cosines and sines handed over as a pair are those of a rotation. They tell its layout where each stands twice."""
    layout, width = facts["layout"], subject.rows(torch.zeros(1, 1, 1), arange(0, 1)).shape[-1]
    at = arange(0, 1)
    in_parts = isinstance(subject.fresh().function(at.numpy() if subject.is_numpy else at), tuple | list)
    if layout.startswith("rope_") or layout == "interleaved_cos" or in_parts:
        paired = {"rope_cos_half": "half", "rope_cos_interleaved": "interleaved", "interleaved_cos": "interleaved"}
        d = width // 2 if layout in ("rope_cos_half", "rope_cos_interleaved") else width
        said = f'layout="{paired[layout]}", ' if layout in paired else ""
        note = PUT["rotate"] if said else f'{PUT["rotate"]}; layout="half" where channels i and i + d/2 are a pair'
        yield "rotate", f'posenc.create("rope", d_head={d}, {said}base={facts["base"]})', "", note
    else:
        yield "embed", _sinusoidal(width, facts), "", ""


def _bias(subject: Subject, facts: Mapping[str, Any]) -> Tried:
    n = facts["n_heads"]
    put = PUT["bias"].replace("at)", f"at{_window(facts)})")
    if facts.get("kind") == "linear":
        yield "bias", f'posenc.create("alibi", n_heads={n})', "", put
        yield "bias", f'posenc.create("alibi", n_heads={n}, slopes={tuple(facts["slopes"])})', "", put
    elif "n_buckets" in facts:
        sizes = f"n_heads={n}, n_buckets={facts['n_buckets']}, max_distance={facts['max_distance']}"
        for name, table in _weights(subject).items():
            if table.shape == (facts["n_buckets"], n):
                yield "bias", f'posenc.create("t5", {sizes}, bidirectional={facts["bidirectional"]})', name, put


def _window(facts: Mapping[str, Any]) -> str:
    """As `attend` takes it: how many positions before and after the query."""
    return f", window=({facts['window'] - 1}, 0)" if isinstance(facts.get("window"), int) else ""


def _attention(subject: Subject, facts: Mapping[str, Any]) -> Tried:
    options = _window(facts) + (f", softcap={facts['softcap']}" if "softcap" in facts else "")
    if abs(facts["softmax_scale"] - subject.width**-0.5) > CLOSE:
        options += f", scale={facts['softmax_scale']}"
    put = PUT["bias"].replace("at)", f"at{options})")
    for _, created, after, _ in _bias(subject, facts) if "kind" in facts else [("", 'posenc.create("nope")', "", "")]:
        yield "attention", created, after, put


def _attends(subject: Subject, encoding: PositionalEncoding, put: str) -> bool:
    """Whether the printed call gives what the implementation gives."""
    at = arange(0, min(ROWS, subject.reach + 1))
    q, k, v = subject.heads(1, at.shape[1], at.shape[1])
    names: dict[str, Any] = {"posenc": posenc, "encoding": encoding, "at": Positions.at(at), "q": q, "k": k, "v": v}
    exec(put, names)
    return _close(names["out"], subject.fresh()(q, k, v, at, at).detach(), subject.rounding)


def _weights(subject: Subject) -> dict[str, nn.Parameter]:
    return {} if subject.module is None else dict(subject.module.named_parameters())


def _same(subject: Subject, encoding: PositionalEncoding, facts: Mapping[str, Any]) -> bool:
    """Whether the encoding gives what the implementation gives."""
    at = arange(0, min(ROWS, subject.reach + 1))
    seam, function, *_ = as_subject(encoding, subject.n_heads, subject.width)
    ours = replace(subject, function=function, seam=seam, is_numpy=False)
    if subject.seam == "bias":
        seen = torch.ones(at.shape[1], at.shape[1], dtype=torch.bool).tril()
        window = facts.get("window")
        seen = seen.triu(1 - window) if isinstance(window, int) else seen
        hidden = (one.bias(at, at).masked_fill(~seen, float("-inf")) for one in (ours, subject.fresh()))
        got, wanted = (relative_to_first(bias) for bias in hidden)
        finite = torch.equal(got.isfinite(), wanted.isfinite())
        return finite and _close(got.nan_to_num(neginf=0), wanted.nan_to_num(neginf=0), 0)
    if subject.seam != "table":
        x = subject.tokens(1, at.shape[1])
        times = facts.get("token_scale", 1.0)
        return _close(ours.rows(times * x, at), subject.fresh().rows(x, at), subject.rounding)
    table = subject.fresh().rows(torch.zeros(1, at.shape[1], 1), at)
    if seam == "embed":
        return _close(ours.rows(torch.zeros_like(table), at), table, subject.rounding)
    cos, sin = encoding.tables(Positions.at(at), torch.float32)  # [1, t, n]
    layout = facts["layout"]
    if layout == "interleaved_cos":
        return _close(torch.stack((cos, sin), -1).flatten(2), table, subject.rounding)
    repeated = {"rope_cos_half": lambda x: x.repeat(1, 1, 2), "rope_cos_interleaved": lambda x: x.repeat_interleave(2, -1)}
    parts = [repeated.get(layout, lambda x: x)(x) for x in (cos, sin)]
    return _close(torch.cat(parts, -1), table, subject.rounding)


def _close(got: Tensor, wanted: Tensor, rounding: float) -> bool:
    allowed = (CLOSE + 4 * rounding) * float(wanted.abs().max())
    return got.shape == wanted.shape and bool((got.double() - wanted.double()).abs().max() <= allowed)
