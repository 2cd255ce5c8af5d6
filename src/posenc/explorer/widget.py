"""The explorer as a notebook widget; the notebook's kernel computes the numbers."""

from __future__ import annotations

from typing import Any

import anywidget
import traitlets

from posenc.explorer import views
from posenc.explorer.data import pack
from posenc.explorer.parameters import Refused
from posenc.support.page_file import script


class Explorer(anywidget.AnyWidget):
    """The widget. `address` is the part of a permalink after #/, such as "table?length=30&p=3"; empty for the start page.

    `value` is what the page shows: {"view": "table", "length": 30, …, "p": 3}, with every parameter and cursor of the
    view; empty until it is drawn. `address` follows the page as a link does, and the page follows it when it is set.

    Raises Refused, a ValueError, for an unknown view.
    """

    _esm = script("explorer")
    about = traitlets.Dict().tag(sync=True)
    address = traitlets.Unicode().tag(sync=True)
    value = traitlets.Dict().tag(sync=True)
    language = traitlets.Enum(("en", "zh"), "en").tag(sync=True)

    def __init__(self, address: str = "", language: str = "en") -> None:
        about = views.known()
        super().__init__(about=about, address=address, language=language)
        self.on_msg(self._answer)

    @traitlets.validate("address")
    def _known(self, proposal: Any) -> str:
        address = "/" + str(proposal["value"]).removeprefix("#").lstrip("/")
        if name := address[1:].split("?")[0]:
            views.view(name)
        return address

    def _answer(self, _: Any, request: dict[str, Any], files: list[Any]) -> None:
        """{"id", "view", "parameters"} -> {"id"} and packed arrays, or {"id", "error"}."""
        try:
            self.send({"id": request["id"]}, [pack(views.data(request["view"], request["parameters"]))])
        except Exception as error:  # shown in the page, because a cell shows no error of a callback
            more = {"words": error.words.as_dict()} if isinstance(error, Refused) else {}
            self.send({"id": request["id"], "error": str(error) or type(error).__name__, **more})
