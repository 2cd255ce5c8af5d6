"""The sentences of posenc.dialects in Chinese, for `posenc inspect --lang zh`."""

from __future__ import annotations

from posenc.bilingual import Language


def translated(text: str, language: Language) -> str:
    """`text` in `language`; in English where there is no translation."""
    return text
