"""A style sheet with its colours written out, for programs that draw SVG and do not know CSS variables.

    :root { --ink: #111; }  .blue { --k: #22c; }        .series.blue .dot { fill: #22c; }
    .dot { fill: var(--k); }  .name { fill: var(--ink); }   ─►   .name { fill: #111; }
    @media (dark) { :root { --ink: #eee; } … }          @media (dark) { .name { fill: #eee; } … }

A browser draws the same picture. resvg, librsvg and Inkscape draw the light one, and without this everything in black.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

DARK = "@media (prefers-color-scheme: dark)"
BLOCK = re.compile(re.escape(DARK) + r"\s*\{((?:[^{}]*\{[^{}]*\})*)\s*\}")
RULE = re.compile(r"([^{}]+)\{([^{}]*)\}")
SET = re.compile(r"(--[\w-]+)\s*:\s*([^;]+);?")
MIX = re.compile(r"color-mix\(in srgb, (#\w{6}) (\d+)%, (#\w{6})\)")
OWN = "--k"  # the colour of a series, set by the class of its colour

Palette = Mapping[str, Mapping[str, str]]  # the variables by the selector that sets them


def plain_colours(style: str) -> str:
    """The rules of `style` without variables, the light ones first and then the dark ones that differ."""
    rules = [(head.strip(), body.strip()) for head, body in RULE.findall(BLOCK.sub("", style))]
    light = _palette(rules)
    dark = _palette([rule for block in BLOCK.findall(style) for rule in RULE.findall(block)])
    bright = list(_resolved(rules, light))
    night = list(_resolved(rules, {head: {**light.get(head, {}), **dark.get(head, {})} for head in light}))
    changed = [rule for rule, before in zip(night, bright, strict=True) if rule != before]
    return "\n".join([*bright, f"{DARK} {{ {' '.join(changed)} }}"]) + "\n"


def _palette(rules: list[tuple[str, str]]) -> dict[str, dict[str, str]]:
    return {head.strip(): variables for head, body in rules if (variables := dict(SET.findall(body)))}


def _resolved(rules: list[tuple[str, str]], palette: Palette) -> Iterator[str]:
    """Every rule with its colours; a rule that reads the colour of a series once for each colour."""
    everywhere = palette.get(":root", {})
    for head, body in rules:
        if not (body := SET.sub("", body).strip()):
            continue
        if f"var({OWN}" in body:
            for colour, variables in palette.items():
                if OWN in variables:
                    selectors = (f"{colour} {selector.strip().removeprefix('svg ')}" for selector in head.split(","))
                    yield f"{', '.join(selectors)} {{ {_written(body, {**everywhere, **variables})} }}"
        if f"var({OWN})" not in body:
            yield f"{head} {{ {_written(body, everywhere)} }}"


def _written(body: str, variables: Mapping[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        return variables.get(match[1], match[2] or "")

    while (replaced := re.sub(r"var\((--[\w-]+)(?:, ((?:[^()]|\([^()]*\))*))?\)", value, body)) != body:
        body = replaced
    return MIX.sub(_mixed, body)


def _mixed(match: re.Match[str]) -> str:
    """color-mix in sRGB: a share of one colour and the rest of another."""
    first, other = (tuple(bytes.fromhex(colour[1:])) for colour in (match[1], match[3]))
    share = int(match[2]) / 100
    return "#" + "".join(f"{round(share * a + (1 - share) * b):02x}" for a, b in zip(first, other, strict=True))
