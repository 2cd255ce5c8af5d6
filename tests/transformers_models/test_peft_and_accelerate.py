"""PEFT's LoRA on top of an attached encoding, and accelerate's hooks below it."""

import accelerate
import peft
import pytest
import torch

import posenc
import posenc.transformers as pt
from posenc.transformers.fit import common_device
from transformers_models.test_attach import HEADS, IDS, logits, made, model_of, near
from transformers_models.test_generation import GREEDY, attached


@pytest.mark.parametrize("name", ["rope", "t5"])
def test_a_lora_on_top_learns_and_comes_off(name):
    model = attached(name)
    before = logits(model)
    adapted = peft.get_peft_model(model, peft.LoraConfig(r=4, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM"))
    near(logits(adapted), before)
    learning = [one for one in adapted.parameters() if one.requires_grad]
    optimizer = torch.optim.SGD(learning, lr=1.0)
    losses = []
    for _ in range(4):
        loss = adapted(input_ids=IDS, labels=IDS, use_cache=False).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    adapted.eval()
    learnt = logits(adapted)
    assert (learnt - before).abs().max() > 1e-4
    cached = adapted.generate(input_ids=IDS, **GREEDY)
    assert torch.equal(cached, adapted.generate(input_ids=IDS, **GREEDY, use_cache=False))
    merged = adapted.merge_and_unload()
    near(logits(merged), learnt)
    pt.detach(merged)


def test_a_lora_is_checked_over_its_cache():
    """Its forward hands on what it does not name, the cache among it."""
    adapted = peft.get_peft_model(attached("rope"), peft.LoraConfig(r=4, target_modules=["q_proj"], task_type="CAUSAL_LM"))
    report = pt.check(adapted)
    assert report.passed, report
    assert report["padded_decoding_equals_alone"].verdict == report["packed_equals_separate"].verdict == "passed"


@pytest.mark.parametrize("first", ["attach", "dispatch"])
def test_a_model_spread_by_a_device_map(first, tmp_path):
    """Half of the layers on disk, loaded for each call by accelerate's hooks: the same logits, and detach after it."""
    plain = attached("rope")
    expected = logits(plain)
    tokens = plain.generate(input_ids=IDS, **GREEDY)
    model = model_of()
    own = logits(model)
    places = {"model.embed_tokens": "cpu", "model.rotary_emb": "cpu", "model.norm": "cpu", "lm_head": "cpu"}
    places |= {f"model.layers.{n}": "cpu" if n < 2 else "disk" for n in range(4)}

    def spread():
        accelerate.dispatch_model(model, places, main_device="cpu", offload_dir=tmp_path, force_hooks=True)

    if first == "dispatch":
        spread()
    pt.attach(model, made("rope"))
    if first == "attach":
        places["posenc_encodings"] = "cpu"
        spread()
    near(logits(model), expected)
    assert torch.equal(model.generate(input_ids=IDS, **GREEDY), tokens)
    pt.detach(model)
    near(logits(model), own)


def test_a_learned_encoding_for_layers_on_several_devices_is_refused():
    on_cpu, elsewhere = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2, device="meta")
    learned = posenc.create("t5", n_heads=HEADS)
    with pytest.raises(pt.Unsupported, match=r"T5 has parameters, and its layers are on several devices, cpu, meta"):
        common_device(learned, [on_cpu, elsewhere], torch.device("cpu"))
    assert common_device(learned, [on_cpu, on_cpu], torch.device("cpu")).type == "cpu"
    assert common_device(posenc.create("alibi", n_heads=HEADS), [on_cpu, elsewhere], torch.device("cpu")).type == "cpu"
