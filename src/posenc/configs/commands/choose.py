"""`posenc choose`: which encoding to take, from a few answers: the first advice, its reason and how to use it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from posenc.configs.say import say
from posenc.support.checks import shown
from posenc.support.languages import Language, Words
from posenc.terminal.language import chosen_language
from posenc.terminal.output import echo, echo_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from posenc.catalogue.choose.choice import Advice, Answers
    from posenc.catalogue.index import Found

# In the order in which they are asked. A question is asked while its answer can still change the advice.
QUESTIONS = {
    "domain": say("What are the tokens?"),
    "start": say("Is the model trained from scratch, or is there a trained one?"),
    "of": say("Which model, or which encoding has it (llama, bert, rope, alibi)?"),
    "model": say("Is it a decoder (a token sees earlier ones only), an encoder, or both?"),
    "trained": say("How many tokens has a training example?"),
    "wanted": say("How many tokens has the longest example in use?"),
    "tuned": say("May the trained model be trained further?"),
    "kernel": say("Which biases does the attention kernel take: any, ALiBi's slopes, or none (plain)?"),
}
LENGTHS = ("trained", "wanted")


def command(
    domain: Annotated[
        str,
        typer.Option(
            help="text, image, video, diffusion, multimodal, audio, series, graph, points, arithmetic or algorithm.",
            show_default=False,
        ),
    ] = "",
    model: Annotated[str, typer.Option(help="decoder, encoder or encoder-decoder.", show_default=False)] = "",
    start: Annotated[str, typer.Option(help="scratch, or trained: there is a trained model.", show_default=False)] = "",
    of: Annotated[
        str,
        typer.Option(
            help="The trained model or its encoding: llama, bert, alibi; or its folder, or config.json.", show_default=False
        ),
    ] = "",
    trained: Annotated[int | None, typer.Option(min=1, help="Tokens of a training example.", show_default=False)] = None,
    wanted: Annotated[
        int | None, typer.Option(min=1, help="Tokens of the longest example in use.", show_default=False)
    ] = None,
    tuned: Annotated[
        bool | None,
        typer.Option("--tuned/--untuned", help="Whether a trained model is trained further.", show_default=False),
    ] = None,
    kernel: Annotated[
        str, typer.Option(help="any, slopes (ALiBi's), or plain: one that takes no bias.", show_default=False)
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="The answers and the advice as JSON; asks nothing.")] = False,
    lang: Annotated[str, typer.Option(help="en or zh; LC_ALL or LANG decide if left out.", show_default=False)] = "",
) -> None:
    """Which encoding to take: the first advice with its reason and source, what we measured, and how to use it.

    In a terminal, asks what no option answers; elsewhere, and with --json, takes: text, a decoder, 2048 tokens in training
    and as many in use, from scratch, any kernel. "trained" means a model with RoPE, or a grid of images, unless --of says
    more. Of a folder or a config.json, what its own settings say decides, and the length it was trained on is known. Every
    answer is a row of src/posenc/catalogue/choose/rules.toml.

    Examples:  posenc choose   ·   posenc choose --of llama --trained 4096 --wanted 32768 --json
    """
    from posenc.catalogue.choose.choice import Answers, matched, recommend
    from posenc.catalogue.choose.choice import as_json as as_data

    language = chosen_language(lang)
    options = {"domain": domain, "start": start or ("trained" if of else ""), "of": of, "model": model, "trained": trained,
               "wanted": wanted, "tuned": tuned, "kernel": kernel}  # fmt: skip
    answers_given: dict[str, Any] = {name: value for name, value in options.items() if value not in ("", None)}
    if of and is_file(of):
        answers_given |= of_file(of, answers_given)
    try:
        answers = Answers(**answers_given)
    except ValueError as error:
        name, _, why = str(error).partition(": ")
        raise typer.BadParameter(why, param_hint=f"--{name}") from None
    if not as_json and all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout)):
        answers = prompted(answers_given, language)
    if answers.read is None and (match := matched(answers.of)) and match.guess:
        echo(guess(answers.of, match).in_language(language), err=True)
    advice = recommend(answers)
    if as_json:
        echo_json(as_data(answers, advice), indent=1)
        return
    from rich.console import Console

    show(Console(highlight=False, emoji=False), advice, language)


def is_file(of: str) -> bool:
    """Whether it is meant as a path: one that is there, or that no name looks like."""
    return os.path.exists(of) or of.endswith(".json") or of.startswith(("./", "../", "/", "~"))


def of_file(of: str, given: dict[str, Any]) -> dict[str, Any]:
    """What the model's own file answers: what its reader says, and the trained length, unless one is given."""
    from posenc.configs import source, spec_of
    from posenc.configs.reading import part_for, reading_of

    config = source.load(Path(of).expanduser())
    trained = part_for(spec_of(config), "text")[1].trained_length
    length = {"trained": trained} if trained and "trained" not in given else {}
    return {"read": reading_of(of, config), **length}


def guess(word: str, match: Found) -> Words:
    return say("No model and no encoding is called {word}. {guess} is a guess.", word=shown(word), guess=match.term.written)


def prompted(answers_given: dict[str, Any], language: Language) -> Answers:
    """The answers with those that a prompt adds: of what is left open, what a row that still may hold asks for."""
    from rich.prompt import Confirm, IntPrompt, Prompt

    from posenc.catalogue.choose.choice import KINDS, Answers

    answers = dict(answers_given)
    for name, words in QUESTIONS.items():
        usual = Answers(**answers)
        settled = {*answers, "model"} - {name} | ({"length", "factor"} if answers.keys() >= {*LENGTHS} else set())
        known = {key: value for key, value in usual.told.items() if key in settled}
        matters = any(("length" if name in LENGTHS else name) in rule["when"] for rule in reachable(known))
        if name in answers or not matters:
            continue
        question = words.in_language(language)
        if name == "tuned":
            answers[name] = Confirm.ask(question, default=usual.tuned)
        elif name in LENGTHS:
            answers[name] = IntPrompt.ask(question, default=usual.trained)
        elif name == "of":
            answers[name] = Prompt.ask(question, default=usual.entry.name)
        else:
            answers[name] = Prompt.ask(question, choices=list(KINDS[name]), default=usual.told[name])
    return Answers(**answers)


def reachable(known: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The rows that may hold for what is known: up to the one that holds whatever else is answered."""
    from posenc.catalogue.choose.choice import holds, table

    for rule in table()["rule"]:
        if holds(rule, known):
            yield rule
            if rule["when"].keys() <= known.keys():
                return


def show(console: Console, advice: Advice, language: Language) -> None:
    """The advice in a few lines."""
    from rich.table import Table

    from posenc.catalogue.lookup import BY_NAME
    from posenc.terminal.wrapped import Wrapped

    lines = [(say("why"), advice.why.in_language(language)), (say("source"), advice.source)]
    lines += [(say("measured"), words.in_language(language)) for words in advice.measured]
    lines += [(say("not measured"), ", ".join(advice.lacking))] * bool(advice.lacking)
    lines += [(say("measured"), say("nothing").in_language(language))] * (not advice.measured and not advice.take)
    told = ((say("note"), advice.replaces), (say("breaks"), advice.breaks), (say("costs"), advice.costs))
    lines += [(label, words.in_language(language)) for label, words in told if words is not None]
    lines += [(say("or"), ", ".join(advice.take[1:]))] * bool(advice.take[1:])
    grid = Table.grid(padding=(0, 2))
    for label, text in lines:
        grid.add_row(f"[dim]{label.in_language(language)}[/dim]", Wrapped(text))
    if advice.take:
        console.print(f"[bold]{advice.take[0]}[/bold]  {BY_NAME[advice.take[0]].label.in_language(language)}")
    console.print(grid)
    for code in advice.use.splitlines():
        console.print(f"    {code}", markup=False, soft_wrap=True)
