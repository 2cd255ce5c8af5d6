"""What only a CUDA device shows, beside the checks of the same code on the CPU; nothing here replaces one of those.

pytest tests/test_cuda.py
"""

import pytest
import torch

import posenc
from posenc.kernels.rotation import rotate
from posenc.positions import Positions

pytestmark = pytest.mark.cuda

DTYPES = [torch.float32, torch.bfloat16, torch.float16, torch.float64]
LAYOUTS = ["half", "interleaved"]


def inputs(dtype, b=2, h=5, t=257, d=96, n=36):
    """x as heads taken from a fused projection, and tables with a row for each row of the batch; on the CPU."""
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(b, t, 3, h, d, generator=draw, dtype=torch.float64).to(dtype)[:, :, 1].transpose(1, 2)
    angle = torch.rand(b, t, n, generator=draw, dtype=torch.float64) * 20 - 10
    table = torch.float64 if dtype == torch.float64 else torch.float32
    return x, angle.cos().to(table), angle.sin().to(table)


def put(*tensors):
    return [tensor.cuda() for tensor in tensors]


@pytest.mark.parametrize("returns", LAYOUTS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_rotation_gives_the_bits_of_the_cpu(dtype, layout, returns):
    x, cos, sin = inputs(dtype)
    for start in (0, 24):
        for back in (False, True):
            expected = rotate(x, cos, sin, layout, returns, start=start, back=back)
            on_device, *tables = put(x, cos, sin)
            assert torch.equal(rotate(on_device, *tables, layout, returns, start=start, back=back).cpu(), expected)
            rotate(on_device, *tables, layout, returns, start=start, back=back, out=on_device)
            assert torch.equal(on_device.cpu(), expected), "in place"


def test_rotation_of_more_than_2_to_the_31_elements():
    x = torch.zeros(2**16 + 1, 1, 256, 128, dtype=torch.bfloat16, device="cuda")  # 4 GiB
    tokens, cos, sin = inputs(torch.bfloat16, b=1, h=1, t=256, d=128, n=64)
    x[-1] = tokens[0].cuda()
    rotate(x, cos.cuda(), sin.cuda(), "half", out=x)
    assert torch.equal(x[-1:].cpu(), rotate(tokens, cos, sin, "half"))
    assert not x[:-1].any()


def test_rotation_has_its_gradient():
    x, cos, sin = inputs(torch.float64)
    weight, gradients = torch.randn(x.shape, dtype=x.dtype), []
    for device in ("cpu", "cuda"):
        leaf = x.detach().to(device).requires_grad_()
        (rotate(leaf, cos.to(device), sin.to(device), "half") * weight.to(device)).sum().backward()
        gradients.append(leaf.grad.cpu())
    torch.testing.assert_close(*gradients, rtol=0, atol=0)


def test_rotation_waits_for_nothing():
    x, cos, sin = put(*inputs(torch.bfloat16))
    rotate(x, cos, sin, "half", out=torch.empty_like(x))  # compiles
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        rotate(x, cos, sin, "half")
        rotate(x, cos, sin, "half", out=x)
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_rotation_is_captured_in_a_graph():
    x, cos, sin = put(*inputs(torch.bfloat16))
    out = torch.empty_like(x)
    rotate(x, cos, sin, "interleaved", out=out)  # compiles
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        rotate(x, cos, sin, "interleaved", out=out)
    x.copy_(torch.randn_like(x))
    out.fill_(float("nan"))
    graph.replay()
    assert torch.equal(out.cpu(), rotate(x.cpu(), cos.cpu(), sin.cpu(), "interleaved"))


def test_rotation_stays_one_graph_when_compiled():
    x, cos, sin = put(*inputs(torch.float32))
    compiled = torch.compile(lambda x, cos, sin: rotate(x, cos, sin, "half") * 2, fullgraph=True, dynamic=True)
    for t in (257, 100, 33):
        part = x[:, :, :t], cos[:, :t], sin[:, :t]
        torch.testing.assert_close(compiled(*part), rotate(*part, "half") * 2, rtol=0, atol=0)


@pytest.mark.parametrize("impl", ["flex", "auto"])
@pytest.mark.parametrize("name", ["rope", "alibi", "t5"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_attention_agrees_with_the_definition_on_the_cpu(dtype, name, impl):
    torch.manual_seed(0)
    sizes = {"d_head": 64} if name == "rope" else {"n_heads": 4}
    encoding = posenc.create(name, **sizes)
    q, k, v = (torch.randn(2, heads, 130, 64).to(dtype) for heads in (4, 2, 2))
    places = {
        "arange": Positions.arange(2, 130),
        "padded": Positions.from_mask(torch.arange(130)[None] >= torch.tensor([[0], [7]])),
    }
    for where, at in places.items():
        with torch.no_grad():
            expected = posenc.attend(q.double(), k.double(), v.double(), encoding.double(), at, impl="reference")
            got = posenc.attend(*put(q, k, v), encoding.to("cuda", torch.float32), at.to("cuda"), impl=impl).cpu()
        encoding.cpu()
        real = at.document.expand(2, -1) >= 0
        error = (got.double() - expected).transpose(1, 2)[real].abs().max()
        assert error < (2e-2 if dtype == torch.bfloat16 else 2e-3), (where, float(error))  # fp32 may run in TF32
