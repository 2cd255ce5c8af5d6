"""Files of experiments: what is none is refused in one line that names the file and the setting."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from posenc.lab.experiment import PRESETS, parse, read_experiment

pytestmark = pytest.mark.usefixtures("foreign_code_here")

GOOD = """
name: n
about: {en: a, zh: b}
encodings: [rope]
tasks: [{task: {name: copy}, training: {steps: 1, learning_rate: 0.1}}]
"""


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_read(name: str) -> None:
    experiment = read_experiment(name)
    assert experiment.name == name
    assert len(experiment.trials()) >= sum(map(experiment.seeds_of, experiment.encodings))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "expected settings"),
        (b"\x00\xff\xfe", "expected an experiment as YAML, got a file that is not text in UTF-8"),
        (GOOD.replace("0.1", ".inf").encode(), "tasks.0.training.learning_rate: expected a finite number, got .inf"),
        (GOOD.replace("0.1", ".nan").encode(), "tasks.0.training.learning_rate"),
        (GOOD.replace("0.1", "-1").encode(), "tasks.0.training.learning_rate: expected a number above 0, got -1"),
        (GOOD.replace("steps: 1", "steps: -1").encode(), "tasks.0.training.steps: expected a number of at least 1, got -1"),
        (GOOD.replace("steps: 1", "steps: true").encode(), "tasks.0.training.steps: expected a number or text, got true"),
        (GOOD.replace("[rope]", "rope").encode(), "encodings: expected a list, such as [a, b], got 'rope'"),
        (GOOD.replace("[rope]", "[]").encode(), "encodings: expected a list of at least one encoding, got []"),
        (GOOD.replace("[rope]", "[nope, rope, nope]").encode(), "expected different encodings, got nope twice"),
        (GOOD.replace("0.1}", "0.1}, encodings: [rope, rope]").encode(), "tasks.0.encodings: expected different encodings"),
        (GOOD.replace("0.1}", "0.1}, encodings: []").encode(), "tasks.0.encodings: expected a list of at least one"),
        (GOOD.replace("[{task", "7 #").encode(), "tasks: expected a list, such as [a, b], got 7"),
        (GOOD.replace("[{task", "[] #").encode(), "tasks: expected a list of at least one, got []"),
        (GOOD.replace("tasks:", "#").encode(), "tasks: is needed and not given; add it"),
        (GOOD.replace("rope", "roper").encode(), "mine.yaml: unknown encoding 'roper'; did you mean rope? See posenc list"),
        (GOOD.replace("rope", "qqqq").encode(), "mine.yaml: unknown encoding 'qqqq'; see posenc list"),
        (GOOD.replace("rope", "mine.py:Mine").encode(), "mine.py:Mine: "),
        (GOOD.replace("name: copy", "name: copies").encode(), "unknown name 'copies'"),
        (GOOD.replace("name: copy", "name: reverse").encode(), "reverse is no longer a task of posenc; as a file"),
        (GOOD.replace("name: copy", "length: 4").encode(), "tasks.0.task: expected the name of a task"),
        (GOOD.replace("copy}", "copy, lenght: 4}").encode(), "tasks.0.task.lenght: unknown setting; did you mean length?"),
        (GOOD.replace("steps", "step").encode(), "tasks.0.training.step: unknown setting; did you mean steps?"),
        ((GOOD + "colour: red").encode(), "colour: unknown setting; known: name, about, "),
        ((GOOD + "size: {width: 3}").encode(), "size.width: unknown setting; known: d_model, n_heads, "),
        ((GOOD + "size: {d_model: 3}").encode(), "size.d_model: expected a number of at least 8, got 3"),
        (GOOD.replace("name: n", "name: ../../x y").encode(), "name: expected letters, digits, - and _, got '../../x y'"),
    ],
)
def test_what_is_no_experiment_is_named(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(GOOD)
    assert len(read_experiment(str(path)).trials()) == 3
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"mine\.yaml") as refused:
        read_experiment(str(path))
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"absent.yaml: cannot be read: No such file or directory; expected a YAML file or"
    ):
        read_experiment(str(tmp_path / "absent.yaml"))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("fire: {first_length: 0}", "tasks.0.settings.fire.first_length: expected a positive number, got 0"),
        ("fire: {first_length: true}", "tasks.0.settings.fire.first_length: expected a number or text, got true"),
        ("fire: {first_length: 8.5}", "mine.yaml: settings of fire in copy: first_length: expected a whole number"),
        (
            "fire: {first: 8}",
            "settings of fire in copy: fire takes no number called first; did you mean first_c? (it takes",
        ),
        ("fire: {n_heads: 3}", "settings of fire in copy: n_heads is decided by the size of the experiment; leave it out"),
        ("rope: {layout: 2}", "settings of rope in copy: rope takes no number called layout (it takes base, "),
    ],
)
def test_a_wrong_setting_of_an_encoding_is_named(tmp_path: Path, settings: str, said: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(GOOD.replace("[rope]", "[rope, fire]").replace("0.1}", "0.1}, settings: {" + settings + "}"))
    with pytest.raises(ValueError, match=re.escape(said)):
        read_experiment(str(path))


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("class Mine:\n    pass", "expected a subclass of posenc.PositionalEncoding"),
        pytest.param("x = 1", "called 'Mine', got a file without it", marks=pytest.mark.acceptance),
        pytest.param("class Mine(:", "SyntaxError", marks=pytest.mark.acceptance),
        pytest.param("raise SystemExit(3)", "the file ends Python with sys.exit(3)", marks=pytest.mark.acceptance),
    ],
)
def test_a_class_that_is_not_in_its_file_is_refused_when_the_experiment_is_read(
    tmp_path: Path, source: str, said: str
) -> None:
    (tmp_path / "mine.py").write_text(source)
    path = tmp_path / "mine.yaml"
    path.write_text(GOOD.replace("[rope]", "[rope, 'mine.py:Mine+randomized']"))
    with pytest.raises(ValueError, match=re.escape(said)) as refused:
        read_experiment(str(path))
    assert "\n" not in str(refused.value)


def test_a_tuning_trial_says_what_it_tries() -> None:
    scales = "0.1}, learning_rates: [0.1, 0.2], own_scales: {rope: {base: [500]}}"
    assert [str(trial) for trial in parse(GOOD.replace("0.1}", scales), Path()).tuning()] == [
        "copy rope tuning, rate 0.1", "copy rope tuning, rate 0.1, base 500",
    ]  # fmt: skip


def test_rates_and_scales_are_tried_together() -> None:
    joint = "0.1}, learning_rates: [0.1, 0.2, 0.3, 0.4], joint_scales: {rope: {base: [500]}}"
    assert [str(trial) for trial in parse(GOOD.replace("0.1}", joint), Path()).tuning()] == [
        "copy rope tuning, rate 0.1", "copy rope tuning, rate 0.2",
        "copy rope tuning, rate 0.1, base 500", "copy rope tuning, rate 0.2, base 500",
    ]  # fmt: skip
    for wrong, message in (
        ("[0.1, 0.2, 0.3], joint_scales: {rope: {base: [500]}}", "expected the 3 learning_rates to be a multiple of 2"),
        ("[0.1, 0.2], joint_scales: {alibi: {bias_max: [5]}}", "joint_scales: alibi is none of the encodings of copy"),
        ("[0.1, 0.2], own_scales: {rope: {base: [5]}}, joint_scales: {rope: {base: [5]}}", "in one of them"),
    ):
        with pytest.raises(ValueError, match=message):
            parse(GOOD.replace("0.1}", f"0.1}}, learning_rates: {wrong}"), Path())


def test_the_study_of_far_context_tunes_every_encoding_as_often() -> None:
    study = read_experiment("far_context")
    assert len(study.trials()) == 6 * 3
    tries = [len(study.tasks[0].tries(word)) for word in study.encodings]
    assert set(tries) == {6}
