"""Sentences in the two languages of the project, and which one a reader's environment asks for.

English stands where it is said, Chinese in a gettext catalogue of each room of posenc, keyed by the English sentence:

    posenc/configs/say.py     say = catalogue_of("configs")
    a module of configs       say("row {row} of {rows} is zero", row=3, rows=8)   ->  Words
    posenc/configs/zh.po      msgid "row {row} of {rows} is zero"
                              msgstr "{rows} 行中的第 {row} 行是零"

A sentence without a translation stays English. Babel reads the catalogues, when Chinese is first asked for.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Literal, Protocol, get_args

Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = get_args(Language)
ROOMS = Path(__file__).parents[1]


class Words:
    """The same sentence in both languages. `zh` may be a function, called when the Chinese is read; None: as `en`."""

    __slots__ = ("_zh", "en")

    def __init__(self, en: str, zh: str | Callable[[], str] | None = None) -> None:
        self.en = en
        self._zh = en if zh is None else zh

    @property
    def zh(self) -> str:
        return self._zh if isinstance(self._zh, str) else self._zh()

    def in_language(self, language: Language) -> str:
        return self.zh if language == "zh" else self.en

    def filled(self, **values: object) -> Words:
        """Both sentences with their named values put in; a value that is Words is put in by language."""

        def spoken(language: Language) -> str:
            told = {name: v.in_language(language) if isinstance(v, Words) else v for name, v in values.items()}
            return self.in_language(language).format(**told)

        return Words(spoken("en"), lambda: spoken("zh"))

    def both(self) -> tuple[str, str]:
        return self.en, self.zh

    def as_dict(self) -> dict[str, str]:
        """{"en": …, "zh": …}"""
        return {language: self.in_language(language) for language in LANGUAGES}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Words) and self.en == other.en and self.zh == other.zh

    def __hash__(self) -> int:
        return hash(self.en)

    def __repr__(self) -> str:
        return f"Words({self.en!r}, {self.zh!r})"

    def __reduce__(self) -> tuple[type[Words], tuple[str, str]]:
        return Words, self.both()


class Say(Protocol):
    """A sentence with named values, as in str.format; one without values is taken as it is written.

    `context` tells apart two uses of the same English that differ in Chinese: the entry's msgctxt.
    """

    def __call__(self, sentence: str, /, *, context: str = "", **values: object) -> Words: ...


def catalogue_of(room: str) -> Say:
    """The `say` of a folder of posenc, or of any folder by its whole path, whose Chinese stands in its zh.po."""

    def say(sentence: str, /, *, context: str = "", **values: object) -> Words:
        words = Words(sentence, lambda: translations(room).get((context, sentence), sentence))
        return words.filled(**values) if values else words

    return say


@cache
def translations(room: str) -> Mapping[tuple[str, str], str]:
    """Chinese by context and English sentence, without entries marked fuzzy."""
    from babel.messages.pofile import read_po

    with open(ROOMS / room / "zh.po", "rb") as file:
        entries = [entry for entry in read_po(file) if entry.id and entry.string and not entry.fuzzy]
    return {(entry.context or "", str(entry.id)): str(entry.string) for entry in entries}


def joined(words: Iterable[Words], en: str, zh: str) -> Words:
    """All words as one, with `en` between the English parts and `zh` between the Chinese ones. Empty for no words."""
    words = list(words)
    return Words(en.join(words_given.en for words_given in words), lambda: zh.join(words_given.zh for words_given in words))


def clauses(*words: Words) -> Words:
    """One sentence of several: "a; b", "a；b"."""
    return joined(words, "; ", "；")


def default_language(environ: Mapping[str, str] = os.environ) -> Language:
    """Chinese where LC_ALL, LC_MESSAGES or LANG, the first of them that is set, begins with zh; English otherwise."""
    for variable in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if environ.get(variable):
            return "zh" if environ[variable].lower().startswith("zh") else "en"
    return "en"
