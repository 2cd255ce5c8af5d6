"""posenc list, and the catalogue behind it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.cells import cell_len

import in_process
import posenc
from posenc.catalogue.description import describe
from posenc.catalogue.entry import KINDS
from posenc.catalogue.lookup import BY_NAME, ENTRIES, SIZES, entry_of, look_up, setting_of
from posenc.terminal.shortened import shortened


def run(*arguments):
    plain = {"PATH": "", "COLUMNS": "120", "LANG": "C.UTF-8", "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    asked = [sys.executable, "-m", "posenc", *arguments]
    return subprocess.run(asked, capture_output=True, text=True, check=False, env=plain)


def imported_by(*arguments):
    """The modules that a command imports."""
    asked = [sys.executable, "-X", "importtime", "-m", "posenc", *arguments]
    quiet = subprocess.run(asked, capture_output=True, text=True, check=True)
    return {line.split("|")[-1].strip() for line in quiet.stderr.splitlines()}


def test_help_names_every_command_and_loads_nothing_slow():
    done = run("--help")
    assert done.returncode == 0
    for command in ("compare", "list", "show", "walk", "claims"):
        assert command in done.stdout
    assert not {"torch", "numpy", "matplotlib"} & imported_by("--help")


def test_import_loads_nothing_heavy():
    code = "import sys, posenc; print([m for m in ('torch', 'numpy', 'typer', 'rich', 'matplotlib') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_the_catalogue_is_read_without_torch():
    code = "import sys, posenc; posenc.names(); posenc.catalogue.look_up('rotary'); print('torch' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "False"
    )


@pytest.mark.parametrize(
    "command",
    ["list", "list --by year", "list rotated", "list rope", "list --json", "choose", "choose --json --trained 4096"],
)
def test_the_catalogue_is_printed_without_torch(command):
    assert not {"torch", "numpy"} & imported_by(*command.split())


def test_facts_in_the_file_are_those_of_the_encodings():
    """After a change of an encoding's signature, seams, traits or parameters: python -m posenc.catalogue.built."""
    from posenc.catalogue import built

    assert {entry.name: built.facts(entry) for entry in ENTRIES} == {entry.name: built.build(entry) for entry in ENTRIES}
    assert list(json.loads(built.FILE.read_text("utf-8"))) == [entry.name for entry in ENTRIES]


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("by", ["kind", "year", "needs"])
def test_the_list_fits_a_small_terminal(by, lang):
    """24 rows of 80 columns, with a line for the command and one for the next prompt; every name is shown or counted."""
    lines = in_process.posenc("list", "--lang", lang, "--by", by, COLUMNS="80").stdout.splitlines()
    assert len(lines) <= 22
    assert max(cell_len(line) for line in lines) <= 80
    said = "\n".join(lines[: next(n for n, line in enumerate(lines) if str(len(ENTRIES)) in line)])
    shown = sum(bool(re.search(rf"(?<!\w){name}(?!\w)", said)) for name in BY_NAME)
    assert shown + sum(map(int, re.findall(r"… \+(\d+)", said))) == len(ENTRIES)


def test_names_that_fit_are_not_counted():
    assert shortened(["ab", "cd", "ef"], 10, 1) == "ab, cd, ef"
    assert shortened(["ab", "cd", "ef", "gh"], 10, 1) == "ab, … +3"
    assert shortened(["ab", "cd", "ef", "gh"], 10, 2) == "ab, cd,\nef, gh"
    assert shortened(["longer than a line"], 10, 2) == "longer\nthan a\nline"


def test_a_kind_has_a_page():
    for kind in KINDS:
        said = in_process.posenc("list", kind, "--lang", "en").stdout
        rows = [entry.name for entry in ENTRIES if entry.kind == kind]
        assert said.startswith(f"{kind}: {KINDS[kind].en} ({len(rows)})")
        assert all(name in said for name in rows)
        assert [row["name"] for row in json.loads(in_process.posenc("list", kind, "--json").stdout)] == rows
        assert kind not in {entry.name for entry in ENTRIES}


def test_the_table_names_every_encoding_and_keeps_its_brackets():
    done = run("list", "--all", "--lang", "en")
    assert done.returncode == 0
    for name in posenc.names():
        assert name in done.stdout
    assert "[sin pω, cos pω]" in done.stdout


@pytest.mark.parametrize(
    ("by", "headings"),
    [
        ("kind", ["rotated: a rotation of queries and keys (", "scaled: RoPE with", "positions: a way to number"]),
        ("year", ["2017 (", "2021 (", "2023 ("]),
        ("needs", ["nothing but positions (", "a causal mask (", "parameters ("]),
    ],
)
def test_the_table_is_grouped(by, headings):
    done = in_process.posenc("list", "--all", "--lang", "en", "--by", by)
    assert done.returncode == 0
    at = [done.stdout.index(heading) for heading in headings]
    assert at == sorted(at)
    groups = [
        int(line.rpartition("(")[2].rstrip(") "))
        for line in done.stdout.splitlines()
        if line.rstrip().endswith(")") and line[0] != " "
    ]
    assert sum(groups) == len(ENTRIES)
    assert f"{len(ENTRIES)} names:" in done.stdout


def test_json_agrees_with_the_encodings_themselves():
    rows = {row["name"]: row for row in json.loads(run("list", "--json").stdout)}
    assert list(rows) == [entry.name for entry in ENTRIES]
    assert rows["randomized"]["seams"] == []
    assert rows["randomized"]["sizes"] == ["batch", "length"]
    assert rows["yarn"]["kind"] == "scaled"
    assert rows["yarn"]["parameters"] == 0
    assert rows["rope"]["seams"] == ["rotate"]
    assert rows["rope"]["parameters"] == rows["alibi"]["parameters"] == 0
    assert rows["learned"]["parameters"] == 2048 * 512
    assert rows["t5"]["parameters"] == 32 * 8
    assert rows["shaw"]["parameters"] == 2 * 33 * 64
    assert rows["transformer_xl"]["parameters"] == 512 * 512 + 2 * 512
    assert "causal_only" in rows["xpos"]["traits"]
    assert rows["rope"]["options"]["layout"] == "interleaved"


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("rotary", "rope"),
        ("旋转位置编码", "rope"),
        ("RotaryPositionalEmbedding", "rope"),
        ("正弦位置编码", "sinusoidal"),
        ("LearnablePositionalEncoding", "learned"),
        ("可学习位置编码", "learned"),
        ("相对位置编码", "shaw"),
        ("relative_attention_bias", "t5"),
        ("linear bias", "alibi"),
        ("rotery", "rope"),
    ],
)
def test_words_from_elsewhere_lead_to_the_encoding(word, name):
    assert entry_of(word).name == name
    with pytest.raises(ValueError, match=f"(did you mean|a guess:).*{name}"):
        posenc.create(word, d_model=32, n_heads=4)


def test_words_that_mean_a_function():
    assert look_up("positional_encoding") == "posenc.sinusoidal_table(length, d_model)"
    with pytest.raises(AttributeError, match="sinusoidal_table"):
        posenc.positional_encoding  # noqa: B018
    with pytest.raises(AttributeError, match=r'create\("rope"'):
        posenc.RotaryPositionalEmbedding  # noqa: B018
    with pytest.raises(AttributeError, match=r"has no attribute 'frobnicate'$"):
        posenc.frobnicate  # noqa: B018


@pytest.mark.acceptance
def test_an_encoding_of_several_coordinates_says_which_it_reads():
    said = " ".join(run("list", "dinov3_rope").stdout.split())
    assert "coordinates Middles of the patches from -1 to 1 along each side" in said
    assert "图块中心，沿每条边从 -1 到 1" in run("list", "dinov3_rope", "--lang", "zh").stdout
    assert "coordinates" not in run("list", "rope").stdout


def test_unknown_words_are_usage_errors():
    for word in ("zzz", "m_k"):
        done = run("list", word)
        assert done.returncode == 2
        assert "Traceback" not in done.stderr
    assert run("nonsense").returncode == 2


def test_no_word_leads_to_two_encodings():
    seen = {}
    for entry in ENTRIES:
        own_class = () if entry.builder else (entry.class_name,)
        for alias in {entry.name, *own_class, *entry.page.title.both(), *entry.also_called}:
            spaced = re.sub(r"[\s_-]+", " ", alias.lower())  # p-RoPE is proportional, PRoPE is prope
            assert seen.setdefault(spaced, entry.name) == entry.name, alias


def test_every_name_is_made_from_sizes_alone():
    sizes = dict.fromkeys(SIZES, 4) | {"d_model": 64}
    for name in posenc.names():
        encoding = posenc.create(name, **{size: value for size, value in sizes.items() if size != "d_head"})
        assert isinstance(encoding, posenc.PositionalEncoding)
        assert type(encoding).__name__ == next(entry.class_name for entry in ENTRIES if entry.name == name)


def test_settings_stand_with_their_method():
    """What builds the class of another name: partial builds a RoPE. Counted apart, and said on the page's first line."""
    assert {entry.name for entry in ENTRIES if setting_of(entry) is BY_NAME["rope"]} >= {
        *("partial", "yarn", "linear", "adjusted_base", "axial_rope", "mrope", "riflex", "pixtral_rope")
    }
    assert setting_of(BY_NAME["drope"]) is BY_NAME["nope"]
    assert all(setting_of(BY_NAME[name]) is None for name in ("rope", "alibi", "xpos", "fox", "grid"))
    for entry in ENTRIES:
        method = setting_of(entry)
        assert method is None or (method.class_name == entry.class_name and setting_of(method) is None), entry.name
    settings = sum(setting_of(entry) is not None for entry in ENTRIES)
    said = " ".join(in_process.posenc("list", "--lang", "en").stdout.split())
    assert "irpe, decomposed, deberta_v2 biased" in said  # a kind's methods, then the settings
    assert f"{len(ENTRIES)} names: {len(ENTRIES) - settings} methods and {settings} settings of one." in said
    assert re.search(r"a setting of +rope *\n", in_process.posenc("list", "partial", "--lang", "en").stdout)
    assert "设定" in in_process.posenc("list", "--lang", "zh").stdout


def test_a_page_s_first_line_says_of_which_method_it_is_a_setting(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "docs/site"))
    from entry_page import page

    for name, method in (("partial", "rope"), ("drope", "nope")):
        lines = [line for line in page(describe(BY_NAME[name]), "en").splitlines() if line]
        assert lines[2] == f"A setting of [{method}]({method}.md), which `posenc.create` builds."
    assert "A setting of" not in page(describe(BY_NAME["rope"]), "en")
