"""Sentences that readers type, and the rule that splits them into words.

The cat sleeps.      at spaces and punctuation                       The | cat | sleeps
I ❤️ 🐱s             an emoji is a word                              I | ❤️ | 🐱 | s
猫 追 老鼠             the same                                        猫 | 追 | 老鼠
我爱你                no space: every Chinese character is a word      我 | 爱 | 你
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from pydantic import Field

from posenc.explorer.parameters import Refused
from posenc.explorer.say import say

LONGEST, LONGEST_WORD = 200, 24  # characters
MOST_WORDS = 24
# A flag is two letters of its country; other emoji have a style, a skin colour, and others joined to them.
PICTURE = "[\u2300-\u23ff\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001f1e5\U0001f200-\U0001faff]"
STYLED = f"{PICTURE}[\ufe0f\U0001f3fb-\U0001f3ff]*"
EMOJI = f"[\U0001f1e6-\U0001f1ff]{{2}}|{STYLED}(?:\u200d{STYLED})*"
WORD = re.compile(rf"{EMOJI}|[^\W_]+(?:['’-][^\W_]+)*")  # or letters and digits, with ' and - between them
CHINESE = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]|[^\u3400-\u4dbf\u4e00-\u9fff]+")


def opening(zh: str, en: str) -> Any:
    """The field of a sentence, with the one that a page of each language opens with."""
    return Field(default=zh, max_length=LONGEST, json_schema_extra={"in_english": en})


def words_of(sentence: str, most: int = MOST_WORDS) -> tuple[str, ...]:
    """The words, at least two. Raises Refused, in both languages, for too few, too many or too long ones."""
    words = WORD.findall(sentence)
    if not re.search(r"\s", sentence.strip()):
        words = [part for word in words for part in CHINESE.findall(word)]
    if not 2 <= len(words) <= most:
        message = say(
            "sentence: expected 2 to {most} words, got {count}; words end at spaces and punctuation, without spaces at "
            "every Chinese character",
            most=most,
            count=len(words),
        )
        raise Refused(message)
    return short(words)


def short(words: Iterable[str]) -> tuple[str, ...]:
    """The words. Raises Refused for one that is too long to be drawn."""
    words = tuple(words)
    if long := [word for word in words if len(word) > LONGEST_WORD]:
        message = say(
            "sentence: expected words of at most {most} characters, got {word!r}", most=LONGEST_WORD, word=long[0][:20]
        )
        raise Refused(message)
    return words
