"""Every reader of JSON and YAML that somebody else wrote: what is no such text is one line, no traceback and no guess."""

from __future__ import annotations

import gzip
import json
import shutil
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import in_process
import lab_results
from cases import cases
from posenc.checking import table_files
from posenc.configs import ConfigError, headers, read_config
from posenc.configs.convert.source import look
from posenc.explorer import views
from posenc.lab.experiment import read_experiment, strict_yaml
from posenc.lab.records.results import Folder
from posenc.support import strict_json

SOON = 5.0  # seconds that any of these may take

# JSON -----------------------------------------------------------------------------------------------------------------

LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 1476\n"
PAGE = b"\xef\xbb\xbf\n<!-- saved --><!DOCTYPE html>\n<html><head><title>Sign in</title>"
NO_JSON: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "not JSON: it is empty; download or save it again"),
    "a pointer of Git LFS": (LFS, "not JSON: it is a pointer of Git LFS, which keeps the file elsewhere; run git lfs pull"),
    "a pointer of git-annex": (b"/annex/objects/SHA256E-s14--4d7a.json\n", "not JSON: it is a pointer of git-annex"),
    "a link of git-annex as text": (b"../.git/annex/objects/xQ/1k/SHA256E", "not JSON: it is a pointer of git-annex"),
    "a web page": (PAGE, "not JSON: it is a web page (HTML): download the file itself"),
    "a message in XML": (b"<?xml version='1.0'?><Error>AccessDenied</Error>", "not JSON: it is XML, perhaps a server"),
    "a server's words": (b"Entry not found", "not JSON: begins with 'Entry not found'"),
    "gzip": (gzip.compress(b'{"a": 1}'), "not a text file in UTF-8: it is a gzip archive; unpack it first"),
    "zip": (b"PK\x03\x04\x14\x00\x00\x00\x08\x00", "not JSON: it is a zip archive"),
    "zeros": (bytes(64), "not JSON: it begins with zeros, as a download that broke off"),
    "safetensors": (b"\x40\x01\x00\x00\x00\x00\x00\x00{}", "not JSON: it is a safetensors file"),
    "GGUF": (b"GGUF\x03\x00\x00\x00", "not JSON: it is a GGUF file"),
    "blank": (b" \n\t ", "not JSON"),
    "a byte order mark alone": (b"\xef\xbb\xbf", "not JSON"),
    "a word": (b"posenc", "not JSON"),
    "half of an object": (b'{"a": 1', "not JSON"),
    "half of a list": (b"[1, 2", "not JSON"),
    "half of a text": (b'{"a": "b', "not JSON"),
    "a comma too many": (b'{"a": 1,}', "not JSON"),
    "a comma too few": (b'{"a": 1 "b": 2}', "not JSON"),
    "single quotes": (b"{'a': 1}", "not JSON"),
    "a name without quotes": (b"{a: 1}", "not JSON"),
    "a comment": (b'{"a": 1} // one', "not JSON"),
    "two values": (b'{"a": 1} {"a": 2}', "not JSON"),
    "a number as a name": (b'{1: "a"}', "not JSON"),
    "a leading zero": (b'{"a": 010}', "not JSON"),
    "a hexadecimal number": (b'{"a": 0x10}', "not JSON"),
    "an underscore": (b'{"a": 1_000}', "not JSON"),
    "a plus": (b'{"a": +1}', "not JSON"),
    "a point without digits": (b'{"a": .5}', "not JSON"),
    "Python's words": (b'{"a": None}', "not JSON"),
    "a line break in a text": (b'{"a": "b\nc"}', "not JSON"),
    "an unknown escape": (b'{"a": "\\q"}', "not JSON"),
    "a NUL": (b'{"a": "\x00"}', "not JSON"),
    "NaN": (b'{"a": NaN}', "holds NaN"),
    "minus infinity": (b'{"a": -Infinity}', "holds -Infinity"),
    "beyond float64": (b'{"a": 1e999}', "holds 1e999, which is beyond float64"),
    "4 000 digits": (b'{"a": 1' + b"0" * 4000 + b"}", "holds a number of 4,001 digits, 1000"),
    "a name twice": (b'{"a": 1, "b": 2, "a": 3}', "the key 'a' occurs twice; keep one"),
    "a name twice, deep": (b'{"b": [{"a": 1, "a": 1}]}', "the key 'a' occurs twice"),
    "a name twice, by an escape": (b'{"a": 1, "\\u0061": 3}', "the key 'a' occurs twice"),
    "a name twice among 30 000": (
        b"{" + b"".join(b'"k%d": 1, ' % n for n in range(30_000)) + b'"k5": 1}',
        "the key 'k5' occurs twice; keep one",
    ),
    "half of a surrogate pair": (b'{"a": "\\ud800"}', "holds half of a surrogate pair"),
    "half of a pair as a name": (b'{"\\udfff": 1}', "holds half of a surrogate pair"),
    "UTF-16": ('{"a": 1}'.encode("utf-16"), "not a text file in UTF-8: it is a text in UTF-16; save it in UTF-8"),
    "Latin 1": ('{"é": 1}'.encode("latin-1"), "not a text file in UTF-8"),
    "bytes": (bytes(range(256)), "not a text file in UTF-8"),
    "20 000 brackets": (b"[" * 20_000, "nested too deeply"),
    "20 000 pairs of brackets": (b"[" * 20_000 + b"]" * 20_000, "nested too deeply"),
    "20 000 objects": (b'{"a":' * 20_000 + b"1" + b"}" * 20_000, "nested too deeply"),
    "33 levels": (b'{"a":' * 33 + b"1" + b"}" * 33, "nested deeper than 32 levels"),
}


@cases("case", NO_JSON)
def test_the_reader_itself(case: str, tmp_path: Path) -> None:
    text, said = NO_JSON[case]
    (path := tmp_path / "file.json").write_bytes(text)
    with pytest.raises(ValueError, match=r"^") as refused:
        strict_json.read(path)
    assert str(refused.value).startswith(f"{path}: {said}")


KINDS = {
    "a pointer of Git LFS": (LFS, "it is a pointer of Git LFS, which keeps the file elsewhere; run git lfs pull"),
    "a pointer of git-annex": (b"/annex/objects/SHA256E-s14--4d7a\n", "it is a pointer of git-annex"),
    "a web page": (PAGE, "it is a web page (HTML): download the file itself"),
    "nothing": (b"", "it is empty; download or save it again"),
    "zeros": (bytes(64), "it begins with zeros"),
    "gzip": (gzip.compress(b"posenc" * 9), "it is a gzip archive; unpack it first"),
    "a pickle in a zip": (b"PK\x03\x04" + bytes(30), "it is a zip archive (a checkpoint of torch.save is one)"),
    "a pickle": (b"\x80\x04\x95" + bytes(range(200, 230)), "it is a pickle"),
    "a server's words": (
        b"Access to model x is restricted.",
        "it is a text that begins with 'Access to model x is restricte'",
    ),
    "JSON": (b'{"model_type": "llama", "hidden_size": 64}', """it is a text that begins with '{"model_type": "llama","""),
}


@pytest.mark.parametrize("case", KINDS)
def test_a_file_in_the_place_of_weights_is_named(case: str, tmp_path: Path) -> None:
    """Alone, as what convert is given, and beside a config.json."""
    text, said = KINDS[case]
    for name, read in (("a.safetensors", headers.read_header), ("a.gguf", read_config)):
        (path := tmp_path / name).write_bytes(text)
        with pytest.raises(ConfigError) as refused:
            read(path)
        kind = "GGUF" if name.endswith("gguf") else "safetensors"
        assert str(refused.value).startswith(f"{path}: not a {kind} file: {said}")
    done = in_process.posenc("convert", tmp_path / "a.safetensors", tmp_path / "new", "--to", "interleaved", "--heads", "2")
    assert done.returncode != 0
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    done = in_process.posenc("inspect", tmp_path, "--json")
    assert any(said in one["text"] for one in json.loads(done.stdout)["remarks"] if one["grade"] == "error")


def test_other_files_of_a_model_and_links_to_nothing_are_named(tmp_path: Path) -> None:
    for keys, said in (
        ({"metadata": {}, "weight_map": {}}, "the index of a checkpoint's files"),
        ({"version": "1.0", "added_tokens": []}, "a tokenizer"),
        ({"peft_type": "LORA", "base_model_name_or_path": "x"}, "the configuration of an adapter"),
        ({"error": "Repository not found"}, "perhaps the message of a server"),
    ):
        with pytest.raises(ConfigError, match=rf"^model_type: missing; this is {said}: give the model's config\.json$"):
            read_config(keys)
    (tmp_path / "config.json").symlink_to("../.git/annex/objects/x")
    for source in (tmp_path, tmp_path / "config.json"):
        with pytest.raises(
            FileNotFoundError, match=r"config\.json: a link to \.\./\.git/annex/objects/x, which is not there"
        ):
            read_config(source)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("inspect", "-"), "posenc: -: standard input is closed; give a config.json, or write one into a pipe\n"),
        (("inspect", "-", "--json"), "posenc: -: standard input is closed"),
        (("compare-configs", "-", "absent.json"), "posenc: -: standard input is closed"),
        (("choose", "--domain", "video"), ""),
    ],
)
def test_standard_input_that_a_shell_has_closed(
    command: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """posenc inspect - <&-: Python then has None in its place."""
    monkeypatch.setattr("sys.stdin", None)
    done = in_process.posenc(*command)
    assert done.stderr.startswith(said)
    assert "Traceback" not in done.stderr
    assert done.returncode == (1 if said else 0)


def test_what_the_standard_allows_is_read() -> None:
    text = '\ufeff {"a": [1, -0.5e-3, true, null, "\\ud83d\\ude00", "é"], "": {"a": 1e308}} '
    assert strict_json.loads(text.encode()) == {"a": [1, -0.0005, True, None, "😀", "é"], "": {"a": 1e308}}
    assert strict_json.loads(b'{"a":' * 32 + b"1" + b"}" * 32)["a"]["a"]["a"]
    assert strict_json.loads(b"1" * 300) == int("1" * 300)
    assert strict_json.loads(b"[Infinity]", {"Infinity": 9.0}) == [9.0]


def test_a_text_that_is_too_large(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(strict_json, "MOST_BYTES", 2**20)
    (path := tmp_path / "large.json").write_bytes(b"[" + b"1," * 2**20 + b"1]")
    with pytest.raises(ValueError, match=r"large\.json: larger than 1 MiB"):
        strict_json.read(path)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of results that nobody ran, which every command of the lab reads."""
    return lab_results.write(tmp_path_factory.mktemp("results") / "out", tasks=["language_model"], seeds=1)


def header(text: bytes) -> bytes:
    return struct.pack("<Q", len(text)) + text


def configuration(folder: Path, text: bytes) -> None:
    (folder / "config.json").write_bytes(text)
    read_config(folder)


def safetensors(folder: Path, text: bytes) -> None:
    (path := folder / "a.safetensors").write_bytes(header(text.ljust(2)))
    headers.read_header(path)


def index(folder: Path, text: bytes) -> None:
    (folder / "a.safetensors").write_bytes(header(b"{}"))
    (folder / "model.safetensors.index.json").write_bytes(text)
    look(folder, folder.parent / "new")


def experiment(folder: Path, text: bytes) -> None:
    (folder / "trials").mkdir(exist_ok=True)
    (folder / "experiment.json").write_bytes(text)
    Folder(folder, "DIR")


def table(folder: Path, text: bytes) -> None:
    table_files.read_table(b"[" + text if text[:1] not in (b"[", b"{") else text)


def shown_configuration(name: str) -> Callable[[Path, bytes], None]:
    def shown(_: Path, text: bytes) -> None:
        try:
            words = text.decode()
        except UnicodeDecodeError:  # the page sends text
            raise ValueError("not a text file in UTF-8") from None
        views.data(name, {"config": words or "{"})

    return shown


READERS: dict[str, Callable[[Path, bytes], None]] = {
    "config.json": configuration,
    "safetensors": safetensors,
    "index of a checkpoint": index,
    "experiment.json": experiment,
    "a table for the explorer": table,
    "a configuration for the extrapolation view": shown_configuration("extrapolation"),
    "a configuration for the wavelengths view": shown_configuration("wavelengths"),
}


@pytest.mark.parametrize("reader", READERS)
@cases("case", NO_JSON)
def test_every_reader_of_json(case: str, reader: str, tmp_path: Path) -> None:
    text, _ = NO_JSON[case]
    if case == "blank" and reader.endswith("view"):
        return  # an empty field is no configuration
    begun = time.process_time()
    with pytest.raises(ValueError, match=r".") as refused:
        READERS[reader](tmp_path, text)
    assert time.process_time() - begun < SOON
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 600


@pytest.mark.parametrize("case", NO_JSON)
def test_a_bad_measurement_is_reported_as_damaged(case: str, results: Path, tmp_path: Path) -> None:
    shutil.copytree(results, tmp_path / "out")
    (path,) = (tmp_path / "out" / "measurements").iterdir()
    path.write_bytes(NO_JSON[case][0])
    folder = Folder(tmp_path / "out")
    assert folder.cost() is None
    assert str(path) in (folder.damage() or "")


# What is JSON and not what posenc wrote -------------------------------------------------------------------------------

MISSING = ("experiment", "tuning", "chosen", "failures", "text", "command")
WRONG: dict[str, tuple[Callable[[Any], Any], str]] = {
    **{f"without {name}": (lambda one, name=name: one.pop(name), f"{name}: is needed and not given") for name in MISSING},
    "an experiment that is a list": (lambda one: one.update(experiment=[]), "experiment: expected settings"),
    "an experiment without tasks": (lambda one: one["experiment"].pop("tasks"), "tasks: is needed and not given"),
    "an experiment without a name": (lambda one: one["experiment"].pop("name"), "name: is needed and not given"),
    "a task without a name": (lambda one: one["experiment"]["tasks"][0]["task"].pop("name"), "expected the name of a task"),
    "no encodings": (lambda one: one["experiment"].update(encodings=None), "encodings: expected a list"),
    "keys of numbers": (lambda one: one.update(keys=[1]), "keys.0: expected text"),
    "short keys": (lambda one: one.update(keys=["ab"]), "keys.0"),
    "tuning that is a word": (lambda one: one.update(tuning="x"), "tuning"),
    "a choice without a rate": (lambda one: one.update(chosen=[{"task": "copy", "encoding": "rope"}]), "chosen.0."),
    "a choice that is a number": (lambda one: one.update(chosen=[3]), "chosen.0"),
    "failures that are a list": (lambda one: one.update(failures=[]), "failures: expected settings"),
    "a text without a digest": (lambda one: one.update(text={"source": "x"}), "text.sha256: is needed and not given"),
    "a text that is a word": (lambda one: one.update(text="x"), "text: expected settings"),
    "a command that is a list": (lambda one: one.update(command=["posenc"]), "command: expected text"),
    "a command with half a quote": (lambda one: one.update(command="posenc 'lab"), "command: No closing quotation"),
    "a cost that is a number": (lambda one: one.update(cost=3), "cost: expected text"),
}


@pytest.mark.parametrize("case", WRONG)
def test_the_lab_says_what_is_wrong_with_experiment_json(case: str, results: Path, tmp_path: Path) -> None:
    out = shutil.copytree(results, tmp_path / "out")
    change, said = WRONG[case]
    change(manifest := json.loads((out / "experiment.json").read_bytes()))
    (out / "experiment.json").write_text(json.dumps(manifest))
    for arguments in (["report", out], ["list", out], ["show", "rope", "--in", out]):
        done = in_process.posenc("lab", *arguments)
        assert (done.returncode, done.stdout) == (1, ""), done.stdout
        (line,) = done.stderr.splitlines()
        assert str(out / "experiment.json") in line
        assert said in line


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cost", {}),
        ("cost", []),
        ("cost", {"rounds": 5}),
        ("cost", {**lab_results.cost_of(["rope"]), "sizes": {}}),
        ("cost", {**lab_results.cost_of(["rope"]), "ratios": {"rope": {"prefill": 1.0}}}),
        ("cost", {**lab_results.cost_of(["rope"]), "rounds": "nine"}),
    ],
)
def test_a_measurement_of_another_shape_is_reported_as_damaged(
    name: str, value: Any, results: Path, tmp_path: Path
) -> None:
    out = shutil.copytree(results, tmp_path / "out")
    Folder(out).put_measurement(name, lab_results.COST, value)
    done = in_process.posenc("lab", "report", out)
    assert done.returncode == 0
    assert "cost-c057c057c057c057.json: not a record of posenc lab" in done.stderr


# YAML -----------------------------------------------------------------------------------------------------------------

GOOD = """
name: n
about: {en: a, zh: b}
encodings: [rope]
tasks: [{task: {name: copy, length: 4, lengths: [4]}, training: {steps: 1, learning_rate: 0.1}}]
"""
BOMB = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}' if n else 'x'] * 9)}]\n" for n in range(9))
STEPS = "line 5: tasks.0.training.steps: "


def steps(value: str) -> str:
    return GOOD.replace("steps: 1", f"steps: {value}")


TWO_MEANINGS = "{} means different things to readers of YAML"
NO_YAML: dict[str, tuple[str | bytes, str]] = {
    "nothing": ("", "expected settings"),
    "a word": ("posenc", "expected settings"),
    "a list": ("[1, 2]", "expected settings"),
    "half of a list": (GOOD + "x: [1", "not YAML: line 6: "),
    "half of a text": (GOOD + "x: 'a", "not YAML: line 6: "),
    "a tab": (GOOD + "\tx: 1", "not YAML: line 6: found character '\\t'"),
    "two colons": (GOOD + "x: y: z", "not YAML: line 6: mapping values are not allowed here"),
    "two documents": (GOOD + "---\n" + GOOD, "not YAML: line 6: but found another document"),
    "an unknown alias": (GOOD + "x: *y", "not YAML: line 6: found undefined alias"),
    "an alias of itself": (GOOD + "x: &x [*x]", "nested deeper than 32 levels"),
    "a bomb of aliases": (GOOD + BOMB, "more than 10,000 values, aliases counted as often as they are used"),
    "20 000 brackets": (GOOD + "x: " + "[" * 20_000, "nested deeper than 32 levels"),
    "20 000 pairs of brackets": (GOOD + "x: " + "[" * 20_000 + "]" * 20_000, "nested deeper than 32 levels"),
    "33 levels": (GOOD + "x: " + "[" * 33 + "]" * 33, "nested deeper than 32 levels"),
    "too large": (GOOD + "#" * 2**17, "larger than 128 KiB"),
    "a name twice": (GOOD + "seeds: 1\nseeds: 2", "line 7: the name 'seeds' occurs twice; keep one"),
    "a name twice, within": (steps("1, steps: 2"), "line 5: tasks.0.training: the name 'steps' occurs twice; keep one"),
    "a merge key": (GOOD + "size: {<<: {d_model: 32}}", "line 6: size: " + TWO_MEANINGS.format("<<")),
    "a tag of Python": (steps("!!python/name:os.system x"), STEPS + "the tag !!python/name:os.system is not read"),
    "a call of Python": (steps("!!python/object/apply:os.system [x]"), STEPS + "the tag !!python/object/apply:os.system"),
    "a tag": (steps("!steps 3"), STEPS + "the tag !steps is not read; leave it out"),
    "a set": (GOOD + "x: !!set {a, b}", "line 6: x: the tag !!set is not read"),
    "binary": (steps("!!binary aGk="), STEPS + "the tag !!binary is not read"),
    "a number with a tag of text": (steps("!!str 3"), STEPS + TWO_MEANINGS.format("3")),
    "base 60": (steps("1:30"), STEPS + TWO_MEANINGS.format("1:30") + "; write the number in plain digits"),
    "base 60, real": (steps("1:30.5"), STEPS + TWO_MEANINGS.format("1:30.5")),
    "octal": (steps("010"), STEPS + TWO_MEANINGS.format("010")),
    "octal of YAML 1.2": (steps("0o10"), STEPS + TWO_MEANINGS.format("0o10")),
    "a leading zero": (steps("08"), STEPS + TWO_MEANINGS.format("08")),
    "hexadecimal": (steps("0x10"), STEPS + TWO_MEANINGS.format("0x10")),
    "binary digits": (steps("0b11"), STEPS + TWO_MEANINGS.format("0b11")),
    "an underscore": (steps("1_000"), STEPS + TWO_MEANINGS.format("1_000")),
    "yes": (steps("1, oracle: yes"), "tasks.0.training.oracle: " + TWO_MEANINGS.format("yes") + "; write true or false"),
    "off": (GOOD + "properties: off", "line 6: properties: " + TWO_MEANINGS.format("off")),
    "No as a name": (GOOD.replace("en: a", "No: a"), "line 3: about: " + TWO_MEANINGS.format("No")),
    "a date": (GOOD.replace("name: n", "name: 2024-01-01"), "line 2: name: " + TWO_MEANINGS.format("2024-01-01")),
    "an equals sign": (GOOD.replace("name: n", "name: ="), "line 2: name: " + TWO_MEANINGS.format("=")),
    "infinity": (steps(".inf"), STEPS + "expected a finite number, got .inf"),
    "NaN": (steps(".NaN"), STEPS + "expected a finite number, got .NaN"),
    "beyond float64": (steps("1e999"), STEPS + "expected a finite number, got 1e999"),
    "4 000 digits": (steps("1" * 4000), STEPS + "expected a finite number, got 1111"),
    "a number as a name": (GOOD + "3: x", "line 6: expected a name before the colon, got 3"),
    "a list as a name": (GOOD + "? [1]\n: x", "line 6: expected a name before the colon, got a list or names"),
    "null as a name": (GOOD + "~: x", "line 6: expected a name before the colon, got ~"),
    "half of a surrogate pair": (GOOD + 'x: "\\ud800"', "line 6: x: half of a surrogate pair"),
    "a NUL": (GOOD + "x: \x00", "not YAML: the character #x0000, number "),
    "UTF-16": (GOOD.encode("utf-16"), "not text in UTF-8"),
    "Latin 1": (GOOD.replace("en: a", "en: é").encode("latin-1"), "not text in UTF-8"),
    "bytes": (bytes(range(256)), "not text in UTF-8"),
    "no tasks": (GOOD.replace("tasks:", "#"), "tasks: is needed and not given; add it"),
    "a text for a number": (steps("many"), "tasks.0.training.steps: expected a whole number, got 'many'"),
}


@pytest.mark.parametrize("case", NO_YAML)
def test_an_experiment_s_file(case: str, tmp_path: Path) -> None:
    text, said = NO_YAML[case]
    (path := tmp_path / "mine.yaml").write_bytes(text.encode() if isinstance(text, str) else text)
    begun = time.process_time()
    with pytest.raises(ValueError, match=r"^") as refused:
        read_experiment(str(path))
    assert time.process_time() - begun < SOON
    assert str(refused.value).startswith(f"{path}: ")
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
    done = in_process.posenc("lab", "run", path, "--out", tmp_path / "out")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"posenc: {refused.value}\n")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("value", "read"), [("1e-3", 0.001), ("1.5E+1", 15.0), (".5", 0.5), ("+2.", 2.0), ("7", 7.0), ("0.10", 0.1)]
)
def test_numbers_that_all_readers_take_for_the_same(value: str, read: float, tmp_path: Path) -> None:
    (path := tmp_path / "mine.yaml").write_text(GOOD.replace("0.1", value))
    assert read_experiment(str(path)).tasks[0].training.learning_rate == read


def test_what_yaml_has_besides_stays_readable(tmp_path: Path) -> None:
    """A byte order mark, quotes, blocks of text, true, null, and an alias of a small value."""
    text = "\ufeff" + GOOD.replace("name: n", "\"name\": '1:30'").replace("en: a", 'en: "yes"')
    text = text.replace("'1:30'", "n").replace("{steps: 1,", "&mine {steps: 1,") + "budget: null\nproperties: True\n"
    (path := tmp_path / "mine.yaml").write_text(text + "size: {d_model: &d 32, n_heads: 2}\n", "utf-8")
    experiment = read_experiment(str(path))
    assert (experiment.about["en"], experiment.budget, experiment.properties) == ("yes", None, True)


def test_what_is_written_is_read_as_the_same() -> None:
    """Also text that looks like something else to YAML 1.1, or to YAML 1.2."""
    words = [
        "1e3",
        "08",
        "0o17",
        "1:30",
        "yes",
        "No",
        "~",
        "",
        "null",
        "2024-01-01",
        "1_000",
        "0x1f",
        "=",
        "<<",
        ".5",
        "é",
        "a: b",
    ]
    value = {"words": words, "numbers": [1e-05, 1e22, 3, -0.5], "flags": [True, False, None], **dict.fromkeys(words, "x")}
    assert strict_yaml.loads(strict_yaml.dumps(value)) == value
