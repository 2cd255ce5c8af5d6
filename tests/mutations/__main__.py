"""Judges mutants and writes the table.

python -m tests.mutations                     all that are drawn and named; goes on where it was stopped
python -m tests.mutations --only positions    those whose file or name holds the word
python -m tests.mutations --sample 3          the first of every room, so many in all
python -m tests.mutations --write             also tests/mutations/TABLE.md and table.json
"""

from __future__ import annotations

import argparse
import math
import sys

from . import draw, judge, table


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help="a word of the file or the name")
    parser.add_argument("--room", default="", help="a room of draw.ROOMS, or 'by hand'")
    parser.add_argument("--sample", type=int, help="so many, one of every few")
    parser.add_argument("--minutes", type=float, default=math.inf, help="stop after so long; the next run goes on")
    parser.add_argument("--write", action="store_true", help="write TABLE.md and table.json")
    options = parser.parse_args()
    mutants = [
        one
        for one in (*draw.named(), *draw.drawn(among=options.room))
        if options.only in one.key and options.room in one.room
    ]
    if options.sample:
        mutants = mutants[:: max(len(mutants) // options.sample, 1)][: options.sample]
    verdicts = judge.judged(mutants, judge.Record(judge.KEPT / "verdicts.jsonl"), tell, 60 * options.minutes)
    (by_tests, of), (by_laws, visible) = table.caught(verdicts), table.caught_by_laws(verdicts)
    print(f"{len(verdicts)} mutants: tests caught {by_tests} of {of}, laws {by_laws} of the {visible} that they can see")
    if options.write:
        table.write(verdicts, len(mutants))
    return 0 if by_tests == of else 1


def tell(verdict: judge.Verdict) -> None:
    print(f"{verdict.seconds:5.1f} s  {verdict.key!r}", flush=True)
    laws = verdict.laws if verdict.visible else "cannot see it"
    print(f"         tests: {verdict.tests}\n         laws:  {laws}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
