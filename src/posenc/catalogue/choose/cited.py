"""What papers and model reports say of entries, as evidence for a choice. Each has its source; none is a figure of ours."""

from __future__ import annotations

from typing import NamedTuple

from posenc.catalogue.say import say
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
            say("as good as the best known methods or better, on sequences, trees and images"),
            "Kogkalidis et al. 2023, arXiv 2312.16045, abstract",
        ),
    ),
    "giraffe": (
        Cited(
            say("the truncated basis extrapolates promisingly; of the methods compared, linear scaling is the best"),
            "Pal et al. 2023, arXiv 2308.10882, abstract",
            1.0,
        ),
    ),
    "clex": (
        Cited(
            say(
                "Llama 2 7B trained on with it at 16k tokens has perplexity 5.52 there and 5.64 at 64k; YaRN 5.96 and 6.22"
            ),
            "the authors' repository, DAMO-NLP-SG/CLEX; Chen et al. 2023, arXiv 2310.16450",
            4.0,
        ),
    ),
    "complex_order": (
        Cited(
            say(
                "a one-layer Transformer with it classifies all of six data sets more accurately than with sinusoids or a "
                "learned table"
            ),
            "Wang et al. 2020, arXiv 1912.12333, table 2",
        ),
    ),
    "ms_poe": (
        Cited(
            say("without training, the average accuracy on Zero-SCROLLS rises by up to 3.8 over that of the same models"),
            "Zhang et al. 2024, arXiv 2403.04797, abstract",
        ),
    ),
    "wavelet": (
        Cited(
            say("a model trained on 512 tokens has perplexity 19.19 there and 17.99 at 2512; ALiBi 19.69 and 18.41"),
            "Oka et al. 2025, arXiv 2502.02004, table 1",
            4.9,
        ),
    ),
    "bam": (
        Cited(
            say(
                "retrieves a passkey accurately at up to 500 times the trained length, together with SSMax; its "
                "perplexity is like that of other encodings"
            ),
            "Bianchessi et al. 2025, arXiv 2505.22842, abstract and README of the authors' code",
            500.0,
        ),
    ),
    "shifted_rope": (
        Cited(
            say(
                "without training, Llama 3.1 70B and Qwen2 72B gain over 10 points on RULER and InfiniteBench within their "
                "trained length"
            ),
            "An et al. 2024, arXiv 2410.18745, abstract",
        ),
    ),
    "to_rope": (
        Cited(
            say("more accurate recommendations than other ways to encode time and index, on public and industrial data"),
            "Wei et al. 2025, arXiv 2510.20455, abstract",
        ),
    ),
    "hstu": (
        Cited(
            say(
                "the recommender that it is part of outperforms baselines by up to 65.8 % in NDCG, on synthetic and "
                "public data"
            ),
            "Zhai et al. 2024, arXiv 2402.17152, abstract",
        ),
    ),
    "alibi": (
        Cited(
            say("trained on 1024 tokens, it reads 2048 with the perplexity of a sinusoidal model trained on 2048"),
            "Press et al. 2021, arXiv 2108.12409, abstract",
            2.0,
        ),
    ),
    "fox": (
        Cited(
            say(
                "better than a Transformer in language modelling on long contexts, on longer texts and on short tasks; "
                "as good on tasks with long contexts"
            ),
            "Lin et al. 2025, arXiv 2503.02130, abstract",
            1.0,
        ),
    ),
    "path": (
        Cited(
            say("better than RoPE and other recent baselines on synthetic tasks and in language models"),
            "Yang et al. 2025, arXiv 2505.16381, abstract",
        ),
    ),
    "stick_breaking": (
        Cited(
            say("trained on 2048 tokens, its perplexity still improves up to 16 384; on tasks it is about as good as RoPE"),
            "Tan et al. 2024, arXiv 2410.17980, abstract",
            8.0,
        ),
    ),
    "fire": (
        Cited(
            say("better generalisation to longer contexts than other relative encodings, in language models"),
            "Li et al. 2024, arXiv 2310.04418, abstract",
            1.0,
        ),
    ),
    "randomized": (
        Cited(
            say("test accuracy on lengths never seen rises by 12.0 % on average, over 6000 models and 15 tasks"),
            "Ruoss et al. 2023, arXiv 2305.16843, abstract",
            1.0,
        ),
    ),
    "rnope_swa": (
        Cited(
            say("layers without positions beside layers with RoPE do better on long contexts than RoPE alone"),
            "Yang et al. 2025, arXiv 2501.18795, abstract",
            1.0,
        ),
    ),
    "yarn": (
        Cited(
            say("10 times fewer tokens and 2.5 times fewer training steps than earlier methods; Llama 2 to 128k tokens"),
            "Peng et al. 2023, arXiv 2309.00071, abstract and section 4",
            32.0,
        ),
    ),
    "linear": (
        Cited(
            say("LLaMA from 2048 to 32 768 tokens within 1000 steps of fine-tuning"),
            "Chen et al. 2023, arXiv 2306.15595, abstract",
            16.0,
        ),
    ),
    "llama3": (
        Cited(
            say("Llama 3.1 from 8192 to 131 072 tokens, with further training"),
            "Llama Team 2024, arXiv 2407.21783, section 3.4.2",
            16.0,
        ),
    ),
    "longrope": (
        Cited(
            say("to 2048k tokens, with at most 1000 steps of fine-tuning on up to 256k"),
            "Ding et al. 2024, arXiv 2402.13753, abstract",
            512.0,
        ),
    ),
    "adjusted_base": (
        Cited(
            say("Llama 2 trained on to 32 768 tokens with a larger base"),
            "Xiong et al. 2023, arXiv 2309.16039, abstract and section 4.1",
            8.0,
        ),
    ),
    "dual_chunk": (
        Cited(
            say("Llama 2 70B to more than 100k tokens without training"), "An et al. 2024, arXiv 2402.17463, abstract", 24.0
        ),
    ),
    "self_extend": (
        Cited(
            say("longer contexts without fine-tuning, with minor changes of the code"),
            "Jin et al. 2024, arXiv 2401.01325, abstract",
            1.0,
        ),
    ),
    "lm_infinite": (
        Cited(
            say("models trained on 2k or 4k tokens keep their perplexity on up to 200 million, without training"),
            "Han et al. 2024, arXiv 2308.16137, abstract",
            50000.0,
        ),
    ),
    "streaming_llm": (
        Cited(
            say("stable on 4 million tokens and more without fine-tuning; it remembers the window only"),
            "Xiao et al. 2023, arXiv 2309.17453, abstract",
            1000.0,
        ),
    ),
    "pose": (
        Cited(
            say("LLaMA to 128k tokens, trained within a window of 2k"), "Zhu et al. 2023, arXiv 2309.10400, abstract", 64.0
        ),
    ),
    "drope": (
        Cited(
            say("dropping RoPE after training and recalibrating briefly extends the context without long texts"),
            "Gelberg et al. 2025, arXiv 2512.12167, abstract",
            1.0,
        ),
    ),
    "nope": (
        Cited(
            say("attention by itself knows neither the positions nor the order of the tokens"),
            "Haviv et al. 2022, arXiv 2203.16634, section 1",
        ),
    ),
    "rope_mixed": (
        Cited(
            say("image models with 2-D RoPE keep their precision when the resolution grows in use"),
            "Heo et al. 2024, arXiv 2403.13298, abstract",
            1.0,
        ),
    ),
    "axial_rope": (
        Cited(
            say("image models with 2-D RoPE keep their precision when the resolution grows in use"),
            "Heo et al. 2024, arXiv 2403.13298, abstract",
            1.0,
        ),
    ),
    "swin_v2": (
        Cited(
            say("models pre-trained on small images carry over to larger ones; trained with up to 1536 × 1536 pixels"),
            "Liu et al. 2021, arXiv 2111.09883, abstract",
            1.0,
        ),
    ),
    "conditional": (
        Cited(
            say("generalises to longer inputs than any seen in training"),
            "Chu et al. 2021, arXiv 2102.10882, abstract",
            1.0,
        ),
    ),
    "patch_centres": (
        Cited(
            say("coordinates between -1 and 1, jittered in training, make the model robust to resolution and shape"),
            "Siméoni et al. 2025, arXiv 2508.10104, section 3.2",
            1.0,
        ),
    ),
    "vit": (
        Cited(
            say("at a higher resolution the learned grid is interpolated, and the model fine-tuned"),
            "Dosovitskiy et al. 2020, arXiv 2010.11929, section 3.2",
            1.0,
        ),
    ),
    "riflex": (
        Cited(
            say("videos of twice the length without training, of three times with little fine-tuning"),
            "Zhao et al. 2025, arXiv 2502.15894, abstract",
            3.0,
        ),
    ),
    "convolutional": (
        Cited(
            say("the encoding of wav2vec 2.0: a convolution in the place of fixed positions"),
            "Baevski et al. 2020, arXiv 2006.11477, section 2",
        ),
    ),
    "wavlm": (Cited(say("the encoding of WavLM, for speech"), "Chen et al. 2021, arXiv 2110.13900, section 3.1"),),
    "selective_rope": (
        Cited(
            say("with it, gated Transformers do better in language modelling and on copying, state tracking and retrieval"),
            "Movahedi et al. 2025, arXiv 2511.17388, abstract",
        ),
    ),
    "kerple": (
        Cited(
            say("the logarithmic kernel extrapolates well on three large corpora"),
            "Chi et al. 2022, arXiv 2205.09921, abstract",
            1.0,
        ),
    ),
    "lappe": (
        Cited(
            say("Laplacian eigenvectors as positions of nodes, with gains for message-passing networks"),
            "Dwivedi et al. 2020, arXiv 2003.00982, section on graph positional encoding",
        ),
    ),
    "rwse": (
        Cited(
            say("learned positions that begin as random walks improve results on molecules by 1.79 % to 64.14 %"),
            "Dwivedi et al. 2021, arXiv 2110.07875, abstract",
        ),
    ),
}
