"""The classes of positional bugs that libraries have shipped: where each was seen, and what usually mends it.

A law that fails names its class by a key of BUGS. Links lead to public threads; a thread is an example of the class.
"""

from __future__ import annotations

from dataclasses import dataclass

from posenc.checking.say import say
from posenc.support.languages import Words

_HUB = "https://github.com/"


@dataclass(frozen=True)
class Bug:
    """A class of bugs.

    title    what goes wrong, in one clause
    threads  public threads about bugs of this class; none where none is known
    remedy   what usually mends it
    """

    title: Words
    threads: tuple[str, ...]
    remedy: Words


def _bug(title: Words, threads: str, remedy: Words) -> Bug:
    return Bug(title, tuple(f"{_HUB}{thread}" for thread in threads.split()), remedy)


BUGS: dict[str, Bug] = {
    "low precision angles": _bug(
        say("positions or angles are computed in 16 bits, so that neighbouring positions become one"),
        "EleutherAI/gpt-neox/issues/1003 huggingface/diffusers/pull/13922 kekzl/imp/pull/1325",
        say("compute positions, frequencies and angles in float32 or float64; cast the finished cosines and sines"),
    ),
    "not relative": _bug(
        say("a query's product with a key depends on where they are: positions are rounded, or frequencies change"),
        "EleutherAI/gpt-neox/issues/1003 huggingface/transformers/issues/25104 kekzl/imp/pull/1325",
        say("compute angles in float32 or float64, with frequencies that do not depend on the position"),
    ),
    "cast state": _bug(
        say("the table or the frequencies are a buffer that .half() or .to(bfloat16) rounds"),
        "huggingface/transformers/issues/25681 NVIDIA-NeMo/Automodel/pull/2549 deepspeedai/DeepSpeed/issues/5812",
        say("keep frequencies as Python numbers in the configuration and compute the table in float32 when it is used"),
    ),
    "rows over heads": _bug(
        say(
            "angles of [batch, tokens] meet [batch, heads, tokens] without an axis for the heads: each head turns by the "
            "positions of another row, and a batch of another size than the heads is an error"
        ),
        "",
        say("give the angles an axis for the heads: positions[:, None, :, None] · frequencies, or cos.unsqueeze(1)"),
    ),
    "autocast": _bug(
        say("autocast turns the product of positions and frequencies into 16 bits"),
        "huggingface/transformers/pull/29285 huggingface/diffusers/pull/13922 keras-team/keras-hub/pull/1497",
        say("compute angles under torch.autocast(enabled=False), by a broadcast product and not by matmul or einsum"),
    ),
    "default dtype": _bug(
        say("a tensor made without a dtype follows torch.set_default_dtype"),
        "deepspeedai/DeepSpeed/issues/4932 deepspeedai/DeepSpeed/issues/5812",
        say("give every arange, linspace and tensor of the computation an explicit dtype"),
    ),
    "low precision rotation": _bug(
        say("the rotation itself loses more than the rounding of its dtype"),
        "Dao-AILab/flash-attention/issues/823 NVIDIA/TransformerEngine/issues/1245",
        say("rotate in float32 and round once at the end"),
    ),
    "construction": _bug(
        say("tables that no checkpoint restores are garbage after meta construction or to_empty"),
        "huggingface/transformers/issues/45902 huggingface/pytorch-image-models/issues/2661 NovaSky-AI/SkyRL/pull/1725",
        say("compute tables from the configuration when they are used, or in a reset_parameters() that loaders call"),
    ),
    "trainable constant": _bug(
        say("a fixed table is a parameter that training or weight initialisation changes"),
        "huggingface/transformers/pull/26032 huggingface/transformers/issues/29807",
        say("hold a fixed table outside of the parameters"),
    ),
    "cache key": _bug(
        say("a cached table is used for another call than the one that it was made for"),
        "lucidrains/rotary-embedding-torch/issues/11 lucidrains/x-transformers/pull/90 vllm-project/vllm/pull/4835",
        say("cache nothing, or put offset, length, dtype, device and scaling into the key"),
    ),
    "length state": _bug(
        say("what a token gets depends on how long the sequence is, or on earlier calls"),
        "huggingface/transformers/issues/25306 huggingface/transformers/issues/25104 vllm-project/vllm/issues/27414",
        say("choose the frequencies once for each request and keep them while its keys are cached"),
    ),
    "cached frequencies": _bug(
        say("cached keys keep the frequencies of a shorter sequence, while new ones get those of a longer one"),
        "huggingface/transformers/issues/25104 huggingface/transformers/pull/33129 vllm-project/vllm/issues/27414",
        say("hold one set of frequencies for the whole request: with posenc.transformers.length(model, n)"),
    ),
    "batch mates": _bug(
        say("another row of the batch changes what a row gets"),
        "QwenLM/Qwen/issues/401 huggingface/transformers/issues/22161",
        say("read each row's own positions; never the maximum or the first row of the batch"),
    ),
    "position ignored": _bug(
        say("positions are taken from the index or from the shape, not from the values that are passed"),
        "NVIDIA-NeMo/Automodel/pull/2377 huggingface/transformers/issues/22161 allenai/OLMo-core/pull/591",
        say("gather by the position of each token in each row"),
    ),
    "decode offset": _bug(
        say("tokens that are decoded one by one get other positions than in one pass"),
        "Blaizzy/mlx-vlm/issues/1983 skyzh/tiny-llm/pull/46 huggingface/candle/pull/899",
        say("pass the position of each new token, which counts the cached ones"),
    ),
    "wrong axis": _bug(
        say("batch, heads and tokens are confused, which shows where two of them have one size"),
        "Blaizzy/mlx-vlm/pull/1883 huggingface/transformers/pull/44911",
        say("name the axes and never guess one from a rank or a size"),
    ),
    "cos of cos": _bug(
        say("position 0 turns, or lengths change: angles, cosines or offsets are mixed up"),
        "NVIDIA/Megatron-LM/pull/7465 sgl-project/sglang/pull/33558",
        say("compare the table with cos(position·frequency) at positions 0 and 1"),
    ),
    "layout": _bug(
        say("channels are paired in the other layout, or the wrong ones turn"),
        "huggingface/nanotron/pull/427 huggingface/transformers/issues/39687 huggingface/transformers/pull/48652",
        say("make the layout and the number of turning channels explicit, and convert checkpoints once"),
    ),
    "base": _bug(
        say("the base or the scaling is not the one that was meant"),
        "sgl-project/SpecForge/issues/265 TransformerLensOrg/TransformerLens/pull/910 pie-project/pie/issues/602",
        say("read base, scaling and rotary dimension strictly from the configuration; refuse a missing base"),
    ),
    "range": _bug(
        say("positions beyond the table are served silently with other rows"),
        "karpathy/nanochat/pull/520 pegainfer-project/pegainfer/issues/220 pytorch/torchtitan/pull/3395",
        say("check the largest position, not the length, and raise an error that names the limit"),
    ),
    "strides": _bug(
        say("inputs that are not contiguous are read wrongly, or are written to"),
        "vllm-project/vllm/pull/17091 flagos-ai/FlagGems/pull/5310",
        say("respect strides, and write to a new tensor unless in-place was asked for"),
    ),
    "gradient": _bug(
        say("the gradient is missing or is not that of the function"),
        "pico-lm/pico-train/pull/27 Dao-AILab/flash-attention/pull/569 huggingface/candle/pull/3612",
        say("compare backward with finite differences for every layout; never apply the encoding under no_grad"),
    ),
    "inference mode": _bug(
        say("a cache that inference mode filled cannot be used in training"),
        "vllm-project/vllm/pull/33800 NVlabs/Fast-dLLM/pull/51",
        say("cache nothing, or clone what is cached outside of inference mode"),
    ),
    "threads": _bug(
        say("two calls at once see each other's tables"),
        "Blaizzy/mlx-vlm/issues/1415 Blaizzy/mlx-vlm/pull/1143",
        say("write nothing in forward; publish a finished cache entry once"),
    ),
    "slopes": _bug(
        say("the slopes are not those of the paper for this number of heads"),
        "ml-explore/mlx/pull/3071 huggingface/transformers/pull/28380 paiml/aprender/pull/2143",
        say(
            "compute slopes for the power of two below, then every other one of the next; slice them for tensor parallelism"
        ),
    ),
    "bias sign": _bug(
        say("the bias rewards distance, or does not fall with it"),
        "meta-pytorch/attention-gym/pull/86 nntrainer/nntrainer/pull/3982",
        say("subtract slope·distance: the nearest key gets the largest bias"),
    ),
    "bias precision": _bug(
        say("distances are computed in 16 bits, so that far keys share one bias"),
        "NVIDIA/TensorRT-Model-Connect/issues/667 tenstorrent/tt-xla/issues/4484",
        say("compute distances and buckets in integers, and round the finished bias"),
    ),
    "bias cache": _bug(
        say("the bias of a query depends on which other queries and keys are in the call"),
        "keras-team/keras-hub/issues/2861 EleutherAI/gpt-neox/pull/450 lucidrains/x-transformers/pull/90",
        say("compute the bias from the positions of the queries and of the keys, never from lengths"),
    ),
    "buckets": _bug(
        say("distances fall into other buckets than T5's"),
        "lucidrains/x-transformers/pull/10 tenstorrent/tt-xla/issues/4484",
        say("compute bucket boundaries in integers and compare them with T5's for both directions"),
    ),
    "causal alignment": _bug(
        say("the causal mask is aligned to the wrong corner where there are fewer queries than keys"),
        "pytorch/pytorch/issues/108108 Dao-AILab/flash-attention/issues/282 onnx/onnx/pull/8068",
        say("derive the mask from query position >= key position"),
    ),
    "future": _bug(
        say("a query sees keys after it"),
        "huggingface/transformers/pull/30123 pytorch/pytorch/issues/108108",
        say("add the causal mask to the bias; one does not replace the other"),
    ),
    "padding": _bug(
        say("padding changes what real tokens get"),
        "huggingface/transformers/issues/22161 huggingface/transformers/pull/48161 ndif-team/nnsight/pull/673",
        say("count positions over real tokens and mask padded keys"),
    ),
    "packing": _bug(
        say("packed documents see each other or do not count from 0"),
        "allenai/OLMo-core/pull/591 pytorch/torchtitan/issues/2559 hiyouga/LlamaFactory/pull/7754",
        say("restart positions with each document and mask across documents; the one without the other is not enough"),
    ),
    "softmax scale": _bug(
        say("logits are scaled twice, not at all, or after the bias was added"),
        "NVIDIA/TensorRT-Model-Connect/pull/32 onnxruntime/mobius/pull/548 vllm-project/vllm/pull/48351",
        say("name the softmax scale and the scale of cosines and sines separately, and test both"),
    ),
    "softmax axis": _bug(
        say("the weights of a query do not sum to one: the softmax runs over another axis, or weights change after it"),
        "",
        say("take the softmax over the keys, and mask the logits before it, not the weights after it"),
    ),
    "bias ignored": _bug(
        say("a bias that is handed over is dropped without a word"),
        "huggingface/transformers/pull/47014",
        say("use attn_implementation='sdpa', or refuse arguments that attention does not read"),
    ),
    "heads": _bug(
        say("query heads read the wrong key head"),
        "bigscience-workshop/Megatron-DeepSpeed/issues/227 flashinfer-ai/flashinfer/issues/1606",
        say("repeat each key head for a contiguous group of query heads"),
    ),
    "row offset": _bug(
        say("rows of the table are shifted, or shared by several positions"),
        "huggingface/transformers/issues/9116 rinnakk/japanese-pretrained-models/issues/3",
        say("declare the row offset and the number of usable positions"),
    ),
    "mixed layouts": _bug(
        say(
            "the table of one layout is applied to the pairs of the other, so that the two channels of a pair turn by "
            "different angles"
        ),
        "",
        say("with cat(f, f) pair c with c + d/2 (rotate_half); with repeat_interleave(f, 2) pair 2c with 2c + 1"),
    ),
    "one angle each": _bug(
        say("every channel has a frequency of its own, so that sine and cosine of a pair do not share one angle"),
        "",
        say("use the index of the pair in the exponent, base^(-2i/d) with i = 0 … d/2 - 1, for both channels of the pair"),
    ),
    "no minus": _bug(
        say("the minus of a sine is missing: both halves are added, and nothing is rotated"),
        "",
        say("rotate by cat(-second, first): first·cos - second·sin, second·cos + first·sin"),
    ),
    "cosine for sine": _bug(
        say("cosines and sines are exchanged: position 0 turns by a quarter"),
        "",
        say("multiply the tokens by the cosine and their partners by the sine"),
    ),
    "from one": _bug(
        say("positions are counted from 1: position 0 is turned as position 1 should be"),
        "",
        say("count from 0: use the position as it is passed"),
    ),
    "no positions": _bug(
        say("it takes no positions: they come from the length, so that decoding, packing and left padding are wrong"),
        "NVIDIA-NeMo/Automodel/pull/2377",
        say("take positions [b, t] as an argument, and gather or compute the rows of those positions"),
    ),
    "part of the head": _bug(
        say("it gives back fewer channels than it gets: those that turn, without those that pass"),
        "",
        say("join both parts again, cat([passed, turned], -1), or check the part that turns alone"),
    ),
    "not finite": _bug(
        say("some numbers are NaN"),
        "",
        say("look for 0/0, inf - inf, positions beyond 65504 in float16, and tables that were never filled"),
    ),
    "one side": _bug(
        say("queries and keys are not turned alike, so that scores depend on where both are"),
        "",
        say("apply the same rotation to queries and to keys, each at its own position"),
    ),
    "hides itself": _bug(
        say("a token does not see itself: its own key is hidden"),
        "",
        say("hide a key only where its position is greater than the query's: k > q, not k >= q"),
    ),
    "bucket sign": _bug(
        say("the sign of the distance is turned round: keys before the query get the buckets of those after it"),
        "",
        say("T5's relative position is key - query"),
    ),
    "direction lost": _bug(
        say("keys before and after the query share their buckets: the direction of the distance is lost"),
        "",
        say("keep the sign of key - query, and give keys after the query buckets of their own"),
    ),
    "tokens mix": _bug(
        say("what a token gets depends on what the other tokens of the call hold"),
        "",
        say("encode each token by itself: no mean, norm or convolution over the sequence"),
    ),
    "other way": _bug(
        say("it turns the other way: the sine has the other sign"),
        "",
        say("rotate by first·cos - second·sin, second·cos + first·sin"),
    ),
}
