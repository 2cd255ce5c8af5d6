"""What papers and model reports say of entries, as evidence for a choice. Each has its source; none is a figure of ours."""

from __future__ import annotations

from typing import NamedTuple

from posenc.support.languages import Words


class Cited(NamedTuple):
    """says: the claim; source: where it stands; factor: the largest length over the trained one that
    it names; 1 where it speaks of longer ones without a number, None where it speaks of something else."""

    says: Words
    source: str
    factor: float | None = None


CITED: dict[str, tuple[Cited, ...]] = {
    "ape": (
        Cited(
            Words(
                "as good as the best known methods or better, on sequences, trees and images",
                "在序列、树和图像上与当时最好的方法相当或更好",
            ),
            "Kogkalidis et al. 2023, arXiv 2312.16045, abstract",
        ),
    ),
    "giraffe": (
        Cited(
            Words(
                "the truncated basis extrapolates promisingly; of the methods compared, linear scaling is the best",
                "截断基有可期的外推能力；所比较的方法中线性缩放最好",
            ),
            "Pal et al. 2023, arXiv 2308.10882, abstract",
            1.0,
        ),
    ),
    "clex": (
        Cited(
            Words(
                "Llama 2 7B trained on with it at 16k tokens has perplexity 5.52 there and 5.64 at 64k; YaRN 5.96 and 6.22",
                "用它在 16k 个词上继续训练的 Llama 2 7B，该长度上困惑度为 5.52，64k 上为 5.64；YaRN 为 5.96 和 6.22",
            ),
            "the authors' repository, DAMO-NLP-SG/CLEX; Chen et al. 2023, arXiv 2310.16450",
            4.0,
        ),
    ),
    "complex_order": (
        Cited(
            Words(
                "a one-layer Transformer with it classifies all of six data sets more accurately than with sinusoids or a "
                "learned table",
                "使用它的单层 Transformer 在全部六个分类数据集上都比使用正弦编码或可学习表更准确",
            ),
            "Wang et al. 2020, arXiv 1912.12333, table 2",
        ),
    ),
    "ms_poe": (
        Cited(
            Words(
                "without training, the average accuracy on Zero-SCROLLS rises by up to 3.8 over that of the same models",
                "无需训练，在 Zero-SCROLLS 上的平均准确率比原模型最多提高 3.8",
            ),
            "Zhang et al. 2024, arXiv 2403.04797, abstract",
        ),
    ),
    "wavelet": (
        Cited(
            Words(
                "a model trained on 512 tokens has perplexity 19.19 there and 17.99 at 2512; ALiBi 19.69 and 18.41",
                "在 512 个词上训练的模型，该长度上困惑度为 19.19，在 2512 个词上为 17.99；ALiBi 为 19.69 和 18.41",
            ),
            "Oka et al. 2025, arXiv 2502.02004, table 1",
            4.9,
        ),
    ),
    "bam": (
        Cited(
            Words(
                "retrieves a passkey accurately at up to 500 times the trained length, together with SSMax; its "
                "perplexity is like that of other encodings",
                "与 SSMax 合用时，在训练长度的 500 倍处仍能准确找出密钥，困惑度与其他编码相当",
            ),
            "Bianchessi et al. 2025, arXiv 2505.22842, abstract and README of the authors' code",
            500.0,
        ),
    ),
    "shifted_rope": (
        Cited(
            Words(
                "without training, Llama 3.1 70B and Qwen2 72B gain over 10 points on RULER and InfiniteBench within their "
                "trained length",
                "无需训练，Llama 3.1 70B 和 Qwen2 72B 在训练长度内的 RULER 与 InfiniteBench 上提高 10 分以上",
            ),
            "An et al. 2024, arXiv 2410.18745, abstract",
        ),
    ),
    "to_rope": (
        Cited(
            Words(
                "more accurate recommendations than other ways to encode time and index, on public and industrial data",
                "在公开与工业数据上，推荐比其他编码时间与序号的方法更准确",
            ),
            "Wei et al. 2025, arXiv 2510.20455, abstract",
        ),
    ),
    "hstu": (
        Cited(
            Words(
                "the recommender that it is part of outperforms baselines by up to 65.8 % in NDCG, on synthetic and "
                "public data",
                "使用它的推荐模型在合成与公开数据上比基线的 NDCG 最多高 65.8 %",
            ),
            "Zhai et al. 2024, arXiv 2402.17152, abstract",
        ),
    ),
    "alibi": (
        Cited(
            Words(
                "trained on 1024 tokens, it reads 2048 with the perplexity of a sinusoidal model trained on 2048",
                "在 1024 个词上训练，读 2048 个词时困惑度与在 2048 个词上训练的正弦模型相同",
            ),
            "Press et al. 2021, arXiv 2108.12409, abstract",
            2.0,
        ),
    ),
    "fox": (
        Cited(
            Words(
                "better than a Transformer in language modelling on long contexts, on longer texts and on short tasks; "
                "as good on tasks with long contexts",
                "在长上下文的语言建模、更长的文本和短任务上优于 Transformer；在长上下文任务上相当",
            ),
            "Lin et al. 2025, arXiv 2503.02130, abstract",
            1.0,
        ),
    ),
    "path": (
        Cited(
            Words(
                "better than RoPE and other recent baselines on synthetic tasks and in language models",
                "在合成任务和语言模型上优于 RoPE 和其他近期基线",
            ),
            "Yang et al. 2025, arXiv 2505.16381, abstract",
        ),
    ),
    "stick_breaking": (
        Cited(
            Words(
                "trained on 2048 tokens, its perplexity still improves up to 16 384; on tasks it is about as good as RoPE",
                "在 2048 个词上训练，到 16 384 个词困惑度仍在改进；在任务上与 RoPE 相当",
            ),
            "Tan et al. 2024, arXiv 2410.17980, abstract",
            8.0,
        ),
    ),
    "fire": (
        Cited(
            Words(
                "better generalisation to longer contexts than other relative encodings, in language models",
                "在语言模型上，对更长上下文的泛化优于其他相对编码",
            ),
            "Li et al. 2024, arXiv 2310.04418, abstract",
            1.0,
        ),
    ),
    "randomized": (
        Cited(
            Words(
                "test accuracy on lengths never seen rises by 12.0 % on average, over 6000 models and 15 tasks",
                "在从未见过的长度上，测试准确率平均提高 12.0%，共 6000 个模型、15 个任务",
            ),
            "Ruoss et al. 2023, arXiv 2305.16843, abstract",
            1.0,
        ),
    ),
    "rnope_swa": (
        Cited(
            Words(
                "layers without positions beside layers with RoPE do better on long contexts than RoPE alone",
                "无位置的层与 RoPE 层交替，长上下文优于只用 RoPE",
            ),
            "Yang et al. 2025, arXiv 2501.18795, abstract",
            1.0,
        ),
    ),
    "yarn": (
        Cited(
            Words(
                "10 times fewer tokens and 2.5 times fewer training steps than earlier methods; Llama 2 to 128k tokens",
                "所需的词少 10 倍、训练步数少 2.5 倍；把 Llama 2 扩展到 128k 个词",
            ),
            "Peng et al. 2023, arXiv 2309.00071, abstract and section 4",
            32.0,
        ),
    ),
    "linear": (
        Cited(
            Words(
                "LLaMA from 2048 to 32 768 tokens within 1000 steps of fine-tuning",
                "LLaMA 从 2048 扩展到 32 768 个词，微调 1000 步以内",
            ),
            "Chen et al. 2023, arXiv 2306.15595, abstract",
            16.0,
        ),
    ),
    "llama3": (
        Cited(
            Words(
                "Llama 3.1 from 8192 to 131 072 tokens, with further training",
                "Llama 3.1 从 8192 扩展到 131 072 个词，经过继续训练",
            ),
            "Llama Team 2024, arXiv 2407.21783, section 3.4.2",
            16.0,
        ),
    ),
    "longrope": (
        Cited(
            Words(
                "to 2048k tokens, with at most 1000 steps of fine-tuning on up to 256k",
                "扩展到 2048k 个词，在至多 256k 的长度上微调至多 1000 步",
            ),
            "Ding et al. 2024, arXiv 2402.13753, abstract",
            512.0,
        ),
    ),
    "adjusted_base": (
        Cited(
            Words(
                "Llama 2 trained on to 32 768 tokens with a larger base",
                "增大底数，Llama 2 继续训练到 32 768 个词",
            ),
            "Xiong et al. 2023, arXiv 2309.16039, abstract and section 4.1",
            8.0,
        ),
    ),
    "dual_chunk": (
        Cited(
            Words(
                "Llama 2 70B to more than 100k tokens without training",
                "Llama 2 70B 无需训练即可读 10 万以上的词",
            ),
            "An et al. 2024, arXiv 2402.17463, abstract",
            24.0,
        ),
    ),
    "self_extend": (
        Cited(
            Words(
                "longer contexts without fine-tuning, with minor changes of the code",
                "无需微调，只需少量改动代码即可扩展上下文",
            ),
            "Jin et al. 2024, arXiv 2401.01325, abstract",
            1.0,
        ),
    ),
    "lm_infinite": (
        Cited(
            Words(
                "models trained on 2k or 4k tokens keep their perplexity on up to 200 million, without training",
                "在 2k 或 4k 个词上训练的模型，无需训练即可在至多 2 亿个词上保持困惑度",
            ),
            "Han et al. 2024, arXiv 2308.16137, abstract",
            50000.0,
        ),
    ),
    "streaming_llm": (
        Cited(
            Words(
                "stable on 4 million tokens and more without fine-tuning; it remembers the window only",
                "无需微调，在 400 万以上的词上保持稳定；只记得窗口内的内容",
            ),
            "Xiao et al. 2023, arXiv 2309.17453, abstract",
            1000.0,
        ),
    ),
    "pose": (
        Cited(
            Words(
                "LLaMA to 128k tokens, trained within a window of 2k",
                "在 2k 的窗口内训练，把 LLaMA 扩展到 128k 个词",
            ),
            "Zhu et al. 2023, arXiv 2309.10400, abstract",
            64.0,
        ),
    ),
    "drope": (
        Cited(
            Words(
                "dropping RoPE after training and recalibrating briefly extends the context without long texts",
                "训练后去掉 RoPE 并短暂重新校准，无需长文本即可扩展上下文",
            ),
            "Gelberg et al. 2025, arXiv 2512.12167, abstract",
            1.0,
        ),
    ),
    "nope": (
        Cited(
            Words(
                "attention by itself knows neither the positions nor the order of the tokens",
                "注意力本身不知道词的位置，也不知道其顺序",
            ),
            "Haviv et al. 2022, arXiv 2203.16634, section 1",
        ),
    ),
    "rope_mixed": (
        Cited(
            Words(
                "image models with 2-D RoPE keep their precision when the resolution grows in use",
                "带二维 RoPE 的图像模型在使用时提高分辨率仍保持精度",
            ),
            "Heo et al. 2024, arXiv 2403.13298, abstract",
            1.0,
        ),
    ),
    "axial_rope": (
        Cited(
            Words(
                "image models with 2-D RoPE keep their precision when the resolution grows in use",
                "带二维 RoPE 的图像模型在使用时提高分辨率仍保持精度",
            ),
            "Heo et al. 2024, arXiv 2403.13298, abstract",
            1.0,
        ),
    ),
    "swin_v2": (
        Cited(
            Words(
                "models pre-trained on small images carry over to larger ones; trained with up to 1536 × 1536 pixels",
                "在小图像上预训练的模型可迁移到更大的图像；训练图像至多 1536 × 1536 像素",
            ),
            "Liu et al. 2021, arXiv 2111.09883, abstract",
            1.0,
        ),
    ),
    "conditional": (
        Cited(
            Words(
                "generalises to longer inputs than any seen in training",
                "能泛化到比训练中更长的输入",
            ),
            "Chu et al. 2021, arXiv 2102.10882, abstract",
            1.0,
        ),
    ),
    "patch_centres": (
        Cited(
            Words(
                "coordinates between -1 and 1, jittered in training, make the model robust to resolution and shape",
                "坐标介于 -1 与 1 之间并在训练时抖动，使模型对分辨率和形状稳健",
            ),
            "Siméoni et al. 2025, arXiv 2508.10104, section 3.2",
            1.0,
        ),
    ),
    "vit": (
        Cited(
            Words(
                "at a higher resolution the learned grid is interpolated, and the model fine-tuned",
                "分辨率提高时，对学到的网格插值并微调模型",
            ),
            "Dosovitskiy et al. 2020, arXiv 2010.11929, section 3.2",
            1.0,
        ),
    ),
    "riflex": (
        Cited(
            Words(
                "videos of twice the length without training, of three times with little fine-tuning",
                "无需训练即可生成两倍长的视频，少量微调可达三倍",
            ),
            "Zhao et al. 2025, arXiv 2502.15894, abstract",
            3.0,
        ),
    ),
    "convolutional": (
        Cited(
            Words(
                "the encoding of wav2vec 2.0: a convolution in the place of fixed positions",
                "wav2vec 2.0 的编码：以卷积代替固定位置",
            ),
            "Baevski et al. 2020, arXiv 2006.11477, section 2",
        ),
    ),
    "wavlm": (
        Cited(
            Words("the encoding of WavLM, for speech", "WavLM 的语音编码"),
            "Chen et al. 2021, arXiv 2110.13900, section 3.1",
        ),
    ),
    "selective_rope": (
        Cited(
            Words(
                "with it, gated Transformers do better in language modelling and on copying, state tracking and retrieval",
                "使带门控的 Transformer 在语言建模和复制、状态跟踪、检索任务上有所改进",
            ),
            "Movahedi et al. 2025, arXiv 2511.17388, abstract",
        ),
    ),
    "kerple": (
        Cited(
            Words(
                "the logarithmic kernel extrapolates well on three large corpora",
                "对数核在三个大型语料上外推良好",
            ),
            "Chi et al. 2022, arXiv 2205.09921, abstract",
            1.0,
        ),
    ),
    "lappe": (
        Cited(
            Words(
                "Laplacian eigenvectors as positions of nodes, with gains for message-passing networks",
                "以拉普拉斯特征向量作为节点位置，消息传递网络有所改进",
            ),
            "Dwivedi et al. 2020, arXiv 2003.00982, section on graph positional encoding",
        ),
    ),
    "rwse": (
        Cited(
            Words(
                "learned positions that begin as random walks improve results on molecules by 1.79 % to 64.14 %",
                "由随机游走初始化并继续学习的位置，使分子数据上的结果改进 1.79% 到 64.14%",
            ),
            "Dwivedi et al. 2021, arXiv 2110.07875, abstract",
        ),
    ),
}
