"""Every family's reader with one key spoilt: a spec or one clear line that names the key; never anything else."""

from __future__ import annotations

import copy
import json
import random

import pytest
from transformers.models.auto.configuration_auto import CONFIG_MAPPING, CONFIG_MAPPING_NAMES

from posenc.configs import ConfigError, read_config
from posenc.configs.report.report import report

LONG = ([0] * 5000, "x" * 5000, {"x" * 5000: 1}, {str(n): n for n in range(2000)}, [["x"] * 50] * 50)
JUNK = (None, "", "8", -1, 0, 1, 0.5, 10**13, True, [], [1], ["x"], [None], {}, {"a": 1}, [[1]], *LONG)
MOST = 1200  # characters of an error or a remark
SAMPLE = random.Random(0).sample(sorted(CONFIG_MAPPING_NAMES), 60)


def spoilt(config: dict, random_: random.Random) -> tuple[dict, str]:
    """A copy with one value of it, or of a section in it, replaced by junk, or gone."""
    config = copy.deepcopy(config)
    inside, path = config, []
    while True:
        key = random_.choice([key for key in inside if key != "model_type"] or ["model_type"])
        path.append(key)
        if isinstance(inside.get(key), dict) and inside[key] and random_.random() < 0.8:
            inside = inside[key]
            continue
        if random_.random() < 0.1:
            inside.pop(key, None)
        else:
            inside[key] = random_.choice(JUNK)
        return config, ".".join(path)


def told(config: dict) -> str:
    try:
        remarks = report(read_config(config, defaults=True), 4096)["remarks"]
    except ConfigError as error:
        return str(error)
    return max((f"{one['key']}: {one['text']}" for one in remarks), key=len, default="")


def try_all(model_type: str, times: int) -> None:
    try:
        whole = json.loads(CONFIG_MAPPING[model_type]().to_json_string(use_diff=False))
    except Exception:  # it cannot be made from nothing
        whole = {"model_type": model_type}
    random_ = random.Random(model_type)
    for _ in range(times):
        config, path = spoilt(whole, random_)
        try:
            line = told(config)
        except Exception as error:
            raise AssertionError(f"{model_type}: {path} spoilt: {type(error).__name__}: {error}") from error
        assert "\n" not in line
        assert len(line) <= MOST, f"{model_type}: {path} spoilt: {line[:80]}"
        assert "cannot be read" not in line, f"{model_type}: {path} spoilt: {line}"


@pytest.mark.parametrize("value", LONG, ids=lambda value: type(value).__name__)
def test_a_long_value_in_the_place_of_the_type_is_one_short_line(value):
    for config in ({"model_type": value}, {"model_type": "llava", "text_config": {"model_type": value}}):
        assert 20 < len(told(config)) <= MOST


@pytest.mark.parametrize("model_type", SAMPLE)
def test_one_spoilt_key_gets_one_clear_line(model_type):
    try_all(model_type, 12)


@pytest.mark.acceptance
@pytest.mark.parametrize("model_type", sorted(CONFIG_MAPPING_NAMES))
def test_every_family_with_many_spoilt_keys(model_type):
    try_all(model_type, 60)
