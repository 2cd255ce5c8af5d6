"""Typed and bounded parameters of the views, which limit the size of each request.

The page makes its controls from the same bounds, which `schema` returns.
"""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal, get_args

from posenc.support.extras import missing

try:
    from pydantic import BaseModel, ConfigDict, Field, ValidationError
except ModuleNotFoundError as error:
    raise missing(error.name or "pydantic", "explore", "the explorer") from None

from posenc.catalogue import lookup
from posenc.catalogue.entry import Entry
from posenc.explorer.say import say
from posenc.support.languages import Words

SHORT = reprlib.Repr()
SHORT.maxlevel, SHORT.maxstring, SHORT.maxlong = 2, 60, 60


class Parameters(BaseModel):
    """Base class of every view's parameters. Unknown names, strings for numbers and non-finite numbers are refused. The
    defaults are the first state of the view."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, strict=True)


class Refused(ValueError):
    """A refused request; the message says why. `words` has it in the reader's language, where it was given in both."""

    def __init__(self, message: str | Words) -> None:
        self.words = message if isinstance(message, Words) else Words(message)
        super().__init__(bilingual(self.words))


def bilingual(words: Words) -> str:
    """The sentence in both languages, for a message that does not know the reader's."""
    return " · ".join(dict.fromkeys(words.both()))


def parse(kind: type[Parameters], values: Any) -> Parameters:
    """The checked parameters. Raises Refused with the parameter's name, its value and what was expected."""
    if not isinstance(values, dict):
        raise Refused(f"expected a JSON object of parameters, got {_short(values)}")
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise Refused("; ".join(_said(kind, error) for error in error.errors()[:3])) from None


def _said(kind: type[Parameters], error: Any) -> str:
    name = ".".join(map(str, error["loc"])) or "parameters"
    if error["type"] == "extra_forbidden":
        return f"{_short(name)}: is not a parameter of this view; it takes {', '.join(kind.model_fields) or 'none'}"
    entry = lookup.BY_NAME.get(error["input"]) if isinstance(error["input"], str) else None
    if error["type"] == "literal_error" and entry is not None:
        why = entry.not_in_a_row or say("this view shows another kind of encoding")
        return f"{name}: {entry.name} cannot be shown here: {bilingual(why)}"
    if error["type"] == "literal_error":
        choices = get_args(kind.model_fields[error["loc"][0]].annotation)
        return f"{name}: expected {one_of(choices, error['input'])}, got {_short(error['input'])}"
    return f"{name}: {error['msg'].removeprefix('Value error, ')}, got {_short(error['input'])}"


def one_of(choices: Sequence[str], value: Any) -> str:
    """The choices, where they are few; of many, how many there are and the one that is nearest to the value."""
    if len(choices) < 9:
        return f"one of {', '.join(choices)}"
    near = difflib.get_close_matches(value, choices, 1) if isinstance(value, str) else []
    return f"one of {len(choices)} names such as {(near or choices)[0]}"


def _short(value: Any) -> str:
    """A short text for a value of any length and depth."""
    text = SHORT.repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def encodings(accepts: Callable[[Entry], bool] = lambda entry: True, **others: Words) -> Any:
    """The type of a parameter that names an encoding which the views can show and which `accepts` takes.

    The views show one layer of words in a row without a model's hidden states: not positions, presets of several layers,
    encodings of images and those that read hidden states. The foundation comes first, then the others in the catalogue's
    order. `others` are further values and their labels.
    """
    ordered = sorted(lookup.ENTRIES, key=lambda entry: entry.name not in lookup.FOUNDATION)
    return labelled({entry.name: entry.label for entry in ordered if entry.in_a_row and accepts(entry)} | others)


def labelled(called: dict[str, Words]) -> Any:
    """The type of a parameter that has one of these values; the page shows their labels."""
    extra: Any = {"called": {name: words.as_dict() for name, words in called.items()}}
    return Annotated[Literal[tuple(called)], Field(json_schema_extra=extra)]


def only(**values: list[str]) -> Any:
    """Marks a parameter that has an effect only for these values of another: json_schema_extra=only(method=["t5"])."""
    return {"only": values}


def schema(kind: type[Parameters]) -> dict[str, dict[str, Any]]:
    """For each parameter its kind (integer, number, boolean, string, choice), default, and bounds or choices.

    `called` are the labels of choices, `examples` texts by name. `only` names a parameter and the values of it with which
    this one has an effect. `in_english` is the default of English pages, if that is another one.
    """
    result = {}
    for name, about in kind.model_json_schema().get("properties", {}).items():
        entry: dict[str, Any] = {"kind": "choice" if "enum" in about else about["type"], "default": about["default"]}
        for theirs, ours in (
            ("minimum", "from"),
            ("maximum", "to"),
            ("enum", "choices"),
            ("multipleOf", "step"),
            ("maxLength", "longest"),
        ):
            if theirs in about:
                entry[ours] = about[theirs]
        for more in ("called", "only", "in_english", "examples"):
            if more in about:
                entry[more] = about[more]
        result[name] = entry
    return result
