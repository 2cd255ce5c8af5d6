"""The report of an experiment that nobody ran: every number in it is looked up again in the findings it was made from."""

from __future__ import annotations

import base64
import csv
import hashlib
import html
import io
import itertools
import json
import random
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from rich.console import Console
from scipy.stats import ttest_rel

from lab_results import SIZES
from posenc.catalogue import lookup
from posenc.lab.commands import answer as answer_screen
from posenc.lab.commands import table as tables_screen
from posenc.lab.findings import answer, needs
from posenc.lab.report import charts, paper, write
from posenc.lab.report.markdown import markdown
from posenc.lab.report.page import page as page_of
from posenc.lab.report.pictures import pictures
from posenc.lab.report.provenance import limits, text_used
from posenc.lab.report.style import COLOURS

Json = dict[str, Any]
NOT_LEARNT = "not learnt at this budget"
BROKEN = "failed: the loss was no number at step 7"
HOSTILE = 'mine.py:<script>alert("1")</script>'


# Findings -------------------------------------------------------------------------------------------------------------


def words(text: str) -> Json:
    return {"en": text, "zh": f"{text}的中文"}


def an_arm(name: str, task: Json, random: random.Random, *, learnt: bool = True, state: str | None = None, seeds: int = 3,
           cannot: tuple[int, ...] = ()) -> Json:  # fmt: skip
    """Numbers that no two cells share."""
    bits = task["measure"] == "bits"
    cells: Json = {}
    for length in task["lengths"]:
        values = {str(seed): random.uniform(2, 5) if bits else random.uniform(0.1, 0.99) for seed in range(seeds)}
        mean = sum(values.values()) / seeds
        cells[str(length)] = {
            "mean": mean,
            "seeds": values,
            "interval": None if bits else [mean - 0.01, mean + 0.01],
            "state": None,
        }
        if length in cannot:
            cells[str(length)] = {
                "mean": None,
                "seeds": {},
                "interval": None,
                "state": f"cannot: table ends at {task['length']}",
            }
        if state and state != NOT_LEARNT:
            cells[str(length)] = {"mean": None, "seeds": {}, "interval": None, "state": state}
    home, far = str(task["length"]), str(max(task["lengths"]))
    sign = 1 if bits else -1
    rise = {}
    if learnt and far != home and cells[far]["mean"] is not None:
        lost = {seed: sign * (cells[far]["seeds"][seed] - cells[home]["seeds"][seed]) for seed in cells[far]["seeds"]}
        rise[far] = {"mean": sum(lost.values()) / seeds, "seeds": lost, "interval": None}
    return {
        "name": name, "learnt": learnt, "converged": True, "slopes": {}, "contiguous": None,
        "state": state, "cells": cells, "non_overlapping": {}, "windows": {}, "options": {}, "rise": rise,
        "factor": {"value": 2.0, "low": 1.0, "high": 4.0, "censored": False} if learnt and far != home else None,
        "area": random.uniform(2, 4) if bits and learnt else random.uniform(0.2, 0.9) if learnt else None,
        "rank": 1.5 if learnt else None, "behaviour": "fades" if learnt else None,
        "by_position": {"length": 256, "position": [0, 64, 128, 192], "bits": [random.uniform(2, 4) for _ in range(4)]}
        if bits and learnt else None,
        "curve": {"step": [10, 20, 30], "bits": [random.uniform(2, 4) for _ in range(3)]} if state in (None, NOT_LEARNT)
        else {"step": [], "bits": []},
        "oracle": None, "learning_rate": 4e-3, "seconds": 12.5, "last_window": None, "gained": {},
    }  # fmt: skip


def a_task(name: str, measure: str, length: int, lengths: list[int], *, causal: bool = True) -> Json:
    bits = measure == "bits"
    return {
        "name": name, "title": words(f"Title of {name}"), "unit": words(f"units of {name}"), "measure": measure,
        "causal": causal, "length": length, "lengths": lengths, "chance": {str(n): 8.0 if bits else 0.03 for n in lengths},
        "floor": None, "controls": None, "shortcuts": None, "against": "trained length",
        "baseline": 3.9 if bits else None, "training": {"steps": 500, "rows": 16}, "learning_rates": [], "own_scales": {},
        "joint_scales": {},
        "settings": {}, "scored": {"rows": 128, "targets": 64 if bits else None},
        "trained_tokens": 512_000, "arms": [], "after": [], "attention": [], "similarity": None, "links": [],
        "detectable": [{"seeds": 3, "least": 0.04}], "rank_seeds": [0, 1, 2],
        "gate": {"rule": words("the rule"), "best": "rope", "limit": 2.84 if bits else 0.95},
    }  # fmt: skip


def made_up() -> Json:
    """Everything that findings may hold: learnt, not learnt, cannot, failed, missing, a hostile name."""
    draw = random.Random(5)
    language = a_task("language_model", "bits", 64, [64, 128, 256])
    language["arms"] = [
        an_arm("rope", language, draw), an_arm("alibi", language, draw),
        an_arm("learned", language, draw, cannot=(128, 256)),
        an_arm("t5", language, draw, learnt=False, state=NOT_LEARNT),
        an_arm("floater", language, draw, learnt=False, state=BROKEN),
        an_arm("shaw", language, draw, learnt=False, state="missing"), an_arm(HOSTILE, language, draw),
        an_arm("rope+randomized", language, draw),
    ]  # fmt: skip
    for cell in language["arms"][6]["cells"].values():  # every seed of it worse than any other
        cell["mean"] += 4
        cell["seeds"] = {seed: number + 4 for seed, number in cell["seeds"].items()}
    language["arms"][0]["non_overlapping"] = {"64": {"mean": 2.777, "seeds": {}}, "128": {"mean": 2.555, "seeds": {}}}
    language["arms"][1]["behaviour"] = "flat"
    language["arms"][1]["factor"] = {"value": 4.0, "low": 4.0, "high": 4.0, "censored": True}
    language["arms"][0]["oracle"] = {"256": {"mean": 2.125, "seeds": {"0": 2.125}, "interval": None, "state": None}}
    cut = {"last_window": None, "gained": {}}
    language["after"] = [{"change": "", "cells": language["arms"][0]["cells"], **cut}]
    language["after"] += [
        {"change": name, "cells": an_arm("rope", language, draw)["cells"], **cut}
        for name in ("interpolation", "ntk", "yarn")
    ]
    copy = a_task("copy", "exact", 16, [8, 16, 32, 64])
    copy["arms"] = [
        an_arm("rope", copy, draw), an_arm("alibi", copy, draw, learnt=False, state=NOT_LEARNT),
        an_arm("learned", copy, draw, cannot=(32, 64)),
    ]  # fmt: skip
    order = a_task("word_order", "exact", 10, [10], causal=False)
    order["arms"] = [an_arm("rope", order, draw), an_arm("nope", order, draw, learnt=False, state=NOT_LEARNT)]
    names = [arm["name"] for arm in language["arms"]] + ["nope"]
    kinds = ("training", "prefill", "decode")
    cost = {
        name: {kind: {"median": 1 + draw.random(), "low": 0.9, "high": 2.1} for kind in kinds}
        | {"parameters": draw.randrange(9000), "table_bytes_per_token": draw.randrange(900)}
        for name in names
    }
    made = {
        "format": 5, "name": "made <up>", "about": words("About & <i>this</i>."), "seeds": [0, 1, 2], "fewest_seeds": 3,
        "exploratory": True,
        "posenc": "0.0", "provenance": {"code": "c0de" * 16, "torch": "2.13.0", "device": "cpu", "text": "7e47" * 16},
        "machine": {"system": "made up", "cores": 2}, "command": "posenc lab run <made-up>",
        "text": {"source": "made <up>", "sha256": "7e47" * 16, "train": {"documents": 9, "bytes": 90000},
                 "held_out": {"documents": 2, "bytes": 9000},
                 "notes": [words("a note")]},
        "trials": {"expected": 30, "found": 28, "failed": 1}, "size": {"d_model": 128, "n_heads": 4, "n_layers": 2},
        "tasks": [language, copy, order],
        "context": None, "cost": {"rounds": 9, "sizes": SIZES, "rows": cost, "device": "cpu"},
        "summary": [words("First sentence."), words("Second <sentence>.")],
        "missing": [{"task": "language_model", "arm": "shaw", "seed": 0, "why": "not run"},
                    {"task": "language_model", "arm": "floater", "seed": 1, "why": BROKEN},
                    {"task": "copy", "arm": "rope", "seed": 2, "why": "not run (trained at the longest length)"}],
    }  # fmt: skip
    return made | {"needs": needs.as_data(made), "answer": answer.answer(made), "properties": None}


def smallest() -> Json:
    """One task, one length, one seed, one arm, and nothing else."""
    task = a_task("counting", "exact", 8, [8])
    task["arms"] = [an_arm("rope", task, random.Random(1), seeds=1)]
    found = made_up()
    nothing: Json = {"cost": None, "summary": [], "missing": [], "text": None, "machine": {}}
    return found | nothing | {"seeds": [0], "fewest_seeds": 1, "name": "at $\\frac$ 5"} | with_tasks([task])


def with_tasks(tasks: list[Json]) -> Json:
    """Other tasks, and what to take by them."""
    alone = {"tasks": tasks, "cost": None, "seeds": [0, 1, 2], "size": {"n_layers": 2}, "missing": []}
    return {"tasks": tasks, "needs": needs.as_data(alone), "answer": answer.answer(alone)}


@pytest.fixture(scope="module")
def found() -> Json:
    return made_up()


@pytest.fixture(scope="module")
def out(found: Json, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report") / "new" / "folder"
    before = json.dumps(found)
    paths = write(found, folder)
    assert json.dumps(found) == before  # reads only
    assert sorted(paths) == sorted(folder.iterdir())
    return folder


@pytest.fixture(scope="module")
def content(out: Path) -> str:
    return (out / "index.html").read_text("utf-8")


# Reading a page -------------------------------------------------------------------------------------------------------


class Element:
    def __init__(self, name: str, attributes: dict[str, str]) -> None:
        self.name, self.attributes = name, attributes
        self.inside: list[Element | str] = []
        self.chart: Json = {}

    @property
    def classes(self) -> list[str]:
        return self.attributes.get("class", "").split()

    def text(self, language: str = "en") -> str:
        """What a reader of that language sees."""
        other = {"en": "zh", "zh": "en"}[language]
        parts = (one if isinstance(one, str) else "" if other in one.classes else one.text(language) for one in self.inside)
        return " ".join("".join(part + " " for part in parts).split())

    def all(self, name: str, kind: str = "") -> list[Element]:
        found = []
        for one in self.inside:
            if isinstance(one, Element):
                if one.name == name and (not kind or kind in one.classes):
                    found.append(one)
                found += one.all(name, kind)
        return found


def element(name: str, *inside: Element | str, **attributes: str) -> Element:
    made = Element(name, {key.rstrip("_"): value for key, value in attributes.items() if value})
    made.inside = list(inside)
    return made


def spoken(words: str | Json) -> list[Element | str]:
    if isinstance(words, str):
        return [words]
    return [element("span", words[language], class_=language) for language in ("en", "zh")]


def inside(cell: Json) -> list[Element | str]:
    small = [element("small", *spoken(cell[part])) for part in ("small", "detail") if part in cell]
    said = spoken(cell["words"])
    return [*([element("code", *said)] if cell.get("kind") == "code" else said), *small]


def built(block: Json) -> list[Element]:
    """A block of the page's data as the elements that it is drawn as; tests/explorer/test_results.py compares the page."""
    said, inner = spoken(block.get("words", "")) if block["is"] != "items" else [], block.get("blocks", [])
    below = [one for part in inner for one in built(part)]
    kind = block.get("kind", "")
    if block["is"] == "text":
        return [element("p", *said, class_=kind)]
    if block["is"] == "items":
        return [element("ul", *(element("li", *spoken(words)) for words in block["words"]), class_=kind)]
    if block["is"] == "cards":
        parts = ("need", "pick", "why")
        cards = [[element("div", *spoken(card[part]), class_=part) for part in parts] for card in block["cards"]]
        return [element("div", *card, class_="card") for card in cards]
    if block["is"] == "table":
        head = [element("thead", *(element("th", *inside(cell)) for cell in block["head"]))] if block["head"] else []
        body = []
        for first, *rest in block["rows"]:
            cells = (element("td", *inside(cell), class_=cell.get("kind", "")) for cell in rest)
            body.append(element("tr", element("th", *inside(first), scope="row"), *cells))
        caption = [element("caption", *spoken(block["caption"]))] if "caption" in block else []
        return [element("table", *caption, *head, element("tbody", *body), class_=block.get("kind", "plain"))]
    if block["is"] == "picture":
        drawn = element("figure", class_=block["chart"]["is"])
        drawn.chart = block["chart"]
        return [drawn]
    if block["is"] == "fold":
        return [element("details", element("summary", *said), *below)]
    return [element("article", element("h3", *said), *below, class_=kind or "task")] if block["is"] == "article" else below


def read(content: str) -> Element:
    """The page's data as a tree, with the drawn charts in figures."""
    found = re.search(r'<script type="application/json" id="posenc-about">(.*?)</script>', content, re.DOTALL)
    assert found
    report = json.loads(found[1])
    parts = []
    for one in report["sections"]:
        blocks = (made for block in one["blocks"] for made in built(block))
        parts.append(element("section", element("h2", *spoken(one["words"])), *blocks, id=one["name"]))
    return element("main", element("header", *spoken(report["title"]), " ", *spoken(report["lead"])), *parts)


@pytest.fixture(scope="module")
def page(content: str) -> Element:
    return read(content)


def section(page: Element, name: str) -> Element:
    return next(one for one in page.all("section") if one.attributes.get("id") == name)


def task_of(page: Element, name: str, task: str) -> Element:
    """The part of a section about one task."""
    return next(one for one in section(page, name).all("article", "task") if one.all("h3")[0].text() == f"Title of {task}")


def rows(table: Element) -> dict[str, list[Element]]:
    """Cells by the name in front of them; one that spans several stands several times."""
    found: dict[str, list[Element]] = {}
    for row in table.all("tbody")[0].all("tr"):
        cells = [cell for cell in row.all("td") for _ in range(int(cell.attributes.get("colspan") or 1))]
        found[row.all("th")[0].text()] = cells
    return found


def titled(name: str) -> str:
    """What an encoding is called, by the catalogue."""
    if name == HOSTILE:
        return '<script>alert("1")</script>'
    plain = name.removesuffix("+randomized")
    return lookup.BY_NAME[plain].title + " + random positions" * (name != plain)


def noted(arm: Json) -> str:
    """The name in the heat map, with the remark that it was not learnt."""
    return titled(arm["name"]) + " not learnt" * (arm["state"] == NOT_LEARNT)


# The numbers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [0, 1])
def test_every_cell_of_the_heat_map_is_a_number_of_the_findings(found: Json, page: Element, number: int) -> None:
    task = found["tasks"][number]
    shown = rows(task_of(page, "heat", task["name"]).all("table")[0])
    assert shown.keys() == {noted(arm) for arm in task["arms"]}
    write_number = (lambda x: f"{x:.2f}") if task["measure"] == "bits" else (lambda x: f"{100 * x:.1f}")
    checked = 0
    for arm in task["arms"]:
        cells = shown[noted(arm)]
        for length, cell in zip(task["lengths"], cells[:-1], strict=True):
            value = arm["cells"][str(length)]
            if arm["learnt"] and value["mean"] is not None:
                expected = [write_number(value["mean"]), *map(write_number, value["seeds"].values())]
                assert cell.text().split() == expected
                assert "none" not in cell.classes
                checked += 1
    assert checked == {0: 13, 1: 6}[number]


def test_what_was_not_learnt_is_hatched_and_shown(found: Json, page: Element, content: str) -> None:
    task = found["tasks"][0]
    arm = next(arm for arm in task["arms"] if arm["name"] == "t5")
    home, *beyond = rows(task_of(page, "heat", "language_model").all("table")[0])["T5 not learnt"][:-1]
    assert "not-learnt" in home.classes
    assert home.text().startswith(f"{arm['cells']['64']['mean']:.2f} ")
    for length, cell in zip(task["lengths"][1:], beyond, strict=True):
        assert {"none", "not-learnt"} <= set(cell.classes)
        assert cell.text().startswith(f"{arm['cells'][str(length)]['mean']:.2f} ")


def test_windows_side_by_side_are_a_table_of_their_own(page: Element) -> None:
    shown = rows(task_of(page, "heat", "language_model").all("details")[0].all("table")[0])
    assert {name: [cell.text() for cell in cells] for name, cells in shown.items()} == {"RoPE": ["2.78", "2.56", "–"]}


def test_of_five_seeds_the_interval_is_shown(tmp_path: Path) -> None:
    task = a_task("copy", "exact", 16, [16, 32])
    task["arms"] = [an_arm("rope", task, random.Random(6), seeds=5)]
    write(made_up() | with_tasks([task]) | {"seeds": [0, 1, 2, 3, 4], "fewest_seeds": 5, "exploratory": False}, tmp_path)
    page = read((tmp_path / "index.html").read_text("utf-8"))
    value = task["arms"][0]["cells"]["32"]
    shown = rows(task_of(page, "heat", "copy").all("table")[0])["RoPE"][1].text()
    assert shown == f"{100 * value['mean']:.1f} {100 * value['interval'][0]:.1f}–{100 * value['interval'][1]:.1f}"
    (rope,) = (one for one in curves(section(page, "answer")) if one["arm"] == "rope")
    assert rope["note"] == f"{-100 * task['arms'][0]['rise']['32']['mean']:+.1f}"
    assert sum(len(seeds) for _, _, seeds in rope["points"]) == 10
    assert "are needed to rank" not in page.text()


def test_where_encodings_are_ordered_the_seeds_are_counted_and_few_are_said_to_be_few() -> None:
    """On the page, in Markdown, in LaTeX and in both tables of the terminal."""
    for seeds, said, chinese in (
        (2, "2 seeds; five are needed to rank", "2 个随机种子；排名需要五个"),
        (5, "5 seeds", "5 个随机种子"),
    ):
        task = a_task("copy", "exact", 16, [16, 32])
        task["arms"] = [an_arm(name, task, random.Random(6), seeds=seeds) for name in ("rope", "alibi")]
        found = made_up() | with_tasks([task]) | {"seeds": list(range(seeds)), "fewest_seeds": seeds}
        printed = io.StringIO()
        console = Console(file=printed, width=100)
        for screen in (answer_screen, tables_screen):
            screen.show(found, console, "en")
        shown = " ".join(printed.getvalue().split())
        assert shown.count(said) >= 2
        opening = section(read(page_of(found)), "answer")
        assert f"{said}; small figures" in opening.text()
        assert chinese in opening.text("zh")
        assert f"## The answer\n\n*{said}*\n" in markdown(found, "en")
        assert f"*{chinese}*\n" in markdown(found, "zh")
        assert f" {said}; trained at length" in paper.caption(found, task)
        everything = shown + opening.text() + markdown(found, "en")
        assert ("are needed to rank" in everything) == (seeds < 5)


def test_equal_numbers_keep_a_cell_each(tmp_path: Path) -> None:
    task = a_task("copy", "exact", 16, [16, 32, 64])
    task["arms"] = [an_arm("rope", task, random.Random(7))]
    for cell in task["arms"][0]["cells"].values():
        cell |= {"mean": 1.0, "seeds": {"0": 1.0, "1": 1.0, "2": 1.0}}
    write(made_up() | with_tasks([task]), tmp_path)
    row = task_of(read((tmp_path / "index.html").read_text("utf-8")), "heat", "copy").all("table")[0].all("td")
    assert [cell.text() for cell in row[:-1]] == ["100.0 100.0 100.0 100.0"] * 3


def test_cells_without_a_number_say_why(page: Element) -> None:
    shown = rows(task_of(page, "heat", "language_model").all("table")[0])
    for name, kind, en, zh in (
        ("Learned", "cannot", "cannot: table ends at 64", "不能：位置表止于 64"),
        ("FLOATER", "failed", "failed: the loss was no number at step 7", "失败：the loss was no number at step 7"),
        ("Shaw", "missing", "missing", "缺失"),
    ):
        cell = shown[name][2]
        assert {"none", kind} <= set(cell.classes)
        assert (cell.text(), cell.text("zh")) == (en, zh)
    assert "not-learnt" not in {
        kind for cells in (shown["Learned"], shown["FLOATER"], shown["Shaw"]) for td in cells for kind in td.classes
    }


def test_the_measured_table(found: Json, page: Element) -> None:
    task = found["tasks"][0]
    shown = rows(section(page, "stars").all("table")[0])
    for arm in task["arms"]:
        quality, factor, area, rank, *rest = (cell.text() for cell in shown[titled(arm["name"])])
        cost = found["cost"]["rows"][arm["name"]]
        assert rest[:3] == [f"{cost[kind]['median']:.2f} 0.90–2.10" for kind in ("training", "prefill", "decode")]
        assert rest[3:5] == [f"{cost['parameters']:,}", f"{cost['table_bytes_per_token']:,}"]
        if arm["learnt"]:
            numbers = [arm["cells"]["64"]["mean"], *arm["cells"]["64"]["seeds"].values()]
            assert quality.split() == [f"{number:.2f}" for number in numbers]
            assert factor == (">4× stays" if arm["name"] == "alibi" else "2× (1–>4) fades")
            assert rank == "1.5"
            assert area == f"{arm['area']:.2f}"
    copy = {arm["name"]: arm for arm in found["tasks"][1]["arms"]}
    assert shown["RoPE"][9].text() == f"{100 * copy['rope']['cells']['16']['mean']:.1f} 2× (1–>4)"
    assert shown["ALiBi"][9].text() == f"{100 * copy['alibi']['cells']['16']['mean']:.1f} not learnt"
    assert "unlearnt" in shown["ALiBi"][9].classes
    assert shown["NoPE"][0].text() == "not part of this task"
    order = [name for name in shown if shown[name][2].text().replace(".", "").isdigit()]
    areas = [float(shown[name][2].text()) for name in order]
    assert areas == sorted(areas)
    assert list(shown)[: len(order)] == order  # the others below


def curves(part: Element) -> list[Json]:
    """The series of the first chart of a part of the page."""
    found: list[Json] = part.all("figure")[0].chart["series"]
    return found


def charted(page: Element, task: str) -> Element:
    """The part with the chart of a task: the main one opens the page."""
    return section(page, "answer") if task == "language_model" else task_of(page, "curves", task)


@pytest.mark.parametrize(("number", "drawn"), [(0, 6), (1, 2)])  # the main one with RoPE + YaRN
def test_every_seed_is_in_the_chart(found: Json, page: Element, number: int, drawn: int) -> None:
    task = found["tasks"][number]
    series = {one["arm"]: one for one in curves(charted(page, task["name"])) if one["arm"] and one.get("kind") != "off"}
    assert len(series) == drawn
    times = 1 if task["measure"] == "bits" else 100
    for arm in task["arms"]:
        assert (arm["name"] in series) == arm["learnt"]
        if not arm["learnt"]:
            continue
        one, far = series[arm["name"]], str(max(task["lengths"]))
        assert one["name"] == titled(arm["name"]) or one["name"]["en"] == titled(arm["name"])
        if far in arm["rise"]:
            lost = arm["rise"][far]["mean"]
            assert one["note"] == (f"{lost:+.2f}" if times == 1 else f"{-100 * lost:+.1f}")
        scored = {length: arm["cells"][str(length)] for length in task["lengths"]}
        points = [(n, cell["mean"], list(cell["seeds"].values())) for n, cell in scored.items() if cell["mean"] is not None]
        for (x, mean, seeds), (length, wanted, each) in zip(one["points"], points, strict=True):
            assert x == length
            assert [mean, *seeds] == pytest.approx([times * score for score in (wanted, *each)], abs=1e-12 * times)


def test_a_point_alone_is_the_model_trained_at_the_longest_length(page: Element) -> None:
    (ring,) = (one for one in curves(charted(page, "language_model")) if one.get("kind") == "off")
    assert (ring["name"]["en"], ring["name"]["zh"]) == ("RoPE, trained at 256", "RoPE，训练长度 256")
    assert ring["points"] == [[256, 2.125, []]]


def test_references_far_from_the_curves_are_left_out(page: Element) -> None:
    """Chance is at 8 bits, the curves end below 5; what a byte alone predicts has 3.9."""
    task = a_task("language_model", "bits", 64, [64, 128])
    task["arms"] = [an_arm("rope", task, random.Random(5))]
    drawn = charts.curves(made_up() | with_tasks([task]), task)
    assert drawn
    levels = [one for one in drawn.series if one.kind == "level"]
    assert [(one.name.en, [y for _, y, _ in one.points]) for one in levels] == [("only the byte before", [3.9, 3.9])]
    assert [one["name"]["en"] for one in curves(charted(page, "copy")) if one.get("kind") == "level"] == ["chance"]


def test_what_is_not_drawn_is_named_below(found: Json, page: Element) -> None:
    said = " ".join(one.text() for one in charted(page, "language_model").all("p", "small"))
    mean = next(arm for arm in found["tasks"][0]["arms"] if arm["name"] == "t5")["cells"]["64"]["mean"]
    assert f"T5 ({mean:.2f})" in said
    assert "FLOATER (failed: the loss was no number at step 7)" in said
    assert "Shaw (missing)" in said


def test_a_task_of_one_length_shows_all_and_marks_who_did_not_learn(found: Json, page: Element) -> None:
    chart = task_of(page, "curves", "word_order").all("figure")[0].chart
    assert chart["is"] == "rows"
    assert {row["arm"]: row.get("hollow", False) for row in chart["rows"]} == {"rope": False, "nope": True}
    for row in chart["rows"]:
        arm = next(arm for arm in found["tasks"][2]["arms"] if arm["name"] == row["arm"])["cells"]["10"]
        seeds = [100 * seed for seed in arm["seeds"].values()]
        assert row["seeds"] == pytest.approx(seeds)
        assert (row["value"], row["low"], row["high"]) == pytest.approx((100 * arm["mean"], min(seeds), max(seeds)))


def test_changes_after_training(found: Json, page: Element) -> None:
    task = found["tasks"][0]
    shown = rows(section(page, "after").all("table")[0])
    for changed, name in zip(task["after"], ("none", "interpolation", "NTK", "YaRN"), strict=True):
        for length, cell in zip(task["lengths"], shown[name], strict=True):
            value = changed["cells"][str(length)]
            assert cell.text().split() == [f"{one:.2f}" for one in (value["mean"], *value["seeds"].values())]
    at = {name: changed["cells"]["256"]["mean"] for changed, name in zip(task["after"], shown, strict=True)}
    best = min(at, key=lambda name: at[name])
    said = " ".join(one.text() for one in section(page, "after").all("p"))
    start = f"at 4× the trained length, {best} has the best mean, {at[best]:.2f} bits, "
    assert start in said
    rest = said.partition(start)[2]
    assert re.match(r"(undecided against .+|ahead of the next by .+); without a change the score is ", rest), rest
    assert f"without a change the score is {at['none']:.2f}." in rest


def test_cards_are_the_best_and_their_ties(found: Json, page: Element) -> None:
    arms = [arm for arm in found["tasks"][0]["arms"] if arm["learnt"]]
    shown = [[part.text() for part in card.all("div")] for card in section(page, "said").all("div", "card")]
    best = min(arms, key=lambda arm: arm["cells"]["64"]["mean"])
    need, pick, why = shown[0]
    assert need == "Text no longer than in training"
    assert why == f"{best['cells']['64']['mean']:.2f} bits at 64"
    seeds = {arm["name"]: list(arm["cells"]["64"]["seeds"].values()) for arm in arms}
    chances = {pair: ttest_rel(*(seeds[name] for name in pair)).pvalue for pair in itertools.combinations(seeds, 2)}
    apart = set()
    for n, (pair, chance) in enumerate(sorted(chances.items(), key=lambda one: one[1])):  # Holm
        if chance > 0.05 / (len(chances) - n):
            break
        apart.add(frozenset(pair))
    tied = {titled(name) for name in seeds if frozenset((name, best["name"])) not in apart}
    named = re.sub(r" and \d+ more$", "", pick).split(", ")
    more = re.search(r" and (\d+) more$", pick)
    assert named[0] == titled(best["name"])
    assert set(named) <= tied
    assert len(named) + (int(more[1]) if more else 0) == len(tied)
    reach = [arm for arm in arms if arm["cells"]["256"]["mean"] is not None]
    best = min(reach, key=lambda arm: arm["cells"]["256"]["mean"])
    assert shown[1][2] == f"{best['cells']['256']['mean']:.2f} bits at 256, {best['rise']['256']['mean']:+.2f} bits from 64"
    assert [one.text() for one in section(page, "said").all("li")] == ["First sentence.", "Second <sentence>."]


def test_nothing_on_the_front_is_beaten(found: Json, page: Element) -> None:
    arms = [arm for arm in found["tasks"][0]["arms"] if arm["learnt"]]
    time = {arm["name"]: found["cost"]["rows"][arm["name"]]["training"]["median"] for arm in arms}
    front = {
        arm["name"] for arm in arms
        if not any(time[other["name"]] < time[arm["name"]] and other["area"] < arm["area"] for other in arms)
    }  # fmt: skip
    reached, area = (one.chart["series"] for one in section(page, "pareto").all("figure"))
    assert {one["arm"] for one in area if one.get("kind") != "off"} == front
    assert 0 < len(front) < len(arms)
    assert {one["arm"]: one["points"] for one in area} == {
        arm["name"]: [[time[arm["name"]], arm["area"], []]] for arm in arms
    }
    assert "ALiBi >4×" in [one["name"] for one in reached]


def test_loss_by_position(found: Json, page: Element) -> None:
    shown = rows(section(page, "positions").all("table")[0])
    for arm in found["tasks"][0]["arms"]:
        if arm["learnt"]:
            assert [cell.text() for cell in shown[titled(arm["name"])]] == [
                f"{bits:.2f}" for bits in arm["by_position"]["bits"]
            ]
    assert "T5" not in shown


def test_many_positions_are_averaged_in_groups(tmp_path: Path) -> None:
    task = a_task("language_model", "bits", 64, [64, 512])
    task["arms"] = [an_arm("rope", task, random.Random(8))]
    bits = [random.Random(n).uniform(2, 5) for n in range(512)]
    task["arms"][0]["by_position"] = {"length": 512, "position": list(range(512)), "bits": bits}
    write(made_up() | with_tasks([task]), tmp_path)
    shown = section(read((tmp_path / "index.html").read_text("utf-8")), "positions")
    expected = [sum(bits[n : n + 22]) / len(bits[n : n + 22]) for n in range(0, 512, 22)]
    assert [cell.text() for cell in rows(shown.all("table")[0])["RoPE"]] == [f"{mean:.2f}" for mean in expected]
    assert "each point averages 22 positions" in shown.text()


# The page as a page ---------------------------------------------------------------------------------------------------


def test_sections_stand_in_their_order(page: Element) -> None:
    names = [one.attributes["id"] for one in page.all("section")]
    assert names == ["answer", "said", "stars", "curves", "heat", "after", "cost", "pareto", "positions", "how"]


def test_settings_in_place_of_defaults_are_limitations() -> None:
    found = made_up()
    found["tasks"][0]["settings"] = {"fire": {"first_length": 32}, "t5": {"max_distance": 16, "n_buckets": 16}}
    for language, said in (
        ("en", "defaults, for this trained length: FIRE (first_length 32), T5 (max_distance 16, n_buckets 16)."),
        ("zh", "按训练长度设定，不取默认值：FIRE（first_length 32）、T5（max_distance 16，n_buckets 16）。"),
    ):
        assert said in "\n".join(words.in_language(language) for words in limits(found))  # type: ignore[arg-type]
        assert said.replace("_", "\\_") in markdown(found, language)  # type: ignore[arg-type]


def test_the_text_and_what_is_scored_of_it_are_told() -> None:
    found = made_up()
    for language, said in (
        ("en", "Text: made <up>, 9 documents of 90,000 bytes to train on and"),
        ("zh", "文本：made <up>；训练用 9 篇、90,000 字节"),
    ):
        assert text_used(found).in_language(language).startswith(said)  # type: ignore[arg-type]
        assert said.replace("<", "&lt;") in markdown(found, language)  # type: ignore[arg-type]
    assert (
        "Title of language_model: scored on 128 windows of held-out documents, the last 64 bytes of each"
        in text_used(found).en
    )
    assert "Title of copy" not in text_used(found).en
    assert text_used({**found, "text": None}).en == ""


def test_how_it_was_done(page: Element) -> None:
    said, chinese = section(page, "how").text(), section(page, "how").text("zh")
    for part in (
        "posenc lab run <made-up>", "28 of 30 present, 1 of them failed", "c0de" * 16, "2.13.0", "made up", "7e47" * 16,
        "the rule (limit 2.84 bits)", "500 steps, 512,000 tokens a model", "0.004 for all, not tuned", "8 [16] 32 64",
        "not run (trained at the longest length)", "five are needed to rank",
    ):  # fmt: skip
        assert part in said, part
    assert "未运行（在最长长度上训练）" in chinese


def test_nothing_is_asked_of_the_network_and_only_the_page_s_script_may_run(content: str) -> None:
    """tests/explorer/test_results.py watches a browser ask for nothing."""
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)|url\(|@import|fetch\(|XMLHttp|import\(", content)
    assert not re.search(r"<(link rel=\"(?!icon)|iframe|object|embed|form|base|img|style)", content)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', content)
    assert policy
    rules = dict(rule.strip().split(" ", 1) for rule in html.unescape(policy[1]).split(";"))
    assert (rules["default-src"], rules["img-src"], rules["base-uri"], rules["form-action"]) == (
        "'none'",
        "data:",
        *["'none'"] * 2,
    )
    (running,) = re.findall(r'<script type="module">(.*?)</script>', content, re.DOTALL)
    assert rules["script-src"] == f"'sha256-{base64.b64encode(hashlib.sha256(running.encode()).digest()).decode()}'"


def walk(one: Element) -> list[Element]:
    below = [deeper for inner in one.inside if isinstance(inner, Element) for deeper in walk(inner)]
    return [*(inner for inner in one.inside if isinstance(inner, Element)), *below]


@pytest.fixture
def marked(marked_as_chinese: None, tmp_path: Path) -> str:
    """The page where every sentence has a translation."""
    write(made_up(), tmp_path)
    return (tmp_path / "index.html").read_text("utf-8")


def test_both_languages_everywhere(marked: str) -> None:
    page, pairs = read(marked), 0
    for one in [page, *walk(page)]:
        spoken = [inner for inner in one.inside if isinstance(inner, Element) and {"en", "zh"} & set(inner.classes)]
        assert [next(kind for kind in inner.classes if kind in ("en", "zh")) for inner in spoken] == ["en", "zh"] * (
            len(spoken) // 2
        )
        assert all(inner.text("zh" if "zh" in inner.classes else "en") for inner in spoken)
        pairs += len(spoken) // 2
        for inner in spoken:
            if "zh" in inner.classes:
                assert re.search(r"[\u4e00-\u9fff、]", inner.text("zh")), inner.text("zh")
            elif one.name != "option":
                assert not re.search(r"[\u4e00-\u9fff]", inner.text("en")), inner.text("en")
    assert pairs > 200
    assert not re.search(r"\{\w+\}", page.text() + page.text("zh"))


def test_no_word_stands_in_one_language_alone(marked: str) -> None:
    """Outside of spans there are only names, numbers, code, and what a machine said."""
    alone = set()
    for one in walk(read(marked)):
        if one.name in ("script", "style", "code", "title", "output", "button", "option") or {"en", "zh", "brand"} & set(
            one.classes
        ):
            continue
        alone |= {
            inner.strip()
            for inner in one.inside
            if isinstance(inner, str) and re.search(r"[A-Za-z]{3}|[\u4e00-\u9fff]", inner)
        }
    known = {titled(arm) for arm in ("rope", "alibi", "learned", "t5", "floater", "shaw", "nope", HOSTILE)}
    known |= {"YaRN", "NTK", "A <et> al.", "无聊→电影", "<b>精彩</b>→表演"}
    assert {
        text
        for text in alone - known
        if not re.match(r"RoPE|ALiBi|Learned|<script>|source |d_model|posenc 0.0|system |Shaw|, ", text)
    } == set()


def test_many_that_are_alike_are_counted(tmp_path: Path) -> None:
    task = a_task("copy", "exact", 16, [16, 32])
    task["arms"] = [an_arm(name, task, random.Random(9)) for name in ("rope", "alibi", "t5", "shaw", "cope", "nope")]
    write(made_up() | with_tasks([task]), tmp_path)
    card = section(read((tmp_path / "index.html").read_text("utf-8")), "said").all("div", "card")[0]
    assert [card.all("div", "pick")[0].text(language) for language in ("en", "zh")] == [
        "RoPE, ALiBi, T5 and 3 more", "RoPE、ALiBi、T5 等 6 种"
    ]  # fmt: skip


def test_what_others_wrote_is_text_and_nothing_else(content: str, page: Element) -> None:
    for raw in ("<script>alert", "<i>this</i>", "<made-up>", "made <up>", "Second <sentence>"):
        assert raw not in content
        assert raw.replace("<", "\\u003c") in content or raw == "<script>alert"
    assert content.count("<script") == content.count("</script>") == 2  # the data, and the one that runs
    assert titled(HOSTILE) in rows(section(page, "stars").all("table")[0])


def test_every_heading_of_a_table_is_one(page: Element) -> None:
    for table in page.all("table"):
        width = len(table.all("thead")[0].all("th")) if table.all("thead") else 2
        for row in table.all("tbody")[0].all("tr"):
            cells = sum(int(cell.attributes.get("colspan") or 1) for cell in row.all("td"))
            assert len(row.all("th")) + cells == width
            assert row.all("th")[0].attributes["scope"] == "row"


# Less, and more -------------------------------------------------------------------------------------------------------


def test_the_smallest_experiment(tmp_path: Path) -> None:
    paths = {path.name for path in write(smallest(), tmp_path)}
    assert paths == {"index.html", "cells.csv", "summary.csv", "report.md", "report.zh-CN.md",
                     "curves-counting.svg", "curves-counting.zh-CN.svg"}  # fmt: skip
    page = read((tmp_path / "index.html").read_text("utf-8"))
    assert [one.attributes["id"] for one in page.all("section")] == ["answer", "said", "stars", "curves", "heat", "how"]
    assert "Cost was not measured" in section(page, "stars").text()
    assert "No trial is missing" in section(page, "how").text()
    assert "on one task" in page.all("header")[0].text()


@pytest.mark.parametrize("state", [NOT_LEARNT, "failed: no", "missing", "cannot: causal only"])
@pytest.mark.parametrize("lengths", [[64], [64, 128]])
def test_nobody_learnt_anything(state: str, lengths: list[int], tmp_path: Path) -> None:
    task = a_task("language_model", "bits", 64, lengths)
    task["arms"] = [an_arm(name, task, random.Random(2), learnt=False, state=state) for name in ("rope", "xpos")]
    task["gate"] = {"rule": words("the rule"), "best": None, "limit": None}
    write(made_up() | with_tasks([task]), tmp_path)
    page = read((tmp_path / "index.html").read_text("utf-8"))
    assert not section(page, "said").all("div", "card")
    assert not section(page, "curves").all("figure", "chart") or state == NOT_LEARNT
    assert not any(one.attributes["id"] in ("after", "pareto", "positions") for one in page.all("section"))


def test_a_full_experiment_stays_small(tmp_path: Path) -> None:
    """Seven tasks, twelve encodings, three seeds."""
    draw = random.Random(3)
    names = [*lookup.FOUNDATION, "rope+randomized"]
    tasks = []
    for n in range(7):
        task = a_task(
            "language_model" if n == 0 else f"task_{n}", "bits" if n < 2 else "exact", 64, [64, 96, 128, 256, 512]
        )
        task["arms"] = [an_arm(name, task, draw) for name in names]
        tasks.append(task)
    write(made_up() | with_tasks(tasks), tmp_path)
    assert (tmp_path / "index.html").stat().st_size < 3e6


def test_findings_of_another_format_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected format 5, got 3"):
        write(made_up() | {"format": 3}, tmp_path)
    with pytest.raises(ValueError, match="at least one task"):
        write(made_up() | {"tasks": []}, tmp_path)
    assert list(tmp_path.iterdir()) == []


# Tables, Markdown, pictures -------------------------------------------------------------------------------------------


def lines(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_text("utf-8"))))


def test_the_long_table_reads_back_to_the_last_digit(found: Json, out: Path) -> None:
    read_back = {
        (row["task"], row["encoding"], row["setting"], row["length"], row["seed"]): float(row["value"])
        for row in lines(out / "cells.csv") if row["value"]
    }  # fmt: skip
    expected = {}
    for task in found["tasks"]:
        settings = [(arm["name"], "trained", arm["cells"]) for arm in task["arms"]]
        settings += [(arm["name"], "oracle", arm["oracle"]) for arm in task["arms"] if arm["oracle"]]
        settings += [("rope", changed["change"] or "unchanged", changed["cells"]) for changed in task["after"]]
        for name, setting, cells in settings:
            for length, cell in cells.items():
                expected |= {(task["name"], name, setting, length, seed): value for seed, value in cell["seeds"].items()}
    assert read_back == expected
    states = {(row["encoding"], row["length"]): row["state"] for row in lines(out / "cells.csv") if not row["value"]}
    assert states["learned", "256"] == "cannot: table ends at 64"
    assert states["shaw", "64"] == "missing"


def test_the_summary_table(found: Json, out: Path) -> None:
    read_back = {(row["task"], row["encoding"]): row for row in lines(out / "summary.csv")}
    assert len(read_back) == sum(len(task["arms"]) for task in found["tasks"])
    for task in found["tasks"]:
        for arm in task["arms"]:
            row = read_back[task["name"], arm["name"]]
            home = arm["cells"][str(task["length"])]
            assert row["quality"] == ("" if home["mean"] is None else repr(home["mean"]))
            assert row["area"] == ("" if arm["area"] is None else repr(arm["area"]))
            assert row["factor_censored"] == ("" if arm["factor"] is None else str(arm["factor"]["censored"]))
            assert float(row["training_median"]) == found["cost"]["rows"][arm["name"]]["training"]["median"]
            assert row["learnt"] == str(arm["learnt"])


def tables(text: str) -> list[list[list[str]]]:
    found: list[list[list[str]]] = []
    for block in text.split("\n\n"):
        if block.startswith("| "):
            found.append(
                [re.split(r" \| ", line.removeprefix("| ").removesuffix(" |")) for line in block.strip().split("\n")]
            )
    return found


@pytest.mark.parametrize(("name", "trained"), [("report.md", "Title of copy"), ("report.zh-CN.md", "Title of copy的中文")])
def test_markdown_holds_the_same_numbers(found: Json, out: Path, name: str, trained: str) -> None:
    text = (out / name).read_text("utf-8")
    assert f"### {trained}\n" in text
    for table in tables(text):
        assert len({len(row) for row in table}) == 1
    cells = next(table for table in tables(text) if table[0][1:4] == ["64 (1×)", "128 (2×)", "256 (4×)"])
    arm = found["tasks"][0]["arms"][0]
    assert ["RoPE", *(f"{arm['cells'][n]['mean']:.2f}" for n in ("64", "128", "256")), "2× (1–>4)"] in cells
    assert "<script>" not in text
    assert re.findall(r"\]\(([^)]*)\)", text) == [
        f"{picture}{'.zh-CN' if name == 'report.zh-CN.md' else ''}.svg"
        for picture in ("curves-language_model", "curves-copy", "curves-word_order", "pareto-factor", "pareto-area")
    ]
    assert "c0de" * 16 in text
    assert ("缺失" in text) == (name == "report.zh-CN.md")


def plain(cell: Element) -> str:
    """What stands in a cell without what is in small type."""
    return " ".join(part if isinstance(part, str) else part.text() for part in cell.inside if not is_small(part)).strip()


def is_small(part: Element | str) -> bool:
    return isinstance(part, Element) and (part.name == "small" or "zh" in part.classes)


def test_page_markdown_and_terminal_print_the_same_tables(found: Json, page: Element, out: Path) -> None:
    folded = [id(table) for fold in page.all("details") for table in fold.all("table")]
    on_page = [
        [
            [plain(cell) for cell in row.all("th") + row.all("td") for _ in range(int(cell.attributes.get("colspan") or 1))]
            for row in table.all("tbody")[0].all("tr")
        ]
        for table in page.all("table")
        if id(table) not in folded
    ]
    in_markdown = [table[2:] for table in tables((out / "report.md").read_text("utf-8"))]
    assert len(on_page) == len(in_markdown) == 9
    compared = 0
    for one, other in zip(on_page, in_markdown, strict=True):
        for row, line in zip(one, other, strict=True):
            for cell, text in zip(row, line, strict=True):
                if not text.strip():
                    continue  # it spans the column before
                assert html.unescape(re.sub(r"\\(.)", r"\1", text)).startswith(" ".join(cell.split())), (cell, text)
                compared += bool(re.search(r"\d", cell))
    assert compared > 100
    printed = io.StringIO()
    tables_screen.show(found, Console(file=printed, width=400), "en")
    shown = printed.getvalue()
    for table in on_page[1:6]:  # the measured table, three of scores, changes
        for name, *cells in table:
            lines = [line for line in shown.splitlines() if line.startswith(name)]
            numbers = [cell for cell in cells if re.match(r"[\d>]", cell)]
            assert any(set(numbers) <= set(re.findall(r"[\d>]\S*(?: \(.*?\))?", line)) for line in lines), (name, numbers)


def test_pictures_for_readmes(found: Json, out: Path) -> None:
    """Files of their own, in each language: nothing is loaded, every seed is a dot, every encoding has its colour."""
    names = {"curves-language_model", "curves-copy", "curves-word_order", "pareto-factor", "pareto-area"}
    assert {path.name for path in out.glob("*.svg")} == {name + end for name in names for end in (".svg", ".zh-CN.svg")}
    for path in out.glob("*.svg"):
        text = path.read_text("utf-8")
        root = ElementTree.fromstring(text)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert not re.search(r"href=\"[^#]|url\([^#]|@import|<script|(?<![\w.-])(nan|inf)(?![\w.-])", text), path.name
        assert bool(re.search(r">[^<]*[\u4e00-\u9fff]", text)) == (".zh-CN" in path.name), path.name
    task = found["tasks"][0]
    drawn = (out / "curves-language_model.svg").read_text("utf-8")
    for arm in task["arms"]:
        assert (f">{html.escape(titled(arm['name']), quote=False)}" in drawn) == arm["learnt"], arm["name"]
    seeds = sum(len(cell["seeds"]) for arm in task["arms"] if arm["learnt"] for cell in arm["cells"].values())
    assert drawn.count("<use ") >= seeds
    front = (out / "pareto-area.svg").read_text("utf-8")
    for arm in task["arms"]:
        assert (f">{html.escape(titled(arm['name']), quote=False)}<" in front) == arm["learnt"], arm["name"]


def test_the_same_findings_draw_the_same_files(found: Json, out: Path) -> None:
    drawn = pictures(found)
    assert {path.name: path.read_bytes() for path in out.glob("*.svg")} == drawn


def test_colours_keep_apart_for_every_eye() -> None:
    """CIE76 in CIELAB; deuteranopia and protanopia after Machado et al. 2009, severity 1."""
    eyes = (
        np.eye(3),
        np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]),
        np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]),
    )

    def lab(colour: str, eye: np.ndarray) -> np.ndarray:
        shown = np.array([int(colour[n : n + 2], 16) for n in (1, 3, 5)]) / 255
        linear = np.clip(eye @ np.where(shown <= 0.04045, shown / 12.92, ((shown + 0.055) / 1.055) ** 2.4), 0, 1)
        xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ linear
        f = np.cbrt(xyz / np.array([0.9505, 1, 1.089]))
        return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])

    for eye in eyes:
        for one, other in itertools.combinations(COLOURS.values(), 2):
            assert np.linalg.norm(lab(one, eye) - lab(other, eye)) > 20, (one, other)
