"""What llama.cpp's own converter makes of each family's configuration reads as the configuration does.

gguf_round_trip.json has a row for each; make acceptance makes them anew. A row that is not "the same" has a reason here:
what llama.cpp really does otherwise, or what keeps the converter from writing a file.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gguf_round_trip import OUT, SAME
from posenc.configs.report.runtimes import servers

ROWS = json.loads(OUT.read_text(encoding="utf-8"))
REASONS = {  # what a row says -> what llama.cpp, or its converter, does
    r"a window of everything against \d+(;|$)": "its code for llama, starcoder2 and phi3 has no windows",
    r"^layer 0: RoPE: returns None against half$": "pairs stay interleaved: the same scores, other cached keys",
    r"truncate none against False": "YaRN's range of pairs is rounded always",
    r"row_offset None against 2; padding_row None against 1": "the converter cuts off the rows before position 0",
    r"RoPE against FalconALiBi": "its code for falcon rotates always",
    r"layout half against interleaved$": "of glm4 with three axes: the converter permutes q and k",
    r"^not read: .* is not known; which channels form a pair depends": "an architecture that is refused by name",
    r"^not read: .*(mrope_section|key_length)": "a default of the class that no model has",
    r"^not converted: (KeyError|AssertionError|ValueError|NotImplementedError|TypeError|error|FileNotFoundError)": (
        "the converter asks for more than the class's defaults say"
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_difference_is_one_that_llama_cpp_has(name):
    result = ROWS[name]["result"]
    assert result == SAME or any(re.search(pattern, result) for pattern in REASONS), result


def test_most_families_read_the_same():
    results = [row["result"] for row in ROWS.values()]
    assert results.count(SAME) >= 125
    assert all(any(re.search(pattern, result) for result in results) for pattern in REASONS)


@pytest.mark.acceptance
def test_the_rows_are_what_the_converter_and_the_reader_give(tmp_path):
    release = servers()["llama.cpp"]["version"].replace(" ", "==")
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", "--dest", str(tmp_path)]
    subprocess.run([*pip, release], check=True)
    (archive,) = tmp_path.glob("*.tar.gz")
    subprocess.run(["tar", "xzf", archive, "-C", tmp_path], check=True)
    (folder,) = tmp_path.glob("*/vendor/llama.cpp")
    script = Path(__file__).with_name("gguf_round_trip.py")
    done = subprocess.run([sys.executable, script, folder], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == ROWS
