"""torch.export and ONNX: graphs without an operator of posenc's, over all lengths, equal to eager in onnxruntime.

Legend: b batch, t tokens, h heads, d channels.
"""

import onnxruntime
import pytest
import torch
from torch.export import Dim
from torch.utils import _pytree

import posenc
from posenc import Positions
from posenc.checking import laws
from posenc.encodings.rope import RoPE
from sampling import ENCODINGS, LOOPS, OWN_KEYS, only, tokens_of
from test_docs import blocks
from test_laws_embeddings import LOCAL
from test_laws_families import MADE, PLACES, SEVERAL

SIZES = {"d_model": 32, "n_heads": 4, "n_layers": 2, "max_positions": 64}
OF_A_GRID = {
    "swin": 7,
    "levit": 14,
    "beit": 14,
    "swin_v2": 8,
    "vit": 14,
    "decomposed": 14,
}  # tokens that fit on the diagonal
SOLVED = "floater"  # its solver chooses its steps by what it finds: it is exported with prepared positions
TRACED = [name for name in ENCODINGS if name not in (SOLVED, *LOOPS)]
SHAPES = [(2, 16), (1, 1), (3, 7), (1, 60)]
ROWS = {0: Dim.DYNAMIC, 1: Dim.DYNAMIC}  # batch and length of x [b, t, d]
HEADS = {0: Dim.DYNAMIC, 2: Dim.DYNAMIC}  # of q [b, h, t, d]


class Called(torch.nn.Module):
    """A function of tensors as the module that exporters want; `modules` are those that the function uses."""

    def __init__(self, function, *modules):
        super().__init__()
        self.function, self.used = function, torch.nn.ModuleList(modules)

    def forward(self, *tensors):
        return self.function(*tensors)


def drawn(name):
    return laws.draw_parameters(posenc.create(name, **SIZES), seed=1)


def attention(encoding, n_kv_heads=2):
    torch.manual_seed(0)
    return posenc.Attention(32, 4, encoding, n_kv_heads=n_kv_heads)


def of_tokens(name):
    """Attention over x [b, t, d] that builds its positions inside."""
    inner = attention(drawn(name), 4 if name in OWN_KEYS else 2)
    return Called(lambda x: inner(x, tokens_of(name, x.shape[0], x.shape[1])), inner)


def of_heads(encoding, *, causal=True, at=None):
    """`attend` over q [b, h, t, d], which is k and v too."""

    def function(q):
        return posenc.attend(q, q, q, encoding, at or Positions.arange(q.shape[0], q.shape[2]), causal=causal)

    return Called(function, encoding)


def in_onnx(module, inputs, dynamic_shapes, opset=23):
    """The module exported and loaded, a function of the same inputs; and the names of the operators in its graph."""
    program = torch.onnx.export(
        module.eval() if isinstance(module, torch.nn.Module) else module,
        inputs,
        dynamo=True,
        opset_version=opset,
        dynamic_shapes=dynamic_shapes,
        verbose=False,
    )
    session = onnxruntime.InferenceSession(program.model_proto.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_inputs()]

    def run(*given):
        arrays = [leaf.detach().numpy() for leaf in _pytree.tree_leaves(given)]
        outputs = [torch.tensor(one) for one in session.run(None, dict(zip(names, arrays, strict=True)))]
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    return run, [node.op_type for node in program.model_proto.graph.node]


@torch.no_grad()
def assert_same(run, module, *inputs):
    """Within 1e-5 of eager in fp32."""
    torch.testing.assert_close(run(*inputs), module(*inputs), atol=1e-5, rtol=0)


# torch.export -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", only(TRACED, "rope", "shaw"))
def test_torch_export_holds_plain_torch_for_all_lengths(name):
    module, most = of_tokens(name), OF_A_GRID.get(name, 16)
    exported = torch.export.export(module, (torch.randn(2, most, 32),), dynamic_shapes=((ROWS,),))
    operators = [str(node.target) for node in exported.graph.nodes if node.op == "call_function"]
    assert operators
    assert not [operator for operator in operators if "posenc" in operator]
    for batch, length in [(2, most), (3, 7)]:
        assert_same(exported.module(), module, torch.randn(batch, length, 32))


@pytest.mark.acceptance
def test_torch_compile_still_holds_the_operators():
    found = set()

    def look(graph, inputs):
        found.update(str(node.target) for node in graph.graph.nodes if node.op == "call_function")
        return graph.forward

    for name in ("rope", "alibi", "shaw"):
        torch._dynamo.reset()
        torch.compile(of_tokens(name), backend=look, fullgraph=True)(torch.randn(2, 16, 32))
    operators = ("sin_cos", "rotate", "toeplitz_attention", "relative_attention")
    assert {f"posenc.{operator}.default" for operator in operators} <= found


def test_a_backend_of_our_operators_is_refused_by_name():
    inner = attention(drawn("alibi"))
    module = Called(lambda x: inner(x, Positions.arange(x.shape[0], x.shape[1]), impl="toeplitz"), inner)
    with pytest.raises(ValueError, match=r"impl='toeplitz' cannot express .* a graph for other runtimes cannot contain"):
        torch.export.export(module, (torch.randn(2, 16, 32),))


def test_floater_asks_for_prepared_positions():
    with pytest.raises(NotImplementedError, match=r"FLOATER: .* call prepare\(\) outside of the exported module"):
        torch.export.export(of_tokens(SOLVED), (torch.randn(2, 16, 32),))


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_over_blocks_is_refused(name):
    with pytest.raises(NotImplementedError, match="PaTH: passes the blocks of keys one after the other"):
        torch.export.export(of_tokens(name), (torch.randn(2, 16, 32),))


# ONNX -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", only(TRACED, "rope"))
def test_attention_in_onnx(name):
    module, most = of_tokens(name), OF_A_GRID.get(name, 60)
    run, operators = in_onnx(module, (torch.randn(2, min(most, 16), 32),), ((ROWS,),))
    for batch, length in SHAPES:
        assert_same(run, module, torch.randn(batch, min(most, length), 32))
    assert name not in ("rope", "yarn") or operators.count("RotaryEmbedding") == 2


@pytest.mark.acceptance
@pytest.mark.parametrize("name", only([SOLVED, "rope", "alibi"], SOLVED))
def test_prepared_positions_are_inputs(name):
    """Positions are a pytree: three inputs, and one for every table that they carry. No table is computed in the graph."""
    module = attention(drawn(name))
    at = module.encoding.prepare(Positions.arange(2, 16))
    leaves = [ROWS for _ in _pytree.tree_leaves(at)]
    run, operators = in_onnx(module, (torch.randn(2, 16, 32), at), (ROWS, leaves))
    assert_same(run, module, torch.randn(3, 20, 32), module.encoding.prepare(Positions.arange(3, 20, start=7)))
    assert not {"Cos", "Sin"} & set(operators)


@pytest.mark.acceptance
@pytest.mark.parametrize("name", ["rope", "alibi", "t5", "shaw", "transformer_xl", "cope"])
def test_padding_in_onnx(name):
    """Positions.from_mask inside of the graph; the mask is an input."""
    inner = attention(drawn(name))
    module = Called(lambda x, mask: inner(x, Positions.from_mask(mask)), inner)
    run, _ = in_onnx(module, (torch.randn(2, 16, 32), torch.ones(2, 16, dtype=torch.int64)), ((ROWS, ROWS),))
    mask = torch.ones(3, 24, dtype=torch.int64)
    mask[0, :9], mask[2, 20:] = 0, 0
    assert_same(run, module, torch.randn(3, 24, 32), mask)


@pytest.mark.acceptance
@pytest.mark.parametrize("name", ["rope", "alibi", "t5", "shaw"])
def test_decoding_in_onnx(name):
    """One token after a cache of any length: the output and the longer cache."""
    inner = attention(drawn(name))

    def step(x, seen, keys, values):
        cache = posenc.KeyValueCache(keys, values, Positions.arange(x.shape[0], keys.shape[2]))
        out, cache = inner.decode(x, Positions.decode(seen), cache)
        return out, cache.k, cache.v

    def inputs(batch, past):
        held = torch.randn(batch, 2, past, 8), torch.randn(batch, 2, past, 8)
        return torch.randn(batch, 1, 32), torch.full((batch,), past), *held

    module, batches, pasts = Called(step, inner), {0: Dim.DYNAMIC}, {0: Dim.DYNAMIC, 2: Dim.DYNAMIC}
    run, _ = in_onnx(module, inputs(2, 9), ((batches, batches, pasts, pasts),))
    assert_same(run, module, *inputs(3, 30))


OPTIONS = {"window": (5, 0), "softcap": 3.0, "scale": 0.5, "chunk": 6}


@pytest.mark.acceptance
@pytest.mark.parametrize("option", OPTIONS)
def test_options_of_attention_in_onnx(option):
    inner = attention(drawn("rope"))
    module = Called(lambda x: inner(x, Positions.arange(x.shape[0], x.shape[1]), **{option: OPTIONS[option]}), inner)
    run, _ = in_onnx(module, (torch.randn(2, 16, 32),), ((ROWS,),))
    assert_same(run, module, torch.randn(3, 21, 32))


@pytest.mark.acceptance
@pytest.mark.parametrize("name", [name for name in MADE if name != "zipformer"])
def test_families_in_onnx(name):
    module = of_heads(laws.draw_parameters(MADE[name](), seed=1))
    run, _ = in_onnx(module, (torch.randn(2, 4, 12, 8),), ((HEADS,),))
    for batch, length in [(2, 12), (1, 7), (3, 40)]:
        assert_same(run, module, torch.randn(batch, 4, length, 8))


@pytest.mark.acceptance
def test_zipformer_in_onnx_needs_a_runtime_with_an_arctangent_in_fp64():
    module = of_heads(laws.draw_parameters(MADE["zipformer"](), seed=1))
    with pytest.raises(onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented, match="Atan"):
        in_onnx(module, (torch.randn(2, 4, 12, 8),), ((HEADS,),))


@pytest.mark.acceptance
@pytest.mark.parametrize("name", SEVERAL)
def test_families_of_several_coordinates_in_onnx(name):
    module = of_heads(laws.draw_parameters(SEVERAL[name](), seed=1), causal=False, at=PLACES)
    run, _ = in_onnx(module, (torch.randn(2, 4, 12, 8),), (({0: Dim.DYNAMIC},),))
    assert_same(run, module, torch.randn(5, 4, 12, 8))


@pytest.mark.acceptance
@pytest.mark.parametrize("name", LOCAL)
def test_embeddings_in_onnx(name):
    encoding = laws.draw_parameters(LOCAL[name](), seed=1)
    module = Called(lambda x: encoding.embed(x, Positions.arange(x.shape[0], x.shape[1])), encoding)
    run, _ = in_onnx(module, (torch.randn(2, 16, 32),), ((ROWS,),))
    assert_same(run, module, torch.randn(3, 100, 32))


@pytest.mark.acceptance
def test_the_page_runs_as_printed_in_both_languages(capsys):
    namespace = {"__name__": "page"}
    for code in blocks("export.md", "python"):
        exec(compile(code, "export.md", "exec"), namespace)
    assert capsys.readouterr().out == "".join(blocks("export.md", "output"))
    for language in ("python", "output"):
        assert blocks("export.md", language) == blocks("export.zh-CN.md", language)


# The seams, at positions of millions ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", only(["sinusoidal", "rope", "alibi"], "sinusoidal"))
def test_far_positions_are_exact_in_onnx(name):
    """Angles are fp64 in the graph too: an fp32 angle at position 1 000 000 would be off by up to 0.03."""
    encoding = posenc.create(name, d_model=64, d_head=64, n_heads=4)

    def seam(x, coords):
        at = Positions.at(coords)
        if name == "sinusoidal":
            return encoding.embed(x[:, 0], at)
        if name == "rope":
            return encoding.rotate(x, at, "query")
        index, head = torch.arange(coords.shape[1]), torch.arange(4)[:, None]
        return encoding.bias(x, x, at, at)(torch.zeros_like(head), head, index, index.flip(0))

    module = Called(seam)
    run, _ = in_onnx(module, (torch.randn(1, 4, 16, 64), torch.arange(16)[None]), (({2: Dim.DYNAMIC}, {1: Dim.DYNAMIC}),))
    for start in (0, 131_072, 1_000_000):
        assert_same(run, module, torch.randn(1, 4, 2048, 64), torch.arange(start, start + 2048)[None])


# RotaryEmbedding --------------------------------------------------------------------------------------------------------

FITS = {
    "interleaved": RoPE(16),
    "half": RoPE(16, layout="half"),
    "partial": RoPE(16, layout="half", rotary_dim=8),
    "trailing": RoPE(16, rotary_dim=8, trailing=True),
    "reversed": RoPE(16, reverse=True),
}
FITS_NOT = {"another layout returned": RoPE(16, returns="half")}


@pytest.mark.parametrize("name", only([*FITS, *FITS_NOT], "partial"))
def test_rotary_embedding_is_taken_where_it_is_exact(name):
    encoding = {**FITS, **FITS_NOT}[name]
    module = Called(lambda x: encoding.rotate(x, Positions.arange(x.shape[0], x.shape[2], start=3), "key"))
    run, operators = in_onnx(module, (torch.randn(2, 3, 8, 16),), ((HEADS,),))
    assert operators.count("RotaryEmbedding") == (name in FITS)
    assert_same(run, module, torch.randn(1, 3, 50, 16))


@pytest.mark.acceptance
def test_an_exported_program_becomes_a_graph_of_an_older_opset():
    """RotaryEmbedding came with opset 23. What torch.export traced holds the plain formula."""
    encoding = RoPE(16)
    module = Called(lambda x: encoding.rotate(x, Positions.arange(x.shape[0], x.shape[2]), "key"))
    program = torch.export.export(module, (torch.randn(2, 3, 8, 16),), dynamic_shapes=((HEADS,),))
    run, operators = in_onnx(program, (), None, opset=20)
    assert "RotaryEmbedding" not in operators
    assert_same(run, module, torch.randn(1, 3, 50, 16))
