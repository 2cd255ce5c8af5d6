"""Scores of a trained language model by length, as it is and with its positions changed; nothing is trained.

Windows are of a text, below, or have one answer to find (`retrieval`).

    window of n tokens     t t t … t t s s s c c c       one pass over it
    perplexity             exp of the mean loss of s, which has all of the window before it
    copied passage         exp of the mean loss of c, where the first tokens of the window are written again

Windows of every length end with the same s, so that a row compares more and more context for the same tokens.
"""

from __future__ import annotations

import copy
import hashlib
import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import torch
from torch import nn

from posenc.catalogue.lookup import create
from posenc.encodings.rope import RoPE
from posenc.frequencies import Frequencies, dynamic
from posenc.transformers.attachment import attach
from posenc.transformers.decoder import Unsupported
from posenc.transformers.extension import extend
from posenc.transformers.rotary import text_config

if TYPE_CHECKING:
    from torch import Tensor

PLAIN = "plain"
EXTENDED = ("linear", "ntk", "yarn", "llama3")  # new frequencies for F times the trained length
REGIONS = ("self_extend", "dual_chunk", "lm_infinite")  # the model's own frequencies, far distances changed
MOST = 700.0  # nats: exp of more is no double
ELSEWHERE = ("_name_or_path", "transformers_version")  # of a configuration: where it was, and who wrote it


@dataclass(frozen=True)
class Method:
    """How the positions of the model are changed: "plain", "yarn:4", "self_extend:4", "dynamic", "alibi", "nope:4"."""

    name: str
    factor: float | None = None

    @classmethod
    def parse(cls, word: str) -> Method:
        """Raises ValueError for a factor that is missing, not above 1, or not taken. Other names are tried by `changed`."""
        name, colon, number = word.partition(":")
        try:
            factor = float(number) if colon else None
        except ValueError:
            factor = math.nan
        needed, taken = (*EXTENDED, "self_extend"), (*EXTENDED, "self_extend", "dynamic", "nope")
        if factor is None and name in needed:
            raise ValueError(f"expected a factor after {name}, such as {name}:4")
        if factor is not None and (name not in taken or not 1 < factor < math.inf):
            raise ValueError(f"expected a name, with a number above 1 for {', '.join(taken)}, such as yarn:4; got {word!r}")
        if name == "nope" and factor is not None and factor != int(factor):
            raise ValueError(f"expected a whole number n for NoPE in every n-th layer, got {word!r}")
        return cls(name, factor)

    def __str__(self) -> str:
        return self.name if self.factor is None else f"{self.name}:{self.factor:g}"


@dataclass(frozen=True)
class Score:
    """One pass: mean losses in nats; None where they are not finite. `key` names the model, the text and the settings."""

    key: str
    method: str
    length: int
    end: int
    loss: float | None
    copied: float | None
    seconds: float


class Windows(Protocol):
    """What a model is scored on: samples of windows of each length. `row` is the class of one line of results."""

    row: ClassVar[type[Any]]

    def check(self, lengths: Sequence[int]) -> None: ...

    def ends(self) -> list[int]:
        """Names the samples."""
        ...

    def identity(self) -> bytes: ...

    def measured(self, model: nn.Module, length: int, end: int) -> dict[str, float]:
        """Of one pass, with the names that `row` has."""
        ...


@dataclass(frozen=True)
class Text:
    """The tokens of a text, where the scored windows end, and how many tokens are scored and copied.

    start  what the tokenizer puts before every text, mostly nothing or one token
    """

    tokens: Tensor
    start: tuple[int, ...] = ()
    samples: int = 1
    scored: int = 512
    copied: int = 128

    row: ClassVar[type[Score]] = Score

    def check(self, lengths: Sequence[int]) -> None:
        """Raises ValueError for lengths that the text or the scored tokens do not allow."""
        least, most = len(self.start) + self.scored + 2 * self.copied, min(self.ends())
        for n in lengths:
            if not least <= n <= most:
                raise ValueError(
                    f"--lengths: expected {least} … {most} tokens, for {self.scored} scored and {self.copied} copied "
                    f"ones and {self.samples} samples of a text of {len(self.tokens)} tokens, got {n}"
                )

    def ends(self) -> list[int]:
        """Where windows end, in the second half of the text, the last one first."""
        count = len(self.tokens)
        return [count - count * n // (2 * self.samples) for n in range(self.samples)]

    def window(self, length: int, end: int) -> Tensor:
        """`length` tokens: those before `end`, then its own first ones again."""
        begin = end - (length - len(self.start) - self.copied)
        start = torch.tensor(self.start, dtype=self.tokens.dtype)
        return torch.cat([start, self.tokens[begin:end], self.tokens[begin : begin + self.copied]])

    def identity(self) -> bytes:
        """All tokens and settings."""
        return self.tokens.numpy().tobytes() + repr((self.start, self.scored, self.copied)).encode()

    def measured(self, model: nn.Module, length: int, end: int) -> dict[str, float]:
        loss, copied = score(model, self, length, end)
        return {"loss": loss, "copied": copied}


def changed(model: Any, method: Method, length: int) -> Any:
    """A model with the same weights and other positions, for requests of `length` tokens; `model` stays as it is.

    Raises ValueError, or Unsupported, for what this model cannot take.
    """
    twin = copy.deepcopy(model, {id(parameter): parameter for parameter in model.parameters()})
    if method.name == PLAIN:
        return twin
    config = text_config(twin)
    if method.name in (*EXTENDED, *REGIONS, "dynamic"):
        trained = trained_length(twin)
        if trained is None:
            raise Unsupported(f"model: the configuration of {type(model).__name__} does not give max_position_embeddings")
        return _longer(twin, method, trained, length)
    if method.name == "nope":
        every = int(method.factor or 1)
        return attach(twin, create("nope"), layers=range(every - 1, config.num_hidden_layers, every))
    torch.manual_seed(0)  # the first values of an encoding that would be trained
    heads = config.num_attention_heads
    width = getattr(config, "head_dim", None) or config.hidden_size // heads
    return attach(twin, create(method.name, d_model=config.hidden_size, n_heads=heads, d_head=width))


def _longer(model: Any, method: Method, trained: int, length: int) -> Any:
    """The model with rotations for more than `trained` tokens."""
    if method.name in EXTENDED:
        assert method.factor is not None
        return extend(model, math.ceil(trained * method.factor), method.name, factor=method.factor)
    rope = own_rope(model)
    if method.name == "dynamic":
        frequencies = dynamic(rope.frequencies, method.factor or 1.0, trained).at_length(length)
        return attach(model, RoPE(rope.d_head, layout=rope.layout, frequencies=frequencies))
    arguments = regional(method, trained) | {"layout": rope.layout, "frequencies": rope.frequencies}
    return attach(model, create(method.name, d_head=rope.d_head, **arguments))


def regional(method: Method, trained: int) -> dict[str, Any]:
    """The settings for a model that was trained on `trained` tokens.

    self_extend  a quarter of them at their own distance, and the smallest groups that reach `factor` times as many
    """
    if method.name == "self_extend":
        assert method.factor is not None
        window = trained // 4
        return {"window": window, "group": math.ceil((method.factor * trained - window) / (trained - window))}
    return {"trained_length": trained} if method.name == "dual_chunk" else {"near": trained}


def trained_length(model: Any) -> int | None:
    """The tokens that the model was trained on, as its configuration says; None if it does not."""
    length = getattr(text_config(model), "max_position_embeddings", None)
    return length if isinstance(length, int) else None


def own_rope(model: Any) -> Any:
    """The rotation that all layers of the model share. Raises Unsupported where there is none such."""
    from posenc.configs import spec_of

    spec = spec_of(text_config(model).to_dict(), defaults=True)
    layers = set(spec.layers)
    encoding = spec.encoding() if len(layers) == 1 else None
    if type(encoding) is not RoPE or not isinstance(encoding.frequencies, Frequencies):
        raise Unsupported(f"model: expected plain RoPE, alike in all layers; posenc inspect says what {spec.family} has")
    return encoding


@torch.no_grad()
def score(model: nn.Module, text: Text, length: int, end: int) -> tuple[float, float]:
    """The mean loss of the scored tokens and that of the copied ones, in nats, of one pass."""
    window = text.window(length, end).to(next(model.parameters()).device)
    n_targets = text.scored + text.copied
    logits = model(window[None], logits_to_keep=n_targets + 1, use_cache=False).logits[0, -n_targets - 1 : -1].float()
    losses = nn.functional.cross_entropy(logits, window[-n_targets:], reduction="none").double()
    return losses[: text.scored].mean().item(), losses[text.scored :].mean().item()


def key_of(model: Any, windows: Windows) -> str:
    """A name of the model, the windows and their settings: part of each weight, all of the windows' identity."""
    config = {name: value for name, value in text_config(model).to_dict().items() if name not in ELSEWHERE}
    digest = hashlib.sha256(json.dumps(config, sort_keys=True, default=str).encode())
    for name, tensor in model.state_dict().items():
        digest.update(name.encode() + tensor.flatten()[:64].float().cpu().numpy().tobytes())
    digest.update(str([parameter.dtype for parameter in model.parameters()][:1]).encode())
    digest.update(windows.identity())
    return digest.hexdigest()[:16]


def kept(path: Path, key: str, row: type[Any]) -> dict[tuple[str, int, int], Any]:
    """The scores of that key in a file of one line each; other keys, and a last line that was cut off, are left out."""
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    rows = {}
    for line in lines:
        try:
            score = row(**json.loads(line))
        except (ValueError, TypeError):
            continue
        if score.key == key:
            rows[score.method, score.length, score.end] = score
    return rows


@torch.no_grad()
def run(
    model: Any,
    windows: Windows,
    methods: Sequence[Method],
    lengths: Sequence[int],
    path: Path,
    tell: Callable[[str, float], None] = lambda what, share: None,
    look: Callable[[], None] = lambda: None,
) -> list[Any]:
    """Scores every method at every length on every sample; those in `path` are taken from there, new ones are added to it.

    tell   is told what is computed, and the share of the work that is done
    look   is called before each pass

    Samples are the outermost loop, so that a run that was stopped has a whole table of some of them. Each score is written
    before the next pass begins. Raises ValueError before the first one for a length or a method that cannot be scored.
    """
    windows.check(lengths)
    for method in methods:
        try:
            changed(model, method, max(lengths))
        except (ValueError, TypeError) as error:
            raise ValueError(f"--extend {method}: {error}") from error
    key = key_of(model, windows)
    rows = kept(path, key, windows.row)
    cells = [(method, n, end) for end in windows.ends() for n in sorted(lengths) for method in methods]
    work, done = sum(_work(n) for _, n, _ in cells), 0.0
    for method, n, end in cells:
        look()
        if (str(method), n, end) not in rows:
            tell(f"{method} {n}", done / work)
            begin = time.monotonic()
            measured = windows.measured(changed(model, method, n), n, end)
            numbers = {name: value if math.isfinite(value) else None for name, value in measured.items()}
            seconds = round(time.monotonic() - begin, 2)
            row = windows.row(key=key, method=str(method), length=n, end=end, **numbers, seconds=seconds)
            _append(path, json.dumps(asdict(row)))
            rows[row.method, n, end] = row
        done += _work(n)
    return [rows[str(method), n, end] for method, n, end in cells]


def _work(n: int) -> float:
    """Of one pass, in the tokens of a short one: attention of n tokens costs n² of something smaller."""
    return n * (1 + n / 8192)


def _append(path: Path, line: str) -> None:
    """Adds a whole line, after a last one that was cut off."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        file.seek(0, 2)
        if file.tell() and (file.seek(-1, 2), file.read(1))[1] != b"\n":
            line = "\n" + line
        file.write(line.encode() + b"\n")


def table(scores: Sequence[Any], of: str) -> dict[str, dict[int, float | None]]:
    """Perplexity by method and length, over all samples: of "loss", "copied" or "answer". None where one is not finite."""
    table_of: dict[str, dict[int, float | None]] = {}
    for (method, n), losses in _by_cell(scores, of).items():
        numbers = [loss for loss in losses if loss is not None]
        mean = sum(numbers) / len(losses)
        whole = len(numbers) == len(losses) and mean < MOST
        table_of.setdefault(method, {})[n] = math.exp(mean) if whole else None
    return table_of


def counted(scores: Sequence[Any]) -> dict[str, dict[int, str]]:
    """Of how many samples the answer was found, by method and length: "7/10"."""
    result: dict[str, dict[int, str]] = {}
    for (method, n), right in _by_cell(scores, "exact").items():
        result.setdefault(method, {})[n] = f"{sum(map(bool, right))}/{len(right)}"
    return result


def _by_cell(scores: Sequence[Any], of: str) -> dict[tuple[str, int], list[float | None]]:
    by_cell: dict[tuple[str, int], list[float | None]] = {}
    for score in scores:
        by_cell.setdefault((score.method, score.length), []).append(getattr(score, of))
    return by_cell
