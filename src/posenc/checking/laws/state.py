"""Where configuration lives, what surrounds a call, and what a call may write."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor, nn

from posenc.checking.engine import Measured, default_dtype
from posenc.checking.errors import LawBroken
from posenc.checking.laws.compare import close, difference, same, within
from posenc.checking.laws.registry import breaks
from posenc.checking.laws.world import Setting, World
from posenc.encoding import PositionalEncoding
from posenc.positions import Positions
from posenc.support.identity import left_out
from posenc.support.tensors import working_dtype

FAR = 4096  # positions


@breaks("cast state")
def state_is_configuration(encoding: PositionalEncoding, setting: Setting) -> Iterator[Measured]:
    """No buffers, every argument of the constructor in the configuration; the same after deepcopy and pickle."""
    if named := [name for name, _ in encoding.named_buffers()]:
        raise LawBroken(f"has buffers {named}, which casts and loading can touch")
    for part in encoding.modules():
        if not isinstance(part, PositionalEncoding) or type(part).identity is not PositionalEncoding.identity:
            continue
        if lost := left_out(type(part), part.configuration):
            raise LawBroken(
                f"{type(part).__name__}'s configuration lacks its argument {lost[0]}: pass it on in its constructor, "
                f"super().__init__({lost[0]}={lost[0]})"
            )
    survivors = {"deepcopy": copy.deepcopy(encoding), "pickle": pickle.loads(pickle.dumps(encoding))}
    yield from _survive(encoding, setting, survivors)


@breaks("cast state")
def casting_a_module_does_not_round_its_angles(encoding: PositionalEncoding, setting: Setting) -> Iterator[Measured]:
    """The same after .half().float(), once its parameters are loaded again."""
    halved = copy.deepcopy(encoding).half().float()
    yield from _survive(encoding, setting, {"half and back": _poisoned(halved, encoding)})


@breaks("construction")
def tables_survive_to_empty(encoding: PositionalEncoding, setting: Setting) -> Iterator[Measured]:
    """The same after meta construction and to_empty, once its parameters are loaded."""
    emptied = copy.deepcopy(encoding).to("meta").to_empty(device=setting.device)
    yield from _survive(encoding, setting, {"meta and to_empty": _poisoned(emptied, encoding)})


def _survive(
    encoding: PositionalEncoding, setting: Setting, survivors: dict[str, PositionalEncoding]
) -> Iterator[Measured]:
    """The survivors give what the encoding gives."""
    world = World(setting)
    expected = world.output(encoding, world.x, world.plain())
    for how, survivor in survivors.items():
        yield same(world.output(survivor, world.x, world.plain()), expected, how)


@torch.no_grad()
def _poisoned(copied: PositionalEncoding, original: PositionalEncoding) -> PositionalEncoding:
    """The copy, with numbers in its parameters and buffers that a careless engine may leave behind, then those of the
    original's state dict."""
    for tensor in (*copied.parameters(), *copied.buffers()):
        tensor.fill_(7.7e4)
    for tensor, source in zip(copied.parameters(), original.parameters(), strict=True):
        tensor.data = tensor.data.to(source.dtype)
    copied.load_state_dict(copy.deepcopy(original.state_dict()))
    return copied


@breaks("cast state")
def casts_keep_positions_exact(encoding: PositionalEncoding, setting: Setting) -> Iterator[Measured]:
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
                raise LawBroken(f"{name} is {rounded.dtype} after {dtype}")
        near = {what: difference(actual, reference) for what, actual, reference in _both(cast, encoding, world, plain)}
        try:
            far = _both(cast, encoding, world, spread)
        except ValueError:  # it refuses positions so far away
            continue
        for what, actual, reference in far:
            allowed = 4 * near[what] + torch.finfo(torch.bfloat16).eps / 2 * float(reference.detach().abs().max())
            yield within(actual, reference, allowed, f"{what} in {dtype} up to position {FAR}")


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
    both = []
    for module in (cast, encoding):
        every = torch.arange(at.length, device=at.coords.device)
        q, k, _, read = world.heads(module, world.x, at)
        seams = [(seam, whole) for seam, whole, _ in world.rows(module, at, every)]
        q, k = module.rotate(q, read, "query"), module.rotate(k, read, "key")
        keys = k.repeat_interleave(q.shape[1] // k.shape[1], dim=1)
        if (term := module.bias(q, keys, read, read)) is not None:
            b, h, i, j = torch.meshgrid(
                *(torch.arange(n, device=q.device) for n in (*q.shape[:3], k.shape[2])), indexing="ij"
            )
            seams.append(("bias", term(b, h, i, j).tril()))  # a causal one says nothing of later keys
        both.append(seams)
    return [(what, actual, reference) for (what, actual), (_, reference) in zip(*both, strict=True)]


@breaks("default dtype")
def default_dtype_does_not_matter(encoding: PositionalEncoding, setting: Setting) -> Iterator[Measured]:
    """The same under torch.set_default_dtype(bfloat16) and (float64)."""
    world = World(setting)
    expected = world.output(encoding, world.x, world.plain())
    for dtype in (torch.bfloat16, torch.float64):
        with default_dtype(dtype):
            actual = world.output(encoding, world.x, world.plain())
        yield same(actual, expected, f"default dtype {dtype}")


@breaks("autocast")
def autocast_does_not_matter(encoding: PositionalEncoding, setting: Setting) -> Iterator[Measured]:
    """Embedding and attention are the same inside autocast(bfloat16)."""
    world = World(setting)
    expected = world.output(encoding, world.x, world.plain())
    at = encoding.prepare(world.plain(), working_dtype(setting.dtype))
    x, (q, k, v, _) = encoding.embed(world.x, at), world.heads(encoding, world.x, at)
    with torch.autocast(torch.device(setting.device).type, dtype=torch.bfloat16):
        inside = encoding.prepare(world.plain(), working_dtype(setting.dtype))
        embedded = encoding.embed(world.x, inside)
        out = world.attend(encoding, q, k, v, encoding.read_hidden(x, inside))
    yield same(embedded, x, "embed under autocast")
    yield same(out, expected, "attention under autocast")


@breaks("inference mode")
def inference_mode_does_not_matter(encoding: PositionalEncoding, setting: Setting) -> Iterator[Measured]:
    """The same in inference mode as without gradients, and nothing is left behind that a call with gradients cannot use.

    Kernels may differ by a rounding with and without a gradient to come; inference mode must not add to that.
    """
    world, encoding = World(setting), copy.deepcopy(encoding)  # which gets gradients
    with torch.inference_mode():
        result = world.output(encoding, world.x, world.plain())
    with torch.no_grad():
        ungraded = world.output(encoding, world.x, world.plain())
    yield same(result.clone(), ungraded, "inference mode")
    try:
        trained = world.output(encoding, world.x.clone().requires_grad_(), world.plain())
        if trained.requires_grad:
            trained.sum().backward()
    except RuntimeError as error:
        if "nference" not in str(error):
            raise
        raise LawBroken(f"after inference mode it raises {error}") from error
    yield close(trained, ungraded, setting.dtype, "with gradients, after inference mode")


@breaks("threads")
def calls_at_once_do_not_matter(encoding: PositionalEncoding, setting: Setting) -> Iterator[Measured]:
    """The same in several threads at once."""
    world, results = World(setting), list[Tensor]()
    expected = world.output(encoding, world.x, world.plain())
    threads = [
        threading.Thread(target=lambda: results.append(world.output(encoding, world.x, world.plain()))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if len(results) != len(threads):
        raise LawBroken(f"{len(threads) - len(results)} of 4 threads failed")
    for result in results:
        yield same(result, expected, "four threads")


@breaks("strides")
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
            raise LawBroken(f"a call changed {what}")


@breaks("cache key")
def tables_know_their_owner(encoding: PositionalEncoding, setting: Setting) -> Iterator[Measured]:
    """Prepared or not gives the same; tables of another configuration are refused, or not read."""
    world = World(setting)
    plain = world.plain()
    prepared = encoding.prepare(plain, working_dtype(setting.dtype))
    expected = world.output(encoding, world.x, plain)
    yield same(world.output(encoding, world.x, prepared), expected, "prepared")
    if not prepared.tables:
        return
    foreign = replace(
        prepared, tables={f"not {owner}": tuple(map(_spoilt, tables)) for owner, tables in prepared.tables.items()}
    )
    try:
        yield same(world.output(encoding, world.x, foreign), expected, "with tables that somebody else prepared")
    except ValueError:
        return


def _spoilt(table: Tensor) -> Tensor:
    """A table that shows where it is read."""
    return torch.full_like(table, torch.nan if table.is_floating_point() else 0)


def attributes(encoding: PositionalEncoding) -> list[tuple[str, list[tuple[str, int]]]]:
    """Names and identities of everything that hangs on the module and its parts."""
    return [
        (name, sorted((key, id(value)) for key, value in vars(module).items())) for name, module in encoding.named_modules()
    ]
