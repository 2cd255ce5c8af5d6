"""The match model on the texts of the study: the row of results/study/README.md, bits a byte by window; about a minute.

python tools/context_gain.py
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from posenc.lab.tasks.text import held_out_windows
from posenc.lab.text.corpus import Corpus, read_corpus
from posenc.lab.text.match_model import Near, bits_by_window

WINDOWS = (128, 192, 256, 512, 1024, 2048)
COUNTED, FITTED = (8_000_000, 200)  # bytes of training documents that are counted; documents for the weights
HELD_OUT, TARGETS = 128, 64  # windows of the study, and bytes that are scored at the end of each


def of_study(text: Corpus) -> dict[int, float]:
    """Bits a byte by window, of the bytes that the study scores: near counts of the first training documents, weights of
    those after them.
    """
    ends = np.cumsum([len(document) for document in text.train])
    first = int(np.searchsorted(ends, COUNTED)) + 1
    rest = replace(text, train=(), held_out=text.train[first : first + FITTED])
    fit, scored = (held_out_windows(one, WINDOWS[-1] + 1, HELD_OUT).windows.numpy() for one in (rest, text))
    return bits_by_window(Near(text.train[:first]), fit, scored, TARGETS, WINDOWS)


def main() -> None:
    found = of_study(read_corpus(None, WINDOWS[-1] + 1, "prose_6000"))
    gain = found[WINDOWS[0]] - found[WINDOWS[-1]]
    print(" | ".join(["| match model", *(f"{bits:.3f}" for bits in found.values()), f"{gain:.3f} |"]))


if __name__ == "__main__":
    main()
