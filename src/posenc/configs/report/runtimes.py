"""How to run a model with new rotary settings: the whole command for four programs, and what each does not read.

servers.json has, for each program, the release that its commands were held against, the date, the families whose code
there hands all settings on, or the base alone, those whose pairs are neighbours there, and the keys that are read for each
rope_type (tools/servers.py). Where a
program would not read what the command says, or where it is not known, there is no command. The rules below are those of
the same releases:

    vLLM        vllm/config/model.py, _get_and_verify_max_len: a length above that of the configuration is refused
    SGLang      sglang/srt/configs/model_config.py, _derive_context_length: the same
    llama.cpp   tools/server/server-context.cpp: a request is cut at the file's context_length;
                src/llama-model.cpp, get_rope_factors: a file's factors of pairs stay, whatever the options say
"""

from __future__ import annotations

import functools
import json
import shlex
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from importlib import resources
from typing import Any

from posenc.configs import PositionSpec, Rotation, source
from posenc.configs.report.extension import Extension
from posenc.configs.report.spellings import WIDE
from posenc.configs.say import say
from posenc.support.languages import Words

NOTHING = say("nothing")
FILE_ONLY = say("settings on the command line: write them into config.json")
OWN_CODE = say(
    "not known: the model brings its own code, which may read other keys; write the settings into config.json and compare "
    "the output"
)
ALL_KINDS = {"rope_type", "type", "rope_theta", "partial_rotary_factor"}  # keys that both servers read of every kind
WINDOWS_BY_KEYS = ("gemma2",)  # llama.cpp's options reach its full layers alone, the file's keys all: get_rope_freq_base
AS_KEYS = {
    "--rope-scaling": "rope.scaling.type=str:",
    "--rope-scale": "rope.scaling.factor=float:",
    "--yarn-orig-ctx": "rope.scaling.original_context_length=int:",
    "--rope-freq-base": "rope.freq_base=float:",
}
FACTORS = ("llama3", "longrope")  # kinds that a GGUF file holds as a factor of each pair, which no option removes


@dataclass(frozen=True)
class Runtime:
    """One program. `command` is "" where it has none; `ignores` says what it does not read, or what to do instead.

    version   the release that the command was held against
    date      when
    """

    name: str
    version: str
    date: str
    command: str
    ignores: Words


@functools.cache
def servers() -> dict[str, dict[str, Any]]:
    """For each program: version, date, and the families that it reads all settings of, or the base alone."""
    text = resources.files("posenc.configs.report").joinpath("servers.json").read_text(encoding="utf-8")
    programs: dict[str, dict[str, Any]] = json.loads(text)
    return programs


def runtimes(extension: Extension) -> list[Runtime]:
    """The programs for one extension; [] where the family's code does not support it."""
    if not extension.fragment:
        return []
    return [
        Runtime(name, servers()[name]["version"], servers()[name]["date"], *make(extension))
        for name, make in (("transformers", _transformers), ("vLLM", _vllm), ("SGLang", _sglang), ("llama.cpp", _llama_cpp))
    ]


def serving(program: str, spec: PositionSpec, length: int | None) -> tuple[str, Words]:
    """The command that serves the file as it is up to `length`, or "" and why there is none."""
    if spec.remote:
        return "", OWN_CODE
    known, (start, option) = servers()[program], STARTS[program]
    families = known["architectures"] if program == "llama.cpp" else (*known.get("settings", ()), *known.get("base", ()))
    if program != "transformers" and spec.family not in families and (program, spec.config_class) != ("llama.cpp", "GGUF"):
        return "", _unknown(spec.family)
    kinds = set(_kinds(spec))
    if why := _turns_halves_alone(program, spec.family, kinds):
        return "", why
    if program in ("vLLM", "SGLang") and kinds - {"rotary"} and spec.family not in known["settings"]:
        return "", say("every scaling of {family}; it reads the base alone, as ntk sets it", family=spec.family)
    if option and length is not None and length > (spec.trained_length or length):  # which they check
        return "", say(
            "a length above that of the file, {given}: write {length} there", given=spec.trained_length, length=length
        )
    return f"{start} {option} {length}" if option and length else start, NOTHING


STARTS = {
    "transformers": ('AutoModelForCausalLM.from_pretrained("MODEL")', ""),
    "vLLM": ("vllm serve MODEL", "--max-model-len"),
    "SGLang": ("python -m sglang.launch_server --model-path MODEL", "--context-length"),
    "llama.cpp": ("llama-server -m MODEL.gguf", "-c"),
}


def _kinds(spec: PositionSpec) -> Iterator[str]:
    return (use.rotation.kind for layer in spec.layers for use in layer.uses if use.rotation is not None)


def _turns_halves_alone(program: str, family: str, kinds: Collection[str]) -> Words | None:
    """Why a server's class for longrope cannot serve a family whose pairs are neighbouring channels; None elsewhere."""
    if "longrope" not in kinds or family not in servers()[program].get("interleaved", ()):
        return None
    return say(
        "longrope for pairs of neighbouring channels, which {family} has: its class turns halves alone", family=family
    )


def of_model(command: str, path: str) -> str:
    """The command with the path of the model: a folder, or a GGUF file for llama.cpp."""
    if "MODEL.gguf" in command:
        return command.replace("MODEL.gguf", shlex.quote(path)) if path.endswith(".gguf") else command
    folder = source.folder(path)
    if folder is None:
        return command
    return command.replace('"MODEL"', json.dumps(str(folder))).replace(" MODEL", f" {shlex.quote(str(folder))}")


def _settings(keys: dict[str, Any]) -> dict[str, Any]:
    """The rotary settings with their base."""
    inner = keys
    while "max_position_embeddings" not in inner:
        inner = next(iter(inner.values()))
    settings = dict(inner.get("rope_parameters") or inner.get("rope_scaling") or {"rope_type": "default"})
    kinds = [label for label, value in settings.items() if isinstance(value, dict)]
    if kinds:
        settings = dict(settings[next(label for label in (*WIDE, *kinds) if label in kinds)])
    if "rope_theta" in inner:
        settings["rope_theta"] = inner["rope_theta"]
    return settings


def _transformers(extension: Extension) -> tuple[str, Words]:
    arguments = ", ".join(f"{key}={value!r}" for key, value in extension.standard.items())
    if extension.remote:
        return "", OWN_CODE
    if extension.family.endswith("Model"):  # of diffusers
        return "", _unknown(extension.family)
    if not arguments:
        return "", FILE_ONLY
    every = say("{nothing}; every request gets the scaled angles, short ones too", nothing=NOTHING)
    return f'AutoModelForCausalLM.from_pretrained("MODEL", {arguments})', every


def _unknown(family: str) -> Words:
    return say("not known for {family}: write the settings into config.json and compare the output", family=family)


def _served(name: str, extension: Extension) -> Words | None:
    """Why a server cannot be told the settings of an extension; None if it can."""
    family, known = extension.family, servers()[name]
    if extension.remote:
        return OWN_CODE
    if not extension.standard:
        return FILE_ONLY
    settings = _settings(extension.standard)
    if unread := _unread(name, extension.method, settings):
        return say("{keys}, with rope_type {kind}", keys=", ".join(unread), kind=str(settings.get("rope_type", "default")))
    if family not in known["settings"] + known["base"]:
        return _unknown(family)
    if why := _turns_halves_alone(name, family, (extension.method,)):
        return why
    if family in known["settings"] and not extension.chunked:  # get_rope of both makes DualChunkRotaryEmbedding of the base
        return None
    if extension.method == "ntk" and settings.get("rope_type") == "default":
        return None
    return say("every scaling of {family}; it reads the base alone, as ntk sets it", family=family)


def _unread(name: str, method: str, settings: dict[str, Any]) -> list[str]:
    """The keys that a server's get_rope does not read for settings of this rope_type and that change the frequencies."""
    read = servers()[name]["keys"].get(settings.get("rope_type", "default"), ())
    lists = {"factor"} if method == "longrope" else set()  # its factors of the pairs are lists
    return sorted(settings.keys() - ALL_KINDS - lists - set(read))


def _ignores(extension: Extension) -> Words:
    """What a server leaves out of the settings that it reads."""
    if extension.method == "longrope":
        return say("factor; one set of factors serves all requests, chosen by the length given")
    return NOTHING


def _overrides(extension: Extension) -> str:
    """The settings with every length of the file that the servers check."""

    def with_lengths(keys: dict[str, Any]) -> dict[str, Any]:
        if "max_position_embeddings" in keys:
            return keys | dict.fromkeys(extension.lengths, extension.length)
        return {key: with_lengths(inner) for key, inner in keys.items()}

    return shlex.quote(json.dumps(with_lengths(extension.standard)))


def _vllm(extension: Extension) -> tuple[str, Words]:
    if why := _served("vLLM", extension):
        return "", why
    if extension.method == "yarn" and "mrope_section" in _settings(extension.standard):
        return "", say(  # model_executor/layers/rotary_embedding/mrope.py, which makes its tables four times as long
            "yarn with mrope_section: it places the ramp of pairs for 4 times the trained length"
        )
    start, option = STARTS["vLLM"]
    return f"{start} --hf-overrides {_overrides(extension)} {option} {extension.length}", _ignores(extension)


def _sglang(extension: Extension) -> tuple[str, Words]:
    if why := _served("SGLang", extension):
        return "", why
    start, option = STARTS["SGLang"]
    return f"{start} --json-model-override-args {_overrides(extension)} {option} {extension.length}", _ignores(extension)


def _llama_cpp(extension: Extension) -> tuple[str, Words]:
    architecture = servers()["llama.cpp"]["architectures"].get(extension.family)
    if architecture is None:
        return "", _unknown(extension.family)
    if extension.method in FACTORS:
        return "", say(
            "no option for {method}: change config.json and run convert_hf_to_gguf.py again", method=extension.method
        )
    if extension.rotation.kind in FACTORS:
        return "", say(
            "options that replace the file's {kind}: change config.json and run convert_hf_to_gguf.py again",
            kind=extension.rotation.kind,
        )
    settings = _settings(extension.standard or extension.fragment)
    factor = f"{settings.get('factor', extension.factor):.9g}"
    start, option = STARTS["llama.cpp"]
    options = f"{option} {extension.length} --override-kv {architecture}.context_length=int:{extension.length}"
    if extension.method == "yarn":
        options += f" --rope-scaling yarn --rope-scale {factor}"
        options += f" --yarn-orig-ctx {settings['original_max_position_embeddings']}"
        for key in ("beta_fast", "beta_slow"):
            if key in settings:
                options += f" --yarn-{key.replace('_', '-')} {settings[key]:g}"
    elif "factor" in settings:
        options += f" --rope-scaling linear --rope-scale {factor}"
    else:
        options += " --rope-scaling none"
    if extension.method == "ntk":
        options += f" --rope-freq-base {settings['rope_theta']:.10g}"
    if architecture in WINDOWS_BY_KEYS:
        for name, key in AS_KEYS.items():
            options = options.replace(f" {name} ", f" --override-kv {architecture}.{key}")
    return f"{start} {options}", _not_read(extension.rotation, settings)


def _not_read(rotation: Rotation, settings: dict[str, Any]) -> Words:
    """Keys that llama.cpp's YaRN has no option for."""
    if settings.get("truncate") is False:
        return say("truncate: the range of pairs is rounded")
    if any(name.startswith("mscale") for name in (*settings, *dict(rotation.parameters))):
        return say("mscale and mscale_all_dim on the command line: those of the file stay")
    return say("config.json: the options replace the GGUF file's own keys")
