"""Each family's configuration through llama.cpp's own converter: does its file read as the configuration does?

    python tests/gguf_round_trip.py LLAMA_CPP             prints the rows: family, architecture, what the two readings say
    python tests/gguf_round_trip.py LLAMA_CPP --write     writes them into gguf_round_trip.json

LLAMA_CPP is vendor/llama.cpp of an unpacked release of llama-cpp-python. No weights are made and no words: the converter
writes its metadata and the factors of pairs, which is all that has to do with position.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

OUT = Path(__file__).with_suffix(".json")
SAME = "the same"
FILES = [Path(__file__).parent / f"{name}.jsonl" for name in ("published", "remembered")]


ASKED = {  # keys of published files that the converter asks for and the classes, or the tables of models, do not write
    "bailing_moe": {"first_k_dense_replace": 1, "moe_intermediate_size": 512, "num_shared_experts": 1,
                       "num_experts": 256, "routed_scaling_factor": 2.5, "norm_topk_prob": True, "num_experts_per_tok": 8},
    "bamba": {"attn_rotary_emb": 64},
    "cohere2": {"rotary_pct": 1.0},
    "kimi_linear": {"linear_attn_config": {"full_attn_layers": [4, 8, 12, 16, 20, 24, 27], "head_dim": 128, "num_heads": 32,
                                           "short_conv_kernel_size": 4}, "first_k_dense_replace": 1},
    "kimi_k2": {"moe_intermediate_size": 2048, "intermediate_size": 18432},
    "falcon_h1": {"head_dim": 128},
    "hunyuan_v1_moe": {"moe_intermediate_size": [3072] * 32},
    "nomic_bert": {"n_positions": 8192, "activation_function": "swiglu", "mlp_fc1_bias": False, "mlp_fc2_bias": False,
                   "prenorm": False, "qkv_proj_bias": False, "causal": False, "rotary_emb_fraction": 1.0,
                   "rotary_emb_interleaved": False, "rotary_emb_base": 1000, "n_inner": 3072, "layer_norm_epsilon": 1e-12,
                   "rotary_emb_scale_base": None},
    "gpt2": {"n_ctx": 1024},
    "gpt_neox": {"rotary_pct": 0.25},
    "t5": {"decoder_start_token_id": 0},
    "minimax_m2": {"rotary_dim": 64},
    "phi3": {"rms_norm_eps": 1e-5, "intermediate_size": 8192},
}  # fmt: skip
QWEN2_VL = {"rope_type": "default", "mrope_section": [16, 24, 24], "rope_theta": 1000000.0}
QWEN3_VL = {"rope_type": "default", "mrope_section": [24, 20, 20], "mrope_interleaved": True, "rope_theta": 5000000.0}
TEXTS = {  # what published files say of their text model, where a default of the class stands for it
    "bamba": {"attn_layer_indices": [9, 18, 27]},
    "dbrx": {"attn_config": {"attn_pdrop": 0.0, "clip_qkv": 8.0, "kv_n_heads": 8, "rope_theta": 500000.0},
             "rope_parameters": {"rope_type": "default", "rope_theta": 500000.0}},
    "dots1": {"n_shared_experts": 2, "n_routed_experts": 128, "num_experts_per_tok": 6},
    "eurobert": {"classifier_pooling": "mean"},
    "glm4_moe": {"head_dim": 128},
    "glm4v": {"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [8, 12, 12],
                                  "partial_rotary_factor": 0.5}, "head_dim": 128},
    "glm4v_moe": {"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [8, 12, 12],
                                      "partial_rotary_factor": 0.5}, "head_dim": 128},
    "glm_ocr": {"rope_parameters": {"rope_type": "default", "rope_theta": 10000, "mrope_section": [16, 24, 24],
                                    "partial_rotary_factor": 1.0}, "head_dim": 128},
    "gemma4_unified": {"moe_intermediate_size": None},
    "gemma4_unified_assistant": {"moe_intermediate_size": None},
    "hunyuan_v1_moe": {"moe_topk": [8] * 32, "num_shared_expert": [1] * 32},
    "kimi_linear": {"layer_types": ["full_attention" if n + 1 in (4, 8, 12, 16, 20, 24, 27) else "linear_attention"
                                    for n in range(27)]},
    "lfm2_moe": {"layer_types": ["full_attention" if n in (2, 6, 10, 14, 18, 21) else "conv" for n in range(24)],
                 "num_hidden_layers": 24},
    "paddleocr_vl": {"rope_parameters": {**QWEN2_VL, "rope_theta": 500000.0}},
    "qwen2_5_vl": {"rope_parameters": QWEN2_VL},
    "qwen2_vl": {"rope_parameters": QWEN2_VL},
    "qwen3_vl": {"rope_parameters": QWEN3_VL},
    "qwen3_vl_moe": {"rope_parameters": QWEN3_VL},
    "solar_open": {"partial_rotary_factor": 1.0},
}  # fmt: skip


def whole(value: Any) -> Any:
    """A configuration of a table of models with its repeated numbers written out."""
    if isinstance(value, dict):
        return [value["repeat"][0]] * value["repeat"][1] if "repeat" in value else {k: whole(v) for k, v in value.items()}
    return value


def published() -> Iterator[tuple[str, dict[str, Any]]]:
    for line in "".join(file.read_text(encoding="utf-8") for file in FILES).splitlines():
        row = json.loads(line)
        yield row["name"], whole(row["config"])


def classes(model_type: str, known: dict[str, str]) -> list[str]:
    """The classes of a model type that the converter knows, causal language models first."""
    from transformers.models.auto import modeling_auto as auto

    tables = ("CAUSAL_LM", "SEQ_TO_SEQ_CAUSAL_LM", "IMAGE_TEXT_TO_TEXT", "MULTIMODAL_LM", "MASKED_LM")
    named = [getattr(auto, f"MODEL_FOR_{table}_MAPPING_NAMES", {}).get(model_type) for table in tables]
    named.append(auto.MODEL_MAPPING_NAMES.get(model_type))
    return [name for name in named if isinstance(name, str) and name in known]


def cases(known: dict[str, str]) -> dict[str, dict[str, Any]]:
    """Name -> configuration with its class: the defaults of every type that the converter knows, and published files."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING, CONFIG_MAPPING_NAMES

    found: dict[str, dict[str, Any]] = {}
    for model_type in CONFIG_MAPPING_NAMES:
        if named := classes(model_type, known):
            with contextlib.suppress(Exception):  # a few cannot be made without arguments
                config = json.loads(CONFIG_MAPPING[model_type]().to_json_string(use_diff=False))
                inside = config.get("text_config") or config
                inside |= TEXTS.get(model_type, {})
                found[model_type] = config | {"architectures": named[:1]}
    for name, config in published():
        own = [one for one in config.get("architectures") or () if one in known] or classes(config["model_type"], known)
        if own:
            found[name] = config | {"architectures": own[:1]}
    asked = {"vocab_size": 32000}
    return {name: {**asked, **ASKED.get(config["model_type"], {}), **config} for name, config in found.items()}


def converted(config: dict[str, Any], folder: Path) -> Path:
    """The file that the converter makes of a configuration: metadata, and tensors of factors."""
    import gguf
    from conversion import get_model_class

    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (folder / "tokenizer.json").write_text('{"model": {"type": "WordPiece"}}', encoding="utf-8")
    path = folder / "model.gguf"
    kind = get_model_class(config["architectures"][0])
    kind.no_mtp = True  # as with --no-mtp: layers that predict further tokens are counted in the weights
    made = kind(folder, gguf.LlamaFileType.MOSTLY_F16, path)
    made = getattr(made, "impl", made)
    made.set_gguf_parameters()
    for name, factors in made.generate_extra_tensors():
        made.gguf_writer.add_tensor(name, factors.numpy())
    made.gguf_writer.write_header_to_file(path=path)
    made.gguf_writer.write_kv_data_to_file()
    made.gguf_writer.write_tensors_to_file()
    made.gguf_writer.close()
    return path


def compared(config: dict[str, Any], path: Path) -> str:
    from posenc.configs.read import spec_of
    from posenc.configs.report.difference import differences

    found = differences(spec_of(path), spec_of(config))
    return "; ".join(f"{one.where}: {one.what}" if one.where else one.what for one in found[:3]) or SAME


def row(config: dict[str, Any]) -> dict[str, str]:
    """The architecture, and what the two readings say; or why there is no file, or no reading of it."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            path = converted(config, Path(folder))
        except Exception as error:
            said = str(error).replace(folder, "")
            return {"architecture": "", "result": f"not converted: {type(error).__name__}: {said[:120]}"}
        from gguf import GGUFReader

        architecture = GGUFReader(path).fields["general.architecture"].contents()
        try:
            return {"architecture": architecture, "result": compared(config, path)}
        except ValueError as error:  # ConfigError
            return {"architecture": architecture, "result": f"not read: {str(error).replace(folder, '')[:200]}"}


def table(llama_cpp: Path) -> dict[str, dict[str, str]]:
    sys.path[:0] = [str(llama_cpp), str(llama_cpp / "gguf-py")]
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    from conversion import TEXT_MODEL_MAP

    return {name: row(config) for name, config in sorted(cases(TEXT_MODEL_MAP).items())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("llama_cpp", type=Path)
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    found = table(asked.llama_cpp)
    if asked.write:
        lines = (f"{json.dumps(name)}: {json.dumps(one, ensure_ascii=False)}" for name, one in found.items())
        OUT.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    else:
        print(json.dumps(found, ensure_ascii=False, indent=1))


if __name__ == "__main__":
    main()
