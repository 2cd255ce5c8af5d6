"""Sentences that compare encodings by our own experiments: in README, docs/results, docs/lab, the pages of encodings and
`posenc choose`, in English and Chinese. Each is held against the records; a new one fails until it is.

    page ─► sentences ─► those that compare by our experiments ─► an entry of TOLD, with a check ─► the records say so
                                                              └─► none: the test fails and shows the sentence

What the records say stands in the shipped extract, in the tables of `posenc choose` (both held against the stored trials by
other tests) and in the findings of results/compare. Where a page says how a number is measured, HOW names it.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from posenc.catalogue import measured
from posenc.catalogue.choose.choice import table
from posenc.lab.findings.assemble import findings
from posenc.lab.findings.comparing import told_apart
from told_apart import RUN_AS

ROOT = Path(__file__).parent.parent
LANGUAGES = ("en", "zh")
PAGES = {
    "README": ("README.md", "README.zh-CN.md"),
    "results": ("docs/results.md", "docs/results.zh-CN.md"),
    "lab": ("docs/lab.md", "docs/lab.zh-CN.md"),
}
SECTION = {"README": ("## What was measured", "## 测量结果")}  # of a page that says more than results
OF_RESULTS = ("README", "results")  # pages on which every sentence with a result is one of ours
COMPARES = {
    "en": re.compile(
        r"\b(loses?|lost|gains?|stays?|breaks?|broke|keeps?|copy|copies|most|least|best|worse|better|more|less|fewer|furthest|"
        r"further|ahead|apart|undecided|decided|hardly|nothing|differ|right|find(?:s|ing)?|recalls?|counts?|have|has|had|add)\b"
    ),
    "zh": re.compile("损失|获益|收益|保持|失效|复制|最|不如|优于|更|区分|未定|没有|答对|全对|比特|差别|能|有 \\d|\\d %"),
}
OURS = {
    "en": re.compile(r"\b[Oo]ur (small |own )?(models?|runs|experiments|study|copying task)\b|\bin `chains`"),
    "zh": re.compile(
        "我们的?(在 [^，]*上训练的|用 [^，]*训练的)?(小模型|模型|研究|实验|复制任务)|采用(这三种|它)的小模型|在 `chains` 中"
    ),
}


# What the records say ------------------------------------------------------------------------------------------------


class Records:
    """Numbers and verdicts by the name of a table of `posenc choose`."""

    def __init__(self) -> None:
        self.tables: dict[str, Any] = table()["measures"]

    def near(self, of: str, name: str) -> float:
        return float(self.tables[of]["figures"][name][0])

    def far(self, of: str, name: str) -> float:
        return float(self.tables[of]["figures"][name][1])

    def ahead(self, of: str, first: str, *others: str) -> bool:
        """The first is told apart from each of the others, and better."""
        return all([first, other] in self.tables[of]["apart"] for other in others)

    def undecided(self, of: str, *names: str) -> bool:
        """No two of them are told apart."""
        apart = self.tables[of]["apart"]
        return not any([a, b] in apart or [b, a] in apart for a, b in combinations(names, 2))

    def mark(self, of: str, name: str) -> str:
        return str(self.tables[of].get("unranked", {}).get(name, ""))

    def lost(self, name: str, task: str = "language_model") -> float:
        """Bits lost from the trained to the longest length on text."""
        cells = self.cells(name, task)
        return float(cells[-1]["mean"] - cells[0]["mean"])

    def cells(self, name: str, task: str = "language_model") -> list[dict[str, Any]]:
        of = measured.task(task)
        arms = {arm["name"]: arm for arm in [*of["arms"], *of["after"]]}
        return list(arms[RUN_AS.get(name, name)]["cells"])

    def gained(self, name: str) -> float:
        """Bits that context beyond the trained length gains in `chains`."""
        return float(measured.gained("chains")[name]["mean"])

    def share(self, name: str) -> float:
        return float(measured.gained("chains")[name]["share"])


@cache
def compare() -> tuple[dict[str, float], set[tuple[str, str]]]:
    """The rows of results/compare: the share that is right at 512 words, and the pairs that are told apart."""
    (task,) = (found := findings(ROOT / "results" / "compare"))["tasks"]
    cells = {arm["name"]: arm["cells"]["512"] for arm in task["arms"] if arm["cells"]["512"]["mean"] is not None}
    cells |= {changed["change"]: changed["cells"]["512"] for changed in task["after"] if changed["change"]}
    names = list(cells)
    pairs = told_apart(task, [cells[name] for name in names])
    assert found["answer"]["rows"]
    return {name: cells[name]["mean"] for name in names}, {(names[a], names[b]) for a, b in pairs}


@cache
def of_code(name: str) -> float:
    """Bits lost at 16 times the length on code."""
    with (ROOT / "results/study-code/report/cells.csv").open(encoding="utf-8", newline="") as lines:
        rows = [
            row
            for row in csv.DictReader(lines)
            if (row["encoding"], row["setting"], row["mode"]) == (name, "trained", "same targets")
        ]
    at = {length: [float(row["value"]) for row in rows if row["length"] == length] for length in ("128", "2048")}
    return sum(at["2048"]) / len(at["2048"]) - sum(at["128"]) / len(at["128"])


PROSE: tuple[str, ...] = tuple(table()["measures"]["prose"]["figures"])


# What the pages say --------------------------------------------------------------------------------------------------


class Told(NamedTuple):
    """A sentence, by words that it alone has in either language, and whether the records say so.

    `figures` are numbers from the records, as they must stand in both.
    """

    en: str
    zh: str
    so: Callable[[Records], bool]
    figures: Callable[[Records], list[str]] = lambda records: []


def two(*numbers: float) -> list[str]:
    return [f"{number:.2f}" for number in numbers]


def whole(*numbers: float) -> list[str]:
    return [f"{number:.0f}" for number in numbers]


KEYED = ("kerple", "t5", "randomized", "nope")  # those that find the passkey without other digits
FLAT = ("alibi", "kerple", "fox", "transformer_xl")
GAIN = ("kerple", "transformer_xl", "fox")
TOLD = [
    # README
    Told(
        "Without other digits in the filler, as this task was before",
        "这项任务以前的填充里没有别的数字",
        lambda r: "NoPE 96 → 10 %, T5 96 → 16, RoPE + YaRN 100 → 54" in (ROOT / "LOG.md").read_text("utf-8"),
    ),
    Told(
        "KERPLE, Transformer-XL and FoX most, ALiBi little, RoPE only with YaRN or Self-Extend",
        "KERPLE、Transformer-XL 和 FoX 最多，ALiBi 很少，RoPE 只有加上",
        lambda r: (
            min(map(r.share, GAIN)) > 0.6
            and 0 < r.share("alibi") < 0.25
            and r.gained("rope") < 0 < min(r.gained("yarn"), r.gained("self_extend"))
            and all(r.ahead("chains", name, "alibi") for name in GAIN)
        ),
    ),
    # docs/results
    Told(
        "On text it loses nothing at 16 times the length",
        "16 倍长度的文本上它没有损失",
        lambda r: r.lost("kerple") < 0.005 and r.gained("kerple") > 0 and compare()[0]["kerple"] > 0.99,
        lambda r: whole(r.far("passkey", "kerple")),
    ),
    Told(
        "Transformer-XL and FoX gain in `chains` too",
        "Transformer-XL 和 FoX 在 `chains` 中同样获益",
        lambda r: min(r.gained("fox"), r.gained("transformer_xl")) > 0,
    ),
    Told(
        "It loses nothing either, and gains little",
        "它同样没有损失，在 `chains` 中从远处上下文获益很少",
        lambda r: r.lost("alibi") < 0.005 and 0 < r.share("alibi") < 0.25,
    ),
    Told(
        "*Your model was trained with RoPE*",
        "*已经用 RoPE 训练好的模型*",
        lambda r: r.ahead("changed", "self_extend", "rope") and r.ahead("changed", "yarn", "rope"),
        lambda r: [
            *two(r.far("changed", "self_extend"), r.far("changed", "yarn")),
            *whole(r.far("changed_passkey", "self_extend"), r.far("changed_passkey", "yarn")),
        ],
    ),
    Told(
        "which put KERPLE, Transformer-XL and FoX before ALiBi and RoPE",
        "KERPLE、Transformer-XL 和 FoX 排在 ALiBi 和 RoPE 之前",
        lambda r: all(r.ahead("chains", name, "alibi", "rope") for name in GAIN),
    ),
    Told(
        "KERPLE's place among the three is undecided",
        "KERPLE 在这三种中的位置未定",
        lambda r: r.undecided("chains", "kerple", "fox") and r.undecided("chains", "kerple", "transformer_xl"),
    ),
    Told(
        "Of the scores at 1024 symbols theirs are told apart",
        "1024 个符号处的得分，这三种与",
        lambda r: all(r.ahead("chains", name, "alibi", "rope") for name in GAIN),
    ),
    Told(
        "Our copying task has 92 %",
        "我们的复制任务在训练长度的 1.25 倍处",
        lambda r: r.cells("alibi", "copy")[-1]["mean"] == 0,
        lambda r: whole(*(100 * cell["mean"] for cell in r.cells("alibi", "copy")[1:3])),
    ),
    Told(
        "our models lose 0.16 bits by longer context",
        "我们的模型在 `chains` 中因更长的上下文损失",
        lambda r: r.gained("t5") < 0,
        lambda r: two(-r.gained("t5")),
    ),
    Told(
        "On the passkey RoPE and sinusoids are worse than KERPLE",
        "RoPE 与正弦编码不如 KERPLE",
        lambda r: all(r.ahead("passkey", name, "rope", "sinusoidal") for name in KEYED) and r.undecided("passkey", *KEYED),
    ),
    Told(
        "At the trained length every encoding except DroPE",
        "在训练长度上，除 DroPE",
        lambda r: r.mark("prose", "drope") == "still improving",
        lambda r: two(
            r.near("prose", "drope"), *(f([r.near("prose", n) for n in PROSE if n != "drope"]) for f in (min, max))
        ),
    ),
    Told(
        "At sixteen times that length ALiBi, KERPLE, FoX",
        "在 16 倍处，ALiBi、KERPLE、FoX",
        lambda r: max(map(r.lost, FLAT)) < 0.005,
        lambda r: two(*(max(r.lost(name), 0) for name in (*FLAT, "t5", "cope", "shaw", "path", "fire"))),
    ),
    Told(
        "xPos loses 3.92",
        "xPos 损失 3.92",
        lambda r: True,
        lambda r: two(*(r.lost(name) for name in ("xpos", "randomized", "pope", "sinusoidal", "rope"))),
    ),
    Told(
        "NoPE, which still improved, loses",
        "仍在改善的 NoPE 损失",
        lambda r: (
            {r.mark("prose", name) for name in ("nope", "drope")} == {"still improving"} and not r.mark("prose", "floater")
        ),
        lambda r: two(*(r.lost(name) for name in ("nope", "floater", "drope"))),
    ),
    Told(
        "At four times the length, the trained RoPE models have",
        "训练后改动 RoPE，在 4 倍处的比特数为",
        lambda r: True,
        lambda r: two(*(r.far("changed", name) for name in ("rope", "linear", "ntk", "yarn", "self_extend"))),
    ),
    Told(
        "No encoding gains over those 65 to 128 bytes",
        "没有一种编码比这 65 到 128 字节的上下文有所得益",
        lambda r: min(r.lost(name) for name in PROSE) > -0.005,
    ),
    Told(
        "ALiBi stays flat there too, and RoPE breaks",
        "ALiBi 同样保持平稳，RoPE 同样失效",
        lambda r: of_code("alibi") < 0.05 and of_code("rope") > 0.5,
    ),
    Told(
        "KERPLE, Transformer-XL and FoX gain most, ALiBi gains little, T5 loses",
        "KERPLE、Transformer-XL 和 FoX 获益最多，ALiBi 很少，T5 有损失",
        lambda r: min(map(r.share, GAIN)) > 0.6 and 0 < r.share("alibi") < 0.25 and r.gained("t5") < 0,
    ),
    Told(
        "RoPE loses more than there is to gain",
        "RoPE 损失的比能得到的还多",
        lambda r: r.share("rope") < -1 and min(r.gained("yarn"), r.gained("self_extend")) > 0,
    ),
    Told(
        "with KERPLE in 99 % of the rows (95 % interval over seeds",
        "KERPLE 在 99% 的行里按次序答对密钥的两位数字（种子间",
        lambda r: True,
        lambda r: whole(*(r.far("passkey", name) for name in ("kerple", "t5", "randomized", "nope", "alibi", "rope"))),
    ),
    Told(
        "with YaRN after training 100) and sinusoids",
        "训练后用 YaRN 为 100），正弦",
        lambda r: True,
        lambda r: whole(r.far("changed_passkey", "yarn"), r.far("passkey", "sinusoidal")),
    ),
    Told(
        "the first four are told apart from RoPE and from sinusoids",
        "前四种与 RoPE、正弦都可区分",
        lambda r: all(r.ahead("passkey", name, "rope", "sinusoidal") for name in KEYED),
    ),
    Told(
        "every other order is undecided, that of NoPE and ALiBi too",
        "其余次序都未定，NoPE 与 ALiBi 也是",
        lambda r: len(r.tables["passkey"]["apart"]) == 8 and r.undecided("passkey", "nope", "alibi"),
    ),
    Told(
        "KERPLE is right in 99.7 % of the rows and ALiBi in 86.5, which are not told apart",
        "KERPLE 在 99.7 % 的行里答对，ALiBi 86.5，两者未能区分",
        lambda r: not {("kerple", "alibi"), ("alibi", "kerple")} & compare()[1],
        lambda r: [f"{100 * compare()[0][name]:.1f}" for name in ("kerple", "alibi")],
    ),
    Told(
        "YaRN has 53.8, T5",
        "YaRN 53.8，T5",
        lambda r: True,
        lambda r: [f"{100 * compare()[0][name]:.1f}" for name in ("yarn", "t5", "nope", "sinusoidal", "rope")],
    ),
    Told(
        "what NoPE, T5 and YaRN have above is not finding a number among others",
        "NoPE、T5 和 YaRN 在上面的分数，并不是在其他数字之间找到密钥",
        lambda r: all(("kerple", name) in compare()[1] for name in ("nope", "t5", "yarn")),
    ),
    Told(
        "No encoding copies four times as",
        "没有一种编码能复制四倍于训练的符号",
        lambda r: all(arm["cells"][-1].get("mean", 0) == 0 for arm in measured.task("copy")["arms"]),
    ),
    Told("at twice as many KERPLE copies", "两倍时 KERPLE 有", lambda r: True, lambda r: whole(r.far("copy", "kerple"))),
    # pages of encodings
    Told(
        "RoPE rescaled so has, with no further training, 6.56 bits",
        "不再训练时 4 倍训练长度处为 6.56 比特",
        lambda r: r.ahead("changed", "yarn", "linear"),
        lambda r: two(r.far("changed", "linear"), r.far("changed", "yarn")),
    ),
    Told(
        "5.93 bits at 4 × the trained length",
        "不再训练时 4 倍训练长度处为 5.93 比特",
        lambda r: r.ahead("changed", "yarn", "ntk"),
        lambda r: two(r.far("changed", "ntk"), r.far("changed", "yarn")),
    ),
    # posenc choose
    Told("FoX loses nothing at 16 × that", "FoX 在 16 倍长度上没有损失", lambda r: r.lost("fox") < 0.005),
    Told(
        "Self-Extend lost less on text and in recall",
        "Self-Extend 在文本和联想回忆上损失更小",
        lambda r: r.ahead("changed", "self_extend", "yarn") and r.ahead("changed_recall", "self_extend", "yarn"),
    ),
    Told(
        "of the scalings it loses least without training",
        "不训练时它在各缩放方法中损失最小",
        lambda r: all(r.ahead(of, "yarn", "linear", "ntk") for of in ("changed", "changed_recall")),
    ),
    Told(
        "those with RoPE at random positions keep the order of words best",
        "随机位置的 RoPE 语序保持得最好",
        lambda r: (
            r.far("word_order", "randomized") == max(n[1] for n in r.tables["word_order"]["figures"].values())
            and r.ahead("word_order", "randomized", "rope")
            and r.undecided("word_order", "randomized", "t5", "alibi", "kerple")
        ),
    ),
    Told(
        "Without that training, RoPE at random positions keeps the order of words",
        "若不再训练，随机位置的 RoPE",
        lambda r: r.far("word_order", "randomized") > 90 and r.ahead("word_order", "randomized", "rope"),
    ),
    Told(
        "At the trained length of 128 bytes our small models hardly differ",
        "在 128 字节的训练长度上，我们的小模型几乎没有差别",
        lambda r: max(r.near("prose", n) for n in PROSE if n != "drope") - min(r.near("prose", n) for n in PROSE) < 0.04,
    ),
    Told(
        "KERPLE loses as little on text and gains more from far context",
        "KERPLE 在文本上损失同样小，从远处上下文获益更多",
        lambda r: (
            max(r.lost("kerple"), r.lost("alibi")) < 0.005
            and r.undecided("prose", "kerple", "alibi")
            and r.ahead("chains", "kerple", "alibi")
            and r.gained("kerple") > r.gained("alibi")
        ),
    ),
    Told(
        "but gains less from far context in our small models",
        "从远处上下文获益较少",
        lambda r: r.ahead("chains", "kerple", "alibi") and r.gained("kerple") > r.gained("alibi"),
    ),
    Told("NoPE alone breaks on text in our small models", "单用 NoPE 会失效", lambda r: r.lost("nope") > 0.5),
    Told(
        "only those with this add longer numbers",
        "只有用它的能做更长数字的加法",
        lambda r: all((name == "abacus") == (of[1] > 0) for name, of in r.tables["addition"]["figures"].items()),
    ),
    Told(
        "those with KERPLE copy and recall furthest",
        "KERPLE 在复制和联想回忆上走得最远",
        lambda r: (
            r.far("copy", "kerple") == max(of[1] for of in r.tables["copy"]["figures"].values())
            and r.ahead("recall", "kerple", "alibi", "t5", "randomized", "rope")
            and r.undecided("copy", *r.tables["copy"]["figures"])
        ),
    ),
    Told(
        "RoPE at random positions recalls further than RoPE",
        "随机位置的 RoPE 在回忆上比 RoPE 走得更远",
        lambda r: r.ahead("recall", "randomized", "rope") and r.mark("counting", "randomized") == "still improving",
    ),
    Told(
        "our small models with these three copy, recall and count",
        "采用这三种的小模型都能复制、回忆和计数",
        lambda r: min(r.near(of, name) for of in ("copy", "recall", "counting") for name in ("rope", "t5", "kerple")) >= 95,
    ),
    Told(
        "our small models with them lose nothing at 16 ×",
        "采用它的小模型在训练长度（128 字节）的 16 倍处没有损失",
        lambda r: r.lost("transformer_xl") < 0.005 and r.lost("rope") > 0.5,
    ),
]
# How a number is measured, what it cannot say, and who was run: no result that compares encodings.
HOW = {
    "en": (
        "a passkey, which is a number of two digits", "is right in 1 %", "*Right*", "*Any order*", "*Stays*",
        "*breaks*", "*fades*", "*ends*", "YaRN is applied", "One task, small models", "Figures, limits", "Exactness",
        "Speed, against", "All figures are", "the CUDA code", "The small models of this page", "*How sure is this?*",
        "*Long text must not break", "*You train on short text", "No large model", "has 90 models",
        "Each encoding is tuned", "DroPE takes", "The models differ by the encoding",
        "were not scored with their context cut", "it is not more than this", "The text offers more",
        "no training has converged", "is a language whose best prediction", "The same symbols are predicted",
        "*Gained*", "negative: lost", "*Share*", "Brackets", "The optimum that is cut", "by the one that stood here",
        "*Right, farthest quarter*", "*Score kept*", "guessing is right in half", "*The passkey* of these runs",
        "it measures the order of two neighbours", "the most frequent value is right", "These numbers are means",
        "changed without training", "is a model of its own", "*Not learnt*", "*Table ends*", "ask for something",
        "In the table above", "without other digits in the filler", "re-test published claims",
        "Neither needs training", "[Contributing]", "[The architecture]", "[Known failures]", "MIT licence",
        "[Changes]", "English ·", "`posenc choose` asks",
    ),
    "zh": (
        "密钥任务（从填充词中", "只有 1 % 的行答对", "*答对*", "*不计次序*", "*保持*", "*失效*", "*渐差*", "*到头*",
        "YaRN 在训练之后", "只有一项任务和很小的模型", "数据、局限", "精度：", "速度（", "所有数据都来自", "CUDA 代码",
        "这些小模型能支持的结论", "*把握有多大？*", "*要求长文本", "*短文本训练", "没有训练大模型", "有 90 个模型",
        "每种编码各试五次", "DroPE 沿用", "各模型只有编码", "FIRE 的初始长度", "DroPE 在最后",
        "正好截到 128 字节时评测", "不会多于此", "文本里还有更多", "都没有收敛", "最优预测都已知的语言",
        "同样的符号，由模型自己", "*多得的比特*", "负数为损失", "*比例*", "括号是", "截到训练长度的最优预测",
        "按从前这里的", "*最远四分之一处正确*", "*保留的得分*", "语序判断靠猜", "这些密钥任务的填充里",
        "联想回忆里最常见", "这几列是", "改动后没有再训练", "是另外的模型", "*未学会*", "*表已用尽*",
        "↓：训练结束时", "–：未运行",
        "要用到远处的内容", "上表中", "以上的填充里", "重新检验已发表", "[参与贡献]", "[架构]", "[已知的失败]",
        "MIT 许可证", "[更新记录]", "[English]", "`posenc choose` 问",
    ),
}  # fmt: skip


# Reading ------------------------------------------------------------------------------------------------------------


def sentences(text: str, language: str) -> Iterator[str]:
    """Sentences of the prose, and their parts between semicolons; no code and no tables."""
    text = re.sub(r"```.*?```|<!-- table written.*?<!-- end of table -->", "", text, flags=re.DOTALL)
    for block in re.split(r"\n\s*\n|\n(?=[-|#] ?)", text):
        if not block.lstrip().startswith(("|", "#")):
            line = " ".join(block.split()) if language == "en" else re.sub(r"\s*\n\s*", "", block)
            ends = r"(?<=[.!?;])\s+(?=[A-Za-z*`\[])" if language == "en" else "(?<=[。；])"
            yield from (sentence.strip() for sentence in re.split(ends, line) if sentence.strip())


def page(name: str, language: str) -> str:
    text = (ROOT / PAGES[name][LANGUAGES.index(language)]).read_text("utf-8")
    return text[text.index(SECTION[name][LANGUAGES.index(language)]) :] if name in SECTION else text


def of_page(name: str, language: str) -> list[str]:
    """The sentences of a page that compare encodings by our experiments."""
    found = list(sentences(page(name, language), language))
    if name in OF_RESULTS:
        return [one for one in found if not any(how in one for how in HOW[language])]
    return [one for one in found if OURS[language].search(one) and COMPARES[language].search(one)]


LOST = re.compile("text of 16 times the|16 倍长的文本")  # held by test_page_measures.py


def of_encodings(language: str) -> list[str]:
    """Those of the pages of encodings, but for what text costs, which another test holds."""
    ending = {"en": lambda path: path.count(".") == 1, "zh": lambda path: path.endswith(".zh.md")}[language]
    found = []
    for path in sorted((ROOT / "src/posenc/encodings").rglob("*.md")):
        if ending(path.name):
            parts = sentences(re.sub(r"^\+\+\+.*?\+\+\+", "", path.read_text("utf-8"), flags=re.DOTALL), language)
            found += [one for one in parts if OURS[language].search(one) and COMPARES[language].search(one)]
    return [one for one in found if not LOST.search(one)]


def of_choose(language: str) -> list[str]:
    reasons = (rule[language] for rule in table()["rule"])
    found = [one for reason in reasons for one in sentences(reason, language)]
    return [one for one in found if OURS[language].search(one) and COMPARES[language].search(one)]


def recognised(language: str) -> dict[str, list[str]]:
    pages = {name: of_page(name, language) for name in PAGES}
    return {**pages, "encodings": of_encodings(language), "choose": of_choose(language)}


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_sentence_that_compares_is_held_against_the_records(language: str) -> None:
    """Lists what it recognised. A new sentence needs an entry in TOLD, with its check, or in HOW if it compares nothing."""
    found = recognised(language)
    print(*(f"{name}: {one}" for name, each in found.items() for one in each), sep="\n")
    unknown = [f"{name}: {one}" for name, each in found.items() for one in each if held(one, language) is None]
    assert unknown == []


def held(sentence: str, language: str) -> Told | None:
    return next((told for told in TOLD if (told.en if language == "en" else told.zh) in sentence), None)


@pytest.mark.parametrize("told", TOLD, ids=[told.en[:40] for told in TOLD])
def test_the_records_say_so(told: Told) -> None:
    records = Records()
    assert told.so(records)
    for language in LANGUAGES:
        words = told.en if language == "en" else told.zh
        stands = [one for each in recognised(language).values() for one in each if words in one]
        assert stands, f"{words}: stands nowhere"
        for sentence in stands:
            assert [figure for figure in told.figures(records) if figure not in sentence] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_new_sentence_would_be_seen(language: str) -> None:
    """As on each page: with an encoding and a result."""
    new = {"en": "In our small models ALiBi loses less than RoPE.", "zh": "在我们的小模型中，ALiBi 的损失比 RoPE 更小。"}[
        language
    ]
    (sentence,) = sentences(new, language)
    assert OURS[language].search(sentence)
    assert COMPARES[language].search(sentence)
    assert held(sentence, language) is None
