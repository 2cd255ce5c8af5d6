"""MarkupLM: RoBERTa's position table, and a learned vector of the token's XPath."""

from __future__ import annotations

from dataclasses import replace

from posenc.configs.families.layoutlm import embedded
from posenc.configs.families.roberta import TOKENS, padded_table
from posenc.configs.family import family, stack_of
from posenc.configs.keys import Keys
from posenc.configs.say import say
from posenc.configs.spec import Layer, PositionSpec, Use, Weight

PATH = "embeddings.xpath_embeddings."


@family("markuplm")
def markuplm(keys: Keys) -> PositionSpec:
    depth = keys.whole("max_depth", 50)
    sizes = {
        "d_model": "hidden_size",
        "depth": "max_depth",
        "n_tags": "max_xpath_tag_unit_embeddings",
        "n_subscripts": "max_xpath_subs_unit_embeddings",
        "unit": "xpath_unit_hidden_size",
    }
    usual = {"d_model": 768, "depth": 50, "n_tags": 256, "n_subscripts": 1024, "unit": 32}
    arguments = tuple((name, keys.whole(key, usual[name])) for name, key in sizes.items())
    said_by = tuple((name, keys.said_by(key)) for name, key in sizes.items())
    weights = [
        Weight(parameter, f"{PATH}xpath_{stored}_sub_embeddings.{step}.weight", into=(0, step))
        for parameter, stored in (("tags", "tag"), ("subscripts", "subs"))
        for step in range(depth)
    ]
    for layer, stored in (("inner", "xpath_unitseq2_inner"), ("outer", "inner2emb")):
        weights += [Weight(f"{layer}.{kind}", f"{PATH}{stored}.{kind}") for kind in ("weight", "bias")]
    path = Use("encodings.of_families.xpath.XPath", arguments, said_by, tuple(weights))
    positions = padded_table(keys)
    usable = int(dict(positions.arguments)["max_positions"])
    layers = [Layer(causal=False)] * keys.whole("num_hidden_layers")
    spec = stack_of(keys, layers, embedding=[positions], length=usable, coordinates=TOKENS)
    tag, subscript = keys.whole("tag_pad_id", 216, least=0), keys.whole("subs_pad_id", 1001, least=0)
    where = say(
        "tags of {depth} steps from the root, then their subscripts; {tag} and {subscript} for missing steps",
        depth=depth,
        tag=tag,
        subscript=subscript,
    )
    return replace(spec, parts=(embedded(keys, "xpath", path, where),))
