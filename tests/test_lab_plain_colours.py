"""The separate pictures have their colours written out: programs without CSS variables would draw them in black."""

from __future__ import annotations

from importlib.resources import files

from posenc.lab.report.plain_colours import plain_colours
from posenc.lab.report.style import DARK, LIGHT, sheet

STYLE = """
:root { color-scheme: light dark; --ink: #000000; --sheet: #ffffff; }
@media (prefers-color-scheme: dark) { :root { --ink: #eeeeee; --sheet: #111111; } }
svg .curve { fill: none; stroke: var(--k); }
svg .name { fill: color-mix(in srgb, var(--k, var(--ink)) 75%, var(--ink)); }
svg .plain { stroke-width: 2; }
.blue { --k: #0000ff; } .red { --k: #ff0000; }
@media (prefers-color-scheme: dark) { .blue { --k: #8080ff; } .red { --k: #ff0000; } }
"""


def test_colours_are_written_out() -> None:
    light, dark = plain_colours(STYLE).split("@media (prefers-color-scheme: dark) {")
    assert light.splitlines() == [
        ":root { color-scheme: light dark; }",
        ".blue .curve { fill: none; stroke: #0000ff; }",
        ".red .curve { fill: none; stroke: #ff0000; }",
        ".blue .name { fill: #0000bf; }",
        ".red .name { fill: #bf0000; }",
        "svg .name { fill: #000000; }",
        "svg .plain { stroke-width: 2; }",
    ]
    assert dark.split("} ")[0] == " .blue .curve { fill: none; stroke: #8080ff; "  # red is the same by night
    assert ".red .curve" not in dark
    assert "svg .name { fill: #eeeeee; }" in dark


def test_no_variable_is_left_in_the_styles_of_charts() -> None:
    style = files("posenc.lab.report").joinpath("charts.css").read_text("utf-8") + sheet()
    written = plain_colours(style)
    assert "--" not in written
    assert "color-mix" not in written
    for name in LIGHT:
        light, dark = written.split("@media")
        assert f".{name} .dot {{ fill: {LIGHT[name]}; }}" in light
        assert f".{name} .dot {{ fill: {DARK[name]}; }}" in dark
