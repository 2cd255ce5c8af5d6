"""`posenc inspect`: how a model's config.json encodes position, and what happens beyond its training length."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from posenc.terminal.language import chosen_language
from posenc.terminal.output import echo, echo_json

if TYPE_CHECKING:
    from posenc.configs import PositionSpec
    from posenc.configs.report.extension import Extension
    from posenc.support.languages import Language

T = TypeVar("T")
OF_LENGTH: dict[str, Any] = {"min": 1, "max": 2**63 - 1, "show_default": False}
METHODS = "yarn, ntk, linear, llama3 or longrope; the one that fits by default."
SERVE = "Only the command for vllm, sglang, llama.cpp or transformers: at the safe length, --length or --extend-to."
PROGRAMS = {name.lower(): name for name in ("vLLM", "SGLang", "llama.cpp", "transformers")}


def command(
    configs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="CONFIG…",
            help="A config.json, a folder with one, a GGUF file, or - for standard input. Several: one table.",
            show_default=False,
        ),
    ] = None,
    length: Annotated[int | None, typer.Option(**OF_LENGTH, help="What happens at this length.")] = None,
    extend_to: Annotated[int | None, typer.Option(**OF_LENGTH, help="New settings for this length.")] = None,
    method: Annotated[str, typer.Option(help=METHODS, show_default=False)] = "",
    serve: Annotated[str, typer.Option(help=SERVE, show_default=False)] = "",
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Also angles, errors, layouts, what each encoding does.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Everything as JSON.")] = False,
    out: Annotated[Path | None, typer.Option(help="New folder for report, fragments, plot.", show_default=False)] = None,
    picture: Annotated[
        Path | None, typer.Option(help="Wavelengths against the lengths as .png, .svg or .pdf.", show_default=False)
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file of --picture if it exists.")] = False,
    weights: Annotated[Path | None, typer.Option(help="Safetensors: measures learned tables.", show_default=False)] = None,
    families: Annotated[bool, typer.Option("--families", help="List every known model type and its reader.")] = False,
    lang: Annotated[str, typer.Option(help="en or zh; LC_ALL or LANG decide if left out.", show_default=False)] = "",
) -> None:
    """How a model encodes position: its usable length, every layer, what the configuration gets wrong.

    Every model family of transformers 5.23 is supported, and the best-known families of remote code. Only the configuration
    is read. The exit code is 1 if a finding is an error, or a file cannot be read; the others are shown nevertheless.

    [bold]Examples[/bold]

    posenc inspect my-model/

    posenc inspect config.json --length 131072

    posenc inspect config.json --extend-to 131072 --method yarn --out longer/

    posenc inspect my-model/ --serve vllm

    posenc inspect llama/ qwen/ gemma.gguf

    cat config.json | posenc inspect - --json
    """
    if families:
        _print_families(as_json)
        return
    if not configs:
        raise typer.BadParameter("missing; give a config.json, a folder with one, or -", param_hint="CONFIG")
    from posenc.configs.report.extension_methods import METHODS as KNOWN

    language = chosen_language(lang)
    if method and (method not in KNOWN or extend_to is None):
        known = f"expected one of {', '.join(KNOWN)}, together with --extend-to"
        raise typer.BadParameter(f"{known}; got {method!r}", param_hint="--method")
    if serve and serve.lower() not in PROGRAMS:
        raise typer.BadParameter(f"expected one of {', '.join(PROGRAMS)}; got {serve!r}", param_hint="--serve")
    if out is not None and out.exists():
        raise FileExistsError(f"--out {out}: exists; give a new folder")
    if len(configs) > 1:
        single_only = {"--extend-to": extend_to, "--out": out, "--weights": weights, "--serve": serve or None}
        for option, value in single_only.items():
            if value is not None:
                raise typer.BadParameter(f"takes one model, got {len(configs)}", param_hint=option)
        _several(configs, length, as_json, language, picture, force)
        return
    if picture is not None:
        _check_free(picture, force)
    data_of_file, spec = read(configs[0])
    from posenc.configs.report.report import report

    data = report(spec, length, language)
    extensions = _extensions(data_of_file, spec, extend_to, (method,) if method else KNOWN)
    if serve:
        echo(_serving(PROGRAMS[serve.lower()], configs[0], spec, length, extensions))
        _exit([data])
        return
    if extensions:
        from posenc.configs.report.runtimes import runtimes

        data["extensions"] = [
            {
                "method": e.method,
                "factor": e.factor,
                "fragment": e.fragment,
                "note": e.note.in_language(language),
                "runtimes": [
                    {
                        "name": runtime.name,
                        "version": runtime.version,
                        "date": runtime.date,
                        "command": runtime.command,
                        "ignores": runtime.ignores.in_language(language),
                    }
                    for runtime in runtimes(e)
                ],
                "frequencies": list(e.after),
                "cos_sin_scale": e.after.cos_sin_scale,
            }
            for e in extensions
        ]
    if weights is not None:
        from posenc.configs.report.tables import measured

        data["weights"] = measured(spec, weights)
    if out is not None:
        from posenc.configs.report.folder import write

        write(out, data, extensions, language)
        echo(f"wrote {out}", err=as_json)
    if picture is not None:
        _draw(picture, data, length, extensions)
    if as_json:
        echo_json(data)
    else:
        from rich.console import Console

        from posenc.configs.report.page import Page

        Page(Console(highlight=False, emoji=False), language, verbose=verbose).show(data, extensions)
    _exit([data])


def _serving(program: str, path: str, spec: PositionSpec, length: int | None, extensions: list[Extension]) -> str:
    """The command for one program, alone. Raises ValueError where there is none, or where the length is not safe."""
    from posenc.configs.report.extension import fitting
    from posenc.configs.report.limit import limit
    from posenc.configs.report.report import main_part
    from posenc.configs.report.runtimes import of_model, runtimes, serving

    if extensions:
        chosen = fitting(extensions)
        found = [(run.command, run.ignores) for run in (runtimes(chosen) if chosen else []) if run.name == program]
        command, why = found[0] if found else ("", extensions[0].note)
    else:
        _, part = main_part(spec) or ("", spec)
        bound = limit(part)
        if length is not None and bound.fails is not None and length > bound.fails:
            raise ValueError(
                f"--serve {program}: {bound.why.en} beyond {bound.fails}; --extend-to {length} has settings for it"
            )
        command, why = serving(program, replace(part, remote=spec.remote), length or bound.or_only or bound.usable)
    if not command:
        raise ValueError(f"--serve {program}: {why.en}")
    return of_model(command, path)


def _exit(reports: list[dict[str, Any]], failed: bool = False) -> None:
    """Ends with exit code 1 if a file could not be read or a finding is an error."""
    if failed or any(remark["grade"] == "error" for data in reports for remark in data["remarks"]):
        raise typer.Exit(1)


def each(names: list[str], read: Callable[[str], T]) -> list[T | str]:
    """What `read` makes of each file, or why it cannot be read, which is also printed: the others are read nevertheless."""
    results: list[T | str] = []
    for name in names:
        try:
            results.append(read(name))
        except (ValueError, OSError) as error:
            echo(f"posenc: {error}", err=True)
            results.append(str(error))
    return results


def read(config: str) -> tuple[dict[str, Any], PositionSpec]:
    """The file as data, and what it says about positions."""
    from posenc.configs import gguf, source, spec_of

    if gguf.is_gguf(Path(config)):
        return {}, spec_of(config)
    data = source.load(config)
    return data, spec_of(data if config == "-" else config)


def _draw(path: Path, data: dict[str, Any], length: int | None, extensions: list[Extension]) -> None:
    """Saves the picture of one model. Raises ValueError for a model without rotary frequencies."""
    from posenc.configs.report.folder import picture
    from posenc.pictures.plots.figures import save

    drawn = picture(data, extensions, length)
    if drawn is None:
        raise ValueError(f"--picture {path}: {data['family']} has no rotary frequencies to draw")
    save(drawn, path)
    echo(f"wrote {path}", err=True)


def _named(path: Path) -> str:
    """What a model is called in the name of its picture: its folder, or its file."""
    path = path.resolve().parent if path.name == "config.json" else path
    return path.resolve().name if path.is_dir() else path.stem


def _check_free(picture: Path, force: bool) -> None:
    if picture.exists() and not force:
        raise FileExistsError(f"--picture {picture}: exists; --force replaces it")


def _several(
    configs: list[str], length: int | None, as_json: bool, language: Language, picture: Path | None, force: bool
) -> None:
    """One table of all models, or a JSON list of their reports; of a file that cannot be read, the reason."""
    if configs.count("-") > 1:
        raise typer.BadParameter("only one of them can be standard input", param_hint="CONFIG")
    from posenc.configs.report.report import report

    drawn: Counter[str] = Counter()  # pictures of a name

    def reported(config: str) -> dict[str, Any]:
        data = report(read(config)[1], length, language)
        if picture is not None:
            name = _named(Path(config))
            drawn[name] += 1
            number = f"-{drawn[name]}" if drawn[name] > 1 else ""
            path = picture.with_name(f"{picture.stem}-{name}{number}{picture.suffix}")
            _check_free(path, force)
            _draw(path, data, length, [])
        return data

    results = list(zip(configs, each(configs, reported), strict=True))
    reports = {config: data for config, data in results if not isinstance(data, str)}
    if as_json:
        listed = [{"config": config, "error": data} if isinstance(data, str) else data for config, data in results]
        echo_json(listed)
    elif reports:
        from rich.console import Console

        from posenc.configs.report.side_by_side import show

        show(Console(highlight=False, emoji=False), reports, language)
    _exit(list(reports.values()), failed=any(isinstance(data, str) for _, data in results))


def _print_families(as_json: bool) -> None:
    from posenc.configs.family import reader_paths

    paths = reader_paths()
    if as_json:
        echo_json(paths, indent=1)
    else:
        width = max(map(len, paths))
        echo("\n".join(f"{name:{width}}  {path}" for name, path in paths.items()))


def _extensions(
    config: dict[str, Any], spec: PositionSpec, length: int | None, methods: tuple[str, ...]
) -> list[Extension]:
    """Extensions of the part of the model that reads text; fragments are nested as in the file."""
    if length is None:
        return []
    from posenc.configs import attached
    from posenc.configs.report.extension import extend, extensible

    if not config:
        raise ValueError(
            "--extend-to: a GGUF file is not changed; llama.cpp takes the settings: give the config.json it is from"
        )
    if attached.KEY in config:
        raise ValueError(
            "--extend-to: posenc has attached encodings in this folder, which settings do not change; load it with "
            "posenc.transformers.from_pretrained and attach others"
        )
    path, part = extensible(spec)
    return extend(config, part, length, methods, path)
