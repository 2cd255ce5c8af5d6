"""Sines and cosines added to the embeddings of text: the paper's, tensor2tensor's, and fairseq's that skip padding."""

from __future__ import annotations

from posenc.dialects.families.bart import two_stacks
from posenc.dialects.families.learned import BERT, table
from posenc.dialects.families.padded import COUNTED
from posenc.dialects.family import family, stack_of
from posenc.dialects.keys import Keys
from posenc.dialects.spec import Layer, PositionSpec, Use

ROWS = "the table has two rows more than positions: position p reads row p + 2"


def sinusoid(keys: Keys, width: str = "d_model", **options: str | float) -> Use:
    """Constants of the code but for the width."""
    arguments = {"d_model": keys.whole(width), **options}
    said = {"d_model": keys.said_by(width)} | dict.fromkeys(options, "constant of the code")
    return Use("encodings.sinusoidal.Sinusoidal", tuple(arguments.items()), tuple(said.items()))


def fairseq(keys: Keys, width: str = "d_model") -> Use:
    """Counted from pad_token_id + 1 over what is not padding; padding gets nothing; the last frequency is 1/10000."""
    after = keys.whole("pad_token_id", least=0) + 1
    return sinusoid(keys, width, layout="sin_cos", denominator="d/2-1", offset=after, odd="zero", silent="padding")


@family("marian", "pegasus")
def _(keys: Keys) -> PositionSpec:
    """Sines first, then cosines; padding is counted like any token."""
    use = sinusoid(keys, layout="sin_cos")
    return two_stacks(keys, use, use)


@family("pegasus_x")
def _(keys: Keys) -> PositionSpec:
    """Encoder layers see blocks, shifted by half in every second layer, and global tokens, which have no position."""
    use = sinusoid(keys, layout="sin_cos", denominator="d/2-1")
    size, n_global = keys.whole("block_size", 512), keys.whole("num_global_tokens", 32)
    keys.find(
        "note",
        "block_size",
        f"encoder layers attend within blocks of {size} and to {n_global} global tokens; only "
        "these carry from block to block"
        + "; odd layers shift blocks by half"
        * bool(keys.flag("stagger_local_blocks", True)),
    )
    return two_stacks(keys, use, use)


@family("m2m_100", "nllb-moe", "fsmt")
def _(keys: Keys) -> PositionSpec:
    use = fairseq(keys)
    keys.find(
        "warning",
        "pad_token_id",
        "input_ids are compared with it to count, whatever attention_mask says; "
        "with inputs_embeds "
        + ("tokens whose first channel is 0 count as padding" if keys.family == "fsmt" else "every token is counted"),
    )
    return two_stacks(keys, use, use, coordinates=COUNTED)


@family("xglm")
def _(keys: Keys) -> PositionSpec:
    """fairseq's table read from row 2 on by every token, padding or not."""
    use = sinusoid(keys, layout="sin_cos", denominator="d/2-1", offset=2, odd="zero")
    layers = [Layer()] * keys.whole("num_layers")
    return stack_of(keys, layers, embedding=[use], width="d_model", heads="attention_heads")


@family("ctrl")
def _(keys: Keys) -> PositionSpec:
    keys.find("note", "n_positions", "the table ends there; its angles are made in fp32")
    layers = [Layer()] * keys.whole("n_layer")
    return stack_of(
        keys,
        layers,
        embedding=[sinusoid(keys, "n_embd", layout="sin_cos")],
        width="n_embd",
        heads="n_head",
        length="n_positions",
    )


@family("distilbert")
def _(keys: Keys) -> PositionSpec:
    """Learned unless sinusoidal_pos_embds."""
    return _either(keys, "sinusoidal_pos_embds", BERT, "dim", "n_heads", "n_layers", causal=False)


@family("xlm", "flaubert")
def _(keys: Keys) -> PositionSpec:
    """Learned unless sinusoidal_embeddings; `causal` hides later tokens."""
    weight = "position_embeddings.weight"
    return _either(
        keys, "sinusoidal_embeddings", weight, "emb_dim", "n_heads", "n_layers", causal=keys.flag("causal", False)
    )


def _either(keys: Keys, flag: str, weight: str, width: str, heads: str, count: str, causal: bool) -> PositionSpec:
    if keys.flag(flag, False):
        keys.find("note", flag, "a checkpoint holds the sines as a table, and what it holds is what the code reads")
        use = sinusoid(keys, width)
    else:
        use = table(keys, weight, width=width)
    layers = [Layer(causal=bool(causal))] * keys.whole(count)
    return stack_of(keys, layers, embedding=[use], width=width, heads=heads)


@family("trocr")
def _(keys: Keys) -> PositionSpec:
    """A decoder alone: BART's table, or fairseq's sines."""
    where = "0, 1, 2, … along the sequence"
    if keys.flag("use_learned_position_embeddings", True):
        use = table(keys, "embed_positions.weight", width="d_model", row_offset=2)
        keys.find("note", "max_position_embeddings", ROWS)
    else:
        use, where = fairseq(keys), COUNTED
    layers = [Layer()] * keys.whole("decoder_layers")
    return stack_of(keys, layers, embedding=[use], width="d_model", heads="decoder_attention_heads", coordinates=where)
