"""What happens to every tensor of a checkpoint, decided from names, shapes and dtypes before anything is written."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from posenc.configs.convert.names import UNTURNED, Name, projection, sibling
from posenc.configs.convert.rows import Fused, Heads, Part, Slices

WEIGHTS = frozenset({"weight", "bias", "weight_packed", "base_layer.weight", "base_layer.bias"})
LOW_RANK = re.compile(r"(lora_B|lora_magnitude_vector)(\.\w+)*")
STAYS = re.compile(r"(lora_A(\.\w+)*|weight_shape|weight_global_scale|rotary_emb\.inv_freq)")
SCALE = re.compile(r"(.*scale.*|.*zero_point)")
BLOCK = 128  # rows that share a number in fp8 checkpoints, unless their count says otherwise
INTEGERS = ("I8", "U8", "I16", "U16", "I32", "U32", "I64", "U64")


class About(NamedTuple):
    """A tensor's dtype and shape, from the header of its file."""

    dtype: str
    shape: tuple[int, ...]


class Change(NamedTuple):
    """Slices of one tensor to permute along `dim`: of queries and of keys, with its module and layer."""

    name: Name
    dim: int
    slices: Slices

    @property
    def starts(self) -> tuple[int, ...]:
        return self.slices.q + self.slices.k


class Options(NamedTuple):
    """What names and shapes do not decide: the layout of fused projections, which stacks, what to copy unchanged."""

    fused: Fused | None = None
    under: tuple[str, ...] = ()
    leave: tuple[str, ...] = ()


def plan(tensors: Mapping[str, About], heads: Heads, options: Options) -> dict[str, Change]:
    """The tensors that change, by name; all others are copied.

    Raises ValueError, naming the tensor and the option to give, if there are no query or key projections, several stacks
    of them, shapes that do not fit `heads`, numbers that cannot be permuted, or unknown tensors beside them.
    """
    leave = re.compile("|".join(f"(?:{pattern})" for pattern in options.leave) or r"(?!)")
    projections = [name for name in map(projection, tensors) if name and not leave.search(name.full)]
    projections = _in_one_stack(projections, options.under)
    if not any(name.kind in ("q", "k", "latent", "fused") for name in projections):
        but = " after --leave" if options.leave else ""
        raise ValueError(
            f"no query or key projection among {len(tensors)} tensors{but}, such as {', '.join(sorted(tensors)[:3])}; "
            "known names: posenc.configs.convert.names"
        )
    _check_siblings(tensors, projections, leave)
    changes = (_change(name, tensors[name.full], heads, options.fused) for name in projections)
    return {change.name.full: change for change in changes if change is not None}


def _in_one_stack(projections: Sequence[Name], under: tuple[str, ...]) -> list[Name]:
    stacks = sorted({name.stack for name in projections if not name.kind.endswith("norm")})
    if under:
        if absent := [stack for stack in under if stack not in stacks]:
            raise ValueError(f"--under {absent[0]}: no such stack; found {', '.join(stacks) or 'none'}")
        stacks = list(under)
    elif len(stacks) > 1:
        raise ValueError(
            f"query and key projections in {len(stacks)} stacks ({', '.join(stacks)}), and not all "
            f"of them need rotate; choose with --under '{stacks[0]}'"
        )
    return [name for name in projections if name.stack in stacks]


def _check_siblings(tensors: Mapping[str, About], projections: Sequence[Name], leave: re.Pattern[str]) -> None:
    """Raises ValueError for unknown tensors beside the projections, which might follow the layout too."""
    known, parents = {name.full for name in projections}, frozenset(name.parent for name in projections if name.parent)
    for full, about in tensors.items():
        module = None if full in known or leave.search(full) else sibling(full, parents)
        if module is not None and module not in UNTURNED and math.prod(about.shape) > 1:
            raise ValueError(
                f"{full}: unknown tensor beside the projections, which may follow the layout too; if it "
                f"does not, say --leave '{re.escape(module)}'"
            )


def _change(name: Name, about: About, heads: Heads, fused: Fused | None) -> Change | None:
    if name.kind.endswith("norm"):
        return _norm(name, about, heads)
    slices = heads.slices(_part(name, fused))
    rows = about.shape[0] if about.shape else 0
    if name.leaf in WEIGHTS or LOW_RANK.fullmatch(name.leaf):
        if rows != slices.rows:
            raise ValueError(
                f"{name.full}: expected {slices.rows} rows ({_sizes(heads)}), got {list(about.shape)} "
                f"{about.dtype}{_why(about, slices.rows)}"
            )
        return Change(name, 0, slices)
    if STAYS.fullmatch(name.leaf) or math.prod(about.shape) <= 1:
        return None
    if SCALE.fullmatch(name.leaf):
        return _scale(name, about, heads, slices)
    raise ValueError(
        f"{name.full}: {about.dtype} {list(about.shape)} are not the rows of a projection (packed or "
        "quantised across them?), so they cannot be permuted; dequantise the checkpoint first"
    )


def _part(name: Name, fused: Fused | None) -> Part:
    if name.kind == "fused":
        if fused is None:
            raise ValueError(
                f"{name.full}: rows of a fused projection are laid out in three ways; "
                "say --fused concatenated, grouped or blocks"
            )
        return fused
    if name.kind == "q" or name.kind == "k" or name.kind == "latent":
        return name.kind
    raise AssertionError(name.kind)


def _norm(name: Name, about: About, heads: Heads) -> Change | None:
    """A weight for each channel of a head, [d_head] or [heads, d_head], or of all heads, [heads · d_head]."""
    count = heads.n_heads if name.kind == "q_norm" else heads.key_heads
    last = about.shape[-1] if about.shape else 0
    if last not in (heads.d_head, count * heads.d_head) or len(about.shape) > 2:
        raise ValueError(
            f"{name.full}: expected {heads.d_head} or {count * heads.d_head} channels ({_sizes(heads)}), got "
            f"{list(about.shape)}"
        )
    starts = tuple(head * heads.d_head + heads.offset for head in range(last // heads.d_head))
    slices = Slices(starts, (), last) if name.kind == "q_norm" else Slices((), starts, last)
    return Change(name, len(about.shape) - 1, slices)


def _scale(name: Name, about: About, heads: Heads, slices: Slices) -> Change | None:
    """Scales of quantised weights: one per row is permuted with it.

    One per block stays, if every slice is inside one block.
    """
    rows = about.shape[0]
    if rows == slices.rows:
        return Change(name, 0, slices)
    block = BLOCK if math.ceil(slices.rows / BLOCK) == rows else slices.rows // rows if slices.rows % rows == 0 else 0
    crossing = [s for s in slices.q + slices.k if not block or s // block != (s + heads.turning - 1) // block]
    if crossing or about.dtype in INTEGERS:
        raise ValueError(
            f"{name.full}: {about.dtype} {list(about.shape)} belong to blocks of rows, and rows move across "
            "blocks, so they cannot be permuted; dequantise the checkpoint first"
        )
    return None


def _sizes(heads: Heads) -> str:
    sizes = f"n_heads={heads.n_heads}, n_kv_heads={heads.n_kv_heads}, d_head={heads.d_head}"
    return sizes + (f", latent={heads.latent}, rotary_dim={heads.rotary_dim}" if heads.latent else "")


def _why(about: About, rows: int) -> str:
    if len(about.shape) == 2 and about.shape[1] == rows:
        return "; stored transposed, [d_model, rows], which this conversion does not cover"
    if about.dtype in INTEGERS:
        return "; packed numbers whose rows cannot be permuted: dequantise the checkpoint first"
    return "; say --n-heads, --n-kv-heads, --d-head"
