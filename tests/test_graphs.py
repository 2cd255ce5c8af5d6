"""A forward is one graph over lengths and batches, waits for no device and copies nothing between devices."""

import subprocess
import sys

import pytest
import torch
from torch._dynamo.utils import counters
from torch.utils._python_dispatch import TorchDispatchMode

import posenc
from posenc import Positions
from posenc.checking import laws
from sampling import IN_A_ROW, OWN_KEYS, every_second, foundation_first, thinned

SIZES = {"d_model": 64, "n_heads": 4, "max_positions": 256}
NAMES = ["rope", "alibi", "t5", "shaw", "transformer_xl"]
SHAPES = [(2, 8), (3, 12), (2, 17), (5, 33), (4, 64)]


def module(name):
    torch.manual_seed(0)
    encoding = laws.draw_parameters(posenc.create(name, **SIZES), seed=1)
    return posenc.Attention(64, 4, encoding, n_kv_heads=4 if name in OWN_KEYS else 2)


def packed(batch, length):
    """Two documents in every row."""
    return Positions.packed([0, length // 3, length]).expand(batch)


def padded(batch, length):
    mask = torch.ones(batch, length, dtype=torch.long)
    mask[0, : length // 4] = 0
    return Positions.from_mask(mask)


@pytest.mark.parametrize(("name", "places"), thinned(4, every_second(NAMES, (Positions.arange, packed, padded))))
def test_one_graph_over_lengths_and_batches(name, places):
    attention = module(name)
    torch._dynamo.reset()
    counters.clear()
    compiled = torch.compile(attention, backend="eager", fullgraph=True, dynamic=True)
    for batch, length in SHAPES:
        x, at = torch.randn(batch, length, 64), places(batch, length)
        torch.testing.assert_close(compiled(x, at), attention(x, at), atol=1e-5, rtol=1e-5)
    assert counters["stats"]["unique_graphs"] == 1
    assert not counters["graph_break"]


class NoLookingAtValues(TorchDispatchMode):
    """Fails where Python reads a number out of a tensor, where a shape depends on values, and at copies between devices."""

    def __init__(self):
        super().__init__()
        self.seen = set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function.overloadpacket._qualified_op_name
        assert name not in (
            "aten::_local_scalar_dense",
            "aten::item",
            "aten::nonzero",
            "aten::masked_select",
            "aten::is_nonzero",
            "aten::equal",
            "aten::unique_dim",
            "aten::_unique2",
        ), name
        indices = args[1] if name == "aten::index" else ()
        assert not any(index is not None and index.dtype == torch.bool for index in indices), "aten::nonzero of a mask"
        result = function(*args, **(kwargs or {}))
        if name in ("aten::_to_copy", "aten::copy_"):
            devices = {tensor.device for tensor in (*args, result) if isinstance(tensor, torch.Tensor)}
            assert len(devices) == 1, f"{name}: from one device to another, {devices}"
        self.seen.add(name)
        return result


def test_the_watch_notices():
    with NoLookingAtValues(), pytest.raises(AssertionError, match="_local_scalar_dense"):
        torch.ones(1).item()
    with NoLookingAtValues(), pytest.raises(AssertionError, match="nonzero"):
        torch.ones(3)[torch.ones(3) > 0]
    with NoLookingAtValues(), pytest.raises(AssertionError, match="from one device to another"):
        torch.ones(1).to("meta")


@pytest.mark.parametrize("places", [Positions.arange, packed, padded], ids=["run", "packed", "padded"])
@pytest.mark.parametrize("name", foundation_first(IN_A_ROW))
def test_on_an_accelerator_nothing_waits_for_the_host(name, places):
    """On the meta device there are no values: reading one raises, and so does meeting a tensor left on the CPU.

    FLOATER's solver chooses its steps by what it finds; its tables are prepared before the forward.
    """
    attention = module(name)
    at = attention.encoding.prepare(places(2, 24)) if name == "floater" else places(2, 24)
    x = torch.empty(2, 24, 64, device="meta")
    attention, at = attention.to("meta"), at.to("meta")
    with NoLookingAtValues() as watch:
        out = attention(x, at)
    assert out.device.type == "meta"
    assert out.shape == x.shape
    assert "aten::bmm" in watch.seen or "aten::_scaled_dot_product_attention_math" in watch.seen, watch.seen


CHECKED = ("floater", "learned", "xpos", "convolutional", "reformer", "hierarchical", "tupe")


@pytest.mark.parametrize("places", [Positions.arange, packed, padded], ids=["run", "packed", "padded"])
@pytest.mark.parametrize("name", foundation_first(name for name in IN_A_ROW if name not in CHECKED))
def test_on_the_cpu_values_are_read_in_our_own_kernels_only(name, places):
    """And in the checks of positions that eager code on the CPU makes, for the encodings in CHECKED."""
    attention, at, x = module(name), places(2, 24), torch.randn(2, 24, 64)
    at = attention.encoding.prepare(at)
    with NoLookingAtValues():
        attention(x, at)


HEAVY = ("torch._dynamo", "torch._inductor", "torch.nn.attention.flex_attention", "triton", "sympy")


def test_import_loads_little_more_than_torch_and_a_forward_imports_no_compiler():
    """Time is for the benchmark; here, modules: only our own and a few of the standard library, and what a forward adds."""
    code = (
        "import sys, torch\n"
        "before = set(sys.modules)\n"
        "import posenc\n"
        "print(*sorted({name.partition('.')[0] for name in set(sys.modules) - before if not name.startswith('posenc')}))\n"
        "from posenc import Positions\n"
        "q = torch.zeros(1, 4, 8, 16)\n"
        "for name in posenc.catalogue.FOUNDATION:\n"
        "    if name != 'floater':\n"
        "        encoding = posenc.create(name, d_model=64, n_heads=4, max_positions=64)\n"
        "        posenc.attend(q, q, q, encoding, Positions.arange(1, 8))\n"
        "new = set(sys.modules) - before\n"
        f"print(sorted(name for name in new if name.startswith({HEAVY!r})))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    imported, heavy = done.stdout.splitlines()
    assert set(imported.split()) <= set(sys.stdlib_module_names) | {"torch"}
    assert heavy == "[]"
