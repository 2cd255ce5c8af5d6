"""The error for configurations that cannot be read."""

from __future__ import annotations

from posenc.support.languages import Words


class ConfigError(ValueError):
    """A configuration that cannot be read. The message is one line: the key, its value, what was expected, what to do.

    words   the message for a report that quotes it; without a translation it is the English one in both languages
    """

    def __init__(self, message: str | Words) -> None:
        self.words = message if isinstance(message, Words) else Words(message)
        super().__init__(self.words.en)
