"""The classes of positional bugs that libraries have shipped: where each was seen, and what usually mends it.

A law that fails names its class by a key of BUGS. Links lead to public threads; a thread is an example of the class.
"""

from __future__ import annotations

from dataclasses import dataclass

_HUB = "https://github.com/"


@dataclass(frozen=True)
class Bug:
    """A class of bugs.

    title    what goes wrong, in a few words
    threads  public threads about bugs of this class
    remedy   what usually mends it
    """

    title: str
    threads: tuple[str, ...]
    remedy: str


def _bug(title: str, threads: str, remedy: str) -> Bug:
    return Bug(title, tuple(f"{_HUB}{thread}" for thread in threads.split()), remedy)


BUGS: dict[str, Bug] = {
    "low precision angles": _bug(
        "positions or angles are computed in 16 bits, so that neighbouring positions become one",
        "EleutherAI/gpt-neox/issues/1003 huggingface/diffusers/pull/13922 kekzl/imp/pull/1325",
        "compute positions, frequencies and angles in float32 or float64; cast the finished cosines and sines",
    ),
    "not relative": _bug(
        "a query's product with a key depends on where they are: positions are rounded, or frequencies change",
        "EleutherAI/gpt-neox/issues/1003 huggingface/transformers/issues/25104 kekzl/imp/pull/1325",
        "compute angles in float32 or float64, with frequencies that do not depend on the position",
    ),
    "cast state": _bug(
        "the table or the frequencies are a buffer that .half() or .to(bfloat16) rounds",
        "huggingface/transformers/issues/25681 NVIDIA-NeMo/Automodel/pull/2549 deepspeedai/DeepSpeed/issues/5812",
        "keep frequencies as Python numbers in the configuration and compute the table in float32 when it is used",
    ),
    "autocast": _bug(
        "autocast turns the product of positions and frequencies into 16 bits",
        "huggingface/transformers/pull/29285 huggingface/diffusers/pull/13922 keras-team/keras-hub/pull/1497",
        "compute angles under torch.autocast(enabled=False), by a broadcast product and not by matmul or einsum",
    ),
    "default dtype": _bug(
        "a tensor made without a dtype follows torch.set_default_dtype",
        "deepspeedai/DeepSpeed/issues/4932 deepspeedai/DeepSpeed/issues/5812",
        "give every arange, linspace and tensor of the computation an explicit dtype",
    ),
    "low precision rotation": _bug(
        "the rotation itself loses more than the rounding of its dtype",
        "Dao-AILab/flash-attention/issues/823 NVIDIA/TransformerEngine/issues/1245",
        "rotate in float32 and round once at the end",
    ),
    "construction": _bug(
        "tables that no checkpoint restores are garbage after meta construction or to_empty",
        "huggingface/transformers/issues/45902 huggingface/pytorch-image-models/issues/2661 NovaSky-AI/SkyRL/pull/1725",
        "compute tables from the configuration when they are used, or in a reset_parameters() that loaders call",
    ),
    "trainable constant": _bug(
        "a fixed table is a parameter that training or weight initialisation changes",
        "huggingface/transformers/pull/26032 huggingface/transformers/issues/29807",
        "hold a fixed table outside of the parameters",
    ),
    "cache key": _bug(
        "a cached table is used for another call than the one that it was made for",
        "lucidrains/rotary-embedding-torch/issues/11 lucidrains/x-transformers/pull/90 vllm-project/vllm/pull/4835",
        "cache nothing, or put offset, length, dtype, device and scaling into the key",
    ),
    "length state": _bug(
        "what a token gets depends on how long the sequence is, or on earlier calls",
        "huggingface/transformers/issues/25306 huggingface/transformers/issues/25104 vllm-project/vllm/issues/27414",
        "choose the frequencies once for each request and keep them while its keys are cached",
    ),
    "cached frequencies": _bug(
        "cached keys keep the frequencies of a shorter sequence, while new ones get those of a longer one",
        "huggingface/transformers/issues/25104 huggingface/transformers/pull/33129 vllm-project/vllm/issues/27414",
        "hold one set of frequencies for the whole request: with posenc.transformers.length(model, n)",
    ),
    "batch mates": _bug(
        "another row of the batch changes what a row gets",
        "QwenLM/Qwen/issues/401 huggingface/transformers/issues/22161",
        "read each row's own positions; never the maximum or the first row of the batch",
    ),
    "position ignored": _bug(
        "positions are taken from the index or from the shape, not from the values that are passed",
        "NVIDIA-NeMo/Automodel/pull/2377 huggingface/transformers/issues/22161 allenai/OLMo-core/pull/591",
        "gather by the position of each token in each row",
    ),
    "decode offset": _bug(
        "tokens that are decoded one by one get other positions than in one pass",
        "Blaizzy/mlx-vlm/issues/1983 skyzh/tiny-llm/pull/46 huggingface/candle/pull/899",
        "pass the position of each new token, which counts the cached ones",
    ),
    "wrong axis": _bug(
        "batch, heads and tokens are confused, which shows where two of them have one size",
        "Blaizzy/mlx-vlm/pull/1883 huggingface/transformers/pull/44911",
        "name the axes and never guess one from a rank or a size",
    ),
    "cos of cos": _bug(
        "position 0 turns, or lengths change: angles, cosines or offsets are mixed up",
        "NVIDIA/Megatron-LM/pull/7465 sgl-project/sglang/pull/33558",
        "compare the table with cos(position·frequency) at positions 0 and 1",
    ),
    "layout": _bug(
        "channels are paired in the other layout, or the wrong ones turn",
        "huggingface/nanotron/pull/427 huggingface/transformers/issues/39687 huggingface/transformers/pull/48652",
        "make the layout and the number of turning channels explicit, and convert checkpoints once",
    ),
    "base": _bug(
        "the base or the scaling is not the one that was meant",
        "sgl-project/SpecForge/issues/265 TransformerLensOrg/TransformerLens/pull/910 pie-project/pie/issues/602",
        "read base, scaling and rotary dimension strictly from the configuration; refuse a missing base",
    ),
    "range": _bug(
        "positions beyond the table are served silently with other rows",
        "karpathy/nanochat/pull/520 pegainfer-project/pegainfer/issues/220 pytorch/torchtitan/pull/3395",
        "check the largest position, not the length, and raise an error that names the limit",
    ),
    "strides": _bug(
        "inputs that are not contiguous are read wrongly, or are written to",
        "vllm-project/vllm/pull/17091 flagos-ai/FlagGems/pull/5310",
        "respect strides, and write to a new tensor unless in-place was asked for",
    ),
    "gradient": _bug(
        "the gradient is missing or is not that of the function",
        "pico-lm/pico-train/pull/27 Dao-AILab/flash-attention/pull/569 huggingface/candle/pull/3612",
        "compare backward with finite differences for every layout; never apply the encoding under no_grad",
    ),
    "inference mode": _bug(
        "a cache that inference mode filled cannot be used in training",
        "vllm-project/vllm/pull/33800 NVlabs/Fast-dLLM/pull/51",
        "cache nothing, or clone what is cached outside of inference mode",
    ),
    "threads": _bug(
        "two calls at once see each other's tables",
        "Blaizzy/mlx-vlm/issues/1415 Blaizzy/mlx-vlm/pull/1143",
        "write nothing in forward; publish a finished cache entry once",
    ),
    "slopes": _bug(
        "the slopes are not those of the paper for this number of heads",
        "ml-explore/mlx/pull/3071 huggingface/transformers/pull/28380 paiml/aprender/pull/2143",
        "compute slopes for the power of two below, then every other one of the next; slice them for tensor parallelism",
    ),
    "bias sign": _bug(
        "the bias rewards distance, or does not fall with it",
        "meta-pytorch/attention-gym/pull/86 nntrainer/nntrainer/pull/3982",
        "subtract slope·distance: the nearest key gets the largest bias",
    ),
    "bias precision": _bug(
        "distances are computed in 16 bits, so that far keys share one bias",
        "NVIDIA/TensorRT-Model-Connect/issues/667 tenstorrent/tt-xla/issues/4484",
        "compute distances and buckets in integers, and round the finished bias",
    ),
    "bias cache": _bug(
        "the bias of a query depends on which other queries and keys are in the call",
        "keras-team/keras-hub/issues/2861 EleutherAI/gpt-neox/pull/450 lucidrains/x-transformers/pull/90",
        "compute the bias from the positions of the queries and of the keys, never from lengths",
    ),
    "buckets": _bug(
        "distances fall into other buckets than T5's",
        "lucidrains/x-transformers/pull/10 tenstorrent/tt-xla/issues/4484",
        "compute bucket boundaries in integers and compare them with T5's for both directions",
    ),
    "causal alignment": _bug(
        "the causal mask is aligned to the wrong corner where there are fewer queries than keys",
        "pytorch/pytorch/issues/108108 Dao-AILab/flash-attention/issues/282 onnx/onnx/pull/8068",
        "derive the mask from query position >= key position",
    ),
    "future": _bug(
        "a query sees keys after it",
        "huggingface/transformers/pull/30123 pytorch/pytorch/issues/108108",
        "add the causal mask to the bias; one does not replace the other",
    ),
    "padding": _bug(
        "padding changes what real tokens get",
        "huggingface/transformers/issues/22161 huggingface/transformers/pull/48161 ndif-team/nnsight/pull/673",
        "count positions over real tokens and mask padded keys",
    ),
    "packing": _bug(
        "packed documents see each other or do not count from 0",
        "allenai/OLMo-core/pull/591 pytorch/torchtitan/issues/2559 hiyouga/LlamaFactory/pull/7754",
        "restart positions with each document and mask across documents; the one without the other is not enough",
    ),
    "softmax scale": _bug(
        "logits are scaled twice, not at all, or after the bias was added",
        "NVIDIA/TensorRT-Model-Connect/pull/32 onnxruntime/mobius/pull/548 vllm-project/vllm/pull/48351",
        "name the softmax scale and the scale of cosines and sines separately, and test both",
    ),
    "bias ignored": _bug(
        "a bias that is handed over is dropped without a word",
        "huggingface/transformers/pull/47014",
        "use attn_implementation='sdpa', or refuse arguments that attention does not read",
    ),
    "heads": _bug(
        "query heads read the wrong key head",
        "bigscience-workshop/Megatron-DeepSpeed/issues/227 flashinfer-ai/flashinfer/issues/1606",
        "repeat each key head for a contiguous group of query heads",
    ),
    "row offset": _bug(
        "rows of the table are shifted, or shared by several positions",
        "huggingface/transformers/issues/9116 rinnakk/japanese-pretrained-models/issues/3",
        "declare the row offset and the number of usable positions",
    ),
}
