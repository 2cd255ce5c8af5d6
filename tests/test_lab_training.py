"""One trial: arms differ by the encoding only, the same trial gives the same record, and what fails says why."""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from posenc.lab import tasks
from posenc.lab.experiment import Size, Training, Trial, read_experiment
from posenc.lab.experiment.arm import Arm
from posenc.lab.records.record import NON_OVERLAPPING, SAME_TARGETS, Record
from posenc.lab.tasks.copy import Copy
from posenc.lab.tasks.task import Batch, Task
from posenc.lab.text.corpus import Corpus
from posenc.lab.trial import scoring
from posenc.lab.trial.model import Transformer
from posenc.lab.trial.training import Run, run_trial
from posenc.positions import Positions

SIZE = Size(d_model=16, n_heads=2, n_layers=2)
ALL = sorted({*read_experiment("compare_text").encodings, "learned+randomized"})
TEXTS = [bytes(random.Random(n).choices(b"the cat sat on a mat; ", k=400)) for n in range(8)]
CORPUS = Corpus("made up", "0" * 64, tuple(TEXTS[:5]), tuple(TEXTS[5:]))


def task(name: str) -> Task:
    settings = {
        "copy": {"length": 4, "lengths": (4, 8), "held_out": 16},
        "language_model": {"length": 8, "lengths": (8, 16, 32), "held_out": 6, "targets": 4},
        "masked_language_model": {"length": 12, "lengths": (12, 16), "held_out": 6, "targets": 8},
    }[name]
    return tasks.load(name)(**settings)


def trial(name: str, word: str, *, steps: int = 6, seed: int = 0, **changes: Any) -> Trial:
    training = Training(steps=steps, rows=4, learning_rate=changes.pop("learning_rate", 1e-2))
    return Trial(task=task(name), encoding=word, seed=seed, size=SIZE, training=training, **changes)


def ran(one: Trial, **changes: Any) -> Record:
    record = run_trial(one, CORPUS, **changes)
    assert record is not None
    return record


def lines(record: Record, kind: str) -> list[dict[str, Any]]:
    return [row for row in record.rows.to_pylist() if row["kind"] == kind]


@pytest.fixture(autouse=True)
def _one_thread() -> Any:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


# What arms share ------------------------------------------------------------------------------------------------------


class Watched(Copy):
    """Remembers the rows that it drew."""

    def training_batch(self, rows: int, random: torch.Generator, text: Corpus | None = None) -> Batch:
        batch = super().training_batch(rows, random, text)
        DRAWN.append(batch.tokens.tolist())
        return batch


DRAWN: list[list[list[int]]] = []


def test_every_arm_of_a_seed_sees_the_same_rows_in_the_same_order() -> None:
    watched = Watched(**task("copy").model_dump())
    orders = []
    for word, seed in (("nope", 0), ("t5", 0), ("learned+randomized", 0), ("nope", 1)):
        DRAWN.clear()
        ran(trial("copy", word, seed=seed).model_copy(update={"task": watched}))
        orders.append(list(DRAWN))
    assert len(orders[0]) == 6
    assert orders[0] == orders[1] == orders[2] != orders[3]


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("word", ALL)
def test_shared_weights_are_the_same_in_every_arm(word: str, causal: bool) -> None:
    def shared(name: str, seed: int) -> dict[str, Tensor]:
        made = Transformer(Arm.parse(name), SIZE, vocabulary=9, causal=causal, positions=8, seed=seed)
        return {key: value for key, value in made.state_dict().items() if not key.startswith("encodings")}

    ours, nope, other = shared(word, 3), shared("nope", 3), shared(word, 4)
    assert ours.keys() == nope.keys()
    assert all(torch.equal(ours[key], nope[key]) for key in ours)
    assert not any(torch.equal(ours[key], other[key]) for key in ours if ours[key].ndim > 1)


@pytest.mark.parametrize("word", ALL)
def test_an_encoder_sees_both_sides_and_a_decoder_one(word: str) -> None:
    tokens = torch.randint(9, (1, 8), generator=torch.Generator().manual_seed(0))
    after = torch.cat([tokens[:, :5], (tokens[:, 5:] + 1) % 9], dim=1)
    for causal in (True, False):
        model = Transformer(Arm.parse(word), SIZE, vocabulary=9, causal=causal, positions=8, seed=0).eval()
        if not causal and "causal_only" in model.encoding(0).traits:
            assert Arm.parse(word).encoding in ("xpos", "cope")
            continue
        at = model.prepare(Positions.arange(1, 8))
        same = torch.allclose(model(tokens, at)[:, :5], model(after, at)[:, :5], atol=1e-6)
        assert same == causal


# The record -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "word"), [("language_model", "rope"), ("masked_language_model", "t5"), ("copy", "shaw")])
def test_a_trial_gives_the_same_record_every_time(name: str, word: str) -> None:
    after = ("ntk", "yarn") if word == "rope" else ()
    one, other = (ran(trial(name, word, after=after)) for _ in range(2))
    still = [{**record.about, "seconds": None, "finished": None} for record in (one, other)]
    assert still[0] == still[1]
    assert replace(one, about=still[0]).to_parquet() == replace(other, about=still[1]).to_parquet()
    assert Record.from_parquet(one.to_parquet()).rows.equals(one.rows)
    assert ran(trial(name, word, after=after, seed=1)).rows != one.rows


def test_what_a_record_of_the_language_model_holds() -> None:
    one = trial("language_model", "rope", steps=50, after=("interpolation", "ntk", "yarn"))
    record = ran(one)
    about = record.about
    assert about["trial"] == one.model_dump(mode="json")
    assert (about["failed"], about["cannot"]) == (None, {})
    assert about["trained_tokens"] == 50 * 4 * 8
    d, layers = 16, 2
    assert about["parameters"] == 2 * 256 * d + layers * (12 * d * d + 2 * d) + d
    assert about["encoding_parameters"] == 0
    assert about["chance"] == {"8": 8.0, "16": 8.0, "32": 8.0}
    assert 0 < about["baseline"] < 8
    assert about["seconds"].keys() == {"training", "scoring"}
    assert not any(math.isnan(row["value"]) for row in record.rows.to_pylist())

    curve = lines(record, "curve")
    assert [row["step"] for row in curve] == list(range(2, 51, 2))
    assert curve[0]["value"] > curve[-1]["value"]
    counted = Counter((row["mode"], row["change"], row["length"]) for row in lines(record, "bits"))
    assert {key[2] for key in counted if key[:2] == (SAME_TARGETS, "")} == {8, 16, 32}
    for change in ("interpolation", "ntk", "yarn"):
        assert {key[2] for key in counted if key[:2] == (SAME_TARGETS, change)} == {16, 32}
    weights = {
        length: sum(
            row["weight"]
            for row in lines(record, "bits")
            if (row["mode"], row["change"], row["length"]) == (SAME_TARGETS, "", length)
        )
        for length in (8, 16, 32)
    }
    assert len(set(weights.values())) == 1  # the same targets at every length
    assert {row["length"] for row in lines(record, "bits") if row["mode"] == NON_OVERLAPPING} >= {32}
    assert {(row["length"], row["position"]) for row in lines(record, "position")} >= {(32, p) for p in range(32)}
    looked = lines(record, "attention")
    assert {row["step"] for row in looked} == {0, 2, 5, 15, 50}
    for step, layer, head in {(row["step"], row["layer"], row["head"]) for row in looked}:
        here = {r["position"]: r["value"] for r in looked if (r["step"], r["layer"], r["head"]) == (step, layer, head)}
        assert here.keys() == set(range(8))
        assert sum(here[n] * (8 - n) for n in range(8)) == pytest.approx(8, abs=1e-4)  # every query's sum is 1


def test_same_targets_and_non_overlapping_agree_where_they_ask_the_same() -> None:
    """At the longest length both read the whole windows: the last places of the one are the other."""
    record = ran(trial("language_model", "alibi"))
    last = [row["value"] for row in lines(record, "position") if row["length"] == 32][-4:]
    asked = [row for row in lines(record, "bits") if (row["mode"], row["length"]) == (SAME_TARGETS, 32)]
    mean = sum(row["value"] * row["weight"] for row in asked) / sum(row["weight"] for row in asked)
    assert mean == pytest.approx(sum(last) / 4, rel=1e-5)


def test_a_model_learns_to_copy() -> None:
    one = trial("copy", "rope", steps=150)
    record = ran(one.model_copy(update={"training": Training(steps=150, rows=32, learning_rate=1e-2)}))
    curve = [row["value"] for row in lines(record, "curve")]
    assert curve[-1] < curve[0] - 1.5


# What an encoding cannot do -------------------------------------------------------------------------------------------


def test_a_learned_table_has_no_number_beyond_its_end() -> None:
    record = ran(trial("language_model", "learned"))
    assert record.about["cannot"] == {"16": "table ends at 8", "32": "table ends at 8"}
    assert {row["length"] for row in lines(record, "bits")} == {8}
    assert {row["position"] for row in lines(record, "similarity")} == set(range(8))
    longer = ran(trial("language_model", "learned+randomized"))
    assert longer.about["cannot"] == {}
    assert longer.about["encoding_parameters"] == 32 * 16


FORGET_GATE = '''
import torch
import torch.nn.functional as F
from torch import nn

from posenc import PositionalEncoding


class ForgetGate(PositionalEncoding):
    """logits += S_i - S_j, S_t the sum of log σ(w·x + 4) up to t (Lin et al. 2025, "Forgetting Transformer")."""

    traits = frozenset({"local", "shift_invariant", "norm_preserving", "causal_only"})
    learned_tables = True

    def __init__(self, d_model, n_heads):
        super().__init__(d_model=d_model, n_heads=n_heads)
        self.gate = nn.Parameter(torch.zeros(n_heads, d_model))

    def read_hidden(self, x, at, past=None):
        total = F.logsigmoid(x @ self.gate.T + 4).cumsum(dim=1)
        return at.expand(len(x)).replaced(states={self.identity: (total,)})

    def bias(self, q, k, at_q, at_k):
        query, key = at_q.states[self.identity][0], at_k.states[self.identity][0]
        return lambda b, h, i, j: query[b, i, h] - key[b, j, h]
'''


def test_an_encoding_that_reads_hidden_states_is_trained_and_scored() -> None:
    """The gate starts at zero and is trained through `read_hidden`; layers share an encoding of one's own."""
    one = trial("copy", "forget_gate.py:ForgetGate", steps=20, source=FORGET_GATE)
    run = Run(one, CORPUS)
    for loss in run.losses():
        assert math.isfinite(float(loss))
    (encoding,) = run.model.encodings
    assert bool((encoding.gate.abs().amax(dim=1) > 1e-3).all())
    record, nope = ran(one), ran(trial("copy", "nope", steps=20))
    assert record.about["failed"] is None
    assert record.about["cannot"] == {}
    assert record.about["encoding_parameters"] == SIZE.n_heads * SIZE.d_model
    scores, without = ([row["value"] for row in lines(one, "bits")] for one in (record, nope))
    assert len(scores) == len(without) > 0
    assert scores != without


@pytest.mark.parametrize("word", ["xpos", "cope"])
def test_causal_encodings_cannot_read_both_ways(word: str) -> None:
    record = ran(trial("masked_language_model", word))
    assert record.about["cannot"] == {"12": "causal only", "16": "causal only"}
    assert record.about["failed"] is None
    assert record.rows.num_rows == record.about["trained_tokens"] == 0


def test_a_loss_that_is_no_number_ends_the_trial() -> None:
    one = trial("language_model", "nope", steps=20)
    record = ran(one.model_copy(update={"training": one.training.model_copy(update={"learning_rate": math.inf})}))
    assert record.about["failed"] == "the loss became NaN or infinite at step 2; lower learning_rate"
    assert not lines(record, "bits")
    assert not any(math.isnan(row["value"]) for row in record.rows.to_pylist())


def test_a_score_that_is_no_number_is_no_score(monkeypatch: pytest.MonkeyPatch) -> None:
    right = scoring.scores

    def broken(model: Transformer, tokens: Tensor, targets: Tensor, **_: Any) -> scoring.Scores:
        found = right(model, tokens, targets)
        return replace(found, bits=found.bits * math.nan) if tokens.shape[1] == 32 else found

    monkeypatch.setattr(scoring, "scores", broken)
    record = ran(trial("language_model", "nope"))
    assert record.about["cannot"] == {"32": "the score was no number"}
    assert {row["length"] for row in lines(record, "bits")} == {8, 16}


def test_what_an_encoding_raises_is_passed_on() -> None:
    source = (
        "from posenc import PositionalEncoding\n\n\n"
        "class Mine(PositionalEncoding):\n"
        "    def embed(self, x, at):\n"
        "        raise RuntimeError('not yet')\n"
    )
    with pytest.raises(RuntimeError, match="not yet"):
        ran(trial("copy", "mine.py:Mine", source=source))


def test_senseless_trials_are_refused() -> None:
    with pytest.raises(ValueError, match="text: the task language_model reads one"):
        run_trial(trial("language_model", "rope"), None)
    with pytest.raises(ValueError, match="after: only RoPE has frequencies to change, got alibi"):
        ran(trial("copy", "alibi", after=("ntk",)))


# After training -------------------------------------------------------------------------------------------------------


def test_changed_frequencies_leave_the_model_as_it_was() -> None:
    run = Run(trial("language_model", "rope", after=("interpolation", "ntk", "yarn")), CORPUS)
    run.train()
    before = {name: value.clone() for name, value in run.model.state_dict().items()}
    own = run.model.encoding(0)
    run.score_changes()
    assert run.model.encoding(0) is own
    assert all(torch.equal(value, before[name]) for name, value in run.model.state_dict().items())
    plain, changed = (ran(trial("language_model", "rope", after=after)) for after in ((), ("ntk",)))
    kept = [row for row in changed.rows.to_pylist() if row["change"] != "ntk"]
    assert kept == plain.rows.to_pylist()


# Half precision and progress ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["rope", "shaw", "learned", "cope", "xpos"])
def test_bfloat16_trains_nearly_the_same(word: str) -> None:
    full, half = (ran(trial("language_model", word, precision=p)) for p in ("32-true", "bf16-mixed"))
    ours, theirs = ([row["value"] for row in lines(record, "curve")] for record in (full, half))
    assert ours != theirs
    assert ours == pytest.approx(theirs, abs=0.1)
    assert len(lines(half, "bits")) == len(lines(full, "bits"))


def test_progress_grows_to_one() -> None:
    shares: list[float] = []
    ran(trial("language_model", "rope", after=("ntk",)), report=shares.append)
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (pytest.approx(0.9 / 6), 1.0)
