"""Attention in eight steps with every matrix: words, x, q k v, scores, mask, softmax, weights·v, output.

The program that the page prints is the one that runs here. Given numbers have one decimal, so sums can be checked by
hand. Three examples are from the founding notes (posenc.learn.walk): head 0 has their numbers, a second head others.
Legend: t tokens, h heads, d d_head, m d_model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pydantic import Field

import posenc
from posenc.catalogue import BY_NAME, FOUNDATION, arguments_of, directed, names
from posenc.encoding import Site
from posenc.explorer.data import Data, run
from posenc.explorer.parameters import Parameters as Base
from posenc.explorer.parameters import Refused, encodings, only
from posenc.learn import walk
from posenc.learn.notes import compare

ORDER = 20

CaseName = Literal["cat_eats_fish", "i_like_cats", "i_love_you", "ai_is_growing"]
BOTH_WAYS = [name for name in names() if "causal" not in BY_NAME[name].needs]
WITH_BASE = [name for name in names() if "base" in arguments_of(name)]
if TYPE_CHECKING:
    Method = str
else:
    Method = encodings()


class Parameters(Base):
    case: CaseName = "cat_eats_fish"
    encoding: Method = "sinusoidal"
    n_heads: int = Field(default=1, ge=1, le=2)
    causal: bool = Field(default=False, json_schema_extra=only(encoding=BOTH_WAYS))
    base: float = Field(default=100.0, ge=2.0, le=10000.0, json_schema_extra=only(encoding=WITH_BASE))


EXPORTED = (
    Parameters(),
    *(Parameters(encoding=name, causal="causal" in BY_NAME[name].needs) for name in FOUNDATION if name != "sinusoidal"),
    Parameters(case="i_like_cats", encoding="nope"),
    Parameters(case="ai_is_growing", encoding="rope"),
    Parameters(case="i_love_you", n_heads=2, causal=True),
)


class Case(NamedTuple):
    """`given`: the lines that make x [t, m] and w_q, w_k, w_v [h, m, d]."""

    words: tuple[str, ...]
    d_model: int
    d_head: int
    given: str


PROJECTIONS = "w_q, w_k, w_v = (drawn({h}, {m}, {d}) for _ in range(3))"
CASES: dict[str, Case] = {
    "cat_eats_fish": Case(
        walk.CAT_EATS_FISH,
        4,
        4,
        f"""\
x = torch.tensor(posenc.learn.walk.EMBEDDINGS, dtype=torch.float64)  # of note 004
{PROJECTIONS}""",
    ),
    "i_like_cats": Case(
        walk.I_LIKE_CATS,
        3,
        3,
        """\
x = torch.tensor(posenc.learn.walk.NINE, dtype=torch.float64)  # of note 004, and its three projections too
w_q = w_k = w_v = torch.stack([x, *drawn({h} - 1, {m}, {d})])""",
    ),
    "i_love_you": Case(
        ("我", "爱", "你"),
        6,
        4,
        f"""\
x = drawn(3, {{m}})
{PROJECTIONS}""",
    ),
    "ai_is_growing": Case(
        walk.AI_IS_GROWING,
        5,
        4,
        f"""\
x = torch.eye(5, dtype=torch.float64)  # a channel for each word, so that a projection holds the words' own vectors
{PROJECTIONS}
w_q[0, 2] = torch.tensor(posenc.learn.walk.QUERY, dtype=torch.float64)
w_k[0] = torch.tensor(posenc.learn.walk.KEYS, dtype=torch.float64)
w_v[0, :, :2] = torch.tensor(posenc.learn.walk.VALUES, dtype=torch.float64)""",
    ),
}

# Further arrays of some methods, besides the matrices of all methods.
OWN_LINES = {
    "rope": "omega = torch.tensor(encoding.frequencies.values, dtype=torch.float64)",
    "xpos": "omega = torch.tensor(encoding.frequencies.values, dtype=torch.float64)\n"
    "log_decay = torch.tensor(encoding.log_decay, dtype=torch.float64)",
    "alibi": "slopes = torch.tensor(encoding.slopes, dtype=torch.float64)",
    "t5": "bucket = encoding.bucket(torch.arange({t})[:, None] - torch.arange({t}))\ntable = encoding.table",
    "shaw": "key_vectors, value_vectors = encoding.keys, encoding.values",
    "transformer_xl": "terms = torch.stack(encoding.terms(q[None], k[None], at, at))[:, 0]",
    "cope": "counts = encoding.positions(products[None], at, may_attend)[0]\ncount_scores = q @ encoding.table.T",
}
ARRAYS = (
    "x",
    "position",
    "embedded",
    "w_q",
    "w_k",
    "w_v",
    "q",
    "k",
    "v",
    "q_hat",
    "k_hat",
    "products",
    "added",
    "scores",
    "masked",
    "weights",
    "mixed",
    "value_added",
    "attended",
    "out",
    "blind",
    "changed",
    "omega",
    "log_decay",
    "slopes",
    "bucket",
    "table",
    "key_vectors",
    "value_vectors",
    "terms",
    "counts",
    "count_scores",
)


def data(asked: Parameters) -> Data:
    case = CASES[asked.case]
    entry = BY_NAME[asked.encoding]
    if case.d_head % 2 and entry.kind == "rotated" and "rotary_dim" not in arguments_of(entry.name):
        raise Refused(
            f"{entry.title.en} rotates channels in pairs, and this example has {case.d_head} · "
            f"{entry.title.en} 成对旋转通道，而这个例子只有 {case.d_head} 个通道"
        )
    options = _options(asked, case)
    encoding = posenc.create(asked.encoding, **options)
    causal = asked.causal or "causal_only" in encoding.traits
    program = _program(asked, case, options, encoding.sites, causal)
    made = run(program)
    facts = {
        "words": case.words,
        "d_head": case.d_head,
        "encoding": asked.encoding,
        "formula": entry.formula,
        "base": asked.base,
        "n_heads": asked.n_heads,
        "sites": [site.name for site in Site if site and site in encoding.sites],
        "causal": causal,
        "printed": _printed(asked, made),
        "difference": float((made["out"] - made["library"]).abs().max()),
    }
    return Data({name: made[name] for name in ARRAYS if name in made}, program, facts)


def _options(asked: Parameters, case: Case) -> dict[str, Any]:
    """The arguments of posenc.create: sizes, and tables small enough to be shown."""
    entry, t, m, d = BY_NAME[asked.encoding], len(case.words), case.d_model, case.d_head
    options = {
        "d_model": m if entry.kind == "added" else m + m % 2,
        "n_heads": asked.n_heads,
        "d_head": d,
        "base": asked.base,
        "max_positions": t,
        "n_positions": t + 1,
        "rotary_dim": d - d % 2,
        **entry.small,
        **directed(entry.name, asked.causal),
    }
    return {name: value for name, value in options.items() if name in arguments_of(entry.name)}


def _program(asked: Parameters, case: Case, options: dict[str, Any], sites: Site, causal: bool) -> str:
    sizes = {"t": len(case.words), "h": asked.n_heads, "m": case.d_model, "d": case.d_head}
    create = ", ".join([f'"{asked.encoding}"', *(f"{name}={value!r}" for name, value in options.items())])
    allowed = "torch.ones(1, 1, {t}, {t}).bool()".format(**sizes)
    lines = [
        f"""\
import torch
import posenc

random = torch.Generator().manual_seed(0)

def drawn(*shape):
    return torch.randn(shape, generator=random, dtype=torch.float64).mul(7).round() / 10  # one decimal

{case.given.format(**sizes)}
encoding = posenc.create({create}).double().requires_grad_(False)
for parameter in encoding.parameters():
    parameter.copy_(drawn(*parameter.shape))  # instead of trained numbers
at = posenc.Positions.arange(1, {sizes["t"]})
may_attend = {allowed.replace(".bool()", ".tril().bool()") if causal else allowed}
"""
    ]
    if Site.EMBED in sites:
        lines += ["position = encoding.embed(torch.zeros_like(x)[None], at)[0]"]
    lines += ["embedded = encoding.embed(x[None], at)[0]", "q, k, v = embedded @ w_q, embedded @ w_k, embedded @ w_v"]
    turned = "q, k"
    if Site.ROTATE in sites:
        turned = "q_hat, k_hat"
        lines += ['q_hat, k_hat = encoding.rotate(q[None], at, "query")[0], encoding.rotate(k[None], at, "key")[0]']
    query, key = turned.split(", ")
    lines += [f"products = {query} @ {key}.mT * encoding.softmax_scale({case.d_head})"]
    if Site.BIAS in sites:
        lines += [
            f"bias = encoding.bias({query}[None], {key}[None], at, at)",
            'added = bias(*torch.meshgrid(*map(torch.arange, (1, *products.shape)), indexing="ij"))[0]',
            "scores = products + added",
        ]
    elif Site.CONTEXT in sites:
        lines += [
            f"scores = encoding.context(products[None], {query}[None], at, at, may_attend)[0]",
            "added = scores - products",
        ]
    else:
        lines += ["scores = products"]
    lines += [
        "masked = scores.masked_fill(~may_attend[0], -torch.inf)",
        "weights = encoding.weights(masked[None], at, at, may_attend)[0]"
        if Site.WEIGHTS in sites
        else "weights = masked.softmax(-1)",
        "mixed = weights @ v",
    ]
    if Site.VALUE in sites:
        lines += ["value_added = encoding.value(weights[None], at, at)[0]", "attended = mixed + value_added"]
    else:
        lines += ["attended = mixed"]
    lines += [
        "out = attended.transpose(0, 1).flatten(1)  # the heads side by side",
        "",
        f"library = posenc.attend(q[None], k[None], v[None], encoding, at, causal={causal})[0].transpose(0, 1).flatten(1)",
        f'blind = posenc.attend(*((x @ w)[None] for w in (w_q, w_k, w_v)), posenc.create("nope"), at, causal={causal})',
        "blind = blind[0].transpose(0, 1).flatten(1)  # without position",
        "changed = out - blind",
    ]
    if asked.encoding in OWN_LINES:
        lines += [OWN_LINES[asked.encoding].format(**sizes)]
    return "\n".join(lines)


def _printed(asked: Parameters, made: dict[str, Any]) -> dict[str, list[list[tuple[str, str]]]]:
    """The numbers that note 004 prints for this example, each with whether it is correct."""
    found: dict[str, walk.Printed] = {}
    if asked.case == "cat_eats_fish" and asked.encoding == "sinusoidal" and asked.base == 100:
        found = {"position": walk.PRINTED_TABLE, "embedded": walk.PRINTED_SUMS}
    elif asked.case == "i_like_cats" and asked.encoding == "nope":
        found = {"q": walk.PRINTED_Q}
    return {
        name: [
            [(digits, compare(digits, float(value))) for digits, value in zip(*row, strict=True)]
            for row in zip(rows, made[name].reshape(-1, len(rows[0]))[: len(rows)], strict=True)
        ]
        for name, rows in found.items()
    }
