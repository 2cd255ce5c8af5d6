"""posenc export-tables: every format is read back by its own reader and compared with fp64 formulas written here."""

import json
import math
import shutil
import subprocess

import numpy as np
import pytest
import torch
from safetensors import safe_open
from typer.testing import CliRunner

import posenc
from posenc.cli import app
from posenc.pictures.exported_tables import exported_tables, write_tables

LENGTH, N_HEADS, D_MODEL = 40, 6, 96
D_HEAD = D_MODEL // N_HEADS
POSITIONS = np.arange(LENGTH, dtype=np.float64)[:, None]


def frequencies(d, base):
    return base ** (-2 * np.arange(d // 2, dtype=np.float64) / d)


def alibi_slopes():
    """Of six heads: those of four, then every other of those of eight (Press et al., section 3)."""
    return np.array([2.0**-2, 2.0**-4, 2.0**-6, 2.0**-8, 2.0**-1, 2.0**-3])


def expected(name):
    """The arrays in fp64."""
    if name == "rope":
        angle = POSITIONS * frequencies(D_HEAD, 500_000.0)
        return {"cos": np.cos(angle), "sin": np.sin(angle), "frequencies": frequencies(D_HEAD, 500_000.0)}
    if name == "sinusoidal":
        angle = POSITIONS * frequencies(D_MODEL, 10_000.0)
        return {"table": np.stack([np.sin(angle), np.cos(angle)], axis=-1).reshape(LENGTH, D_MODEL)}
    distance = np.arange(LENGTH - 1, -LENGTH, -1)
    return {"bias": -alibi_slopes()[:, None] * np.abs(distance)}


OPTIONS = {"rope": ["--base", "500000", "--layout", "half"], "sinusoidal": [], "alibi": []}


def run(*arguments):
    return CliRunner().invoke(app, ["export-tables", *map(str, arguments)])


def written(tmp_path, name, form, *more):
    """The file that the command writes."""
    out = tmp_path / f"{name}.{form}"
    sizes = ["--length", LENGTH, "--d-model", D_MODEL, "--n-heads", N_HEADS]
    done = run(name, *sizes, "--format", form, "--out", out, *OPTIONS[name], *more)
    assert done.exit_code == 0, done.output
    return out


def from_npz(path, tmp_path):
    held = np.load(path)
    return {name: held[name] for name in held.files if name != "metadata"}, json.loads(str(held["metadata"]))


def from_safetensors(path, tmp_path):
    with safe_open(path, "np") as held:
        return {name: held.get_tensor(name) for name in held.keys()}, json.loads(held.metadata()["posenc"])  # noqa: SIM118


def from_c(path, tmp_path):
    """A C program that includes the header writes its arrays out as they are in memory."""
    text = path.read_text(encoding="utf-8")
    metadata = json.loads(text[text.index("{") : text.index("*/")])
    arrays = {}
    for name in metadata["arrays"]:
        program = tmp_path / f"{name}.c"
        program.write_text(
            f'#include <stdio.h>\n#include "{path.name}"\n'
            f"int main(void) {{ return fwrite(posenc_{name}, sizeof posenc_{name}, 1, stdout) != 1; }}\n"
        )
        flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-Wno-unused-const-variable", "-x", "c"]
        subprocess.run(["gcc", *flags, f"-I{tmp_path}", program, "-o", tmp_path / name], check=True)
        found = subprocess.run([tmp_path / name], capture_output=True, check=True).stdout
        arrays[name] = np.frombuffer(found, metadata["dtype"])
    return arrays, metadata


READERS = {"npz": from_npz, "safetensors": from_safetensors, "c": from_c}


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("form", READERS)
@pytest.mark.parametrize("name", OPTIONS)
def test_every_format_holds_the_numbers(name, form, precision, tmp_path):
    if form == "c" and not shutil.which("gcc"):
        pytest.skip("no C compiler on this machine")
    arrays, metadata = READERS[form](written(tmp_path, name, form, "--precision", precision), tmp_path)
    wanted = expected(name)
    assert arrays.keys() == wanted.keys() == metadata["arrays"].keys()
    for key, array in arrays.items():
        assert array.dtype == precision
        np.testing.assert_allclose(
            array.reshape(wanted[key].shape), wanted[key], rtol=0, atol=2 * np.finfo(precision).eps * LENGTH
        )
        if form != "c":
            assert array.shape == wanted[key].shape


def test_the_metadata_says_layout_base_and_units(tmp_path):
    _, metadata = from_npz(written(tmp_path, "rope", "npz"), tmp_path)
    assert metadata["layout"] == "half"
    assert metadata["base"] == 500_000.0
    assert metadata["pairs"] == "pair i is channels (i, i + n) of channels 0 … 15, n = 8"
    assert metadata["softmax_scale"] == pytest.approx(1 / math.sqrt(D_HEAD))
    assert metadata["arrays"]["frequencies"]["unit"] == "radians per position"
    assert metadata["positions"] == "0 … 39"
    assert metadata["configuration"]["d_head"] == D_HEAD


@pytest.mark.parametrize("name", ["lerope", "clex"])
def test_learned_frequencies_are_those_that_turn(name):
    encoding = posenc.laws.draw_parameters(posenc.create(name, d_head=16), seed=1)
    arrays = exported_tables(encoding, 30, "float64").arrays
    assert not np.allclose(arrays["frequencies"], posenc.frequencies.rotary(16).values)
    np.testing.assert_allclose(arrays["cos"], np.cos(np.arange(30)[:, None] * arrays["frequencies"]), atol=1e-12)


def test_cos_and_sin_turn_queries_as_the_library_does():
    encoding = posenc.create("xpos", d_head=16)
    made = exported_tables(encoding, 30, "float64")
    x = torch.randn(1, 1, 30, 16, dtype=torch.float64)
    decay = np.exp(made.arrays["log_decay"])
    a, b = x.numpy()[0, 0, :, 0::2], x.numpy()[0, 0, :, 1::2]
    cos, sin = made.arrays["cos"], made.arrays["sin"]
    by_hand = np.stack([(a * cos - b * sin) * decay, (b * cos + a * sin) * decay], axis=-1).reshape(30, 16)
    np.testing.assert_allclose(
        encoding.rotate(x, posenc.Positions.arange(1, 30), "query")[0, 0].numpy(), by_hand, atol=1e-12
    )


def test_the_columns_of_a_bias_are_distances_from_query_to_key():
    class Forward(posenc.DistanceBias):
        """The distance itself, for two heads: keys after the query get a negative bias."""

        def at_distance(self, delta):
            return torch.stack([delta, 2 * delta]).double()

    made = exported_tables(Forward(), 4)
    assert made.arrays["bias"].tolist() == [[3, 2, 1, 0, -1, -2, -3], [6, 4, 2, 0, -2, -4, -6]]
    assert made.metadata["arrays"]["bias"]["holds"] == "column c is the distance query - key = 3 - c"


@pytest.mark.parametrize("length", [4, 40])
def test_a_configuration_brings_its_scaling(length, tmp_path):
    """YaRN, Peng et al. 2023, section 3.2-3.4, in fp64; LongRoPE takes the factors of the length."""
    config = {"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2,
              "max_position_embeddings": 64, "rope_theta": 1e4,
              "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}}  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))
    out = tmp_path / "t.npz"
    done = run("--config", tmp_path, "--length", length, "--out", out, "--precision", "float64")
    assert done.exit_code == 0, done.output
    d, base, factor, original = 16, 1e4, 4.0, 16
    omega = base ** (-np.arange(0, d, 2) / d)
    low, high = (d * np.log(original / (beta * 2 * np.pi)) / (2 * np.log(base)) for beta in (32, 1))
    low, high = max(np.floor(low), 0), min(np.ceil(high), d - 1)
    ramp = np.clip((np.arange(d // 2) - low) / (high - low), 0, 1)
    angle = np.arange(length)[:, None] * (omega / factor * ramp + omega * (1 - ramp))
    made = from_npz(out, tmp_path)[0]
    np.testing.assert_allclose(made["cos"], (0.1 * np.log(factor) + 1) * np.cos(angle), rtol=0, atol=1e-12)


def test_long_requests_of_a_configuration_have_long_factors(tmp_path):
    config = {"model_type": "phi3", "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2, "rope_theta": 1e4,
              "max_position_embeddings": 64, "original_max_position_embeddings": 16, "pad_token_id": 0,
              "rope_scaling": {"type": "longrope", "short_factor": [1.0] * 8, "long_factor": [2.0] * 8}}  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))
    for length, divided in ((16, 1), (17, 2)):
        out = tmp_path / f"{length}.npz"
        assert run("--config", tmp_path, "--length", length, "--out", out, "--precision", "float64").exit_code == 0
        frequencies = from_npz(out, tmp_path)[0]["frequencies"]
        np.testing.assert_allclose(frequencies, 1e4 ** (-np.arange(0, 16, 2) / 16) / divided, rtol=1e-12)


def test_json_and_what_is_in_the_way(tmp_path):
    out = tmp_path / "here.npz"
    done = run("alibi", "--length", 8, "--out", out, "--json")
    assert json.loads(done.stdout)["shapes"] == {"bias": [8, 15]}
    before = out.read_bytes()
    refused = run("alibi", "--length", 9, "--out", out)
    assert refused.exit_code != 0
    assert isinstance(refused.exception, FileExistsError)
    assert "--force replaces it" in str(refused.exception)
    assert out.read_bytes() == before
    assert run("alibi", "--length", 9, "--out", out, "--force").exit_code == 0
    assert from_npz(out, tmp_path)[0]["bias"].shape == (8, 17)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("ropee", "--length", 8), "unknown encoding"),
        (("learned", "--length", 8), "learned is learned"),
        (("nope", "--length", 8), "does nothing"),
        (("rope", "--length", 8, "--format", "hdf5"), "expected one of npz, safetensors, c"),
        (("rope", "--length", 10**9), "give a smaller length"),
        (("alibi", "--length", 8, "--layout", "half"), "unknown option"),
        (("rope", "--length", 0), "--length"),
        (("--length", 8), "give one of the two, got neither"),
        (("rope", "--config", "x", "--length", 8), "give one of the two, got both"),
        (("rope", "--layer", 1, "--length", 8), "is that of a --config"),
        (("--config", "x", "--base", 5, "--length", 8), "the configuration says it"),
        (("rope", "--length", 8, "--precision", "half"), "precision"),
    ],
)
def test_refusals_say_what_is_right(arguments, said, tmp_path):
    done = run(*arguments, "--out", tmp_path / "none")
    assert done.exit_code == 2
    assert said in " ".join(done.output.replace("│", " ").split())
    assert not list(tmp_path.iterdir())


def test_a_header_is_bounded(tmp_path):
    tables = exported_tables(posenc.create("sinusoidal", d_model=512), 5000)
    with pytest.raises(ValueError, match="take npz or safetensors"):
        write_tables(tables, tmp_path / "large.h", "c")
    assert not list(tmp_path.iterdir())


def test_a_learned_table_is_written_as_it_was_trained():
    encoding = posenc.create("learned", d_model=8, max_positions=20)
    before = encoding.table.dtype
    made = exported_tables(encoding, 12)
    np.testing.assert_array_equal(made.arrays["table"], encoding.table[:12].detach().numpy())
    assert encoding.table.dtype == before
