"""posenc lab score on a tiny random Llama: what is scored, what a change does, and runs that were stopped."""

import copy
import json
import math
import re
import string
from types import SimpleNamespace

import pytest
import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers

import in_process
import posenc
import posenc.transformers as pt
from families.harness import config_of
from posenc.transformers import retrieval, scores
from posenc.transformers.commands import score as score_module
from posenc.transformers.commands.score import markdown
from posenc.transformers.retrieval import Retrieval
from posenc.transformers.scores import Method, Score, Text, changed, own_rope, regional, run, table
from sampling import one_in

transformers.logging.set_verbosity_error()
TRAINED, VOCABULARY = 64, 97
TOKENS = torch.randint(3, VOCABULARY - 1, (400,), generator=torch.Generator().manual_seed(1))
TEXT = Text(TOKENS, samples=2, scored=10, copied=6)


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    sizes = {"vocab_size": VOCABULARY, "max_position_embeddings": TRAINED, "num_hidden_layers": 3}
    made = transformers.AutoModelForCausalLM.from_config(config_of("llama", **sizes), dtype=torch.float32).eval()
    for parameter in made.parameters():
        if parameter.ndim == 2:
            parameter.data.mul_(4)  # positions matter
    return made


@torch.no_grad()
def logits(model, ids=TOKENS[None, :150]):
    return model(ids, use_cache=False).logits


def losses(model, window):
    """By the definition: minus the log-probability of each token after all before it."""
    probabilities = torch.log_softmax(logits(model, window[None])[0].double(), -1)
    return [-probabilities[n - 1, token].item() for n, token in enumerate(window.tolist()) if n]


@pytest.mark.parametrize("start", [(), (1,)])
def test_a_score_is_the_mean_loss_of_these_tokens(model, start):
    text = Text(TOKENS, start, scored=10, copied=6)
    length, end = 80, 300
    before = TOKENS[end - (length - len(start) - 6) : end].tolist()
    window = [*start, *before, *before[:6]]
    assert len(window) == length
    by_hand = losses(model, torch.tensor(window))
    loss, copied = scores.score(model, text, length, end)
    assert loss == pytest.approx(sum(by_hand[-16:-6]) / 10, rel=1e-5)
    assert copied == pytest.approx(sum(by_hand[-6:]) / 6, rel=1e-5)


def test_every_length_scores_the_same_tokens_in_the_second_half_of_the_text():
    assert TEXT.ends() == [400, 300]
    scored = {tuple(TEXT.window(n, 300)[-16:-6].tolist()) for n in (30, 80, 300)}
    assert scored == {tuple(TOKENS[290:300].tolist())}


def same(twin, other):
    return torch.equal(logits(twin), logits(other))


@pytest.mark.parametrize("name", ["linear", "ntk", "yarn"])
def test_new_frequencies_are_those_of_extend(model, name):
    extended = pt.extend(copy.deepcopy(model), 4 * TRAINED, name, factor=4.0)
    assert same(changed(model, Method.parse(f"{name}:4"), 100), extended)
    assert not same(extended, model)


def test_dynamic_has_the_frequencies_of_the_window(model):
    """As transformers computes them in a first pass over 150 tokens."""
    config = copy.deepcopy(model.config)
    config.rope_parameters = {"rope_type": "dynamic", "factor": 2.0, "rope_theta": config.rope_parameters["rope_theta"]}
    grown = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    grown.load_state_dict(model.state_dict())
    torch.testing.assert_close(logits(changed(model, Method.parse("dynamic:2"), 150)), logits(grown), rtol=1e-4, atol=1e-4)
    assert not torch.allclose(logits(changed(model, Method.parse("dynamic"), 150)), logits(grown), atol=1e-2)


def test_self_extend_reaches_the_factor_and_no_smaller_group_does():
    def reached(group, window):
        return (8192 - window) * group + window

    for factor in (2, 4, 7.5):
        given = regional(Method("self_extend", factor), 8192)
        assert reached(**given) >= factor * 8192 > reached(given["group"] - 1, given["window"])


def test_the_others_attach_an_encoding(model):
    own = own_rope(model)
    heads = model.config.num_attention_heads
    wanted = {
        "self_extend:4": posenc.create(
            "self_extend", d_head=own.d_head, window=16, group=5, layout="half", frequencies=own.frequencies
        ),
        "dual_chunk": posenc.create(
            "dual_chunk", d_head=own.d_head, trained_length=TRAINED, layout="half", frequencies=own.frequencies
        ),
        "lm_infinite": posenc.create(
            "lm_infinite", d_head=own.d_head, near=TRAINED, layout="half", frequencies=own.frequencies
        ),
        "alibi": posenc.create("alibi", n_heads=heads),
    }
    for word, encoding in wanted.items():
        assert same(changed(model, Method.parse(word), 150), pt.attach(copy.deepcopy(model), encoding)), word
    some = pt.attach(copy.deepcopy(model), posenc.create("nope"), layers=[1])
    assert same(changed(model, Method.parse("nope:2"), 150), some)


@pytest.mark.parametrize("model_type", ["llama", "phi", "glm"])  # phi turns half of a head, glm interleaved pairs
def test_within_the_trained_length_distances_are_the_models_own(model_type):
    torch.manual_seed(0)
    config = config_of(model_type, vocab_size=VOCABULARY, max_position_embeddings=TRAINED)
    made = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    near, far = TOKENS[None, :16], TOKENS[None, :150]
    for word in ("dynamic", "self_extend:4", "dual_chunk", "lm_infinite"):
        twin = changed(made, Method.parse(word), 150 if word != "dynamic" else 16)
        torch.testing.assert_close(logits(twin, near), logits(made, near), rtol=1e-4, atol=1e-4)
        if word != "dynamic":
            assert (logits(twin, far) - logits(made, far)).abs().max() > 1e-3, word


def test_a_changed_model_shares_its_weights_and_leaves_the_model_alone(model):
    before, config = logits(model), model.config.to_dict()
    for word in ("plain", "yarn:4", "dynamic", "self_extend:4", "nope:2"):
        twin = changed(model, Method.parse(word), 150)
        assert {one.data_ptr() for one in twin.parameters()} == {one.data_ptr() for one in model.parameters()}
    assert torch.equal(logits(model), before)
    assert model.config.to_dict() == config


METHODS = [Method("plain"), Method("yarn", 4.0)]


def test_a_run_that_was_stopped_goes_on(model, tmp_path, monkeypatch):
    path = tmp_path / "new" / "scores.jsonl"
    whole = run(model, TEXT, METHODS, [40, 80], tmp_path / "other.jsonl")
    order = [(400, 40, "plain"), (400, 40, "yarn:4"), (400, 80, "plain")]
    assert [(one.end, one.length, one.method) for one in whole[:3]] == order
    looks = iter(range(100))

    def stop():
        if next(looks) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(model, TEXT, METHODS, [40, 80], path, look=stop)
    assert len(path.read_text().splitlines()) == 3
    path.write_bytes(path.read_bytes() + b'{"key": "cut of')  # killed within a line
    passes = []
    kept_score = scores.score
    monkeypatch.setattr(scores, "score", lambda *given: passes.append(given) or kept_score(*given))
    found = run(model, TEXT, METHODS, [40, 80], path)
    assert len(passes) == len(whole) - 3
    assert [(one.loss, one.copied) for one in found] == [(one.loss, one.copied) for one in whole]
    assert run(model, TEXT, METHODS, [40, 80], path) == found
    assert len(passes) == len(whole) - 3


def test_scores_of_another_model_or_text_are_not_taken(model, tmp_path):
    path = tmp_path / "scores.jsonl"
    (one,) = run(model, Text(TOKENS, scored=10, copied=6), METHODS[:1], [40], path)
    other = copy.deepcopy(model)
    other.model.layers[1].mlp.up_proj.weight.data.add_(1)
    changes = [(other, TOKENS, 10), (model, TOKENS.flip(0), 10), (model, TOKENS, 9)]
    found = [
        run(given, Text(tokens, scored=scored, copied=6), METHODS[:1], [40], path)[0] for given, tokens, scored in changes
    ]
    assert len({found_one.key for found_one in (one, *found)}) == 4
    assert len(path.read_text().splitlines()) == 4


def test_a_table_holds_perplexities_over_all_samples():
    def one(method, length, loss):
        return Score("", method, length, 0, loss, 0.0, 1.0)

    found = table([one("plain", 8, 1.0), one("plain", 8, 3.0), one("plain", 16, None), one("plain", 16, 1.0)], "loss")
    assert found == {"plain": {8: pytest.approx(math.exp(2)), 16: None}}
    assert table([one("plain", 8, 800.0)], "loss") == {"plain": {8: None}}


def test_the_page_has_a_column_for_each_length_and_leaves_open_what_was_not_computed():
    tables = {"loss": {"plain": {8: 2.34, 16: None}, "yarn:4": {16: 671.4}}}
    about = {"model": "m", "dtype": "float32", "text": "t", "samples": 1, "trained": 8, "scored": 4, "copied": 2}
    page = markdown(tables, about, "en")
    assert page.endswith("| | 8 | 16 |\n|---|--:|--:|\n| plain | 2.3 | ∞ |\n| yarn:4 |  | 671 |\n")


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("yarn", "expected a factor after yarn"),
        ("yarn:1", "a number above 1"),
        ("yarn:x", "a number above 1"),
        ("alibi:4", "a number above 1 for linear, ntk"),
        ("nope:1.5", "whole number n"),
    ],
)
def test_a_method_that_is_not_understood(word, message):
    with pytest.raises(ValueError, match=message):
        Method.parse(word)


def test_what_cannot_be_scored_is_refused_before_the_first_pass(model, tmp_path):
    path = tmp_path / "scores.jsonl"
    with pytest.raises(ValueError, match=r"--lengths: expected 22 … 300 tokens, .*got 301"):
        run(model, TEXT, METHODS, [40, 301], path)
    with pytest.raises(ValueError, match=r"--lengths: expected 22 .*got 21"):
        run(model, TEXT, METHODS, [21], path)
    with pytest.raises(ValueError, match=r"--extend alibo: .*unknown encoding 'alibo'"):
        run(model, TEXT, [*METHODS, Method("alibo")], [40], path)
    smollm3 = transformers.AutoModelForCausalLM.from_config(
        config_of("smollm3", vocab_size=VOCABULARY), dtype=torch.float32
    ).eval()
    with pytest.raises(ValueError, match=r"--extend self_extend:4: .*expected plain RoPE"):
        run(smollm3, TEXT, [Method("self_extend", 4.0)], [40], path)
    assert not path.exists()


@pytest.fixture(scope="module")
def folder(model, tmp_path_factory):
    """The model with a tokenizer that has a token for each letter."""
    to = tmp_path_factory.mktemp("saved")
    letters = {"<s>": 0} | {letter: number for number, letter in enumerate(string.ascii_letters + " .\n", 1)}
    tokenizer = Tokenizer(models.WordLevel(letters, unk_token="."))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>").save_pretrained(to)
    model.save_pretrained(to)
    (to / "tale.txt").write_text("It was a dark and stormy night, and the captain told a tale.\n" * 6, encoding="utf-8")
    return to


def score_command(folder, out, *more):
    given = ("--text", folder / "tale.txt", "--lengths", "80,40", "--scored", "8", "--copied", "6", "--out", out, *more)
    return in_process.posenc("lab", "score", folder, *given)


def test_the_command_prints_and_writes_both_tables(folder, tmp_path):
    ended = score_command(folder, tmp_path, "--extend", "yarn:4,ntk:2", "--extend", "alibi", "--lang", "en")
    assert ended.returncode == 0, ended.stderr
    page = (tmp_path / "scores.md").read_text("utf-8")
    assert page.strip() == ended.stdout.strip()
    assert page.count("| | 40 | 80 |") == 2
    assert [line.split("|")[1].strip() for line in page.splitlines() if line.startswith("| ") and "40" not in line][:4] == [
        "plain",
        "yarn:4",
        "ntk:2",
        "alibi",
    ]
    assert "trained on 64 tokens" in page
    assert "plain 40" in ended.stderr
    again = score_command(folder, tmp_path, "--json", "--lang", "zh")
    assert "plain" not in again.stderr  # everything is found
    found = json.loads(again.stdout)
    assert [one["length"] for one in found["scores"]] == [40, 80]
    assert "训练长度为 64" in (tmp_path / "scores.md").read_text("utf-8")


def test_a_folder_with_an_encoding_attached_is_scored_with_it(model, folder, tmp_path):
    saved = tmp_path / "alibi"
    twin = pt.attach(copy.deepcopy(model), posenc.create("alibi", n_heads=model.config.num_attention_heads))
    twin.save_pretrained(saved)
    for name in ("tokenizer.json", "tokenizer_config.json", "tale.txt"):
        (saved / name).write_bytes((folder / name).read_bytes())
    plain = json.loads(score_command(saved, tmp_path / "a", "--json").stdout)["scores"]
    attached = json.loads(score_command(folder, tmp_path / "b", "--extend", "alibi", "--json").stdout)["scores"]
    assert [one["loss"] for one in plain] == [one["loss"] for one in attached if one["method"] == "alibi"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--extend", "yarn"), "expected a factor after yarn"),
        (("--lengths", "2k"), "expected numbers above 0 such as 2048,8192"),
        (("--lengths", "0,16"), "expected numbers above 0 such as 2048,8192"),
        (("--dtype", "float64"), "float32 or bfloat16"),
        (("--lengths", "4000"), "--lengths: expected"),
    ],
)
def test_the_command_names_the_option_that_is_wrong(folder, tmp_path, given, message):
    ended = score_command(folder, tmp_path, *given)
    assert ended.returncode != 0
    assert message in " ".join(ended.stderr.replace("│", " ").split())


def test_lengths_are_refused_before_weights_are_read(folder, tmp_path):
    bare = tmp_path / "bare"
    bare.mkdir()
    for file in folder.iterdir():
        if file.suffix != ".safetensors":
            (bare / file.name).write_bytes(file.read_bytes())
    ended = score_command(bare, tmp_path, "--lengths", "4000")
    assert ended.returncode != 0
    assert "--lengths: expected" in " ".join(ended.stderr.split())


def test_the_command_names_a_tokenizer_that_is_not_there(model, folder, tmp_path):
    (tmp_path / "bare").mkdir()
    for name in ("config.json", "model.safetensors", "tale.txt"):
        (tmp_path / "bare" / name).write_bytes((folder / name).read_bytes())
    ended = score_command(tmp_path / "bare", tmp_path)
    assert ended.returncode != 0
    assert "has no tokenizer that transformers can load" in ended.stderr


def test_the_command_names_a_model_that_is_not_there(folder, tmp_path):
    ended = in_process.posenc("lab", "score", tmp_path / "none", "--text", folder / "tale.txt")
    assert ended.returncode == 1
    assert "there is no such folder or file" in ended.stderr


def test_a_model_without_a_trained_length_is_scored_as_it_is_alone(tmp_path):
    bloom = transformers.AutoModelForCausalLM.from_config(
        config_of("bloom", vocab_size=VOCABULARY), dtype=torch.float32
    ).eval()
    assert scores.trained_length(bloom) is None
    (one,) = run(bloom, Text(TOKENS, scored=10, copied=6), METHODS[:1], [40], tmp_path / "scores.jsonl")
    assert one.loss > 0
    with pytest.raises(ValueError, match=r"--extend dual_chunk: .*does not give max_position_embeddings"):
        run(bloom, TEXT, [Method("dual_chunk")], [40], tmp_path / "scores.jsonl")


def test_a_gguf_file_needs_gguf(folder, tmp_path, monkeypatch):
    file = tmp_path / "model.gguf"
    file.write_bytes(b"GGUF" + bytes(20))
    monkeypatch.setattr(score_module, "find_spec", lambda name: None)
    ended = in_process.posenc("lab", "score", file, "--text", folder / "tale.txt")
    assert ended.returncode == 1
    assert "pip install gguf" in ended.stderr


# Answers to find ----------------------------------------------------------------------------------------------------


class Words:
    """A tokenizer of one token for each word, mark and digit."""

    bos_token_id = 1

    def __init__(self):
        self.known = {}

    def __call__(self, text, **_):
        pieces = re.findall(r"\d|\w+|[^\w\s]", text)
        ids = [self.known.setdefault(piece, len(self.known) + 2) for piece in pieces]
        return SimpleNamespace(input_ids=ids or [self.bos_token_id])

    def read(self, ids):
        words = {number: word for word, number in self.known.items()}
        said = " ".join(words[int(one)] for one in ids if int(one) > 1)
        return re.sub(r"(?<=\d) (?=\d)", "", said)


def solved(task, said):
    """The answer, read from the window as a person would."""
    if task == "passkey":
        (key,) = set(re.findall(r"key is (\d{5})", said)) | set(re.findall(r"(\d{5}) is the pass", said))
        return key
    if task == "variables":
        values = {}
        for name, value in re.findall(r"Let (\w) be (\w+)", said):
            values[name] = values.get(value, value)
        return values[re.search(r"Which number is (\w)", said)[1]]
    asked = re.search(r"What is the number of the (\w+)", said)[1]
    (number,) = set(re.findall(rf"number of the {asked} is (\d{{5}})", said))
    return number


@pytest.mark.parametrize("task", retrieval.TASKS)
def test_the_answer_follows_from_the_window_and_stands_at_the_depth_of_its_sample(task):
    tokenizer = Words()
    windows = Retrieval(task, tokenizer, samples=4)
    for length in (160, 600):
        for sample in windows.ends():
            tokens, asked = windows.window(length, sample)
            said = tokenizer.read(tokens)
            answer = re.search(r"\d+", tokenizer.read(tokens[-asked:]))[0]
            before = tokenizer.read(tokens[:-asked])
            assert solved(task, before) == answer
            assert length - 40 < len(tokens) <= length
            assert tokens[0] == 1
            at = before.index(answer) / len(said)
            assert abs(at - (sample + 0.5) / 4) < 0.2, (length, sample)
    named = len(set(re.findall(r"number of the (\w+)", said)))
    assert (said.count("Let "), min(named, 6)) == {"variables": (6, 0), "needle": (0, 1), "keys": (0, 6)}.get(task, (0, 0))


@pytest.mark.parametrize("task", retrieval.TASKS)
def test_samples_are_alike_at_every_length_and_differ_from_each_other(task):
    tokenizer = Words()
    windows = Retrieval(task, tokenizer, samples=6)
    answers = {
        n: [tokenizer.read(tokens[-asked:]) for tokens, asked in (windows.window(n, s) for s in windows.ends())]
        for n in (200, 500)
    }
    assert answers[200] == answers[500]
    assert len(set(answers[200])) == 6


def test_what_is_measured_is_the_answer_alone(model):
    """Losses of the last tokens by the definition, and whether greedy decoding, token by token, would write them."""
    windows = Retrieval("passkey", Letters(), samples=2)
    for sample in windows.ends():
        tokens, asked = windows.window(900, sample)
        found = windows.measured(model, 900, sample)
        assert found["answer"] == pytest.approx(sum(losses(model, tokens)[-asked:]) / asked, rel=1e-4)
        written = tokens[:-asked]
        for _ in range(asked):
            written = torch.cat([written, logits(model, written[None])[0, -1].argmax()[None]])
        assert found["exact"] == int(torch.equal(written, tokens))


def test_greedy_decoding_that_is_right_is_found():
    """A model that always writes the answer."""
    windows = Retrieval("keys", Words(), samples=1)
    tokens, asked = windows.window(300, 0)

    class Knows(torch.nn.Linear):
        wrong = 0

        def forward(self, ids, logits_to_keep, use_cache):
            one_hot = torch.nn.functional.one_hot(tokens.roll(-1), 1000).float()
            one_hot[-1 - self.wrong] = 0
            return SimpleNamespace(logits=10 * one_hot[None, -logits_to_keep:])

    knows = Knows(1, 1)
    assert windows.measured(knows, 300, 0)["exact"] == 1
    knows.wrong = asked
    assert windows.measured(knows, 300, 0)["exact"] == 0


class Letters(Words):
    def __call__(self, text, **_):
        return SimpleNamespace(input_ids=[3 + ord(letter) % 90 for letter in text] or [self.bos_token_id])


def test_a_window_that_holds_no_question_is_refused(model, tmp_path):
    with pytest.raises(ValueError, match=r"--lengths: expected at least \d+ tokens, which variables needs, got 20"):
        run(model, Retrieval("variables", Words()), METHODS, [20], tmp_path / "scores.jsonl")


def retrieved(folder, out, task, *more):
    given = ("--task", task, "--lengths", "900,1200", "--samples", "2", "--out", out, "--lang", "en", *more)
    return in_process.posenc("lab", "score", folder, *given)


@pytest.mark.parametrize("task", one_in(2, retrieval.TASKS))
def test_the_command_scores_what_is_found_and_keeps_every_line(folder, tmp_path, task):
    ended = retrieved(folder, tmp_path, task, "--extend", "yarn:4")
    assert ended.returncode == 0, ended.stderr
    page = (tmp_path / "scores.md").read_text("utf-8")
    assert page.strip() == ended.stdout.strip()
    assert page.count("| | 900 | 1200 |") == 2
    assert re.search(r"\| yarn:4 \| [012]/2 \| [012]/2 \|", page)
    lines = (tmp_path / "scores.jsonl").read_text("utf-8").splitlines()
    assert len(lines) == 2 * 2 * 2
    (tmp_path / "scores.jsonl").write_text(
        "\n".join(lines[:3]) + "\n" + lines[3][:20], "utf-8"
    )  # as Ctrl-C or a kill left it
    again = retrieved(folder, tmp_path, task, "--extend", "yarn:4", "--json")
    found = json.loads(again.stdout)
    assert found["task"] == task
    assert [{**one, "seconds": 0} for one in found["scores"]] == [{**json.loads(line), "seconds": 0} for line in lines]


def test_tasks_and_texts_share_a_folder(folder, tmp_path):
    for task in ("passkey", "keys"):
        retrieved(folder, tmp_path, task)
    score_command(folder, tmp_path)
    assert len({json.loads(line)["key"] for line in (tmp_path / "scores.jsonl").read_text("utf-8").splitlines()}) == 3


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((), "perplexity needs --text FILE"),
        (("--task", "keys", "--scored", "9"), "is for --task perplexity; keys writes its own windows"),
        (("--task", "keys", "--text", "tale.txt"), "is for --task perplexity; keys writes its own windows"),
    ],
)
def test_options_of_another_task_are_refused(folder, given, message):
    ended = in_process.posenc("lab", "score", folder, *given)
    assert ended.returncode != 0
    assert message in " ".join(ended.stderr.replace("│", " ").split())


@pytest.mark.parametrize(
    ("content", "message"), [(None, "holds no config.json; expected a folder"), ("{", "config.json: ")]
)
def test_a_folder_without_a_config_is_named(tmp_path, content, message):
    if content is not None:
        (tmp_path / "config.json").write_text(content)
    ended = in_process.posenc("lab", "score", tmp_path, "--task", "passkey", "--out", tmp_path / "out")
    assert ended.returncode == 1
    assert message in ended.stderr
    assert str(tmp_path) in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
