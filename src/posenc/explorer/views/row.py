"""A row of the founding notes, S1 to S21, as the page shows it above the view that its address opens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from posenc.explorer.data import Data
from posenc.explorer.figures import FIGURES
from posenc.explorer.parameters import Parameters as Base
from posenc.explorer.parameters import labelled
from posenc.learn.ledger import ROWS, Claim

if TYPE_CHECKING:
    Name = str
else:
    Name = labelled({row.name: row.title for row in ROWS.values()})


class Parameters(Base):
    name: Name = "S1"


EXPORTED = tuple(Parameters(name=name) for name in ROWS)


def data(params: Parameters) -> Data:
    row = ROWS[params.name]
    python = f'from posenc.explorer.figures import FIGURES\n\nfigures = FIGURES["{row.name}"]()'
    facts = {
        "name": row.name,
        "title": row.title.as_dict(),
        "says": row.says.as_dict(),
        "notes": row.notes,
        "commands": list(dict.fromkeys((f"posenc walk {row.name}", row.command))),
        "figures": FIGURES[row.name]().as_dict(),
        "claims": list(map(_checked, row.claims)),
    }
    return Data({}, python, facts)


def _checked(claim: Claim) -> dict[str, object]:
    """A statement of the notes about this row, with the verdict and the value that are computed now."""
    evidence = claim.check()
    return {
        "id": claim.id,
        "words": claim.words.as_dict(),
        "verdict": evidence.verdict.words.as_dict(),
        "value": evidence.value.as_dict(),
    }
