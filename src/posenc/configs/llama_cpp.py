"""What llama.cpp's code does with position for each architecture, where GGUF files do not say it.

Source: llama.cpp, `llama_model_rope_type` and the loading of hparams of each architecture; names as in gguf-py 0.19.
"""

from __future__ import annotations

from dataclasses import dataclass

from posenc.configs.say import say


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Rotary pairs are the neighbouring channels (2i, 2i + 1).
NEIGHBOURS = _names(
    """arcee arctic baichuan bailingmoe chameleon chatglm cohere2 command-r deci deepseek deepseek2 deepseek2-ocr ernie4_5
    ernie4_5-moe glm-dsa glm4 granite granitehybrid granitemoe internlm2 llada llama llama-embed llama4 maincoder
    minicpm mistral3 mistral4 neo-bert olmo plm smollm3 xverse"""
)
# Rotary pairs are halves (i, i + d/2).
HALVES = _names(
    """afmoe apertus bailingmoe2 bitnet codeshell cogvlm dbrx dots1 dream eurobert exaone exaone-moe exaone4 falcon
    falcon-h1 gemma gemma-embedding gemma2 gemma3 gemma3n gemma4 glm4moe gpt-oss gptneox grok grovemoe hunyuan-dense
    hunyuan-moe hunyuan_vl jais2 jina-bert-v3 lfm2 lfm2moe llada-moe mimo2 minicpm3 minimax-m2 modern-bert nemotron
    nomic-bert nomic-bert-moe olmo2 olmoe openelm orion paddleocr pangu-embedded phi2 phi3 phimoe plamo plamo2
    plamo3 qwen qwen2 qwen2moe qwen2vl qwen3 qwen35 qwen35moe qwen3moe qwen3next qwen3vl qwen3vlmoe rnd1 seed_oss
    smallthinker stablelm starcoder2 step35"""
)
# Of NEIGHBOURS, those whose own code has halves: the converter permutes the rows of q and k.
PERMUTED = NEIGHBOURS - _names(
    """chatglm cohere2 command-r deepseek2 deepseek2-ocr ernie4_5 ernie4_5-moe glm-dsa glm4 llama4 mistral4"""
)
# Pairs read three coordinates in turn, instead of section by section.
INTERLEAVED_AXES = frozenset(["qwen3vl", "qwen3vlmoe", "qwen35", "qwen35moe"])
LAST_CHANNELS = frozenset(["deepseek2", "deepseek2-ocr", "glm-dsa", "minicpm3", "mistral4", "plm"])
# Latent attention whose softmax scale follows YaRN (src/models/deepseek2.cpp, glm-dsa.cpp).
SCALED_SOFTMAX = frozenset(["deepseek2", "deepseek2-ocr", "glm-dsa", "mistral4"])
# What yarn_log_multiplier of the file is divided by; other architectures do not read it.
LOG_MULTIPLIER = {"deepseek2": 0.1, "deepseek2-ocr": 0.1, "mistral3": 1.0, "mistral4": 0.1}
BETAS = frozenset(["grok", "mistral3"])  # those that read YaRN's betas from the file; 32 and 1 elsewhere
EXTRAPOLATED = frozenset(["grok"])  # those that read yarn_ext_factor, the share of fast pairs' own frequencies
ALIBI = frozenset(["bloom", "jais", "jina-bert-v2", "mpt", "refact"])
ALIBI_BY_SIZE = {"baichuan": 40}  # ALiBi in the model with this number of layers, RoPE in the others
LEARNED = frozenset(["bert", "gpt2", "starcoder"])
BUCKETS = frozenset(["t5", "t5encoder"])
FARTHEST = 128  # of T5's buckets, whatever the model's own max_distance is
RECURRENT = frozenset(["arwkv7", "mamba", "mamba2", "rwkv6", "rwkv6qwen2", "rwkv7"])
NO_POSITIONS = frozenset(["jamba", "kimi-linear", "nemotron_h", "nemotron_h_moe"])  # recurrent layers beside attention
BOTH_WAYS = _names(
    """bert eurobert gemma-embedding jina-bert-v2 jina-bert-v3 modern-bert neo-bert nomic-bert nomic-bert-moe"""
)
SYMMETRIC = frozenset(["gemma-embedding", "modern-bert"])  # half of the window, rounded down, on either side of a token
NO_ROTATION_EVERY = {"llama4": 4, "smollm3": 4}  # every n-th layer has no positions
FULL_EVERY = {"qwen3next": 4, "qwen35": 4, "qwen35moe": 4}  # all other layers are recurrent
REFUSED = {
    "clip": "an image or audio encoder, whose positions llama.cpp takes from its code; give the config.json",
    "gptj": "llama.cpp names it but cannot run it",
    "wavtokenizer-dec": "a decoder of sound made of convolutions: there are no positions",
}
RECURRENCE = say("none: a recurrent state is carried from token to token")


@dataclass(frozen=True)
class Windows:
    """Which layers have the window of attention.sliding_window.

    period      every period-th layer is full, all others have the window
    full_first  the first layer of a period is the full one, not the last
    base        the base of windowed layers, which are not scaled then; None: as in the other layers
    unscaled    windowed layers are not scaled
    only        full layers have no positions
    """

    period: int
    full_first: bool = False
    base: float | None = None
    unscaled: bool = False
    only: bool = False

    def slides(self, layer: int) -> bool:
        return layer % self.period != (0 if self.full_first else self.period - 1)


WINDOWS = {
    "afmoe": Windows(4, only=True),
    "cohere2": Windows(4, only=True),
    "exaone-moe": Windows(4, only=True),
    "exaone4": Windows(4, only=True),
    "gemma-embedding": Windows(6, base=10000.0),
    "gemma2": Windows(2),
    "gemma3": Windows(6, base=10000.0),
    "gemma3n": Windows(5, base=10000.0),
    "gpt-oss": Windows(2),
    "modern-bert": Windows(3, full_first=True),
    "olmo2": Windows(4, unscaled=True),
    "plamo3": Windows(8),
    "smallthinker": Windows(4, full_first=True, only=True),
}
CHUNK, CHUNKED_EVERY = 8192, 4  # Llama 4: three layers in chunks, then a full one, whatever the file says
WARMTH = {
    "scale": 0.1,
    "trained_length": 8192,
    "offset": 1,
}  # Llama 4: queries of layers without rotation, constants of the code
