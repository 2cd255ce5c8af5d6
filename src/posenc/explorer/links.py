"""What follows #/ in the page's address: a view, or what best shows an encoding, at a position.

address("rope", 7)  ->  "rotary_pair?m=7"
view_of_link("rotary_pair?m=7&base=10000")  ->  ("rotary_pair", {"base": 10000.0})     m is the page's own
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl

from posenc.catalogue import lookup
from posenc.explorer import views
from posenc.explorer.parameters import Refused, one_of
from posenc.explorer.say import say
from posenc.learn.ledger import CLAIMS, ROWS

YES = {"true": True, "false": False}  # as addresses write them

# The views made for single encodings. The others are compared with attention without positions, or have only their page
# where they do not encode words in a row.
SHOWN_BY = {
    "sinusoidal": "table",
    "rope": "rotary_pair",
    "alibi": "bias?method=alibi",
    "t5": "bias?method=t5",
    "shaw": "bias?method=shaw",
}


def address(name: str = "", position: int | None = None) -> str:
    """The address of a view, an encoding or a row of the notes; "" is the start page. Of a link, what follows #/ is it.

    Raises Refused for an unknown name, and for a position where the view has none.
    """
    target = _view(name.rpartition("#/")[2])
    if position is None:
        return target
    view = target.split("?")[0]
    parameter = getattr(views.view(view), "POSITION", None) if view else None
    if parameter is None:
        places = [page for page in views.PAGES if hasattr(views.view(page), "POSITION")]
        raise Refused(f"--position: {view or 'the start page'} shows no single position; these do: {', '.join(places)}")
    return f"{target}{'&' if '?' in target else '?'}{parameter}={position}"


def view_of_link(link: str) -> tuple[str, dict[str, Any]]:
    """The view of what follows #/, and those of its parameters that Python knows, as the page would send them.

    Raises Refused for a number that is none. What only the page knows, such as a cursor, is left out.
    """
    name, _, query = (ROWS[link].view if link in ROWS else link).partition("?")
    known = views.schemas().get(name or "story", {})
    texts = {key: text for key, text in parse_qsl(query, keep_blank_values=True) if key in known}
    return name or "story", {key: _valued(key, text, str(known[key]["kind"])) for key, text in texts.items()}


def _valued(name: str, text: str, kind: str) -> Any:
    kinds: dict[str, Callable[[str], Any]] = {"integer": int, "number": float, "boolean": YES.__getitem__}
    try:
        return kinds.get(kind, str)(text)
    except (ValueError, KeyError):
        raise Refused(f"{name}: expected {kind}, got {text[:40]!r}") from None


def _view(name: str) -> str:
    view = name.split("?")[0]
    if view in ("", "story", "encoding") or view in views.PAGES or name in ROWS:
        return name
    if view == "audit":  # it was a view
        raise Refused(say("view: audit is a command now: posenc check TABLE"))
    if view == "true_or_false":  # it was one, too: its statements stand beside the rows
        asked = dict(parse_qsl(name.partition("?")[2])).get("claim")
        return CLAIMS[asked].row if asked in CLAIMS else "S1"
    if view in SHOWN_BY:
        return SHOWN_BY[view]
    entry = lookup.BY_NAME.get(view)
    if entry is None:
        raise Refused(
            f"{view!r} is no view, encoding, row of the notes or folder of results; a view is {one_of(views.PAGES, view)}, "
            f"posenc list --all has the encodings, posenc walk the rows"
        )
    return f"compare?first=nope&second={view}" if entry.in_a_row else f"encoding?name={view}"
