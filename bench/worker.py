"""One process of `python -m bench`: reads a request as JSON, writes one line of JSON for every case that is finished.

    {"benchmark", "cases", "device", "threads", "allocator", "peers", "seconds", "most"}
    {"kind": "memory", "case", "contender"}     peak memory of one contender, alone in its process

Each worker is a separate process, because glibc reads its settings at process start and because a peer may crash.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, TextIO

import torch

from bench import gate
from bench.contenders import build, take_part
from bench.contest import Contender, Unavailable
from bench.memory import peaks
from bench.plan import Case
from bench.timing import FEWEST, LONG, MOST, take_turns


def main() -> None:
    lines = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # output of packages goes to the error stream
    request = json.loads(sys.stdin.read())
    if request["device"] == "cuda" and not torch.cuda.is_available():
        raise SystemExit("--device cuda: torch finds no GPU here")
    torch.set_num_threads(request["threads"])
    serve(request, lines)


def serve(request: dict[str, Any], lines: TextIO) -> None:
    def say(**event: Any) -> None:
        print(json.dumps(event), file=lines, flush=True)

    last = 0.0

    def report(share: float) -> None:
        nonlocal last
        if time.monotonic() - last > 0.3:
            last = time.monotonic()
            say(event="progress", share=share)

    for described in request["cases"]:
        case = Case(**described)
        say(event="begun", title=case.title)
        if request.get("kind") == "memory":
            say(event="result", result=peaks(case, request, report))
        else:
            say(event="result", result=compare(case, request, report))
        gc.collect()


def compare(case: Case, request: dict[str, Any], report: Callable[[float], None]) -> dict[str, Any]:
    """Checks correctness, then runs the rounds. If one of our contenders is wrong, none of ours is timed in that case."""
    device = request["device"]
    contest = build(case, device)
    floor = contest.floor.make()
    floor.call()
    rows, ready = list[dict[str, Any]](), dict[str, Contender]()
    truths, limits = dict[str, Any](), dict[str, list[float]]()
    for number, entry in enumerate(contest.entries):
        row: dict[str, Any] = {"name": entry.name, "package": entry.package, "ours": entry.ours}
        row |= {} if entry.share is None else {"share": entry.share}
        rows.append(row)
        try:
            take_part(entry, case, request["peers"])
            if entry.truth not in truths and entry.truth in contest.truths:
                truths[entry.truth] = contest.truths[entry.truth]()
                limits[entry.truth] = contest.allowed(entry.truth, truths[entry.truth])
            contender, peak = entry.make(), _peak_on(device)
            begun = time.perf_counter()
            got = contender.results()
            if time.perf_counter() - begun < LONG:  # a second call warms up what the first one compiled
                contender.call()
            row |= {"peak_bytes": peak()} if device == "cuda" else {}
            if entry.truth in truths and (got or entry.ours):
                judged = gate.judge(got, truths[entry.truth], limits[entry.truth])
                row |= {
                    "errors": dict(zip(contest.results, judged.errors, strict=False)),
                    "allowed": dict(zip(contest.results, judged.allowed, strict=True)),
                }
                if entry.ours and not judged.passed:
                    row["status"] = "wrong"
                    continue
            row["status"], ready[entry.name] = "measured", contender
        except Unavailable as reason:
            row["status"] = str(reason)
        except ModuleNotFoundError as error:
            row["status"] = f"not installed: {error.name}"
        except Exception as error:
            row["status"] = (
                f"failed: {type(error).__name__}: {str(error).strip().splitlines()[0][:200] if str(error) else ''}"
            )
        report(0.3 * (number + 1) / len(contest.entries))
    truths.clear()
    ours = [row["name"] for row in rows if row["ours"]]
    red = [row["name"] for row in rows if row["status"] == "wrong"]
    for row in rows:
        if red and row["ours"] and row["status"] == "measured":
            row["status"] = f"not shown: {red[0]} is wrong"
            del ready[row["name"]]
    settle = torch.cuda.synchronize if device == "cuda" else lambda: None
    measured = take_turns(
        {contest.floor.name: floor.call, **{name: contender.call for name, contender in ready.items()}},
        contest.floor.name,
        request["seconds"],
        always=frozenset(name for name in ours if name in ready),
        repeat=contest.repeat,
        fewest=min(FEWEST, request["most"] or FEWEST),
        most=request["most"] or MOST,
        settle=settle,
        report=lambda share: report(0.3 + 0.7 * share),
    )

    def timed(name: str) -> dict[str, Any]:
        seconds, ratio = measured.times(name), measured.ratio(name, contest.floor.name)
        assert seconds is not None
        assert ratio is not None
        return {
            "seconds": asdict(seconds),
            "ratio": asdict(ratio),
            "gb_per_s": contest.moved / seconds.median / 1e9 if contest.moved else None,
        }

    for row in rows:
        if row["name"] in ready:
            row |= timed(row["name"])
            if row["ours"]:
                others = [
                    other["name"] for other in rows if not other["ours"] and other["name"] in ready and "errors" in other
                ]
                pairs = {other: measured.ratio(other, row["name"]) for other in others}
                row["speedup"] = {other: asdict(pair) for other, pair in pairs.items() if pair}
    return {
        "kind": "time",
        "case": case.as_json(),
        "title": case.title,
        "device": device,
        "threads": request["threads"],
        "allocator": request["allocator"],
        "rounds": len(measured.rounds),
        "disturbed": measured.disturbed,
        "disturbed_kept": measured.kept,
        "gate": "red" if red else "green",
        "floor": {"name": contest.floor.name, **timed(contest.floor.name)},
        "rows": rows,
    }


def _peak_on(device: str) -> Callable[[], int]:
    if device != "cuda":
        return lambda: 0
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    return lambda: torch.cuda.max_memory_allocated() - before


if __name__ == "__main__":
    main()
