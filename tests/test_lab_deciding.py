"""Claims judged by made-up scores: which inequality holds in every seed, by an interval without 0, and why not."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from judging import readme
from judging.causes import trial_of
from judging.deciding import Link, Score, above, best_first, decide, limit_of, paired, worst_first
from judging.table import CLAIMS, Row, judged
from lab_results import Asked
from posenc.lab.experiment.change import Then
from posenc.lab.records.record import NON_OVERLAPPING
from posenc.support.languages import Words
from test_lab_findings import arms_of, but, copied, flipped, found_in, plain

WORDS = Words("ours", "此处")


def scores(**each: list[float]) -> dict[str, Score]:
    """Every row of a score is as its mean, so that the seeds alone decide."""
    means = {name: sum(of) / len(of) for name, of in each.items()}
    return {name: Score(means[name], dict(zip("01234", of, strict=False)), [means[name]] * 3) for name, of in each.items()}


def test_means_are_over_the_seeds_that_all_share() -> None:
    """ALiBi is better in every shared seed; two seeds more make it worse by its mean over all of its own."""
    given = scores(alibi=[0.80, 0.81, 0.82, 0.95, 0.96], t5=[0.83, 0.84, 0.85])
    ours = decide(given, worst_first([["t5"], ["alibi"]]), WORDS)
    assert (ours.holds, ours.seeds, ours.why.en) == (True, 3, "holds for 3 of 3 seeds")
    assert paired(given)["alibi"].mean == pytest.approx(0.81)


def test_an_interval_with_zero_is_undecided() -> None:
    """The mean difference is 0.2 in every case; the differences have a standard deviation of 0.1, then of 0.05.
    t(97.5 %) / sqrt(3) is 2.4841 for three seeds.
    """
    wide = decide(scores(rope=[1.1, 1.2, 1.3], t5=[1.0, 1.0, 1.0]), [above("rope", "t5")], WORDS)
    assert (wide.holds, wide.why.en) == (
        None, "holds for 3 of 3 seeds; undecided: RoPE > T5 by +0.200 ± 0.248 over 3 seeds"
    )  # fmt: skip
    assert wide.why.zh == "3 个种子中有 3 个成立；未定：RoPE > T5，3 个种子上相差 +0.200 ± 0.248"
    assert decide(scores(rope=[1.15, 1.2, 1.25], t5=[1.0, 1.0, 1.0]), [above("rope", "t5")], WORDS).holds
    against = decide(scores(rope=[0.9, 0.8, 0.7], t5=[1.0, 1.0, 1.0]), [above("rope", "t5")], WORDS)
    assert against.holds is None
    against = decide(scores(rope=[0.85, 0.8, 0.75], t5=[1.0, 1.0, 1.0]), [above("rope", "t5")], WORDS)
    assert against.holds is False


def test_two_seeds_decide_nothing() -> None:
    ours = decide(scores(rope=[2.0, 2.0], t5=[1.0, 1.0]), [above("rope", "t5")], WORDS)
    assert (ours.holds, ours.seeds) == (None, 2)


def test_the_link_that_fails_is_named_and_the_encoding_that_breaks_it() -> None:
    given = scores(sinusoidal=[2.0, 2.1, 2.0], rope=[3.0, 3.1, 3.0], t5=[1.5, 1.6, 1.5], alibi=[1.0, 1.1, 1.0])
    bits = decide(given, worst_first([["sinusoidal"], ["rope"], ["t5"], ["alibi"]]), WORDS)
    assert (bits.holds, bits.shows) == (False, "sinusoidal")
    assert bits.why == Words(
        "holds for 0 of 3 seeds; fails: Sinusoidal > RoPE", "3 个种子中有 0 个成立；不成立：Sinusoidal > RoPE"
    )
    right = decide(given, best_first([["sinusoidal"], ["rope", "t5"], ["alibi"]]), WORDS)
    assert (right.holds, right.shows) == (False, "rope")


def test_one_link_that_fails_is_enough_and_one_that_is_open_is_not() -> None:
    """The seeds order RoPE and T5 in both ways."""
    given = scores(rope=[1.0, 1.2, 1.0], t5=[1.1, 1.0, 1.1], alibi=[0.5, 0.5, 0.5])
    assert decide(given, worst_first([["rope"], ["t5"], ["alibi"]]), WORDS).holds is None
    assert decide(given, worst_first([["rope"], ["t5"]]) + worst_first([["alibi"], ["t5"]]), WORDS).holds is False


def test_a_tie_in_every_seed() -> None:
    given = scores(rope=[0.0, 0.0, 0.0], t5=[0.0, 0.0, 0.0])
    assert decide(given, [above("rope", "t5", equal=True)], WORDS).holds
    assert decide(given, [above("rope", "t5")], WORDS).holds is None
    assert decide(given, [Link(WORDS, lambda at: 0.1 - at["rope"])], WORDS).holds


def test_the_largest_p_that_holm_finds() -> None:
    """By hand: of three, 0.01 · 3 = 0.03 is found; 0.03 · 2 = 0.06 is not, and none after it."""
    assert limit_of([0.04, 0.01, 0.03]) == 0.01
    assert limit_of([0.02, 0.001]) == 0.02
    assert limit_of([0.04, 0.026]) == 0.0
    assert limit_of([]) == 0.0


def test_an_inequality_that_is_one_of_many_may_be_undecided() -> None:
    """p of the link is 0.0063 (differences of mean 0.2, deviation 0.0275, three seeds)."""
    alone = decide(scores(rope=[1.1725, 1.2, 1.2275], t5=[1.0, 1.0, 1.0]), [above("rope", "t5")], WORDS)
    (link,) = alone.judged
    assert link.p == pytest.approx(0.00625, rel=0.01)
    assert alone.holds
    among = alone._replace(limit=limit_of([link.p, *[1.0] * 9]))
    assert (among.holds, among.why.en) == (
        None, "holds for 3 of 3 seeds; undecided: RoPE > T5 by +0.200 ± 0.068 over 3 seeds"
    )  # fmt: skip
    assert alone._replace(limit=limit_of([link.p, *[1.0] * 6])).holds  # 7 · 0.00625 = 0.044


# Claims -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def plain_json(tmp_path_factory: pytest.TempPathFactory) -> str:
    return json.dumps(found_in(tmp_path_factory.mktemp("plain")))


@pytest.fixture
def plain_found(plain_json: str) -> dict[str, Any]:
    """Everything as `plain` has it; a test's own."""
    found: dict[str, Any] = json.loads(plain_json)
    return found


def verdict(found: dict[str, Any], begins: str) -> Row:
    (claim,) = (claim for claim in CLAIMS if claim.words.en.startswith(begins))
    return judged(claim, found)


def rows(found: dict[str, Any]) -> list[Row]:
    return [judged(claim, found) for claim in CLAIMS]


def test_verdicts_follow_the_numbers(tmp_path: Path, plain_found: dict[str, Any]) -> None:
    other = found_in(tmp_path, value=flipped)
    for begins, before, after in (
        ("4.9×:", "agree", "disagree"),
        ("6.9×:", "agree", "disagree"),
        ("ALiBi loses nothing", "agree", "disagree"),
        ("RoPE extrapolates smoothly", "disagree", "agree"),
        ("rotary fails later", "disagree", "agree"),
        ("ALiBi extrapolates best", "agree", "disagree"),
        ("sinusoidal extrapolates without limit", "disagree", "disagree"),
        ("learned positions end", "agree", "agree"),
    ):
        assert (verdict(plain_found, begins).verdict, verdict(other, begins).verdict) == (before, after), begins


def test_a_length_that_was_not_cut_up_is_not_called_missing(plain_found: dict[str, Any]) -> None:
    """As with cut_up: longest. Only the longest length has a score of windows side by side."""
    alibi = arms_of(plain_found)["alibi"]
    alibi["non_overlapping"] = {"512": alibi["non_overlapping"]["512"]}
    row = verdict(plain_found, "ALiBi gains by fewer tokens")
    assert row.why.en == "ALiBi: not scored in windows side by side at the trained length"
    assert row.why.zh == "ALiBi：没有在训练长度上以首尾相接的窗口评测"
    assert row.needs.en.startswith("cut_up: every length")


def longer_helps(asked: Asked) -> float | None:
    """In windows side by side ALiBi gains by length, which it does not on the same targets."""
    if asked.encoding != "alibi":
        return None
    return 2.4 - 0.1 * math.log2(asked.times) if asked.mode == NON_OVERLAPPING else 2.4 + 0.1 * math.log2(asked.times)


def test_press_is_judged_in_windows_side_by_side(tmp_path: Path) -> None:
    """Where all encodings have such scores at the lengths asked; FIRE's and KERPLE's claims are not of that kind."""
    found = found_in(tmp_path, value=but(longer_helps))
    flat, order = verdict(found, "ALiBi loses nothing"), verdict(found, "6.9×:")
    assert (flat.verdict, flat.ours.en) == ("agree", "1.5× -0.058, 2× -0.100, 4× -0.200, 8× -0.300 bits")
    assert "; windows side by side, as theirs" in flat.why.en
    assert "；与原文相同，窗口首尾相接" in flat.why.zh
    assert "ALiBi 2.10 bits" in order.ours.en
    assert "side by side" not in verdict(found, "ALiBi extrapolates best").why.en
    for arm in found["tasks"][0]["arms"]:
        arm["non_overlapping"] = {"512": arm["non_overlapping"]["512"]} if arm["name"] in ("alibi", "t5", "rope") else {}
    arms_of(found)["sinusoidal"]["learnt"] = False
    flat, order = verdict(found, "ALiBi loses nothing"), verdict(found, "6.9×:")
    assert (flat.verdict, flat.kind) == ("disagree", "task")
    assert flat.cause.en.startswith("other setting: theirs cuts the text into windows side by side; here every length")
    assert "; the same targets at every length" in flat.why.en
    assert "fails: 1.5× ≤ 0.05, 2× ≤ 0.05" in flat.why.en
    assert "ALiBi 2.10 bits" in order.ours.en  # at the longest length all that learnt have one


def test_buckets_of_t5_that_were_not_trained_are_named(plain_found: dict[str, Any]) -> None:
    said = "T5's buckets distinguish distances up to 128, and training at 64 never uses those of longer distances"
    told = [row.claim.words.en.partition(":")[0] for row in rows(plain_found) if said in row.why.en]
    assert told == ["sinusoidal fails first", "2×", "4.9×", "6.9×", "ALiBi extrapolates best"]
    plain_found["tasks"][0] |= {"length": 128, "lengths": [128, 256, 512]}
    assert not any(said[:20] in row.why.en for row in rows(plain_found))


def test_nearly_as_good_is_a_matter_of_bits_a_byte(tmp_path: Path) -> None:
    """0.02 bits a byte are 0.1 bits a word of 5.6 bytes."""
    for behind, verdict_ in ((0.015, "agree"), (0.03, "disagree")):
        value = but(lambda asked, behind=behind: 2.6 + behind if asked.encoding == "nope" else None)
        found = found_in(tmp_path / verdict_, value=lambda asked, value=value: value(asked._replace(seed=0)))
        row = verdict(found, "a causal model needs no encoding")
        assert row.verdict == verdict_
        assert "0.02 bits a byte behind here, about 0.1 a word" in row.claim.words.en


def test_a_reason_is_told_in_chinese_too(plain_found: dict[str, Any]) -> None:
    why = verdict(plain_found, "ALiBi extrapolates best").why
    assert "without Learned: cannot: table ends at 64" in why.en
    assert "未计入 Learned：无法做到：位置表止于 64" in why.zh


def test_copying_agrees_disagrees_and_ties(tmp_path: Path) -> None:
    how = {"tasks": ["copy"], "items": 200, "cannot": {}, "encodings": ["nope", "t5", "alibi", "rope", "sinusoidal"]}
    theirs = found_in(tmp_path / "theirs", value=copied(nope=190, t5=170, alibi=40, rope=10, sinusoidal=0), **how)
    begins = ["copy, exact", "copy: ALiBi", "copy: rotary", "mean rank"]
    assert [verdict(theirs, claim).verdict for claim in begins] == ["agree"] * 4
    assert "quarter" in verdict(theirs, "copy: ALiBi").why.en
    assert verdict(theirs, "mean rank").ours.en == "Sinusoidal 5.00, RoPE 4.00, ALiBi 3.00, T5 2.00, NoPE 1.00"
    other = found_in(tmp_path / "other", value=copied(nope=30, t5=180, alibi=40, rope=60, sinusoidal=60), **how)
    assert [verdict(other, claim).verdict for claim in begins] == ["disagree", "disagree", "agree", "disagree"]


def test_what_did_not_learn_is_left_out_of_a_claim_and_named(tmp_path: Path) -> None:
    found = found_in(tmp_path, value=but(lambda asked: 3.6 if asked.encoding == "t5" else None))
    row = verdict(found, "4.9×:")
    assert row.verdict == "agree"
    assert "without T5: not learnt at this budget" in row.why.en
    assert "未计入 T5：此预算下未学会" in row.why.zh
    assert "T5" not in row.ours.en
    assert "T5" not in verdict(found, "1×: rotary").ours.en  # nor where it has a number, at the trained length
    nothing = verdict(
        found_in(tmp_path / "no", value=but(lambda asked: 3.6 if asked.encoding in ("rope", "alibi", "t5") else None)),
        "4.9×:",
    )
    assert (nothing.verdict, nothing.why.en) == ("not tested", "RoPE: not learnt at this budget")


def test_seeds_that_disagree_are_counted(tmp_path: Path) -> None:
    """In one seed of three NTK beats YaRN; the trial that is named is that one."""
    value = but(lambda asked: {"interpolation": 2.9, "ntk": 2.5, "yarn": 2.4 + 0.2 * (asked.seed == 2)}.get(asked.change))
    row = verdict(found_in(tmp_path, value=value), "without training on: interpolation")
    said = "holds for 2 of 3 seeds; undecided: NTK > YaRN by +0.033 ± 0.287 over 3 seeds"
    assert (row.verdict, row.why.en) == ("undecided", said)
    assert row.trial == "language_model rope seed 2"
    assert row.decided_by == ""  # no preset has more seeds


def test_a_claim_about_training_on_is_decided_by_models_that_were_trained_on(plain_found: dict[str, Any]) -> None:
    """The papers trained on after the change: numbers of models that were not say nothing of it."""
    begins = "at the factor, 2×: YaRN"
    row = verdict(plain_found, begins)
    assert (row.verdict, row.kind, row.trial) == ("not tested", None, None)
    assert row.why.en.startswith("theirs was trained on at the longer length")
    assert row.needs.en == "then: in the experiment, which trains on after the change"

    task = plain_found["tasks"][0]
    for bits, holds in ((2.04, "agree"), (3.0, "disagree")):
        for method, mean in (("yarn", 2.0), ("interpolation", bits)):
            cell = {"mean": mean, "seeds": {str(seed): mean for seed in range(3)}, "state": None}
            trained = Then(change=f"{method}@2", steps=600, length=128).word
            task["after"].append({"change": trained, "cells": dict.fromkeys(map(str, task["lengths"]), cell)})
        row = verdict(plain_found, begins)
        assert row.verdict == holds
        assert f"interpolation (factor 2) {bits:.2f}" in row.ours.en
        assert row.why.en.endswith("trained on after the change: 600 steps at 128")
        del task["after"][-2:]


def test_each_inequality_is_decided_over_the_seeds_that_its_encodings_share() -> None:
    """T5 has one seed; ALiBi and KERPLE have five, which decide their order."""
    five, one = dict.fromkeys("01234", 1.0), {"0": 2.0}
    given = {"alibi": (1.0, five), "kerple": (1.5, dict.fromkeys("01234", 1.5)), "t5": (2.0, one)}
    scores = {name: Score(mean, seeds, [mean] * 3) for name, (mean, seeds) in given.items()}
    ours = decide(scores, worst_first([["t5"], ["kerple"], ["alibi"]]), Words("", ""))
    assert (ours.holds, ours.seeds, ours.open) == (None, 1, {"t5", "kerple"})
    assert ours.why.en == "each inequality over the 1 to 5 seeds that its encodings share"
    fails = decide(scores, worst_first([["t5"], ["alibi"], ["kerple"]]), Words("", ""))
    assert (fails.holds, fails.shows, fails.open) == (False, "alibi", {"alibi", "kerple"})
    assert "fails: ALiBi > KERPLE" in fails.why.en


def test_no_seed_is_named_where_every_seed_agrees() -> None:
    """RoPE is worse in every seed, by very different amounts: undecided, and no trial shows the contrary."""
    scores = {"rope": Score(3.7, {"0": 2.1, "1": 3.0, "2": 6.0}), "xpos": Score(2.0, dict.fromkeys("012", 2.0))}
    ours = decide(scores, worst_first([["rope"], ["xpos"]]), Words("", ""))
    assert (ours.holds, ours.seeds, ours.against) == (None, 3, None)
    assert trial_of({"seeds": [0, 1, 2]}, [("language_model", "rope")], ours) is None
    scores["xpos"] = Score(2.0, {"0": 2.0, "1": 2.0, "2": 7.0})
    ours = decide(scores, worst_first([["rope"], ["xpos"]]), Words("", ""))
    assert trial_of({"seeds": [0, 1, 2]}, [("language_model", "rope")], ours) == "language_model rope seed 2"


def test_the_trial_is_of_the_encoding_that_contradicts(tmp_path: Path) -> None:
    """T5 and RoPE are better than ALiBi at the longest length, T5 most, and most in seed 1."""
    value = but(lambda asked: {"t5": 2.0 - 0.01 * (asked.seed == 1), "rope": 2.1}.get(asked.encoding))
    row = verdict(found_in(tmp_path, value=value), "ALiBi extrapolates best")
    assert (row.verdict, row.trial) == ("disagree", "language_model t5 seed 1")
    assert "fails: RoPE > ALiBi, T5 > ALiBi" in row.why.en
    assert "seen in: posenc lab repeat language_model t5 seed 1 --in OUT" in row.cause.en


def test_what_is_undecided_is_not_called_a_mistake(tmp_path: Path) -> None:
    """RoPE loses nothing at the longest length in two seeds of three; then there are two seeds."""
    value = but(lambda asked: 2.3 + (asked.seed == 1) * (asked.times > 1) if asked.encoding == "rope" else None)
    begins = "RoPE extrapolates smoothly"
    row = verdict(found_in(tmp_path / "a", value=value), begins)
    assert (row.verdict, row.kind) == ("undecided", "budget")
    assert "their mistake" not in row.cause.en
    row = verdict(found_in(tmp_path / "b", value=value, seeds=2), begins)
    assert (row.verdict, row.cause.en.partition(";")[0]) == ("undecided", "budget: only 2 seeds")
    assert row.cause.zh.startswith("预算：只有 2 个种子")


def test_masked_models_and_word_order_without_positions(tmp_path: Path) -> None:
    def value(asked: Asked) -> float:
        if asked.task == "word_order" and asked.encoding == "nope":
            return float(asked.item % 2)
        return 4.0 if asked.task == "masked_language_model" and asked.encoding == "nope" else plain(asked)

    found = found_in(tmp_path, tasks=["masked_language_model", "word_order"], value=value)
    assert verdict(found, "a masked model fails").verdict == "agree"
    assert verdict(found, "without positions").verdict == "agree"
    said = " ".join(words["en"] for words in found["summary"])
    assert (
        "without positions has 50.0% right, which counts as not learnt; one with Sinusoidal has 100.0% right; guessing"
        in said
    )
    same = found_in(tmp_path / "same", tasks=["masked_language_model", "word_order"])
    assert verdict(same, "a masked model fails").verdict == "disagree"
    assert verdict(same, "without positions").verdict == "disagree"


def test_retrieval_beside_flat_text(tmp_path: Path, plain_found: dict[str, Any]) -> None:
    """ALiBi is flat on text and forgets; then NoPE forgets instead."""
    tasks = ["language_model", "recall"]

    def forgets(*names: str) -> Callable[[Asked], float]:
        return but(lambda asked: 0.0 if asked.task == "recall" and asked.encoding in names and asked.times > 1 else None)

    there = found_in(tmp_path / "there", tasks=tasks, value=forgets("alibi", "rope"))
    assert verdict(there, "flat is not use").verdict == "agree"
    assert verdict(there, "RoPE retrieves nothing").verdict == "agree"
    here = found_in(tmp_path / "here", tasks=tasks, value=forgets("nope"))
    assert verdict(here, "flat is not use").verdict == "disagree"
    assert verdict(here, "RoPE retrieves nothing").verdict == "disagree"
    assert verdict(plain_found, "flat is not use").why.en == "not run: Passkey or Associative recall"


def test_costs_decide_claims_about_speed(plain_found: dict[str, Any]) -> None:
    found = plain_found
    assert verdict(found, "words trained on").verdict == "agree"
    assert verdict(found, "stars for efficiency").verdict == "agree"
    found["cost"]["rows"]["alibi"]["training"] |= {"low": 0.9, "high": 9.0}
    overlap = verdict(found, "words trained on")
    assert overlap.verdict == "undecided"
    assert "undecided, quartiles overlap: RoPE > ALiBi" in overlap.why.en
    found["cost"]["rows"]["alibi"]["training"] = {"low": 9.0, "median": 9.0, "high": 9.0}
    again = {row.claim.words.en: row.verdict for row in rows(found)}
    assert [verdict for claim, verdict in again.items() if claim.startswith(("words trained", "stars"))] == ["disagree"] * 2
    found["cost"] = None
    assert {row.verdict for row in rows(found) if row.claim.words.en.startswith(("words", "stars"))} == {"not tested"}


def test_what_is_seen_inside_decides(tmp_path: Path) -> None:
    found = found_in(tmp_path, tasks=["language_model", "word_order"], looks=True)
    begins = ("精彩", "positions evolve", "RoPE looks less")
    assert [verdict(found, claim).verdict for claim in begins] == ["agree"] * 3
    text, order = found["tasks"]
    for row in order["links"]:
        row["probability"] = row["even"] * (0.5 if row["link"] == "精彩→演员表演" else 1)
    for row in text["attention"]:
        row["probability"].reverse()
    text["similarity"]["matrices"].reverse()
    assert [verdict(found, claim).verdict for claim in begins] == ["disagree"] * 3


def test_every_row_is_whole_and_says_why_not(tmp_path: Path) -> None:
    for found in (found_in(tmp_path / "a"), found_in(tmp_path / "b", tasks=["copy"], seeds=1)):
        assert any(row.verdict != "not tested" for row in rows(found))
        for row in rows(found):
            assert row.decided_by == "" or row.kind in ("budget", "scale")
            untested, open_ = row.verdict == "not tested", row.verdict in ("disagree", "undecided")
            assert (row.kind is not None) == open_
            for words in (row.cause.both(), row.needs.both(), row.ours.both(), row.why.both(), row.claim.words.both()):
                assert bool(words[0]) == bool(words[1])
            assert bool(row.cause.en) == open_
            assert bool(row.needs.en) == untested
            assert row.claim.words.en
            assert row.ours.en or untested
            assert row.why.en or not untested


def improving(encoding: str, seed: int) -> list[tuple[int, float]]:
    return [(step, 4.0 - step / 500) for step in range(25, 501, 25)]


def test_a_disagreement_names_its_cause_and_a_trial(tmp_path: Path) -> None:
    """RoPE is worst at the trained length: first converged, then still improving; the notes measured nothing."""

    def worst(asked: Asked) -> float:
        return 3.0 if asked.encoding == "rope" else 2.0

    def worst_first(asked: Asked) -> float:
        return 3.0 if asked.encoding in ("rope", "sinusoidal") else 2.0

    begins = "1×: rotary 20.07"
    for name, curve, kind in (("a", None, "scale"), ("b", improving, "budget")):
        found = found_in(tmp_path / name, tasks=["language_model"], value=lambda asked: 5.0 - worst(asked), curve=curve)
        row = verdict(found, begins)
        assert (row.verdict, row.kind, row.trial) == ("disagree", kind, "language_model rope seed 0")
        assert "posenc lab repeat language_model rope seed 0" in row.cause.en
    assert row.cause.en.startswith("budget: still improving: RoPE, ALiBi, T5; seen in: ")
    assert row.decided_by == "posenc lab run study"
    agreed = verdict(found_in(tmp_path / "d", tasks=["language_model"], value=worst_first, curve=improving), begins)
    assert (agreed.verdict, agreed.kind) == ("agree", None)
    assert agreed.why.en.endswith("; still improving: RoPE, Sinusoidal, ALiBi, T5")
    assert agreed.why.zh.endswith("；仍在改善：RoPE、Sinusoidal、ALiBi、T5")
    learned = verdict(found, "learned positions end")
    assert learned.kind is None
    notes = found_in(tmp_path / "c", tasks=["language_model"])
    assert verdict(notes, "RoPE extrapolates smoothly").kind == "theirs"


def test_a_verdict_of_models_that_still_improved_is_marked(tmp_path: Path) -> None:
    found = found_in(tmp_path, curve=lambda encoding, seed: [(25 * n, 5 - 0.1 * n) for n in range(1, 21)])
    decided = [row for row in rows(found) if row.verdict in ("agree", "disagree") and "RoPE" in row.ours.en]
    assert decided
    assert all(row.unconverged for row in decided if "bits" in row.ours.en)
    shown = {readme.verdict(row).both() for row in decided if row.unconverged}
    assert ("agree, not converged", "一致，未收敛") in shown


def test_a_row_says_where_its_claim_is_from_and_what_would_decide_it(plain_found: dict[str, Any]) -> None:
    """Not the study: its result stands beside the row."""
    row = verdict(plain_found, "sinusoidal extrapolates without limit")
    assert readme.source(row).both() == ("founding notes 000, 004", "项目最初的笔记 000、004")
    assert "decide" not in readme.why(row._replace(decided_by="posenc lab run study")).en
    english, chinese = readme.why(row._replace(decided_by="posenc lab run gpu")).both()
    assert english.endswith("--in OUT; would decide it: posenc lab run gpu")
    assert chinese.endswith("--in OUT；可作判定：posenc lab run gpu")


def test_press_is_judged_at_its_multiples_by_the_loss_at_each_position(plain_found: dict[str, Any]) -> None:
    """RoPE has lost 0.4 bits at the nearest scored length, 1.5×, and in the first 90 bytes of its longest window 0.01."""
    for name, arm in arms_of(plain_found).items():
        arm["non_overlapping"] = {"512": arm["non_overlapping"]["512"]} if "512" in arm["non_overlapping"] else {}
        lost = {"rope": 0.01}.get(name, 0.02)
        arm["windows"] = {
            width: {"mean": 2.0 + lost * (width != "64"), "seeds": dict.fromkeys("012", 2.0 + lost * (width != "64"))}
            for width in ("64", "90", "128", "314", "442")
        }
    row = verdict(plain_found, "rotary fails later")
    assert (row.verdict, row.ours.en) == ("agree", "1.41×: RoPE +0.010 bits")
    assert "of each window of 512 bytes the first ones, by the loss at each position" in row.why.en
