"""docs/my-code.md: what `posenc check` says of each section's code, and both held against the original's values.

tests/original_code.json has what the originals give; tools/original_code.py makes it.
"""

from __future__ import annotations

import json
import math
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import in_process
import posenc
from posenc.checking.loading import SEAMS

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import original_code as original  # noqa: E402 (the input that the values were made of)

pytestmark = pytest.mark.usefixtures("foreign_code_here")

GOLDEN = json.loads((ROOT / "tests/original_code.json").read_text("utf-8"))
PAGE = "docs/my-code.md"
Block = tuple[str, str]


def sections(page: str) -> dict[str, list[Block]]:
    """Title -> language and text of each block of code."""
    parts = re.split(r"^## (.+)$", (ROOT / page).read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return {
        title: re.findall(r"```(\w+)\n(.*?)```", text, flags=re.DOTALL)
        for title, text in zip(parts[::2], parts[1::2], strict=True)
    }


SECTIONS = sections(PAGE)
CHECKED = [title for title, blocks in SECTIONS.items() if "text" in dict(blocks)]
GRIDS = {"timm: RoPE on a grid": ((32, 32), original.GRID), "diffusers: FLUX": ((16, 56, 56), (1, *original.GRID))}


def before(title: str) -> tuple[str, Any]:
    """The seam and the function of a section's first block."""
    made: dict[str, Any] = {"__name__": "before"}
    exec(compile(SECTIONS[title][0][1], title, "exec"), made)
    (seam,) = (seam for seam in SEAMS if seam in made)
    return seam, made[seam]


@pytest.mark.parametrize("title", CHECKED)
def test_check_ends_with_the_lines_of_the_page(title):
    seam, function = before(title)
    report = posenc.check(**{seam: function}, laws=["the_same_call_gives_the_same"])
    assert "\n".join(report.end()).strip() == dict(SECTIONS[title])["text"].strip()
    assert str(report).endswith(report.python)


def test_the_command_ends_with_them(tmp_path):
    (tmp_path / "turn.py").write_text(SECTIONS["nanochat"][0][1], encoding="utf-8")
    done = in_process.posenc("check", "turn.py", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.rstrip().endswith(dict(SECTIONS["nanochat"])["text"].rstrip())


def close(got: torch.Tensor, title: str, at: list[int] | None = None) -> None:
    """Within the rounding of float32: of the result, and of an angle at each position."""
    wanted = torch.tensor(GOLDEN[title]["out"])
    assert got.shape == wanted.shape
    farthest = torch.tensor(at if at is not None else [8] * len(wanted))[:, None]
    allowed = 2.0**-23 * (4 * wanted.abs().max() + 1.5 * farthest)
    assert ((got - wanted).abs() <= allowed).all(), f"{title}: {((got - wanted).abs() - allowed).max():.2g} beyond"


@pytest.mark.parametrize("title", [title for title in CHECKED if title not in GRIDS and "grid" not in title])
def test_the_code_and_the_lines_give_what_the_original_gives(title):
    at, x = torch.tensor([original.AT]), original.tokens(4, 64)
    seam, function = before(title)
    held = dict(function.named_children()) if isinstance(function, nn.Module) else {}
    for table in held.values():
        table.weight.data.copy_(original.tokens(1024, 64))
    given = x[None, None] if seam == "rotate" else x[None]
    numpy = title == "mlx-lm"
    found = torch.from_numpy(function(given.numpy(), at.numpy())).float() if numpy else function(given, at).detach()
    close(found.view(4, 64), title, original.AT)
    names = {"posenc": posenc, "torch": torch, "positions": at, **held, "q": given, "k": given, "x": given}
    exec(dict(SECTIONS[title])["text"].removeprefix("In posenc:\n"), names)
    close(names["q" if seam == "rotate" else "x"].detach().view(4, 64), title, original.AT)
    for _, code in [block for block in SECTIONS[title][1:] if block[0] == "python"]:
        names |= {"x": x[None, :, None]}
        exec(code, names)
        if "periods" in names:
            a, b = x.double().chunk(2, -1)
            angle = at[0, :, None] / torch.tensor(names["periods"], dtype=torch.float64)
            names["turned"] = torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1)
        close(names["turned"].float().view(4, 64), title, original.AT)


@pytest.mark.parametrize("title", ["timm: RoPE on a grid", "timm: DINOv3", "diffusers: FLUX", "diffusers: Wan"])
def test_grids_turn_as_the_original_turns_them(title):
    rows, width = len(GOLDEN[title]["out"]), len(GOLDEN[title]["out"][0])
    q = original.tokens(rows, width)[None, None]
    names = {"posenc": posenc, "q": q, "k": q}
    exec(SECTIONS[title][-1][1], names)
    close(names["q"][0, 0], title)


@pytest.mark.parametrize("title", GRIDS)
def test_the_code_of_one_axis_is_that_of_the_original(title):
    sizes, grid = GRIDS[title]
    at = torch.cartesian_prod(*map(torch.arange, grid))
    at = torch.cat((torch.zeros(len(GOLDEN[title]["out"]) - len(at), len(grid), dtype=torch.long), at))
    parts = original.tokens(len(at), sum(sizes))[None, None].split(sizes, dim=-1)
    turned = [before(title)[1](part, axis[None]) for part, axis in zip(parts, at.T, strict=True)]
    close(torch.cat(turned, dim=-1)[0, 0], title)


def test_a_resized_grid_is_that_of_timm():
    title = "timm: a learned grid"
    held = SimpleNamespace(weight=original.grid_table())
    names = {"posenc": posenc, "pos_embed": held, "x": torch.zeros(1, 19, 8)}
    exec(SECTIONS[title][-1][1], names)
    close(names["x"][0].detach(), title)


def test_every_original_has_its_section_and_its_release():
    rows = re.findall(r"^\| \[(.+?)\]\(#.+?\) \| .+? \| (.+?) \|$", (ROOT / PAGE).read_text("utf-8"), flags=re.MULTILINE)
    assert [title for title, _ in rows] == list(SECTIONS)
    assert {title: release for title, release in rows if title in GOLDEN} == {t: one["from"] for t, one in GOLDEN.items()}
    assert SECTIONS.keys() - GOLDEN.keys() == {"sentence-transformers"}  # tests/transformers_models has its test
    assert list(original.ROWS) == list(GOLDEN)


def test_both_languages_have_the_same_code():
    chinese = sections(PAGE.replace(".md", ".zh-CN.md"))
    assert list(chinese.values()) == list(SECTIONS.values())


# What is printed, and what is not.


def rotation(*, base=10_000.0, scale=None, magnitude=1.0, reverse=False, turning=None, wrong=0.0):
    def rotate(x, positions):
        n = turning or x.shape[-1]
        speeds = base ** (-torch.arange(0, n, 2, dtype=torch.float64) / n)
        speeds = scale(speeds) if scale else speeds
        angle = positions[:, None, :, None].double() * speeds + wrong * (positions[:, None, :, None] > 20)
        angle = -angle if reverse else angle
        a, b = x[..., : n // 2].double(), x[..., n // 2 : n].double()
        turned = torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1)
        return torch.cat([magnitude * turned, x[..., n:].double()], -1).to(x.dtype)

    return rotate


def python_of(**implementation: Any) -> str:
    return posenc.check(**implementation, laws=["the_same_call_gives_the_same"]).python


def test_scaled_frequencies_are_printed_as_their_function():
    plain = posenc.frequencies.rotary(64, 10_000.0)
    yarn = torch.tensor(posenc.frequencies.yarn(plain, 4.0, 4096).values, dtype=torch.float64)
    magnitude = 0.1 * math.log(4) + 1
    assert "yarn(posenc.frequencies.rotary(64, 10000.0), 4, 4096)" in python_of(
        rotate=rotation(scale=lambda _: yarn, magnitude=magnitude)
    )
    assert "linear(posenc.frequencies.rotary(64, 10000.0), 8)" in python_of(rotate=rotation(scale=lambda w: w / 8))
    ntk = rotation(base=10_000.0 * 4 ** (64 / 62))
    assert "ntk(posenc.frequencies.rotary(64, 10000), 4)" in python_of(rotate=ntk)


def test_a_part_of_the_head_is_printed_as_that_part():
    """The last channels (multi-head latent attention), and the first pairs of a head whose pairs span it (Gemma 4)."""
    turn = rotation()

    def trailing(x, positions):
        return torch.cat([x[..., :32], turn(x[..., 32:], positions)], -1)

    def proportional(x, positions):
        speeds = 10_000.0 ** (-torch.arange(0, 64, 2, dtype=torch.float64) / 64)
        angle = positions[:, None, :, None].double() * speeds.where(torch.arange(32) < 8, 0.0)
        a, b = x.double().chunk(2, -1)
        return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1).to(x.dtype)

    assert 'd_head=64, layout="half", base=10000.0, rotary_dim=32, trailing=True)' in python_of(rotate=trailing)
    assert "frequencies=posenc.frequencies.proportional(64, 10000.0, 0.25))" in python_of(rotate=proportional)


def test_nothing_is_printed_for_what_posenc_would_not_reproduce():
    """The numbers decide: these are identified as a base and a layout, and differ further on."""
    assert python_of(rotate=rotation())
    assert python_of(rotate=rotation(wrong=0.05)) == ""
    assert python_of(rotate=rotation(magnitude=1.1)) == ""
    assert python_of(rotate=lambda x, positions: x * (1 + positions[:, None, :, None] % 3)) == ""


def test_tables_of_cosines_say_their_layout_where_it_shows():
    def table(positions, repeat):
        angle = positions[..., None].double() * 10_000.0 ** (-torch.arange(0, 64, 2) / 64)
        return tuple(repeat(part).float() for part in (angle.cos(), angle.sin()))

    halves = python_of(table=lambda positions: table(positions, lambda part: part.repeat(1, 1, 2)))
    assert 'posenc.create("rope", d_head=64, layout="half", base=10000.0)' in halves
    alone = python_of(table=lambda positions: table(positions, lambda part: part))
    assert 'posenc.create("rope", d_head=64, base=10000.0)' in alone
    assert "layout=" in alone.splitlines()[-1]


def test_biases_are_printed_with_their_slopes_and_weights():
    def linear(slopes):
        return lambda i, j: -torch.tensor(slopes)[:, None, None] * (i[:, None, :, None] - j[:, None, None]).abs()

    assert 'create("alibi", n_heads=2)' in python_of(bias=linear([2**-4, 2**-8]))
    assert 'create("alibi", n_heads=2, slopes=(0.5, 0.25))' in python_of(bias=linear([0.5, 0.25]))

    def windowed(i, j):
        distance = i[:, None, :, None] - j[:, None, None]
        return linear([0.5, 0.25])(i, j).masked_fill((distance < 0) | (distance >= 5), float("-inf"))

    at = torch.arange(12)[None]
    q, k, v = torch.randn(3, 1, 2, 12, 16)
    names = {"posenc": posenc, "q": q, "k": k, "v": v, "positions": at}
    exec(python_of(bias=windowed), names)
    wanted = (q @ k.transpose(-1, -2) / 4 + windowed(at, at)).softmax(-1) @ v
    torch.testing.assert_close(names["out"], wanted)
    encoding = posenc.create("t5", n_heads=2)

    class Buckets(nn.Module):
        def __init__(self):
            super().__init__()
            self.relative_attention_bias = nn.Embedding(32, 2)

        def forward(self, q_positions, k_positions):
            bucket = encoding.bucket(q_positions[:, :, None] - k_positions[:, None])
            return self.relative_attention_bias(bucket).permute(0, 3, 1, 2)

    printed = python_of(bias=Buckets())
    assert 'create("t5", n_heads=2, n_buckets=32, max_distance=128, bidirectional=False)' in printed
    assert 'encoding.load_state_dict({"table": relative_attention_bias.weight})' in printed


def test_an_attention_is_printed_with_its_scale_and_window():
    def attention(window, scale, sink=0.0, slope=0.0):
        def attend(q, k, v, q_positions, k_positions):
            distance = q_positions[:, None, :, None] - k_positions[:, None, None]
            logits = scale * q @ k.transpose(-1, -2) - slope * distance * torch.tensor([1.0, 0.5])[:, None, None]
            logits = logits.masked_fill((distance < 0) | (distance >= window), float("-inf"))
            weights = logits.exp() / (logits.exp().sum(-1, keepdim=True) + sink)
            return weights @ v

        return attend

    assert "attend(q, k, v, encoding, at)  #" in python_of(attention=attention(1 << 20, 64**-0.5))
    assert "attend(q, k, v, encoding, at, window=(8, 0), scale=0.2)" in python_of(attention=attention(9, 0.2))
    sloped = python_of(attention=attention(1 << 20, 64**-0.5, slope=0.25))
    assert 'create("alibi", n_heads=2, slopes=(0.25, 0.125))' in sloped
    assert python_of(attention=attention(9, 0.2, sink=1.0)) == ""


def test_numpy_rotations_are_compared_as_numpy():
    def rotate(x, positions):
        half = x.shape[-1] // 2
        angle = np.asarray(positions)[:, None, :, None] * 10_000.0 ** (-np.arange(half) / half)
        a, b = np.asarray(x)[..., :half], np.asarray(x)[..., half:]
        return np.concatenate([a * np.cos(angle) - b * np.sin(angle), b * np.cos(angle) + a * np.sin(angle)], -1)

    assert 'layout="half"' in python_of(rotate=rotate)
