"""What posenc reads of every model type, as one hash for each: a change of the readers shows as a changed line in git.

    python tests/families/answers.py           writes answers.tsv anew: type, specifications, refusals, hash
    python tests/families/answers.py TYPE ...  prints the answers to these types in full, to compare two versions

The configurations of a type are its class's own values and a few sizes alone, each with the settings of SETTINGS, copies of
which one value is gone or nonsense, and the published files of that type.
"""

from __future__ import annotations

import copy
import hashlib
import json
import random
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from posenc.configs import ConfigError, PositionSpec, spec_of
from posenc.configs.family import reader_paths

HERE = Path(__file__).parent
TABLE = HERE / "answers.tsv"
SIZES = {
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_hidden_layers": 4,
    "max_position_embeddings": 512,
    "vocab_size": 32,
}
NONSENSE = (None, "", "8", -1, 0, 1, 0.5, 10**13, True, [], [1], ["x"], {}, {"a": 1})
SPOILT = 40
BY_KIND = {"full_attention": 1e6, "sliding_attention": 1e4}
SETTINGS: tuple[dict[str, Any], ...] = (
    {"rope_scaling": {"type": "linear", "factor": 4.0}},
    {"rope_scaling": {"rope_type": "dynamic", "factor": 2.0}},
    {"rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4096}},
    {"rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                      "original_max_position_embeddings": 8192}},
    {"rope_parameters": {"rope_type": "default", "rope_theta": 5000.0}},
    {"rope_parameters": {"rope_type": "default", "rope_theta": 5000.0, "partial_rotary_factor": 0.5}},
    {"rope_parameters": {kind: {"rope_type": "default", "rope_theta": base} for kind, base in BY_KIND.items()}},
    {"rope_theta": 123456.0},
    {"partial_rotary_factor": 0.5},
    {"rope_layout": "interleaved"},
    {"rope_interleave": False},
    {"sliding_window": 64},
    {"sliding_window": None},
    {"use_sliding_window": True, "sliding_window": 64, "max_window_layers": 1},
    {"layer_types": ["full_attention"] * 4, "num_hidden_layers": 4},
    {"layer_types": ["sliding_attention"] * 4, "num_hidden_layers": 4},
    {"is_decoder": True},
    {"use_bidirectional_attention": True},
    {"position_embedding_type": "relative_key"},
    {"pad_token_id": 0},
    {"head_dim": 48},
    {"num_hidden_layers": 7},
    {"num_hidden_layers": 12},
    {"image_size": 96},
    {"image_size": [96, 64]},
    {"max_position_embeddings": 1},
)  # fmt: skip


class Answers(NamedTuple):
    """Of one type: how many configurations are read and refused, and the hash of what is said of all."""

    read: int
    refused: int
    hash: str


def types() -> list[str]:
    """Every model type that transformers or posenc knows."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    return sorted({*CONFIG_MAPPING_NAMES, *reader_paths()})


def configurations(name: str) -> Iterator[tuple[dict[str, Any], bool]]:
    """The configurations of a type, and whether what a file leaves out may be taken from the class."""
    yield from both({"model_type": name})
    bases = [{"model_type": name, **SIZES}, *of_the_class(name)]
    for base in bases:
        yield from both(base)
        yield from (({**base, **extra}, True) for extra in SETTINGS)
    drawn = random.Random(name)
    yield from ((spoilt(bases[-1], drawn), True) for _ in range(SPOILT))
    for config in published().get(name, ()):
        yield from both(config)


def both(config: dict[str, Any]) -> Iterator[tuple[dict[str, Any], bool]]:
    yield config, True
    yield config, False


def of_the_class(name: str) -> list[dict[str, Any]]:
    """What a configuration of the class holds when nothing is asked, where it can be made so."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    try:
        return [json.loads(CONFIG_MAPPING[name]().to_json_string(use_diff=False))]
    except Exception:  # remote or without values of its own: classes raise what they like
        return []


def spoilt(config: dict[str, Any], drawn: random.Random) -> dict[str, Any]:
    """A copy of which one value, at any depth, is gone or nonsense."""
    whole = inside = copy.deepcopy(config)
    while True:
        key = drawn.choice([key for key in inside if key != "model_type"] or ["model_type"])
        within = inside.get(key)
        if isinstance(within, dict) and within and drawn.random() < 0.8:
            inside = within
        elif drawn.random() < 0.3:
            inside.pop(key, None)
            return whole
        else:
            inside[key] = drawn.choice(NONSENSE)
            return whole


@cache
def published() -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for line in (HERE.parent / "published.jsonl").read_text("utf-8").splitlines():
        config = whole(json.loads(line)["config"])
        found.setdefault(str(config.get("model_type")), []).append(config)
    return found


def whole(value: Any) -> Any:
    """Of a fixture, in which {"repeat": [x, n]} stands for n times x."""
    if not isinstance(value, dict):
        return value
    if "repeat" in value:
        one, times = value["repeat"]
        return [one] * times
    return {key: whole(one) for key, one in value.items()}


def answer(config: dict[str, Any], defaults: bool) -> tuple[bool, str]:
    """Whether it was read, and all that was said in both languages. An error that is no ConfigError goes through."""
    try:
        spec = spec_of(config, defaults=defaults)
    except ConfigError as error:
        return False, f"{error} / {error.words.zh}"
    remarks = [
        (path, [(one.grade, one.key, one.words.en, one.words.zh) for one in part.remarks], part.config_class, part.remote,
         sorted(map(str, part.keys)))
        for path, part in spec.walk()
    ]  # fmt: skip
    return True, f"{ordered(spec)!r}\n{remarks!r}"


def ordered(spec: PositionSpec) -> PositionSpec:
    """With the keys that said something in one order, whatever order they were read in."""
    layers = tuple(
        replace(layer, uses=tuple(replace(use, said_by=tuple(sorted(use.said_by))) for use in layer.uses))
        for layer in spec.layers
    )
    return replace(spec, layers=layers, parts=tuple(map(ordered, spec.parts)), keys=())


def answers(name: str) -> Answers:
    counts, said = [0, 0], hashlib.sha256()
    for config, defaults in configurations(name):
        read, text = answer(config, defaults)
        counts[read] += 1
        said.update(text.encode())
    return Answers(counts[True], counts[False], said.hexdigest()[:12])


def stored() -> dict[str, Answers]:
    rows = (line.split("\t") for line in TABLE.read_text("utf-8").splitlines())
    return {name: Answers(int(read), int(refused), said) for name, read, refused, said in rows}


def main(asked: list[str]) -> None:
    if asked:
        for name in asked:
            for config, defaults in configurations(name):
                print(json.dumps(config), defaults, answer(config, defaults)[1], sep="\n", end="\n\n")
        return
    names = types()
    with ProcessPoolExecutor() as pool:
        found = dict(zip(names, pool.map(answers, names, chunksize=16), strict=True))
    TABLE.write_text("".join(f"{name}\t{one.read}\t{one.refused}\t{one.hash}\n" for name, one in found.items()), "utf-8")
    print(f"{len(found)} types, {sum(one.read for one in found.values())} configurations read, "
          f"{sum(one.refused for one in found.values())} refused: {TABLE.name}")  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1:])
