"""What posenc.conversion knows of model families, against the rotating functions of the installed transformers."""

import importlib
import re
from pathlib import Path

import pytest
import torch
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

from posenc.configs.convert.families import FUSED, GATED, PARTIAL_BY_DEFAULT, SWITCH, SWITCHED, UNFIT, known_layout
from posenc.configs.keys import facts

transformers = importlib.import_module("transformers")
MODELS = Path(transformers.__file__).parent / "models"
TURNS = ("apply_rotary_pos_emb_interleave", "rotate_half", "rotate_half_llm", "rotate_every_two", "_apply_rotary_emb")
OTHERWISE = {  # no function of their own for it
    "deepseek_v2": "view_as_complex(xq.float().reshape(*xq.shape[:-1], -1, 2))",
    "llama4": "view_as_complex(xq.float().reshape(*xq.shape[:-1], -1, 2))",
    "roformer": "torch.stack([-query_layer[..., 1::2], query_layer[..., ::2]], dim=-1)",
}


def source(family):
    return (MODELS / family / f"modeling_{family}.py").read_text()


def turned(function, x):
    """x turned by 45 degrees or so, whatever the function asks for beside it."""
    ones = {"n": torch.ones(1, 1, 4), "d": torch.ones(1, 1, 8)}
    name = function.__name__
    if name.startswith("rotate"):
        return x + function(x)
    return function(x, ones["n"], ones["n"]) if name.startswith("_") else function(x, x, ones["d"], ones["d"])[0]


def partners(function):
    """The channels that are mixed with the first of eight: [4] for halves, [1] for neighbours."""

    def reached(channel):
        x = torch.zeros(1, 1, 1, 8)
        x[..., channel] = 1
        return turned(function, x).flatten().nonzero().flatten().tolist()

    return [channel for channel in range(1, 8) if reached(channel) == reached(0)]


def turning():
    """Model types with a module of their name that has a function for the rotation, and whose layout is known."""
    files = {
        path.parent.name: path.read_text() for path in MODELS.glob("*/modeling_*.py") if path.stem[9:] == path.parent.name
    }
    own = sorted(name for name, text in files.items() if any(f"\ndef {turn}(" in text for turn in TURNS))
    own = [name for name in own if name in CONFIG_MAPPING_NAMES and not facts()[name]["parts"]]
    return [
        name for name in own if name in CONFIG_MAPPING_NAMES and name not in SWITCHED and known_layout({"model_type": name})
    ]


def test_the_layout_that_a_reader_says_is_that_of_the_familys_own_function():
    found = {}
    for family in turning():
        module = importlib.import_module(f"transformers.models.{family}.modeling_{family}")
        name = next(name for name in TURNS if f"\ndef {name}(" in source(family))
        found[family] = partners(getattr(module, name)), known_layout({"model_type": family})
    assert {name: one for name, one in found.items() if one not in (([4], "half"), ([1], "interleaved"))} == {}
    assert len(found) > 60


@pytest.mark.parametrize("family", OTHERWISE)
def test_neighbours_in_line(family):
    assert OTHERWISE[family] in source(family)
    assert known_layout({"model_type": family}) == "interleaved"


@pytest.mark.parametrize("family", sorted(SWITCHED))
def test_the_switch_is_read_by_the_code(family):
    assert f"self.config.{SWITCH}" in source(family)
    assert known_layout({"model_type": family}) == known_layout({"model_type": family, SWITCH: True}) == "interleaved"
    assert known_layout({"model_type": family, SWITCH: False}) == "half"
    config = importlib.import_module(f"transformers.models.{family}.configuration_{family}")
    made = next(one for name, one in vars(config).items() if name.endswith("Config") and hasattr(one, SWITCH))
    assert getattr(made, SWITCH) is True


@pytest.mark.parametrize("family", sorted(GATED))
def test_gated_families_double_their_query_rows(family):
    assert "config.num_attention_heads * self.head_dim * 2" in source(family)


def test_exactly_the_gated_ones_do():
    families = {path.parent.name for path in MODELS.glob("*/modeling_*.py") if path.stem == f"modeling_{path.parent.name}"}
    assert {family for family in families if "num_attention_heads * self.head_dim * 2" in source(family)} == GATED


@pytest.mark.parametrize("family", sorted(FUSED.keys() & CONFIG_MAPPING_NAMES.keys()))
def test_fused_projections_are_viewed_so(family):
    text = source(family)
    if FUSED[family] == "blocks":
        assert "mp_num = 4" in text
        assert "query, value, key = torch.split(qkv_split" in text
    elif FUSED[family] == "grouped":
        assert re.search(r"3, self.head_dim\)|3 \* self.head_(dim|size)", text)
    else:
        assert re.search(r"query_pos = |\.split\(|unbind\(", text)


def test_families_that_turn_a_part_by_default_are_all_known():
    """Every configuration class of transformers that sets a partial factor where none is given."""
    default = re.compile(r'"partial_rotary_factor"(: |, |\] = )0\.\d|rotary_pct: float[^=]*= 0\.\d|default_partial_rotary')
    partial = {path.parent.name for path in MODELS.glob("*/configuration_*.py") if default.search(path.read_text())}
    proportional = {"gemma4", "gemma4_unified", "diffusion_gemma"}  # their whole head pairs; some pairs stand still
    assert partial - PARTIAL_BY_DEFAULT - proportional - UNFIT.keys() == set()
