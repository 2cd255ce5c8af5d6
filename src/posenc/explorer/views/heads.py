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

ORDER = 144
OPENING = "这部电影很无聊，但演员表演精彩。"  # here positions decide between 0 % and 100 %, as in the English one
IN_ENGLISH = "The film is very boring, but the actors' acting is brilliant."
SENTENCES = (OPENING, IN_ENGLISH, "The red car is parked outside the building.")
MORE = (
    "演员表演精彩，但这部电影很无聊。",
    "The actors' acting is brilliant, but the film is very boring.",
    "The old bus is hidden behind the new school.",
)
WEIGHTS = ("weights_without", "weights_with", "chances_without", "chances_with")
TRAINING = ("attention", "linked", "right", "uniform")


class Parameters(Base):
    sentence: str = opening(OPENING, IN_ENGLISH)
    encoding: Literal["rope", "sinusoidal", "alibi"] = "rope"


EXPORTED = (
    *(Parameters(sentence=sentence, encoding=name) for sentence in SENTENCES for name in ("rope", "sinusoidal", "alibi")),
    *(Parameters(sentence=sentence) for sentence in MORE),
)


def data(params: Parameters) -> Data:
    task, words = trained_words.split(params.sentence)
    python = _python(params)
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


def _python(params: Parameters) -> str:
    return f"""import numpy as np
from posenc.explorer import trained_words  # posenc lab run words; python -m posenc.explorer.train_words

task, words = trained_words.split({params.sentence!r})
without = trained_words.load(task, "nope").read(words)
with_ = trained_words.load(task, "{params.encoding}").read(words)
weights_without, weights_with = without.weights, with_.weights  # [layer, head, query, key]
chances_without, chances_with = without.chances, with_.chances

# held-out sentences while training: attention by distance, to linked words, and the share that is all right
record = trained_words.record()
models = [f"{{task}}.nope", f"{{task}}.{params.encoding}"]
attention = np.stack([record[f"{{name}}.attention"] for name in models])
linked = np.stack([record[f"{{name}}.linked"] for name in models])
right = np.stack([record[f"{{name}}.right"] for name in models])
uniform = record[f"{{task}}.uniform"]"""
