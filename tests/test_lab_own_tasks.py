"""Tasks from a file: a class of the user's, and lines of a prompt and its answer. The models are tiny."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import torch

import in_process
from lab_sweeps import without_workers
from posenc.lab import tasks
from posenc.lab.experiment import Size, Trial, parse
from posenc.lab.records.fingerprint import fingerprint
from posenc.lab.run.task_admission import examine_task
from posenc.lab.tasks.examples import examples
from posenc.lab.tasks.task import IGNORE

pytestmark = pytest.mark.usefixtures("foreign_code_here")

DOUBLING = """
import torch

from posenc.lab.tasks.drawn import Drawn, answered, column


class Doubling(Drawn):
    length: int = 4
    lengths: tuple[int, ...] = (4, 8)

    @property
    def vocabulary(self):
        return 10

    def tokens(self, length):
        return 3 * length + 1

    def draw(self, rows, length, random):
        symbols = torch.randint(8, (rows, length), generator=random)
        doubled = torch.cat([symbols.repeat_interleave(2, dim=1), column(rows, 9)], dim=1)
        return answered(torch.cat([symbols, column(rows, 8)], dim=1), doubled)

    def different(self, length):
        return 8**length

    def chance(self, length):
        return 8.0**-length
"""
EXPERIMENT = """
name: tiny
about: {en: Tiny., zh: 极小。}
seeds: 1
size: {d_model: 16, n_heads: 2, n_layers: 1}
encodings: [nope, rope]
tasks:
  - task: {name: copy, length: 4, lengths: [4, 8], held_out: 16}
    training: {steps: 3, rows: 4}
"""
LINES = [{"prompt": "x" * n + str(k), "answer": f"so {k}.", "scored": str(k)} for n in range(1, 8) for k in range(100, 200)]


def jsonl(rows: list[dict[str, Any]]) -> str:
    return "\n".join(map(json.dumps, rows)) + "\n"


def of_lines(source: str = jsonl(LINES), **settings: Any) -> Any:
    return tasks.read({"name": "rows.jsonl", "source": source, "length": 6, "lengths": (5, 6, 8), **settings})


def posenc(*arguments: str | Path) -> Any:
    return in_process.posenc(*arguments, LC_ALL="C.UTF-8")


# Lines of JSON --------------------------------------------------------------------------------------------------------


def test_a_row_is_the_bytes_of_prompt_and_answer() -> None:
    task = of_lines(jsonl([{"prompt": "é+", "answer": "ab"}] * 8 + LINES))
    batch = next(batch for n in range(200) if (batch := task.training_batch(1, seeded(n))).tokens[0, 1] == 0xC3)
    assert batch.tokens.tolist() == [[256, 0xC3, 0xA9, ord("+"), 257, ord("a"), ord("b")]]
    assert batch.targets.tolist() == [[IGNORE] * 4 + [ord("a"), ord("b"), 258]]


def seeded(n: int) -> torch.Generator:
    return torch.Generator().manual_seed(n)


def test_the_whole_answer_is_trained_on_and_the_chosen_span_is_scored() -> None:
    task = of_lines()
    (targets,) = task.training_batch(1, seeded(0)).targets
    assert bytes(targets[targets != IGNORE][:-1].tolist()).decode().startswith("so 1")
    for length in task.lengths:
        batch = task.scored(length)
        for tokens, targets in zip(batch.tokens, batch.targets, strict=True):
            asked = bytes(targets[targets != IGNORE].tolist()).decode()
            prompt = bytes(tokens[1 : tokens.tolist().index(257)].tolist()).decode()
            assert prompt.lstrip("x") == asked
            assert (targets != IGNORE).nonzero()[0] == len(prompt) + 1 + len("so ") - 1 + 1


def test_a_length_holds_the_prompts_up_to_it_and_one_in_eight_is_held_out() -> None:
    task, prompts = of_lines(held_out=10_000), dict[int, set[str]]()
    for length in task.lengths:
        batch = task.scored(length)
        prompts[length] = {bytes(row[1 : row.index(257)]).decode() for row in batch.tokens.tolist()}
    assert {length: {len(prompt) for prompt in found} for length, found in prompts.items()} == {
        5: {4, 5},
        6: {6},
        8: {7, 8},
    }
    assert 0.06 < sum(map(len, prompts.values())) / len([one for one in LINES if len(str(one["prompt"])) <= 8]) < 0.2
    trained = {bytes(row[1 : row.index(257)]).decode() for row in task.training_batch(4000, seeded(0)).tokens.tolist()}
    assert max(map(len, trained)) == 6
    assert not trained & set().union(*prompts.values())


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "rows.jsonl, line 701: not JSON"),
        ('{"prompt": "a"}', 'line 701: expected {"prompt": …, "answer": …}'),
        ('{"prompt": "a", "answer": "b", "weight": 1}', 'maybe "scored"'),
        ('{"prompt": "a", "answer": 5}', "line 701: answer: expected text of 1 to 65,536 bytes, got '5'"),
        ('{"prompt": "", "answer": "5"}', "line 701: prompt: expected text of 1"),
        ('{"prompt": "a", "prompt": "b", "answer": "5"}', "line 701"),
        ('{"prompt": "a", "answer": "aba", "scored": "a"}', "scored: expected a piece that occurs once"),
        ('{"prompt": "%s", "answer": "5"}' % ("x" * 65_537), "prompt: expected text of 1 to 65,536 bytes"),
    ],
)
def test_a_wrong_line_is_named(line: str, said: str) -> None:
    with pytest.raises(ValueError, match=r"rows\.jsonl") as error:
        of_lines(jsonl(LINES) + line)
    assert said in str(error.value)


def test_a_length_without_examples_says_which_there_are() -> None:
    with pytest.raises(ValueError, match=r"no example to score at 99; one in 8 is held out; prompts have 4 to 10 bytes"):
        of_lines(lengths=(6, 10, 99))
    with pytest.raises(ValueError, match=r"no example to train on with a prompt of up to 2 bytes"):
        of_lines(length=2, lengths=(2, 6))


# The trial ------------------------------------------------------------------------------------------------------------


def trial(settings: dict[str, Any]) -> Trial:
    size, training = {"d_model": 16, "n_heads": 2, "n_layers": 1}, {"steps": 2, "rows": 2}
    return Trial.model_validate({"task": settings, "encoding": "rope", "seed": 0, "size": size, "training": training})


def test_the_text_of_the_file_is_part_of_the_trial() -> None:
    lines = {"name": "rows.jsonl", "source": jsonl(LINES), "length": 6, "lengths": (6, 8)}
    own = {"name": "doubling.py:Doubling", "source": DOUBLING}
    for settings in (lines, own):
        one, same = trial(settings), trial(dict(settings))
        other = trial({**settings, "source": settings["source"] + "\n"})
        assert one.key("") == same.key("") != other.key("")
        assert one.weights_key("") == same.weights_key("") != other.weights_key("")
        assert pickle.loads(pickle.dumps(one)).key("") == one.key("")
        assert Trial.model_validate(one.model_dump(mode="json")).key("") == one.key("")
        assert fingerprint(one) == fingerprint(same) != fingerprint(other)


def test_the_tasks_of_posenc_have_no_text() -> None:
    copy = {"name": "copy", "length": 4, "lengths": (4, 8)}
    assert "source" not in trial(copy).model_dump(mode="json")["task"]
    with pytest.raises(ValueError, match="source: expected none for copy"):
        trial({**copy, "source": "x"})
    with pytest.raises(ValueError, match="its text is not given"):
        trial({"name": "rows.jsonl", "length": 4, "lengths": (4, 8)})


# The commands ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished sweep, and the user's files beside it."""
    base = tmp_path_factory.mktemp("own")
    (base / "tiny.yaml").write_text(EXPERIMENT, "utf-8")
    (base / "doubling.py").write_text(DOUBLING, "utf-8")
    (base / "rows.jsonl").write_text(jsonl(LINES), "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        without_workers(patch)
        assert posenc("lab", "run", base / "tiny.yaml", "--out", base / "out").returncode == 0
    return base


def states(out: Path) -> dict[str, str]:
    listed = json.loads(posenc("lab", "list", out, "--json").stdout)["trials"]
    return {f"{one['task']} {one['encoding']}": one["state"] for one in listed}


@pytest.mark.usefixtures("no_workers")
@pytest.mark.parametrize(
    ("word", "options"),
    [
        pytest.param("doubling.py:Doubling", [], marks=pytest.mark.acceptance),
        ("rows.jsonl", ["--lengths", "6,8", "--steps", "2"]),
    ],
)
def test_a_task_joins_the_comparison(word: str, options: list[str], folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(folder / "out", out)
    ended = posenc("lab", "add", folder / word, *options, "--to", out, "--json")
    assert ended.returncode == 0, ended.stderr
    assert "2 trials run, 2 found" in ended.stderr
    found = json.loads(ended.stdout)
    assert [task["name"] for task in found["tasks"]] == ["copy", word]
    assert found["command"].endswith(" ".join(["&& posenc lab add", word, "--to lab-tiny", *options]))
    assert states(out) == {f"{task} {word}": "finished" for task in ("copy", word) for word in ("nope", "rope")}
    assert all(":" not in path.name for path in out.rglob("*"))
    (path,) = (out / "trials").glob(f"{word.split('.')[0]}*rope*")
    trained = json.loads(pq.read_table(path).schema.metadata[b"posenc"])["trial"]
    assert trained["task"]["source"] == (folder / word.partition(":")[0]).read_text("utf-8")
    shown = posenc("lab", "show", word, "rope", "--in", out)
    assert shown.returncode == 0
    assert "def draw" not in shown.stdout
    repeated = posenc("lab", "repeat", word, "rope", "--in", out)
    assert "equal bit for bit" in repeated.stdout + repeated.stderr

    changed = tmp_path / word.partition(":")[0]
    changed.write_text((folder / changed.name).read_text("utf-8") + "\n", "utf-8")
    again = tmp_path / word
    assert posenc("lab", "add", again, *options, "--to", out, "--no-run").returncode == 0
    assert states(out) == {
        **{f"copy {one}": "finished" for one in ("nope", "rope")},
        **{f"{word} {one}": "missing" for one in ("nope", "rope")},
    }


@pytest.mark.parametrize(
    ("old", "new", "law"),
    [
        ("generator=random", "", "same_rows_again"),
        ("return 10", "return 9", "training_rows"),
        ("3 * length + 1", "3 * length", "training_rows"),
        ("return 8**length", "return 1", "nothing_held_out_is_trained_on"),
        ("8.0**-length", "float('nan')", "chance_is_a_number"),
    ],
)
def test_a_wrong_task_breaks_a_check(old: str, new: str, law: str) -> None:
    assert old in DOUBLING
    few = DOUBLING.replace("length: int = 4", "length: int = 1").replace("(4, 8)", "(1, 8)") if "held" in law else DOUBLING
    settings, size = {"name": "wrong.py:Doubling", "source": few.replace(old, new)}, Size(d_model=16, n_heads=2, n_layers=1)
    assert law in [result.law for result in examine_task(settings, size) if not result.held]
    assert all(result.held for result in examine_task({**settings, "source": DOUBLING}, size))


def test_a_wrong_task_is_refused(tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text(DOUBLING.replace("return 10", "return 9"), "utf-8")
    ended = posenc("lab", "add", f"{tmp_path / 'wrong.py'}:Doubling")
    assert ended.returncode == 1
    assert "✗ training_rows: " in ended.stdout
    assert "It is not added" in ended.stderr


def test_what_is_no_task_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text("{}\n", "utf-8")
    (tmp_path / "ends.py").write_text("import sys; sys.exit(3)", "utf-8")
    (tmp_path / "big.jsonl").write_bytes(b" " * (4 * 2**20 + 1))
    for arguments, said in (
        ([tmp_path / "rows.jsonl", "--lengths", "4,8"], "rows.jsonl, line 1: expected"),
        ([f"{tmp_path / 'ends.py'}:Task"], "sys.exit(3)"),
        ([tmp_path / "big.jsonl", "--lengths", "4,8"], "larger than 4 MiB"),
        ([tmp_path / "absent.jsonl"], "there is no file"),
    ):
        ended = posenc("lab", "add", *arguments)
        assert ended.returncode == 1, ended
        assert said in ended.stderr
        assert ended.stderr.count("\n") == 1
    assert posenc("lab", "add", tmp_path / "rows.jsonl", "--lengths", "a").returncode == 2


def test_the_task_on_the_page_is_one() -> None:
    for page in ("lab.md", "lab.zh-CN.md"):
        content = (Path(__file__).parents[1] / "docs" / page).read_text("utf-8")
        assert f"```python{DOUBLING}```" in content
        lines = next(block for block in content.split("```text\n") if block.startswith('{"prompt"')).partition("```")[0]
        assert [one.answer for one in examples(lines, "rows.jsonl")] == [b"5", b"2+9=11, so 21"]


def test_an_experiment_names_the_file(folder: Path) -> None:
    own = EXPERIMENT + "  - task: {name: rows.jsonl, length: 6, lengths: [6, 8]}\n    training: {steps: 2, rows: 2}\n"
    experiment = parse(own + "  - {task: {name: 'doubling.py:Doubling'}, training: {steps: 2}}\n", folder)
    assert [trial.task.source for trial in experiment.trials() if trial.encoding == "nope"] == [
        None, jsonl(LINES), DOUBLING
    ]  # fmt: skip
    with pytest.raises(ValueError, match=r"absent\.jsonl.*cannot be read"):
        parse(own.replace("rows", "absent"), folder)
