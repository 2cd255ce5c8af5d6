"""posenc.modules: each function gives what the library it stands for gives, and stays exact where that drifts.

GOLDEN holds what the originals return for QUERIES at AT, head 1: torchtune 0.6.1, torchtitan 0.3.0 and nanotron 0.4 (its
module made on the CPU), and flash-attn's formula in plain torch. The oracle is fp64, pair by pair.
"""

import inspect
import math
from types import SimpleNamespace

import pytest
import torch

import posenc

torchtune, torchtitan, nanotron = posenc.modules.torchtune, posenc.modules.torchtitan, posenc.modules.nanotron

FAR = 100_003
AT = torch.tensor([[1, 7, FAR]])
D = 8
GOLDEN = {
    "torchtune": [
        [1.03632998, 0.225876451, 1.38060987, 0.0128954351, -1.62991858, 0.48372528, -1.0011245, 1.12399948],
        [-1.54147005, -0.514290988, -1.474509, 0.392362297, -0.12698777, -1.76320004, 0.382865757, -1.12234747],
        [-0.409723252, -1.57745898, -0.982898474, 0.532832682, 0.920778632, 0.747272849, 1.63765776, -0.665640354],
    ],
    "torchtune, llama3": [
        [1.03632998, 0.225876451, 1.37872744, -0.0732155144, -1.62526214, 0.499147058, -1.00000751, 1.12499332],
        [-1.54147005, -0.514290988, -1.17012298, 0.979253292, -0.243568972, -1.75090671, 0.375052363, -1.1249826],
        [-0.409723252, -1.57745898, -0.714306831, 0.860096395, -0.382187426, 1.12257862, 1.22308612, 1.27634656],
    ],
    "torchtitan": [
        [1.03632998, 0.22587651, 1.38060987, 0.0128954323, -1.62991869, 0.48372528, -1.0011245, 1.12399948],
        [-1.54147005, -0.514290988, -1.474509, 0.392362326, -0.12698777, -1.76320004, 0.382865757, -1.12234747],
        [-0.409723252, -1.57745898, -0.982898474, 0.532832682, 0.920778573, 0.747272849, 1.63765776, -0.665640414],
    ],
    "torchtitan, llama3": [
        [1.03632998, 0.22587651, 1.37872744, -0.0732155144, -1.62526226, 0.499147058, -1.00000751, 1.12499332],
        [-1.54147005, -0.514290988, -1.17012298, 0.979253352, -0.243568972, -1.75090671, 0.375052363, -1.1249826],
        [-0.409723252, -1.57745898, -0.714306831, 0.860096395, -0.382187396, 1.12257862, 1.22308612, 1.27634656],
    ],
    "torchtitan, cos and sin": [
        [1.7726171, -0.765433788, 1.37599933, -0.125035569, -0.246888101, 0.476036876, -0.998624504, 1.12499607],
        [-0.966606736, 0.993973136, -0.877603531, 1.25024903, -1.17395544, -1.5700773, 0.368865877, -1.12472332],
        [0.0754340962, 0.92312479, 1.31351829, 1.00497866, 1.12940681, -1.38891697, 1.25982928, -0.229167819],
    ],
    "nanotron": [
        [1.03632998, 0.22587651, 1.38060987, 0.0128954323, -1.62991869, 0.48372528, -1.0011245, 1.12399948],
        [-1.54147005, -0.514290988, -1.474509, 0.392362326, -0.12698777, -1.76320004, 0.382865757, -1.12234747],
        [-0.409723252, -1.57745898, -0.982898474, 0.532832682, 0.920778573, 0.747272849, 1.63765776, -0.665640414],
    ],
    "flash-attn, halves": [
        [1.7726171, -0.796169817, 1.38493109, -0.126124933, -0.246888101, 0.422627032, -0.986200213, 1.12487447],
        [-0.966606736, 1.60540736, -0.899085701, 1.25784433, -1.17395544, -0.935837865, 0.312881649, -1.1162225],
        [0.0754340962, 1.11662185, -1.20720363, -0.737894297, 1.12940681, 1.23871136, 1.36204231, 0.719730496],
    ],
    "flash-attn, neighbours": [
        [1.03632998, 0.225876451, 1.38060987, 0.0128954351, -1.62991858, 0.48372528, -1.0011245, 1.12399948],
        [-1.54147005, -0.514290988, -1.474509, 0.392362297, -0.12698777, -1.76320004, 0.382865757, -1.12234747],
        [-0.409723252, -1.57745898, -0.982898474, 0.532832682, 0.920778632, 0.747272849, 1.63765776, -0.665640354],
    ],
}


def tokens(heads):
    """[1, 3, heads, D] of eighths, which are exact in every dtype."""
    count = 3 * heads * D
    return ((torch.arange(count) * 17 % 29 - 14) / 8).reshape(1, 3, heads, D)


QUERIES, KEYS = tokens(2), tokens(1)
SCALED = {"scaling_factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}


def plain(base):
    return [base ** (-2 * i / D) for i in range(D // 2)]


def llama31(base):
    """Llama 3.1's frequencies, by wavelength as Meta's code has them: factor 8, 1 and 4 turns in 8192 tokens."""
    found = []
    for w in plain(base):
        wavelength = 2 * math.pi / w
        smooth = (8192 / wavelength - 1) / 3
        found.append(w if wavelength < 2048 else w / 8 if wavelength > 8192 else (1 - smooth) * w / 8 + smooth * w)
    return found


def exact(x, at, frequencies, layout):
    """x [b, t, h, d] turned in fp64, pair by pair."""
    out, n = x.double().clone(), len(frequencies)
    for t in range(x.shape[1]):
        for i, w in enumerate(frequencies):
            first, second = (2 * i, 2 * i + 1) if layout == "interleaved" else (i, i + n)
            for row in range(x.shape[0]):
                angle = at[row % at.shape[0], t].item() * w
                a, b = x[row, t, :, first].double(), x[row, t, :, second].double()
                out[row, t, :, first] = a * math.cos(angle) - b * math.sin(angle)
                out[row, t, :, second] = b * math.cos(angle) + a * math.sin(angle)
    return out


def angles(at, base=10000.0):
    return at[..., None].double() * torch.tensor(plain(base), dtype=torch.float64)


def flash(interleaved):
    def turn(q, k, at):
        angle = angles(at)
        return nanotron.apply_rotary_emb(q, k, angle.cos().float(), angle.sin().float(), interleaved)

    return turn


def each(module, name):
    return lambda q, k, at: [module(x, **{name: at}) for x in (q, k)]


def together(apply, table):
    return lambda q, k, at: apply(q, k, table, at)


TABLE = torchtitan.precompute_freqs_cis(D, FAR + 1)
SCALED_TABLE = torchtitan.precompute_freqs_cis(D, FAR + 1, 500_000.0, SimpleNamespace(**SCALED))
CACHE = torchtitan.precompute_rope_cache(D, FAR + 1)
# What turns q and k at positions, its frequencies and its layout.
CASES = {
    "torchtune": (each(torchtune.RotaryPositionalEmbeddings(D), "input_pos"), plain(1e4), "interleaved"),
    "torchtune, llama3": (each(torchtune.Llama3ScaledRoPE(D, base=500_000), "input_pos"), llama31(5e5), "interleaved"),
    "torchtitan": (together(torchtitan.apply_rotary_emb_complex, TABLE), plain(1e4), "interleaved"),
    "torchtitan, llama3": (together(torchtitan.apply_rotary_emb_complex, SCALED_TABLE), llama31(5e5), "interleaved"),
    "torchtitan, cos and sin": (together(torchtitan.apply_rotary_emb_cos_sin, CACHE), plain(1e6), "half"),
    "nanotron": (each(nanotron.RotaryEmbedding(D, 2048), "position_ids"), plain(1e4), "interleaved"),
    "nanotron, halves": (each(nanotron.RotaryEmbedding(D, 64, interleaved=False), "position_ids"), plain(1e4), "half"),
    "flash-attn, halves": (flash(False), plain(1e4), "half"),
    "flash-attn, neighbours": (flash(True), plain(1e4), "interleaved"),
}
ROUNDING = 2.0**-24


@pytest.mark.parametrize("name", GOLDEN)
def test_equal_to_the_original_near_and_closer_to_the_truth_far_away(name):
    turn, frequencies, layout = CASES[name]
    mine, golden = turn(QUERIES, KEYS, AT)[0][0, :, 1].double(), torch.tensor(GOLDEN[name], dtype=torch.float64)
    truth = exact(QUERIES, AT, frequencies, layout)[0, :, 1]
    torch.testing.assert_close(mine[:2], golden[:2], rtol=0, atol=16 * ROUNDING)  # its angle at 7 is rounded to 4 of these
    torch.testing.assert_close(mine[2], golden[2], rtol=0, atol=FAR * 4 * ROUNDING)
    assert (mine - truth).abs().max() < 6 * ROUNDING  # of cos and sin, of both products and of their sum, below 4
    assert (mine[2] - truth[2]).abs().max() * 10 < (golden[2] - truth[2]).abs().max()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize("name", CASES)
def test_every_dtype_is_kept_and_rounded_once(name, dtype):
    turn, frequencies, layout = CASES[name]
    at = torch.tensor([[0, 3, FAR], [9, 9, 1]], dtype=torch.int32)
    q, k = (x.repeat(2, 1, 1, 1).to(dtype) for x in (QUERIES, KEYS))
    for x, out in zip((q, k), turn(q, k, at), strict=True):
        assert (out.dtype, out.shape, out.stride()) == (dtype, x.shape, x.stride())
        error = (out.double() - exact(x, at, frequencies, layout)).abs().max()
        assert error < 6 * ROUNDING + torch.finfo(dtype).eps * 2 * (dtype in (torch.bfloat16, torch.float16))


@pytest.mark.parametrize("name", CASES)
def test_gradients_turn_back(name):
    turn, frequencies, layout = CASES[name]
    q, k = (x.clone().requires_grad_() for x in (QUERIES, KEYS))
    out = turn(q, k, AT)
    (out[0].sum() + 2 * out[1].sum()).backward()
    for x, factor in ((q, 1.0), (k, 2.0)):
        expected = exact(torch.full_like(x, factor).detach(), -AT, frequencies, layout)
        torch.testing.assert_close(x.grad.double(), expected, rtol=0, atol=12 * ROUNDING)


@pytest.mark.parametrize("name", ["torchtune", "torchtitan", "torchtitan, cos and sin"])
def test_one_compiled_graph(name):
    turn, _, _ = CASES[name]
    torch.compiler.reset()
    compiled = torch.compile(turn, fullgraph=True, backend="eager")
    for mine, expected in zip(compiled(QUERIES, KEYS, AT), turn(QUERIES, KEYS, AT), strict=True):
        assert mine.equal(expected)


@pytest.mark.parametrize(
    "make", [torchtune.RotaryPositionalEmbeddings, torchtune.Llama3ScaledRoPE, nanotron.RotaryEmbedding]
)
def test_a_module_has_no_state_and_no_longest_position(make):
    module = make(D, 2)
    expected = module(QUERIES, **{list(inspect.signature(module.forward).parameters)[1]: AT})
    assert not module.state_dict()
    assert not list(module.buffers())
    module.to_empty(device="meta").bfloat16()
    getattr(module, "rope_init", getattr(module, "init_rotary_embeddings", None))()
    assert module(QUERIES, **{list(inspect.signature(module.forward).parameters)[1]: AT}).equal(expected)
    assert module(QUERIES).equal(
        module(QUERIES, **{list(inspect.signature(module.forward).parameters)[1]: torch.arange(3)[None]})
    )


def test_one_token_of_a_cache_is_turned_as_in_the_whole_sequence():
    for module, name in (
        (torchtune.RotaryPositionalEmbeddings(D), "input_pos"),
        (nanotron.RotaryEmbedding(D, 64), "position_ids"),
    ):
        whole = module(QUERIES, **{name: AT})
        for t in range(3):
            assert module(QUERIES[:, t : t + 1], **{name: AT[:, t : t + 1]}).equal(whole[:, t : t + 1])


def test_torchtitan_takes_whole_tables_prepared_ones_and_those_of_the_model():
    freqs_cis, rope_cache = torchtitan.precompute_freqs_cis(D, FAR + 1), torchtitan.precompute_rope_cache(D, FAR + 1)
    assert (freqs_cis.dtype, rope_cache.shape) == (torch.complex64, (FAR + 1, 2 * D))
    for apply, table in (
        (torchtitan.apply_rotary_emb_complex, freqs_cis),
        (torchtitan.apply_rotary_emb_cos_sin, rope_cache),
    ):
        first = apply(QUERIES, KEYS, table)
        at = torch.arange(3)[None]
        prepared = table[at][:, :, None]
        for same in (apply(QUERIES, KEYS, table, at), apply(QUERIES, KEYS, prepared)):
            assert all(one.equal(other) for one, other in zip(first, same, strict=True))
    with torch.device("meta"):
        assert torchtitan.precompute_freqs_cis(D, 5).is_meta
        assert torchtitan.precompute_rope_cache(D, 5).is_meta


def test_tables_have_gradients_too():
    cos, sin = (f(angles(AT)).requires_grad_() for f in (torch.cos, torch.sin))
    q, k = (x.double().requires_grad_() for x in (QUERIES, KEYS))
    assert torch.autograd.gradcheck(nanotron.apply_rotary_emb, (q, k, cos, sin))
    table = torch.polar(torch.ones(3, 4, dtype=torch.float64), angles(AT)[0]).requires_grad_()
    assert torch.autograd.gradcheck(torchtitan.apply_rotary_emb_complex, (q, k, table))


def test_channels_beyond_the_tables_pass_through():
    cos, sin = torch.zeros(3, 2), torch.ones(3, 2)
    turned, _ = nanotron.apply_rotary_emb(QUERIES, KEYS, cos, sin)
    assert turned[..., 4:].equal(QUERIES[..., 4:])
    assert turned[..., :4].equal(torch.cat([-QUERIES[..., 2:4], QUERIES[..., :2]], dim=-1))


def parameters(function):
    return list(inspect.signature(function).parameters)


def test_the_signatures_are_those_of_the_originals():
    assert parameters(torchtune.RotaryPositionalEmbeddings) == ["dim", "max_seq_len", "base"]
    scaling = ["scale_factor", "low_freq_factor", "high_freq_factor", "old_context_len"]
    assert parameters(torchtune.Llama3ScaledRoPE) == ["dim", "max_seq_len", "base", *scaling]
    assert parameters(torchtune.RotaryPositionalEmbeddings.forward) == ["self", "x", "input_pos"]
    assert parameters(torchtitan.precompute_freqs_cis) == ["dim", "end", "theta", "rope_scaling_args"]
    assert parameters(torchtitan.precompute_rope_cache) == ["dim", "max_seq_len", "base"]
    assert parameters(torchtitan.apply_rotary_emb_complex) == ["xq", "xk", "freqs_cis", "positions"]
    assert parameters(torchtitan.apply_rotary_emb_cos_sin) == ["xq", "xk", "rope_cache", "positions"]
    assert parameters(nanotron.RotaryEmbedding)[:3] == ["dim", "end", "theta"]
    assert parameters(nanotron.RotaryEmbedding.forward) == ["self", "x", "position_ids"]
    assert parameters(nanotron.apply_rotary_emb) == ["q", "k", "cos", "sin", "interleaved"]


WRONG = {
    "dim: expected an even number": lambda: torchtune.RotaryPositionalEmbeddings(7),
    "theta: expected": lambda: torchtitan.precompute_freqs_cis(8, 4, theta=-1.0),
    "max_seq_len: expected": lambda: torchtitan.precompute_rope_cache(8, 0),
    "rope_scaling_args: expected": lambda: torchtitan.precompute_freqs_cis(8, 4, rope_scaling_args={"factor": 8}),
    r"x: expected \[b, t, h, d=16\]": lambda: torchtune.RotaryPositionalEmbeddings(16)(QUERIES),
    r"input_pos: expected \[1 or 1, 3\]": lambda: torchtune.RotaryPositionalEmbeddings(D)(QUERIES, input_pos=AT[:, :2]),
    "input_pos: expected positions from 0": lambda: torchtune.RotaryPositionalEmbeddings(D)(QUERIES, input_pos=-AT),
    "position_ids: expected whole": lambda: nanotron.RotaryEmbedding(D, 8)(QUERIES, AT.float()),
    "positions: expected positions from 0 and below 9": lambda: torchtitan.apply_rotary_emb_complex(
        QUERIES, KEYS, torchtitan.precompute_freqs_cis(D, 9), AT
    ),
    "freqs_cis: expected at least 3 rows": lambda: torchtitan.apply_rotary_emb_complex(
        QUERIES, KEYS, torchtitan.precompute_freqs_cis(D, 2)
    ),
    "freqs_cis: expected complex": lambda: torchtitan.apply_rotary_emb_complex(QUERIES, KEYS, torch.zeros(3, 4)),
    "rope_cache: expected at least 3 rows of 16": lambda: torchtitan.apply_rotary_emb_cos_sin(
        QUERIES, KEYS, torch.zeros(3, 8)
    ),
    "xk: expected": lambda: torchtitan.apply_rotary_emb_cos_sin(QUERIES, KEYS[:, :2], torch.zeros(3, 16)),
    "sin: expected": lambda: nanotron.apply_rotary_emb(QUERIES, KEYS, torch.zeros(3, 4), torch.zeros(3, 2)),
}


@pytest.mark.parametrize("said", WRONG)
def test_what_is_wrong_is_named(said):
    with pytest.raises((ValueError, TypeError), match=f"^{said}"):
        WRONG[said]()
