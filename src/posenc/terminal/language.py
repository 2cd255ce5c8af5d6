"""The language that a command prints in."""

from __future__ import annotations

import typer

from posenc.support.languages import LANGUAGES, Language, default_language
from posenc.terminal.output import print_chinese


def chosen_language(lang: str) -> Language:
    """The language of --lang, or that of the environment; outputs can print it from now on. Raises BadParameter."""
    if lang and lang not in LANGUAGES:
        raise typer.BadParameter(f"expected one of {', '.join(LANGUAGES)}, got {lang!r}", param_hint="--lang")
    chosen = lang if lang else default_language()
    if chosen == "zh":
        print_chinese()
    return chosen
