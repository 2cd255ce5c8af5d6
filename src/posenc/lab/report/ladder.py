"""The report of a ladder as Markdown in one language: scores by rung, stability of the order, what was learnt where."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from posenc.lab.findings.criteria import CONVERGED
from posenc.lab.findings.titles import title
from posenc.lab.findings.wording import numbered
from posenc.lab.report.block import grid
from posenc.lab.report.ladder_pictures import ladder_pictures
from posenc.lab.report.markdown import escaped
from posenc.lab.say import say
from posenc.support.languages import Language, Words, joined

Json = Mapping[str, Any]

TITLE = say("Is it the encoding or the budget?")
INTRODUCTION = say(
    "The same experiment at several scales. An order of encodings is stated only with the scale at which it was seen."
)
SCORES_TEXT = say(
    "↓: still improving. The training loss fell by more than {converged:g} bits in the last fifth of "
    "the steps, or the next rung with more steps is better by more than {converged:g}.",
    converged=CONVERGED,
)
RUNG, STEPS, SIZE, TOKENS, TRIALS = (
    say("rung"),
    say("steps"),
    say("layers × width"),
    say("tokens per model"),
    say("trials found"),
)
SCORES = say("Scores at the trained length, and at the longest")
ORDER = say("Is the order stable?")
ORDER_TEXT = say(
    "Spearman's rank correlation of the mean scores between neighbouring rungs, with the middle 95 % over draws of seeds. "
    "Neighbours are the same model with more steps, or a larger model with the same steps. "
    "A pair changed places if every seed orders it one way at one rung and the other way at the next."
)
ORDER_SEEDS = say(
    "The intervals come from {seeds} and are coarse: few different draws are possible. Of pairs without any difference, "
    "one in {chance} changes places by chance."
)
HEAD = (
    say("from → to"),
    say("length"),
    say("encodings"),
    say("Spearman"),
    say("pairs that changed places"),
    say("changed by the means alone"),
)
KEPT = say(
    "At length {length}, {kept} of {of} pairs have the same order in every seed of every rung, from {least:,} to {most:,} "
    "tokens and up to {size}: {pairs}. Nothing is known beyond these scales."
)
NONE_KEPT = say("At length {length}, no pair has the same order in every seed of every rung.")
KEPT_LEARNT = say(
    "Of the {of} pairs of encodings that had learnt the trained length at every rung, {kept} did. The other pairs compare "
    "with an encoding that had not learnt it at some rung."
)
ALL_IMPROVING = say(
    "Training had not converged for any encoding at any rung, so this is an order at these budgets and not a ranking."
)
LEARNT = say("What was learnt from which rung on")
NEVER = say("at no rung")
ENCODING, NONE, NOT_LEARNT = (say("encoding"), say("none"), say("not learnt"))


def ladder_report(findings: Json, language: Language) -> str:
    def read(words: Words) -> str:
        return escaped(words.in_language(language))

    called = Words(**findings["task"]["title"])
    parts = [f"# {read(TITLE)}", read(INTRODUCTION), f"**{read(called)}**", _rungs(findings, language)]
    parts += [
        f"## {read(SCORES)}",
        *(
            f"![{read(SCORES)}]({name})"
            for name in ladder_pictures(findings)
            if name.endswith(".zh-CN.svg") == (language == "zh")
        ),
        _scores(findings, language),
        read(SCORES_TEXT),
        f"## {read(ORDER)}",
        read(ORDER_TEXT),
        read(_seeds(findings)),
        _order(findings, language),
    ]
    parts += [_kept(findings, kept, language) for kept in findings["kept"]]
    parts += [f"## {read(LEARNT)}", _learnt(findings, language)]
    return "\n\n".join(parts) + "\n"


def _seeds(findings: Json) -> Words:
    fewest = min(rung["seeds"] for rung in findings["rungs"])
    chance = 2 ** (2 * fewest - 1)  # all seeds one way below, all the other way above
    return ORDER_SEEDS.filled(seeds=numbered(fewest, "seed", "seeds"), chance=chance)


def _rungs(findings: Json, language: Language) -> str:
    rows = [
        [
            escaped(rung["name"]),
            f"{rung['steps']:,}",
            f"{rung['size']['n_layers']} × {rung['size']['d_model']}",
            f"{rung['tokens'] or 0:,}",
            f"{rung['trials']['found']} / {rung['trials']['expected']}",
        ]
        for rung in findings["rungs"]
    ]
    return grid([words.in_language(language) for words in (RUNG, STEPS, SIZE, TOKENS, TRIALS)], rows)


def _scores(findings: Json, language: Language) -> str:
    lengths = list(dict.fromkeys((findings["task"]["length"], findings["task"]["lengths"][-1])))
    head = [ENCODING.in_language(language)]
    head += [f"{escaped(rung['name'])}: {length}" for length in lengths for rung in findings["rungs"]]
    rows = []
    for name, arms in findings["arms"].items():
        cells = [_score(findings, arm, length, language) for length in lengths for arm in arms]
        rows.append([escaped(title(name).in_language(language)), *cells])
    return grid(head, rows)


def _score(findings: Json, arm: Json, length: int, language: Language) -> str:
    mean = arm["means"][str(length)]
    if mean is None:
        return "–"
    score = f"{mean:.2f}" if findings["task"]["measure"] == "bits" else f"{100 * mean:.1f}"
    if not arm["learnt"]:
        return f"{score} ({NOT_LEARNT.in_language(language)})"
    return f"{score} ↓" if arm["converged"] is False else score


def _order(findings: Json, language: Language) -> str:
    rows = []
    for step in findings["steps"]:
        interval = step["interval"]
        spearman = "–" if interval is None else f"{step['spearman']:.2f} ({interval[0]:.2f}–{interval[1]:.2f})"
        pairs = [_pairs(step[kind], language) for kind in ("swapped", "unsure")]
        who = f"{escaped(step['from'])} → {escaped(step['to'])}"
        rows.append([who, str(step["length"]), str(len(step["encodings"])), spearman, *pairs])
    return grid([words.in_language(language) for words in HEAD], rows)


def _kept(findings: Json, kept: Json, language: Language) -> str:
    """Which pairs never changed places, and the scales at which that was seen."""
    worse: dict[str, list[str]] = {}
    for better, other in kept["pairs"]:
        worse.setdefault(better, []).append(other)
    behind = sorted(worse.items(), key=lambda item: -len(item[1]))
    pairs = [
        say("{better} before {rest}", better=title(better), rest=rest)
        for better, others in behind
        for rest in [joined(map(title, others), ", ", "、")]
    ]
    tokens, sizes = [rung["tokens"] or 0 for rung in findings["rungs"]], [rung["size"] for rung in findings["rungs"]]
    largest = max(sizes, key=lambda size: size["n_layers"] * size["d_model"] ** 2)
    sentence = KEPT if pairs else NONE_KEPT
    return escaped(
        sentence.in_language(language).format(
            length=kept["length"],
            kept=len(kept["pairs"]),
            of=kept["of"],
            least=min(tokens),
            most=max(tokens),
            size=f"{largest['n_layers']} × {largest['d_model']}",
            pairs=joined(pairs, "; ", "；").in_language(language),
        )
        + _gap(language)
        + KEPT_LEARNT.in_language(language).format(of=kept["of_learnt"], kept=len(kept["pairs_learnt"]))
        + (_gap(language) + ALL_IMPROVING.in_language(language) if _none_converged(findings) else "")
    )


def _none_converged(findings: Json) -> bool:
    return all(rung["converged"] is False for rungs in findings["arms"].values() for rung in rungs)


def _gap(language: Language) -> str:
    return " " if language == "en" else ""


def _pairs(pairs: list[list[str]], language: Language) -> str:
    each = [joined(map(title, pair), " / ", " / ").in_language(language) for pair in pairs]
    return escaped(", ".join(each)) if each else NONE.in_language(language)


def _learnt(findings: Json, language: Language) -> str:
    rows = [
        [escaped(title(name).in_language(language)), escaped(rung) if rung else NEVER.in_language(language)]
        for name, rung in findings["learnt_from"].items()
    ]
    return grid([ENCODING.in_language(language), RUNG.in_language(language)], rows)
