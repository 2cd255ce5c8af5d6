"""What one process of several does; the processes check themselves, and end with an error where something differs.

    RANK=0 WORLD_SIZE=2 MASTER_ADDR=… MASTER_PORT=… python -m stress.ranks sharded rope alibi …

Run in the folder tests, by stress.test_distributed.
"""

from __future__ import annotations

import copy
import sys

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn

from field_bugs.worlds import attention, heads, near, same, tokens, world
from posenc import Positions, shard_index
from posenc.checking.laws import World
from sampling import WITHOUT_STATES
from test_laws import build

N = 32  # tokens
ARRANGEMENTS = [(zigzag, ends) for ends in ([0, N], [0, 16, N]) for zigzag in (False, True)]


class Gathered(torch.autograd.Function):
    """The parts of all ranks along one axis; backward sums the gradients of all ranks and keeps the own part."""

    @staticmethod
    def forward(ctx, x: Tensor, dim: int) -> Tensor:
        ctx.dim = dim
        parts = [torch.empty_like(x) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, x.contiguous())
        return torch.cat(parts, dim=dim)

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, None]:
        gradient = gradient.contiguous()
        dist.all_reduce(gradient)
        return gradient.chunk(dist.get_world_size(), dim=ctx.dim)[dist.get_rank()], None


def sharded(name: str) -> None:
    """Every rank embeds, projects and turns its own tokens, and attends to the keys of all: equal to the whole."""
    rank, size = dist.get_rank(), dist.get_world_size()
    of = world(name, batch=1, length=N, dtype=torch.float64)
    for zigzag, ends in ARRANGEMENTS:
        whole, mine = (copy.deepcopy(build(name)).double() for _ in range(2))
        order = torch.cat([shard_index(N, r, size, zigzag=zigzag, cu_seqlens=ends) for r in range(size)])
        index = shard_index(N, rank, size, zigzag=zigzag, cu_seqlens=ends)

        x = of.x.clone().requires_grad_()
        expected = of.output(whole, x, Positions.packed(ends))
        upstream = heads(1, N, of.setting.d_head, expected.shape[1], dtype=torch.float64, seed=3)
        (expected * upstream).sum().backward()

        part = of.x[:, index].clone().requires_grad_()
        out = of_rank(of, name, mine, part, index, order, zigzag, ends)
        (out * upstream[:, :, index]).sum().backward()

        what = f"{name}, {size} ranks, rank {rank}, zigzag {zigzag}, documents {ends}"
        near(out.detach(), expected[:, :, index].detach(), what, 1e-10)
        near(part.grad, x.grad[:, index], f"{what}: gradient of the tokens", 1e-9)
        for (key, one), other in zip(mine.named_parameters(), whole.parameters(), strict=True):
            summed = torch.zeros_like(one) if one.grad is None else one.grad.clone()
            dist.all_reduce(summed)
            wanted = torch.zeros_like(other) if other.grad is None else other.grad
            near(summed, wanted, f"{what}: gradient of {key}", 1e-8 * max(1.0, float(wanted.abs().max())))


def of_rank(
    of: World, name: str, encoding, part: Tensor, index: Tensor, order: Tensor, zigzag: bool, ends: list[int]
) -> Tensor:
    """What this rank computes. Encodings that read hidden states read those of all ranks, in the order of the text."""
    at = Positions.packed(ends)
    at_q = at.shard(dist.get_rank(), dist.get_world_size(), zigzag=zigzag, cu_seqlens=ends)
    at_k = at.take(order)
    embedded = encoding.embed(part, at_q)
    if name not in WITHOUT_STATES:
        everything = Gathered.apply(embedded, 1)[:, order.argsort()]
        read = encoding.read_hidden(everything, at)
        at_q, at_k = read.take(index), read.take(order)
    q, k, v = ((embedded @ w).unflatten(-1, (-1, of.setting.d_head)).transpose(1, 2) for w in (of.w_q, of.w_k, of.w_v))
    q = encoding.rotate(q, at_q, "query")
    k = Gathered.apply(encoding.rotate(k, at_q, "key"), 2)
    v = Gathered.apply(encoding.rotate(v, at_q, "value"), 2)
    return of.attend_rotated(encoding, q, k, v, at_q, at_k)


def fully_sharded(name: str) -> None:
    """FSDP2 around an attention module: outputs and gradients of the unsharded one, on this rank's rows."""
    from torch.distributed.fsdp import fully_shard

    alone, model = attention(name), attention(name)
    fully_shard(model)
    rank, size = dist.get_rank(), dist.get_world_size()
    x, at = tokens(size, 8), Positions.arange(1, 8)
    out = model(x[rank : rank + 1], at)
    near(out.detach(), alone(x[rank : rank + 1], at).detach(), f"{name} fully sharded", 1e-6)
    out.square().sum().backward()
    alone(x, at).square().sum().div(size).backward()
    expected = dict(alone.named_parameters())
    for key, one in model.named_parameters():
        near(one.grad.full_tensor(), expected[key].grad, f"{name}: gradient of {key}", 1e-5)


def made_on_meta(name: str) -> None:
    """FSDP2 of a model made on meta: materialised on every rank, loaded, equal to the one made at once."""
    from torch.distributed.checkpoint.state_dict import StateDictOptions, set_model_state_dict
    from torch.distributed.fsdp import fully_shard

    alone = attention(name)
    with torch.device("meta"):
        model = attention(name) if not list(build(name).parameters()) else nn.Identity()
    if isinstance(model, nn.Identity):  # parameters are drawn by seed, which meta has not
        model = attention(name).to("meta")
    fully_shard(model)
    model.to_empty(device="cpu")
    set_model_state_dict(model, alone.state_dict(), options=StateDictOptions(full_state_dict=True))
    x, at = tokens(1, 8), Positions.arange(1, 8)
    near(model(x, at).detach(), alone(x, at).detach(), f"{name} from meta", 1e-6)


NO_CPU_KERNEL = "_scaled_dot_product_flash_attention_for_cpu.default does not have a sharding strategy"


def context(name: str) -> None:
    """PyTorch's own context parallelism: what it gives a rank is `shard(zigzag=True)`, and turned keys are the whole's.

    Its attention has no kernel for the CPU; that it says so is part of the test.
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.experimental import context_parallel

    rank, size = dist.get_rank(), dist.get_world_size()
    encoding, q = build(name), heads(1, N)
    whole = encoding.rotate(q, Positions.arange(1, N), "query")
    index = shard_index(N, rank, size, zigzag=True)
    coords, x = torch.arange(N)[None].clone(), q.clone()
    with context_parallel(init_device_mesh("cpu", (size,)), buffers=[x, coords], buffer_seq_dims=[2, 1]):
        same(coords, Positions.arange(1, N).shard(rank, size, zigzag=True).coords, name)
        near(encoding.rotate(x, Positions.at(coords), "query"), whole[:, :, index], name, 1e-6)
        with pytest.raises(NotImplementedError, match=NO_CPU_KERNEL):  # once it serves the CPU, compare its attention here
            nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)


CHECKS = {"sharded": sharded, "fully_sharded": fully_sharded, "made_on_meta": made_on_meta, "context": context}

if __name__ == "__main__":
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    for task in sys.argv[1:]:
        check, _, name = task.partition(":")
        CHECKS[check](name)
        print("checked", task, flush=True)
    dist.destroy_process_group()
