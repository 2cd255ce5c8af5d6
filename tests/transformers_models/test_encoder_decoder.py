"""Whole encoders with a decoder (T5's and BART's kind) with an encoding attached. Tiny random models."""

import itertools
import json

import pytest
import torch
import transformers
from torch.nn import functional
from transformers.cache_utils import DynamicCache, EncoderDecoderCache

import posenc
import posenc.transformers as pt
from families.harness import config_of
from posenc.configs import ConfigError, read_config, spec_of
from sampling import one_in
from transformers_models import tiny
from transformers_models.test_refused import Rounded, assert_same, state

transformers.logging.set_verbosity_error()
HEADS, WIDTH = 4, 16
IDS = torch.randint(5, 30, (2, 9), generator=torch.Generator().manual_seed(0))
OUT = torch.randint(5, 30, (2, 6), generator=torch.Generator().manual_seed(1))
SIZES = {
    "t5": {"num_hidden_layers": 2, "num_layers": 2, "num_decoder_layers": 2, "d_kv": WIDTH},
    "bart": {"num_hidden_layers": 2, "encoder_layers": 2, "decoder_layers": 2}
    | {"encoder_attention_heads": HEADS, "decoder_attention_heads": HEADS},
}
KINDS = {"t5": "t5", "mt5": "t5", "umt5": "t5", "switch_transformers": "t5", "bart": "bart", "mbart": "bart"} | {
    "plbart": "bart",
    "blenderbot": "bart",
}


def model_of(kind, **sizes):
    torch.manual_seed(0)
    if kind == "t5gemma":
        config = tiny.config_of(kind)
        config.encoder.is_decoder = False
    else:
        config = config_of(kind, **(SIZES[KINDS[kind]] | sizes))
    config.decoder_start_token_id, config.eos_token_id = 1, None
    made = transformers.AutoModelForSeq2SeqLM.from_config(config, dtype=torch.float32)
    return tiny.drawn(made.eval()).double()  # T5's kind does not scale its scores: single precision rounds by 2e-5


@torch.no_grad()
def logits(model, ids=IDS, out=OUT, **inputs):
    return model(input_ids=ids, decoder_input_ids=out, **inputs).logits


def near(found, expected, most=1e-9):
    torch.testing.assert_close(found, expected, rtol=most, atol=most)


def own(model):
    """What the model does with position by itself, as posenc reads it, with its weights."""
    spec = read_config(model.config.to_dict(), defaults=True)
    state_dict = {name.removeprefix("model."): weight for name, weight in model.state_dict().items()}
    return {part: posenc.PerLayer(of) for part, of in posenc.load_encodings(state_dict, spec).items()}


def alibi():
    return posenc.create("alibi", n_heads=HEADS)


def made(name, **options):
    sizes = {"d_model": 64, "n_heads": HEADS, "d_head": WIDTH, "max_positions": 64}
    layout = {"layout": "half"} if name in ("rope", "xpos") else {}
    return posenc.laws.draw_parameters(posenc.create(name, **sizes, **layout, **options), std=0.3)


# --- the oracle: both models written out --------------------------------------------------------------------------------


def sinusoids(n, width):
    """Vaswani et al. 2017: sin of p / 10000^(2c/width) in even channels, cos in odd ones."""
    rows = torch.zeros(n, width, dtype=torch.float64)
    for p, c in itertools.product(range(n), range(width // 2)):
        angle = torch.tensor(p / 10000 ** (2 * c / width), dtype=torch.float64)
        rows[p, 2 * c], rows[p, 2 * c + 1] = angle.sin(), angle.cos()
    return rows


def turned(x):
    """Su et al. 2021, pairs in halves: channels c and c + d/2 of position p turn by p / 10000^(2c/d)."""
    out, half = x.clone(), x.shape[-1] // 2
    for p, c in itertools.product(range(x.shape[2]), range(half)):
        angle = torch.tensor(p / 10000 ** (c / half), dtype=torch.float64)
        a, b = x[:, :, p, c], x[:, :, p, c + half]
        out[:, :, p, c], out[:, :, p, c + half] = a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()
    return out


def attended(w, x, memory, scale, name, causal):
    """Attention of x to the memory; with positions where the memory is x itself. `w` are q, k, v, o as functions."""
    q, k, v = (
        part(of).unflatten(-1, (HEADS, WIDTH)).transpose(1, 2) for part, of in zip(w, (x, memory, memory), strict=False)
    )
    here = x is memory
    if here and name == "rope":
        q, k = turned(q), turned(k)
    scores = q @ k.transpose(-1, -2) * scale
    if here and name == "alibi":  # Press et al. 2022: slopes 2^-2, 2^-4, 2^-6, 2^-8 of 4 heads
        distance = (torch.arange(x.shape[1])[:, None] - torch.arange(x.shape[1])).abs()
        scores = scores - torch.tensor([2.0**-2, 2.0**-4, 2.0**-6, 2.0**-8])[:, None, None] * distance
    if causal:
        scores = scores.masked_fill(torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1), float("-inf"))
    return w[3]((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


def t5_by_hand(model, name):
    """Raffel et al. 2020: norms without mean before each part, scores that are not scaled, no biases."""
    weights = model.state_dict()

    def linear(key):
        return lambda x: x @ weights[f"{key}.weight"].T

    def norm(x, key):
        return x * (x.square().mean(-1, keepdim=True) + model.config.layer_norm_epsilon).rsqrt() * weights[f"{key}.weight"]

    def stack(side, ids, memory=None):
        x = weights["shared.weight"][ids]
        x = x + sinusoids(x.shape[1], 64) if name == "sinusoidal" else x
        for n in range(2):
            at = f"{side}.block.{n}.layer"
            kinds = ["SelfAttention", "EncDecAttention"][: 1 if memory is None else 2]
            for part, kind in enumerate(kinds):
                y = norm(x, f"{at}.{part}.layer_norm")
                w = [linear(f"{at}.{part}.{kind}.{letter}") for letter in "qkvo"]
                x = x + attended(w, y, memory if part else y, 1.0, name, memory is not None and not part)
            at = f"{at}.{len(kinds)}"
            y = linear(f"{at}.DenseReluDense.wi")(norm(x, f"{at}.layer_norm")).relu()
            x = x + linear(f"{at}.DenseReluDense.wo")(y)
        return norm(x, f"{side}.final_layer_norm")

    x = stack("decoder", OUT, stack("encoder", IDS))
    return linear("lm_head")(x * 64**-0.5 if model.config.scale_decoder_outputs else x)


def bart_by_hand(model, name):
    """Lewis et al. 2020: a norm after each part, biases everywhere; the tables of positions are left out."""
    weights = model.state_dict()

    def linear(key):
        return lambda x: x @ weights[f"model.{key}.weight"].T + weights[f"model.{key}.bias"]

    def norm(x, key):
        x = (x - x.mean(-1, keepdim=True)) * (x.var(-1, unbiased=False, keepdim=True) + 1e-5).rsqrt()
        return x * weights[f"model.{key}.weight"] + weights[f"model.{key}.bias"]

    def stack(side, ids, memory=None):
        x = weights["model.shared.weight"][ids]
        x = x + sinusoids(x.shape[1], 64) if name == "sinusoidal" else x
        x = norm(x, f"{side}.layernorm_embedding")
        for n in range(2):
            at = f"{side}.layers.{n}"
            for kind in ["self_attn", "encoder_attn"][: 1 if memory is None else 2]:
                w = [linear(f"{at}.{kind}.{letter}") for letter in ("q_proj", "k_proj", "v_proj", "out_proj")]
                read = memory if kind == "encoder_attn" else x
                y = attended(w, x, read, WIDTH**-0.5, name, memory is not None and read is x)
                x = norm(x + y, f"{at}.{kind}_layer_norm")
            y = linear(f"{at}.fc2")(functional.gelu(linear(f"{at}.fc1")(x)))
            x = norm(x + y, f"{at}.final_layer_norm")
        return x

    x = stack("decoder", OUT, stack("encoder", IDS))
    return x @ weights["lm_head.weight"].T + weights["final_logits_bias"]


@pytest.mark.parametrize("name", ["alibi", "rope", "sinusoidal", "nope"])
@pytest.mark.parametrize(("kind", "by_hand"), [("t5", t5_by_hand), ("bart", bart_by_hand)])
def test_one_encoding_in_both_stacks_is_the_model_written_out_with_it(kind, by_hand, name):
    model = model_of(kind)
    expected = by_hand(model, name)
    assert (expected - logits(model)).abs().max() > 1e-3
    pt.attach(model, made(name))
    near(logits(model), expected, 1e-6)  # sinusoids are rounded to single precision


# --- laws ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [*KINDS, "t5gemma"])
def test_the_models_own_encodings_attached_leave_logits_as_they_are(kind):
    """T5's biases, BART's tables, T5Gemma's RoPE; detach restores every bit; the decoder's alone is attached too."""
    model = model_of(kind)
    model.set_attn_implementation("eager")  # transformers 5.16 leaves T5Gemma's soft cap out of sdpa
    before, kept = logits(model), state(model)
    encodings = own(model)
    if kind == "umt5" and not model.get_decoder().block[0].layer[0].SelfAttention.is_causal:  # in transformers 5.16
        with pytest.raises(pt.Unsupported, match="UMT5Attention is part of a decoder, and its is_causal is False"):
            pt.attach(model, encodings)
        return
    for given in (encodings, {"decoder": encodings["decoder"]}, {"encoder": encodings["encoder"]}):
        pt.attach(model, given)
        near(logits(model), before, 1e-6)
        pt.detach(model)
        assert_same(kept, state(model))
        assert torch.equal(logits(model), before)
    for given in ("encoder", "decoder"):
        pt.attach(model, {given: posenc.create("nope")})
        assert (logits(model) - before).abs().max() > 1e-4
        pt.detach(model)


ENCODINGS = {
    "alibi": alibi,
    "rope": lambda: made("rope"),
    "t5": lambda: made("t5", bidirectional=True),
    "sinusoidal": lambda: made("sinusoidal"),
    "learned": lambda: made("learned"),
    "path": lambda: {"encoder": alibi(), "decoder": made("path", n_kv_heads=HEADS)},
    "fox on rope": lambda: {"encoder": alibi(), "decoder": posenc.Stack(made("rope"), made("fox"))},
}
BOTH = [
    (kind, name) for kind in ("t5", "bart") for name in ENCODINGS if (kind, name) != ("t5", "path")
]  # it has T5's scale


@pytest.mark.parametrize(("kind", "name"), one_in(2, BOTH))
def test_generation_over_a_cache_is_generation_without(kind, name):
    """Greedy, with beams, and over a static cache; the encoder reads once; padding on its left changes no token."""
    model = pt.attach(model_of(kind), ENCODINGS[name]())
    read = []
    model.get_encoder().register_forward_hook(lambda *_: read.append(1))
    mask = torch.ones_like(IDS)
    mask[1, :3] = 0
    settings = {"max_new_tokens": 6, "do_sample": False, "pad_token_id": 0, "eos_token_id": None}
    settings |= {"return_dict_in_generate": True, "output_logits": True}
    plain = model.generate(IDS, attention_mask=mask, **settings, use_cache=False)
    assert len(read) == 1
    for options in ({}, {"cache_implementation": "static"}):
        found = model.generate(IDS, attention_mask=mask, **settings, **options)
        assert torch.equal(found.sequences, plain.sequences)
        near(torch.stack(found.logits), torch.stack(plain.logits), 1e-6)
    alone = model.generate(IDS[1:, 3:], **settings)
    assert torch.equal(alone.sequences, plain.sequences[1:])
    near(torch.stack(alone.logits), torch.stack(plain.logits)[:, 1:], 1e-6)
    beams = model.generate(IDS, attention_mask=mask, **settings, num_beams=3)
    uncached = model.generate(IDS, attention_mask=mask, **settings, num_beams=3, use_cache=False)
    assert torch.equal(beams.sequences, uncached.sequences)


@pytest.mark.parametrize(("kind", "name"), BOTH)
def test_padding_on_either_side_of_either_sequence_changes_nothing(kind, name):
    model = pt.attach(model_of(kind), ENCODINGS[name]())
    whole = logits(model)
    pad, ones, mask = torch.zeros(2, 3, dtype=torch.long), torch.ones_like(IDS), torch.ones_like(OUT)
    for side in (0, 1):
        ids, seen = (torch.cat([pad, one][:: 1 - 2 * side], 1) for one in (IDS, ones))
        out, own_seen = (torch.cat([pad, one][:: 1 - 2 * side], 1) for one in (OUT, mask))
        found = logits(model, ids, out, attention_mask=seen, decoder_attention_mask=own_seen)
        near(found[:, 3:] if side == 0 else found[:, :6], whole, 1e-6)


@pytest.mark.parametrize("kind", ["t5", "bart"])
@torch.no_grad()
def test_chunks_over_a_cache_and_embeddings_in_the_place_of_tokens(kind):
    model = pt.attach(model_of(kind), made("t5", bidirectional=True))
    whole = logits(model)
    first = model(input_ids=IDS, decoder_input_ids=OUT[:, :2], use_cache=True)
    kept = {"encoder_outputs": (first.encoder_last_hidden_state,), "past_key_values": first.past_key_values}
    rest = model(decoder_input_ids=OUT[:, 2:], **kept).logits
    near(torch.cat([first.logits, rest], dim=1), whole, 1e-6)
    words = {
        "inputs_embeds": model.get_encoder().get_input_embeddings()(IDS),
        "decoder_inputs_embeds": model.get_decoder().get_input_embeddings()(OUT),
    }
    near(model(**words).logits, whole, 1e-6)


@pytest.mark.parametrize("kind", ["t5", "bart"])
def test_attention_weights_of_both_kinds_are_the_models_own(kind):
    model = model_of(kind)
    model.set_attn_implementation("eager")
    names = ("encoder_attentions", "decoder_attentions", "cross_attentions")
    with torch.no_grad():
        expected = model(input_ids=IDS, decoder_input_ids=OUT, output_attentions=True)
        pt.attach(model, own(model))
        found = model(input_ids=IDS, decoder_input_ids=OUT, output_attentions=True)
    for name in names:
        assert len(found[name]) == 2
        for ours, theirs in zip(found[name], expected[name], strict=False):  # T5 itself returns fewer in transformers 5.16
            near(ours, theirs, 1e-6)


@pytest.mark.parametrize("kind", ["t5", "bart"])
def test_cross_attention_sees_every_token_where_its_modules_do_not_say_so(kind):
    model = model_of(kind)
    before = logits(model)
    for name, module in model.named_modules():
        if name.endswith(("EncDecAttention", "encoder_attn")):
            del module.is_causal  # which transformers takes for True
    near(logits(pt.attach(model, own(model))), before, 1e-6)


@pytest.mark.parametrize("kind", ["t5", "bart"])
def test_parameters_learn_under_gradient_checkpointing(kind):
    model = pt.attach(model_of(kind), {"encoder": made("t5", bidirectional=True), "decoder": made("t5")}).train()
    gradients = []
    for checkpointing in (False, True):
        if checkpointing:
            model.gradient_checkpointing_enable({"use_reentrant": False})
        model.zero_grad()
        torch.manual_seed(0)
        model(input_ids=IDS, labels=OUT).loss.backward()
        gradients.append([parameter.grad.clone() for parameter in pt.parameters(model)])
    assert len(gradients[0]) == 2
    for plain, checkpointed in zip(*gradients, strict=True):
        assert plain.abs().max() > 0
        near(checkpointed, plain, 1e-6)


# --- parts --------------------------------------------------------------------------------------------------------------


def test_parts_one_after_the_other_are_parts_at_once():
    expected = logits(pt.attach(model_of("t5"), {"encoder": alibi(), "decoder": made("rope")}))
    model = pt.attach(model_of("t5"), {"decoder": made("rope")})
    with pytest.raises(ValueError, match=r"layers: \[0, 1\] have an encoding attached already.*\(in the decoder"):
        pt.attach(model, alibi())
    pt.attach(model, {"encoder": alibi()})
    assert torch.equal(logits(model), expected)


def test_layers_are_those_of_each_stack():
    """T5Gemma has no tables, so that some of its layers can be chosen."""
    model = model_of("t5gemma")
    pt.attach(model, posenc.create("nope"), layers=[1])
    assert model.config.posenc["layers"] == {"encoder.1": 0, "decoder.1": 0}
    pt.attach(model, {"decoder": posenc.create("nope")}, layers=[0])
    assert model.config.posenc["layers"] == {"encoder.1": 0, "decoder.1": 0, "decoder.0": 1}


def test_an_encoder_of_t5_alone_within_the_whole():
    model = model_of("t5")
    before = logits(model)
    pt.attach(model.get_encoder(), own(model)["encoder"])
    near(logits(model), before, 1e-6)
    assert torch.equal(logits(pt.detach(model.get_encoder()) and model), before)


@pytest.mark.parametrize("number", [lambda model: {}, lambda model: {"layers": range(2)}])
def test_a_per_layer_has_the_layers_of_one_stack(number):
    """Sinusoids stand in the first layer of each."""
    both = posenc.PerLayer([posenc.Stack(made("sinusoidal"), alibi()), alibi()])
    expected = logits(pt.attach(model_of("bart"), posenc.Stack(made("sinusoidal"), alibi())))
    model = model_of("bart")
    assert torch.equal(logits(pt.attach(model, both, **number(model))), expected)


# --- saved --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["t5", "bart"])
def test_a_saved_folder_is_loaded_by_auto_model(kind, tmp_path, modules):
    given = {"encoder": made("t5", bidirectional=True), "decoder": posenc.PerLayer([made("rope"), alibi()])}
    model = pt.attach(model_of(kind), given)
    model.save_pretrained(tmp_path)
    loaded = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path, trust_remote_code=True, dtype="auto").eval()
    near(logits(loaded), logits(model), 1e-12)
    near(logits(pt.from_pretrained(tmp_path, dtype="auto").eval()), logits(model), 1e-12)
    body = transformers.AutoModel.from_pretrained(tmp_path, trust_remote_code=True, dtype="auto").eval()
    with torch.no_grad():
        found = body(input_ids=IDS, decoder_input_ids=OUT).last_hidden_state
        expected = model(input_ids=IDS, decoder_input_ids=OUT, output_hidden_states=True).decoder_hidden_states[-1]
    near(found, expected, 1e-12)
    card = (tmp_path / "README.md").read_text()
    assert "model = AutoModelForSeq2SeqLM.from_pretrained(FOLDER" in card
    assert "| encoder 0, 1 | T5 |\n| decoder 0 | RoPE |\n| decoder 1 | ALiBi |" in card
    spec = read_config(tmp_path)
    names = {part.part: [type(part.encoding(n)).__name__ for n in range(2)] for part in spec.parts}
    assert names == {"encoder": ["T5", "T5"], "decoder": ["RoPE", "ALiBi"]}


def test_one_part_alone_is_saved_alone(tmp_path):
    model = pt.attach(model_of("bart"), {"encoder": alibi()})
    model.save_pretrained(tmp_path)
    loaded = pt.from_pretrained(tmp_path, dtype="auto").eval()
    near(logits(loaded), logits(model), 1e-12)
    assert loaded.config.posenc["layers"] == {"encoder.0": 0, "encoder.1": 0}
    spec = read_config(tmp_path)
    assert [type(part.encoding(0)).__name__ for part in spec.parts] == ["ALiBi", "Learned"]


@pytest.mark.parametrize(("saved", "wrong"), [("t5", "has no single stack of layers"), ("llama", "has no encoder")])
def test_a_folder_whose_entry_is_of_another_kind_of_model_is_refused(saved, wrong, tmp_path):
    """The entry's layers are "0", … in a model of one stack, and "encoder.0", … in one of two."""
    model = model_of("t5") if saved == "t5" else transformers.AutoModelForCausalLM.from_config(config_of("llama"))
    pt.attach(model, alibi()).save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config["posenc"]["layers"] = {"0": 0} if saved == "t5" else {"encoder.0": 0}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match=rf"posenc does not fit the model: layers: .* {wrong}"):
        pt.from_pretrained(tmp_path)
    config["posenc"]["layers"] = {"vision.0": 0}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match=r"posenc\.layers: expected keys such as '0' or 'encoder\.0', .* got 'vision\.0'"):
        pt.from_pretrained(tmp_path)


def test_an_entry_of_parts_that_there_are_not_is_refused():
    entry = {"format": 1, "encodings": [{"class": "posenc.encodings.nope.NoPE", "arguments": {}}]}
    llama = config_of("llama").to_dict() | {"model_type": "posenc_llama"}
    with pytest.raises(ConfigError, match=r"posenc\.layers: the model has no part 'encoder'"):
        spec_of(llama | {"posenc": entry | {"model_type": "llama", "layers": {"encoder.0": 0}}})
    t5 = config_of("t5").to_dict() | {"model_type": "posenc_t5"}
    with pytest.raises(ConfigError, match=r"posenc\.layers: the model has 4 layers, got 9"):
        spec_of(t5 | {"posenc": entry | {"model_type": "t5", "layers": {"encoder.9": 0}}})


# --- refused ------------------------------------------------------------------------------------------------------------

REFUSED = {
    "causal alone": ("t5", lambda: made("t5"), {}, ValueError, r"causal attention only \(in the encoder; {'encoder': …"),
    "causal in the encoder": ("bart", lambda: {"encoder": made("t5")}, {}, ValueError, "causal attention only"),
    "other heads": ("bart", lambda: posenc.create("alibi", n_heads=3), {}, ValueError, "has n_heads=3, layer 0 has 4"),
    "no part": (
        "t5",
        lambda: {"decodr": alibi()},
        {},
        ValueError,
        r"encoding: expected some of the parts 'encoder', 'decoder' for this T5ForCond.*, got \['decodr'\]",
    ),
    "no encoding": ("t5", lambda: {"encoder": "alibi"}, {}, TypeError, "encoding: expected a PositionalEncoding"),
    "nothing": ("t5", dict, {}, ValueError, "encoding: expected some of the parts"),
    "some layers": (
        "t5",
        alibi,
        {"layers": [1]},
        pt.Unsupported,
        r"has T5, which all of its layers read .*\(in the encoder\)",
    ),
    "no layers": ("t5", alibi, {"layers": [7]}, ValueError, r"layers: expected some of the attention layers \[0, 1\]"),
    "too few": (
        "t5",
        lambda: posenc.PerLayer([alibi()]),
        {},
        ValueError,
        r"a PerLayer of 1 layers has none for the model's layers \[1\] \(in the encoder",
    ),
    "T5's scale": (
        "t5",
        lambda: {"decoder": made("path", n_kv_heads=HEADS)},
        {},
        pt.Unsupported,
        "attention has scale of the",
    ),
    "a convolution": ("t5", lambda: made("convolutional"), {}, pt.Unsupported, "reads neighbouring tokens"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused_with_the_reason_and_left_as_it_was(what):
    kind, encoding, options, error, said = REFUSED[what]
    model = model_of(kind)
    before, kept = logits(model), state(model)
    with pytest.raises(error, match=said):
        pt.attach(model, encoding(), **options)
    assert_same(kept, state(model))
    assert torch.equal(logits(model), before)


def test_parts_are_refused_where_there_is_one_stack():
    model = transformers.AutoModelForCausalLM.from_config(config_of("llama"))
    with pytest.raises(ValueError, match=r"encoding: expected one PositionalEncoding for this Llama.*, got \['encoder'\]"):
        pt.attach(model, {"encoder": alibi()})


# Families whose attention is their own, whose positions are no learned table, or whose input is no text.
UNSERVED = {
    "longt5": "no attention module of LongT5Stack goes through AttentionInterface",
    "led": "no attention module of LEDEncoder goes through AttentionInterface",
    "pegasus": r"has Sinusoidal inside its modules, where it cannot be switched off \(in the encoder\)",
    "marian": r"has Sinusoidal inside its modules, where it cannot be switched off \(in the encoder\)",
    "m2m_100": r"has Sinusoidal inside its modules, where it cannot be switched off \(in the encoder\)",
    "blenderbot-small": r"has Learned inside its modules, where it cannot be switched off \(in the decoder\)",
    "prophetnet": "no attention module of ProphetNetEncoder goes through AttentionInterface",
    "fsmt": "is an encoder with a decoder, whose configuration its FSMTEncoder does not hold",
    "udop": "UdopStack does not run with another attention: Bbox is required",
    "whisper": "WhisperEncoder takes no input_ids; attach serves models that read tokens",
}


@pytest.mark.parametrize("kind", UNSERVED)
def test_other_families_are_refused_by_one_clear_error(kind):
    config = tiny.config_of(kind) if kind != "prophetnet" else None
    if kind == "prophetnet":
        config = transformers.ProphetNetConfig(vocab_size=99, hidden_size=32, num_encoder_layers=1, num_decoder_layers=1)
    if kind != "fsmt" and kind != "prophetnet":
        config.is_decoder = False
    model = transformers.AutoModel.from_config(config).eval()
    kept = state(model)
    with pytest.raises(pt.Unsupported, match=UNSERVED[kind]):
        pt.attach(model, alibi())
    assert_same(kept, state(model))


def test_a_part_that_is_no_model_by_itself_and_other_functions():
    t5, bart = model_of("t5"), model_of("bart")
    for part in (t5.get_decoder(), bart.get_encoder(), bart.get_decoder()):
        with pytest.raises(
            pt.Unsupported, match="is configured as a part of an encoder with a decoder; attach to the whole"
        ):
            pt.attach(part, alibi())
    with pytest.raises(
        pt.Unsupported, match=r"where one stack of layers is expected; give its encoder alone, model.get_enc"
    ):
        pt.check(t5)
    with pytest.raises(pt.Unsupported, match="where one stack of layers is expected; its encoder is no model by itself"):
        pt.fast(bart)


def test_a_quantised_cache_of_the_decoder_is_refused_for_states():
    model = pt.attach(model_of("t5"), {"decoder": made("fox")})
    rounded = DynamicCache()
    rounded.layers = [Rounded(), Rounded()]
    with pytest.raises(TypeError, match="rounds what is cached, and FoX"):
        model(input_ids=IDS, decoder_input_ids=OUT, past_key_values=EncoderDecoderCache(rounded, DynamicCache()))


@pytest.mark.parametrize("name", ["alibi", "rope"])
@torch.no_grad()
def test_tokens_of_the_decoder_are_evicted_and_the_encoders_stay(name):
    """One decoder layer: the next token reads what it would read if only the kept tokens had been there."""
    model = pt.attach(model_of("t5", num_decoder_layers=1), made(name))
    cache = model(input_ids=IDS, decoder_input_ids=OUT[:, :5], use_cache=True).past_key_values
    keep, last = [0, 3, 4], OUT[:, 5:]
    kept = {
        "encoder_outputs": (model.get_encoder()(IDS).last_hidden_state,),
        "past_key_values": pt.evict(model, cache, keep),
    }
    found = model(decoder_input_ids=last, **kept).logits
    near(found, logits(model, out=torch.cat([OUT[:, keep], last], dim=1))[:, -1:], 1e-6)
    pt.attach(pt.detach(model), {"encoder": made(name)})
    with pytest.raises(ValueError, match="nothing is attached to this T5ForConditionalGeneration"):
        pt.evict(model, cache, [0])
