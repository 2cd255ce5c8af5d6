"""SmolLM2-135M-Instruct, dequantised: what posenc puts in the place of the model's own changes nothing, in trained weights.

The model comes by pip, see tools/trained_models.py.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
import torch
import trained_models
import transformers
from gguf import GGUFReader, dequantize
from safetensors import safe_open
from safetensors.torch import load_file

import in_process
import posenc
import posenc.transformers as pt
from posenc.configs.convert.checkpoint import convert

transformers.logging.set_verbosity_error()
pytestmark = pytest.mark.acceptance
PROMPT = "It was the schoolmaster of mathematics who first told me about the hot springs, and"
GENERATED = 2000
KEPT = Path(__file__).parents[2] / "results" / "real" / "smollm2-botchan.jsonl"
NEAR = 5e-4  # of logits up to 30, in float32, after 30 layers that sum in another order


@pytest.fixture(scope="module")
def model():
    file = trained_models.smollm2()
    return transformers.AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32).eval()


@pytest.fixture(scope="module")
def tokenizer():
    file = trained_models.smollm2()
    return transformers.AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)


@pytest.fixture(scope="module")
def tokens(tokenizer):
    """The beginning of the novel."""
    return tokenizer(trained_models.botchan().read_text("utf-8")[:4000], return_tensors="pt").input_ids


@pytest.fixture(scope="module")
def saved(model, tmp_path_factory):
    """As safetensors: transformers saves no model that says it was read from a GGUF file."""
    folder = tmp_path_factory.mktemp("saved")
    config = copy.deepcopy(model.config)
    del config.quantization_config
    plain = type(model)(config)
    plain.load_state_dict(model.state_dict())
    plain.save_pretrained(folder)
    return folder


def own(exact="fp64"):
    spec = posenc.read_config(trained_models.smollm2())
    return spec.encodings(exact=exact)


def in_half(model, exact="fp64"):
    """The model's own encoding, in the layout that transformers gives the weights; a GGUF file has the other one."""
    return posenc.read_config(model.config.to_dict(), defaults=True).encodings(exact=exact)


PUT_ON = {
    "plain": lambda model: model,
    "fast": pt.fast,
    "attached": lambda model: pt.attach(model, in_half(model)),
    "attached, fp32 angles": lambda model: pt.attach(model, in_half(model, "model")),
}


@pytest.fixture(params=PUT_ON)
def put_on(request, model):
    yield request.param, PUT_ON[request.param](model)
    if request.param != "plain":
        (pt.slow if request.param == "fast" else pt.detach)(model)


@torch.no_grad()
def logits(model, ids, **inputs):
    return model(ids, use_cache=False, **inputs).logits


@torch.no_grad()
def continued(model, ids, new):
    """Greedy tokens, never the end token, and the logits that chose them."""
    options = {"do_sample": False, "output_logits": True, "return_dict_in_generate": True}
    out = model.generate(ids, max_new_tokens=new, min_new_tokens=new, **options)
    return out.sequences, torch.stack(out.logits, 1)


@pytest.fixture(scope="module")
def by_itself(model, tokenizer, tokens):
    """Logits of the plain model, and 60 greedy tokens of it."""
    return logits(model, tokens), continued(model, tokenizer(PROMPT, return_tensors="pt").input_ids, 60)[0]


def test_the_model_knows_english(by_itself, tokens):
    """That it was read as it was trained: perplexity of the novel's first page."""
    loss = torch.nn.functional.cross_entropy(by_itself[0][0, :-1], tokens[0, 1:])
    assert loss.exp() < 40


def test_every_law_holds(model):
    report = pt.check(model)
    assert report.passed, report


def test_logits_and_text_are_the_models_own(put_on, by_itself, tokenizer, tokens):
    name, changed = put_on
    expected, text = by_itself
    if name in ("fast", "attached, fp32 angles"):
        assert torch.equal(logits(changed, tokens), expected)
    else:
        torch.testing.assert_close(logits(changed, tokens), expected, rtol=0, atol=NEAR)
    assert torch.equal(continued(changed, tokenizer(PROMPT, return_tensors="pt").input_ids, 60)[0], text)


def test_another_layout_is_refused_and_the_model_stays_as_it_is(model, tokens, by_itself):
    with pytest.raises(ValueError, match="create it with layout='half'"):
        pt.attach(model, own())
    assert torch.equal(logits(model, tokens), by_itself[0])


def test_converted_to_interleaved_the_rows_are_those_of_the_gguf_file(saved, tmp_path):
    """llama.cpp keeps queries and keys of Llama interleaved: its file is the oracle of `convert`; and back again."""
    there, back = tmp_path / "interleaved", tmp_path / "half"
    convert(saved, there, "interleaved")
    with safe_open(there / "model.safetensors", framework="pt") as file:
        seen = 0
        for tensor in GGUFReader(trained_models.smollm2()).tensors:
            _, number, name = [*tensor.name.split("."), "", ""][:3]
            if name in ("attn_q", "attn_k"):
                expected = torch.from_numpy(dequantize(tensor.data, tensor.tensor_type))
                ours = file.get_tensor(f"model.layers.{number}.self_attn.{name[-1]}_proj.weight")
                assert torch.equal(ours, expected), tensor.name
                seen += 1
    assert seen == 60
    convert(there, back, "half")
    first, last = load_file(saved / "model.safetensors"), load_file(back / "model.safetensors")
    assert first.keys() == last.keys()
    assert all(torch.equal(first[name], last[name]) for name in first)


def test_converted_and_turned_in_pairs_it_is_the_same_model(saved, by_itself, tokens, tmp_path):
    convert(saved, tmp_path / "interleaved", "interleaved")
    other = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "interleaved").eval()
    pt.attach(other, own())
    torch.testing.assert_close(logits(other, tokens), by_itself[0], rtol=0, atol=NEAR)


@pytest.mark.parametrize("name", ["plain", "attached"])
def test_tokens_generated_over_a_cache_have_the_logits_of_one_pass(name, model, tokenizer):
    ids = tokenizer(PROMPT, return_tensors="pt").input_ids
    changed = PUT_ON[name](model)
    try:
        text, decoded = continued(changed, ids, GENERATED)
        at_once = logits(changed, text, logits_to_keep=GENERATED + 1)[:, :-1]
    finally:
        if name != "plain":
            pt.detach(model)
    torch.testing.assert_close(decoded, at_once, rtol=0, atol=NEAR)


@torch.no_grad()
def test_left_padding_changes_nothing(put_on, tokens):
    _, changed = put_on
    long, short = tokens[:, :200], tokens[:, 300:420]
    padding = torch.zeros(1, 80, dtype=torch.long)
    mask = torch.cat([torch.ones_like(long), torch.cat([padding, torch.ones_like(short)], 1)])
    both = logits(changed, torch.cat([long, torch.cat([padding + 2, short], 1)]), attention_mask=mask)
    torch.testing.assert_close(both[:1], logits(changed, long), rtol=0, atol=NEAR)
    torch.testing.assert_close(both[1:, 80:], logits(changed, short), rtol=0, atol=NEAR)


@torch.no_grad()
def test_packing_changes_nothing(put_on, tokens):
    _, changed = put_on
    parts = [tokens[:, :200], tokens[:, 300:420], tokens[:, 500:501], tokens[:, 600:650]]
    at = torch.cat([torch.arange(part.shape[1]) for part in parts])[None]
    packed = logits(changed, torch.cat(parts, 1), position_ids=at)
    alone = torch.cat([logits(changed, part) for part in parts], 1)
    torch.testing.assert_close(packed, alone, rtol=0, atol=NEAR)


def test_the_command_gives_the_scores_that_are_kept(tmp_path):
    """The shortest window of the table in docs/recipes.md; a processor may round bfloat16 in another way."""
    given = (
        "--text",
        trained_models.botchan(),
        "--lengths",
        "2048",
        "--extend",
        "ntk:4,yarn:4,nope",
        "--dtype",
        "bfloat16",
    )
    ended = in_process.posenc("lab", "score", trained_models.smollm2(), *given, "--out", tmp_path, "--json")
    assert ended.returncode == 0, ended.stderr
    kept = {(one["method"], one["length"]): one for one in map(json.loads, KEPT.read_text("utf-8").splitlines())}
    scores = json.loads(ended.stdout)["scores"]
    assert len(scores) == 4
    for one in scores:
        expected = kept[one["method"], 2048]
        assert (one["loss"], one["copied"]) == pytest.approx((expected["loss"], expected["copied"]), abs=0.05)
        assert one["end"] == expected["end"]


def test_a_passkey_is_found_at_512_tokens(tmp_path):
    """docs/recipes.md shows 10 of 10, with more windows and at 2 048 tokens too."""
    given = ("--task", "passkey", "--lengths", "512", "--samples", "4", "--dtype", "bfloat16", "--out", tmp_path, "--json")
    ended = in_process.posenc("lab", "score", trained_models.smollm2(), *given)
    assert ended.returncode == 0, ended.stderr
    scores = json.loads(ended.stdout)["scores"]
    assert [one["exact"] for one in scores] == [1, 1, 1, 1]
    assert max(one["answer"] for one in scores) < 0.5


def test_the_page_shows_what_was_found():
    kept = [json.loads(line) for line in KEPT.with_name("smollm2-retrieval.jsonl").read_text("utf-8").splitlines()]
    for page in ("recipes.md", "recipes.zh-CN.md"):
        shown = (KEPT.parents[2] / "docs" / page).read_text("utf-8")
        for length, written in ((512, "512"), (2048, "2 048")):
            (row,) = (line.strip("| ").split(" | ")[1:] for line in shown.splitlines() if line.startswith(f"| {written} "))
            tasks = ("passkey", "needle", "keys", "variables")
            found = [sum(one["exact"] for one in kept if (one["task"], one["length"]) == (task, length)) for task in tasks]
            assert list(map(int, row)) == found
