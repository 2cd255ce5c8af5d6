"""The table of image, video and audio models: the printed call and positions give what diffusers' functions give.

make test compares with sums that are kept, make acceptance with the package, which pip downloads.

    python tests/test_diffusion_models.py FOLDER     writes the sums anew; FOLDER holds the package
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from typing import Any

import pytest
import torch
from torch import Tensor

import diffusers_oracle as oracle
import posenc
from posenc.catalogue.lookup import find
from posenc.configs import ConfigError, PositionSpec
from posenc.configs.as_python import as_python
from posenc.configs.families.diffusion_transformers import MODELS, ROWS
from posenc.configs.read import spec_of

VERSION = "0.42.1"
EVERY = [*oracle.TURNED, *oracle.ADDED]
UNREAD = {  # classes of diffusers that are no transformer over patches, frames or sound, and why
    "DreamLiteTransformer2DModel": "a block of a U-Net, whose convolutions hold the order",
    "MiniMaxMusic3RVQDepthDecoder": "a language model over the codes of one frame",
    "PriorTransformer": "of DALL·E 2: a few vectors with a learned table",
    "RFD4ProteinaTransformer": "of proteins: biases for pairs of atoms",
    "T5FilmDecoder": "of a spectrogram decoder whose pipeline diffusers no longer has",
    "Transformer2DModel": "a block of a U-Net",
    "TransformerTemporalModel": "a block of a U-Net",
}


def part_of(name: str) -> tuple[PositionSpec, dict[str, Any], int]:
    """The part of a model that an entry of the oracle is about, its row, and the layer: "LTX-2/audio", "Latte/1"."""
    model, _, part = name.partition("/")
    spec, row = spec_of(MODELS[model]), ROWS[MODELS[model]["_class_name"]]
    if "parts" in row:
        return spec[part], row["parts"][part], 0
    return spec, row, int(part or 0)


def call(name: str) -> str:
    spec, _, layer = part_of(name)
    (use,) = spec.layers[layer].uses
    return as_python(use)


def built(code: str) -> Any:
    imports, _, expression = code.rpartition("\n")
    world: dict[str, Any] = {"posenc": posenc}
    exec(imports, world)
    return eval(expression, world)


def made(name: str) -> tuple[Any, posenc.Positions]:
    """What the printed call builds, with the model's parameters where it has some; and the row's positions."""
    _, row, _ = part_of(name)
    encoding, n = built(call(name)), vars(oracle.sizes(name))
    if name in oracle.LEARNED:
        parameter, drawn = oracle.LEARNED[name]
        with torch.no_grad():
            getattr(encoding, parameter).copy_(drawn())
    at = row.get("added_at", row.get("at")) if name in oracle.ADDED else row.get("at")
    free = posenc.Positions.at(oracle.free_ids(encoding.axes)[None])
    return encoding, free if at is None else eval(at, {"posenc": posenc, "torch": torch} | n)


def ours(name: str) -> Tensor:
    encoding, at = made(name)
    if name in oracle.ADDED:
        width = part_of(name)[0].d_model or 0
        return encoding.embed(torch.zeros(1, at.length, width, dtype=torch.float64), at).detach()
    x = oracle.vectors(name, encoding.d_head if hasattr(encoding, "d_head") else 0, at.length)
    return encoding.rotate(x.double(), at, "query").detach()


def theirs(name: str) -> Tensor:
    spec, _, _ = part_of(name)
    n = oracle.sizes(name)
    if name in oracle.ADDED:
        return oracle.ADDED[name](n)[None].detach()
    at = made(name)[1]
    x = oracle.vectors(name, spec.d_head or 0, at.length)
    return oracle.TURNED[name](x, n, at.coords[0].float()).detach()


def rounding(name: str) -> float:
    """What fp32 may be off by: about ln(base)·2^-24 of a frequency base^e, times the position, times a channel of 2."""
    encoding, at = made(name)
    frequencies = getattr(encoding, "frequencies", (1.0,))
    fastest = max(map(abs, frequencies)) if isinstance(frequencies, posenc.frequencies.Frequencies) else 4.0
    return 4e-6 + 1e-6 * fastest * float(at.coords.abs().max())


@pytest.mark.parametrize("name", EVERY)
def test_the_printed_call_gives_what_diffusers_gave(name):
    kept = json.loads(oracle.KEPT.read_text())[name]
    off = rounding(name) * len(ours(name).flatten()) ** 0.5 / 10  # a sum of as many
    assert oracle.sums(ours(name)) == pytest.approx(kept, abs=max(2e-3, off))


@pytest.fixture(scope="session")
def diffusers(tmp_path_factory):
    """The package, on the path, from the wheel that pip downloads."""
    folder = tmp_path_factory.mktemp("diffusers")
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder)]
    subprocess.run([*pip, f"diffusers=={VERSION}"], check=True)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        wheel.extractall(folder)
    sys.path.insert(0, str(folder))
    yield folder
    sys.path.remove(str(folder))


@pytest.mark.acceptance
@pytest.mark.parametrize("name", EVERY)
def test_the_printed_call_gives_what_diffusers_gives(name, diffusers):
    found, expected = ours(name), theirs(name)
    assert found.shape == expected.shape
    assert (found - expected).abs().max() < rounding(name)
    assert oracle.sums(expected) == pytest.approx(json.loads(oracle.KEPT.read_text())[name], abs=1e-2)


@pytest.mark.acceptance
def test_every_class_of_diffusers_is_read_or_has_a_reason(diffusers):
    source = (diffusers / "diffusers" / "models" / "transformers" / "__init__.py").read_text()
    files = sorted((diffusers / "diffusers" / "models" / "transformers").glob("*.py"))
    configured = {
        name for file in files for name in re.findall(r"^class (\w+)\((?:[^()]*)ConfigMixin", file.read_text(), re.M)
    }
    assert configured == {*ROWS, *UNREAD}, source[:0]


@pytest.mark.acceptance
def test_the_defaults_are_what_the_classes_say(diffusers):
    done = subprocess.run([sys.executable, "tools/diffusers_defaults.py", diffusers / "diffusers", "--check"], check=False)
    assert done.returncode == 0


def test_every_class_has_a_model_that_is_compared():
    compared = {MODELS[name.partition("/")[0]]["_class_name"] for name in EVERY}
    assert {*ROWS} - compared == {"OmniGenTransformer2DModel", "SanaTransformer2DModel"}  # factors of the file; none
    with pytest.raises(ConfigError, match=r"rope_scaling.short_factor: missing"):
        spec_of({"_class_name": "OmniGenTransformer2DModel"})


def test_omnigen_has_longrope_of_its_file():
    factors = {"short_factor": [1.0 + pair / 48 for pair in range(48)], "long_factor": [2.0] * 48}
    spec = spec_of({"_class_name": "OmniGenTransformer2DModel", "rope_scaling": factors})
    found = spec.encoding(0).frequencies
    assert list(found) == pytest.approx([10000 ** (-pair / 48) / (1 + pair / 48) for pair in range(48)], rel=1e-14)
    assert found.cos_sin_scale == pytest.approx((1 + 5 / 12) ** 0.5, rel=1e-14)  # √(1 + ln 32 / ln 4096)
    assert built(as_python(spec.layers[0].uses[0])).frequencies.values == found.values


@pytest.mark.parametrize("model", MODELS)
def test_a_model_is_found_under_what_its_call_builds(model):
    """`posenc list` named Wan under axes of equal width, and sent LTX-Video to what does not fit."""
    spec = spec_of(MODELS[model])
    calls = [as_python(use) for _, part in spec.walk() for layer in part.layers for use in layer.uses]
    encodings = [built(call) for call in dict.fromkeys(calls)]
    named = [match.entry for match in find(model) if not match.guess and match.entry.kind not in ("positions", "none")]
    for entry in named:
        assert entry.class_name in {type(encoding).__name__ for encoding in encodings}, entry.name
        assert entry.name not in ("rope", "partial") or 1 in {encoding.axes for encoding in encodings}
    assert named or not re.search(r'^posenc\.create\("', "".join(calls[:1]))


if __name__ == "__main__":
    sys.path.insert(0, sys.argv[1])
    oracle.KEPT.write_text(
        "{\n" + ",\n".join(f'"{name}": {json.dumps(oracle.sums(theirs(name)))}' for name in EVERY) + "\n}\n"
    )
