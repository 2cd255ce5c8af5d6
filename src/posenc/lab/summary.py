"""Plain sentences about a comparison, in both languages; every number in them is computed from its results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from posenc import catalogue
from posenc.lab.exact import SAME
from posenc.lab.verdict import NOT_LEARNT, failed
from posenc.words import Words

Row = Mapping[str, Any]


class Need(NamedTuple):
    """What somebody may need, which encoding fits it best, and by which numbers."""

    need: Words
    pick: Words
    why: Words


def title(row: Row) -> Words:
    """RoPE, or RoPE at random positions."""
    name = catalogue.BY_NAME[row["encoding"]].class_name
    return Words(f"{name} + random positions", f"{name}＋随机位置") if row["randomized"] else Words(name, name)


def sentences(done: Mapping[str, Any]) -> list[Words]:
    """What came out, the most important first."""
    learnt = [row for row in done["rows"] if row["learnt"]]
    said = []
    if learnt:
        said += [_best(done, learnt), *_beyond(done, learnt)]
    said += [*_not_learnt(done), *_cannot(done), *_order(done), *_same_everywhere(done)]
    if broken := failed(done):
        what = "; ".join(f"{name}: {why}" for name, why in broken.items())
        said.append(Words(f"Came to nothing: {what}.", f"未能得出结果：{what}。"))
    return said


def needs(done: Mapping[str, Any]) -> list[Need]:
    """The best row for each of a few needs, among those that learnt the trained length."""
    learnt = [row for row in done["rows"] if row["learnt"]]
    if not learnt:
        return []
    home, far = _ends(done)
    found = [Need(
        Words(f"Text no longer than in training ({home} bytes)", f"文本不超过训练长度（{home} 字节）"),
        *_named(learnt, lambda row: row["bits"][home]["mean"],
                lambda row: _both(f"{row['bits'][home]['mean']:.2f}", "bits per byte", "比特/字节"))),
    ]  # fmt: skip
    if reach := [row for row in learnt if far in row["rise"]]:
        found.append(Need(
            Words(f"Text {_multiple(done)}× as long as in training ({far} bytes)",
                  f"文本长达训练长度的 {_multiple(done)} 倍（{far} 字节）"),
            *_named(reach, lambda row: row["bits"][far]["mean"],
                    lambda row: Words(f"{row['bits'][far]['mean']:.2f} bits per byte, {row['rise'][far]:+.2f} from {home}",
                                      f"{row['bits'][far]['mean']:.2f} 比特/字节，比 {home} 字节时 {row['rise'][far]:+.2f}"))))  # fmt: skip
    if timed := [row for row in learnt if row["cost"]]:
        for kind, en, zh in (("training", "Least time to train", "训练最省时"), ("prefill", "Least time on a prompt", "读入提示最省时")):
            found.append(Need(
                Words(f"{en}, and learnt", f"{zh}，且已学会"),
                *_named(timed, lambda row, kind=kind: row["cost"][kind]["median"],  # type: ignore[misc]
                        lambda row, kind=kind: _both(f"{row['cost'][kind]['median']:.2f}×", "the time of NoPE", "NoPE 的耗时"))))  # type: ignore[misc]  # fmt: skip
    plain = [row for row in learnt if _fits_anywhere(row) and far in row["rise"]]
    if plain:
        found.append(Need(
            Words("Nothing to learn, the same at any offset, no largest position", "无需学习参数、整体平移不变、位置没有上限"),
            *_named(plain, lambda row: row["bits"][far]["mean"],
                    lambda row: _both(f"{row['bits'][far]['mean']:.2f}", f"bits per byte at {far}, 0 parameters",
                                      f"比特/字节（{far} 字节时），0 个参数"))))  # fmt: skip
    return found


def _fits_anywhere(row: Row) -> bool:
    exact = row["exact"]
    return exact["parameters"] == 0 and exact["shift"] <= SAME and exact["largest_position"] is None


def _named(rows: Sequence[Row], key: Callable[[Row], float], why: Callable[[Row], Words]) -> tuple[Words, Words]:
    best = min(rows, key=key)
    return title(best), why(best)


def _both(number: str, en: str, zh: str) -> Words:
    return Words(f"{number} {en}", f"{number} {zh}")


def _ends(done: Mapping[str, Any]) -> tuple[str, str]:
    return str(done["recipe"]["lengths"][0]), str(max(done["recipe"]["lengths"]))


def _multiple(done: Mapping[str, Any]) -> int:
    lengths = done["recipe"]["lengths"]
    return int(max(lengths) // lengths[0])


def _best(done: Mapping[str, Any], learnt: Sequence[Row]) -> Words:
    home, _ = _ends(done)
    best = min(learnt, key=lambda row: row["bits"][home]["mean"])
    bits = best["bits"][home]["mean"]
    return Words(
        f"At the trained length of {home} bytes {title(best).en} predicts best: {bits:.2f} bits per byte, where a guess "
        f"costs {done['chance']:g}; {len(learnt)} of {len(done['rows'])} learnt that length within {done['gate']['margin']} bits.",
        f"在训练长度 {home} 字节上，{title(best).zh} 预测最好：每字节 {bits:.2f} 比特（随机猜测为 {done['chance']:g}）；"
        f"{len(done['rows'])} 种中有 {len(learnt)} 种与它相差不到 {done['gate']['margin']} 比特，算作学会。",
    )  # fmt: skip


def _beyond(done: Mapping[str, Any], learnt: Sequence[Row]) -> list[Words]:
    _, far = _ends(done)
    multiple, said = _multiple(done), []
    kinds = {
        "flat": Words(f"At {multiple}× the trained length these stay within {done['gate']['flat']} bits, on the same target bytes",
                      f"在训练长度的 {multiple} 倍、目标字节不变时，下列方法的变差不超过 {done['gate']['flat']} 比特"),
        "fades": Words("These fade", "下列方法逐渐变差"),
        "breaks": Words(f"These break, by {done['gate']['breaks']:g} bit or more", f"下列方法失效（变差 {done['gate']['breaks']:g} 比特以上）"),
    }  # fmt: skip
    for kind, words in kinds.items():
        rows = sorted((row for row in learnt if row["behaviour"] == kind), key=lambda row: row["rise"][far])
        if rows:
            en = ", ".join(f"{title(row).en} ({row['rise'][far]:+.2f})" for row in rows)
            zh = "、".join(f"{title(row).zh}（{row['rise'][far]:+.2f}）" for row in rows)
            said.append(Words(f"{words.en}: {en}.", f"{words.zh}：{zh}。"))
    return said


def _not_learnt(done: Mapping[str, Any]) -> list[Words]:
    home, far = _ends(done)
    rows = [row for row in done["rows"] if row["bits"][far].get("state") == NOT_LEARNT]
    if not rows:
        return []
    en = ", ".join(f"{title(row).en} ({row['bits'][home]['mean']:.2f})" for row in rows)
    zh = "、".join(f"{title(row).zh}（{row['bits'][home]['mean']:.2f}）" for row in rows)
    limit = done["gate"]["limit"]
    return [Words(
        f"Not learnt at this budget: {en}; the bar is {limit:.2f} bits at {home} bytes. What they do beyond it is therefore "
        "not judged; a larger --budget may change that.",
        f"在此预算下没有学会：{zh}；门槛是 {home} 字节处 {limit:.2f} 比特。因此不评价它们的外推；加大 --budget 可能改变结果。",
    )]  # fmt: skip


def _cannot(done: Mapping[str, Any]) -> list[Words]:
    said = []
    for row in done["rows"]:
        states = [(length, cell["state"]) for length, cell in row["bits"].items()
                  if cell.get("state", "").startswith("cannot")]  # fmt: skip
        if states:
            length, why = states[0][0], states[0][1].removeprefix("cannot: ")
            said.append(Words(f"{title(row).en} cannot be asked from {length} bytes on: {why}.",
                              f"{title(row).zh} 从 {length} 字节起无法使用：{why}。"))  # fmt: skip
    return said


def _order(done: Mapping[str, Any]) -> list[Words]:
    """S7, and who misses a pure reversal."""
    without = done["order_without"]
    rows = [row for row in done["rows"] if row["exact"] and row["encoding"] != "nope"]
    blind = [row for row in rows if (value := row["exact"]["order"]["bidirectional"]) is not None and value <= SAME]
    said = [Words(
        f"Without an encoding, attention that looks both ways cannot tell 我爱你 from 你爱我 (difference "
        f"{without['bidirectional']:.0e}); a causal mask alone already can ({without['causal']:.1f}).",
        f"没有位置编码时，双向注意力分不清“我爱你”和“你爱我”（差 {without['bidirectional']:.0e}）；仅有因果掩码就已能分清（{without['causal']:.1f}）。",
    )]  # fmt: skip
    if blind:
        en, zh = ", ".join(title(row).en for row in blind), "、".join(title(row).zh for row in blind)
        again = ", ".join(f"{row['exact']['reordered']:.2f}" for row in blind)
        said.append(Words(
            f"These pairs are reversals, and {en} looking both ways misses a reversal, since |i−j| is the same from either "
            f"side; other re-orderings it sees ({again}).",
            f"这些句对恰好是整句倒序，而双向的 {zh} 看不出倒序，因为 |i−j| 从两边看都一样；其他次序变化它能看出（{again}）。",
        ))  # fmt: skip
    return said


def _same_everywhere(done: Mapping[str, Any]) -> list[Words]:
    exact = [row["exact"] for row in done["rows"] if row["exact"]]
    if not exact:
        return []
    worst = max(value["decode"] for value in exact)
    wrong = [row for row in done["rows"] if row["exact"] and row["exact"]["decode"] > SAME]
    if wrong:
        names = ", ".join(row["name"] for row in wrong)
        return [Words(f"Token by token with a cache differs from all at once for {names}: up to {worst:.1e}.",
                      f"用缓存逐词计算与一次算完不一致：{names}，最大差 {worst:.1e}。")]  # fmt: skip
    return [Words(f"Token by token with a cache equals all at once for every one of them, to {worst:.0e}.",
                  f"对其中每一种，用缓存逐词计算都与一次算完相同，误差不超过 {worst:.0e}。")]  # fmt: skip
