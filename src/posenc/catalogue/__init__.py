"""Every encoding by name: what it is, who uses it, what it costs, which one to choose.

posenc.catalogue.names(), posenc.catalogue.look_up("rotary")

entry.py         what is known of one encoding, at the end of its own file
page.py          what readers are told of it, in NAME.md beside that file
lookup.py        the names: create, names, positions_by, look_up
index.py         which entries a word may mean, ranked
arguments.py     what other libraries call an argument
papers.json      titles of papers, by their arXiv numbers: words of the index
methods.toml     groups of methods, and what posenc does not have yet
measured.py      what the lab measured of them
choose/          which one to take, and why
commands/        list, choose
"""

from typing import TYPE_CHECKING

from posenc.support.lazy import public

if TYPE_CHECKING:
    from posenc.catalogue.lookup import BY_NAME as BY_NAME
    from posenc.catalogue.lookup import ENTRIES as ENTRIES
    from posenc.catalogue.lookup import FOUNDATION as FOUNDATION
    from posenc.catalogue.lookup import create as create
    from posenc.catalogue.lookup import entries_in as entries_in
    from posenc.catalogue.lookup import look_up as look_up
    from posenc.catalogue.lookup import names as names
    from posenc.catalogue.lookup import position_names as position_names
    from posenc.catalogue.lookup import positions_by as positions_by

_PUBLIC = ("BY_NAME", "ENTRIES", "FOUNDATION", "create", "entries_in", "look_up", "names", "position_names", "positions_by")
__getattr__, __dir__ = public(__name__, dict.fromkeys(_PUBLIC, "lookup"))
