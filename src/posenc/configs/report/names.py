"""What each encoding that a configuration can name does, in one sentence; kinds of layers; where a value comes from."""

from __future__ import annotations

import re

from posenc.configs.say import say
from posenc.support.languages import Language, Words

# By the class, or the function, that `Use.encoding` ends with.
SENTENCES = {
    "RoPE": say("queries and keys are rotated by an angle proportional to their position"),
    "PrefixRoPE": say("queries and keys are rotated by row and column; tokens before the patches have learned angles"),
    "FirstHeadsRoPE": say("queries and keys of the first heads are rotated; the others have no positions"),
    "WideRoPE": say("queries and keys are rotated, with other frequencies in each head"),
    "LeRoPE": say("queries and keys are rotated, with a learned factor for each frequency"),
    "ProjectedRoPE": say("queries and keys are rotated by a learned linear function of real coordinates"),
    "InputRotation": say("the input of the query and key projections is rotated, not queries and keys"),
    "TimedRotation": say("embeddings are rotated by the time of their frame"),
    "in_each_part": say("queries and keys are rotated; each part of a head reads one coordinate"),
    "xd": say("queries and keys are multiplied by cos and sin of each channel's own angle; for images not a rotation"),
    "tiled": say("queries and keys are multiplied by cos and sin of each channel's own angle; not a rotation"),
    "of_atoms": say("queries and keys are rotated by the atom's coordinates and its residue"),
    "Learned": say("a learned vector for each position is added to the embeddings"),
    "LearnedGrid": say("a learned vector for each cell of a grid is added to the embeddings"),
    "LearnedAxes": say("a learned vector for each coordinate of a token is added to the embeddings"),
    "GatedTiles": say("learned vectors of the tile and of the patch in it, with a gate, are added to the embeddings"),
    "XPath": say("learned vectors of each token's path in the document are added to the embeddings"),
    "MeanOfRows": say("the mean of the learned vectors of a token's positions is added to its embedding"),
    "LinearBoxes": say("a learned linear function of a box is averaged with the embedding"),
    "Sinusoidal": say("sines and cosines of the position are added to the embeddings"),
    "Sinusoidal3D": say("sines and cosines of frame, column and row are added to the embeddings"),
    "ScaledSinusoidal": say("sines and cosines of the position, times one learned number, are added to the embeddings"),
    "RandomFourier": say("sines and cosines of random projections of coordinates are added to the embeddings"),
    "FourierBands": say("coordinates, with their sines and cosines, are used as further channels of the input"),
    "Convolutional": say("a convolution over the tokens is added to the embeddings"),
    "Conditional": say("a convolution over the neighbouring patches is added, channel by channel"),
    "ALiBi": say("scores decrease linearly with distance, with a slope for each head"),
    "FalconALiBi": say("scores increase linearly with the key's position, with a slope for each head, rounded to bfloat16"),
    "T5": say("scores get a learned number for each head and bucket of distance"),
    "T5Axes": say("scores get a learned number for each head and bucket of distance along each coordinate"),
    "T5OfContent": say("scores get a function of the hidden state for each bucket of distance"),
    "GatedT5": say("scores get a learned number for each head and bucket of distance, times a gate for each query"),
    "SegmentedT5": say(
        "scores get a learned number for each bucket of distance within a segment, and for each pair of segments"
    ),
    "DistanceTable": say("scores get a learned number for each clipped distance"),
    "WindowBias": say("scores get a learned number for each difference in row and column"),
    "ContinuousWindowBias": say(
        "scores get a network of the logarithm of the differences in row and column; attention is by cosine"
    ),
    "BoxBias": say("scores get networks of the logarithms of the differences in row and column"),
    "DecomposedBias": say(
        "scores get products of the query with a learned vector for the difference in rows, and in columns"
    ),
    "Shaw": say("scores get a product of the query with a learned vector for each distance"),
    "DistanceBank": say(
        "scores get a product of learned vectors, one for each distance, with a function of query or hidden state"
    ),
    "TransformerXL": say("scores get a product of the query with transformed sinusoids of the distance"),
    "SinusoidalKeys": say("scores get a product of the query with transformed sinusoids of the distance, within reach"),
    "SinusoidalBoxes": say("scores get a product of the query with transformed sinusoids of the differences of two boxes"),
    "XLNet": say("scores get the terms of Transformer-XL and one for equal or different segments"),
    "Funnel": say("scores get XLNet's terms; the class token has no position"),
    "DeBERTa": say("scores get products of content with learned vectors for distances, both ways"),
    "PowerTemperature": say("queries are scaled by a power of their position"),
    "FloorLogTemperature": say("queries are scaled by a logarithm of their position, in steps"),
    "LearnedTemperature": say("queries are scaled by a learned function of the logarithm of their position"),
}

# Where those act whose name tells it, and whose constructors refuse nothing more that a reader of files lets through.
SEAMS = {
    name: seams
    for seams, names in {
        ("embed",): (
            *("Learned", "LearnedGrid", "LearnedAxes", "GatedTiles", "XPath", "MeanOfRows", "LinearBoxes", "Sinusoidal"),
            *("ScaledSinusoidal", "Convolutional", "Conditional", "TimedRotation"),
        ),
        ("rotate",): (
            *(
                "RoPE",
                "WideRoPE",
                "PrefixRoPE",
                "FirstHeadsRoPE",
                "LeRoPE",
                "ProjectedRoPE",
                "in_each_part",
                "tiled",
                "of_atoms",
            ),
            *("PowerTemperature", "FloorLogTemperature", "LearnedTemperature"),
        ),
        ("bias",): (
            *("ALiBi", "FalconALiBi", "T5", "T5Axes", "GatedT5", "SegmentedT5", "DistanceTable", "WindowBias", "BoxBias"),
            *("DecomposedBias", "TransformerXL", "SinusoidalKeys", "SinusoidalBoxes", "XLNet", "Funnel", "DistanceBank"),
        ),
        ("rotate", "bias"): ("ContinuousWindowBias",),
    }.items()
    for name in names
}

KINDS = {
    "full_attention": say("full attention"),
    "sliding_attention": say("sliding attention"),
    "linear_attention": say("linear attention"),
    "chunked_attention": say("chunked attention"),
    "cross_attention": say("cross attention"),
    "self_attention": say("self attention"),
    "conv": say("convolution"),
    "convolution": say("convolution"),
    "mlp": Words("MLP"),
    "moe": say("mixture of experts"),
    "hybrid": say("attention and recurrence"),
    "hybrid_sliding": say("sliding attention and recurrence"),
    "reference_sliding_attention": say("sliding attention with a reference"),
    "no_attention": say("no attention"),
    "window": say("windows"),
    "window_attention": say("attention in windows"),
    "shifted_window": say("shifted windows"),
    "neighbourhood": say("attention to neighbours"),
    "block_sparse_attention": say("block-sparse attention"),
    "block_attention": say("attention in blocks"),
    "channel_attention": say("attention across channels"),
    "local": say("local attention"),
    "global": say("global attention"),
    "lsh": say("attention by equal hashes"),
    "autocorrelation": say("attention by delay"),
    "prob_sparse": say("sparse attention by samples"),
    "deformable": say("deformable attention"),
    "indexed_attention": say("attention to selected tokens"),
    "indexer": say("indexer"),
    "shared_indexer": say("shared indexer"),
    "no_indexer": say("attention without an indexer"),
    "compressed_sparse_attention": say("compressed sparse attention"),
    "heavily_compressed_attention": say("heavily compressed attention"),
    "embedding": say("embedding"),
    "latents": say("latent vectors"),
    "queries": say("object queries"),
    "queries_to_image": say("object queries to the image"),
    "queries_to_text": say("object queries to the text"),
    "image_and_text": say("image and text"),
    "boxes": say("boxes"),
    "boxes_to_image": say("boxes to the image"),
    "prompts": say("prompts"),
    "prompts_to_image": say("prompts to the image"),
    "image_to_prompts": say("image to the prompts"),
    "two_way": say("both ways between prompts and image"),
    "token_to_image": say("tokens to the image"),
    "image": say("image"),
    "text": say("text"),
    "language": say("language"),
    "frames": say("frames"),
    "spatial": say("within a frame"),
    "temporal": say("across frames"),
    "divided_space_time": say("across frames, then within each"),
    "memory_self": say("memory: within the frame"),
    "memory_cross": say("memory: to earlier frames"),
    "neck": say("neck"),
    "adapter": say("adapter"),
    "adaptor": say("adaptor"),
    "projector": say("projector"),
    "pooling": say("pooling"),
    "subsampling": say("subsampling"),
    "fourier": say("Fourier features"),
    "mixer": say("mixer"),
    "map": say("map"),
    "molecules": say("molecules"),
    "self": say("self attention"),
    "cross": say("cross attention"),
    "cross_modal": say("attention across modalities"),
}
NUMBERED = {"stage": say("stage {number}"), "block": say("block {number}")}

# Where a value comes from, if no key of the file gives it: a pattern of the English words, and the Chinese ones.
ORIGINS = (
    (r"constants? of the code", "代码中的常数"),
    (r"constant of the class", "类中的常数"),
    (r"default of the family's code", "该家族代码的默认值"),
    (r"default of (\w+)", r"\1 的默认值"),
    (r"not in the file", "文件中没有"),
    (r"none asked for", "没有要求"),
    (r", as given", "，按文件所给"),
    (r" over mscale_all_dim", " 除以 mscale_all_dim"),
    (r", squared", " 的平方"),
    (r"llama\.cpp's converter permutes q and k", "llama.cpp 的转换器重排了 q 和 k"),
    (r"llama\.cpp's code for (\S+)", r"llama.cpp 的 \1 代码"),
    (r", and 0 for none", "，没有时为 0"),
    (r", and the class token", "，加上类别词元"),
    (r", halved each time", "，每次减半"),
    (r", over window_size", "，除以 window_size"),
    (r"\bthe same\b", "相同"),
    (r"(\w) and (\w)", r"\1 和 \2"),
    (r", or ", "，或"),
)


def sentence(encoding: str, docstring: str) -> Words:
    """What the encoding of that name does; its `docstring` for one that no configuration names."""
    return SENTENCES.get(encoding, Words(docstring.rstrip(".")))


def kind(name: str) -> Words:
    """The kind of a layer, such as "sliding_attention" or "stage 2", in words."""
    stem, _, number = name.replace("_", " ").rpartition(" ")
    if stem in NUMBERED and number.isdecimal():
        return NUMBERED[stem].filled(number=number)
    return KINDS.get(name, Words(name.replace("_", " ")))


def origin(source: str, language: Language) -> str:
    """Where a value comes from: a key of the file stays as it is."""
    if language == "zh":
        for pattern, chinese in ORIGINS:
            source = re.sub(pattern, chinese, source)
    return source
