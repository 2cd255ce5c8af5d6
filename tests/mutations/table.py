"""The committed table: what became of every mutant."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from .equivalent import EQUIVALENT
from .judge import Verdict

HERE = Path(__file__).resolve().parent


def caught(verdicts: Sequence[Verdict]) -> tuple[int, int]:
    """How many the tests caught, of how many that change something."""
    real = [one for one in verdicts if one.key not in EQUIVALENT]
    return sum(one.tests is not None for one in real), len(real)


def caught_by_laws(verdicts: Sequence[Verdict]) -> tuple[int, int]:
    """How many the laws alone caught, of how many that change something that laws can see."""
    real = [one for one in verdicts if one.key not in EQUIVALENT and one.visible]
    return sum(broken_law(one) is not None for one in real), len(real)


def broken_law(one: Verdict) -> str | None:
    """The law that caught it. An encoding that cannot be built any more was caught by no law."""
    name = (one.laws or "").partition(":")[0]
    return name if name.islower() else None


def write(verdicts: Sequence[Verdict], drawn: int) -> None:
    """TABLE.md for readers, table.json for programs."""
    rows = [{**asdict(one), "equivalent": EQUIVALENT.get(one.key)} for one in verdicts]
    text = json.dumps(rows, ensure_ascii=False, indent=1)
    (HERE / "table.json").write_text(text + "\n", encoding="utf-8")
    (HERE / "TABLE.md").write_text(markdown(verdicts, drawn), encoding="utf-8")


def markdown(verdicts: Sequence[Verdict], drawn: int) -> str:
    (by_tests, of), (by_laws, visible) = caught(verdicts), caught_by_laws(verdicts)
    languages = ", ".join(f"{sum(v.language == name for v in verdicts)} {name}" for name in ("Python", "C++", "Triton"))
    return "\n".join(
        [
            "# Mutants",
            "",
            f"{drawn} mutants are drawn by a seed and named by hand: see `draw.py`. {len(verdicts)} have been judged "
            f"({languages}); {len(verdicts) - of} of them are equivalent.",
            "",
            f"- The nearest tests catch {by_tests} of {of}: {100 * by_tests / max(of, 1):.0f} %.",
            f"- Laws alone catch {by_laws} of {visible} that they can see: {100 * by_laws / max(visible, 1):.0f} %. "
            "`judge.is_visible` says which those are.",
            "",
            "`python -m tests.mutations --write` writes this table. A dash means that laws cannot see the mutant.",
            "",
            "| room | file | mutant | caught by test | caught by law |",
            "|---|---|---|---|---|",
            *(_row(one) for one in verdicts),
            "",
        ]
    )


def _row(one: Verdict) -> str:
    file, _, name = one.key.partition(": ")
    reason = EQUIVALENT.get(one.key)
    test = f"equivalent: {reason}" if reason else _code(one.tests.rpartition("/")[2]) if one.tests else "**survives**"
    by_law = broken_law(one)
    law = "–" if reason or not one.visible else _code(by_law) if by_law else "**survives**"
    return f"| {one.room} | {file} | {_code(name)} | {test} | {law} |"


def _code(text: str, longest: int = 160) -> str:
    short = " ".join(text.split())
    short = short if len(short) <= longest else short[: longest - 1] + "…"
    return "`" + short.replace("|", "\\|").replace("`", "'") + "`"
