"""Where configuration lives, what surrounds a call, and what a call may write."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from posenc.checking.laws.compare import close, difference, same, within
from posenc.checking.laws.errors import LawBroken
from posenc.checking.laws.registry import law
from posenc.checking.laws.world import Setting, World
from posenc.encoding import PositionalEncoding
from posenc.positions import Positions
from posenc.support.identity import label
from posenc.support.precision import working_dtype

FAR = 4096  # positions


@law
def state_is_configuration(encoding: PositionalEncoding, setting: Setting) -> None:
    """No buffers; the same after half, to_empty and reloading, deepcopy and pickle."""
    world = World(setting)
    expected = world.output(encoding, world.x, world.plain())
    if named := [name for name, _ in encoding.named_buffers()]:
        raise LawBroken(f"state_is_configuration: {label(encoding)} has buffers {named}, which casts and loading can touch")
    saved = copy.deepcopy(encoding.state_dict())
    halved = copy.deepcopy(encoding).half().float()
    emptied = copy.deepcopy(encoding).to("meta").to_empty(device=setting.device)
    for copied in (halved, emptied):
        with torch.no_grad():
            for parameter in copied.parameters():
                parameter.fill_(7.7e4)  # what a careless engine may leave behind
        restore(copied, encoding, saved)
    survivors = {
        "half and back": halved,
        "meta and to_empty": emptied,
        "deepcopy": copy.deepcopy(encoding),
        "pickle": pickle.loads(pickle.dumps(encoding)),
    }
    for how, survivor in survivors.items():
        same(state_is_configuration, encoding, world.output(survivor, world.x, world.plain()), expected, how)


@law
def casts_keep_positions_exact(encoding: PositionalEncoding, setting: Setting) -> None:
    """Parameters that multiply positions keep every bit in bfloat16 and half, in a model that is cast too.

    They are found by measurement. The rounding of any other parameter does as much at position 4096 as among the first
    tokens: at most 4 times as much, and one rounding of the largest entry. Where an encoding refuses positions so far away,
    only its `exact_parameters` are compared.
    """
    if next(encoding.parameters(), None) is None:
        return  # there is nothing that a cast could round
    world = World(replace(setting, dtype=working_dtype(setting.dtype)))
    plain = world.plain()
    spread = Positions.at(FAR // (setting.length - 1) * plain.coords)
    for dtype in (torch.bfloat16, torch.float16):
        cast = copy.deepcopy(encoding)
        nn.Sequential(cast).to(dtype)
        for name, exact in _exact_parameters(encoding):
            rounded = cast.get_parameter(name)
            if rounded.dtype != exact.dtype or not torch.equal(rounded, exact):
                raise LawBroken(f"casts_keep_positions_exact: {label(encoding)}: {name} is {rounded.dtype} after {dtype}")
        near = {what: difference(mine, theirs) for what, mine, theirs in _both(cast, encoding, world, plain)}
        try:
            far = _both(cast, encoding, world, spread)
        except ValueError:  # it refuses positions so far away
            continue
        for what, mine, theirs in far:
            allowed = 4 * near[what] + torch.finfo(torch.bfloat16).eps / 2 * float(theirs.detach().abs().max())
            within(casts_keep_positions_exact, encoding, mine, theirs, allowed, f"{what} in {dtype} up to position {FAR}")


def _exact_parameters(encoding: PositionalEncoding) -> Iterator[tuple[str, nn.Parameter]]:
    """Names, as the whole encoding has them, and parameters that the encoding or one of its parts declares exact."""
    for prefix, part in encoding.named_modules():
        for name in part.exact_parameters if isinstance(part, PositionalEncoding) else ():
            path = f"{prefix}.{name}" if prefix else name
            yield path, encoding.get_parameter(path)


@torch.no_grad()
def _both(
    cast: PositionalEncoding, encoding: PositionalEncoding, world: World, at: Positions
) -> list[tuple[str, Tensor, Tensor]]:
    """(what, of the cast encoding, of the other) for everything that an encoding gives to attention."""
    found = []
    for one in (cast, encoding):
        every = torch.arange(at.length, device=at.coords.device)
        q, k, _, read = world.heads(one, world.x, at)
        seams = [(seam, whole) for seam, whole, _ in world.rows(one, at, every)]
        q, k = one.rotate(q, read, "query"), one.rotate(k, read, "key")
        keys = k.repeat_interleave(q.shape[1] // k.shape[1], dim=1)
        if (term := one.bias(q, keys, read, read)) is not None:
            b, h, i, j = torch.meshgrid(
                *(torch.arange(n, device=q.device) for n in (*q.shape[:3], k.shape[2])), indexing="ij"
            )
            seams.append(("bias", term(b, h, i, j).tril()))  # a causal one says nothing of later keys
        found.append(seams)
    return [(what, mine, theirs) for (what, mine), (_, theirs) in zip(*found, strict=True)]


@law
def surroundings_do_not_matter(encoding: PositionalEncoding, setting: Setting) -> None:
    """The same under another default dtype, autocast, inference mode and in several threads at once."""
    world = World(setting)

    def run() -> Tensor:
        return world.output(encoding, world.x, world.plain())

    expected = run()
    default = torch.get_default_dtype()
    for dtype in (torch.bfloat16, torch.float64):
        try:
            torch.set_default_dtype(dtype)
            same(surroundings_do_not_matter, encoding, run(), expected, f"default dtype {dtype}")
        finally:
            torch.set_default_dtype(default)
    at = encoding.prepare(world.plain(), working_dtype(setting.dtype))
    x, (q, k, v, _) = encoding.embed(world.x, at), world.heads(encoding, world.x, at)
    with torch.autocast(torch.device(setting.device).type, dtype=torch.bfloat16):
        inside = encoding.prepare(world.plain(), working_dtype(setting.dtype))
        same(surroundings_do_not_matter, encoding, encoding.embed(world.x, inside), x, "embed under autocast")
        out = world.attend(encoding, q, k, v, encoding.read_hidden(x, inside))
    same(surroundings_do_not_matter, encoding, out, expected, "attention under autocast")
    with torch.no_grad():  # kernels may differ with and without a gradient to come; inference mode must not add to that
        ungraded = run()
    close(surroundings_do_not_matter, encoding, ungraded, expected, setting.dtype, "no_grad")
    with torch.inference_mode():
        same(surroundings_do_not_matter, encoding, run().clone(), ungraded, "inference mode")
    results: list[Tensor] = []
    threads = [threading.Thread(target=lambda: results.append(run())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if len(results) != len(threads):
        raise LawBroken(f"surroundings_do_not_matter: {label(encoding)}: {len(threads) - len(results)} of 4 threads failed")
    for result in results:
        same(surroundings_do_not_matter, encoding, result, expected, "four threads")


@law
def forward_writes_nothing(encoding: PositionalEncoding, setting: Setting) -> None:
    """No attribute, parameter, table or input is changed by a call."""
    world = World(setting)
    at = encoding.prepare(world.plain(), working_dtype(setting.dtype))
    tensors = [
        world.x,
        at.coords,
        at.order,
        at.document,
        *encoding.parameters(),
        *(table for tables in at.tables.values() for table in tables),
    ]
    before = [attributes(encoding), [tensor._version for tensor in tensors], torch.get_rng_state().tolist()]
    world.output(encoding, world.x, at)
    after = [attributes(encoding), [tensor._version for tensor in tensors], torch.get_rng_state().tolist()]
    for what, was, now in zip(("attributes", "tensors", "random state"), before, after, strict=True):
        if was != now:
            raise LawBroken(f"forward_writes_nothing: {label(encoding)}: a call changed {what}")


@law
def tables_know_their_owner(encoding: PositionalEncoding, setting: Setting) -> None:
    """Prepared or not gives the same; tables of another configuration are refused."""
    world = World(setting)
    plain = world.plain()
    prepared = encoding.prepare(plain, working_dtype(setting.dtype))
    same(
        tables_know_their_owner,
        encoding,
        world.output(encoding, world.x, prepared),
        world.output(encoding, world.x, plain),
        "prepared",
    )
    if not prepared.tables:
        return
    foreign = replace(prepared, tables={f"not {owner}": tables for owner, tables in prepared.tables.items()})
    try:
        world.output(encoding, world.x, foreign)
    except ValueError:
        return
    raise LawBroken(f"tables_know_their_owner: {label(encoding)} used tables that somebody else prepared")


def restore(copied: PositionalEncoding, original: PositionalEncoding, saved: dict[str, Any]) -> None:
    for mine, theirs in zip(copied.parameters(), original.parameters(), strict=True):
        mine.data = mine.data.to(theirs.dtype)
    copied.load_state_dict(saved)


def attributes(encoding: PositionalEncoding) -> list[tuple[str, list[tuple[str, int]]]]:
    """Names and identities of everything that hangs on the module and its parts."""
    return [
        (name, sorted((key, id(value)) for key, value in vars(module).items())) for name, module in encoding.named_modules()
    ]
