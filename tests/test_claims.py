"""The claims of the ledger against the founding notes' facts: every row, every figure, written here by hand."""

from __future__ import annotations

import json
import math
import re

import pytest
import torch
import typer
from rich.cells import cell_len
from typer.testing import CliRunner

from posenc import frequencies
from posenc.learn import notes
from posenc.learn.claims.evidence import Verdict
from posenc.learn.commands import claims as claims_
from posenc.learn.ledger import CLAIMS, ROWS
from posenc.support.languages import Words, default_language
from posenc.terminal.wrapped import lines

# The claims table of the project's facts, in its order: what it says, our id, the notes it names, our verdict.
TABLE = (
    ("denominators for d=8", "denominators", "003", "true"),
    ("PE(2) for d=8 ends in 0.9999", "last-cosine", "003 004", "truncated"),
    ("i=256 at d=512", "slow-neighbours", "003", "false"),
    ("differences between neighbours shrink", "neighbours-shrink", "003", "false"),
    ("the third component uses 1/10000²", "third-component", "000", "false"),
    ("training sees low frequencies only", "frequencies-grow", "003", "false"),
    ("self-attention is permutation invariant", "permutation-invariant", "001 002 004", "false"),
    ("wavelengths run to 20000π", "longest-wavelength", "004", "limit"),
    ("X=W gives Q", "query-by-hand", "004", "false"),
    ("its QKᵀ and softmax rows", "scores-by-hand", "004", "false"),
    ("the three position codes", "position-codes", "004", "false"),
    ("reversing leaves the weights the same", "reversed-weights", "004", "false"),
    ("PE(1) ≈ PE(0)·M(1) + PE(1)", "recurrence", "004", "false"),
    ("q̂ᵢ·k̂ⱼ = qᵢ·R(i−j)·kⱼ", "relative-score", "002", "convention"),
    ("no two positions ever repeat", "never-repeats", "000 001 004", "partly"),
    ("sinusoidal extrapolates without limit", "sinusoid-unlimited", "000 001 004", "partly"),
    ("… ALiBi extrapolates best", "alibi-best", "000", "partly"),  # the second half of the row above
    ("RoPE extrapolates smoothly to any length", "rope-unlimited", "000 003", "partly"),
    ("RoPE inherits long-range decay", "rope-decay", "003", "partly"),
    ("mean 0 and variance 1", "mean-and-variance", "004", "false"),
    ("values match L2-normalised embeddings", "same-range", "004", "false"),
    ("after PX the position codes move too", "positions-move-too", "002", "false"),
    ("decay is low fast, high slow; powers of two", "decay-is-spread", "003", "false"),
    ("GPT-2 as an example of a sinusoid", "gpt2-sinusoid", "003", "false"),
    ("absolute only; weak on absolute", "absolute-or-relative", "001 003 004", "contradiction"),
    ("positions 0 and 50 differ in the right half", "right-half", "001", "false"),
    ("sin(pos+k) for every dimension", "addition-theorem", "001", "partly"),
    ("i runs 0, 1, …, d/2", "index-range", "000", "false"),
    ("columns form an orthogonal basis", "orthogonal-columns", "004", "false"),
    ("M(1) is learned by attention", "shift-is-learned", "004", "false"),
    ("every token's attention is nearly the same", "same-attention", "004", "false"),
    ("RoPE helps linear attention; relative suits language", "better-for-language", "002", "opinion"),
)
# Slips in the notes' formulas, code and pictures that other rows of the facts (S3, S5, S7, S8, S10) name.
ALSO = {
    "scale-left-out": "false",
    "set-of-words": "false",
    "taylor-without-half": "false",
    "no-projection-of-r": "false",
    "column-is-index": "false",
}


@pytest.fixture(scope="module")
def findings():
    return {name: claim.check() for name, claim in CLAIMS.items()}


def test_every_row_of_the_table_is_in_the_ledger_and_nothing_unnamed_is():
    assert len(TABLE) == 31 + 1
    assert sorted(CLAIMS) == sorted([row[1] for row in TABLE] + list(ALSO))
    assert [claim.row for claim in CLAIMS.values()] == [row for row in ROWS for _ in ROWS[row].claims]


@pytest.mark.parametrize(("said", "name", "where", "verdict"), TABLE, ids=[row[1] for row in TABLE])
def test_verdict_and_notes_of_every_row(findings, said, name, where, verdict):
    assert findings[name].verdict == verdict, said
    assert set(where.split()) <= set(CLAIMS[name].notes) <= set(notes.FILES)


@pytest.mark.parametrize("name", ALSO)
def test_verdict_of_the_further_slips(findings, name):
    assert findings[name].verdict == ALSO[name]


# Figures of the facts: a computed number must round to the digits written here, row by row.
FIGURES = {
    ("denominators", "denominators"): "1.0000 10.0000 100.0000 1000.0000",
    ("last-cosine", "right"): "0.999998 0.99980 0.19867 0.59867",
    ("slow-neighbours", "difference"): "0.0000995",
    ("slow-neighbours", "times"): "332",
    ("slow-neighbours", "last_i"): "255",
    ("neighbours-shrink", "d=8"): "0.964 0.964 0.964 0.964",
    ("neighbours-shrink", "d=512"): "3.714 3.714 3.714 3.714",
    ("third-component", "printed"): "0.000000010",
    ("third-component", "right"): "0.1000",
    ("frequencies-grow", "unfinished_pairs"): "18",
    ("frequencies-grow", "pairs"): "64",
    ("longest-wavelength", "longest"): "60611",
    ("longest-wavelength", "ratio"): "0.965",
    ("query-by-hand", "Q"): "0.3000 0.3600 0.4200  0.6600 0.8100 0.9600  1.0200 1.2600 1.5000",
    ("query-by-hand", "wrong"): "8",  # only the first entry is right
    ("scores-by-hand", "scores"): "0.3960 0.8928 1.3896  0.8928 2.0133 3.1338  1.3896 3.1338 4.8780",
    ("scores-by-hand", "weights_of_its_scores"): "0.228 0.321 0.451  0.146 0.287 0.567  0.087 0.242 0.671",
    ("scores-by-hand", "softmax_0_1_2"): "0.0900 0.2447 0.6652",
    ("scores-by-hand", "weights"): "0.1871 0.3075 0.5054  0.0742 0.2277 0.6981  0.0253 0.1450 0.8296",
    ("scores-by-hand", "weights_scaled"): "0.2435 0.3244 0.4321  0.1525 0.2913 0.5562  0.0890 0.2437 0.6672",
    ("position-codes", "table"): "0.8415 0.5403 0.0022  0.9093 -0.4161 0.0043  0.1411 -0.9900 0.0065",
    ("position-codes", "above_one"): "3",  # 1.580, 1.041 and 1.130; the facts count two
    ("recurrence", "claimed_error"): "2.000",
    ("recurrence", "times"): "2.000",
    ("never-repeats", "smallest_distance"): "3.714",
    ("never-repeats", "lag"): "1",
    ("never-repeats", "distinct"): "769",
    ("never-repeats", "first_repeat"): "257",
    ("rope-unlimited", "pairs_with_unseen_phase"): "18",
    ("rope-decay", "bound_first_rise"): "18",
    ("rope-decay", "score_first_rise"): "11",
    ("mean-and-variance", "mean"): "0.267",
    ("mean-and-variance", "variance"): "0.429",
    ("mean-and-variance", "mean_square"): "0.500000",
    ("mean-and-variance", "norm"): "16.00000",
    ("same-range", "norm"): "16.00000",
    ("decay-is-spread", "ratio"): "1.0366",  # 10000^(2/512)
    ("absolute-or-relative", "positions_found"): "1024",
    ("right-half", "below_0.1"): "51",
    ("right-half", "columns"): "64",
    ("right-half", "last"): "0.00002",
    ("addition-theorem", "pairs_that_hold"): "1",
    ("index-range", "last_i"): "255",
    ("orthogonal-columns", "largest_within_a_pair"): "0.87",
    ("same-attention", "weights_on_cat"): "0.505 0.698 0.830",
    ("same-attention", "spread"): "0.324",  # of the weights on 猫
    ("column-is-index", "pair"): "32",
    ("column-is-index", "frequency"): "0.010000",
}


@pytest.mark.parametrize(("name", "number"), FIGURES, ids=["/".join(key) for key in FIGURES])
def test_figures(findings, name, number):
    got = torch.as_tensor(findings[name].numbers[number], dtype=torch.float64).flatten().tolist()
    wanted = FIGURES[name, number].split()
    assert len(got) == len(wanted)
    for value, figure in zip(got, wanted, strict=True):
        half_a_unit = 0.5 * 10.0 ** -len(figure.partition(".")[2])
        assert abs(value - float(figure)) <= half_a_unit, (value, figure)


def test_alibi_windows(findings):
    """m = 1/2 keeps 99.9 % within 14 tokens, m = 1/256 within 1769."""
    assert (findings["alibi-best"].numbers["windows"][0], findings["alibi-best"].numbers["windows"][-1]) == (14, 1769)


def test_gpt2_cannot_go_there_at_all(findings):
    assert "position 4095 is outside 0 … 1023" in findings["gpt2-sinusoid"].numbers["error"]
    assert "raises an error" in findings["gpt2-sinusoid"].value.en
    assert CLAIMS["gpt2-sinusoid"].check(position=1024).numbers["error"] == ""


def test_other_widths_and_precisions():
    """d = 2: 6.03e-5 at lag 710; d = 4: .0444 at 1885; d = 8: .645 at 63; float16 collides from 2049."""
    check = CLAIMS["never-repeats"].check
    for d_model, distance, lag in ((2, 6.03e-5, 710), (4, 0.0444, 1885), (8, 0.645, 63)):
        numbers = check(d_model=d_model).numbers
        assert (numbers["smallest_distance"], numbers["lag"]) == (pytest.approx(distance, rel=2e-3), lag)
    assert check(dtype=torch.float16).numbers["first_repeat"] == 2049
    for d_head, rise in ((64, 5), (256, 24)):
        assert CLAIMS["rope-decay"].check(d_head=d_head).numbers["score_first_rise"] == rise


def test_exact_identities_hold_to_rounding_and_the_claims_do_not(findings):
    def number(name: str, key: str) -> float:
        return findings[name].numbers[key]

    assert number("permutation-invariant", "equivariance_error") < 1e-13
    assert number("permutation-invariant", "pooled_error") < 1e-13
    assert number("permutation-invariant", "causal_last_token_error") < 1e-13
    assert number("permutation-invariant", "causal_equivariance_error") > 0.1
    assert number("permutation-invariant", "invariance_error") > 0.1
    assert number("reversed-weights", "error_of_PAPt") < 1e-13 < 0.4 < number("reversed-weights", "change")
    assert number("relative-score", "error_rows") < 1e-13 < 0.1 < number("relative-score", "error_columns")
    assert number("positions-move-too", "together") < 1e-13 < 0.1 < number("positions-move-too", "words_alone")
    assert number("addition-theorem", "error_with_omega") < 1e-13 < 0.5 < number("addition-theorem", "largest_error")
    assert number("recurrence", "exact_error") < 1e-15
    assert max(findings["shift-is-learned"].numbers["errors"]) < 1e-10
    assert number("frequencies-grow", "largest_change") < 1e-10
    assert number("taylor-without-half", "order_as_printed") == pytest.approx(2, abs=0.1)
    assert number("taylor-without-half", "order_with_half") == pytest.approx(3, abs=0.1)
    assert 0.95 < number("rope-decay", "random_spread_far_over_near") < 1.05
    assert number("rope-decay", "equal_mean_far_over_near") < 0.4
    # cos 400ω averaged over the pairs is what q = k keeps; written out here
    kept = sum(math.cos(400 * 10000 ** (-2 * i / 128)) for i in range(64)) / 64
    assert number("rope-decay", "equal_mean_far_over_near") == pytest.approx(kept, abs=0.02)


def warped(power):
    """A table whose positions run as p^power, by its definition."""

    def encode(positions, d_model):
        omega = torch.tensor([10000 ** (-2 * i / d_model) for i in range(d_model // 2)], dtype=torch.float64)
        angle = positions.double()[:, None] ** power * omega
        return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)

    return encode


def random_table(positions, d_model):
    return torch.randn(len(positions), d_model, generator=torch.Generator().manual_seed(3), dtype=torch.float64)


def without_curvature(*, eps):
    from posenc.pictures.measures import TaylorTerms

    return TaylorTerms(1.0, eps, eps, 0.0, 0.0, eps**2, eps**3)


NINE = ((0.1, 0.2, 0.3), (0.4, 0.5, 0.6), (0.7, 0.8, 0.9))
EYE = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
RIGHT_Q = (("0.30", "0.36", "0.42"), ("0.66", "0.81", "0.96"), ("1.02", "1.26", "1.50"))
CONSISTENT = {
    "q": RIGHT_Q,
    "scores": (("0.396", "0.8928", "1.3896"), ("0.8928", "2.0133", "3.1338"), ("1.3896", "3.1338", "4.878")),
    "weights": (("0.187", "0.308", "0.505"), ("0.074", "0.228", "0.698"), ("0.025", "0.145", "0.830")),
}

# Other inputs than the note's, and the verdict they must get: the verdict is computed, not written down.
CHANGED = (
    ("denominators", {"base": 1000.0}, "false"),
    ("last-cosine", {"printed": ("1.0000", "1.000", "0.199", "0.599")}, "true"),
    ("last-cosine", {"base": 1000.0}, "false"),
    ("last-cosine", {"small_base": 1000.0}, "false"),
    ("slow-neighbours", {"d_model": 514, "base": 3.54e6}, "true"),
    ("slow-neighbours", {"d_model": 512, "base": 3.54e6}, "false"),  # the difference fits, the index still does not
    ("neighbours-shrink", {"encode": warped(0.5)}, "true"),
    ("third-component", {"base": 1.0}, "true"),
    ("frequencies-grow", {"encode": warped(2)}, "true"),
    ("permutation-invariant", {"x": torch.ones(4, 8, dtype=torch.float64)}, "true"),
    ("longest-wavelength", {"spacing": frequencies.to_the_end}, "true"),
    ("longest-wavelength", {"base": 100000.0}, "false"),
    ("query-by-hand", {"x": ((0.3, 0.38, 0.46), (0.6, 0.77, 0.94), (0.9, 1.16, 1.33)), "w": EYE}, "true"),
    ("scores-by-hand", CONSISTENT, "true"),
    ("scores-by-hand", {**CONSISTENT, "weights": (("0.09", "0.24", "0.67"),) * 3}, "false"),
    ("scores-by-hand", {**CONSISTENT, "q": EYE}, "false"),
    (
        "position-codes",
        {"printed": (("0.841", "0.540", "0.002"), ("0.909", "-0.416", "0.004"), ("0.141", "-0.990", "0.006"))},
        "true",
    ),
    ("reversed-weights", {"x": (NINE[0], NINE[1], NINE[0])}, "true"),  # a palindrome
    ("recurrence", {"matrix": torch.zeros(8, 8, dtype=torch.float64)}, "true"),
    ("relative-score", {"i": 4, "j": 4}, "true"),
    ("never-repeats", {"dtype": torch.float32}, "true"),
    ("sinusoid-unlimited", {"encoding": "learned"}, "false"),
    ("alibi-best", {"slopes": (0.0,) * 8}, "false"),
    ("rope-unlimited", {"encoding": "xpos"}, "false"),
    ("rope-decay", {"base": 1.0}, "false"),
    ("mean-and-variance", {"table": torch.randn(512, 64, generator=torch.Generator().manual_seed(0))}, "true"),
    ("same-range", {"d_model": 2}, "true"),
    ("positions-move-too", {"causal": True}, "true"),
    ("decay-is-spread", {"d_model": 8, "base": 16.0}, "partly"),  # then the denominators are 1, 2, 4, 8
    ("gpt2-sinusoid", {"model": "the original Transformer"}, "true"),
    ("gpt2-sinusoid", {"position": 1024}, "false"),  # learned either way
    ("absolute-or-relative", {"d_model": 2, "dtype": torch.bfloat16}, "partly"),
    ("right-half", {"base": 10.0}, "true"),
    ("addition-theorem", {"base": 1.0}, "true"),
    ("index-range", {"d_model": 7}, "true"),
    ("orthogonal-columns", {"d_model": 2}, "true"),
    ("shift-is-learned", {"encode": random_table}, "true"),
    ("same-attention", {"w": ((0.0,) * 3,) * 3}, "true"),
    ("scale-left-out", {"x": ((0.1,), (0.4,)), "w": ((1.0,),)}, "true"),  # √1 is 1
    ("set-of-words", {"words": ("我", "爱", "你")}, "true"),
    ("taylor-without-half", {"split": without_curvature}, "true"),
    ("no-projection-of-r", {"w_r": torch.eye(8, dtype=torch.float64)}, "true"),
    ("column-is-index", {"column": 0}, "true"),
)


@pytest.mark.parametrize(
    ("name", "inputs", "verdict"),
    CHANGED,
    ids=[f"{name}-{'-'.join(inputs)}-{verdict}" for name, inputs, verdict in CHANGED],
)
def test_the_verdict_follows_the_numbers(name, inputs, verdict):
    assert CLAIMS[name].check(**inputs).verdict == verdict


def test_every_verdict_can_turn():
    turned = {name for name, _, verdict in CHANGED if verdict != CLAIMS[name].check().verdict}
    assert turned == set(CLAIMS) - {"better-for-language"}  # an opinion has nothing to turn on


def test_every_claim_speaks_both_languages_and_shows_what_was_computed(findings, marked_as_chinese):
    for name, claim in CLAIMS.items():
        assert claim.words.en.endswith("."), name
        assert claim.words.zh == f"译{claim.words.en}", name
        value = findings[name].value
        assert re.search(r"\d|compare", value.en), name
        assert re.search(r"\d|compare", value.zh), name
        assert set(re.findall(r"\d\.\d\d+", value.en)) == set(re.findall(r"\d\.\d\d+", value.zh)), name
    assert {finding.verdict for finding in findings.values()} == set(Verdict)
    assert "posenc compare" in findings["better-for-language"].value.en


# The command -----------------------------------------------------------------------------------------------------------

app = typer.Typer()
app.command()(claims_.command)


def run(*arguments: str, **environment: str):
    return CliRunner().invoke(app, list(arguments), env={"COLUMNS": "100", "LC_ALL": "C.UTF-8", **environment})


def test_json_holds_every_claim_with_its_files():
    shown = json.loads(run("--json").output)
    assert [one["id"] for one in shown["claims"]] == list(CLAIMS)
    assert sum(shown["counts"].values()) == len(CLAIMS) == 37
    one = next(one for one in shown["claims"] if one["id"] == "slow-neighbours")
    assert one["notes"] == ["003_ec4e7f2e481be38a.txt"]
    assert (one["verdict"], round(one["numbers"]["times"])) == ("false", 332)
    assert set(one["claim"]) == set(one["value"]) == {"en", "zh"}


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_table_fits_100_columns_and_says_what_the_notes_are(lang):
    result = run("--lang", lang)
    assert result.exit_code == 0
    assert max(map(cell_len, result.output.splitlines())) <= 100
    assert ("000…004arethefoundingnotes" if lang == "en" else "000…004是最初的笔记") in re.sub(r"\s", "", result.output)
    squeezed = re.sub(r"\s", "", result.output)
    assert ("332timesasmuch" if lang == "en" else "是它的332倍") in squeezed
    assert ("contradiction" if lang == "en" else "自相矛盾") in squeezed
    assert "…posenc" not in squeezed


def test_filters():
    only = json.loads(run("--json", "--note", "001").output)["claims"]
    assert {one["id"] for one in only} == {name for name, claim in CLAIMS.items() if "001" in claim.notes}
    limits = json.loads(run("--json", "--verdict", "limit").output)["claims"]
    assert [one["id"] for one in limits] == ["longest-wavelength"]
    assert json.loads(run("--json", "--note", "003_ec4e7f2e481be38a.txt").output)["counts"]["true"] == 1
    assert "No claim matches." in run("--note", "001", "--verdict", "limit").output


@pytest.mark.parametrize("wrong", [("--note", "005"), ("--note", "00"), ("--verdict", "maybe"), ("--lang", "fr")])
def test_an_unknown_word_is_a_usage_error(wrong):
    result = run(*wrong)
    assert result.exit_code == 2
    assert "expected one of" in result.output
    assert wrong[1] in result.output


def test_the_environment_chooses_the_language():
    assert "结论" in run("--verdict", "limit", LC_ALL="", LANG="zh_CN.UTF-8").output
    assert "verdict" in run("--verdict", "limit", LC_ALL="en_US.UTF-8", LANG="zh_CN.UTF-8").output
    assert default_language({}) == default_language({"LANG": "C"}) == "en"
    assert default_language({"LC_ALL": "", "LC_MESSAGES": "zh_TW.UTF-8", "LANG": "en_US"}) == "zh"
    assert Words("a", "甲").in_language("zh") == "甲"


def test_the_help_explains_every_verdict():
    text = run("--help").output
    assert all(f" {verdict} " in text for verdict in Verdict)


# Small parts ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("printed", "right", "expected"),
    [
        ("0.9999", 0.999998, "truncated"),
        ("0.9998", 0.999800, "same"),
        ("0.38", 0.36, "different"),
        ("0.36", 0.36000000000000004, "same"),
        ("-0.416", -0.416147, "same"),
        ("-0.416", -0.4169, "truncated"),
        ("-0.416", 0.416, "different"),
        ("0.199", 0.198, "different"),
        ("0.198", 0.1986, "truncated"),
        ("1000", 1000.0000000000001, "same"),
        ("0.0", 0.0, "same"),
    ],
)
def test_compare_printed_digits(printed, right, expected):
    assert notes.compare(printed, right) == expected


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        ("长度 4096 之内，64 对里有 18 对转不满一圈", 16, ["长度 4096 之内，", "64 对里有 18 对", "转不满一圈"]),
        ("一二三，四", 6, ["一二", "三，四"]),  # the comma does not begin a line
        ("一二（三）四", 6, ["一二", "（三）", "四"]),  # nor does an opening bracket end one
        ("posenc compare", 8, ["posenc", "compare"]),
        ("效果posenc好", 8, ["效果", "posenc好"]),
        ("abcdefghij", 4, ["abcdefghij"]),
    ],
)
def test_lines_break_where_chinese_and_english_may(text, width, expected):
    assert list(lines(text, width)) == expected
