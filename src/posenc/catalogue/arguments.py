"""What an argument of another library is called here: `theta` is `base`, `num_heads` is `n_heads`."""

from __future__ import annotations

from collections.abc import Collection

TRAINED = (
    "original_max_position_embeddings",
    "original_max_seq_len",
    "max_position_embeddings",
    "train_length",
    "training_length",
)
SIDES = ("window", "window_size", "img_size", "image_size", "grid_size", "input_resolution", "feat_size")
MEANT: dict[str, tuple[str, ...]] = {
    "base": (
        "theta",
        "rope_theta",
        "rotary_base",
        "rope_base",
        "rotary_emb_base",
        "freq_base",
        "rope_freq_base",
        "temperature",
    ),
    "d_model": (
        "dim",
        "hidden_size",
        "hidden_dim",
        "embed_dim",
        "embedding_dim",
        "emb_dim",
        "n_embd",
        "model_dim",
        "num_hiddens",
    ),
    "d_head": ("dim", "head_dim", "dim_head", "head_size", "d_k", "d_kv", "kv_channels", "per_head_dim"),
    "n_heads": ("num_heads", "heads", "nhead", "n_head", "nheads", "num_attention_heads", "attn_heads"),
    "n_kv_heads": ("num_kv_heads", "kv_heads", "n_kv_head", "num_key_value_heads", "num_query_groups"),
    "n_layers": ("num_layers", "num_hidden_layers", "n_layer", "depth"),
    "trained_length": ("original_length", "length", *TRAINED),
    "max_positions": (
        "max_seq_len",
        "max_seq_length",
        "max_sequence_length",
        "max_len",
        "maxlen",
        "max_length",
        "max_position_embeddings",
        "n_positions",
        "num_positions",
        "num_embeddings",
        "block_size",
        "context_length",
        "n_ctx",
        "seq_len",
    ),
    "length": ("seq_len", "seq_length", "sequence_length", "n_tokens", "num_tokens"),
    "batch": ("batch_size", "bs", "n_batch"),
    "layout": ("interleaved", "interleave", "rope_interleave", "rotary_interleaved", "is_neox_style", "traditional"),
    "rotary_dim": ("partial_rotary_factor", "rotary_pct", "rotary_percent", "rot_dim", "rotary_ndims", "qk_rope_head_dim"),
    "fraction": ("partial_rotary_factor", "rotary_pct", "rotary_percent", "percentage"),
    "factor": ("scale", "scaling_factor", "scale_factor", "rope_scaling_factor", "alpha", "interpolation_factor"),
    "frequencies": ("freqs", "inv_freq", "custom_freqs", "rope_scaling"),
    "sizes": ("mrope_section", "section", "sections"),
    "n_buckets": ("num_buckets", "relative_attention_num_buckets", "position_buckets"),
    "max_distance": ("relative_attention_max_distance", "max_relative_position", "max_relative_positions", "k"),
    "bidirectional": ("causal", "is_causal", "is_decoder"),
    "slopes": ("alibi_slopes",),
    "height": SIDES,
    "width": SIDES,
    "n_positions": ("npos", "npos_max"),
}
"""Of an argument here: what other libraries call it."""


def right_name(word: str, takes: Collection[str]) -> str:
    """'; did you mean …?' for the arguments in `takes` that a word means or is near, the best first; '' for none."""
    meant = [name for name, words in MEANT.items() if name in takes and word.lower() in words]
    if not meant:
        from rapidfuzz import fuzz, process

        near = process.extractOne(word.lower(), list(takes), scorer=fuzz.ratio, score_cutoff=70)
        meant = [near[0]] if near else []
    return f"; did you mean {' or '.join(map(repr, meant))}?" if meant else ""
