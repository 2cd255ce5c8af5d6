"""Files of models that no other test has, gathered from public repositories: what is read, or why not and what is needed.

unseen.jsonl has one file a line: its name, where it was seen (repository, commit, path), the keys that have to do with
position and size, and `say` in the words of published.jsonl, or the part of the message with which it is `refused`. What
`say` holds was computed by transformers' own configuration class and rotary module from the whole file, or read from the
model's own code where transformers has none.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from cases import cases
from posenc.configs import ConfigError, spec_of
from test_inspect_published import MODELS, described, whole

FILES = [json.loads(line) for line in Path(__file__).with_name("unseen.jsonl").read_text(encoding="utf-8").splitlines()]
READ, REFUSED = [one for one in FILES if "say" in one], [one for one in FILES if "refused" in one]


@cases("file", READ)
def test_a_file_is_read_as_its_own_code_does(file: dict[str, Any]):
    expected = dict(pair.split("=", 1) for pair in file["say"].split())
    found = described(spec_of(whole(file["config"])))
    assert {name: found.get(name) for name in expected} == expected


@cases("file", REFUSED)
def test_a_refusal_says_what_is_needed(file: dict[str, Any]):
    with pytest.raises(ConfigError, match=re.escape(file["refused"])):
        spec_of(whole(file["config"]))


def test_the_files_are_many_and_others_than_those_of_the_other_tests():
    assert len(FILES) >= 75
    assert len({one["name"] for one in FILES}) == len(FILES)
    assert not {one["name"] for one in FILES} & {one["name"] for one in MODELS}
    for one in FILES:
        assert re.match(r"[\w.-]+/[\w.-]+@[0-9a-f]{8} \S+$", one["seen"]), one["name"]
