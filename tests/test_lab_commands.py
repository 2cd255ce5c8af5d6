"""posenc lab from end to end on four tiny models: run, run again, resumed, killed, read, added to, used wrongly."""

from __future__ import annotations

import io
import json
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import typer
import yaml

import in_process
import lab_results
from lab_sweeps import Here, without_workers
from posenc.lab.commands.folder import Line
from posenc.lab.commands.run import differences
from posenc.lab.commands.trial import chosen
from posenc.lab.run import budget
from posenc.terminal.interruption import interruptible
from posenc.terminal.replaced import REPLACED, replacement
from sampling import one_in

pytestmark = pytest.mark.usefixtures("foreign_code_here")
ROOT = Path(__file__).parent.parent
OWN = ROOT / "examples" / "log_distance.py"
EXPERIMENT = """
name: tiny
about: {en: To test the commands., zh: 用于测试命令。}
seeds: 1
size: {d_model: 16, n_heads: 2, n_layers: 1}
encodings: [nope, rope]
tasks:
  - task: {name: copy, length: 4, lengths: [4, 8], held_out: 16}
    training: {steps: 4, rows: 4}
  - task: {name: language_model, length: 16, lengths: [16, 32], held_out: 8, targets: 8}
    training: {steps: 4, rows: 4}
    after: [ntk]
"""


TEN = [
    Line(f"{n}bcdef", "copy", word, 0, False, None, 1.0, {})
    for n, word in enumerate(["mine.py:Mine", *(f"rope{n}" for n in range(1, 10))])
]


class Ended(NamedTuple):
    code: int
    out: str
    err: str


def posenc(*arguments: str | Path) -> Ended:
    done = in_process.posenc(*arguments, LC_ALL="C.UTF-8")
    return Ended(done.returncode, done.stdout, done.stderr)


def flat(text: str) -> str:
    """Without the frames and line breaks of the terminal."""
    return " ".join(re.sub("[│╭╮╰╯─]", " ", text).split())


def said(err: str) -> list[str]:
    """Lines that are no progress."""
    return [line for line in err.splitlines() if line and not line.startswith("posenc lab: ")]


class World(NamedTuple):
    """A finished sweep; `run` is the command that made it."""

    folder: Path
    yaml: Path
    text: Path
    ended: Ended

    @property
    def run(self) -> list[str | Path]:
        return ["lab", "run", self.yaml, "--text", self.text, "--workers", "1"]

    def copy(self, to: Path) -> Path:
        shutil.copytree(self.folder, to)
        return to


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    base, source = tmp_path_factory.mktemp("lab"), random.Random(0)
    words = ["the", "of", "and", "to", "in", "a", "is", "that", "for", "it", "as", "was", "with", "be", "by", "on", "not"]
    (base / "books").mkdir()
    for n in range(12):
        (base / "books" / f"{n}.txt").write_text(" ".join(source.choices(words, k=1250)))
    (base / "tiny.yaml").write_text(EXPERIMENT)
    made = World(base / "out", base / "tiny.yaml", base / "books", Ended(0, "", ""))
    with pytest.MonkeyPatch.context() as patch:
        without_workers(patch)
        return made._replace(ended=posenc(*made.run, "--out", made.folder, "--json"))


def trials(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((folder / "trials").iterdir())}


def numbers(folder: Path) -> dict[str, Any]:
    """Every measured number by the name of its trial, without times."""
    return {path.name: pq.read_table(path).to_pylist() for path in sorted((folder / "trials").glob("*.parquet"))}


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# Help -----------------------------------------------------------------------------------------------------------------


def test_help_names_the_five_and_loads_nothing_slow() -> None:
    for arguments in (["lab", "--help"], ["lab", "run", "--help"]):
        command = [sys.executable, "-X", "importtime", "-m", "posenc", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        loaded = {line.split("|")[-1].strip() for line in done.stderr.splitlines()}
        assert not {"torch", "numpy", "posenc.lab", "duckdb", "pyarrow", "yaml", "ray"} & loaded
    shown = posenc("lab", "--help").out
    for name in ("run", "report", "list", "show", "add", "repeat", "publish"):
        assert re.search(rf"^│ {name} ", shown, re.MULTILINE)
        one = posenc("lab", name, "--help")
        assert one.code == 0
        assert "Examples:" in one.out
    assert "lab" in posenc("--help").out


def test_the_list_of_presets_says_what_each_costs() -> None:
    from posenc.lab import experiment, tasks

    described = json.loads(posenc("lab", "list", "--json").out)
    assert [one["name"] for one in described["presets"]] == list(experiment.PRESETS)
    assert [one["name"] for one in described["tasks"]] == list(tasks.names())
    micro = next(one for one in described["presets"] if one["name"] == "micro")
    settings = yaml.safe_load((ROOT / "src/posenc/lab/presets/micro.yaml").read_text("utf-8"))
    assert micro["trials"] == settings["seeds"] * len(settings["encodings"]) * len(settings["tasks"])
    assert micro["tokens"] > 0
    for lang, word in (("en", "what it is for"), ("zh", "用途")):
        shown = posenc("lab", "list", "--lang", lang)
        assert word in shown.out
        assert "quick" in shown.out
        assert "masked_language_model" in shown.out


def test_the_last_line_counts_what_diverged_and_what_else_the_folder_holds(tmp_path: Path) -> None:
    from rich.console import Console

    from posenc.lab.commands.run import say_end
    from posenc.lab.experiment import parse
    from posenc.lab.run.sweep import Outcome, Problem

    diverged = tuple(Problem(trial, "the loss became NaN") for trial in parse(EXPERIMENT, ROOT).trials()[:2])
    console = Console(file=io.StringIO(), record=True)
    say_end(Outcome(1, 3, (), (), 1, 2.0, 0, diverged), tmp_path, console, "posenc lab")
    say_end(Outcome(4, 0, (), (), 2, 2.0), tmp_path, console, "posenc lab")
    others = "with other settings or another text"
    assert console.export_text().splitlines() == [
        f"posenc lab: 1 trial run, 3 found, 0 failed, 2 diverged, 2 s; the folder also holds 1 trial {others}",
        f"posenc lab: 4 trials run, 0 found, 0 failed, 2 s; the folder also holds 2 trials {others}",
    ]


def test_no_console_makes_an_emoji_of_a_name_between_colons() -> None:
    """An error says bad.py:X: and means it."""
    paths = [*(ROOT / "src/posenc").glob("*/commands/*.py")]
    assert len(paths) > 20
    for path in paths:
        for made in re.findall(r"Console\(.*", path.read_text("utf-8")):
            assert "emoji=False" in made, path.name


# A whole run ----------------------------------------------------------------------------------------------------------


def test_json_alone_is_on_the_standard_output(world: World) -> None:
    assert world.ended.code == 0, world.ended.err
    found = json.loads(world.ended.out)
    assert found["name"] == "tiny"
    assert found["trials"] == {"expected": 4, "found": 4, "failed": 0}
    assert [task["name"] for task in found["tasks"]] == ["copy", "language_model"]
    assert [arm["name"] for arm in found["tasks"][0]["arms"]] == ["nope", "rope"]
    assert found["text"]["source"] == "books"
    assert found["command"] == "posenc lab run tiny.yaml --text books"
    assert "posenc lab: 0 of 4 trials found, 4 to run" in world.ended.err
    assert re.search(r"posenc lab: 4 of 4  language_model rope seed 0: \d\.\d\d", world.ended.err)
    assert "4 trials run, 0 found, 0 failed" in world.ended.err
    assert said(world.ended.err) == []


def test_the_report_is_there_and_no_path_of_the_machine_is(world: World) -> None:
    assert (world.folder / "report" / "index.html").is_file()
    for path, content in contents(world.folder).items():
        if path.suffix == ".parquet":
            content = json.dumps(pq.read_table(path).schema.metadata[b"posenc"].decode()).encode()
        for private in (str(world.folder.parent), str(Path.home()), sys.prefix):
            assert private.encode() not in content, path.name


def test_run_again_it_trains_nothing_and_changes_nothing(world: World) -> None:
    before = trials(world.folder)
    again = posenc(*world.run, "--out", world.folder)
    assert again.code == 0
    assert "0 trials run, 4 found, 0 failed" in again.err
    assert trials(world.folder) == before
    for word in ("Copy", "Language model on bytes", "NoPE", "RoPE", "index.html and 9 other files"):
        assert word in again.out
    chinese = posenc("lab", "report", world.folder, "--lang", "zh")
    assert "未学会" in chinese.out
    assert "not learnt" not in chinese.out


def test_needs_in_chinese_have_chinese_punctuation(tmp_path: Path) -> None:
    from rich.console import Console

    from posenc.lab.commands.table import show
    from posenc.lab.findings.assemble import findings

    console = Console(file=io.StringIO(), record=True, width=300)
    show(findings(lab_results.write(tmp_path, tasks=["language_model"])), console, "zh")
    needs = [line for line in console.export_text().splitlines() if line.startswith("→")]
    assert needs
    assert all("：" in line and ": " not in line and "（" in line for line in needs)


@pytest.mark.acceptance
def test_resumed_without_naming_it_runs_what_is_missing(world: World, tmp_path: Path) -> None:
    out = world.copy(tmp_path / "out")
    (lost,) = (out / "trials").glob("copy-rope-*")
    lost.unlink()
    resumed = posenc("lab", "run", "--resume", "--out", out, "--text", world.text, "--workers", "1")
    assert resumed.code == 0, resumed.err
    assert "1 trial run, 3 found" in resumed.err
    assert numbers(out) == numbers(world.folder)
    manifest = json.loads((out / "experiment.json").read_text("utf-8"))
    assert manifest["command"] == "posenc lab run tiny.yaml --text books"


@pytest.mark.acceptance
def test_the_same_experiment_with_more_seeds_and_encodings_trains_what_it_adds(world: World, tmp_path: Path) -> None:
    """It takes the place of the folder's experiment; with other settings, or fewer seeds, it is refused as before."""
    out, grown = world.copy(tmp_path / "out"), tmp_path / "grown.yaml"
    more = EXPERIMENT.replace("seeds: 1", "seeds: 2").replace("[nope, rope]", "[nope, rope, alibi]")
    grown.write_text(more)
    run: list[str | Path] = ["lab", "run", grown, "--text", world.text, "--workers", "1", "--out", out]
    ended = posenc(*run)
    assert ended.code == 0, ended.err
    assert "8 trials run, 4 found" in ended.err
    assert trials(world.folder).items() <= trials(out).items()
    before = contents(out)
    grown.write_text(more.replace("steps: 4", "steps: 5"))
    assert "holds another experiment" in posenc(*run).err
    tuned = "{steps: 4, rows: 4}\n    learning_rates: [0.001, 0.01]"  # whose trials have the same keys until one is chosen
    grown.write_text(more.replace("{steps: 4, rows: 4}", tuned, 1))
    assert "holds another experiment" in posenc(*run).err
    grown.write_text(EXPERIMENT)
    assert "seeds 2 instead of 1" in posenc(*run).err
    assert contents(out) == before


def test_more_seeds_need_no_file_and_a_dry_run_writes_nothing(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, measure = tmp_path / "copied", budget.speeds
    shutil.copytree(world.folder, out)
    before = contents(out)
    measured: list[Any] = []  # once: trials are timed in processes

    def speeds(*asked: Any) -> Any:
        if not measured:
            measured.append(measure(*asked))
        return measured[0]

    monkeypatch.setattr(budget, "speeds", speeds)
    given = ("lab", "run", "--resume", "--out", out, "--text", world.text, "--workers", "1")
    dry = posenc(*given, "--seeds", "2", "--dry-run")
    assert dry.code == 0, dry.err
    assert "8 trials: 4 kept, 4 to run; about " in dry.out
    assert [line.split(":")[0].strip() for line in dry.out.splitlines() if line.startswith("  ")] != []
    told = json.loads(posenc(*given, "--seeds", "2", "--dry-run", "--json").out)
    assert told["kept"] == 4
    assert told["not_timed"] == []
    assert told["encodings"].keys() == {"nope", "rope"}
    assert told["processor_hours"] == pytest.approx(sum(told["encodings"].values()))
    assert told["processor_hours"] > 0
    assert contents(out) == before

    with monkeypatch.context() as patch:
        patch.setattr("posenc.lab.engines.named", lambda *_: Here())
        more = posenc(*given, "--seeds", "2")
    assert more.code == 0, more.err
    assert "4 trials run, 4 found" in more.err
    kept = json.loads((out / "experiment.json").read_text())
    assert kept["experiment"]["seeds"] == 2
    assert kept["command"].endswith(" && posenc lab run --resume --out lab-tiny --seeds 2")
    assert json.loads(posenc(*given, "--dry-run", "--json").out)["hours"] == 0
    fewer = posenc(*given, "--seeds", "1")
    assert fewer.code == 2
    assert "expected at least 2" in flat(fewer.err)


def test_somebody_who_watches_sees_every_task_and_the_time_left() -> None:
    from rich.console import Console

    from posenc.lab.commands.progress import State
    from posenc.lab.experiment import TUNING_SEED, parse
    from posenc.lab.run.sweep import Update

    experiment = parse(EXPERIMENT, ROOT)
    first, second, third, fourth = experiment.trials()
    state = State(experiment)
    assert state.line(Update("found", first, 1.0, None, 1, 4, None)) == ""
    assert state.line(Update("running", second, 0.0, None, 1, 4, None)) == "1 of 4 trials found, 3 to run"
    assert state.line(Update("running", third, 0.43, None, 1, 4, 65.0)) == ""
    done = Update("done", second, 1.0, None, 2, 4, 62.0, 0.25)
    assert state.line(done) == "2 of 4  copy rope seed 0: 0.25  1:02 left"
    failed = Update("failed", fourth, 1.0, "it broke", 3, 4, 61.0)
    assert state.line(failed) == "3 of 4  language_model rope seed 0: failed: it broke  1:01 left"
    console = Console(width=100, file=io.StringIO(), record=True)
    console.print(state.table())
    shown = console.export_text()
    assert re.search(r"copy +2/2 +rope s0: 0.25", shown)
    assert re.search(r"language_model +1/2 +nope s0 43% +rope s0: failed", shown)
    assert "3 of 4 trials  1:01 left" in shown
    assert state.line(Update("measuring", None, 0.0, "exact properties", 4, 4, None)) == "measuring exact properties"
    assert state.line(Update("measuring", None, 0.5, "exact properties", 4, 4, None)) == ""
    assert "measuring exact properties" in state.caption()
    diverged = Update("done", second, 1.0, "the loss became NaN", 4, 4, None, 0.25)
    assert state.line(diverged) == "4 of 4  copy rope seed 0: diverged: the loss became NaN"
    tuning = second.model_copy(update={"seed": TUNING_SEED, "options": (("base", 500.0),)})
    state.line(Update("running", tuning, 0.5, None, 4, 4, None))
    assert state.line(Update("done", tuning, 1.0, None, 4, 4, None, 0.25)) == (
        "4 of 4  copy rope tuning, rate 0.004, base 500: 0.25"
    )
    assert state.last["copy"] == "rope tuning, rate 0.004, base 500: 0.25"
    assert state.line(Update("note", None, 1.0, "a file was not whole", 4, 4, None)) == "a file was not whole"


# Read -----------------------------------------------------------------------------------------------------------------


def by_hand(rows: list[dict[str, Any]], kind: str, length: int) -> float:
    of = [row for row in rows if row["kind"] == kind and row["length"] == length and row["mode"] == "same targets"]
    of = [row for row in of if not row["change"]]
    weights = [row["weight"] if kind == "bits" else 1.0 for row in of]
    return sum(row["value"] * weight for row, weight in zip(of, weights, strict=True)) / sum(weights)


def test_a_folder_lists_its_trials_with_scores(world: World, tmp_path: Path) -> None:
    out = world.copy(tmp_path / "out")
    (lost,) = (out / "trials").glob("language_model-nope-*")
    rows = {path.name: pq.read_table(path).to_pylist() for path in (out / "trials").iterdir()}
    lost.unlink()
    listed = json.loads(posenc("lab", "list", out, "--json").out)["trials"]
    assert [(one["task"], one["encoding"], one["seed"], one["state"]) for one in listed] == [
        ("copy", "nope", 0, "finished"), ("copy", "rope", 0, "finished"),
        ("language_model", "nope", 0, "missing"), ("language_model", "rope", 0, "finished"),
    ]  # fmt: skip
    for one in listed:
        if one["state"] == "finished":
            (name,) = (name for name in rows if name.endswith(f"{one['key'][:16]}.parquet"))
            kind = {"copy": "exact", "language_model": "bits"}[one["task"]]
            for length, value in one["scores"].items():
                assert value == pytest.approx(by_hand(rows[name], kind, int(length)), abs=1e-6)
            assert len(one["scores"]) == 2
    table = posenc("lab", "list", out).out
    assert "missing" in table
    assert f"16: {listed[3]['scores']['16']:.2f}" in table.replace("\u00a0", " ")


def test_one_trial_by_its_words_or_its_key(world: World) -> None:
    shown = json.loads(posenc("lab", "show", "language_model", "rope", "--in", world.folder, "--json").out)
    assert shown["trial"]["task"]["lengths"] == [16, 32]
    assert shown["curve"]["step"][-1] == 4
    changes = {(one["change"], one["mode"], one["length"]) for one in shown["scores"]}
    assert {("", "same targets", 16), ("", "same targets", 32), ("ntk", "same targets", 32)} <= changes
    same = json.loads(posenc("lab", "show", shown["key"][:9], "--in", world.folder, "--json").out)
    assert same == shown
    table = flat(posenc("lab", "show", "language_model rope seed 0", "--in", world.folder).out)
    assert shown["key"] in table
    assert "learning_rate 0.004" in table
    assert f"{shown['curve']['bits'][0]:.2f} → {shown['curve']['bits'][-1]:.2f} bits, 4 steps" in table
    (ntk,) = (one for one in shown["scores"] if one["change"] == "ntk" and one["length"] == 32)
    assert f"{ntk['bits']:.3f}" in table


def test_a_narrow_terminal_shows_whole_numbers(world: World) -> None:
    """Of a task in bits without the column that is 0 throughout; of an exact one with it."""
    for task in ("copy", "language_model"):
        words = ["lab", "show", task, "rope", "--in", str(world.folder)]
        shown = in_process.posenc(*words, COLUMNS="80").stdout
        described = json.loads(posenc(*words, "--json").out)
        for score in described["scores"]:
            assert f" {score['bits']:.3f} " in shown
            assert f" {score['right']:.3f} " in shown
        assert "…" not in shown
        assert (" exact " in shown) == (task == "copy" or any(score["exact"] for score in described["scores"]))


def test_a_trial_shows_what_the_experiment_and_tuning_set_of_its_encoding() -> None:
    """They decide its numbers."""
    from rich.console import Console

    from posenc.lab.commands.show import _show
    from posenc.lab.experiment import parse

    (trial, *_) = parse(EXPERIMENT, ROOT).trials()
    chosen = trial.model_copy(update={"settings": (("first_length", 16),), "options": (("base", 500.0),)})
    times = {"training": 1.0, "scoring": 1.0}
    described = {"trial": chosen.model_dump(mode="json"), "key": "k", "seconds": times, "finished": "", "parameters": 1}
    described |= {"encoding_parameters": 0, "trained_tokens": 1, "machine": {}, "provenance": {}, "failed": None}
    described |= {"cannot": {}, "chance": {}, "scores": [], "curve": {"bits": [], "step": []}}
    described |= {"last_fifth": {"fell": 0.063, "still_improving": True}}
    console = Console(file=io.StringIO(), record=True)
    _show(TEN[0], described, console)
    shown = console.export_text()
    assert re.search(r"^settings +first_length 16 *$", shown, re.MULTILINE)
    assert re.search(r"^tuned +base 500.0 *$", shown, re.MULTILINE)
    assert "the loss fell by 0.06 bits: still improving" in shown


def test_a_trial_says_whether_it_still_improved() -> None:
    """As its report says, for shipped results: NoPE did, and RoPE dropped at the end, whose last phase alone counts."""
    study = ROOT / "results" / "study"
    (unfinished,) = re.findall(r"training was too short: \*\*(.*)\*\*", (study / "report" / "report.md").read_text("utf-8"))
    for name, title in (("nope", "NoPE"), ("rope+dropped", "RoPE, dropped"), ("alibi", "ALiBi")):
        words = ["lab", "show", "language_model", name, "seed", "0", "--in", str(study)]
        shown = json.loads(in_process.posenc(*words, "--json").stdout)
        assert shown["last_fifth"]["still_improving"] == (title in unfinished)
    told = flat(in_process.posenc(*words).stdout)
    assert re.search(r"the loss fell by 0\.0\d bits: finished improving", told)
    assert f"posenc lab repeat {shown['key'][:9]} --in {study}" in told


def test_another_experiment_is_told_apart_in_the_words_of_its_file() -> None:
    from posenc.lab.experiment import parse, read_experiment

    def dumped(text: str) -> dict[str, Any]:
        return parse(text, ROOT).model_dump(mode="json")

    ours, micro = dumped(EXPERIMENT), read_experiment("micro").model_dump(mode="json")
    several = dumped(EXPERIMENT.replace("steps: 4", "steps: 5", 1) + "first_seed: 3\nproperties: true\nbudget: 60")
    assert differences(ours, several) == [
        "steps 4 instead of 5",
        "first_seed 0 instead of 3",
        "budget none instead of 60",
        "properties false instead of true",
    ]
    assert differences(ours, micro) == ["name tiny instead of micro", "other encodings", "seeds 1 instead of 2"]
    assert differences(ours, dumped(EXPERIMENT.replace("To test", "About"))) == ["other about"]


@pytest.mark.acceptance
def test_a_trial_is_repeated_and_compared(world: World, tmp_path: Path) -> None:
    """The same code on this machine gives the same bits; a score that was stored wrongly is found."""
    out = world.copy(tmp_path / "out")
    before = contents(out)
    words = ["lab", "repeat", "language_model", "rope", "seed", "0", "--in", out, "--text", world.text]
    ended = posenc(*words, "--json")
    assert ended.code == 0, ended.err
    found = json.loads(ended.out)
    assert (found["measure"], found["bit_for_bit"], found["same"]) == ("bits", True, True)
    assert {one["allowed"] for one in found["scores"]} == {0.05}  # there is one seed
    stored = {(one["mode"], one["change"], one["length"]): one["stored"] for one in found["scores"]}
    shown = json.loads(posenc("lab", "show", "language_model", "rope", "--in", out, "--json").out)
    assert stored == pytest.approx({(one["mode"], one["change"], one["length"]): one["bits"] for one in shown["scores"]})
    assert contents(out) == before
    spoil(out, "language_model-rope", 0.2)
    ended = posenc(*words)
    assert ended.code == 1
    assert re.search(r"differs by 0\.2 bits at length \d+( \(ntk\))?, where 0\.05 is allowed", flat(ended.err))
    assert "✗" in ended.out
    assert posenc(*words, "--tolerance", "0.21").code == 0
    assert posenc(*words, "--tolerance", "-1").code == 2
    assert posenc(*words[:-2]).code == 1  # without its text
    assert posenc("lab", "repeat", "copy", "rope", "--in", out).code == 0  # which reads none


def spoil(folder: Path, name: str, by: float) -> None:
    """Adds `by` to every stored number of bits of one trial."""
    from posenc.lab.records.record import Record

    (path,) = (folder / "trials").glob(f"{name}-*")
    record = Record.from_parquet(path.read_bytes())
    of_bits = pc.equal(record.rows["kind"].cast("string"), "bits")
    value = pc.if_else(of_bits, pc.add(record.rows["value"], pa.scalar(by, "float32")), record.rows["value"])
    column = record.rows.schema.names.index("value")
    path.write_bytes(Record(record.about, record.rows.set_column(column, "value", value.cast("float32"))).to_parquet())


def test_the_widest_repeated_score_fits_into_80_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from posenc.lab.commands.repeat import show
    from posenc.lab.run.repeat import Score

    monkeypatch.setenv("COLUMNS", "80")
    show("a trial", [Score("random positions", "interpolation@2", 16384, 12.5, 12.1, 0.05)], "bits")
    shown = capsys.readouterr().out
    assert all(name in shown for name in ("differs", "allowed", "interpolation@2", "16384", "-0.4000", "0.05 ✗"))
    assert "…" not in shown


@pytest.mark.acceptance
@pytest.mark.usefixtures("no_workers")
def test_a_repeated_score_may_differ_as_much_as_the_seeds_do(world: World, tmp_path: Path) -> None:
    """.2 bits are too many where the seeds are alike, and the same where another seed is 3 bits away."""
    out, more = world.copy(tmp_path / "out"), tmp_path / "more.yaml"
    more.write_text(EXPERIMENT.replace("seeds: 1", "seeds: 2"))
    assert posenc("lab", "run", more, "--text", world.text, "--workers", "1", "--out", out).code == 0
    words = ["lab", "repeat", "language_model", "rope", "seed", "0", "--in", out, "--text", world.text]
    spoil(out, "language_model-rope-s0", 0.2)
    spoil(out, "language_model-rope-s1", 0.2)  # as if other code had made both
    assert posenc(*words).code == 1
    spoil(out, "language_model-rope-s1", -3.0)
    ended = posenc(*words, "--json")
    found = json.loads(ended.out)
    assert (ended.code, found["same"], found["bit_for_bit"]) == (0, True, False)
    assert all(2.5 < one["allowed"] < 3.5 and abs(one["stored"] - one["again"] - 0.2) < 0.001 for one in found["scores"])
    assert "the same to the tolerance: the largest difference is 0.2 bits at length" in flat(ended.err)
    assert posenc(*words, "--tolerance", "0.19").code == 1


@pytest.mark.parametrize(
    ("recorded", "commands"),
    [
        ("c0de-dirty, beef", ["git checkout c0de  # in the sources of posenc", "pip install '.[lab]'"]),
        ("", ["# in the sources of posenc 0.2.0", "pip install '.[lab]'"]),
    ],
)
def test_a_published_folder_installs_the_code_of_its_trials(recorded: str, commands: list[str]) -> None:
    """A commit where the trials recorded one; otherwise they ran outside the repository, with a release."""
    from posenc.lab.report.publication import install

    told = install({"posenc": "0.2.0", "provenance": {"revision": recorded}}).en.splitlines()
    assert [re.sub(" +#", "  #", line).removesuffix(" -c FOLDER/requirements.txt") for line in told] == commands
    assert told[-1].endswith(" -c FOLDER/requirements.txt")


@pytest.mark.usefixtures("no_workers")
def test_a_published_file_stands_alone(world: World, tmp_path: Path) -> None:
    archive, out = tmp_path / "published.zip", tmp_path / "published"
    ended = posenc(
        "lab", "publish", world.folder, "--out", archive, "--author", "Noether, Emmy", "--author", "The Institute"
    )
    assert ended.code == 0, ended.err
    shutil.unpack_archive(archive, tmp_path)
    assert {"README.md", "README.zh-CN.md", "requirements.txt", "report", "trials", "measurements"} <= set(os.listdir(out))
    assert {"table.tex", "figure.pdf", "report.md"} <= set(os.listdir(out / "report"))
    about = json.loads(posenc("lab", "show", "language_model rope seed 0", "--in", out, "--json").out)
    commit = about["provenance"]["revision"].removesuffix("-dirty")
    assert f"git checkout {commit} " in (out / "README.md").read_text("utf-8")
    cited = yaml.safe_load((out / "CITATION.cff").read_text("utf-8"))
    assert cited["authors"] == [{"family-names": "Noether", "given-names": "Emmy"}, {"name": "The Institute"}]
    assert (cited["cff-version"], cited["type"]) == ("1.2.0", "dataset")
    from posenc.lab.experiment import Experiment, read_experiment

    kept = json.loads((out / "experiment.json").read_text("utf-8"))["experiment"]
    assert read_experiment(str(out / "experiment.yaml")) == Experiment(**kept)
    printed = re.search(r"^posenc (lab repeat .*) --in \.$", (out / "README.md").read_text("utf-8"), re.MULTILINE)
    assert printed is not None
    assert posenc(*printed[1].split(), "--in", out, "--text", world.text).code == 0
    for path, content in contents(out).items():
        assert path.suffix == ".parquet" or str(world.folder.parent).encode() not in content, path.name
    before = archive.read_bytes()
    again = posenc("lab", "publish", world.folder, "--out", archive, "--author", "Noether, Emmy")
    assert (again.code, "which exists" in flat(again.err), archive.read_bytes() == before) == (1, True, True)


def test_a_damaged_file_is_named_by_every_command_and_not_published(world: World, tmp_path: Path) -> None:
    out, words = world.copy(tmp_path / "out"), ["copy", "rope", "--in", tmp_path / "out"]
    (path,) = (out / "trials").glob("copy-rope-*")
    path.write_bytes(path.read_bytes()[:-100])
    why = "not a record of posenc lab, or not all of one; posenc lab run --resume --out"
    for arguments in (["list", out], ["report", out], ["show", *words], ["repeat", *words]):
        ended = posenc("lab", *arguments)
        assert (ended.code, ended.err.count(why)) == (int(arguments[0] in ("show", "repeat")), 1), arguments
        assert path.name in ended.err
    assert "damaged" in posenc("lab", "list", out).out
    ended = posenc("lab", "publish", out, "--out", tmp_path / "published.zip", "--author", "Emmy")
    assert (ended.code, why in ended.err, (tmp_path / "published.zip").exists()) == (1, True, False)


def test_a_lost_or_damaged_experiment_says_how_it_comes_back(world: World, tmp_path: Path) -> None:
    out = world.copy(tmp_path / "out")
    way = f"posenc lab run with the same experiment and --out {out} then writes it again"
    (out / "experiment.json").write_text("{")
    for arguments, argument in ((["list", out], "DIR"), (["run", "--resume", "--out", out], "--out")):
        (line,) = said(posenc("lab", *arguments).err)
        assert line.startswith(f"posenc: {argument}: {out / 'experiment.json'}: not JSON: ")
        assert f"It is damaged; delete it. {way}" in line
    (out / "experiment.json").unlink()
    (line,) = said(posenc("lab", "run", "--resume", "--out", out).err)
    assert line == f"posenc: --out: {out} holds no experiment of posenc lab; its experiment.json is lost. {way} " + (
        "and keeps the finished trials"
    )
    assert "0 trials run, 4 found" in posenc(*world.run, "--out", out).err
    (tmp_path / "docs").mkdir()
    (line,) = said(posenc("lab", "list", tmp_path / "docs").err)
    assert line.endswith("docs holds no experiment of posenc lab; expected a folder that posenc lab run has written")


def test_what_cannot_be_published_is_refused(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    for out, author, message in (
        (world.folder / "inside.zip", "Emmy", "lies in"),
        (tmp_path / "file" / "below.zip", "Emmy", "cannot be made: File exists"),
        (tmp_path / "out", "Emmy", "expected a new file NAME.zip"),
        (tmp_path / "out.zip", " , ", "needs at least one name"),
    ):
        ended = posenc("lab", "publish", world.folder, "--out", out, "--author", author)
        assert (ended.code, message in flat(ended.err)) == (1, True), ended.err
        assert not out.exists()

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("posenc.lab.report.publication.write", interrupted)
    ended = posenc("lab", "publish", world.folder, "--out", tmp_path / "out.zip", "--author", "Emmy")
    assert (ended.code, "nothing was published" in ended.err) == (130, True)
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.acceptance
def test_a_file_that_ends_python_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import sys; sys.exit(3)")
    ended = posenc("lab", "add", f"{tmp_path}/mine.py:Mine")
    assert (ended.code, "sys.exit(3), before the first law; it must only define the class" in flat(ended.err)) == (1, True)
    ended = posenc("lab", "add", f"{OWN}:LogDistance", "--to", tmp_path / "none")
    assert (ended.code, "--to:" in ended.err) == (1, True)


def test_the_folder_here_is_found_where_there_is_one(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert posenc("lab", "show", "copy", "rope").code == 2
    world.copy(tmp_path / "lab-one")
    assert posenc("lab", "show", "copy", "rope").code == 0
    world.copy(tmp_path / "lab-two")
    several = posenc("lab", "show", "copy", "rope")
    assert several.code == 2
    assert "lab-one, lab-two" in flat(several.err)


@pytest.mark.parametrize(("words", "listed"), [(["copy"], 2), (["rope"], 2), (["counting"], 4), (["0" * 64], 4)])
def test_what_names_no_one_trial_lists_them(words: list[str], listed: int, world: World) -> None:
    ended = posenc("lab", "show", *words, "--in", world.folder)
    assert ended.code == 2
    assert len(re.findall(r"\b[0-9a-f]{8}  \w+ \w+ seed 0", ended.err)) == listed


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("copy rope1 sed 0", "'sed' is in no trial here; did you mean seed? Trials:"),
        ("6", "'6' is too short for a key; expected at least 4 of its digits. Trials:"),
        ("copy rope1 seed 70", "'70' is in no trial here. Trials:"),
        ("copy rope1 rope2", "no trial here has all of 'copy rope1 rope2'. Trials:"),
        ("copy", "'copy' is more than one trial. Trials:"),
    ],
)
def test_words_that_name_no_one_trial_are_explained_in_few_lines(words: str, said: str) -> None:
    with pytest.raises(typer.BadParameter) as refused:
        chosen(words.split(), TEN)
    first, *listed = refused.value.message.splitlines()
    assert first == said
    assert listed[0] == "0bcdef  copy mine.py:Mine seed 0"
    assert listed[5:] == ["and 5 more; posenc lab list DIR shows all"]


def test_an_own_encoding_goes_by_its_title() -> None:
    assert chosen(["copy", "Mine", "seed", "0"], TEN) == TEN[0]
    assert chosen(["copy", "Mine", "0"], [TEN[0], TEN[0]._replace(oracle=True)]) == TEN[0]


def test_a_curve_is_drawn_from_lowest_to_highest() -> None:
    from posenc.lab.commands.show import WIDEST, curve
    from posenc.terminal.sparkline import BLOCKS

    assert curve([8.0, 4.5, 1.0]) == "█▅▁" or curve([8.0, 4.5, 1.0]) == "█▄▁"
    assert curve([float(n) for n in range(8)]) == BLOCKS
    assert curve([2.0, 2.0]) == "▁▁"
    assert curve([]) == ""
    long = curve([float(n) for n in range(1000)])
    assert len(long) == WIDEST
    assert list(long) == sorted(long)


def test_a_report_anew_needs_neither_text_nor_training(world: World, tmp_path: Path) -> None:
    out = world.copy(tmp_path / "out")
    shutil.rmtree(out / "report")
    before = contents(out)
    again = posenc("lab", "report", out, "--out", tmp_path / "elsewhere", "--json")
    assert again.code == 0, again.err
    assert json.loads(again.out) == json.loads(world.ended.out)
    assert contents(out) == before
    ours, theirs = contents(tmp_path / "elsewhere"), contents(world.folder / "report")
    assert {path.name for path in ours} == {path.name for path in theirs}


def test_a_report_says_what_is_missing(world: World, tmp_path: Path) -> None:
    out = world.copy(tmp_path / "out")
    for lost in (out / "trials").glob("copy-*"):
        lost.unlink()
    ended = posenc("lab", "report", out)
    assert ended.code == 0
    assert "2 of 4 trials gave no result" in ended.err
    assert "copy rope seed 0: not run" in ended.err
    assert "missing" in ended.out


class Finalised:
    def __del__(self) -> None:
        signal.raise_signal(signal.SIGTERM)


def interrupted_while_finalising() -> None:
    with interruptible("nothing is lost") as look:
        look()
        Finalised()
        look()


def test_an_interrupt_that_python_drops_is_found_by_the_next_look(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python reports and drops what a signal handler raises inside a finaliser."""
    handlers, dropped = {one: signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT)}, list[type]()
    monkeypatch.setattr(sys, "unraisablehook", lambda about: dropped.append(about.exc_type))
    try:
        with pytest.raises(typer.Exit) as ended:
            interrupted_while_finalising()
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    assert dropped == [KeyboardInterrupt]
    assert ended.value.exit_code == 130
    assert capsys.readouterr().err == "posenc: interrupted; nothing is lost\n"


# A researcher's own encoding ------------------------------------------------------------------------------------------


@pytest.mark.acceptance
def test_the_laws_alone() -> None:
    ended = posenc("lab", "add", f"{OWN}:LogDistance")
    assert ended.code == 0, ended.err
    assert ended.err == ""
    from posenc.checking import laws

    assert set(laws.LAWS) == {line.removeprefix("✓ ") for line in ended.out.splitlines()}


@pytest.mark.acceptance
def test_an_own_encoding_enters_the_comparison(world: World, tmp_path: Path) -> None:
    out, mine = world.copy(tmp_path / "out"), tmp_path / "mine.py"
    before = trials(out)
    mine.write_text(OWN.read_text("utf-8"), "utf-8")
    arguments = ["--to", out, "--text", world.text, "--workers", "1", "--json"]
    ended = posenc("lab", "add", f"{mine}:LogDistance", *arguments)
    assert ended.code == 0, ended.err
    assert "2 trials run, 4 found" in ended.err
    found = json.loads(ended.out)
    for task in found["tasks"]:
        assert [arm["name"] for arm in task["arms"]] == ["nope", "rope", "mine.py:LogDistance"]
    after = trials(out)
    assert before.items() <= after.items()
    new = [pq.read_table(out / "trials" / name) for name in after.keys() - before.keys()]
    for table in new:
        trial = json.loads(table.schema.metadata[b"posenc"])["trial"]
        assert trial["source"] == mine.read_text("utf-8")
    assert str(tmp_path) not in (out / "experiment.json").read_text("utf-8")
    assert found["command"] == "posenc lab run tiny.yaml --text books && posenc lab add mine.py:LogDistance --to lab-tiny"
    table = (out / "report" / "table.tex").read_text("utf-8")
    assert re.search(r"^\\textbf\{LogDistance\}.* & \d\.\d\d & \d\.\d\d", table, re.MULTILINE)
    assert (out / "report" / "figure.pdf").read_bytes().startswith(b"%PDF")
    kept = trials(out)
    assert [one["state"] for one in json.loads(posenc("lab", "list", out, "--json").out)["trials"]] == ["finished"] * 6
    mine.write_text(mine.read_text("utf-8") + "# another\n", "utf-8")
    assert posenc("lab", "add", f"{mine}:LogDistance", "--to", out, "--text", world.text, "--no-run").code == 0
    states = [one["state"] for one in json.loads(posenc("lab", "list", out, "--json").out)["trials"]]
    assert states == ["finished", "finished", "missing", "finished", "finished", "missing"]
    assert trials(out) == kept


NO_HEADS = ("    def heads(self, start, stop):", "    def head_slice(self, start, stop):")
FIRST_HEADS = ("self.rate[start:stop]", "self.rate[: stop - start]")
DRAWS = ("        return -F.softplus", "        torch.rand(1)\n        return -F.softplus")
SHIFTS = ("delta.abs().to(self.rate.dtype))", "delta.abs().to(self.rate.dtype))\n\n"
          "    def embed(self, x, at):\n        return x + 0.01 * at.coords[..., None]\n")  # fmt: skip
NO_GRADIENT = ("-F.softplus(self.rate)", "-F.softplus(self.rate.detach())")
RETURNS_NAN = ("-F.softplus(self.rate)", "-torch.sqrt(self.rate - 100)")


@pytest.mark.parametrize(
    ("change", "law"),
    [
        (FIRST_HEADS, "head_slices"),
        pytest.param(DRAWS, "forward_writes_nothing", marks=pytest.mark.acceptance),
        pytest.param(SHIFTS, "shift_invariance", marks=pytest.mark.acceptance),
        pytest.param(NO_GRADIENT, "gradients", marks=pytest.mark.acceptance),
        pytest.param(RETURNS_NAN, "trains on copy", marks=pytest.mark.acceptance),
    ],
)
def test_a_broken_law_refuses_it(change: tuple[str, str], law: str, world: World, tmp_path: Path) -> None:
    out, mine = world.copy(tmp_path / "out"), tmp_path / "mine.py"
    before = contents(out)
    assert change[0] in OWN.read_text("utf-8")
    mine.write_text(OWN.read_text("utf-8").replace(*change), "utf-8")
    ended = posenc("lab", "add", f"{mine}:LogDistance", "--to", out, "--text", world.text)
    assert ended.code == 1
    assert f"✗ {law}" in ended.out
    (line,) = said(ended.err)
    assert law in line or re.search(r" and \d+ more\. It", line)  # every law is on the other output
    assert "not added" in line
    assert contents(out) == before


@pytest.mark.acceptance
def test_an_error_of_attention_is_told_once(tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(OWN.read_text("utf-8").replace("(-1, 1, n_heads)", "(-1, 1, n_heads - 1)"), "utf-8")
    ended = posenc("lab", "add", f"{mine}:LogDistance")
    assert (ended.code, ended.out) == (1, "")
    (line,) = said(ended.err)
    assert "mine.py:LogDistance: attention with it fails at n_heads=4, d_model=128" in line
    assert "a bias for 3 heads" in line


def test_equal_errors_of_laws_are_told_once(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from posenc.checking import Result
    from posenc.lab.commands import add as lab_add

    results = [Result(name, "failed", "ValueError: planted") for name in "abcdefg"]
    monkeypatch.setattr(lab_add, "told", lambda *_, limit: results)
    with pytest.raises(typer.Exit):
        lab_add.check("encoding", "mine.py:Mine", lambda: iter(()), quiet=False, as_json=False)
    out, err = capsys.readouterr()
    assert out.count("planted") == 1
    assert "✗ b: the same error" in out
    assert "breaks 7 of 7: a, b, c, d, e and 2 more. It is not added" in err


BAD = {
    "syntax": ("class Mine(:\n", "Mine", "SyntaxError"),
    "no class": ("x = 1\n", "Mine", "called 'Mine'"),
    "another class": ("class Mine:\n    pass\n", "Mine", "subclass of posenc.PositionalEncoding"),
    "raises": ("raise KeyError('planted')\n", "Mine", "KeyError: 'planted'"),
    "needs more": (
        "import posenc\nclass Mine(posenc.PositionalEncoding):\n    def __init__(self, taste): pass\n",
        "Mine",
        "taste",
    ),
    "no utf-8": (b"\xff\xfe\x00", "Mine", "UTF-8"),
    "absent": (None, "Mine", "no file"),
}


@pytest.mark.parametrize("what", one_in(5, BAD))
def test_a_file_that_is_no_encoding_is_one_line(what: str, tmp_path: Path) -> None:
    source, name, message = BAD[what]
    mine = tmp_path / "mine.py"
    if source is not None:
        mine.write_bytes(source if isinstance(source, bytes) else source.encode())
    ended = posenc("lab", "add", f"{mine}:{name}")
    assert ended.code == 1
    (line,) = said(ended.err)
    assert message in line


# Interrupted ----------------------------------------------------------------------------------------------------------


def test_interrupted_it_keeps_what_is_finished_and_says_how_to_go_on(world: World, tmp_path: Path) -> None:
    long = tmp_path / "long.yaml"
    long.write_text(EXPERIMENT.replace("seeds: 1", "seeds: 9"))
    out = tmp_path / "out"
    command = [sys.executable, "-m", "posenc", "lab", "run", long, "--text", world.text, "--workers", "1", "--out", out]
    process = subprocess.Popen(
        list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    end = time.monotonic() + 200
    while len(list(out.glob("trials/*.parquet"))) < 2:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)  # Ctrl-C reaches the workers too
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    (line,) = said(err)
    assert f"posenc lab run --resume --out {out} --text {world.text}" in line
    kept = trials(out)
    assert 2 <= len(kept) < 36
    assert not (out / "report").exists()
    partial = posenc("lab", "report", out)
    assert partial.code == 0
    assert f"{36 - len(kept)} of 36 trials gave no result" in partial.err
    assert trials(out) == kept


# Used wrongly ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("old", REPLACED)
def test_whoever_has_an_old_command_is_told_what_took_its_place(old: str) -> None:
    """And what is named is there: each `posenc …` of the line is a command that has help."""
    ended = posenc(*old.replace(" …", "").split(), "more")
    told = flat(ended.err)
    assert (ended.code, ended.out) == (2, "")
    assert flat(f"posenc {old.replace(' …', '')} is gone: {REPLACED[old]}") in told
    for named in re.findall(r"posenc (lab \w+|[a-z]\w+)", REPLACED[old]):
        assert posenc(*named.split(), "--help").code == 0, named


def test_a_command_that_is_not_gone_is_not_named(tmp_path: Path) -> None:
    assert replacement(["lab", "run", "quick", "--engine", "ray"]) is None
    assert replacement(["lab", "run", "standards.yaml"]) is None
    assert replacement(["bench", "table_of_mine"]) is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run"], "quick, study"),
        (["run", "quik"], "'quik'"),
        (["run", "quick", "--workers", "0"], "--workers"),
        (["run", "quick", "--engine", "spark"], "spark"),
        (["run", "quick", "--address", "10.0.0.1:6379"], "--engine ray"),
        (["run", "quick", "--device", "tpu"], "tpu"),
        (["run", "quick", "--logger", "paper"], "'paper' is not one of 'tensorboard', 'csv'"),
        (["score", "model", "--task", "chess"], "'chess' is not one of 'perplexity', 'passkey'"),
        (["run", "quick", "--lang", "fr"], "'fr'"),
        (["run", "--resume"], "--out"),
        (["run", "quick", "--resume", "--out", "nowhere"], "'quick'"),
        (["report"], "DIR"),
        (["show"], "TRIAL"),
        (["show", "copy", "--lang", "zh"], "--lang"),
        (["add"], "FILE.py:CLASS"),
        (["add", "mine.py"], "my_encoding.py:MyEncoding"),
        (["add", "mine.txt:Mine"], "'mine.txt:Mine'"),
        (["add", "mine.py:not a name"], "'mine.py:not a name'"),
        (["train"], "train"),
    ],
)
def test_wrong_usage_is_exit_code_2(arguments: list[str], message: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    ended = posenc("lab", *arguments)
    assert ended.code == 2
    assert message in flat(ended.err)
    assert "Value error" not in ended.err
    assert ended.out == ""
    assert list(tmp_path.iterdir()) == []


def test_bad_input_is_exit_code_1_and_one_line(world: World, tmp_path: Path) -> None:
    misspelt, alien, file = tmp_path / "misspelt.yaml", tmp_path / "alien", tmp_path / "file"
    misspelt.write_text(EXPERIMENT.replace("steps: 4", "step: 4", 1))
    unknown = tmp_path / "unknown.yaml"
    unknown.write_text(EXPERIMENT.replace("[nope, rope]", "[nope, rotary]"))
    other = tmp_path / "other.yaml"
    other.write_text(EXPERIMENT.replace("steps: 4", "steps: 5"))
    alien.mkdir()
    (alien / "thesis.txt").write_text("mine")
    file.write_text("a file")
    other_version = tmp_path / "other_version"
    other_version.mkdir()
    manifest = json.loads((world.folder / "experiment.json").read_text("utf-8"))
    manifest["experiment"]["tasks"][0]["training"]["momentum"] = 0.9
    (other_version / "experiment.json").write_text(json.dumps(manifest))
    new, text, before = tmp_path / "new", ["--text", world.text], contents(world.folder)
    cases: list[tuple[list[str | Path], str]] = [
        (["run", "absent.yaml"], "absent.yaml"),
        (["run", misspelt, "--out", new], "step"),
        (["run", unknown, "--out", new], "rope"),
        (["run", world.yaml, "--text", tmp_path / "absent", "--out", new], "neither a file nor a folder"),
        (["run", world.yaml, *text, "--out", file], "is a file"),
        (["run", world.yaml, *text, "--out", alien], "did not write"),
        (["run", other, *text, "--out", world.folder], "another experiment, 'tiny': steps 4 instead of 5; posenc"),
        (["run", world.yaml, "--out", world.folder], "trained on 'books'"),
        (["run", "--resume", "--out", world.folder], "trained on 'books'"),
        (["run", "--resume", "--out", new], "there is no folder"),
        (["run", world.yaml, *text, "--out", new, "--device", "cuda"], "CUDA"),
        (["run", world.yaml, *text, "--out", new, "--engine", "ray", "--address", "nowhere"], "'nowhere'"),
        (["list", other_version], "cannot read the experiment"),
        (["report", new], "there is no folder"),
        (["list", new], "there is no folder"),
        (["show", "copy", "--in", new], "there is no folder"),
        (["add", f"{OWN}:LogDistance", "--to", new], "there is no folder"),
    ]
    import torch

    for arguments, message in cases:
        if message == "CUDA" and torch.cuda.is_available():
            continue
        ended = posenc("lab", *arguments)
        assert ended.code == 1, arguments
        (line,) = said(ended.err)
        assert message in line, arguments
        assert ended.out == ""
        assert not new.exists(), arguments
    assert contents(world.folder) == before


# The pages ------------------------------------------------------------------------------------------------------------


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / "docs" / page).read_text("utf-8"), flags=re.DOTALL)


def test_both_pages_show_the_same() -> None:
    for language in ("python", "sh", "yaml", "sql", "text"):
        assert blocks("lab.md", language) == blocks("lab.zh-CN.md", language)
    from posenc.lab import experiment, tasks
    from posenc.lab.report.words import measured_in

    assert blocks("lab.md", "text")[0].splitlines()[2].startswith(f"{measured_in('bits').en}; trained 500 steps")
    for page in ("lab.md", "lab.zh-CN.md"):
        content = (ROOT / "docs" / page).read_text("utf-8")
        for name in (*experiment.PRESETS, *tasks.names()):
            assert f"\n| `{name}` |" in content


@pytest.mark.acceptance
def test_the_encoding_on_the_page_is_the_example_and_obeys_the_laws(tmp_path: Path) -> None:
    code = blocks("lab.md", "python")[0]
    assert OWN.read_text("utf-8").endswith('\n"""\n\n' + code)
    (tmp_path / "log_distance.py").write_text(code, "utf-8")
    assert posenc("lab", "add", f"{tmp_path / 'log_distance.py'}:LogDistance").code == 0


@pytest.mark.acceptance
def test_the_refusal_on_the_page_is_what_is_said(tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(OWN.read_text("utf-8").replace(*NO_HEADS), "utf-8")
    accepted = posenc("lab", "add", f"{mine}:LogDistance")
    assert accepted.code == 0  # slices of the heads are for tensor parallelism, which the lab does not use
    assert blocks("lab.md", "text")[2] in accepted.out


def test_the_experiment_on_the_page_is_one() -> None:
    from posenc.lab.experiment import parse

    (text,) = blocks("lab.md", "yaml")
    experiment = parse(text, ROOT)
    assert len(experiment.tuning()) == 3 * 2
    assert len(experiment.trials()) == 3 * 5 * 2
    assert {trial.after for trial in experiment.trials() if trial.encoding == "rope" and not trial.oracle} == {
        ("ntk", "yarn")
    }


def test_the_commands_on_the_page_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every option and preset: each command gets as far as the folder or the file that is not here."""
    from posenc.lab.experiment import PRESETS

    lines = [shlex.split(line, comments=True) for block in blocks("lab.md", "sh") for line in block.splitlines()]
    assert len(lines) == 14
    monkeypatch.chdir(tmp_path)
    for words in lines:
        if words[0] == "sbatch":  # which takes the command as one word
            words = shlex.split(words[-1])
        name, *rest = words[words.index("lab") + 1 :]
        help_ = flat(posenc("lab", name, "--help").out)
        for option in (word for word in rest if word.startswith("--")):
            assert f"{option} " in help_, words
        if name == "run" and not rest[0].startswith("--"):
            assert rest[0] in PRESETS
        elif name in ("report", "list", "show", "add", "repeat", "publish") and rest:
            assert posenc("lab", name, *rest).code in (1, 2)


def test_the_queries_on_the_page_answer(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world.copy(tmp_path / "lab-quick")
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {}
    exec(blocks("lab.md", "python")[2], namespace)
    bits, changed, seconds = (namespace["database"].sql(query).fetchall() for query in blocks("lab.md", "sql"))
    listed = json.loads(posenc("lab", "list", tmp_path / "lab-quick", "--json").out)["trials"]
    expected = [
        (one["encoding"], int(length), one["seed"], pytest.approx(value))
        for one in listed if one["task"] == "language_model" for length, value in one["scores"].items()
    ]  # fmt: skip
    assert bits == expected
    (path,) = (world.folder / "trials").glob("language_model-rope-*")
    of = [row for row in pq.read_table(path).to_pylist() if row["kind"] == "bits" and row["mode"] == "same targets"]
    by_hand = {(row["length"], row["item"], row["change"] or ""): row["value"] for row in of}
    assert len(changed) == len({key[:2] for key in by_hand}) > 2
    for length, item, unchanged, ntk in changed:
        assert unchanged == by_hand[length, item, ""]
        assert ntk == by_hand.get((length, item, "ntk"))
    assert any(ntk is not None and ntk != unchanged for *_, unchanged, ntk in changed)
    assert len(seconds) == 4
