"""What llama.cpp's own converter makes of each family's configuration reads as the configuration does.

gguf_round_trip.json has a row for each; make acceptance makes them anew. A row that is not "the same" has a reason here:
what llama.cpp really does otherwise, or what keeps the converter from writing a file.
"""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gguf_round_trip import OUT, SAME
from posenc.configs.report.runtimes import servers

ROWS = json.loads(OUT.read_text(encoding="utf-8"))
ROBERTAS = r"(distil|xlm-)?roberta(-.+)?"
REASONS = [  # rows, one part of what they say -> what llama.cpp, or its converter, does
    (".*", r"a window of everything against \d+", "its code for llama, starcoder2 and phi3 has no windows"),
    (".*", "returns None against half", "pairs stay interleaved: the same scores, other cached keys"),
    ("gpt[-_]oss.*", "truncate none against False", "llama_hparams has no such key: the range of pairs is rounded"),
    ("gpt[-_]oss.*", "beta_fast none against 32", "the class writes out what llama_hparams assumes: yarn_beta_fast = 32"),
    ("gpt[-_]oss.*", "beta_slow none against 1", "the class writes out what llama_hparams assumes: yarn_beta_slow = 1"),
    ("Phi-4-mini-instruct", "attention_factor 1.190238 against none",
     "the converter writes √(1 + ln 32/ln 4096), which transformers' function assumes, in fp32"),
    (ROBERTAS, "row_offset None against 2", "the converter cuts off the rows before position 0"),
    (ROBERTAS, "padding_row None against 1", "the row of the padding is among those that it cuts off"),
    ("camembert", "max_positions 512 against 510", "the converter takes it for a BertModel, whose rows are all positions"),
    ("camembert", "row_offset None against 2", "no row is cut off for a BertModel: position p reads row p, not p + 2"),
    ("camembert", "padding_row None against 1", "a BertModel has no row of the padding"),
    ("falcon-rw-1b", "RoPE against FalconALiBi", "its code for falcon rotates always"),
    ("glm_ocr", "layout half against interleaved", "of glm4 with three axes: the converter permutes q and k"),
    (".*", "not read: .* is not known; which channels form a pair depends.*", "an architecture that is refused by name"),
    (".*", "not read: .*(mrope_section|key_length).*", "a default of the class that no model has"),
    (".*", "not converted: (KeyError|AssertionError|ValueError|NotImplementedError|TypeError|error|FileNotFoundError).*",
     "the converter asks for more than the class's defaults say"),
]  # fmt: skip
HEAD = re.compile(r"^(?:\w+, )?layer \d+: (?:(?:RoPE|Learned): )?")


def parts(result: str) -> list[str]:
    """The single differences of a row, without layer and encoding."""
    if result.startswith("not "):
        return [result]
    return [] if result == SAME else [HEAD.sub("", part) for part in result.split("; ")]


def reasons(name: str, part: str) -> list[int]:
    return [
        n
        for n, (names, pattern, _) in enumerate(REASONS)
        if re.fullmatch(names, name) and re.fullmatch(pattern, part, re.DOTALL)
    ]


@pytest.mark.parametrize("name", ROWS)
def test_each_part_of_a_difference_is_one_that_llama_cpp_has(name):
    assert [part for part in parts(ROWS[name]["result"]) if not reasons(name, part)] == []


def test_a_part_without_a_reason_is_found_beside_one_that_has_one():
    found = parts("layer 0: a window of everything against 4096; layer 0: RoPE: base 1 against 2")
    assert [bool(reasons("mistral", part)) for part in found] == [True, False]


def test_the_factor_that_the_converter_writes_for_phi_4_is_the_one_that_transformers_assumes():
    assert math.sqrt(1 + math.log(131072 / 4096) / math.log(4096)) == pytest.approx(1.190238, abs=1e-6)


def test_most_families_read_the_same():
    assert [row["result"] for row in ROWS.values()].count(SAME) >= 125
    used = {n for name, row in ROWS.items() for part in parts(row["result"]) for n in reasons(name, part)}
    assert used == set(range(len(REASONS)))


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
