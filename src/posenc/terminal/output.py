"""What a command prints, on an output of any encoding.

Below Python 3.15 an output that Windows redirects is in the encoding of the system: cp1252, for example, lacks → and 位.
"""

from __future__ import annotations

import codecs
import functools
import io
import json
import re
import sys
import unicodedata
from typing import Any

from rich.cells import cell_len

CHINESE = "位置"
PAIRS = """
→ -> ← <- ↔ <-> ⇒ => ↦ |-> ↓ v ↑ ^ ► > ◄ < ▲ ^ ▼ v · * • * ● o ◆ o ■ # ★ * ✓ ok ✗ x ⁄ / – - — - “ " ” " ‘ ' ’ ' 。 . 、 ,
× x ⊙ * ∘ o − - ± +- √ sqrt ‖ || ∞ inf ∂ d ∫ int ≤ <= ≥ >= ≠ != ≈ ~ ∈ in ∅ {} Σ sum Π prod ⌊ [ ⌋ ] ⌈ [ ⌉ ] ° deg µ u
▁ . ▂ : ▃ - ▄ = ▅ + ▆ * ▇ % █ # ▌ # ▋ # ▊ # ▉ # ▀ # ▒ %
"""
ASCII = dict(re.findall(r"(\S+) (\S+)", PAIRS)) | {"\u0302": "^", "\u0303": "~"} | dict.fromkeys("▏▎▍\ufe0f", "")
"""What stands for a symbol that an output lacks; `in_ascii` derives that of letters, digits, lines and dots."""


def echo(text: str = "", err: bool = False) -> None:
    """Prints a line, on the standard error with `err`. typer.echo writes UTF-8 to an output whose encoding is ASCII."""
    print(text, file=sys.stderr if err else sys.stdout, flush=True)


def echo_json(value: Any, indent: int | None = None) -> None:
    """Prints a value as JSON, in ASCII unless the output is in UTF-8. A number that is not finite is null."""
    in_utf8 = codecs.lookup(sys.stdout.encoding or "utf-8").name == "utf-8"
    finite = json.loads(json.dumps(value), parse_constant=lambda _: None)
    echo(json.dumps(finite, ensure_ascii=not in_utf8, indent=indent))


def print_any_text() -> None:
    """From now on both outputs print what stands for a character that they lack, in place of an error."""
    for output in (sys.stdout, sys.stderr):
        if isinstance(output, io.TextIOWrapper):
            _set(output, output.encoding)


def print_chinese() -> None:
    """An output that lacks Chinese prints UTF-8 from now on, and says so: nothing else stands for Chinese."""
    for output in (sys.stdout, sys.stderr):
        if isinstance(output, io.TextIOWrapper) and not _holds(output.encoding, CHINESE):
            lacking = output.encoding
            _set(output, "utf-8")
            if output is sys.stdout:
                echo(f"posenc: {lacking} has no Chinese, so this output is in UTF-8", err=True)


def _set(output: io.TextIOWrapper, encoding: str) -> None:
    name = f"posenc.{encoding}"
    codecs.register_error(name, functools.partial(_readable, encoding))
    output.reconfigure(encoding=encoding, errors=name)


def _holds(encoding: str, text: str) -> bool:
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def in_ascii(character: str) -> str:
    """What stands for a character in ASCII: `->`, `sqrt`, `theta`, `^2`, `+` for a corner; its code where nothing does."""
    if character in ASCII:
        known: str = ASCII[character]
        return known
    name = unicodedata.name(character, "")
    if name.startswith("BOX DRAWINGS"):
        return "+" if " AND " in name else "-" if name.endswith("HORIZONTAL") else "|" if name.endswith("VERTICAL") else "/"
    if name.startswith("BRAILLE PATTERN"):
        dots = ord(character) - 0x2800
        return " '.:"[bool(dots & 0x1B) + 2 * bool(dots & 0xE4)]  # of the upper two rows, of the lower two
    if letter := re.fullmatch(r"(?:GREEK|LATIN) (SMALL|CAPITAL) LETTER (\w+)(?: WITH .*)?", name):
        word = letter[2].replace("LAMDA", "LAMBDA")
        return word.lower() if letter[1] == "SMALL" else word.capitalize()
    parts = unicodedata.normalize("NFKD", character)
    if parts == character:
        return ascii(character)[1:-1]
    return "^" * _raised(character) + "".join(
        part if part.isascii() else "" if unicodedata.combining(part) else in_ascii(part) for part in parts
    )


def _readable(encoding: str, error: UnicodeError) -> tuple[bytes, int]:
    """An error handler of codecs: the rest of the line, with what stands for characters that the encoding lacks.

    What is wider than its character takes the surplus from the next gap, so that columns stay below each other.
    """
    if not isinstance(error, UnicodeEncodeError):
        raise error
    end = error.object.find("\n", error.start)
    end = len(error.object) if end < 0 else end
    line, surplus, raised, before = "", 0, False, ""
    for character in error.object[error.start : end]:
        shown = character if _holds(encoding, character) else in_ascii(character)
        if _raised(character) and (raised or shown != character):
            shown, raised = in_ascii(character)[raised:], True  # one ^ for all digits of an exponent
        else:
            raised = False
        if shown != character:
            surplus += len(shown) - cell_len(character)
        elif character == before == " " and surplus:
            shown, surplus = ("", surplus - 1) if surplus > 0 else (" " * (1 - surplus), 0)
        line, before = line + shown, character
    return line.encode(encoding), end


def _raised(character: str) -> bool:
    return unicodedata.decomposition(character).startswith("<super>")
