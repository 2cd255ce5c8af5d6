"""Exports the page and the numbers named by EXPORTED in each view as one file. The file needs no server."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Callable
from typing import Any

from posenc.explorer import views
from posenc.explorer.data import pack
from posenc.explorer.page_file import POLICY, digest, document, inline, script
from posenc.support.languages import Language


def exported(
    advance: Callable[[int, int], None] = lambda done, of: None, address: str = "", language: Language | None = None
) -> str:
    """The text of the file. `advance` is called with the number of finished answers and their total.

    The page opens at `address`, unless its URL has another, and in `language`, unless the reader chose another.
    """
    asked = [(name, one) for name in views.NAMES for one in views.view(name).EXPORTED]
    answers: list[dict[str, Any]] = []
    for name, one in asked:
        packed = gzip.compress(pack(views.view(name).data(one)), mtime=0)
        answers.append({"view": name, "parameters": one.model_dump(), "packed": base64.b64encode(packed).decode()})
        advance(len(answers), len(asked))
    about = {**views.known(), "live": False, "answers": answers, "address": address, "language": language}
    code = inline(script())
    policy = POLICY.format(script=digest(code), connect="'none'", more="")
    return document(about, f'<script type="module">{code}</script>', policy)
