"""posenc.transformers.fast on tiny random models: the model's own bits and gradients, closer in bf16, one model only."""

import copy
import pickle

import pytest
import torch
import transformers

import posenc
import posenc.transformers as pt
from families.harness import config_of
from posenc.transformers import rotation_forms
from posenc.transformers.rotation_forms import FORMS, SIGNATURES, Form, matching, of_pair
from transformers_models import tiny

transformers.logging.set_verbosity_error()
IDS = torch.randint(3, 30, (2, 10), generator=torch.Generator().manual_seed(0))
ROTARY_LAYERS = {
    "llama": 4,
    "cohere": 4,  # interleaved, tables too
    "glm": 4,  # interleaved, half of the head
    "phi": 4,  # half of the head
    "gemma3_text": 4,  # two kinds of layers
    "gpt_oss": 4,  # tables that hold each number once
    "smollm3": 3,  # the last layer does not rotate
    "deepseek_v3": 4,  # takes interleaved pairs and returns halves; the function has another name
    "deepseek_v2": 4,  # complex numbers
    "nanochat": 4,  # turns by the negative angle
    "gptj": 8,  # one tensor a call, sin before cos
    "gemma4_text": 8,  # one tensor a call
}


def model_of(model_type="llama", **sizes):
    torch.manual_seed(0)
    config = config_of(model_type, **sizes)
    return transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()


def losses(model):
    model.zero_grad()
    loss = model(input_ids=IDS, labels=IDS, use_cache=False).loss
    loss.backward()
    return loss.detach(), [p.grad.clone() for p in model.parameters() if p.grad is not None]


def kernel_calls(monkeypatch):
    """Counts how often posenc rotates."""
    calls = []
    for name in ("rotate", "rotate_both"):
        kept = getattr(rotation_forms, name)
        monkeypatch.setattr(
            rotation_forms, name, lambda *given, kept=kept, **options: calls.append(1) or kept(*given, **options)
        )
    return calls


@pytest.mark.parametrize("model_type", ROTARY_LAYERS)
def test_float32_has_the_models_own_bits_and_gradients(model_type, monkeypatch):
    model = tiny.model_of(model_type)
    own_loss, own = losses(model)
    calls = kernel_calls(monkeypatch)
    assert pt.fast(model) is model
    calls.clear()
    loss, gradients = losses(model)
    assert len(calls) == ROTARY_LAYERS[model_type]
    assert torch.equal(loss, own_loss)
    sums = 1e-6 if model_type == "deepseek_v2" else 1e-7  # gradients of complex products are summed in another order
    for gradient, expected in zip(gradients, own, strict=True):
        torch.testing.assert_close(gradient, expected, rtol=1e-6, atol=sums)
    pt.slow(model)
    calls.clear()
    assert torch.equal(losses(model)[0], own_loss)
    assert not calls


@torch.no_grad()
def test_bfloat16_is_closer_to_float64():
    """The rotation as each layer calls it: of random queries, with tables in bf16 as the model hands them over."""
    from transformers.models.llama.modeling_llama import apply_rotary_pos_emb as own

    q, k = torch.randn(2, 1, 4, 64, 16, generator=torch.Generator().manual_seed(1)).bfloat16()
    angle = torch.arange(64)[None, :, None] * torch.tensor([1.0, 0.1, 0.01, 0.001] * 4)
    cos, sin = angle.cos().bfloat16(), angle.sin().bfloat16()
    exact = own(q.double(), k.double(), cos.double(), sin.double())

    def error(got):
        return sum((one.double() - other).square().mean() for one, other in zip(got, exact, strict=True))

    assert error(of_pair(Form("half", "half", "half"))(q, k, cos, sin, 1)) < 0.7 * error(own(q, k, cos, sin))


@torch.no_grad()
def test_only_this_model_changes(monkeypatch):
    model, other = model_of(), model_of()
    pt.fast(model)
    calls = kernel_calls(monkeypatch)
    other(input_ids=IDS, use_cache=False)
    assert not calls
    same = copy.deepcopy(model)
    same(input_ids=IDS, use_cache=False)
    assert len(calls) == 4
    pt.slow(same)
    calls.clear()
    same(input_ids=IDS, use_cache=False)
    assert not calls
    model(input_ids=IDS, use_cache=False)
    assert len(calls) == 4


@torch.no_grad()
def test_a_pickled_model_has_its_own_rotation_and_can_be_fast(monkeypatch):
    model = pickle.loads(pickle.dumps(pt.fast(model_of())))
    calls = kernel_calls(monkeypatch)
    own = model(input_ids=IDS, use_cache=False).logits
    assert not calls
    with pytest.raises(ValueError, match="has its own rotation"):
        pt.slow(model)
    assert torch.equal(pt.fast(model)(input_ids=IDS, use_cache=False).logits, own)
    assert len(calls) >= 4
    pt.slow(model)


@torch.no_grad()
def test_with_attach_in_either_order_and_undone_by_detach():
    model = model_of()
    own = model(input_ids=IDS, use_cache=False).logits
    alibi = posenc.create("alibi", n_heads=4)
    pt.attach(model, alibi, layers=[1])
    attached = model(input_ids=IDS, use_cache=False).logits
    pt.fast(model)
    assert torch.equal(model(input_ids=IDS, use_cache=False).logits, attached)
    pt.detach(model)
    pt.attach(pt.fast(model), alibi, layers=[1])
    assert torch.equal(model(input_ids=IDS, use_cache=False).logits, attached)
    pt.detach(model)
    assert pt.detach(pt.fast(model)) is model
    assert not any("forward" in vars(module) for module in model.modules())
    assert torch.equal(model(input_ids=IDS, use_cache=False).logits, own)


@torch.no_grad()
def test_one_graph():
    model = pt.fast(model_of(num_hidden_layers=2))
    expected = model(input_ids=IDS, use_cache=False).logits
    compiled = torch.compile(model, fullgraph=True, backend="eager")(input_ids=IDS, use_cache=False).logits
    torch.testing.assert_close(compiled, expected, rtol=1e-5, atol=1e-5)


def test_gradient_checkpointing_and_generation():
    model = model_of()
    _, own = losses(model)
    settings = {"max_new_tokens": 5, "do_sample": False, "pad_token_id": 0, "eos_token_id": None}
    tokens = model.generate(input_ids=IDS, **settings)
    pt.fast(model)
    assert torch.equal(model.generate(input_ids=IDS, **settings), tokens)
    model.train()
    model.gradient_checkpointing_enable()
    for gradient, expected in zip(losses(model)[1], own, strict=True):
        torch.testing.assert_close(gradient, expected, rtol=1e-6, atol=1e-7)


OTHERS = [
    ("gpt2", "no attention module of GPT2Model calls apply_rotary_pos_emb"),
    ("qwen4_exp_text", "apply_rotary_pos_emb of Qwen4ExpTextQSAIndexer rotates queries and keys in two calls"),
]


@pytest.mark.parametrize(("model_type", "said"), OTHERS)
def test_other_rotations_are_refused_by_name(model_type, said):
    model = tiny.model_of(model_type)
    with pytest.raises(pt.Unsupported, match=said):
        pt.fast(model)
    assert not any("forward" in vars(module) for module in model.modules())


def shifted(q, k, cos, sin, unsqueeze_dim=1):
    """Channel i turns with channel i + 1 of the other half: pairs that posenc has no layout for."""
    cos, sin = cos.unsqueeze(unsqueeze_dim), sin.unsqueeze(unsqueeze_dim)

    def turned(x):
        a, b = x.chunk(2, dim=-1)
        return x * cos + torch.cat([-b.roll(1, -1), a.roll(-1, -1)], dim=-1) * sin

    return turned(q), turned(k)


def test_a_rotation_in_no_known_form_is_refused(monkeypatch):
    from transformers.models.llama import modeling_llama

    model = model_of()
    monkeypatch.setattr(modeling_llama, "apply_rotary_pos_emb", shifted)
    own = model(input_ids=IDS, use_cache=False).logits
    with pytest.raises(pt.Unsupported, match="LlamaAttention turns in no form that posenc's rotation has"):
        pt.fast(model)
    assert not any("forward" in vars(module) or module._forward_pre_hooks for module in model.modules())
    assert torch.equal(model(input_ids=IDS, use_cache=False).logits, own)


def drawn_call(signature, form, seed):
    """Three tokens, two query heads and one key head of eight channels, of which four turn by random angles."""
    generator = torch.Generator().manual_seed(seed)
    angle = torch.rand(1, 3, 2, generator=generator)
    if form.tables is not None:
        angle = torch.cat([angle, angle], -1) if form.tables == "half" else angle.repeat_interleave(2, -1)
    heads_first = form.heads == 1 or "unsqueeze_dim" in signature
    drawn = {"cos": angle.cos(), "sin": angle.sin(), "freqs_cis": torch.polar(torch.ones_like(angle), angle)}
    drawn |= {"position_ids": None, "unsqueeze_dim": 1}
    for name, heads in (("q", 2), ("k", 1), ("xq", 2), ("xk", 1), ("x", 2), ("tensor", 2)):
        x = torch.randn(1, heads, 3, 8, generator=generator)
        drawn[name] = x if heads_first else x.transpose(1, 2).contiguous()
    return {name: drawn[name] for name in signature}


@pytest.mark.parametrize("signature", SIGNATURES, ids=", ".join)
def test_forms_are_told_apart(signature):
    """What is found for a function of some form computes the same on other channels and angles."""
    forms = [form for form in FORMS if form.heads == 1 or "unsqueeze_dim" not in signature]
    forms = [form for form in forms if form.tables is None or "freqs_cis" not in signature]
    assert len(forms) >= 16
    for form in forms:
        own = SIGNATURES[signature](form)
        found = matching(own, [drawn_call(signature, form, 1)])
        for expected, got in zip(own(**(given := drawn_call(signature, form, 2))), found(**given), strict=True):
            torch.testing.assert_close(got, expected, msg=lambda said, form=form: f"{form}: {said}")


def test_twice_and_never():
    model = model_of()
    with pytest.raises(ValueError, match="this LlamaForCausalLM has its own rotation"):
        pt.slow(model)
    pt.fast(model)
    with pytest.raises(ValueError, match="has posenc's rotation already"):
        pt.fast(model)
