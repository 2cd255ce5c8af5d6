"""What is wrong with a configuration."""

from __future__ import annotations


class ConfigError(ValueError):
    """A configuration that cannot be read: one line that names the key, what it holds, what was expected, what to do."""
