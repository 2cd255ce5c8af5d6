"""posenc.transformers.attachment on tiny random models: laws of position inside a model, what is kept, what is refused."""

import copy
import warnings

import pytest
import torch
import transformers

import posenc
import posenc.transformers as pt
from families.harness import config_of
from posenc.transformers import interface
from transformers_models import tiny

transformers.logging.set_verbosity_error()
HEADS, WIDTH = 4, 16
IDS = torch.randint(3, 30, (2, 10), generator=torch.Generator().manual_seed(0))


def model_of(model_type="llama", **sizes):
    torch.manual_seed(0)
    config = config_of(model_type, **sizes)
    return transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()


def made(name):
    other = {"layout": "half", "base": 50.0} if name in ("rope", "xpos") else {}  # Llama's layout, not its base
    encoding = posenc.create(name, d_model=64, n_heads=HEADS, d_head=WIDTH, max_positions=64, **other)
    return posenc.laws.draw_parameters(encoding, std=0.3)


@torch.no_grad()
def logits(model, ids=IDS, **inputs):
    return model(input_ids=ids, **{"use_cache": False, **inputs}).logits


def near(actual, expected, tolerance=2e-5):
    torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)


def test_positions_of_several_axes():
    """M-RoPE's [4, b, t] begins with the number in the text; [3, b, t] is read where its axes agree, as they do in text."""
    model = tiny.model_of("cohere_compass_text")
    pt.attach(model, made("rope"))
    numbers = torch.arange(0, 3 * IDS.shape[1], 3).expand(IDS.shape)
    expected = logits(model, position_ids=numbers)
    assert (expected - logits(model)).abs().max() > 1e-3
    near(logits(model, position_ids=numbers.expand(3, *IDS.shape)), expected)
    image = torch.stack([numbers, numbers // 2, numbers // 2, numbers % 5])
    near(logits(model, position_ids=image), expected)
    with pytest.warns(UserWarning, match="position_ids: 3 axes for each token"):
        near(logits(model, position_ids=image[1:]), logits(model))


NAMES = ["nope", "rope", "alibi", "t5", "shaw", "transformer_xl", "cope", "xpos", "sinusoidal", "learned"]


@pytest.mark.parametrize("name", NAMES)
def test_cached_padded_and_detached(name):
    """Chunks over a cache equal one pass; a left-padded row equals the row alone; detach restores every bit."""
    model = model_of()
    own = logits(model)
    pt.attach(model, made(name))
    whole = logits(model)
    assert (whole - own).abs().max() > 1e-4
    with torch.no_grad():
        first = model(input_ids=IDS[:, :6], use_cache=True)
        then = model(input_ids=IDS[:, 6:9], past_key_values=first.past_key_values)
        last = model(input_ids=IDS[:, 9:], past_key_values=then.past_key_values).logits
    near(torch.cat([first.logits, then.logits, last], dim=1), whole)
    padded = torch.cat([torch.zeros(1, 3, dtype=torch.long), IDS[:1]], dim=1)
    mask = torch.tensor([[0] * 3 + [1] * 10])
    near(logits(model, padded, attention_mask=mask)[:, 3:], whole[:1])
    near(logits(model, padded, attention_mask=mask, position_ids=(mask.cumsum(1) - 1).clamp(min=0))[:, 3:], whole[:1])
    pt.detach(model)
    assert torch.equal(logits(model), own)


def by_hand(model, layer, bias):
    """Llama's layers in plain torch, its rotation left out, a bias added to the logits."""
    x = model.model.embed_tokens(IDS)
    for block in model.model.layers:
        y = block.input_layernorm(x)
        q, k, v = (
            part(y).unflatten(-1, (-1, WIDTH)).transpose(1, 2)
            for part in (block.self_attn.q_proj, block.self_attn.k_proj, block.self_attn.v_proj)
        )
        k, v = (one.repeat_interleave(q.shape[1] // one.shape[1], dim=1) for one in (k, v))
        score = q @ k.transpose(-1, -2) / WIDTH**0.5 + bias
        score = score.masked_fill(torch.ones_like(score).triu(1).bool(), float("-inf"))
        x = x + block.self_attn.o_proj((score.softmax(-1) @ v).transpose(1, 2).flatten(-2))
        x = x + block.mlp(block.post_attention_layernorm(x))
    return model.lm_head(model.model.norm(x))


@torch.no_grad()
def test_alibi_in_llama_is_llama_written_out_with_alibis_bias():
    model = model_of()
    distance = torch.arange(10)[:, None] - torch.arange(10)
    bias = -torch.tensor([2.0**-2, 2.0**-4, 2.0**-6, 2.0**-8])[:, None, None] * distance
    expected = by_hand(model, None, bias)
    pt.attach(model, posenc.create("alibi", n_heads=HEADS))
    near(logits(model), expected)


@torch.no_grad()
def test_llamas_own_rope_attached_is_llama():
    """The model's frequencies and layout in our encoding give the model's own logits."""
    model = model_of()
    own = logits(model)
    base = model.config.rope_parameters["rope_theta"]
    pt.attach(model, posenc.create("rope", d_head=WIDTH, base=base, layout="half"))
    near(logits(model), own, 1e-5)
    pt.detach(model)
    model.config.rope_layout = "interleaved"  # as if its projections had been converted
    pt.attach(model, posenc.create("rope", d_head=WIDTH, base=base, layout="interleaved"))
    assert (logits(model) - own).abs().max() > 1e-3


def test_some_layers_only():
    model = model_of()
    own = logits(model)
    rope = posenc.create("rope", d_head=WIDTH, base=model.config.rope_parameters["rope_theta"], layout="half")
    pt.attach(model, rope, layers=[0, 2])
    near(logits(model), own, 1e-5)
    pt.attach(model, posenc.create("nope"), layers=[3])
    mixed = logits(model)
    assert (mixed - own).abs().max() > 1e-4
    with pytest.raises(ValueError, match=r"layers: \[3\] have an encoding attached already"):
        pt.attach(model, posenc.create("nope"), layers=[1, 3])
    assert torch.equal(logits(model), mixed)


KEPT = {
    "grouped heads": ("llama", {}, "groups"),
    "scale": ("granite", {"attention_multiplier": 0.9}, "scaling"),
    "softcap": ("gemma2", {"head_dim": WIDTH, "attn_logit_softcapping": 0.02, "sliding_window": 64}, "softcap"),
    "sinks": ("gpt_oss", {"head_dim": WIDTH}, "s_aux"),
    "window": ("mistral", {"sliding_window": 3}, "attention_mask"),
}


@pytest.mark.parametrize("what", KEPT)
def test_what_the_model_asks_of_attention_is_kept(what):
    """With the model's own RoPE attached, logits stay the model's; they change when the option is dropped."""
    model_type, sizes, dropped = KEPT[what]
    model = model_of(model_type, **sizes)
    if what == "sinks":
        for block in model.model.layers:
            block.self_attn.sinks.data.normal_(2.0, 1.0)
    model.set_attn_implementation("eager")
    own = logits(model)
    spec = posenc.read_config(model.config.to_dict())
    for n in range(model.config.num_hidden_layers):
        pt.attach(model, spec.encoding(n), layers=[n])
    near(logits(model), own, 3e-5)
    kept = interface.attention

    def without(module, query, key, value, mask, **options):
        if dropped == "attention_mask":
            mask = None
        if dropped == "groups":
            key, value = key.flip(1), value.flip(1)
        return kept(module, query, key, value, mask, **{name: one for name, one in options.items() if name != dropped})

    transformers.AttentionInterface.register("posenc", without)
    try:
        assert (logits(model) - own).abs().max() > 1e-4
    finally:
        transformers.AttentionInterface.register("posenc", kept)


def test_dropout_is_kept():
    model = model_of(attention_dropout=0.5)
    pt.attach(model, posenc.create("alibi", n_heads=HEADS))
    model.train()
    assert not torch.equal(logits(model), logits(model))
    model.eval()
    assert torch.equal(logits(model), logits(model))


@pytest.mark.parametrize("name", ["alibi", "t5", "cope"])
def test_generation_with_every_cache_gives_the_same_tokens(name):
    model = model_of()
    pt.attach(model, made(name))
    prompt = {"input_ids": IDS, "attention_mask": torch.tensor([[0] * 4 + [1] * 6, [1] * 10])}
    settings = {"max_new_tokens": 6, "do_sample": False, "pad_token_id": 0, "eos_token_id": None}
    plain = model.generate(**prompt, **settings, use_cache=False)
    assert torch.equal(model.generate(**prompt, **settings), plain)
    assert torch.equal(model.generate(**prompt, **settings, cache_implementation="static"), plain)
    alone = model.generate(input_ids=IDS[:1, 4:], attention_mask=torch.ones(1, 6, dtype=torch.long), **settings)
    assert torch.equal(alone[:, 6:], plain[:1, 10:])
    beams = model.generate(**prompt, **settings, num_beams=3)
    assert torch.equal(beams, model.generate(**prompt, **settings, num_beams=3, use_cache=False))


def test_packed_rows_equal_separate_ones():
    model = model_of()
    pt.attach(model, made("t5"))
    packed = logits(
        model, torch.cat([IDS[:1, :4], IDS[1:, :6]], dim=1), position_ids=torch.tensor([[*range(4), *range(6)]])
    )
    near(packed[:, :4], logits(model, IDS[:1, :4]))
    near(packed[:, 4:], logits(model, IDS[1:, :6]))


GAPS = torch.tensor([[0, 3, 7, 8, 20, 21, 40, 63, 64, 65]]).expand(2, -1)


@pytest.mark.parametrize(
    "given",
    [
        {"attention_mask": torch.ones(2, 10, dtype=torch.long)},
        {"attention_mask": torch.ones(2, 1, 10, 10, dtype=torch.bool).tril()},
        {"use_cache": True},
        {"attention_mask": torch.tensor([[1] * 10, [0] + [1] * 9])},
    ],
    ids=["a mask", "a mask of pairs", "a cache", "padding"],
)
def test_a_gap_in_position_ids_begins_a_document_only_where_transformers_says_so(given):
    model = model_of()
    plain = logits(model, position_ids=GAPS, **given)
    pt.attach(model, posenc.create("rope", d_head=WIDTH, layout="half"))
    real = torch.ones(2, 10, dtype=torch.bool)
    real[1, 0] = given.get("attention_mask", real).ndim != 2 or bool(given.get("attention_mask", real)[1, 0])
    near(logits(model, position_ids=GAPS, **given)[real], plain[real])
    packed = logits(model, position_ids=GAPS)
    pt.detach(model)
    near(packed, logits(model, position_ids=GAPS))


def test_positions_that_do_not_go_on_over_a_cache():
    """A rotation is cached with the keys and stays right; a bias of distances is warned of."""
    model = model_of()
    for name, warned in (("rope", False), ("alibi", True)):
        pt.attach(model, made(name))
        whole = logits(model, position_ids=GAPS, use_cache=True)
        with torch.no_grad():
            first = model(input_ids=IDS[:, :6], position_ids=GAPS[:, :6], use_cache=True)
            rest = {"input_ids": IDS[:, 6:], "position_ids": GAPS[:, 6:], "past_key_values": first.past_key_values}
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                then = model(**rest).logits
        assert any("do not go on where the cached ones end" in str(one.message) for one in caught) == warned
        if not warned:
            near(then, whole[:, 6:])
        pt.detach(model)


@pytest.mark.parametrize("reentrant", [True, False])
def test_parameters_learn_under_gradient_checkpointing(reentrant):
    model = model_of()
    pt.attach(model, made("t5"))
    (table,) = pt.parameters(model)
    assert any(one is table for one in model.parameters())
    model.train()

    def gradient():
        model.zero_grad()
        model(input_ids=IDS, labels=IDS, use_cache=False).loss.backward()
        return table.grad.clone()

    plain = gradient()
    assert plain.abs().max() > 0
    model.gradient_checkpointing_enable({"use_reentrant": reentrant})
    near(gradient(), plain, 1e-5)


@pytest.mark.acceptance
def test_one_graph():
    model = model_of(num_hidden_layers=2)
    pt.attach(model, posenc.create("alibi", n_heads=HEADS))
    expected = logits(model)
    with torch.no_grad():
        compiled = torch.compile(model, fullgraph=True, backend="eager")(input_ids=IDS, use_cache=False).logits
    near(compiled, expected)


@pytest.mark.parametrize("name", ["rope", "alibi", "t5", "stack"])
def test_saved_and_loaded(name, tmp_path):
    model = model_of()
    encoding = posenc.Stack(made("rope"), made("t5")) if name == "stack" else made(name)
    pt.attach(model, encoding, layers=[0, 1])
    pt.attach(model, posenc.create("nope"), layers=[3])
    model.save_pretrained(tmp_path)
    loaded = pt.from_pretrained(tmp_path).eval()
    assert torch.equal(logits(loaded), logits(model))
    assert len(list(pt.parameters(loaded))) == len(list(pt.parameters(model)))


def test_a_folder_without_posenc_or_without_its_weights_is_refused(tmp_path):
    model = model_of()
    model.save_pretrained(tmp_path / "plain")
    with pytest.raises(ValueError, match=r"folder: .* has nothing of posenc in its config.json"):
        pt.from_pretrained(tmp_path / "plain")
    pt.attach(model, made("t5"))
    model.save_pretrained(
        tmp_path / "broken", state_dict={k: v for k, v in model.state_dict().items() if "posenc" not in k}
    )
    with pytest.raises(ValueError, match=r"folder: .* lacks the weights \['posenc_encodings.0.table'\]"):
        pt.from_pretrained(tmp_path / "broken")


def test_copies_are_independent():
    model = model_of()
    pt.attach(model, made("t5"))
    other = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in pt.parameters(other):
            parameter.zero_()
    assert (logits(other) - logits(model)).abs().max() > 1e-5
    whole = logits(model)
    pt.detach(other)
    assert torch.equal(logits(model), whole)


REFUSED = {
    "fixed sinusoids inside": ("ctrl", {}, "alibi", "Sinusoidal inside its modules"),
    "a fused bias inside": ("bloom", {}, "rope", "AttentionInterface"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_models_that_cannot_be_served_are_refused_and_stay_as_they_were(what):
    model_type, sizes, name, said = REFUSED[what]
    model = model_of(model_type, **sizes)
    own, keys, implementation = logits(model), set(model.state_dict()), model.config._attn_implementation
    with pytest.raises(pt.Unsupported, match=said):
        pt.attach(model, made(name))
    assert torch.equal(logits(model), own)
    assert set(model.state_dict()) == keys
    assert model.config._attn_implementation == implementation
    assert not any(module._forward_pre_hooks for module in model.modules())


WRONG = [
    (lambda: made("alibi").heads(0, 2), {}, ValueError, "n_heads=2, layer 0 has 4 query heads"),
    (lambda: posenc.create("rope", d_head=8), {}, ValueError, "d_head=8, layer 0 has heads of 16 channels"),
    (lambda: "rope", {}, TypeError, "encoding: expected a PositionalEncoding"),
    (lambda: made("rope"), {"layers": [7]}, ValueError, r"layers: expected some of the attention layers \[0, 1, 2, 3\]"),
    (lambda: made("rope"), {"layers": []}, ValueError, "layers: "),
]


@pytest.mark.parametrize(("encoding", "options", "error", "said"), WRONG, ids=lambda value: str(value)[:20])
def test_wrong_arguments_get_one_clear_error_and_leave_the_model_as_it_was(encoding, options, error, said):
    model = model_of()
    own, keys = logits(model), set(model.state_dict())
    with pytest.raises(error, match=said):
        pt.attach(model, encoding(), **options)
    assert torch.equal(logits(model), own)
    assert set(model.state_dict()) == keys
    with pytest.raises(ValueError, match="model: nothing is attached to this LlamaForCausalLM"):
        pt.detach(model)


def test_a_layer_without_rotation_can_be_chosen_alone():
    """SmolLM3's last layer of four has no positions; that others rotate does not matter."""
    model = model_of("smollm3")
    own = logits(model)
    pt.attach(model, posenc.create("alibi", n_heads=HEADS), layers=[3])
    assert (logits(model) - own).abs().max() > 1e-4


INSIDE = {
    "blenderbot-small": "BlenderbotSmallForCausalLM has Learned inside its modules",
    "bigbird_pegasus": "BigBirdPegasusDecoderAttention is part of a decoder, and its is_causal is False",
    "deepseek_v4": "heavily_compressed_attention of DeepseekV4Model has keys that stand for several tokens",
}


@pytest.mark.parametrize("model_type", INSIDE)
def test_positions_in_parts_and_compressed_keys_are_refused(model_type):
    model = tiny.model_of(model_type)
    own = logits(model)
    with pytest.raises(pt.Unsupported, match=INSIDE[model_type]):
        pt.attach(model, posenc.create("alibi", n_heads=HEADS))
    assert torch.equal(logits(model), own)


@pytest.mark.skipif("beam" not in tiny.MODEL_TYPES, reason="this transformers has no Beam")
def test_a_layer_whose_queries_are_scaled_and_not_rotated_takes_an_encoding():
    """Beam's layers without a window multiply queries by a temperature, which stays, and rotate nothing."""
    model = tiny.model_of("beam")
    before = logits(model)
    pt.attach(model, posenc.create("nope"), layers=[3])
    near(logits(model), before)
    pt.detach(model)
    pt.attach(model, posenc.create("alibi", n_heads=model.config.num_attention_heads), layers=[3])
    assert (logits(model) - before).abs().max() > 1e-4
