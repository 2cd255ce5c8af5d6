"""Sentences in the two languages of the project, and which one a reader's environment asks for."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple, get_args

Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = get_args(Language)


class Words(NamedTuple):
    """The same sentence twice."""

    en: str
    zh: str

    def in_language(self, language: Language) -> str:
        return self.zh if language == "zh" else self.en


def joined(words: Iterable[Words], en: str, zh: str) -> Words:
    """All words as one, with `en` between the English parts and `zh` between the Chinese ones. Empty for no words."""
    words = list(words)
    return Words(en.join(one.en for one in words), zh.join(one.zh for one in words))


def clauses(*words: Words) -> Words:
    """One sentence of several: "a; b", "a；b"."""
    return joined(words, "; ", "；")


def default_language(environ: Mapping[str, str] = os.environ) -> Language:
    """Chinese where LC_ALL, LC_MESSAGES or LANG, the first of them that is set, begins with zh; English otherwise."""
    for variable in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if environ.get(variable):
            return "zh" if environ[variable].lower().startswith("zh") else "en"
    return "en"
