"""The first error of an experiment's file in one line and in the words of YAML: where, what is expected, what it got."""

from __future__ import annotations

import difflib
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

EXPECTED = {
    "greater_than": "expected a number above {gt:g}",
    "greater_than_equal": "expected a number of at least {ge:g}",
    "less_than_equal": "expected a number of at most {le:g}",
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "expected a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "expected a number"),
    "finite_number": "expected a finite number",
    "string_type": "expected text",
    "string_pattern_mismatch": "expected letters, digits, - and _",
    "literal_error": "expected {expected}",
    **dict.fromkeys(("bool_type", "bool_parsing"), "expected true or false"),
    "tuple_type": "expected a list, such as [a, b]",
    **dict.fromkeys(("dict_type", "model_type"), "expected settings, name: value"),
    "too_short": "expected a list of at least one",
}
LONGEST = 60  # characters of what was given


def line(error: Exception, model: type[BaseModel]) -> str:
    """`model` is what the file was to be."""
    if not isinstance(error, ValidationError):
        return " ".join(str(error).split())
    where, message = _first(error, model)
    return f"{'.'.join(map(str, where))}: {message}" if where else message


def _first(error: ValidationError, model: type[BaseModel] | None) -> tuple[list[Any], str]:
    """Where, and what is wrong there. A misspelt name comes before the name that is then missing."""
    errors = error.errors()
    first = next((entry for entry in errors if entry["type"] == "extra_forbidden"), errors[0])
    where = [part for part in first["loc"] if part != "[key]"]
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, ValidationError):  # of a task, which is read by its own class
        inner, message = _first(cause, _task(first["input"]))
        return [*where, *inner], message
    if cause is not None:
        return where, " ".join(str(cause).split())
    if first["type"] == "missing":
        return where, "is needed and not given; add it"
    if first["type"] == "extra_forbidden":
        return where, f"unknown setting{_meant(str(where[-1]), _names(model, where[:-1]))}"
    expected = EXPECTED.get(first["type"], first["msg"]).format(**first.get("ctx", {}))
    return where, f"{expected}, got {_shortened(first['input'])}"


def _shortened(value: object) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _meant(word: str, names: list[str]) -> str:
    return nearest(word, names) or (f"; known: {', '.join(names)}" if names else "")


def nearest(word: str, names: list[str]) -> str:
    """`; did you mean base?` for a word that is nearly one of these; otherwise empty."""
    close = difflib.get_close_matches(word, names, n=1)
    return f"; did you mean {close[0]}?" if close else ""


def _names(model: type[BaseModel] | None, where: list[Any]) -> list[str]:
    """The settings of the model that stands at that place of `model`."""
    for name in (part for part in where if isinstance(part, str)):
        field = None if model is None else model.model_fields.get(name)
        model = None if field is None else _model_in(field.annotation)
    return [] if model is None else list(model.model_fields)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """Size, of `Size | None`; TaskPlan, of `tuple[TaskPlan, ...]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for argument in get_args(annotation) if (model := _model_in(argument)) is not None), None)


def _task(settings: object) -> type[BaseModel] | None:
    from posenc.lab import tasks

    name = settings.get("name") if isinstance(settings, dict) else None
    return tasks.load(name) if isinstance(name, str) and name in tasks.names() else None
