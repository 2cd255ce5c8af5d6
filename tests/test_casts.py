"""Parameters that multiply positions stay float32 in a model of bfloat16 or float16, whatever casts it."""

import copy
import io
import pickle

import pytest
import torch
from torch import nn

import posenc
from cases import cases
from posenc import Positions
from posenc.catalogue.lookup import BY_NAME
from posenc.checking import laws
from posenc.checking.errors import LawBroken
from posenc.encoding import PositionalEncoding
from posenc.encodings.of_families.linear_boxes import LinearBoxes
from posenc.encodings.of_families.projected_rope import ProjectedRoPE
from sampling import ENCODINGS, OWN_KEYS, OnTheDiagonal

EXACT = {
    "complex_order": ["frequency"],
    "random_fourier": ["matrix"],
    "coordinate_projection": ["weight"],
    "learnable_fourier": ["directions"],
    "floater": ["start", "inner.weight", "inner.bias", "outer.weight", "outer.bias"],
    "asymmetric_alibi": ["before", "after"],
    "kerple": ["scale", "shape"],
    "dape": ["over.scale", "over.shape"],
    "dape_v2": ["over.scale", "over.shape"],
    "bam": ["log_scale", "shape"],
    "dynamic_position_bias": ["inner"],
    "fire": ["c", "multiplier"],
    "gta": ["scale"],
    "ape": ["generators"],
    "rope_mixed": ["frequencies"],
    "wire": ["frequencies"],
    "liere": ["generators"],
    "com_rope": ["generators", "mixture"],
    "grape_m": ["log_frequencies"],
    "lerope": ["alpha"],
    "clex": ["up", "down"],
    "pape": ["directions"],
    "grape_a": ["rate"],
    "carope": ["weight", "offset"],
    "fox": ["offset"],
    "bidirectional_fox": ["offset"],
    "cable": ["offset"],
    "wall": ["offset"],
    "path_fox": ["parts.1.offset"],
}
"""Of each entry, the parameters that positions or distances multiply, or that every token of a running sum adds."""


def create(name: str) -> PositionalEncoding:
    return posenc.create(name, d_model=32, n_heads=4, d_head=8)


def moved(encoding: PositionalEncoding) -> PositionalEncoding:
    """Parameters that no narrow dtype holds."""
    with torch.no_grad():
        for parameter in encoding.parameters():
            parameter.copy_(parameter * 1.0123456 + 0.00123456)
    return encoding


CASTS = {
    "bfloat16": lambda e: e.bfloat16(),
    "half": lambda e: e.half(),
    "to": lambda e: e.to(torch.bfloat16),
    "to dtype": lambda e: e.to(dtype=torch.float16),
    "to tensor": lambda e: e.to(torch.zeros((), dtype=torch.bfloat16)),
    "type": lambda e: e.type(torch.bfloat16),
    "outer module": lambda e: nn.Sequential(nn.Linear(2, 2), e).half()[1],
    "twice": lambda e: e.half().bfloat16(),
    "copy": lambda e: copy.deepcopy(e.bfloat16()),
    "pickle": lambda e: pickle.loads(pickle.dumps(e.bfloat16())),
    "and back": lambda e: e.bfloat16().float(),
}


EVERY_CAST = ("grape_m", "floater", "dape", "path_fox", "com_rope")  # of its own, of a part's linear layer, of a part, …


@cases(
    "name, how",
    [(name, how) for name in EXACT for how in CASTS if name in EVERY_CAST or how in ("bfloat16", "outer module")],
)
def test_values_survive_casts(name, how):
    if name not in EVERY_CAST and how not in ("bfloat16", "outer module"):
        return
    encoding = moved(create(name))
    before = {one: parameter.detach().clone() for one, parameter in encoding.named_parameters()}
    cast = dict(CASTS[how](encoding).named_parameters())
    for one in EXACT[name]:
        assert cast[one].dtype == torch.float32
        assert torch.equal(cast[one], before[one])
    others = [parameter for one, parameter in cast.items() if one not in EXACT[name]]
    assert how == "and back" or all(parameter.dtype != torch.float32 for parameter in others)


@pytest.mark.parametrize("make", [lambda: ProjectedRoPE(8), lambda: LinearBoxes(8)])
def test_those_of_model_families(make):
    encoding = moved(make())
    name = encoding.exact_parameters[0]
    before = encoding.get_parameter(name).detach().clone()
    assert torch.equal(encoding.bfloat16().get_parameter(name), before)


@cases("name", [one for one in ENCODINGS if "parameters" in BY_NAME[one].needs])
def test_the_list_is_whole(name):
    """After a cast the parameters of the list are float32 and no others are."""
    cast = create(name).bfloat16()
    wide = [one for one, parameter in cast.named_parameters() if parameter.dtype == torch.float32]
    assert sorted(wide) == sorted(EXACT.get(name, []))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_angles_of_position_4095(dtype):
    """Against the formula in fp64: complex_order turned by 2.7 radians too much, and grape_m by 9.5."""
    at, pairs = Positions.at(torch.tensor([[4095]])), torch.arange(4, dtype=torch.float64)
    grape, order = create("grape_m").to(dtype), posenc.create("complex_order", d_model=16).to(dtype)
    x = torch.tensor([1.0, 0.0] * 4).view(1, 1, 1, 8).expand(1, 4, 1, 8)
    turned = grape.rotate(x, at, "query")[0, 0, 0].double().view(4, 2)
    angle = 4095 * 10000.0 ** (-2 * pairs / 8)
    assert (turned - torch.stack([angle.cos(), angle.sin()], dim=-1)).abs().max() < 2e-3  # rounding of ln ω to fp32
    ones = torch.cat([torch.ones(1, 1, 8), torch.zeros(1, 1, 8)], dim=-1)
    embedded = order.embed(ones, at)[0, 0].double()
    angle = 4095 * 10000.0 ** (-2 * (torch.arange(8, dtype=torch.float64) // 2) / 8)
    assert (embedded - torch.cat([angle.cos(), angle.sin()])).abs().max() < 2e-4


def test_made_and_loaded_in_a_narrow_default_dtype():
    """Values that the configuration says are not rounded; values of a bfloat16 file are, and what holds them is not."""
    default = torch.get_default_dtype()
    try:
        torch.set_default_dtype(torch.bfloat16)
        made = {name: create(name) for name in EXACT}
    finally:
        torch.set_default_dtype(default)
    for name, encoding in made.items():
        assert {encoding.get_parameter(one).dtype for one in EXACT[name]} == {torch.float32}, name
    for name in ("grape_m", "complex_order", "lerope", "fire", "carope", "grape_a", "ape", "gta"):
        for one in EXACT[name]:
            assert torch.equal(made[name].get_parameter(one), create(name).get_parameter(one)), name
    stored = {name: value.bfloat16() for name, value in create("grape_m").state_dict().items()}
    for assign in (False, True):
        loaded = create("grape_m")
        loaded.load_state_dict(stored, assign=assign)
        assert loaded.log_frequencies.dtype == torch.float32
        assert torch.equal(loaded.log_frequencies, stored["log_frequencies"].float())


def test_meta_and_to_empty():
    encoding = moved(create("grape_m"))
    kept = copy.deepcopy(encoding.state_dict())
    emptied = encoding.to("meta").bfloat16().to_empty(device="cpu")
    assert emptied.log_frequencies.dtype == torch.float32
    emptied.load_state_dict(kept)
    assert torch.equal(emptied.log_frequencies, kept["log_frequencies"])
    file = io.BytesIO()
    torch.save(emptied.bfloat16().state_dict(), file)
    file.seek(0)
    assert torch.equal(torch.load(file)["log_frequencies"], kept["log_frequencies"])


def test_float64_is_kept_by_none_but_narrow_casts():
    encoding = create("grape_m").double()
    assert encoding.log_frequencies.dtype == torch.float64
    assert encoding.bfloat16().log_frequencies.dtype == torch.float32


def test_an_optimiser_keeps_its_parameter():
    """The parameter and its gradient stay; a step after the cast moves what the encoding reads."""
    encoding = create("grape_m")
    parameter, optimiser = encoding.log_frequencies, torch.optim.SGD(encoding.parameters(), lr=1.0)
    parameter.grad = torch.full_like(parameter, 1e-4)
    nn.Sequential(encoding).bfloat16()
    assert encoding.log_frequencies is parameter
    assert parameter.grad.dtype == torch.float32
    before = parameter.detach().clone()
    optimiser.step()
    assert torch.allclose(before - encoding.log_frequencies, torch.full_like(before, 1e-4), atol=1e-6)


def test_a_hugging_face_dtype(tmp_path):
    """`from_pretrained(dtype=bfloat16)` of a model of one's own: the learned frequencies arrive as they were saved."""
    transformers = pytest.importorskip("transformers")

    class Model(transformers.PreTrainedModel):
        config_class = transformers.PretrainedConfig

        def __init__(self, config):
            super().__init__(config)
            self.encoding, self.project = create("grape_m"), nn.Linear(2, 2)
            self.post_init()

        def _init_weights(self, module):
            pass

    model = Model(transformers.PretrainedConfig())
    moved(model.encoding)
    model.save_pretrained(tmp_path)
    loaded = Model.from_pretrained(tmp_path, dtype=torch.bfloat16)
    assert loaded.project.weight.dtype == torch.bfloat16
    assert torch.equal(loaded.encoding.log_frequencies, model.encoding.log_frequencies)


@pytest.mark.parametrize("name", [one for one in EXACT if BY_NAME[one].axes == 1 and one != "complex_order"])
def test_mixed_dtypes_compute_and_train(name):
    """x in bfloat16: the output is in bfloat16, and every parameter has a finite gradient of its own dtype."""
    torch.manual_seed(0)
    encoding = moved(create(name)).bfloat16()
    x = torch.randn(1, 6, 32).bfloat16()
    at = Positions.arange(1, 6)
    q, k, v = (torch.randn(1, 4, 6, 8).bfloat16() for _ in range(3))
    x = encoding.embed(x, at)
    out = posenc.attend(q, k, v, encoding, encoding.read_hidden(x, at))
    assert out.dtype == x.dtype == torch.bfloat16
    (out.float().square().sum() + x.float().square().sum()).backward()
    for parameter in encoding.parameters():
        if parameter.grad is not None:
            assert parameter.grad.dtype == parameter.dtype
            assert bool(torch.isfinite(parameter.grad).all())
    assert any(encoding.get_parameter(one).grad is not None for one in EXACT[name])


ROTATING = ("complex_order", "learnable_fourier", "rope_mixed", "wire", "liere", "grape_m", "lerope", "clex")


@pytest.mark.parametrize("name", ROTATING)
def test_the_law_finds_undeclared_ones(name, monkeypatch):
    """By measurement: the same encoding without its declaration breaks it."""
    encoding = laws.draw_parameters(create(name), seed=1)
    laid = encoding if encoding.axes == 1 else OnTheDiagonal(encoding)
    setting = laws.Setting(n_kv_heads=4 if name in OWN_KEYS else 2)
    laws.casts_keep_positions_exact(laid, setting)
    monkeypatch.setattr(type(encoding), "exact_parameters", ())
    with pytest.raises(LawBroken, match="up to position 4096"):
        laws.casts_keep_positions_exact(laid, setting)
