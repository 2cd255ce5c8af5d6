"""Language models against bytes found again in the documents, word order against labels read off the sentences."""

from __future__ import annotations

import itertools
import math
import random
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
import torch
from pydantic import ValidationError

from posenc.lab.tasks import grammar, load, text
from posenc.lab.tasks.language_model import LanguageModel
from posenc.lab.tasks.masked_language_model import MaskedLanguageModel
from posenc.lab.tasks.task import IGNORE, Batch, Task
from posenc.lab.tasks.word_order import WordOrder
from posenc.lab.text import corpus

SHORT: dict[str, object] = {"length": 16, "lengths": (16, 24, 40), "targets": 8}
TASKS = ("language_model", "masked_language_model")


def documents(count: int = 40, size: int = 300) -> list[bytes]:
    """Letters by chance, some more frequent: no 6 bytes in a row occur twice in one document or in two."""
    source = random.Random(1)
    letters = b"aaaabbbccdefghijklmnopqrstuvwxyz0123456789 \n"
    return [bytes(source.choices(letters, k=size + 3 * n)) + bytes([n + 128]) * 2 for n in range(count)]


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> corpus.Corpus:
    folder = tmp_path_factory.mktemp("texts")
    for n, document in enumerate(documents()):
        (folder / f"{n}.txt").write_bytes(document)
    return corpus.read_corpus(folder, 41)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def asked(batch: Batch) -> list[list[tuple[int, int]]]:
    """Of every row: the places where something is asked, and what."""
    return [[(t, y) for t, y in enumerate(row) if y != IGNORE] for row in batch.targets.tolist()]


def items(batch: Batch) -> list[int]:
    assert batch.item is not None
    found: list[int] = batch.item.tolist()
    return found


def within(row: bytes, parts: tuple[bytes, ...]) -> list[int]:
    return [n for n, part in enumerate(parts) if row in part]


# Real text


@pytest.mark.parametrize("name", TASKS)
def test_training_reads_windows_of_training_documents(name: str, texts: corpus.Corpus) -> None:
    task, random_ = load(name)(**SHORT), generator()
    seen = Counter[int]()
    for _ in range(20):
        batch = task.training_batch(16, random_, texts)
        assert batch.tokens.shape == batch.targets.shape == (16, 16)
        for tokens, places in zip(batch.tokens.tolist(), asked(batch), strict=True):
            whole = restored(name, tokens, places)
            found = within(whole, texts.train)
            assert found
            assert not within(whole, texts.held_out)
            seen.update(found)
    assert len(seen) > 0.9 * len(texts.train)


def restored(name: str, tokens: list[int], places: list[tuple[int, int]]) -> bytes:
    """The window that a row came from."""
    if name == "language_model":
        assert [t for t, _ in places] == list(range(len(tokens)))
        assert tokens[1:] == [y for _, y in places][:-1]
        return bytes([tokens[0], *(y for _, y in places)])
    filled = list(tokens)
    for t, y in places:
        assert filled[t] == 256
        filled[t] = y
    return bytes(filled)


def test_the_same_seed_draws_the_same_rows_and_another_others(texts: corpus.Corpus) -> None:
    for name in (*TASKS, "word_order"):
        task = load(name)() if name == "word_order" else load(name)(**SHORT)
        first, same, other = (task.training_batch(8, generator(seed), texts).tokens for seed in (3, 3, 4))
        assert torch.equal(first, same)
        assert first.shape != other.shape or not torch.equal(first, other)


def test_a_language_model_is_asked_the_same_last_bytes_at_every_length(texts: corpus.Corpus) -> None:
    task = LanguageModel(**SHORT)
    longest = task.scored(40, texts)
    for length in task.lengths:
        batch = task.scored(length, texts)
        assert items(batch) == items(longest)
        for tokens, places, context, item in zip(
            batch.tokens.tolist(), asked(batch), longest.tokens.tolist(), items(batch), strict=True
        ):
            assert tokens == context[-length:]
            assert [t for t, _ in places] == list(range(length - 8, length))
            assert [y for _, y in places][:-1] == tokens[-7:]
            window = bytes([*tokens, places[-1][1]])
            assert within(window, texts.held_out) == [item]
            assert not within(window[-8:], texts.train)
        assert asked_bytes(batch) == asked_bytes(longest)


def asked_bytes(batch: Batch) -> list[list[int]]:
    return [[y for _, y in row] for row in asked(batch)]


def test_a_masked_model_is_asked_the_same_hidden_bytes_at_every_length(texts: corpus.Corpus) -> None:
    task = MaskedLanguageModel(**SHORT, hidden=0.25)
    longest = task.scored(40, texts)
    for length in task.lengths:
        batch, cut = task.scored(length, texts), (40 - length) // 2
        assert items(batch) == items(longest)
        assert torch.equal(batch.tokens, longest.tokens[:, cut : cut + length])
        assert asked_bytes(batch) == asked_bytes(longest)
        for tokens, places in zip(batch.tokens.tolist(), asked(batch), strict=True):
            assert len(places) == 2  # a quarter of 8
            assert all((length - 8) // 2 <= t < (length + 8) // 2 and tokens[t] == 256 for t, _ in places)
    for tokens, places, item in zip(longest.tokens.tolist(), asked(longest), items(longest), strict=True):
        assert tokens.count(256) == 4 + 2 + 4
        pattern = re.compile(b"".join(b"." if y == 256 else re.escape(bytes([y])) for y in tokens), re.DOTALL)
        match = pattern.search(texts.held_out[item])
        assert match is not None
        assert all(match[0][t] == y for t, y in places)
        assert not any(pattern.search(document) for document in texts.train)


def test_hidden_places_of_training_are_everywhere_and_as_many_in_each_row(texts: corpus.Corpus) -> None:
    batch = MaskedLanguageModel(length=64, lengths=(64,), targets=8).training_batch(400, generator(), texts)
    hidden = batch.tokens == 256
    assert hidden.sum(dim=1).tolist() == [10] * 400  # 15 % of 64
    assert torch.equal(hidden, batch.targets != IGNORE)
    counts = hidden.sum(dim=0)  # 62.5 each is even; 5 standard deviations
    assert counts.sub(62.5).abs().max() < 5 * math.sqrt(400 * 0.15625 * 0.84375)


def test_non_overlapping_rows_are_the_windows_cut_up(texts: corpus.Corpus) -> None:
    task = LanguageModel(**SHORT)
    whole = task.scored(40, texts)
    ends = asked_bytes(whole)
    for length, parts in ((16, 2), (24, 1), (40, 1)):
        batch = task.side_by_side(length, texts)
        expected = []
        for context, end in zip(whole.tokens.tolist(), ends, strict=True):
            text_ = [*context, end[-1]][-parts * length - 1 :]
            expected += [text_[n * length : (n + 1) * length + 1] for n in range(parts)]
        got = [[tokens[0], *targets] for tokens, targets in zip(batch.tokens.tolist(), batch.targets.tolist(), strict=True)]
        assert got == expected
        assert batch.tokens[:, 1:].equal(batch.targets[:, :-1])
        assert items(batch) == [item for item in items(whole) for _ in range(parts)]


def test_every_document_gives_a_window_before_one_gives_two(texts: corpus.Corpus) -> None:
    count = len(texts.held_out)
    assert 3 <= count < 12
    for most in (1, count - 1, count, count + 2, 3 * count, 1000):
        windows, document = text.held_out_windows(texts, 41, most)
        of_document = Counter(document.tolist())
        rooms = [len(held_out) // 41 for held_out in texts.held_out]
        assert len(windows) == min(most, sum(rooms))
        assert all(of_document[n] <= room for n, room in enumerate(rooms))
        assert all(of_document[n] >= min(max(of_document.values()) - 1, room) for n, room in enumerate(rooms))
        places = [
            (n, texts.held_out[n].index(bytes(row))) for n, row in zip(document.tolist(), windows.tolist(), strict=True)
        ]
        assert places == sorted(places)
        assert all(b - a >= 41 for (n, a), (m, b) in itertools.pairwise(places) if n == m)
    windows, document = text.held_out_windows(texts, 41, 1)
    assert bytes(windows[0].tolist()) == texts.held_out[0][(len(texts.held_out[0]) - 41) // 2 :][:41]


def test_baselines_by_counting(texts: corpus.Corpus) -> None:
    pairs, single = Counter[tuple[int, int]](), Counter[int]()
    for document in texts.train:
        pairs.update(itertools.pairwise(document))
        single.update(document)
    first = Counter[int]()
    for (a, _), n in pairs.items():
        first[a] += n

    task = LanguageModel(**SHORT)
    batch = task.scored(16, texts)
    bits = [
        -math.log2((pairs[a, b] + 1) / (first[a] + 256))
        for tokens, places in zip(batch.tokens.tolist(), asked(batch), strict=True)
        for a, b in ((tokens[t], y) for t, y in places)
    ]
    assert task.baseline(texts) == pytest.approx(sum(bits) / len(bits), rel=1e-12)
    assert len(bits) == 8 * len(batch.tokens)

    masked, total = MaskedLanguageModel(**SHORT), sum(single.values())
    ys = [y for row in asked_bytes(masked.scored(16, texts)) for y in row]
    expected = sum(-math.log2((single[y] + 1) / (total + 256)) for y in ys) / len(ys)
    assert masked.baseline(texts) == pytest.approx(expected, rel=1e-12)
    assert task.chance(16) == masked.chance(40) == math.log2(256)


def test_text_tasks_refuse_what_they_cannot_read(texts: corpus.Corpus) -> None:
    for name in TASKS:
        with pytest.raises(ValueError, match="text: got none"):
            load(name)(**SHORT).training_batch(1, generator(), None)
        with pytest.raises(ValueError, match="no held-out document"):
            load(name)(length=16, lengths=(16, 10_000), targets=8).scored(16, texts)
        with pytest.raises(ValueError, match="no training document"):
            load(name)(length=10_000, lengths=(10_000,), targets=8).training_batch(1, generator(), texts)
        with pytest.raises(ValidationError, match="targets: expected at most the shortest length, 16, got 17"):
            load(name)(**{**SHORT, "targets": 17})


# Word order

LARGE, SMALL = "猫|狗|狼|狐狸|老虎|豹子", "老鼠|兔子|小鸡|松鼠|小鸟|青蛙"
GOOD = (
    "好看|感人|有趣|精彩|自然|到位|动人|新颖|动听|优美|很美|细腻|好吃|新鲜|很香|周到|热情|干净|安静|公道|便宜|"
    "宽敞|明亮|方便|好找|丰盛|可口|和气|热心|清楚|响亮|漂亮|大方|耐用|结实"
)
BAD = (
    "无聊|老套|难懂|生硬|平淡|夸张|混乱|俗套|很吵|单调|很暗|粗糙|很咸|油腻|难吃|很差|很慢|很脏|很贵|离谱|很小|"
    "潮湿|很偏|难找|简单|冷淡|很凶|模糊|刺耳|难看|笨重|费电|容易坏"
)


def label(sentence: str) -> tuple[str, bool]:
    """Read as a person would, by rules of its own: which kind of sentence it is and whether it is so."""
    if turn := re.search("但是|但|可是|不过", sentence):
        after = sentence[turn.end() :]
        good, bad = re.search(GOOD, after), re.search(BAD, after)
        assert bool(good) != bool(bad), sentence
        return "contrast", bool(good)
    if "不" in sentence:
        weaker, stronger = re.search("不(都|全|一定|很)", sentence), re.search("(都|全|一定|很)不", sentence)
        assert bool(weaker) != bool(stronger), sentence
        return "negation", bool(weaker)
    first, second = re.finditer(f"{LARGE}|{SMALL}", sentence)
    between = sentence[first.end() : second.start()]
    assert between, sentence
    does = second if between.startswith("被") else first
    return "agent", does[0] in LARGE.split("|")


@cache
def characters() -> dict[int, str]:
    return dict(enumerate(grammar.alphabet(), start=3))


def sentences(batch: Batch) -> list[str]:
    assert (batch.tokens[:, 0] == 0).all()
    assert batch.tokens[:, 1:].min() >= 3
    return ["".join(characters()[token] for token in row) for row in batch.tokens[:, 1:].tolist()]


def labels(batch: Batch) -> list[bool]:
    assert all([t for t, _ in row] == [0] for row in asked(batch))
    assert {y for row in asked_bytes(batch) for y in row} <= {1, 2}
    return [row[0] == 2 for row in asked_bytes(batch)]


def training(batches: int = 400, rows: int = 16) -> list[Batch]:
    task, random_ = WordOrder(), generator()
    return [task.training_batch(rows, random_, None) for _ in range(batches)]


def test_the_grammar_says_what_a_reader_would() -> None:
    for pair in grammar.pairs():
        assert label(pair.yes) == (pair.kind, True)
        assert label(pair.no) == (pair.kind, False)
        assert Counter(pair.yes) == Counter(pair.no)
    cores = [core for pair in grammar.pairs() for core in (pair.yes, pair.no)]
    assert len(set(cores)) == len(cores)
    assert {
        "猫追老鼠",
        "老鼠追猫",
        "他们不都是学生",
        "他们都不是学生",
        "我不很喜欢",
        "我很不喜欢",
        "这部电影很无聊，但演员表演精彩",
        "演员表演精彩，但这部电影很无聊",
    } <= set(cores)


@pytest.mark.parametrize("length", WordOrder().lengths)
def test_labels_of_scored_rows_are_read_off_the_sentences(length: int) -> None:
    batch = WordOrder().scored(length, None)
    assert batch.tokens.shape == (256, 1 + length)
    assert items(batch) == list(range(256))
    found = [label(sentence) for sentence in sentences(batch)]
    assert [so for _, so in found] == labels(batch)
    assert Counter(kind for kind, _ in found) == {"agent": 86, "negation": 86, "contrast": 84}


def test_labels_of_training_rows_are_read_off_the_sentences() -> None:
    lengths, kinds = Counter[int](), Counter[str]()
    for batch in training():
        found = [label(sentence) for sentence in sentences(batch)]
        assert [so for _, so in found] == labels(batch)
        lengths[batch.tokens.shape[1] - 1] += 1
        kinds.update(kind for kind, _ in found)
    assert set(lengths) == set(range(4, 17))
    assert min(lengths.values()) > 5  # 15 of 400 is even
    assert abs(lengths[16] - 400 * 14 / 26) < 5 * math.sqrt(400 * 14 * 12) / 26
    assert set(kinds) == {"agent", "negation", "contrast"}
    assert min(kinds.values()) > 0.15 * sum(kinds.values())


@pytest.mark.parametrize("length", WordOrder().lengths)
def test_what_cannot_see_order_is_right_in_exactly_half(length: int) -> None:
    """Whatever is said of a bag of characters, it is right for one of the twins and wrong for the other."""
    for batch in (WordOrder().scored(length, None), *training(40)):
        twins = [[sentences(batch)[n::2], labels(batch)[n::2]] for n in (0, 1)]
        for so, not_so in zip(*(half[0] for half in twins), strict=True):
            assert so != not_so
            assert Counter(so) == Counter(not_so)
        assert all(twins[0][1])
        assert not any(twins[1][1])
        of_bag: dict[tuple[str, ...], Counter[bool]] = {}
        for sentence, so in zip(sentences(batch), labels(batch), strict=True):
            of_bag.setdefault(tuple(sorted(sentence)), Counter())[so] += 1
        assert all(count[True] == count[False] for count in of_bag.values())


def test_the_same_held_out_cores_at_every_length_and_none_in_training() -> None:
    cores = {core: pair for pair in grammar.pairs() for core in (pair.yes, pair.no)}

    def core(sentence: str) -> str:
        return max((found for found in cores if found in sentence), key=len)

    at = {length: [core(s) for s in sentences(WordOrder().scored(length, None))] for length in WordOrder().lengths}
    assert len({tuple(found) for found in at.values()}) == 1
    scored = {cores[found].words for found in at[16]}
    trained = {cores[core(sentence)].words for batch in training(300) for sentence in sentences(batch)}
    assert not scored & trained
    assert len(scored) > 90
    assert len(trained) > 500
    held_out = {pair.words for pair in grammar.pairs() if pair.held_out}
    assert scored <= held_out
    assert not trained & held_out
    share = len(held_out) / len({pair.words for pair in grammar.pairs()})
    assert 0.15 < share < 0.25


def test_longer_rows_have_more_adjuncts_not_other_ones() -> None:
    """Every sentence is adjuncts in their order around the core, nothing else."""
    slots = ["|".join(map(re.escape, pieces)) for pieces in grammar.SLOTS]
    before, after = ("".join(f"({slot})?" for slot in part) for part in (slots[:5], slots[5:]))
    for length in WordOrder().lengths:
        for sentence in sentences(WordOrder().scored(length, None)):
            kind, _ = label(sentence)
            found = [
                match
                for pair in grammar.pairs()
                if pair.kind == kind
                for core in (pair.yes, pair.no)
                if core in sentence
                if (match := re.fullmatch(f"{before}{core}{after}", sentence))
            ]
            assert found, sentence
            assert kind == "agent" or not any(match[5] for match in found), sentence


def test_links_join_the_words_they_name() -> None:
    for length in WordOrder().lengths:
        batch = WordOrder().scored(length, None)
        found = Counter[str]()
        for link in batch.links:
            word, other = link.name.split("→")
            sentence = "?" + sentences(batch)[link.row]
            for place, name in ((link.query, word), (link.key, other)):
                assert sentence[place] in name
                assert name in sentence[max(0, place - len(name) + 1) : place + len(name)]
            found[link.name] += 1
        rows = {sentences(batch)[link.row] for link in batch.links}
        for core in ("猫追老鼠", "老鼠追猫", "这部电影很无聊，但演员表演精彩", "演员表演精彩，但这部电影很无聊"):
            assert any(core in row for row in rows)
        shares = {
            name: count / (len(word) * len(other)) for name, count in found.items() for word, other in [name.split("→")]
        }
        assert shares["追→猫"] == shares["追→老鼠"] == 2  # both twins
        assert shares["无聊→电影"] == shares["精彩→演员表演"] == shares["精彩→电影"] >= 2
        assert len(set(batch.links)) == len(batch.links)


def test_word_order_knows_its_vocabulary_and_lengths() -> None:
    task: Task = WordOrder()
    every = "".join(pair.yes for pair in grammar.pairs()) + "".join(piece for slot in grammar.SLOTS for piece in slot)
    assert task.vocabulary == 3 + len(set(every))
    assert task.tokens(16) == 17
    assert task.chance(16) == 0.5
    assert WordOrder(lengths=(12, 16, 52)).scored(52, None).tokens.shape == (256, 53)
    for lengths in ((11, 16), (16, 53)):
        with pytest.raises(ValidationError, match="expected from 12 to 52 characters"):
            WordOrder(lengths=lengths)
    for settings in ({"held_out": 3}, {"length": 11, "lengths": (11, 16)}):
        with pytest.raises(ValidationError):
            WordOrder(**settings)


def test_a_lone_document_is_one_item(tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_bytes(b"".join(documents(20)))
    batch = LanguageModel(**SHORT).scored(16, corpus.read_corpus(tmp_path / "one.txt", 41))
    assert set(items(batch)) == {0}
    assert len(batch.tokens) == len({tuple(row) for row in batch.tokens.tolist()}) > 8
