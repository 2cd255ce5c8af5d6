"""`posenc choose`: which encoding to take, from a few answers, with a reason for each."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from posenc.catalogue.entry import Domain, Start
from posenc.catalogue.say import say
from posenc.support.languages import Language
from posenc.terminal.language import chosen_language

if TYPE_CHECKING:
    from rich.console import Console

    from posenc.catalogue.choose.choice import Choice

QUESTIONS = {
    "domain": say("What are the tokens: text, image, audio or graph?"),
    "causal": say("Does a token see only earlier ones?"),
    "trained": say("How many tokens has a training example?"),
    "wanted": say("How many tokens has the longest example in use?"),
    "start": say("Is the model trained from scratch, or is a trained one changed: scratch or trained?"),
    "kernel": say("Does the attention kernel take a bias (any), or only queries, keys, values and a causal mask (plain)?"),
    "parameters": say("May it add learned parameters?"),
}
KINDS = {"measured": say("measured"), "cited": say("cited")}


def command(
    domain: Annotated[str, typer.Option(help="text, image, audio or graph.", show_default=False)] = "",
    causal: Annotated[
        bool | None, typer.Option("--causal/--both-ways", help="Which tokens one sees.", show_default=False)
    ] = None,
    trained: Annotated[int | None, typer.Option(min=1, help="Tokens of a training example.", show_default=False)] = None,
    wanted: Annotated[
        int | None, typer.Option(min=1, help="Tokens of the longest example in use.", show_default=False)
    ] = None,
    start: Annotated[str, typer.Option(help="scratch, or trained: a model is changed.", show_default=False)] = "",
    kernel: Annotated[str, typer.Option(help="any, or plain: one that takes no bias.", show_default=False)] = "",
    parameters: Annotated[
        bool | None,
        typer.Option("--parameters/--no-parameters", help="Whether it may add learned parameters.", show_default=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The answers and the short list as JSON; asks nothing.")] = False,
    lang: Annotated[str, typer.Option(help="en or zh; LC_ALL or LANG decide if left out.", show_default=False)] = "",
) -> None:
    """Which encoding to take: a short list with reasons, each a figure measured by posenc or a cited one.

    In a terminal, asks what no option answers; elsewhere, and with --json, takes: text, causal, 2048 tokens in training and
    as many in use, from scratch, any kernel, parameters allowed. "trained" means a model with RoPE, or a grid of images.

    Examples:  posenc choose   ·   posenc choose --domain text --trained 4096 --wanted 32768 --start trained --json
    """
    from posenc.catalogue.choose.choice import Answers, recommend
    from posenc.catalogue.choose.choice import as_json as as_data

    language = chosen_language(lang)
    options = {
        "domain": domain,
        "causal": causal,
        "trained": trained,
        "wanted": wanted,
        "start": start,
        "kernel": kernel,
        "parameters": parameters,
    }
    given: dict[str, Any] = {name: value for name, value in options.items() if value not in ("", None)}
    if "wanted" not in given and "trained" in given:
        given["wanted"] = given["trained"]
    for name, kinds in (("domain", get_args(Domain)), ("start", get_args(Start)), ("kernel", ("plain", "any"))):
        if name in given and given[name] not in kinds:
            raise typer.BadParameter(f"expected one of {', '.join(kinds)}, got {given[name]!r}", param_hint=f"--{name}")
    if not as_json and sys.stdin.isatty() and sys.stdout.isatty():
        given = asked(given, Answers(**given), language)
    answers = Answers(**given)
    choices = recommend(answers)
    if as_json:
        typer.echo(json.dumps(as_data(answers, choices), ensure_ascii=False, indent=1))
        return
    from rich.console import Console

    show(Console(highlight=False, emoji=False), choices, language)


def asked(given: dict[str, Any], usual: Any, language: Language) -> dict[str, Any]:
    """The answers with those that a prompt adds."""
    from rich.prompt import Confirm, IntPrompt, Prompt

    answers = dict(given)
    for name, words in QUESTIONS.items():
        if name in given:
            continue
        before, question = getattr(usual, name), words.in_language(language)
        if isinstance(before, bool):
            answers[name] = Confirm.ask(question, default=before)
        elif isinstance(before, int):
            answers[name] = IntPrompt.ask(question, default=answers.get("trained", before) if name == "wanted" else before)
        else:
            kinds = {"domain": get_args(Domain), "start": get_args(Start), "kernel": ("any", "plain")}[name]
            answers[name] = Prompt.ask(question, choices=list(kinds), default=before)
    return answers


def show(console: Console, choices: list[Choice], language: Language) -> None:
    """The short list: each entry with its reasons and what to beware of."""
    from rich.markup import escape

    beware = say("beware").in_language(language)
    for number, choice in enumerate(choices, 1):
        console.print(f"[bold]{number}. {choice.name}[/bold]  {escape(choice.title.in_language(language))}")
        for reason in choice.reasons:
            kind = KINDS[reason.kind].in_language(language)
            console.print(
                f"   [dim]{kind}[/dim]  {escape(reason.says.in_language(language))}  [dim]({escape(reason.source)})[/dim]"
            )
        for words in choice.beware:
            console.print(f"   [dim]{beware}[/dim]  {escape(words.in_language(language))}")
