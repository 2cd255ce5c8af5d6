"""Files of experiments: what is none is refused in one line that names the file and the setting."""

from __future__ import annotations

from pathlib import Path

import pytest

from posenc.lab.experiment import PRESETS, read_experiment

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
        (b"\x00\xff\xfe", "can't decode"),
        (GOOD.replace("0.1", ".inf").encode(), "tasks.0.training.learning_rate: Input should be a finite number"),
        (GOOD.replace("0.1", ".nan").encode(), "tasks.0.training.learning_rate"),
        (GOOD.replace("steps: 1", "steps: -1").encode(), "tasks.0.training.steps"),
        (GOOD.replace("[rope]", "rope").encode(), "encodings: Input should be a valid tuple"),
        (GOOD.replace("[{task", "7 #").encode(), "tasks: Input should be a valid tuple"),
        (GOOD.replace("rope", "roper").encode(), "unknown encoding 'roper'"),
        (GOOD.replace("name: copy", "name: copies").encode(), "unknown name 'copies'"),
        (GOOD.replace("steps", "step").encode(), "tasks.0.training.steps: Field required"),
        ((GOOD + "colour: red").encode(), "colour: Extra inputs are not permitted"),
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
