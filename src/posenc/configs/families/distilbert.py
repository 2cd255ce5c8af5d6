"""DistilBERT, XLM and FlauBERT: a learned position table or sinusoids, as a flag says."""

from __future__ import annotations

from posenc.configs.families.bert import BERT_TABLE, learned_table
from posenc.configs.families.marian import sinusoid
from posenc.configs.family import family, stack_of
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec


@family("distilbert")
def distilbert(keys: Keys) -> PositionSpec:
    """A learned table unless sinusoidal_pos_embds is set."""
    return _either(keys, "sinusoidal_pos_embds", BERT_TABLE, "dim", "n_heads", "n_layers", causal=False)


@family("xlm", "flaubert")
def xlm(keys: Keys) -> PositionSpec:
    """A learned table unless sinusoidal_embeddings is set; `causal` makes attention causal."""
    weight = "position_embeddings.weight"
    return _either(
        keys, "sinusoidal_embeddings", weight, "emb_dim", "n_heads", "n_layers", causal=keys.flag("causal", False)
    )


def _either(keys: Keys, flag: str, weight: str, width: str, heads: str, count: str, causal: bool) -> PositionSpec:
    if keys.flag(flag, False):
        keys.note(flag, say("a checkpoint stores the sinusoids as a table, and the code reads the stored values"))
        use = sinusoid(keys, width)
    else:
        use = learned_table(keys, weight, width=width)
    layers = [Layer(causal=bool(causal))] * keys.whole(count)
    return stack_of(keys, layers, embedding=[use], width=width, heads=heads)
