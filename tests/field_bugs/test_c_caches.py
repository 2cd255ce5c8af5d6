"""Class C: caches with a wrong key, state that outlives a call, tables that end too early."""

from __future__ import annotations

import functools
import gc
import itertools

import numpy as np
import pytest
import torch

import posenc
import posenc.encodings.rope
from field_bugs.reference import angles, frequencies, rotated, slopes, softmax
from field_bugs.worlds import BIASES, ROTARY, attention, heads, near, outputs, same, tokens
from posenc import Positions
from posenc.encodings.alibi import ALiBi
from posenc.encodings.learned import Learned
from posenc.encodings.rope import RoPE
from posenc.encodings.sinusoidal import Sinusoidal
from posenc.kernels.rotation import few_tokens
from posenc.support.tensors import tables_at
from sampling import IN_A_ROW
from test_laws import build

of_rope = RoPE.tables

# C1 ---------------------------------------------------------------------------------------------------------------------


def test_C1_any_order_of_lengths_offsets_dtypes_and_bases_gives_what_a_fresh_instance_gives():
    calls = [(8, 0), (8, 5), (3, 5), (9, 0), (8, 0), (1, 7), (8, 70), (8, 5)]
    dtypes = (torch.float32, torch.bfloat16, torch.float64)
    for name in (*ROTARY, "sinusoidal", "learned"):
        kept = build(name)
        for (length, start), dtype in itertools.product(calls, dtypes):
            at = Positions.arange(1, length, start)
            got = outputs(kept, at, dtype)
            same(got, outputs(build(name), at, dtype), f"{name} {length} {start} {dtype}")
            if (
                name in ("rope", "rope half") and dtype == torch.float64
            ):  # a cache of the process would serve both instances
                layout = "interleaved" if name == "rope" else "half"
                formula = rotated(heads(1, length, dtype=dtype), range(start, start + length), frequencies(8), layout)
                near(got[1], formula, f"{name} {length} {start}", 1e-12)


def test_C1_two_instances_of_other_bases_and_scalings_do_not_share():
    x, at = heads(1, 6), Positions.arange(1, 6, 40)
    made = [RoPE(8), RoPE(8, base=500.0), RoPE(8, frequencies=posenc.frequencies.linear(posenc.frequencies.rotary(8), 2.0))]
    results = [encoding.rotate(x, at, "query") for encoding in made]
    for encoding, result in zip(reversed(made), reversed(results), strict=True):
        same(encoding.rotate(x, at, "query"), result)
    assert not any(torch.equal(a, b) for a, b in itertools.combinations(results, 2))


def plant_C1_the_offset_is_not_in_the_key(patch):
    patch.setattr(few_tokens, "FEW", 0)  # which computes its own tables
    cache = {}

    def tables(self, at, dtype):
        key = (self.identity, at.length, at.batch, dtype)
        return cache.setdefault(key, of_rope(self, at, dtype))

    patch.setattr(RoPE, "tables", tables)


def plant_C1_the_base_is_not_in_the_key(patch):
    patch.setattr(few_tokens, "FEW", 0)  # which computes its own tables
    cache = {}

    def tables(self, at, dtype):
        key = (str(at.coords.tolist()), self.rotary_dim, dtype)
        return cache.setdefault(key, of_rope(self, at, dtype))

    patch.setattr(RoPE, "tables", tables)


# C2 ---------------------------------------------------------------------------------------------------------------------


def biased(encoding, queries: int, keys: int) -> torch.Tensor:
    """Attention of the last queries over all keys."""
    q, k = heads(1, queries, seed=queries), heads(1, keys, seed=keys)
    at_q, at_k = Positions.arange(1, queries, max(keys - queries, 0)), Positions.arange(1, keys)
    return posenc.attend(q, k, k, encoding, at_q, at_k)


def test_C2_a_bias_is_that_of_its_own_shape():
    shapes = [(512, 512), (513, 513), (511, 511), (1, 9), (4, 4), (3, 9), (1, 600)]
    for name in BIASES:
        kept = build(name)
        for queries, keys in shapes if name in ("alibi", "t5") else shapes[3:6]:
            got = biased(kept, queries, keys)
            same(got, biased(build(name), queries, keys), f"{name} {queries} {keys}")
            if name == "alibi":
                near(got[0], alibi_by_formula(queries, keys), f"{queries} {keys}", 1e-5)


def alibi_by_formula(queries: int, keys: int) -> np.ndarray:
    q, k = (heads(1, n, seed=n)[0].double().numpy() for n in (queries, keys))
    distance = np.subtract.outer(range(keys - queries, keys), range(keys))
    logits = q @ k.transpose(0, 2, 1) / np.sqrt(8) - np.array(slopes(4))[:, None, None] * np.abs(distance)
    return softmax(logits, distance >= 0) @ k


def plant_C2_a_larger_bias_is_cut(patch):
    cache = {}
    at_distance = ALiBi.at_distance

    def cut(self, delta):
        held = cache.setdefault(len(self.slopes), at_distance(self, delta))
        if held.shape[1] < len(delta):
            held = cache[len(self.slopes)] = at_distance(self, delta)
        return held[:, : len(delta)]

    patch.setattr(ALiBi, "at_distance", cut)


# C3 ---------------------------------------------------------------------------------------------------------------------


def live_bytes() -> int:
    """Bytes of all tensors that Python can reach."""
    gc.collect()
    storages = {}
    for thing in gc.get_objects():
        if type(thing) in (torch.Tensor, torch.nn.Parameter) and thing.device.type == "cpu":
            storage = thing.untyped_storage()
            storages[storage.data_ptr()] = storage.nbytes()
    return sum(storages.values())


@pytest.mark.acceptance
def test_C3_a_thousand_lengths_leave_no_tables_behind():
    rope, sinusoidal, alibi = RoPE(8), Sinusoidal(32), build("alibi")
    before = live_bytes()
    for length in range(1, 1001):
        at = Positions.arange(1, length)
        rope.rotate(torch.zeros(1, 1, length, 8), at, "query")
        sinusoidal.embed(torch.zeros(1, length, 32), at)
        if length % 100 == 0:
            biased(alibi, 1, length)
    assert live_bytes() - before < 100_000  # all tables would be 150 MB
    del rope, sinusoidal, alibi, at
    assert live_bytes() - before < 10_000


def test_C3_models_of_two_dtypes_and_bases_in_one_process():
    x, at = heads(1, 6), Positions.arange(1, 6, 40)
    low, high = RoPE(8, base=100.0).bfloat16(), RoPE(8)
    first = low.rotate(x.bfloat16(), at, "query")
    same(high.rotate(x, at, "query"), RoPE(8).rotate(x, at, "query"))
    same(low.rotate(x.bfloat16(), at, "query"), first)
    assert first.dtype == torch.bfloat16


def plant_C3_one_entry_for_every_length_for_ever(patch):
    patch.setattr(Sinusoidal, "tables", functools.cache(Sinusoidal.tables))


# C5 ---------------------------------------------------------------------------------------------------------------------


def interleaved(model, steps: int = 2) -> None:
    """Prefill A, prefill B, decode A, decode B, …: each as if it were alone."""

    def alone(seed: int, length: int):
        x, cache, given = tokens(1, length + steps, seed=seed), None, []
        for begin, end in [(0, length), *((length + n, length + n + 1) for n in range(steps))]:
            out, cache = yield x[:, begin:end], Positions.arange(1, end - begin, begin), cache
            given.append(out)

    def run(turns: list[tuple[int, int]], order: list[int]) -> list[list[torch.Tensor]]:
        requests = [alone(*one) for one in turns]
        waiting, results = [next(one) for one in requests], [[] for _ in turns]
        for request in order:
            x, at, cache = waiting[request]
            out, cache = model.decode(x, at, cache)
            results[request].append(out)
            try:
                waiting[request] = requests[request].send((out, cache))
            except StopIteration:
                waiting[request] = None
        return results

    turns = [(1, 4), (2, 9)]
    together = run(turns, [0, 1] * (steps + 1))
    for request, turn in enumerate(turns):
        (isolated,) = run([turn], [0] * (steps + 1))
        for mine, theirs in zip(together[request], isolated, strict=True):
            near(mine, theirs, f"request {request}", 1e-6)


def test_C5_requests_that_take_turns_do_not_meet():
    for name in ("rope", "xpos", "alibi", "t5", "shaw", "transformer_xl", "cope", "path", "fox", "selective_rope"):
        model = attention(name)
        before = {key: id(value) for module in model.modules() for key, value in vars(module).items()}
        interleaved(model)
        assert {key: id(value) for module in model.modules() for key, value in vars(module).items()} == before, name


def plant_C5_the_module_remembers_where_the_last_request_was(patch):
    def tables(self, at, dtype):
        if at.length > 1:
            object.__setattr__(self, "seen", at.length)
            return of_rope(self, at, dtype)
        return of_rope(self, Positions.arange(at.batch, 1, getattr(self, "seen", 0)), dtype)

    patch.setattr(RoPE, "tables", tables)


# C6 ---------------------------------------------------------------------------------------------------------------------


def test_C6_a_module_that_is_never_moved_serves_every_device():
    for name in (*ROTARY, "sinusoidal"):
        encoding = build(name)
        expected = outputs(encoding, Positions.arange(1, 4))
        for device in ("meta", "cpu"):
            at = Positions.arange(1, 4, device=device)
            turned = encoding.rotate(heads(1, 4).to(device), at, "query")
            assert turned.device.type == encoding.embed(tokens(1, 4).to(device), at).device.type == device
        same(outputs(encoding, Positions.arange(1, 4)), expected, name)


def test_C6_tokens_and_positions_on_two_devices_are_named():
    at = Positions.arange(1, 4)
    for encoding in (RoPE(8), build("xpos")):
        with pytest.raises(ValueError, match="device"):
            encoding.rotate(heads(1, 4).to("meta"), at, "query")
    with pytest.raises(ValueError, match="device"):
        Sinusoidal(32).embed(tokens(1, 4).to("meta"), at)


@pytest.mark.cuda
def test_C6_on_cuda():
    """Never moved: the CPU, CUDA, the CPU again. Positions elsewhere work or are named."""
    for name in (*ROTARY, "sinusoidal"):
        encoding = build(name)
        expected = outputs(encoding, Positions.arange(1, 4))
        at = Positions.arange(1, 4, device="cuda")
        given = encoding.embed(tokens(1, 4).cuda(), at), encoding.rotate(heads(1, 4).cuda(), at, "query")
        near(given[0].cpu(), expected[0], name)
        near(given[1].cpu(), expected[1], name)
        same(outputs(encoding, Positions.arange(1, 4)), expected, name)
        embedded = functools.partial(encoding.embed, tokens(1, 4).cuda())
        turned = functools.partial(encoding.rotate, heads(1, 4).cuda(), side="query")
        assert "device" in refusal(embedded, expected[0]) + refusal(turned, expected[1]), name


def refusal(call, expected: torch.Tensor) -> str:
    """The error of a call at positions on the CPU; "device" where it gives what the CPU gives."""
    try:
        near(call(at=Positions.arange(1, 4)).cpu(), expected)
    except (ValueError, RuntimeError) as error:
        return str(error)
    return "device"


def plant_C6_tables_stay_on_the_first_device(patch):
    cache = {}

    def tables(self, at, dtype):
        cos, sin = cache.setdefault((self.identity, at.length), of_rope(self, at.to("meta"), dtype))
        return cos, sin

    patch.setattr(RoPE, "tables", tables)
    patch.setattr(posenc.encodings.rope, "rotate", lambda x, cos, sin, *rest, **named: x.to(cos.device))


# C7 ---------------------------------------------------------------------------------------------------------------------


def test_C7_a_traced_graph_writes_to_nothing_that_it_was_given():
    for name in ("rope", "alibi"):
        model = attention(name)

        class Called(torch.nn.Module):
            def __init__(self, model):
                super().__init__()
                self.model = model

            def forward(self, x):
                return self.model(x, Positions.arange(x.shape[0], x.shape[1]))

        exported = torch.export.export(Called(model), (tokens(2, 8),))
        signature = exported.run_decompositions({}).graph_signature
        assert not signature.buffers_to_mutate, f"{name}: {signature.buffers_to_mutate}"
        assert not signature.user_inputs_to_mutate, name


@pytest.mark.cuda
def test_C7_a_captured_graph_replays_after_a_longer_call():
    """Captured at 16 tokens, eager at 32, replayed at 16."""
    for name in ("rope", "xpos", "sinusoidal"):
        encoding = build(name)
        x, wide = heads(1, 16).cuda(), tokens(1, 16).cuda()
        at = encoding.prepare(Positions.arange(1, 16, device="cuda"))
        for _ in range(3):
            expected = encoding.rotate(x, at, "query"), encoding.embed(wide, at)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            captured = encoding.rotate(x, at, "query"), encoding.embed(wide, at)
        longer = Positions.arange(1, 32, device="cuda")
        encoding.rotate(heads(1, 32).cuda(), longer, "query"), encoding.embed(tokens(1, 32).cuda(), longer)
        graph.replay()
        torch.cuda.synchronize()
        same(list(captured), list(expected), name)


def plant_C7_a_buffer_is_grown_in_place(patch):
    made = RoPE.__init__

    @functools.wraps(made)
    def init(self, *given, **named):
        made(self, *given, **named)
        self.register_buffer("seen", torch.zeros(()), persistent=False)

    def tables(self, at, dtype):
        self.seen.add_(1)
        return of_rope(self, at, dtype)

    patch.setattr(RoPE, "__init__", init)
    patch.setattr(RoPE, "tables", tables)


# C8 ---------------------------------------------------------------------------------------------------------------------


def graphs_over_lengths(encoding) -> int:
    """How many graphs lengths 9 … 97 take, compiled whole with dynamic shapes.

    No length is 8, the width of a head: torch takes equal sizes for one.
    """
    found = []

    def counting(graph, inputs):
        found.append(graph)
        return graph.forward

    def seam(x, at):
        return encoding.embed(x, at) if "embed" in encoding.seams else encoding.rotate(x, at, "query")

    make = tokens if "embed" in encoding.seams else heads
    torch._dynamo.reset()
    compiled = torch.compile(seam, backend=counting, fullgraph=True, dynamic=True)
    try:
        for length in (9, 17, 25, 41, 65, 97):
            x, at = make(2, length), Positions.arange(2, length)
            near(compiled(x, at), seam(x, at))
    except torch._dynamo.exc.TorchDynamoException as error:
        raise AssertionError(f"the graph is not whole: {error}") from error
    return len(found)


def test_C8_one_graph_for_all_lengths():
    for name in ("rope", "sinusoidal"):
        assert graphs_over_lengths(build(name)) == 1, name


def plant_C8_a_table_that_grows_with_the_longest_call(patch):
    def tables(self, at, dtype):
        longest = getattr(self, "longest", 0)
        if at.length > longest:
            object.__setattr__(self, "longest", int(at.length))
            object.__setattr__(self, "grown", torch.arange(int(at.length)))
        turn = self.grown[: at.length][None, :, None] * torch.tensor(self.frequencies.values)
        return turn.cos().expand(at.batch, -1, -1), turn.sin().expand(at.batch, -1, -1)

    patch.setattr(RoPE, "tables", tables)


# C9 ---------------------------------------------------------------------------------------------------------------------


def test_C9_four_tokens_at_the_end_of_a_table_are_right_or_refused():
    """Offsets max - 2, max and 10·max: the largest position counts, not the number of tokens."""
    limited = [name for name in IN_A_ROW if build(name).largest_position() is not None]
    assert {"learned", "xpos"} <= set(limited)
    for name in limited:
        encoding = build(name)
        largest = encoding.largest_position()
        within = Positions.arange(1, 4, largest - 3)
        same(outputs(encoding, within), outputs(encoding, Positions.at(within.coords.clone())), name)
        for start in (largest - 2, largest + 1, 10 * largest):
            with pytest.raises(ValueError, match="position"):
                outputs(encoding, Positions.arange(1, 4, start))


def test_C9_a_rotation_has_no_end():
    omega = frequencies(8)
    for start in (2**16 - 2, 2**20, 10 * 2**20):
        cos, _ = tables_at(RoPE(8), Positions.arange(1, 4, start), torch.float32)
        near(cos[0], torch.from_numpy(angles(range(start, start + 4), omega)).cos(), f"from {start}", 1e-7)


def plant_C9_the_number_of_tokens_is_checked(patch):
    patch.setattr(
        Learned, "embed", lambda self, x, at: x + self.table[(at.coords + self.row_offset) % len(self.table)].to(x.dtype)
    )
