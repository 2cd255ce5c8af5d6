"""The words that people type, and the entry that each should reach, chosen by what the field calls things."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
import time

import pytest

import in_process
import posenc
from posenc.catalogue import index, lookup
from posenc.catalogue.choose.choice import Answers

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
    "DataDependentAlibi": "bidirectional_fox",
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
    "MiniMax-01": "rope",
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
    "拉普拉斯": "lappe",
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
CLOSED = ("gpt-4", "claude", "gemini", "7b-instruct", "convnext")  # what nobody told, and what has none
NOTHING = (
    "qqqq",
    "frobnicate",
    "layernorm",
    "kv cache",
    "dropout",
    "banana",
    "adamw",
    "mamba",
    "bfloat16",
    "encodec",
    "set transformer",
    "",
    "-",
    "的",
    *CLOSED,
)


def test_the_table_is_as_long_as_people_s_words():
    assert len(KNOWN | GUESSED) >= 80
    assert set((KNOWN | GUESSED).values()) <= set(lookup.BY_NAME)


@pytest.mark.parametrize(("word", "name"), KNOWN.items())
def test_a_known_word_reaches_its_entry(word, name):
    first = lookup.find(word)[0]
    assert first.entry.name == name
    assert not first.guess


@pytest.mark.parametrize(("word", "name"), GUESSED.items())
def test_a_near_word_is_guessed_and_says_so(word, name):
    found = lookup.find(word)
    assert found[0].entry.name == name
    assert all(one.guess for one in found)
    assert len(found) <= 3
    assert "a guess" in lookup.hint(word)


@pytest.mark.parametrize("word", NOTHING)
def test_nonsense_and_other_fields_reach_nothing(word):
    assert lookup.find(word) == ()
    assert lookup.hint(word) == ""


@pytest.mark.acceptance
def test_every_name_and_alias_is_known():
    for entry in lookup.ENTRIES:
        for word in (entry.name, *entry.also_called, *entry.page.title.both()):
            first = lookup.find(word)[0]
            assert not first.guess, word
            assert entry in [one.entry for one in lookup.find(word)], word
        assert lookup.find(entry.name)[0].entry == entry


@pytest.mark.parametrize("word", ["rotery", "rotary", "bert", "qqqq", "graph"])
def test_an_error_is_short_and_says_where_all_names_are(word):
    with pytest.raises(ValueError, match="unknown encoding") as error:
        posenc.create(word)
    said = str(error.value)
    assert said.endswith("posenc list --all shows all names")
    assert len(re.findall(r'create\("|positions_by\("', said)) <= 3
    assert len(said) < 300


@pytest.mark.parametrize("at", range(0, 600, 40))
def test_a_model_type_of_inspect_reaches_what_it_uses(at):
    """Every fortieth: the file is what the tool makes, and each type is found by its own name."""
    import model_words

    types = [(name, one) for name, of_entry in json.loads(model_words.FILE.read_text("utf-8")).items() for one in of_entry]
    name, model_type = types[at % len(types)]
    assert model_words.entry_of(model_type) == name
    assert not lookup.find(model_type)[0].guess


@pytest.mark.acceptance
def test_models_json_is_what_its_tool_writes():
    import model_words

    assert json.loads(model_words.FILE.read_text("utf-8")) == model_words.types_by_entry()


def test_a_long_row_of_digits_is_read_once():
    """Digits that a pattern may cut in every way take as many steps as there are ways: 2^60 here."""
    assert lookup.find("a-" + "1" * 60 + "c") == ()


LONG = {"20000 letters": "q" * 20_000, "200 letters": "q" * 200, "words": "rope " * 4000, "汉字": "旋转" * 5000, "lines": "a\n" * 9000}


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
        done = in_process.posenc(*command, "--lang", "en") if command[0] in ("list", "choose") else in_process.posenc(*command)
        assert done.returncode == 2, command
        assert len(done.stdout + done.stderr) < 1500, command


def test_each_word_of_the_table_leads_to_an_entry():
    assert set(index.words()) <= set(lookup.BY_NAME)
    for name, of_entry in index.words().items():
        for word in (*of_entry.get("models", ()), *of_entry.get("people", ()), *of_entry.get("topics", ())):
            assert name in [one.entry.name for one in lookup.find(word)], (name, word)


def test_list_says_that_it_guesses():
    done = in_process.posenc("list", "rotery", "--lang", "en")
    assert done.returncode == 0
    assert "a guess" in done.stdout
    assert "rope" in done.stdout
    done = in_process.posenc("list", "rotery", "--lang", "zh")
    assert "猜测" in done.stdout
    done = in_process.posenc("list", "rotary", "--lang", "en")
    assert "guess" not in done.stdout
    done = in_process.posenc("list", "bert", "--lang", "en")
    assert "BERT uses it." in done.stdout
    done = in_process.posenc("list", "rotery", "--json", "--lang", "en")
    assert json.loads(done.stdout)[0]["name"] == "rope"
    assert "a guess" in done.stderr
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
