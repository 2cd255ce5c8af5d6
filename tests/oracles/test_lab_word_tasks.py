"""Who describes whom, and translation: every row is parsed and translated anew here, by rules and lists of this file."""

from __future__ import annotations

import re

import pytest
import torch

from posenc.lab.tasks import descriptions, reviews, translation
from posenc.lab.tasks.descriptions import Descriptions
from posenc.lab.tasks.reviews import Reviews
from posenc.lab.tasks.task import Batch
from posenc.lab.tasks.translation import Translation

ADJECTIVES = {"无聊", "精彩", "感人", "平淡", "新颖", "老套", "自然", "生硬", "有趣", "细腻", "粗糙", "出色"}
NOUNS = {"电影", "小说", "动画", "话剧", "纪录片", "电视剧", "表演", "文笔", "手法", "嗓音", "台词", "画面"}
CHINESE = {
    "red": "红色",
    "blue": "蓝色",
    "white": "白色",
    "black": "黑色",
    "old": "旧",
    "new": "新",
    "big": "大",
    "small": "小",
    "clean": "干净",
    "dirty": "脏",
    "car": "汽车",
    "bus": "公交车",
    "truck": "卡车",
    "bicycle": "自行车",
    "van": "面包车",
    "taxi": "出租车",
    "parked": "停",
    "hidden": "藏",
    "stuck": "卡",
    "abandoned": "丢",
    "outside": "外面",
    "behind": "后面",
    "beside": "旁边",
    "inside": "里面",
    "building": "建筑物",
    "school": "学校",
    "station": "车站",
    "hotel": "酒店",
    "factory": "工厂",
    "garage": "车库",
}


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def described(words: list[str]) -> dict[int, int]:
    """The partner of every noun and adjective: the only noun and the only adjective between two commas."""
    found: dict[int, int] = {}
    start = 0
    for end in (n for n, word in enumerate(words) if word in "，。"):
        (noun,) = [n for n in range(start, end) if words[n] in NOUNS]
        (adjective,) = [n for n in range(start, end) if words[n] in ADJECTIVES]
        found |= {noun: adjective, adjective: noun}
        start = end + 1
    return found


@pytest.mark.parametrize("length", [8, 10, 16, 24, 36])
def test_every_noun_is_asked_for_its_adjective_and_the_other_way_round(length: int) -> None:
    known = descriptions.vocabulary()
    task = Descriptions(length=16, lengths=tuple(sorted({length, 16})))
    for batch in (task.scored(length, None), task.training_batch(64, generator(), None)):
        for tokens, targets in zip(batch.tokens.tolist(), batch.targets.tolist(), strict=True):
            words = [known[token] for token in tokens]
            wanted = {here: words[there] for here, there in described(words).items()}
            assert {n: known[target] for n, target in enumerate(targets) if target >= 0} == wanted
            assert len(set(wanted.values())) == len(wanted), "two words with the same partner"
            assert len(wanted) >= 4


def combinations(batch: Batch) -> set[tuple[tuple[str, str], ...]]:
    """What every sentence says, in order: pairs of noun and adjective."""
    known = descriptions.vocabulary()
    rows = [[known[token] for token in tokens] for tokens in batch.tokens.tolist()]
    return {
        tuple((words[here], words[there]) for here, there in described(words).items() if words[here] in NOUNS)
        for words in rows
    }


def test_held_out_descriptions_are_never_trained_on_and_the_note_s_sentence_is_the_first() -> None:
    task, random = Descriptions(lengths=(10, 16)), generator(1)
    trained = set[tuple[tuple[str, str], ...]]().union(
        *(combinations(task.training_batch(64, random, None)) for _ in range(100))
    )
    for length in task.lengths:
        batch = task.scored(length, None)
        assert len(batch.tokens) == 256
        assert not combinations(batch) & trained
    assert not any({("电影", "无聊"), ("表演", "精彩")} <= set(said) for said in trained)
    short = task.scored(10, None)
    assert "".join(descriptions.vocabulary()[n] for n in short.tokens[0]) == "这部电影很无聊，但演员表演精彩。"
    assert {(link.name, link.query, link.key) for link in short.links if link.row == 0} == {
        ("无聊→电影", 3, 1),
        ("电影→无聊", 1, 3),
        ("精彩→表演", 8, 7),
        ("表演→精彩", 7, 8),
    }


ENGLISH_NOUNS, ENGLISH_ADJECTIVES = (
    set(re.findall(r"\w+", words))
    for words in (
        """film story book song meal hotel room phone car dog cat house city park game teacher food service music acting
        weather coffee ending view""",
        """good bad great boring brilliant awful terrible excellent nice funny sad happy slow fast cheap expensive old new
        big small long short loud quiet clean dirty warm cold friendly rude beautiful ugly strange simple strong weak
        interesting exciting fresh perfect""",
    )
)
VERB = "(?:is|was|seems|looks)"
DETERMINER = "(?:the|this|that|my|our|their)"
CLAUSE = re.compile(
    rf"""(?:
    {DETERMINER}\ (?:\w+'s?\ )?(?P<subject>\w+)\ {VERB}\ (?:(?:very|really|quite|so|too|not)\ )?(?P<said>\w+)
    | (?:i|we|they)\ (?:like|love|liked|loved|hated|saw|had)\ {DETERMINER}\ (?P<before>\w+)\ (?P<object>\w+)
    | it\ {VERB}\ (?:a\ (?:very|really)\ |a\ (?=[^aeiou])|an\ (?=[aeiou]))(?P<kind>\w+)\ (?P<thing>\w+)
    )""",
    re.VERBOSE,
)


def reviewed(words: list[str]) -> dict[int, int]:
    """The partner of every noun and adjective, by a regular expression for each clause."""
    assert words[-1] == "."
    text, at, found = " ".join(words[:-1]), 0, dict[int, int]()
    if opening := re.match(r"(?:i|we|they) (?:think|thought|said) ", text):
        at = opening.end()
    while True:
        clause = CLAUSE.match(text, at)
        assert clause, text[at:]
        noun, adjective = (
            next(text[: clause.start(name)].count(" ") for name in names if clause[name])
            for names in (("subject", "object", "thing"), ("said", "before", "kind"))
        )
        assert (words[noun] in ENGLISH_NOUNS, words[adjective] in ENGLISH_ADJECTIVES) == (True, True), clause[0]
        found |= {noun: adjective, adjective: noun}
        if clause.end() == len(text):
            return found
        joiner = re.compile(r" (?:, but|, and|,|but|and|while) ").match(text, clause.end())
        assert joiner, text[clause.end() :]
        at = joiner.end()


def pairs_of_reviews(batch: Batch) -> set[tuple[tuple[str, str], ...]]:
    """What every sentence says, after its targets were compared with the parser's."""
    known, said = reviews.vocabulary(), set[tuple[tuple[str, str], ...]]()
    for tokens, targets in zip(batch.tokens.tolist(), batch.targets.tolist(), strict=True):
        words = [known[token] for token in tokens]
        partners = reviewed(words)
        wanted = {here: words[there] for here, there in partners.items()}
        assert {n: known[target] for n, target in enumerate(targets) if target >= 0} == wanted
        assert len(set(wanted.values())) == len(wanted), "two words with the same partner"
        said.add(tuple((words[here], words[there]) for here, there in partners.items() if words[here] in ENGLISH_NOUNS))
    return said


@pytest.mark.parametrize("length", [5, 9, 13, 20, 28, 40])
def test_the_pairs_of_an_english_sentence_are_those_that_a_parser_finds(length: int) -> None:
    task = Reviews(length=length, lengths=(length,), held_out=64)
    held_out = pairs_of_reviews(task.scored(length, None))
    random = generator(length)
    trained = set[tuple[tuple[str, str], ...]]().union(
        *(pairs_of_reviews(task.training_batch(32, random, None)) for _ in range(20))
    )
    assert not held_out & trained
    assert not any({("film", "boring"), ("acting", "brilliant")} <= set(said) for said in trained)
    assert all(len(said) >= 2 for said in held_out) == (length >= 10)


def test_all_nouns_and_adjectives_meet_on_either_side_and_the_film_is_the_first() -> None:
    random, task = generator(4), Reviews()
    said = {pair for _ in range(100) for one in pairs_of_reviews(task.training_batch(64, random, None)) for pair in one}
    assert said == {(noun, adjective) for noun in ENGLISH_NOUNS for adjective in ENGLISH_ADJECTIVES}
    first, known = task.scored(13, None), reviews.vocabulary()
    assert " ".join(known[n] for n in first.tokens[0]) == "the film is very boring , but the actors' acting is brilliant ."
    assert {(link.name, link.query, link.key) for link in first.links if link.row == 0} == {
        ("boring→film", 4, 1),
        ("film→boring", 1, 4),
        ("brilliant→acting", 11, 9),
        ("acting→brilliant", 9, 11),
    }


def test_every_sentence_with_both_pairs_of_the_example_is_held_out() -> None:
    """In either order, whatever else it says."""
    film, acting = "it was a boring film", "our acting is brilliant"
    for noun, adjective in zip(sorted(ENGLISH_NOUNS - {"film", "acting"}), sorted(ENGLISH_ADJECTIVES)[10:], strict=False):
        for clauses in ((film, acting), (acting, film)):
            words = f"{clauses[0]} and the {noun} is {adjective} , but {clauses[1]} ."
            assert reviews.is_held_out(tuple(words.split())), words


def translated(english: list[str]) -> list[str]:
    """By the lists above: the building and the preposition change places, 的 follows adjectives, 在 the verb."""
    first, _, second = " ".join(english).partition(" is ")
    verb, preposition, the, *place, stop = second.split()
    assert (the, stop) == ("the", ".")

    def thing(words: list[str]) -> list[str]:
        return [part for word in words[:-1] for part in (CHINESE[word], "的")] + [CHINESE[words[-1]]]

    return [*thing(first.split()[1:]), CHINESE[verb], "在", *thing(place), CHINESE[preposition], "。"]


@pytest.mark.parametrize("length", [1, 2])
def test_the_translation_is_what_the_lists_give(length: int) -> None:
    known, task = translation.vocabulary(), Translation(length=length, lengths=(length,))
    assert set(CHINESE) | set(CHINESE.values()) < set(known)
    seen = {}
    for kind, batch in (("scored", task.scored(length, None)), ("trained", task.training_batch(256, generator(), None))):
        seen[kind] = set()
        for tokens, targets in zip(batch.tokens.tolist(), batch.targets.tolist(), strict=True):
            words = [known[token] for token in tokens]
            arrow = words.index("→")
            wanted = translated(words[:arrow])
            assert words[arrow + 1 : arrow + 1 + len(wanted)] == wanted
            assert set(words[arrow + 1 + len(wanted) :]) <= {"。"}
            asked = {n: known[target] for n, target in enumerate(targets) if target >= 0}
            assert asked == {arrow + n: word for n, word in enumerate(wanted)}
            seen[kind].add(tuple(words[:arrow]))
    assert not seen["scored"] & seen["trained"]


def test_the_red_car_is_the_first_and_its_links_are_its_words() -> None:
    batch, known = Translation().scored(1, None), translation.vocabulary()
    words = [known[token] for token in batch.tokens[0]]
    assert " ".join(words[:9]) == "the red car is parked outside the building ."
    assert "".join(words[10:18]) == "红色的汽车停在建筑物外面。"
    for link in batch.links:
        chinese, english = link.name.split("→")
        assert words[link.query + 1] == chinese  # predicted one token before
        assert words[link.key] == english
        assert CHINESE.get(english, "。") == chinese
    assert len(batch.links) == 6


@pytest.mark.parametrize(
    ("task", "settings"),
    [
        (Descriptions, {"lengths": (7, 16)}),
        (Descriptions, {"lengths": (16, 37)}),
        (Reviews, {"lengths": (4, 20)}),
        (Reviews, {"lengths": (20, 41)}),
        (Translation, {"length": 11, "lengths": (11,)}),
    ],
)
def test_lengths_without_sentences_are_refused(task: type, settings: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="lengths"):
        task(**settings)
