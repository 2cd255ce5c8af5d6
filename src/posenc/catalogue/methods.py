"""The methods of the literature: the entry of each, or the reason why there is none.

The site's page of methods is this table. A name that leads to no entry yet says so instead of leading somewhere else.
"""

from __future__ import annotations

from typing import NamedTuple

from posenc.catalogue.say import say
from posenc.support.languages import Words

NOT_YET = say("not here yet")


class Method(NamedTuple):
    """One method.

    title    its name in texts
    entry    the name of its entry, there or to come
    source   paper, or code
    also     other words that mean it, for hints while it has no entry
    instead  what to do or why there is none, where no entry is to come; said beside the entry where there is one
    """

    title: str
    entry: str
    source: str
    also: tuple[str, ...] = ()
    instead: Words | None = None


# What belongs in every such library; what is good to have; what else was asked for.
GROUPS: dict[str, tuple[Words, tuple[Method, ...]]] = {
    "A": (
        say("A: in the models that people use"),
        (
            Method("Sinusoidal", "sinusoidal", "arXiv 1706.03762"),
            Method("Learned", "learned", "arXiv 1705.03122"),
            Method("2-D sinusoids", "sinusoidal_2d", "arXiv 2111.06377"),
            Method("Shaw's relative vectors", "shaw", "arXiv 1803.02155"),
            Method("Transformer-XL", "transformer_xl", "arXiv 1901.02860"),
            Method("XLNet", "xlnet", "arXiv 1906.08237"),
            Method("T5's buckets", "t5", "arXiv 1910.10683"),
            Method("ALiBi", "alibi", "arXiv 2108.12409"),
            Method("ALiBi of Falcon", "falcon_alibi", "transformers, models/falcon"),
            Method("DeBERTa", "deberta", "arXiv 2006.03654"),
            Method("DeBERTa v2", "deberta_v2", "arXiv 2111.09543"),
            Method("Swin", "swin", "arXiv 2103.14030"),
            Method("Swin v2", "swin_v2", "arXiv 2111.09883"),
            Method("BEiT", "beit", "arXiv 2106.08254"),
            Method("Decomposed relative positions", "decomposed", "arXiv 2112.01526"),
            Method("KERPLE", "kerple", "arXiv 2205.09921"),
            Method("FIRE", "fire", "arXiv 2310.04418"),
            Method("FoX, the forgetting transformer", "fox", "arXiv 2503.02130"),
            Method("Inkling's bank", "inkling", "transformers, models/inkling"),
            Method("RoPE", "rope", "arXiv 2104.09864"),
            Method("Partial RoPE", "partial", "arXiv 2204.06745"),
            Method("Proportional RoPE", "proportional", "arXiv 2410.06205"),
            Method("Position interpolation", "linear", "arXiv 2306.15595"),
            Method("NTK-aware scaling", "ntk", "arXiv 2309.00071"),
            Method("NTK by parts", "ntk_by_parts", "arXiv 2309.00071"),
            Method("YaRN", "yarn", "arXiv 2309.00071"),
            Method("YaRN of DeepSeek", "deepseek_yarn", "arXiv 2405.04434"),
            Method("Dynamic NTK", "dynamic", "arXiv 2309.00071"),
            Method("Llama 3's scaling", "llama3", "arXiv 2407.21783"),
            Method("LongRoPE", "longrope", "arXiv 2402.13753"),
            Method("Adjusted base", "adjusted_base", "arXiv 2309.16039"),
            Method("xPos", "xpos", "arXiv 2212.10554"),
            Method("Axial RoPE", "axial_rope", "arXiv 2303.11331"),
            Method("RoPE of Pixtral", "pixtral_rope", "arXiv 2410.07073"),
            Method("RoPE of DINOv3", "dinov3_rope", "arXiv 2508.10104"),
            Method("LeRoPE", "lerope", "arXiv 2607.10134"),
            Method("RoPE-Mixed", "rope_mixed", "arXiv 2403.13298"),
            Method("M-RoPE", "mrope", "arXiv 2409.12191"),
            Method("Interleaved M-RoPE", "interleaved_mrope", "arXiv 2511.21631"),
            Method("Positions of M-RoPE", "mrope_ids", "arXiv 2409.12191"),
            Method("RoVE, rotated values", "rove", "a post (kexue.fm 10862)"),
            Method("Decoupled RoPE", "decoupled_rope", "arXiv 2405.04434"),
            Method("NoPE", "nope", "arXiv 2203.16634"),
            Method("iRoPE", "irope", "the code of Llama 4"),
            Method("RoPE in windows, NoPE beyond", "rnope_swa", "arXiv 2501.18795"),
            Method("A base for each kind of layer", "gemma3", "arXiv 2503.19786"),
            Method("SSMax", "ssmax", "arXiv 2501.19399"),
            Method("Log-n scaling", "log_n", "a post (kexue.fm 8823)"),
            Method("Temperature of Llama 4", "llama4_temperature", "the code of Llama 4"),
            Method("Temperature of Ministral 3", "ministral_temperature", "transformers, models/ministral3"),
            Method("Temperature of Beam", "beam_temperature", "transformers, models/beam"),
            Method("Temperature of Inkling", "inkling_temperature", "transformers, models/inkling"),
            Method("Temperature of Mistral-Large-4", "mistral_large4_temperature", "transformers, models/mistral_large4"),
            Method("Real positions", "patch_centres", "arXiv 2508.10104"),
        ),
    ),
    "B": (
        say("B: good to have"),
        (
            Method("CAPE", "cape", "arXiv 2106.03143"),
            Method("SHAPE", "shape", "arXiv 2109.05644"),
            Method("Randomized positions", "randomized", "arXiv 2305.16843"),
            Method("PoSE", "pose", "arXiv 2309.10400"),
            Method("Convolutional", "convolutional", "arXiv 1904.11660"),
            Method("Conditional (CPE)", "conditional", "arXiv 2102.10882"),
            Method("TUPE", "tupe", "arXiv 2006.15595", ("untied_positional_encoding",)),
            Method("CoPE, contextual", "cope", "arXiv 2405.18719"),
            Method("DAPE", "dape", "arXiv 2405.14722", ("data_adaptive_positional_encoding",)),
            Method("DAPE V2", "dape_v2", "arXiv 2410.04798"),
            Method("Stick-breaking", "stick_breaking", "arXiv 2410.17980", ("stickbreaking", "stick_breaking_attention")),
            Method("GRAPE-A", "grape_a", "arXiv 2512.07805", ("grape", "additive_grape")),
            Method("GRAPE-AP", "grape_ap", "arXiv 2512.07805", ("path_integral_grape",)),
            Method("GRAPE-M", "grape_m", "arXiv 2512.07805", ("multiplicative_grape",)),
            Method(
                "LongRoPE2",
                "longrope",
                "arXiv 2502.20082",
                (),
                say("its factors are given to longrope; the search for them is not here"),
            ),
            Method("Resonance RoPE", "resonance", "arXiv 2403.00071"),
            Method(
                "RoPE-ID",
                "",
                "arXiv 2603.18017",
                ("rope_id",),
                say(
                    "fast RoPE on half of the channels; by which rule the base follows from the trained length was not "
                    "found. partial takes both: create('partial', fraction=0.5, base=…)"
                ),
            ),
            Method("Clipped RoPE", "clipped", "arXiv 2602.05258"),
            Method("FoPE", "fope", "arXiv 2412.17739", ("fourier_position_embedding",)),
            Method("LieRE", "liere", "arXiv 2406.10322", ("lie_rotational_positional_encodings",)),
            Method("STRING", "cayley_string", "arXiv 2502.02562", ("string", "separable_translationally_invariant")),
            Method("ComRoPE", "com_rope", "arXiv 2506.03737", ("commuting_rope", "comrope")),
            Method("RoPE++", "rope_pp", "arXiv 2512.07525", ("rope++", "ropepp", "imaginary_rope")),
            Method("PoPE", "pope", "arXiv 2509.10534", ("polar_position_embedding",)),
            Method("PaTH", "path", "arXiv 2505.16381", ("path_attention", "householder_positions")),
            Method("Selective RoPE", "selective_rope", "arXiv 2511.17388"),
            Method("RePo", "repo", "arXiv 2512.14391", ("context_repositioning",)),
            Method("DroPE", "drope", "arXiv 2512.12167"),
            Method("ReRoPE", "rerope", "a post (kexue.fm 9708)"),
            Method("Self-Extend", "self_extend", "arXiv 2401.01325"),
            Method("Dual chunk attention", "dual_chunk", "arXiv 2402.17463", ("dca", "chunkllama")),
            Method("StreamingLLM", "streaming_llm", "arXiv 2309.17453"),
            Method("LM-Infinite", "lm_infinite", "arXiv 2308.16137"),
            Method("HoPE, high-frequency", "hope", "arXiv 2410.21216"),
            Method("LeViT", "levit", "arXiv 2104.01136"),
        ),
    ),
    "also": (
        say("Also asked for"),
        (
            Method("PaTH with a forget gate", "path_fox", "arXiv 2505.16381"),
            Method("Bidirectional FoX", "bidirectional_fox", "the code of x-transformers"),
            Method("CABLE", "cable", "arXiv 2503.08067"),
            Method("CARoPE", "carope", "arXiv 2507.23083", ("context_aware_rope",)),
            Method("RIFLEx", "riflex", "arXiv 2502.15894"),
            Method("Wall", "wall", "a post and flash-linear-attention's code", ("wall_attention",)),
            Method("Abacus", "abacus", "arXiv 2405.17399", ("abacus_embeddings",)),
            Method("Position coupling", "position_coupling", "arXiv 2405.20671"),
            Method(
                "PRoPE",
                "prope",
                "arXiv 2507.10496",
                ("projective_rope", "camera_rope"),
                say("of cameras; p-RoPE, where slow pairs keep still, is proportional"),
            ),
            Method("GTA", "gta", "arXiv 2310.10375", ("geometry_aware_attention",)),
            Method("LapPE", "lappe", "arXiv 2003.00982", ("laplacian_pe", "laplacian_eigenvectors")),
            Method("RWSE", "rwse", "arXiv 2110.07875", ("random_walk_pe", "rwpe")),
            Method("WIRE", "wire", "arXiv 2509.22259"),
            Method("Graphormer", "graphormer", "arXiv 2106.05234"),
            Method(
                "RRWP",
                "",
                "arXiv 2305.17589",
                ("rrwp", "relative_random_walk_probabilities", "grit"),
                say("a bias of pairs without a name: posenc.encodings.bases.pairs.PairBias with walks(adjacency)"),
            ),
            Method("Positions of MSRoPE", "msrope_ids", "arXiv 2508.02324"),
            Method("V2PE", "v2pe", "arXiv 2412.09616", ("variable_visual_position_encoding",)),
            Method("VideoRoPE", "videorope", "arXiv 2502.05173", ("video_rope",)),
            Method("Positions of VideoRoPE", "videorope_ids", "arXiv 2502.05173"),
            Method("MHRoPE", "mhrope", "arXiv 2510.23095"),
            Method("VRoPE", "vrope", "arXiv 2502.11664"),
            Method("Positions of VRoPE", "vrope_ids", "arXiv 2502.11664"),
            Method("Positions of Circle-RoPE", "circle_rope_ids", "arXiv 2505.16416"),
            Method("LARoPE", "larope_ids", "arXiv 2509.11084"),
            Method("TMRoPE", "tmrope_ids", "arXiv 2503.20215", ("tmrope", "time_aligned_mrope")),
            Method("DyPE", "dype", "arXiv 2510.20766"),
            Method("3-D sinusoids", "sinusoidal_3d", "arXiv 2408.06072"),
            Method("iRPE", "irpe", "arXiv 2107.14222", ("image_rpe",)),
            Method("BiPE", "bipe", "arXiv 2401.16421", ("bilevel_positional_encoding",)),
            Method("Positions of BiPE", "bipe_ids", "arXiv 2401.16421"),
            Method("Hierarchical table", "hierarchical", "a post (kexue.fm 7947)"),
            Method("Learnable Fourier features", "learnable_fourier", "arXiv 2106.02795"),
            Method("NEZHA", "nezha", "arXiv 1909.00204", ("functional_relative_position",)),
            Method("LookHere", "lookhere", "arXiv 2405.13985"),
            Method("LePE", "lepe", "arXiv 2107.00652", ("locally_enhanced_positional_encoding", "cswin")),
            Method("PaPE", "pape", "arXiv 2602.01418", ("parabolic_position_encoding",)),
            Method("HSTU", "hstu", "arXiv 2402.17152", ("hierarchical_sequential_transduction",)),
            Method("TO-RoPE", "to_rope", "arXiv 2510.20455", ("time_and_order_rope",)),
            Method(
                "ALiBi with learned slopes",
                "",
                "arXiv 2108.12409",
                ("learned_alibi",),
                say("kerple with kernel='power' and an exponent of 1"),
            ),
            Method("2-D ALiBi", "alibi_2d", "arXiv 2311.00566"),
            Method("Asymmetric ALiBi", "asymmetric_alibi", "issue 5 of ALiBi's repository"),
            Method("Tree positions of Shiv and Quirk", "tree_pe", "NeurIPS 2019", ("tree_positional_encoding",)),
            Method("Positions in trees and code", "tree_paths", "NeurIPS 2019", ("tree_positions", "ast_positions")),
            Method(
                "APE, algebraic",
                "ape",
                "arXiv 2312.16045",
                ("algebraic_positional_encoding", "algebraic"),
                say("of trees; on sequences and grids it is com_rope with form='AP' and blocks as wide as an axis"),
            ),
            Method("Complex-order embeddings", "complex_order", "arXiv 1912.12333", ("complex_word_embedding",)),
            Method("Wavelets", "wavelet", "arXiv 2502.02004", ("wavelet_positional_representation", "ricker_wavelet")),
            Method("BAM", "bam", "arXiv 2505.22842", ("bayesian_attention_mechanism", "generalized_gaussian")),
            Method(
                "HyPE",
                "",
                "arXiv 2310.19676",
                ("hype", "hyperbolic_biases"),
                say(
                    "its formula was found in a summary only: τ·sinh of the distance, with a sign that could not be "
                    "checked; the paper has no experiment"
                ),
            ),
            Method(
                "SeqPE",
                "",
                "arXiv 2506.13277",
                ("seqpe", "sequential_position_encoding"),
                say(
                    "a Transformer of its own reads the digits of a position, and two more losses over sampled positions "
                    "train it; an encoding here has no loss"
                ),
            ),
            Method(
                "Random float sampling",
                "",
                "arXiv 2602.14050",
                ("rfs", "random_float_sampling"),
                say(
                    "from which distribution the real positions are drawn in use was not found; cape and randomized are "
                    "near"
                ),
            ),
            Method("STRING, shifted RoPE", "shifted_rope", "arXiv 2410.18745", ("shifted_rotary_position_embedding",)),
            Method(
                "TAPE",
                "",
                "arXiv 2501.00712",
                ("contextualized_equivariant_positional_encoding",),
                say(
                    "every token carries cosines and sines from layer to layer, which attention mixes and an MLP changes; "
                    "an encoding here hands nothing on to the next layer"
                ),
            ),
            Method(
                "Jordan-RoPE",
                "",
                "arXiv 2605.04217",
                ("jordan_rope", "pj_rope"),
                say(
                    "keys grow with e^(γp) and ηp, γ and η learned, so that scores lose their digits far from position 0; "
                    "the authors' code clamps both, and then scores are not relative. It needs products by blocks, as "
                    "wall computes them"
                ),
            ),
            Method(
                "HoPE, hyperbolic",
                "",
                "arXiv 2509.05218",
                ("hyperbolic_rope", "hyperbolic_rotary_positional_encoding"),
                say(
                    "its damping must exceed its largest frequency, so with RoPE's frequencies keys leave the range of "
                    "fp32 after 44 tokens; the authors' values were not found, nor code by them"
                ),
            ),
            Method(
                "DoPE",
                "",
                "arXiv 2511.09146",
                ("denoising_rotary_position_embedding",),
                say(
                    "it takes the rotation from heads that are chosen by an entropy measured on a trained model; the exact "
                    "entropy and the noise that replaces RoPE were found in summaries only, which disagree"
                ),
            ),
            Method(
                "TAPA",
                "",
                "arXiv 2509.12635",
                ("tapa", "token_aware_phase_attention"),
                say(
                    "its score is a product of some channels times the cosine of a product of the others and a power of "
                    "the distance, neither a rotation nor a bias; the exact formula was found in summaries only, nor code "
                    "by its authors"
                ),
            ),
            Method(
                "HARoPE",
                "",
                "arXiv 2510.10489",
                ("harope", "head_wise_adaptive_rotary_positional_encoding"),
                say(
                    "a learned matrix for each head before RoPE: the projections of queries and keys hold it already, "
                    "unless a norm stands between; code by its authors was not found"
                ),
            ),
            Method(
                "DeltaFormer",
                "",
                "arXiv 2505.19488",
                ("deltaformer", "delta_former"),
                say(
                    "it changes values, by a triangular system over keys, and not positions: those of its layer in "
                    "flash-linear-attention are rope"
                ),
            ),
            Method(
                "Zipformer's relative positions",
                "",
                "arXiv 2310.11230",
                ("zipformer", "compact_rel_positional_encoding"),
                say(
                    "without a name: posenc.encodings.of_families.zipformer.ZipformerPositions, of icefall's models; "
                    "Conformer's are transformer_xl"
                ),
            ),
            Method(
                "NaViT's factorised positions",
                "",
                "arXiv 2307.06304",
                ("navit", "naflex", "factorised_positions", "factorized_position_embedding", "patch_n_pack"),
                say(
                    "learned_2d at whole rows and columns; at fractions of the side two learned grids of one column "
                    "and one row, in a Stack: docs/images.md packs images of several sizes with them"
                ),
            ),
            Method(
                "FlexiViT",
                "",
                "arXiv 2212.08013",
                ("flexivit", "flexible_patch_size"),
                say(
                    "vit's table, interpolated for the grid of each patch size: docs/images.md; the kernel that makes "
                    "patches holds no positions"
                ),
            ),
            Method("Giraffe", "giraffe", "arXiv 2308.10882", ("truncated_basis", "power_basis")),
            Method("CLEX", "clex", "arXiv 2310.16450", ("continuous_length_extrapolation",)),
            Method("Ms-PoE", "ms_poe", "arXiv 2403.04797", ("multi_scale_positional_encoding", "found_in_the_middle")),
            Method("Sandwich", "sandwich", "arXiv 2212.10356"),
            Method("Reformer's axial table", "reformer", "arXiv 2001.04451"),
            Method("DETR's sinusoids", "detr", "arXiv 2005.12872"),
            Method("Random Fourier features", "random_fourier", "arXiv 2006.10739"),
            Method("FLOATER", "floater", "arXiv 2003.09229"),
        ),
    ),
}
