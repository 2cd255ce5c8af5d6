"""Every command on outputs that are not in UTF-8: readable lines, valid JSON, the same exit code.

Below Python 3.15 such is an output that Windows redirects; PYTHONIOENCODING makes one everywhere.
"""

from __future__ import annotations

import functools
import io
import itertools
import json
import os
import re
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
from safetensors.torch import save_file

import in_process
from lab_sweeps import Here, experiment
from posenc.cli import COMMANDS, LAB
from posenc.lab.records.results import Folder
from posenc.lab.run.sweep import sweep
from posenc.terminal import output
from sampling import first_only

ENCODINGS = ("cp1252", "gbk", "cp437", "ascii")
LLAMA = {"model_type": "llama", "hidden_size": 64, "num_attention_heads": 2, "num_hidden_layers": 2, "rope_theta": 10000.0,
         "max_position_embeddings": 64}  # fmt: skip
ROTATE = """
import torch

print("angles in units of π, 位置")

def rotate(x, positions):
    angle = positions[..., None] * 10000.0 ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    even, odd = x[..., ::2], x[..., 1::2]
    return torch.stack([even * angle.cos() - odd * angle.sin(), even * angle.sin() + odd * angle.cos()], dim=-1).flatten(-2)
"""
QUICK = (
    "list",
    "list --all",
    "list rope",
    "list alibi --json",
    "choose --domain text --model decoder --start scratch --trained 4096 --wanted 32768",
    "choose --domain text --of llama --trained 4096 --wanted 32768 --json",
    "show rope --what decay",
    "show alibi --what bias --length 16",
    "show rope --what wavelengths",
    "show rope --what clock --length 4 --json",
    "convert model.safetensors OUT --to half --from interleaved --n-heads 2 --n-kv-heads 2 --d-head 8",
    "export-tables rope --length 8 --out OUT.npz",
    "export-tables alibi --length 8 --out OUT.h --format c --json",
    "inspect config.json --extend-to 256",
    "inspect config.json --json",
    "inspect config.json other.json",
    "inspect none.json",
    "inspect --families --json",
    "compare-configs config.json other.json",
    "compare-configs config.json other.json --json",
    "walk",
    "walk S13",
    "walk attention",
    "walk attention --json",
    "claims --note 001",
    "check --laws",
    "explore none",
    "bench none",
    "compare --budget none",
    "lab list lab",
    "lab list lab --json",
    "lab show copy rope seed 0 --in lab",
    "lab show copy rope seed 0 --in lab --json",
    "lab report lab",
    "lab report lab --json",
    "lab add none.py:None --to lab",
    "lab score none --text rotate.py",
)
SLOW = (
    "check rotate.py --all",
    "check rotate.py --json",
    "lab publish lab --out OUT.zip --author 'Erdős, Paul'",
    "lab list",
    "lab repeat copy rope seed 0 --in lab",
    "lab run tiny.yaml --out OUT",
    "explore --export OUT.html",
    "claims --json",
    "inspect config.json --out OUT",
)


pytestmark = pytest.mark.usefixtures("foreign_code_here", "no_workers")


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("outputs")
    (folder / "config.json").write_text(json.dumps(LLAMA), "utf-8")
    (folder / "other.json").write_text(json.dumps(LLAMA | {"rope_theta": 5e5}), "utf-8")
    (folder / "rotate.py").write_text(ROTATE, "utf-8")
    asked = experiment(encodings=("nope", "rope"), seeds=1)
    (folder / "tiny.yaml").write_text(json.dumps(asked.model_dump(mode="json", exclude_defaults=True)), "utf-8")
    weight = torch.arange(256.0).reshape(16, 16)
    names = [f"model.layers.0.self_attn.{letter}_proj.weight" for letter in "qk"]
    save_file({name: weight + at for at, name in enumerate(names)}, folder / "model.safetensors")
    sweep(asked, Folder(folder / "lab"), Here())
    return folder


COUNT = itertools.count()


def ran(call: str, here: Path, encoding: str, language: str = "en_US.UTF-8") -> subprocess.CompletedProcess[str]:
    """What it printed; names of new files are OUT, and times are gone."""
    out = f"o{next(COUNT):03}"
    arguments = shlex.split(call.replace("OUT", out))
    done = in_process.posenc(*arguments, cwd=here, encoding=encoding, LC_ALL=language, COLUMNS="240")
    times = re.compile(r'(?<="seconds": )[\d.]+|\d+(\.\d+)? (ms|s|min|MB)\b')
    done.stdout, done.stderr = (times.sub("0", text.replace(out, "OUT")) for text in (done.stdout, done.stderr))
    return done


def words(text: str) -> Counter[str]:
    """Without the lines of tables, which differ."""
    return Counter(word for word in re.split(r"[\s|+─│╭╮╰╯┬┴├┤┼━╇┃┏┓└┘┡┩-]+", text) if word.isascii())


@pytest.mark.parametrize(
    ("call", "encoding"),
    [
        pytest.param(call, encoding, marks=() if at % 4 == number else pytest.mark.acceptance)
        for at, call in enumerate(QUICK)
        for number, encoding in enumerate(ENCODINGS)
    ]
    + first_only(list(itertools.product(SLOW, ENCODINGS))),
)
def test_a_command_prints_the_same_in_any_encoding(call, encoding, here):
    usual, done = ran(call, here, "utf-8"), ran(call, here, encoding)
    assert done.returncode == usual.returncode, done.stderr
    assert "codec" not in done.stderr
    if "--json" in call:
        assert json.loads(done.stdout) == json.loads(usual.stdout)
        assert done.stdout.isascii()
        return
    for printed, other in ((done.stdout, usual.stdout), (done.stderr, usual.stderr)):
        assert not words(other) - words(printed)
        assert not re.search(r"\\(x|U|u(?![3-9]))", printed), "a code stands for what is not Chinese"


def test_every_command_is_tried():
    tried = {tuple(call.split()[:2]) if call.startswith("lab ") else call.split()[0] for call in (*QUICK, *SLOW)}
    assert tried == {*COMMANDS, *(("lab", name) for name in LAB)} - {"lab"}


SPEAKING = (
    "list",
    "choose --domain text --of llama --trained 4096 --wanted 32768",
    "walk S13",
    "check --laws",
    "lab report lab",
)


@functools.cache
def in_chinese(call: str, here: Path) -> subprocess.CompletedProcess[str]:
    return ran(call, here, "utf-8", "zh_CN.UTF-8")


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("call", SPEAKING)
def test_chinese_is_printed_as_it_is(call, encoding, here):
    usual, done = in_chinese(call, here), ran(call, here, encoding, "zh_CN.UTF-8")
    assert done.returncode == usual.returncode == 0
    chinese = re.compile("[\u4e00-\u9fff，。：；（）]+")
    assert chinese.findall(done.stdout) == chinese.findall(usual.stdout) != []
    told = "" if encoding == "gbk" else f"posenc: {encoding} has no Chinese, so this output is in UTF-8\n"
    assert done.stderr == told + usual.stderr


@pytest.mark.parametrize(
    ("encoding", "language"), first_only([("ascii", ""), ("cp1252", ""), ("gbk", "zh"), ("cp1252", "zh")])
)
def test_in_a_process_of_its_own(encoding, language):
    here = {**os.environ, "PYTHONIOENCODING": encoding, "LC_ALL": "C.UTF-8"}
    command = [sys.executable, "-m", "posenc", "list", "rope", *(["--lang", language] if language else [])]
    done = subprocess.run(command, env=here, capture_output=True, check=True)
    assert "rotary_position_embedding" in done.stdout.decode(
        "utf-8" if (encoding, language) == ("cp1252", "zh") else encoding
    )


def printed(text: str, encoding: str) -> str:
    """What a line becomes on such an output."""
    raw = io.BytesIO()
    with mock.patch("sys.stdout", io.TextIOWrapper(raw, encoding)), mock.patch("sys.stderr", io.StringIO()):
        output.print_any_text()
        output.echo(text)
        return raw.getvalue().decode(encoding).removesuffix("\n")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("q·k / √d → θ ≥ 2π, Δ ≤ ½", "q*k / sqrtd -> theta >= 2pi, Delta <= 1/2"),
        ("10⁻¹² x² kᵀ ω₁ q̂ Erdős naïve Ø", "10^-12 x^2 k^T omega1 q^ Erdos naive O"),
        ("╭─┬─╮ │ ╰─┴─╯ ├┼┤ ━┄┆", "+-+-+ | +-+-+ +++ --|"),
        ("⠀⠉⣀⡇ ▁▄█", " '.: .=#"),
        ("位 🐱 \udcff", r"\u4f4d \U0001f431 \udcff"),
    ],
)
def test_what_stands_for_a_character(text, shown):
    assert printed(text, "ascii") == shown


def test_a_character_that_the_encoding_has_stays():
    assert printed("√d · ½ → é", "cp437") == "√d · ½ -> é"
    assert printed("√d · 位 → é ✗", "gbk") == "√d · 位 → é x"
    assert printed("lone \udcff → √", "utf-8") == r"lone \udcff → √"


def test_columns_stay_below_each_other():
    rows = ("ω → x      0.5   end", "abcdef     0.5   end", "（：）     0.5   end", "θθθθθθθθθ  0.5   end")
    shown = [printed(row, "ascii") for row in rows]
    assert {line.index("0.5") for line in shown[:3]} == {11}
    assert {line.index("end") for line in shown} == {17, *{len("theta" * 9) + 1 + len("0.5 ")}}


def test_numbers_that_are_not_finite_are_null_in_json(capsys: Any):
    output.echo_json({"a": [float("nan"), 1.5, float("-inf")]})
    assert capsys.readouterr().out == '{"a": [null, 1.5, null]}\n'
