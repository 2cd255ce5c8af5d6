"""posenc convert from outside: real files, both ways, killed, planted errors, and every refusal in one line."""

import importlib
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from posenc.configs.convert import checkpoint, files, sizes
from posenc.configs.convert.checkpoint import convert
from posenc.configs.convert.files import same_bits
from posenc.configs.convert.plan import About, Options
from posenc.configs.convert.rows import Heads

LLAMA = {"model_type": "llama", "hidden_size": 32, "num_attention_heads": 4, "num_key_value_heads": 2}


def run(*arguments, code=0):
    done = subprocess.run(
        [sys.executable, "-m", "posenc", "convert", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "COLUMNS": "200", "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    if code == 1:
        assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    return done


def refusal(source, out, to="interleaved", **more):
    """What the command would say, in one line."""
    with pytest.raises((ValueError, OSError)) as caught:
        convert(source, out, to, **more)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def drawn(*shape, dtype=torch.float32, seed=None):
    generator = torch.Generator().manual_seed(hash(shape) % 1000 if seed is None else seed)
    return torch.randn(*shape, generator=generator).to(dtype)


def llama(layers=3, dtype=torch.bfloat16):
    """Grouped heads, biases, norms over a head's channels: 4 query and 2 key heads of 8 channels."""
    tensors = {"model.embed_tokens.weight": drawn(50, 32, dtype=dtype), "lm_head.weight": drawn(50, 32, dtype=dtype)}
    for layer in range(layers):
        at = f"model.layers.{layer}.self_attn"
        for n, (name, rows) in enumerate((("q_proj", 32), ("k_proj", 16), ("v_proj", 16))):
            tensors[f"{at}.{name}.weight"] = drawn(rows, 32, dtype=dtype, seed=10 * layer + n)
            tensors[f"{at}.{name}.bias"] = drawn(rows, dtype=dtype, seed=10 * layer + n + 5)
        tensors[f"{at}.o_proj.weight"] = drawn(32, 32, dtype=dtype)
        tensors[f"{at}.q_norm.weight"], tensors[f"{at}.k_norm.weight"] = drawn(8), drawn(8, seed=3)
        tensors[f"{at}.rotary_emb.inv_freq"] = drawn(4)
    return tensors


def folder(path, tensors, config=LLAMA, shards=1, metadata=None):
    """A folder as save_pretrained leaves it."""
    path.mkdir()
    (path / "tokenizer.json").write_text("{}")
    if config is not None:
        (path / "config.json").write_text(json.dumps(config))
    if shards == 1:
        save_file(tensors, path / "model.safetensors", metadata or {"format": "pt"})
        return path
    names, weight_map = sorted(tensors), {}
    for n in range(shards):
        file = f"model-{n + 1:05}-of-{shards:05}.safetensors"
        part = {name: tensors[name] for name in names[n::shards]}
        save_file(part, path / file, metadata or {"format": "pt"})
        weight_map |= dict.fromkeys(part, file)
    (path / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    return path


def loaded(path):
    files = [path] if path.is_file() else sorted(path.glob("*.safetensors"))
    return {name: tensor for file in files for name, tensor in load_file(file).items()}


def equal(one, other):
    return one.keys() == other.keys() and all(same_bits(one[name], other[name]) for name in one)


def data(path):
    """The bytes of a safetensors file after its head."""
    whole = path.read_bytes()
    return whole[8 + int.from_bytes(whole[:8], "little") :]


# There and back.


@pytest.mark.acceptance
def test_there_and_back_on_several_shards_through_the_command(tmp_path):
    source = folder(tmp_path / "in", llama(), shards=3)
    (source / "nested").mkdir()
    (source / "nested" / "words.txt").write_text("猫")
    done = json.loads(run(source, tmp_path / "out", "--to", "interleaved", "--json").stdout)
    assert (done["from"], done["to"], done["from_known_by"]) == ("half", "interleaved", "model_type llama")
    assert (done["files"], len(done["permuted"])) == (3, 3 * 6)
    assert done["scores"]["difference"] < 1e-9
    assert {path.name for path in (tmp_path / "out").iterdir()} == {path.name for path in source.iterdir()}
    for name in ("tokenizer.json", "nested/words.txt", "model.safetensors.index.json"):
        assert (tmp_path / "out" / name).read_bytes() == (source / name).read_bytes()
    assert json.loads((tmp_path / "out" / "config.json").read_text()) == LLAMA | {"rope_layout": "interleaved"}
    text = run(tmp_path / "out", tmp_path / "back", "--to", "half").stdout
    assert "interleaved → half" in text
    assert "18 of 32 tensors permuted in 3 file(s)" in text
    assert equal(loaded(tmp_path / "back"), loaded(source))
    assert not equal(loaded(tmp_path / "out"), loaded(source))
    for file in source.glob("*.safetensors"):
        assert data(tmp_path / "back" / file.name) == data(file)
        for path, layout in ((tmp_path / "out", "interleaved"), (tmp_path / "back", "half")):
            with safe_open(path / file.name, "pt") as opened:
                assert opened.metadata() == {"format": "pt", "rope_layout": layout}
    assert not list(tmp_path.glob(".*"))


def test_the_rows_that_move_are_those_of_the_formula(tmp_path):
    source = folder(tmp_path / "in", llama(1))
    convert(source, tmp_path / "out", "interleaved")
    old, new = loaded(source), loaded(tmp_path / "out")
    at = "model.layers.0.self_attn"
    for name, heads in (
        (f"{at}.q_proj.weight", 4),
        (f"{at}.q_proj.bias", 4),
        (f"{at}.k_proj.weight", 2),
        (f"{at}.k_norm.weight", 1),
    ):
        for head in range(heads):
            for pair in range(4):
                assert torch.equal(new[name][8 * head + 2 * pair], old[name][8 * head + pair])
                assert torch.equal(new[name][8 * head + 2 * pair + 1], old[name][8 * head + 4 + pair])
    changed = {name for name in old if not torch.equal(old[name], new[name])}
    assert changed == {
        f"{at}.{name}"
        for name in ("q_proj.weight", "q_proj.bias", "k_proj.weight", "k_proj.bias", "q_norm.weight", "k_norm.weight")
    }


def fused(name, rows, bias=True):
    tensors = {f"h.{layer}.attn.{name}.weight": drawn(rows, 24, seed=layer) for layer in range(2)}
    if bias:
        tensors |= {f"h.{layer}.attn.{name}.bias": drawn(rows, seed=layer + 9) for layer in range(2)}
    return tensors | {"h.0.attn.dense.weight": drawn(24, 24)}


LATENT = {
    "l.0.attn.q_a_proj.weight": drawn(7, 24),
    "l.0.attn.q_a_layernorm.weight": drawn(7),
    "l.0.attn.q_b_proj.weight": drawn(2 * 10, 7),
    "l.0.attn.kv_a_proj_with_mqa.weight": drawn(5 + 4, 24),
    "l.0.attn.kv_a_layernorm.weight": drawn(5),
    "l.0.attn.kv_b_proj.weight": drawn(24, 5),
}
ADAPTER = {
    "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight": drawn(3, 32),
    "base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight": drawn(32, 3),
    "base_model.model.model.layers.0.self_attn.q_proj.lora_magnitude_vector": drawn(32),
    "base_model.model.model.layers.0.self_attn.k_proj.lora_A.weight": drawn(3, 32, seed=2),
    "base_model.model.model.layers.0.self_attn.k_proj.lora_B.weight": drawn(16, 3),
    "base_model.model.model.layers.0.self_attn.v_proj.lora_B.weight": drawn(16, 3, seed=4),
}
NORMS_OF_ALL = {
    "model.layers.0.self_attn.q_proj.weight": drawn(32, 32),
    "model.layers.0.self_attn.k_proj.weight": drawn(16, 32),
    "model.layers.0.self_attn.q_norm.weight": drawn(32),
    "model.layers.0.self_attn.k_norm.weight": drawn(2, 8),
}
GATED = {"model.layers.3.self_attn.q_proj.weight": drawn(64, 32), "model.layers.3.self_attn.k_proj.weight": drawn(16, 32)}
EIGHT_BITS = {
    "layers.0.attention.wq.weight": drawn(32, 32, dtype=torch.float8_e4m3fn),
    "layers.0.attention.wk.weight": drawn(16, 32, dtype=torch.float8_e4m3fn),
    "layers.0.attention.wq.weight_scale": drawn(32, 1),
    "layers.0.attention.wk.weight_scale_inv": drawn(1, 1),
    "layers.0.attention.wk.input_scale": torch.tensor(2.0),
    "layers.0.attention.wo.weight": drawn(32, 32),
}
PARTIAL = {"rotary_dim": 4, **LLAMA}
KINDS = {
    "GPT-NeoX": (
        fused("query_key_value", 72),
        {"model_type": "gpt_neox", "hidden_size": 24, "num_attention_heads": 3, "rotary_pct": 0.5},
        4,
    ),
    "Phi-3": (
        fused("qkv_proj", 48, bias=False),
        {"model_type": "phi3", "hidden_size": 24, "num_attention_heads": 4, "num_key_value_heads": 2},
        2,
    ),
    "Falcon": (
        fused("query_key_value", 48),
        {
            "model_type": "falcon",
            "hidden_size": 24,
            "num_attention_heads": 4,
            "num_kv_heads": 2,
            "new_decoder_architecture": True,
        },
        4,
    ),
    "Falcon with one key head": (
        fused("query_key_value", 36),
        {"model_type": "falcon", "hidden_size": 24, "num_attention_heads": 4, "multi_query": True},
        4,
    ),
    "CodeGen": (
        fused("qkv_proj", 96, bias=False),
        {"model_type": "codegen", "n_embd": 32, "n_head": 4, "rotary_dim": 4},
        2,
    ),
    "latent attention": (
        LATENT,
        {
            "model_type": "deepseek_v2",
            "num_attention_heads": 2,
            "kv_lora_rank": 5,
            "qk_nope_head_dim": 6,
            "qk_rope_head_dim": 4,
            "v_head_dim": 6,
        },
        2,
    ),
    "adapter": (ADAPTER, LLAMA, 3),
    "norms over all heads": (NORMS_OF_ALL, {**LLAMA, "model_type": "olmo2"}, 4),
    "gated queries": (GATED, {**LLAMA, "model_type": "qwen3_next", "rope_parameters": {"partial_rotary_factor": 0.5}}, 2),
    "fp8": (EIGHT_BITS, LLAMA, 3),
    "partial": (llama(1), PARTIAL, 6),
    "in a text part": (llama(1), {"model_type": "gemma3", "text_config": {**LLAMA, "model_type": "gemma3_text"}}, 6),
}


@pytest.mark.parametrize("kind", KINDS)
def test_there_and_back_and_equal_scores(kind, tmp_path):
    """`convert` compares scores of the two checkpoints itself; here both its rows and its verdict are looked at."""
    tensors, config, count = KINDS[kind]
    source = folder(tmp_path / "in", tensors, config)
    first = "half" if config["model_type"] in ("codegen", "deepseek_v2") else "interleaved"
    done = convert(source, tmp_path / "out", first)
    assert len(done["permuted"]) == count
    assert done["scores"]["difference"] < 1e-9
    back = convert(tmp_path / "out", tmp_path / "back", done["from"])
    assert back["from_known_by"] == "rope_layout in its files"
    assert equal(loaded(tmp_path / "back"), tensors)
    changed = {name for name, new in loaded(tmp_path / "out").items() if not same_bits(new, tensors[name])}
    assert changed == set(done["permuted"])


def test_a_single_file_with_sizes_from_options(tmp_path):
    save_file(llama(1), tmp_path / "in.safetensors")
    sizes_ = ("--n-heads", 4, "--n-kv-heads", 2, "--d-head", 8, "--rotary-dim", 4, "--trailing")
    run(tmp_path / "in.safetensors", tmp_path / "out.safetensors", "--to", "half", *sizes_)
    old, new = loaded(tmp_path / "in.safetensors"), loaded(tmp_path / "out.safetensors")
    q = "model.layers.0.self_attn.q_proj.weight"
    for head in range(4):  # interleaved in channels 4 … 7 before
        want = [8 * head + row for row in (0, 1, 2, 3, 4, 6, 5, 7)]
        assert torch.equal(new[q][8 * head : 8 * head + 8], old[q][want])
    run(tmp_path / "out.safetensors", tmp_path / "back.safetensors", "--to", "interleaved", *sizes_)
    assert data(tmp_path / "back.safetensors") == data(tmp_path / "in.safetensors")


# Real models.


def tiny(module, name, **more):
    transformers = importlib.import_module("transformers")
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        vocab_size=60,
        max_position_embeddings=64,
        **{"num_key_value_heads": 2, **more},
    )
    model = getattr(transformers, f"{name}ForCausalLM")(config).double().eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model


def logits(model):
    with torch.no_grad():
        return model(input_ids=torch.tensor([[5, 9, 2, 40, 7, 7, 1, 59]])).logits


def again(model, path):
    return type(model).from_pretrained(path, dtype=torch.float64).eval()


def neighbours(q, k, cos, sin, *_, unsqueeze_dim=1, **__):
    """What the code of these families would be in the other layout; cos and sin are [b, t, rotary_dim], halves alike."""
    from transformers.models.gptj.modeling_gptj import rotate_every_two

    cos, sin = (table[..., : table.shape[-1] // 2].repeat_interleave(2, dim=-1)[:, None] for table in (cos, sin))

    def turned(x):
        part, rest = x[..., : cos.shape[-1]], x[..., cos.shape[-1] :]
        return torch.cat([part * cos + rotate_every_two(part) * sin, rest], dim=-1)

    return turned(q), turned(k)


REAL = {  # what each family has that the others have not
    "llama": ("Llama", {"attention_bias": True}),
    "gpt_neox": (
        "GPTNeoX",
        {
            "num_key_value_heads": 4,
            "rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5},
        },
    ),
    "falcon": ("Falcon", {"new_decoder_architecture": True, "num_kv_heads": 2, "bias": True}),
    "phi3": ("Phi3", {"pad_token_id": 0}),
    "qwen3": ("Qwen3", {"head_dim": 12}),
    "olmo2": ("Olmo2", {}),
}


@pytest.mark.parametrize("family", REAL)
def test_a_real_model_reads_the_same_once_its_code_turns_neighbours(family, tmp_path, monkeypatch):
    name, more = REAL[family]
    model = tiny(family, name, **more)
    model.save_pretrained(tmp_path / "in", max_shard_size="20KB")
    assert len(list((tmp_path / "in").glob("*.safetensors"))) > 2
    done = convert(tmp_path / "in", tmp_path / "out", "interleaved")
    assert f"transformers' {family} reads half" in done["notes"][0]
    before, other = logits(model), again(model, tmp_path / "out")
    assert (logits(other) - before).abs().max() > 1e-3 * before.abs().max()  # its own code turns halves
    module = importlib.import_module(f"transformers.models.{family}.modeling_{family}")
    monkeypatch.setattr(module, "apply_rotary_pos_emb", neighbours)
    torch.testing.assert_close(logits(other), before, rtol=0, atol=1e-6 * before.abs().max().item())


def test_a_real_deepseek_v3_reads_the_same_in_its_own_code(tmp_path):
    """Its configuration names the layout, so the conversion changes it too."""
    model = tiny(
        "deepseek_v3",
        "DeepseekV3",
        kv_lora_rank=8,
        q_lora_rank=12,
        qk_rope_head_dim=6,
        qk_nope_head_dim=4,
        v_head_dim=8,
        n_routed_experts=2,
        num_experts_per_tok=1,
        n_group=1,
        topk_group=1,
        first_k_dense_replace=2,
        num_key_value_heads=4,
    )
    model.save_pretrained(tmp_path / "in", max_shard_size="20KB")
    done = convert(tmp_path / "in", tmp_path / "out", "half")
    assert done["heads"]["trailing"]
    assert done["notes"] == ["rope_interleave in config.json is now false, so deepseek_v3's own code reads OUT"]
    other, before = again(model, tmp_path / "out"), logits(model)
    assert other.config.rope_interleave is False
    torch.testing.assert_close(logits(other), before, rtol=0, atol=1e-6)
    other.config.rope_interleave = True
    assert (logits(other) - before).abs().max() > 1e-2


# Never half written, never overwritten.

KILLED = """
import os, sys
from posenc.configs.convert import checkpoint
def progress(what, done, of):
    if what.startswith({stage!r}) and done > {after}:
        os.kill(os.getpid(), {signal})
plain = checkpoint.convert
checkpoint.convert = lambda *a, **k: plain(*a, **{{**k, "progress": progress}})
from posenc.__main__ import main
sys.argv = ["posenc", "convert", *sys.argv[1:]]
main()
"""
SAMPLED_KILLS = {("SIGINT", "reading back")}


@pytest.mark.parametrize(
    ("how", "stage"),
    [
        pytest.param(how, stage, marks=() if (how, stage) in SAMPLED_KILLS else pytest.mark.acceptance)
        for how in ("SIGKILL", "SIGTERM", "SIGINT")
        for stage in ("writing", "reading back")
    ],
)
def test_killed_in_the_middle_there_is_no_out(stage, how, tmp_path):
    source = folder(tmp_path / "in", llama(), shards=2)
    number = getattr(signal, how)
    code = KILLED.format(stage=stage, after=5000, signal=int(number))
    done = subprocess.run(
        [sys.executable, "-c", code, source, tmp_path / "out", "--to", "interleaved"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert not (tmp_path / "out").exists()
    assert equal(loaded(source), llama())
    if how == "SIGKILL":
        assert done.returncode == -number
    else:
        assert (done.returncode, done.stderr) == (130, "posenc: interrupted; nothing was written\n")
        assert [path.name for path in tmp_path.iterdir()] == ["in"]
    run(source, tmp_path / "out", "--to", "interleaved")  # what a kill left behind does not stand in the way


MEASURED = """
import sys, threading, time
from pathlib import Path
from posenc.configs.convert.checkpoint import convert
def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
start, most = resident(), 0
def progress(what, done, of):
    global most
    most = max(most, resident())
convert(Path(sys.argv[1]), Path(sys.argv[2]), "interleaved", progress=progress)
print(most - start)
"""


@pytest.mark.acceptance
def test_memory_does_not_grow_with_the_checkpoint(tmp_path):
    big = llama(2) | {f"model.layers.{n}.mlp.weight": torch.zeros(16 << 20, dtype=torch.bfloat16) for n in range(32)}
    source = folder(tmp_path / "in", big, shards=2)
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, source, tmp_path / "out"], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 600 << 20  # of 1 GiB, and as much read back


def test_out_that_appears_meanwhile_is_not_replaced(tmp_path):
    source = folder(tmp_path / "in", llama(1))

    def appear(path):
        def progress(what, done, of):
            if not path.exists():
                path.write_text("mine")

        return progress

    for one, out in ((source, tmp_path / "out"), (source / "model.safetensors", tmp_path / "out.safetensors")):
        with pytest.raises(FileExistsError):
            convert(one, out, "interleaved", progress=appear(out))
        assert out.read_text() == "mine"
    assert not list(tmp_path.glob(".*"))


def test_a_full_disk_is_seen_before_anything_is_written(tmp_path, monkeypatch):
    source = folder(tmp_path / "in", llama(1))
    monkeypatch.setattr(checkpoint.shutil, "disk_usage", lambda path: type("Usage", (), {"free": 1000})())
    with pytest.raises(OSError, match=r"bytes to write, 1,000 free"):
        convert(source, tmp_path / "out", "interleaved")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


# Errors planted in the writer are found by the pass that reads back.


def planted(change):
    def broken(file, changes, heads, now, to):
        for name, (about, tensor) in zip(file.tensors, checkpoint_converted(file, changes, heads, now, to), strict=True):
            yield about, change(name, tensor.clone(), file)

    checkpoint_converted = checkpoint._converted
    return broken


def one_bit(name, tensor, file):
    if name == "lm_head.weight":
        tensor.view(torch.uint8).view(-1)[1234] ^= 1
    return tensor


def one_row(name, tensor, file):
    if name.endswith("1.self_attn.k_proj.weight"):
        tensor[[3, 4]] = tensor[[4, 3]]
    return tensor


def forgotten(name, tensor, file):
    return file.get(name) if name.endswith("2.self_attn.q_norm.weight") else tensor


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (one_bit, "lm_head.weight should be as it was"),
        (one_row, r"layers\.1\.self_attn\.k_proj\.weight does not invert"),
        (forgotten, r"layers\.2\.self_attn\.q_norm\.weight does not invert"),
    ],
)
def test_a_planted_error_in_writing_is_found(change, message, tmp_path, monkeypatch):
    source = folder(tmp_path / "in", llama(), shards=2)
    monkeypatch.setattr(checkpoint, "_converted", planted(change))
    with pytest.raises(ValueError, match=f"verification: .*{message}"):
        convert(source, tmp_path / "out", "interleaved")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


RULES = {
    "queries forgotten": lambda name, slices: None if "q_proj" in name else slices,
    "a layer forgotten": lambda name, slices: None if "layers.2." in name and "k_" in name else slices,
    "a bias forgotten": lambda name, slices: None if name.endswith("1.self_attn.k_proj.bias") else slices,
    "a norm forgotten": lambda name, slices: None if name.endswith("1.self_attn.q_norm.weight") else slices,
    "the wrong end": lambda name, slices: slices._replace(q=tuple(start + 4 for start in slices.q)),
    "the wrong heads": lambda name, slices: slices._replace(k=slices.k[:1]) if "k_proj.weight" in name else slices,
}


@pytest.mark.parametrize("rule", RULES)
def test_a_wrong_rule_that_inverts_is_found_by_the_scores(rule, tmp_path, monkeypatch):
    """Rows permuted wrongly come back when permuted back; the model that reads them is another one."""
    source, right = folder(tmp_path / "in", llama(), PARTIAL), checkpoint.plan

    def wrong(tensors, heads, options):
        changed = {
            name: (change, RULES[rule](name, change.slices)) for name, change in right(tensors, heads, options).items()
        }
        return {name: change._replace(slices=slices) for name, (change, slices) in changed.items() if slices}

    monkeypatch.setattr(checkpoint, "plan", wrong)
    with pytest.raises(ValueError, match="verification: scores of model"):
        convert(source, tmp_path / "out", "interleaved")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_a_tensor_of_another_size_is_not_written(tmp_path):
    about = About("F32", (2, 3))
    with pytest.raises(ValueError, match="a tensor has 8 bytes, expected 24"):
        files.write(tmp_path / "x", files.head({"w": about}, {}), [(about, torch.zeros(2))], lambda n: None)


def test_wrong_metadata_is_found(tmp_path, monkeypatch):
    source = folder(tmp_path / "in", llama(1))
    monkeypatch.setattr(checkpoint, "head", lambda tensors, metadata: files.head(tensors, {"rope_layout": "half"}))
    with pytest.raises(ValueError, match="verification: the metadata"):
        convert(source, tmp_path / "out", "interleaved")


# Refusals: one line that names what, got and what to do.


def refused(tmp_path, message, tensors=None, config=LLAMA, to="interleaved"):
    source = folder(tmp_path / "in", llama(1) if tensors is None else tensors, config)
    assert message in refusal(source, tmp_path / "out", to)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


@pytest.mark.acceptance
def test_twice_into_the_same_layout(tmp_path):
    refused(
        tmp_path,
        "its heads are already half, according to model_type llama; nothing to convert. "
        "If its weights are not, say --from interleaved",
        to="half",
    )
    run(tmp_path / "in", tmp_path / "out", "--to", "interleaved")
    done = run(tmp_path / "out", tmp_path / "again", "--to", "interleaved", code=1)
    assert "are already interleaved, according to rope_layout in its files; nothing to convert" in done.stderr
    assert "files record interleaved" in refusal(tmp_path / "out", tmp_path / "x", "half", layout_now="half")


@pytest.mark.acceptance
def test_existing_out_and_absent_in(tmp_path):
    source = folder(tmp_path / "in", llama(1))
    (tmp_path / "out").mkdir()
    assert "exists; nothing is overwritten" in refusal(source, tmp_path / "out")
    assert "exists; nothing is overwritten" in refusal(source, source)
    assert "is inside" in refusal(source, source / "out")
    assert "no such file or folder" in refusal(tmp_path / "no", tmp_path / "o")
    assert "no such folder" in refusal(source, tmp_path / "no" / "o")
    run(source, tmp_path / "o", "--to", "pairs", code=2)
    run(source, tmp_path / "o", code=2)
    run(source, tmp_path / "o", "--to", "half", "--leave", "(", code=2)


@pytest.mark.acceptance
def test_pickles_are_not_opened(tmp_path):
    torch.save(llama(1), tmp_path / "pytorch_model.bin")
    done = run(tmp_path / "pytorch_model.bin", tmp_path / "out", "--to", "half", code=1)
    assert "a pickle may run code when read and is not opened" in done.stderr
    source = folder(tmp_path / "in", llama(1))
    (tmp_path / "pytorch_model.bin").rename(source / "pytorch_model.bin")
    report = convert(source, tmp_path / "out", "interleaved")
    assert report["left_out"] == ["pytorch_model.bin"]
    assert not (tmp_path / "out" / "pytorch_model.bin").exists()
    (source / "model.safetensors").unlink()
    assert "pytorch_model.bin is a pickle" in refusal(source, tmp_path / "o")


Q, K = "model.layers.0.self_attn.q_proj", "model.layers.0.self_attn.k_proj"
BOTH = {f"{Q}.weight": drawn(32, 32), f"{K}.weight": drawn(16, 32)}
TENSORS = {
    "packed along the rows": (
        {f"{Q}.qweight": torch.zeros(32, 4, dtype=torch.int32), f"{K}.weight": drawn(16, 32)},
        "q_proj.qweight: I32 [32, 4] are not the rows of a projection (packed",
    ),
    "four bits in one column": (
        {f"{Q}.weight": torch.zeros(512, 1, dtype=torch.uint8), f"{K}.weight": drawn(16, 32)},
        "expected 32 rows (n_heads=4, n_kv_heads=2, d_head=8), got [512, 1] U8; packed numbers",
    ),
    "packed zero points": (
        BOTH | {f"{Q}.weight_zero_point": torch.zeros(4, 2, dtype=torch.int32)},
        "rows move across blocks",
    ),
    "blocks that heads cross": (
        BOTH | {f"{Q}.weight_scale": drawn(8, 2)},
        "weight_scale: F32 [8, 2] belong to blocks of rows",
    ),
    "transposed": ({f"{Q}.weight": drawn(32, 32), f"{K}.weight": drawn(32, 16)}, "stored transposed"),
    "other sizes": ({f"{Q}.weight": drawn(48, 24), f"{K}.weight": drawn(16, 32)}, "got [48, 24] F32; say --n-heads"),
    "a norm of another size": (BOTH | {f"{Q[:-6]}q_norm.weight": drawn(5)}, "q_norm.weight: expected 8 or 32 channels"),
    "an unknown tensor beside": (BOTH | {f"{Q[:-6]}indexer.wk.weight": drawn(8, 32)}, "in 2 stacks"),
    "an unknown vector beside": (
        BOTH | {f"{Q[:-6]}per_dim_scale": drawn(8)},
        "per_dim_scale: unknown tensor beside the projections, which may follow the layout too",
    ),
    "two stacks": (
        BOTH | {f"vision.{name}": tensor.clone() for name, tensor in BOTH.items()},
        "in 2 stacks (model.layers.*.self_attn, vision.model.layers.*.self_attn)",
    ),
    "none": ({"h.0.mlp.weight": drawn(3, 3)}, "no query or key projection among 1 tensors, such as h.0.mlp.weight"),
    "fused in a way not known": ({"h.0.attn.qkv.weight": drawn(64, 32)}, "say --fused concatenated, grouped or blocks"),
}


@pytest.mark.parametrize("kind", TENSORS)
def test_tensors_that_are_refused(kind, tmp_path):
    tensors, message = TENSORS[kind]
    refused(tmp_path, message, tensors)


CONFIGS = {
    "none": (None, "num_attention_heads: not in config.json or params.json; say --n-heads"),
    "no width": ({"num_attention_heads": 4}, "hidden_size: not in config.json or params.json; say --d-head"),
    "a string": ({**LLAMA, "num_attention_heads": "4"}, "expected a whole number from 1, got '4'"),
    "negative": ({**LLAMA, "num_key_value_heads": -2}, "num_key_value_heads: expected a whole number from 1, got -2"),
    "not divisible": ({**LLAMA, "hidden_size": 30}, "hidden_size: 30 is not a multiple of 4 heads"),
    "heads that do not divide": ({**LLAMA, "num_key_value_heads": 3}, "n_kv_heads: 3 does not divide n_heads=4"),
    "odd part": ({**LLAMA, "partial_rotary_factor": 0.4}, "expected an even number from 2 up to d_head=8, got 3"),
    "no part": ({**LLAMA, "model_type": "phi"}, "not in config.json, and phi rotates a part of a head"),
    "parts by layer": (
        {**LLAMA, "rope_parameters": {"full": {"partial_rotary_factor": 0.5}, "sliding": {"rope_theta": 1}}},
        "partial_rotary_factor: differs between layers",
    ),
    "alibi": ({**LLAMA, "model_type": "falcon", "alibi": True}, "alibi is true, so nothing rotates"),
    "values turn": ({**LLAMA, "model_type": "deepseek_v4"}, "deepseek_v4: cannot be converted, its values rotate too"),
    "no object": ([1], "expected a JSON object such as a model's config.json, got a list"),
}


@pytest.mark.parametrize("kind", CONFIGS)
def test_configurations_that_are_refused(kind, tmp_path):
    config, message = CONFIGS[kind]
    refused(tmp_path, message, config=config)


@pytest.mark.parametrize(
    ("config", "has"),
    [
        ({"model_type": "bloom", "hidden_size": 32, "n_head": 4, "n_layer": 1}, "ALiBi"),
        ({"model_type": "gpt2", "n_embd": 32, "n_head": 4, "n_layer": 1}, "Learned"),
        ({"model_type": "t5", "d_model": 32, "num_heads": 4, "num_layers": 1}, "T5"),
    ],
)
def test_a_model_without_rotation_has_no_layout(config, has, tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    save_file({"transformer.h.0.self_attention.query_key_value.weight": drawn(96, 32)}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config))
    said = refusal(folder, tmp_path / "out", "interleaved")
    assert said == f"model_type {config['model_type']}: it has {has}, so nothing rotates and there is no layout to convert"


def test_every_shard_that_is_cut_short_is_named(tmp_path):
    source = tmp_path / "in"
    source.mkdir()
    save_file({"a": torch.zeros(4)}, source / "a.safetensors")
    for name in ("b", "c"):
        save_file({name: torch.zeros(400)}, path := source / f"{name}.safetensors")
        path.write_bytes(path.read_bytes()[:-100])
    first, second = refusal(source, tmp_path / "out", n_heads=1).split("again; ")
    assert "b.safetensors: cut short: b ends at byte" in first
    assert "c.safetensors: cut short: c ends at byte" in second


def test_files_that_are_refused(tmp_path):
    source = folder(tmp_path / "in", llama(1), shards=2)
    index = source / "model.safetensors.index.json"
    whole = json.loads(index.read_text())
    for change, message in (
        ({"model.extra": "../../etc/passwd"}, "'../../etc/passwd' is not a file of this folder"),
        ({"model.extra": "model-00003-of-00002.safetensors"}, "in the folder but not in its index"),
        (
            {"model.extra": "model-00001-of-00002.safetensors"},
            "model.extra is in the index or in the file, but not in both",
        ),
    ):
        index.write_text(json.dumps({"weight_map": whole["weight_map"] | change}))
        assert message in refusal(source, tmp_path / "out")
    index.write_text("[" * 100000)
    assert "nested too deeply" in refusal(source, tmp_path / "out")
    index.unlink()
    save_file(llama(1), source / "consolidated.safetensors")
    assert "is in another file too" in refusal(source, tmp_path / "out")
    (source / "consolidated.safetensors").write_bytes(b"\xff" * 200)
    assert "not a safetensors file" in refusal(source, tmp_path / "out")
    (source / "config.json").write_text("{")
    assert "not JSON" in refusal(source, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_what_the_caller_knows_better(tmp_path):
    vision = {f"vision.{name}": tensor.clone() for name, tensor in BOTH.items()}
    source = folder(tmp_path / "in", BOTH | vision | {f"{Q[:-6]}per_dim_scale": drawn(8)})
    done = convert(
        source,
        tmp_path / "out",
        "interleaved",
        options=Options(under=("model.layers.*.self_attn",), leave=("per_dim_scale",)),
    )
    assert set(done["permuted"]) == BOTH.keys()
    with pytest.raises(ValueError, match=r"--under text: no such stack; found model.layers"):
        convert(source, tmp_path / "o", "interleaved", options=Options(under=("text",)))
    other = folder(tmp_path / "fused", {"h.0.attn.qkv.weight": drawn(64, 32)})
    assert convert(other, tmp_path / "o", "interleaved", options=Options(fused="concatenated"))["permuted"]


def test_sizes_that_configurations_say():
    def heads(**config):
        return sizes.heads(config, {})

    assert heads(n_heads=8, n_kv_heads=2, dim=64) == Heads(8, 8, 2)  # params.json
    assert heads(num_attention_heads=4, hidden_size=32, head_dim=16).d_head == 16
    assert heads(n_head=4, n_embd=64, rotary_dim=8, model_type="gptj") == Heads(4, 16, 4, 8)
    rope = {"rope_type": "proportional", "partial_rotary_factor": 0.25}  # pairs stand still, channels do not
    assert heads(num_attention_heads=4, head_dim=16, rope_parameters=rope).rotary_dim == 16
    assert heads(num_attention_heads=4, head_dim=16, rope_scaling={"partial_rotary_factor": 0.5}).rotary_dim == 8
    latent = heads(num_attention_heads=4, kv_lora_rank=9, qk_nope_head_dim=12, qk_rope_head_dim=4)
    assert (latent.d_head, latent.rotary_dim, latent.trailing, latent.latent) == (16, 4, True, 9)
    assert heads(model_type="falcon", num_attention_heads=4, hidden_size=32).n_kv_heads == 1


def test_help_shows_how():
    text = run("--help").stdout
    for word in ("posenc convert llama llama-interleaved --to interleaved", "--n-heads", "--under", "--leave", "--from"):
        assert word in text


DOCS = Path(__file__).parent.parent / "docs"


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), flags=re.DOTALL)


def test_the_page_runs_as_printed_and_its_twin_holds_the_same(capsys):
    namespace = {}
    for code in blocks("layouts.md", "python"):
        exec(compile(code, "layouts.md", "exec"), namespace)
    assert capsys.readouterr().out == "".join(blocks("layouts.md", "output"))
    for language in ("python", "output", "sh", "text"):
        assert blocks("layouts.md", language) == blocks("layouts.zh-CN.md", language)
