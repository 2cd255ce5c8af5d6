"""An encoding's page: what its entry says, an example, its options, and what it costs.

Links of the comparison lead there, and `posenc explore NAME` for an encoding that no view shows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from posenc.catalogue.description import NEEDS, SEAMS, SIZES, TRAITS, program
from posenc.catalogue.entry import KINDS, Entry
from posenc.catalogue.lookup import BY_NAME, ENTRIES
from posenc.catalogue.option_descriptions import options_of
from posenc.explorer.data import Data, run
from posenc.explorer.measured_table import conditions, cost_of
from posenc.explorer.parameters import Parameters as Base
from posenc.explorer.parameters import labelled
from posenc.support.languages import LANGUAGES, Words

if TYPE_CHECKING:
    Name = str
else:
    Name = labelled({entry.name: entry.label for entry in ENTRIES})

TAKEN = ("name", "formula", "idea", "axes", "also_called", "used_by", "source", "parameters_at")  # as `describe` says them


class Parameters(Base):
    name: Name = "rope"


EXPORTED = (Parameters(), *(Parameters(name=entry.name) for entry in ENTRIES if entry.name != "rope"))


def data(params: Parameters) -> Data:
    """What `describe` counts, and the entry's texts in both languages."""
    entry = BY_NAME[params.name]
    python = f"""from posenc.catalogue import BY_NAME
from posenc.catalogue.description import describe

described = describe(BY_NAME["{params.name}"])
parameters = described["parameters"]  # at {", ".join(f"{name} {size}" for name, size in SIZES.items())}"""
    variables = run(python)
    return Data({"parameters": variables["parameters"]}, python, facts(entry, variables["described"]))


def facts(entry: Entry, described: dict[str, Any]) -> dict[str, Any]:
    page = entry.page

    def words(keys: list[str], known: dict[Any, Words]) -> dict[str, list[str]]:
        return {language: [known[key].in_language(language) for key in keys] for language in LANGUAGES}

    return {
        **{name: described[name] for name in TAKEN},
        "title": entry.label.as_dict(),
        "published": described["published"][:4],
        "how": KINDS[entry.kind].as_dict(),
        "seams": words(described["seams"], SEAMS),
        "traits": words(described["traits"], TRAITS),
        "needs": words(described["needs"], NEEDS),
        "in_a_row": entry.in_a_row,
        "example": "\n".join(lines for lines in (program(described), page.example) if lines),
        "breaks": page.breaks.as_dict(),
        "differs": page.differs and page.differs.as_dict(),
        "code": page.code,
        "options": [
            {
                "name": name,
                "default": repr(described["options"][name]) if name in described["options"] else None,
                "means": meaning.as_dict(),
            }
            for name, meaning in options_of(entry).items()
        ],
        "costs": cost_of(entry.name),
        "conditions": conditions(),
    }
