"""`posenc check FILE.py:NAME` on loaded modules, in the shapes that libraries give them."""

from __future__ import annotations

import shlex
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from posenc.checking.loading import load
from posenc.cli import app
from sampling import a_third, one_in

pytestmark = pytest.mark.usefixtures("foreign_code_here")

ROTARY = '''
import torch
from torch import nn

class Rotary(nn.Module):
    """transformers' shape."""
    def __init__(self, d=64, base=500000.0):
        super().__init__()
        self.d, self.base = d, base
    def forward(self, x, position_ids):
        angle = position_ids[..., None].double() / self.base ** (torch.arange(0, self.d, 2).double() / self.d)
        angle = torch.cat([angle, angle], -1)
        return angle.cos().float(), angle.sin().float()

class Buffered(Rotary):
    def __init__(self):
        super().__init__()
        self.register_buffer("inv_freq", 1.0 / 500000.0 ** (torch.arange(0, 64, 2).float() / 64), persistent=False)
    def forward(self, x, position_ids):
        angle = position_ids[..., None].float() * self.inv_freq
        angle = torch.cat([angle, angle], -1)
        return angle.cos(), angle.sin()

class TokensFirst(nn.Module):
    """torchtune's shape: x [b, t, h, d], pairs of neighbours."""
    def forward(self, x, *, input_pos=None):
        d = x.shape[-1]
        w = 10000.0 ** (-torch.arange(0, d, 2).double() / d)
        angle = (input_pos[..., None].double() * w)[:, :, None]
        a, b = x[..., ::2].double(), x[..., 1::2].double()
        out = torch.stack([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1)
        return out.flatten(-2).float()

class Table(nn.Module):
    def forward(self, seq_len):
        return Rotary(32, 10000.0)(None, torch.arange(seq_len)[None])[0][0]

class OffsetTable(nn.Module):
    def forward(self, seq_len, start_pos=0):
        return Rotary(32, 10000.0)(None, start_pos + torch.arange(seq_len)[None])[0][0]

class ByOffset(nn.Module):
    """lucidrains' shape: an axis comes before the offset."""
    def forward(self, x, seq_dim=None, *, seq_offset=0):
        at = torch.arange(x.shape[-2]) + seq_offset
        cos, sin = Rotary(x.shape[-1], 10000.0)(None, at)
        a, b = x.chunk(2, -1)
        return x * cos + torch.cat([-b, a], -1) * sin

class WithLength(ByOffset):
    def forward(self, x, seq_len, past_len=0):
        return super().forward(x[..., :seq_len, :], seq_offset=past_len)

class WithProjection(Rotary):
    """A trained projection beside the table, which no call of it reads."""
    def __init__(self):
        super().__init__()
        self.beside = nn.Linear(4, 4)

class Trained(WithProjection):
    """Frequencies that the optimiser moves."""
    def __init__(self):
        super().__init__()
        self.inv_freq = nn.Parameter(1.0 / 500000.0 ** (torch.arange(0, 64, 2).float() / 64))
    def forward(self, x, position_ids):
        angle = position_ids[..., None].float() * self.inv_freq
        angle = torch.cat([angle, angle], -1)
        return angle.cos().detach(), angle.sin().detach()

def model():
    from transformers import LlamaConfig, LlamaForCausalLM
    sizes = dict(hidden_size=32, intermediate_size=32, num_attention_heads=2, num_hidden_layers=1, vocab_size=99)
    return LlamaForCausalLM(LlamaConfig(**sizes)).eval()

def build(): return Rotary()
def buffered(): return Buffered()
def tune(): return TokensFirst()
def table(): return Table()
def offset_table(): return OffsetTable()
def by_offset(): return ByOffset()
def with_length(): return WithLength()
def broken(): raise RuntimeError("no weights here")
def posenc_one():
    import posenc
    return posenc.create("rope", d_head=32)
'''
APPLY = """
def apply_rotary_pos_emb(q, k, cos, sin):
    def turn(x):
        a, b = x.chunk(2, -1)
        return x * cos[:, None] + torch.cat([-b, a], -1) * sin[:, None]
    return turn(q), turn(k)
"""


def checked(folder, name, *options, text=ROTARY):
    (folder / "mine.py").write_text(text, encoding="utf-8")
    return CliRunner().invoke(app, ["check", f"{folder}/mine.py:{name}", *options], env={"COLUMNS": "200", "NO_COLOR": "1"})


@pytest.mark.parametrize(("name", "more", "told"), one_in(2, [
    ("build", "", ("table ·", "Base 500 000")),
    ("build", APPLY, ("rotate ·", "base 500,000")),
    ("tune", "", ("interleaved",)),
    ("posenc_one", "", ("rotate ·",)),
]))  # fmt: skip
def test_a_module_that_a_function_builds_passes(name, more, told, tmp_path):
    done = checked(tmp_path, name, text=ROTARY + more)
    assert done.exit_code == 0, done.output
    for words in told:
        assert words in done.output.replace("base 500 000", "base 500,000")


@pytest.mark.parametrize("more", one_in(2, ["", APPLY]))
def test_laws_of_a_module_s_state_are_tried_on_it(more, tmp_path):
    done = checked(tmp_path, "buffered", text=ROTARY + more)
    assert done.exit_code == 1
    assert "casting_a_module_does_not_round_its_angles" in done.output


@pytest.mark.parametrize(("name", "options"), a_third([
    ("by_offset", ("--as", "rotate")), ("with_length", ("--as", "rotate")), ("offset_table", ("--as", "table")),
]))  # fmt: skip
def test_positions_that_a_length_implies_are_tried_through_the_offset(name, options, tmp_path):
    done = checked(tmp_path, name, *options, "--all")
    assert done.exit_code == 0, done.output
    assert "positions_are_taken" not in done.output


def test_a_table_of_a_length_alone_takes_no_positions(tmp_path):
    done = checked(tmp_path, "Table", "--as", "table")
    assert done.exit_code == 1
    assert "positions_are_taken" in done.output
    assert checked(tmp_path, "Table").output == done.output  # its argument says which seam it is


def test_only_parameters_that_the_result_depends_on_are_trained_tables(tmp_path):
    law = "fixed_tables_are_not_trained"
    assert f"✗ {law}" not in checked(tmp_path, "WithProjection", text=ROTARY + APPLY).output
    done = checked(tmp_path, "Trained", text=ROTARY + APPLY)
    assert done.exit_code == 1
    assert f"✗ {law}" in done.output
    assert "inv_freq" in done.output
    assert "beside" not in done.output


def test_what_cannot_be_made_is_said(tmp_path):
    done = checked(tmp_path, "broken")
    assert done.exit_code == 2
    assert "RuntimeError: no weights here" in " ".join(done.output.split())


@pytest.mark.acceptance
def test_for_a_whole_model_the_command_that_is_printed_runs(tmp_path):
    (tmp_path / "mine.py").write_text(ROTARY, encoding="utf-8")
    with pytest.raises(ValueError, match="is a whole model, which other laws are for; run: python -c") as told:
        load(f"{tmp_path}/mine.py:model", None)
    python, *arguments = shlex.split(str(told.value).partition("run: ")[2])
    assert python == "python"
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=True)
    assert "LlamaForCausalLM" in done.stdout.splitlines()[0]
