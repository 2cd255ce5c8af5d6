"""The site finds what `posenc list WORD` finds: its script is run in node over the index that the site is given."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
from pathlib import Path

import build
import found
import pytest
import topics

from posenc.catalogue import lookup
from posenc.explorer.views import PAGES
from test_finding_words import GUESSED, KNOWN, NOTHING

SCRIPT = Path(__file__).parent.parent / "docs" / "site" / "theme" / "found.js"


def in_the_site(words):
    """What the site's script finds for each word."""
    node = shutil.which("node")
    assert node, "no node: the site's script is run with it, as the explorer's page is built with it"
    ask = f"process.stdout.write(JSON.stringify({json.dumps(words)}.map(posencFind)));"
    program = found.found() + SCRIPT.read_text(encoding="utf-8") + ask
    return json.loads(subprocess.run([node, "-"], input=program, capture_output=True, text=True, check=True).stdout)


def test_people_s_words_reach_the_same_page_in_the_site():
    words = {**KNOWN, **GUESSED}
    assert len(words) >= 80
    for (word, name), one in zip(words.items(), in_the_site([*words]), strict=True):
        assert one["entries"], word
        assert one["entries"][0]["entry"] == name, word
        assert all(entry["guess"] == (word in GUESSED) for entry in one["entries"]), word
        assert len(one["entries"]) <= 3
    assert [one["entries"] for one in in_the_site([*NOTHING])] == [[]] * len(NOTHING)


def every_word():
    """What things are called, and the same with a letter lost, doubled or changed for another."""
    named = [word for entry in lookup.ENTRIES for word in (entry.name, *entry.also_called, *entry.page.title.both())]
    named += [term.written for term in lookup.every_term() if term.role != "name"]
    draw = random.Random(0)
    for word in draw.sample(sorted(set(named)), 40):
        yield word
        at = draw.randrange(len(word))
        yield word[:at] + word[at + 1 :]
        yield word[:at] + word[at] + word[at:]
        yield word[:at] + draw.choice("aeo-2 旋") + word[at + 1 :]


def test_the_script_finds_what_python_finds():
    """All three entries, in order, by which word, and whether it is a guess."""
    words = [*every_word(), "Π-RoPE", "ＲｏＰＥ", "2108.12409v2", "emb 🙂", "  rope  ", "İ", "^"]
    words += [
        "ofir  press",
        "Dai ",
        "point transformer",
        "swin transfomer",
        "Transformers",
        "flash attention",
        "千问3.5",
        "a/FLUX.1-dev",
    ]
    for word, one in zip(words, in_the_site(words), strict=True):
        expected = [(it.entry.name, it.term.written, it.guess) for it in lookup.find(word)]
        assert [(it["entry"], it["written"], it["guess"]) for it in one["entries"]] == expected, word


@pytest.mark.parametrize("word", ["MultiheadAttention", "get_alibi_slopes", "M_k"])
def test_words_of_other_libraries_lead_to_functions(word):
    assert in_the_site([word])[0]["elsewhere"] == lookup.look_up(word)


def test_a_method_that_has_no_entry_is_said_to_have_none():
    from posenc.catalogue.methods import groups

    missing = [method for _, rows in groups().values() for method in rows if lookup.entry_for(method) is None]
    assert missing
    for method, one in zip(missing, in_the_site([method.title for method in missing]), strict=True):
        assert one["entries"] == []
        assert one["missing"]["title"] == method.title
        assert one["missing"]["source"] == method.source


# Chapters, views and pages


def topics_of(words):
    """Where the first topics of each word lead."""
    every = [*topics.explorer(), *topics.guide(build.translated())]
    ask = (
        f"process.stdout.write(JSON.stringify({json.dumps(words)}.map((word) => posencTopics(word).map((one) => one.to))));"
    )
    program = found.found(every) + SCRIPT.read_text(encoding="utf-8") + ask
    return json.loads(subprocess.run(["node", "-"], input=program, capture_output=True, text=True, check=True).stdout)


CLOCKS = {"live.html#/story?chapter=3", "live.html#/story?chapter=4", "live.html#/binary"}
ASKED = {
    "why sine": CLOCKS | {"live.html#/table"},
    "时钟": CLOCKS,
    "clock": CLOCKS,
    "why add": {"live.html#/story?chapter=5"},
    "为什么相加": {"live.html#/story?chapter=5"},
    "10000": {"live.html#/wavelengths"},
    "Long texts": {"live.html#/story?chapter=8"},
    "kv cache": {"caches.html"},
    "缓存": {"caches.html"},
    "layouts": {"live.html#/layouts", "layouts.html"},
}


def test_questions_in_either_language_lead_to_chapters_views_and_pages():
    for (word, places), led in zip(ASKED.items(), topics_of([*ASKED]), strict=True):
        assert led[0] in places, (word, led)
        assert len(led) <= 4
    assert topics_of(["qqzzx", "why", "是什么", ""]) == [[], [], [], []]


def test_every_chapter_view_and_page_is_a_topic_in_both_languages():
    every = [*topics.explorer(), *topics.guide(build.translated())]
    led = [one["to"] for one in every]
    assert len({*led}) == len(led)
    assert {f"live.html#/{name}" for name in PAGES} <= {*led}
    assert [one for one in led if "chapter=" in one] == [f"live.html#/story?chapter={n}" for n in range(10)]
    assert {"index.html", "caches.html", "explorer.html"} <= {*led}
    assert not any(one.startswith(("api/", "encodings/")) for one in led)
    for one in every:
        assert re.search("[\u4e00-\u9fff]", one["zh"] + one["words"][1]), one["to"]
        assert one["en"] in one["words"][0].split("\n") or "`" in one["en"]
