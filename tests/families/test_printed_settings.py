"""What posenc inspect --extend-to prints for transformers, run in the model's own modules, built small.

For every model type, method and 2, 4 and 8 times its length, two models with the same weights: that of the file alone, and
that of the file with the printed settings. Every attention layer of both must turn its queries and keys, scale its scores
and hide its keys as posenc's own encodings of the file, and of the file with the printed fragment, do.
"""

from __future__ import annotations

import copy
import importlib
import json
import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES
from transformers.models.auto.modeling_auto import MODEL_MAPPING

import receivers
from families.harness import FP32, IDS, Call, at_of, attending, build, calls, tokens, unrotated
from families.proofs_qwen2_vl import IDS as THREE_AXES
from families.turning import SEEN, layers_of, visible
from posenc.configs import PositionSpec, read_config, spec_of
from posenc.configs.report.extension import Extension, extend, extensible
from posenc.configs.report.extension_methods import METHODS
from posenc.configs.report.runtimes import runtimes
from transformers_models import tiny

TIMES = (2, 4, 8)
BANDS = ("qwen2_vl", "qwen2_5_vl", "qwen2_5_omni", "paddleocr_vl", "glm4v", "glm_ocr", "glm46v", "glm_image", "glmga")
LENGTH = 512  # positions of the file alone
NORMALISED = ("hunyuan_v1_dense", "hunyuan_v1_moe", "nanochat")  # after the rotation, which takes its magnitude off
ROUNDINGS = 3.0  # of the largest entry of a vector: the model's rotation, posenc's, and the magnitude that is taken off


def files(model_type: str) -> Iterator[dict[str, Any]]:
    """Files of this type with every kind of layer, in a few layers: with its windows, and without any."""
    file = longer(json.loads(tiny.config_of(model_type).to_json_string(use_diff=False), object_hook=number))
    if model_type.startswith(BANDS):
        file = with_bands(file)
    yield file
    if (without := unwindowed(file)) != file and is_valid(without):
        yield without


def is_valid(file: dict[str, Any]) -> bool:
    try:
        return bool(receivers.read(file, "", {}))
    except Exception:  # a class that requires a window
        return False


def number(value: dict[str, Any]) -> Any:
    """Infinity, as transformers writes it."""
    return float(value["__float__"]) if value.keys() == {"__float__"} else value


def with_bands(file: dict[str, Any]) -> dict[str, Any]:
    """The same with sections that make up its small heads, where the class's default does not."""
    inside = {key: with_bands(value) for key, value in file.items() if isinstance(value, dict) and "hidden_size" in value}
    heads = (
        {"rope_parameters": {**file["rope_parameters"], "mrope_section": [4, 2, 2]}} if "rope_parameters" in file else {}
    )
    return file | inside | (heads if file.get("rope_parameters") else {})


def unwindowed(file: dict[str, Any]) -> dict[str, Any]:
    """The same with the window of all layers gone, not where some have one."""
    gone = {"sliding_window": None} if "sliding_window" in file and not file.get("layer_types") else {}
    return {key: unwindowed(value) if isinstance(value, dict) else value for key, value in file.items()} | gone


def longer(file: dict[str, Any]) -> dict[str, Any]:
    """The same file with LENGTH positions in all its parts."""
    return {
        key: longer(value) if isinstance(value, dict) else LENGTH if key == "max_position_embeddings" and value else value
        for key, value in file.items()
    }


def printed(file: dict[str, Any], method: str, times: int) -> tuple[Extension, dict[str, Any]] | None:
    """What is printed: the extension, and the keywords of the command for transformers; None where no command is."""
    try:
        path, part = extensible(read_config(copy.deepcopy(file)))
        (extension,) = extend(file, part, times * (part.trained_length or 0), (method,), path)
    except ValueError:
        return None
    (command,) = [one.command for one in runtimes(extension) if one.name == "transformers"] or [""]
    return (extension, receivers.arguments(command)) if command else None


def part_of(file: dict[str, Any], path: str) -> PositionSpec:
    return dict(spec_of(file).walk())[path]


def edited(file: dict[str, Any], fragment: dict[str, Any]) -> dict[str, Any]:
    """The file with the keys of a fragment, which has a section's own where it has one."""
    inside = {key: edited(file[key], value) for key, value in fragment.items() if key.endswith("_config") and key in file}
    return file | fragment | inside


def ids_of(spec: PositionSpec) -> Tensor:
    """Positions far out, of as many axes as the layers read."""
    axes = {use.rotation.frequencies().at_length(1).n_axes for layer in spec.layers for use in layer.uses if use.rotation}
    return THREE_AXES if max(axes) == 3 else IDS


class Model(NamedTuple):
    """A configuration in transformers' own model: its attention calls far out, and in a row from 0 with their masks."""

    moved: list[Call]
    seen: list[Call]


def asked(model: torch.nn.Module, ids: Tensor) -> list[Call]:
    return layers_of(calls(model, input_ids=tokens(ids.shape[-2:]), position_ids=ids))


def made(config: Any) -> torch.nn.Module:
    """The model of a configuration; a part's own class where AutoModel does not know it."""
    if type(config) in MODEL_MAPPING:
        return build(copy.deepcopy(config))
    package = type(config).__module__.rpartition(".")[0]
    modeling = importlib.import_module(f"{package}.modeling_{package.rpartition('.')[2]}")
    own = [
        one for one in vars(modeling).values() if getattr(one, "config_class", None) is type(config) or _asks(one, config)
    ]
    names = [one.__name__ for one in own if one.__name__.endswith(("Model", "Encoder", "Decoder"))]
    return build(copy.deepcopy(config), next(name for name in names if "PreTrained" not in name))


def _asks(one: Any, config: Any) -> bool:
    return isinstance(one, type) and getattr(one, "__annotations__", {}).get("config") in (
        type(config),
        type(config).__name__,
    )


def run(config: Any, ids: Tensor) -> Model:
    model = made(config)
    return Model(asked(model, ids), layers_of(calls(model, input_ids=tokens((2, SEEN)))))


class Alone:
    """The model of a file without other settings, and its queries and keys before any rotation."""

    def __init__(self, config: Any, spec: PositionSpec) -> None:
        self.spec, self.ids = spec, ids_of(spec)
        self.model = run(config, self.ids)
        zero = torch.zeros_like(self.ids)
        self.first = asked(made(config), zero)
        self.attending = attending(spec, self.model.moved)
        self.short = [encoding.at_length(1) for encoding in encodings(self.attending)]
        self.unturned = [
            [unrotated(given, encoding, at_of(zero), side) for side, given in (("query", call.q), ("key", call.k))]
            for call, encoding in zip(self.first, self.short, strict=True)
        ]

    def apart(self, changed: Model, spec: PositionSpec) -> str:
        """What the model with new settings does otherwise than posenc's encodings of it; "" where nothing is."""
        spec = attending(spec, changed.moved)
        if not len(spec.layers) == len(self.first) == len(changed.moved) == len(changed.seen):
            return f"{len(changed.moved)} layers attend, posenc has {len(spec.layers)}"
        at, longest = at_of(self.ids), int(self.ids.max()) + 1
        for number, (call, seen, encoding) in enumerate(zip(changed.moved, changed.seen, encodings(spec), strict=True)):
            long, layer, before = encoding.at_length(longest), spec.layers[number], self.attending.layers[number]
            for side, given, found in zip(("query", "key"), self.unturned[number], (call.q, call.k), strict=True):
                expected = long.rotate(given, at, side)
                if spec.family in NORMALISED:
                    expected = expected / magnitude(long)
                off = ((found - expected).abs() / (expected.abs().amax(-1, keepdim=True) * FP32)).max()
                if not off <= ROUNDINGS:
                    return f"layer {number}: {side}: {off:.3g} roundings apart"
            if None not in (call.scaling, self.first[number].scaling):
                theirs = call.scaling / self.first[number].scaling
                ours = scale(long, call) / scale(self.short[number], call)
                if not math.isclose(theirs, ours, rel_tol=1e-6):
                    return f"layer {number}: softmax scale {theirs:.6g} of that of the file alone, posenc {ours:.6g}"
            if not torch.equal(hidden(seen), visible(layer, SEEN)):
                return f"layer {number}: other keys are hidden"
            if (layer.window, layer.chunk, layer.causal) != (before.window, before.chunk, before.causal):
                return f"layer {number}: another window than in the file alone"
        return ""


def encodings(spec: PositionSpec) -> list[Any]:
    """The encoding of each layer with transformers' own fp32; equal layers share one."""
    made = {layer.uses: spec.encoding(number, exact="model") for number, layer in enumerate(spec.layers)}
    return [made[layer.uses] for layer in spec.layers]


def magnitude(encoding: Any) -> float:
    return encoding.frequencies.cos_sin_scale if hasattr(encoding, "frequencies") else 1.0


def scale(encoding: Any, call: Call) -> float:
    width = call.q.shape[-1]
    return encoding.softmax_scale(width) or width**-0.5


def hidden(call: Call) -> Tensor:
    """Which keys [j] each query [i] sees by the mask of a call."""
    if call.mask is None:
        return torch.ones(SEEN, SEEN, dtype=torch.bool)
    return call.mask[0, 0] if call.mask.dtype == torch.bool else call.mask[0, 0] > -1e30


Different = list[tuple[str, ...]]


def turned(model_type: str, cases: Iterable[tuple[str, int]]) -> tuple[int, Different]:
    """How many settings were run, in a file and as keywords, and those that differ; none where nothing is printed."""
    cases = list(cases)
    for file in files(model_type):
        found = {case: one for case in cases if (one := printed(file, *case))}
        if found:
            return compared(model_type, file, found)
    return 0, []


def compared(model_type: str, file: dict[str, Any], found: dict[tuple[str, int], Any]) -> tuple[int, Different]:
    path = extensible(read_config(copy.deepcopy(file)))[0]
    config = receivers.read(file, path, {})
    with torch.device("meta"):
        size = sum(parameter.numel() for parameter in made(config).parameters())
    if size > tiny.MOST_PARAMETERS:
        raise ValueError(f"{model_type}: {size} parameters; its configuration is not tiny")
    alone = Alone(config, part_of(file, path))
    if why := alone.apart(alone.model, alone.spec):
        return 0, [(model_type, "the file alone", why)]
    held, wrong = 0, []
    for (method, times), (extension, keywords) in found.items():
        whole = edited(file, extension.fragment)
        spec = part_of(whole, path)
        written, given = receivers.read(whole, path, {}), receivers.read(file, path, keywords)
        different = {"fragment": written}
        if given.to_dict() != written.to_dict():
            different["keywords"] = given
        for what, config in different.items():
            if why := alone.apart(run(config, alone.ids), spec):
                wrong.append((model_type, f"{method} {times}", what, why))
        held += 1
    return held, wrong


REASONS = {  # why a type is not tried here; test_transformers_takes_every_command has the rotary modules of all
    "its class refuses the small sizes": """
        cosmos3_edge cosmos3_edge_text csm depth_pro dots3_note_audio_encoder dots3_note_vision_encoder efficientloftr esmc
        esmfold2 fun_asr_nano gemma4_assistant gradium_phonon_tts granite_speech5_ctc granite_speech5_encoder inkling2
        kyutai_speech_to_text molmo2 nemo_speechlm nemotron3_5_transcribe_audio nemotron3_5_transcribe_word_timestamp
        nemotron3_diarization nemotron_h_omni nougat pocket_tts step3p5 step3p7 t5gemma2 t5gemma2_decoder t5gemma2_encoder
        t5gemma2_text zaya
    """,
    "its default is not made small by tiny.config_of": "colmodernvbert colpali colqwen2 pe_audio_encoder pi0",
    "it needs images, sound or two coordinates": """
        glmasr_encoder idefics lasr_ctc lasr_encoder nemotron3_5_transcribe_asr_audio nemotron3_diarization_audio neomme
        pe_audio_video_encoder pe_video_encoder qwen2_5_omni_dit qwen2_5_omni_token2wav qwen3_omni_moe_talker_code_predictor
        timesfm2_5
    """,
    "its attention does not call transformers' interface": "chameleon falcon gpt_neox_japanese hrm_text",
    "a part that has no model of its own, or makes its positions itself": """
        blt blt_global_transformer blt_local_decoder blt_local_encoder blt_patcher csm_depth_decoder_model deepseek_ocr2
        deepseek_ocr2_encoder deepseek_ocr2_text deepseek_ocr2_vision dia dia_decoder dia_encoder diffusion_gemma_text
        mllama mllama_text_model t5_gemma_module t5gemma voxtral_realtime_text
    """,
    "its class wants settings for one kind of layer": "cohere_compass",
    "its default cannot be run": "qwen3_omni_moe qwen3_omni_moe_talker_text",
}
UNTRIED = {name: why for why, names in REASONS.items() for name in names.split()}
EVERY = [(method, times) for method in METHODS for times in TIMES]
SAMPLE = (
    ("llama", "yarn", 4),
    ("gemma3", "ntk", 2),
    ("deepseek_v3", "yarn", 8),
    ("qwen2_vl", "linear", 4),
    ("mistral", "llama3", 2),
    ("phi3", "longrope", 4),
)


@pytest.mark.parametrize(("model_type", "method", "times"), SAMPLE)
def test_printed_settings_are_what_the_model_computes(model_type: str, method: str, times: int):
    held, wrong = turned(model_type, [(method, times)])
    assert wrong == []
    assert held == 1


@pytest.mark.acceptance
@pytest.mark.parametrize("model_type", [name for name in sorted(CONFIG_MAPPING_NAMES) if name not in UNTRIED])
def test_every_printed_setting_is_what_the_model_computes(model_type: str):
    assert turned(model_type, EVERY)[1] == []


def test_another_frequency_is_found():
    """The control: settings for 4 times the length against the encoding for twice the length."""
    (file,) = [next(files("llama"))]
    alone = Alone(receivers.read(file, "", {}), part_of(file, ""))
    fragments = [printed(file, "yarn", times)[0].fragment for times in (2, 4)]
    longer, wider = (run(receivers.read(file | one, "", {}), alone.ids) for one in fragments)
    assert alone.apart(longer, part_of(file | fragments[0], "")) == ""
    assert "roundings apart" in alone.apart(wider, part_of(file | fragments[0], ""))


@pytest.mark.parametrize("model_type", NORMALISED)
def test_a_magnitude_that_is_normalised_away_is_said_to_have_no_effect(model_type: str):
    extension, _ = printed(next(files(model_type)), "yarn", 4)
    assert (
        extension.note.en == "queries and keys are normalised after the rotation, so a scale of cos and sin has no effect"
    )
