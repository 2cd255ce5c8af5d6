"""The figures of the rows of the founding notes, S1 to S21 (posenc.learn.ledger).

    FIGURES["S13"]()        the figures, computed now; `posenc walk S13` prints them, the address #S13 shows them

Figures are texts in tables, as the terminal and the page show them. Legend: p position, k lag, i pair of channels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

import posenc
from posenc import frequencies, measures
from posenc.catalogue import measured
from posenc.encodings.sinusoidal import sinusoidal_table
from posenc.encodings.transformer_xl import TransformerXL
from posenc.explorer import measured_table, trained
from posenc.explorer.say import say
from posenc.learn import walk
from posenc.support.languages import Words

Cells = tuple[str, ...]
Said = str | Words
Curve = tuple[float | None, ...]
NONE = "–"


@dataclass(frozen=True)
class Figures:
    """A table of texts: heads of the columns, and of each row its name and its cells.

    then      the table below it
    curves    what is drawn beside it: of every row its values over `at`, None where there is none
    """

    columns: tuple[Said, ...]
    rows: tuple[tuple[Said, tuple[Said, ...]], ...]
    then: Figures | None = None
    at: tuple[float, ...] = ()
    curves: tuple[Curve, ...] = ()

    def tables(self) -> Iterator[Figures]:
        """This table and those below it."""
        yield self
        if self.then is not None:
            yield from self.then.tables()

    def as_dict(self) -> dict[str, Any]:
        """With every word in both languages, as JSON."""
        return {
            "columns": [words(column).as_dict() for column in self.columns],
            "rows": [
                {"name": words(name).as_dict(), "cells": [words(cell).as_dict() for cell in cells]}
                for name, cells in self.rows
            ],
            "at": self.at,
            "curves": self.curves,
            "then": None if self.then is None else self.then.as_dict(),
        }


def words(text: Said) -> Words:
    return text if isinstance(text, Words) else Words(text)


def numbers(values: Tensor | Iterable[float | Tensor], digits: int = 4) -> Cells:
    return tuple(f"{float(value) + 0.0:.{digits}f}" for value in values)


def small(value: float) -> str:
    return f"{float(value):.1e}"


def percent(values: Tensor | Iterable[float | Tensor]) -> Cells:
    return tuple(f"{100 * float(value):.0f} %" for value in values)


# The figures ----------------------------------------------------------------------------------------------------------


def table() -> Figures:
    rows: list[tuple[Said, Cells]] = []
    rows += [(f"d = 8, p = {p}", _row(8, p)) for p in (0, 1, 2)] + [("d = 4, p = 2", _row(4, 2))]
    rows += [(say("d = 4, base 100, p = {p}", p=p), _row(4, p, 100.0)) for p in (0, 1, 2)]
    return Figures(("sin 0", "cos 0", "sin 1", "cos 1", "sin 2", "cos 2", "sin 3", "cos 3"), tuple(rows))


def _row(d: int, p: int, base: float = 10000.0) -> Cells:
    return numbers(sinusoidal_table(1, d, base, start=p, dtype=torch.float64)[0])


def learned() -> Figures:
    def of(model: str, length: int) -> tuple[Said, Cells]:
        encoding = posenc.create("learned", d_model=768, max_positions=length)
        try:
            encoding.embed(torch.zeros(1, 1, 768), posenc.Positions.arange(1, 1, start=length))
        except ValueError as error:
            refused = str(error)
        return model, (f"{length:,}", f"{768 * length:,}", refused)

    return Figures((say("positions"), say("parameters"), say("one position further")), (of("BERT", 512), of("GPT-2", 1024)))


def rotary() -> Figures:
    q, keys = (torch.tensor(rows, dtype=torch.float64) for rows in ([walk.QUERY], walk.KEYS))
    rope = posenc.create("rope", d_head=4, base=100.0)

    def turned(start: int) -> tuple[Tensor, Tensor]:
        at_q, at_k = posenc.Positions.arange(1, 1, start=start + 2), posenc.Positions.arange(1, 5, start=start)
        return rope.rotate(q[None, None], at_q, "query")[0, 0], rope.rotate(keys[None, None], at_k, "key")[0, 0]

    here, far = turned(0), turned(100)
    own_key = rope.rotate(keys[2].expand(1, 1, 5, 4), posenc.Positions.arange(1, 5), "key")[0, 0]
    return Figures(
        tuple(f"{token} {p - 2:+d}" if p != 2 else f"{token} 0" for p, token in enumerate(walk.AI_IS_GROWING)),
        (
            (say("scores of 正在 at 2"), numbers((here[0] @ here[1].T)[0])),
            (say("all 100 further"), numbers((far[0] @ far[1].T)[0])),
            (say("its own key at each position"), numbers((here[0] @ own_key.T)[0])),
            (say("length of each key, turned"), numbers(here[1].norm(dim=-1))),
            (say("length of each key"), numbers(keys.norm(dim=-1))),
        ),
    )


def slopes() -> Figures:
    def of(n_heads: int) -> tuple[Said, Cells]:
        return say("{n} heads", n=n_heads), tuple(f"{slope:.4g}" for slope in posenc.alibi_slopes(n_heads))

    return Figures(tuple(f"m {head}" for head in range(1, 13)), (of(8), of(12)))


def four_terms() -> Figures:
    random = torch.Generator().manual_seed(0)
    encoding = posenc.create("transformer_xl", d_model=8, n_heads=1, d_head=8).double().requires_grad_(False)
    assert isinstance(encoding, TransformerXL)
    for parameter in encoding.parameters():
        parameter.copy_(torch.randn(parameter.shape, generator=random, dtype=torch.float64))
    q, k = torch.randn(2, 1, 1, 3, 8, generator=random, dtype=torch.float64)
    at = posenc.Positions.arange(1, 3)
    terms = torch.stack([*encoding.terms(q, k, at, at)])[:, 0, 0]
    shifted = posenc.Positions.arange(1, 3, start=100)
    later = torch.stack([*encoding.terms(q, k, shifted, shifted)])[:, 0, 0]
    pairs = ((0, 1), (1, 0), (2, 0))
    cats = ("猫", "追", "老鼠")
    rows = [
        (f"{cats[i]} → {cats[j]}", numbers((*terms[:, i, j], terms[:, i, j].sum(), later[:, i, j].sum()))) for i, j in pairs
    ]
    heads = ("qᵢ·kⱼ", "qᵢ·W_R R(i−j)", "u·kⱼ", "v·W_R R(i−j)", say("sum"), say("all 100 further"))
    return Figures(heads, tuple(rows))


@torch.no_grad()
def floater() -> Figures:
    encoding = trained.floater(-1)
    parameters = sum(parameter.numel() for parameter in encoding.parameters())
    rows = []
    for length in (trained.LENGTH, 64, 256):
        at = posenc.Positions.arange(1, length)
        path = encoding.at_layer(0).embed(torch.zeros(1, length, encoding.d_model), at)[0]
        step = (path[1:] - path[:-1]).norm(dim=-1)
        rows.append((str(length), (f"{parameters:,}", f"{float(path[-1].norm()):.3f}", f"{float(step.mean()):.3f}")))
    heads = (say("parameters"), say("length of the last row"), say("mean step"))
    return Figures(heads, tuple(rows))


def order() -> Figures:
    chosen: dict[Said, tuple[str, bool]] = {"NoPE": ("nope", False), say("NoPE, causal"): ("nope", True)}
    chosen |= {say("sinusoidal"): ("sinusoidal", False), "RoPE": ("rope", False), say("ALiBi, causal"): ("alibi", True)}
    rows = []
    for pair in measures.order.SENTENCE_PAIRS:
        cells = []
        for name, causal in chosen.values():
            encoding = posenc.create(name, d_model=16, n_heads=4)
            moved = measures.order.sentence_sensitivity(encoding, pair, d_model=16, n_heads=4, causal=causal)
            cells.append("0" if moved < 1e-12 else f"{moved:.3f}")
        rows.append((_of(pair), tuple(cells)))
    return Figures(tuple(chosen), tuple(rows))


def _of(pair: measures.SentencePair) -> str:
    return f"{''.join(pair.before)} / {''.join(pair.after)}"


def taylor() -> Figures:
    rows = []
    for eps in (1.0, 0.1, 0.001):
        terms = measures.taylor_split(eps=eps)
        share = measures.relative_share(eps=eps)
        cells = (small(terms.mixed), small(terms.remainder), small(terms.remainder_without_half), *percent([share]))
        rows.append((f"ε = {eps:g}", cells))
    heads = (say("mixed term"), say("left out, with ½"), say("left out, without ½"), say("relative share of all terms"))
    return Figures(heads, tuple(rows))


def heat_map() -> Figures:
    rows = []
    for length, width in ((30, 20), (50, 128), (100, 512)):
        full = sinusoidal_table(length + 1, width, dtype=torch.float64)
        alike = (full[0] - full[length]).abs()[width // 2 :] < 0.1
        cells = (f"{float(full.min()):.4f}", f"{float(full.max()):.4f}", f"{int(alike.sum())} / {len(alike)}")
        rows.append((f"{length} × {width}", cells))
    heads = (say("smallest"), say("largest"), say("right half: rows 0 and last + 1 differ by < 0.1"))
    return Figures(heads, tuple(rows))


def waves() -> Figures:
    table = sinusoidal_table(512, 128, dtype=torch.float64)
    omega = frequencies.rotary(128, 10000.0)
    rows = []
    for column in (0, 32, 64):
        w = omega[column // 2]
        cells = (str(column // 2), f"{w:.6g}", f"{2 * torch.pi / w:.1f}", *numbers(table[[1, 100, 511], column]))
        rows.append((say("column {column}", column=column), cells))
    heads = (say("pair i"), "ω", say("wavelength"), "p = 1", "p = 100", "p = 511")
    return Figures(heads, tuple(rows))


def shift() -> Figures:
    rows = []
    for p in (10, 1000, 1_000_000):
        cells = []
        for k in (1, 3, 100):
            here, there = (sinusoidal_table(1, 128, start=at, dtype=torch.float64)[0] for at in (p, p + k))
            cells.append(small(float((measures.shift_matrix(k, 128) @ here - there).abs().max())))
        rows.append((f"p = {p:,}", tuple(cells)))
    return Figures(("k = 1", "k = 3", "k = 100"), tuple(rows))


def wavelengths() -> Figures:
    rows = []
    for d in (8, 128, 512):
        lengths = [2 * torch.pi / w for w in frequencies.rotary(d, 10000.0)]
        beyond = sum(length > 4096 for length in lengths)
        cells = (
            f"{lengths[0]:.2f}",
            f"{lengths[len(lengths) // 2]:,.1f}",
            f"{lengths[-1]:,.0f}",
            f"{beyond} / {len(lengths)}",
        )
        rows.append((f"d = {d}", cells))
    heads = (say("fastest"), say("middle"), say("slowest"), say("hands that turn less than once in 4096"))
    return Figures(heads, tuple(rows))


def uniqueness() -> Figures:
    rows = []
    for d in (2, 4, 8, 512):
        closest = measures.uniqueness(d, 4096)
        rounded = measures.table.distinct_rows_of_rounded_table(d, 1024, torch.bfloat16)
        cast = measures.table.distinct_rows_of_rounded_positions(d, 4096, torch.bfloat16)
        rows.append((f"d = {d}", (f"{closest.distance:.3g}", str(closest.lag), f"{rounded} / 1024", f"{cast} / 4096")))
    heads = (say("closest two rows"), say("lag"), say("distinct, rounded to bf16"), say("distinct, positions in bf16"))
    return Figures(heads, tuple(rows))


def worked_sums() -> Figures:
    by_formula = {step.formula: step for step in walk.sum_steps()}
    sums = by_formula["E + PE"]
    return Figures(sums.columns, tuple(zip(sums.rows, map(numbers, sums.matrix), strict=True)))


def longer() -> Figures:
    """The encodings that the study's tasks have too; the view below the row has all of the study."""
    task, of_tasks = measured.task(measured_table.TASK), {arm["name"] for arm in measured.task("passkey")["arms"]}
    arms = [arm for arm in task["arms"] if arm["name"] in of_tasks]
    rows = []
    for arm in arms:
        cells = (f"{cell['mean']:.2f}" if "mean" in cell else NONE for cell in arm["cells"])
        rows.append((Words(**arm["title"]), tuple(cells)))
    heads = (f"{length} = {length / task['length']:g}×" for length in task["lengths"])
    at = tuple(length / task["length"] for length in task["lengths"])
    curves = tuple(tuple(cell.get("mean") for cell in arm["cells"]) for arm in arms)
    return Figures(tuple(heads), tuple(rows), at=at, curves=curves)


def stars() -> Figures:
    """The note's four encodings: its words and stars, and our measures. Its emoji became signs of every font."""
    of_note = {
        "sinusoidal": (say("unlimited in theory"), "★★★"),
        "learned": (say("✗ limited"), "★★★"),
        "rope": (say("✓ good"), "★★"),
        "alibi": (say("✓ best"), "★★★"),
    }
    measured = {row["name"]: row for row in measured_table.table(of_note)["rows"]}
    rows: list[tuple[Said, tuple[Said, ...]]] = []
    for name, (further, fast) in of_note.items():
        row = measured[name]
        bits = (f"{value:.2f}" if value is not None else NONE for value in row["bits"])
        costs = (f"{row[measure]:.2f}×" for measure in ("prefill", "decode", "training"))
        rows.append((Words(**row["title"]), (further, *bits, fast, *costs, f"{row['parameters']:,}")))
    bits_at = (say("bits, {n}×", n=n) for n in measured_table.FACTORS)
    heads = (say("note: extrapolates"), *bits_at, say("note: cost"), say("prefill"), say("decode"), say("training"))
    return Figures((*heads, say("parameters")), tuple(rows))


def attention_by_distance() -> Figures:
    from posenc.explorer import trained_words  # needs the extra explore, as what its reader types is checked

    record, rows = trained_words.record(), []
    for name, name_shown in (("nope", say("without positions")), ("rope", Words("RoPE"))):
        by_distance = record[f"descriptions.{name}.attention"][-1]  # [layer, head, query − key]
        linked = record[f"descriptions.{name}.linked"][-1].mean(-1)
        layer, head = divmod(int(linked.argmax()), linked.shape[1])
        middle = by_distance.shape[-1] // 2
        near = by_distance[layer, head, middle + 3 : middle - 4 : -1]  # 3 before the query … 3 after it
        right = record[f"descriptions.{name}.right"][-1]
        rows.append((name_shown, (f"{layer + 1}·{head + 1}", *percent(near), *percent([linked[layer, head], right]))))
    places = [say("{n} before", n=n) for n in (3, 2, 1)] + [say("itself")] + [say("{n} after", n=n) for n in (1, 2, 3)]
    heads = (say("head"), *places, say("to the linked word"), say("sentences right"))
    return Figures(heads, tuple(rows), then=alignment())


def alignment() -> Figures:
    """Of every word that the models write for the note's English sentence: the English word that it looks at most."""
    from posenc.explorer import trained_words

    english, rows, written = trained_words.split("The red car is parked outside the building.").words, [], set[Cells]()
    for name, name_shown in (("nope", say("without positions")), ("rope", Words("RoPE"))):
        read = trained_words.load("translation", name).read(english)
        first = len(english)  # the arrow; what stands at a word predicts the next one
        most, word = read.weights.amax((0, 1))[first:-1, :first].max(-1)  # over layers, heads and English words
        looked = (f"{english[n]} {share}" for n, share in zip(word.tolist(), percent(most), strict=True))
        rows.append((name_shown, tuple(looked)))
        written.add(read.words[first + 1 :])
    (chinese,) = written  # both models write the same
    return Figures(chinese, tuple(rows))


def training() -> Figures:
    record, rows = trained.record(), []
    for at in (0, 2, 4, 6, 8, 10):
        unit = torch.nn.functional.normalize(trained.learned()[at], dim=-1)
        near = [float((unit[lag:] * unit[:-lag]).sum(-1).mean()) for lag in (1, 8)]
        attention, first = record["learned.attention"][at], record["learned.first"][at]
        cells = (*numbers(near, 2), *percent([attention[..., 1].max(), first.max()]))
        rows.append((say("step {step}", step=trained.STEPS[at]), cells))
    even, first_even = trained.even()
    rows.append((say("uniform"), (NONE, NONE, *percent([even[1], first_even]))))
    heads = (
        say("rows 1 apart, cosine"),
        say("rows 8 apart"),
        say("most to the word before"),
        say("most to the first word"),
    )
    return Figures(heads, tuple(rows))


def browser() -> Figures:
    return Figures(table().columns, tuple((f"p = {p}", _row(8, p)) for p in (0, 1)))


def recurrent() -> Figures:
    rows = []
    for pair in measures.order.SENTENCE_PAIRS:
        of_pair = measures.rnn_sensitivity(pair)
        sinusoidal = posenc.create("sinusoidal", d_model=16)
        placed = measures.order.sentence_sensitivity(sinusoidal, pair, d_model=16, n_heads=1, causal=False)
        cells = (f"{of_pair.rnn:.3f}", "0" if of_pair.attention < 1e-12 else f"{of_pair.attention:.3f}", f"{placed:.3f}")
        rows.append((_of(pair), cells))
    heads = (say("RNN, last state"), say("attention without positions"), say("attention with sinusoidal positions"))
    return Figures(heads, tuple(rows))


def decay() -> Figures:
    lags, shown = torch.arange(65), (0, 1, 2, 4, 8, 11, 12, 18, 19, 32, 64)
    curves: dict[Said, Tensor] = {
        "PE(p)·PE(p+k)": measures.sinusoidal_similarity(128, lags),
        say("RoPE, ones"): measures.rope_score(128, lags),
        say("RoPE, bound"): measures.rope_bound(128, lags),
    }
    rows = []
    for name, curve in curves.items():
        rise = measures.first_rise(curve)
        relative = numbers(curve[list(shown)] / curve[0], 3)
        rows.append((name, (*relative, f"{rise} → {rise + 1}" if rise is not None else NONE)))
    return Figures((*(f"k = {k}" for k in shown), say("first rise")), tuple(rows))


FIGURES: dict[str, Callable[[], Figures]] = {
    "S1": table,
    "S2": learned,
    "S3": rotary,
    "S4": slopes,
    "S5": four_terms,
    "S6": floater,
    "S7": order,
    "S8": taylor,
    "S9": heat_map,
    "S10": waves,
    "S11": shift,
    "S12": wavelengths,
    "S13": uniqueness,
    "S14": worked_sums,
    "S15": longer,
    "S16": stars,
    "S17": attention_by_distance,
    "S18": training,
    "S19": browser,
    "S20": recurrent,
    "S21": decay,
}
