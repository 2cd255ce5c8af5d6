"""The table of laws: each has one name and one sentence, whatever it is tried on.

`rows` says on what: encodings (`posenc.laws`), callables by their seam (`posenc.check`), and models, once
`posenc.transformers` is imported. How a law is measured stands where it is measured, under the same name.
"""

from __future__ import annotations

from typing import get_args

from posenc.checking.engine import LAWS
from posenc.checking.say import say
from posenc.checking.subject import Seam
from posenc.support.data_files import beside
from posenc.support.languages import Words

KINDS = (*get_args(Seam), "cache", "encoding", "model")
SENTENCES: dict[str, Words] = beside(__file__, say)["laws"]


def rows() -> list[tuple[str, list[str], Words]]:
    """(name, what it is tried on, sentence) of every law that is tried on anything, in the order of the table."""
    tried = {name: [kind for kind in KINDS if name in LAWS.get(kind, {})] for name in SENTENCES}
    return [(name, kinds, SENTENCES[name]) for name, kinds in tried.items() if kinds]
