"""A folder with an encoding attached: what is saved, what is refused, and every damage of the entry is one ValueError."""

import copy
import json
import os
import subprocess
import sys
import warnings

import pytest
import torch
import transformers

import in_process
import posenc
import posenc.transformers as pt
from families.harness import config_of
from posenc.configs import ConfigError, read_config, spec_of
from posenc.configs.convert.checkpoint import convert
from posenc.encodings.alibi import ALiBi
from posenc.frequencies import DynamicNTK, rotary
from sampling import first_only
from transformers_models.test_attach import IDS, logits, made, model_of


class Mine(ALiBi):
    """An encoding of a user's, at the top of a module."""


class Holder:
    class Inner(ALiBi):
        """One within a class."""


class Lost(posenc.DistanceBias):
    """One whose constructor keeps an argument from the configuration."""

    def __init__(self, scale=1.0):
        super().__init__()
        self.scale = scale

    def at_distance(self, delta):
        return (-self.scale * delta.abs().double()).expand(4, -1)


class OfAScript(ALiBi):
    """One that Python says is defined in a script."""

    __module__ = "__main__"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A saved model: RoPE with T5 in two layers, ALiBi in two."""
    model, path = model_of(), tmp_path_factory.mktemp("saved")
    pt.attach(model, posenc.Stack(posenc.create("rope", d_head=16, layout="half"), made("t5")), layers=[0, 1])
    pt.attach(model, posenc.create("yarn", d_head=16, factor=4.0, trained_length=16), layers=[2, 3])
    model.save_pretrained(path)
    return path, logits(model)


@pytest.fixture
def entry(folder, tmp_path):
    """The text of config.json of a copy, and a function that writes another and loads the folder."""
    path = tmp_path / "copy"
    path.mkdir()
    for file in folder[0].iterdir():
        (path / file.name).symlink_to(file)
    held = json.loads((path / "config.json").read_text())

    def load(text, **options):
        (path / "config.json").unlink()
        (path / "config.json").write_text(text)
        return pt.from_pretrained(path, **options)

    return held, load


def changed(*place_and_value):
    """A function that sets, within an entry, the value at a place."""
    *place, last, value = place_and_value

    def change(held):
        for step in place:
            held = held[step]
        held[last] = value

    return change


def without(*place):
    *place, last = place

    def change(held):
        for step in place:
            held = held[step]
        del held[last]

    return change


def nested(depth, within=1):
    for _ in range(depth):
        within = [within]
    return within


def stacks(depth):
    made = {"class": "posenc.encodings.nope.NoPE", "arguments": {}}
    for _ in range(depth):
        made = {"stack": [made]}
    return made


ARGUMENTS = ("encodings", 1, "arguments")
FREQUENCIES = (*ARGUMENTS, "frequencies", "frequencies")
CLASS = ("encodings", 1, "class")
DAMAGED = {  # what is wrong: the change, and the place that the message names
    "format: another": (changed("format", 2), "posenc.format: expected 1"),
    "format: true": (changed("format", True), "posenc.format: expected 1"),
    "format: a word": (changed("format", "1"), "posenc.format: expected 1"),
    "model_type: none": (without("model_type"), "posenc: the key 'model_type' is missing"),
    "model_type: a number": (changed("model_type", 5), "posenc.model_type: expected a model type of transformers"),
    "model_type: unknown": (changed("model_type", "lama"), "posenc.model_type: expected a model type .*'lama'"),
    "format: none": (without("format"), "posenc: the key 'format' is missing"),
    "no encodings": (without("encodings"), "posenc: the key 'encodings' is missing"),
    "no layers": (without("layers"), "posenc: the key 'layers' is missing"),
    "an unknown key": (changed("layer", {}), "posenc: the key 'layer' is not known"),
    "encodings: an object": (changed("encodings", {}), "posenc.encodings: expected a list"),
    "encodings: empty": (changed("encodings", []), "posenc.encodings: expected a list that is not empty"),
    "encodings: null": (changed("encodings", None), "posenc.encodings: expected a list"),
    "an encoding: a number": (changed("encodings", 1, 5), r"posenc.encodings\[1\]: expected an object"),
    "an encoding: a list": (changed("encodings", 1, []), r"posenc.encodings\[1\]: expected an object"),
    "an encoding: no class": (without(*CLASS), r"posenc.encodings\[1\]: the key 'class' is missing"),
    "an encoding: no arguments": (without(*ARGUMENTS), r"posenc.encodings\[1\]: the key 'arguments' is missing"),
    "an encoding: an unknown key": (
        changed("encodings", 1, "name", "x"),
        r"posenc.encodings\[1\]: the key 'name' is not known",
    ),
    "an encoding: class and stack": (
        changed("encodings", 0, "class", "x"),
        r"posenc.encodings\[0\]: the key 'class' is not known",
    ),
    "a stack: a word": (changed("encodings", 0, "stack", "rope"), r"posenc.encodings\[0\].stack: expected a list"),
    "a stack: empty": (changed("encodings", 0, "stack", []), r"posenc.encodings\[0\].stack: expected a list"),
    "a stack: a part is null": (
        changed("encodings", 0, "stack", 1, None),
        r"posenc.encodings\[0\].stack\[1\]: expected an object",
    ),
    "a stack: of what cannot be joined": (
        changed("encodings", 0, "stack", 1, "class", "posenc.combined.PerLayer"),
        r"posenc.encodings\[0\].stack\[1\].class: expected a class of posenc.encodings",
    ),
    "stacks: 10 deep": (changed("encodings", 1, stacks(10)), r"posenc.encodings\[1\].stack\[0\].* nested too deeply"),
    "a class: a number": (changed(*CLASS, 7), r"posenc.encodings\[1\].class: expected the path of a class"),
    "a class: empty": (changed(*CLASS, ""), r"posenc.encodings\[1\].class: expected a class of"),
    "a class: unknown": (
        changed(*CLASS, "posenc.encodings.rope.Rope"),
        r"posenc.encodings\[1\].class: .* cannot be imported",
    ),
    "a class: no module": (changed(*CLASS, "posenc.encodings.x.X"), r"posenc.encodings\[1\].class: .* cannot be imported"),
    "a class: dots only": (changed(*CLASS, "posenc.encodings..."), r"posenc.encodings\[1\].class: .* cannot be imported"),
    "a class: no encoding": (
        changed(*CLASS, "posenc.encodings.rope.Frequencies"),
        r"posenc.encodings\[1\].class: .*(cannot be imported|expected the path of an encoding's class)",
    ),
    "a class: a function": (
        changed(*CLASS, "posenc.encodings.rove.rove"),
        r"posenc.encodings\[1\].class: .*(cannot be imported|expected the path of an encoding's class)",
    ),
    "a class: the command line": (
        changed(*CLASS, "posenc.__main__.main"),
        r"posenc.encodings\[1\].class: expected a class of",
    ),
    "a class: of the standard library": (changed(*CLASS, "os.system"), r"posenc.encodings\[1\].class: expected a class of"),
    "a class: of another module": (
        changed(*CLASS, "this:X"),
        r"posenc.encodings\[1\].class: 'this:X' is not posenc's.*trust_code",
    ),
    "a class: of the script": (changed(*CLASS, "__main__:X"), r"posenc.encodings\[1\].class: expected a class of"),
    "arguments: a list": (changed(*ARGUMENTS, [16]), r"posenc.encodings\[1\].arguments: expected an object"),
    "arguments: null": (changed(*ARGUMENTS, None), r"posenc.encodings\[1\].arguments: expected an object"),
    "arguments: none": (changed(*ARGUMENTS, {}), r"posenc.encodings\[1\].arguments: RoPE refuses them"),
    "arguments: unknown": (changed(*ARGUMENTS, "d_heads", 16), r"posenc.encodings\[1\].arguments: RoPE refuses them"),
    "arguments: no name": (changed(*ARGUMENTS, "self", 16), r"posenc.encodings\[1\].arguments: RoPE refuses them"),
    "a width: a word": (changed(*ARGUMENTS, "d_head", "16"), r"posenc.encodings\[1\].arguments: RoPE refuses them"),
    "a width: negative": (changed(*ARGUMENTS, "d_head", -16), r"posenc.encodings\[1\].arguments: RoPE refuses them"),
    "a width: another": (changed(*ARGUMENTS, "d_head", 32), r"posenc does not fit the model: .*d_head=32, layer 2"),
    "a width: 10^12": (
        changed(*ARGUMENTS, "d_head", 10**12),
        r"posenc.encodings\[1\].arguments.d_head: expected a number up to",
    ),
    "a width: 200 digits": (changed(*ARGUMENTS, "d_head", 10**199), r"posenc.encodings\[1\].arguments.d_head: .* 662 bits"),
    "a layout: nested": (
        changed(*ARGUMENTS, "layout", nested(20)),
        r"posenc.encodings\[1\].arguments.layout\[0\].* too deeply",
    ),
    "a layout: an object": (
        changed(*ARGUMENTS, "layout", {"a": 1}),
        r"posenc.encodings\[1\].arguments.layout: expected a value",
    ),
    "a layout: a set of objects": (
        changed(*ARGUMENTS, "layout", {"frozenset": [{}]}),
        r"posenc.encodings\[1\].arguments.layout.frozenset: expected numbers or words",
    ),
    "a layout: no set": (
        changed(*ARGUMENTS, "layout", {"frozenset": 3}),
        r"posenc.encodings\[1\].arguments.layout.frozenset: expected a list",
    ),
    "frequencies: a list": (changed(*FREQUENCIES, [1.0]), r"arguments.frequencies.frequencies: expected an object"),
    "frequencies: no values": (
        without(*FREQUENCIES, "values"),
        r"arguments.frequencies.frequencies: the key 'values' is missing",
    ),
    "frequencies: words": (changed(*FREQUENCIES, "values", ["x"]), r"arguments.frequencies.frequencies: "),
    "frequencies: a number": (changed(*FREQUENCIES, "values", 3), r"arguments.frequencies.frequencies: "),
    "frequencies: infinite": (
        changed(*FREQUENCIES, "values", [{"__float__": "Infinity"}]),
        "arguments.frequencies.frequencies: .*finite",
    ),
    "layers: a list": (changed("layers", [0, 0, 1, 1]), "posenc.layers: expected an object"),
    "layers: empty": (changed("layers", {}), "posenc.layers: expected an object"),
    "layers: no encoding": (
        changed("layers", "0", 5),
        "posenc.layers.0: expected the number of an encoding, from 0 to 1, got 5",
    ),
    "layers: negative": (changed("layers", "0", -1), "posenc.layers.0: expected the number of an encoding"),
    "layers: true": (changed("layers", "0", True), "posenc.layers.0: expected the number of an encoding"),
    "layers: an encoding itself": (
        changed("layers", "0", {"class": "x"}),
        "posenc.layers.0: expected the number of an encoding",
    ),
    "layers: a word": (changed("layers", "first", 0), "posenc.layers: expected keys such as '0'.* got 'first'"),
    "layers: written twice": (changed("layers", "00", 0), "posenc.layers: expected keys such as '0'.* got '00'"),
    "layers: 5000 digits": (changed("layers", "9" * 5000, 0), "posenc.layers: expected keys such as '0'"),
    "layers: beyond the model": (changed("layers", "9", 0), r"posenc does not fit the model: layers: .*9"),
    "layers: an encoding in none": (changed("layers", {"0": 0}), "posenc.layers: no layer has encoding 1"),
}


@pytest.mark.parametrize("what", DAMAGED)
def test_a_damaged_entry_is_one_error_that_names_the_place(what, entry):
    held, load = entry
    change, said = DAMAGED[what]
    change(held["posenc"])
    with pytest.raises(ValueError, match=rf"^folder: .*config.json: .*{said}"):
        load(json.dumps(held))
    assert "this" not in sys.modules


OTHER_TEXTS = {
    "the entry is a list": (lambda text, _: text("[]"), "posenc: expected an object with the keys"),
    "the entry is null": (lambda text, _: text("null"), "posenc: expected an object with the keys"),
    "20 000 brackets": (lambda text, _: text("[" * 20_000 + "]" * 20_000), "entry posenc .* nested too deeply"),
    "a key twice": (
        lambda text, own: text(own.replace('"format": 1', '"format": 1, "format": 1')),
        "'format' occurs twice",
    ),
    "the entry twice": (lambda text, own: text(f'{own}, "posenc": {own}'), "entry posenc .* 'posenc' occurs twice"),
    "NaN": (lambda text, own: text(own.replace('"d_head": 16', '"d_head": NaN')), "entry posenc .* holds NaN"),
    "5000 digits": (lambda text, own: text(own.replace('"format": 1', '"format": ' + "1" * 5000)), "entry posenc .*"),
    "400 digits": (
        lambda text, own: text(own.replace('"d_head": 16', '"d_head": 1' + "0" * 400)),
        "entry posenc .* a number of 401 digits",
    ),
    "300 levels": (lambda text, _: text("[" * 300 + "]" * 300), "entry posenc .* nested deeper than 32 levels"),
    "cut off": (lambda text, own: text(own[:-20]), "entry posenc .*"),
}


@pytest.mark.parametrize("what", OTHER_TEXTS)
def test_a_damaged_text_is_one_error(what, entry):
    held, load = entry
    own = json.dumps(held.pop("posenc"))
    write, said = OTHER_TEXTS[what]
    whole = write(lambda value: f'{{"posenc": {value}, {json.dumps(held)[1:]}', own)
    with pytest.raises(ValueError, match=rf"^folder: .*config.json.*{said}"):
        load(whole)


def test_the_undamaged_entry_is_read(folder, entry):
    held, load = entry
    assert torch.equal(logits(load(json.dumps(held)).eval()), folder[1])


def test_a_parameter_of_another_shape_is_refused(entry):
    held, load = entry
    held["posenc"]["encodings"][0]["stack"][1]["arguments"]["n_buckets"] += 2
    with pytest.raises(ValueError, match=r"has posenc_encodings.0.parts.1.table of another shape"):
        load(json.dumps(held))


# Encodings that are not posenc's.


def attached(encoding):
    model = model_of()
    pt.attach(model, encoding)
    return model


@pytest.mark.parametrize("kind", [Mine, Holder.Inner])
def test_an_encoding_of_a_user_is_imported_only_where_its_code_is_trusted(kind, tmp_path):
    model = attached(kind(4))
    model.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=rf"posenc.encodings\[0\].class: '{__name__}:{kind.__qualname__}' is not posenc's"):
        pt.from_pretrained(tmp_path)
    loaded = pt.from_pretrained(tmp_path, trust_code=True).eval()
    assert type(loaded.posenc_encodings[0]) is kind
    assert torch.equal(logits(loaded), logits(model))


def local():
    class Local(ALiBi):
        pass

    return Local(4)


UNSAVED = {
    "in a function": (local, r"encoding: the class .*local.<locals>.Local could not be found again"),
    "in a script": (lambda: OfAScript(4), r"encoding: the class __main__.OfAScript could not be found again"),
    "in a stack": (lambda: posenc.Stack(made("rope"), local()), r"could not be found again"),
    "an argument that is not passed on": (
        lambda: Lost(0.05),
        r"encoding: Lost's configuration lacks its argument scale.*super\(\).__init__\(scale=scale\)",
    ),
    "an argument": (
        lambda: posenc.create("rope", d_head=16, frequencies=DynamicNTK(rotary(16, base=1e4), 4.0, 16), layout="half"),
        r"encoding: RoPE's frequencies is a DynamicNTK, which a config.json cannot hold",
    ),
}


@pytest.mark.parametrize("what", UNSAVED)
def test_what_could_not_be_found_again_is_attached_but_not_saved(what, tmp_path):
    build, said = UNSAVED[what]
    model = attached(build())
    assert not hasattr(model.config, "posenc")
    with pytest.raises(TypeError, match=said):
        model.save_pretrained(tmp_path / "here")
    assert not (tmp_path / "here").exists()
    pt.detach(model)
    model.save_pretrained(tmp_path / "here")


def test_code_that_fails_on_import_is_one_error(entry, tmp_path, monkeypatch):
    (tmp_path / "fails_on_import.py").write_text("raise KeyError('x')")
    monkeypatch.syspath_prepend(tmp_path)
    held, load = entry
    held["posenc"]["encodings"][1]["class"] = "fails_on_import:X"
    with pytest.raises(
        ValueError, match=r"posenc.encodings\[1\].class: 'fails_on_import:X' cannot be imported: KeyError: 'x'"
    ):
        load(json.dumps(held), trust_code=True)


# What AutoModel reads.

LOADS = """
import sys, torch, transformers
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "posenc":
            raise ModuleNotFoundError(f"No module named {name!r}")
if sys.argv[2] == "hidden":
    sys.meta_path.insert(0, Hidden())
trusted = {"trust_remote_code": True} if sys.argv[2] != "plain" else {}
model = transformers.AutoModelForCausalLM.from_pretrained(sys.argv[1], **trusted).eval()
torch.save(model(torch.arange(3, 13)[None], use_cache=False).logits, sys.argv[3])
"""


def fresh_process(folder, how, out):
    command = [sys.executable, "-W", "ignore", "-c", LOADS, str(folder), how, str(out)]
    here = {**os.environ, "HF_MODULES_CACHE": str(out.parent / "modules"), "HF_HUB_OFFLINE": "1"}
    return subprocess.run(command, env=here, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)


def test_auto_model_loads_it_in_a_fresh_process(folder, tmp_path):
    done = fresh_process(folder[0], "trusted", tmp_path / "logits.pt")
    assert done.returncode == 0, done.stderr
    model = pt.from_pretrained(folder[0]).eval()
    assert torch.equal(torch.load(tmp_path / "logits.pt"), logits(model, torch.arange(3, 13)[None]))


@pytest.mark.parametrize(
    ("how", "said"),
    first_only(
        [("hidden", "packages that were not found in your environment: posenc"), ("plain", "trust_remote_code=True")]
    ),
)
def test_without_trust_or_without_posenc_it_raises(folder, tmp_path, how, said):
    done = fresh_process(folder[0], how, tmp_path / "logits.pt")
    assert done.returncode == 1
    assert said in done.stderr
    assert not (tmp_path / "logits.pt").exists()


def test_the_body_alone_has_the_encoding_too(folder, modules):
    whole = pt.from_pretrained(folder[0]).eval()
    body = transformers.AutoModel.from_pretrained(folder[0], trust_remote_code=True).eval()
    assert type(body) is transformers.LlamaModel
    with torch.no_grad():
        assert torch.equal(body(IDS).last_hidden_state, whole.model(IDS).last_hidden_state)


def test_what_is_loaded_is_transformers_own_and_can_be_saved_again(folder, modules, tmp_path):
    model = transformers.AutoModelForCausalLM.from_pretrained(folder[0], trust_remote_code=True).eval()
    assert type(model) is transformers.LlamaForCausalLM
    assert type(model.config) is transformers.LlamaConfig
    assert model.config.model_type == "llama"
    plain = transformers.AutoModelForCausalLM.from_config(config_of("llama"))
    assert not hasattr(plain, "posenc_encodings"), "loading must not change what other models get"
    model.save_pretrained(tmp_path / "again")
    assert torch.equal(logits(pt.from_pretrained(tmp_path / "again").eval()), folder[1])
    for name in ("config.json", "modeling_posenc.py", "README.md"):
        assert (tmp_path / "again" / name).read_text() == (folder[0] / name).read_text()


def test_a_new_model_of_its_configuration_is_refused(folder, modules):
    config = transformers.AutoConfig.from_pretrained(folder[0], trust_remote_code=True)
    with pytest.raises(ValueError, match="from_config: makes a new LlamaForCausalLM without what is attached"):
        transformers.AutoModelForCausalLM.from_config(config, trust_remote_code=True)


def test_options_of_auto_model_are_kept(folder, modules):
    model = transformers.AutoModelForCausalLM.from_pretrained(folder[0], trust_remote_code=True, dtype=torch.bfloat16)
    assert model.dtype is torch.bfloat16


def test_saving_warns_of_nothing_and_a_copy_saves_itself(tmp_path):
    model = attached(made("t5"))
    other = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.zero_()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for one in (model, other):
            one.save_pretrained(tmp_path / "kept")
    assert not pt.from_pretrained(tmp_path / "kept").get_input_embeddings().weight.any()
    pt.detach(model)
    assert "save_pretrained" not in vars(model)
    model.save_pretrained(tmp_path / "plain")
    assert json.loads((tmp_path / "plain" / "config.json").read_text())["model_type"] == "llama"
    assert sorted(path.name for path in (tmp_path / "plain").iterdir()) == [
        "config.json",
        "generation_config.json",
        "model.safetensors",
    ]


def test_the_model_card_says_what_is_attached_and_keeps_what_others_wrote(tmp_path):
    (tmp_path / "README.md").write_text("# Mine\n\nTrained on nothing.\n")
    for name, row in (("alibi", "| 0–3 | ALiBi |"), ("t5", "| 0–3 | T5 |")):
        attached(made(name)).save_pretrained(tmp_path)
        card = (tmp_path / "README.md").read_text()
        assert card.startswith("# Mine\n\nTrained on nothing.\n\n<!-- posenc -->\n")
        assert card.count("| layers | encoding |") == 1
        assert row in card


class OfMine(transformers.LlamaForCausalLM):
    """A class that transformers does not have."""


def test_a_class_that_is_not_transformers_is_saved_so_that_nothing_loads_it(tmp_path):
    model = OfMine(config_of("llama"))
    pt.attach(model, made("alibi"))
    with pytest.warns(UserWarning, match="OfMine is no class of transformers, so that nothing loads this folder"):
        model.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="posenc_llama"):
        transformers.AutoModelForCausalLM.from_pretrained(tmp_path)


def test_a_folder_is_not_sent_before_it_is_whole(tmp_path):
    with pytest.raises(ValueError, match=r"push_to_hub: .*use model.push_to_hub"):
        attached(made("alibi")).save_pretrained(tmp_path / "here", push_to_hub=True)
    assert not (tmp_path / "here").exists()


def test_a_pickled_model_is_saved_as_its_class_does(tmp_path):
    model = attached(made("t5"))
    torch.save(model, tmp_path / "model.pt")
    loaded = torch.load(tmp_path / "model.pt", weights_only=False)
    assert torch.equal(logits(loaded), logits(model))
    loaded.save_pretrained(tmp_path)
    assert torch.equal(logits(pt.from_pretrained(tmp_path).eval()), logits(model))


def test_a_model_with_another_head_is_loaded_as_what_it_is(tmp_path):
    torch.manual_seed(0)
    model = transformers.LlamaForTokenClassification(config_of("llama")).eval()
    pt.attach(model, made("alibi"))
    model.save_pretrained(tmp_path / "kept")
    loaded = pt.from_pretrained(tmp_path / "kept").eval()
    assert type(loaded) is type(model)
    assert torch.equal(logits(loaded), logits(model))
    config = json.loads((tmp_path / "kept" / "config.json").read_text())
    for names in ([], ["LlamaForNobody"], ["AutoModel"], ["LlamaConfig"]):
        (tmp_path / "kept" / "config.json").write_text(json.dumps(config | {"architectures": names}))
        with pytest.raises(ValueError, match="architectures: expected the name of one model of transformers"):
            pt.from_pretrained(tmp_path / "kept")


# What posenc's own readers say of the folder.


def test_inspect_shows_what_is_attached(folder):
    spec = read_config(folder[0])
    model = pt.from_pretrained(folder[0])
    q = torch.randn(1, 4, 7, 16, generator=torch.Generator().manual_seed(1))
    at = posenc.Positions.arange(1, 7)
    for layer, number in {0: 0, 1: 0, 2: 1, 3: 1}.items():
        ours, attached = spec.encoding(layer), model.posenc_encodings[number]
        ours.load_state_dict(attached.state_dict())
        assert torch.equal(posenc.attend(q, q, q, ours, at), posenc.attend(q, q, q, attached, at))
    assert spec.family == "llama"
    assert [remark.text for remark in spec.remarks if remark.key == "posenc"] == [
        "4 of 4 layers have an encoding attached by posenc, in place of the model's own"
    ]


def test_layers_without_an_attached_encoding_keep_the_models_own(tmp_path):
    model = model_of()
    plain = read_config(model.config.to_dict())
    pt.attach(model, posenc.create("nope"), layers=[1])
    model.save_pretrained(tmp_path)
    spec = read_config(tmp_path)
    assert [type(spec.encoding(n)).__name__ for n in range(4)] == ["RoPE", "NoPE", "RoPE", "RoPE"]
    assert [layer for n, layer in enumerate(spec.layers) if n != 1] == [
        layer for n, layer in enumerate(plain.layers) if n != 1
    ]


def test_the_text_part_of_a_larger_model_is_meant():
    entry = {"format": 1, "layers": {"1": 0}, "encodings": [{"class": "posenc.encodings.nope.NoPE", "arguments": {}}]}
    config = config_of("gemma3").to_dict()
    config |= {"model_type": "posenc_gemma3", "posenc": entry | {"model_type": "gemma3"}}
    spec = spec_of(config)
    assert [type(spec["text_config"].encoding(n)).__name__ for n in range(2)] == ["RoPE", "NoPE"]


UNREADABLE = {
    "no entry": ({"model_type": "posenc_llama"}, "posenc: expected the entry"),
    "no type": ({"posenc": {}}, "posenc.model_type: expected the model's own type"),
    "too many layers": (
        {
            "posenc": {
                "model_type": "llama",
                "layers": {"9": 0},
                "encodings": [{"class": "posenc.encodings.nope.NoPE", "arguments": {}}],
            }
        },
        "posenc.layers: the model has 4 layers, got 9",
    ),
    "a user's": (
        {"posenc": {"model_type": "llama", "layers": {"0": 0}, "encodings": [{"class": "a.b:C", "arguments": {}}]}},
        "a configuration imports no code",
    ),
    "no layers": (
        {"posenc": {"model_type": "gemma3_text", "layers": {}, "encodings": []}},
        "posenc: is not as posenc writes it: .*expected a number for each layer",
    ),
    "damaged": (
        {"posenc": {"model_type": "llama", "layers": {"0": 3}, "encodings": []}},
        "posenc: is not as posenc writes it",
    ),
}


@pytest.mark.parametrize("what", UNREADABLE)
def test_an_entry_that_cannot_be_read_is_one_error(what):
    changes, said = UNREADABLE[what]
    with pytest.raises(ConfigError, match=said):
        spec_of(config_of("llama").to_dict() | changes)


def test_neither_convert_nor_extend_take_it_for_a_plain_model(folder, tmp_path):
    with pytest.raises(ValueError, match="posenc: an encoding is attached in this folder"):
        convert(folder[0], tmp_path / "out", "interleaved")
    done = in_process.posenc("inspect", folder[0], "--extend-to", "8192")
    assert done.returncode == 1
    assert "--extend-to: posenc has attached encodings in this folder" in " ".join(done.stderr.replace("│", " ").split())
    assert "--extend-to" not in in_process.posenc("inspect", folder[0]).stdout
