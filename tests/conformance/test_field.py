"""The table of other libraries: every failure has a script; where a library is installed, both agree with the table."""

import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "bench/check"
TABLE = (FOLDER / "field.md").read_text(encoding="utf-8")
SCRIPTS = sorted(path.name for path in (FOLDER / "reproductions").glob("*.py"))
ROWS = re.findall(r"^\| ([\w-]+) ([\d.]+): (.+?) \| (\w+) \| .* \| \[(\w+\.py)\]", TABLE, flags=re.MULTILINE)


def test_every_failure_has_a_script_and_every_script_a_failure():
    assert len(ROWS) > 20
    assert len(ROWS) == sum(line.count("✗") for line in TABLE.splitlines() if line.startswith("| "))
    assert {script for *_, script in ROWS} == set(SCRIPTS)


def needs(package, version):
    try:
        installed = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"{package} is not installed: pip install '.[field]'")
    if installed != version:
        pytest.skip(f"{package} is {installed}, the table is of {version}")


@pytest.mark.acceptance
@pytest.mark.parametrize("script", SCRIPTS)
def test_the_script_shows_the_failure_without_posenc(script):
    package, version = next((package, version) for package, version, *_, name in ROWS if name == script)
    needs(package, version)
    text = (FOLDER / "reproductions" / script).read_text(encoding="utf-8")
    assert "posenc" not in text
    done = subprocess.run([sys.executable, FOLDER / "reproductions" / script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.acceptance
@pytest.mark.parametrize("name", ["Llama", "Llama, dynamic NTK", "T5 buckets", "BLOOM ALiBi", "MPT slopes"])
def test_transformers_does_what_the_table_says(name):
    needs("transformers", "5.23.0")
    sys.path.insert(0, str(FOLDER))
    try:
        import field
    finally:
        sys.path.remove(str(FOLDER))
    failed = {result.law for result in field.report(name).failures}
    assert failed == {law for _, _, implementation, law, _ in ROWS if implementation == name}
