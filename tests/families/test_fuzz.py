"""Every family's reader with one key spoilt: a spec or one clear line that names the key; never anything else."""

from __future__ import annotations

import copy
import json
import random

import pytest
from transformers.models.auto.configuration_auto import CONFIG_MAPPING, CONFIG_MAPPING_NAMES

from posenc.configs import ConfigError, read_config
from posenc.configs.report.report import report

JUNK = (None, "", "8", -1, 0, 1, 0.5, 10**13, True, [], [1], ["x"], [None], {}, {"a": 1}, [[1]])
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
        report(read_config(config, defaults=True), 4096)
    except ConfigError as error:
        return str(error)
    return ""


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
        assert "cannot be read" not in line, f"{model_type}: {path} spoilt: {line}"


@pytest.mark.parametrize("model_type", SAMPLE)
def test_one_spoilt_key_gets_one_clear_line(model_type):
    try_all(model_type, 12)


@pytest.mark.acceptance
@pytest.mark.parametrize("model_type", sorted(CONFIG_MAPPING_NAMES))
def test_every_family_with_many_spoilt_keys(model_type):
    try_all(model_type, 60)
