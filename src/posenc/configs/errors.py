"""The error for configurations that cannot be read."""

from __future__ import annotations


class ConfigError(ValueError):
    """A configuration that cannot be read. The message is one line: the key, its value, what was expected, what to do."""
