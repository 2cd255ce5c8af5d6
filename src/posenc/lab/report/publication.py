"""One zip file of an experiment, for an archive or a paper's supplement. It unpacks to one folder:

README.md, README.zh-CN.md   what this is, and how to repeat any trial
CITATION.cff                 how to cite it (citation-file-format.github.io, 1.2.0)
experiment.yaml              the configuration, in the form that posenc lab run reads; users' encodings beside it
requirements.txt             the packages of the machine that published it
experiment.json, trials/, measurements/   the results, which posenc lab reads as they are
report/                      the report in both languages, and the table and picture for a paper
"""

from __future__ import annotations

import io
import re
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata, resources
from pathlib import Path
from typing import Any

import yaml

from posenc.lab.experiment import Experiment, strict_yaml
from posenc.lab.findings.criteria import TOLERANCE
from posenc.lab.records import files
from posenc.lab.records.results import MANIFEST, MEASUREMENTS, TRIALS, Folder
from posenc.lab.records.written import MEASUREMENTS as MEASURED
from posenc.lab.report import write
from posenc.lab.report.cells import Findings
from posenc.lab.report.paper import write_paper
from posenc.lab.say import say
from posenc.support.languages import Language, Words

EXTRAS = ("lab", "plots")  # of posenc, whose packages requirements.txt names


def publish(folder: Folder, findings: Findings, out: Path, authors: Sequence[str]) -> None:
    """Writes the zip file completely or not at all.

    Raises ValueError for an `out` that exists, does not end in .zip or lies in the folder, without an author, for a damaged
    file, and for users' encodings of one file name and different texts.
    """
    manifest = folder.experiment()
    assert manifest is not None
    if out.suffix != ".zip" or out.exists():
        raise ValueError(f"--out: expected a new file NAME.zip, got {out}{' which exists' * out.exists()}")
    if out.resolve().is_relative_to(folder.path.resolve()):
        raise ValueError(f"--out: {out} lies in {folder.path}, which is published; choose a place outside it")
    if not authors or not all(name.replace(",", " ").strip() for name in authors):
        raise ValueError(f"--author: CITATION.cff needs at least one name, got {list(authors)}")
    if damage := folder.damage():
        raise ValueError(f"{folder.argument}: {damage}; publish afterwards")
    experiment = Experiment.model_validate(manifest["experiment"])
    contents: dict[str, str | bytes] = dict(own_encodings(experiment))
    contents |= {
        "README.md": readme(findings, "en"),
        "README.zh-CN.md": readme(findings, "zh"),
        "CITATION.cff": citation(findings, authors, last_day(folder, manifest)),
        "experiment.yaml": configuration(experiment),
        "requirements.txt": requirements(),
    }
    contents |= dict(results(folder, manifest))
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch)
        write(findings, report)
        write_paper(findings, next(reversed(experiment.sources), None), report)
        contents |= {f"report/{path.name}": path.read_bytes() for path in sorted(report.iterdir())}
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            archive.writestr(f"{out.stem}/{name}", content)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"--out: {out} cannot be made: {error.strerror}; choose another place") from None
    files.write(out, packed.getvalue())


def results(folder: Folder, manifest: Mapping[str, Any]) -> Iterator[tuple[str, bytes]]:
    """The manifest, and the trials and measurements that belong to it."""
    yield MANIFEST, (folder.path / MANIFEST).read_bytes()
    keys = {key[:16] for key in (*manifest["keys"], *manifest["tuning"])}
    measured = {manifest[name][:16] for name in MEASURED if manifest.get(name)}
    for name, endings in ((TRIALS, keys), (MEASUREMENTS, measured)):
        for path in sorted((folder.path / name).glob("*")):
            if any(f"-{ending}" in path.name for ending in endings):
                yield f"{name}/{path.name}", path.read_bytes()


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


def requirements() -> str:
    """The packages that the extra lab asks for, with the versions that are installed here."""
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
    """The commands that install the code that most trials ran through: a commit, or a version where none is recorded."""
    commits: str = findings["provenance"].get("revision", "")
    then = "pip install '.[lab]' -c FOLDER/requirements.txt"
    if commit := commits.split(",")[0].removesuffix("-dirty").strip():
        checkout = f"git checkout {commit}             "
        return say("{checkout}# in the sources of posenc\n{then}", checkout=checkout, then=then)
    return say("# in the sources of posenc {version}\n{then}", version=findings["posenc"], then=then)


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
