"""The page in a notebook's cell, its numbers from the notebook's own kernel."""

from __future__ import annotations

from typing import Any

import anywidget
import traitlets

import posenc
from posenc.explorer import views
from posenc.explorer.data import pack
from posenc.explorer.page_file import script


class Explorer(anywidget.AnyWidget):
    """`address` is what a permalink has after #/, such as "table?length=30&p=3"; empty for the start page.

    Raises Refused, a ValueError, for a view that there is none of.
    """

    _esm = script()
    about = traitlets.Dict().tag(sync=True)
    address = traitlets.Unicode().tag(sync=True)
    language = traitlets.Enum(("en", "zh"), "en").tag(sync=True)

    def __init__(self, address: str = "", language: str = "en") -> None:
        if name := address.split("?")[0]:
            views.view(name)
        about = {"version": posenc.__version__, "schemas": views.schemas()}
        super().__init__(about=about, address=f"/{address}", language=language)
        self.on_msg(self._answer)

    def _answer(self, _: Any, asked: dict[str, Any], files: list[Any]) -> None:
        """{"id", "view", "parameters"} or {"id", "upload"} and a file -> {"id"} and packed arrays, or {"id", "error"}."""
        try:
            found = (
                views.uploaded(asked["upload"], bytes(files[0]))
                if "upload" in asked
                else views.data(asked["view"], asked["parameters"])
            )
            self.send({"id": asked["id"]}, [pack(found)])
        except Exception as error:  # said in the page: a cell has no other place for it
            self.send({"id": asked["id"], "error": str(error) or type(error).__name__})
