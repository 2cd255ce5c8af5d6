"""`posenc compare` from end to end, with a text of 60 kB and a few steps: run, resumed, killed, used wrongly, broken."""

from __future__ import annotations

import html
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

import in_process
import posenc
from lab_sweeps import Here
from posenc import cli
from posenc.lab.commands import run as lab_run
from posenc.lab.experiment import read_experiment
from posenc.lab.findings.assemble import findings
from posenc.lab.records.results import Folder

STEPS = 12
OWN = Path(__file__).parent.parent / "examples" / "log_distance.py"
QUICK = ["--encodings", "rope,alibi,learned", "--steps", str(STEPS)]


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = random.Random(0)
    words = ["the", "of", "and", "to", "in", "a", "is", "that", "for", "it", "as", "was", "with", "be", "by", "on", "not"]
    folder = tmp_path_factory.mktemp("text") / "books"
    folder.mkdir()
    for n in range(12):
        (folder / f"{n}.txt").write_text(" ".join(source.choices(words, k=1250)))
    return folder


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "posenc", "compare", *map(str, arguments)]


def run(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    settings = os.environ | {"COLUMNS": "100", "NO_COLOR": "1"} | environment
    return subprocess.run(command(*arguments), capture_output=True, text=True, timeout=300, env=settings)


@pytest.fixture(scope="module")
def whole(text: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """Without processes of its own: those of the command and of its workers are started by make acceptance."""
    out = tmp_path_factory.mktemp("whole") / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("posenc.lab.engines.named", lambda *_: Here())
        return out, here("--text", text, *QUICK, "--out", out, "--json")


def here(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """`run` without a process of its own."""
    return in_process.posenc("compare", *arguments, COLUMNS="100")


def lasting(out: Path) -> list[Any]:
    """What must be the same whenever and however often it is run: every number but times."""
    with Folder(out).connect() as database:
        return database.execute("SELECT * EXCLUDE (key) FROM rows ORDER BY ALL").fetchall()


def trials(out: Path) -> list[Path]:
    return sorted((out / "trials").glob("*.parquet"))


def one_line(stderr: str) -> str:
    """The last line that is no progress."""
    said = [line for line in stderr.splitlines() if line and not line.startswith("posenc compare: ")]
    assert len(said) == 1, stderr
    return said[0]


# A whole run ----------------------------------------------------------------------------------------------------------


@pytest.mark.acceptance
def test_json_alone_is_on_the_standard_output(whole: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    out, ended = whole
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert json.loads((out / "findings.json").read_text("utf-8"))["findings"] == found
    assert "6 of 6" in ended.stderr


def test_results_say_what_they_come_from(whole: tuple[Path, Any], text: Path) -> None:
    found = findings(whole[0])
    (task,) = found["tasks"]
    assert [arm["name"] for arm in task["arms"]] == ["rope", "alibi", "learned"]
    assert found["command"] == f"posenc compare --encodings rope,alibi,learned --steps {STEPS} --seed 0 --text books"
    assert (found["seeds"], task["training"]["steps"]) == ([0, 1], STEPS)
    assert found["text"]["source"] == "books"
    assert found["text"]["train"]["bytes"] + found["text"]["held_out"]["bytes"] == sum(
        path.stat().st_size for path in text.iterdir()
    )
    for arm in task["arms"]:
        assert arm["cells"]["64"]["seeds"].keys() == {"0", "1"}
        assert 2 < arm["cells"]["64"]["mean"] < 8
        row = found["cost"]["rows"][arm["name"]]
        for ratio in (row[kind] for kind in ("prefill", "decode", "training")):
            assert 0 < ratio["low"] <= ratio["median"] <= ratio["high"]
        assert found["properties"]["rows"][arm["name"]]["decode"] < 1e-9
    assert task["arms"][2]["cells"]["128"]["state"] == "cannot: table ends at 64"
    assert found["summary"]


def test_no_path_of_the_machine_is_written(whole: tuple[Path, Any], text: Path) -> None:
    for path in whole[0].rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            for private in (str(text), str(whole[0]), str(Path.home()), sys.prefix):
                assert private.encode() not in content, path.name


@pytest.mark.acceptance
def test_it_is_an_experiment_of_the_lab_like_any_other(whole: tuple[Path, Any], text: Path, tmp_path: Path) -> None:
    """The lab runs the same experiment from a file, and finds every trial that compare has trained."""
    shutil.copytree(whole[0], tmp_path / "out")
    (tmp_path / "out" / "experiment.json").unlink()
    settings = {**read_experiment("compare_text").model_dump(mode="json"), "encodings": ["rope", "alibi", "learned"]}
    del settings["budget"]
    settings["tasks"][0]["training"]["steps"] = STEPS
    (tmp_path / "same.yaml").write_text(yaml.safe_dump(settings))
    for leftover in ("report", "findings.json"):
        remove(tmp_path / "out" / leftover)
    ended = in_process.posenc("lab", "run", tmp_path / "same.yaml", "--text", text, "--out", tmp_path / "out", "--json")
    assert ended.returncode == 0, ended.stderr
    assert "0 trials run, 6 found" in ended.stderr
    changed = {"command": None}
    assert json.loads(ended.stdout) | changed == json.loads(whole[1].stdout) | changed


def remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def test_compare_and_lab_run_go_through_the_same_functions(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Both commands hand an experiment to one function; here it only remembers it."""
    given: list[Any] = []
    monkeypatch.setattr(lab_run, "carry_out", given.append)
    monkeypatch.setattr(sys, "argv", ["posenc", "compare", "--out", str(tmp_path / "out")])
    with pytest.raises(SystemExit, match="0"):
        cli.run()
    monkeypatch.setattr(sys, "argv", ["posenc", "lab", "run", "compare", "--out", str(tmp_path / "out")])
    with pytest.raises(SystemExit, match="0"):
        cli.run()
    compared, run_by_lab = given
    assert compared.experiment == run_by_lab.experiment == read_experiment("compare")
    assert compared.out == run_by_lab.out


def test_the_page_holds_everything_and_asks_for_nothing(whole: tuple[Path, Any]) -> None:
    """tests/explorer/test_results.py opens such pages in a browser."""
    content = (whole[0] / "report" / "index.html").read_text("utf-8")
    found = re.search(r'id="posenc-about">(.*?)</script>', content)
    assert found
    headings = [section["words"] for section in json.loads(found[1])["sections"]]
    assert {
        "The answer": "结论", "All sentences": "全部结论", "Quality against length": "质量随长度的变化",
        "Cost on this machine": "在这台机器上的代价", "Properties that hold exactly": "严格成立的性质",
    }.items() <= {words["en"]: words["zh"] for words in headings}.items()  # fmt: skip
    assert found[1].count('"is": "picture"') >= 3
    assert "default-src 'none'" in html.unescape(content)
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)|url\(|@import|fetch\(|XMLHttp", content)
    assert findings(whole[0])["text"]["sha256"] in content
    assert len(content.encode()) < 200_000


def test_run_again_it_trains_nothing(whole: tuple[Path, Any], text: Path) -> None:
    out, _ = whole
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    again = here("--text", text, *QUICK, "--out", out)
    assert again.returncode == 0
    assert "0 trials run, 6 found" in again.stderr
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    assert len(trials(out)) == 6
    table = again.stdout
    for name in ("RoPE", "ALiBi", "Learned"):
        assert re.search(rf"^{name} ", table, re.MULTILINE)
    assert "cannot: table ends at 64" in table
    assert "index.html" in table


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (["--encodings", "rope,alibi", "--steps", str(STEPS)], "encodings"),
        (["--encodings", "rope,alibi,learned", "--steps", "13"], f"steps {STEPS} instead of 13"),
        ([*QUICK, "--seed", "1"], "first_seed 0 instead of 1"),
    ],
)
def test_other_settings_do_not_touch_it(whole: tuple[Path, Any], text: Path, changed: list[str], message: str) -> None:
    before = {path: path.read_bytes() for path in whole[0].rglob("*") if path.is_file()}
    ended = here("--text", text, *changed, "--out", whole[0])
    assert ended.returncode == 1
    assert message in one_line(ended.stderr)
    assert {path: path.read_bytes() for path in whole[0].rglob("*") if path.is_file()} == before


@pytest.mark.acceptance
def test_a_budget_becomes_steps_that_anyone_can_repeat(text: Path, tmp_path: Path) -> None:
    given = ["--text", text, "--encodings", "rope", "--budget", "60s", "--out", tmp_path / "one"]
    assert run(*given).returncode == 0
    one = findings(tmp_path / "one")
    steps = one["tasks"][0]["training"]["steps"]
    assert steps >= 200
    assert steps % 10 == 0
    assert "0 trials run, 2 found" in run(*given).stderr  # the same steps again
    assert one["command"] == f"posenc compare --encodings rope --steps {steps} --seed 0 --text books"
    *_, arguments = one["command"].removesuffix(" --text books").partition("posenc compare ")
    assert run("--text", text, *arguments.split(), "--out", tmp_path / "other").returncode == 0
    assert lasting(tmp_path / "one") == lasting(tmp_path / "other")


# Interrupted ----------------------------------------------------------------------------------------------------------


def started(out: Path, text: Path, count: int) -> subprocess.Popen[str]:
    """A run in a process group of its own, as from a terminal, once `count` trials are finished."""
    process = subprocess.Popen(
        command("--text", text, *QUICK, "--out", out),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    end = time.monotonic() + 200
    while len(trials(out)) < count:
        assert process.poll() is None, process.stderr and process.stderr.read()
        assert time.monotonic() < end
        time.sleep(0.02)
    return process


@pytest.mark.acceptance
def test_killed_and_resumed_it_ends_as_if_it_had_not_been(whole: tuple[Path, Any], text: Path, tmp_path: Path) -> None:
    process = started(tmp_path / "out", text, count=1)
    process.kill()
    process.communicate()
    kept = {path: path.read_bytes() for path in trials(tmp_path / "out")}
    assert 0 < len(kept) < 6
    again = run("--text", text, *QUICK, "--out", tmp_path / "out")
    assert again.returncode == 0, again.stderr
    assert all(path.read_bytes() == content for path, content in kept.items())
    assert lasting(tmp_path / "out") == lasting(whole[0])


@pytest.mark.acceptance
@pytest.mark.parametrize("how", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.acceptance)])
def test_interrupted_it_says_how_to_go_on(text: Path, tmp_path: Path, how: signal.Signals) -> None:
    process = started(tmp_path / "out", text, count=1)
    if how == signal.SIGINT:
        os.killpg(process.pid, how)  # Ctrl-C reaches the workers too
    else:
        process.send_signal(how)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the same command continues" in one_line(stderr)
    for path in (tmp_path / "out").rglob("*.json"):
        json.loads(path.read_text("utf-8"))
    assert not (tmp_path / "out" / "report").exists()


# Used wrongly ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--budget", "5x"], "'5x'"),
        pytest.param(["--budget", "0s"], "'0s'", marks=pytest.mark.acceptance),
        pytest.param(["--budget", "-5m"], "'-5m'", marks=pytest.mark.acceptance),
        pytest.param(["--budget", "nan"], "'nan'", marks=pytest.mark.acceptance),
        pytest.param(["--budget", "300"], "'300'", marks=pytest.mark.acceptance),
        (["--encodings", "rotary"], "rope"),
        (["--encodings", "旋转位置编码"], "rope"),
        pytest.param(["--encodings", "rope,,alibi"], "rope,,alibi", marks=pytest.mark.acceptance),
        pytest.param(["--encodings", "rope,rope"], "rope,rope", marks=pytest.mark.acceptance),
        (["--encodings", "rope+random"], "rope"),
        (["--encodings", f"{OWN}:Absent"], "called 'Absent'"),
        (["--encodings", f"{OWN}:LogDistance,./{OWN.name}:LogDistance"], "different names"),
        (["--encodings", "ropee"], "unknown encoding 'ropee'; did you mean rope? See posenc list"),
        (["--budget", "1m", "--steps", "5"], "leave it or --steps 5 out"),
        (["--steps", "0"], "--steps"),
        (["--seed", "-1"], "--seed"),
    ],
)
def test_wrong_usage_is_exit_code_2(arguments: list[str], message: str, tmp_path: Path) -> None:
    ended = in_process.posenc("compare", *arguments, "--out", tmp_path / "out")
    assert ended.returncode == 2
    assert message in " ".join(ended.stderr.replace("│", " ").split())
    assert "Traceback" not in ended.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("what", ["absent", "empty", "binary", "short", "no folder", "mine", "unwritable"])
def test_bad_input_is_exit_code_1_and_one_line(what: str, tmp_path: Path, text: Path) -> None:
    given, out, message = (
        tmp_path / "given",
        tmp_path / "out",
        {
            "absent": "neither a file nor a folder",
            "empty": "given is empty",
            "binary": "byte 1 is zero",
            "short": "has 4 bytes of text; at least 41040 are needed",
            "no folder": "is a file",
            "mine": "did not write",
            "unwritable": "Not a directory",
        }[what],
    )
    if what in ("empty", "binary", "short"):
        given.write_bytes({"empty": b"", "binary": b"a\0b", "short": b"text"}[what])
    if what in ("no folder", "unwritable"):
        out.write_text("a file")
    if what == "mine":
        out.mkdir()
        (out / "thesis.txt").write_text("mine")
    source = text if what in ("no folder", "mine", "unwritable") else given
    ended = in_process.posenc("compare", "--text", source, *QUICK, "--out", out / "below" if what == "unwritable" else out)
    assert ended.returncode == 1
    assert message in one_line(ended.stderr)
    assert ended.stdout == ""


# A broken encoding ----------------------------------------------------------------------------------------------------


BROKEN = {
    "at once": (
        'def at_distance(self, delta: Num[Tensor, "n"]) -> Float[Tensor, "h n"]:\n',
        "        raise RuntimeError('planted')\n",
    ),
    "in training": (
        'def at_distance(self, delta: Num[Tensor, "n"]) -> Float[Tensor, "h n"]:\n',
        "        if torch.is_grad_enabled():\n            return torch.full((4, len(delta)), float('nan'))\n",
    ),
}


@pytest.mark.acceptance
@pytest.mark.parametrize("when", ["at once", "in training"])
def test_a_broken_encoding_is_reported_and_the_others_go_on(when: str, text: Path, tmp_path: Path) -> None:
    shutil.copytree(Path(posenc.__file__).parent, tmp_path / "src" / "posenc", ignore=shutil.ignore_patterns("__pycache__"))
    source = tmp_path / "src" / "posenc" / "encodings" / "alibi.py"
    place, planted = BROKEN[when]
    assert place in source.read_text()
    source.write_text(source.read_text().replace(place, place + planted))
    arguments = ["--text", text, "--encodings", "rope,alibi", "--steps", "3", "--out", tmp_path / "out"]
    ended = run(*arguments, PYTHONPATH=str(tmp_path / "src"))
    assert ended.returncode == 1
    failed = {"at once": "2 trials failed (alibi)", "in training": "2 of 4 trials gave no result"}[when]
    assert failed in ended.stderr
    (task,) = findings(tmp_path / "out")["tasks"]
    arms = {arm["name"]: arm for arm in task["arms"]}
    why = {
        "at once": "failed: RuntimeError: planted",
        "in training": "failed: the loss became NaN or infinite at step 1; lower learning_rate",
    }[when]
    assert arms["alibi"]["cells"]["64"]["state"] == why
    assert arms["rope"]["cells"]["64"]["mean"] is not None
    assert f"alibi {why}" in " ".join(ended.stdout.split())
    assert why.removeprefix("failed: ") in (tmp_path / "out" / "report" / "index.html").read_text("utf-8")
