"""The words that people type, and the entry that each should reach, chosen by what the field calls things."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
import time

import model_readings
import pytest

import in_process
import posenc
from cases import cases
from posenc.catalogue import index, lookup
from posenc.catalogue.choose.choice import Answers
from posenc.configs.read import spec_of
from sampling import first_only

# A word that is in the index, whole: a name, an alias, a model, a paper, an author.
KNOWN = {
    # rotations
    "rope": "rope",
    "rotary": "rope",
    "rotary embedding": "rope",
    "rotary_emb": "rope",
    "RoPE encoding": "rope",
    "roformer": "rope",
    "Llama-2": "rope",
    "qwen": "rope",
    "mixtral": "rope",
    "gemma": "rope",
    "olmo": "rope",
    "llama": "rope",
    "Mistral": "rope",
    "rotary2d": "axial_rope",
    "rotary_2d": "axial_rope",
    "rope2d": "axial_rope",
    "2D RoPE": "axial_rope",
    "rope-2d": "axial_rope",
    "vision rope": "axial_rope",
    "p-rope": "proportional",
    "p-RoPE": "proportional",
    "prope": "prope",
    "PRoPE": "prope",
    "gpt-neox": "partial",
    "gpt_neox": "partial",
    "GPTNeoX": "partial",
    "pythia": "partial",
    "gptj": "partial",
    "partial rotary": "partial",
    "rope-vit": "rope_mixed",
    "m-rope": "mrope",
    "qwen2-vl": "mrope",
    "Qwen3-VL": "interleaved_mrope",
    "mla": "decoupled_rope",
    "DeepSeek-V2": "decoupled_rope",
    # RoPE further
    "ntk": "ntk",
    "ntk-aware": "ntk",
    "dynamic ntk": "dynamic",
    "position interpolation": "linear",
    "pi": "linear",
    "abf": "adjusted_base",
    "rope_theta": "adjusted_base",
    "llama-3.1": "llama3",
    "llama3.1": "llama3",
    "llama 3.1": "llama3",
    "phi-3": "longrope",
    "gpt-oss": "yarn",
    "mscale": "deepseek_yarn",
    # added
    "sinusoid": "sinusoidal",
    "sincos": "sinusoidal",
    "whisper": "sinusoidal",
    "attention is all you need": "sinusoidal",
    "vaswani": "sinusoidal",
    "2d sincos": "sinusoidal_2d",
    "bert": "learned",
    "BERT": "learned",
    "gpt2": "learned",
    "GPT-2": "learned",
    "roberta": "learned",
    "bart": "learned",
    "gpt-3": "learned",
    "electra": "learned",
    "learned absolute": "learned",
    "wpe": "learned",
    "vit": "vit",
    "clip": "vit",
    "dinov2": "vit",
    "dinov3": "dinov3_rope",
    "wav2vec2": "convolutional",
    "hubert": "convolutional",
    "segment anything": "decomposed",
    "detr": "detr",
    # relative and biased
    "relative": "shaw",
    "music transformer": "shaw",
    "t5": "t5",
    "mt5": "t5",
    "flan-t5": "t5",
    "relative bias": "t5",
    "alibi": "alibi",
    "bloom": "alibi",
    "mpt": "alibi",
    "linear bias": "alibi",
    "press": "alibi",
    "2108.12409": "alibi",
    "arXiv:2104.09864": "rope",
    "https://arxiv.org/abs/2104.09864v5": "rope",
    "deberta-v3": "deberta_v2",
    "transformer-xl": "transformer_xl",
    "TransfoXL": "transformer_xl",
    "conformer": "transformer_xl",
    "larope": "larope_ids",
    "length-aware rope": "larope_ids",
    "Supertonic": "larope_ids",
    "mhrope": "mhrope",
    "vrope": "vrope",
    "circle-rope": "circle_rope_ids",
    "cogvideox-2b": "sinusoidal_3d",
    "bidirectional fox": "bidirectional_fox",
    "DataDependentAlibi": "fox",
    "data dependent alibi": "fox",
    "AbsolutePositionalEmbedding": "learned",
    "absolute position embedding": "learned",
    "RelPosBias": "swin",
    "rel_pos_bias": "t5_axes",
    "relative_position_bucket": "t5",
    "LlamaRotaryEmbedding": "rope",
    "inv_freq": "rope",
    "get_1d_rotary_pos_embed": "rope",
    "RotaryPositionalEmbeddings": "rope",
    "RotaryEmbeddingCat": "axial_rope",
    "EmbedND": "axial_rope",
    "WanRotaryPosEmbed": "axial_rope",
    "get_3d_rotary_pos_embed": "axial_rope",
    "VisionRotaryPositionalEmbeddings": "axial_rope",
    "RelPosMlp": "swin_v2",
    "DynamicPositionBias": "dynamic_position_bias",
    "拉普拉斯": "lappe",
    "Llama3ScaledRoPE": "llama3",
    "LlamaLinearScalingRotaryEmbedding": "linear",
    "LlamaDynamicNTKScalingRotaryEmbedding": "dynamic",
    "YaRNScalingRotaryEmbedding": "yarn",
    "DeepseekScalingRotaryEmbedding": "deepseek_yarn",
    "MRotaryEmbedding": "mrope",
    "CogVideoXPatchEmbed": "sinusoidal_3d",
    "Timesteps": "sinusoidal",
    "PerRowDataDependentAlibi": "per_row_fox",
    "Qwen2_5_VLRotaryEmbedding": "mrope",
    "GPTNeoXRotaryEmbedding": "partial",
    "WhisperPositionalEmbedding": "sinusoidal",
    "SigLIP 2": "vit",
    "siglip": "vit",
    "SAM": "decomposed",
    "Mochi": "rope_mixed",
    "CodeGeeX": "partial",
    "qwen3-vl": "interleaved_mrope",
    "swinv2": "swin_v2",
    "swin transformer": "swin",
    "layoutlmv3": "t5_axes",
    # none, layers, temperatures, numbers of tokens
    "none": "nope",
    "nopos": "nope",
    "no positional encoding": "nope",
    "kazemnejad": "nope",
    "llama4": "irope",
    "command a": "rnope_swa",
    "modernbert": "modernbert",
    "gemma-3": "gemma3",
    "logn": "log_n",
    "scalable softmax": "ssmax",
    "retnet": "xpos",
    "cu_seqlens": "packed",
    "householder": "path",
    "polar coordinates": "pope",
    "vision transformer": "vit",
    "3d rope": "axial_rope",
    "三维旋转": "axial_rope",
    "图像旋转位置编码": "axial_rope",
    "二维RoPE": "axial_rope",
    "图像rope": "axial_rope",
    "视频RoPE": "videorope",
    "YaRN缩放": "yarn",
    "正余弦编码": "sinusoidal",
    "千问3": "rope",
    "苏神": "rope",
    "freqs_cis": "rope",
    "apply_rotary_emb": "rope",
    "command-r": "rope",
    "command-r7b": "rnope_swa",
    "MiniMax-01": "partial",
    "musicgen": "sinusoidal",
    "BAAI/bge-m3": "learned",
    "LTX-Video": "ltx_ids",
    "FLUX.2-dev": "flux2_ids",
    "attention sinks": "streaming_llm",
    "laplacian": "lappe",
    "LapPE": "lappe",
    "random walk": "rwse",
    "graph": "lappe",
    "camera": "cameras",
    # models, companies and people
    "granite": "rope",
    "Yi": "rope",
    "grok": "rope",
    "nomic": "rope",
    "esm": "rope",
    "falcon": "rope",
    "qwen3": "rope",
    "olmo2": "rope",
    "Qwen2.5-7B-Instruct": "rope",
    "mistralai/Mixtral-8x7B-v0.1": "rope",
    "meta-llama/Llama-3.1-8B-Instruct": "llama3",
    "bert-base-uncased": "learned",
    "Phi-3-mini-4k-instruct": "longrope",
    "opt-125m": "learned",
    "chatglm": "partial",
    "glm4": "partial",
    "deepseek": "decoupled_rope",
    "deepseek-v3.2": "decoupled_rope",
    "kimi": "decoupled_rope",
    "jina": "alibi",
    "longformer": "learned",
    "xlm-roberta": "learned",
    "informer": "sinusoidal",
    "parakeet": "transformer_xl",
    "perceiver": "learned",
    "sd3": "sinusoidal_2d",
    "dit": "sinusoidal_2d",
    "nerf": "random_fourier",
    "Jianlin Su": "rope",
    "苏剑林": "rope",
    "通义千问": "rope",
    "百川": "rope",
    "文心": "rope",
    "盘古": "rope",
    "智谱": "partial",
    "混元": "ntk",
    # Chinese
    "旋转": "rope",
    "旋转编码": "rope",
    "旋转位置嵌入": "rope",
    "正弦": "sinusoidal",
    "可学习": "learned",
    "相对位置": "shaw",
    "线性偏置": "alibi",
    "二维旋转": "axial_rope",
    "多模态旋转": "mrope",
    "位置插值": "linear",
    "动态NTK": "dynamic",
    "部分旋转": "partial",
    "无位置": "nope",
    "遗忘门": "fox",
    "极坐标": "pope",
    "图": "lappe",
    "树": "tree_paths",
}

# A word that is only near, or a part: the first guess.
GUESSED = {
    "rop": "rope",
    "mae": "sinusoidal_2d",
    "哪吒": "nezha",
    "窗口": "swin",
    "rotery": "rope",
    "sinusodal": "sinusoidal",
    "alibbi": "alibi",
    "alib": "alibi",
    "longrop": "longrope",
    "transfomer xl": "transformer_xl",
    "laplacain": "lappe",
    "forgetting": "fox",
    "kernelized": "kerple",
    "projective": "prope",
    "arithmetic": "abacus",
    "recommendations": "hstu",
    "context window extension": "yarn",
    "speech synthesis": "scaled_sinusoidal",
    "video": "videorope",
    "视频": "videorope",
    "audio": "sinusoidal",
    "speech": "sinusoidal",
    "语音": "sinusoidal",
    "音频": "sinusoidal",
    "time series": "rope",
    "时间序列": "rope",
    "image": "axial_rope",
    "图像": "axial_rope",
    "图片": "axial_rope",
    "graph neural network": "graphormer",
    "图神经网络": "graphormer",
    "long context": "yarn",
    "长文本": "yarn",
    "Ofir Press": "alibi",
    "peter shaw": "shaw",
    "point transformer": "axial_rope",
    "speech transformer": "sinusoidal",
    "swin transfomer": "swin",
    "timestamps": "to_rope",
    "时间编码": "to_rope",
    "timestep embedding": "sinusoidal",
    "attention temperature": "log_n",
    "视频生成": "axial_rope",
    "extrapolation": "alibi",
    "外推": "alibi",
    "stable diffusion": "sinusoidal_2d",
    "protein": "rope",
}
CLOSED = ("gpt-4", "claude", "gemini", "7b-instruct")  # what nobody told, and what has none
NOTHING = (
    "qqqq",
    "frobnicate",
    "layernorm",
    "kv cache",
    "dropout",
    "banana",
    "adamw",
    "bfloat16",
    "set transformer",
    "",
    "-",
    "的",
    *CLOSED,
)


def test_the_table_is_as_long_as_people_s_words():
    assert len(KNOWN | GUESSED) >= 80
    assert set((KNOWN | GUESSED).values()) <= set(lookup.BY_NAME)


@cases("word, name", KNOWN.items())
def test_a_known_word_reaches_its_entry(word, name):
    first = lookup.find(word)[0]
    assert first.entry.name == name
    assert not first.guess


@cases("word, name", GUESSED.items())
def test_a_near_word_is_guessed_and_says_so(word, name):
    found = lookup.find(word)
    assert found[0].entry.name == name
    assert all(one.guess for one in found)
    assert len(found) <= 3
    assert "a guess" in lookup.hint(word)


@cases("word", NOTHING)
def test_nonsense_and_other_fields_reach_nothing(word):
    assert lookup.find(word) == ()
    assert lookup.hint(word) == ""


@pytest.mark.parametrize("word", ["mamba", "Mamba-2", "Falcon Mamba", "RWKV", "xlstm", "convnext", "resnet", "encodec"])
def test_a_model_without_attention_is_said_to_have_no_positional_encoding(word):
    assert lookup.find(word) == ()
    assert lookup.hint(word) == f"; {word} has no attention, and so no positional encoding"


@pytest.mark.acceptance
@pytest.mark.parametrize(
    ("model", "names"),
    [  # timm 1.0.31, models/eva.py: rope_type and use_abs_pos_emb of each
        ("vit_small_patch16_rope_224.naver_in1k", ["axial_rope"]),
        ("timm/vit_large_patch16_rope_mixed_224", ["rope_mixed"]),
        ("vit_small_patch16_rope_ape_224", ["axial_rope", "vit"]),
        ("vit_base_patch16_rope_mixed_ape_224", ["rope_mixed", "vit"]),
        ("vit_betwixt_patch16_rope_reg4_gap_256", ["axial_rope"]),
        ("vit_huge_plus_patch16_dinov3_qkvb", ["dinov3_rope"]),
        ("vit_base_patch16_224", ["vit", "grid"]),
    ],
)
def test_a_name_of_timm_s_leads_to_what_the_model_has(model, names):
    """Each led to vit, the learned grid, which only the last has alone."""
    assert [match.entry.name for match in lookup.find(model)] == names


@pytest.mark.parametrize("part", first_only([(4,), (1,)]))
def test_every_name_and_alias_is_known(part):
    for entry in lookup.ENTRIES[::part]:
        for word in (entry.name, *entry.also_called, *entry.page.title.both()):
            found = lookup.find(word)
            assert not found[0].guess, word
            assert entry in [one.entry for one in found], word
            assert word != entry.name or found[0].entry == entry


@pytest.mark.parametrize("word", ["rotery", "rotary", "bert", "qqqq", "graph"])
def test_an_error_is_short_and_says_where_all_names_are(word):
    with pytest.raises(ValueError, match="unknown encoding") as error:
        posenc.create(word)
    said = str(error.value)
    assert said.endswith("posenc list --all shows all names")
    assert len(re.findall(r'create\("|positions_by\("', said)) <= 3
    assert len(said) < 300


@cases("at", range(0, 600, 40))
def test_a_model_type_of_inspect_reaches_what_it_uses(at):
    """Every fortieth: the file is what the tool makes, and each type is found by its own name."""
    import model_words

    table = json.loads(model_words.FILE.read_text("utf-8"))
    types = [(name, one) for name, of_entry in table.items() if name for one in of_entry]
    name, model_type = types[at % len(types)]
    assert model_words.entry_of(model_type) == name
    assert not lookup.find(model_type)[0].guess


@pytest.mark.acceptance
def test_models_json_is_what_its_tool_writes():
    import model_words

    assert json.loads(model_words.FILE.read_text("utf-8")) == model_words.types_by_entry()
    assert json.loads(model_words.CLASSES_FILE.read_text("utf-8")) == model_words.classes_by_entry()


def test_a_long_row_of_digits_is_read_once():
    """Digits that a pattern may cut in every way take as many steps as there are ways: 2^60 here."""
    assert lookup.find("a-" + "1" * 60 + "c") == ()


LONG = {
    "20000 letters": "q" * 20_000,
    "200 letters": "q" * 200,
    "words": "rope " * 4000,
    "汉字": "旋转" * 5000,
    "lines": "a\n" * 9000,
}


@pytest.mark.parametrize("word", LONG.values(), ids=LONG)
def test_a_long_word_is_refused_at_once_and_not_given_back_whole(word):
    """A word of 200 letters took seconds, one of 20 000 a minute, and each error repeated it."""
    lookup.find("rotery")  # reads the index
    began = time.process_time()
    assert lookup.find(word) == ()
    assert lookup.hint(word) == ""
    assert lookup.look_up(word) is None
    assert time.process_time() - began < 0.25
    refused = [
        lambda: posenc.create(word, d_model=32, n_heads=4),
        lambda: posenc.create("rope", d_head=8, **{word: 1}),
        lambda: posenc.positions_by(word),
        lambda: posenc.positions_by("randomized", batch=1, length=4, **{word: 1}),
        lambda: getattr(posenc, word),
        lambda: Answers(of=word),
        lambda: Answers(domain=word),
    ]
    for call in refused:
        with pytest.raises((ValueError, TypeError, AttributeError)) as error:
            call()
        assert len(str(error.value)) < 600
        assert "\n" not in str(error.value)
    for command in (
        ("list", word),
        ("choose", "--of", word),
        ("choose", "--domain", word),
        ("choose", "--kernel", word),
        ("show", word),
        ("export-tables", word),
        ("compare", "--encodings", word),
    ):
        done = in_process.posenc(*command, LC_ALL="en")
        assert done.returncode == 2, command
        assert len(done.stdout + done.stderr) < 1500, command


@pytest.mark.parametrize("part", first_only([(4,), (1,)]))
def test_each_word_of_the_table_leads_to_an_entry(part):
    assert set(index.words()) <= set(lookup.BY_NAME)
    for name, of_entry in [*index.words().items()][::part]:
        for word in (*of_entry.get("models", ()), *of_entry.get("people", ()), *of_entry.get("topics", ())):
            assert name in [one.entry.name for one in lookup.find(word)], (name, word)


@pytest.mark.parametrize(
    ("word", "entry", "others"),
    [
        ("HoPE", "hope", ["HoPE, hybrid", "HoPE, hyperbolic"]),
        ("CoPE", "cope", ["CoPE, clipped"]),
        ("CaPE", "cape", ["CaPE, of cameras"]),
        ("rope", "rope", []),
    ],
)
def test_a_name_of_several_methods_shows_all(word, entry, others):
    assert [method.title for method in lookup.namesakes(word, lookup.BY_NAME[entry])] == others
    assert all(f"{other} (arXiv " in lookup.hint(word) for other in others)
    printed = in_process.posenc("list", word, "--lang", "en").stdout
    assert all(f"{other} is another method" in " ".join(printed.split()) for other in others)


def test_list_says_that_it_guesses():
    done = in_process.posenc("list", "rotery", "--lang", "en")
    assert done.returncode == 0
    assert done.stdout == ("No encoding is called 'rotery'. A guess, which posenc list NAME describes:\n  rope  RoPE\n")
    done = in_process.posenc("list", "rotery", "--lang", "zh")
    assert "猜测" in done.stdout
    done = in_process.posenc("list", "rotary", "--lang", "en")
    assert "guess" not in done.stdout
    done = in_process.posenc("list", "bert", "--lang", "en")
    assert "BERT uses it." in done.stdout
    done = in_process.posenc("list", "rotery", "--json", "--lang", "en")
    assert json.loads(done.stdout)[0]["name"] == "rope"
    assert "A guess" in done.stderr
    refused = in_process.posenc("list", "qqqq")
    assert refused.returncode == 2
    assert len(refused.stderr) < 600


def test_importing_does_not_load_the_index():
    code = "import sys, posenc, posenc.catalogue; posenc.names(); print('rapidfuzz' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "False"
    )


@pytest.mark.parametrize(
    ("name", "word", "right"),
    [
        ("rope", "theta", "'base'"),
        ("rope", "rope_theta", "'base'"),
        ("rope", "dim", "'d_head'"),
        ("rope", "head_dim", "'d_head'"),
        ("rope", "interleaved", "'layout'"),
        ("rope", "inv_freq", "'frequencies'"),
        ("rope", "num_heads", "'n_heads'"),
        ("rope", "max_seq_len", "'max_positions'"),
        ("learned", "max_seq_len", "'max_positions'"),
        ("learned", "max_len", "'max_positions'"),
        ("learned", "n_positions", "'max_positions'"),
        ("learned", "block_size", "'max_positions'"),
        ("learned", "dim", "'d_model'"),
        ("sinusoidal", "embed_dim", "'d_model'"),
        ("sinusoidal", "temperature", "'base'"),
        ("alibi", "num_heads", "'n_heads'"),
        ("alibi", "nhead", "'n_heads'"),
        ("t5", "num_buckets", "'n_buckets'"),
        ("t5", "causal", "'bidirectional'"),
        ("partial", "rotary_pct", "'fraction'"),
        ("rope", "partial_rotary_factor", "'rotary_dim'"),
        ("linear", "scaling_factor", "'factor'"),
        ("yarn", "original_max_position_embeddings", "'trained_length'"),
        ("dynamic", "original_max_position_embeddings", "'trained_length'"),
        ("yarn", "original_length", "'trained_length'"),
        ("llama3", "original_length", "'trained_length'"),
        ("longrope", "original_length", "'trained_length'"),
        ("log_n", "length", "'trained_length'"),
        ("ministral_temperature", "length", "'trained_length'"),
        ("ntk", "alpha", "'factor'"),
        ("mrope", "mrope_section", "'sizes'"),
        ("shaw", "max_relative_position", "'max_distance'"),
        ("transformer_xl", "dim", "'d_model' or 'd_head'"),
    ],
)
def test_a_wrong_argument_says_the_right_one(name, word, right):
    with pytest.raises(TypeError) as error:
        posenc.create(name, **{word: 8})
    assert f"{word!r}; did you mean {right}?" in str(error.value)


def test_a_wrong_argument_of_a_way_to_number_tokens_says_the_right_one():
    with pytest.raises(TypeError, match="'batch_size'; did you mean 'batch'"):
        posenc.positions_by("randomized", batch_size=2, length=4)
    with pytest.raises(TypeError, match="'seq_len'; did you mean 'max_positions' or 'length'"):
        posenc.positions_by("randomized", batch=2, seq_len=4)


def test_the_trained_length_has_one_name():
    """In the catalogue and in frequencies. `length` is that of a request, or the one that RIFLEx is to reach."""
    makers = {name: lookup.BY_NAME[name].maker() for name in posenc.names()}
    makers |= {name: getattr(posenc.frequencies, name) for name in ("yarn", "llama3", "longrope", "dynamic", "dype")}
    for name, maker in makers.items():
        takes = set(inspect.signature(maker).parameters)
        assert not takes & {"original_length", "original_max_position_embeddings"}, name
        assert "length" not in takes or name in ("rope", "riflex", "dynamic", "longrope"), name


def test_no_guess_is_made_for_a_word_that_means_something_else_here():
    assert lookup.find("flash attention") == ()
    assert lookup.look_up("flash attention") == "posenc.attend(q, k, v, encoding, at_q)"
    assert lookup.find("positional_encoding")[0].entry.name == "sinusoidal"  # known, not guessed


# What a model is listed under, against its reader ---------------------------------------------------------------------

READ_IN_PARTS = {  # what is listed of a part of a model, or of a model with other keys than its name has in read_as.json
    "Gemma 4 (vision)": {"model_type": "gemma4_vision"},
    "Qwen2.5 (beyond 32k tokens)": {
        "model_type": "qwen2",
        "rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768},
    },
    "SeamlessM4T v2 (keys only)": {"model_type": "seamless_m4t_v2", "speech_encoder_left_chunk_num": 128},
}
SEEN_IN_THE_CODE = {  # what the reader reads otherwise, or not; and where it stands
    "ViT-MAE": "transformers, models/vit_mae: a frozen table that is filled with sinusoids",
    "Funnel": "its own class, of_families/funnel.py: Transformer-XL's, pooled",
    "Funnel Transformer": "its own class, of_families/funnel.py: Transformer-XL's, pooled",
    "Qwen2.5-1M": "vLLM, dual_chunk_attention_config; transformers does not read it",
    "Qwen2 (beyond 32k tokens)": "vLLM, dual_chunk_attention_config; transformers does not read it",
    "DeepSeek-V4": "transformers, models/deepseek_v4: its keys are its values",
    "Qwen (the first)": "modeling_qwen.py of the hub: use_dynamic_ntk, use_logn_attn, which the reader remarks on",
    "Inkling": "transformers, models/inkling: log_scaling_alpha",
    "Inkling 2": "transformers, models/inkling: log_scaling_alpha",
}
NO_READER = {  # models that `posenc inspect` does not read, and where it is said what they have
    "Sana": "diffusers, sana_transformer.py: no positions; its Mix-FFN is convolutional",
    "the original Transformer": "arXiv 1706.03762, section 3.5",
    "MoCo v3": "facebookresearch/moco-v3, vits.py, build_2d_sincos_position_embedding",
    "DiT": "facebookresearch/DiT, models.py, get_2d_sincos_pos_embed",
    "PixArt": "diffusers, pixart_transformer_2d.py",
    "GPT-3": "arXiv 2005.14165, section 2.1: the architecture of GPT-2",
    "FastSpeech 2 (ESPnet)": "espnet, ScaledPositionalEncoding",
    "Transformer TTS": "arXiv 1809.08895, section 3.2",
    "research on source code": "arXiv 2002.11518",
    "NeRF": "arXiv 2003.08934, section 5.1",
    "Graph Transformer": "arXiv 2012.09699",
    "BERT beyond 512 tokens, in bert4keras": "bert4keras, layers.py, hierarchical",
    "CPVT": "arXiv 2102.10882",
    "Lumos-1": "Yuan et al. 2025, section 3",
    "DaViT": "arXiv 2204.03645; timm, davit.py, ConvPosEnc",
    "Twins": "arXiv 2104.13840; timm, twins.py, PosConv",
    "NEZHA": "arXiv 1909.00204",
    "Music Transformer": "arXiv 1809.04281",
    "Transformer-XL": "arXiv 1901.02860",
    "Conformer": "arXiv 2005.08100, section 2.1",
    "MViTv2": "arXiv 2112.01526",
    "Replit": "replit-code-v1-3b: MPT's code, alibi: true",
    "NeMo": "NVIDIA/NeMo, sandwich",
    "CROMA": "arXiv 2311.00566",
    "TITAN": "arXiv 2411.19666",
    "Chronos": "chronos-forecasting, src/chronos: T5's code",
    "HTSAT": "arXiv 2202.00874",
    "MaxViT": "timm, maxxvit.py: RelPosBias and RelPosBiasTf",
    "TinyViT": "timm, tiny_vit.py",
    "EfficientFormer": "timm, efficientformer.py",
    "Graphormer": "arXiv 2106.05234",
    "BERT models with ALiBi": "issue 5 of ALiBi's repository",
    "HSTU": "arXiv 2402.17152",
    "generative recommenders of Meta": "arXiv 2402.17152",
    "盘古": "openPangu, modeling_openpangu_dense.py: apply_rotary_pos_emb",
    "Pangu": "openPangu, modeling_openpangu_dense.py: apply_rotary_pos_emb",
    "Moirai": "uni2ts, model/moirai: RotaryProjection",
    "LeX Transformer": "arXiv 2212.10554",
    "RetNet": "arXiv 2307.08621",
    "EVA-02": "arXiv 2303.11331",
    "Lumina": "diffusers, transformer_lumina2.py, Lumina2RotaryPosEmbed",
    "Z-Image": "diffusers, transformer_z_image.py, RopeEmbedder",
    "Cosmos": "diffusers, transformer_cosmos.py, CosmosRotaryPosEmbed",
    "llama.cpp": "llama.cpp, grp-attn-n",
    "ChunkLlama": "HKUNLP/ChunkLlama",
    "vLLM": "vLLM, dual_chunk_flash_attn",
    "Ming-Omni": "arXiv 2506.09344",
    "x-transformers": "lucidrains/x-transformers, x_transformers.py",
    "XLRON": "micdoh/XLRON",
    "CSWin": "arXiv 2107.00652",
    "flash-linear-attention": "fla-org/flash-linear-attention, fla/layers",
    "the first half of YaRN": "arXiv 2309.00071, section 3.2",
    "CLEX-LLaMA-2-7B": "DAMO-NLP-SG/CLEX",
    "CLEX-Phi-2": "DAMO-NLP-SG/CLEX",
    "CLEX-Mixtral-8x7B": "DAMO-NLP-SG/CLEX",
}
RESEARCH = re.compile("[:：]| by ")


def listed():
    """Every model under an entry that is no way to number tokens, as it is written there."""
    for entry in lookup.ENTRIES:
        for written in (*entry.used_by, *index.words().get(entry.name, {}).get("models", ())):
            if entry.kind != "positions" and not RESEARCH.search(written):
                yield entry, written


def read_as(written):
    """The configuration of a model as it is written in a list of users."""
    bare = re.split(" *[(]", written)[0]
    return READ_IN_PARTS.get(written) or model_readings.configuration(bare)


def has(spec, entry):
    """Whether a model's layers, as its reader sees them, have what an entry is."""
    layers = [layer for _, part in spec.walk() for layer in part.layers if layer.attends]
    uses = [use for layer in layers for use in layer.uses]
    turns = [(dict(use.arguments), use.rotation) for use in uses if use.rotation is not None]
    kinds = {turn.kind for _, turn in turns}
    maps = {name for _, turn in turns for name, _ in turn.maps}
    narrow = {bool(arguments.get("trailing")) for arguments, turn in turns if turn.width < arguments["d_head"]}
    bases = [{use.rotation.base for layer in layers if (layer.reach is None) == wide for use in layer.uses if use.rotation}
             for wide in (True, False)]  # fmt: skip
    bare = [layer for layer in layers if all("emperature" in use.name for use in layer.uses)]
    special = {
        "nope": bool(bare),
        "rnope_swa": bool(bases[1]) and any(layer.reach is None for layer in bare),
        "irope": any(layer.chunk for layer in layers) and any(layer.chunk is None for layer in bare),
        "gemma3": bool(bases[0] and bases[1]) and bases[0] != bases[1],
        "modernbert": bool(bases[0] and bases[1]) and bases[0] != bases[1],
        "rope": any(turn.width == arguments["d_head"] for arguments, turn in turns),
        "partial": False in narrow,
        "decoupled_rope": True in narrow,
        "axial_rope": "axial" in maps or "configs.by_axis.by_axis" in kinds,
        "dinov3_rope": {"axial", "in_turns"} <= maps,
        "mrope": "sections" in maps,
        "interleaved_mrope": "interleaved_sections" in maps,
        "pixtral_rope": "strided" in maps,
        "deepseek_yarn": "yarn" in kinds and "softmax_mscale" in maps,
        "ntk": "ntk_alpha" in kinds,
        "adjusted_base": any(turn.kind == "rotary" and turn.base > 10000 for _, turn in turns),
    }
    scaled = entry.kind == "scaled" or entry.name == "proportional"
    return special.get(entry.name, entry.name in kinds if scaled else entry.class_name in {use.name for use in uses})


def test_a_model_is_listed_under_what_its_reader_finds():
    """Mochi stood under axial RoPE, CodeGeeX and GPT-J under RoPE of all channels, ViT under BERT's table. Every name."""
    wrong, unread = [], set()
    for entry, written in listed():
        if (config := read_as(written)) is None:
            unread.add(written)
        elif written not in SEEN_IN_THE_CODE and not has(spec_of(config), entry):
            wrong.append((entry.name, written))
    assert not wrong
    assert unread == set(NO_READER) - set(model_readings.MODELS)
    assert set(SEEN_IN_THE_CODE) | set(READ_IN_PARTS) <= {written for _, written in listed()}


def test_every_configuration_is_that_of_a_name_in_a_list():
    """read_as.json has no row that nothing reads, and posenc inspect reads each."""
    names = {term.written for term in lookup.every_term() if term.role in index.USERS}
    assert set(model_readings.READ_AS) - set(model_readings.MODELS) <= names  # some have no name of the catalogue
    for name in model_readings.READ_AS:
        assert [*spec_of(model_readings.configuration(name)).walk()], name
