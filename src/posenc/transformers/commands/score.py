"""`posenc lab score`: a trained model on longer and longer windows, as it is and with its positions changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from posenc.support import strict_json
from posenc.terminal.interruption import interruptible
from posenc.terminal.language import chosen_language
from posenc.terminal.output import echo, echo_json
from posenc.terminal.progress import WORDS, clock, in_lines
from posenc.transformers.say import say

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    from posenc.support.languages import Language
    from posenc.transformers.scores import Method, Text, Windows

SCORES, PAGE = "scores.jsonl", "scores.md"
DTYPES = ("float32", "bfloat16")


class Task(StrEnum):
    perplexity = "perplexity"
    passkey = "passkey"
    needle = "needle"
    keys = "keys"
    variables = "variables"


SAMPLES, RETRIEVALS = 1, 10  # windows of each length: of a text, and with an answer to find
SCORED, COPIED = 512, 128
TITLES = {
    "loss": say("Perplexity of the same {scored} tokens at the end of a window of n tokens"),
    "copied": say("Perplexity of the last {copied} tokens, which repeat the first {copied} of the window"),
}
RETRIEVED = {
    "exact": say("Answers found in a window of n tokens: each token of the answer is the model's first choice"),
    "answer": say("Perplexity of the tokens of the answer"),
}
ABOUT = say("{model} in {dtype} on {text}; windows of each length: {samples}; the model was trained on {trained} tokens.")


def command(
    model: Annotated[
        str, typer.Argument(metavar="FOLDER_OR_GGUF", help="A saved causal model, or a GGUF file.", show_default=False)
    ],
    task: Annotated[Task, typer.Option(help="What is scored.")] = Task.perplexity,
    text: Annotated[
        Path | None,
        typer.Option(help="For perplexity: a text file in UTF-8; windows are of its second half.", show_default=False),
    ] = None,
    lengths: Annotated[str, typer.Option(help="Tokens of a window, separated by commas.")] = "2048,8192",
    extend: Annotated[
        list[str] | None,
        typer.Option(help="A change of positions; once for each, or separated by commas.", show_default=False),
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(
            min=1,
            help=f"Windows of each length; {SAMPLES} for perplexity, {RETRIEVALS} for others if left out.",
            show_default=False,
        ),
    ] = None,
    scored: Annotated[
        int | None,
        typer.Option(min=1, help=f"Tokens of a window that perplexity is of; {SCORED} if left out.", show_default=False),
    ] = None,
    copied: Annotated[
        int | None,
        typer.Option(
            min=1,
            help=f"For perplexity: tokens at the end that repeat the first ones; {COPIED} if left out.",
            show_default=False,
        ),
    ] = None,
    dtype: Annotated[str, typer.Option(help=" or ".join(DTYPES) + ", of the weights.")] = "float32",
    out: Annotated[Path, typer.Option(help=f"Folder for {SCORES} and {PAGE}.")] = Path("posenc-score"),
    as_json: Annotated[bool, typer.Option("--json", help="Print every score as JSON.")] = False,
    lang: Annotated[str, typer.Option(help="en or zh; LC_ALL or LANG decide if left out.", show_default=False)] = "",
) -> None:
    """Score a trained model on longer and longer windows: as it is, and with its positions changed. Nothing is trained.

    --task says what is scored:

    perplexity   of the tokens at the end of a window of --text, the same ones for every length, and of a copied passage,
    the last tokens, which repeat the first ones of the window

    passkey   a number in sentences that repeat

    needle   a number in one sentence among sentences that differ

    keys   many such numbers, each with a name; one is asked for

    variables   a number that two more names are given, one after the other, beside another such chain

    In the last four posenc writes the windows, as plain text without a chat template. An answer is found if each of its
    tokens is the model's first choice. They are after Mohtashami and Jaggi 2023 and RULER 2024.

    The model as it is comes first; --extend adds others:

    linear:F, ntk:F, yarn:F, llama3:F   frequencies for F × the trained length

    dynamic   NTK for each window by its length; dynamic:F as transformers does

    self_extend:F   groups of positions that reach F × the trained length

    dual_chunk, lm_infinite   of the trained length

    nope:N   no position in every N-th layer

    nope, alibi, t5, …   another encoding of posenc list, untrained

    Each score is one line of OUT/scores.jsonl, written at once: the same command goes on where it was stopped, and computes
    what is missing when lengths, changes or samples are added. bfloat16 is several times faster where the processor has it.

    [bold]Examples[/bold]

    posenc lab score my-model/ --text book.txt --lengths 8192,16384 --extend yarn:4

    posenc lab score model.gguf --task passkey --lengths 2048,8192,16384 --extend yarn:4,ntk:4,dynamic
    """
    from posenc.transformers import scores

    language = chosen_language(lang)
    if dtype not in DTYPES:
        raise typer.BadParameter(f"expected {' or '.join(DTYPES)}, got {dtype!r}", param_hint="--dtype")
    token_counts = {"--scored": scored, "--copied": copied}
    if task is Task.perplexity and text is None:
        raise typer.BadParameter("perplexity needs --text FILE", param_hint="--text")
    for option, value in {"--text": text, **token_counts}.items():
        if task is not Task.perplexity and value is not None:
            raise typer.BadParameter(f"is for --task perplexity; {task} writes its own windows", param_hint=option)
    steps, methods = _lengths(lengths), _methods(extend or [])
    count = samples or (RETRIEVALS if text is None else SAMPLES)
    with interruptible("finished scores are kept; the same command continues") as look:
        from rich.console import Console

        kept = stored(model)
        tokenizer = tokenizer_of(model, kept)
        windows: Windows
        about: dict[str, Any] = {"model": Path(model).resolve().name, "dtype": dtype, "samples": count}
        if text is None:
            from posenc.transformers.retrieval import Retrieval

            windows, titles = Retrieval(task.value, tokenizer, count), RETRIEVED
            about |= {"text": task.value}
        else:
            windows, titles = read(text, tokenizer, count, scored or SCORED, copied or COPIED), TITLES
            about |= {"text": text.name, "scored": windows.scored, "copied": windows.copied}
        windows.check(steps)
        loaded = load(kept, dtype)
        about["trained"] = scores.trained_length(loaded)
        with shown(Console(stderr=True, highlight=False, emoji=False)) as tell:
            rows = scores.run(loaded, windows, methods, steps, out / SCORES, tell, look)
    heading = about | {"trained": about["trained"] or "?"}
    tables = {of: scores.counted(rows) if of == "exact" else scores.table(rows, of) for of in titles}
    page = markdown(tables, heading, language)
    (out / PAGE).write_text(page, encoding="utf-8")
    if as_json:
        echo_json({**about, "task": task.value, "scores": [vars(row) for row in rows]})
    else:
        echo(page)
        echo(f"posenc: {out / SCORES}, {out / PAGE}", err=True)


def _lengths(words: str) -> list[int]:
    try:
        lengths = sorted({int(word) for word in words.split(",")})
    except ValueError:
        lengths = [0]
    if lengths[0] < 1:
        raise typer.BadParameter(f"expected numbers above 0 such as 2048,8192, got {words!r}", param_hint="--lengths")
    return lengths


def _methods(words: list[str]) -> list[Method]:
    from posenc.transformers.scores import PLAIN, Method

    try:
        methods = [Method.parse(word.strip()) for listed_word in words for word in listed_word.split(",")]
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--extend") from None
    return list(dict.fromkeys([Method(PLAIN), *methods]))


class Stored(NamedTuple):
    """What a folder or a GGUF file is loaded by. `attached`: posenc has attached something to the model of the folder."""

    folder: Path
    file: dict[str, str]
    attached: bool


def stored(model: str) -> Stored:
    """Raises FileNotFoundError where there is no such file or folder, ModuleNotFoundError for a GGUF file without gguf."""
    path = Path(model)
    if not path.exists():
        raise FileNotFoundError(f"{model}: there is no such folder or file")
    import transformers

    from posenc.configs.attached import KEY
    from posenc.configs.gguf import is_gguf

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    if not path.is_dir():
        if not is_gguf(path):
            raise ValueError(f"{model}: expected a folder that save_pretrained wrote, or a GGUF file")
        if find_spec("gguf") is None:
            raise ModuleNotFoundError(f"{model}: transformers reads GGUF files with the package gguf: pip install gguf")
        return Stored(path.parent, {"gguf_file": path.name}, False)
    if not (path / "config.json").is_file():
        raise ValueError(f"{model}: holds no config.json; expected a folder that save_pretrained wrote, or a GGUF file")
    return Stored(path, {}, KEY in strict_json.read(path / "config.json"))


def tokenizer_of(model: str, kept: Stored) -> Any:
    """The tokenizer, read before the weights, so that lengths can be refused at once. Nothing is looked for on a hub."""
    import transformers

    from posenc.transformers.loaded import own_config

    options: dict[str, Any] = {**kept.file}
    if kept.attached:  # the folder's own model type is known to its remote code alone
        options["config"] = own_config(kept.folder)
    try:
        return transformers.AutoTokenizer.from_pretrained(kept.folder, **options)
    except (OSError, ValueError) as error:
        raise ValueError(f"{model}: has no tokenizer that transformers can load; save it beside the model") from error


def load(kept: Stored, dtype: str) -> Any:
    """The model, with what posenc has attached to it."""
    import torch
    import transformers

    from posenc.transformers.loaded import from_pretrained

    read_model: Any = from_pretrained if kept.attached else transformers.AutoModelForCausalLM.from_pretrained
    return read_model(kept.folder, dtype=getattr(torch, dtype), local_files_only=True, **kept.file).eval()


def read(path: Path, tokenizer: Any, samples: int, scored: int, copied: int) -> Text:
    """The tokens of a text file."""
    import torch

    from posenc.transformers.scores import Text

    try:
        written = path.read_text("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"--text: {path} is not text in UTF-8") from None
    tokens = torch.tensor(tokenizer(written, add_special_tokens=False, verbose=False).input_ids)
    start = tuple(token for token in tokenizer("").input_ids if token == tokenizer.bos_token_id)
    return Text(tokens, start, samples, scored, copied)


@contextmanager
def shown(console: Console) -> Iterator[Callable[[str, float], None]]:
    """A progress bar with the time left; without a terminal, one line for each pass."""
    if not console.is_terminal:
        line = in_lines(console, "lab score")
        yield lambda what, share: line(what, share, 0.0)
        return
    from rich.progress import BarColumn, Progress, TextColumn

    with Progress(BarColumn(), TextColumn(WORDS), console=console, transient=True) as bar:
        task = bar.add_task("", total=1.0, left="")

        def update(what: str, share: float) -> None:
            spent = bar.tasks[0].elapsed or 0.0
            bar.update(task, description=what, completed=share, left=clock(spent / share - spent) if share else "")

        yield update


def markdown(tables: Mapping[str, Any], about: Mapping[str, Any], language: Language) -> str:
    """The tables by method and length, one after the other; a cell that was not computed is empty."""
    titles = {**TITLES, **RETRIEVED}
    parts = [ABOUT.filled(**about).in_language(language)]
    for of, rows in tables.items():
        lengths = sorted({n for row in rows.values() for n in row})
        head = f"| | {' | '.join(map(str, lengths))} |\n|---|{'--:|' * len(lengths)}"
        cells = [[written(row[n]) if n in row else "" for n in lengths] for row in rows.values()]
        body = [f"| {' | '.join([method, *row])} |" for method, row in zip(rows, cells, strict=True)]
        parts += [titles[of].filled(**about).in_language(language), "\n".join([head, *body])]
    return "\n\n".join(parts) + "\n"


def written(cell: float | str | None) -> str:
    if isinstance(cell, str):
        return cell
    if cell is None:
        return "∞"
    return f"{cell:.1f}" if cell < 100 else f"{cell:.0f}" if cell < 1e6 else f"{cell:.0e}"
