"""What people run on a loaded model, with an encoding attached: other ways to generate, compile and shard."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import posenc.transformers as pt
from transformers_models.test_attach import IDS, logits, made, model_of, near

ROOT = Path(__file__).parents[2]
GREEDY = {"max_new_tokens": 8, "do_sample": False, "pad_token_id": 0, "eos_token_id": None}
NAMES = ["rope", "alibi", "t5"]


def attached(name, **sizes):
    model = model_of(**sizes)
    return pt.attach(model, made(name))


@pytest.mark.parametrize("name", NAMES)
def test_assisted_decoding_gives_the_same_tokens(name):
    """A draft model with another encoding attached; the cache is cut back where its tokens are not taken."""
    model, draft = attached(name), attached("nope", num_hidden_layers=2)
    assert torch.equal(
        model.generate(input_ids=IDS[:1], **GREEDY, assistant_model=draft), model.generate(input_ids=IDS[:1], **GREEDY)
    )


@pytest.mark.parametrize("name", NAMES)
def test_prompt_lookup_gives_the_same_tokens(name):
    model = attached(name)
    prompt = torch.cat([IDS[:1], IDS[:1]], dim=1)
    looked_up = model.generate(input_ids=prompt, **GREEDY, prompt_lookup_num_tokens=3)
    assert torch.equal(looked_up, model.generate(input_ids=prompt, **GREEDY))


@pytest.mark.acceptance
@pytest.mark.parametrize(
    "name", ["rope", *(pytest.param(name, marks=pytest.mark.acceptance) for name in ("alibi", "t5", "xpos"))]
)
def test_one_graph_over_a_static_cache(name):
    """A prompt, then tokens one by one over a static cache: each step compiled whole equals the pass over all tokens."""
    from transformers import StaticCache

    model = attached(name, num_hidden_layers=2)
    whole = logits(model)
    step = torch.compile(model, fullgraph=True, backend="eager", dynamic=False)
    cache = StaticCache(config=model.config, max_cache_len=16)
    with torch.no_grad():
        found = [model(input_ids=IDS[:, :8], past_key_values=cache).logits]
        found += [step(input_ids=IDS[:, n : n + 1], past_key_values=cache).logits for n in (8, 9)]
    near(torch.cat(found, dim=1), whole, 5e-5)


SHARDED = """
import sys, torch
import torch.distributed as dist
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
sys.path.insert(0, "tests")
from transformers_models.test_attach import IDS, logits, made, model_of
import posenc.transformers as pt

dist.init_process_group("gloo")
for name, policy in (("rope", None), ("t5", None), ("t5", torch.bfloat16)):
    alone, model = (pt.attach(model_of(num_hidden_layers=2), made(name)) for _ in range(2))
    for one, other in zip(alone.parameters(), model.parameters(), strict=True):
        other.data.copy_(one.data)
    options = {"mp_policy": MixedPrecisionPolicy(param_dtype=policy)} if policy else {}
    for layer in model.model.layers:
        fully_shard(layer, **options)
    fully_shard(model, **options)
    rows = IDS[dist.get_rank() : dist.get_rank() + 1]
    tolerance = 0.1 if policy else 2e-5
    torch.testing.assert_close(logits(model, rows).float(), logits(alone, rows), rtol=tolerance, atol=tolerance)
    model.train()
    model(input_ids=rows, labels=rows, use_cache=False).loss.backward()
    alone.train()
    sum(alone(input_ids=IDS[n : n + 1], labels=IDS[n : n + 1], use_cache=False).loss for n in (0, 1)).div(2).backward()
    if policy is None:
        expected = dict(alone.named_parameters())
        for key, one in model.named_parameters():
            torch.testing.assert_close(one.grad.full_tensor(), expected[key].grad, rtol=1e-4, atol=1e-6)
    print("checked", name, policy)
dist.destroy_process_group()
"""


@pytest.mark.acceptance
def test_fully_sharded_on_two_processes_gives_the_outputs_and_gradients_of_one():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", SHARDED],
            cwd=ROOT,
            env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in (0, 1)
    ]
    try:
        said = [rank.communicate(timeout=300) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    for rank, (out, error) in zip(ranks, said, strict=True):
        assert rank.returncode == 0, error
        assert out.count("checked") == 3
