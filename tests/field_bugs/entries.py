"""The shipped bugs that this folder tests, one entry each: what went wrong, where, and which rule of posenc excludes it.

Classes: A angles and dtypes, B construction and loading, C caches and hidden state, D scalings and configurations,
E layouts, F which position a token has, G kernels, shapes and gradients, H ALiBi, I relative biases, J tables and
pictures, K export.
"""

from __future__ import annotations

from dataclasses import dataclass

RULES = {
    1: "positions are passed, never inferred from a length, an index, a rank or a cache",
    2: "a token's row depends on itself and its own coordinates only; methods by length return another encoding",
    3: "the configuration is the only truth: no parameters, buffers or tables in a fixed encoding",
    4: "forward writes nothing; tables travel with the positions and know their owner",
    5: "angles in fp64, rotation in fp32, one rounding at the end, autocast off inside, real numbers only",
    6: "the layout is a type, carried with the frequencies, never guessed",
    7: "the scale of cos and sin and the scale of the softmax are two named numbers",
    8: "configurations are read strictly; what is missing, unknown or of a wrong size is said",
    9: "buckets and grids in whole numbers; slopes from the global number of heads, then sliced",
    10: "values are checked where they are made, ranges at the table",
    11: "one function gives a bias for (query position, key position); every backend agrees with the reference or refuses",
}


@dataclass(frozen=True)
class Entry:
    """One shipped bug.

    number   its name here; tests of it are test_<number>_…
    title    what went wrong
    threads  public threads, the largest project first
    rule     the number of the rule in RULES that excludes it
    left     what of it cannot run here, and why; empty where all of it runs on the CPU
    """

    number: str
    title: str
    threads: tuple[str, ...]
    rule: int
    left: str = ""


def _entry(number: str, title: str, threads: str, rule: int, left: str = "") -> Entry:
    return Entry(number, title, tuple(f"https://github.com/{thread}" for thread in threads.split()), rule, left)


ENTRIES = (
    _entry(
        "A1",
        "the table is computed in the dtype of the model",
        "EleutherAI/gpt-neox/issues/1003 EleutherAI/gpt-neox/pull/1016",
        5,
    ),
    _entry(
        "A2",
        ".half() rounds the frequencies, and .float() does not bring them back",
        "huggingface/transformers/issues/25681 NVIDIA-NeMo/Automodel/pull/2549 sgl-project/sglang-jax/issues/1472 "
        "tenstorrent/tt-metal/pull/54528",
        3,
    ),
    _entry(
        "A3",
        "the table is made again from rounded frequencies when the sequence grows",
        "huggingface/transformers/issues/29496",
        3,
    ),
    _entry(
        "A4",
        "a training engine casts buffers behind the module's back",
        "deepspeedai/DeepSpeed/issues/5812 deepspeedai/DeepSpeed/pull/8066 deepspeedai/DeepSpeed/issues/4932",
        3,
    ),
    _entry(
        "A5",
        "autocast turns the product of positions and frequencies into 16 bits",
        "huggingface/diffusers/pull/13922 huggingface/transformers/pull/29285 keras-team/keras-hub/pull/1497",
        5,
    ),
    _entry(
        "A6",
        "the rotation itself is computed in 16 bits",
        "Dao-AILab/flash-attention/issues/823 NVIDIA/TransformerEngine/issues/1245",
        5,
    ),
    _entry(
        "A8",
        "range reduction fails at long positions, and fp32 angles drift",
        "kekzl/imp/pull/1325 tenstorrent/tt-metal/issues/33971 tenstorrent/tt-metal/issues/51845",
        5,
        "The fast-math part needs CUDA: test_A8_on_cuda.",
    ),
    _entry(
        "B1",
        "after construction on meta and to_empty the tables are garbage",
        "huggingface/transformers/issues/45902 NovaSky-AI/SkyRL/issues/1709 NovaSky-AI/SkyRL/pull/1725 "
        "hiyouga/LlamaFactory/pull/10820",
        3,
    ),
    _entry("B2", "an index buffer is never initialised", "huggingface/pytorch-image-models/issues/2661", 3),
    _entry(
        "B3",
        "weight initialisation overwrites a fixed table",
        "huggingface/transformers/issues/29807 huggingface/transformers/issues/31387 huggingface/transformers/pull/44454",
        3,
    ),
    _entry("B4", "a sinusoid is trained without a word", "huggingface/transformers/pull/26032", 3),
    _entry(
        "B5",
        "stored tables are missing or unexpected when a checkpoint is loaded",
        "vllm-project/vllm/issues/1977 meta-pytorch/gpt-fast/issues/42 aws-neuron/neuronx-nemo-megatron/pull/21 "
        "huggingface/transformers/pull/35255 EleutherAI/gpt-neox/pull/1168 huggingface/transformers/pull/19587",
        3,
    ),
    _entry(
        "B7",
        "complex tables lose their imaginary part in a cast, or stop a compiler",
        "tenstorrent/tt-metal/pull/27426 vllm-project/vllm-omni/pull/6571 vllm-project/vllm-omni/pull/5808",
        5,
        "NPUs without complex numbers are not at hand; no complex number is in any graph.",
    ),
    _entry("C1", "the key of a cache omits an argument", "lucidrains/rotary-embedding-torch/issues/11", 4),
    _entry(
        "C2",
        "a cached bias is cut for another shape",
        "lucidrains/x-transformers/pull/90 lucidrains/x-transformers/issues/153",
        4,
    ),
    _entry(
        "C3",
        "a cache of the whole process omits the dtype, leaks or thrashes",
        "vllm-project/vllm/pull/4835 NVIDIA/TensorRT-LLM/pull/3378 lucidrains/rotary-embedding-torch/issues/15",
        4,
    ),
    _entry("C5", "the module keeps what belongs to a request", "Blaizzy/mlx-vlm/pull/1143 Blaizzy/mlx-vlm/issues/1415", 4),
    _entry(
        "C6",
        "tables and tokens are on different devices",
        "huggingface/transformers/issues/35505 huggingface/transformers/pull/43369 "
        "lucidrains/rotary-embedding-torch/pull/48 unslothai/unsloth/pull/2862",
        4,
        "CUDA besides the CPU and meta needs CUDA: test_C6_on_cuda.",
    ),
    _entry(
        "C7",
        "a captured or compiled graph sees a table that has changed",
        "vllm-project/vllm/pull/33800 NVlabs/Fast-dLLM/pull/51",
        4,
        "Capturing a CUDA graph needs CUDA: test_C7_a_captured_graph_replays_after_a_longer_call.",
    ),
    _entry(
        "C8",
        "cached lengths break the graph or compile one for every length",
        "lucidrains/rotary-embedding-torch/pull/38 foundation-model-stack/foundation-model-stack/pull/64 "
        "facebookresearch/xformers/issues/728",
        4,
    ),
    _entry(
        "C9",
        "the table ends before the positions that are let in",
        "karpathy/nanochat/pull/520 vllm-project/vllm/pull/55910 pegainfer-project/pegainfer/issues/220 "
        "pytorch/torchtitan/pull/3395",
        10,
    ),
    _entry(
        "D1",
        "dynamic NTK never goes back to the short frequencies",
        "huggingface/transformers/issues/25306 huggingface/transformers/pull/46624",
        2,
    ),
    _entry("D2", "cached keys keep the frequencies of shorter sequences", "huggingface/transformers/issues/25104", 2),
    _entry(
        "D4",
        "dynamic scaling is a constant",
        "vllm-project/vllm/issues/41236 vllm-project/vllm/issues/5093 vllm-project/vllm/issues/3488 "
        "vllm-project/vllm/pull/41277",
        2,
    ),
    _entry("D5", "a long row of the batch changes a short one", "QwenLM/Qwen/issues/401", 2),
    _entry(
        "D6",
        "LongRoPE changes its factors in the middle of a request",
        "huggingface/transformers/pull/33129 vllm-project/vllm/issues/27414 vllm-project/vllm/pull/27431 "
        "microsoft/onnxruntime-genai/pull/1161 ggml-org/llama.cpp/issues/8995",
        2,
    ),
    _entry(
        "D7",
        "YaRN's attention_factor is ignored, or goes through a second logarithm",
        "vllm-project/vllm/pull/48351 sgl-project/sglang/pull/33558 ml-explore/mlx-lm/pull/1507 "
        "NVIDIA/TensorRT-LLM/pull/16379 deepseek-ai/DeepSeek-R1/issues/684",
        8,
    ),
    _entry(
        "D8",
        "YaRN's magnitude has two homes, and one is forgotten",
        "vllm-project/vllm/pull/48623 onnxruntime/mobius/pull/548 turboderp-org/exllamav3/issues/259",
        7,
    ),
    _entry(
        "D9",
        "YaRN's range is rounded or clamped otherwise",
        "vllm-project/vllm/issues/27722 vllm-project/vllm/pull/28244 keras-team/keras-hub/pull/2981 "
        "jingyaogong/minimind/issues/602",
        8,
    ),
    _entry(
        "D11",
        "llama3 scaling is wrong, dropped, or other in prefill and decoding",
        "TransformerLensOrg/TransformerLens/pull/910 unslothai/unsloth/pull/6197 lablup/mlxcel/issues/1355 "
        "Xilinx/mlir-air/pull/1948 NVIDIA-NeMo/Automodel/pull/1220",
        8,
    ),
    _entry(
        "D12",
        "the base is 10 000 whatever the file says",
        "huggingface/transformers/pull/41922 sgl-project/SpecForge/issues/265 sgl-project/mini-sglang/pull/13",
        8,
    ),
    _entry(
        "D13",
        "partial rotation is ignored, paired wrongly, or has a wrong exponent",
        "huggingface/transformers/pull/48652 vllm-project/vllm/pull/41185 AI-Hypercomputer/maxtext/issues/4616 "
        "pie-project/pie/issues/602 apple/coreai-models/issues/66",
        6,
    ),
    _entry(
        "D14",
        "the schedule of layers without positions is read the other way round",
        "huggingface/transformers/issues/43756 airockchip/rknn-llm/issues/501",
        8,
    ),
    _entry(
        "E1",
        "weights of one layout are turned in the other",
        "huggingface/transformers/issues/39687 huggingface/nanotron/pull/427 warpfront/hipfire/pull/241 "
        "ooples/AiDotNet/pull/2074",
        6,
    ),
    _entry("E3", "cosines are handed to a function that takes angles", "NVIDIA/Megatron-LM/pull/7465", 5),
    _entry("E4", "the gradient is wrong for one layout", "Dao-AILab/flash-attention/pull/569 NVIDIA/apex/pull/1750", 6),
    _entry(
        "F1",
        "padding on the left is counted",
        "huggingface/transformers/issues/22161 unslothai/unsloth/pull/4078 huggingface/transformers/pull/26137 "
        "ndif-team/nnsight/pull/673",
        1,
    ),
    _entry(
        "F2", "after padding on the right decoding goes on from the padded width", "huggingface/transformers/pull/48161", 1
    ),
    _entry(
        "F3",
        "packed documents run on, or see each other",
        "allenai/OLMo-core/pull/591 allenai/OLMo-core/pull/654 pytorch/torchtitan/issues/2559 huggingface/nanoVLM/pull/204",
        1,
    ),
    _entry("F4", "a mask is taken for document numbers", "hiyouga/LlamaFactory/pull/7754", 10),
    _entry(
        "F5",
        "the meaning of positions is guessed from the rank of a tensor",
        "huggingface/transformers/pull/44911 huggingface/transformers/pull/47342",
        1,
    ),
    _entry("F6", "only the number of positions is used, not their values", "NVIDIA-NeMo/Automodel/pull/2377", 1),
    _entry(
        "F8", "the offset of decoding is lost or counted twice", "Blaizzy/mlx-vlm/issues/1983 skyzh/tiny-llm/pull/46", 1
    ),
    _entry(
        "F10",
        "ranks of a sharded sequence number their tokens wrongly",
        "NVIDIA/Megatron-LM/pull/5243 NVIDIA-NeMo/Automodel/pull/1482 NVIDIA/TransformerEngine/issues/1930 "
        "NVIDIA/TransformerEngine/pull/3057",
        1,
    ),
    _entry(
        "F11",
        "the text after a picture is decoded at another request's position",
        "vllm-project/vllm/pull/10403 sgl-project/sglang/pull/8219 sgl-project/sglang/pull/14639",
        1,
    ),
    _entry(
        "F13",
        "the causal mask is aligned to the wrong corner",
        "pytorch/pytorch/issues/108108 pytorch/pytorch/issues/144858 Dao-AILab/flash-attention/issues/282 "
        "onnx/onnx/pull/8068",
        11,
    ),
    _entry("G3", "inputs that are not contiguous are read wrongly", "vllm-project/vllm/pull/17091", 11),
    _entry(
        "G4",
        "widths that are no power of two reach beyond the tensor",
        "Dao-AILab/flash-attention/issues/1195 ModelTC/LightLLM/issues/1459 flagos-ai/FlagGems/pull/5310",
        11,
        "compute-sanitizer is not at hand; memory around the tensor is guarded instead, on CUDA by test_G4_on_cuda.",
    ),
    _entry("G5", "gradients are lost or wrong", "huggingface/candle/pull/3612 pico-lm/pico-train/pull/27", 11),
    _entry("G6", "an offset of every row is added along the tokens", "Blaizzy/mlx-vlm/pull/1883", 1),
    _entry(
        "H1",
        "slopes are wrong where the number of heads is no power of two",
        "huggingface/transformers/pull/28380 ml-explore/mlx/pull/3071 ml-explore/mlx/issues/343 paiml/aprender/pull/2143",
        9,
    ),
    _entry(
        "H2",
        "a tensor-parallel rank computes slopes of its own heads",
        "bigscience-workshop/Megatron-DeepSpeed/issues/227 flashinfer-ai/flashinfer/issues/1606",
        9,
    ),
    _entry(
        "H3",
        "with a cache there is no ALiBi",
        "keras-team/keras-hub/issues/2861 keras-team/keras-hub/pull/2862 EleutherAI/gpt-neox/pull/450",
        11,
    ),
    _entry("H4", "the bias rewards distance", "meta-pytorch/attention-gym/pull/86", 11),
    _entry(
        "H5", "the bias of the key alone is used in both directions", "ofirpress/attention_with_linear_biases/issues/5", 11
    ),
    _entry("H6", "the bias is scaled with the product", "NVIDIA/TensorRT-Model-Connect/pull/32", 7),
    _entry("H7", "the bias takes the place of the causal mask", "huggingface/transformers/pull/30123", 11),
    _entry("H8", "two kernels disagree on distances in cross-attention", "Dao-AILab/flash-attention/issues/907", 11),
    _entry("H9", "distances are computed in 16 bits", "NVIDIA/TensorRT-Model-Connect/issues/667", 9),
    _entry(
        "H10",
        "a bias of every pair of tokens is held in memory",
        "pytorch/pytorch/issues/107959 TransformerLensOrg/TransformerLens/issues/479 EleutherAI/gpt-neox/pull/652 "
        "vllm-project/vllm/issues/795",
        11,
    ),
    _entry(
        "I1",
        "T5's bias is dropped or has no offset in decoding",
        "NVIDIA/TensorRT-LLM/issues/1343 huggingface/candle/pull/899",
        11,
    ),
    _entry(
        "I2",
        "cross-attention gets a bias that nobody asked for",
        "huggingface/transformers/pull/8518 huggingface/transformers/pull/4499",
        1,
    ),
    _entry(
        "I3",
        "distances fall into wrong buckets",
        "lucidrains/x-transformers/pull/10 tenstorrent/tt-xla/issues/4484 mindspore-lab/mindone/pull/670",
        9,
    ),
    _entry(
        "I5",
        "Shaw's vectors break with a cache, or beyond the table",
        "huggingface/transformers/pull/20203 huggingface/transformers/issues/17026",
        11,
    ),
    _entry(
        "I7",
        "DeBERTa's rows depend on the length, or a term has the wrong sign",
        "NVIDIA/TensorRT/issues/3370 nntrainer/nntrainer/pull/3982 microsoft/DeBERTa/issues/33",
        9,
    ),
    _entry(
        "I8",
        "a learned bias gets wrong gradients through a fused kernel",
        "pytorch/pytorch/issues/158212 pytorch/pytorch/issues/145208 pytorch/pytorch/issues/145869 "
        "meta-pytorch/attention-gym/issues/123",
        11,
        "FlexAttention has no backward on the CPU: test_I8_on_cuda.",
    ),
    _entry(
        "J1",
        "rows before position 0 are forgotten, or padding moves positions",
        "huggingface/transformers/issues/9116 rinnakk/japanese-pretrained-models/issues/3 EleutherAI/gpt-neox/pull/650",
        10,
    ),
    _entry(
        "J2",
        "a position beyond the table is an assertion on the device",
        "huggingface/transformers/issues/10832 facebookresearch/fairseq/issues/757",
        10,
        "The device's assertion needs CUDA: test_J2_on_cuda.",
    ),
    _entry(
        "J3",
        "an odd width fails",
        "codertimo/BERT-pytorch/issues/78 zhouhaoyi/Informer2020/issues/224 gc-os-ai/pyaptamer/issues/526",
        5,
    ),
    _entry(
        "J5",
        "a grid is resized by a factor and misses its size",
        "huggingface/transformers/issues/32410 facebookresearch/dinov2/pull/378 facebookresearch/dino/issues/8 "
        "huggingface/candle/issues/2286",
        9,
    ),
    _entry(
        "K1",
        "the exported graph holds the length of its example",
        "pytorch/pytorch/issues/110347 neuralmagic/sparseml/pull/1826",
        4,
    ),
    _entry(
        "K3",
        "operators that cannot be exported, or graphs that grow with the length",
        "pytorch/pytorch/issues/145100 microsoft/onnxruntime/issues/12332",
        4,
    ),
)

NUMBERS = (
    *("A1", "A2", "A3", "A4", "A5", "A6", "A8", "B1", "B2", "B3", "B4", "B5", "B7", "C1", "C2", "C3", "C5", "C6", "C7"),
    *("C8", "C9", "D1", "D2", "D4", "D5", "D6", "D7", "D8", "D9", "D11", "D12", "D13", "D14", "E1", "E3", "E4"),
    *("F1", "F2", "F3", "F4", "F5", "F6", "F8", "F10", "F11", "F13", "G3", "G4", "G5", "G6", "H1", "H2", "H3", "H4"),
    *("H5", "H6", "H7", "H8", "H9", "H10", "I1", "I2", "I3", "I5", "I7", "I8", "J1", "J2", "J3", "J5", "K1", "K3"),
)
"""Every entry of the catalogue of the field's bugs that this folder was written from."""
