"""sentence-transformers with a longer context: docs/my-code.md; target other-libraries of tools/acceptance.py."""

import re
from pathlib import Path

import pytest
import torch
import transformers

import posenc
import posenc.transformers as pt

library = pytest.importorskip("sentence_transformers")
PAGE = Path(__file__).parents[2] / "docs" / "my-code.md"
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "b", "c"]
LONG = "a b c b " * 60


@pytest.fixture
def folder(tmp_path):
    """A small Qwen 3 with a trained length of 64, as sentence-transformers saves it."""
    (tmp_path / "vocab.txt").write_text("\n".join(WORDS))
    sizes = {"vocab_size": len(WORDS), "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2, "head_dim": 8}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64, "initializer_range": 0.5}
    torch.manual_seed(0)
    transformers.Qwen3Model(transformers.Qwen3Config(**sizes, **heads)).save_pretrained(tmp_path)
    transformers.BertTokenizerFast(vocab_file=str(tmp_path / "vocab.txt")).save_pretrained(tmp_path)
    library.SentenceTransformer(str(tmp_path)).save(str(tmp_path / "saved"))
    return tmp_path / "saved"


def vector(model, text):
    return torch.from_numpy(model.encode([text])[0])


def test_the_lines_of_the_page_change_what_the_model_reads(folder):
    (code,) = re.findall(r"## sentence-transformers\n.*?```py\n(.*?)```", PAGE.read_text("utf-8"), flags=re.DOTALL)
    names = {"SentenceTransformer": library.SentenceTransformer, "folder": str(folder), "pt": pt}
    exec(code, names)
    model = names["model"]
    assert model.max_seq_length == 256
    inner = pt.extend(transformers.AutoModel.from_pretrained(folder), 256, method="yarn").eval()
    tokens = model.tokenizer([LONG], return_tensors="pt", truncation=False)
    assert 64 < tokens.input_ids.shape[1] < 256
    tokens.pop("token_type_ids", None)
    with torch.no_grad():
        hidden = inner(**tokens).last_hidden_state[0]
    pooled = {"mean": hidden.mean(0), "lasttoken": hidden[-1], "cls": hidden[0]}
    mode = model[1].get_config_dict()["pooling_mode"]
    torch.testing.assert_close(vector(model, LONG), pooled[mode], rtol=1e-4, atol=1e-4)
    plain = library.SentenceTransformer(str(folder))
    plain.max_seq_length = 256
    assert (vector(plain, LONG) - vector(model, LONG)).abs().max() > 1e-3


def test_an_attached_encoding_is_not_left_out_in_silence(folder):
    """The library calls forward of the model itself, so that no hook of it runs."""
    model = library.SentenceTransformer(str(folder))
    pt.attach(model[0].auto_model, posenc.create("alibi", n_heads=4))
    with pytest.raises(RuntimeError, match="called outside of its decoder"):
        model.encode(["a b"])
