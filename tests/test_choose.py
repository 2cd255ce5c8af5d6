"""posenc choose: every combination of answers gets entries that fit, and every reason has a source."""

import itertools
import json
from typing import get_args

import pytest
import torch
from typer.testing import CliRunner

import posenc
from posenc.catalogue import measured
from posenc.catalogue.choose import costs
from posenc.catalogue.choose.choice import COSTS, RESULTS, Answers, recommend, unmet
from posenc.catalogue.choose.cited import CITED
from posenc.catalogue.choose.quality import quality
from posenc.catalogue.description import positions_of
from posenc.catalogue.entry import Domain, Start
from posenc.catalogue.lookup import BY_NAME, directed
from posenc.cli import app
from posenc.combined import one_layer

SIZES = {"d_model": 32, "n_heads": 2, "n_layers": 4, "max_positions": 64}
EVERY = [
    Answers(domain, causal, 2048, wanted, start, kernel, parameters)
    for domain, causal, wanted, start, kernel, parameters in itertools.product(
        get_args(Domain), (True, False), (512, 2048, 4096, 2**20), get_args(Start), ("plain", "any"), (True, False)
    )
]


def layers(entry, causal):
    """The encoding of an entry at each layer; positions have none."""
    if entry.kind == "positions":
        return []
    made = posenc.create(entry.name, **SIZES, **directed(entry.name, causal))
    return [made] if one_layer(made) else [made.at_layer(n) for n in range(SIZES["n_layers"])]


def changed_scores(encoding):
    """Whether a bias or an end of its own is left for the kernel to do."""
    bare = posenc.PositionalEncoding
    return [seam for seam in ("bias", "finish") if getattr(type(encoding), seam) is not getattr(bare, seam)]


@pytest.mark.parametrize("step", [6, pytest.param(1, marks=pytest.mark.acceptance)])
def test_every_combination_of_answers_gets_something_that_fits(step):
    """The requirements are tried on the encodings themselves, not on what the entries say of them."""
    fitting = set()
    for answers in EVERY:
        choices = recommend(answers, most=99)
        assert choices, answers
        assert len(recommend(answers)) <= 5
        for choice in choices:
            fitting.add((choice.name, answers.causal, answers.kernel, answers.parameters))
            assert answers.domain in BY_NAME[choice.name].used_for
    for name, causal, kernel, parameters in sorted(fitting)[::step]:
        entry = BY_NAME[name]
        for encoding in layers(entry, causal):
            if not parameters:
                assert not list(encoding.parameters()), name
            if kernel == "plain" and not isinstance(encoding, posenc.Stack):
                assert not changed_scores(encoding), name
            at = encoding.prepare(positions_of(entry, 9, (3, 3)))
            attention = posenc.Attention(32, 2, encoding)
            x = torch.randn(1, at.length, 32)
            out = attention(x, at, causal=causal)
            assert out.isfinite().all(), name
            if causal:
                later = attention(torch.cat([x[:, :-1], torch.randn(1, 1, 32)], dim=1), at)
                torch.testing.assert_close(out[:, :-1], later[:, :-1], msg=f"{name}: a token reads later ones")


def test_every_reason_has_a_source_and_is_the_figure_of_that_source():
    for answers in EVERY[::7]:
        for choice in recommend(answers, most=99):
            assert choice.reasons
            for reason in choice.reasons:
                if reason.kind == "cited":
                    assert (reason.says, reason.source) in [(one.says, one.source) for one in CITED[choice.name]]
                    assert any(character.isdigit() for character in reason.source)
                elif reason.source == COSTS:
                    training = costs.measured()[choice.name].median("training")
                    assert training is None or f"{training:.2f} ×" in reason.says.en
                else:
                    assert reason.source == RESULTS
                    task = measured.task("language_model" if answers.causal else "masked_language_model")
                    figures = [
                        cell["mean"] for arm in task["arms"] + task["after"] for cell in arm["cells"] if "mean" in cell
                    ]
                    assert any(f"{figure:.2f} bits" in reason.says.en for figure in figures)
                    trained = {arm["name"]: arm for arm in task["arms"]}
                    finished = trained.get(choice.name, trained["rope"])["converged"]
                    assert ("still improved at the end of training" in reason.says.en) == (finished is False)


def test_cited_evidence_is_of_entries_and_complete():
    assert set(CITED) <= set(BY_NAME)
    for claims in CITED.values():
        for claim in claims:
            assert claim.says.en
            assert claim.says.zh
            assert claim.factor is None or claim.factor >= 1
            assert "arXiv" in claim.source or "http" in claim.source


def test_what_does_not_fit_says_why():
    def why(name, **given):
        return " ".join(words.en for words in unmet(BY_NAME[name], Answers(**given)))

    assert "causal only" in why("xpos", causal=False)
    assert "parameters" in why("t5", parameters=False)
    assert "plain kernel" in why("alibi", kernel="plain")
    assert "later ones" in why("convolutional", causal=True, domain="audio")
    assert "not for image" in why("rope", domain="image")
    assert "no order" in why("nope", causal=False)
    assert "reaches further" in why("learned", wanted=4096)
    assert "reaches further" in why("sinusoidal", wanted=4096), "it breaks at once in our measurements"
    assert not unmet(BY_NAME["yarn"], Answers(start="trained", wanted=8192))
    assert unmet(BY_NAME["yarn"], Answers(start="scratch", wanted=8192))


def test_longer_texts_are_led_by_what_lasted_in_our_measurements():
    best = recommend(Answers(trained=64, wanted=512))
    assert {"transformer_xl", "alibi"} <= {choice.name for choice in best}
    assert quality("alibi", causal=True, start="scratch").factor == 8
    assert quality("rope", causal=True, start="scratch").factor < 2
    assert quality("falcon_alibi", causal=True, start="scratch") is None, "the lab did not train it"
    assert quality("yarn", causal=True, start="trained").at(4) < quality("linear", causal=True, start="trained").at(4)
    assert next(choice.name for choice in recommend(Answers(trained=64, wanted=256, start="trained"))) == "yarn"


@pytest.mark.parametrize(
    "wrong", [{"domain": "video"}, {"start": "half"}, {"kernel": "fast"}, {"trained": 0}, {"wanted": 1.5}]
)
def test_wrong_answers_are_refused_by_name(wrong):
    with pytest.raises(ValueError, match=f"^{next(iter(wrong))}: expected"):
        Answers(**wrong)


def test_the_command_prints_and_gives_json():
    runner = CliRunner()
    done = runner.invoke(app, ["choose", "--trained", "64", "--wanted", "512", "--lang", "en"])
    assert done.exit_code == 0, done.output
    assert "transformer_xl" in done.output
    assert "measured" in done.output
    found = json.loads(runner.invoke(app, ["choose", "--domain", "graph", "--json"]).output)
    assert found["answers"]["domain"] == "graph"
    assert found["choices"][0]["name"] == "nope"
    assert {"kind", "says", "source"} == set(found["choices"][0]["reasons"][0])
    chinese = runner.invoke(app, ["choose", "--lang", "zh"])
    assert "实测" in chinese.output
    wrong = runner.invoke(app, ["choose", "--domain", "video"])
    assert wrong.exit_code == 2
    assert "expected one of text, image, audio, graph" in wrong.output.replace("\n", " ")


def test_the_prompt_asks_what_the_flags_leave_open(monkeypatch):
    from posenc.catalogue.commands import choose as choose_

    asked = []
    monkeypatch.setattr("rich.prompt.PromptBase.ask", lambda question, **more: asked.append(question) or more["default"])
    answers = choose_.asked({"domain": "audio", "trained": 100}, Answers(domain="audio", trained=100), "en")
    assert len(asked) == len(choose_.QUESTIONS) - 2
    others = {"causal": True, "start": "scratch", "kernel": "any", "parameters": True}
    assert answers == {"domain": "audio", "trained": 100, "wanted": 100} | others
