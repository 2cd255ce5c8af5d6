"""Builds docs/ as a site: both languages, searchable, formulas and pictures and all else from the site itself.

    python docs/site/build.py            build/site/html; index.html opens without a server
    python docs/site/build.py --pages    only build/site/pages and build/site/mkdocs.yml, which mkdocs builds from

Pages are copied to pages/en and pages/zh; those of the catalogue are made by the package. Links are rewritten: to a page's
copy, from a Python file to the page of its module, from any other file of the repository to its text under files/.
Needs the extra site, and npm for KaTeX's files.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

import yaml
from catalogue_pages import catalogue, methods
from choose_page import choose_page
from costs_page import costs_page
from entry_page import page
from found import found
from live_page import FILE, TITLES, live_page
from share_pages import write_cards
from topics import explorer, guide

from posenc.catalogue.description import describe
from posenc.catalogue.entry import KINDS, SHORT
from posenc.catalogue.lookup import ENTRIES
from posenc.explorer.export import encoded, exported
from posenc.support.languages import Language, Words

HERE = Path(__file__).parent
DOCS, ROOT = HERE.parent, HERE.parents[1]
OUT = ROOT / "build" / "site"
SUFFIX: dict[Language, str] = {"en": ".md", "zh": ".zh-CN.md"}
OUTSIDE = {"README": "index", "CONTRIBUTING": "contributing"}  # pages that are not in docs, and where they go
IMAGE = re.compile(r"(!)\[([^\]]*)\]\(([^()\s]+)\)")
LINK = re.compile(r"(?<!!)()\[((?:!\[[^\]]*\]\([^)]*\)|[^\[\]])*)\]\(([^()\s]+)\)")  # its words may be a picture
SLUGIFY = "!!python/name:markdown.extensions.toc.slugify_unicode"
HIDDEN = re.compile(r"(^|\.)_|\.(families|commands)(\.|$)|posenc\.(cli|explorer|kernels|lab|learn|support|terminal)(\.|$)")

Nav = list[dict[str, "str | Nav"]]


@cache
def written(language: Language) -> dict[Path, str]:
    """The pages that the package tells, as if they were files of docs: their links start there."""
    rows = [describe(entry) for entry in ENTRIES]
    made = {
        "catalogue": catalogue(rows, language),
        "methods": methods(language),
        "costs": costs_page(language),
        "choose": choose_page(language),
        "live": live_page(language),
        **{f"encodings/{row['name']}": page(row, language) for row in rows},
    }
    return {DOCS / f"{name}.md": text for name, text in made.items()}


@cache
def pages(language: Language) -> dict[Path, PurePosixPath]:
    """Every page of a language, and where it goes."""
    suffix = SUFFIX[language]
    found = {ROOT / f"{name}{suffix}": PurePosixPath(f"{place}.md") for name, place in OUTSIDE.items()}
    found |= {file: PurePosixPath(file.relative_to(DOCS)) for file in written(language)}
    for file in sorted(DOCS.rglob("*.md")):
        if HERE in file.parents or file.name.endswith(".zh-CN.md") != (language == "zh"):
            continue
        place = file.relative_to(DOCS).as_posix()
        found[file] = PurePosixPath(place.removesuffix(suffix) + ".md")
    return found


def text_of(file: Path, language: Language) -> str:
    return written(language).get(file) or file.read_text(encoding="utf-8")


@cache
def edited() -> dict[Path, PurePosixPath]:
    """The files in which people edit the pages of entries, in both languages, and where the site has what they say."""
    return {
        file: PurePosixPath(f"encodings/{entry.name}.md")
        for entry in ENTRIES
        for file in (entry.page_file, entry.page_file.with_suffix(".zh.md"))
    }


@cache
def modules() -> list[str]:
    """The modules of the API reference."""
    found = []
    for file in sorted((ROOT / "src" / "posenc").rglob("*.py")):
        name = ".".join(file.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")
        if name != "posenc" and not HIDDEN.search(name):
            found.append(name)
    return found


def navigation(language: Language) -> Nav:
    """The tree of all pages: the guide, the encodings by kind, the reference."""
    zh = language == "zh"
    placed = {place.as_posix(): file for file, place in pages(language).items()}
    encodings: Nav = [{("目录" if zh else "Catalogue"): "catalogue.md"}]
    for kind in KINDS:
        rows: Nav = [
            {entry.label.zh if zh else entry.title: f"encodings/{entry.name}.md"} for entry in ENTRIES if entry.kind == kind
        ]
        encodings.append({SHORT[kind].in_language(language).capitalize(): rows})
    known = {"index.md", "live.md", "catalogue.md", *(f"encodings/{entry.name}.md" for entry in ENTRIES)}
    rest: Nav = [{title(text_of(placed[place], language)): place} for place in sorted(placed) if place not in known]
    home: Nav = [{("首页" if zh else "Home"): "index.md"}, {TITLES[language]: "live.md"}]
    reference: Nav = [{name: f"api/{name}.{'html' if zh else 'md'}"} for name in modules()[: 1 if zh else None]]
    parts = (("Guide", "指南", rest), ("Encodings", "编码", encodings), ("Reference", "参考", reference))
    return [*home, *({Words(english, chinese).in_language(language): below} for english, chinese, below in parts)]


def translated() -> dict[PurePosixPath, tuple[str, str]]:
    """The English and the Chinese text of every page of the guide."""
    english, chinese = ({place: text_of(file, one) for file, place in pages(one).items()} for one in SUFFIX)
    both = [place for place in english if place in chinese and place.parts[0] != "encodings" and place.stem != "live"]
    return {place: (english[place], chinese[place]) for place in both}


def title(text: str) -> str:
    """The first heading of a page."""
    found = re.search(r"^# (.*)$", text, re.MULTILINE)
    if found is None:
        raise ValueError(f"a page has no heading: {text[:80]!r}")
    return found[1]


@cache
def only_in_the_other(language: Language) -> set[Path]:
    """Pages that are written in the other language."""
    everywhere = {path.resolve() for one in SUFFIX for path in pages(one)}
    return everywhere - {path.resolve() for path in pages(language)}


def rewritten(text: str, file: Path, language: Language, copied: set[Path]) -> str:
    """A page with its links as the site has them. Files that it links to are added to `copied`."""
    places = pages(language) | edited()
    here = places[file].parent
    twins = only_in_the_other(language)

    def to(place: PurePosixPath) -> str:
        up = [".."] * len(here.parts)
        return "/".join([*up, place.as_posix()])

    def link(match: re.Match[str]) -> str:
        mark, words, address = match.groups()
        path, _, anchor = address.partition("#")
        if not path or "://" in path or path.startswith("mailto:"):
            return match[0]
        target = (file.parent / path).resolve()
        after = f"#{anchor}" if anchor else ""
        if target in places:
            return f"{mark}[{words}]({to(places[target])}{after})"
        if target in twins:  # the theme's own menu leads to the other language
            return words
        if target.suffix == ".py" and (ROOT / "src") in target.parents:
            name = ".".join(target.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")
            if name in modules() and language == "zh":  # the reference is there once, in English
                return f'<a href="../{to(PurePosixPath(f"api/{name}.html"))}">{words}</a>'
            if name in modules():
                return f"{mark}[{words}]({to(PurePosixPath(f'api/{name}.md'))})"
        if DOCS in target.parents and target.is_file():
            copied.add(target)
            return f"{mark}[{words}]({to(PurePosixPath(target.relative_to(DOCS).as_posix()))}{after})"
        if target.is_file():
            copied.add(target)
            return f"{mark}[{words}]({to(elsewhere(target))})"
        return words

    text = LINK.sub(link, IMAGE.sub(link, text))
    return re.sub(r"^(English|\[English\]\([^)]*\)) · (中文|\[中文\]\([^)]*\))( · )?", "", text, flags=re.MULTILINE)


def elsewhere(file: Path) -> PurePosixPath:
    """Where a file of the repository goes; texts that are no pictures end with .txt, so that a browser shows them."""
    place = "files" / PurePosixPath(file.relative_to(ROOT).as_posix())
    return place if file.suffix in (".png", ".svg", ".webp", ".html") else place.with_name(place.name + ".txt")


def stage() -> None:
    """Writes pages/ and mkdocs.yml."""
    shutil.rmtree(OUT, ignore_errors=True)
    copied: set[Path] = set()
    for language in SUFFIX:
        for file, place in pages(language).items():
            text = rewritten(text_of(file, language), file, language, copied)
            write(OUT / "pages" / language / place, text)
    for name in modules():
        write(OUT / "pages" / "en" / "api" / f"{name}.md", f"::: {name}\n")
    for file in copied:
        inside = DOCS in file.parents
        out = OUT / "pages" / "en" / (file.relative_to(DOCS) if inside else elsewhere(file))
        out.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, out)
    for file in (HERE / "theme").iterdir():
        write(OUT / "pages" / "en" / "assets" / file.name, file.read_text(encoding="utf-8"))
    write(OUT / "pages" / "en" / "assets" / "index.js", found([*explorer(), *guide(translated())]))
    settings = yaml.safe_load((HERE / "mkdocs.yml").read_text(encoding="utf-8"))
    write_cards(OUT / "pages" / "en" / "share", settings.get("site_url", ""))
    settings["hooks"] = [str(HERE / "hooks.py")]
    settings["nav"] = navigation("en")
    for plugin in settings["plugins"]:
        if "i18n" in plugin:
            plugin["i18n"]["languages"][1]["nav"] = navigation("zh")
        if "mkdocstrings" in plugin:
            python = plugin["mkdocstrings"]["handlers"]["python"]
            python["paths"] = [str(ROOT / "src")]
            python["options"]["extensions"] = [str(HERE / "docstrings.py")]
    text = yaml.safe_dump(settings, allow_unicode=True, sort_keys=False)
    write(OUT / "mkdocs.yml", text.replace("slugify: UNICODE", f"slugify: {SLUGIFY}"))


def assets() -> None:
    """The explorer as one file; as npm installed them, KaTeX's files and the worker that searches without a server."""
    installed = HERE / "node_modules"
    if not installed.is_dir():
        subprocess.run(["npm", "--prefix", str(HERE), "ci", "--silent"], check=True)
    (OUT / "pages" / "en" / FILE).write_bytes(encoded(exported()))
    out = OUT / "pages" / "en" / "assets"
    shutil.copytree(installed / "katex" / "dist" / "fonts", out / "katex" / "fonts")
    for name in ("katex.min.js", "katex.min.css"):
        shutil.copyfile(installed / "katex" / "dist" / name, out / "katex" / name)
    shutil.copyfile(installed / "iframe-worker" / "shim" / "index.js", out / "iframe-worker.js")


def use_own_worker() -> None:
    """The theme loads the worker from a server of others; here each page loads the copy of the site."""
    for file in (OUT / "html").rglob("*.html"):
        if file.parts[-2:] == PurePosixPath(FILE).parts:  # the explorer is no page of the theme
            continue
        own = "../" * (len(file.relative_to(OUT / "html").parts) - 1) + "assets/iframe-worker.js"
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace("https://unpkg.com/iframe-worker/shim", own), encoding="utf-8")


def weigh_search() -> None:
    """One search over both languages: pages of the reader's language first, then those of the other, then the reference.

    search/search_index.{json,js}      read by assets/javascripts/bundle.*.js
    zh/search/search_index.{json,js}   read by zh/bundle.*.js, a copy with that address
    """
    html = OUT / "html"
    index = json.loads((html / "search" / "search_index.json").read_text(encoding="utf-8"))
    for language in ("en", "zh"):
        docs = [weighed(page, language) for page in index["docs"]]
        if language == "zh":  # addresses start at zh/
            docs = [{**page, "location": ("../" + page["location"]).replace("../zh/", "")} for page in docs]
        text = json.dumps({**index, "docs": docs}, ensure_ascii=False, separators=(",", ":"))
        folder = html / ("zh" if language == "zh" else "") / "search"
        write(folder / "search_index.json", text)
        write(folder / "search_index.js", f"var __index = {text}")
    (bundle,) = (html / "assets" / "javascripts").glob("bundle.*.js")
    write(
        html / "zh" / bundle.name,
        bundle.read_text(encoding="utf-8").replace("search/search_index", "zh/search/search_index"),
    )
    for file in (html / "zh").rglob("*.html"):
        text = file.read_text(encoding="utf-8")
        write(file, text.replace(f"assets/javascripts/{bundle.name}", f"zh/{bundle.name}"))


def weighed(page: dict[str, Any], language: Language) -> dict[str, Any]:
    """A part of a page as the search has it. Of the reference the beginning: names are looked for there."""
    if page["location"].startswith("api/"):
        return {**page, "text": page["text"][:120], "boost": 0.001}
    own = page["location"].startswith("zh/") == (language == "zh")
    return {**page, "boost": 1.0 if own else 0.03}


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def main() -> int:
    begun = time.perf_counter()
    stage()
    if "--pages" in sys.argv[1:]:
        return 0
    assets()
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--config-file", str(OUT / "mkdocs.yml")], check=False
    )
    if done.returncode == 0:
        use_own_worker()
        weigh_search()
        count = len(list((OUT / "html").rglob("*.html")))
        print(f"{count} pages in {time.perf_counter() - begun:.0f} s: {(OUT / 'html' / 'index.html').relative_to(ROOT)}")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
