"""The worked examples of the founding notes, step by step: every matrix, beside the matrix that the note prints.

    sum         猫 吃 鱼: word + position, base 100                                   note 004
    attention   我 喜欢 猫: self-attention by hand, and the sentence reversed         note 004
    rope        人工 智能 正在 快速 发展: 正在 at position 2 against positions 0 … 4    note 002
    components  PE(2) component by component, at 8 and at 4 channels                  notes 003, 004

`EXAMPLES["rope"].steps()` returns them as data; `posenc walk rope` prints them.
Legend: t tokens, i query, j key, d channels, n pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from posenc import frequencies
from posenc.attention import attend
from posenc.encoding import PositionalEncoding
from posenc.encodings.nope import NoPE
from posenc.encodings.rope import RoPE, rotation_matrix
from posenc.encodings.sinusoidal import Sinusoidal, sinusoidal_table
from posenc.learn.notes import compare
from posenc.positions import Positions
from posenc.support.checked import checked
from posenc.support.languages import Words

if TYPE_CHECKING:
    from posenc.support.shapes import Float

Printed = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Slip:
    """An entry that the note prints wrong; `truncated` if its digits are cut off instead of rounded."""

    row: int
    column: int
    printed: str
    right: float
    truncated: bool


@dataclass(frozen=True)
class Step:
    """One matrix: title, formula, names of rows and columns, and the digits that the note prints.

    `printed` holds the note's digits as strings, "" for entries that it does not print; it is empty for a step of our own.
    """

    title: Words
    formula: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    matrix: tuple[tuple[float, ...], ...]
    printed: Printed = ()
    remark: Words | None = None

    @property
    def slips(self) -> tuple[Slip, ...]:
        """The entries whose printed digits are wrong."""
        found = []
        for r, row in enumerate(self.printed):
            for c, shown in enumerate(row):
                verdict = compare(shown, self.matrix[r][c]) if shown else "same"
                if verdict != "same":
                    found.append(Slip(r, c, shown, self.matrix[r][c], verdict == "truncated"))
        return tuple(found)


@dataclass(frozen=True)
class Example:
    """A worked example; `steps()` computes it."""

    name: str
    title: Words
    notes: tuple[str, ...]
    steps: Callable[[], tuple[Step, ...]]


class Unscaled(PositionalEncoding):
    """NoPE without the factor 1/√d in the softmax, as note 004 computes it."""

    def softmax_scale(self, d_head: int) -> float:
        return 1.0


@checked
def attention_weights(
    q: Float[Tensor, "i d"], k: Float[Tensor, "j d"], encoding: PositionalEncoding
) -> Float[Tensor, "i j"]:
    """The softmax of the logits, computed as attention over unit vectors."""
    return attended(q, k, torch.eye(len(k), dtype=q.dtype), encoding)


@checked
def attended(
    q: Float[Tensor, "t d"], k: Float[Tensor, "t d"], v: Float[Tensor, "t e"], encoding: PositionalEncoding
) -> Float[Tensor, "t e"]:
    """Bidirectional attention of one head and one sentence."""
    at = Positions.arange(1, len(q))
    return attend(q[None, None], k[None, None], v[None, None], encoding, at, causal=False)[0, 0]


# 猫 吃 鱼: word + position -----------------------------------------------------------------------------------------------

CAT_EATS_FISH = ("猫", "吃", "鱼")
EMBEDDINGS = ((0.5, 0.2, -0.1, 0.3), (0.3, -0.4, 0.6, 0.1), (-0.2, 0.7, 0.4, -0.5))

PRINTED_TABLE = (("0.0", "1.0", "0.0", "1.0"), ("0.841", "0.540", "0.0998", "0.995"), ("0.909", "-0.416", "0.198", "0.980"))
PRINTED_SUMS = (("0.5", "1.2", "-0.1", "1.3"), ("1.141", "0.140", "0.700", "1.095"), ("0.709", "0.284", "0.598", "0.480"))


@checked
def sum_steps(base: float = 100.0) -> tuple[Step, ...]:
    words, tokens = _fp64(EMBEDDINGS), _at_positions(CAT_EATS_FISH)
    table = sinusoidal_table(3, 4, base, dtype=torch.float64)
    encoding, at = Sinusoidal(4, base=base), Positions.arange(1, 3)
    omega = torch.tensor([frequencies.rotary(4, base)], dtype=torch.float64)
    angles = torch.arange(3, dtype=torch.float64)[:, None] * omega
    channels = ("sin 0", "cos 0", "sin 1", "cos 1")
    turned = ("鱼", "吃", "猫")
    return (
        _step(
            "Word vectors",
            "词向量",
            "E",
            tokens,
            _numbered("d", 4),
            words,
            remark=Words("Given by the note.", "笔记给定的数值。"),
        ),
        _step(
            "Frequencies",
            "频率",
            f"ω_i = {base:g}^(-2i/4)",
            ("ω",),
            ("i=0", "i=1"),
            omega,
            remark=Words(
                "The note takes base 100 instead of 10000, so that both pairs move.",
                "笔记把基数 10000 换成 100，两对分量的变化都看得见。",
            ),
        ),
        _step("Angles", "角度", "p·ω_i", tokens, ("i=0", "i=1"), angles),
        _step(
            "Position codes",
            "位置编码",
            "PE(p) = [sin pω_0, cos pω_0, sin pω_1, cos pω_1]",
            tokens,
            channels,
            table,
            PRINTED_TABLE,
        ),
        _step(
            "Input of the first layer",
            "第一层的输入",
            "E + PE",
            tokens,
            _numbered("d", 4),
            encoding.embed(words[None], at)[0],
            PRINTED_SUMS,
        ),
        _step(
            "The same words turned round",
            "同样的词倒过来",
            "P·E + PE",
            _at_positions(turned),
            _numbered("d", 4),
            encoding.embed(words.flip(0)[None], at)[0],
            remark=Words(
                "The words moved, the positions stayed: only 吃, in the middle of both, keeps its row.",
                "词换了地方，位置没有动：只有两句里都居中的“吃”这一行不变。",
            ),
        ),
    )


# 我 喜欢 猫: attention by hand -------------------------------------------------------------------------------------------

I_LIKE_CATS = ("我", "喜欢", "猫")
NINE = ((0.1, 0.2, 0.3), (0.4, 0.5, 0.6), (0.7, 0.8, 0.9))
PRINTED_Q = (("0.30", "0.38", "0.46"), ("0.60", "0.77", "0.94"), ("0.90", "1.16", "1.33"))  # the note drops final zeros
PRINTED_SCORES = (("0.34", "0.68", "1.02"), ("0.68", "1.36", "2.04"), ("1.02", "2.04", "3.06"))
PRINTED_WEIGHTS = (("0.09", "0.24", "0.67"),) * 3
PRINTED_CODES = (("0.841", "0.995", "0.010"), ("0.409", "1.580", "-0.680"), ("1.041", "-0.045", "1.130"))
PRINTED_INPUTS = (("0.941", "1.195", "0.310"), ("0.809", "2.080", "-0.080"), ("1.741", "0.755", "2.030"))


def attention_steps() -> tuple[Step, ...]:
    x = w = _fp64(NINE)
    q = x @ w
    scores = q @ q.T
    unscaled, scaled = attention_weights(q, q, Unscaled()), attention_weights(q, q, NoPE())
    turn = torch.eye(3, dtype=torch.float64).flip(0)
    q_turned = turn @ x @ w
    here, turned, channels = I_LIKE_CATS, I_LIKE_CATS[::-1], _numbered("d", 3)
    codes = sinusoidal_table(3, 3, start=1, dtype=torch.float64)
    placed, placed_turned = (x + codes) @ w, (turn @ x + codes) @ w
    moved = attention_weights(placed_turned, placed_turned, NoPE())
    carried = turn @ attention_weights(placed, placed, NoPE()) @ turn.T
    apart = float((moved - carried).abs().max())
    return (
        _step(
            "Word vectors; all three projections are the same nine numbers",
            "词向量；三个投影矩阵也都是这九个数",
            "X = W_Q = W_K = W_V",
            here,
            channels,
            x,
        ),
        _step(
            "Queries, and with the same weights keys and values",
            "查询；权重相同，键和值也一样",
            "Q = K = V = X·W",
            here,
            channels,
            q,
            PRINTED_Q,
        ),
        _step(
            "Scores",
            "分数",
            "Q·Kᵀ",
            here,
            here,
            scores,
            PRINTED_SCORES,
            Words(
                "Not even what the note's own Q gives: (0.3, 0.38, 0.46) with itself is 0.446, not 0.34.",
                "用笔记自己的 Q 也算不出这些数：(0.3, 0.38, 0.46) 与自身的内积是 0.446，不是 0.34。",
            ),
        ),
        _step(
            "Weights as the note takes them, without 1/√d",
            "权重，按笔记的写法不除以 √d",
            "softmax(Q·Kᵀ)",
            here,
            here,
            unscaled,
            PRINTED_WEIGHTS,
            Words(
                "Not the softmax of the note's own scores either: 0.09, 0.24, 0.67 is softmax(0, 1, 2).",
                "也不是笔记自己那些分数的 softmax：0.09、0.24、0.67 恰好是 softmax(0, 1, 2)。",
            ),
        ),
        _step("Output without 1/√d", "输出，不除以 √d", "softmax(Q·Kᵀ)·V", here, channels, attended(q, q, q, Unscaled())),
        _step(
            "Scaled scores",
            "缩放后的分数",
            "Q·Kᵀ/√3",
            here,
            here,
            scores * NoPE().softmax_scale(3),
            remark=Words(
                "The paper divides by √d, here √3; the note leaves it out.", "论文要除以 √d，这里是 √3；笔记漏掉了。"
            ),
        ),
        _step("Weights", "权重", "A = softmax(Q·Kᵀ/√3)", here, here, scaled),
        _step("Output", "输出", "A·V", here, channels, attended(q, q, q, NoPE())),
        _step(
            "The sentence turned round: 猫 喜欢 我",
            "倒过来的句子：猫 喜欢 我",
            "A(PX) = softmax(PQ·(PQ)ᵀ/√3)",
            turned,
            turned,
            attention_weights(q_turned, q_turned, NoPE()),
        ),
        _step(
            "The first sentence's weights, rows and columns turned round",
            "原句的权重，行和列都倒过来",
            "P·A(X)·Pᵀ",
            turned,
            turned,
            turn @ scaled @ turn.T,
            remark=Words(
                "Equal to the matrix above. The note says the weights stay the same; they move with the words.",
                "与上一个矩阵相等。笔记说权重不变，其实权重跟着词一起换了位置。",
            ),
        ),
        _step(
            "The output of the sentence turned round",
            "倒过来的句子的输出",
            "A(PX)·PV = P·(A(X)·V)",
            turned,
            channels,
            attended(q_turned, q_turned, q_turned, NoPE()),
            remark=Words(
                "The same rows in another order: no word can tell where it stands.",
                "还是那几行，只是换了次序：没有哪个词知道自己站在哪里。",
            ),
        ),
        _step(
            "Position codes by the formula, p = 1, 2, 3",
            "按公式算出的位置编码，p = 1, 2, 3",
            "PE(p) = [sin p, cos p, sin 10000^(-2/3)p]",
            here,
            channels,
            codes,
            PRINTED_CODES,
            Words(
                "The note's numbers follow no formula; sines and cosines cannot exceed 1.",
                "笔记里的数不来自任何公式；正弦和余弦不可能超过 1。",
            ),
        ),
        _step(
            "Words with positions",
            "词加位置",
            "X + PE",
            here,
            channels,
            x + codes,
            PRINTED_INPUTS,
            Words(
                "The additions themselves are right; the codes that are added are not.", "加法本身没错，错在被加上的编码。"
            ),
        ),
        _step(
            "Weights of 猫 喜欢 我 with positions", "加了位置之后，猫 喜欢 我 的权重", "A(PX + p)", turned, turned, moved
        ),
        _step(
            "What they would be if order were not seen",
            "假如看不见次序，权重会是",
            "P·A(X + p)·Pᵀ",
            turned,
            turned,
            carried,
            remark=Words(
                f"They differ by up to {apart:.4f}: now the order counts.", f"两者最多相差 {apart:.4f}：次序起作用了。"
            ),
        ),
    )


# 人工 智能 正在 快速 发展: RoPE ----------------------------------------------------------------------------------------

AI_IS_GROWING = ("人工", "智能", "正在", "快速", "发展")
QUERY = (1.0, 0.5, -0.3, 0.8)  # of 正在; the note gives no numbers, so these are ours, small enough to do by hand
KEYS = ((0.6, -0.2, 0.9, 0.4), (0.3, 0.8, -0.5, 0.2), (0.7, 0.1, 0.4, -0.6), (-0.4, 0.9, 0.2, 0.5), (0.2, -0.7, 0.6, 0.3))
VALUES = ((1.0, 0.0), (0.0, 1.0), (0.5, 0.5), (1.0, 1.0), (0.0, 0.0))


@checked
def rope_steps(base: float = 100.0) -> tuple[Step, ...]:
    q, k, v = _fp64([QUERY]), _fp64(KEYS), _fp64(VALUES)
    rope, at_query, at = RoPE(4, base=base), Positions.arange(1, 1, start=2), Positions.arange(1, 5)
    omega = torch.tensor([frequencies.rotary(4, base)], dtype=torch.float64)
    q_hat = rope.rotate(q[None, None], at_query, "query")[0, 0]
    k_hat = rope.rotate(k[None, None], at, "key")[0, 0]
    same_key = rope.rotate(k[2].expand(1, 1, 5, 4), at, "key")[0, 0]
    columns = torch.stack([q[0] @ rotation_matrix(j - 2, 4, base) @ k[j] for j in range(5)])[None]
    rows = torch.stack([q[0] @ rotation_matrix(2 - j, 4, base).T @ k[j] for j in range(5)])[None]
    scores = q_hat @ k_hat.T
    weights, output = (
        attend(q[None, None], k[None, None], values[None, None], rope, at_query, at, causal=False)[0, 0]
        for values in (torch.eye(5, dtype=torch.float64), v)
    )
    tokens, channels, me = _at_positions(AI_IS_GROWING), _numbered("d", 4), ("正在",)
    offsets = ("+2", "+1", "0", "-1", "-2")
    by_offset = tuple(f"{token} {offset}" for token, offset in zip(AI_IS_GROWING, offsets, strict=True))
    return (
        _step(
            "Query of 正在",
            "“正在”的查询",
            "q_2",
            me,
            channels,
            q,
            remark=Words(
                "The note gives no numbers; queries, keys and values are chosen here, to be checked by hand.",
                "笔记没有给数；查询、键和值是这里选定的，可以手算核对。",
            ),
        ),
        _step("Keys", "键", "k_j", tokens, channels, k),
        _step(
            "Frequencies",
            "频率",
            f"ω_i = {base:g}^(-2i/4)",
            ("ω",),
            ("i=0", "i=1"),
            omega,
            remark=Words(
                "With this base both pairs turn visibly within five positions.",
                "取这个基数，五个位置之内两对分量都转得看得见。",
            ),
        ),
        _step("Angles", "角度", "p·ω_i", tokens, ("i=0", "i=1"), torch.arange(5, dtype=torch.float64)[:, None] * omega),
        _step("The rotation of position 2", "位置 2 的旋转矩阵", "R(2)", channels, channels, rotation_matrix(2, 4, base)),
        _step("The rotated query", "旋转后的查询", "q̂_2 = R(2)·q_2", me, channels, q_hat),
        _step(
            "The rotated keys",
            "旋转后的键",
            "k̂_j = R(j)·k_j",
            tokens,
            channels,
            k_hat,
            remark=Words("Position 0 turns nothing. Lengths are kept.", "位置 0 不转动。向量长度不变。"),
        ),
        _step("Scores, by offset 2-j", "分数，按偏移 2-j 排列", "q̂_2·k̂_j", me, by_offset, scores),
        _step(
            "The same from the offset alone, columns",
            "只用偏移来算，列向量写法",
            "q_2ᵀ·R(j-2)·k_j",
            me,
            by_offset,
            columns,
            remark=Words("Equal: the two absolute positions have dropped out.", "相等：两个绝对位置都消掉了。"),
        ),
        _step(
            "The same in the note's notation, rows",
            "笔记的写法，行向量",
            "q_2·Rᵀ(2-j)·k_jᵀ",
            me,
            by_offset,
            rows,
            remark=Words(
                "For rows R is the transpose and turns the other way: R(i-j) there is R(j-i) for columns.",
                "行向量用的是转置，转向相反：那里的 R(i-j) 就是列向量的 R(j-i)。",
            ),
        ),
        _step(
            "正在 with itself",
            "“正在”与自身",
            "q_2·k_2",
            me,
            by_offset[2:3],
            q @ k[2][:, None],
            remark=Words(
                "Offset 0 turns nothing: the plain inner product, the middle score above.",
                "偏移为 0 就不转动：普通内积，即上面居中的分数。",
            ),
        ),
        _step(
            "One key, that of 正在, at every position",
            "同一个键（“正在”的）放到每个位置",
            "q̂_2·R(j)·k_2",
            me,
            offsets,
            q_hat @ same_key.T,
            remark=Words(
                "All five differ: +1 and -1, before and after, are told apart.", "五个数各不相同：+1 与 -1、前与后分得开。"
            ),
        ),
        _step(
            "Logits",
            "缩放后的分数",
            "q̂_2·k̂_j/√4",
            me,
            by_offset,
            scores * rope.softmax_scale(4),
            remark=Words("Divided by √d; the note leaves this out for RoPE.", "要除以 √d；笔记讲 RoPE 时漏掉了。"),
        ),
        _step("Weights", "权重", "α_2j = softmax(q̂_2·k̂_j/√4)", me, by_offset, weights),
        _step("Values", "值", "v_j", tokens, _numbered("d", 2), v),
        _step("Output", "输出", "o_2 = Σ_j α_2j·v_j", me, _numbered("d", 2), output),
    )


# PE(2), component by component ------------------------------------------------------------------------------------------


@checked
def components_steps(position: int = 2, base: float = 10000.0) -> tuple[Step, ...]:
    eight = (
        ("1", "2.0", "0.9093", "-0.4161"),
        ("10", "0.2", "0.1987", "0.9801"),
        ("100", "0.02", "0.0200", "0.9998"),
        ("1000", "0.002", "0.0020", "0.9999"),
    )
    four = (("1", "2", "0.909", "-0.416"), ("100", "0.02", "0.020", "0.999"))
    return (*_components(position, 8, base, eight, "003"), *_components(position, 4, base, four, "004"))


def _components(position: int, d_model: int, base: float, printed: Printed, note: str) -> tuple[Step, Step]:
    omega = torch.tensor(frequencies.rotary(d_model, base), dtype=torch.float64)
    code = sinusoidal_table(1, d_model, base, start=position, dtype=torch.float64)
    table = torch.stack([1 / omega, position * omega, code[0, 0::2], code[0, 1::2]], dim=1)
    pairs = _numbered("i=", len(omega))
    head = ("denominator", "angle", "sin", "cos")
    row = tuple((digits,) for sin_cos in printed for digits in sin_cos[2:])
    last = f"cos {float(table[-1, 1]):g} = {float(table[-1, 3]):.6f}"
    return (
        _step(
            f"d = {d_model}, pair by pair (note {note})",
            f"d = {d_model}，逐对计算（笔记 {note}）",
            f"{base:g}^(2i/{d_model}),  {position}/denominator,  sin,  cos",
            pairs,
            head,
            table,
            printed,
        ),
        _step(
            f"The code at d = {d_model}",
            f"d = {d_model} 的位置编码",
            f"PE({position})",
            _numbered("d", d_model),
            (f"PE({position})",),
            code.T,
            row,
            Words(f"{last}.", f"{last}。"),
        ),
    )


EXAMPLES = {
    example.name: example
    for example in (
        Example("sum", Words("猫 吃 鱼: word + position", "猫 吃 鱼：词加位置"), ("004",), sum_steps),
        Example(
            "attention", Words("我 喜欢 猫: self-attention by hand", "我 喜欢 猫：手算自注意力"), ("004",), attention_steps
        ),
        Example(
            "rope",
            Words("人工 智能 正在 快速 发展: RoPE, 正在 against the rest", "人工 智能 正在 快速 发展：RoPE，“正在”与各词"),
            ("002",),
            rope_steps,
        ),
        Example("components", Words("PE(2), component by component", "PE(2)，逐个分量"), ("003", "004"), components_steps),
    )
}


def _step(
    english: str,
    chinese: str,
    formula: str,
    rows: tuple[str, ...],
    columns: tuple[str, ...],
    matrix: Tensor,
    printed: Printed = (),
    remark: Words | None = None,
) -> Step:
    return Step(
        Words(english, chinese), formula, rows, columns, tuple(map(tuple, (matrix + 0.0).tolist())), printed, remark
    )  # no -0.0


def _fp64(rows: Sequence[Sequence[float]]) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def _at_positions(tokens: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{token} {position}" for position, token in enumerate(tokens))


def _numbered(prefix: str, count: int) -> tuple[str, ...]:
    return tuple(f"{prefix}{n}" for n in range(count))
