"""Published claims compared with our scores: agree, disagree, undecided. Disagreements are kept.

    claim          2×: sinusoidal 43.54 > rotary 21.37 > T5 18.79, ALiBi 18.73
    ours           2×: Sinusoidal 3.22, RoPE 2.87, T5 2.54, ALiBi 2.38 bits
    verdict        agree, disagree or undecided, by the rule of `deciding`
    why            in how many seeds it holds, which part of it fails, and what is left out
    cause          why we disagree: scale, budget, another setting, a mistake; and the trial that shows it
    decided_by     the command of an experiment that would decide it
    needs          what a test would take, where there is none

Published perplexities use other texts and tokens than our bits, so only sign and order are compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from posenc.lab.findings import criteria
from posenc.lab.findings.published import attention_checks, causes, cost_checks, task_checks, text_checks
from posenc.lab.findings.published.causes import Cause
from posenc.lab.findings.published.deciding import NOTHING, Groups, Link, at_least, at_most, worst_first
from posenc.lab.findings.published.our_scores import BITS, CONSULTED, PLAIN, Judge, Untested
from posenc.lab.findings.published.task_checks import CHANCE, MASKED, ORDER
from posenc.lab.findings.published.text_checks import COMPETITIVE
from posenc.lab.findings.titles import change_title
from posenc.support.languages import Words, clauses

FLAT, BREAKS, KEPT = criteria.FLAT["bits"], criteria.BREAKS["bits"], criteria.FLAT["exact"]
PRESS, HAVIV, KAZEMNEJAD = "Press et al. 2022 (ALiBi)", "Haviv et al. 2022", "Kazemnejad et al. 2023"
CHEN, PENG, DROPE = "Chen et al. 2023 (PI)", "Peng et al. 2023 (YaRN)", "Gelberg et al. 2025 (DroPE)"
TRAINING_ON = Words("training on after the change", "改动之后继续训练")
TUNED = Words(
    "theirs was trained on at the longer length after the change, which the lab does not do",
    "原文在改动之后又在更长的长度上继续训练，实验台不这样做",
)
QUARTER = Words(
    "their rotary turns a quarter of each head, as Partial RoPE does; RoPE turns all of it",
    "原文的旋转编码只旋转每个头的四分之一，与“部分旋转”相同；RoPE 全部旋转",
)
SUN, RUOSS, FIRE = "Sun et al. 2022 (xPos)", "Ruoss et al. 2023", "Li et al. 2023 (FIRE)"
KERPLE, GOLOVNEVA = "Chi et al. 2022 (KERPLE)", "Golovneva et al. 2024 (CoPE)"
MCLEISH = "McLeish et al. 2024 (Abacus)"
OTHER_CELLS = Cause(
    "task",
    Words(
        "theirs are the ranks in 33 cells of other tasks and seeds, and their rotary turns a quarter of each head",
        "原文是另一些任务与种子共 33 个单元中的名次，且其旋转编码只旋转每个头的四分之一",
    ),
)
SHORT_NUMBERS = Cause(
    "task",
    Words(
        "theirs is trained on numbers of up to 20 digits and with more layers, ours on up to 5",
        "原文在至多 20 位的数上训练，层数更多；此处至多 5 位",
    ),
)
ON_A_CPU = Cause(
    "scale",
    Words(
        "attention is a small part of a step at this width on a CPU; theirs ran on GPUs at width 1024",
        "此处宽度小、在 CPU 上，注意力只占一步的一小部分；原文在 GPU 上、宽度 1024",
    ),
    "posenc lab run gpu",
)
FEW_PAIRS = Cause(
    "task",
    Words(
        "here pairs or a short passkey are retrieved from tens of tokens; theirs retrieves from documents (RULER)",
        "此处从几十个词元中检索键值对或短密钥；原文从长文档中检索（RULER）",
    ),
)


STAYS = Link(
    Words(f"interpolation - 1× ≤ {FLAT:g}", f"位置插值 - 1× ≤ {FLAT:g}"),
    lambda at: FLAT - (at["interpolation"] - at["home"]),
)
AS_GOOD = Link(
    Words(f"|YaRN - interpolation| ≤ {FLAT:g}", f"|YaRN - 位置插值| ≤ {FLAT:g}"),
    lambda at: FLAT - abs(at["yarn"] - at["interpolation"]),
)
FOUR = ["sinusoidal", "rope", "t5", "alibi"]
FACTOR_2 = ["interpolation@2", "ntk@2", "yarn@2"]
VERDICTS = {True: "agree", False: "disagree", None: "undecided"}
WITH_RECORDS = Words("the preset standard, whose trials record it", "预设 standard，其试验记录了这些")


def order_of(groups: Groups) -> list[Link]:
    """The changes after training, the worst group first."""
    return worst_first(groups, change_title)


class PublishedClaim(NamedTuple):
    """A claim, its source, and the check that decides it. `cause` is what is known of the paper's setting.

    `elsewhere` says why this lab cannot test the claim, whatever its numbers are; they are shown beside it.
    """

    source: str
    words: Words
    judge: Judge
    cause: Cause | None = None
    elsewhere: Words = NOTHING


def table(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every claim with its verdict: agree, disagree, undecided, or not tested and why.

    Where the verdict is disagree or undecided, `kind` and `cause` say why, and `trial` is one that shows it. Where it is
    not tested, `needs` says what a test would take.
    """
    return [row(claim, found) for claim in CLAIMS]


def row(claim: PublishedClaim, found: Mapping[str, Any]) -> dict[str, Any]:
    consulted: list[tuple[str, str]] = []
    words, needs, known, cause, trial = NOTHING, NOTHING, claim.cause, None, None
    try:
        ours = claim.judge({**found, CONSULTED: consulted})
    except Untested as error:
        verdict, why, needs = "not tested", error.words, error.needs if error.needs.en else WITH_RECORDS
    else:
        words, verdict, why = ours.words, VERDICTS[ours.holds], ours.why
        if claim.elsewhere.en:
            verdict, why, needs = "not tested", claim.elsewhere, TRAINING_ON
        elif verdict != "agree":
            cause = causes.cause_of(known, claim.source, found, consulted, ours)
            trial = causes.trial_of(found, consulted, ours)
        if known and known.kind == "task" and cause is not known:
            why = clauses(why, causes.told(known))
        if verdict == "agree" and (growing := causes.growing(found, consulted)):
            why = clauses(*filter(any, (why, growing)))
    told = NOTHING if cause is None else causes.told(cause, trial)
    said = {"claim": claim.words, "ours": words, "why": why, "cause": told, "needs": needs}
    return {
        "source": claim.source,
        "verdict": verdict,
        "kind": cause and cause.kind,
        "trial": trial,
        "decided_by": cause.experiment if cause and cause.experiment else None,
        **{name: both._asdict() for name, both in said.items()},
    }


CLAIMS = (
    PublishedClaim(
        PRESS,
        Words(
            "1×: rotary 20.07, sinusoidal 20.05 > ALiBi 19.73, T5 19.65",
            "1×：旋转 20.07、正弦 20.05 > ALiBi 19.73、T5 19.65",
        ),
        text_checks.in_windows([1], FOUR, text_checks.order(1, ["rope", "sinusoidal"], ["alibi", "t5"])),
    ),
    PublishedClaim(
        PRESS,
        Words(
            "sinusoidal fails first: at 1.4× it has lost most (20.05 → 24.86)",
            "正弦最先失效：1.4× 时它变差最多（20.05 → 24.86）",
        ),
        text_checks.in_windows([1, 1.4], FOUR, text_checks.loses_most("sinusoidal", ["rope", "t5", "alibi"], 1.4)),
    ),
    PublishedClaim(
        PRESS,
        Words(
            f"rotary fails later: at 1.4× it has lost nothing yet (20.07 → 19.79); at most {FLAT:g} bits here",
            f"旋转失效较晚：1.4× 时尚未变差（20.07 → 19.79）；此处至多 {FLAT:g} 比特",
        ),
        text_checks.in_windows([1, 1.4], ["rope"], text_checks.loses("rope", 1.4, at_most("rope", FLAT))),
    ),
    PublishedClaim(
        PRESS,
        Words(
            "2×: sinusoidal 43.54 > rotary 21.37 > T5 18.79, ALiBi 18.73",
            "2×：正弦 43.54 > 旋转 21.37 > T5 18.79、ALiBi 18.73",
        ),
        text_checks.in_windows([2], FOUR, text_checks.order(2, ["sinusoidal"], ["rope"], ["t5", "alibi"])),
    ),
    PublishedClaim(
        PRESS,
        Words(
            "4.9×: sinusoidal 132.41 > rotary 31.58 > T5 20.41 > ALiBi 18.41",
            "4.9×：正弦 132.41 > 旋转 31.58 > T5 20.41 > ALiBi 18.41",
        ),
        text_checks.in_windows([4.9], FOUR, text_checks.order(4.9, ["sinusoidal"], ["rope"], ["t5"], ["alibi"])),
    ),
    PublishedClaim(
        PRESS,
        Words(
            "6.9×: sinusoidal 178.97 > rotary 35.54 > T5 22.91 > ALiBi 18.40",
            "6.9×：正弦 178.97 > 旋转 35.54 > T5 22.91 > ALiBi 18.40",
        ),
        text_checks.in_windows([6.9], FOUR, text_checks.order(6.9, ["sinusoidal"], ["rope"], ["t5"], ["alibi"])),
    ),
    PublishedClaim(
        PRESS,
        Words(
            f"ALiBi loses nothing up to 6.9× (19.73 → 18.40); at most {FLAT:g} bits here at any length",
            f"直到 6.9×，ALiBi 都没有变差（19.73 → 18.40）；此处任何长度至多 {FLAT:g} 比特",
        ),
        text_checks.in_windows(None, ["alibi"], text_checks.stays_flat("alibi")),
    ),
    PublishedClaim(
        PRESS,
        Words(
            "ALiBi gains by fewer tokens with little context: on the same targets less than half is left",
            "ALiBi 的改善主要因为上文很短的词元变少：目标相同时，剩下的改善不到一半",
        ),
        text_checks.gains_side_by_side("alibi"),
    ),
    PublishedClaim(
        PRESS,
        Words(
            "words trained on per second: T5 14.4k < rotary 20.0k < ALiBi 28.3k, sinusoidal 28.5k",
            "每秒训练词数：T5 14.4k < 旋转 20.0k < ALiBi 28.3k、正弦 28.5k",
        ),
        cost_checks.slower(["t5"], ["rope"], ["alibi", "sinusoidal"]),
        ON_A_CPU,
    ),
    PublishedClaim(
        HAVIV,
        Words(
            "1×: no encoding 20.97 > learned 20.42 > sinusoidal 20.16 > ALiBi 19.71",
            "1×：无编码 20.97 > 可学习 20.42 > 正弦 20.16 > ALiBi 19.71",
        ),
        text_checks.order(1, ["nope"], ["learned"], ["sinusoidal"], ["alibi"]),
    ),
    PublishedClaim(
        HAVIV,
        Words(
            f"a causal model needs no encoding: 20.97, learned 20.42; at most {COMPETITIVE:g} bits a byte behind here, "
            "about 0.1 a word",
            f"因果模型不需要位置编码：20.97，可学习编码为 20.42；此处每字节至多差 {COMPETITIVE:g} 比特，约合每词 0.1 比特",
        ),
        text_checks.competitive("nope", "learned"),
    ),
    PublishedClaim(
        HAVIV,
        Words(
            f"a masked model fails without positions: 147.18, others 4.00–4.07; by {BREAKS:g} bits or more here",
            f"掩码语言模型没有位置就会失败：147.18，其余为 4.00–4.07；此处至少差 {BREAKS:g} 比特",
        ),
        task_checks.blind(MASKED, task_checks.masked_fails, BITS),
    ),
    PublishedClaim(
        KAZEMNEJAD,
        Words(
            "copy, exact match above 1× up to 2×: NoPE .967, T5 .939 > ALiBi .170",
            "复制，1× 以上至 2× 的完全匹配：NoPE .967、T5 .939 > ALiBi .170",
        ),
        task_checks.copies([["nope", "t5"], ["alibi"]]),
    ),
    PublishedClaim(
        KAZEMNEJAD,
        Words("copy: ALiBi .170 > rotary .016, absolute .000", "复制：ALiBi .170 > 旋转 .016、绝对 .000"),
        task_checks.copies([["alibi"], ["partial", "rope", "sinusoidal"]], QUARTER),
    ),
    PublishedClaim(
        KAZEMNEJAD,
        Words("copy: rotary .016 ≥ absolute .000", "复制：旋转 .016 ≥ 绝对 .000"),
        task_checks.copies([["partial", "rope"], ["sinusoidal"]], QUARTER, equal=True),
    ),
    PublishedClaim(
        KAZEMNEJAD,
        Words(
            "mean rank: NoPE 2.00, T5 2.03 < ALiBi 2.67 < rotary 3.80 < absolute 4.50",
            "平均名次：NoPE 2.00、T5 2.03 < ALiBi 2.67 < 旋转 3.80 < 绝对 4.50",
        ),
        task_checks.mean_ranks(["sinusoidal"], ["rope"], ["alibi"], ["nope", "t5"]),
        OTHER_CELLS,
    ),
    PublishedClaim(
        CHEN,
        Words(
            f"RoPE unchanged breaks at 2×: 7.20 → over 1000; by {BREAKS:g} bits or more here",
            f"RoPE 不作改动，2× 即失效：7.20 → 1000 以上；此处至少变差 {BREAKS:g} 比特",
        ),
        text_checks.loses("rope", 2, at_least("rope", BREAKS)),
    ),
    PublishedClaim(
        CHEN,
        Words(
            f"interpolation stays flat: 7.23 at 1×, 7.04 at 2×; at most {FLAT:g} bits lost here",
            f"位置插值保持平稳：1× 为 7.23，2× 为 7.04；此处至多变差 {FLAT:g} 比特",
        ),
        text_checks.changes(2, ["", "interpolation"], [STAYS]),
        elsewhere=TUNED,
    ),
    PublishedClaim(
        PENG,
        Words("at the factor, 2×: NTK 3.59 > YaRN 3.35", "在扩展倍数 2× 处：NTK 3.59 > YaRN 3.35"),
        text_checks.changes(2, ["ntk", "yarn"], order_of([["ntk"], ["yarn"]])),
        elsewhere=TUNED,
    ),
    PublishedClaim(
        PENG,
        Words("at the factor, 2×: NTK 3.59 > interpolation 3.34", "在扩展倍数 2× 处：NTK 3.59 > 位置插值 3.34"),
        text_checks.changes(2, ["ntk", "interpolation"], order_of([["ntk"], ["interpolation"]])),
        elsewhere=TUNED,
    ),
    PublishedClaim(
        PENG,
        Words(
            f"at the factor, 2×: YaRN 3.35 as good as interpolation 3.34; at most {FLAT:g} bits apart here",
            f"在扩展倍数 2× 处：YaRN 3.35 与位置插值 3.34 相当；此处至多相差 {FLAT:g} 比特",
        ),
        text_checks.changes(2, ["interpolation", "yarn"], [AS_GOOD]),
        elsewhere=TUNED,
    ),
    PublishedClaim(
        PENG,
        Words(
            "without training on, NTK and YaRN beat unchanged frequencies; at 4× here",
            "不继续训练，NTK 与 YaRN 也优于不改频率；此处取 4×",
        ),
        text_checks.changes(4, ["", "ntk", "yarn"], order_of([[""], ["ntk", "yarn"]])),
    ),
    PublishedClaim(
        PENG,
        Words(
            "beyond the factor, 2.5×: interpolation 8.07 > NTK 6.24 > YaRN 6.04",
            "超出扩展倍数，2.5×：位置插值 8.07 > NTK 6.24 > YaRN 6.04",
        ),
        text_checks.changes(2.5, FACTOR_2, order_of([["interpolation@2"], ["ntk@2"], ["yarn@2"]])),
        elsewhere=TUNED,
    ),
    PublishedClaim(
        PENG,
        Words(
            "changed within the trained length, ½×: NTK 4.20 > interpolation 3.92, YaRN 3.91",
            "在训练长度以内也作改动，½×：NTK 4.20 > 位置插值 3.92、YaRN 3.91",
        ),
        text_checks.changes(0.5, FACTOR_2, order_of([["ntk@2"], ["interpolation@2", "yarn@2"]])),
        elsewhere=TUNED,
    ),
    PublishedClaim(
        DROPE,
        Words(
            "RoPE retrieves nothing beyond the trained length: 0 0 0; at 2× here less than half of 1×",
            "RoPE 在训练长度以外检索不到：0 0 0；此处即 2× 时不到 1× 的一半",
        ),
        task_checks.retrieves_nothing,
        FEW_PAIRS,
    ),
    PublishedClaim(
        DROPE,
        Words(
            f"flat is not use of context: retrieval NoPE 9.2 36.2 21.4 > ALiBi 5.2 0 1.1, flat to {FLAT:g} bits",
            f"平稳不等于用到了上文：检索 NoPE 9.2 36.2 21.4 > ALiBi 5.2 0 1.1，文本上变差不超过 {FLAT:g} 比特",
        ),
        task_checks.flat_is_not_use,
        FEW_PAIRS,
    ),
    PublishedClaim(
        DROPE,
        Words(
            "retrieval: NTK 21.1 19.4 16.5, YaRN 17.8 0.5 14.6 > interpolation 0 0 0; at 2× here",
            "检索：NTK 21.1 19.4 16.5、YaRN 17.8 0.5 14.6 > 位置插值 0 0 0；此处取 2×",
        ),
        task_checks.changes_retrieve,
    ),
    PublishedClaim(
        DROPE,
        Words(
            "retrieval: RoPE dropped after training 28.0 41.6 23.3 > all others",
            "检索：训练后去掉 RoPE 28.0 41.6 23.3 > 其余各种",
        ),
        task_checks.retrieves_best("rope+dropped", ["rope", "alibi", "nope"]),
    ),
    PublishedClaim(
        PENG,
        Words(
            "without training on: interpolation > NTK > YaRN; at 4× here",
            "不继续训练：位置插值 > NTK > YaRN；此处取 4×",
        ),
        text_checks.changes(4, ["interpolation", "ntk", "yarn"], order_of([["interpolation"], ["ntk"], ["yarn"]])),
    ),
    PublishedClaim(
        SUN,
        Words(
            "2×, without blockwise attention: RoPE 73.6 > xPos 22.56",
            "2×，不用分块注意力：RoPE 73.6 > xPos 22.56",
        ),
        text_checks.order(2, ["rope"], ["xpos"]),
    ),
    PublishedClaim(
        RUOSS,
        Words(
            "random positions generalise to longer algorithmic inputs (+12.0 % of accuracy over 15 tasks); copy here",
            "随机位置可推广到更长的算法输入（15 项任务平均正确率 +12.0%）；此处为复制",
        ),
        task_checks.copies([["rope+randomized"], ["rope"]]),
    ),
    PublishedClaim(
        FIRE,
        Words(
            "FIRE is better than T5 and ALiBi on longer text; at 4× here", "更长的文本上 FIRE 优于 T5 与 ALiBi；此处取 4×"
        ),
        text_checks.order(4, ["t5", "alibi"], ["fire"]),
    ),
    PublishedClaim(
        KERPLE,
        Words(
            f"KERPLE (logarithmic) loses nothing at longer lengths; at most {FLAT:g} bits here at any length",
            f"KERPLE（对数）在更长处没有变差；此处任何长度至多 {FLAT:g} 比特",
        ),
        text_checks.stays_flat("kerple"),
    ),
    PublishedClaim(
        GOLOVNEVA,
        Words(
            "CoPE errs less than RoPE and absolute positions on longer flip-flops; at 4× here",
            "更长的触发器序列上，CoPE 的错误少于 RoPE 与绝对位置；此处取 4×",
        ),
        task_checks.exact_order("flip_flop", 4, ["cope"], ["rope", "learned", "sinusoidal"]),
    ),
    PublishedClaim(
        GOLOVNEVA,
        Words(
            "CoPE counts; RoPE and absolute positions err more; at 1× here",
            "CoPE 会计数，RoPE 与绝对位置错误更多；此处取 1×",
        ),
        task_checks.exact_order("counting", 1, ["cope"], ["rope", "learned", "sinusoidal"]),
    ),
    PublishedClaim(
        MCLEISH,
        Words(
            f"Abacus adds numbers six times as long as in training; at 6× here at least {KEPT:g} of 1×",
            f"Abacus 能做比训练时长六倍的加法；此处 6× 时至少为 1× 的 {KEPT:g}",
        ),
        task_checks.keeps("addition", "learned+abacus", 6),
        SHORT_NUMBERS,
    ),
    PublishedClaim(
        "notes 000, 004",
        Words(
            f"sinusoidal extrapolates without limit: at most {FLAT:g} bits lost at the longest",
            f"正弦可无限外推：最长处至多变差 {FLAT:g} 比特",
        ),
        text_checks.loses("sinusoidal", None, at_most("sinusoidal", FLAT)),
    ),
    PublishedClaim(
        "notes 001",
        Words(
            f"slightly beyond training sinusoidal holds: less than {BREAKS:g} bits lost at 1.4×",
            f"略超训练长度时正弦不会崩溃：1.4× 处变差不到 {BREAKS:g} 比特",
        ),
        text_checks.loses("sinusoidal", 1.4, at_most("sinusoidal", BREAKS)),
    ),
    PublishedClaim(
        "notes 000, 003",
        Words(
            f"RoPE extrapolates smoothly to any length: at most {FLAT:g} bits lost at the longest",
            f"RoPE 可平滑外推到任意长度：最长处至多变差 {FLAT:g} 比特",
        ),
        text_checks.loses("rope", None, at_most("rope", FLAT)),
    ),
    PublishedClaim(
        "notes 000",
        Words("ALiBi extrapolates best: fewest bits at the longest length", "ALiBi 外推最佳：最长处比特数最少"),
        text_checks.best_at_longest("alibi"),
    ),
    PublishedClaim(
        "notes 000, 001, 004",
        Words("learned positions end with the trained length", "可学习编码止于训练长度"),
        text_checks.ends_with_training("learned"),
    ),
    PublishedClaim(
        "notes 000",
        Words(
            "stars for efficiency: RoPE two; sinusoidal, learned and ALiBi three",
            "计算效率：RoPE 两星；正弦、可学习、ALiBi 三星",
        ),
        cost_checks.slower(["rope"], ["sinusoidal", "learned", "alibi"]),
        ON_A_CPU,
    ),
    PublishedClaim(
        "notes 001, 004",
        Words(
            "relative encodings (T5, Shaw, Transformer-XL) cost more than sinusoidal",
            "相对位置编码（T5、Shaw、Transformer-XL）的计算代价高于正弦",
        ),
        cost_checks.slower(["t5", "shaw", "transformer_xl"], ["sinusoidal"]),
        ON_A_CPU,
    ),
    PublishedClaim(
        "notes 002",
        Words(
            f"without positions, attention both ways misses order: within {CHANCE:g} of chance",
            f"没有位置，双向注意力看不出词序：与随机水平相差不超过 {CHANCE:g}",
        ),
        task_checks.blind(ORDER, task_checks.at_chance, PLAIN),
    ),
    PublishedClaim(
        "notes 002",
        Words("精彩 looks at 演员表演 rather than at 电影", "“精彩”关注的是“演员表演”，不是“电影”"),
        attention_checks.looks_at("精彩→演员表演", "精彩→电影"),
    ),
    PublishedClaim(
        "notes 002",
        Words(
            "positions evolve with training: neighbouring rows of the learned table grow alike",
            "位置随训练演化：可学习的位置表中，相邻的行变得相似",
        ),
        attention_checks.neighbours_grow_alike,
    ),
    PublishedClaim(
        "notes 003",
        Words("RoPE looks less at what is farther", "RoPE 对越远的词关注越少"),
        attention_checks.looks_near("rope"),
    ),
)
