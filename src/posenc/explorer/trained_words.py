"""Small models of three tasks of words, trained with and without positions, and what their heads learned on the way.

    posenc lab run words                   trains and scores them (posenc/lab/presets/words.yaml)
    python -m posenc.explorer.train_words  trains the same ones in two minutes on one core and writes trained_words.npz

    descriptions   Chinese sentences: the adjective of every noun and the noun of every adjective; bidirectional
    reviews        the same in English
    translation    English sentences and their translation into Chinese, word by word; causal

    TASK.ENCODING.parameter …     float16       the weights after training
    ….attention    [snapshot, layer, head, distance]   mean probability at query − key = 1-t … t-1, held-out sentences
    ….linked       [snapshot, layer, head, link]       mean probability of the word that belongs to it; `LINKS`
    ….right        [snapshot]                          share of held-out sentences whose words are all right
    TASK.uniform   [link]                              the same probability if attention were uniform

The command needs the extra lab; reading needs only the library.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from posenc.attention.backends.reference import probabilities
from posenc.catalogue.lookup import create, directed
from posenc.encoding import PositionalEncoding
from posenc.explorer import recorded
from posenc.explorer.parameters import Refused
from posenc.explorer.say import say
from posenc.explorer.sentences import short
from posenc.positions import Positions
from posenc.structure import rotated

if TYPE_CHECKING:
    from numpy import ndarray as Array

    from posenc.support.shapes import Float

FILE = Path(__file__).parent / "trained_words.npz"
TaskName = Literal["descriptions", "reviews", "translation"]
Encoding = Literal["rope", "sinusoidal", "alibi", "nope"]
STEPS = (0, 20, 50, 100, 150, 200, 300, 500, 800)
LINKS: dict[TaskName, tuple[str, ...]] = {
    "descriptions": ("to_noun", "to_adjective"),
    "reviews": ("to_noun", "to_adjective"),
    "translation": ("to_translated",),
}
MOST_WORDS = 24
FULL_STOPS: dict[TaskName, str] = {"descriptions": "。", "reviews": ".", "translation": "."}
SAME = str.maketrans({",": "，", "!": "。", "！": "。"})  # in a Chinese sentence


def record() -> dict[str, Array]:
    """The arrays by name. Do not change them in place."""
    return recorded.arrays(FILE)


def about() -> dict[str, Any]:
    """Settings, vocabularies and provenance of the record."""
    return recorded.about(FILE)


# Words ----------------------------------------------------------------------------------------------------------------


class Sentence(NamedTuple):
    task: TaskName
    words: tuple[str, ...]


def split(text: str) -> Sentence:
    """The words of a sentence, and the task of the models that know most of them.

    A sentence with Chinese characters is cut from the left into the longest words of the vocabulary, with the characters
    between them as words that the models do not know; an English one at spaces and punctuation. English goes to the
    models that know most of its words, to `reviews` where both know as many. A missing stop at the end is added. Raises
    Refused where the models know no word, and for too many or too long words.
    """
    task, words = _chinese(text) if re.search("[\u3000-\u9fff]", text) else _english(text)
    stop = FULL_STOPS[task]
    words = (*words, stop) if not words or words[-1] != stop else words
    if len(words) > MOST_WORDS:
        message = say("sentence: expected at most {most} words, got {count}", most=MOST_WORDS, count=len(words))
        raise Refused(message)
    if not any(word[0].isalpha() and word in _known(task) for word in words):
        raise Refused(say("sentence: the models know none of these words; choose an example"))
    if len(words) < 3:
        message = say("sentence: expected at least two words and a stop, got {words!r}", words=" ".join(words))
        raise Refused(message)
    return Sentence(task, short(words))


def _known(task: TaskName) -> list[str]:
    known: list[str] = about()["tasks"][task]["vocabulary"]
    return [word for word in known if task != "translation" or word.isascii()]


def _chinese(text: str) -> tuple[TaskName, tuple[str, ...]]:
    known = sorted(_known("descriptions"), key=len, reverse=True)
    cut = re.split(f"({'|'.join(map(re.escape, known))})", "".join(text.translate(SAME).replace(".", "。").split()))
    return "descriptions", tuple(filter(None, cut))


def _english(text: str) -> tuple[TaskName, tuple[str, ...]]:
    words = re.findall(r"[\w'-]+|[^\w\s]", text.lower().replace("’", "'").replace("!", "."))
    tasks: tuple[TaskName, ...] = ("reviews", "translation")
    return max(tasks, key=lambda task: sum(word in _known(task) for word in words)), tuple(words)


# Models ---------------------------------------------------------------------------------------------------------------


class Read(NamedTuple):
    """What a model does with a sentence. `words` of a translation are the sentence, an arrow and the translation.

    weights   [layer, head, query, key]   attention probabilities
    answers   the word with the highest probability at every position
    chances   [t]                         that probability
    """

    words: tuple[str, ...]
    weights: Float[Tensor, "l h t t"]
    answers: tuple[str, ...]
    chances: Float[Tensor, "t"]


@dataclass(frozen=True)
class Model:
    """A trained model: the lab's Transformer (posenc.lab.trial.model), in fp64. An unknown word is a vector of zeros."""

    task: TaskName
    encoding: PositionalEncoding
    vocabulary: tuple[str, ...]
    weights: Mapping[str, Tensor]
    n_heads: int
    n_layers: int

    def read(self, words: tuple[str, ...]) -> Read:
        """Reads a sentence; translates it word by word, always taking the most probable one."""
        if self.task == "translation":
            words = (*words, "→")
            while words[-1] != "。" and len(words) < 2 * MOST_WORDS:
                words = (*words, self._look(words).answers[-1])
        return self._look(words)

    @torch.no_grad()
    def _look(self, words: tuple[str, ...]) -> Read:
        table, at, seen = self.weights["embedding.weight"], Positions.arange(1, len(words)), list[Tensor]()
        blank = torch.zeros_like(table[0])
        known = dict(zip(self.vocabulary, table, strict=True))
        x = torch.stack([known.get(word, blank) for word in words])[None]
        for n in range(self.n_layers):
            here = self.encoding.at_layer(n)
            layer = {name.split(".", 2)[2]: w for name, w in self.weights.items() if name.startswith(f"layers.{n}.")}
            x = here.embed(x, at)
            hidden = F.rms_norm(x, x.shape[-1:], layer["before_attention.gain"])
            q, k, v = (hidden @ layer["qkv.weight"].T).unflatten(-1, (3, self.n_heads, -1)).permute(2, 0, 3, 1, 4)
            q, k = rotated(here, q, k, at, at)
            seen.append(probabilities(q, k, here, at, at, self.task == "translation")[0])
            x = x + (seen[-1] @ v).transpose(1, 2).flatten(-2) @ layer["out.weight"].T
            wide = F.gelu(F.rms_norm(x, x.shape[-1:], layer["before_mlp.gain"]) @ layer["up.weight"].T)
            x = x + wide @ layer["down.weight"].T
        logits = F.rms_norm(x, x.shape[-1:], self.weights["last_norm.gain"]) @ self.weights["head.weight"].T
        chances, best = logits[0].softmax(-1).max(-1)
        return Read(words, torch.stack(seen), tuple(self.vocabulary[n] for n in best.tolist()), chances)


@cache
def load(task: TaskName, encoding: Encoding) -> Model:
    """The trained model of a task with an encoding."""
    size, start = about()["size"], f"{task}.{encoding}."
    weights = {
        name.removeprefix(start): torch.from_numpy(array).double()
        for name, array in record().items()
        if name.startswith(start) and array.dtype == np.float16
    }
    positional = create(
        encoding, d_model=size["d_model"], n_heads=size["n_heads"], **directed(encoding, task == "translation")
    )
    vocabulary = tuple(about()["tasks"][task]["vocabulary"])
    return Model(task, positional, vocabulary, weights, size["n_heads"], size["n_layers"])
