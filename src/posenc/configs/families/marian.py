"""Marian, Pegasus, M2M-100, Kosmos-2 and similar: sinusoids added to the embeddings.

Three conventions: the original paper's, tensor2tensor's (last frequency 1/10000), and fairseq's, which skips padding."""

from __future__ import annotations

from posenc.configs.families.roberta import TOKENS
from posenc.configs.family import family, stack_of, two_stacks
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use
from posenc.support.languages import clauses


@family("kosmos_2_text_model", "kosmos_2_5_text_model")
def kosmos_2_text_model(keys: Keys) -> PositionSpec:
    """fairseq's sinusoids: padding is not counted and gets zero."""
    after = keys.whole("pad_token_id", least=0) + 1
    keys.warning(
        "pad_token_id",
        say(
            "positions count input_ids other than this one, whatever attention_mask is; position_ids of a "
            "call are rows of the table: position p is p + {after}",
            after=after,
        ),
    )
    layers = [Layer()] * keys.whole("layers")
    return stack_of(
        keys, layers, embedding=[fairseq(keys, "embed_dim")], width="embed_dim", heads="attention_heads", coordinates=TOKENS
    )


def sinusoid(keys: Keys, width: str = "d_model", **options: str | float) -> Use:
    """Sinusoids; all options but the width are constants of the family's code."""
    arguments = {"d_model": keys.whole(width), **options}
    said_by = {"d_model": keys.said_by(width)} | dict.fromkeys(options, "constant of the code")
    return Use("encodings.sinusoidal.Sinusoidal", tuple(arguments.items()), tuple(said_by.items()))


def fairseq(keys: Keys, width: str = "d_model") -> Use:
    """fairseq's sinusoids: counted from pad_token_id + 1 over non-padding tokens; padding gets zero.

    Last frequency 1/10000.
    """
    after = keys.whole("pad_token_id", least=0) + 1
    return sinusoid(keys, width, layout="sin_cos", denominator="d/2-1", offset=after, odd="zero", silent="padding")


@family("marian", "pegasus")
def marian(keys: Keys) -> PositionSpec:
    """Sines first, then cosines; padding is counted."""
    use = sinusoid(keys, layout="sin_cos")
    return two_stacks(keys, use, use)


@family("pegasus_x")
def pegasus_x(keys: Keys) -> PositionSpec:
    """Encoder layers attend within blocks, shifted by half a block in every second layer, and to global tokens."""
    use = sinusoid(keys, layout="sin_cos", denominator="d/2-1")
    size, n_global = keys.whole("block_size", 512), keys.whole("num_global_tokens", 32)
    keys.note(
        "block_size",
        clauses(
            say(
                "encoder layers attend within blocks of {size} and to {n_global} global tokens, which connect the blocks",
                size=size,
                n_global=n_global,
            ),
            *[say("odd layers shift blocks by half")] * keys.flag("stagger_local_blocks", True),
        ),
    )
    return two_stacks(keys, use, use)


@family("m2m_100", "nllb-moe", "fsmt")
def m2m_100(keys: Keys) -> PositionSpec:
    use = fairseq(keys)
    keys.warning(
        "pad_token_id",
        clauses(
            say("positions count input_ids other than this one, whatever attention_mask is"),
            say("with inputs_embeds, tokens whose first channel is 0 count as padding")
            if keys.family == "fsmt"
            else say("with inputs_embeds, every token is counted"),
        ),
    )
    return two_stacks(keys, use, use, coordinates=TOKENS)


@family("xglm")
def xglm(keys: Keys) -> PositionSpec:
    """fairseq's table from row 2 on for every token, padding included."""
    use = sinusoid(keys, layout="sin_cos", denominator="d/2-1", offset=2, odd="zero")
    layers = [Layer()] * keys.whole("num_layers")
    return stack_of(keys, layers, embedding=[use], width="d_model", heads="attention_heads")


@family("ctrl")
def ctrl(keys: Keys) -> PositionSpec:
    keys.note("n_positions", say("the table has this many rows; its angles are computed in fp32"))
    layers = [Layer()] * keys.whole("n_layer")
    return stack_of(
        keys,
        layers,
        embedding=[sinusoid(keys, "n_embd", layout="sin_cos")],
        width="n_embd",
        heads="n_head",
        length="n_positions",
    )
