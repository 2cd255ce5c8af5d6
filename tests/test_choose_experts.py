"""Forty situations, what an expert would take first, and why: the field's own models where there are some.

Each line: the options of `posenc choose` | the first advice, - where nothing is to be changed | the expert's reason.
"""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

import posenc
from posenc.cli import app
from posenc.configs.families.diffusion_transformers import MODELS
from posenc.configs.read import spec_of

SITUATIONS = """
| rope | every open decoder since Llama has it, and every kernel
--wanted 2048 --kernel plain | rope | it needs no bias in the kernel
--trained 4096 --wanted 32768 | rope | decoders for 32k are RoPE with an extension: Qwen2.5, Llama 3.1
--model encoder --trained 1024 --wanted 8192 | rope | ModernBERT, GTE, Nomic and Jina 3 read 8k with RoPE
--model encoder | rope | ModernBERT and its successors left BERT's table
--model encoder-decoder | t5 | T5, UL2 and their kind
--domain image --trained 196 | axial_rope | DINOv3, EVA-02 and SAM 2 turn by row and column
--domain video --trained 1000 | axial_rope | Wan, HunyuanVideo and CogVideoX-5B have an axis for frames
--domain diffusion --trained 4096 | axial_rope | FLUX, Qwen-Image and Z-Image turn text and patches together
--domain audio --trained 1500 | rope | as accurate as Conformer's, and faster (arXiv 2501.06051)
--domain arithmetic --trained 10 --wanted 100 | abacus | McLeish et al. 2024: digits numbered within their number
--domain graph | rwse | GraphGPS takes it for molecules
--domain points | random_fourier | coordinates without an order: SAM's clicks, NeRF
--of llama --trained 4096 --wanted 4096 | rope | the trained length: keep what the weights know
--of llama --trained 4096 --wanted 16384 | yarn | a short fine-tuning with YaRN (Peng et al. 2023)
--of llama --trained 4096 --wanted 65536 --untuned | dual_chunk | training-free, every distance within the trained ones
--of llama --trained 4096 --wanted 16384 --untuned --kernel plain | yarn | a plain kernel cannot move pairs by chunks
--of gpt2 --trained 1024 --wanted 4096 | learned | a table ends: more rows, and training
--of bert --model encoder --trained 512 --wanted 2048 | learned | the same: Longformer copied its rows
--of bloom --trained 2048 --wanted 8192 | alibi | a slope is defined at every distance
--of t5 --trained 512 --wanted 2048 | t5 | its last bucket holds all that is far
--of mamba --trained 2048 --wanted 8192 | - | no attention, nothing to change
--of jamba --trained 262144 --wanted 1000000 | nope | its attention has no positions
--of "Llama 4" --trained 262144 --wanted 1000000 --untuned | irope | chunks do not grow, the other layers have none
--of "Command A" --trained 8192 --wanted 65536 | rnope_swa | RoPE in windows only: distances do not grow
--of "Gemma 3" --trained 131072 --wanted 262144 | adjusted_base | its class takes no YaRN; a larger base, and training
--of phi-3 --trained 131072 --wanted 262144 | longrope | what its class reads
--of "Llama 3.1" --trained 131072 --wanted 262144 | yarn | a new scaling replaces its own
--of falcon-rw --trained 2048 --wanted 4096 | falcon_alibi | it has ALiBi, at the key's position
--of esm-2 --trained 1024 --wanted 4096 | rope | its class reads no settings: windows of the trained length
--of vit --domain image --trained 196 --wanted 576 | vit | interpolate the grid, train a little
--of mae --domain image --trained 196 --wanted 576 | sinusoidal_2d | sinusoids over coordinates that keep their range
--of dinov3 --domain image --trained 196 --wanted 784 | dinov3_rope | coordinates are shares of the image
--of swin --domain image --trained 49 --wanted 144 | swin | interpolate the table to the larger window
--of FLUX.1 --domain diffusion --trained 4096 --wanted 16384 | dype | Issachar et al. 2025 made it for FLUX
--of HunyuanVideo --domain video --trained 33 --wanted 66 | riflex | twice as long by one slower pair (Zhao et al. 2025)
--of "CogVideoX-2B" --domain video --trained 13 --wanted 26 | sinusoidal_3d | no pair of its queries turns by frames
--of Mochi --domain video --trained 28 --wanted 56 | rope_mixed | no pair is of time alone
--of LTX-Video --domain video --trained 16 --wanted 21 | ltx_ids | seconds, not frames: within 20 s nothing is new
--of Sana --domain diffusion --trained 1024 --wanted 4096 | nope | no positions: its convolutions hold the order
"""
ROWS = [[cell.strip() for cell in line.split("|")] for line in SITUATIONS.strip("\n").splitlines()]
TRIED = [
    "LTX-Video",
    "LTX-2",
    "Wan2.1",
    "Cosmos 1.0",
    "FLUX.2",
    "GLM-Image",
    "Mochi",
    "Allegro",
    "Stable Audio Open",
    "SD3",
]
WORLD: dict[str, Any] = {"posenc": posenc, "torch": torch, "x": torch.zeros(2, 16, 512)}


def advised(options: list[str]) -> dict[str, Any]:
    done = CliRunner().invoke(app, ["choose", *options, "--json"])
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)["advice"]
    return found


@pytest.mark.parametrize(("options", "first", "reason"), ROWS)
def test_an_expert_would_say_so(options, first, reason):
    assert (advised(shlex.split(options))["take"] or ["-"])[0] == first, reason


def test_there_are_forty_and_each_has_a_reason():
    assert len(ROWS) == 40
    assert all(len(reason) > 15 for _, _, reason in ROWS)


EVERY = [pytest.param(model, marks=() if model in TRIED else pytest.mark.acceptance) for model in MODELS]


SOUND = ("Audio", "ACE-Step", "Music")


@pytest.mark.parametrize("model", EVERY)
@pytest.mark.parametrize("wanted", [64, 128, 256])
def test_what_is_printed_of_a_diffusion_model_runs_and_fits_its_heads(model, wanted):
    """choose printed RoPE-Mixed of two coordinates for Mochi, which has three, and heads of 64 channels for all."""
    domain = "audio" if any(word in model for word in SOUND) else "diffusion"
    code = advised(["--of", model, "--domain", domain, "--trained", "64", "--wanted", str(wanted)])["use"]
    world = dict(WORLD)
    exec(code, world)
    if code.startswith("#") or not code:
        return
    parts = [part for _, part in spec_of(MODELS[model]).walk() if part.layers]
    encoding, turns = world["encoding"], "rotate" in world["encoding"].seams
    width = encoding.d_head if turns else encoding.d_model if "embed" in encoding.seams else parts[0].d_head
    assert width in {part.d_head if turns or not encoding.seams else part.d_model for part in parts}
    if "at" in world and turns:
        x = torch.zeros(1, parts[0].n_heads, world["at"].length, width)
        assert encoding.rotate(x, world["at"], "query").shape == x.shape


def test_of_takes_a_folder_and_asks_its_reader(tmp_path):
    sizes = {"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2, "vocab_size": 32}
    config = {"model_type": "mistral", "max_position_embeddings": 512, "sliding_window": None, **sizes}
    (tmp_path / "config.json").write_text(json.dumps(config))
    for given in (tmp_path, tmp_path / "config.json"):
        found = advised(["--of", str(given), "--wanted", "2048"])
        assert found["use"] == f"posenc inspect {given} --extend-to 2048 --method yarn"
        done = CliRunner().invoke(app, [*shlex.split(found["use"])[1:], "--json"])
        assert json.loads(done.stdout)["extensions"][0]["fragment"]
    windows = tmp_path / "windows.json"
    windows.write_text(json.dumps({**config, "sliding_window": 64}))
    found = advised(["--of", str(windows), "--wanted", "2048"])
    assert "turns in layers with a window only" in found["why"]["en"]
    missing = CliRunner().invoke(app, ["choose", "--of", str(tmp_path / "none.json"), "--json"])
    assert missing.exit_code != 0
    assert "no such file" in str(missing.exception)
