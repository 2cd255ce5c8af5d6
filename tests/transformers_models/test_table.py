"""Every row of docs/transformers-families.md is run again: each "yes" holds, each refusal has the same reason, and each
model breaks by itself the laws that its row names.

`make test` runs thirteen types, `make acceptance` all. With a newer version of transformers than the table's, each "yes" of
a type that both have holds too; with an older one, of the thirteen types.
"""

import pytest
import transformers

import posenc.transformers as pt
from posenc.transformers import extension, interface, layer
from transformers_models import judge, table, tiny

transformers.logging.set_verbosity_error()
ROWS = table.rows()
SAMPLE = ("llama", "gemma2", "gpt2", "gpt_oss", "whisper")


HERE, THERE = (tuple(map(int, one.split(".")[:2])) for one in (transformers.__version__, table.VERSION))
WRONG = {"gemma2"} if HERE < THERE else set()  # transformers 5.16 attends with sdpa there, which leaves out the soft cap
of_the_table = pytest.mark.skipif(HERE != THERE, reason=f"the table is of transformers {table.VERSION}")
TYPES = [one for one in tiny.MODEL_TYPES if HERE == THERE or one in (ROWS if HERE > THERE else set(SAMPLE) - WRONG)]


@pytest.mark.parametrize(
    "model_type", [one if one in SAMPLE else pytest.param(one, marks=pytest.mark.acceptance) for one in TYPES]
)
def test_the_row_of_a_type_holds(model_type):
    found, row = judge.judged(model_type), ROWS[model_type]
    if HERE != THERE:
        row = {column: said for column, said in row.items() if said == "yes"}
    assert {column: found[column] for column in row} == row


YARN = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 16}
OTHERWISE = {  # norms of queries and keys that are off by default, and a norm that takes off what YaRN's cos and sin add
    "cohere": {"use_qk_norm": True},
    "glm4_moe": {"use_qk_norm": True},
    "phi": {"qk_layernorm": True},
    "stablelm": {"qk_layernorm": True},
    "nanochat": {"rope_parameters": YARN},
    "hunyuan_v1_dense": {"rope_parameters": YARN},
}


@pytest.mark.parametrize("model_type", OTHERWISE)
def test_the_own_encoding_attached_changes_nothing_in_other_configurations(model_type, monkeypatch):
    monkeypatch.setitem(tiny.SPECIAL, model_type, tiny.SPECIAL.get(model_type, {}) | OTHERWISE[model_type])
    judge.own_encoding(judge.Subject(tiny.model_of(model_type)))


@of_the_table
def test_every_type_has_a_row_and_enough_are_served():
    assert set(ROWS) == set(tiny.MODEL_TYPES)
    assert set(table.NAMES) == set(judge.COLUMNS)
    alone = {
        model_type for model_type, row in ROWS.items() if any(said.startswith("does not run") for said in row.values())
    }
    assert alone == {"gemma3n", "gemma4_assistant", "gemma4_unified_assistant"}  # need timm, or another model's keys
    for column in ("rotary", "bias"):
        assert sum(row[column] == "yes" for row in ROWS.values()) >= 110


@of_the_table
def test_the_pages_are_written_from_the_rows():
    for template, name in ((table.PAGE, "transformers-families.md"), (table.TWIN, "transformers-families.zh-CN.md")):
        assert (table.DOCS / name).read_text(encoding="utf-8") == table.page(template, ROWS)


def attention_without(option):
    def without(module, *given, kept=interface.attention, **options):
        return kept(module, *given, **{**options, option: None})

    return without


def without_mask(module, query, key, value, mask, kept=interface.attention, **options):
    return kept(module, query, key, value, None, **options)


def without_past(self, dtype):
    return self.call.new.shift(-self.call.past)


def unturned(self, q, k):
    self.queries_are_rotated = self.keys_are_rotated = True
    return q, k


BROKEN = {  # what is broken: a type, a column that must then be wrong, where, by what
    "the model's rotation stays on": ("phi", "rotary", interface, "unrotated", lambda own: own),
    "nothing takes its place": ("llama", "rotary", layer.LayerCall, "rotated_both", unturned),
    "the scale is lost": ("granite", "rotary", interface, "attention", attention_without("scaling")),
    "the soft cap is lost": ("gemma2", "rotary", interface, "attention", attention_without("softcap")),
    "the sinks are lost": ("gpt_oss", "rotary", interface, "attention", attention_without("s_aux")),
    "the mask is lost": ("mistral", "bias", interface, "attention", without_mask),
    "new tokens stand at 0": ("llama", "rotary", layer.LayerCall, "new", without_past),
    "new frequencies are not set": ("llama", "extend", extension, "set_state", lambda *_: None),
    "the model stays fast": ("llama", "fast", pt, "slow", lambda _: None),
}


@pytest.mark.parametrize("what", [what for what, (model_type, *_) in BROKEN.items() if model_type not in WRONG])
def test_the_judge_sees_what_is_broken(what, monkeypatch):
    model_type, column, owner, name, broken = BROKEN[what]
    monkeypatch.setattr(owner, name, broken)
    try:
        with pytest.raises(AssertionError, match=r"apart|computes something else|a forward has been replaced"):
            judge.judged(model_type, [column])
    finally:
        monkeypatch.undo()
        interface.register()


def test_a_refusal_that_leaves_something_behind_is_wrong(monkeypatch):
    def leaves_a_hook(model):
        model.register_forward_pre_hook(lambda *_: None)
        raise pt.Unsupported("model: no")

    monkeypatch.setattr(pt, "fast", leaves_a_hook)
    with pytest.raises(AssertionError, match="hooks are left behind"):
        judge.judged("llama", ["fast"])
