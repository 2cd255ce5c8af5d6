"""Encoders with an encoding attached: BERT's kind, ModernBERT, and the encoder of T5. Tiny random models."""

import copy
import itertools

import pytest
import torch
import transformers

import posenc
import posenc.transformers as pt
from families.harness import config_of
from posenc.configs import read_config
from posenc.configs.weights import with_weights
from sampling import one_in
from transformers_models import tiny
from transformers_models.test_refused import assert_same, state

transformers.logging.set_verbosity_error()
HEADS = 4
IDS = torch.randint(5, 30, (2, 9), generator=torch.Generator().manual_seed(0))
TABLES = ["bert", "roberta", "electra", "xlm-roberta", "camembert", "ernie", "data2vec-text"]  # of positions
BIASES = ["t5", "umt5"]
KINDS = [*TABLES, *BIASES, "modernbert", "eurobert"]


def encoder(kind, **sizes):
    torch.manual_seed(0)
    model = tiny.drawn(transformers.AutoModel.from_config(config_of(kind, **sizes), dtype=torch.float32).eval())
    model = model.get_encoder() if model.config.is_encoder_decoder else model
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "position" in name or "relative" in name:
                parameter.normal_(std=0.5)
    return model


def heads_of(model):
    return getattr(model.config, "num_attention_heads", None) or model.config.num_heads


def own(model):
    """What the model does with position by itself, as posenc reads it, with the model's weights."""
    spec = read_config(model.config.to_dict(), defaults=True)
    spec = next((part for part in spec.parts if part.part == "encoder"), spec)
    name = "encoder." if spec.part == "encoder" else ""
    weights = {name + key: value for key, value in model.state_dict().items()}
    return posenc.PerLayer([with_weights(spec, n, weights) for n in range(len(spec.layers))])


@torch.no_grad()
def hidden(model, ids=IDS, **inputs):
    return model(input_ids=ids, **inputs).last_hidden_state


def near(found, expected, most=2e-5):
    torch.testing.assert_close(found, expected, rtol=most, atol=most)


@pytest.mark.parametrize("kind", KINDS)
def test_the_models_own_encoding_attached_leaves_embeddings_as_they_are(kind):
    model = encoder(kind)
    before, kept = hidden(model), state(model)
    mask = torch.ones_like(IDS)
    mask[1, 5:] = 0
    ids = IDS.masked_fill(mask == 0, getattr(model.config, "pad_token_id", 0) or 0)
    padded = hidden(model, ids, attention_mask=mask)
    encoding = own(model)
    pt.attach(model, encoding)
    near(hidden(model), before)
    found = hidden(model, ids, attention_mask=mask)
    near(found[:1], padded[:1])
    near(found[1, :5], padded[1, :5])
    pt.detach(model)
    assert_same(kept, state(model))
    assert torch.equal(hidden(model), before)
    pt.attach(model, posenc.create("nope"))
    assert (hidden(model) - before).abs().max() > 1e-2


@pytest.mark.parametrize("kind", KINDS)
def test_without_positions_order_does_not_matter_and_with_alibi_it_does(kind):
    model = encoder(kind)
    order = torch.tensor([3, 1, 0, 2, 8, 7, 6, 5, 4])
    before = hidden(model)
    assert (hidden(model, IDS[:, order]) - before[:, order]).abs().max() > 1e-3
    pt.attach(model, posenc.create("nope"))
    near(hidden(model, IDS[:, order]), hidden(model)[:, order], 1e-4)
    pt.detach(model)
    pt.attach(model, posenc.create("alibi", n_heads=heads_of(model)))
    assert (hidden(model, IDS[:, order]) - hidden(model)[:, order]).abs().max() > 1e-3


@pytest.mark.parametrize(("kind", "name"), one_in(3, itertools.product(KINDS, ["rope", "alibi", "t5", "nope"])))
def test_padding_on_either_side_and_more_tokens_than_the_table_has(kind, name):
    model = encoder(
        kind, max_position_embeddings=48
    ).double()  # T5's kind does not scale its scores: single precision rounds by 2e-5
    heads = heads_of(model)
    width = getattr(model.config, "d_kv", None) or model.config.hidden_size // heads
    made = {
        "rope": lambda: posenc.create("rope", d_head=width, layout="half"),
        "alibi": lambda: posenc.create("alibi", n_heads=heads),
        "nope": lambda: posenc.create("nope"),
        "t5": lambda: posenc.laws.draw_parameters(posenc.create("t5", n_heads=heads, bidirectional=True), std=0.3),
    }
    pt.attach(model, made[name]())
    alone = hidden(model)
    pad = torch.zeros(2, 3, dtype=torch.long)
    ones = torch.ones_like(IDS)
    near(hidden(model, torch.cat([pad, IDS], 1), attention_mask=torch.cat([pad, ones], 1))[:, 3:], alone)
    near(hidden(model, torch.cat([IDS, pad], 1), attention_mask=torch.cat([ones, pad], 1))[:, :9], alone)
    most = model.config.max_position_embeddings
    long = IDS.repeat(1, most // 9 + 4)
    assert long.shape[1] > most
    assert hidden(model, long).isfinite().all()
    near(hidden(model, long, attention_mask=torch.ones_like(long)), hidden(model, long))


@torch.no_grad()
def test_alibi_in_bert_is_bert_written_out_with_alibis_bias():
    """The layers in plain torch, the table left out, -slope·|i-j| added to the scores."""
    model = encoder("bert", num_attention_heads=HEADS)
    n = IDS.shape[1]
    distance = (torch.arange(n)[:, None] - torch.arange(n)).abs()
    bias = -torch.tensor([2.0**-2, 2.0**-4, 2.0**-6, 2.0**-8])[:, None, None] * distance
    embeddings = model.embeddings
    x = embeddings.LayerNorm(embeddings.word_embeddings(IDS) + embeddings.token_type_embeddings(torch.zeros_like(IDS)))
    for block in model.encoder.layer:
        inside = block.attention.self
        q, k, v = (part(x).unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in (inside.query, inside.key, inside.value))
        weights = (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5 + bias).softmax(-1)
        y = block.attention.output((weights @ v).transpose(1, 2).flatten(2), x)
        x = block.output(block.intermediate(y), y)
    pt.attach(model, posenc.create("alibi", n_heads=HEADS))
    near(hidden(model), x)


def test_the_table_is_kept_in_a_stack():
    """Its own table and ALiBi: the same as the model with a bias of ALiBi's handed to it."""
    model = encoder("bert", num_attention_heads=HEADS)
    model.set_attn_implementation("sdpa")
    distance = (torch.arange(9)[:, None] - torch.arange(9)).abs()
    bias = -torch.tensor([2.0**-2, 2.0**-4, 2.0**-6, 2.0**-8])[:, None, None] * distance
    expected = hidden(model, position_bias=bias[None])
    assert (expected - hidden(model)).abs().max() > 1e-3
    table = own(model).at_layer(0)
    pt.attach(model, posenc.Stack(table, posenc.create("alibi", n_heads=HEADS)))
    near(hidden(model), expected)


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_position_ids_and_token_types_are_what_they_are_for_the_model(kind):
    """RoBERTa's position_ids are rows of its table, which begin with padding_idx + 1."""
    model = encoder(kind, type_vocab_size=2)
    first = 0 if kind == "bert" else model.config.pad_token_id + 1
    given = {"position_ids": torch.arange(0, 18, 2)[None] + first, "token_type_ids": (torch.arange(9) > 4).long()[None]}
    given["token_type_ids"] = given["token_type_ids"].expand(2, -1)
    expected = hidden(model, **given)
    pt.attach(model, own(model))
    near(hidden(model, **given), expected)
    near(hidden(model, None, inputs_embeds=model.get_input_embeddings()(IDS), **given), expected)


def test_documents_are_told_apart_by_the_mask_alone_as_in_the_model():
    """position_ids that begin again hide nothing in a model that attends both ways."""
    model = encoder("modernbert")
    at = torch.tensor([[0, 1, 2, 3, 0, 1, 2, 3, 4]])
    expected = hidden(model, position_ids=at)
    pt.attach(model, own(model))
    near(hidden(model, position_ids=at), expected)


@pytest.mark.parametrize("kind", ["bert", "roberta", "modernbert"])
def test_saved_and_loaded_with_an_encoding_for_each_layer(kind, tmp_path):
    model = encoder(kind, num_hidden_layers=3)
    heads, count = heads_of(model), 3
    t5 = posenc.laws.draw_parameters(posenc.create("t5", n_heads=heads, bidirectional=True), std=0.3)
    alibi = posenc.create("alibi", n_heads=heads)
    pt.attach(model, posenc.PerLayer([t5 if n % 2 else alibi for n in range(count)]))
    model.save_pretrained(tmp_path)
    loaded = transformers.AutoModel.from_pretrained(tmp_path, trust_remote_code=True).eval()
    assert torch.equal(hidden(loaded), hidden(model))
    near(hidden(copy.deepcopy(model)), hidden(model), 0)


def test_every_law_holds_in_an_encoder_with_an_encoding():
    for kind in ("bert", "roberta", "modernbert"):
        model = encoder(kind)
        pt.attach(model, posenc.create("alibi", n_heads=heads_of(model)))
        report = pt.check(model)
        assert report.passed, (kind, report)


def t5_one_sided():
    return posenc.create("t5", n_heads=HEADS)


def alibi():
    return posenc.create("alibi", n_heads=HEADS)


REFUSED = {
    "causal only": (
        "bert",
        {},
        t5_one_sided,
        ValueError,
        r"does not fit layer 0: causal=False: T5.* causal attention only",
    ),
    "some layers": (
        "bert",
        {"layers": [0]},
        alibi,
        pt.Unsupported,
        "layers: BertModel has Learned, which all of its layers",
    ),
    "deberta": ("deberta", {}, alibi, pt.Unsupported, "DebertaModel computes DeBERTa within its own attention"),
    "deberta-v2": ("deberta-v2", {}, alibi, pt.Unsupported, "DebertaV2Model computes DeBERTa within its own attention"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused_with_the_reason_and_left_as_it_was(what):
    kind, given, encoding, error, said = REFUSED[what]
    sizes = {"num_attention_heads": HEADS}
    if kind.startswith("deberta"):
        sizes |= {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]}
    model = encoder(kind, **sizes)
    before, kept = hidden(model), state(model)
    with pytest.raises(error, match=said):
        pt.attach(model, encoding(), **given)
    assert_same(kept, state(model))
    assert torch.equal(hidden(model), before)


def test_cross_attention_in_a_decoder_is_refused_when_it_is_called():
    config = config_of("gpt2", add_cross_attention=True, n_head=HEADS)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    pt.attach(model, alibi())
    with pytest.raises(TypeError, match="encoder_hidden_states: this GPT2Model has an encoding attached"):
        model(input_ids=IDS, encoder_hidden_states=torch.zeros(2, 4, config.hidden_size))
