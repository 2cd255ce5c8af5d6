"""The language that a command prints in."""

from __future__ import annotations

import typer

from posenc.support.languages import LANGUAGES, Language, default_language


def chosen_language(lang: str) -> Language:
    """The language of --lang, or that of the environment. Raises BadParameter for an unknown language."""
    if lang and lang not in LANGUAGES:
        raise typer.BadParameter(f"expected one of {', '.join(LANGUAGES)}, got {lang!r}", param_hint="--lang")
    return lang if lang else default_language()
