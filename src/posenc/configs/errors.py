"""The error for configurations that cannot be read."""

from __future__ import annotations

from posenc.support.languages import Words


class ConfigError(ValueError):
    """A configuration that cannot be read. The message is one line: the key, its value, what was expected, what to do.

    words   the message for a report that quotes it; without a translation it is the English one in both languages
    """

    def __init__(self, said: str | Words) -> None:
        self.words = said if isinstance(said, Words) else Words(said)
        super().__init__(self.words.en)
