"""The small trained models of words: the shipped weights, read here and by the lab, and what was recorded in training."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from posenc.explorer import train_words, trained_words
from posenc.explorer.trained_words import load, split
from posenc.lab.experiment import read_experiment
from posenc.lab.tasks.task import IGNORE
from posenc.lab.trial.training import new_model
from posenc.positions import Positions

FILM, CAR = "这部电影很无聊，但演员表演精彩。", "The red car is parked outside the building."
REVIEW = "The film is very boring, but the actors' acting is brilliant."
EXAMPLES = {"descriptions": FILM, "reviews": REVIEW, "translation": CAR}
TRIALS = {(trial.task.name, trial.encoding): trial for trial in read_experiment("words").trials()}


def lab_model(task: str, encoding: str):
    """The lab's Transformer with the shipped weights."""
    model, start = new_model(TRIALS[task, encoding]), f"{task}.{encoding}."
    shipped = {
        name.removeprefix(start): array for name, array in trained_words.record().items() if array.dtype == np.float16
    }
    model.load_state_dict({name: torch.from_numpy(shipped[name]).float() for name in model.state_dict()})
    return model.double().eval()


@pytest.mark.parametrize(("task", "encoding"), TRIALS)
def test_a_model_reads_as_the_labs_does(task, encoding):
    """The probability of its answers, and which they are, by the lab's model in fp64."""
    read = load(task, encoding).read(split(EXAMPLES[task]).words)
    known = trained_words.about()["tasks"][task]["vocabulary"]
    tokens = torch.tensor([[known.index(word) for word in read.words]])
    with torch.no_grad():
        logits = lab_model(task, encoding)(tokens, Positions.arange(1, len(read.words)))[0]
    chances, best = logits.softmax(-1).max(-1)
    assert read.answers == tuple(known[n] for n in best)
    torch.testing.assert_close(read.chances, chances, rtol=0, atol=1e-12)
    torch.testing.assert_close(read.weights.sum(-1), torch.ones(2, 4, len(read.words)).double())


@pytest.mark.parametrize("encoding", ["nope", "rope"])
@pytest.mark.parametrize(
    ("task", "some"), [("descriptions", ("无聊", "精彩", "感人")), ("reviews", ("boring", "brilliant", "great"))]
)
def test_right_and_linked_are_those_of_the_shipped_weights(task, some, encoding):
    """Without positions the partner is a guess among the words of its kind; with them every held-out sentence is right."""
    trial, model = TRIALS[task, encoding], load(task, encoding)
    batch, known = trial.task.scored(trial.task.length, None), model.vocabulary
    right, attended = 0, []
    for tokens, targets in zip(batch.tokens.tolist(), batch.targets.tolist(), strict=True):
        read = model.read(tuple(known[token] for token in tokens))
        right += all(target == IGNORE or read.answers[n] == known[target] for n, target in enumerate(targets))
        for query, target in enumerate(targets):
            if target != IGNORE and known[tokens[query]] in some:
                attended.append(read.weights[:, :, query, tokens.index(target)])
    recorded = trained_words.record()[f"{task}.{encoding}.right"][-1]
    assert right / len(batch.tokens) == pytest.approx(recorded, abs=1 / 256)
    assert (recorded > 0.99) == (encoding == "rope")
    linked = trained_words.record()[f"{task}.{encoding}.linked"][-1, :, :, 0]
    np.testing.assert_allclose(torch.stack(attended).mean(0), linked, atol=0.1)  # of three adjectives
    assert linked.max() > 0.9 if encoding == "rope" else linked.max() < 0.4


@pytest.mark.parametrize("task", ["descriptions", "reviews"])
def test_the_first_steps_of_training_come_out_again(task):
    trial = TRIALS[task, "alibi"]
    for n, (_, found) in enumerate(itertools.islice(train_words.snapshots(trial), 2)):
        for name, array in found.items():
            np.testing.assert_allclose(array, trained_words.record()[f"{task}.alibi.{name}"][n], atol=1e-3)


def test_uniform_attention_is_one_over_what_is_visible():
    trial = TRIALS["translation", "rope"]
    batch = trial.task.scored(1, None)
    links = train_words.linked_words("translation", batch)
    wanted = [1 / (query + 1) for row, query, key in links[0].tolist()]
    assert trained_words.record()["translation.uniform"][0] == pytest.approx(np.mean(wanted))
    assert trained_words.record()["descriptions.uniform"].tolist() == [1 / 16, 1 / 16]


def test_sentences_are_cut_into_the_longest_known_words():
    assert split(FILM).words == ("这部", "电影", "很", "无聊", "，", "但", "演员", "表演", "精彩", "。")
    assert split("电视剧 很有趣, 而电影很老套").words == ("电视剧", "很", "有趣", "，", "而", "电影", "很", "老套", "。")
    assert split(CAR) == ("translation", ("the", "red", "car", "is", "parked", "outside", "the", "building", "."))
    assert split("the red  car").words == ("the", "red", "car", ".")


def test_an_english_sentence_goes_to_the_models_that_know_its_words():
    said = "the film is very boring , but the actors' acting is brilliant ."
    assert split(REVIEW) == split(REVIEW.replace("'", "’").replace(".", "!")) == ("reviews", tuple(said.split()))
    assert split("The car is old") == ("reviews", ("the", "car", "is", "old", "."))
    assert split("The old car is parked beside the school").task == "translation"


def test_words_that_no_model_knows_are_refused():
    for text, said in (
        ("这部电影很蓝", "'蓝'"),
        ("the red tree is", "'tree'"),
        ("The food is good, but the waiter was slow.", "'waiter'; they know .* coffee "),
        ("the red car is parked beside the food", "'food'; they know .* garage "),
        ("", "at least two"),
        ("的" * 30, "at most 24"),
    ):
        with pytest.raises(ValueError, match=said):
            split(text)


def test_all_models_translate_the_red_car():
    """The mask alone shows the order: the model without positions is right too, as the page says."""
    for encoding in ("nope", "rope", "sinusoidal", "alibi"):
        assert "".join(load("translation", encoding).read(split(CAR).words).words[-8:]) == "红色的汽车停在建筑物外面。"
        assert trained_words.record()[f"translation.{encoding}.right"][-1] > 0.99
