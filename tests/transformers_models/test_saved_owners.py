"""Who saves a model with an encoding attached: the model itself, one around it, a part of it, an adapter on it."""

import copy
import pickle
import warnings

import peft
import pytest
import torch
import transformers

import posenc
import posenc.transformers as pt
from families.harness import config_of
from transformers_models.test_attach import IDS, logits, made, model_of

transformers.logging.set_verbosity_error()
LORA = {"r": 4, "target_modules": ["q_proj"], "init_lora_weights": False}


def whole_t5():
    torch.manual_seed(0)
    return transformers.T5ForConditionalGeneration(config_of("t5")).eval()


def part_of_t5():
    whole = whole_t5()
    pt.attach(whole.get_encoder(), posenc.create("alibi", n_heads=whole.config.num_heads))
    return whole


def body_of_llama():
    whole = model_of()
    pt.attach(whole.model, made("alibi"))
    return whole


def inside_of_llama():
    return pt.attach(model_of(), made("alibi")).model


def copied():
    return copy.deepcopy(part_of_t5())


def pickled():
    return pickle.loads(pickle.dumps(part_of_t5()))


def with_a_learned_encoding():
    whole = model_of()
    pt.attach(whole.model, made("t5"))
    return whole


OTHERS = [part_of_t5, body_of_llama, inside_of_llama, copied, pickled, with_a_learned_encoding]


@pytest.mark.parametrize("given", [False, True], ids=["", "state_dict"])
@pytest.mark.parametrize("others", OTHERS)
def test_a_model_around_or_inside_is_not_saved_without_the_encoding(others, given, tmp_path):
    model = others()
    weights = {"state_dict": model.state_dict()} if given else {}
    with pytest.raises(ValueError, match=rf"posenc: {type(model).__name__}.save_pretrained leaves out the encoding"):
        model.save_pretrained(tmp_path, **weights)
    assert not list(tmp_path.glob("*.safetensors"))
    assert model.state_dict().keys() >= type(model)(model.config).state_dict().keys()


def test_a_head_on_a_body_that_saves_itself(tmp_path):
    """A classification head of transformers: attached to the whole, it is saved with the encoding."""
    model = transformers.LlamaForSequenceClassification(config_of("llama")).eval()
    pt.attach(model.base_model, made("alibi"))
    with pytest.raises(ValueError, match="attach to the LlamaForSequenceClassification"):
        model.save_pretrained(tmp_path)
    pt.detach(model.base_model)
    pt.attach(model, made("alibi")).save_pretrained(tmp_path)
    assert "posenc_encodings" in vars(pt.from_pretrained(tmp_path))["_modules"]


@torch.no_grad()
def test_what_the_message_says_for_an_encoder_with_a_decoder():
    """Its weights are kept, the encoding is attached again, the weights are loaded."""
    whole, again = part_of_t5(), whole_t5()
    pt.attach(again.get_encoder(), posenc.create("alibi", n_heads=again.config.num_heads))
    for parameter in whole.parameters():
        parameter.mul_(1.5)
    again.load_state_dict(whole.state_dict())
    asked = {"input_ids": IDS, "decoder_input_ids": IDS[:, :3]}
    assert torch.equal(again(**asked).logits, whole(**asked).logits)


@torch.no_grad()
@pytest.mark.parametrize("copy_of", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
@pytest.mark.parametrize("kind", ["bert", "gpt2", "t5"])
def test_a_copy_of_a_model_with_a_table_taken_off_is_without_it_too(kind, copy_of):
    torch.manual_seed(0)
    model = transformers.AutoModel.from_config(config_of(kind)).eval()
    model = model.get_encoder() if kind == "t5" else model
    own = model(IDS).last_hidden_state
    pt.attach(model, posenc.create("nope"))
    expected = model(IDS).last_hidden_state
    other = copy_of(model)
    assert torch.equal(other(IDS).last_hidden_state, expected)
    assert torch.equal(pt.detach(other)(IDS).last_hidden_state, own)
    assert torch.equal(model(IDS).last_hidden_state, expected)


def adapted(model):
    return peft.get_peft_model(model, peft.LoraConfig(**LORA, task_type="CAUSAL_LM"))


def with_an_adapter(model):
    model.add_adapter(peft.LoraConfig(**LORA))
    return model


@pytest.mark.parametrize("wrap", [adapted, with_an_adapter])
def test_an_adapter_alone_warns_unless_its_model_was_loaded_with_the_encoding(wrap, tmp_path):
    with pytest.warns(UserWarning, match=r"save_pretrained saves an adapter, and the model that it names does not have"):
        wrap(pt.attach(model_of(), made("alibi"))).save_pretrained(tmp_path / "lost")
    pt.attach(model_of(), made("alibi")).save_pretrained(tmp_path / "base")
    model = wrap(pt.from_pretrained(tmp_path / "base").eval())
    expected = logits(model)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="posenc")
        model.save_pretrained(tmp_path / "adapter")
    base = pt.from_pretrained(tmp_path / "base").eval()
    again = peft.PeftModel.from_pretrained(base, tmp_path / "adapter").eval()
    torch.testing.assert_close(logits(again), expected)


def test_a_merged_adapter_is_saved_with_the_encoding(tmp_path):
    model = adapted(pt.attach(model_of(), made("t5"))).merge_and_unload()
    model.save_pretrained(tmp_path)
    assert torch.equal(logits(pt.from_pretrained(tmp_path).eval()), logits(model.eval()))


def test_weights_of_a_whole_are_kept_where_the_caller_saves_them_himself(tmp_path):
    """torch.save of a state_dict holds weights, and the encoding's; a plain model refuses those by their names."""
    whole = with_a_learned_encoding()
    torch.save(whole.state_dict(), tmp_path / "weights.pt")
    kept = torch.load(tmp_path / "weights.pt")
    with pytest.raises(RuntimeError, match="posenc_encodings"):
        model_of().load_state_dict(kept)
    other = with_a_learned_encoding()
    with torch.no_grad():
        next(pt.parameters(other.model)).zero_()
    other.load_state_dict(kept)
    assert torch.equal(logits(other), logits(whole))


# What adds to embeddings acts once, before the first layer.


def sinusoid_in_layer_2():
    return posenc.PerLayer([made("alibi"), made("alibi"), made("sinusoidal"), made("alibi")])


def sinusoid_within_a_stack():
    return posenc.PerLayer([made("nope"), *[posenc.Stack(made("sinusoidal"), made("alibi"))] * 3])


def two_sinusoids():
    return posenc.PerLayer([made("sinusoidal"), *[posenc.create("sinusoidal", d_model=64, base=100.0)] * 3])


@pytest.mark.parametrize(
    ("encoding", "layer"), [(sinusoid_in_layer_2, 2), (sinusoid_within_a_stack, 1), (two_sinusoids, 1)]
)
def test_what_a_later_layer_would_add_to_embeddings_is_refused(encoding, layer):
    with pytest.raises(ValueError, match=rf"layers: layer {layer} has Sinusoidal.*, which is added to"):
        encoding()


def test_layers_that_share_what_is_added_add_it_once():
    """Sinusoids in the first layer's stack, in all stacks, or in two calls: the same model."""
    sinusoid, alibi = made("sinusoidal"), made("alibi")
    both = posenc.Stack(sinusoid, alibi)
    expected = logits(pt.attach(model_of(), posenc.PerLayer([both, *[alibi] * 3])))
    assert torch.equal(logits(pt.attach(model_of(), posenc.PerLayer([both] * 4))), expected)
    assert torch.equal(logits(pt.attach(model_of(), both)), expected)
    model = model_of()
    for layers in ([2, 3], [0, 1]):
        pt.attach(model, posenc.Stack(made("sinusoidal"), alibi), layers=layers)
    assert torch.equal(logits(model), expected)


def test_a_second_call_for_other_layers_is_read_together_with_the_first(tmp_path):
    model = pt.attach(model_of(), made("alibi"), layers=[0, 1])
    before = logits(model)
    with pytest.raises(
        ValueError, match=r"layer 2 has Sinusoidal.* layer 0 is without it; give it to that layer, in a Stack"
    ):
        pt.attach(model, made("sinusoidal"), layers=[2, 3])
    assert torch.equal(logits(model), before)
    model = pt.attach(model_of(), made("sinusoidal"), layers=[2, 3])
    with pytest.raises(ValueError, match="layer 2 has Sinusoidal"):
        pt.attach(model, made("alibi"), layers=[0, 1])
    pt.attach(model, made("sinusoidal"), layers=[0, 1])
    assert torch.equal(logits(model), logits(pt.attach(model_of(), made("sinusoidal"))))
    model.save_pretrained(tmp_path)
    assert torch.equal(logits(pt.from_pretrained(tmp_path).eval()), logits(model))


def test_layers_without_the_first_of_a_per_layer_that_adds():
    encoding = posenc.PerLayer([made("sinusoidal"), *[made("alibi")] * 3])
    with pytest.raises(ValueError, match=r"the PerLayer adds Sinusoidal.* in layer 0, which is not among"):
        pt.attach(model_of(), encoding, layers=[2, 3])


def test_what_every_layer_adds_is_refused():
    """FLOATER adds another path to the hidden states of each layer."""
    with pytest.raises(pt.Unsupported, match=r"FLOATER.* adds to the hidden states of every layer; attach adds once"):
        pt.attach(model_of(), posenc.create("floater", d_model=64, n_layers=4))


@pytest.mark.parametrize("order", [("sinusoidal", "rope"), ("rope", "sinusoidal")])
def test_sinusoids_and_a_rotation_together_without_gradients(order):
    """Few tokens are rotated without tables, unless the positions carry those of another part."""
    parts = [posenc.create("rope", d_head=16, layout="half") if name == "rope" else made(name) for name in order]
    model = pt.attach(model_of(), posenc.Stack(*parts))
    torch.testing.assert_close(logits(model), model(IDS, use_cache=False).logits.detach())


def test_the_model_itself_is_saved_with_a_state_dict_of_the_caller(tmp_path):
    """As Trainer does."""
    model = pt.attach(model_of(), made("t5"))
    model.save_pretrained(tmp_path, state_dict=model.state_dict())
    assert torch.equal(logits(pt.from_pretrained(tmp_path).eval()), logits(model))
