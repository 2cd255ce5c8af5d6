"""The positional encoding of a model as frozen values: readers of families make them, and they build posenc's encodings."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from posenc.configs.coordinates import SEQUENCE
from posenc.configs.errors import ConfigError
from posenc.support.checked import checked
from posenc.support.languages import Words

if TYPE_CHECKING:
    from torch import Tensor

    from posenc.combined import PerLayer
    from posenc.encoding import PositionalEncoding
    from posenc.frequencies import Arithmetic, ByLength
    from posenc.positions import Positions
    from posenc.support.shapes import Float

BY_AXIS = "configs.by_axis.by_axis"  # the kind of a rotation whose axes have spectra of their own
STARTS = ("rotary", "partial", "proportional")  # made from a width and a base; all others from frequencies
Exact = Literal["fp64", "model"]
RECURRENT = ("linear_attention", "conv", "mlp", "moe")  # kinds of layers that are not attention
Grade = Literal["error", "warning", "note"]
GRADES = get_args(Grade)  # gravest first


@dataclass(frozen=True)
class Remark:
    """A remark on this configuration for its reader; `key` is the key of the file that it is about."""

    grade: Grade
    key: str
    words: Words

    @property
    def text(self) -> str:
        """The remark in English."""
        return self.words.en


@dataclass(frozen=True)
class Rotation:
    """Rotary frequencies as the configuration gives them.

    kind        a function of posenc.frequencies: "rotary" for no scaling, "linear", "yarn", "llama3", …;
                with a dot, a function of another module of posenc, which takes `arithmetic` too
    width       d of base^(-2i/d)
    parameters  further arguments of that function, as (name, value) pairs
    maps        functions from frequencies to frequencies applied afterwards, (name, ((argument, value), …)): axes, sections
    """

    width: int
    base: float
    kind: str = "rotary"
    parameters: tuple[tuple[str, Any], ...] = ()
    maps: tuple[tuple[str, tuple[tuple[str, Any], ...]], ...] = ()

    def frequencies(self, arithmetic: Arithmetic = "float64") -> ByLength:
        """The frequencies; "float32" computes them as transformers does, bit for bit."""
        from posenc import frequencies

        result: ByLength
        if "." in self.kind:
            module, _, name = self.kind.rpartition(".")
            function = getattr(importlib.import_module(f"posenc.{module}"), name)
            result = function(self.width, self.base, arithmetic=arithmetic, **dict(self.parameters))
        elif arithmetic == "float64":
            function, parameters = getattr(frequencies, self.kind), dict(self.parameters)
            if self.kind in STARTS:
                result = function(self.width, self.base, **parameters)
            else:
                result = function(frequencies.rotary(self.width, self.base), **parameters)
        else:
            from posenc.configs import float32

            result = getattr(float32, "default" if self.kind == "rotary" else self.kind)(
                self.width, self.base, **dict(self.parameters)
            )
        from posenc.configs.mapped import Mapped

        for name, arguments in self.maps:
            if isinstance(result, frequencies.Frequencies):
                result = getattr(frequencies, name)(result, **dict(arguments))
            else:
                result = Mapped(result, name, arguments)
        return result


@dataclass(frozen=True)
class Weight:
    """A tensor of the checkpoint that fills a parameter; `key` is the end of its name, "{layer}" stands for the layer.

    transpose  stored with its two axes swapped
    reshape    stored with another shape, the same numbers in the same order
    part       stored inside a larger tensor: (axis, index)
    last       this many of its first rows are stored last
    flip       its rows are stored in reverse
    into       fills only one entry of the parameter: (axis, index)
    order      stored with the parameter's axes in this order, merged or not
    """

    parameter: str
    key: str
    transpose: bool = False
    reshape: bool = False
    part: tuple[int, int] | None = None
    last: int = 0
    flip: bool = False
    into: tuple[int, int] | None = None
    order: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Use:
    """One encoding in a layer: its class, its arguments, and where each of them comes from.

    encoding   path of the class below posenc: "encodings.rope.RoPE"
    arguments  its arguments; a Rotation among them becomes frequencies
    said_by    argument -> the key of the file, "default of LlamaConfig" or "constant of the code"
    weights    which tensors of a checkpoint fill its parameters
    note       one sentence for the reader of the page
    fraction   the partial_rotary_factor with which any program makes this width of the settings; None: none is needed
    """

    encoding: str
    arguments: tuple[tuple[str, Any], ...] = ()
    said_by: tuple[tuple[str, str], ...] = ()
    weights: tuple[Weight, ...] = ()
    note: Words | None = None
    fraction: float | None = field(default=None, compare=False)

    @property
    def name(self) -> str:
        return self.encoding.rpartition(".")[2]

    def build(self, arithmetic: Arithmetic = "float64") -> PositionalEncoding:
        """The encoding. Raises ConfigError, with the keys, for arguments that it refuses."""
        module, _, name = self.encoding.rpartition(".")
        make = getattr(importlib.import_module(f"posenc.{module}"), name)
        try:
            encoding: PositionalEncoding = make(
                **{
                    key: value.frequencies(arithmetic) if isinstance(value, Rotation) else value
                    for key, value in self.arguments
                }
            )
        except (ArithmeticError, RuntimeError, TypeError, ValueError) as error:
            keys = dict.fromkeys(key for _, key in self.said_by if not key.startswith(("constant of", "default of")))
            raise ConfigError(f"{', '.join(keys)}: {name} cannot be made: {str(error)[:200]}") from error
        return encoding

    @property
    def rotation(self) -> Rotation | None:
        return next((value for _, value in self.arguments if isinstance(value, Rotation)), None)

    def with_said_by(self, said_by: Mapping[str, str]) -> Use:
        """The same, with where these arguments come from."""
        return replace(self, said_by=tuple({**dict(self.said_by), **said_by}.items()))


@dataclass(frozen=True)
class Layer:
    """One layer. Without uses, it has no positions of its own.

    kind     the family's name for it: "full_attention", "sliding_attention", "linear_attention" (recurrent), "conv", …
    window   a query sees this many tokens, itself included; None: all. In bidirectional attention (n-1)//2 are before it
    causal   whether later tokens are hidden
    chunk    a query sees tokens of its own chunk of this many only (Llama 4); None: no chunks
    """

    uses: tuple[Use, ...] = ()
    kind: str = "full_attention"
    window: int | None = None
    causal: bool = True
    chunk: int | None = None

    @property
    def attends(self) -> bool:
        """Whether it is attention; recurrent layers, convolutions and MLPs are not."""
        return self.kind not in RECURRENT

    @property
    def reach_both_ways(self) -> tuple[int | None, int | None] | None:
        """The window as `attend` takes it: positions before and after a query; None where there is none."""
        if self.window is None:
            return None
        if self.causal:
            return self.window - 1, 0
        before = (self.window - 1) // 2
        return before, self.window - 1 - before

    @property
    def reach(self) -> int | None:
        """The distance that no query exceeds to the keys that it sees; None if there is no limit."""
        return self.window if self.chunk is None else self.chunk


@dataclass(frozen=True)
class PositionSpec:
    """The positional encoding of one model, or of one part of it.

    family          the model type, "llama"
    config_class    the configuration class that reads the file, "LlamaConfig"
    part            the section of this part: "", "text_config", "decoder", …
    layers          every layer, numbered as in the model; absolute encodings are uses of layer 0; () if nothing attends
    parts           the models inside: text, vision, audio, encoder, decoder
    trained_length  the number of positions according to the file; None if it does not say
    coordinates     how this family numbers its tokens, in one sentence
    d_model, d_head, n_heads  sizes, if they are the same for all layers
    n_kv_heads      heads of keys and values; None if the file and the class do not say
    remarks         what a reader should know, errors first
    keys            every key of the file that was read, with its value
    remote          whether the model's own code runs it, not transformers'; that code may read other keys
    claims          the model_type of the file, where its classes name this family instead
    wraps           the section of the text model, which alone is read: the model_type is not known
    """

    family: str
    config_class: str = ""
    part: str = ""
    layers: tuple[Layer, ...] = ()
    parts: tuple[PositionSpec, ...] = ()
    trained_length: int | None = None
    coordinates: Words = SEQUENCE
    d_model: int | None = None
    d_head: int | None = None
    n_heads: int | None = None
    n_kv_heads: int | None = field(default=None, compare=False, repr=False)
    remarks: tuple[Remark, ...] = ()
    keys: tuple[tuple[str, Any], ...] = field(default=(), compare=False)
    remote: bool = field(default=False, compare=False)
    claims: str = field(default="", compare=False, repr=False)
    wraps: str = field(default="", compare=False, repr=False)

    @checked
    def encoding(self, layer: int = 0, *, exact: Exact = "fp64") -> PositionalEncoding:
        """The encoding of one layer; several become a Stack, none is NoPE.

        exact   "fp64": exact angles. "model": transformers' own fp32 frequencies and angles, bit for bit, which is what the
                model was trained with; the two differ by up to 1.7e-2 in cos within 200 000 positions (`posenc inspect`
                reports the figure for a model)
        Raises IndexError for a layer that does not exist, ValueError if only the parts have layers.
        """
        from posenc.configs.stacked import stacked

        numbers = _arithmetic(exact)
        return stacked([use.build(numbers) for use in self.layer(layer).uses])

    def encodings(self, *, exact: Exact = "fp64") -> PerLayer:
        """The encodings of all layers; equal layers share one. `exact` as for `encoding`."""
        from posenc.combined import PerLayer
        from posenc.configs.stacked import stacked

        numbers = _arithmetic(exact)
        encodings = {layer: stacked([use.build(numbers) for use in layer.uses]) for layer in self.layers}
        return PerLayer(encodings[layer] for layer in self.layers)

    def attend(
        self,
        layer: int,
        q: Float[Tensor, "b h i d"],
        k: Float[Tensor, "b g j d"],
        v: Float[Tensor, "b g j e"],
        at_q: Positions,
        at_k: Positions | None = None,
        *,
        exact: Exact = "fp64",
        **options: Any,
    ) -> Tensor:
        """What the model's layer does with unrotated q, k and v: its encoding, its window or chunk, its direction.

        Shapes and `options` as for `posenc.attend`; a window or chunk that is given replaces the layer's. The soft cap and
        the sinks of a model are no part of its positions: give them as options. Raises as `encoding` and `attend` do.
        """
        from posenc.attention import attend

        of_layer = self.layer(layer)
        of_options: dict[str, Any] = {
            "causal": of_layer.causal,
            "window": of_layer.reach_both_ways,
            "chunk": of_layer.chunk,
        }
        if not of_layer.attends:
            raise ValueError(f"layer: {layer} is {of_layer.kind.replace('_', ' ')}, not attention; see spec.layers")
        encoding = self.encoding(layer, exact=exact)
        out: Tensor = attend(q, k, v, encoding, at_q, at_k, **{**of_options, **options})
        return out

    @checked
    def layer(self, layer: int) -> Layer:
        if not self.layers:
            inside = ", ".join(repr(part.part) for part in self.parts) or "none"
            raise ValueError(f"{self.family}: has no attention layers of its own; its parts are {inside}: spec[part]")
        if not 0 <= layer < len(self.layers):
            raise IndexError(f"layer: {self.family} has layers 0 … {len(self.layers) - 1}, got {layer}")
        return self.layers[layer]

    def __getitem__(self, part: str) -> PositionSpec:
        """The part of that name: spec["text_config"]."""
        for candidate in self.parts:
            if candidate.part == part:
                return candidate
        names = ", ".join(repr(candidate.part) for candidate in self.parts) or "none"
        raise KeyError(f"{self.family} has no part {part!r}; it has {names}")

    @checked
    def walk(self, path: str = "") -> Iterator[tuple[str, PositionSpec]]:
        """This spec and everything inside, each with its path: "", "text_config", "text_config.encoder"."""
        yield path, self
        for part in self.parts:
            yield from part.walk(f"{path}.{part.part}".strip("."))

    @checked
    def with_part(self, name: str) -> PositionSpec:
        return replace(self, part=name)


def _arithmetic(exact: Exact) -> Arithmetic:
    """The arithmetic of frequencies. Raises ValueError for an unknown `exact`."""
    if not isinstance(exact, str) or exact not in get_args(Exact):
        raise ValueError(f"exact: expected 'fp64' or 'model', got {exact!r}")
    return "float32" if exact == "model" else "float64"
