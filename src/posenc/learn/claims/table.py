"""Claims about the sinusoidal table: its printed digits, its frequencies, its rows.

Legend: n positions, d d_model.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from posenc import frequencies
from posenc.encodings.sinusoidal import Sinusoidal, sinusoidal_table
from posenc.learn.claims.claim import Evidence, Verdict, claim, verdict
from posenc.learn.notes import compare
from posenc.pictures import measures
from posenc.positions import Positions
from posenc.support.languages import Words

if TYPE_CHECKING:
    from posenc.support.shapes import Float

Encode = Callable[[Tensor, int], Tensor]
BASE = 10000.0


def sinusoid(positions: Float[Tensor, "n"], d_model: int) -> Float[Tensor, "n d"]:
    """PE at the given positions, in fp64."""
    return Sinusoidal(d_model).tables(Positions.at(positions.double()[None]), torch.float64)[0][0]


@claim("denominators", "003", "The denominators for d = 8 are 1, 10, 100, 1000.", "d = 8 时分母依次是 1、10、100、1000。")
def denominators(d_model: int = 8, base: float = BASE) -> Evidence:
    right = [1 / frequency for frequency in frequencies.rotary(d_model, base)]
    printed = ("1", "10", "100", "1000")
    holds = len(right) == len(printed) and all(compare(p, r) == "same" for p, r in zip(printed, right, strict=True))
    shown = ", ".join(f"{value:.6g}" for value in right)
    return Evidence(verdict(holds), Words(shown, shown), {"denominators": right})


@claim(
    "last-cosine",
    "003 004",
    "PE(2) for d = 8 ends in 0.9999; likewise 0.999, 0.198 and 0.598 elsewhere.",
    "d = 8 时 PE(2) 的末位是 0.9999；别处还有 0.999、0.198、0.598。",
)
def last_cosine(
    printed: tuple[str, ...] = ("0.9999", "0.999", "0.198", "0.598"), base: float = BASE, small_base: float = 100.0
) -> Evidence:
    """PE(2) at d = 8 and d = 4, and the sine at base 100 that note 004 adds to 0.4."""
    sine = float(sinusoidal_table(3, 4, small_base, dtype=torch.float64)[2, 2])
    right = [float(sinusoidal_table(3, d, base, dtype=torch.float64)[2, -1]) for d in (8, 4)] + [sine, 0.4 + sine]
    found = {compare(p, r) for p, r in zip(printed, right, strict=True)}
    decided = Verdict.FALSE if "different" in found else Verdict.TRUNCATED if "truncated" in found else Verdict.TRUE
    rounded = ", ".join(f"{r:.{len(p) - 2}f}" for p, r in zip(printed, right, strict=True))
    return Evidence(
        decided,
        Words(f"cos 0.002 = {right[0]:.6f}; rounded: {rounded}", f"cos 0.002 = {right[0]:.6f}；舍入后是 {rounded}"),
        {"right": right},
    )


@claim(
    "slow-neighbours",
    "003",
    "At d = 512, i = 256, positions 1000 and 1001 differ by 0.0000003.",
    "d = 512、i = 256 时，位置 1000 与 1001 只差 0.0000003。",
)
def slow_neighbours(d_model: int = 512, i: int = 256, position: int = 1000, base: float = BASE) -> Evidence:
    omega = base ** (-2 * i / d_model)
    difference = math.sin((position + 1) * omega) - math.sin(position * omega)
    last = len(frequencies.rotary(d_model, base)) - 1
    holds = compare("0.0000003", difference) == "same" and i <= last
    return Evidence(
        verdict(holds),
        Words(
            f"{difference:.2e}, {difference / 3e-7:.0f} times as much; i ends at {last}; slow it is all the same",
            f"{difference:.2e}，是它的 {difference / 3e-7:.0f} 倍；i 只到 {last}；变化慢这一点没错",
        ),
        {"difference": difference, "times": difference / 3e-7, "last_i": last},
    )


@claim(
    "neighbours-shrink",
    "003",
    "Neighbouring rows differ less and less as the position grows.",
    "位置越靠后，相邻两行的差异越小。",
)
def neighbours_shrink(encode: Encode = sinusoid, positions: tuple[int, ...] = (0, 10, 1000, 100_000)) -> Evidence:
    """‖PE(p+1) - PE(p)‖ for many p, at d = 8 and 512."""
    at = torch.tensor(positions, dtype=torch.float64)
    distances = {d: (encode(at + 1, d) - encode(at, d)).norm(dim=1).tolist() for d in (8, 512)}
    shrink = all(a > b + 1e-9 for row in distances.values() for a, b in itertools.pairwise(row))
    eight, many = distances[8][-1], distances[512][-1]
    spread = max(max(row) - min(row) for row in distances.values())
    return Evidence(
        verdict(shrink),
        Words(
            f"‖PE(p+1) - PE(p)‖ is {eight:.3f} (d = 8) and {many:.3f} (d = 512) for every p; varies by {spread:.0e} "
            f"up to p = {positions[-1]}",
            f"‖PE(p+1) - PE(p)‖ 处处是 {eight:.3f}（d = 8）、{many:.3f}（d = 512）；"
            f"直到 p = {positions[-1]} 只变 {spread:.0e}",
        ),
        {"positions": positions, "d=8": distances[8], "d=512": distances[512]},
    )


@claim("third-component", "000", "The third component divides the position by 10000².", "第三个分量的分母是 10000²。")
def third_component(d_model: int = 8, base: float = BASE) -> Evidence:
    printed, right = base**-2, frequencies.rotary(d_model, base)[1]
    return Evidence(
        verdict(math.isclose(printed, right)),
        Words(
            f"by 10000^(2/d): a frequency of {right:g} at d = {d_model}, not {printed:g}; a lost superscript",
            f"应为 10000^(2/d)：d = {d_model} 时频率是 {right:g}，不是 {printed:g}；上标丢了一截",
        ),
        {"printed": printed, "right": right},
    )


@claim(
    "frequencies-grow",
    "003",
    "Training sees low frequencies; far positions bring very high ones.",
    "训练只见到低频；位置远了，频率就变得极高。",
)
def frequencies_grow(encode: Encode = sinusoid, d_model: int = 128, length: int = 4096) -> Evidence:
    """The angle between p and p+1 in each pair, at small and at large p."""
    near, far = (_turns(encode, d_model, position) for position in (10, 100_000))
    change = float((far - near).abs().max())
    unseen = measures.unfinished_pairs(d_model, length)
    pairs = d_model // 2
    return Evidence(
        verdict(change > 1e-6),
        Words(
            f"frequencies change by {change:.0e}; what is new is the phase: {unseen} of {pairs} pairs have not "
            f"turned once in {length}",
            f"频率变化 {change:.0e}；没见过的是相位：长度 {length} 之内，{pairs} 对里有 {unseen} 对转不满一圈",
        ),
        {"largest_change": change, "unfinished_pairs": unseen, "pairs": pairs},
    )


def _turns(encode: Encode, d_model: int, position: int) -> Float[Tensor, "d/2"]:
    (sin, cos), (sin_next, cos_next) = (
        (row[0::2], row[1::2]) for row in encode(torch.tensor([position, position + 1]), d_model)
    )
    return torch.atan2(sin_next * cos - cos_next * sin, cos_next * cos + sin_next * sin)


@claim("longest-wavelength", "004", "Wavelengths run from 2π to 20000π at d = 512.", "d = 512 时波长从 2π 到 20000π。")
def longest_wavelength(
    d_model: int = 512, base: float = BASE, spacing: Callable[[int, float], Sequence[float]] = frequencies.rotary
) -> Evidence:
    longest = 2 * math.pi / spacing(d_model, base)[-1]
    ratio = longest / (20000 * math.pi)
    decided = Verdict.TRUE if math.isclose(ratio, 1) else Verdict.LIMIT if ratio < 1 else Verdict.FALSE
    return Evidence(
        decided,
        Words(f"{longest:.0f} = {ratio:.3f}·20000π", f"{longest:.0f} = {ratio:.3f}·20000π"),
        {"longest": longest, "ratio": ratio},
    )


@claim("recurrence", "004", "PE(1) ≈ PE(0)·M(1) + PE(1).", "PE(1) ≈ PE(0)·M(1) + PE(1)。")
def recurrence(d_model: int = 8, matrix: Tensor | None = None) -> Evidence:
    """M acts on columns; the error is ‖M PE(0) + PE(1) - PE(1)‖."""
    shift = measures.shift_matrix(1, d_model)
    zero, one = sinusoid(torch.arange(2), d_model)
    exact = float((shift @ zero - one).norm())
    claimed = (shift if matrix is None else matrix) @ zero + one
    error, times = float((claimed - one).norm()), float(claimed.norm() / one.norm())
    return Evidence(
        verdict(error < 1e-9),
        Words(
            f"PE(p+k) = M(k)·PE(p): error {exact:.1g}; the claim gives {times:g} times PE(1), off by {error:.3g}",
            f"PE(p+k) = M(k)·PE(p)，误差 {exact:.1g}；笔记的式子得到 {times:g} 倍 PE(1)，差 {error:.3g}",
        ),
        {"exact_error": exact, "claimed_error": error, "times": times},
    )


@claim("never-repeats", "000 001 004", "No two positions ever have the same code.", "任意两个位置的编码都不会重复。")
def never_repeats(dtype: torch.dtype = torch.bfloat16, length: int = 4096, d_model: int = 512) -> Evidence:
    """With exact positions, and with positions cast to `dtype`."""
    exact = measures.uniqueness(d_model, length)
    distinct = measures.distinct_rows_of_rounded_positions(d_model, length, dtype)
    count = torch.arange(length)
    changed = (count.to(dtype).long() != count).nonzero()
    first = int(changed[0]) if len(changed) else None
    decided = Verdict.FALSE if exact.distance == 0 else Verdict.PARTLY if distinct < length else Verdict.TRUE
    name = str(dtype).removeprefix("torch.")
    return Evidence(
        decided,
        Words(
            f"exact: at least {exact.distance:.3f} apart (d = {d_model}); positions cast to {name}: {distinct} of "
            f"{length} left, repeats from {first}",
            f"精确计算：至少相距 {exact.distance:.3f}（d = {d_model}）；位置先转成 {name}："
            f"{length} 个只剩 {distinct} 个，从 {first} 起重复",
        ),
        {"smallest_distance": exact.distance, "lag": exact.lag, "distinct": distinct, "first_repeat": first},
    )


@claim(
    "mean-and-variance",
    "004",
    "The codes have mean 0 and variance 1, like the embeddings.",
    "编码与词嵌入一样，均值 0、方差 1。",
)
def mean_and_variance(length: int = 512, d_model: int = 512, table: Tensor | None = None) -> Evidence:
    table = sinusoidal_table(length, d_model, dtype=torch.float64) if table is None else table
    mean, variance = float(table.mean()), float(table.var(correction=0))
    square, norm = float(table.square().mean()), float(table[0].norm())
    return Evidence(
        verdict(abs(mean) < 0.05 and abs(variance - 1) < 0.05),
        Words(
            f"mean {mean:.3f}, variance {variance:.3f}, mean square {square:.3f}; every row has length √(d/2) = {norm:g}",
            f"均值 {mean:.3f}，方差 {variance:.3f}，均方 {square:.3f}；每行的长度都是 √(d/2) = {norm:g}",
        ),
        {"mean": mean, "variance": variance, "mean_square": square, "norm": norm},
    )


@claim(
    "same-range",
    "004",
    "Values of the d = 512 table match embeddings normalised to length 1.",
    "d = 512 的编码与 L2 归一化的词嵌入数值相当。",
)
def same_range(d_model: int = 512, embedding_norm: float = 1.0) -> Evidence:
    norm, root = float(sinusoidal_table(1, d_model, start=7, dtype=torch.float64).norm()), d_model**0.5
    return Evidence(
        verdict(0.5 <= norm / embedding_norm <= 2),
        Words(
            f"length {norm:g} against {embedding_norm:g}; the original model multiplies embeddings by √d = {root:.1f}",
            f"长度 {norm:g} 对 {embedding_norm:g}；原模型把词嵌入乘以 √d = {root:.1f}",
        ),
        {"norm": norm, "embedding_norm": embedding_norm},
    )


@claim(
    "decay-is-spread",
    "003",
    "Long-range decay means that low dimensions change fast and high ones slowly; the denominators are powers of two.",
    "远程衰减就是低维变化快、高维变化慢；分母是 2 的幂次。",
)
def decay_is_spread(d_model: int = 512, base: float = BASE) -> Evidence:
    """If there were decay, the similarity PE(p)·PE(p+k) would fall with k."""
    logarithms = [math.log2(1 / frequency) for frequency in frequencies.rotary(d_model, base)]
    powers = all(abs(log - round(log)) < 1e-9 for log in logarithms)
    rise = measures.first_rise(measures.sinusoidal_similarity(d_model, torch.arange(512), base))
    holds = powers + (rise is None)
    ratio = base ** (2 / d_model)
    decided = {0: Verdict.FALSE, 1: Verdict.PARTLY, 2: Verdict.TRUE}[holds]
    return Evidence(
        decided,
        Words(
            f"that is a spread of frequencies; the ratio is 10000^(2/d) = {ratio:.4g}; the similarity PE(p)·PE(p+k) "
            f"rises after k = {rise}",
            f"那只是频率的分布；相邻分母之比是 10000^(2/d) = {ratio:.4g}；相似度 PE(p)·PE(p+k) 在 k = {rise} 之后就回升",
        ),
        {"ratio": ratio, "powers_of_two": powers, "first_rise": rise},
    )


@claim(
    "absolute-or-relative",
    "001 003 004",
    "Sinusoids carry absolute position only (001, 003); they are weak on it (004).",
    "正弦编码只含绝对位置（001、003）；正弦编码对绝对位置不敏感（004）。",
)
def absolute_or_relative(d_model: int = 128, length: int = 1024, dtype: torch.dtype = torch.float64) -> Evidence:
    """Relative: M_k maps every row to the row k positions later. Absolute: every row differs from all others."""
    exact = sinusoidal_table(length, d_model, dtype=torch.float64)
    table = sinusoidal_table(length, d_model, dtype=dtype).double()
    error = max(float((table[:-k] @ measures.shift_matrix(k, d_model).T - table[k:]).abs().max()) for k in (1, 7, 100))
    found = int((torch.cdist(table, exact).argmin(dim=1) == torch.arange(length)).sum())
    relative, absolute = error < 1e3 * torch.finfo(dtype).eps, found == length
    return Evidence(
        Verdict.CONTRADICTION if relative and absolute else Verdict.PARTLY if relative or absolute else Verdict.FALSE,
        Words(
            f"both can be read off: {found} of {length} positions from their row alone; the row k later by the fixed "
            f"matrix M_k, to {error:.0e}",
            f"两样都读得出：{length} 个位置里有 {found} 个单凭编码就能认出；用固定矩阵 M_k 可得 k 步之后的编码，"
            f"误差 {error:.0e}",
        ),
        {"shift_error": error, "positions_found": found, "of": length},
    )


@claim(
    "right-half",
    "001",
    "Positions 0 and 50 differ clearly in the right half of the 50×128 picture.",
    "50×128 的热力图上，位置 0 与 50 在右半边有明显区别。",
)
def right_half(d_model: int = 128, base: float = BASE, first: int = 0, second: int = 50) -> Evidence:
    rows = (sinusoidal_table(1, d_model, base, start=p, dtype=torch.float64)[0, d_model // 2 :] for p in (first, second))
    gaps = (next(rows) - next(rows)).abs()
    small, columns, last = int((gaps < 0.1).sum()), len(gaps), float(gaps[-1])
    return Evidence(
        verdict(small <= columns / 2),
        Words(
            f"{small} of {columns} columns differ by less than 0.1, the last by {last:.0e}",
            f"{columns} 列里有 {small} 列相差不到 0.1，最后一列只差 {last:.0e}",
        ),
        {"below_0.1": small, "columns": columns, "last": last},
    )


@claim(
    "addition-theorem",
    "001",
    "sin(pos+k) = sin pos·cos k + cos pos·sin k, in every dimension.",
    "每一维都有 sin(pos+k) = sin pos·cos k + cos pos·sin k。",
)
def addition_theorem(d_model: int = 8, base: float = BASE, position: int = 5, k: int = 3) -> Evidence:
    """Rotates every pair by k, as printed, and by ω·k."""
    table = sinusoidal_table(k + 1, d_model, base, start=position, dtype=torch.float64)
    sin, cos, moved = table[0, 0::2], table[0, 1::2], table[k, 0::2]
    angle = k * torch.tensor(frequencies.rotary(d_model, base), dtype=torch.float64)
    printed = (sin * math.cos(k) + cos * math.sin(k) - moved).abs()
    right = float((sin * angle.cos() + cos * angle.sin() - moved).abs().max())
    holds, pairs, worst = int((printed < 1e-12).sum()), len(printed), float(printed.max())
    return Evidence(
        Verdict.TRUE if holds == pairs else Verdict.PARTLY if holds else Verdict.FALSE,
        Words(
            f"holds in {holds} of {pairs} pairs, where ω = 1; elsewhere off by up to {worst:.2f}; with ω·k everywhere",
            f"{pairs} 对里只有 {holds} 对成立（ω = 1），别处最多差 {worst:.2f}；换成 ω·k 则处处成立",
        ),
        {"pairs_that_hold": holds, "pairs": pairs, "largest_error": worst, "error_with_omega": right},
    )


@claim("index-range", "000", "The index i runs 0, 1, … d/2.", "下标 i 取 0、1、……、d/2。")
def index_range(d_model: int = 512) -> Evidence:
    last = len(frequencies.rotary(d_model)) - 1
    return Evidence(
        verdict(last == d_model // 2), Words(f"to d/2 - 1 = {last}", f"到 d/2 - 1 = {last} 为止"), {"last_i": last}
    )


@claim("orthogonal-columns", "004", "The sine and cosine columns form an orthogonal basis.", "正弦列与余弦列构成正交基。")
def orthogonal_columns(length: int = 512, d_model: int = 512) -> Evidence:
    """The largest cosine of the angle between the two columns of a pair, and between any two."""
    columns = torch.nn.functional.normalize(sinusoidal_table(length, d_model, dtype=torch.float64), dim=0)
    cosines = (columns.T @ columns).fill_diagonal_(0).abs()
    pair, largest = float(cosines.diagonal(1)[0::2].max()), float(cosines.max())
    return Evidence(
        verdict(largest < 0.01),
        Words(
            f"at [{length}, {d_model}] the two columns of a pair have a cosine of up to {pair:.2f}, any two columns "
            f"of up to {largest:.2f}",
            f"[{length}, {d_model}] 的表里，同一对的两列夹角余弦最大 {pair:.2f}，任意两列最大 {largest:.2f}",
        ),
        {"largest_within_a_pair": pair, "largest": largest},
    )


@claim("shift-is-learned", "004", "M(1) is a matrix that attention learns.", "M(1) 是模型通过注意力学到的矩阵。")
def shift_is_learned(encode: Encode = sinusoid, d_model: int = 8) -> Evidence:
    """One matrix, computed without training, shifts every position."""
    at = torch.tensor([0, 10, 1_000_000], dtype=torch.float64)
    errors = (encode(at, d_model) @ measures.shift_matrix(1, d_model).T - encode(at + 1, d_model)).abs().amax(dim=1)
    error = float(errors.max())
    return Evidence(
        verdict(error > 1e-9),
        Words(
            f"the formula fixes it: M(1)·PE(p) = PE(p+1) to {float(errors[1]):.0e} at 10, {error:.0e} at 1 000 000",
            f"公式已经定死：M(1)·PE(p) = PE(p+1)，位置 10 处误差 {float(errors[1]):.0e}，一百万处 {error:.0e}",
        ),
        {"errors": errors.tolist()},
    )


@claim("column-is-index", "003", "The curve of column 64 of 128 shows i = 64.", "128 列中第 64 列的曲线就是 i = 64。")
def column_is_index(column: int = 64, d_model: int = 128) -> Evidence:
    """Finds the pair whose sine the column holds by comparing it with all pairs."""
    at = torch.arange(512)
    waves = (at[:, None] * torch.tensor(frequencies.rotary(d_model), dtype=torch.float64)).sin()
    pair = int((waves - sinusoid(at, d_model)[:, column : column + 1]).abs().amax(dim=0).argmin())
    omega, last = frequencies.rotary(d_model)[pair], d_model // 2 - 1
    return Evidence(
        verdict(pair == column),
        Words(
            f"it is pair {pair}, sin {omega:g}p; i ends at {last}", f"它是第 {pair} 对，即 sin {omega:g}p；i 只到 {last}"
        ),
        {"pair": pair, "frequency": omega},
    )
