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
from posenc.catalogue.lookup import BY_NAME, arguments_of, directed, names
from posenc.explorer.data import Data, run
from posenc.explorer.parameters import Parameters as Base
from posenc.explorer.parameters import Refused, encodings, only
from posenc.explorer.say import say
from posenc.explorer.sentences import opening, words_of
from posenc.explorer.template import program
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


EXPORTED = tuple(
    Parameters(sentence=sentence, encoding=name, causal="causal" in BY_NAME[name].needs)
    for sentence in ("猫 吃 鱼", "cat eats fish")
    for name in ("floater", "xpos", "cope")
)


class Case(NamedTuple):
    """The part of the program that makes x [t, m] and w_q, w_k, w_v [h, m, d]."""

    words: tuple[str, ...]
    d_model: int
    d_head: int
    part: str


# The translations word by word have the same numbers.
CASES = {
    words: Case(words, d_model, d_head, part)
    for chinese, english, d_model, d_head, part in (
        (walk.CAT_EATS_FISH, "cat eats fish", 4, 4, "cat_eats_fish"),
        (walk.I_LIKE_CATS, "I like cats", 3, 3, "i_like_cats"),
        (("我", "爱", "你"), "I love you", 6, 4, "i_love_you"),
        (walk.AI_IS_GROWING, "Artificial intelligence is rapidly growing", 5, 4, "ai_is_growing"),
    )
    for words in (tuple(chinese), tuple(english.split()))
}


def case_of(sentence: str) -> Case:
    """The worked example that reads so, else one with random numbers."""
    words = words_of(sentence)
    return CASES.get(words, Case(words, 4, 4, "typed"))


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
    python = _program(params, case, options, _acts(encoding, params, case), causal)
    variables = run(python)
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
    return Data({name: variables[name] for name in ARRAYS if name in variables}, python, facts)


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
    added = "EMBED" in acts and not turns_embeddings(posenc.create(params.encoding, **options))
    query, key = ("q_hat", "k_hat") if "ROTATE" in acts else ("q", "k")
    parts = [
        "causal" if causal else "all",
        "added" if added else "",
        "" if "BIAS" in acts else "unbiased",
        "finish" if {"CONTEXT", "WEIGHTS", "VALUE"} & set(acts) else "softmax",
    ]
    return program(
        __file__,
        *(case.part, *parts, *acts, params.encoding),
        t=len(case.words),
        h=params.n_heads,
        m=case.d_model,
        d=case.d_head,
        words=case.words,
        query=query,
        key=key,
        masks=causal,
        requested=requested(params.encoding, len(case.words)),
        create=", ".join([f'"{params.encoding}"', *(f"{name}={value!r}" for name, value in options.items())]),
    )


def _printed(params: Parameters, case: Case, variables: dict[str, Any]) -> dict[str, list[list[tuple[str, str]]]]:
    """The numbers that note 004 prints for this example, each with whether it is correct."""
    printed: dict[str, walk.Printed] = {}
    if case.part == "cat_eats_fish" and params.encoding == "sinusoidal" and params.base == 100:
        printed = {"position": walk.PRINTED_TABLE, "embedded": walk.PRINTED_SUMS}
    elif case.part == "i_like_cats" and params.encoding == "nope":
        printed = {"q": walk.PRINTED_Q}
    return {
        name: [
            [(digits, compare(digits, float(value))) for digits, value in zip(*row, strict=True)]
            for row in zip(rows, variables[name].reshape(-1, len(rows[0]))[: len(rows)], strict=True)
        ]
        for name, rows in printed.items()
    }
