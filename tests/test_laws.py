"""Every law over every encoding, backend and dtype. No exception list: what a backend cannot express must raise.

make acceptance tries all of it. make test tries the foundation, in every eighth combination of encoding, backend
and dtype, and a sample of each entry added since: test_a_sample.
"""

from dataclasses import replace
from typing import Any

import pytest
import torch

import posenc
from posenc.attention.backends import AT_ONCE
from posenc.checking import laws
from posenc.frequencies import Frequencies, longrope, rotary, yarn
from posenc.support.forward_mode import ONE_AT_A_TIME
from sampling import (
    ADDED,
    ENCODINGS,
    OF_PAIRS,
    OWN_KEYS,
    InAPath,
    draw,
    every_second,
    foundation_first,
    on_the_diagonal,
    one_in,
    only,
    thinned,
)

SIZES = {"d_model": 32, "n_heads": 4, "n_kv_heads": 2, "n_layers": 2, "max_positions": 128}
VARIANTS = {
    "sinusoidal cos_sin": ("sinusoidal", {"layout": "cos_sin", "denominator": "d/2-1", "offset": 2}),
    "learned offset": ("learned", {"row_offset": 2}),
    "shaw keys": ("shaw", {"values": False, "max_distance": 3}),
    "t5 both ways": ("t5", {"bidirectional": True, "n_buckets": 8, "max_distance": 9}),
    "t5 scale 1": ("t5", {"bidirectional": True, "scale": 1.0}),
    "rope half": ("rope", {"layout": "half"}),
    "rope partial reversed": ("rope", {"rotary_dim": 4, "reverse": True}),
    "rope trailing": ("rope", {"frequencies": Frequencies((0.9, 0.02)), "trailing": True, "returns": "half"}),
    "rope yarn": ("rope", {"frequencies": yarn(rotary(8), factor=4.0, trained_length=64)}),
    "rope longrope": ("rope", {"frequencies": longrope(rotary(8), [1.0] * 4, [2.0] * 4, 64, factor=4.0), "length": 65}),
    "rope values": ("rope", {"sides": ("query", "key", "value", "output")}),
    "rope values only": ("rope", {"sides": ("query", "key", "value")}),
    "xpos half": ("xpos", {"layout": "half"}),
    "cope small": ("cope", {"n_positions": 4}),
}


def build(name: str) -> posenc.PositionalEncoding:
    if name == "stack":
        parts = [posenc.create(part, **SIZES) for part in ("learned", "rope", "alibi", "shaw")]
        return laws.draw_parameters(posenc.Stack(*parts), seed=1)
    name, options = VARIANTS.get(name, (name, {}))
    options = OPTIONS.get(name, {}) | options
    encoding = laws.draw_parameters(posenc.create(name, **SIZES, **options), seed=1, std=STD.get(name, 0.5))
    if name in OF_PAIRS:
        return InAPath(encoding)
    flat = options.get("width") == 1
    return encoding if encoding.axes == 1 else on_the_diagonal(encoding, flat=flat, per_unit=PER_UNIT.get(name, 1))


# Centres of patches lie in [-1, 1], random Fourier features take coordinates in [0, 1]: an angle is 2π times those.
PER_UNIT = {"dinov3_rope": 64, "random_fourier": 64}
# The laws try positions up to 165 and 12 tokens: tables that reach so far, temperatures that have begun by then.
TABLE = {"height": 200, "width": 1}
OPTIONS: dict[str, dict[str, Any]] = {
    **dict.fromkeys(("swin", "beit", "levit", "swin_v2", "decomposed", "vit"), TABLE),
    "llama4_temperature": {"scale": 0.5, "trained_length": 4},
    "ministral_temperature": {"scale": 0.5, "trained_length": 4},
    "log_n": {"trained_length": 4},
    "beam_temperature": {"exponent": 0.5, "trained_length": 4},
    "inkling_temperature": {"scale": 0.5, "trained_length": 4},
    "hope": {"trained_length": 64},
    "inkling": {"extent": 8},
    "hierarchical": {"rows": 16},
    "lm_infinite": {"near": 4, "starting": 1},
}
# The laws' positions reach 165. Generators whose angles stay within RoPE's, since the error of an exponential grows with
# the angle; a map of coordinates, which are below 1 elsewhere, whose results are of size 1.
STD = {"com_rope": 0.1, "liere": 0.05, "coordinate_projection": 0.003}
SETTINGS: dict[str, dict[str, Any]] = {name: {"n_kv_heads": 4} for name in OWN_KEYS}
NEIGHBOURS = [  # a row must be one whole document: oracles/test_convolutional.py and test_conditional.py try the rest
    *("decode_equals_prefill", "packed_equals_separate", "sharded_equals_whole", "storage_order_does_not_matter"),
    *("joined_equals_listed", "listed_equals_counted", "batch_mates_do_not_matter", "locality", "module_equals_attend"),
    *("options_agree", "strides_do_not_matter", "rejected_drafts_do_not_matter"),
]
LEFT_OUT = {
    "falcon_alibi": ["shift_invariance"],  # its absence shows in roundings of far positions: test_laws_families.py
    "liere": ["shift_invariance"],  # its absence shows off the diagonal: oracles/test_liere.py
    "beit": ["shift_invariance"],  # its absence shows at a class token: oracles/test_window_bias.py
    "lookhere": ["shift_invariance"],  # likewise: oracles/test_lookhere.py
    "convolutional": [*NEIGHBOURS, "rows_that_see_no_key"],
    "conditional": NEIGHBOURS,
}


def check(name: str, encoding: posenc.PositionalEncoding, setting: laws.Setting, tried: list[str]) -> None:
    """`laws.check` with what an entry needs for the laws' small worlds."""
    setting = replace(setting, **SETTINGS.get(name, {}))
    laws.check(encoding, setting, [law for law in tried if law not in LEFT_OUT.get(name, ())])


ALL = [*ENCODINGS, *VARIANTS, "stack", *OF_PAIRS]
DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]
OF_EDGES = ["rows_that_see_no_key", "empty_calls", "width_of_values"]
OVER_BACKENDS = ["backends_agree", "options_agree", *OF_EDGES]
OF_DERIVATIVES = ["gradients", "transforms", "checkpointed_equals_plain"]
BY_BACKEND = [name for name in laws.LAWS if name not in (*OF_DERIVATIVES, *OVER_BACKENDS, "locality", "norm_preservation")]


@pytest.mark.parametrize(
    ("name", "impl", "dtype"), thinned(8, every_second(ALL, [*AT_ONCE, "auto"], DTYPES, slow=ADDED)), ids=str
)
def test_laws(name, impl, dtype):
    encoding = build(name)
    quick = [law for law in BY_BACKEND if law != "one_graph_over_lengths"]
    for causal in (True, False):
        if not causal and "causal_only" in encoding.traits:
            continue
        setting = laws.Setting(dtype=dtype, impl=impl, causal=causal)
        if impl != "auto" and impl not in laws.expressible(encoding):
            with pytest.raises(ValueError, match="use impl="):
                check(name, encoding, setting, ["packed_equals_separate", "shift_invariance"])  # whichever is not left out
            continue
        check(name, encoding, setting, quick)


QUICK = [law for law in laws.LAWS if law not in (*OF_DERIVATIVES, *OF_EDGES, "one_graph_over_lengths")]
HARD = ["decode_equals_prefill", "packed_equals_separate", "padded_equals_unpadded", "shift_invariance", "head_slices"]


@pytest.mark.parametrize("name", one_in(6, [name for name in [*OF_PAIRS, *ENCODINGS] if name in ADDED]))
def test_a_sample(name):
    """Of every entry added to the foundation: all quick laws in one dtype and one backend, the telling ones in another."""
    encoding = build(name)
    causal = "causal_only" in encoding.traits or draw(name, (True, False), "causal")
    able = ["auto", *laws.expressible(encoding)]
    check(name, encoding, laws.Setting(dtype=torch.float32, impl=draw(name, able), causal=causal), QUICK)
    other = laws.Setting(dtype=draw(name, (torch.float64, torch.bfloat16, torch.float16)), impl=draw(name, able, "other"))
    check(name, encoding, other, HARD)


EVERY_DAY = ["decode_equals_prefill", "packed_equals_separate", "head_slices", "gradients", "rejected_drafts_do_not_matter"]
OF_CACHES = ["rollback_equals_never_seen", "evicted_equals_kept_alone", "reordered_equals_rows", "ring_equals_window"]


def test_the_law_of_transforms_differentiates_forward_alone_in_the_process(monkeypatch):
    """A server may compute Taylor terms at the same time, and the levels belong to the process."""
    locked, jvp = [], torch.func.jvp
    monkeypatch.setattr(torch.func, "jvp", lambda *given: locked.append(ONE_AT_A_TIME.locked()) or jvp(*given))
    laws.check(build("rope"), laws.Setting(dtype=torch.float64), ["transforms"])
    assert locked
    assert all(locked)


@pytest.mark.parametrize("name", ALL)
def test_the_laws_that_oracles_do_not_repeat(name):
    """Slices of heads, gradients, decoding, packing, rejected drafts hold for every entry, so no oracle repeats them."""
    check(name, build(name), laws.Setting(dtype=torch.float64), EVERY_DAY)


@pytest.mark.parametrize("name", ALL)
def test_caches(name):
    """One of what is rolled back, dropped, reordered and kept in a ring, of every entry; in other dtypes in test_laws."""
    check(name, build(name), laws.Setting(dtype=torch.float64), [draw(name, OF_CACHES, "caches")])


@pytest.mark.acceptance
@pytest.mark.parametrize("name", ALL)
def test_all_of_caches(name):
    check(name, build(name), laws.Setting(dtype=torch.float64), OF_CACHES)


@pytest.mark.parametrize("dtype", DTYPES[1:], ids=str)
def test_parity_with_fp32_angles_obeys_the_laws_to_fp32(dtype):
    encoding = posenc.create("rope", **SIZES, frequencies=Frequencies((0.9, 0.02), arithmetic="float32"))
    quick = [law for law in BY_BACKEND if law != "one_graph_over_lengths"]
    laws.check(encoding, laws.Setting(dtype=dtype), [*quick, "locality", "norm_preservation"])


@pytest.mark.parametrize(("name", "dtype"), every_second(ALL, DTYPES, slow=ADDED), ids=str)
def test_laws_of_rows_and_backends(name, dtype):
    encoding = build(name)
    check(name, encoding, laws.Setting(dtype=dtype), ["locality", "norm_preservation"])
    for causal in (True, False):
        if causal or "causal_only" not in encoding.traits:
            check(name, encoding, laws.Setting(dtype=dtype, causal=causal), ["backends_agree", "options_agree"])


@pytest.mark.parametrize("name", one_in(9, ALL))
def test_edges(name):
    """In one dtype and direction, over all backends."""
    encoding = build(name)
    causal = "causal_only" in encoding.traits or draw(name, (True, False), "causal at the edges")
    check(name, encoding, laws.Setting(dtype=draw(name, DTYPES, "edges"), causal=causal), OF_EDGES)


@pytest.mark.acceptance
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", ALL)
def test_edges_in_every_dtype(name, dtype):
    encoding = build(name)
    for causal in (True, False):
        if causal or "causal_only" not in encoding.traits:
            check(name, encoding, laws.Setting(dtype=dtype, causal=causal), OF_EDGES)


@pytest.mark.parametrize("impl", [*AT_ONCE, "auto"])
@pytest.mark.parametrize("name", thinned(3, foundation_first(ALL)))
def test_transforms_and_checkpointing(name, impl):
    encoding = build(name)
    if impl == "auto" or impl in laws.expressible(encoding):
        check(name, encoding, laws.Setting(impl=impl), ["transforms", "checkpointed_equals_plain"])


@pytest.mark.parametrize("name", only(ALL, "alibi", "rope trailing"))
def test_one_graph(name):
    """In the backend that attention takes by itself."""
    check(name, build(name), laws.Setting(impl="auto"), ["one_graph_over_lengths"])


@pytest.mark.acceptance
@pytest.mark.parametrize("impl", AT_ONCE)
@pytest.mark.parametrize("name", ALL)
def test_one_graph_in_every_backend(name, impl):
    """`blocks` goes from block to block in Python: a graph is refused by name, and "auto" takes another backend there."""
    encoding = build(name)
    if impl not in laws.expressible(encoding):
        return
    if impl == "blocks":
        with pytest.raises(Exception, match=r"impl='blocks' cannot express .* it loops over blocks in Python"):
            check(name, encoding, laws.Setting(impl=impl), ["one_graph_over_lengths"])
        return
    check(name, encoding, laws.Setting(impl=impl), ["one_graph_over_lengths"])
