"""What the heads of small trained models attend to, with and without positions, in a sentence that the reader may type.

A sentence goes to the models that know its words: two kinds say who describes whom, in Chinese and in English; one kind
translates English into Chinese (posenc.explorer.trained_words).
Legend: l layers, h heads, i query, j key, s snapshots of the training, n kinds of links.
"""

from __future__ import annotations

from typing import Literal

from posenc.explorer import trained_words
from posenc.explorer.data import Data, run
from posenc.explorer.parameters import Parameters as Base
from posenc.explorer.sentences import opening
from posenc.explorer.template import program

ORDER = 144
OPENING = "这部电影很无聊，但演员表演精彩。"  # here positions decide between 0 % and 100 %, as in the English one
IN_ENGLISH = "The film is very boring, but the actors' acting is brilliant."
WEIGHTS = ("weights_without", "weights_with", "chances_without", "chances_with")
TRAINING = ("attention", "linked", "right", "uniform")


class Parameters(Base):
    sentence: str = opening(OPENING, IN_ENGLISH)
    encoding: Literal["rope", "sinusoidal", "alibi"] = "rope"


def data(params: Parameters) -> Data:
    task, words = trained_words.split(params.sentence)
    python = program(__file__, sentence=repr(params.sentence), encoding=params.encoding)
    variables = run(python)
    about = trained_words.about()
    facts = {
        "task": task,
        "unknown": sorted({*words} - {*about["tasks"][task]["vocabulary"]}),
        "reads": [{"words": variables[name].words, "answers": variables[name].answers} for name in ("without", "with_")],
        "links": trained_words.LINKS[task],
        "asked": about["tasks"][task]["asked"],
        "vocabulary": about["tasks"][task]["vocabulary"],
        "training": about["tasks"][task]["training"],
        "held_out": about["tasks"][task]["settings"]["held_out"],
        "date": about["tasks"][task]["date"],
        **{name: about[name] for name in ("steps", "size", "seed", "preset")},
    }
    return Data({name: variables[name] for name in (*WEIGHTS, *TRAINING)}, python, facts)
