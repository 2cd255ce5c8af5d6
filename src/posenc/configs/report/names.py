"""What each encoding that a configuration can name does, in one sentence; kinds of layers; where a value comes from."""

from __future__ import annotations

import re

from posenc.support.languages import Language, Words

# By the class, or the function, that `Use.encoding` ends with.
SENTENCES = {
    "RoPE": Words(
        "queries and keys are rotated by an angle proportional to their position", "查询和键按与位置成正比的角度旋转"
    ),
    "PrefixRoPE": Words(
        "queries and keys are rotated by row and column; tokens before the patches have learned angles",
        "查询和键按行和列旋转；图块之前的词元用学习的角度",
    ),
    "FirstHeadsRoPE": Words(
        "queries and keys of the first heads are rotated; the others have no positions",
        "只旋转前几个头的查询和键；其他头没有位置",
    ),
    "LeRoPE": Words(
        "queries and keys are rotated, with a learned factor for each frequency", "查询和键旋转，每个频率有一个学习的倍数"
    ),
    "ProjectedRoPE": Words(
        "queries and keys are rotated by a learned linear function of real coordinates",
        "查询和键按实数坐标的学习线性函数旋转",
    ),
    "InputRotation": Words(
        "the input of the query and key projections is rotated, not queries and keys",
        "旋转的是查询和键投影的输入，而不是查询和键",
    ),
    "TimedRotation": Words("embeddings are rotated by the time of their frame", "嵌入按其帧的时间旋转"),
    "in_each_part": Words(
        "queries and keys are rotated; each part of a head reads one coordinate", "查询和键旋转；头的每一部分读一个坐标"
    ),
    "xd": Words(
        "queries and keys are multiplied by cos and sin of each channel's own angle; for images not a rotation",
        "查询和键的每个通道乘以自己角度的 cos 和 sin；对图像来说不是旋转",
    ),
    "tiled": Words(
        "queries and keys are multiplied by cos and sin of each channel's own angle; not a rotation",
        "查询和键的每个通道乘以自己角度的 cos 和 sin；不是旋转",
    ),
    "of_atoms": Words(
        "queries and keys are rotated by the atom's coordinates and its residue", "查询和键按原子的坐标和残基旋转"
    ),
    "Learned": Words("a learned vector for each position is added to the embeddings", "每个位置学习一个向量，加到词嵌入上"),
    "LearnedGrid": Words(
        "a learned vector for each cell of a grid is added to the embeddings", "网格的每格学习一个向量，加到词嵌入上"
    ),
    "LearnedAxes": Words(
        "a learned vector for each coordinate of a token is added to the embeddings",
        "词元的每个坐标学习一个向量，加到词嵌入上",
    ),
    "GatedTiles": Words(
        "learned vectors of the tile and of the patch in it, with a gate, are added to the embeddings",
        "拼块及其中图块的学习向量经门控后加到词嵌入上",
    ),
    "XPath": Words(
        "learned vectors of each token's path in the document are added to the embeddings",
        "词元在文档中的路径各有学习的向量，加到词嵌入上",
    ),
    "MeanOfRows": Words(
        "the mean of the learned vectors of a token's positions is added to its embedding",
        "词元各位置的学习向量取平均，加到其嵌入上",
    ),
    "LinearBoxes": Words(
        "a learned linear function of a box is averaged with the embedding", "框的学习线性函数与嵌入取平均"
    ),
    "Sinusoidal": Words("sines and cosines of the position are added to the embeddings", "位置的正弦和余弦加到词嵌入上"),
    "ScaledSinusoidal": Words(
        "sines and cosines of the position, times one learned number, are added to the embeddings",
        "位置的正弦和余弦乘以一个学习的数，加到词嵌入上",
    ),
    "RandomFourier": Words(
        "sines and cosines of random projections of coordinates are added to the embeddings",
        "坐标的随机投影的正弦和余弦加到词嵌入上",
    ),
    "FourierBands": Words(
        "coordinates, with their sines and cosines, are used as further channels of the input",
        "坐标及其正弦和余弦作为输入的更多通道",
    ),
    "Convolutional": Words("a convolution over the tokens is added to the embeddings", "对词元的卷积加到词嵌入上"),
    "Conditional": Words(
        "a convolution over the neighbouring patches is added, channel by channel", "对相邻图块的逐通道卷积加到嵌入上"
    ),
    "ALiBi": Words(
        "scores decrease linearly with distance, with a slope for each head", "注意力分数随距离线性减小，每个头一个斜率"
    ),
    "FalconALiBi": Words(
        "scores increase linearly with the key's position, with a slope for each head, rounded to bfloat16",
        "注意力分数随键的位置线性增大，每个头一个斜率，舍入到 bfloat16",
    ),
    "T5": Words(
        "scores get a learned number for each head and bucket of distance", "每个头、每个距离桶学习一个数，加到注意力分数上"
    ),
    "T5Axes": Words(
        "scores get a learned number for each head and bucket of distance along each coordinate",
        "每个头、每个坐标上的每个距离桶学习一个数，加到注意力分数上",
    ),
    "T5OfContent": Words(
        "scores get a function of the hidden state for each bucket of distance",
        "每个距离桶有一个隐藏状态的函数，加到注意力分数上",
    ),
    "GatedT5": Words(
        "scores get a learned number for each head and bucket of distance, times a gate for each query",
        "每个头、每个距离桶学习一个数，乘以每个查询的门，加到注意力分数上",
    ),
    "SegmentedT5": Words(
        "scores get a learned number for each bucket of distance within a segment, and for each pair of segments",
        "同一段内每个距离桶、不同段的每一对各学习一个数，加到注意力分数上",
    ),
    "DistanceTable": Words(
        "scores get a learned number for each clipped distance", "每个截断的距离学习一个数，加到注意力分数上"
    ),
    "WindowBias": Words(
        "scores get a learned number for each difference in row and column", "每个行差和列差学习一个数，加到注意力分数上"
    ),
    "ContinuousWindowBias": Words(
        "scores get a network of the logarithm of the differences in row and column; attention is by cosine",
        "行差和列差的对数经过网络，加到注意力分数上；注意力用余弦",
    ),
    "BoxBias": Words(
        "scores get networks of the logarithms of the differences in row and column",
        "行差和列差的对数各经过网络，加到注意力分数上",
    ),
    "DecomposedBias": Words(
        "scores get products of the query with a learned vector for the difference in rows, and in columns",
        "行差和列差各学习一个向量，与查询的内积加到注意力分数上",
    ),
    "Shaw": Words(
        "scores get a product of the query with a learned vector for each distance",
        "每个距离学习一个向量，与查询的内积加到注意力分数上",
    ),
    "DistanceBank": Words(
        "scores get a product of learned vectors, one for each distance, with a function of query or hidden state",
        "每个距离学习一个向量，与查询或隐藏状态的函数的内积加到注意力分数上",
    ),
    "TransformerXL": Words(
        "scores get a product of the query with transformed sinusoids of the distance",
        "查询与距离的正余弦变换后的内积加到注意力分数上",
    ),
    "SinusoidalKeys": Words(
        "scores get a product of the query with transformed sinusoids of the distance, within reach",
        "在可及的距离内，查询与距离的正余弦变换后的内积加到注意力分数上",
    ),
    "SinusoidalBoxes": Words(
        "scores get a product of the query with transformed sinusoids of the differences of two boxes",
        "查询与两个框之差的正余弦变换后的内积加到注意力分数上",
    ),
    "XLNet": Words(
        "scores get the terms of Transformer-XL and one for equal or different segments",
        "注意力分数加上 Transformer-XL 的各项，以及表示段相同或不同的一项",
    ),
    "Funnel": Words(
        "scores get XLNet's terms; the class token has no position", "注意力分数加上 XLNet 的各项；类别词元没有位置"
    ),
    "DeBERTa": Words(
        "scores get products of content with learned vectors for distances, both ways",
        "内容与各距离的学习向量的内积（两个方向）加到注意力分数上",
    ),
    "PowerTemperature": Words("queries are scaled by a power of their position", "查询按其位置的幂缩放"),
    "FloorLogTemperature": Words(
        "queries are scaled by a logarithm of their position, in steps", "查询按其位置的对数分级缩放"
    ),
    "LearnedTemperature": Words(
        "queries are scaled by a learned function of the logarithm of their position", "查询按其位置的对数的学习函数缩放"
    ),
}

KINDS = {
    "full_attention": Words("full attention", "完整注意力"),
    "sliding_attention": Words("sliding attention", "滑动窗口注意力"),
    "linear_attention": Words("linear attention", "线性注意力"),
    "chunked_attention": Words("chunked attention", "分块注意力"),
    "cross_attention": Words("cross attention", "交叉注意力"),
    "self_attention": Words("self attention", "自注意力"),
    "conv": Words("convolution", "卷积"),
    "convolution": Words("convolution", "卷积"),
    "mlp": Words("MLP", "MLP"),
    "moe": Words("mixture of experts", "混合专家"),
    "hybrid": Words("attention and recurrence", "注意力与递推"),
    "hybrid_sliding": Words("sliding attention and recurrence", "滑动窗口注意力与递推"),
    "reference_sliding_attention": Words("sliding attention with a reference", "带参照的滑动窗口注意力"),
    "no_attention": Words("no attention", "没有注意力"),
    "window": Words("windows", "窗口"),
    "window_attention": Words("attention in windows", "窗口注意力"),
    "shifted_window": Words("shifted windows", "移位窗口"),
    "neighbourhood": Words("attention to neighbours", "邻域注意力"),
    "block_attention": Words("attention in blocks", "块内注意力"),
    "channel_attention": Words("attention across channels", "通道间注意力"),
    "local": Words("local attention", "局部注意力"),
    "global": Words("global attention", "全局注意力"),
    "lsh": Words("attention by equal hashes", "按哈希值的注意力"),
    "autocorrelation": Words("attention by delay", "按延迟的注意力"),
    "prob_sparse": Words("sparse attention by samples", "按抽样的稀疏注意力"),
    "deformable": Words("deformable attention", "可变形注意力"),
    "indexed_attention": Words("attention to selected tokens", "对选出词元的注意力"),
    "indexer": Words("indexer", "索引器"),
    "shared_indexer": Words("shared indexer", "共用的索引器"),
    "no_indexer": Words("attention without an indexer", "没有索引器的注意力"),
    "compressed_sparse_attention": Words("compressed sparse attention", "压缩稀疏注意力"),
    "heavily_compressed_attention": Words("heavily compressed attention", "高度压缩注意力"),
    "embedding": Words("embedding", "嵌入"),
    "latents": Words("latent vectors", "潜在向量"),
    "queries": Words("object queries", "物体查询"),
    "queries_to_image": Words("object queries to the image", "物体查询对图像"),
    "queries_to_text": Words("object queries to the text", "物体查询对文本"),
    "image_and_text": Words("image and text", "图像与文本"),
    "boxes": Words("boxes", "框"),
    "boxes_to_image": Words("boxes to the image", "框对图像"),
    "prompts": Words("prompts", "提示"),
    "prompts_to_image": Words("prompts to the image", "提示对图像"),
    "image_to_prompts": Words("image to the prompts", "图像对提示"),
    "two_way": Words("both ways between prompts and image", "提示与图像双向"),
    "token_to_image": Words("tokens to the image", "词元对图像"),
    "image": Words("image", "图像"),
    "text": Words("text", "文本"),
    "language": Words("language", "语言"),
    "frames": Words("frames", "帧"),
    "spatial": Words("within a frame", "帧内"),
    "temporal": Words("across frames", "帧间"),
    "divided_space_time": Words("across frames, then within each", "先帧间，后帧内"),
    "memory_self": Words("memory: within the frame", "记忆：帧内"),
    "memory_cross": Words("memory: to earlier frames", "记忆：对之前的帧"),
    "neck": Words("neck", "颈部"),
    "adapter": Words("adapter", "适配器"),
    "adaptor": Words("adaptor", "适配器"),
    "projector": Words("projector", "投影器"),
    "pooling": Words("pooling", "池化"),
    "subsampling": Words("subsampling", "降采样"),
    "fourier": Words("Fourier features", "傅里叶特征"),
    "mixer": Words("mixer", "混合层"),
    "map": Words("map", "图"),
    "molecules": Words("molecules", "分子"),
    "self": Words("self attention", "自注意力"),
    "cross": Words("cross attention", "交叉注意力"),
    "cross_modal": Words("attention across modalities", "跨模态注意力"),
}
NUMBERED = {"stage": Words("stage {0}", "第 {0} 阶段"), "block": Words("block {0}", "第 {0} 块")}

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
    return SENTENCES.get(encoding, Words(docstring.rstrip("."), docstring.rstrip(".")))


def kind(name: str) -> Words:
    """The kind of a layer, such as "sliding_attention" or "stage 2", in words."""
    stem, _, number = name.replace("_", " ").rpartition(" ")
    if stem in NUMBERED and number.isdecimal():
        return Words(*(said.format(number) for said in NUMBERED[stem]))
    return KINDS.get(name, Words(name.replace("_", " "), name.replace("_", " ")))


def origin(said: str, language: Language) -> str:
    """Where a value comes from: a key of the file stays as it is."""
    if language == "zh":
        for pattern, chinese in ORIGINS:
            said = re.sub(pattern, chinese, said)
    return said
