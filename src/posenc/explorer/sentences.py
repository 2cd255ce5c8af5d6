"""Sentences that readers type, and the rule that splits them into words.

The cat sleeps.      at spaces and punctuation                       The | cat | sleeps
猫 追 老鼠             the same                                        猫 | 追 | 老鼠
我爱你                no space: every Chinese character is a word      我 | 爱 | 你
"""

from __future__ import annotations

import re
from typing import Any

from pydantic import Field

from posenc.explorer.parameters import Refused, bilingual
from posenc.explorer.say import say

LONGEST, LONGEST_WORD = 60, 16  # characters
WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")  # letters and digits, with ' and - between them
CHINESE = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]|[^\u3400-\u4dbf\u4e00-\u9fff]+")


def opening(zh: str, en: str) -> Any:
    """The field of a sentence, with the one that a page of each language opens with."""
    return Field(default=zh, max_length=LONGEST, json_schema_extra={"in_english": en})


def words_of(sentence: str, most: int) -> tuple[str, ...]:
    """The words, at least two. Raises Refused, in both languages, for too few, too many or too long ones."""
    words = WORD.findall(sentence)
    if not re.search(r"\s", sentence.strip()):
        words = [part for word in words for part in CHINESE.findall(word)]
    if not 2 <= len(words) <= most:
        said = say(
            "sentence: expected 2 to {most} words, got {count}; words end at spaces and punctuation, without "
            "spaces at every "
            "Chinese character",
            most=most,
            count=len(words),
        )
        raise Refused(bilingual(said))
    if long := [word for word in words if len(word) > LONGEST_WORD]:
        said = say(
            "sentence: expected words of at most {most} characters, got {word!r}", most=LONGEST_WORD, word=long[0][:20]
        )
        raise Refused(bilingual(said))
    return tuple(words)
