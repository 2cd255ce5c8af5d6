"""The error for configurations that cannot be read."""

from __future__ import annotations

from posenc.support.languages import Words

LONGEST = 1000  # characters of a message, whatever value of the file it repeats


class ConfigError(ValueError):
    """A configuration that cannot be read. The message is one line: the key, its value, what was expected, what to do.

    words   the message for a report that quotes it; without a translation it is the English one in both languages
    """

    def __init__(self, message: str | Words) -> None:
        self.words = shortened(message if isinstance(message, Words) else Words(message))
        super().__init__(self.words.en)


def shortened(words: Words) -> Words:
    """The same message, without its middle where it is longer than LONGEST."""

    def cut(text: str) -> str:
        return text if len(text) <= LONGEST else f"{text[: LONGEST * 2 // 3]} … {text[-LONGEST // 4 :]}"

    return words if len(words.en) <= LONGEST else Words(cut(words.en), lambda: cut(words.zh))
