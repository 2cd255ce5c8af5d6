"""Exports the page as one file that needs no server, with the numbers that EXPORTED names in views that it cannot compute.

What the address that it opens at asks for is in it too, and so is the address's sentence in every view that takes it. The
page computes from RECORDS, which the file holds as they are.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable
from pathlib import Path

import posenc
from posenc.explorer import views
from posenc.explorer.data import Data
from posenc.explorer.links import view_of_link
from posenc.explorer.packed import LOADER, element, together
from posenc.explorer.parameters import Parameters, Refused, parse
from posenc.support.languages import Language
from posenc.support.page_file import POLICY, digest, document, script

PACKAGE = Path(posenc.__file__).parent
RECORDS = ("catalogue/measured.json", "explorer/trained_words.npz", "explorer/stretch.npz")


def exported(
    advance: Callable[[int, int], None] = lambda done, of: None, address: str = "", language: Language | None = None
) -> str:
    """The text of the file. `advance` is called with the number of finished answers and their total.

    The page opens at `address`, unless its URL has another, and in `language`, unless the reader chose another. Raises
    Refused if `address` asks for what a view refuses.
    """
    typed = {asked: data for asked, data in _typed(address).items() if views.exported(asked[0])}
    requests = dict.fromkeys([*((name, p) for name in views.NAMES for p in views.exported(name)), *typed])
    answers: dict[str, list[tuple[Parameters, Data]]] = {}
    for done, (name, parameters) in enumerate(requests, 1):
        data = typed.get((name, parameters)) or views.view(name).data(parameters)
        answers.setdefault(name, []).append((parameters, data))
        advance(done, len(requests))
    stored = {name: [parameters.model_dump() for parameters, _ in held] for name, held in answers.items()}
    about = {**views.known(), "live": False, "stored": stored, "address": address, "language": language}
    code = script("explorer")
    parts = [
        element("about", json.dumps(about, ensure_ascii=False, allow_nan=False).encode()),
        element("page", code.encode()),
        f"<script>{LOADER}</script>",  # before what the first drawing does not need
        *(element(f"answers/{name}", together(data for _, data in answers[name])) for name in sorted(answers, key=_later)),
        *(element(name, (PACKAGE / name).read_bytes()) for name in RECORDS),
    ]
    policy = POLICY.format(script=f"{digest(LOADER)} {digest(code)}", connect="'none'", more="")
    return document("\n".join(parts), policy)


def _later(view: str) -> bool:
    return view != "story"


def encoded(text: str) -> bytes:
    """The file's bytes (packed.py says why in UTF-16)."""
    return codecs.BOM_UTF16_LE + text.encode("utf-16-le")


def _typed(address: str) -> dict[tuple[str, Parameters], Data]:
    """What an address asks for, as pages of both languages do; and its sentence, in the other views that take it.

    Raises Refused if its view refuses it, before all other views are computed.
    """
    answers: dict[tuple[str, Parameters], Data] = {}
    if not address:
        return answers
    view, parameters = view_of_link(address)
    for name, opening in views.schemas().items():
        if name != view and not ("sentence" in parameters and "sentence" in opening):
            continue
        of_view = parameters if name == view else {"sentence": parameters["sentence"]}
        english = {key: about["in_english"] for key, about in opening.items() if "in_english" in about}
        for defaults in ({}, english) if english else ({},):
            try:
                parsed = parse(views.view(name).Parameters, {**defaults, **of_view})
                answers[name, parsed] = views.data(name, parsed.model_dump())
            except Refused:
                if name == view:
                    raise
    return answers
