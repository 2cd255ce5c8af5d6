"""Sentences that readers type, and the rule that splits them into words.

The cat sleeps.      at spaces and punctuation                       The | cat | sleeps
猫 追 老鼠             the same                                        猫 | 追 | 老鼠
我爱你                no space: every Chinese character is a word      我 | 爱 | 你
"""

from __future__ import annotations

import re
from typing import Any

from pydantic import Field

from posenc.explorer.parameters import Refused

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
        rule = "words end at spaces and punctuation, without spaces at every Chinese character"
        in_chinese = "词在空格和标点处断开，没有空格时每个汉字算一个词"
        raise Refused(
            f"sentence: expected 2 to {most} words, got {len(words)}; {rule} · "
            f"句子：应有 2 到 {most} 个词，现有 {len(words)} 个；{in_chinese}"
        )
    if long := [word for word in words if len(word) > LONGEST_WORD]:
        raise Refused(
            f"sentence: expected words of at most {LONGEST_WORD} characters, got {long[0][:20]!r} · "
            f"句子：一个词最多 {LONGEST_WORD} 个字符，现有 {long[0][:20]!r}"
        )
    return tuple(words)
