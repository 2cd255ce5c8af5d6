"""Positional weights of checkpoints: one call fills posenc's encodings; pickles and slips are refused."""

from __future__ import annotations

import json

import pytest
import torch
import typer
from safetensors.torch import save_file
from typer.testing import CliRunner

import posenc
from families.harness import build, config_of, spec_of
from posenc.configs.commands import inspect as inspect_


def saved(model_type: str, folder, **sizes):
    model = build(config_of(model_type, **sizes), attention=None)
    model.save_pretrained(folder, max_shard_size="40KB")
    return model


def test_a_learned_table_of_a_sharded_folder(tmp_path):
    model = saved("gpt2", tmp_path, n_positions=50)
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    layers = posenc.load_encodings(tmp_path)[""]
    assert len(layers) == 4
    assert torch.equal(layers[0].table, model.wpe.weight)
    x, at = torch.zeros(1, 3, 64), posenc.Positions.at(torch.tensor([[0, 7, 49]]))
    assert torch.equal(layers[0].embed(x, at)[0], model.wpe.weight[[0, 7, 49]])


def test_t5_buckets_of_both_stacks(tmp_path):
    model = saved("t5", tmp_path, d_model=64, num_heads=4, num_layers=2, d_kv=16, d_ff=16)
    found = posenc.load_encodings(tmp_path)
    delta = torch.arange(-20, 21)
    for side in ("encoder", "decoder"):
        theirs = getattr(model, side).block[0].layer[0].SelfAttention
        assert torch.equal(found[side][0].table, theirs.relative_attention_bias.weight)
        buckets = theirs._relative_position_bucket(-delta, side == "encoder", 32, 128)
        assert torch.equal(found[side][0].at_distance(delta), theirs.relative_attention_bias.weight[buckets].T)


def test_swin_windows(tmp_path):
    model = saved(
        "swin",
        tmp_path,
        num_attention_heads=None,
        num_hidden_layers=None,
        embed_dim=8,
        depths=[1, 1],
        num_heads=[2, 2],
        window_size=2,
        image_size=16,
        patch_size=2,
    )
    layers = next(iter(posenc.load_encodings(tmp_path).values()))
    state = model.state_dict()
    tables = [state[name] for name in state if name.endswith("relative_position_bias_table")]
    biases = [[p for p in (part if isinstance(part, posenc.Stack) else [part]) if hasattr(p, "window")] for part in layers]
    found = [one[0].table for one in biases if one]
    assert len(found) == len(tables) == 2
    for mine, theirs in zip(found, tables, strict=True):
        assert torch.equal(mine, theirs)


def test_two_parts_with_tables_of_one_name(tmp_path):
    parts = {
        part: {"hidden_size": 16, "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 16} | more
        for part, more in (
            ("text_config", {"max_position_embeddings": 9, "vocab_size": 32, "projection_size": 16}),
            ("vision_config", {"image_size": 8, "patch_size": 4}),
        )
    }
    model = saved("siglip", tmp_path, **parts)
    found = posenc.load_encodings(tmp_path)
    assert torch.equal(found["text_config"][0].table, model.text_model.embeddings.position_embedding.weight)
    assert torch.equal(found["vision_config"][0].table, model.vision_model.embeddings.position_embedding.weight)


def test_a_state_dict_and_buffers_that_old_programs_stored(tmp_path):
    config = config_of("llama")
    model = build(config, attention=None)
    state = dict(model.state_dict()) | {"model.layers.0.self_attn.rotary_emb.inv_freq": torch.zeros(3)}
    layers = posenc.load_encodings(state, spec_of(config))[""]
    fresh = spec_of(config).encoding(0)
    q = torch.randn(1, 2, 4, 16)
    at = posenc.Positions.arange(1, 4)
    assert torch.equal(layers[0].rotate(q, at, "query"), fresh.rotate(q, at, "query"))
    with pytest.raises(TypeError, match="spec: a state dict does not say"):
        posenc.load_encodings(state)


def test_what_is_not_there_or_of_another_size_is_named(tmp_path):
    spec = spec_of(config_of("gpt2", n_positions=50))
    with pytest.raises(KeyError, match=r"wpe.weight: expected one tensor of that name in the checkpoint, found 0"):
        posenc.load_encodings({"h.0.weight": torch.zeros(1)}, spec)
    with pytest.raises(KeyError, match="found 2"):
        posenc.load_encodings({"a.wpe.weight": torch.zeros(50, 64), "b.wpe.weight": torch.zeros(50, 64)}, spec)
    with pytest.raises(ValueError, match=r"wpe.weight: \[49, 64\] in the checkpoint, the configuration says \[50, 64\]"):
        posenc.load_encodings({"wpe.weight": torch.zeros(49, 64)}, spec)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt2"}))
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x04")
    with pytest.raises(FileNotFoundError, match="is a pickle, which can run code"):
        posenc.load_encodings(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"not one")
    with pytest.raises(posenc.ConfigError, match=r"model.safetensors: not a safetensors file"):
        posenc.load_encodings(tmp_path)
    save_file({"wpe.weight": torch.zeros(2, 2)}, tmp_path / "model.safetensors")
    save_file({"wpe.weight": torch.zeros(2, 2)}, tmp_path / "other.safetensors")
    with pytest.raises(posenc.ConfigError, match=r"wpe.weight: is in .* and in another file"):
        posenc.load_encodings(tmp_path)


def test_inspect_measures_a_learned_table(tmp_path):
    model = saved("gpt2", tmp_path, n_positions=50)
    app = typer.Typer()
    app.command()(inspect_.command)
    run = CliRunner().invoke(app, [str(tmp_path), "--weights", str(tmp_path), "--json"])
    (found,) = json.loads(run.stdout)["weights"]
    rows = torch.nn.functional.normalize(model.wpe.weight.detach().double(), dim=1)
    assert (found["weight"], found["shape"]) == ("wpe.weight", [50, 64])
    assert found["similarity"]["1"] == pytest.approx(float((rows[1:] * rows[:-1]).sum(1).mean()), abs=1e-9)
    shown = CliRunner().invoke(app, [str(tmp_path), "--weights", str(tmp_path)], env={"COLUMNS": "100", "NO_COLOR": "1"})
    assert "wpe.weight" in shown.stdout
