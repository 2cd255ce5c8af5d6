"""`posenc lab score`: a trained model on longer and longer text, as it is and with its positions changed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from posenc.terminal.interruption import interruptible
from posenc.terminal.language import chosen_language
from posenc.terminal.progress import WORDS, clock, in_lines
from posenc.transformers.say import say

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    from posenc.support.languages import Language
    from posenc.transformers.scores import Method, Text

SCORES, PAGE = "scores.jsonl", "scores.md"
DTYPES = ("float32", "bfloat16")
TITLES = {
    "loss": say("Perplexity of the same {scored} tokens at the end of a window of n tokens"),
    "copied": say("Perplexity of the last {copied} tokens, which repeat the first {copied} of the window"),
}
ABOUT = say("{model} in {dtype} on {text}; windows of each length: {samples}; the model was trained on {trained} tokens.")


def command(
    model: Annotated[
        str, typer.Argument(metavar="FOLDER_OR_GGUF", help="A saved causal model, or a GGUF file.", show_default=False)
    ],
    text: Annotated[Path, typer.Option(help="A text file in UTF-8; windows are of its second half.", show_default=False)],
    lengths: Annotated[str, typer.Option(help="Tokens of a window, separated by commas.")] = "2048,8192",
    extend: Annotated[
        list[str] | None,
        typer.Option(help="A change of positions; once for each, or separated by commas.", show_default=False),
    ] = None,
    samples: Annotated[int, typer.Option(min=1, help="Windows of each length.")] = 1,
    scored: Annotated[int, typer.Option(min=1, help="Tokens of a window that perplexity is of.")] = 512,
    copied: Annotated[int, typer.Option(min=1, help="Tokens at the end that repeat the first ones.")] = 128,
    dtype: Annotated[str, typer.Option(help=" or ".join(DTYPES) + ", of the weights.")] = "float32",
    out: Annotated[Path, typer.Option(help=f"Folder for {SCORES} and {PAGE}.")] = Path("posenc-score"),
    as_json: Annotated[bool, typer.Option("--json", help="Print every score as JSON.")] = False,
    lang: Annotated[str, typer.Option(help="en or zh; LC_ALL or LANG decide if left out.", show_default=False)] = "",
) -> None:
    """Score a trained model on longer and longer windows of a text: as it is, and with its positions changed.

    Nothing is trained. One pass over each window gives two perplexities: that of tokens at its end, the same ones for every
    length, and that of a copied passage, the last tokens, which repeat the first ones of the window. The model as it is
    comes first; --extend adds others:

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

    posenc lab score model.gguf --text book.txt --extend linear:4,ntk:4,dynamic
    """
    from posenc.transformers import scores

    language = chosen_language(lang)
    if dtype not in DTYPES:
        raise typer.BadParameter(f"expected {' or '.join(DTYPES)}, got {dtype!r}", param_hint="--dtype")
    windows, methods = _lengths(lengths), _methods(extend or [])
    with interruptible("finished scores are kept; the same command continues") as look:
        from rich.console import Console

        loaded, tokenizer = load(model, dtype)
        tokens = read(text, tokenizer, samples, scored, copied)
        with shown(Console(stderr=True, highlight=False, emoji=False)) as tell:
            found = scores.run(loaded, tokens, methods, windows, out / SCORES, tell, look)
    about = {
        "model": Path(model).resolve().name,
        "dtype": dtype,
        "text": text.name,
        "samples": samples,
        "trained": scores.trained_length(loaded),
        "scored": scored,
        "copied": copied,
    }
    said = about | {"trained": about["trained"] or "?"}
    page = markdown({of: scores.table(found, of) for of in TITLES}, said, language)
    (out / PAGE).write_text(page, encoding="utf-8")
    if as_json:
        typer.echo(json.dumps({**about, "scores": [vars(one) for one in found]}, allow_nan=False))
    else:
        typer.echo(page)
        typer.echo(f"posenc: {out / SCORES}, {out / PAGE}", err=True)


def _lengths(words: str) -> list[int]:
    try:
        return sorted({int(word) for word in words.split(",")})
    except ValueError:
        raise typer.BadParameter(f"expected numbers such as 2048,8192, got {words!r}", param_hint="--lengths") from None


def _methods(words: list[str]) -> list[Method]:
    from posenc.transformers.scores import PLAIN, Method

    try:
        given = [Method.parse(word.strip()) for one in words for word in one.split(",")]
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--extend") from None
    return list(dict.fromkeys([Method(PLAIN), *given]))


def load(model: str, dtype: str) -> tuple[Any, Any]:
    """The model, with what posenc has attached to it, and its tokenizer. Nothing is looked for on a hub.

    Raises FileNotFoundError where there is no such file or folder, ModuleNotFoundError for a GGUF file without gguf.
    """
    path = Path(model)
    if not path.exists():
        raise FileNotFoundError(f"{model}: there is no such folder or file")
    import torch
    import transformers

    from posenc.configs.attached import KEY
    from posenc.configs.gguf import is_gguf
    from posenc.transformers.loaded import from_pretrained

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    file: dict[str, Any] = {}
    if path.is_dir():
        folder = path
    elif is_gguf(path):
        if find_spec("gguf") is None:
            raise ModuleNotFoundError(f"{model}: transformers reads GGUF files with the package gguf: pip install gguf")
        folder, file = path.parent, {"gguf_file": path.name}
    else:
        raise ValueError(f"{model}: expected a folder that save_pretrained wrote, or a GGUF file")
    options: dict[str, Any] = {"dtype": getattr(torch, dtype), "local_files_only": True, **file}
    config = {} if file else json.loads((folder / "config.json").read_text("utf-8"))
    if KEY in config:  # the folder's own model type is known to its remote code alone
        made: Any = from_pretrained(folder, **options)
        file["config"] = made.config
    else:
        made = transformers.AutoModelForCausalLM.from_pretrained(folder, **options)
    try:
        return made.eval(), transformers.AutoTokenizer.from_pretrained(folder, **file)
    except (OSError, ValueError) as error:
        raise ValueError(f"{model}: has no tokenizer that transformers can load; save it beside the model") from error


def read(path: Path, tokenizer: Any, samples: int, scored: int, copied: int) -> Text:
    """The tokens of a text file."""
    import torch

    from posenc.transformers.scores import Text

    try:
        written = path.read_text("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"--text: {path} is not text in UTF-8") from None
    tokens = torch.tensor(tokenizer(written, add_special_tokens=False, verbose=False).input_ids)
    start = tuple(one for one in tokenizer("").input_ids if one == tokenizer.bos_token_id)
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
    """The tables of perplexity by method and length, one after the other; a cell that was not computed is empty."""
    parts = [ABOUT.filled(**about).in_language(language)]
    for of, rows in tables.items():
        lengths = sorted({n for row in rows.values() for n in row})
        head = f"| | {' | '.join(map(str, lengths))} |\n|---|{'--:|' * len(lengths)}"
        cells = [[written(row[n]) if n in row else "" for n in lengths] for row in rows.values()]
        body = [f"| {' | '.join([method, *row])} |" for method, row in zip(rows, cells, strict=True)]
        parts += [TITLES[of].filled(**about).in_language(language), "\n".join([head, *body])]
    return "\n\n".join(parts) + "\n"


def written(perplexity: float | None) -> str:
    if perplexity is None:
        return "∞"
    return f"{perplexity:.1f}" if perplexity < 100 else f"{perplexity:.0f}" if perplexity < 1e6 else f"{perplexity:.0e}"
