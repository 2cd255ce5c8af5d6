"""What a check returns: one `Result` for each law, what the implementation was identified as, and all of it as text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from posenc.checking.bugs import BUGS, Bug
from posenc.checking.say import say
from posenc.support.languages import Language, Words

Verdict = Literal["passed", "failed", "not tried", "not applicable", "not declared"]
ReportVerdict = Literal["passed", "unusual", "failed", "not tried"]
MARKS: dict[str, str] = {"passed": "✓", "failed": "✗", "not tried": "?", "not applicable": "·", "not declared": "·"}


@dataclass(frozen=True)
class Result:
    """The result of one law.

    law      its name
    verdict  "passed"; "failed"; "not tried": the implementation has what the law is about, but it could not be tried;
             "not applicable": the seam or the implementation gives nothing to try it on; "not declared": the
             implementation refuses such input, or no expectation was given
    detail   what differs, or why the law was not tried
    figure   the largest difference that was measured; None where nothing was compared or an error was raised
    allowed  the largest difference that passes
    example  the smallest input found that fails, as named numbers
    bug      the class of bug, for a failure
    backends the names of the backends that computed attention, in the order of first use; for an encoding
    """

    law: str
    verdict: Verdict
    detail: str = ""
    figure: float | None = None
    allowed: float | None = None
    example: Mapping[str, int] = field(default_factory=dict)
    bug: Bug | None = None
    backends: tuple[str, ...] = ()

    @property
    def held(self) -> bool:
        """False where the law failed."""
        return self.verdict != "failed"

    def __str__(self) -> str:
        line = f"{MARKS[self.verdict]} {self.law}"
        if self.verdict == "passed":
            return line
        if self.verdict == "not tried":
            return f"{line}: not tried, because {self.detail}"
        if self.verdict != "failed":
            return f"{line}: {self.verdict}: {self.detail}"
        inputs = ", ".join(f"{name} {value}" for name, value in self.example.items())
        lines = [f"{line}: {self.detail}", *([f"    smallest input: {inputs}"] if inputs else [])]
        if self.bug is not None:
            seen = [f"    seen: {thread}" for thread in self.bug.threads[:1]]
            lines += [f"    bug: {self.bug.title.en}", *seen, f"    remedy: {self.bug.remedy.en}"]
        return "\n".join(lines)


@dataclass(frozen=True)
class Difference:
    """What sets an implementation apart from everything known: the fact that differs, and how."""

    fact: str
    words: Words


@dataclass(frozen=True)
class Identity:
    """What an implementation was identified as.

    facts        named properties, such as layout, base, slopes; what could not be told is absent
    convention   the known convention that has these properties; None where none has
    sentence     both in one line
    nearest      the known convention that differs least, where there are differences
    differences  from `nearest`; none for what is known
    bug          the key in BUGS of a mistake that the numbers show, whether a law sees it or not
    """

    facts: Mapping[str, Any] = field(default_factory=dict)
    convention: str | None = None
    sentence: str = "not identified"
    nearest: str | None = None
    differences: tuple[Difference, ...] = ()
    bug: str | None = None


@dataclass(frozen=True)
class Diagnosis:
    """What is wrong or unusual, in one sentence, and what mends it, in another.

    name      a key of BUGS, or the fact that is unusual
    sentence  what it is
    fix       what to do
    """

    name: str
    sentence: Words
    fix: Words


@dataclass(frozen=True)
class Report:
    """The result of checking one implementation at one seam.

    subject   its name
    seam      "rotate", "embed", "bias", "attention", "table", "cache" or "model"
    results   one for each law, in the order of trying
    identity  what it was identified as; its sentence is empty for a cache
    seconds   how long the check took
    allow_untried   whether laws that could not be tried are passed over
    diagnosis   what is wrong or unusual; None where nothing is
    python      lines that put posenc in its place; "" where posenc has nothing that gives the same
    """

    subject: str
    seam: str
    results: tuple[Result, ...]
    identity: Identity = Identity()
    seconds: float = 0.0
    allow_untried: bool = False
    diagnosis: Diagnosis | None = None
    python: str = ""

    @property
    def verdict(self) -> ReportVerdict:
        """The verdict over all laws.

        "failed"     a law failed
        "not tried"  none failed and, unless `allow_untried`, one was left untried or none passed
        "unusual"    every law holds, and yet it is nothing known
        "passed"     known and lawful
        """
        if self.failures:
            return "failed"
        if not self.allow_untried and (self.untried or all(result.verdict != "passed" for result in self.results)):
            return "not tried"
        return "unusual" if self.identity.differences else "passed"

    @property
    def passed(self) -> bool:
        """Whether the verdict is "passed"."""
        return self.verdict == "passed"

    @property
    def failures(self) -> tuple[Result, ...]:
        return tuple(result for result in self.results if result.verdict == "failed")

    @property
    def untried(self) -> tuple[Result, ...]:
        """What is "not tried"."""
        return tuple(result for result in self.results if result.verdict == "not tried")

    def __getitem__(self, law: str) -> Result:
        """The result of the law of that name. Raises KeyError for an unknown one."""
        for result in self.results:
            if result.law == law:
                return result
        raise KeyError(f"{law!r}: no such law here; there are {', '.join(result.law for result in self.results)}")

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "subject": self.subject,
            "seam": self.seam,
            "verdict": self.verdict,
            "passed": self.passed,
            "diagnosis": None
            if self.diagnosis is None
            else {
                "name": self.diagnosis.name,
                "sentence": self.diagnosis.sentence.as_dict(),
                "fix": self.diagnosis.fix.as_dict(),
            },
            "identity": {
                "facts": _plain(self.identity.facts),
                "convention": self.identity.convention,
                "sentence": self.identity.sentence,
                "nearest": self.identity.nearest,
                "differences": {difference.fact: difference.words.as_dict() for difference in self.identity.differences},
            },
            "results": [_result(result) for result in self.results],
            "python": self.python,
            "seconds": round(self.seconds, 2),
        }

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False)

    def head(self, language: Language = "en") -> list[str]:
        """The first lines: the diagnosis and the fix where there is one, how many laws hold, and what it is: what it
        seems to be where a law is broken and it is nothing known, since it was measured as if all laws held."""
        counts = {name: sum(result.verdict == name for result in self.results) for name in MARKS}
        counted = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
        lines = []
        if self.diagnosis is not None:
            opening = (
                say("{subject} is unusual: {what}.") if self.verdict == "unusual" else say("{subject} is wrong: {what}.")
            )
            told = opening.filled(subject=self.subject, what=self.diagnosis.sentence)
            lines = [told.in_language(language), say("Fix: {fix}.", fix=self.diagnosis.fix).in_language(language)]
        known = "seems to be" if self.failures and not self.identity.convention else "is"
        identified = [f"{known}: {self.identity.sentence}"] if self.identity.sentence else []
        return [*lines, f"{self.subject} · {self.seam} · {counted}", *identified]

    def lines(self, *, passed: bool = True) -> list[str]:
        """The results as text. A NaN breaks nearly every law: where `no_number_is_nan` failed, the others are one line."""
        shown = [result for result in self.results if passed or result.verdict != "passed"]
        first = next((result for result in self.failures if result.law == "no_number_is_nan"), None)
        same = [result.law for result in self.failures if first and result is not first and result.bug is first.bug]
        more = [f"✗ broken by NaN too: {', '.join(same)}"] if same else []
        return [*(str(result) for result in shown if result.law not in same), *more]

    def end(self, language: Language = "en") -> list[str]:
        """The last lines: what it is in posenc."""
        return ["", say("In posenc:").in_language(language), *self.python.splitlines()] if self.python else []

    def __str__(self) -> str:
        return "\n".join([*self.head(), *self.lines(), *self.end()])


def _result(result: Result) -> dict[str, Any]:
    bug = next((key for key, bug in BUGS.items() if bug is result.bug), None)
    return {
        "law": result.law,
        "verdict": result.verdict,
        "detail": result.detail,
        "figure": _number(result.figure),
        "allowed": _number(result.allowed),
        "example": dict(result.example),
        "bug": bug,
        "title": result.bug.title.en if result.bug else None,
        "threads": list(result.bug.threads) if result.bug else [],
        "remedy": result.bug.remedy.en if result.bug else None,
    }


def _number(value: float | None) -> float | str | None:
    """JSON has no infinities and no NaN: they are written as text."""
    return value if value is None or abs(value) < float("inf") else str(value)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return _number(value)
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)
