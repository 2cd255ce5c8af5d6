"""Tasks by a grammar: every answer is worked out again from the prompt, by interpreters that import nothing of posenc."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch

import in_process
from posenc.lab import tasks
from posenc.lab.tasks import kinship
from posenc.lab.tasks.task import IGNORE, Batch, Task
from posenc.lab.tasks.worded import Worded

NAMES = ("actions", "string_edits", "scratchpad", "kinship")


# Interpreters -----------------------------------------------------------------------------------------------------------


def acted(command: list[str]) -> list[str]:
    """By rewriting: first repetitions and ways are written out as plain turns and verbs, then the joints are read."""
    text = " ".join(command)
    text = re.sub(r"(\w+) opposite (\w+)", r"turn \2 \1 \2", text)
    text = re.sub(r"(\w+) around (\w+)", r"\1 \2 * 4", text)
    done: list[str] = []
    for piece in re.findall(r"(?:^|and |after )(?:(?!and |after ).)+", text):
        joint, phrase = piece.split(" ", 1) if piece.startswith(("and ", "after ")) else ("and", piece)
        times = 3 if "thrice" in phrase else 2 if "twice" in phrase else 1
        phrase = re.sub(r" ?(thrice|twice)", "", phrase).strip()
        phrase, _, count = phrase.partition(" * ")
        found: list[str] = []
        words = phrase.split()
        while words:
            verb = words.pop(0)
            if words and words[0] in ("left", "right"):
                found.append(words.pop(0)[0].upper())
            found += [{"walk": "W", "look": "O", "run": "U", "jump": "J"}[verb]] if verb != "turn" else []
        found = found * int(count or 1) * times
        done = found + done if joint == "after" else done + found
    return done


def edited(expression: list[str]) -> list[str]:
    """With a stack, from the right: no recursion over a grammar."""
    stack: list[str] = []
    letters = ""
    for word in reversed(expression):
        if len(word) == 1 and word != ",":
            letters = word + letters
            continue
        if letters:
            stack.append(letters)
            letters = ""
        if word == ",":
            continue
        x = stack.pop()
        if word == "reverse":
            x = "".join(reversed(x))
        elif word == "shift":
            x = x[1:] + x[0]
        elif word == "swap":
            x = x[-1] + x[1:-1] + x[0] if len(x) > 1 else x
        elif word == "echo":
            x = x + x[-1]
        else:
            y = stack.pop()
            x = {"append": x + y, "prepend": y + x, "first": x, "second": y}[word]
        stack.append(x)
    return list(letters or stack.pop())


def added(prompt: list[str]) -> list[str]:
    """With Python's integers: the steps from the remainders of the two numbers by powers of ten."""
    a, b = (word for word in "".join(prompt).split("+"))
    steps = []
    for n in range(1, len(a) + 1):
        low = int(a[-n:]) + int(b[-n:])
        steps += [a[-n], b[-n], str(low // 10 ** (n - 1) % 10), str(low // 10**n)]
    return [*steps, ";", *str(int(a) + int(b)).zfill(len(a) + 1)]


FEMALE = {"mother", "daughter", "sister", "wife"}
MOVES = {
    "mother": "u",
    "father": "u",
    "daughter": "d",
    "son": "d",
    "sister": "s",
    "brother": "s",
    "wife": "m",
    "husband": "m",
}
KIN = {  # where the last person is: by steps up, down and marriages; both are sought, the female and the male word
    "u": ("mother", "father"),
    "d": ("daughter", "son"),
    "s": ("sister", "brother"),
    "m": ("wife", "husband"),
    "uu": ("grandmother", "grandfather"),
    "dd": ("granddaughter", "grandson"),
    "us": ("aunt", "uncle"),
    "sd": ("niece", "nephew"),
    "usd": ("cousin", "cousin"),
    "mu": ("mother-in-law", "father-in-law"),
    "dm": ("daughter-in-law", "son-in-law"),
    "ms": ("sister-in-law", "brother-in-law"),
    "sm": ("sister-in-law", "brother-in-law"),
    "msd": ("niece", "nephew"),
    "smd": ("niece", "nephew"),
}
SHORTER = (  # of a path over different people: what is the same kind of person by a shorter path
    ("ud", "s"),  # a parent's other child is a sibling
    ("ss", "s"),
    ("su", "u"),  # a sibling's parent
    ("ds", "d"),  # a child's sibling
    ("um", "u"),  # a parent's spouse is the other parent
    ("md", "d"),  # a spouse's child
    ("usm", "us"),  # an uncle's wife is an aunt
)


def related(story: list[tuple[str, str, str]], first: str, last: str) -> str:
    """Follows the facts from the first person to the last one, and shortens the path until it has a name."""
    facts = {a: (word, b) for a, word, b in story}
    assert len(facts) == len(story)
    path, person, word = "", first, ""
    while person != last:
        word, person = facts.pop(person)
        path += MOVES[word]
    assert not facts
    while path not in KIN:
        path = next(re.sub(long, short, path, count=1) for long, short in SHORTER if long in path)
    return KIN[path][0 if word in FEMALE else 1]


# Rows as words ----------------------------------------------------------------------------------------------------------


def batched(facts: Sequence[int]) -> list[tuple[int, int, int]]:
    return list(zip(*(facts[n::3] for n in range(3)), strict=True))


def rows_of(batch: Batch) -> list[tuple[list[int], list[int]]]:
    """The tokens up to where the answer begins, and the answer. Checks that targets are the tokens after."""
    found = []
    for tokens, targets in zip(batch.tokens.tolist(), batch.targets.tolist(), strict=True):
        asked = [n for n, target in enumerate(targets) if target != IGNORE]
        begin, end = asked[0], asked[-1]
        assert asked == list(range(begin, end + 1))
        assert tokens[begin + 1 : end + 1] == targets[begin:end]
        found.append((tokens[: begin + 1], targets[begin : end + 1]))
    return found


def check_row(name: str, task: Task, length: int, prompt: list[int], answer: list[int]) -> None:
    if isinstance(task, Worded):
        word = {number: word for word, number in task.token.items()}
        said, answered = [word[n] for n in prompt], [word[n] for n in answer]
        assert (said[0], said[-1], answered[-1]) == ("^", "=", "$")
        expected = (acted if name == "actions" else edited)(said[1:-1])
        assert answered[:-1] == expected
        own = len(answered) - 1 if name == "actions" else sum(len(one) > 1 for one in said)
        assert own == length
    elif name == "scratchpad":
        signs = [*"0123456789^+=;$"]
        said, answered = [signs[n] for n in prompt], [signs[n] for n in answer]
        assert (said[0], said[-1], answered[-1]) == ("^", "=", "$")
        assert answered[:-1] == added(said[1:-1])
        assert said.index("+") == length + 1
    else:
        relations = kinship.RELATIONS
        facts, (ask, first, last) = prompt[1:-3], prompt[-3:]
        assert (prompt[0], ask) == (kinship.BEGIN, kinship.ASK)
        story = [(f"{a}", relations[r - kinship.NAMES], f"{b}") for a, r, b in batched(facts)]
        assert len(story) == length
        assert len({name for a, _, b in story for name in (a, b)}) == length + 1
        (said_answer,) = answer
        assert relations[said_answer - kinship.NAMES] == related(story, f"{first}", f"{last}")


@pytest.mark.parametrize("name", NAMES)
def test_answers_are_those_of_an_independent_interpreter(name: str) -> None:
    task = tasks.load(name)(held_out=200)  # type: ignore[call-arg]
    for length in task.lengths:
        batch = task.scored(length, None)
        assert batch.tokens.shape[1] <= task.tokens(length)
        for prompt, answer in rows_of(batch):
            check_row(name, task, length, prompt, answer)
    random = torch.Generator().manual_seed(1)
    for _ in range(30):
        batch = task.training_batch(8, random, None)
        for prompt, answer in rows_of(batch):
            length = next(n for n in range(1, task.length + 1) if fits(name, task, n, prompt, answer))
            check_row(name, task, length, prompt, answer)


def fits(name: str, task: Task, length: int, prompt: list[int], answer: list[int]) -> bool:
    if name == "actions":
        return len(answer) - 1 == length
    if name == "string_edits":
        assert isinstance(task, Worded)
        return sum(len(word) > 1 for word, n in task.token.items() for one in prompt if one == n) == length
    return (len(prompt) - (4 if name == "kinship" else 3)) == (3 if name == "kinship" else 2) * length


@pytest.mark.parametrize("name", NAMES)
def test_held_out_rows_are_never_trained_on_and_scored_rows_stay(name: str) -> None:
    task = tasks.load(name)(length=5, lengths=(5, 7), held_out=150)  # type: ignore[call-arg]
    random = torch.Generator().manual_seed(0)
    trained = {
        (tuple(prompt), tuple(answer))
        for _ in range(150)
        for prompt, answer in rows_of(task.training_batch(32, random, None))
    }
    scored = {(tuple(prompt), tuple(answer)) for prompt, answer in rows_of(task.scored(5, None))}
    assert len(trained) > 1000
    assert not trained & scored
    again = task.scored(5, None)
    assert torch.equal(again.tokens, task.scored(5, None).tokens)
    assert again.item is not None
    assert again.item.tolist() == list(range(150))


def every(make: Callable[[], Task], length: int) -> int:
    """The different rows that many draws of one length have."""
    task, random = make(), torch.Generator().manual_seed(0)
    return len({tuple(prompt) for _ in range(40) for prompt, _ in rows_of(task.draw(500, length, random))})  # type: ignore[attr-defined]


def test_the_number_of_commands_and_of_additions_is_that_of_all_different_rows() -> None:
    """Two actions: 4 verbs twice, 4 × 2 verbs after a turn, 2 turns twice and 2 opposite; 6 of one action in pairs."""
    one, two = 4 + 2, 4 + 8 + 2 + 2 + 2 * 6 * 6
    assert [tasks.load("actions")().different(n) for n in (1, 2)] == [one, two]  # type: ignore[call-arg, attr-defined]
    assert every(tasks.load("actions"), 2) == two  # type: ignore[arg-type]
    strings = 8 + 64 + 512
    assert tasks.load("string_edits")().different(1) == 4 * strings + 4 * strings**2  # type: ignore[call-arg, attr-defined]
    assert every(tasks.load("scratchpad"), 1) == 100  # type: ignore[arg-type]


def test_every_relation_is_an_answer_and_none_prevails() -> None:
    task, random = tasks.load("kinship")(), torch.Generator().manual_seed(0)  # type: ignore[call-arg]
    for length in (4, 10):
        answers = [answer[0] for _, answer in rows_of(task.draw(3000, length, random))]  # type: ignore[attr-defined]
        counts = [answers.count(token) for token in range(kinship.NAMES, kinship.NAMES + len(kinship.RELATIONS))]
        assert max(counts) < 0.15 * len(answers)
        assert sum(count > 0 for count in counts) >= 15


def test_a_chain_visits_nobody_twice() -> None:
    """Of mothers, husbands and the like there is one: the path of kinds to the same one does not recur."""
    task, random = tasks.load("kinship")(), torch.Generator().manual_seed(3)  # type: ignore[call-arg]
    for prompt, _ in rows_of(task.draw(500, 8, random)):  # type: ignore[attr-defined]
        facts = {a: (kinship.RELATIONS[r - kinship.NAMES], b) for a, r, b in batched(prompt[1:-3])}
        path, person, visited = "", prompt[-2], []
        for _ in range(8):
            word, person = facts[person]
            path += MOVES[word]
            while shorter := [(long, short) for long, short in SHORTER if long in path]:
                path = path.replace(*shorter[0], 1)
            if path in ("u", "m", "mu"):
                visited.append((path, word in FEMALE))
        assert len(visited) == len(set(visited))


def test_an_experiment_runs_them_and_its_report_names_them(tmp_path: Path) -> None:
    plans = "".join(
        f"""
  - task: {{name: {name}, length: 2, lengths: [2, 3], held_out: 8}}
    training: {{steps: 2, rows: 8}}"""
        for name in NAMES
    )
    experiment = f"""
name: tiny
about: {{en: Tiny., zh: 极小。}}
seeds: 1
size: {{d_model: 16, n_heads: 2, n_layers: 1}}
encodings: [nope]
tasks:{plans}
"""
    (tmp_path / "tiny.yaml").write_text(experiment, "utf-8")
    ended = in_process.posenc("lab", "run", tmp_path / "tiny.yaml", "--out", tmp_path / "out", "--workers", "1")
    assert ended.returncode == 0, ended.stderr
    for page in ("report.md", "report.zh-CN.md"):
        report = (tmp_path / "out" / "report" / page).read_text("utf-8")
        titles = [tasks.load(name).title for name in NAMES]
        assert all((title.zh if "zh" in page else title.en) in report for title in titles)


def test_the_list_has_them() -> None:
    listed = in_process.posenc("lab", "list", "--lang", "zh").stdout
    for name in NAMES:
        assert name in listed
        assert tasks.load(name).title.zh != tasks.load(name).title.en


def test_a_chain_has_as_many_people_as_there_are_names() -> None:
    with pytest.raises(ValueError, match="lengths: expected below 60"):
        tasks.load("kinship")(length=4, lengths=(4, 60)).scored(60, None)  # type: ignore[call-arg]
