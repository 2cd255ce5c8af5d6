"""The small trained models of words: the shipped weights, read here and by the lab, and what was recorded in training."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from posenc.explorer import train_words, trained_words
from posenc.explorer.parameters import Refused
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


OWN = (
    ("The soup is very good but the music was awful", "reviews", "the soup is very good but the music was awful ."),
    ("I love you", "reviews", "i love you ."),
    ("The cat sat on the mat.", "reviews", "the cat sat on the mat ."),
    ("the red car is parked beside the food", "translation", "the red car is parked beside the food ."),
    ("这本小说很好看，但是结尾很无聊。", "descriptions", "这本 小说 很 好看 ， 但 是结尾 很 无聊 。"),
    ("我喜欢猫", "descriptions", "我 喜欢猫 。"),
    ("Python 很有趣", "descriptions", "Python 很 有趣 。"),
)


@pytest.mark.parametrize(("text", "task", "words"), OWN)
def test_a_sentence_with_words_that_no_model_knows_is_read(text, task, words):
    sentence = split(text)
    assert sentence == (task, tuple(words.split()))
    for encoding in ("nope", "rope"):
        read = load(task, encoding).read(sentence.words)
        assert read.words[: len(sentence.words)] == sentence.words
        torch.testing.assert_close(read.weights.sum(-1), torch.ones(2, 4, len(read.words)).double())


def test_an_unknown_word_is_a_vector_of_zeros_at_its_position():
    """The lab's model, whose table has a row of zeros for it."""
    words = split(OWN[0][0]).words
    model = lab_model("reviews", "rope")
    known = trained_words.about()["tasks"]["reviews"]["vocabulary"]
    table = torch.cat([model.embedding.weight, torch.zeros(1, model.embedding.weight.shape[1])]).double()
    model.embedding = torch.nn.Embedding.from_pretrained(table)
    tokens = torch.tensor([[known.index(word) if word in known else len(known) for word in words]])
    with torch.no_grad():
        chances, best = model(tokens, Positions.arange(1, len(words)))[0].softmax(-1).max(-1)
    read = load("reviews", "rope").read(words)
    torch.testing.assert_close(read.chances, chances, rtol=0, atol=1e-12)
    assert read.answers == tuple(known[n] for n in best)
    assert (read.answers[words.index("awful")], read.answers[words.index("music")]) == ("music", "awful")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Deep water sleeps.", "the models know none of these words; choose an example"),
        ("今天天气真好", "know none"),
        ("?!?!?!", "know none"),
        ("", "know none"),
        ("car", "at least two"),
        ("的" * 30, "at most 24"),
        (f"the {'a' * 25} is old", "at most 24 characters"),
    ],
)
def test_what_no_model_can_read_is_refused_in_one_short_sentence(text, said):
    with pytest.raises(Refused, match=said) as refused:
        split(text)
    assert all(len(words) < 100 for words in refused.value.words.both())


def test_all_models_translate_the_red_car():
    """The mask alone shows the order: the model without positions is right too, as the page says."""
    for encoding in ("nope", "rope", "sinusoidal", "alibi"):
        assert "".join(load("translation", encoding).read(split(CAR).words).words[-8:]) == "红色的汽车停在建筑物外面。"
        assert trained_words.record()[f"translation.{encoding}.right"][-1] > 0.99
