"""What a check returns: one `Result` for each law, what the implementation was identified as, and all of it as text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from posenc.checking.bugs import BUGS, Bug

Verdict = Literal["passed", "failed", "not tried", "not applicable", "not declared"]
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
    """

    law: str
    verdict: Verdict
    detail: str = ""
    figure: float | None = None
    allowed: float | None = None
    example: Mapping[str, int] = field(default_factory=dict)
    bug: Bug | None = None

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
            lines += [f"    bug: {self.bug.title}", f"    seen: {self.bug.threads[0]}", f"    remedy: {self.bug.remedy}"]
        return "\n".join(lines)


@dataclass(frozen=True)
class Identity:
    """What an implementation was identified as.

    facts       named properties, such as layout, base, slopes; what could not be told is absent
    convention  the known convention that has these properties; None where none has
    sentence    both in one line
    """

    facts: Mapping[str, Any] = field(default_factory=dict)
    convention: str | None = None
    sentence: str = "not identified"


@dataclass(frozen=True)
class Report:
    """The result of checking one implementation at one seam.

    subject   its name
    seam      "rotate", "embed", "bias", "attention", "table" or "model"
    results   one for each law, in the order of trying
    identity  what it was identified as
    seconds   how long the check took
    allow_untried   whether laws that could not be tried are passed over
    """

    subject: str
    seam: str
    results: tuple[Result, ...]
    identity: Identity = Identity()
    seconds: float = 0.0
    allow_untried: bool = False

    @property
    def passed(self) -> bool:
        """Whether no law failed and, unless `allow_untried`, none was left untried and at least one passed."""
        if self.failures:
            return False
        return self.allow_untried or (not self.untried and any(result.verdict == "passed" for result in self.results))

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
            "passed": self.passed,
            "identity": {
                "facts": _plain(self.identity.facts),
                "convention": self.identity.convention,
                "sentence": self.identity.sentence,
            },
            "results": [_result(result) for result in self.results],
            "seconds": round(self.seconds, 2),
        }

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False)

    def __str__(self) -> str:
        counts = {name: sum(one.verdict == name for one in self.results) for name in MARKS}
        said = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
        lines = [f"{self.subject} · {self.seam} · {said}", f"is: {self.identity.sentence}"]
        return "\n".join([*lines, *map(str, self.results)])


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
        "title": result.bug.title if result.bug else None,
        "threads": list(result.bug.threads) if result.bug else [],
        "remedy": result.bug.remedy if result.bug else None,
    }


def _number(value: float | None) -> float | str | None:
    """JSON has no infinities and no NaN: they are written as text."""
    return value if value is None or abs(value) < float("inf") else str(value)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, float):
        return _number(value)
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)
