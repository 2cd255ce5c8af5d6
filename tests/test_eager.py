"""Which tensors go straight to a kernel: plain ones in eager code on the CPU, and no others."""

import torch
from torch.autograd import forward_ad
from torch.utils._python_dispatch import TorchDispatchMode

from posenc.kernels.eager import plain_on_cpu, transformed, wants_gradient

X = torch.zeros(2)


class Mode(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


class Wrapped(torch.Tensor):
    pass


def test_plain_tensors_and_parameters():
    assert plain_on_cpu(X)
    assert plain_on_cpu(X, torch.nn.Parameter(X))
    with torch.no_grad():
        assert plain_on_cpu(X.clone().requires_grad_())


def test_tensors_that_are_something_else():
    for other in (X.as_subclass(Wrapped), X.to("meta"), torch.zeros(2, dtype=torch.complex64).conj().imag):
        assert not plain_on_cpu(X, other)


def test_inside_a_mode_a_graph_or_a_transform():
    with Mode():
        assert not plain_on_cpu(X)
    seen = []
    torch.func.vmap(lambda x: seen.append((plain_on_cpu(X), transformed())) or x)(X)
    assert seen == [(False, True)]
    with forward_ad.dual_level():
        assert transformed()
        assert not plain_on_cpu(X)
    graph = torch.compile(lambda x: x + plain_on_cpu(x), backend="eager", fullgraph=True)
    assert torch.equal(graph(X), X)
    assert not transformed()


def test_what_has_a_gradient_to_record():
    x = torch.zeros(2, requires_grad=True)
    assert wants_gradient(X, x)
    assert not wants_gradient(X, X)
    with torch.no_grad():
        assert not wants_gradient(x)
