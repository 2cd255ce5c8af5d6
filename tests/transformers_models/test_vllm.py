"""vLLM's plug-in: what it registers, how a model of vLLM's then turns, and what it refuses.

Here the parts of vLLM that the plug-in uses are written out, with their files in release 0.33.0; the acceptance tests run
the release's own, which pip downloads.
"""

from __future__ import annotations

import ast
import copy
import json
import pickle
import sys
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import torch
import transformers
from torch import nn

import posenc
import posenc.transformers as pt
import receivers
import vllm_model_types
from posenc.configs.report.runtimes import servers
from posenc.transformers import vllm as plugin
from transformers_models.test_attach import made, model_of

TOKENS, WIDTH = 40, 16


class Rotary(nn.Module):
    """model_executor/layers/rotary_embedding/base.py, RotaryEmbedding: its arguments, its table, its forward_native."""

    def __init__(self, head_size, rotary_dim, max_position_embeddings, base, is_neox_style, dtype):
        super().__init__()
        self.head_size, self.rotary_dim, self.max_position_embeddings = head_size, rotary_dim, max_position_embeddings
        self.base, self.is_neox_style, self.dtype = base, is_neox_style, dtype
        self.register_buffer("cos_sin_cache", self._compute_cos_sin_cache().to(dtype), persistent=False)

    def _compute_cos_sin_cache(self):
        at = torch.arange(self.max_position_embeddings).double()[:, None]
        angle = at * self.base ** -(torch.arange(0, self.rotary_dim, 2).double() / self.rotary_dim)
        return torch.cat((angle.cos(), angle.sin()), -1).float()

    def forward(self, positions, query, key=None):
        cos, sin = (one[:, None] for one in self.cos_sin_cache[positions.flatten()].chunk(2, -1))

        def turned(x):
            heads = x.view(len(x), -1, self.head_size)
            part, rest = heads[..., : self.rotary_dim], heads[..., self.rotary_dim :]
            a, b = part.chunk(2, -1) if self.is_neox_style else (part[..., ::2], part[..., 1::2])
            pair = (a * cos - b * sin, b * cos + a * sin)
            out = torch.cat(pair, -1) if self.is_neox_style else torch.stack(pair, -1).flatten(-2)
            return torch.cat((out, rest), -1).view(x.shape)

        return turned(query), None if key is None else turned(key)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.rotary_emb = Rotary(WIDTH, WIDTH, TOKENS, 10000.0, True, torch.float32)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.self_attn = Attention()


class Llama(nn.Module):
    """model_executor/models/llama.py, LlamaForCausalLM: the path of a layer's rotation."""

    def __init__(self, *, vllm_config, prefix=""):
        super().__init__()
        self.model = nn.Module()
        self.model.layers = nn.ModuleList(Layer() for _ in range(4))


@pytest.fixture
def stand_in(monkeypatch):
    """What the plug-in takes from vLLM, and what it registered there."""
    registry, configurations = {}, {}
    modules = {
        "vllm": {"ModelRegistry": SimpleNamespace(register_model=registry.__setitem__)},
        "vllm.transformers_utils": {},
        "vllm.transformers_utils.config": {"_CONFIG_REGISTRY": configurations},
        "vllm.model_executor": {},
        "vllm.model_executor.layers": {},
        "vllm.model_executor.layers.rotary_embedding": {"RotaryEmbedding": Rotary},
        "vllm.model_executor.models": {},
        "vllm.model_executor.models.llama": {"LlamaForCausalLM": Llama},
    }
    for name, held in modules.items():
        module = ModuleType(name)
        vars(module).update(held)
        monkeypatch.setitem(sys.modules, name, module)
    yield SimpleNamespace(models=registry, configurations=configurations)
    plugin._with_rotations.cache_clear()
    for model_type in plugin.SERVED:  # what is registered with AutoConfig stays in a process of vLLM's
        transformers.CONFIG_MAPPING._extra_content.pop(f"posenc_{model_type}", None)


def saved(encoding, path, layers=range(4)):
    """A folder of a tiny Llama, of the layout of that encoding, and its entry of config.json."""
    layout = encoding.configuration.get("layout")
    model = model_of(**({"rope_layout": layout} if layout else {}))
    pt.attach(model, encoding, layers=layers)
    model.save_pretrained(path)
    return model, json.loads((path / "config.json").read_text())


def served(stand_in, folder, config):
    """The model as vLLM makes it: its class by the folder's architecture, its configuration by the folder's type."""
    plugin.register()
    (architecture,) = config["architectures"]
    module, _, name = stand_in.models[architecture].partition(":")
    assert sys.modules[module] is plugin
    read = stand_in.configurations[config["model_type"]].from_pretrained(folder)
    told = SimpleNamespace(model_config=SimpleNamespace(hf_config=read, max_model_len=TOKENS))
    return getattr(plugin, name)(vllm_config=told)


def test_an_entry_point_names_the_function():
    (found,) = (one for one in entry_points(group="vllm.general_plugins") if one.name == "posenc")
    assert found.load() is plugin.register


def test_it_may_be_called_again_and_names_every_type(stand_in):
    plugin.register()
    first = dict(stand_in.models)
    plugin.register()
    assert first == stand_in.models
    assert set(stand_in.configurations) == {f"posenc_{model_type}" for model_type in plugin.SERVED}
    for model_type, (_, name) in plugin.SERVED.items():
        assert transformers.AutoModelForCausalLM._model_mapping[transformers.CONFIG_MAPPING[model_type]].__name__ == name


ROTATIONS = {
    "yarn": {"d_head": WIDTH, "factor": 4.0, "trained_length": 16, "layout": "half"},
    "rope": {"d_head": WIDTH, "base": 500.0, "rotary_dim": 8, "layout": "interleaved"},
    "adjusted_base": {"d_head": WIDTH, "base": 1e6, "layout": "half"},
}


def test_layers_with_the_same_encoding_share_one_table(stand_in, tmp_path):
    """Two layers of YaRN and two of RoPE hold two tables of TOKENS rows, as the plain model holds one."""
    model = model_of(rope_layout="half")
    for layers, name in (((0, 2), "yarn"), ((1, 3), "adjusted_base")):
        pt.attach(model, posenc.create(name, **ROTATIONS[name]), layers=layers)
    model.save_pretrained(tmp_path)
    layers = served(stand_in, tmp_path, json.loads((tmp_path / "config.json").read_text())).model.layers
    turned = [layer.self_attn.rotary_emb for layer in layers]
    assert turned[0] is turned[2]
    assert turned[1] is turned[3]
    assert turned[0] is not turned[1]
    assert not torch.equal(turned[0].cos_sin_cache, turned[1].cos_sin_cache)


@pytest.mark.parametrize("name", ROTATIONS)
def test_queries_and_keys_turn_as_the_attached_encoding_turns_them(name, stand_in, tmp_path):
    encoding = posenc.create(name, **ROTATIONS[name])
    _, config = saved(encoding, tmp_path, layers=[0, 2, 3])
    model = served(stand_in, tmp_path, config)
    positions = torch.tensor([3, 4, 5, 0, 1, 39])
    q, k = torch.randn(6, 4 * WIDTH), torch.randn(6, 2 * WIDTH)
    at = posenc.Positions.at(positions[None])
    wanted = [
        encoding.rotate(x.view(1, 6, -1, WIDTH).transpose(1, 2), at, side).transpose(1, 2).reshape(6, -1)
        for x, side in ((q, "query"), (k, "key"))
    ]
    own = Attention().rotary_emb(positions, q, k)
    for n, layer in enumerate(model.model.layers):
        for got, expected in zip(layer.self_attn.rotary_emb(positions, q, k), own if n == 1 else wanted, strict=True):
            torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-5)


def test_a_layer_without_positions_turns_nothing(stand_in, tmp_path):
    _, config = saved(posenc.create("nope"), tmp_path, layers=[3])
    layers = served(stand_in, tmp_path, config).model.layers
    q, k = torch.randn(2, 32), torch.randn(2, 16)
    got = layers[3].self_attn.rotary_emb(torch.tensor([1, 2]), q, k)
    assert got[0] is q
    assert got[1] is k
    assert isinstance(layers[2].self_attn.rotary_emb, Rotary)


REFUSED = {
    "alibi": (made("alibi"), "not a rotation of queries and keys"),
    "a stack": (posenc.Stack(made("rope"), made("t5")), "not a rotation of queries and keys"),
    "xpos": (made("xpos"), "not a rotation of queries and keys"),
    "dynamic": (
        posenc.create("dynamic", d_head=WIDTH, trained_length=16, layout="half"),
        "frequencies follow the length of the request",
    ),
    "trailing": (posenc.create("rope", d_head=WIDTH, rotary_dim=8, trailing=True), "its last channels turn"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_vllm_has_no_place_for_is_refused(what, stand_in, tmp_path):
    encoding, said = REFUSED[what]
    assert said in plugin.why_not(encoding)
    if what == "alibi":
        _, config = saved(encoding, tmp_path)
        with pytest.raises(ValueError, match=r"posenc.encodings\[0\]: vLLM cannot serve ALiBi: it is not a rotation"):
            served(stand_in, tmp_path, config)


def test_a_layer_that_has_no_rotation_there_is_refused(stand_in, tmp_path, monkeypatch):
    _, config = saved(posenc.create("nope"), tmp_path, layers=[2])
    built = Layer.__init__
    count = iter(range(4))

    def without(self):
        built(self)
        if next(count) == 2:
            del self.self_attn.rotary_emb

    monkeypatch.setattr(Layer, "__init__", without)
    with pytest.raises(ValueError, match=r"posenc\.layers: layer 2 of PosencLlamaForCausalLM has no rotation in vLLM"):
        served(stand_in, tmp_path, config)


def test_the_configuration_refuses_it_before_a_model_is_made(stand_in, tmp_path):
    _, config = saved(posenc.create("alibi", n_heads=4), tmp_path)
    plugin.register()
    read_by = stand_in.configurations[config["model_type"]]
    with pytest.raises(ValueError, match=r"vLLM cannot serve ALiBi: it is not a rotation"):
        read_by.from_pretrained(tmp_path)


def test_an_entry_of_an_encoder_is_refused(stand_in, tmp_path):
    _, config = saved(posenc.create("nope"), tmp_path)
    config["posenc"]["layers"] = {"encoder.0": 0}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match=r"posenc\.layers: llama has no parts, got those of encoder"):
        served(stand_in, tmp_path, config)


def test_layers_of_another_process_are_left_to_it(stand_in, tmp_path, monkeypatch):
    """model_executor/models/utils.py: a process of a pipeline has PPMissingLayer, an Identity, for the others."""
    _, config = saved(posenc.create("nope"), tmp_path)
    built = Llama.__init__

    def half(self, **options):
        built(self, **options)
        self.model.layers[0], self.model.layers[1] = nn.Identity(), nn.Identity()

    monkeypatch.setattr(Llama, "__init__", half)
    layers = served(stand_in, tmp_path, config).model.layers
    assert [type(layer).__name__ for layer in layers] == ["Identity", "Identity", "Layer", "Layer"]
    assert all(isinstance(layer.self_attn.rotary_emb, plugin.Unturned) for layer in layers[2:])


def test_without_the_plugin_no_server_finds_the_architecture(tmp_path):
    """The folder said LlamaForCausalLM once, and vLLM with --trust-remote-code served it with RoPE in silence."""
    model, config = saved(made("alibi"), tmp_path)
    assert config["architectures"] == ["PosencLlamaForCausalLM"]
    assert not hasattr(transformers, config["architectures"][0])
    assert pt.from_pretrained(tmp_path).config.architectures == ["LlamaForCausalLM"]
    assert model.config.architectures == ["LlamaForCausalLM"]


ENTRY = {
    "format": 1,
    "model_type": "llama",
    "encodings": [{"class": "posenc.encodings.nope.NoPE", "arguments": {}}],
    "layers": {"0": 0},
}


def configuration(stand_in, model_type, folder):
    """The configuration of a folder of that family, as get_config of transformers_utils/config.py reads it."""
    plugin.register()
    named = f"posenc_{model_type}"
    said = transformers.CONFIG_MAPPING[model_type]().to_dict() | {"model_type": named, "posenc": ENTRY}
    (folder / "config.json").write_text(json.dumps(said))
    read_by = stand_in.configurations[named]
    read_by.model_type = named  # _register_config_class, which vLLM calls before it reads the file
    transformers.AutoConfig.register(named, read_by, exist_ok=True)
    config = transformers.AutoConfig.from_pretrained(folder)
    assert type(config) is read_by
    assert config.posenc == ENTRY
    return config


@pytest.mark.parametrize("model_type", plugin.SERVED)
def test_every_comparison_of_vllm_s_sees_the_family(model_type, stand_in, tmp_path):
    """vLLM refuses float16 for Gemma 2 and GLM-4: it must know a folder of theirs that has another encoding."""
    read = configuration(stand_in, model_type, tmp_path)
    in_process = pickle.loads(pickle.dumps(read))  # vLLM's processes may be spawned
    compared = json.loads(vllm_model_types.TABLE.read_text())["compared"]
    for config in (read, copy.deepcopy(read), in_process, read.get_text_config()):
        assert config.posenc == ENTRY
        for place in compared:
            for name in place["names"]:
                seen = vllm_model_types.fits(config.model_type, place["how"], name)
                assert seen == vllm_model_types.fits(model_type, place["how"], name), place


def test_the_table_has_a_comparison_that_the_folder_s_own_type_would_miss():
    compared = json.loads(vllm_model_types.TABLE.read_text())["compared"]
    (float16,) = (one for one in compared if one["said"] == "model_type in _FLOAT16_NOT_SUPPORTED_MODELS")
    assert float16["names"] == ["gemma2", "glm4"]


# The release itself.


@pytest.fixture(scope="module")
def release(tmp_path_factory) -> Path:
    version = servers()["vLLM"]["version"]
    assert version in (plugin.__doc__ or "")
    return receivers.unpacked(tmp_path_factory.mktemp("vllm"), f"vllm=={version}") / "vllm"


def attention(path: Path) -> ast.FunctionDef:
    """forward of the class that turns queries and keys, in a model file of vLLM's."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef) and node.name == "forward" and "self.rotary_emb(" in ast.unparse(node):
            return node
    raise AssertionError(path)


@pytest.mark.acceptance
def test_the_table_has_every_comparison_of_the_release(release):
    """A new one must be read: written against a configuration, it sees the family; against the file, it does not."""
    kept = json.loads(vllm_model_types.TABLE.read_text())
    found = vllm_model_types.places(release, set(plugin.SERVED))
    for kind, places in found.items():
        assert [one for one in places if one not in kept[kind]] == [], f"not in {vllm_model_types.TABLE.name}: {kind}"
        assert [one for one in kept[kind] if one not in places] == [], f"no longer in vLLM: {kind}"


@pytest.mark.acceptance
@pytest.mark.parametrize("model_type", ["gemma2", "glm4", "llama"])
def test_the_release_refuses_float16_as_it_does_for_the_family(model_type, release, stand_in, tmp_path):
    scope = {"torch": torch}
    for node in ast.parse((release / "config/model.py").read_text()).body:
        name = getattr(node, "name", "") or "".join(vllm_model_types.targets(node))
        if name in ("_FLOAT16_NOT_SUPPORTED_MODELS", "_check_valid_dtype"):
            exec(compile(ast.Module([node], []), "model.py", "exec"), scope)
    config = configuration(stand_in, model_type, tmp_path)
    assert scope["_check_valid_dtype"](config.model_type, torch.bfloat16)
    if model_type == "llama":
        assert scope["_check_valid_dtype"](config.model_type, torch.float16)
    else:
        with pytest.raises(ValueError, match=f"'{model_type}' does not support float16"):
            scope["_check_valid_dtype"](config.model_type, torch.float16)


@pytest.mark.acceptance
@pytest.mark.parametrize("model_type", plugin.SERVED)
def test_every_layer_of_the_release_s_file_turns_by_rotary_emb(model_type, release):
    module, name = plugin.SERVED[model_type]
    path = release / "model_executor/models" / f"{module}.py"
    said = [ast.unparse(statement) for statement in attention(path).body]  # of the function itself: under no condition
    assert "q, k = self.rotary_emb(positions, q, k)" in said
    text = path.read_text()
    assert f"class {name}(" in text
    assert f'"{name}": ("{module}", "{name}")' in (path.parent / "registry.py").read_text()


@pytest.mark.acceptance
@pytest.mark.parametrize("name", ROTATIONS)
def test_the_release_s_own_classes_give_the_attached_model_s_attention(name, release, tmp_path):
    """LlamaAttention.forward and RotaryEmbedding of the release, with the attached model's weights, give its output."""
    encoding = posenc.create(name, **ROTATIONS[name])
    model, _ = saved(encoding, tmp_path)
    layer, seen = model.model.layers[1].self_attn, {}
    layer.register_forward_hook(lambda *told: seen.update(x=told[2]["hidden_states"], out=told[3][0]), with_kwargs=True)
    ids = torch.randint(0, model.config.vocab_size, (1, TOKENS), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        model(input_ids=ids, use_cache=False)
        with receivers.package(release.parent, "vllm", "vllm.model_executor.layers.rotary_embedding") as rotary:
            turned = plugin.rotation(encoding, SimpleNamespace(dtype=torch.float32), TOKENS)
            assert isinstance(turned, rotary.RotaryEmbedding)
            out = forward_of(release)(in_vllm(layer, turned), torch.arange(TOKENS), seen["x"][0])
    torch.testing.assert_close(out, seen["out"][0], rtol=2e-5, atol=2e-5)


def forward_of(release):
    node = attention(release / "model_executor/models/llama.py")
    node.returns = None
    for argument in node.args.args:
        argument.annotation = None
    scope = {}
    exec(compile(ast.Module([node], []), "llama.py", "exec"), scope)
    return scope["forward"]


def in_vllm(layer, turned):
    """A layer of transformers by the names of vLLM's, which joins the projections and has a row for each token."""

    def heads(x):
        return x.view(1, len(x), -1, WIDTH).transpose(1, 2)

    def attend(q, k, v):
        x = nn.functional.scaled_dot_product_attention(*map(heads, (q, k, v)), is_causal=True, enable_gqa=True)
        return x.transpose(1, 2).reshape(len(q), -1)

    projections = layer.q_proj, layer.k_proj, layer.v_proj
    return SimpleNamespace(
        qkv_proj=lambda x: (torch.cat([one(x) for one in projections], -1), None),
        q_size=layer.q_proj.out_features,
        kv_size=layer.k_proj.out_features,
        rotary_emb=turned.forward_native,  # what vLLM calls on a processor
        attn=attend,
        o_proj=lambda x: (layer.o_proj(x), None),
    )
