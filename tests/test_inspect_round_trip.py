"""What llama.cpp's own converter makes of each family's configuration reads as the configuration does.

gguf_round_trip.json has a row for each; make acceptance makes them anew. A row that is not "the same" has a reason here:
what llama.cpp really does otherwise, or what keeps the converter from writing a file.
"""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from pathlib import Path

import gguf
import pytest
from transformers import CONFIG_MAPPING

import gguf_logits
from gguf_round_trip import OUT, SAME

ROWS = json.loads(OUT.read_text(encoding="utf-8"))
NEWER = {  # row -> its architecture
    "cohere2_moe": "cohere2moe",
    "deepseek_v32": "deepseek32",
    "gemma4_unified_assistant": "gemma4-assistant",
    "granite_swa": "granite_swa",
    "granitemoe_swa": "granite_swa",
    "hrm_text": "hrm_text",
    "hy_v3": "hy_v3",
    "hy_v4": "hy_v4",
    "laguna": "laguna",
    "mellum": "mellum",
    "muse_glimmer": "muse-glimmer",
    "muse_glimmer_assistant": "dflash",
    "pocket_tts": "pockettts",
}
UNWRITTEN = {  # row -> the key of published files that the converter asks of transformers' class, by which it reads a file
    "deepseek_v4": "compress_ratios",
    "glm5_next": "linear_attn_config",
    "gpt-neox-20b": "rotary_pct",
    "gpt_neox": "rotary_pct",
    "mimo_v2_flash": "swa_head_dim",
    "minimax_m3_vl": "n_shared_experts",
    "pythia-6.9b": "rotary_pct",
    "step3p7": "num_attention_groups",
}
REASONS = [  # rows, one part of what they say -> what llama.cpp, or its converter, does
    (".*", r"a window of everything against \d+", "its code for llama and starcoder2 has no windows"),
    ("gpt[-_]oss.*", "truncate True against False", "llama_hparams has no such key: the range of pairs is rounded"),
    ("camembert", "max_positions 512 against 510", "the converter takes it for a BertModel, whose rows are all positions"),
    ("camembert", "row_offset None against 2", "no row is cut off for a BertModel: position p reads row p, not p + 2"),
    ("camembert", "padding_row None against 1", "a BertModel has no row of the padding"),
    ("falcon-rw-1b", "RoPE against FalconALiBi", "its code for falcon rotates always"),
    ("Kimi-K2-Instruct", "beta_fast 32 against 1", "only its code for grok and mistral3 reads betas: 32 and 1"),
    ("Kimi-K2-Instruct", "attention_factor 1 against none|mscale(_all_dim)? none against 1",
     "two spellings of one scale of cos and sin: mscale / mscale_all_dim = 1"),
    ("|".join(NEWER), "not read: .*general.architecture: '({})' is not known; .*".format("|".join(NEWER.values())),
     "an architecture that gguf-py 0.19, and so posenc, does not know"),
    ("hunyuan_vl", "not read: .*mrope_section: expected the number of pairs of each axis, got None; the code fails without",
     "the class's default has no sections, with which its own code fails"),
    ("qwen3_omni_moe", "not read: .*: qwen3vlmoe.attention.key_length: missing, and attention.head_count does not give it",
     "the class's default has a width that its heads do not divide, and no head_dim; published files have it"),
    ("granite_speech(_plus)?", "not converted: KeyError: 'GraniteSpeech(Plus)?ForConditionalGeneration'",
     "conversion/granite.py registers the class for its audio encoder only, though the table of text models names it"),
    ("qwen4_exp(_text)?", "not converted: error: required argument is not an integer",
     "the class's default leaves the sizes of the indexer at None, which cannot be written; no model is published"),
    ("dots3_note", "not converted: KeyError: 'num_hidden_layers'",
     "conversion/dots3.py reads the text model's keys at the top of the file; the class has them in text_config"),
    ("dots3_note_text", "not converted: ValueError: dots3-note conversion only supports noaux_tc/sigmoid expert gating",
     "it asks for scoring_func, which the class does not write"),
    *((name, f"not converted: KeyError: .*{key}.*", f"it asks for {key}, which transformers' class does not write")
      for name, key in UNWRITTEN.items()),
]  # fmt: skip
HEAD = re.compile(r"^(?:\w+, )?layer \d+: (?:(?:RoPE|Learned): )?")


def parts(result: str) -> list[str]:
    """The single differences of a row, without layer and encoding."""
    if result.startswith("not "):
        return [result]
    return [] if result == SAME else [HEAD.sub("", part) for part in result.split("; ")]


def reasons(name: str, part: str) -> list[int]:
    return [
        n
        for n, (names, pattern, _) in enumerate(REASONS)
        if re.fullmatch(names, name) and re.fullmatch(pattern, part, re.DOTALL)
    ]


def test_architectures_that_are_refused_are_newer_than_the_package_gguf():
    assert not set(NEWER.values()) & set(gguf.MODEL_ARCH_NAMES.values())
    assert {ROWS[name]["architecture"]: name for name in NEWER}.keys() == set(NEWER.values())


@pytest.mark.parametrize("name", UNWRITTEN)
def test_a_key_that_the_converter_asks_for_is_not_written_by_the_class(name):
    kind = {"gpt-neox-20b": "gpt_neox", "pythia-6.9b": "gpt_neox"}.get(name, name)
    written = CONFIG_MAPPING[kind]().to_dict()
    assert UNWRITTEN[name] not in written.get("text_config", written)


@pytest.mark.parametrize("name", ROWS)
def test_each_part_of_a_difference_is_one_that_llama_cpp_has(name):
    assert [part for part in parts(ROWS[name]["result"]) if not reasons(name, part)] == []


def test_a_part_without_a_reason_is_found_beside_one_that_has_one():
    found = parts("layer 0: a window of everything against 4096; layer 0: RoPE: base 1 against 2")
    assert [bool(reasons("mistral", part)) for part in found] == [True, False]


def test_the_factor_that_the_converter_writes_for_phi_4_is_the_one_that_transformers_assumes():
    assert math.sqrt(1 + math.log(131072 / 4096) / math.log(4096)) == pytest.approx(1.190238, abs=1e-6)


def test_most_families_read_the_same():
    assert [row["result"] for row in ROWS.values()].count(SAME) >= 158
    used = {n for name, row in ROWS.items() for part in parts(row["result"]) for n in reasons(name, part)}
    assert used == set(range(len(REASONS)))


@pytest.mark.acceptance
def test_the_rows_are_what_the_converter_and_the_reader_give(tmp_path):
    folder = gguf_logits.sources(tmp_path)
    script = Path(__file__).with_name("gguf_round_trip.py")
    done = subprocess.run([sys.executable, script, folder], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == ROWS
