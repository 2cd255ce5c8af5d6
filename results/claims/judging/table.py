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

from judging import attention_checks, causes, cost_checks, task_checks, text_checks
from judging.causes import Cause
from judging.deciding import NOTHING, Groups, Link, Ours, at_least, at_most, worst_first
from judging.our_scores import BITS, CONSULTED, PLAIN, Judge, Untested
from judging.say import say
from judging.task_checks import CHANCE, MASKED, ORDER
from judging.text_checks import COMPETITIVE
from posenc.lab.findings import criteria
from posenc.lab.findings.statistics import LEVEL
from posenc.lab.findings.titles import change_title
from posenc.support.languages import Words, clauses

FLAT, BREAKS, KEPT = criteria.FLAT["bits"], criteria.BREAKS["bits"], criteria.FLAT["exact"]
PRESS, HAVIV, KAZEMNEJAD = "Press et al. 2022 (ALiBi)", "Haviv et al. 2022", "Kazemnejad et al. 2023"
CHEN, PENG, DROPE = "Chen et al. 2023 (PI)", "Peng et al. 2023 (YaRN)", "Gelberg et al. 2025 (DroPE)"
QUARTER = say("their rotary turns a quarter of each head, as Partial RoPE does; RoPE turns all of it")
SUN, RUOSS, FIRE = "Sun et al. 2022 (xPos)", "Ruoss et al. 2023", "Li et al. 2023 (FIRE)"
KERPLE, GOLOVNEVA = "Chi et al. 2022 (KERPLE)", "Golovneva et al. 2024 (CoPE)"
MCLEISH = "McLeish et al. 2024 (Abacus)"
DAPE, CABLE, GRAPE = "Zheng et al. 2024 (DAPE)", "Veisi et al. 2025 (CABLE)", "Zhang et al. 2025 (GRAPE)"
FOPE, STICK, BARBERO = "Hua et al. 2024 (FoPE)", "Tan et al. 2024 (stick-breaking)", "Barbero et al. 2024 (p-RoPE)"
BIPE, JELASSI, CHO, ZHOU = "He et al. 2024 (BiPE)", "Jelassi et al. 2023", "Cho et al. 2024", "Zhou et al. 2024"
MADE_FOR = {  # source of a claim -> the experiment at its paper's setting, NAME.yaml and its folder NAME
    PRESS: "press",
    HAVIV: "haviv",
    KAZEMNEJAD: "kazemnejad",
    CHEN: "peng",
    PENG: "peng",
    DROPE: "drope",
    SUN: "xpos",
    RUOSS: "ruoss",
    FIRE: "fire",
    KERPLE: "kerple",
    GOLOVNEVA: "cope",
    MCLEISH: "abacus",
    JELASSI: "jelassi",
    **dict.fromkeys((DAPE, CABLE, STICK, GRAPE, BARBERO), "newer"),
    FOPE: "fope",
    "notes 002": "order",
}
OTHER_CELLS = Cause(
    "task", say("theirs are the ranks in 33 cells of other tasks and seeds, and their rotary turns a quarter of each head")
)
SHORT_NUMBERS = Cause("task", say("theirs is trained on numbers of up to 20 digits and with more layers, ours on up to 5"))
SMALL_ADDERS = Cause("scale", say("their models are larger and trained for longer"))
ON_A_CPU = Cause(
    "scale",
    say("attention is a small part of a step at this width on a CPU; theirs ran on GPUs at width 1024"),
    "posenc lab run gpu",
)
FEW_PAIRS = Cause(
    "task", say("here pairs or a short passkey are retrieved from tens of tokens; theirs retrieves from documents (RULER)")
)


STAYS = Link(say("interpolation - 1× ≤ {flat:g}", flat=FLAT), lambda at: FLAT - (at["interpolation@2"] - at["home"]))
AS_GOOD = Link(
    say("|YaRN - interpolation| ≤ {flat:g}", flat=FLAT), lambda at: FLAT - abs(at["yarn@2"] - at["interpolation@2"])
)
FOUR = ["sinusoidal", "rope", "t5", "alibi"]
FACTOR_2 = ["interpolation@2", "ntk@2", "yarn@2"]
VERDICTS = {True: "agree", False: "disagree", None: "undecided"}
WITH_RECORDS = say("an experiment whose trials record it")


def order_of(groups: Groups) -> list[Link]:
    """The changes after training, the worst group first."""
    return worst_first(groups, change_title)


def not_possible(why: Words, needs: Words) -> Judge:
    """A claim that no experiment of this lab can test yet."""

    def judge(findings: Mapping[str, Any]) -> Ours:
        raise Untested(why, needs)

    return judge


class PublishedClaim(NamedTuple):
    """A claim, its source, and the check that decides it. `cause` is what is known of the paper's setting."""

    source: str
    words: Words
    judge: Judge
    cause: Cause | None = None


class Row(NamedTuple):
    """A claim and its verdict: agree, disagree, undecided, or not tested and why.

    Where the verdict is disagree or undecided, `kind` and `cause` say why, `trial` shows it, and `decided_by` is a command
    that would decide it. Where it is not tested, `needs` says what a test would take.
    """

    claim: PublishedClaim
    ours: Words
    verdict: str
    why: Words
    unconverged: bool = False  # it is decided by models that still improved at their end
    kind: str | None = None
    cause: Words = NOTHING
    trial: str | None = None
    decided_by: str = ""
    needs: Words = NOTHING


def p_values(claim: PublishedClaim, findings: Mapping[str, Any]) -> list[float]:
    """Of each inequality of the claim that the records of `findings` test; empty where they do not."""
    try:
        ours = claim.judge({**findings, CONSULTED: []})
    except Untested:
        return []
    return [p for judgement in ours.judged if (p := judgement.p) is not None]


def judged(claim: PublishedClaim, findings: Mapping[str, Any], limit: float = 1 - LEVEL) -> Row:
    """The verdict of the records that `findings` (posenc.lab.findings.assemble) are of.

    `limit` is the largest p-value that decides an inequality; left out, that of an inequality which is tested alone.
    """
    consulted: list[tuple[str, str]] = []
    try:
        ours = claim.judge({**findings, CONSULTED: consulted})._replace(limit=limit)
    except Untested as error:
        return Row(claim, NOTHING, "not tested", error.words, needs=error.needs if error.needs.en else WITH_RECORDS)
    verdict, why, known = VERDICTS[ours.holds], ours.why, claim.cause
    cause = None if ours.holds else causes.cause_of(known, claim.source, findings, consulted, ours)
    if known and known.kind == "task" and cause is not known:
        why = clauses(why, causes.told(known))
    if cause is None:
        if growing := causes.growing(findings, consulted):
            why = clauses(*(clause for clause in (why, growing) if clause.en))
        return Row(claim, ours.words, verdict, why, bool(causes.improving(findings, consulted)))
    trial = causes.trial_of(findings, consulted, ours)
    unconverged = ours.holds is False and bool(causes.improving(findings, consulted))
    told = causes.told(cause, trial)
    return Row(claim, ours.words, verdict, why, unconverged, cause.kind, told, trial, cause.experiment)


CLAIMS = (
    PublishedClaim(
        PRESS,
        say("1×: rotary 20.07, sinusoidal 20.05 > ALiBi 19.73, T5 19.65"),
        text_checks.in_windows([1], FOUR, text_checks.order(1, ["rope", "sinusoidal"], ["alibi", "t5"])),
    ),
    PublishedClaim(
        PRESS,
        say("sinusoidal fails first: at 1.4× it has lost most (20.05 → 24.86)"),
        text_checks.in_windows([1, 1.4], FOUR, text_checks.loses_most("sinusoidal", ["rope", "t5", "alibi"], 1.4)),
    ),
    PublishedClaim(
        PRESS,
        say("rotary fails later: at 1.4× it has lost nothing yet (20.07 → 19.79); at most {flat:g} bits here", flat=FLAT),
        text_checks.in_windows([1, 1.4], ["rope"], text_checks.loses("rope", 1.4, at_most("rope", FLAT))),
    ),
    PublishedClaim(
        PRESS,
        say("2×: sinusoidal 43.54 > rotary 21.37 > T5 18.79, ALiBi 18.73"),
        text_checks.in_windows([2], FOUR, text_checks.order(2, ["sinusoidal"], ["rope"], ["t5", "alibi"])),
    ),
    PublishedClaim(
        PRESS,
        say("4.9×: sinusoidal 132.41 > rotary 31.58 > T5 20.41 > ALiBi 18.41"),
        text_checks.in_windows([4.9], FOUR, text_checks.order(4.9, ["sinusoidal"], ["rope"], ["t5"], ["alibi"])),
    ),
    PublishedClaim(
        PRESS,
        say("6.9×: sinusoidal 178.97 > rotary 35.54 > T5 22.91 > ALiBi 18.40"),
        text_checks.in_windows([6.9], FOUR, text_checks.order(6.9, ["sinusoidal"], ["rope"], ["t5"], ["alibi"])),
    ),
    PublishedClaim(
        PRESS,
        say("ALiBi loses nothing up to 6.9× (19.73 → 18.40); at most {flat:g} bits here at any length", flat=FLAT),
        text_checks.in_windows(None, ["alibi"], text_checks.stays_flat("alibi")),
    ),
    PublishedClaim(
        PRESS,
        say("ALiBi gains by fewer tokens with little context: on the same targets less than half is left"),
        text_checks.gains_side_by_side("alibi"),
    ),
    PublishedClaim(
        PRESS,
        say("words trained on per second: T5 14.4k < rotary 20.0k < ALiBi 28.3k, sinusoidal 28.5k"),
        cost_checks.slower(["t5"], ["rope"], ["alibi", "sinusoidal"]),
        ON_A_CPU,
    ),
    PublishedClaim(
        HAVIV,
        say("1×: no encoding 20.97 > learned 20.42 > sinusoidal 20.16 > ALiBi 19.71"),
        text_checks.order(1, ["nope"], ["learned"], ["sinusoidal"], ["alibi"]),
    ),
    PublishedClaim(
        HAVIV,
        say(
            "a causal model needs no encoding: 20.97, learned 20.42; at most {competitive:g} bits a byte "
            "behind here, about 0.1 a word",
            competitive=COMPETITIVE,
        ),
        text_checks.competitive("nope", "learned"),
    ),
    PublishedClaim(
        HAVIV,
        say(
            "a masked model fails without positions: 147.18, others 4.00–4.07; by {breaks:g} bits or more here",
            breaks=BREAKS,
        ),
        task_checks.blind(MASKED, task_checks.masked_fails, BITS),
    ),
    PublishedClaim(
        KAZEMNEJAD,
        say("copy, exact match above 1× up to 2×: NoPE .967, T5 .939 > ALiBi .170"),
        task_checks.copies([["nope", "t5"], ["alibi"]]),
    ),
    PublishedClaim(
        KAZEMNEJAD,
        say("copy: ALiBi .170 > rotary .016, absolute .000"),
        task_checks.copies([["alibi"], ["partial", "rope", "sinusoidal"]], QUARTER),
    ),
    PublishedClaim(
        KAZEMNEJAD,
        say("copy: rotary .016 ≥ absolute .000"),
        task_checks.copies([["partial", "rope"], ["sinusoidal"]], QUARTER, equal=True),
    ),
    PublishedClaim(
        KAZEMNEJAD,
        say("mean rank: NoPE 2.00, T5 2.03 < ALiBi 2.67 < rotary 3.80 < absolute 4.50"),
        task_checks.mean_ranks(["sinusoidal"], ["rope"], ["alibi"], ["nope", "t5"]),
        OTHER_CELLS,
    ),
    PublishedClaim(
        CHEN,
        say("RoPE unchanged breaks at 2×: 7.20 → over 1000; by {breaks:g} bits or more here", breaks=BREAKS),
        text_checks.loses("rope", 2, at_least("rope", BREAKS)),
    ),
    PublishedClaim(
        CHEN,
        say("interpolation stays flat: 7.23 at 1×, 7.04 at 2×; at most {flat:g} bits lost here", flat=FLAT),
        text_checks.changes_trained_on(2, ["interpolation@2"], [STAYS]),
    ),
    PublishedClaim(
        PENG,
        say("at the factor, 2×: NTK 3.59 > YaRN 3.35"),
        text_checks.changes_trained_on(2, ["ntk@2", "yarn@2"], order_of([["ntk@2"], ["yarn@2"]])),
    ),
    PublishedClaim(
        PENG,
        say("at the factor, 2×: NTK 3.59 > interpolation 3.34"),
        text_checks.changes_trained_on(2, ["ntk@2", "interpolation@2"], order_of([["ntk@2"], ["interpolation@2"]])),
    ),
    PublishedClaim(
        PENG,
        say("at the factor, 2×: YaRN 3.35 as good as interpolation 3.34; at most {flat:g} bits apart here", flat=FLAT),
        text_checks.changes_trained_on(2, ["interpolation@2", "yarn@2"], [AS_GOOD]),
    ),
    PublishedClaim(
        PENG,
        say("without training on, NTK and YaRN beat unchanged frequencies; at 4× here"),
        text_checks.changes(4, ["", "ntk", "yarn"], order_of([[""], ["ntk", "yarn"]])),
    ),
    PublishedClaim(
        PENG,
        say("beyond the factor, 2.5×: interpolation 8.07 > NTK 6.24 > YaRN 6.04"),
        text_checks.changes_trained_on(2.5, FACTOR_2, order_of([["interpolation@2"], ["ntk@2"], ["yarn@2"]])),
    ),
    PublishedClaim(
        PENG,
        say("changed within the trained length, ½×: NTK 4.20 > interpolation 3.92, YaRN 3.91"),
        text_checks.changes_trained_on(0.5, FACTOR_2, order_of([["ntk@2"], ["interpolation@2", "yarn@2"]])),
    ),
    PublishedClaim(
        DROPE,
        say("RoPE retrieves nothing beyond the trained length: 0 0 0; at 2× here less than half of 1×"),
        task_checks.retrieves_nothing,
        FEW_PAIRS,
    ),
    PublishedClaim(
        DROPE,
        say("flat is not use of context: retrieval NoPE 9.2 36.2 21.4 > ALiBi 5.2 0 1.1, flat to {flat:g} bits", flat=FLAT),
        task_checks.flat_is_not_use,
        FEW_PAIRS,
    ),
    PublishedClaim(
        DROPE,
        say("retrieval: NTK 21.1 19.4 16.5, YaRN 17.8 0.5 14.6 > interpolation 0 0 0; at the longest length here"),
        task_checks.changes_retrieve,
    ),
    PublishedClaim(
        DROPE,
        say("retrieval: RoPE dropped after training 28.0 41.6 23.3 > all others; at the longest length here"),
        task_checks.retrieves_best("rope+dropped", ["rope", "alibi", "nope"]),
    ),
    PublishedClaim(
        PENG,
        say("without training on: interpolation > NTK > YaRN; at 4× here"),
        text_checks.changes(4, ["interpolation", "ntk", "yarn"], order_of([["interpolation"], ["ntk"], ["yarn"]])),
    ),
    PublishedClaim(
        SUN, say("2×, without blockwise attention: RoPE 73.6 > xPos 22.56"), text_checks.order(2, ["rope"], ["xpos"])
    ),
    PublishedClaim(
        RUOSS,
        say("random positions generalise to longer algorithmic inputs (+12.0 % of accuracy over 15 tasks); copy here"),
        task_checks.copies([["rope+randomized"], ["rope"]]),
    ),
    PublishedClaim(
        FIRE,
        say("FIRE is better than T5 and ALiBi on longer text; at 4× here"),
        text_checks.order(4, ["t5", "alibi"], ["fire"]),
    ),
    PublishedClaim(
        KERPLE,
        say("KERPLE (logarithmic) loses nothing at longer lengths; at most {flat:g} bits here at any length", flat=FLAT),
        text_checks.stays_flat("kerple"),
    ),
    PublishedClaim(
        GOLOVNEVA,
        say("CoPE errs less than RoPE and absolute positions on longer flip-flops; at 4× here"),
        task_checks.exact_order("flip_flop.py:FlipFlop", 4, ["cope"], ["rope", "learned", "sinusoidal"]),
    ),
    PublishedClaim(
        GOLOVNEVA,
        say("CoPE counts; RoPE and absolute positions err more; at 1× here"),
        task_checks.exact_order("counting", 1, ["cope"], ["rope", "learned", "sinusoidal"]),
    ),
    PublishedClaim(
        MCLEISH,
        say("Abacus adds numbers six times as long as in training; at 6× here at least {kept:g} of 1×", kept=KEPT),
        task_checks.keeps("addition", "learned+abacus", 6),
        SHORT_NUMBERS,
    ),
    PublishedClaim(
        DAPE,
        say("DAPE is better than static biases on longer text, also at 64 times the trained length; at 8× here"),
        text_checks.order(8, ["kerple", "alibi"], ["dape"]),
    ),
    PublishedClaim(
        CABLE,
        say("CABLE has a lower perplexity than other encodings on longer text; at 8× here"),
        text_checks.order(8, ["t5", "alibi", "rope"], ["cable"]),
    ),
    PublishedClaim(
        STICK,
        say(
            "stick-breaking attention has a lower perplexity at 8× than at the trained length; at most {flat:g} bits lost "
            "here at any length",
            flat=FLAT,
        ),
        text_checks.stays_flat("stick_breaking"),
    ),
    PublishedClaim(
        GRAPE,
        say(
            "GRAPE-AP (additive, along a path) is better than RoPE on downstream tasks; "
            "fewer bits at the trained length here"
        ),
        text_checks.order(1, ["rope"], ["grape_ap"]),
    ),
    PublishedClaim(
        BARBERO,
        say("RoPE without its slowest quarter of pairs has a lower perplexity than RoPE at the trained length"),
        text_checks.order(1, ["rope"], ["proportional"]),
    ),
    PublishedClaim(
        FOPE,
        say("FoPE finds a passkey in longer inputs more often than RoPE and ALiBi; at 16× here"),
        task_checks.exact_order("passkey", 16, ["fope"], ["rope", "alibi"]),
    ),
    PublishedClaim(
        BIPE,
        say("BiPE is better than RoPE on longer text"),
        not_possible(
            say("BiPE reads two coordinates, of the token in its sentence and of the sentence; the lab's tokens have one"),
            say("a task whose tokens have segments"),
        ),
    ),
    PublishedClaim(
        JELASSI,
        say("relative positions add numbers of 15 digits after training on 5; absolute positions do not; at 3× here"),
        task_checks.exact_order("addition", 3, ["shaw"], ["learned", "sinusoidal"]),
        SMALL_ADDERS,
    ),
    PublishedClaim(
        CHO,
        say("coupled positions add numbers of 200 digits after training on up to 30"),
        not_possible(
            say("the lab has no coupled positions; Abacus counts digits without coupling those of the answer"),
            say("an experiment whose tokens have coupled positions"),
        ),
    ),
    PublishedClaim(
        ZHOU,
        say(
            "FIRE with random positions, reversed numbers and index hints adds numbers of 100 digits after training on up "
            "to 40; the spread over seeds is large"
        ),
        not_possible(say("the lab's addition has no index hints"), say("a task of addition with index hints")),
    ),
    PublishedClaim(
        "notes 000, 004",
        say("sinusoidal extrapolates without limit: at most {flat:g} bits lost at the longest", flat=FLAT),
        text_checks.loses("sinusoidal", None, at_most("sinusoidal", FLAT)),
    ),
    PublishedClaim(
        "notes 001",
        say("slightly beyond training sinusoidal holds: less than {breaks:g} bits lost at 1.4×", breaks=BREAKS),
        text_checks.loses("sinusoidal", 1.4, at_most("sinusoidal", BREAKS)),
    ),
    PublishedClaim(
        "notes 000, 003",
        say("RoPE extrapolates smoothly to any length: at most {flat:g} bits lost at the longest", flat=FLAT),
        text_checks.loses("rope", None, at_most("rope", FLAT)),
    ),
    PublishedClaim(
        "notes 000", say("ALiBi extrapolates best: fewest bits at the longest length"), text_checks.best_at_longest("alibi")
    ),
    PublishedClaim(
        "notes 000, 001, 004",
        say("learned positions end with the trained length"),
        text_checks.ends_with_training("learned"),
    ),
    PublishedClaim(
        "notes 000",
        say("stars for efficiency: RoPE two; sinusoidal, learned and ALiBi three"),
        cost_checks.slower(["rope"], ["sinusoidal", "learned", "alibi"]),
        ON_A_CPU,
    ),
    PublishedClaim(
        "notes 001, 004",
        say("relative encodings (T5, Shaw, Transformer-XL) cost more than sinusoidal"),
        cost_checks.slower(["t5", "shaw", "transformer_xl"], ["sinusoidal"]),
        ON_A_CPU,
    ),
    PublishedClaim(
        "notes 002",
        say("without positions, attention both ways misses order: within {chance:g} of chance", chance=CHANCE),
        task_checks.blind(ORDER, task_checks.at_chance, PLAIN),
    ),
    PublishedClaim(
        "notes 002",
        say("精彩 looks at 演员表演 rather than at 电影"),
        attention_checks.looks_at("精彩→演员表演", "精彩→电影"),
    ),
    PublishedClaim(
        "notes 002",
        say("positions evolve with training: neighbouring rows of the learned table grow alike"),
        attention_checks.neighbours_grow_alike,
    ),
    PublishedClaim("notes 003", say("RoPE looks less at what is farther"), attention_checks.looks_near("rope")),
)
