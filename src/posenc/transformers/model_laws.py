"""The laws of position on a loaded model: padded = alone, cached = not, packed = separate, chunked = whole.

Nothing is attached for it: the model runs as it is, with or without what `attach` has put on it.

Legend: b rows, t tokens, n vocabulary.
"""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from posenc.checking.diagnosis import of_failures
from posenc.checking.engine import Measured, chosen, law, tried, worst
from posenc.checking.errors import Declined, NotApplicable
from posenc.checking.result import Identity, Report
from posenc.support import checks
from posenc.support.checked import checked
from posenc.transformers.decoder import Unsupported, decoder_of, input_device
from posenc.transformers.versions import NAMES, is_cache

NOISE = 16.0  # how much more than the model's own noise is allowed: every layer rounds, not only the first
ROUNDINGS = 3  # of the embeddings, to see what they change
MOST_TOKENS = 64


@dataclass(frozen=True)
class LoadedModel:
    """A model that reads tokens, and how far two equal computations in it differ.

    names   of the arguments of its forward; `more` says whether it takes others too
    decodes whether it goes on after earlier tokens: it is made to generate, or returns a cache
    noise   how far apart two results may be: NOISE times the largest difference that positions cannot explain, between a
            row alone and beside others, and between embeddings and the same embeddings rounded anew in the model's type
    repeat  the same for two calls of one shape, which round alike: NOISE times what a row differs by beside other rows
    rounding the same between embeddings and embeddings rounded anew alone, in one call of one shape
    first   the first tokens that the model was given, [3, 11], and what it gave
    trained the number of positions that the configuration names, as rope_parameters or max_position_embeddings do
    """

    model: Any
    vocabulary: int
    names: frozenset[str]
    more: bool
    decodes: bool
    noise: float
    repeat: float
    trained: int | None
    seed: int
    rounding: float = 0.0
    first: tuple[Tensor, Tensor] | None = None

    def fresh(self) -> LoadedModel:
        """The model itself: a copy may be too large, and laws change nothing of it."""
        return self

    def ids(self, length: int, row: int = 0) -> Tensor:
        """Tokens [1, t]; longer rows begin with the same."""
        generator = torch.Generator().manual_seed(self.seed + 1000 * row)
        drawn = torch.randint(min(8, self.vocabulary // 2), self.vocabulary, (1, MOST_TOKENS), generator=generator)
        return drawn[:, :length].to(input_device(self.model))

    def rows(self, length: int, n: int) -> Tensor:
        """Rows of tokens [n, t]."""
        return torch.cat([self.ids(length, row) for row in range(n)])

    def run(self, ids: Tensor, **inputs: Any) -> Any:
        """The model's output. Positions and a mask are left out where its forward does not take them."""
        inputs = {"use_cache": False, **inputs}
        return self.model(
            input_ids=ids, **{name: value for name, value in inputs.items() if self.more or name in self.names}
        )

    def logits(self, ids: Tensor, **inputs: Any) -> Tensor:
        """[b, t, n] in float32; hidden states where a model has no logits."""
        return _rows(self.run(ids, **inputs))

    def over_cache(self, ids: Tensor, before: Any, **inputs: Any) -> Any:
        """The output for tokens after those of the output `before`; None: the first ones.

        Raises Declined "not tried" where the model refuses, or returns no cache that it takes.
        """
        carried = {} if before is None else self._carried(before)
        try:
            return self.run(ids, use_cache=True, **carried, **inputs)
        except Exception as error:
            message = f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"
            raise Declined(
                "not tried", f"{'over ' + ', '.join(carried) if carried else 'with a cache'} it raises {message}"
            ) from error

    def _carried(self, out: Any) -> dict[str, Any]:
        """What an output hands on to the next call: all that the model returns and takes under one name, or its cache."""
        if returned := {name: value for name, value in out.items() if name in self.names}:
            return returned
        caches = [(name, value) for name, value in out.items() if is_cache(name, value)]
        if not caches:
            raise Declined("not tried", f"it is made to decode and returns no cache, only {', '.join(out.keys())}")
        name, cache = caches[0]
        taken = [name_of_cache for name_of_cache in NAMES if name_of_cache in self.names] or ([name] if self.more else [])
        if not taken:
            raise Declined("not tried", f"it returns a {type(cache).__name__} as {name}, and its forward takes none")
        return {taken[0]: cache}

    def needs_cache(self) -> None:
        """Raises Declined where the model does not decode."""
        if not self.decodes:
            raise NotApplicable("it returns no cache and is not made to generate")

    @property
    def pad_token(self) -> int:
        """What rows are padded with."""
        token = getattr(self.model.config.get_text_config(), "pad_token_id", None)
        return token if isinstance(token, int) and 0 <= token < self.vocabulary else 0

    @property
    def heads(self) -> int | None:
        """Of the queries; None without attention."""
        count = getattr(self.model.config.get_text_config(), "num_attention_heads", None)
        return count if isinstance(count, int) else None

    def needs(self, *names: str) -> None:
        """Raises Declined where the model's forward takes no such argument."""
        for name in names:
            if name not in self.names:
                raise Declined("not declared", f"its forward takes no {name}")

    def apart(self, actual: Tensor, expected: Tensor, what: str) -> Measured:
        """Compares two computations of one thing."""
        return _difference(actual, expected, self.noise, what)

    def changed(self, actual: Tensor, expected: Tensor, what: str) -> Measured:
        """Compares two calls of one shape, which must give the same."""
        return _difference(actual, expected, self.repeat, what)


def _difference(actual: Tensor, expected: Tensor, allowed: float, what: str) -> Measured:
    if actual.shape != expected.shape:
        return Measured(math.inf, allowed, f"{what}: the shape is {list(actual.shape)}, not {list(expected.shape)}")
    if not bool(torch.isfinite(actual).all()):
        return Measured(math.inf, allowed, f"{what}: not finite")
    return Measured(float((actual - expected).abs().max()), allowed, what)


@checked
@torch.no_grad()
def check(model: nn.Module, *, laws: Sequence[str] | None = None, seed: int = 0, allow_untried: bool = False) -> Report:
    """Tries the laws of position on a loaded model of transformers that reads tokens; returns a report.

        report = check(model)
        report.passed, print(report)

    laws   the names of some laws; None: all of them
    seed   of the tokens; the same seed gives the same report
    allow_untried   whether the report may pass although a law about the model's cache could not be tried
    An input that the model refuses is "not declared". A model that decodes has a cache, under any name: a law about it that
    cannot be tried is "not tried", and the report then does not pass. An encoder has neither these laws nor the one about
    later tokens. What is attached stays; the model is as it was afterwards. Two results may differ by 16 times what a
    rounding of the embeddings changes. In float16 and bfloat16 that hides small differences: where a model fits, check
    it in float32.

    Raises Unsupported for what reads no tokens or has no output for each of them, and for an encoder with a decoder;
    ValueError for an unknown law.
    """
    checks.whole(0, seed=seed)
    decoder_of(model)
    wanted = chosen("model", laws)
    begin, was_training = time.perf_counter(), model.training
    state = torch.random.get_rng_state()
    try:
        model.eval()
        subject = _loaded(model, seed)
        results = tuple(tried(law, subject) for law in wanted)
    finally:
        model.train(was_training)
        torch.random.set_rng_state(state)
    name, seconds = type(model).__name__, time.perf_counter() - begin
    failed = [result for result in results if result.verdict == "failed"]
    diagnosis = of_failures("model", failed) if failed else None
    return Report(name, "model", results, _identity(model), seconds, allow_untried, diagnosis)


def _loaded(model: Any, seed: int) -> LoadedModel:
    text = model.config.get_text_config()
    if not isinstance(vocabulary := getattr(text, "vocab_size", None), int):
        raise Unsupported(f"model: {type(model).__name__} reads no tokens: its configuration has no vocab_size")
    names, more = _arguments(model)
    subject = LoadedModel(model, vocabulary, names, more, False, 0.0, 0.0, _trained(text), seed)
    rows, together = _first(subject)
    separate = torch.cat([subject.logits(rows[n : n + 1]) for n in range(3)])
    floor = _floor(together)
    repeat = max(float((together - separate).abs().max()), floor)
    rounding = max(_rounded(subject, rows, together), floor)
    noise = max(repeat, rounding)
    decodes, first = _decodes(subject, rows), (rows, together)
    noise, repeat, rounding = NOISE * noise, NOISE * repeat, NOISE * rounding
    return replace(subject, decodes=decodes, noise=noise, repeat=repeat, rounding=rounding, first=first)


def _floor(logits: Tensor) -> float:
    """A few roundings of the largest logit: less is no difference."""
    return 8 * torch.finfo(torch.float32).eps * float(logits.abs().max())


def _arguments(model: nn.Module) -> tuple[frozenset[str], bool]:
    """The names that a forward takes, and whether it takes others. One that hands all others on, such as PEFT's, takes
    what the model inside takes."""
    names: set[str] = set()
    for module in model.modules():
        parameters = inspect.signature(type(module).forward).parameters
        if module is not model and not {"input_ids", "attention_mask"} <= parameters.keys():
            continue  # a part of a model, as an embedding is
        more = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
        names |= parameters.keys()
        if not more:
            return frozenset(names), False
    return frozenset(names), True


def _first(subject: LoadedModel) -> tuple[Tensor, Tensor]:
    """Tokens [3, 11] and what the model gives for them.

    Raises Unsupported where it does not run on tokens, or gives something else than one row for each of them.
    """
    name = type(subject.model).__name__
    try:
        ids = subject.rows(11, 3)
        out = subject.run(ids)
    except Exception as error:
        raise Unsupported(f"model: {name} does not run on input_ids alone: {type(error).__name__}: {error}") from error
    rows = _rows(out) if hasattr(out, "logits") or hasattr(out, "last_hidden_state") else None
    if rows is None or rows.shape[:2] != ids.shape:
        raise Unsupported(
            f"model: {name} has no logits or hidden states for each token, which the laws compare; "
            "check the model of which it is made"
        )
    return ids, rows


def _rows(out: Any) -> Tensor:
    rows: Tensor = out.logits if hasattr(out, "logits") else out.last_hidden_state
    return rows.float()


def _decodes(subject: LoadedModel, ids: Tensor) -> bool:
    generates = getattr(subject.model, "can_generate", None)
    if generates is not None and generates():
        return True
    try:
        out = subject.run(ids, use_cache=True)
    except Exception:  # it takes use_cache: the laws about a cache say what it raises
        return True
    return any(name in subject.names or is_cache(name, value) for name, value in out.items())


def _rounded(subject: LoadedModel, rows: Tensor, logits: Tensor) -> float:
    """How far the logits move when each number of the embeddings moves by up to one step of its type."""
    generator = torch.Generator().manual_seed(subject.seed)

    def rounded(module: nn.Module, args: Any, output: Tensor) -> Tensor:
        moved = torch.rand(output.shape, generator=generator).to(output.device) * 2 - 1
        return (output.float() * (1 + torch.finfo(output.dtype).eps * moved)).to(output.dtype)

    hook = subject.model.get_input_embeddings().register_forward_hook(rounded)
    try:
        return max(float((subject.logits(rows) - logits).abs().max()) for _ in range(ROUNDINGS))
    finally:
        hook.remove()


def _trained(text: Any) -> int | None:
    settings = getattr(text, "rope_parameters", None) or {}
    original = settings.get("original_max_position_embeddings") if isinstance(settings, dict) else None
    length = original or getattr(text, "max_position_embeddings", None)
    return length if isinstance(length, int) and length > 0 else None


def _identity(model: Any) -> Identity:
    """What the configuration says."""
    from posenc.configs import ConfigError, spec_of

    try:
        spec = spec_of(model.config.to_dict(), defaults=True)
    except (ConfigError, KeyError, TypeError, ValueError) as error:
        return Identity(sentence=f"not identified: {' '.join(str(error).split())[:120]}")
    named = list(dict.fromkeys(use.name for layer in spec.layers for use in layer.uses))
    attached = (getattr(model.config, "posenc", None) or {}).get("encodings", [])
    added = [str(entry.get("class", "a stack")).rpartition(".")[2] for entry in attached]
    told = f"{model.config.model_type}: {', '.join(named) or 'no positions'}"
    return Identity({"uses": named, "attached": added}, None, told + (f"; attached: {', '.join(added)}" if added else ""))


def _counted(mask: Tensor) -> Tensor:
    """The positions that `generate` gives to a padded batch."""
    return (mask.cumsum(1) - 1).clamp(min=0)


def _padded(subject: LoadedModel, length: int, pad: int, left: bool) -> Measured:
    subject.needs("attention_mask")
    short, long = subject.ids(length), subject.ids(length + pad, 1)
    filler = torch.full((1, pad), subject.pad_token, device=short.device)
    row = torch.cat([filler, short] if left else [short, filler], 1)
    mask = torch.ones(2, length + pad, dtype=torch.long, device=short.device)
    mask[0, slice(0, pad) if left else slice(length, None)] = 0
    at = {"position_ids": _counted(mask)}
    positions = [{}, {}] if subject.decodes else [{"position_ids": _counted(torch.ones_like(ids))} for ids in (short, long)]
    together = subject.logits(torch.cat([row, long]), attention_mask=mask, **at)
    real = together[:1, pad:] if left else together[:1, :length]
    side = "left" if left else "right"
    return worst(
        subject.apart(real, subject.logits(short, **positions[0]), f"{length} tokens with {pad} padded on the {side}"),
        subject.apart(
            together[1:], subject.logits(long, **positions[1]), f"{length + pad} tokens beside a row padded on the {side}"
        ),
    )


@law("model", bug="length state", inputs=({"rows": 3},), rows=3)
def the_same_call_gives_the_same(subject: LoadedModel, rows: int) -> Measured:
    """Tokens give the same twice, to a rounding: dropout that stays on would hide every other fault in its noise."""
    tokens = subject.rows(11, rows)
    first = subject.logits(tokens)
    return _difference(subject.logits(tokens), first, _floor(first), "one request twice")


@law("model", bug="batch mates", inputs=({"rows": 3},), rows=2)
def batch_mates_do_not_matter(subject: LoadedModel, rows: int) -> Measured:
    """A row gives beside others what it gives alone, as far as roundings go: those of one shape, so without the others."""
    tokens = subject.rows(11, rows)
    separate = torch.cat([subject.logits(tokens[n : n + 1]) for n in range(rows)])
    return _difference(subject.logits(tokens), separate, subject.rounding, "a row beside others and alone")


@law("model", bug="padding", must_run=True, inputs=({"length": 6, "pad": 5},))
def left_padded_equals_alone(subject: LoadedModel, length: int, pad: int) -> Measured:
    """A row padded on the left and a longer row beside it give what they give alone."""
    return _padded(subject, length, pad, True)


@law("model", bug="padding", must_run=True, inputs=({"length": 6, "pad": 5},))
def right_padded_equals_alone(subject: LoadedModel, length: int, pad: int) -> Measured:
    """A row padded on the right and a longer row beside it give what they give alone."""
    return _padded(subject, length, pad, False)


def _chunked(subject: LoadedModel, ids: Tensor, sizes: Sequence[int], first: int = 0) -> Tensor:
    """Logits of the tokens in chunks over a cache, from position `first` on."""
    out, seen, logits = None, 0, []
    for size in sizes:
        at = {"position_ids": torch.arange(first + seen, first + seen + size, device=ids.device)[None]} if first else {}
        out = subject.over_cache(ids[:, seen : seen + size], out, **at)
        logits.append(_rows(out))
        seen += size
    return torch.cat(logits, 1)


@law("model", bug="decode offset", inputs=({"length": 8, "prompt": 3},), length=2)
def decode_equals_prefill(subject: LoadedModel, length: int, prompt: int) -> Measured:
    """Tokens decoded one by one after a prompt give what one pass gives."""
    subject.needs_cache()
    prompt = min(prompt, length - 1)
    ids = subject.rows(length, 2)
    decoded = _chunked(subject, ids, [prompt] + [1] * (length - prompt))
    return subject.apart(decoded, subject.logits(ids), f"a prompt of {prompt}, then one by one, and one pass")


@law("model", bug="causal alignment", inputs=({"length": 12, "chunk": 5},), length=2)
def chunked_equals_whole(subject: LoadedModel, length: int, chunk: int) -> Measured:
    """A prompt in chunks over a cache gives what one pass gives."""
    subject.needs_cache()
    ids = subject.rows(length, 2)
    sizes = [min(chunk, length - n) for n in range(0, length, chunk)]
    return subject.apart(_chunked(subject, ids, sizes), subject.logits(ids), f"chunks of {chunk} and one pass")


@law("model", bug="padding", inputs=({"length": 6, "pad": 4},), length=2)
def padded_decoding_equals_alone(subject: LoadedModel, length: int, pad: int) -> Measured:
    """A row padded on the left, then decoded for one token beside a longer row, gives what it gives alone."""
    subject.needs_cache()
    subject.needs("attention_mask")
    if subject.heads is None:
        raise NotApplicable("it has no attention, so that no mask says anything of tokens it has read")
    ids = subject.ids(length)
    filler = torch.full((1, pad), subject.pad_token, device=ids.device)
    rows = torch.cat([torch.cat([filler, ids], 1), subject.ids(length + pad, 1)])
    mask = torch.ones_like(rows)
    mask[0, :pad] = 0
    at = _counted(mask)
    out = subject.over_cache(rows[:, :-1], None, attention_mask=mask[:, :-1], position_ids=at[:, :-1])
    last = _rows(subject.over_cache(rows[:, -1:], out, attention_mask=mask, position_ids=at[:, -1:]))
    return subject.apart(
        last[:1, 0], subject.logits(ids)[:, -1], f"{length} tokens with {pad} padded, the last one decoded"
    )


@law("model", bug="packing", inputs=({"first": 5, "second": 4},))
def packed_equals_separate(subject: LoadedModel, first: int, second: int) -> Measured:
    """Two documents in one row, told apart by position_ids that begin again, read what they read alone."""
    subject.needs("position_ids")
    if not subject.decodes:
        raise Declined("not declared", "a model that attends both ways tells no documents apart by position_ids")
    parts = [subject.ids(first), subject.ids(second, 1)]
    at = torch.cat([torch.arange(n, device=input_device(subject.model)) for n in (first, second)])[None]
    packed = subject.logits(torch.cat(parts, 1), position_ids=at)
    parts_of_row = packed.split([first, second], 1)
    return worst(
        *(
            subject.apart(in_row, subject.logits(ids), f"document {n} of {first} + {second} tokens")
            for n, (in_row, ids) in enumerate(zip(parts_of_row, parts, strict=True))
        )
    )


@law("model", bug="future", must_run=True, inputs=({"length": 8},), length=2)
def later_tokens_do_not_matter(subject: LoadedModel, length: int) -> Measured:
    """Another last token does not change what earlier tokens give."""
    if not subject.decodes:
        raise NotApplicable("it is no causal model: it returns no cache and is not made to generate")
    ids = subject.ids(length)
    other = ids.clone()
    other[:, -1] = (other[:, -1] + 1) % subject.vocabulary
    return subject.changed(
        subject.logits(other)[:, :-1], subject.logits(ids)[:, :-1], "before and after the last token changed"
    )


def _past_trained(subject: LoadedModel) -> int:
    subject.needs("position_ids")
    if subject.trained is None:
        raise NotApplicable("the configuration names no number of positions")
    return subject.trained


@law("model", bug="cached frequencies", inputs=({"length": 8},), length=2)
def decode_equals_prefill_past_the_trained_length(subject: LoadedModel, length: int) -> Measured:
    """Decoding across the trained length gives what one pass gives: cached keys must not keep other frequencies."""
    subject.needs_cache()
    first = max(_past_trained(subject) - length // 2, 1)
    ids = subject.ids(length)
    at = torch.arange(first, first + length, device=ids.device)[None]
    whole = subject.logits(ids, position_ids=at)
    decoded = _chunked(subject, ids, [1] * length, first)
    return subject.apart(decoded, whole, f"positions {first} … {first + length - 1}, one by one and in one pass")


@law("model", bug="length state", inputs=({"length": 6},))
def far_calls_do_not_matter(subject: LoadedModel, length: int) -> Measured:
    """The same prompt gives the same before and after a call at positions past the trained length."""
    far = _past_trained(subject) + 7
    ids = subject.ids(length)
    before = subject.logits(ids)
    subject.logits(ids, position_ids=torch.arange(far, far + length, device=ids.device)[None])
    return subject.changed(subject.logits(ids), before, f"before and after positions from {far} on")


@law("model", bug="bias ignored", inputs=({"length": 6},), length=3)
def position_bias_is_not_ignored(subject: LoadedModel, length: int) -> Measured:
    """position_bias, which the attention interface of transformers documents, changes the logits where attention takes it.

    A model takes it as one of any keyword arguments. That it hands them on to attention, and that its attention is one that
    documents a position_bias (sdpa and flex, not eager), is what declares it.
    """
    ids = subject.ids(length)
    if subject.heads is None or not (subject.more or "position_bias" in subject.names):
        raise Declined("not declared", "its forward takes no position_bias")
    bias = torch.randn(1, subject.heads, length, length, generator=torch.Generator().manual_seed(subject.seed)) * 3
    bias = bias.to(ids.device, next(subject.model.parameters()).dtype)
    with _told(subject.model, "position_bias") as told:
        biased = subject.logits(ids, position_bias=bias)
    if not told:
        raise Declined("not declared", "its layers hand no position_bias to their attention")
    if undocumented := [name for name in map(_implementation, told) if not _takes_bias(name)]:
        raise Declined(
            "not declared", f"its attention, {undocumented[0]}, takes no position_bias; sdpa and flex_attention do"
        )
    moved = float((biased - subject.logits(ids)).abs().max())
    return Measured(float(moved <= subject.repeat / NOISE), 0.0, "a position_bias is accepted and changes nothing")


@contextmanager
def _told(model: nn.Module, name: str) -> Iterator[list[nn.Module]]:
    """The attention modules, the innermost that know the index of their layer, that are handed such an argument inside."""
    told: list[nn.Module] = []

    def note(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if kwargs.get(name) is not None:
            told.append(module)

    layered = [module for module in model.modules() if isinstance(getattr(module, "layer_idx", None), int)]
    innermost = [module for module in layered if not any(inner in layered for inner in list(module.modules())[1:])]
    handles = [module.register_forward_pre_hook(note, with_kwargs=True) for module in innermost]
    try:
        yield told
    finally:
        for handle in handles:
            handle.remove()


def _implementation(module: nn.Module) -> str:
    return str(getattr(getattr(module, "config", None), "_attn_implementation", None))


def _takes_bias(implementation: str) -> bool:
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    known: Callable[..., Any] | None = ALL_ATTENTION_FUNCTIONS.get(implementation)  # eager is each family's own
    return known is not None and "position_bias" in inspect.signature(known).parameters


@law("model", bug="length state", inputs=({"rows": 3},), rows=3)
def earlier_calls_do_not_matter(subject: LoadedModel, rows: int) -> Measured:
    """The very first tokens give the same again after all requests of the laws before, past the trained length too."""
    assert subject.first is not None
    tokens, expected = subject.first
    return subject.changed(subject.logits(tokens[:rows]), expected[:rows], "the first request, again after all others")
