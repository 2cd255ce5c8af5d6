"""What the page computes where no server is, against Python: random states of each view, through one node process.

Every array is equal to 1e-6 of its largest number; texts, whole numbers and refusals are equal. Numbers that are rounding
error, below 1e-9, have no digits to compare: both have to stay below it.
"""

from __future__ import annotations

import json
import math
import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import BOTH, METHODS
from posenc.explorer import trained_words, views
from posenc.explorer.data import Data, plain
from posenc.explorer.parameters import Refused

WEB = Path(__file__).parents[2] / "web"
COMPUTED = sorted(path.stem for path in (WEB / "src" / "computed").glob("*.ts"))
# settings with values that only Python computes
ELSEWHERE = {
    "wavelengths": "config",
    "extrapolation": "config",
    "bias": "method",
    "order": "encoding",
    "attention": "encoding",
}
ORDERS = ("", "x", "0,1", "1,0,2,3,4,5", "5,4,0,1,2,3", "2,0,1", "0,0,1,2,3,4", ",".join(map(str, range(23, -1, -1))))
MIXED = {("binary", "closest")}  # each column is of its own kind
MANY, FEW = 12, {"stretch": 3}  # states of a view; of one whose Python takes seconds. make acceptance tries 500
EXACT, BOUND = 1e-6, 1e-9
WORDS = (
    *("The", "cat", "don't", "state-of-the-art", "naïve", "Ünder", "3", "42", "½", "猫", "老鼠", "我爱你", "人工智能"),
    *("❤️", "🐱", "🇨🇳", "👩\u200d🚀", "שלום", "مرحبا", "हिन्दी", "ﬁ", "\uff41", "\u2167", "x_y", "<b>", "&", "$k"),
)
BETWEEN = (" ", " ", "  ", ", ", "\uff0c", "", "\u3000", "。", "_", "\t", "\u200d", "\ufeff")


@pytest.fixture(scope="module")
def page() -> Iterator[Any]:
    """`page(view, asked)`: what the page computes."""
    yield from answering({})


@pytest.fixture(scope="module")
def page_without_wasm() -> Iterator[Any]:
    yield from answering({"NO_WASM": "1"})


def answering(environment: dict[str, str]) -> Iterator[Any]:
    if shutil.which("node") is None or not (WEB / "node_modules").exists():
        pytest.skip("no node: what the page computes is not compared")
    with subprocess.Popen(
        ["node", "answers.mjs"],
        cwd=WEB,
        env={**os.environ, **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    ) as process:

        def ask(view: str, asked: dict[str, Any]) -> dict[str, Any]:
            assert process.stdin
            assert process.stdout
            process.stdin.write(json.dumps({"view": view, "asked": asked}) + "\n")
            process.stdin.flush()
            answer: dict[str, Any] = json.loads(process.stdout.readline())
            return answer

        yield ask
        process.stdin.close()  # type: ignore[union-attr]


def states(view: str, count: int) -> Iterator[dict[str, Any]]:
    """What each language opens with, then random states; every second one has all but one setting as it opens."""
    drawn = random.Random(view)
    schema = views.schemas()[view]
    openings = [
        {name: (one.get("in_english", one["default"]) if english else one["default"]) for name, one in schema.items()}
        for english in (False, True)
    ]
    yield from openings
    for number in range(count - 2):
        state = dict(openings[number % 2])
        names = [name for name in schema if name != "config"]
        for name in names if number % 2 else [drawn.choice(names)]:
            state[name] = drawn.choice(ORDERS) if name == "asked" else value(schema[name], drawn)
            if (view, name) == ("heads", "sentence") and drawn.random() < 0.8:
                state[name] = known_sentence(drawn)
        if view == "table" and state["length"] * state["d_model"] > 2**15:
            state["d_model"] = 2**15 // state["length"]
        yield state


def value(parameter: dict[str, Any], drawn: random.Random) -> Any:
    """Of all sizes alike, with both ends."""
    kind = parameter["kind"]
    if kind == "boolean":
        return drawn.random() < 0.5
    if kind == "choice":
        computed = [one for one in METHODS if one in parameter["choices"]] if len(parameter["choices"]) > 50 else []
        return drawn.choice(computed * 20 + parameter["choices"])
    if kind == "string":
        return sentence(drawn)
    low, high = parameter["from"], parameter["to"]
    chosen = drawn.choice([low, high, *[sized(low, high, drawn)] * 6])
    if kind == "number":
        return float(chosen)
    step = parameter.get("step", 1)
    return min(max(round(chosen / step) * step, low), high)


def sized(low: float, high: float, drawn: random.Random) -> float:
    if low < 0:
        return drawn.choice((-1, 1)) * sized(1, high, drawn)
    return math.exp(drawn.uniform(math.log(max(low, 0.5)), math.log(high)))


def sentence(drawn: random.Random) -> str:
    few, many = drawn.choice([(2, 9), (2, 9), (2, 24), (0, 1), (25, 40)])
    words = drawn.choices([*WORDS, "a" * 24, "猫" * 25], [8] * len(WORDS) + [2, 1], k=drawn.randint(few, many))
    return "".join(word + drawn.choice(BETWEEN) for word in words)[:200]


def known_sentence(drawn: random.Random) -> str:
    """Mostly of words that the models of one task know."""
    tasks = trained_words.about()["tasks"]
    task = drawn.choice(list(tasks))
    words = [
        *drawn.choices(tasks[task]["vocabulary"], k=drawn.randint(2, 18)),
        *drawn.choices(WORDS, k=drawn.choice((0, 0, 1))),
    ]
    drawn.shuffle(words)
    return ("" if task == "descriptions" else " ").join(words)[:200]


def held(page: Any, view: str, asked: dict[str, Any]) -> bool:
    """Whether the page computes this state; that it does so rightly."""
    mine = page(view, asked)
    if mine == {"elsewhere": True}:
        assert view in ELSEWHERE, asked
        return False
    python = answer(view, asked)
    if isinstance(python, Refused):
        assert mine["refused"] in (python.words.as_dict(), str(python)), asked
        return True
    assert mine["python"] == python.python, asked
    assert set(mine["arrays"]) == set(python.arrays), asked
    for name, values in python.arrays.items():
        wanted, got = plain(values), mine["arrays"][name]
        assert got["shape"] == list(wanted.shape), (name, asked)
        assert got["whole"] == (wanted.dtype.kind == "i"), (name, asked)
        found = np.array([float(one) for one in got["values"]]).reshape(wanted.shape)
        for one, other in columns(found, wanted.astype(float), (view, name) in MIXED):
            assert worst(one, other) <= 1, (name, asked)
    same(mine["facts"], json.loads(json.dumps(python.facts)), asked)
    return True


def answer(view: str, asked: dict[str, Any]) -> Data | Refused:
    try:
        return views.data(view, asked)
    except Refused as error:
        return error


def columns(found: np.ndarray, wanted: np.ndarray, apart: bool) -> list[tuple[np.ndarray, np.ndarray]]:
    return list(zip(found.T, wanted.T, strict=True)) if apart else [(found, wanted)]


def worst(found: np.ndarray, wanted: np.ndarray) -> float:
    """The largest difference, in units of what is allowed."""
    numbers = np.isfinite(wanted)
    if not np.array_equal(found[~numbers], wanted[~numbers], equal_nan=True):
        return math.inf
    if not numbers.any():
        return 0.0
    allowed = max(EXACT * np.abs(wanted[numbers]).max(), BOUND)
    return float(np.abs(found[numbers] - wanted[numbers]).max() / allowed)


def same(mine: Any, wanted: Any, asked: Any) -> None:
    if isinstance(wanted, dict):
        assert set(mine) == set(wanted), asked
        for name in wanted:
            same(mine[name], wanted[name], asked)
    elif isinstance(wanted, list):
        assert len(mine) == len(wanted), asked
        for one, other in zip(mine, wanted, strict=True):
            same(one, other, asked)
    elif isinstance(wanted, float):
        assert worst(np.array([float(mine)]), np.array([wanted])) <= 1, (mine, wanted, asked)
    else:
        assert mine == wanted, asked


@pytest.mark.parametrize("view", COMPUTED)
def test_the_page_computes_what_python_computes(page, view):
    count = FEW.get(view, MANY)
    assert sum(held(page, view, asked) for asked in states(view, count)) >= count / 4


@pytest.mark.acceptance
@pytest.mark.parametrize("view", COMPUTED)
def test_the_page_computes_what_python_computes_in_many_states(page, view):
    assert sum(held(page, view, asked) for asked in states(view, 500)) >= 125


def test_the_models_write_the_same_without_webassembly(page, page_without_wasm):
    asked = {"prompt": "鲸鱼在海里唱歌。", "length": 128}
    assert held(page_without_wasm, "stretch", asked)
    assert page("stretch", asked) != page_without_wasm("stretch", asked)  # its sums round otherwise


@pytest.mark.parametrize("view", COMPUTED)
def test_what_each_language_opens_with_is_computed(page, view):
    if view in FEW:
        return  # the first of its states, above
    assert all(held(page, view, asked) for asked in states(view, 2))


def test_a_view_is_computed_or_stored():
    assert {name for name in views.NAMES if not hasattr(views.view(name), "EXPORTED")} == set(COMPUTED) - set(BOTH)


def test_a_wrong_number_is_found():
    right = np.array([1.0, -2.0, math.inf])
    near, far = np.array([0, 1e-9, 0]), np.array([0, 1e-5, 0])
    assert worst(right + near, right) < 1 < worst(right + far, right)
    assert worst(np.array([1e-10]), np.array([3e-10])) < 1 < worst(np.array([1e-5]), np.array([3e-10]))
    assert worst(np.array([1.0, -2.0, math.nan]), right) == math.inf
