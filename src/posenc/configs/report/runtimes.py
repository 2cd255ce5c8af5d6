"""How to run a model with new rotary settings: the whole command for four programs, and what each does not read.

Each was written for the version that it names; later ones may differ.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from typing import Any

from posenc.configs.report.extension import Extension
from posenc.configs.report.spellings import WIDE
from posenc.configs.say import say
from posenc.support.languages import Words

NOTHING = say("nothing")
FILE_ONLY = say("settings on the command line: write them into config.json")


@dataclass(frozen=True)
class Runtime:
    """One program. `command` is "" where it has none; `ignores` says what it does not read, or what to do instead."""

    name: str
    version: str
    command: str
    ignores: Words


def runtimes(extension: Extension) -> list[Runtime]:
    """The programs for one extension; [] where the family's code does not support it."""
    if not extension.fragment:
        return []
    settings, nested = _settings(extension.standard or extension.fragment)
    return [
        _transformers(extension),
        _vllm(extension, settings, nested),
        _sglang(extension),
        _llama_cpp(extension, settings),
    ]


def _settings(keys: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """The rotary settings with their base, and whether they are those of a part or a kind of layer."""
    inner, nested = keys, False
    while "max_position_embeddings" not in inner:
        inner, nested = next(iter(inner.values())), True
    found = dict(inner.get("rope_parameters") or inner.get("rope_scaling") or {"rope_type": "default"})
    kinds = [label for label, one in found.items() if isinstance(one, dict)]
    if kinds:
        found, nested = dict(found[next(label for label in (*WIDE, *kinds) if label in kinds)]), True
    if "rope_theta" in inner:
        found["rope_theta"] = inner["rope_theta"]
    return found, nested


def _transformers(extension: Extension) -> Runtime:
    given = ", ".join(f"{key}={value!r}" for key, value in extension.standard.items())
    if not given:
        return Runtime("transformers", "5.23", "", FILE_ONLY)
    return Runtime(
        "transformers",
        "5.23",
        f'AutoModelForCausalLM.from_pretrained("MODEL", {given})',
        say("{nothing}; every request gets the scaled angles, short ones too", nothing=NOTHING),
    )


def _vllm(extension: Extension, settings: dict[str, Any], nested: bool) -> Runtime:
    if not extension.standard:
        return Runtime("vLLM", "0.33", "", FILE_ONLY)
    given = extension.standard if nested else {"rope_parameters": settings}
    command = f"vllm serve MODEL --hf-overrides {shlex.quote(json.dumps(given))} --max-model-len {extension.length}"
    ignores = say("max_position_embeddings: --max-model-len is the limit; --rope-scaling is gone")
    if extension.method == "longrope":
        ignores = say("factor; one set of factors serves all requests, chosen by --max-model-len")
    return Runtime("vLLM", "0.33", command, ignores)


def _sglang(extension: Extension) -> Runtime:
    command = (
        "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1 python -m sglang.launch_server --model-path MODEL "
        f"--json-model-override-args {shlex.quote(json.dumps(extension.fragment))} --context-length {extension.length}"
    )
    return Runtime(
        "SGLang", "0.5.23", command, say("nothing; without the variable it refuses a length above that of config.json")
    )


def _llama_cpp(extension: Extension, settings: dict[str, Any]) -> Runtime:
    start = f"llama-server -m MODEL.gguf -c {extension.length}"
    factor = f"{settings.get('factor', extension.factor):g}"
    ignores = say("config.json: the options replace the GGUF file's own keys")
    if extension.method == "yarn":
        original = settings["original_max_position_embeddings"]
        command = f"{start} --rope-scaling yarn --rope-scale {factor} --yarn-orig-ctx {original}"
        for key in ("beta_fast", "beta_slow"):
            if key in settings:
                command += f" --yarn-{key.replace('_', '-')} {settings[key]:g}"
    elif extension.method == "linear":
        command = f"{start} --rope-scaling linear --rope-scale {factor}"
    elif extension.method == "ntk":
        kept = f"linear --rope-scale {factor}" if settings["rope_type"] == "linear" else "none"
        command = f"{start} --rope-scaling {kept} --rope-freq-base {settings['rope_theta']:.10g}"
    else:
        command = ""
        ignores = say(
            "no option for {method}: change config.json and run convert_hf_to_gguf.py again", method=extension.method
        )
    return Runtime("llama.cpp", "gguf 0.19", command, ignores)
