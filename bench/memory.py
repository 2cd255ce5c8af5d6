"""Peak memory beyond the inputs, including the result; a fresh process for each contender.

peak = most resident memory while it prepares and calls - resident memory before, inputs made and a small call done
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from bench.contenders import build, take_part
from bench.contest import Unavailable
from bench.plan import ROOT, Case
from posenc.pictures.process import forget_peak, resident

SMALL = 40  # tokens of a call that loads code before the measurement


def peaks(case: Case, request: dict[str, Any], report: Callable[[float], None]) -> dict[str, Any]:
    contest = build(case, "cpu")
    floor, rows = dict[str, Any](), list[dict[str, Any]]()
    for number, entry in enumerate([contest.floor, *contest.entries]):
        row: dict[str, Any] = {"name": entry.name, "package": entry.package, "ours": entry.ours}
        try:
            take_part(entry, case, request["peers"])
            row |= _alone(case, number, request)
        except Unavailable as reason:
            row["status"] = str(reason)
        floor = row if number == 0 else floor
        rows += [row] if number else []
        report((number + 1) / (1 + len(contest.entries)))
    same = {name: request[name] for name in ("threads", "allocator")}
    title = f"{case.title}, {case.length} tokens: peak memory"
    return {
        "kind": "memory",
        "case": case.as_json(),
        "title": title,
        "device": "cpu",
        **same,
        "gate": "green",
        "floor": floor,
        "rows": rows,
    }


def _alone(case: Case, number: int, request: dict[str, Any]) -> dict[str, Any]:
    message = json.dumps({"case": case.as_json(), "number": number, "threads": request["threads"]})
    done = subprocess.run(
        [sys.executable, "-m", "bench.memory"], input=message, capture_output=True, encoding="utf-8", check=False, cwd=ROOT
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        return {"status": f"failed: {last[:200]}"}
    return {"status": "measured", "peak_bytes": json.loads(done.stdout.splitlines()[-1])}


def main() -> None:
    message = json.loads(sys.stdin.read())
    torch.set_num_threads(message["threads"])
    full = Case(**message["case"])
    for case in (replace(full, length=min(SMALL, full.length)), full):
        contest = build(case, "cpu")
        contender = contest.floor.make()  # makes the inputs
        before = resident("VmRSS")
        forget_peak()
        if message["number"]:
            contender = contest.entries[message["number"] - 1].make()
        contender.call()
    print(json.dumps(max(resident("VmHWM") - before, 0)))


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    main()
