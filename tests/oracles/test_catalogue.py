"""Encodings by name: defaults of the papers, sizes, and where other names lead."""

import dataclasses
import importlib
import inspect
import math
import re
import subprocess
import sys

import pytest
import torch

import posenc
from cases import cases
from posenc import Positions, attend, create, names
from posenc.catalogue import facts, lookup
from posenc.catalogue.description import positions_of
from posenc.catalogue.lookup import BY_NAME
from posenc.catalogue.methods import groups
from posenc.combined import one_layer
from posenc.pictures import costs
from posenc.pictures.plots.effect import effect

FOUNDATION = ["nope", "sinusoidal", "learned", "floater", "shaw", "transformer_xl", "t5", "alibi", "rope", "xpos", "cope"]
SIZES = {"d_model": 32, "n_heads": 4, "n_kv_heads": 2, "n_layers": 3, "max_positions": 50}


def test_every_encoding_of_the_notes_has_a_name():
    assert set(FOUNDATION) <= set(names())
    assert len(set(names())) == len(names())


@pytest.mark.parametrize("name", FOUNDATION)
def test_sizes_alone_build_every_encoding_and_it_works(name):
    encoding = create(name, **SIZES)
    x, at = torch.randn(1, 6, 32, generator=torch.Generator().manual_seed(1)), Positions.arange(1, 6)
    x = encoding.embed(x, at)
    q = x.view(1, 6, 4, 8).transpose(1, 2)
    k = q[:, :2]
    assert attend(q, k, k, encoding, at).shape == (1, 4, 6, 8)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sinusoidal", {"d_model": 32, "base": 10000.0, "layout": "interleaved", "denominator": "d/2", "offset": 0}),
        ("learned", {"d_model": 32, "max_positions": 50, "row_offset": 0}),
        ("floater", {"d_model": 32, "n_layers": 3, "step": 0.01}),
        ("shaw", {"d_head": 8, "max_distance": 16, "values": True}),
        ("transformer_xl", {"d_model": 32, "n_heads": 4, "d_head": 8, "base": 10000.0}),
        ("t5", {"n_heads": 4, "n_buckets": 32, "max_distance": 128, "bidirectional": False, "scale": None}),
        ("alibi", {"n_heads": 4, "slopes": (0.25, 0.0625, 0.015625, 0.00390625)}),
        ("rope", {"d_head": 8, "base": 10000.0, "layout": "interleaved", "rotary_dim": 8, "reverse": False}),
        ("xpos", {"d_head": 8, "base": 10000.0, "scale_base": 512.0, "gamma": 0.4, "layout": "interleaved"}),
        ("cope", {"d_head": 8, "n_positions": 64}),
    ],
)
def test_defaults_of_the_papers(name, expected):
    configuration = create(name, **SIZES).configuration
    assert {key: configuration[key] for key in expected} == expected


@pytest.mark.parametrize(
    ("name", "seams"),
    [
        ("nope", frozenset()),
        ("sinusoidal", frozenset({"embed"})),
        ("learned", frozenset({"embed"})),
        ("floater", frozenset({"embed"})),
        ("shaw", frozenset({"bias", "finish"})),
        ("transformer_xl", frozenset({"bias"})),
        ("t5", frozenset({"bias"})),
        ("alibi", frozenset({"bias"})),
        ("rope", frozenset({"rotate"})),
        ("xpos", frozenset({"rotate"})),
        ("cope", frozenset({"finish"})),
    ],
)
def test_seams(name, seams):
    assert create(name, **SIZES).seams == seams


@pytest.mark.parametrize(
    ("name", "traits"),
    [
        ("nope", {"local", "shift_invariant", "norm_preserving"}),
        ("sinusoidal", {"local", "norm_preserving"}),
        ("learned", {"local", "norm_preserving"}),
        ("floater", {"local", "norm_preserving"}),
        ("shaw", {"local", "shift_invariant", "norm_preserving"}),
        ("xpos", {"local", "shift_invariant", "causal_only"}),
        ("transformer_xl", {"local", "shift_invariant", "norm_preserving"}),
        ("t5", {"local", "shift_invariant", "norm_preserving", "causal_only"}),
        ("alibi", {"local", "shift_invariant", "norm_preserving"}),
        ("rope", {"local", "shift_invariant", "norm_preserving"}),
        ("cope", {"local", "shift_invariant", "norm_preserving", "causal_only"}),
    ],
)
def test_traits(name, traits):
    assert create(name, **SIZES).traits == traits


@cases("entry", lookup.ENTRIES)
def test_an_entry_names_its_module_and_says_what_its_encoding_needs(entry):
    assert entry.maker().__module__ == entry.module
    assert not hasattr(importlib.import_module(entry.module), "ENTRY"), "its facts stand at the head of its page"
    assert re.fullmatch(r"20\d\d-(0[1-9]|1[0-2])", entry.published)
    if entry.kind == "positions":
        assert entry.load() is Positions
        assert not entry.needs
        return
    both_ways = {"bidirectional": True} if "bidirectional" in inspect.signature(entry.maker()).parameters else {}
    encoding = create(entry.name, **SIZES, **both_ways)
    assert type(encoding) is entry.load()
    assert ("parameters" in entry.needs) == any(True for _ in encoding.parameters())
    if not one_layer(encoding):
        assert entry.kind == "preset"
        encoding = encoding.at_layer(0)
    assert ("causal" in entry.needs) == ("causal_only" in encoding.traits)
    assert encoding.axes == entry.axes
    assert (entry.page.coordinates is not None) == (entry.axes > 1), "say which coordinates it reads, and where it is said"
    coords = positions_of(entry, 16, (3, 5), encoding).coords
    assert coords.shape[2:] == (() if entry.axes == 1 else (entry.axes,))


def test_costs_and_pictures_make_positions_as_the_entry_says():
    """An image of 2n × m patches for costs, 9 × 9 for pictures; middles of patches from -1 to 1."""
    dinov3 = BY_NAME["dinov3_rope"]
    height, width = costs.image(2048)
    middles = [((2 * y + 1) / height - 1, (2 * x + 1) / width - 1) for y in range(height) for x in range(width)]
    torch.testing.assert_close(
        costs.tokens(dinov3, 2048, posenc.create("dinov3_rope", d_head=64)).coords[0],
        torch.tensor(middles, dtype=torch.float64),
    )
    angle = 2 * math.pi * 2 / 9  # from a patch to the next, of the fastest pair of a head of 32: base 100, 8 pairs an axis
    fall = sum(math.cos(angle * 100 ** (-n / 8)) - 1 for n in range(8)) * 2 / math.sqrt(32)
    head = effect(dinov3).panels[0].values
    assert float(head[4, 4]) == pytest.approx(0, abs=1e-5)
    assert float(head[4, 5]) == pytest.approx(fall, abs=1e-5)
    assert float(head[5, 4]) == pytest.approx(fall, abs=1e-5)


def test_the_foundation_is_in_the_order_of_the_catalogue():
    assert list(lookup.FOUNDATION) == [name for name in names() if name in FOUNDATION]
    assert sorted(lookup.FOUNDATION) == sorted(FOUNDATION)


def test_the_catalogue_is_grouped_by_kind_then_by_parameters_then_by_date():
    assert [name for name in names() if name in FOUNDATION] == [
        "nope",
        "sinusoidal",
        "learned",
        "floater",
        "shaw",
        "transformer_xl",
        "alibi",
        "t5",
        "rope",
        "xpos",
        "cope",
    ]


HEAD = """# Mine

- kind: biased
- published: 2024-01
- formula: q·k
- class: Mine
- used by: research; BERT
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("# Mine\n", "Mine\n", "expected '# TITLE'"),
        ("- kind: biased\n", "", "expected a line '- kind: …' below the title, got none"),
        ("kind: biased", "kind: bias", "kind: expected none or added or .*, got 'bias'"),
        ("kind: biased", "kind: scaled", "kind: expected this page in posenc.encodings.scalings"),
        ("2024-01", "2024-13", "published: expected a year and a month such as 2017-06, got '2024-13'"),
        ("class: Mine", "class:Mine", "expected '- FACT: VALUE' below the title, got '- class:Mine'"),
        ("class: Mine", "classes: Mine", "unknown fact 'classes'; known: kind, published, formula, class, file"),
        ("class: Mine", "kind: biased", "the fact 'kind' stands twice"),
        ("class: Mine", "class: Mine\n- axes: two", "axes: expected a whole number, got 'two'"),
        ("class: Mine", "class: Mine\n- both ways: no", "both ways: expected yes, got 'no'"),
        ("class: Mine", "class: Mine\n- needs: parameters; shape", "needs: expected parameters or .*, got 'shape'"),
    ],
)
def test_a_fact_that_cannot_be_read_names_its_page(tmp_path, old, new, message):
    (tmp_path / "encodings").mkdir()
    page = tmp_path / "encodings" / "mine.md"
    page.write_text(HEAD, encoding="utf-8")
    (entry,) = lookup.entries_in(tmp_path)
    assert (entry.name, entry.title, entry.class_name, entry.used_by) == ("mine", "Mine", "Mine", ("research", "BERT"))
    assert HEAD.count(old) == 1
    page.write_text(HEAD.replace(old, new), encoding="utf-8")
    with pytest.raises(ValueError, match=f"mine.md: {message}"):
        lookup.entries_in(tmp_path)


@pytest.mark.parametrize("page", [None, "# Mine\n\n## Idea\n\nNear.\n"])
def test_an_entry_in_python_is_refused_with_the_lines_that_replace_it(tmp_path, page):
    (tmp_path / "encodings").mkdir()
    (tmp_path / "encodings" / "mine.py").write_text(
        'import torch\n\nENTRY = Entry(\n    name="mine",\n    class_name="Mine",\n    title="Mine",\n    kind="biased",\n'
        '    published="2024-01",\n    formula="q·k",\n    used_by=("research", "BERT"),\n    axes=2,\n'
        '    both_ways=True,\n    small={"n": 3},\n)\n',
        encoding="utf-8",
    )
    if page:
        (tmp_path / "encodings" / "mine.md").write_text(page, encoding="utf-8")
    with pytest.raises(ValueError, match=r"mine.py: expected the facts at the head of mine.md") as refused:
        lookup.entries_in(tmp_path)
    lines = "# Mine" + str(refused.value).partition("# Mine")[2]
    (tmp_path / "encodings" / "mine.md").write_text(lines + "\n\n## Idea\n", encoding="utf-8")
    (entry,) = lookup.entries_in(tmp_path)
    assert (entry.class_name, entry.axes, entry.both_ways, entry.small) == ("Mine", 2, True, {"n": 3})
    assert (entry.published, entry.formula, entry.used_by) == ("2024-01", "q·k", ("research", "BERT"))


def test_a_value_of_several_lines_is_read_as_it_was_written(tmp_path):
    page = tmp_path / "mine.md"
    page.write_text(HEAD.replace("q·k", "q·k\n    + b\n  )"), encoding="utf-8")
    entry = facts.entry_in(page)
    assert entry.formula == "q·k\n  + b\n)"
    page.write_text(f"# Mine\n\n{facts.lines_of(dataclasses.asdict(entry))}\n", encoding="utf-8")
    assert facts.entry_in(page) == entry


def test_d_head_is_enough_where_that_is_all_it_needs():
    assert create("rope", d_head=64).d_head == 64
    assert create("cope", d_head=16).d_head == 16
    assert create("rope", d_model=512, n_heads=8).d_head == 64
    assert create("rope", d_model=512, n_heads=8, d_head=32).d_head == 32
    assert create("alibi", n_heads=8).slopes[0] == 0.5
    assert create("nope").seams == frozenset()
    assert create("learned", d_model=8).max_positions == 2048
    assert create("floater", d_model=8).configuration["n_layers"] == 1
    assert create("rope", d_head=64, layout="half", base=5e5).layout == "half"


@pytest.mark.parametrize(
    ("word", "place"),
    [
        ("rotary", '"rope"'),
        ("RotaryPositionalEmbedding", '"rope"'),
        ("旋转位置编码", '"rope"'),
        ("RoPE", '"rope"'),
        ("Rotary Embedding", '"rope"'),
        ("正弦位置编码", '"sinusoidal"'),
        ("可学习位置编码", '"learned"'),
        ("LearnablePositionalEncoding", '"learned"'),
        ("相对位置编码", '"shaw"'),
        ("relative", '"shaw"'),
        ("xl-net", '"xlnet"'),
        ("relative_attention_bias", '"t5"'),
        ("linear biases", '"alibi"'),
        ("无位置编码", '"nope"'),
        ("x-pos", '"xpos"'),
        ("positional_encoding", "posenc.sinusoidal_table(length, d_model)"),
        ("positionalEncoding", "posenc.sinusoidal_table(length, d_model)"),
        ("M_k", "posenc.shift_matrix(k, d_model)"),
        ("get_alibi_slopes", "posenc.alibi_slopes(n_heads)"),
        ("alibi slopes", "posenc.alibi_slopes(n_heads)"),
        ("flash attention", "posenc.attend(q, k, v, encoding, at_q)"),
        ("sliding window attention", "posenc.attend(q, k, v, encoding, at_q, window=…)"),
        ("random_positions", 'posenc.positions_by("randomized"'),
    ],
)
def test_other_names_point_to_the_right_place(word, place):
    """Hints, not aliases: the name still raises."""
    with pytest.raises(ValueError, match="unknown encoding") as error:
        create(word, d_model=32, n_heads=4)
    assert f"did you mean {'posenc.create(' if place[0] == chr(34) else ''}{place}" in str(error.value)
    with pytest.raises(AttributeError) as missing:
        getattr(posenc, word)
    assert f"did you mean {'posenc.create(' if place[0] == chr(34) else ''}{place}" in str(missing.value)


@cases("method", [one for _, rows in groups().values() for one in rows])
def test_a_method_leads_to_itself_or_is_said_to_be_missing(method):
    """FoPE never leads to RoPE."""
    for word in {method.title, method.entry, *method.also} - {""}:
        if (entry := lookup.entry_for(method)) is not None:
            assert lookup.entry_of(word) == entry, word
        else:
            assert lookup.entry_of(word) is None
            assert lookup.look_up(word) is None
            with pytest.raises(ValueError, match=re.escape(f"unknown encoding {word!r}; that is {method.title} (")):
                create(word)


def test_no_hint_misleads():
    """What looked alike led elsewhere once."""
    for word in ("pope", "hope", "cape", "deberta", "ssmax", "yarn", "llama3", "swin", "xlnet", "lerope", "drope", "shape"):
        assert lookup.entry_of(word).name == word
    assert lookup.entry_of("rope++") is None or lookup.entry_of("rope++").name == "rope_pp"
    assert lookup.entry_of("cpe").name == "conditional"


def test_a_near_miss_is_recognised_and_nonsense_is_not():
    with pytest.raises(
        ValueError, match=r"encoding 'sinusodal'; a guess: posenc.create\(\"sinusoidal\", …\); posenc list --all shows"
    ):
        create("sinusodal", d_model=4)
    with pytest.raises(ValueError, match=r"^name: unknown encoding 'qqqq'; posenc list --all shows all names$"):
        create("qqqq")
    with pytest.raises(AttributeError, match=r"module 'posenc' has no attribute 'qqqq'$"):
        posenc.qqqq  # noqa: B018
    with pytest.raises(AttributeError, match=r"has no attribute '_rotary'$"):
        posenc._rotary  # noqa: B018


def test_the_catalogue_is_not_searched_for_a_module_of_the_package(monkeypatch):
    """`from posenc import combined` asks the package for an attribute first: the search took 15 ms for each module."""
    with pytest.raises(AttributeError, match="a guess"):
        posenc.__getattr__("sinusodal")
    monkeypatch.setattr(lookup, "hint", lambda word: pytest.fail(f"{word} was searched"))
    assert posenc.__getattr__("combined").__name__ == "posenc.combined"


@pytest.mark.parametrize("name", ["transformers", "configs"])
def test_a_package_is_loaded_when_it_is_first_named(name):
    """As the README names posenc.transformers after nothing but `import posenc`."""
    program = f"import posenc; print(posenc.{name}.__name__)"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert told.stdout == f"posenc.{name}\n"


def test_unknown_options_name_the_right_one():
    with pytest.raises(TypeError, match=r"rope: unknown option 'bse'; did you mean 'base'\? \(rope takes base, layout"):
        create("rope", d_head=8, bse=3)
    with pytest.raises(TypeError, match=r"swin: unknown option 'window_size'; did you mean 'height' or 'width'\?"):
        create("swin", n_heads=4, window_size=7)
    with pytest.raises(TypeError, match=r"cope: unknown option 'npos'; did you mean 'n_positions'\?"):
        create("cope", d_head=8, npos=64)
    with pytest.raises(
        TypeError, match=r"riflex: unknown option 'trained_length'; it is an option of (\w+, ){2}\w+ and others \("
    ):
        create("riflex", d_head=8, trained_length=64)
    with pytest.raises(TypeError, match=r"rope: unknown option 'n_buckets'; it is an option of .*\bt5\b"):
        create("rope", d_head=8, n_buckets=3)
    with pytest.raises(TypeError, match=r"nope: unknown option 'zzz' \(nope takes no options\)"):
        create("nope", zzz=1)


def test_sizes_that_are_missing_or_wrong():
    with pytest.raises(ValueError, match="alibi: needs n_heads"):
        create("alibi", d_model=8)
    with pytest.raises(ValueError, match="rope: needs d_head or d_model and n_heads"):
        create("rope", d_model=8)
    with pytest.raises(ValueError, match="transformer_xl: needs d_model and n_heads"):
        create("transformer_xl")
    with pytest.raises(ValueError, match="d_model=30 is not a multiple of n_heads=4; say d_head"):
        create("rope", d_model=30, n_heads=4)
    assert create("rope", d_model=30, n_heads=4, d_head=8).d_head == 8
    for size in ("d_model", "n_heads", "d_head", "n_kv_heads", "n_layers", "max_positions"):
        for wrong in (0, -1, True, 2.0, "8", math.nan):
            with pytest.raises(ValueError, match=f"{size}: expected a whole number from 1"):
                create("alibi", **{"n_heads": 2, size: wrong})


def test_positions_by_name():
    at = posenc.positions_by("randomized", batch=2, length=5, max_positions=7, generator=torch.Generator().manual_seed(3))
    same = Positions.randomized(2, 5, 7, generator=torch.Generator().manual_seed(3))
    assert torch.equal(at.coords, same.coords)
    with pytest.raises(ValueError, match="randomized: needs batch and length"):
        posenc.positions_by("randomized")
    with pytest.raises(
        TypeError, match=r"randomized: unknown argument 'lengths'; did you mean 'length'\? \(randomized takes batch"
    ):
        posenc.positions_by("randomized", batch=2, lengths=5)
    with pytest.raises(
        ValueError, match=r"unknown way to number tokens 'rope'; did you mean posenc.create\(\"rope\", …\)\?; known: "
    ):
        posenc.positions_by("rope")
    with pytest.raises(
        ValueError, match=r"unknown encoding 'randomized'; did you mean posenc.positions_by\(\"randomized\""
    ):
        create("randomized")
    with pytest.raises(TypeError, match="name: expected a string, got 3"):
        posenc.positions_by(3)


def test_public_names_can_all_be_loaded():
    for name in posenc.__all__:
        if name != "shift_matrix":
            assert getattr(posenc, name) is not None
    assert set(posenc.__all__) <= set(dir(posenc))
