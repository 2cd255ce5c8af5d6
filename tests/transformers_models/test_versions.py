"""What a version of transformers names its cache; what posenc does not know in a call is not ignored; the tested range."""

import re
import tomllib
import warnings
from pathlib import Path

import pytest
import torch
import transformers
from transformers.cache_utils import DynamicCache

import posenc
import posenc.transformers as pt
from posenc.configs.stacked import stacked
from posenc.transformers import versions
from sampling import every_second
from transformers_models import judge, table, tiny
from transformers_models.test_attach import IDS, logits, made, model_of, near

HERE = "cache" if "cache" in judge.inspect.signature(transformers.LlamaModel.forward).parameters else "past_key_values"
OTHER = {"cache": "past_key_values", "past_key_values": "cache"}[HERE]
PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def minor(version):
    return tuple(int(part) for part in version.split(".")[:2])


def test_the_project_states_the_tested_range():
    (stated,) = [one for one in PROJECT["optional-dependencies"]["transformers"] if one.startswith("transformers")]
    low, above = re.fullmatch(r"transformers>=([\d.]+),<([\d.]+)", stated).groups()
    (oldest, newest) = versions.TESTED
    assert minor(low) == oldest
    assert minor(above) == (newest[0], newest[1] + 1)


def test_the_pinned_version_is_the_tables():
    """Otherwise the tests of the table would be skipped."""
    for extra in ("dev", "peers"):
        assert f"transformers=={table.VERSION}" in PROJECT["optional-dependencies"][extra]
    assert versions.TESTED[0] <= minor(table.VERSION) <= versions.TESTED[1]


DOORS = {
    "attach": lambda: pt.attach(model_of(), made("alibi")),
    "fast": lambda: pt.fast(model_of()),
    "check": lambda: pt.check(model_of(), laws=["later_tokens_do_not_matter"]),
    "extend": lambda: pt.extend(model_of(), 4096 * 64),
    "register_rope": lambda: (pt.register_rope("a", posenc.frequencies.rotary(16, base=1e4)), pt.unregister_rope("a")),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("version", ["5.15.3", "5.25.0", "5.25.0.dev0", "5.25rc1", "6.0.0"])
def test_an_untested_version_warns_once(door, version, monkeypatch):
    monkeypatch.setattr(versions, "_installed", lambda: version)
    versions._warn_untested.cache_clear()
    with pytest.warns(UserWarning, match=rf"tested with transformers 5\.16 to 5\.24, this is {re.escape(version)}"):
        DOORS[door]()
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        pt.attach(model_of(), made("alibi"))


@pytest.mark.parametrize("version", ["5.16.1", "5.23.0", "5.24.7"])
def test_a_tested_version_does_not_warn(version, monkeypatch):
    monkeypatch.setattr(versions, "_installed", lambda: version)
    versions._warn_untested.cache_clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        pt.attach(model_of(), made("alibi"))


@pytest.mark.parametrize(
    ("model_type", "name"),
    every_second(["llama", "mistral", "qwen3", "gemma2", "gpt_neox", "olmo2"], ["rope", "alibi", "cope"]),
)
def test_decoding_over_a_cache_equals_one_pass(model_type, name):
    """Chunks and single tokens, over the cache that this version returns under the name that it takes."""
    model = tiny.model_of(model_type)
    makes = {
        "rope": lambda heads, width: posenc.create("rope", d_head=width, layout="half"),
        "alibi": lambda heads, width: posenc.create("alibi", n_heads=heads),
        "cope": lambda heads, width: posenc.create("cope", n_heads=heads, d_head=width, max_positions=16),
    }
    judge.attach(model, makes[name])
    assert judge.cached(model) <= judge.TOLERANCE
    assert judge.chunked(model) <= judge.TOLERANCE


@torch.no_grad()
@pytest.mark.parametrize("name", ["cache", "past_key_values"])
def test_a_cache_is_read_under_both_names(name):
    """The decoder itself is called: what is outside of it may rename the argument."""
    model = pt.attach(model_of(), made("rope"))
    whole = model.model(input_ids=IDS).last_hidden_state
    cache = DynamicCache(config=model.config)
    if name == "cache" and HERE != "cache":
        with pytest.raises(TypeError, match=r"cache: this LlamaModel was given a DynamicCache.* pass a cache as past_key"):
            model.model(input_ids=IDS[:, :6], cache=cache)
        return
    found = [model.model(input_ids=IDS[:, n : n + 5], **{name: cache}).last_hidden_state for n in (0, 5)]
    near(torch.cat(found, dim=1), whole)


class Uncounted:
    """A cache that counts no tokens."""

    def update(self, **_):
        raise AssertionError("nothing may be written to it")


class Paged:
    """A cache that counts no tokens, named as that of continuous batching."""

    def update(self, **_):
        raise AssertionError("nothing may be written to it")


UNKNOWN = {
    "another name": ("kept_states", lambda: DynamicCache(), rf"pass a cache as {HERE}"),
    "a name that says so": ("layer_past", lambda: Uncounted(), rf"pass a cache as {HERE}"),
    "a list of pairs": ("past_pairs", lambda: [(torch.zeros(1, 2, 3, 16),) * 2], rf"pass a cache as {HERE}"),
    "one that does not count": (HERE, lambda: Uncounted(), "pass a cache that counts its tokens"),
    "pairs under the known name": (HERE, lambda: (torch.zeros(1),), "pass a cache that counts its tokens"),
    "a paged cache": ("cache", lambda: Paged(), "continuous batching attends .* leave out what is attached; call generate"),
}


@pytest.mark.parametrize("what", UNKNOWN)
def test_a_cache_that_cannot_be_read_is_not_ignored(what):
    name, make, remedy = UNKNOWN[what]
    model = pt.attach(model_of(), made("rope"))
    expected = logits(model)
    with pytest.raises(
        TypeError, match=rf"^{name}: this LlamaModel was given a .* positions .*{remedy}.*, or detach\(model\)"
    ):
        model(input_ids=IDS, **{name: make()})
    assert torch.equal(logits(model), expected)


def test_continuous_batching_is_refused_by_name():
    """transformers refuses the attention "posenc"; with the one that it names instead, the request fails by name."""
    model = pt.attach(model_of(num_hidden_layers=1), made("rope"))
    small = {
        "generation_config": transformers.GenerationConfig(max_new_tokens=2, do_sample=False, eos_token_id=-1),
        "continuous_batching_config": transformers.ContinuousBatchingConfig(num_blocks=4, max_batch_tokens=8),
    }
    with pytest.raises(ValueError, match="posenc is not supported for continuous batching"):
        model.generate_batch(inputs=[[3, 4, 5]], **small)
    model.set_attn_implementation("sdpa")
    (request,) = model.generate_batch(inputs=[[3, 4, 5]], **small, progress_bar=False).values()
    assert not request.generated_tokens
    assert "continuous batching attends with implementations of its own" in request.error


@pytest.mark.skipif(HERE != "cache", reason="this transformers takes no argument `cache` of which two could be given")
def test_two_caches_are_refused():
    model = pt.attach(model_of(), made("rope"))
    with pytest.raises(TypeError, match="cache, past_key_values: expected one cache, got two"):
        model.model(input_ids=IDS, cache=DynamicCache(), past_key_values=DynamicCache())


def test_what_says_how_to_cache_is_no_cache():
    model = pt.attach(model_of(), made("rope"))
    plain = {"use_cache": False, "cache_position": torch.arange(10), "past_length": 0}
    assert torch.equal(model(input_ids=IDS, **plain).logits, logits(model))


def test_attention_that_is_told_what_posenc_does_not_know_is_refused():
    """A sharpness, say: posenc's attention would leave it out without a word."""
    model = model_of()
    own = logits(model)
    for layer in model.model.layers:
        layer.self_attn.register_forward_pre_hook(
            lambda module, args, kwargs: (args, kwargs | {"sharpness": torch.ones(1)}), with_kwargs=True
        )
    with pytest.raises(
        pt.Unsupported, match="attention of layer 0 is told sharpness, which posenc's attention does not know"
    ):
        pt.attach(model, made("rope"))
    assert torch.equal(logits(model), own)


def selecting(model_type):
    """A model of which each indexer selects four keys, fewer than the tokens of IDS."""
    model = tiny.model_of(model_type)
    indexers = [one for one in model.modules() if hasattr(one, "index_topk")]
    assert indexers
    for one in indexers:
        one.index_topk = 4
    return model


@pytest.mark.skipif("dots3_note_text" not in tiny.MODEL_TYPES, reason="this transformers has no such model")
def test_keys_that_an_indexer_selects_stay_selected():
    """In layers to which nothing is attached. The other layers get the model's own encoding: nothing may change."""
    model = selecting("dots3_note_text")
    own = judge.logits(model)
    spec = posenc.read_config(model.config.to_dict(), defaults=True)
    windows = [n for n, kind in enumerate(model.config.layer_types) if kind == "sliding_attention"]
    for n in windows:
        turned = [judge.as_handed_over(use).build("float64") for use in spec.layers[n].uses if use.rotation]
        pt.attach(model, stacked(turned), layers=[n])
    assert judge.apart(judge.logits(model), own) <= judge.TOLERANCE
    assert judge.cached(model) <= judge.TOLERANCE


@pytest.mark.parametrize("model_type", ["deepseek_v32", "glm_moe_dsa"])
def test_an_encoding_where_an_indexer_leaves_keys_out_raises(model_type):
    """The indexer selects with the model's own rotation, which is off there. While it selects all keys, it is served."""
    model = pt.attach(selecting(model_type), posenc.create("nope"), layers=[0])
    assert torch.isfinite(judge.logits(model, judge.IDS[:, :4])).all()
    with pytest.raises(RuntimeError, match=r"the indexer of \w+ selects 4 of 10 keys with the model's own rotation"):
        judge.logits(model)
