"""Caches of others under `check_cache`: those of transformers hold, and faults that projects have reported are named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from transformers import LlamaConfig, MistralConfig
from transformers.cache_utils import (
    DynamicCache,
    DynamicSlidingWindowLayer,
    LinearAttentionAndFullAttentionLayer,
    StaticCache,
)

import in_process
from conformance import foreign_caches
from posenc.checking.bugs import BUGS
from posenc.checking.caches import check_cache, steps
from posenc.checking.loading import load

pytestmark = pytest.mark.usefixtures("foreign_code_here")

HERE = Path(__file__).parent
WINDOW = 6


def failing(results):
    return {one.law for one in results if one.verdict == "failed"}


class Plain:
    """Keys, values and positions of each row, appended and cut row by row. The faults below change one method each."""

    window: int | None = None

    def __init__(self):
        self.rows = []

    def write(self, cache, k, v, positions):
        rows = [[] for _ in k] if cache is None else [list(row) for row in cache]
        for row, held in enumerate(rows):
            held += [(k[row, :, n], v[row, :, n], int(positions[row, n])) for n in range(k.shape[2])]
        return rows

    def read(self, cache):
        most = max(map(len, cache))
        nothing = torch.zeros_like(cache[0][0][0])
        filled = [[*row, *[(nothing, nothing, -1)] * (most - len(row))] for row in cache]
        k, v = (torch.stack([torch.stack([one[n] for one in row], 1) for row in filled]) for n in (0, 1))
        return k, v, torch.tensor([[one[2] for one in row] for row in filled])

    def crop(self, cache, lengths):
        return [[one for one in row if one[2] < n] for row, n in zip(cache, lengths, strict=True)]

    def results(self, **options):
        return check_cache(self.write, self.read, self.crop, window=self.window, **options)


class Ring(Plain):
    """The latest tokens in slots; positions beside them."""

    window = WINDOW

    def write(self, cache, k, v, positions):
        return [row[-(WINDOW - 1 + k.shape[2]) :] for row in super().write(cache, k, v, positions)]

    crop = None


def test_caches_that_are_right_hold():
    for right in (Plain(), Ring()):
        results = right.results()
        assert not failing(results), [str(one) for one in results]
    assert {one.law: one.verdict for one in Plain().results()}["ring_equals_window"] == "not applicable"
    assert {one.law: one.verdict for one in Ring().results()}["rollback_equals_never_seen"] == "not applicable"


class SilentRollback(Plain):
    """ml-explore/mlx-swift-lm#424: a rollback that cannot be done returns, and nothing is removed."""

    def crop(self, cache, lengths):
        return cache


class TrimsTwoTooMany(Plain):
    """lablup/mlxcel#994: the rewind takes more than the rejected drafts."""

    def crop(self, cache, lengths):
        return super().crop(cache, [max(n - 2, 0) for n in lengths])


class CropToNothing(Plain):
    """huggingface/transformers#47433: a crop to 0 is taken for one that removes nothing."""

    def crop(self, cache, lengths):
        return cache if not any(lengths) else super().crop(cache, lengths)


class LengthOfTheBatch(Plain):
    """Blaizzy/mlx-vlm#1883, of its kind: one offset for the batch where every row has its own."""

    def crop(self, cache, lengths):
        return super().crop(cache, [max(lengths)] * len(lengths))


class PositionsGoOn(Plain):
    """A rolled back position is not used again: the counter goes on over rejected drafts."""

    def write(self, cache, k, v, positions):
        rows = super().write(cache, k, v, positions)
        counted = [[(*one[:2], n) for n, one in enumerate(row)] for row in rows]
        self.count = positions.shape[1] if cache is None else self.count + positions.shape[1]
        return [[*row[:-1], (*row[-1][:2], self.count - 1)] for row in counted]


class TurnedTwice(Plain):
    """huggingface/transformers#35350: keys that were turned when they were written are turned when they are read."""

    def read(self, cache):
        k, v, positions = super().read(cache)
        angle = positions[:, None, :, None].clamp(min=0).float()
        first, second = k.chunk(2, dim=-1)
        return (
            torch.cat([first * angle.cos() - second * angle.sin(), first * angle.sin() + second * angle.cos()], -1),
            v,
            positions,
        )


class FirstDtype(Plain):
    """vllm-project/vllm#4835, of its kind: a store that is made by the first call keeps that call's dtype."""

    dtype = None

    def write(self, cache, k, v, positions):
        self.dtype = self.dtype or k.dtype
        return super().write(cache, k.to(self.dtype), v.to(self.dtype), positions)


class SlotOrder(Ring):
    """kyutai-labs/moshi#241, huggingface/candle#2901: slots of a ring that has wrapped, read as if they were in order."""

    def read(self, cache):
        k, v, positions = super().read(cache)
        by = int(positions.max() + 1) % k.shape[2] if k.shape[2] >= WINDOW else 0
        return k.roll(by, 2), v.roll(by, 2)


class NeverEvicts(Ring):
    """ml-explore/mlx-lm#1914: chunks of more than one token are appended, and nothing is dropped."""

    def write(self, cache, k, v, positions):
        one = k.shape[2] == 1
        return super().write(cache, k, v, positions) if one else Plain.write(self, cache, k, v, positions)


class DropsOnConcat(Ring):
    """ollama/ollama#15591: a chunk that comes to a wrapped ring loses tokens that its first query sees."""

    def write(self, cache, k, v, positions):
        wrapped = cache is not None and k.shape[2] > 1 and len(cache[0]) >= WINDOW
        return super().write([row[-2:] for row in cache] if wrapped else cache, k, v, positions)


class OverwritesTheNewest(Ring):
    """awslabs/keys_values#140, of its kind: a partial write into a full ring drops other tokens than the oldest."""

    def write(self, cache, k, v, positions):
        if cache is None or len(cache[0]) < WINDOW:
            return super().write(cache, k, v, positions)
        return Plain.write(self, [row[: WINDOW - k.shape[2]] for row in cache], k, v, positions)


class ValuesStay(Plain):
    """Beams whose keys are taken and whose values stay: they come apart."""

    def read(self, cache):
        k, v, positions = super().read(cache)
        return k, v.roll(1, 2), positions


FAULTS = {
    SilentRollback: ("rollback_equals_never_seen", "which was rejected"),
    TrimsTwoTooMany: ("rollback_equals_never_seen", "lost token"),
    CropToNothing: ("rollback_equals_never_seen", "which was rejected"),
    LengthOfTheBatch: ("rows_have_their_own_positions", "which was rejected"),
    PositionsGoOn: ("rollback_equals_never_seen", "at position"),
    TurnedTwice: ("decode_equals_prefill", "was turned again"),
    FirstDtype: ("other_dtypes_do_not_matter", "the dtype of an earlier call was kept"),
    SlotOrder: ("ring_equals_window", "which is that of slots"),
    NeverEvicts: ("ring_equals_window", "columns for a window of"),
    DropsOnConcat: ("ring_equals_window", "lost token"),
    OverwritesTheNewest: ("ring_equals_window", "lost token"),
    ValuesStay: ("decode_equals_prefill", "beside the key of"),
}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_reported_fault_is_named(fault):
    law, message = FAULTS[fault]
    results = {one.law: one for one in fault().results()}
    assert results[law].verdict == "failed", [str(one) for one in results.values()]
    assert message in results[law].detail
    assert results[law].bug in BUGS.values()


SIZES = {"hidden_size": 16, "num_attention_heads": 2, "num_hidden_layers": 1, "max_position_embeddings": 64}


class OfTransformers:
    """A cache of transformers: `read` is what its last update gave attention."""

    def __init__(self, make):
        self.make = make

    def write(self, cache, k, v, positions):
        cache = self.make() if cache is None else cache[0]
        k, v = cache.update(k, v, 0)
        return cache, k, v

    def read(self, held):
        cache, k, v = held
        length = cache.get_seq_length()
        return (k, v) if k.shape[2] <= length else (k[:, :, :length], v[:, :, :length])

    def crop(self, held, lengths):
        if len(set(lengths)) > 1:
            raise NotImplementedError("crop takes one length for all rows")
        cache = held[0]
        cache.crop(lengths[0] - cache.get_seq_length() or lengths[0])
        layer = cache.layers[0]
        return cache, layer.keys, layer.values


def test_the_dynamic_cache_of_transformers_holds_and_refuses_rows():
    made = OfTransformers(DynamicCache)
    results = {one.law: one for one in check_cache(made.write, made.read, made.crop)}
    assert not failing(results.values()), [str(one) for one in results.values()]
    assert results["rollback_equals_never_seen"].verdict == "passed"
    assert results["rows_have_their_own_positions"].verdict == "not declared"


def test_the_static_cache_of_transformers_holds():
    made = OfTransformers(lambda: StaticCache(LlamaConfig(**SIZES), max_cache_len=64))
    results = check_cache(made.write, made.read)
    assert not failing(results), [str(one) for one in results]


def test_the_sliding_cache_of_transformers_holds():
    made = OfTransformers(lambda: DynamicCache(config=MistralConfig(**SIZES, sliding_window=WINDOW)))
    cache, *_ = made.write(None, *(torch.zeros(1, 2, 1, 8),) * 2, torch.zeros(1, 1))
    assert isinstance(cache.layers[0], DynamicSlidingWindowLayer)
    results = check_cache(made.write, made.read, window=WINDOW)
    assert not failing(results), [str(one) for one in results]


class Paged:
    """Blocks of four tokens in one store for all rows, and a table of blocks for each row, as vLLM has them."""

    size, blocks = 4, 64

    def write(self, cache, k, v, positions):
        store, tables = cache or (torch.zeros(2, self.blocks, self.size, *k.shape[1::2], dtype=k.dtype), [[] for _ in k])
        lengths = positions[:, -1] + 1
        for row, table in enumerate(tables):
            while len(table) * self.size < lengths[row]:
                used = {block for other in tables for block in other}
                table.append(next(block for block in range(self.blocks) if block not in used))
            for n, position in enumerate(positions[row].tolist()):
                slot = table[position // self.size], position % self.size
                store[0][slot], store[1][slot] = k[row, :, n], v[row, :, n]
        self.lengths = lengths.tolist()
        return store, tables

    def read(self, cache):
        store, tables = cache
        most = max(self.lengths)
        position = torch.arange(most).expand(len(tables), -1)
        blocks = torch.tensor([(table + [0] * most)[: -(-most // self.size)] for table in tables])
        k, v = store[:, blocks].flatten(2, 3)[:, :, :most].transpose(2, 3)
        return k, v, position.masked_fill(position >= torch.tensor(self.lengths)[:, None], -1)

    def crop(self, cache, lengths):
        store, tables = cache
        self.lengths = lengths
        return store, [table[: -(-n // self.size)] for table, n in zip(tables, lengths, strict=True)]


def test_a_paged_cache_holds_row_by_row():
    paged = Paged()
    results = {one.law: one for one in check_cache(paged.write, paged.read, paged.crop)}
    assert not failing(results.values()), [str(one) for one in results.values()]
    assert results["rows_have_their_own_positions"].verdict == "passed"


@pytest.mark.parametrize("found", [None, (torch.zeros(1),), (1, 2), "kv"])
def test_what_is_read_is_two_tensors_or_three(found):
    (result,) = check_cache(lambda *_: None, lambda _: found, laws=["decode_equals_prefill"])
    assert result.verdict == "failed"
    assert "read: expected (k, v), (k, v, positions) or (k, v, positions, state), tensors, got" in result.detail


def report_of(kind):
    """The report of a class of foreign_caches.py, as the command makes it."""
    seam, adapter = load(f"{HERE / 'foreign_caches.py'}:{kind.__name__}", None)
    assert seam == "cache"
    *_, report = steps(adapter, kind.__name__)
    return report


@pytest.mark.parametrize("right", foreign_caches.RIGHT, ids=lambda kind: kind.__name__)
def test_foreign_caches_that_are_right_hold(right):
    report = report_of(right)
    assert report.passed, str(report)


@pytest.mark.parametrize("kind", foreign_caches.REPORTS, ids=lambda kind: kind.__name__)
def test_a_public_report_is_named(kind):
    law, bug = foreign_caches.REPORTS[kind]
    report = report_of(kind)
    assert report[law].verdict == "failed", str(report)
    assert report[law].bug is BUGS[bug], str(report)
    assert report.diagnosis.name == bug, str(report)


def rolled_back(cache, lengths):
    """transformers takes how many tokens go, from all rows."""
    if len(set(lengths)) > 1:
        raise NotImplementedError("crop takes one number for all rows")
    cache.crop(lengths[0] - cache.get_seq_length())


class Sliding(OfTransformers):
    """A sliding cache that keeps what rejected drafts pushed out until `crop`, as assisted decoding asks for."""

    def __init__(self):
        super().__init__(lambda: DynamicCache(config=MistralConfig(**SIZES, sliding_window=WINDOW)))

    def write(self, cache, k, v, positions):
        if cache is None:
            cache = (self.make(),)
            cache[0].layers[0].activate_past_recording()
        return super().write(cache, k, v, positions)

    def crop(self, held, lengths):
        cache = held[0]
        rolled_back(cache, lengths)
        return cache, cache.layers[0].keys, cache.layers[0].values

    def read(self, held):
        return held[1:]


def test_the_sliding_cache_of_transformers_rolls_back():
    made = Sliding()
    results = {one.law: one for one in check_cache(made.write, made.read, made.crop, window=WINDOW)}
    assert not failing(results.values()), [str(one) for one in results.values()]
    assert results["rollback_equals_never_seen"].verdict == "passed"


class Hybrid(foreign_caches.Recurrent):
    """Keys and a recurrent state in one layer of transformers, as Qwen3-Next and its kind cache them."""

    def write(self, cache, k, v, positions):
        if cache is None:
            cache = DynamicCache()
            cache.layers = [LinearAttentionAndFullAttentionLayer()]
            cache.layers[0].activate_past_recording()
        (layer,) = cache.layers
        layer.update(k, v)
        state = k.new_zeros(*k.shape[:2], k.shape[3], k.shape[3])
        if layer.is_recurrent_states_initialized[0]:
            state = layer.recurrent_states[0]
        for n in range(k.shape[2]):
            state = foreign_caches.DECAY * state + v[:, :, n, :, None] * k[:, :, n, None]
        layer.update_conv_state(k.transpose(2, 3).flatten(1, 2), conv_kernel_size=2)
        layer.update_recurrent_state(state)
        return cache

    def read(self, cache):
        (layer,) = cache.layers
        at = torch.arange(layer.keys.shape[2]).expand(len(layer.keys), -1)
        return layer.keys, layer.values, at, layer.recurrent_states[0]

    def crop(self, cache, lengths):
        rolled_back(cache, lengths)
        return cache


def test_a_recurrent_state_of_transformers_goes_on_over_rejected_drafts():
    """huggingface/transformers#49036, in the installed version; every other law of caches holds for it."""
    made = Hybrid()
    results = {one.law: one for one in check_cache(made.write, made.read, made.crop)}
    assert failing(results.values()) == {"rollback_equals_never_seen"}, [str(one) for one in results.values()]
    assert results["rollback_equals_never_seen"].bug is BUGS["running sum"]


def test_the_command_checks_a_file_with_functions_of_a_cache(tmp_path):
    (tmp_path / "mine.py").write_text(FILE, encoding="utf-8")
    wrong = in_process.posenc("check", "mine.py", cwd=tmp_path)
    assert wrong.returncode == 1
    assert wrong.stdout.startswith("mine.py is wrong: all rows of a cache share one offset")
    assert "✗ rows_have_their_own_positions: rows that keep 0 and 1 drafts: row 0 reads token 5" in wrong.stdout
    assert "is: not identified" not in wrong.stdout
    given = in_process.posenc("check", "mine.py", "--expect", "layout=half", cwd=tmp_path)
    assert given.returncode == 2
    assert "--expect: a cache has no traits and no facts; leave it out" in given.stderr
    (tmp_path / "mine.py").write_text(FILE.replace("max(lengths)", "lengths[0]"), encoding="utf-8")
    told = json.loads(in_process.posenc("check", "mine.py", "--json", cwd=tmp_path).stdout)
    assert told["diagnosis"]["name"] == "one offset"
    right = in_process.posenc("check", HERE / "foreign_caches.py:Rows", "--all", cwd=tmp_path)
    assert right.returncode == 0, right.stdout
    assert "✓ rollback_equals_never_seen" in right.stdout


FILE = """import torch

def write(cache, k, v, positions):
    return (k, v) if cache is None else tuple(torch.cat(pair, dim=2) for pair in zip(cache, (k, v), strict=True))

def read(cache):
    return cache

def crop(cache, lengths):
    return tuple(x[:, :, : max(lengths)] for x in cache)
"""
