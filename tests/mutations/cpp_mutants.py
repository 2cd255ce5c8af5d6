"""Mutants of a C++ file, found by its tokens.

A mutant is named by the function it stands in and by the tokens around it: neither white space nor comments take part.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

TOKEN = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/|^[ \t]*\#(?:[^\n\\]|\\.|\\\n)*)
    |(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    |(?P<number>(?:0x[0-9a-fA-F.]+(?:p[+-]?\d+)?|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)[uUlLfF]*)
    |(?P<word>[A-Za-z_]\w*)
    |(?P<sign><<=|>>=|->|::|<<|>>|<=|>=|==|!=|&&|\|\||\+\+|--|[-+*/%&|^]=|.)""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
SIGNS = {
    "<": "<=",
    "<=": "<",
    ">": ">=",
    ">=": ">",
    "==": "!=",
    "!=": "==",
    "+": "-",
    "-": "+",
    "/": "*",
    "%": "/",
    "&&": "||",
    "||": "&&",
    "+=": "-=",
}
WORDS = {"min": "max", "max": "min", "double": "float", "true": "false", "false": "true", "sin": "cos", "cos": "sin"}
TYPES = {"int", "double", "float", "int64_t", "uint16_t", "uint32_t", "int16_t", "bool", "void", "char", "auto", "const"}
TYPES |= {"Out", "T", "In", "Work"}
AROUND = 3  # tokens on either side that name a mutant


@dataclass(frozen=True)
class Token:
    text: str
    kind: str
    begin: int


@dataclass(frozen=True)
class CppMutant:
    """In `scope`, among the tokens `before`, the middle one becomes `after`."""

    scope: str
    kind: str
    before: str
    after: str
    ordinal: int = 0

    @property
    def name(self) -> str:
        again = f" ({self.ordinal + 1})" if self.ordinal else ""
        return f"{self.scope}: {self.before} → {self.after}{again}"


def tokens(source: str) -> list[Token]:
    found = []
    for match in TOKEN.finditer(source):
        if match.lastgroup != "skip":
            found.append(Token(match.group(), str(match.lastgroup), match.start()))
    return found


def mutants(source: str) -> list[CppMutant]:
    """Every mutant of the file, in its order."""
    return [mutant for mutant, _ in _sites(source)]


def mutated(source: str, mutant: CppMutant) -> str | None:
    """The file with that mutant, or None where it is not found."""
    for one, token in _sites(source):
        if one == mutant:
            return source[: token.begin] + mutant.after.partition(" ⟵ ")[0] + source[token.begin + len(token.text) :]
    return None


def rewritten(source: str, before: str, after: str) -> str | None:
    """The file where the tokens of `before` become those of `after`; None where they are not there once."""
    all_of, wanted = tokens(source), [token.text for token in tokens(before)]
    texts = [token.text for token in all_of]
    hits = [at for at in range(len(texts)) if texts[at : at + len(wanted)] == wanted]
    if len(hits) != 1:
        return None
    last = all_of[hits[0] + len(wanted) - 1]
    return source[: all_of[hits[0]].begin] + after + source[last.begin + len(last.text) :]


def _sites(source: str) -> Iterator[tuple[CppMutant, Token]]:
    all_of = tokens(source)
    seen: Counter[tuple[str, str, str]] = Counter()
    for scope, at in _in_functions(all_of):
        token = all_of[at]
        for kind, after in _changes(all_of, at):
            before = " ".join(one.text for one in all_of[max(at - AROUND, 0) : at + AROUND + 1])
            made = f"{after} ⟵ {token.text}"
            key = scope, before, made
            yield CppMutant(scope, kind, before, made, seen[key]), token
            seen[key] += 1


def _in_functions(all_of: list[Token]) -> Iterator[tuple[str, int]]:
    """(function, index) of every token in the body of one."""
    depth, scope, opened = 0, "", 0
    for at, token in enumerate(all_of):
        if token.text == "{":
            if not scope and (name := _function(all_of, at)):
                scope, opened = name, depth
            depth += 1
        elif token.text == "}":
            depth -= 1
            if scope and depth == opened:
                scope = ""
        elif scope:
            yield scope, at


def _function(all_of: list[Token], brace: int) -> str:
    """The name of the function whose body the brace opens; empty where it opens something else."""
    at = brace - 1
    if at < 0 or all_of[at].text not in (")", "const", "noexcept"):
        return ""
    while all_of[at].text != ")":
        at -= 1
    depth = 0
    while at >= 0:
        depth += {")": 1, "(": -1}.get(all_of[at].text, 0)
        if depth == 0:
            break
        at -= 1
    name = all_of[at - 1]
    return name.text if name.kind == "word" and name.text not in ("if", "for", "while", "switch") else ""


def _changes(all_of: list[Token], at: int) -> Iterator[tuple[str, str]]:
    token, before, after = all_of[at], all_of[at - 1], all_of[at + 1]
    if token.kind == "sign" and token.text in SIGNS:
        operand = before.kind in ("word", "number") or before.text in (")", "]")
        if before.text in TYPES or before.text in ("return", "case") or (token.text in "<>" and _is_template(all_of, at)):
            return
        if operand and after.text not in (token.text, "]"):
            yield "sign" if token.text in "+-*/%" else "comparison", SIGNS[token.text]
    elif token.text in WORDS and before.text not in (".", "->", "struct"):
        kind = "dtype" if token.text == "double" else "swapped name"
        if kind == "dtype" or after.text in ("(", "<") or token.text in ("true", "false"):
            yield kind, WORDS[token.text]
    elif token.kind == "number" and re.fullmatch(r"\d{1,4}", token.text):
        yield "off by one", str(int(token.text) + 1)
    elif token.kind == "number" and "." in token.text:
        yield "constant", f"(1.5 * {token.text})"


def _is_template(all_of: list[Token], at: int) -> bool:
    """Whether < or > encloses template arguments: nothing but types between, and no blank around in any style."""
    step = 1 if all_of[at].text == "<" else -1
    other = ">" if step == 1 else "<"
    for to in range(at + step, at + 12 * step, step):
        if not 0 <= to < len(all_of):
            return False
        if all_of[to].text == other:
            return True
        if all_of[to].kind not in ("word", "number") and all_of[to].text not in ("::", ",", "*", "&"):
            return False
    return False
