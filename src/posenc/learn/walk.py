"""The worked examples of the founding notes, step by step: every matrix, beside the matrix that the note prints.

    sum         猫 吃 鱼: word + position, base 100                                   note 004
    attention   我 喜欢 猫: self-attention by hand, and the sentence reversed         note 004
    rope        人工 智能 正在 快速 发展: 正在 at position 2 against positions 0 … 4    note 002
    components  PE(2) component by component, at 8 and at 4 channels                  notes 003, 004

`rope_steps()` returns them as data; `posenc walk rope` prints them. Their titles are in the ledger.
Legend: t tokens, i query, j key, d channels, n pairs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from posenc import frequencies
from posenc.attention import attend
from posenc.encoding import PositionalEncoding, scale_of
from posenc.encodings.nope import NoPE
from posenc.encodings.rope import RoPE, rotation_matrix
from posenc.encodings.sinusoidal import Sinusoidal, sinusoidal_table
from posenc.learn.notes import compare
from posenc.learn.say import say
from posenc.positions import Positions
from posenc.support.checked import checked
from posenc.support.data_files import beside
from posenc.support.languages import Words

if TYPE_CHECKING:
    from posenc.support.shapes import Float

Printed = tuple[tuple[str, ...], ...]
WORDS = beside(__file__, say)


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
        slips = []
        for r, row in enumerate(self.printed):
            for c, shown in enumerate(row):
                verdict = compare(shown, self.matrix[r][c]) if shown else "same"
                if verdict != "same":
                    slips.append(Slip(r, c, shown, self.matrix[r][c], verdict == "truncated"))
        return tuple(slips)


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
    return _steps(
        "sum",
        (tokens, _numbered("d", 4), words),
        (("ω",), ("i=0", "i=1"), omega),
        (tokens, ("i=0", "i=1"), angles),
        (tokens, channels, table, PRINTED_TABLE),
        (tokens, _numbered("d", 4), encoding.embed(words[None], at)[0], PRINTED_SUMS),
        (_at_positions(turned), _numbered("d", 4), encoding.embed(words.flip(0)[None], at)[0]),
        base=base,
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
    return _steps(
        "attention",
        (here, channels, x),
        (here, channels, q, PRINTED_Q),
        (here, here, scores, PRINTED_SCORES),
        (here, here, unscaled, PRINTED_WEIGHTS),
        (here, channels, attended(q, q, q, Unscaled())),
        (here, here, scores * scale_of(NoPE(), 3)),
        (here, here, scaled),
        (here, channels, attended(q, q, q, NoPE())),
        (turned, turned, attention_weights(q_turned, q_turned, NoPE())),
        (turned, turned, turn @ scaled @ turn.T),
        (turned, channels, attended(q_turned, q_turned, q_turned, NoPE())),
        (here, channels, codes, PRINTED_CODES),
        (here, channels, x + codes, PRINTED_INPUTS),
        (turned, turned, moved),
        (turned, turned, carried),
        apart=apart,
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
    return _steps(
        "rope",
        (me, channels, q),
        (tokens, channels, k),
        (("ω",), ("i=0", "i=1"), omega),
        (tokens, ("i=0", "i=1"), torch.arange(5, dtype=torch.float64)[:, None] * omega),
        (channels, channels, rotation_matrix(2, 4, base)),
        (me, channels, q_hat),
        (tokens, channels, k_hat),
        (me, by_offset, scores),
        (me, by_offset, columns),
        (me, by_offset, rows),
        (me, by_offset[2:3], q @ k[2][:, None]),
        (me, offsets, q_hat @ same_key.T),
        (me, by_offset, scores * rope.softmax_scale(4)),
        (me, by_offset, weights),
        (tokens, _numbered("d", 2), v),
        (me, _numbered("d", 2), output),
        base=base,
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


def _components(position: int, d_model: int, base: float, printed: Printed, note: str) -> tuple[Step, ...]:
    omega = torch.tensor(frequencies.rotary(d_model, base), dtype=torch.float64)
    code = sinusoidal_table(1, d_model, base, start=position, dtype=torch.float64)
    table = torch.stack([1 / omega, position * omega, code[0, 0::2], code[0, 1::2]], dim=1)
    pairs = _numbered("i=", len(omega))
    head = ("denominator", "angle", "sin", "cos")
    row = tuple((digits,) for sin_cos in printed for digits in sin_cos[2:])
    last = f"cos {float(table[-1, 1]):g} = {float(table[-1, 3]):.6f}"
    return _steps(
        "components",
        (pairs, head, table, printed),
        (_numbered("d", d_model), (f"PE({position})",), code.T, row),
        base=base,
        d_model=d_model,
        position=position,
        note=note,
        last=last,
    )


def _steps(example: str, *parts: tuple[Any, ...], **told: object) -> tuple[Step, ...]:
    """The steps of an example: of each its words in walk.toml, rows, columns, matrix and printed digits."""
    return tuple(_step(words, told, *part) for words, part in zip(WORDS[example], parts, strict=True))


def _step(
    words: Mapping[str, Any],
    told: Mapping[str, object],
    rows: tuple[str, ...],
    columns: tuple[str, ...],
    matrix: Tensor,
    printed: Printed = (),
) -> Step:
    title, formula = words["title"].filled(**told), words["formula"].format(**told)
    remark = words["remark"].filled(**told) if "remark" in words else None
    return Step(title, formula, rows, columns, tuple(map(tuple, (matrix + 0.0).tolist())), printed, remark)  # no -0.0


def _fp64(rows: Sequence[Sequence[float]]) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def _at_positions(tokens: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{token} {position}" for position, token in enumerate(tokens))


def _numbered(prefix: str, count: int) -> tuple[str, ...]:
    return tuple(f"{prefix}{n}" for n in range(count))
