"""Random sequences of calls on one instance: whatever came before, a call gives what a fresh instance gives.

A machine keeps requests with caches of their own and draws what happens next: prefill with padding, decoding, going back,
packed rows, other dtypes and offsets, prepared tables, inference mode, training, copies, threads.
"""

from __future__ import annotations

import copy
import threading
from dataclasses import dataclass

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test

from field_bugs.worlds import ROW_BY_ROW, attention, heads, near, same, tokens
from posenc import KeyValueCache, Positions
from sampling import WITHOUT_STATES, foundation_first
from test_laws import build

LONGEST = 60
ALLOWED = {torch.float64: 1e-9, torch.float32: 5e-5}


@dataclass
class Request:
    """The tokens of one row, and the cache of those that were decoded."""

    x: torch.Tensor
    cache: KeyValueCache

    @property
    def length(self) -> int:
        return self.x.shape[1]


class Calls(RuleBasedStateMachine):
    name = "rope"

    @initialize(dtype=st.sampled_from([torch.float32, torch.float64]))
    def begin(self, dtype):
        self.dtype, self.drawn, self.requests = dtype, 0, []
        self.model = attention(self.name).to(dtype)
        self.before = self.state()

    def fresh(self):
        return attention(self.name).to(self.dtype)

    def new(self, batch: int, length: int) -> torch.Tensor:
        self.drawn += 1
        return tokens(batch, length, dtype=self.dtype, seed=self.drawn)

    def alone(self, x: torch.Tensor) -> torch.Tensor:
        return self.fresh()(x, Positions.arange(1, x.shape[1]))

    def check(self, got: torch.Tensor, expected: torch.Tensor, what: str) -> None:
        near(got, expected.detach(), f"{self.name}: {what}", ALLOWED[self.dtype])

    def state(self):
        return [
            (name, key, id(value)) for name, module in self.model.named_modules() for key, value in vars(module).items()
        ]

    def some(self, data: int) -> Request:
        return self.requests[data % len(self.requests)]

    @rule(length=st.integers(1, 9), left=st.integers(0, 3), right=st.integers(0, 3), prepared=st.booleans())
    def prefill(self, length, left, right, prepared):
        x = self.new(1, left + length + right)
        at = Positions.from_mask(torch.tensor([[0] * left + [1] * length + [0] * right]))
        at = self.model.encoding.prepare(at, self.dtype) if prepared else at
        with torch.no_grad():
            out, cache = self.model.decode(x, at)
        real = x[:, left : left + length]
        self.check(out[:, left : left + length], self.alone(real), f"prefill {left} {length} {right}")
        self.requests.append(Request(real, cache))

    @precondition(lambda self: self.requests)
    @rule(which=st.integers(0, 99), steps=st.integers(1, 4), prepared=st.booleans())
    def decode(self, which, steps, prepared):
        request = self.some(which)
        if request.length + steps > LONGEST:
            return
        x, n = self.new(1, steps), request.length
        at = Positions.decode([n]) if steps == 1 else Positions.arange(1, steps, n)
        at = self.model.encoding.prepare(at, self.dtype) if prepared else at
        with torch.no_grad():
            out, request.cache = self.model.decode(x, at, request.cache)
        request.x = torch.cat([request.x, x], dim=1)
        self.check(out, self.alone(request.x)[:, n:], f"decode {steps} after {n}")

    @precondition(lambda self: self.requests)
    @rule(which=st.integers(0, 99), by=st.integers(1, 5))
    def go_back(self, which, by):
        """The last tokens are forgotten, as after a refused guess of speculative decoding."""
        request = self.some(which)
        by = min(by, request.length - 1)
        end = request.cache.at.length - by
        if by and bool((request.cache.at.document[0, end:] >= 0).all()):
            request.x = request.x[:, : request.length - by]
            held = request.cache
            request.cache = KeyValueCache(held.k[:, :, :end], held.v[:, :, :end], held.at.narrow(0, end))

    @rule(first=st.integers(1, 6), second=st.integers(1, 6))
    def pack(self, first, second):
        x = self.new(1, first + second)
        out = self.model(x, Positions.packed([0, first, first + second]))
        self.check(out[:, :first], self.alone(x[:, :first]), "the first packed document")
        self.check(out[:, first:], self.alone(x[:, first:]), "the second packed document")

    @rule(
        length=st.integers(1, 12),
        start=st.integers(0, 80),
        dtype=st.sampled_from([torch.float16, torch.bfloat16, torch.float32, torch.float64]),
        side=st.sampled_from(["query", "key"]),
    )
    def seams(self, length, start, dtype, side):
        """Embedding and rotation bit by bit, in any dtype, from any offset."""
        if self.name not in WITHOUT_STATES:
            return  # they turn by what attention reads of hidden states: the other rules try that
        mine, other = build(self.name), self.model.encoding
        if dtype == torch.float64 and self.dtype == torch.float32:
            return  # parameters are of the model's dtype
        mine = mine.to(self.dtype)
        at, x, turned = Positions.arange(1, length, start), tokens(1, length, dtype=dtype), heads(1, length, dtype=dtype)
        same(other.embed(x, at), mine.embed(x, at), f"{self.name} embed")
        same(other.rotate(turned, at, side), mine.rotate(turned, at, side), f"{self.name} rotate")

    @rule(length=st.integers(1, 8))
    def inference(self, length):
        x = self.new(1, length)
        with torch.inference_mode():
            out = self.model(x, Positions.arange(1, length))
        self.check(out.clone(), self.alone(x), "inference mode")

    @rule(length=st.integers(2, 8))
    def train(self, length):
        x = self.new(1, length)
        gradients = []
        for model in (self.model, self.fresh()):
            given = x.clone().requires_grad_()
            model(given, Positions.arange(1, length)).square().sum().backward()
            gradients.append(given.grad)
            model.zero_grad(set_to_none=True)
        self.check(*gradients, "gradients")

    @rule()
    def copies(self):
        """A copy goes on in the place of the module. What the module read of hidden states is refused by the copy."""
        self.model = copy.deepcopy(self.model)
        self.before = self.state()
        self.requests = [request for request in self.requests if self.goes_on(request)]

    def goes_on(self, request: Request) -> bool:
        """Whether the copy takes the request's cache: not if it needs what other parameters read of hidden states."""
        try:
            with torch.no_grad():
                self.model.decode(self.new(1, 1), Positions.decode([request.length]), request.cache)
        except ValueError as refused:
            if "nothing read by" not in str(refused):
                raise
            return False
        return True

    @rule(lengths=st.lists(st.integers(1, 10), min_size=2, max_size=3))
    def threads(self, lengths):
        given, results = [self.new(1, length) for length in lengths], {}

        def call(n):
            with torch.no_grad():
                results[n] = self.model(given[n], Positions.arange(1, lengths[n]))

        running = [threading.Thread(target=call, args=(n,)) for n in range(len(lengths))]
        for one in running:
            one.start()
        for one in running:
            one.join()
        for n, x in enumerate(given):
            self.check(results[n], self.alone(x), f"thread {n}")

    @invariant()
    def nothing_is_written(self):
        if hasattr(self, "before"):
            assert self.state() == self.before, f"{self.name}: a call changed the module"


def machine(name: str) -> type[Calls]:
    return type(f"Calls_{name}", (Calls,), {"name": name})


SOLVED_BY_STEPS = ("floater",)  # a solver at every call


@pytest.mark.parametrize("name", foundation_first(ROW_BY_ROW))
def test_any_sequence_of_calls_gives_what_fresh_instances_give(name):
    examples = 1 if name in SOLVED_BY_STEPS else 6
    run_state_machine_as_test(machine(name), settings=settings(max_examples=examples, stateful_step_count=15))


@pytest.mark.acceptance
@pytest.mark.parametrize("name", ROW_BY_ROW)
def test_many_sequences_of_calls(name):
    examples = 5 if name in SOLVED_BY_STEPS else 40
    run_state_machine_as_test(machine(name), settings=settings(max_examples=examples, stateful_step_count=40))


UNSHRUNK = settings(max_examples=30, stateful_step_count=15, phases=[Phase.generate])


@pytest.mark.parametrize("fault", ["offset", "thread", "cast"])
def test_the_machine_finds_what_is_planted(fault, monkeypatch):
    """A cache without the offset in its key; state that another thread overwrites; a state that a copy loses."""
    from posenc.encodings.rope import RoPE

    made, cache = RoPE.tables, {}

    def keyed_by_length(self, at, dtype):
        return cache.setdefault((at.batch, at.length, dtype), made(self, at, dtype))

    def through_an_attribute(self, at, dtype):
        object.__setattr__(self, "now", made(self, at, dtype))
        return self.now

    def rounded(self, at, dtype):
        return (
            tuple(table.bfloat16().to(dtype) for table in made(self, at, dtype))
            if at.length == 3
            else made(self, at, dtype)
        )

    wrong = {"offset": keyed_by_length, "thread": through_an_attribute, "cast": rounded}[fault]
    monkeypatch.setattr(RoPE, "tables", wrong)
    with pytest.raises(AssertionError):
        run_state_machine_as_test(machine("rope"), settings=UNSHRUNK)
