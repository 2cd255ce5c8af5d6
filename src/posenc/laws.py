"""What every encoding must obey, for anyone's implementation.

    posenc.laws.check(my_encoding, posenc.laws.Setting(d_model=64, n_heads=4))      raises LawBroken at the first breach
    posenc.laws.report(my_encoding)                                                  says of every law whether it holds

Each law is a plain function of an encoding and a setting. Laws compare an encoding with itself under another arrangement
of the same tokens, so they need no formula; a wrong sign or constant is for an oracle to find.

Give learned encodings parameters that do something first (`draw_parameters`): a table of zeros obeys nearly everything.

Legend: b batch, t tokens, h query heads, g key heads, d d_model, dh d_head.
"""

from __future__ import annotations

import copy
import itertools
import pickle
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import torch
from torch import Tensor

from posenc import attention
from posenc.backends import BACKENDS, candidates
from posenc.encoding import PositionalEncoding, Side, working_dtype
from posenc.positions import Positions, shard_index


class LawBroken(AssertionError):
    """An encoding does not do what the law says; the message names law, encoding and by how much."""


@dataclass(frozen=True)
class Setting:
    """Sizes, dtype and backend under which a law is tried."""

    d_model: int = 32
    n_heads: int = 4
    n_kv_heads: int = 2
    batch: int = 2
    length: int = 12
    max_positions: int = 128
    dtype: torch.dtype = torch.float32
    impl: str = "auto"
    causal: bool = True
    device: str = "cpu"
    seed: int = 0

    @property
    def d_head(self) -> int:
        return self.d_model // self.n_heads


Law = Callable[[PositionalEncoding, Setting], None]
LAWS: dict[str, Law] = {}


def law(function: Law) -> Law:
    LAWS[function.__name__] = function
    return function


@dataclass(frozen=True)
class Finding:
    law: str
    held: bool
    detail: str = ""


def check(encoding: PositionalEncoding, setting: Setting | None = None, laws: Sequence[str] | None = None) -> None:
    """Raises LawBroken at the first law that does not hold; ValueError for an unknown law."""
    for name in laws or LAWS:
        if name not in LAWS:
            raise ValueError(f"unknown law {name!r}; known: {', '.join(LAWS)}")
        LAWS[name](encoding, setting or Setting())


def report(
    encoding: PositionalEncoding, setting: Setting | None = None, laws: Sequence[str] | None = None
) -> list[Finding]:
    """Every law, or those named, and whether it holds."""
    findings = []
    for name in laws or LAWS:
        try:
            LAWS[name](encoding, setting or Setting())
            findings.append(Finding(name, True))
        except Exception as error:  # a law that cannot even be tried does not hold
            findings.append(Finding(name, False, f"{type(error).__name__}: {error}"))
    return findings


@torch.no_grad()
def draw_parameters(encoding: PositionalEncoding, seed: int = 0, std: float = 0.5) -> PositionalEncoding:
    """A copy whose parameters are drawn from N(0, std²), so that no seam hides behind a start at zero."""
    drawn = copy.deepcopy(encoding)
    generator = torch.Generator().manual_seed(seed)
    for parameter in drawn.parameters():
        parameter.copy_(torch.randn(parameter.shape, generator=generator) * std)
    return drawn


# Where a token's row comes from: its own embedding and coordinates ---------------------------------------------------


@law
def locality(encoding: PositionalEncoding, setting: Setting) -> None:
    """An embedded or rotated token depends on itself and its own coordinates only (trait `local`)."""
    if "local" not in encoding.traits:
        return
    world = World(setting)
    at = world.scattered()
    some = torch.tensor([7, 2, 9, 2], device=setting.device)
    for seam, whole, part in world.rows(encoding, at, some):
        equal(locality, encoding, part, whole, setting.dtype, f"{seam} of tokens {some.tolist()} alone")


@law
def norm_preservation(encoding: PositionalEncoding, setting: Setting) -> None:
    """Rotation keeps the length of queries and keys (trait `norm_preserving`)."""
    if "norm_preserving" not in encoding.traits:
        return
    world = World(setting)
    x = world.draw("heads", setting.batch, setting.n_heads, setting.length, setting.d_head)
    for side in ("query", "key"):
        turned = encoding.rotate(x, world.scattered(), side).to(working_dtype(x.dtype))
        close(norm_preservation, encoding, turned.norm(dim=-1), x.to(turned.dtype).norm(dim=-1), setting.dtype, side)


# The same tokens arranged otherwise ----------------------------------------------------------------------------------


@law
def decode_equals_prefill(encoding: PositionalEncoding, setting: Setting) -> None:
    """Any chunking over a cache of rotated keys gives what one pass over all tokens gives."""
    if not setting.causal:
        return
    world, heads = World(setting), World(setting).heads
    expected = world.output(encoding, world.x, world.plain())
    keys: list[Tensor] = []
    values: list[Tensor] = []
    seen: list[Positions] = []
    outputs, begin = [], 0
    for size in (5, 1, 1, 3, setting.length - 10):
        at = Positions.arange(setting.batch, size, begin, device=setting.device)
        q, k, v = heads(encoding, world.x[:, begin : begin + size], at)
        keys.append(encoding.rotate(k, at, "key"))
        values.append(encoding.rotate(v, at, "value"))
        seen.append(at)
        outputs.append(
            attend_rotated(
                encoding.rotate(q, at, "query"),
                torch.cat(keys, 2),
                torch.cat(values, 2),
                encoding,
                at,
                Positions.cat(seen),
                impl=setting.impl,
            )
        )
        begin += size
    close(decode_equals_prefill, encoding, torch.cat(outputs, dim=2), expected, setting.dtype, "chunks 5, 1, 1, 3, rest")


@law
def packed_equals_separate(encoding: PositionalEncoding, setting: Setting) -> None:
    """Documents in one row do not see each other and count from 0."""
    world = World(setting)
    ends = [0, 5, setting.length]
    x = world.x[:1]
    packed = world.output(encoding, x, Positions.packed(ends, device=setting.device))
    for begin, end in itertools.pairwise(ends):
        alone = world.output(encoding, x[:, begin:end], Positions.arange(1, end - begin, device=setting.device))
        close(packed_equals_separate, encoding, packed[:, :, begin:end], alone, setting.dtype, f"document {begin}:{end}")


@law
def padded_equals_unpadded(encoding: PositionalEncoding, setting: Setting) -> None:
    """Padding on either side changes nothing for real tokens, and padded rows stay finite."""
    world, pad = World(setting), 3
    alone = world.output(
        encoding, world.x[:, pad:-pad], Positions.arange(setting.batch, setting.length - 2 * pad, device=setting.device)
    )
    mask = torch.zeros(setting.batch, setting.length, dtype=torch.long, device=setting.device)
    mask[:, pad:-pad] = 1
    padded = world.output(encoding, world.x, Positions.from_mask(mask))
    if not bool(torch.isfinite(padded).all()):
        raise LawBroken(f"padded_equals_unpadded: {encoding.owner}: padded rows are not finite")
    close(padded_equals_unpadded, encoding, padded[:, :, pad:-pad], alone, setting.dtype, "real tokens")


@law
def batch_mates_do_not_matter(encoding: PositionalEncoding, setting: Setting) -> None:
    """A row gives the same alone as beside rows at other, longer positions."""
    world = World(setting)
    start = torch.tensor([0, setting.max_positions - setting.length], device=setting.device)
    together = world.output(encoding, world.x[:2], Positions.arange(2, setting.length, start, device=setting.device))
    for row in range(2):
        at = Positions.arange(1, setting.length, int(start[row]), device=setting.device)
        alone = world.output(encoding, world.x[row : row + 1], at)
        close(batch_mates_do_not_matter, encoding, together[row : row + 1], alone, setting.dtype, f"row {row}")


@law
def sharded_equals_whole(encoding: PositionalEncoding, setting: Setting) -> None:
    """Queries split over ranks, keys gathered in rank order: scattered back, the same as unsharded."""
    world = World(setting)
    at = encoding.prepare(world.plain(), working_dtype(setting.dtype))
    whole = world.output(encoding, world.x, at)
    q, k, v = world.heads(encoding, world.x, at)
    for zigzag in (False, True):
        shards = [shard_index(setting.length, rank, 2, zigzag=zigzag).to(setting.device) for rank in range(2)]
        gathered = torch.cat(shards)
        for index in shards:
            at_q, at_k = at.take(index), at.take(gathered)
            part = attend(
                q[:, :, index],
                k[:, :, gathered],
                v[:, :, gathered],
                encoding,
                at_q,
                at_k,
                causal=setting.causal,
                impl=setting.impl,
            )
            how = "zigzag" if zigzag else "contiguous"
            close(sharded_equals_whole, encoding, part, whole[:, :, index], setting.dtype, how)


@law
def shift_invariance(encoding: PositionalEncoding, setting: Setting) -> None:
    """Moving every position by the same amount changes nothing where declared, and something where not."""
    world = World(setting)
    plain = world.plain()
    shifted = world.output(encoding, world.x, plain.shift(37))
    expected = world.output(encoding, world.x, plain)
    if "shift_invariant" in encoding.traits:
        close(shift_invariance, encoding, shifted, expected, setting.dtype, "all positions + 37")
    elif difference(shifted, expected) <= 8 * tolerance(setting.dtype, expected):
        raise LawBroken(f"shift_invariance: {encoding.owner} does not declare it, yet a shift by 37 changes nothing")


@law
def head_slices(encoding: PositionalEncoding, setting: Setting) -> None:
    """A tensor-parallel rank with its slice of the heads computes that slice of the whole."""
    world = World(replace(setting, n_kv_heads=setting.n_heads))
    at = world.plain()
    q, k, v = world.heads(encoding, world.x, at)
    whole = attend(q, k, v, encoding, at, causal=setting.causal, impl=setting.impl)
    half = setting.n_heads // 2
    for part in (slice(0, half), slice(half, setting.n_heads)):
        mine = encoding.heads(part.start, part.stop)
        out = attend(q[:, part], k[:, part], v[:, part], mine, at, causal=setting.causal, impl=setting.impl)
        close(head_slices, encoding, out, whole[:, part], setting.dtype, f"heads {part.start}:{part.stop}")


# Where configuration lives --------------------------------------------------------------------------------------------


@law
def state_is_configuration(encoding: PositionalEncoding, setting: Setting) -> None:
    """No buffers; the same after half, to_empty and reloading, deepcopy and pickle."""
    world = World(setting)
    expected = world.output(encoding, world.x, world.plain())
    if named := [name for name, _ in encoding.named_buffers()]:
        raise LawBroken(f"state_is_configuration: {encoding.owner} has buffers {named}, which casts and loading can touch")
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
    x, (q, k, v) = encoding.embed(world.x, at), world.heads(encoding, world.x, at)
    with torch.autocast(torch.device(setting.device).type, dtype=torch.bfloat16):
        inside = encoding.prepare(world.plain(), working_dtype(setting.dtype))
        same(surroundings_do_not_matter, encoding, encoding.embed(world.x, inside), x, "embed under autocast")
        out = attend(q, k, v, encoding, inside, causal=setting.causal, impl=setting.impl)
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
        raise LawBroken(f"surroundings_do_not_matter: {encoding.owner}: {len(threads) - len(results)} of 4 threads failed")
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
            raise LawBroken(f"forward_writes_nothing: {encoding.owner}: a call changed {what}")


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
    raise LawBroken(f"tables_know_their_owner: {encoding.owner} used tables that somebody else prepared")


# Compilers, gradients and backends ------------------------------------------------------------------------------------


@law
def one_graph_over_lengths(encoding: PositionalEncoding, setting: Setting) -> None:
    """torch.compile(fullgraph=True, dynamic=True) makes one graph for lengths 8, 16, 24, 40 and 64, and it is right."""
    world, graphs = World(replace(setting, length=64)), []

    def counting(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        graphs.append(graph)
        return graph.forward

    torch._dynamo.reset()
    compiled = torch.compile(lambda x, at: world.output(encoding, x, at), backend=counting, fullgraph=True, dynamic=True)
    for length in (8, 16, 24, 40, 64):
        x = world.x[:, :length].contiguous()
        plain = Positions.arange(setting.batch, length, device=setting.device)
        at = encoding.prepare(plain, working_dtype(setting.dtype))
        expected = world.output(encoding, x, at)
        close(one_graph_over_lengths, encoding, compiled(x, at), expected, setting.dtype, f"length {length}")
    if len(graphs) != 1:
        raise LawBroken(f"one_graph_over_lengths: {encoding.owner}: {len(graphs)} graphs")
    for node in graphs[0].graph.nodes:
        value = node.meta.get("example_value")
        if isinstance(value, Tensor) and value.is_complex():
            raise LawBroken(f"one_graph_over_lengths: {encoding.owner}: complex numbers in the graph, at {node.name}")


@law
def gradients(encoding: PositionalEncoding, setting: Setting) -> None:
    """Analytic gradients are those of finite differences (float64), and every backend's those of the reference."""
    small = World(replace(setting, dtype=torch.float64, batch=1, length=4, impl="reference"))
    exact = copy.deepcopy(encoding).double()
    x = small.x.requires_grad_()
    parameters = list(exact.parameters())
    at = small.plain()
    if not torch.autograd.gradcheck(lambda x, *_: small.output(exact, x, at), (x, *parameters), raise_exception=False):
        raise LawBroken(f"gradients: {encoding.owner}: analytic and numerical gradients differ")
    wide = World(replace(setting, dtype=torch.float64))
    expected = small_gradients(exact, wide, "reference")
    for impl in expressible(exact, setting.device):
        for mine, theirs in zip(small_gradients(exact, wide, impl), expected, strict=True):
            close(gradients, encoding, mine, theirs, torch.float64, f"backend {impl}")


@law
def backends_agree(encoding: PositionalEncoding, setting: Setting) -> None:
    """Each is within twice the error that the reference has against float64 at this dtype, plus one rounding of the output.

    In float64 itself nothing is more exact, so there the order of summation is what may differ. A backend that cannot
    express the encoding raises and says which can; "auto" is one that can.
    """
    world = World(setting)
    at = world.plain()
    q, k, v = world.heads(encoding, world.x, at)
    wide, causal = copy.deepcopy(encoding).double(), setting.causal
    exact = attend(q.double(), k.double(), v.double(), wide, at, causal=causal, impl="reference")
    reference = attend(q, k, v, encoding, at, causal=setting.causal, impl="reference").double()
    allowed = 2 * difference(reference, exact) + torch.finfo(setting.dtype).eps * float(exact.detach().abs().max())
    if setting.dtype == torch.float64:
        allowed = tolerance(setting.dtype, exact)
    able = expressible(encoding, setting.device)
    for impl in (*candidates(setting.device, encoding), "auto"):
        if impl in able or impl == "auto":
            out = attend(q, k, v, encoding, at, causal=setting.causal, impl=impl)
            if (error := difference(out.double(), exact)) > allowed:
                raise LawBroken(
                    f"backends_agree: {encoding.owner} on {impl} in {setting.dtype}: "
                    f"error {error:.3g}, allowed {allowed:.3g}"
                )
            continue
        try:
            attend(q, k, v, encoding, at, causal=setting.causal, impl=impl)
        except ValueError as error:
            if "use impl=" not in str(error):
                raise LawBroken(f"backends_agree: {encoding.owner}: {impl} refuses without saying what to use") from error
        else:
            raise LawBroken(f"backends_agree: {encoding.owner}: {impl} declares it cannot express it, and did not raise")


# What the laws share --------------------------------------------------------------------------------------------------


class World:
    """Seeded tokens and projections for a setting: the same for every encoding."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.x = self.draw("x", setting.batch, setting.length, setting.d_model)
        width = setting.n_heads * setting.d_head
        narrow = setting.n_kv_heads * setting.d_head
        self.w_q, self.w_k, self.w_v = (
            self.draw(name, setting.d_model, size) * setting.d_model**-0.5
            for name, size in (("w_q", width), ("w_k", narrow), ("w_v", narrow))
        )

    def draw(self, name: str, *shape: int) -> Tensor:
        generator = torch.Generator().manual_seed(self.setting.seed + sum(map(ord, name)))
        drawn = torch.randn(shape, generator=generator, dtype=torch.float64)
        return drawn.to(self.setting.dtype).to(self.setting.device)

    def plain(self) -> Positions:
        return Positions.arange(self.setting.batch, self.setting.length, device=self.setting.device)

    def scattered(self) -> Positions:
        """Rows at different, growing, not consecutive positions within max_positions."""
        generator = torch.Generator().manual_seed(self.setting.seed)
        return Positions.randomized(
            self.setting.batch, self.setting.length, self.setting.max_positions, generator=generator
        ).to(self.setting.device)

    def heads(self, encoding: PositionalEncoding, x: Tensor, at: Positions) -> tuple[Tensor, Tensor, Tensor]:
        """Embedded tokens, projected: q [b, h, t, dh], k and v [b, g, t, dh]."""
        x = encoding.embed(x, at)
        q, k, v = ((x @ w).unflatten(-1, (-1, self.setting.d_head)).transpose(1, 2) for w in (self.w_q, self.w_k, self.w_v))
        return q, k, v

    def output(self, encoding: PositionalEncoding, x: Tensor, at: Positions) -> Tensor:
        q, k, v = self.heads(encoding, x, at)
        return attend(q, k, v, encoding, at, causal=self.setting.causal, impl=self.setting.impl)

    def rows(self, encoding: PositionalEncoding, at: Positions, some: Tensor) -> list[tuple[str, Tensor, Tensor]]:
        """(seam, rows of the whole, the same rows computed alone)."""
        x = self.x
        heads = self.draw("rows", self.setting.batch, self.setting.n_heads, self.setting.length, self.setting.d_head)
        found = [("embed", encoding.embed(x, at)[:, some], encoding.embed(x[:, some], at.take(some)))]
        for side in get_args(Side):
            whole, alone = encoding.rotate(heads, at, side), encoding.rotate(heads[:, :, some], at.take(some), side)
            found.append((f"rotate {side}", whole[:, :, some], alone))
        return found


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    encoding: PositionalEncoding,
    at_q: Positions,
    at_k: Positions | None = None,
    *,
    causal: bool,
    impl: str,
) -> Tensor:
    """Attention by `impl`; where it serves the encoding but not positions such as these, by whatever serves them."""
    return attention.attend(
        q,
        k,
        v,
        encoding,
        at_q,
        at_k,
        causal=causal,
        impl=_able(impl, q, encoding, at_q, at_q if at_k is None else at_k, causal),
    )


def attend_rotated(
    q: Tensor, k: Tensor, v: Tensor, encoding: PositionalEncoding, at_q: Positions, at_k: Positions, *, impl: str
) -> Tensor:
    return attention.attend_rotated(q, k, v, encoding, at_q, at_k, impl=_able(impl, q, encoding, at_q, at_k, True))


def _able(impl: str, q: Tensor, encoding: PositionalEncoding, at_q: Positions, at_k: Positions, causal: bool) -> str:
    return "auto" if impl in BACKENDS and BACKENDS[impl].refuses_call(q, encoding, at_q, at_k, causal) else impl


def expressible(encoding: PositionalEncoding, device: str = "cpu") -> list[str]:
    """The backends that "auto" may take there; one that compiles for seconds is tried by name: Setting(impl="flex")."""
    return [name for name in candidates(device, encoding) if not BACKENDS[name].refuses(encoding)]


def small_gradients(encoding: PositionalEncoding, world: World, impl: str) -> list[Tensor]:
    x = world.x.clone().requires_grad_()
    at = world.plain()
    q, k, v = world.heads(encoding, x, at)
    out = attend(q, k, v, encoding, at, causal=world.setting.causal, impl=impl)
    wanted = [x, *encoding.parameters()]
    grads = torch.autograd.grad((out * world.draw("upstream", *out.shape)).sum(), wanted, allow_unused=True)
    return [torch.zeros_like(of) if grad is None else grad for grad, of in zip(grads, wanted, strict=True)]


def restore(copied: PositionalEncoding, original: PositionalEncoding, saved: dict[str, Any]) -> None:
    for mine, theirs in zip(copied.parameters(), original.parameters(), strict=True):
        mine.data = mine.data.to(theirs.dtype)
    copied.load_state_dict(saved)


def attributes(encoding: PositionalEncoding) -> list[tuple[str, list[tuple[str, int]]]]:
    """Names and identities of everything that hangs on the module and its parts."""
    return [
        (name, sorted((key, id(value)) for key, value in vars(module).items())) for name, module in encoding.named_modules()
    ]


def tolerance(dtype: torch.dtype, expected: Tensor) -> float:
    """Another order of summation: a few roundings of the dtype, relative to the largest entry."""
    roundings = 4 if dtype in (torch.bfloat16, torch.float16) else 64
    return roundings * torch.finfo(dtype).eps * max(float(expected.detach().abs().max()), 1.0)


def difference(actual: Tensor, expected: Tensor) -> float:
    return float((actual.detach().double() - expected.detach().double()).abs().max())


def close(law: Law, encoding: PositionalEncoding, actual: Tensor, expected: Tensor, dtype: torch.dtype, what: str) -> None:
    """Equal up to the order of summation."""
    _compare(law, encoding, actual, expected, tolerance(dtype, expected), what)


def equal(law: Law, encoding: PositionalEncoding, actual: Tensor, expected: Tensor, dtype: torch.dtype, what: str) -> None:
    """Equal up to one rounding: nothing is summed over tokens."""
    _compare(
        law, encoding, actual, expected, 2 * torch.finfo(dtype).eps * max(float(expected.detach().abs().max()), 1.0), what
    )


def same(law: Law, encoding: PositionalEncoding, actual: Tensor, expected: Tensor, what: str) -> None:
    """Equal bit by bit."""
    _compare(law, encoding, actual, expected, 0.0, what)


def _compare(law: Law, encoding: PositionalEncoding, actual: Tensor, expected: Tensor, allowed: float, what: str) -> None:
    if actual.shape != expected.shape:
        raise LawBroken(
            f"{law.__name__}: {encoding.owner}: {what}: shape {list(actual.shape)}, expected {list(expected.shape)}"
        )
    error = difference(actual, expected)
    if not error <= allowed:  # catches NaN too
        raise LawBroken(f"{law.__name__}: {encoding.owner}: {what}: differs by {error:.3g}, allowed {allowed:.3g}")


__all__ = ["LAWS", "Finding", "LawBroken", "Setting", "check", "draw_parameters", "report", *LAWS]
