"""Attention in eight steps with every matrix: words, x, q k v, scores, mask, softmax, weights·v, output.

The program that the page prints is the one that runs here. Given numbers have one decimal, so sums can be checked by
hand. Three sentences are from the founding notes (posenc.learn.walk): head 0 has their numbers, a second head others; so
have their translations. Any other sentence has random numbers, the same for the same word.
Legend: t tokens, h heads, d d_head, m d_model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import Field

import posenc
from posenc.attention.own_finish import own_finish
from posenc.catalogue.description import SEAMS, requested
from posenc.catalogue.lookup import BY_NAME, FOUNDATION, arguments_of, directed, names
from posenc.explorer.data import Data, run
from posenc.explorer.parameters import Parameters as Base
from posenc.explorer.parameters import Refused, encodings, only
from posenc.explorer.say import say
from posenc.explorer.sentences import opening, words_of
from posenc.learn import walk
from posenc.learn.notes import compare
from posenc.pictures.exported_tables import turns_embeddings

ORDER = 142

BOTH_WAYS = [name for name in names() if "causal" not in BY_NAME[name].needs]
WITH_BASE = [name for name in names() if "base" in arguments_of(name)]
if TYPE_CHECKING:
    Method = str
else:
    Method = encodings()


class Parameters(Base):
    sentence: str = opening("猫 吃 鱼", "cat eats fish")
    encoding: Method = "sinusoidal"
    n_heads: int = Field(default=1, ge=1, le=2)
    causal: bool = Field(default=False, json_schema_extra=only(encoding=BOTH_WAYS))
    base: float = Field(default=100.0, ge=2.0, le=10000.0, json_schema_extra=only(encoding=WITH_BASE))


EXPORTED = (
    *(
        Parameters(sentence=sentence, encoding=name, causal="causal" in BY_NAME[name].needs)
        for sentence in ("猫 吃 鱼", "cat eats fish")
        for name in dict.fromkeys(("sinusoidal", *FOUNDATION))
    ),
    Parameters(sentence="我 喜欢 猫", encoding="nope"),
    Parameters(sentence="人工 智能 正在 快速 发展", encoding="rope"),
    Parameters(sentence="我 爱 你", n_heads=2, causal=True),
)


class Case(NamedTuple):
    """`lines` make x [t, m] and w_q, w_k, w_v [h, m, d]."""

    words: tuple[str, ...]
    d_model: int
    d_head: int
    lines: str


PROJECTIONS = "w_q, w_k, w_v = (drawn({h}, {m}, {d}) for _ in range(3))"
CAT_EATS_FISH = f"""\
x = torch.tensor(posenc.learn.walk.EMBEDDINGS, dtype=torch.float64)  # of note 004
{PROJECTIONS}"""
I_LIKE_CATS = """\
x = torch.tensor(posenc.learn.walk.NINE, dtype=torch.float64)  # of note 004, and its three projections too
w_q = w_k = w_v = torch.stack([x, *drawn({h} - 1, {m}, {d})])"""
I_LOVE_YOU = f"""\
x = drawn(3, {{m}})
{PROJECTIONS}"""
AI_IS_GROWING = f"""\
x = torch.eye(5, dtype=torch.float64)  # a channel for each word, so that a projection holds the words' own vectors
{PROJECTIONS}
w_q[0, 2] = torch.tensor(posenc.learn.walk.QUERY, dtype=torch.float64)
w_k[0] = torch.tensor(posenc.learn.walk.KEYS, dtype=torch.float64)
w_v[0, :, :2] = torch.tensor(posenc.learn.walk.VALUES, dtype=torch.float64)"""
TYPED = f"""\
vectors = posenc.measures.order.word_vectors({{words}}, {{m}})  # random, the same for the same word
x = vectors.mul(7).round() / 10
{PROJECTIONS}"""
# The translations word by word have the same numbers.
CASES = {
    words: Case(words, d_model, d_head, lines)
    for chinese, english, d_model, d_head, lines in (
        (walk.CAT_EATS_FISH, "cat eats fish", 4, 4, CAT_EATS_FISH),
        (walk.I_LIKE_CATS, "I like cats", 3, 3, I_LIKE_CATS),
        (("我", "爱", "你"), "I love you", 6, 4, I_LOVE_YOU),
        (walk.AI_IS_GROWING, "Artificial intelligence is rapidly growing", 5, 4, AI_IS_GROWING),
    )
    for words in (tuple(chinese), tuple(english.split()))
}


def case_of(sentence: str) -> Case:
    """The worked example that reads so, else one with random numbers."""
    words = words_of(sentence)
    return CASES.get(words, Case(words, 4, 4, TYPED))


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


def data(params: Parameters) -> Data:
    case = case_of(params.sentence)
    entry = BY_NAME[params.encoding]
    if case.d_head % 2 and entry.kind == "rotated" and "rotary_dim" not in arguments_of(entry.name):
        message = say(
            "{name} rotates channels in pairs, and this example has {d_head}", name=entry.title, d_head=case.d_head
        )
        raise Refused(message)
    options = _options(params, case)
    encoding = posenc.create(params.encoding, **options)
    causal = params.causal or "causal_only" in encoding.traits
    program = _program(params, case, options, _acts(encoding, params, case), causal)
    variables = run(program)
    facts = {
        "words": case.words,
        "d_head": case.d_head,
        "encoding": params.encoding,
        "formula": entry.formula,
        "base": params.base,
        "n_heads": params.n_heads,
        "sites": _acts(encoding, params, case),
        "causal": causal,
        "printed": _printed(params, case, variables),
        "difference": float((variables["out"] - variables["library"]).abs().max()),
    }
    return Data({name: variables[name] for name in ARRAYS if name in variables}, program, facts)


def _acts(encoding: posenc.PositionalEncoding, params: Parameters, case: Case) -> list[str]:
    """Where the encoding acts, in capitals: its seams, and what its own finish does."""
    finish = own_finish(encoding, params.n_heads, case.d_head)
    seams = [seam.upper() for seam in SEAMS if seam in encoding.seams and seam != "finish"]
    return seams if finish is None else [*seams, finish.upper()]


def _options(params: Parameters, case: Case) -> dict[str, Any]:
    """The arguments of posenc.create: sizes, and tables small enough to be shown."""
    entry, t, m, d = BY_NAME[params.encoding], len(case.words), case.d_model, case.d_head
    options = {
        "d_model": m if entry.kind == "added" else m + m % 2,
        "n_heads": params.n_heads,
        "d_head": d,
        "base": params.base,
        "max_positions": t,
        "n_positions": t + 1,
        "rotary_dim": d - d % 2,
        **entry.small,
        **directed(entry.name, params.causal),
    }
    return {name: value for name, value in options.items() if name in arguments_of(entry.name)}


def _program(params: Parameters, case: Case, options: dict[str, Any], acts: list[str], causal: bool) -> str:
    sizes = {"t": len(case.words), "h": params.n_heads, "m": case.d_model, "d": case.d_head, "words": case.words}
    create = ", ".join([f'"{params.encoding}"', *(f"{name}={value!r}" for name, value in options.items())])
    allowed = "torch.ones(1, 1, {t}, {t}).bool()".format(**sizes)
    lines = [
        f"""\
import torch
import posenc

random = torch.Generator().manual_seed(0)

def drawn(*shape):
    return torch.randn(shape, generator=random, dtype=torch.float64).mul(7).round() / 10  # one decimal

{case.lines.format(**sizes)}
encoding = posenc.create({create}){requested(params.encoding, len(case.words))}.double().requires_grad_(False)
for parameter in encoding.parameters():
    parameter.copy_(drawn(*parameter.shape))  # instead of trained numbers
at = posenc.Positions.arange(1, {sizes["t"]})
may_attend = {allowed.replace(".bool()", ".tril().bool()") if causal else allowed}
"""
    ]
    if "EMBED" in acts and not turns_embeddings(posenc.create(params.encoding, **options)):
        lines += ["position = encoding.embed(torch.zeros_like(x)[None], at)[0]"]
    lines += ["embedded = encoding.embed(x[None], at)[0]"]
    lines += ["q, k, v = embedded @ w_q, embedded @ w_k, embedded @ w_v"]
    turned = "q, k"
    if "ROTATE" in acts:
        turned = "q_hat, k_hat"
        lines += ['q_hat, k_hat = encoding.rotate(q[None], at, "query")[0], encoding.rotate(k[None], at, "key")[0]']
    query, key = turned.split(", ")
    lines += [f"products = {query} @ {key}.mT * encoding.softmax_scale({case.d_head})"]
    if "BIAS" in acts:
        lines += [
            f"bias = encoding.bias({query}[None], {key}[None], at, at)",
            'added = bias(*torch.meshgrid(*map(torch.arange, (1, *products.shape)), indexing="ij"))[0]',
            "scores = products + added",
        ]
    else:
        lines += ["scores = products"]
    finishes = {"CONTEXT", "WEIGHTS", "VALUE"} & set(acts)
    if finishes:
        lines += [
            f"state = posenc.Scores(scores[None], {query}[None], v[None], at, at, may_attend)",
            "attended = encoding.finish(state)[0]",
        ]
    if "CONTEXT" in acts:
        lines += ["scores = state.kept['logits'][0]", "added = scores - products"]
    lines += [
        "masked = scores.masked_fill(~may_attend[0], -torch.inf)",
        "weights = state.kept['weights'][0]" if finishes else "weights = masked.softmax(-1)",
        "mixed = weights @ v",
    ]
    if "VALUE" in acts:
        lines += ["value_added = attended - mixed"]
    elif not finishes:
        lines += ["attended = mixed"]
    lines += [
        "out = attended.transpose(0, 1).flatten(1)  # the heads side by side",
        "",
        f"library = posenc.attend(q[None], k[None], v[None], encoding, at, causal={causal})[0].transpose(0, 1).flatten(1)",
        f'blind = posenc.attend(*((x @ w)[None] for w in (w_q, w_k, w_v)), posenc.create("nope"), at, causal={causal})',
        "blind = blind[0].transpose(0, 1).flatten(1)  # without position",
        "changed = out - blind",
    ]
    if params.encoding in OWN_LINES:
        lines += [OWN_LINES[params.encoding].format(**sizes)]
    return "\n".join(lines)


def _printed(params: Parameters, case: Case, variables: dict[str, Any]) -> dict[str, list[list[tuple[str, str]]]]:
    """The numbers that note 004 prints for this example, each with whether it is correct."""
    printed: dict[str, walk.Printed] = {}
    if case.lines == CAT_EATS_FISH and params.encoding == "sinusoidal" and params.base == 100:
        printed = {"position": walk.PRINTED_TABLE, "embedded": walk.PRINTED_SUMS}
    elif case.lines == I_LIKE_CATS and params.encoding == "nope":
        printed = {"q": walk.PRINTED_Q}
    return {
        name: [
            [(digits, compare(digits, float(value))) for digits, value in zip(*row, strict=True)]
            for row in zip(rows, variables[name].reshape(-1, len(rows[0]))[: len(rows)], strict=True)
        ]
        for name, rows in printed.items()
    }
