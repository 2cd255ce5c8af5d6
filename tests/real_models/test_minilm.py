"""all-MiniLM-L6-v2, a trained sentence encoder: its table in posenc, and paragraphs beyond its 512 positions.

The model comes by pip, see tools/trained_models.py.
"""

from __future__ import annotations

import copy

import pytest
import torch
import trained_models
import transformers

import posenc
import posenc.transformers as pt
from posenc.configs.checkpoint import load_encodings
from posenc.positions import Positions

transformers.logging.set_verbosity_error()
pytestmark = pytest.mark.acceptance
SENTENCES = [
    "A man is eating food.",
    "Someone is having a meal.",
    "The stock market fell sharply after the announcement, and many investors lost their savings.",
]


@pytest.fixture(scope="module")
def model():
    return transformers.AutoModel.from_pretrained(trained_models.minilm()).eval()


@pytest.fixture(scope="module")
def tokenizer():
    return transformers.AutoTokenizer.from_pretrained(trained_models.minilm())


@pytest.fixture(scope="module")
def table():
    """What the model does with position, as posenc reads it from the folder: one learned table."""
    return load_encodings(trained_models.minilm())[""][0]


@torch.no_grad()
def embedded(model, ids, mask, **inputs):
    """The mean of the last hidden states of the tokens that are there, of length 1: what this encoder was trained for."""
    hidden = model(attention_mask=mask, **({"input_ids": ids} | inputs)).last_hidden_state
    mean = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
    return torch.nn.functional.normalize(mean, dim=-1)


def test_near_in_meaning_is_near(model, tokenizer):
    """That it was read as it was trained."""
    given = tokenizer(SENTENCES, padding=True, return_tensors="pt")
    first, second, third = embedded(model, given.input_ids, given.attention_mask)
    assert first @ second > 0.6
    assert first @ third < 0.2


def test_every_law_holds(model):
    report = pt.check(model)
    assert report.passed, report


@torch.no_grad()
def test_its_own_table_in_posenc_gives_its_own_embeddings(model, tokenizer, table):
    """The model without its table, given word embeddings with posenc's added, is the model."""
    given = tokenizer(SENTENCES, padding=True, return_tensors="pt")
    without = copy.deepcopy(model)
    without.embeddings.position_embeddings.weight.zero_()
    words = model.embeddings.word_embeddings(given.input_ids)
    x = table.embed(words, Positions.arange(*given.input_ids.shape))
    found = embedded(without, None, given.attention_mask, input_ids=None, inputs_embeds=x)
    expected = embedded(model, given.input_ids, given.attention_mask)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)
    blind = embedded(without, given.input_ids, given.attention_mask)
    assert (blind - expected).abs().max() > 1e-2


def test_its_own_table_attached_gives_its_own_embeddings(model, tokenizer, table):
    given = tokenizer(SENTENCES, padding=True, return_tensors="pt")
    expected = embedded(model, given.input_ids, given.attention_mask)
    pt.attach(model, table)
    try:
        found = embedded(model, given.input_ids, given.attention_mask)
    finally:
        pt.detach(model)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)
    assert torch.equal(embedded(model, given.input_ids, given.attention_mask), expected)


OTHERS = {
    "alibi": lambda: posenc.create("alibi", n_heads=12),
    "rope": lambda: posenc.create("rope", d_head=32),
    "t5": lambda: posenc.create("t5", n_heads=12, bidirectional=True),
}


@pytest.mark.parametrize("name", OTHERS)
def test_another_encoding_attached_reads_more_tokens_than_the_table_has(name, model, tokenizer):
    """Untrained, so that nothing is said of meaning: padding changes nothing, and 900 tokens are read."""
    given = tokenizer(SENTENCES, padding=True, return_tensors="pt")
    plain = embedded(model, given.input_ids, given.attention_mask)
    pt.attach(model, OTHERS[name]())
    try:
        together = embedded(model, given.input_ids, given.attention_mask)
        alone = torch.cat(
            [
                embedded(model, ids[None, mask.bool()], mask[None, mask.bool()])
                for ids, mask in zip(given.input_ids, given.attention_mask, strict=True)
            ]
        )
        far = given.input_ids[:1].repeat(1, 900 // given.input_ids.shape[1] + 1)
        assert embedded(model, far, torch.ones_like(far)).isfinite().all()
    finally:
        pt.detach(model)
    torch.testing.assert_close(together, alone, rtol=0, atol=1e-5)
    assert (together - plain).abs().max() > 1e-3


def test_paragraphs_beyond_512_tokens_by_attaching_a_longer_table(model, tokenizer, table):
    """The same embeddings as in the model whose table has been replaced by hand."""
    words = tokenizer(trained_models.botchan().read_text("utf-8"), add_special_tokens=False, verbose=False).input_ids
    ids = torch.tensor([[tokenizer.cls_token_id, *words[2000:2900], tokenizer.sep_token_id]])
    expected = embedded(longer(model, table, 1024), ids, torch.ones_like(ids))
    pt.attach(model, table.resize(1024))
    try:
        found = embedded(model, ids, torch.ones_like(ids))
    finally:
        pt.detach(model)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)


def longer(model, table, positions):
    """The model with its table interpolated to more positions."""
    made = copy.deepcopy(model)
    rows = table.resize(positions).table
    made.embeddings.position_embeddings = torch.nn.Embedding.from_pretrained(rows.detach())
    made.embeddings.position_ids = torch.arange(positions)[None]
    made.embeddings.token_type_ids = torch.zeros(1, positions, dtype=torch.long)
    made.config.max_position_embeddings = positions
    return made


def test_paragraphs_beyond_512_tokens_by_an_interpolated_table(model, tokenizer, table):
    """A paragraph of 900 tokens is nearer to its own halves, which fit into 512 positions, than to those of others."""
    words = tokenizer(trained_models.botchan().read_text("utf-8"), add_special_tokens=False, verbose=False).input_ids
    paragraphs = [words[start : start + 900] for start in range(2000, 50000, 8000)]
    first, last = tokenizer.cls_token_id, tokenizer.sep_token_id

    def of(made, tokens):
        ids = torch.tensor([[first, *tokens, last]])
        return embedded(made, ids, torch.ones_like(ids))[0]

    far = longer(model, table, 1024)
    whole = torch.stack([of(far, one) for one in paragraphs])
    halves = torch.stack([of(model, one[:450]) + of(model, one[450:]) for one in paragraphs])
    cosines = whole @ torch.nn.functional.normalize(halves, dim=-1).T
    assert (cosines.argmax(1) == torch.arange(len(paragraphs))).all()
    assert cosines.diagonal().min() > 0.85
    with pytest.raises((RuntimeError, IndexError)):
        of(model, paragraphs[0])
