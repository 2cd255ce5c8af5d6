"""`posenc check TABLE`: every planted table is recognised from its file; what is no table is refused with its reason."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import posenc
from posenc.checking.table_files import MOST_BYTES
from posenc.cli import app
from sampling import every_second


def interleaved() -> Any:
    return posenc.sinusoidal_table(40, 32)


def sin_cos() -> Any:
    encoding = posenc.create("sinusoidal", d_model=32, base=500.0, layout="sin_cos")
    return encoding.embed(torch.zeros(1, 40, 32), posenc.Positions.arange(1, 40))[0]


def tensor2tensor() -> Any:
    encoding = posenc.create("sinusoidal", d_model=32, layout="sin_cos", denominator="d/2-1")
    return encoding.embed(torch.zeros(1, 40, 32), posenc.Positions.arange(1, 40))[0]


def offset() -> Any:
    table = posenc.sinusoidal_table(40, 32, start=2)
    table[1] = 0
    return table


def odd_zero() -> Any:
    encoding = posenc.create("sinusoidal", d_model=33, layout="sin_cos", odd="zero")
    return encoding.embed(torch.zeros(1, 40, 33), posenc.Positions.arange(1, 40))[0]


def normalised() -> Any:
    return torch.nn.functional.normalize(posenc.sinusoidal_table(40, 32, dtype=torch.float64))


def transposed() -> Any:
    return posenc.sinusoidal_table(40, 32, base=100.0).T


def rope_cache() -> Any:
    inv_freq = 1.0 / 500000 ** (torch.arange(0, 32, 2).float() / 32)
    angle = torch.arange(40).float()[:, None] * inv_freq
    return torch.cat([angle, angle], dim=1).cos()


def bfloat16_positions() -> Any:
    position = torch.arange(288).to(torch.bfloat16).double()
    angle = position[:, None] / 10000 ** (torch.arange(0, 16, 2).double() / 16)
    return torch.stack([angle.sin(), angle.cos()], dim=2).flatten(1).float()


def bfloat16_table() -> Any:
    return posenc.sinusoidal_table(40, 32, dtype=torch.bfloat16)


def textbook() -> Any:
    table = torch.zeros(160, 16)
    position = torch.arange(160).unsqueeze(1).float()
    frequency = torch.exp(torch.arange(0, 16, 2).float() * (-math.log(10000.0) / 16))
    table[:, 0::2] = torch.sin(position * frequency)
    table[:, 1::2] = torch.cos(position * frequency)
    return table


def per_channel() -> Any:
    channel = torch.arange(32)
    angle = torch.arange(40).double()[:, None] / 10000 ** (2 * channel.double() / 32)
    return torch.where(channel % 2 == 0, angle.sin(), angle.cos()).float()


def one_cell() -> Any:
    table = posenc.sinusoidal_table(40, 32)
    table[20, 7] += 0.5
    return table


def learned() -> Any:
    return torch.randn(40, 32, generator=torch.Generator().manual_seed(0)).cumsum(0) * 0.02


def random() -> Any:
    return torch.randn(40, 32, generator=torch.Generator().manual_seed(0))


SAMPLES: dict[str, Callable[[], torch.Tensor]] = {
    make.__name__: make
    for make in (
        interleaved,
        sin_cos,
        tensor2tensor,
        offset,
        odd_zero,
        normalised,
        transposed,
        rope_cache,
        bfloat16_positions,
        bfloat16_table,
        textbook,
        per_channel,
        one_cell,
        learned,
        random,
    )
}

# sample: layout, base, denominator, offset, arithmetic, dtype; None: not recognised
WANTED = {
    "interleaved": ("interleaved", 10000, "d/2", 0, "exact", "float32"),
    "sin_cos": ("sin_cos", 500, "d/2", 0, "exact", "float32"),
    "tensor2tensor": ("sin_cos", 10000, "d/2-1", 0, "exact", "float32"),
    "offset": ("interleaved", 10000, "d/2", 2, "exact", "float32"),
    "odd_zero": ("sin_cos", 10000, "d/2", 0, "exact", "float32"),
    "normalised": ("interleaved", 10000, "d/2", 0, "exact", "float64"),
    "transposed": ("interleaved", 100, "d/2", 0, "exact", "float32"),
    "rope_cache": ("rope_cos_half", 500000, "d/2", 0, "power", "float32"),
    "bfloat16_positions": ("interleaved", 10000, "d/2", 0, "bfloat16_positions", "float32"),
    "bfloat16_table": ("interleaved", 10000, "d/2", 0, "exact", "bfloat16"),
    "textbook": ("interleaved", 10000, "d/2", 0, "exp_log", "float32"),
    "per_channel": ("per_channel", 10000, "d/2", 0, "exact", "float32"),
    "one_cell": ("interleaved", 10000, "d/2", 0, "exact", "float32"),
    "learned": None,
    "random": None,
}


def run(*arguments: object, lang: str = "C.UTF-8") -> Any:
    return CliRunner().invoke(app, ["check", *map(str, arguments)], env={"LC_ALL": lang, "COLUMNS": "200"})


def saved(table: Any, file: Path) -> Path:
    """In the format that the name says; bfloat16 as safetensors holds it."""
    table = table.contiguous()
    if file.suffix == ".npy":
        np.save(file, table.numpy())
    elif file.suffix == ".csv":
        np.savetxt(file, table.numpy(), delimiter=",", fmt="%.17g")
    else:
        kind = {torch.float64: "F64", torch.float32: "F32", torch.bfloat16: "BF16"}[table.dtype]
        about = {"pe": {"dtype": kind, "shape": list(table.shape), "data_offsets": [0, table.nbytes]}}
        head = json.dumps(about).encode()
        file.write_bytes(len(head).to_bytes(8, "little") + head + table.view(torch.uint8).numpy().tobytes())
    return file


@pytest.mark.parametrize(("sample", "suffix"), every_second(WANTED, [".npy", ".csv", ".safetensors"]))
def test_planted_tables_are_recognised_in_every_format(tmp_path, sample, suffix):
    table = SAMPLES[sample]()
    if suffix != ".safetensors" and table.dtype == torch.bfloat16:
        table = table.float()
    file = saved(table, tmp_path / f"mine{suffix}")
    done = run(file, "--json")
    found = json.loads(done.stdout)
    assert found["shape"] == list(table.shape)
    assert all(one["en"] and one["zh"] for one in found["findings"])
    wrong = [one for one in found["findings"] if one["level"] == "wrong"]
    assert done.exit_code == bool(wrong)
    wanted = WANTED[sample]
    if wanted is None:
        assert found["formula"] is None
        assert run(file, "--strict").exit_code == 1
        return
    got = tuple(found["formula"][name] for name in ("layout", "base", "denominator", "offset"))
    assert (*got, found["arithmetic"], found["dtype"]) == wanted
    assert found["python"]


def test_the_worst_cell_and_the_mistake_are_named(tmp_path):
    done = run(saved(SAMPLES["one_cell"](), tmp_path / "pe.npy"))
    assert done.exit_code == 1
    assert "pe.npy · 40 × 32, float32 · recognised, errors: 1" in done.stdout
    assert "Largest difference 0.5 at row 20, column 7." in done.stdout
    done = run(saved(SAMPLES["bfloat16_positions"](), tmp_path / "pe.npy"))
    assert "✗ Positions were cast to bfloat16" in done.stdout
    done = run(saved(SAMPLES["interleaved"](), tmp_path / "pe.npy"), lang="zh_CN.UTF-8")
    assert "已识别，没有错误" in done.stdout
    assert done.exit_code == 0


def test_the_printed_program_makes_the_right_table(tmp_path):
    table = SAMPLES["sin_cos"]()
    namespace: dict[str, Any] = {}
    exec(json.loads(run(saved(table, tmp_path / "pe.npy"), "--json").stdout)["python"], namespace)
    np.testing.assert_allclose(namespace["recognised"].double(), table.double(), atol=1e-7)


@pytest.mark.parametrize(
    ("name", "contents", "said"),
    [
        ("a.npy", b"\x80\x04.", "a pickle is not read"),
        ("a.npy", b"PK\x03\x04", "an archive"),
        ("a.csv", b"1,2\n3\n", "row 1 has 1 numbers, the first row 2"),
        ("a.csv", b"1,2\n3,x\n", "row 1 holds 'x', which is no number"),
        ("a.json", b'{"a": 1}', "got {'a': 1}"),
        ("a.txt", b"\xff\xfe\xfd\xfc", "it begins with b'"),
        ("a.safetensors", b"", "the file is empty"),
        ("none.npy", None, "No such file"),
    ],
)
def test_a_file_without_a_table_is_refused_with_what_it_is(tmp_path, name, contents, said):
    if contents is not None:
        (tmp_path / name).write_bytes(contents)
    done = run(tmp_path / name)
    assert done.exit_code == 2
    assert said in " ".join(done.output.replace("│", " ").split())


def test_a_file_that_is_too_large_is_not_read(tmp_path):
    with (tmp_path / "large.npy").open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    done = run(tmp_path / "large.npy")
    assert done.exit_code == 2
    assert f"up to {MOST_BYTES} are read" in done.output


def test_options_for_code_are_refused(tmp_path):
    done = run(saved(SAMPLES["interleaved"](), tmp_path / "pe.npy"), "--as", "rotate")
    assert done.exit_code == 2
    assert "is for code" in done.output
