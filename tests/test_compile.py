"""Compilers for real: export, and machine code from torch.compile with positions built and prepared inside the graph."""

import pytest
import torch

import posenc
from posenc.checking import laws
from sampling import ENCODINGS, LOOPS, OWN_KEYS, foundation_first, thinned, tokens_of

SIZES = {"d_model": 32, "n_heads": 4, "n_layers": 2, "max_positions": 64}


def attention(name):
    encoding = laws.draw_parameters(posenc.create(name, **SIZES), seed=1)
    torch.manual_seed(0)
    return posenc.Attention(32, 4, encoding, n_kv_heads=4 if name in OWN_KEYS else 2)


@pytest.mark.parametrize("name", thinned(3, foundation_first([name for name in ENCODINGS if name not in LOOPS])))
def test_export_keeps_positions_as_inputs(name):
    module = attention(name)
    at = module.encoding.prepare(tokens_of(name, 2, 16))
    exported = torch.export.export(module, (torch.randn(2, 16, 32), at)).module()
    later = module.encoding.prepare(tokens_of(name, 2, 16, start=5))
    x = torch.randn(2, 16, 32)
    torch.testing.assert_close(exported(x, later), module(x, later))


@pytest.mark.acceptance
@pytest.mark.parametrize("name", [name for name in ENCODINGS if name != "floater"])
def test_compiled_code_agrees_forward_and_backward(name):
    """FLOATER's solver steps by what it finds, so it is prepared outside; the law of one graph covers it."""
    module = attention(name)

    def step(x):
        return module(x, module.encoding.prepare(tokens_of(name, x.shape[0], x.shape[1])))

    torch._dynamo.reset()
    compiled = torch.compile(step, fullgraph=True, dynamic=True)
    for length in (8, 16, 40):
        x = torch.randn(2, length, 32)
        one, other = x.clone().requires_grad_(), x.clone().requires_grad_()
        out, expected = compiled(one), step(other)
        torch.testing.assert_close(out, expected)
        out.square().sum().backward()
        expected.square().sum().backward()
        torch.testing.assert_close(one.grad, other.grad)


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("nested", [False, True])
def test_attention_with_a_stack_is_one_graph(dynamic, nested):
    parts = posenc.create("rope", d_head=16), posenc.create("alibi", n_heads=4)
    stack = posenc.Stack(posenc.Stack(parts[0]) if nested else parts[0], parts[1])
    q, k, v = torch.randn(3, 2, 4, 8, 16).unbind()
    at = posenc.Positions.arange(2, 8)
    torch._dynamo.reset()
    compiled = torch.compile(
        lambda q, k, v, at: posenc.attend(q, k, v, stack, at), fullgraph=True, dynamic=dynamic, backend="eager"
    )
    torch.testing.assert_close(compiled(q, k, v, at), posenc.attend(q, k, v, stack, at))
