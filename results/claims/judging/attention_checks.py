"""Checks of published claims about attention and learned tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from judging.deciding import Link, Ours, Score, decide
from judging.our_scores import TEXT, Found, Judge, Untested, arm_of, task_of
from judging.say import say
from judging.task_checks import ORDER
from posenc.lab.findings.titles import title
from posenc.support.languages import Words

EVEN = "even"  # attention that is the same for every word
ALIKE = 0.05  # cosine; smaller differences are noise in a small table


def looks_at(link: str, than: str) -> Judge:
    """At the end of training: the mean over layers and heads, with the best encoding of that task."""

    def judge(findings: Found) -> Ours:
        task = task_of(findings, ORDER)
        best = task["gate"]["best"]
        if best is None:
            raise Untested(say("{title}: not run", title=Words(**task["title"])))
        arm_of(task, best)
        rows = [row for row in task["links"] if row["arm"] == best and row["link"] in (link, than)]
        last = max((row["step"] for row in rows), default=None)
        ends = [row for row in rows if row["step"] == last]
        if {row["link"] for row in ends} != {link, than}:
            raise Untested(say("attention between these words was not recorded"))
        scores = {which: _by_seed([row for row in ends if row["link"] == which], "probability") for which in (link, than)}
        scores[EVEN] = _by_seed([row for row in ends if row["link"] == link], "even")
        at, name = {which: score.mean for which, score in scores.items()}, title(best)
        words = say(
            "{name}: {link} {at:.3f}, {than} {at_than:.3f}, even {at_even:.3f}",
            name=name,
            link=link,
            at=at[link],
            than=than,
            at_than=at[than],
            at_even=at[EVEN],
        )
        even = say("{link} > even", link=link)
        links = [
            Link(Words(f"{link} > {than}"), lambda at: at[link] - at[than], strict=True, shows=best),
            Link(even, lambda at: at[link] - at[EVEN], strict=True, shows=best),
        ]
        return decide(scores, links, words, say("mean over layers and heads"))

    return judge


def _by_seed(rows: Sequence[Mapping[str, Any]], number: str) -> Score:
    """The mean over layers and heads of each seed, and over the seeds."""
    seeds = {str(row["seed"]) for row in rows}
    each = {seed: [row[number] for row in rows if str(row["seed"]) == seed] for seed in sorted(seeds)}
    means = {seed: sum(of) / len(of) for seed, of in each.items()}
    return Score(sum(means.values()) / len(means), means)


def neighbours_grow_alike(findings: Found) -> Ours:
    for task in findings["tasks"]:
        if (seen := task["similarity"]) is not None and len(seen["steps"]) > 1:
            arm_of(task, seen["arm"])
            before, after = (nearness(seen["matrices"][at]) for at in (0, -1))
            first, last = seen["steps"][0], seen["steps"][-1]
            words = say(
                "cosine of neighbours less that of distant rows: {before:+.3f} at step {first}, {after:+.3f} at {last}",
                before=before,
                first=first,
                after=after,
                last=last,
            )
            return Ours(words, after - before >= ALIKE, say("first seed"))
    raise Untested(say("no learned table was watched in training"))


def nearness(matrix: Sequence[Sequence[float]]) -> float:
    """Mean cosine of neighbouring rows minus that of rows at least half a table apart."""
    near = [matrix[n][n + 1] for n in range(len(matrix) - 1)]
    far = [value for n, line in enumerate(matrix) for m, value in enumerate(line) if m - n >= max(len(matrix) // 2, 2)]
    return sum(near) / len(near) - sum(far) / len(far) if near and far else 0.0


def looks_near(name: str) -> Judge:
    """Compares the trained model's attention to the nearer and to the farther half of the recorded distances."""

    def judge(findings: Found) -> Ours:
        task = task_of(findings, TEXT)
        arm_of(task, name)
        rows = [row for row in task["attention"] if row["arm"] == name]
        last = max((row["step"] for row in rows), default=None)
        heads = [row["probability"] for row in rows if row["step"] == last and len(row["probability"]) > 1]
        if not heads:
            raise Untested(say("attention of {name} was not recorded", name=title(name)))
        near = sum(sum(head[: len(head) // 2]) / (len(head) // 2) for head in heads) / len(heads)
        far = sum(sum(head[len(head) // 2 :]) / (len(head) - len(head) // 2) for head in heads) / len(heads)
        words = say(
            "mean probability {near:.4f} over the nearer half of the distances, {far:.4f} over the farther",
            near=near,
            far=far,
        )
        why = say("first seed, mean over layers and heads; it is of the text as much as of the encoding")
        return Ours(words, near > far, why)

    return judge
