"""The explorer in a notebook: `from posenc.explorer.notebook import show`."""

from __future__ import annotations

import html
from typing import Any

from posenc.support.languages import Language, default_language

HEIGHT = 900  # pixels
ALLOWED = "allow-scripts allow-popups allow-downloads"


def show(address: str = "", language: Language | None = None) -> Any:
    """The explorer as a cell's output. `address` is the part of a permalink after #/.

        show("rotary_pair")      show("table?length=30&d_model=20")      show(language="zh")

        page = show("table")
        page.value               # {"view": "table", "length": 50, …, "p": 2}: what the page shows now
        page.address             # "/table?p=7": a link to it; setting it moves the page

    With anywidget (the extra notebook) numbers come from this kernel; without it, the exported page is shown
    in a frame, with the numbers it contains and without `value`. Raises ValueError for an unknown view.
    """
    spoken = language or default_language()
    try:
        from posenc.explorer.widget import Explorer
    except ModuleNotFoundError as error:
        if error.name not in ("anywidget", "traitlets"):
            raise
        return Frame(address, spoken)
    return Explorer(address, spoken)


class Frame:
    """The exported page in a sandboxed frame that may only run scripts, open links and save pictures."""

    def __init__(self, address: str, language: Language) -> None:
        from posenc.explorer import views
        from posenc.explorer.export import exported

        if name := address.split("?")[0]:
            views.view(name)
        self.page = exported(address=address, language=language)

    def _repr_html_(self) -> str:
        return (
            f'<iframe title="posenc" sandbox="{ALLOWED}" srcdoc="{html.escape(self.page)}" '
            f'style="width: 100%; height: {HEIGHT}px; border: 0"></iframe>'
        )
