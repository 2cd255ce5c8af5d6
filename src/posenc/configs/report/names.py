"""What each encoding that a configuration can name does, in one sentence; kinds of layers; where a value comes from."""

from __future__ import annotations

import re

from posenc.configs.say import say
from posenc.support.data_files import beside
from posenc.support.languages import Language, Words

_TABLES = beside(__file__, say)
SENTENCES: dict[str, Words] = _TABLES["encodings"]
SEAMS = {name: tuple(seams.split()) for seams, names in _TABLES["acts"].items() for name in names}
KINDS: dict[str, Words] = _TABLES["kinds"]
NUMBERED: dict[str, Words] = _TABLES["numbered"]
ORIGINS: dict[str, str] = _TABLES["origins"]


def sentence(encoding: str, docstring: str) -> Words:
    """What the encoding of that name does; its `docstring` for one that no configuration names."""
    return SENTENCES.get(encoding, Words(docstring.rstrip(".")))


def kind(name: str) -> Words:
    """The kind of a layer, such as "sliding_attention" or "stage 2", in words."""
    stem, _, number = name.replace("_", " ").rpartition(" ")
    if stem in NUMBERED and number.isdecimal():
        return NUMBERED[stem].filled(number=number)
    return KINDS.get(name, Words(name.replace("_", " ")))


def origin(source: str, language: Language) -> str:
    """Where a value comes from: a key of the file stays as it is."""
    if language == "zh":
        for pattern, chinese in ORIGINS.items():
            source = re.sub(pattern, chinese, source)
    return source
