"""Which tensors are query and key projections: by the last parts of their names, nothing else.

    …self_attn.q_proj.weight     stack "….self_attn", module "q_proj", leaf "weight"

    rows that turn   q_proj k_proj · wq wk · query key · linear_q linear_k · q_b_proj kv_a_proj_with_mqa (latent attention)
    fused            qkv_proj query_key_value qkv wqkv Wqkv W_pack c_attn: laid out as the family says, or the caller
    norms            q_norm k_norm · q_layernorm k_layernorm · query_norm … : a weight for each channel of a head, or of all
    leaves           weight bias weight_packed, and lora_B of an adapter, whose rows are those of its module; lora_A stays
    numbers          of quantised weights: one for all stays, one for each row moves, one for a block of rows stays if no
                     slice crosses the block

Legend: a stack is the module that holds the projections, its layer number written *.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

QUERIES = frozenset({"q_proj", "wq", "query", "linear_q", "q_b_proj"})
KEYS = frozenset({"k_proj", "wk", "key", "linear_k"})
LATENT = frozenset({"kv_a_proj_with_mqa"})
FUSED = frozenset({"qkv_proj", "query_key_value", "qkv", "wqkv", "Wqkv", "W_pack", "c_attn"})
QUERY_NORMS = frozenset({"q_norm", "q_layernorm", "query_norm", "query_layernorm", "norm_q"})
KEY_NORMS = frozenset({"k_norm", "k_layernorm", "key_norm", "key_layernorm", "norm_k"})
UNTURNED = frozenset(
    {
        "v_proj",
        "wv",
        "value",
        "linear_v",
        "v_norm",
        "o_proj",
        "out_proj",
        "dense",
        "wo",
        "Wo",
        "linear_out",
        "c_proj",
        "proj",
        "g_proj",
        "gate_proj",
        "q_a_proj",
        "q_a_layernorm",
        "kv_a_layernorm",
        "kv_b_proj",
        "sinks",
        "rotary_emb",
        "rotary_embeddings",
        "bias",
        "masked_bias",
        "inner_attn_ln",
        "attn_sub_norm",
        "o_norm",
    }
)

Kind = Literal["q", "k", "latent", "fused", "q_norm", "k_norm", "other"]
_KINDS: tuple[tuple[frozenset[str], Kind], ...] = (
    (QUERIES, "q"),
    (KEYS, "k"),
    (LATENT, "latent"),
    (FUSED, "fused"),
    (QUERY_NORMS, "q_norm"),
    (KEY_NORMS, "k_norm"),
)


class Name(NamedTuple):
    """A tensor's name in parts."""

    full: str
    parent: str
    module: str
    leaf: str
    kind: Kind

    @property
    def stack(self) -> str:
        return re.sub(r"(?<![^.])\d+(?![^.])", "*", self.parent)


def projection(name: str) -> Name | None:
    """The parts of the name of a query or key projection or norm; None for any other tensor."""
    parts = name.split(".")
    for at in range(len(parts) - 1, -1, -1):
        kind = next((kind for names, kind in _KINDS if parts[at] in names), None)
        if kind is not None and at + 1 < len(parts):
            return Name(name, ".".join(parts[:at]), parts[at], ".".join(parts[at + 1 :]), kind)
    return None


def sibling(name: str, parents: frozenset[str]) -> str | None:
    """The module, within one of `parents`, of a tensor that is no projection; None where it stands elsewhere."""
    parts = name.split(".")
    for at in range(len(parts) - 1, 0, -1):
        if ".".join(parts[:at]) in parents:
            return parts[at]
    return None
