"""One self-contained folder of an experiment, for an archive or a paper's supplement.

README.md, README.zh-CN.md   what this is, and how to repeat any cell
CITATION.cff                 how to cite it (citation-file-format.github.io, 1.2.0)
data.parquet                 every mean score of every trial, one row each
experiment.yaml              the configuration, in the form that posenc lab run reads; users' encodings beside it
environment.json, requirements.txt   what ran the trials, and the packages of the machine that published them
experiment.json, trials/, measurements/, references/, verified.jsonl   the results, which posenc lab reads as they are
report/                      the report in both languages, and the table and picture for a paper
"""

from __future__ import annotations

import json
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import metadata, resources
from pathlib import Path
from typing import Any

import yaml

from posenc.lab.experiment import Experiment, strict_yaml
from posenc.lab.records import files
from posenc.lab.records.mean_score import EACH
from posenc.lab.records.results import MANIFEST, MEASUREMENTS, TRIALS, Folder
from posenc.lab.records.verified import NAME as VERIFIED
from posenc.lab.records.verified import REFERENCES, entries, references
from posenc.lab.records.written import MEASUREMENTS as MEASURED
from posenc.lab.report.cells import Findings
from posenc.lab.report.words import same
from posenc.lab.run.repeat import TOLERANCE
from posenc.lab.say import say
from posenc.support.languages import Language, Words

EXTRAS = ("lab", "plots")  # of posenc, whose packages requirements.txt names
DATA = f"""
SELECT key, task, encoding, seed, oracle, learning_rate, mode, change, length, measure,
       sum(value * each) / sum(each) AS score, count(*) AS items, sum(weight) AS targets
FROM (SELECT * REPLACE (coalesce(change, '') AS change), kind AS measure,
             {EACH} AS each
      FROM rows JOIN (SELECT key, learning_rate FROM trials) USING (key) WHERE kind IN ('bits', 'right', 'exact'))
GROUP BY ALL ORDER BY ALL
"""


def publish(folder: Folder, findings: Findings, out: Path, authors: Sequence[str]) -> list[str]:
    """Writes into the folder `out`, which exists. Returns the names of what stands in it.

    Raises ValueError without an author, for a damaged file, and for users' encodings of one file name and different texts.
    """
    manifest = folder.experiment()
    assert manifest is not None
    if not authors or not all(name.replace(",", " ").strip() for name in authors):
        raise ValueError(f"--author: CITATION.cff needs at least one name, got {list(authors)}")
    if damage := folder.damage():
        raise ValueError(f"{folder.argument}: {damage}; publish afterwards")
    for read in (references, entries):
        read(folder.path)
    experiment = Experiment.model_validate(manifest["experiment"])
    contents: dict[str, str | bytes] = dict(own_encodings(experiment))
    contents |= {
        "README.md": readme(findings, "en"),
        "README.zh-CN.md": readme(findings, "zh"),
        "CITATION.cff": citation(findings, authors, last_day(folder, manifest)),
        "experiment.yaml": configuration(experiment),
        "environment.json": json.dumps(environment(findings), indent=1, ensure_ascii=False) + "\n",
        "requirements.txt": requirements(),
        "data.parquet": data(folder),
    }
    copy_results(folder, manifest, out)
    for name, content in contents.items():
        files.write(out / name, content)
    return sorted(path.name for path in out.iterdir())


@contextmanager
def new_folder(out: Path, source: Path) -> Iterator[Path]:
    """A folder whose content moves to `out` once it is whole; nothing is left of it if that fails or is interrupted.

    Raises ValueError for an `out` that holds something, that lies in `source`, or that cannot be made.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ValueError(f"--out: {out} is not an empty folder; choose a new one")
    if out.resolve().is_relative_to(source.resolve()):
        raise ValueError(f"--out: {out} lies in {source}, which is published; choose a folder outside it")
    place = out.resolve().with_name(f".{out.resolve().name}.{secrets.token_hex(4)}{files.TEMPORARY}")
    try:
        place.mkdir(parents=True)
    except OSError as error:
        raise ValueError(f"--out: {out} cannot be made: {error.strerror}; choose another place") from None
    try:
        yield place
        out.mkdir(exist_ok=True)
        for path in place.iterdir():
            path.rename(out / path.name)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def copy_results(folder: Folder, manifest: Mapping[str, Any], out: Path) -> None:
    """The manifest, and the trials, measurements and references that belong to it."""
    keys = {key[:16] for key in (*manifest["keys"], *manifest["tuning"])}
    shutil.copyfile(folder.path / MANIFEST, out / MANIFEST)
    if (folder.path / VERIFIED).exists():
        shutil.copyfile(folder.path / VERIFIED, out / VERIFIED)
    measured = {manifest[name][:16] for name in MEASURED if manifest.get(name)}
    for name, endings in ((TRIALS, keys), (MEASUREMENTS, measured), (REFERENCES, keys)):
        for path in sorted((folder.path / name).glob("*")):
            if any(f"-{ending}" in path.name for ending in endings):
                (out / name).mkdir(exist_ok=True)
                shutil.copyfile(path, out / name / path.name)


def data(folder: Folder) -> bytes:
    """Parquet: a row for each trial, mode, change, length and measure."""
    with folder.connect() as database, tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "data.parquet"
        database.sql(DATA).write_parquet(str(path), compression="zstd")
        return path.read_bytes()


def own_encodings(experiment: Experiment) -> Iterator[tuple[str, str]]:
    """File name and text of each user's encoding."""
    texts = dict[str, str]()
    for word, text in experiment.sources.items():
        name = word.partition(":")[0]
        if texts.setdefault(name, text) != text:
            raise ValueError(f"{name}: two encodings of this experiment come from different files of that name")
    yield from texts.items()


def configuration(experiment: Experiment) -> str:
    """YAML that posenc lab run reads. The texts of users' encodings are files beside it."""
    settings = {name: value for name, value in experiment.model_dump(mode="json").items() if name != "sources"}
    return strict_yaml.dumps(settings)


def environment(findings: Findings) -> dict[str, Any]:
    """What ran the trials: each name with all values that occur."""
    return {**findings["machine"], **findings["provenance"], "posenc": findings["posenc"], "command": findings["command"]}


def requirements() -> str:
    """The packages that posenc[lab] asks for, with the versions that are installed here."""
    pinned = dict[str, str]()
    for line in metadata.requires("posenc") or ():
        wanted, _, marker = line.partition(";")
        extra = re.search(r"extra == ['\"](\w+)['\"]", marker)
        name = re.match(r"[\w.-]+", wanted.strip())
        if name is None or name[0] == "posenc" or (extra is not None and extra[1] not in EXTRAS):
            continue
        try:
            pinned[name[0]] = metadata.version(name[0]).partition("+")[0]
        except metadata.PackageNotFoundError:
            continue
    return "".join(f"{name}=={version}\n" for name, version in sorted(pinned.items()))


def last_day(folder: Folder, manifest: Mapping[str, Any]) -> str:
    """The day on which the last trial ended. Raises ValueError if no trial has ended."""
    ended = [record.about["finished"] for key in manifest["keys"] if (record := folder.get(key)) is not None]
    if not ended:
        raise ValueError(f"{folder.path}: no trial has ended, so there is nothing to publish")
    return str(max(ended))[:10]


def citation(findings: Findings, authors: Sequence[str], day: str) -> str:
    """CITATION.cff. "Family, Given" is a person, any other name an entity."""

    def person(name: str) -> dict[str, str]:
        family, comma, given_name = (part.strip() for part in name.partition(","))
        return {"family-names": family, "given-names": given_name} if comma else {"name": family}

    software = {
        "type": "software",
        "title": "posenc",
        "version": str(findings["posenc"]),
        "authors": [{"name": "The posenc authors"}],
    }
    about = {
        "cff-version": "1.2.0",
        "message": "If you use these results, please cite them as below.",
        "type": "dataset",
        "title": f"Positional encodings compared: {findings['name']}",
        "abstract": findings["about"]["en"],
        "authors": list(map(person, authors)),
        "date-released": day,
        "references": [software],
    }
    return yaml.safe_dump(about, sort_keys=False, allow_unicode=True, width=120)


def readme(findings: Findings, language: Language) -> str:
    trials, provenance = findings["trials"], findings["provenance"]
    told = {
        **{name: findings[name] for name in ("name", "command", "posenc")},
        **{name: trials[name] for name in ("found", "expected")},
        **{name: provenance.get(name, "") for name in ("torch", "device")},
        "install": install(findings).in_language(language),
        **TOLERANCE,
        "about": findings["about"][language],
        "trial": first_trial(findings),
        "text": text_read(findings["text"]).in_language(language),
    }
    return resources.files("posenc.lab.report").joinpath(f"publication.{language}.md").read_text("utf-8").format(**told)


def install(findings: Findings) -> Words:
    """The commands that install the code that most trials ran through: a commit, or a release where none is recorded."""
    commits: str = findings["provenance"].get("revision", "")
    if commit := commits.split(",")[0].removesuffix("-dirty").strip():
        then = "pip install '.[lab]' -c FOLDER/requirements.txt"
        checkout = f"git checkout {commit}             "
        return say("{checkout}# in the sources of posenc\n{then}", checkout=checkout, then=then)
    return same(f"pip install 'posenc[lab]=={findings['posenc']}' -c FOLDER/requirements.txt")


def text_read(text: Mapping[str, Any] | None) -> Words:
    if text is None:
        return say("The tasks read no text.")
    source, digest = text["source"], text["sha256"][:16]
    return say(
        "Text: {source}, SHA-256 {digest}…. It is not in this folder. Where it is the standard library, "
        "another version of Python has another text, which is refused. A text of your own is given with "
        "--text.",
        source=source,
        digest=digest,
    )


def first_trial(findings: Findings) -> str:
    """The words of a trial that has a score, if possible of an encoding that learnt the task."""
    there = [(task, arm) for task in findings["tasks"] for arm in task["arms"]]
    for task, arm in sorted(there, key=lambda pair: not pair[1]["learnt"]):
        for seed in arm["cells"][str(task["length"])]["seeds"]:
            return f"{task['name']} {arm['name']} seed {seed}"
    raise ValueError(f"{findings['name']}: no trial has a score, so there is nothing to publish")
