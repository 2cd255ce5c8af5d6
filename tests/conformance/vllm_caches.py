"""vLLM's paged cache under `check_cache`: keys written by the operator of its CPU extension, which no Python of it needs.

The table of blocks is kept here as vLLM keeps it: a block that no row has for every full one, and rejected tokens lower a
row's length while its blocks stay. Where the operator puts a number within a block is found by writing one at a time.
Legend: b batch, g key heads, t new tokens, d channels of a head.
"""

from __future__ import annotations

import functools
import importlib.util
from pathlib import Path

import torch

SIZE, BLOCKS, WIDTH = 32, 24, 32  # tokens of a block, blocks, and channels of a head: the fewest that it takes


def extension() -> Path | None:
    """The file with its operators for this processor; None where vLLM for the CPU is not installed."""
    spec = importlib.util.find_spec("vllm")
    folder = Path(next(iter(spec.submodule_search_locations))) if spec else Path()
    capability = torch.backends.cpu.get_cpu_capability()
    names = {"AVX2": "_C_AVX2.abi3.so", "AVX512": "_C_AVX512.abi3.so"}
    path = folder / names.get(capability, "_C.abi3.so")
    return path if spec and path.exists() else None


def write(store, k, v, slot):
    """k, v [n, g, 32] into the slots [n] of a store [2, blocks, g, size, 32]."""
    torch.ops._C.cpu_attn_reshape_and_cache(
        k.contiguous(), v.contiguous(), store[0], store[1], slot, "vec", 1.0, 1.0, "auto"
    )


@functools.cache
def places(heads: int, dtype: torch.dtype) -> torch.Tensor:
    """[2, size, g, 32]: where in a block each number of keys, and of values, is found."""
    found = torch.zeros(2, SIZE, heads, WIDTH, dtype=torch.int64)
    numbers = torch.arange(1, WIDTH + 1, dtype=dtype)
    for offset in range(SIZE):
        for head in range(heads):
            token = torch.zeros(1, heads, WIDTH, dtype=dtype)
            token[0, head] = numbers
            store = torch.zeros(2, 1, heads, SIZE, WIDTH, dtype=dtype)
            write(store, token, token, torch.tensor([offset]))
            for kind in range(2):
                held = store[kind].flatten()
                places_of = held.nonzero().flatten()
                found[kind, offset, head] = places_of[held[places_of].argsort()]
    return found


class Paged:
    def write(self, cache, k, v, positions):
        if cache is None:
            store = torch.zeros(2, BLOCKS, k.shape[1], SIZE, WIDTH, dtype=k.dtype)
            cache = {"store": store, "tables": [[] for _ in k], "lengths": [0] * len(k)}
        store, tables = cache["store"].clone(), [list(table) for table in cache["tables"]]
        for row, table in enumerate(tables):
            at = positions[row].tolist()
            while len(table) * SIZE <= at[-1]:
                used = {block for other in tables for block in other}
                table.append(next(block for block in range(BLOCKS) if block not in used))
            slot = torch.tensor([table[n // SIZE] * SIZE + n % SIZE for n in at])
            write(store, *(x[row].transpose(0, 1).repeat(1, 1, WIDTH // x.shape[3]) for x in (k, v)), slot)
        return {"store": store, "tables": tables, "lengths": (positions[:, -1] + 1).tolist(), "width": k.shape[3]}

    def read(self, cache):
        store, lengths = cache["store"], torch.tensor(cache["lengths"])
        position = torch.arange(int(lengths.max()))
        where = places(store.shape[2], store.dtype)
        rows = []
        for table in cache["tables"]:
            blocks = (table * len(position))[: -(-len(position) // SIZE)]  # a shorter row's columns hold nothing
            of_blocks = [store[kind, blocks].flatten(1)[:, where[kind]] for kind in range(2)]  # [n, size, g, 32]
            rows.append([x.flatten(0, 1)[: len(position)].transpose(0, 1)[..., : cache["width"]] for x in of_blocks])
        k, v = (torch.stack([row[kind] for row in rows]) for kind in range(2))
        return k, v, torch.where(position < lengths[:, None], position, -1)

    def crop(self, cache, lengths):
        return cache | {"lengths": list(lengths)}
