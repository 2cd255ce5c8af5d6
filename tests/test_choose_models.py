"""What `posenc choose --of MODEL` prints, for every model that it knows, runs: code in torch, commands on a file of the
model. make test tries a sample, and every model whose advice once failed; make acceptance tries all."""

import functools
import json
import shlex
import warnings
import zlib
from typing import Any

import model_readings
import pytest
import torch
from typer.testing import CliRunner

import posenc
from posenc.catalogue.choose import choice, reading
from posenc.catalogue.choose.choice import Answers, recommend
from posenc.catalogue.index import USERS
from posenc.catalogue.lookup import every_term
from posenc.cli import app
from posenc.configs import ConfigError, spec_of
from posenc.configs.family import reader_paths
from posenc.configs.reading import part_for, scaling

MODELS = list(dict.fromkeys(term.written for term in every_term() if term.role in USERS))
FAILED = ["InternLM", "cosmos3_edge", "dots3_note_text", "embedding_gemma2", "ernie4_5_vl_moe", "neomme", "mistral"]
FAILED += ["openai_privacy_filter", "Falcon-RW", "LeX Transformer", "granite_swa", "InternVL3", "Chroma", "SAN"]
"""Models whose printed code or command failed, or that were refused though `posenc list` knows them."""
OTHER_DOMAINS = ("image", "diffusion", "multimodal", "audio")


def drawn(names, one_of):
    return [name for name in names if zlib.crc32(name.encode()) % one_of == 0]


SAMPLE = list(dict.fromkeys((*FAILED, *drawn(MODELS, 60))))
WORLD = {"posenc": posenc, "torch": torch, "wide": torch.zeros(1, 16, 1024), "patches": torch.zeros(2, 16, 768)}
WORLD |= {"tokens": torch.arange(32).view(2, 16) % 12, "adjacency": torch.ones(1, 16, 16) - torch.eye(16)}
WORLD |= {"height": 4, "width": 4}


@pytest.fixture
def remembered_words(monkeypatch):
    """Looking a word up takes most of the time."""
    found = functools.cache(choice.find)
    monkeypatch.setattr(choice, "find", found)
    monkeypatch.setattr(reading, "find", found)


def file_of(model: str) -> dict[str, Any]:
    """The keys of a published file, or the defaults of the type: with the sections that transformers writes."""
    from transformers import CONFIG_MAPPING

    known = reading.reading(model)
    config = model_readings.configuration(known.name if known else model) or {"model_type": "llama"}
    model_type = config.get("model_type", "")
    if config.keys() == {"model_type"} and model_type in CONFIG_MAPPING:
        try:
            whole = json.loads(CONFIG_MAPPING[model_type]().to_json_string(use_diff=False))
            spec_of(whole)
            return whole
        except (ConfigError, ValueError):  # a class whose defaults do not fit each other
            pass
    return config


def trained_on(config: dict[str, Any]) -> int:
    part = part_for(spec_of(config), "text")[1]
    scaled = scaling(part)[1] if part.layers else None
    return max(part.trained_length or 1024, scaled or 0)


def printed(model: str) -> dict[str, tuple[Answers, str]]:
    """What is printed of the model: the code, the answers, and the title of the first advice."""
    config = file_of(model)
    trained = trained_on(config)
    every = [("text", factor, tuned) for factor in (1, 4, 64) for tuned in (True, False)]
    every += [(domain, factor, True) for domain in OTHER_DOMAINS for factor in (1, 4)]
    found = {}
    for domain, factor, tuned in every:
        answers = Answers(domain, start="trained", of=model, trained=trained, wanted=factor * trained, tuned=tuned)
        if code := recommend(answers).use:
            found.setdefault(code, answers)
    return found


def wrong(model: str, folder, monkeypatch, seen: set) -> list[str]:
    """What is wrong with what is printed of a model. `seen`: what ran before."""
    config = file_of(model)
    written = json.dumps(config)
    (folder / "config.json").write_text(written)
    monkeypatch.chdir(folder)
    failures = []
    for code, answers in printed(model).items():
        reads_file = "config.json" in code
        if (key := (code, written if reads_file else "")) in seen:
            continue
        seen.add(key)
        if code.startswith("posenc "):
            failures += of_command(code, config)
        else:
            axes, tokens = (2 if answers.domain == "image" else 3), 17 if "4, 4, prefix=1" in code else 16
            world = WORLD | {"x": torch.zeros(2, tokens, 512), "coords": torch.randint(0, 4, (2, 16, axes))}
            try:
                exec(code, world)
            except Exception as error:
                failures.append(f"{model}, {answers.domain}: {error!r} of\n{code}")
    return failures


def of_command(command: str, config: dict[str, Any]) -> list[str]:
    """posenc inspect reads the file, and prints settings where a length is asked for."""
    arguments = shlex.split(command)[1:]
    done = CliRunner().invoke(app, [*arguments, "--json"])
    if "no setting" not in done.stderr and "the file has none with the sizes" in str(done.exception):  # defaults, unwritten
        part = part_for(spec_of(config), "text")[1]
        with open("config.json", "w") as file:
            json.dump({"model_type": part.family}, file)
        done = CliRunner().invoke(app, [*arguments, "--json"])
    if not done.stdout:
        return [f"{command}: {done.exception!r}"]
    said = json.loads(done.stdout)
    if "--extend-to" in arguments and not (len(said["extensions"]) == 1 and said["extensions"][0]["fragment"]):
        return [f"{command}: no settings"]
    return []


@pytest.mark.parametrize("model", SAMPLE)
def test_what_is_printed_of_a_model_runs(model, tmp_path, monkeypatch, remembered_words):
    assert not wrong(model, tmp_path, monkeypatch, set())


@pytest.mark.acceptance
def test_what_is_printed_of_every_model_runs(tmp_path, monkeypatch, remembered_words):
    seen: set = set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert not [one for model in MODELS for one in wrong(model, tmp_path, monkeypatch, seen)]
    assert len(seen) > 800


KEPT = json.loads(model_readings.FILE.read_text("utf-8"))


@pytest.mark.parametrize("name", drawn(sorted(reader_paths()), 30) + FAILED[:6])
def test_a_row_of_readings_is_what_its_reader_says(name):
    """choose printed commands that posenc inspect refused, where the reader had changed after the table was written."""
    assert KEPT.get(name, {}) == (model_readings.reading(name) or {})


@pytest.mark.acceptance
def test_every_row_of_readings_is_what_its_reader_says():
    assert model_readings.readings() == KEPT, "run python tools/model_readings.py"
