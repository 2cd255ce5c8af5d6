"""The page behind `posenc choose`: its rows, in their order, and the figures that they show."""

from __future__ import annotations

from typing import Any

from posenc.catalogue.choose.choice import table
from posenc.support.languages import Language

INTRODUCTION = {
    "en": """`posenc choose` asks a few questions and prints the first row below that holds for the answers,
with our figures, where the first name breaks and how to use it.
Names stand in their order: the first advice first. "–" in a column means any
answer; no name means that nothing is to be changed. The figures are of small models; what has none was not measured by us.
""",
    "zh": """`posenc choose` 提几个问题，给出下表中第一个符合回答的行，并附实测数字、首选的局限和用法。
名称按推荐顺序排列；“–”表示任意回答，
没有名称表示无需改动。数字来自小模型；没有数字的即未测。
""",
}
HEADS = {
    "en": ("tokens", "model", "start", "length", "kernel", "take", "reason", "source", "measured"),
    "zh": ("词元", "模型", "从何开始", "长度", "内核", "选择", "理由", "来源", "实测"),
}
TUNED = {"en": {True: "trained further", False: "not trained further"}, "zh": {True: "继续训练", False: "不再训练"}}


def choose_page(language: Language) -> str:
    zh = language == "zh"
    lines = [
        "# 选择编码\n" if zh else "# Which encoding to take\n",
        "[目录](catalogue.md)\n" if zh else "[catalogue](catalogue.md)\n",
        INTRODUCTION[language],
        "| " + " | ".join(HEADS[language]) + " |",
        "|---" * len(HEADS[language]) + "|",
    ]
    lines += [
        "| " + " | ".join(cell.replace("|", "\\|") for cell in cells(rule, language)) + " |" for rule in table()["rule"]
    ]
    lines += ["\n## 实测\n" if zh else "\n## Figures\n"]
    for name, measure in table()["measures"].items():
        near, far = measure["at"]
        of, unit = measure["zh" if zh else "of"], measure["unit"]
        lines += [f"**{name}**: {of}, {unit} ({near}, {far}; {measure['source']})\n"]
        lines += [", ".join(f"{one} {a:g}, {b:g}" for one, (a, b) in measure["figures"].items()) + "\n"]
    return "\n".join(lines).rstrip() + "\n"


def cells(rule: dict[str, Any], language: Language) -> list[str]:
    when = rule["when"]
    length = [*([when["length"]] if "length" in when else []), *([f"≤ {when['factor']} ×"] if "factor" in when else [])]
    tuned = [TUNED[language][when[key]] for key in ("tuned",) if key in when]
    start = [when.get("start", "scratch"), *when.get("of", ()), *tuned]
    take = (f"[{name}](encodings/{name}.md)" for name in rule["take"])
    columns = (when.get("domain", ()), when.get("model", ()), start, length, when.get("kernel", ()), take)
    said = [rule["zh" if language == "zh" else "en"], rule["source"], ", ".join(rule.get("measures", ()))]
    return [*(", ".join(column) or "–" for column in columns), *said]
