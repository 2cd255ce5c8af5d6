"""The worked sums against figures written by hand and against plain Python loops."""

from __future__ import annotations

import cmath
import json
import math
import re

import pytest
import typer
from rich.cells import cell_len
from typer.testing import CliRunner

from posenc.explorer import figures as figures_
from posenc.explorer.commands import walk as walk_
from posenc.learn.ledger import EXAMPLES, ROWS
from posenc.learn.walk import sum_steps


@pytest.fixture(scope="module")
def walks():
    """Every step by example and formula."""
    return {name: {step.formula: step for step in example.steps()} for name, example in EXAMPLES.items()}


def rounds_to(matrix, figures: str):
    """Every entry rounds to the digits written: rows separated by /."""
    rows = [row.split() for row in figures.split("/")]
    assert [len(row) for row in matrix] == [len(row) for row in rows]
    for got, wanted in zip(matrix, rows, strict=True):
        for value, figure in zip(got, wanted, strict=True):
            assert abs(value - float(figure)) <= 0.5 * 10.0 ** -len(figure.partition(".")[2]) + 1e-12, (value, figure)


# 猫 吃 鱼 ---------------------------------------------------------------------------------------------------------------


def test_sum_of_words_and_positions(walks):
    steps = walks["sum"]
    rounds_to(steps["ω_i = 100^(-2i/4)"].matrix, "1.0000 0.1000")
    rounds_to(steps["p·ω_i"].matrix, "0.0000 0.0000 / 1.0000 0.1000 / 2.0000 0.2000")
    rounds_to(
        steps["PE(p) = [sin pω_0, cos pω_0, sin pω_1, cos pω_1]"].matrix,
        "0.0000 1.0000 0.0000 1.0000 / 0.8415 0.5403 0.0998 0.9950 / 0.9093 -0.4161 0.1987 0.9801",
    )
    rounds_to(
        steps["E + PE"].matrix, "0.5000 1.2000 -0.1000 1.3000 / 1.1415 0.1403 0.6998 1.0950 / 0.7093 0.2839 0.5987 0.4801"
    )
    rounds_to(
        steps["P·E + PE"].matrix,
        "-0.2000 1.7000 0.4000 0.5000 / 1.1415 0.1403 0.6998 1.0950 / 1.4093 -0.2161 0.0987 1.2801",
    )
    assert steps["E + PE"].rows == ("猫 0", "吃 1", "鱼 2")
    assert steps["P·E + PE"].rows == ("鱼 0", "吃 1", "猫 2")


def test_sum_shows_what_note_004_cuts_off(walks):
    slips = {(slip.printed, slip.truncated) for step in walks["sum"].values() for slip in step.slips}
    assert slips == {("0.198", True), ("0.598", True)}


def test_another_base_shows_every_digit_that_moves():
    """With base 10000 the second pair turns by 0.01: the four digits of it at positions 1 and 2 are wrong or cut."""
    table = next(step for step in sum_steps(base=10000.0) if step.formula.startswith("PE(p)"))
    assert [(slip.row, slip.column, slip.printed, slip.truncated) for slip in table.slips] == [
        (1, 2, "0.0998", False),
        (1, 3, "0.995", False),
        (2, 2, "0.198", False),
        (2, 3, "0.980", False),
    ]


# 我 喜欢 猫 -------------------------------------------------------------------------------------------------------------

X = [[0.1, 0.2, 0.3], [0.4, 0.5, 0.6], [0.7, 0.8, 0.9]]


def product(a, b):
    return [[sum(x * y for x, y in zip(row, column, strict=True)) for column in zip(*b, strict=True)] for row in a]


def softmax_rows(scores):
    return [[math.exp(s) / sum(map(math.exp, row)) for s in row] for row in scores]


def transposed(a):
    return [list(row) for row in zip(*a, strict=True)]


def assert_equal(matrix, expected):
    for got, wanted in zip(matrix, expected, strict=True):
        assert got == pytest.approx(wanted, abs=1e-12)


def test_attention_by_hand(walks):
    steps = walks["attention"]
    rounds_to(steps["Q = K = V = X·W"].matrix, "0.3000 0.3600 0.4200 / 0.6600 0.8100 0.9600 / 1.0200 1.2600 1.5000")
    rounds_to(steps["Q·Kᵀ"].matrix, "0.3960 0.8928 1.3896 / 0.8928 2.0133 3.1338 / 1.3896 3.1338 4.8780")
    rounds_to(steps["softmax(Q·Kᵀ)"].matrix, "0.1871 0.3075 0.5054 / 0.0742 0.2277 0.6981 / 0.0253 0.1450 0.8296")
    rounds_to(steps["A = softmax(Q·Kᵀ/√3)"].matrix, "0.2435 0.3244 0.4321 / 0.1525 0.2913 0.5562 / 0.0890 0.2437 0.6672")


def test_every_matrix_of_the_attention_follows_from_the_one_before(walks):
    """Plain Python from X and W; no figure is taken from the step itself."""
    steps = walks["attention"]
    q = product(X, X)
    scores = product(q, transposed(q))
    scaled = [[score / math.sqrt(3) for score in row] for row in scores]
    weights = softmax_rows(scaled)
    assert_equal(steps["Q·Kᵀ/√3"].matrix, scaled)
    assert_equal(steps["softmax(Q·Kᵀ)·V"].matrix, product(softmax_rows(scores), q))
    assert_equal(steps["A·V"].matrix, product(weights, q))
    turned = [row[::-1] for row in weights[::-1]]
    assert_equal(steps["A(PX) = softmax(PQ·(PQ)ᵀ/√3)"].matrix, turned)
    assert_equal(steps["P·A(X)·Pᵀ"].matrix, turned)
    assert_equal(steps["A(PX)·PV = P·(A(X)·V)"].matrix, product(weights, q)[::-1])
    assert steps["P·A(X)·Pᵀ"].rows == ("猫", "喜欢", "我")


def test_positions_make_the_order_count(walks):
    steps = walks["attention"]
    slow = 10000 ** (-2 / 3)
    codes = [[math.sin(p), math.cos(p), math.sin(p * slow)] for p in (1, 2, 3)]
    rounds_to(codes, "0.8415 0.5403 0.0022 / 0.9093 -0.4161 0.0043 / 0.1411 -0.9900 0.0065")

    def weights(words):
        q = product([[x + p for x, p in zip(*pair, strict=True)] for pair in zip(words, codes, strict=True)], X)
        return softmax_rows([[score / math.sqrt(3) for score in row] for row in product(q, transposed(q))])

    assert_equal(steps["PE(p) = [sin p, cos p, sin 10000^(-2/3)p]"].matrix, codes)
    moved, carried = weights(X[::-1]), [row[::-1] for row in weights(X)[::-1]]
    assert_equal(steps["A(PX + p)"].matrix, moved)
    assert_equal(steps["P·A(X + p)·Pᵀ"].matrix, carried)
    apart = max(abs(a - b) for one, other in zip(moved, carried, strict=True) for a, b in zip(one, other, strict=True))
    assert f"{apart:.4f}" == "0.6041"
    assert "0.6041" in steps["P·A(X + p)·Pᵀ"].remark.en


def test_the_slips_of_note_004_stand_beside_the_right_numbers(walks):
    steps = walks["attention"]
    wrong = {formula: len(step.slips) for formula, step in steps.items() if step.printed}
    assert wrong == {
        "Q = K = V = X·W": 8,
        "Q·Kᵀ": 9,
        "softmax(Q·Kᵀ)": 9,
        "PE(p) = [sin p, cos p, sin 10000^(-2/3)p]": 8,
        "X + PE": 8,
    }
    first = steps["Q = K = V = X·W"].slips[0]
    assert (first.row, first.column, first.printed, first.truncated) == (0, 1, "0.38", False)
    assert first.right == pytest.approx(0.36, abs=1e-12)
    assert not any(slip.truncated for step in steps.values() for slip in step.slips)
    # The remarks quote the note's own numbers: its Q with itself, and the softmax that its weights are.
    assert round(sum(float(q) ** 2 for q in steps["Q = K = V = X·W"].printed[0]), 3) == 0.446
    assert "0.446" in steps["Q·Kᵀ"].remark.en
    rounds_to(softmax_rows([[0, 1, 2]]), "0.09 0.24 0.67")


# 人工 智能 正在 快速 发展 -----------------------------------------------------------------------------------------------

QUERY = (1.0, 0.5, -0.3, 0.8)
KEYS = ((0.6, -0.2, 0.9, 0.4), (0.3, 0.8, -0.5, 0.2), (0.7, 0.1, 0.4, -0.6), (-0.4, 0.9, 0.2, 0.5), (0.2, -0.7, 0.6, 0.3))
OMEGA = (1.0, 0.1)


def turned(vector, position):
    """Pairs as complex numbers, turned by e^(i·position·ω)."""
    pairs = [complex(*vector[i : i + 2]) * cmath.exp(1j * position * omega) for i, omega in zip((0, 2), OMEGA, strict=True)]
    return [part for pair in pairs for part in (pair.real, pair.imag)]


def inner(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def test_rope_step_by_step(walks):
    steps = walks["rope"]
    query, keys = turned(QUERY, 2), [turned(key, j) for j, key in enumerate(KEYS)]
    assert_equal(steps["q̂_2 = R(2)·q_2"].matrix, [query])
    assert_equal(steps["k̂_j = R(j)·k_j"].matrix, keys)
    scores = [inner(query, key) for key in keys]
    for formula in ("q̂_2·k̂_j", "q_2ᵀ·R(j-2)·k_j", "q_2·Rᵀ(2-j)·k_jᵀ"):
        assert_equal(steps[formula].matrix, [scores])
        assert steps[formula].columns == ("人工 +2", "智能 +1", "正在 0", "快速 -1", "发展 -2")
    assert_equal([scores], [[inner(QUERY, turned(key, j - 2)) for j, key in enumerate(KEYS)]])
    weights = softmax_rows([[score / 2 for score in scores]])
    assert_equal(steps["q̂_2·k̂_j/√4"].matrix, [[score / 2 for score in scores]])
    assert_equal(steps["α_2j = softmax(q̂_2·k̂_j/√4)"].matrix, weights)
    values = [(1.0, 0.0), (0.0, 1.0), (0.5, 0.5), (1.0, 1.0), (0.0, 0.0)]
    assert_equal(steps["o_2 = Σ_j α_2j·v_j"].matrix, product(weights, values))


def test_rope_figures_by_hand(walks):
    steps = walks["rope"]
    rounds_to(steps["q̂_2 = R(2)·q_2"].matrix, "-0.8708 0.7012 -0.4530 0.7245")  # cos 2 - 0.5 sin 2 = -0.8708
    rounds_to(steps["q̂_2·k̂_j"].matrix, "-0.7806 1.2676 0.1500 -0.5294 0.9619")
    rounds_to(steps["q_2·k_2"].matrix, "0.1500")  # .7 + .05 - .12 - .48
    rounds_to(
        steps["R(2)"].matrix,
        "-0.4161 -0.9093 0.0000 0.0000 / 0.9093 -0.4161 0.0000 0.0000"
        "/ 0.0000 0.0000 0.9801 -0.1987 / 0.0000 0.0000 0.1987 0.9801",
    )
    assert all(math.copysign(1, entry) > 0 for row in steps["R(2)"].matrix for entry in row if entry == 0)  # no -0.0000


def test_offsets_are_told_apart_and_the_middle_one_turns_nothing(walks):
    steps = walks["rope"]
    (row,) = steps["q̂_2·R(j)·k_2"].matrix
    assert row == pytest.approx([inner(QUERY, turned(KEYS[2], j - 2)) for j in range(5)], abs=1e-12)
    assert len({round(value, 6) for value in row}) == 5
    assert steps["q̂_2·R(j)·k_2"].columns == ("+2", "+1", "0", "-1", "-2")
    assert row[2] == pytest.approx(inner(QUERY, KEYS[2]), abs=1e-12)


def test_rotation_keeps_lengths(walks):
    steps = walks["rope"]
    for before, after in zip(steps["k_j"].matrix, steps["k̂_j = R(j)·k_j"].matrix, strict=True):
        assert math.hypot(*before) == pytest.approx(math.hypot(*after), abs=1e-12)


def test_the_missing_scale_is_said(walks):
    assert "√d" in walks["rope"]["q̂_2·k̂_j/√4"].remark.en
    assert "√d" in walks["attention"]["Q·Kᵀ/√3"].remark.zh


# PE(2) ------------------------------------------------------------------------------------------------------------------


def test_components():
    eight, code8, four, code4 = EXAMPLES["components"].steps()
    rounds_to(
        eight.matrix,
        "1.0000 2.0000 0.9093 -0.4161 / 10.0000 0.2000 0.1987 0.9801"
        "/ 100.0000 0.0200 0.0200 0.9998 / 1000.0000 0.0020 0.0020 1.0000",
    )
    rounds_to(code8.matrix, "0.9093 / -0.4161 / 0.1987 / 0.9801 / 0.0200 / 0.9998 / 0.0020 / 1.0000")
    rounds_to(four.matrix, "1.0000 2.0000 0.9093 -0.4161 / 100.0000 0.0200 0.0200 0.9998")
    rounds_to(code4.matrix, "0.9093 / -0.4161 / 0.0200 / 0.9998")
    slips = [[(slip.printed, slip.truncated) for slip in step.slips] for step in (eight, code8, four, code4)]
    assert slips == [[("0.9999", True)], [("0.9999", True)], [("0.999", True)], [("0.999", True)]]
    assert "0.999998" in code8.remark.en


# What holds for all of them ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EXAMPLES)
def test_labels_fit_and_both_languages_are_there(name, marked_as_chinese):
    for step in EXAMPLES[name].steps():
        assert len(step.matrix) == len(step.rows)
        assert all(len(row) == len(step.columns) for row in step.matrix)
        assert not step.printed or [len(row) for row in step.printed] == [len(row) for row in step.matrix]
        assert re.search("[\u4e00-\u9fff]", step.title.zh), step.title
        assert step.remark is None or (step.remark.en and re.search("[\u4e00-\u9fff]|cos", step.remark.zh))


# The command ------------------------------------------------------------------------------------------------------------

app = typer.Typer()
app.command()(walk_.command)


def run(*arguments: str, **environment: str):
    return CliRunner().invoke(app, list(arguments), env={"COLUMNS": "80", "LC_ALL": "C.UTF-8", **environment})


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_everything_fits_80_columns(lang):
    results = [run(name, "--lang", lang) for name in ("", *EXAMPLES, *ROWS)]
    assert [result.exit_code for result in results] == [0] * len(results)
    output = "".join(result.output for result in results)
    assert max(map(cell_len, output.splitlines())) <= 80
    assert not re.search(r"\d…", output)  # no number is cut
    for sentence in ("猫 吃 鱼", "我 喜欢 猫", "人工 智能 正在 快速 发展"):
        assert sentence in output
    assert "0.38 → 0.36" in output
    assert re.search(r"吃 1 +1\.1415 +0\.1403 +0\.6998 +1\.0950\n", output)
    assert re.search(r"i=3 +1000 +0\.0020 +0\.0020 +0\.9999 → 1\.0000\n", output)
    assert "0.9999 → 1.0000" in output
    assert ("8 of 9 wrong" if lang == "en" else "9 个数里错了 8 个") in output


# Of every row, figures that the notes, or a sum by hand, give.
FIGURES = {
    "S1": "0.9093 -0.4161 0.1987 0.9801 0.0200 0.9998 0.0020 1.0000",
    "S2": "512 393,216 786,432",
    "S3": "-0.7806 1.2676 0.1500 -0.5294 0.9619",
    "S4": "0.5 0.25 0.125 0.003906 0.7071",
    "S9": "51",
    "S10": "628.3",
    "S12": "6.28 60,611",
    "S13": "6.03e-05 710 0.0444 1885 0.645 63 3.71 737 769",
    "S14": "1.1415 0.1403 0.6998 1.0950 0.7093 0.2839 0.5987 0.4801",
    "S16": "★★★ unlimited",
    "S19": "0.8415 0.5403 0.0998 0.9950",
    "S21": "11 → 12 18 → 19",
}


def test_the_list_has_all_rows_with_both_addresses():
    said = re.sub(r"\s+", " ", run().output)
    for n in range(1, 22):
        assert f"posenc explore S{n} · #S{n} " in said
    assert "posenc show sinusoidal --play" in said


@pytest.mark.parametrize("name", FIGURES)
def test_a_row_prints_its_figures(name):
    output = run(name).output
    for figure in FIGURES[name].split():
        assert figure in output, figure


def test_every_row_has_figures_and_prints_its_claims_with_their_verdicts():
    assert list(figures_.FIGURES) == list(ROWS)
    printed = run("S13").output
    assert [claim.id for claim in ROWS["S13"].claims] == ["slow-neighbours", "neighbours-shrink", "never-repeats"]
    told = [line.split()[-1] for line in printed.splitlines() if line.startswith(" S13 ")]
    assert told == ["false", "false", "partly"]
    assert all(part in printed for part in ("332 times", "3.714", "repeats from 257"))


def test_what_the_rows_say_of_taylor_shift_and_order():
    figures = {name: dict(figures_.FIGURES[name]().rows) for name in ("S7", "S8", "S11", "S20")}
    largest, least = (figures["S8"][f"ε = {eps}"] for eps in ("1", "0.001"))
    with_half, without = (abs(float(least[at])) for at in (1, 2))
    assert with_half < 1e-9 < 1e-8 < without < 1e-6  # ε³ and ε²
    assert abs(float(largest[1])) > 1e-3
    assert all(float(cell) < 1e-13 for cell in figures["S11"]["p = 10"])
    assert all(float(cell) < 1e-9 for cell in figures["S11"]["p = 1,000,000"])
    for cells in figures["S7"].values():
        assert cells[0] == "0"
        assert all(float(cell) > 0.1 for cell in cells[1:])
    for rnn, blind, placed in figures["S20"].values():
        assert blind == "0"
        assert min(float(rnn), float(placed)) > 0.1


def test_columns_stand_below_one_another_with_wide_characters():
    """The right edge of every row of a matrix is that of its rule."""
    output = run("rope").output
    block = output.split("k̂_j = R(j)·k_j")[1].split("Position 0")[0].splitlines()
    widths = {cell_len(line.rstrip()) for line in block if line.strip()}
    assert len(widths) == 1


def test_json_holds_every_step():
    shown = json.loads(run("--json").output)["examples"]
    assert [one["name"] for one in shown] == ["components", "rope", "sum", "attention"]
    (attention,) = json.loads(run("attention", "--json").output)["examples"]
    assert attention["notes"] == ["004_95d627aa5f1ad0aa.txt"]
    queries = attention["steps"][1]
    assert queries["matrix"][2] == pytest.approx([1.02, 1.26, 1.50])
    assert queries["slips"][0] == {
        "row": "我",
        "column": "d1",
        "printed": "0.38",
        "right": pytest.approx(0.36),
        "truncated": False,
    }
    assert queries["title"]["zh"]


def test_an_unknown_example_is_a_usage_error():
    result = run("dance")
    assert result.exit_code == 2
    assert "components, rope, sum, attention" in re.sub(r"\s+", " ", result.output)
    assert run("--lang", "de").exit_code == 2


def test_the_environment_chooses_the_language():
    assert "词向量" in run("sum", LC_ALL="", LC_MESSAGES="", LANG="zh_CN.UTF-8").output
    assert "Word vectors" in run("sum", LANG="zh_CN.UTF-8").output  # LC_ALL comes first
