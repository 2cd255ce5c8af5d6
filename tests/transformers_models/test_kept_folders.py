"""Folders that an earlier posenc saved are read, and compute what they computed then: docs/stability.md promises it.

    kept_folders/NAME/             what save_pretrained wrote, and expected.json: inputs and the logits of that day
    python -m transformers_models.test_kept_folders    (in tests/) writes those of KEPT that are not there

A folder is never written again. A new format gets folders of its own beside these.
"""

import json
from pathlib import Path

import pytest
import torch
import transformers

import posenc
import posenc.transformers as pt
from posenc.configs import read_config

FOLDERS = Path(__file__).with_name("kept_folders")
SIZES = {"n_heads": 2, "d_head": 8, "d_model": 16}
IDS = {"input_ids": [[3, 1, 4, 1, 5, 9, 2, 6], [5, 3, 5, 8, 9, 7, 9, 3]]}


def made(name, **options):
    return posenc.laws.draw_parameters(posenc.create(name, **SIZES, **options), std=0.3)


def llama_1():
    """A Stack, frequencies that are listed, sides, learned tables; the last layer keeps the model's own RoPE."""
    sizes = {"vocab_size": 24, "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 4}
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes, num_attention_heads=2, head_dim=8))
    yarn = made("yarn", layout="half", factor=4.0, trained_length=16)
    values = posenc.create("rope", d_head=8, layout="half", sides=("query", "key", "value", "output"))
    stack = posenc.Stack(made("learned", max_positions=16), yarn, made("t5"))
    pt.attach(model, stack, layers=[0])
    pt.attach(model, made("alibi"), layers=[1])
    return pt.attach(model, values, layers=[2]), IDS


def t5_1():
    """An encoder with a decoder: T5's biases both ways in the encoder, RoPE and then FIRE in the decoder."""
    sizes = {"vocab_size": 24, "d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 2, "num_heads": 2}
    model = transformers.T5ForConditionalGeneration(transformers.T5Config(**sizes))
    decoder = posenc.PerLayer([made("rope", layout="half"), made("fire")])
    return pt.attach(model, {"encoder": made("t5", bidirectional=True), "decoder": decoder}), IDS | {
        "decoder_input_ids": [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0]]
    }


KEPT = {"llama_1": llama_1, "t5_1": t5_1}


@torch.no_grad()
def logits(model, inputs):
    return model.eval()(**{name: torch.tensor(ids) for name, ids in inputs.items()}).logits


@pytest.mark.parametrize("name", KEPT)
def test_a_folder_of_an_earlier_posenc_computes_what_it_computed(name, modules):
    kept = json.loads((FOLDERS / name / "expected.json").read_text())
    auto = (
        transformers.AutoModelForSeq2SeqLM if "decoder_input_ids" in kept["inputs"] else transformers.AutoModelForCausalLM
    )
    expected = torch.tensor(kept["logits"])
    for model in (auto.from_pretrained(FOLDERS / name, trust_remote_code=True), pt.from_pretrained(FOLDERS / name)):
        torch.testing.assert_close(logits(model, kept["inputs"]), expected, rtol=1e-5, atol=1e-5)
    pt.detach(model)
    assert (logits(model, kept["inputs"]) - expected).abs().max() > 1e-2


def test_configurations_of_an_earlier_posenc_are_read():
    llama, t5 = (read_config(FOLDERS / name) for name in KEPT)
    assert [[use.name for use in layer.uses] for layer in llama.layers] == [
        ["Learned", "RoPE", "T5"],
        ["ALiBi"],
        ["RoPE"],
        ["RoPE"],
    ]
    found = {part.part: [[use.name for use in layer.uses] for layer in part.layers] for part in t5.parts}
    assert found == {"encoder": [["T5"], ["T5"]], "decoder": [["RoPE"], ["FIRE"]]}


def test_every_kept_folder_is_read_and_small():
    assert sorted(path.name for path in FOLDERS.iterdir()) == sorted(KEPT)
    assert sum(path.stat().st_size for path in FOLDERS.rglob("*") if path.is_file()) < 200_000


def write() -> None:
    for name, make in KEPT.items():
        if not (FOLDERS / name).exists():
            torch.manual_seed(0)
            model, inputs = make()
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter.normal_(std=0.4)
            model.save_pretrained(FOLDERS / name)
            kept = {"posenc": posenc.__version__, "inputs": inputs, "logits": logits(model, inputs).tolist()}
            (FOLDERS / name / "expected.json").write_text(json.dumps(kept) + "\n")


if __name__ == "__main__":
    write()
