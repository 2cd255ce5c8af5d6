"""The parts of a Hugging Face model that posenc hooks into: a decoder or an encoder, or both, layers, attention modules."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn import functional

from posenc.transformers import interface
from posenc.transformers.bound_forward import ATTACHED, OBSERVED, bind, owner_of, rotations, unbind
from posenc.transformers.positions import CrossCall
from posenc.transformers.rotation_forms import Rotate
from posenc.transformers.versions import warn_untested

if TYPE_CHECKING:
    from posenc.configs.spec import Layer, PositionSpec

TOKENS = 3  # of the run that finds the parts
SERVED = ("eager", "sdpa", "flex_attention", interface.NAME, None)  # attention that posenc's can stand in for


class Unsupported(ValueError):
    """The model, or one of its layers, cannot be served; the message says which and why."""


@dataclass(frozen=True)
class Decoder:
    """A model's stack of layers: the decoder of a causal model, or an encoder, which attends both ways.

    part       "encoder" or "decoder" in a model that has both; empty where there is one stack
    module     the stack: what embeds tokens and runs the layers
    names      of its positional arguments
    first      its first layer
    attention  the attention modules that call transformers' attention interface, by layer index
    rotated    those of them to which the model hands cos and sin
    shapes     of the hidden states that they are given for `TOKENS` tokens, and of their queries, keys and values
    options    what else their attention is told, where not None: scaling, softcap, s_aux (sinks), and what posenc's
               attention does not know
    carried    layers and their attention modules, where layers hand on cos and sin but no other keyword arguments
    inline     layers whose rotation turns all channels of queries and keys in one call, so that another can take its place
    normed     layers that change the length of queries or keys after their rotation, as a norm does
    weighted   layers that change their direction, as a norm with weights does
    both_ways  layers in which tokens see later ones too
    crossing   the modules of cross-attention, which read the encoder's output
    inputs     what a run of the stack is given beside tokens: the encoder's output
    """

    part: str
    module: nn.Module
    names: tuple[str, ...]
    first: nn.Module
    attention: dict[int, nn.Module]
    rotated: frozenset[int]
    shapes: dict[int, tuple[torch.Size, ...]]
    options: dict[int, dict[str, Any]]
    carried: tuple[tuple[nn.Module, nn.Module], ...]
    inline: frozenset[int]
    normed: frozenset[int]
    weighted: frozenset[int]
    both_ways: frozenset[int]
    crossing: tuple[nn.Module, ...]
    inputs: Mapping[str, torch.Tensor]


def stacks_of(model: Any) -> dict[str, nn.Module]:
    """The stacks of a model, by part: {"encoder": …, "decoder": …}, or {"": decoder_of(model)} where there is one.

    Raises Unsupported as `decoder_of`.
    """
    if hasattr(model, "config") and hasattr(model, "get_decoder") and _expects_a_decoder(model):
        parts = {"encoder": model.get_encoder(), "decoder": model.get_decoder()}
        if len({id(model), *map(id, parts.values())}) == 3 and all(hasattr(part, "config") for part in parts.values()):
            warn_untested()
            return parts
    return {"": decoder_of(model)}


def decoder_of(model: Any) -> nn.Module:
    """The decoder of a causal language model, or the encoder of a model that is one. Raises Unsupported for others.

    Every function that takes a model comes through here, so that here is where an untested transformers is warned of.
    """
    warn_untested()
    if not hasattr(model, "config") or not hasattr(model, "get_decoder"):
        raise Unsupported(f"model: expected a language model or an encoder of transformers, got {type(model).__name__}")
    if _expects_a_decoder(model):
        raise Unsupported(f"model: {_why_not_one_stack(model)}")
    decoder: Any = model.get_decoder()
    if decoder is None or not isinstance(decoder, nn.Module):
        raise Unsupported(f"model: {type(model).__name__} names no decoder")
    if isinstance(decoder, nn.Linear):  # ModernBertDecoder calls its output layer so
        return model.base_model  # type: ignore[no-any-return]
    return decoder


def _why_not_one_stack(model: Any) -> str:
    """Why an encoder with a decoder, or a part of one, is not taken as one stack of layers, and what is."""
    name, encoder = type(model).__name__, model.get_encoder()
    if encoder is model or model.get_decoder() is model:
        return f"{name} is configured as a part of an encoder with a decoder; attach to the whole model"
    if not hasattr(encoder, "config"):
        return f"{name} is an encoder with a decoder, whose configuration its {type(encoder).__name__} does not hold"
    is_model = not _expects_a_decoder(encoder)
    remedy = "give its encoder alone, model.get_encoder()" if is_model else "its encoder is no model by itself"
    return f"{name} is an encoder with a decoder, where one stack of layers is expected; {remedy}"


def _expects_a_decoder(model: Any) -> bool:
    """Whether the configuration is that of an encoder with a decoder and the model is not a stack that says it encodes.

    T5's encoder says so; BART's does not, and reads the configuration that its decoder reads too.
    """
    stack = model.get_encoder() is model and getattr(model, "is_decoder", None) is False
    return getattr(model.config, "is_encoder_decoder", False) and not stack


def input_device(model: Any) -> torch.device:
    """The device of the input embedding."""
    embeddings: nn.Module = model.get_input_embeddings()
    return next(embeddings.parameters()).device


def layers_of(decoder: nn.Module) -> nn.ModuleList:
    """The list of layers: the longest ModuleList directly in the decoder, or else the first one anywhere inside."""
    lists = [child for child in decoder.children() if isinstance(child, nn.ModuleList) and len(child)]
    inside = (module for module in decoder.modules() if isinstance(module, nn.ModuleList) and len(module))
    layers = max(lists, key=len, default=None) or next(inside, None)
    if layers is None:
        raise Unsupported(f"model: {type(decoder).__name__} has no list of layers")
    return layers


def positional_names(decoder: nn.Module) -> tuple[str, ...]:
    """The names of the decoder's positional arguments."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(type(decoder).forward).parameters
    return tuple(name for name, about in parameters.items() if about.kind in kinds and name != "self")


class _Probe:
    """What the attention modules of a model are handed, seen during a run on `TOKENS` tokens that changes nothing."""

    NAME = f"{interface.NAME}_probe"

    def __init__(self, indices: Mapping[nn.Module, int]) -> None:
        self.indices = indices
        self.attention: dict[int, nn.Module] = {}
        self.shapes: dict[int, tuple[torch.Size, ...]] = {}
        self.options: dict[int, dict[str, Any]] = {}
        self.rotated: set[int] = set()
        self.hidden: dict[int, torch.Size] = {}
        self.unreached: list[str] = []
        self.same: list[str] = []
        self.other_keys: list[str] = []
        self.error: Exception | None = None
        self.tables: dict[nn.Module, Any] = {}
        self.turned: dict[nn.Module, list[tuple[torch.Tensor, ...]]] = {}
        self.by_tables: set[nn.Module] = set()
        self.inline: set[int] = set()
        self.normed: set[int] = set()
        self.weighted: set[int] = set()
        self.both_ways: set[int] = set()
        self.crossing: list[nn.Module] = []
        self.output: torch.Tensor | None = None

    def look_on(self, module: nn.Module, *args: Any, **kwargs: Any) -> Any:
        """Records what reaches attention, then computes it."""
        if isinstance(kwargs.get(interface.CALL), CrossCall):
            self.crossing.append(module)
            return interface.attention(module, *args, **kwargs)
        index = self.indices.get(module)
        if index is not None:
            if self.attention.setdefault(index, module) is not module:
                self.same.append(f"{type(self.attention[index]).__name__} and {type(module).__name__}")
            told = {
                name: kwargs.get(name) for name in ("scaling", "softcap", "s_aux", *(kwargs.keys() - interface.UNDERSTOOD))
            }
            self.options.setdefault(index, {name: value for name, value in told.items() if value is not None})
            if not interface.attends_causally(module, kwargs.get("is_causal")):
                self.both_ways.add(index)
            self.shapes.setdefault(index, (self.hidden[index], *(tensor.shape for tensor in args[:3])))
            if len(turned := self.turned.pop(module, [])) == 1:
                self._compare(index, module, list(zip(args, turned[0], strict=False)))
        if args[1].shape[2] != TOKENS:
            self.other_keys.append(f"{type(module).__name__} attends to {args[1].shape[2]} keys for {TOKENS} tokens")
        if kwargs.get(interface.CALL) is None:
            self.unreached.append(type(module).__name__)
        return interface.attention(module, *args, **kwargs)

    def _compare(self, index: int, module: nn.Module, pairs: list[tuple[torch.Tensor, torch.Tensor]]) -> None:
        """Records what a layer does between its rotation and attention: queries and keys, as handed over and as turned."""
        if module in self.by_tables and all(handed.shape == turned.shape for handed, turned in pairs):
            self.inline.add(index)
        if not all(_same(handed, turned, _lengths) for handed, turned in pairs):
            self.normed.add(index)
        if not all(_same(handed, turned, _directions) for handed, turned in pairs):
            self.weighted.add(index)

    def note(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Before each module that knows the index of its layer."""
        index = self.indices[module]
        if kwargs.get("position_embeddings") is not None:
            self.rotated.add(index)
            self.tables[module] = kwargs["position_embeddings"]
        states = args[0] if args else kwargs.get("hidden_states")
        if isinstance(states, torch.Tensor):
            self.hidden[index] = states.shape

    def look_on_rotation(self, module: nn.Module, rotate: Rotate) -> Rotate:
        """In the place of a rotation: keeps the queries and keys that it returns together."""
        signature = inspect.signature(rotate)

        def rotated(*args: Any, **kwargs: Any) -> Any:
            arguments, out = signature.bind(*args, **kwargs).arguments, rotate(*args, **kwargs)
            held: Any = self.tables.get(module)
            if isinstance(out, tuple):
                self.turned.setdefault(module, []).append(out)
            pair = list(arguments)[:4] == ["q", "k", "cos", "sin"] and arguments.get("unsqueeze_dim", 1) == 1
            if pair and isinstance(held, tuple) and arguments["cos"] is held[0] and arguments["sin"] is held[1]:
                self.by_tables.add(module)
            return out

        return rotated

    @torch.no_grad()
    def run(
        self,
        model: Any,
        decoder: nn.Module,
        inputs: Mapping[str, torch.Tensor],
        carriers: Iterable[tuple[nn.Module, nn.Module]] = (),
    ) -> None:
        """Runs the decoder and keeps its output, or its error; `carriers` are layers and attention modules as in
        `Decoder.carried`."""
        from transformers import AttentionInterface, AttentionMaskInterface
        from transformers.masking_utils import sdpa_mask

        AttentionInterface.register(self.NAME, self.look_on)
        AttentionMaskInterface.register(self.NAME, sdpa_mask)
        positions = interface.GivePositions(positional_names(decoder), across=bool(inputs))
        handles = [
            decoder.register_forward_pre_hook(positions, with_kwargs=True),
            *interface.carry(carriers),
            *(module.register_forward_pre_hook(self.note, with_kwargs=True) for module in self.indices),
            *interface.cross(self.indices),
        ]
        was_training, configured = model.training, implementations(decoder)
        rotating = {module: vars(module).get("forward") for module in self.indices if _has_own_rotation(module)}
        try:
            model.eval()
            set_implementation(decoder, self.NAME)
            for module in rotating:
                bind(module, {rotate: self.look_on_rotation(module, rotate) for rotate in rotations(module)}, OBSERVED)
            ids = torch.ones(1, TOKENS, dtype=torch.long, device=input_device(model))
            self.output = decoder(input_ids=ids, use_cache=False, **inputs)[0]
        except Exception as error:  # of the model's own code
            self.error = error
        finally:
            for module, forward in rotating.items():
                unbind(module, OBSERVED)
                if forward is not None:
                    module.forward = forward
            restore_implementations(configured)
            model.train(was_training)
            for handle in handles:
                handle.remove()
            AttentionInterface._global_mapping.pop(self.NAME, None)
            AttentionMaskInterface._global_mapping.pop(self.NAME, None)


def tried(model: Any) -> tuple[Decoder, ...]:
    """The stacks, found by running each on a few tokens with hooks that look on and change nothing: one, or an encoder and
    a decoder, which then reads what the encoder has returned.

    Raises Unsupported, naming the class, where attention does not go through transformers' interface, or where neither
    keyword arguments of the stack nor cos and sin reach it.
    """
    stacks: list[Decoder] = []
    inputs: dict[str, torch.Tensor] = {}
    for part, stack in stacks_of(model).items():
        decoder, output = _tried(model, part, stack, inputs)
        stacks.append(decoder)
        inputs = {"encoder_hidden_states": output}
    return tuple(stacks)


def _tried(model: Any, part: str, decoder: nn.Module, inputs: Mapping[str, torch.Tensor]) -> tuple[Decoder, torch.Tensor]:
    layers = layers_of(decoder)
    check_attention(decoder)
    if compressed := [kind for kind in getattr(decoder.config, "layer_types", None) or () if "compressed" in kind]:
        raise Unsupported(f"model: the {compressed[0]} of {type(decoder).__name__} has keys that stand for several tokens")
    carried: tuple[tuple[nn.Module, nn.Module], ...] = ()
    known = indices(decoder, part)
    seen = _Probe(known)
    seen.run(model, decoder, inputs)
    if seen.unreached:
        carried = tuple(
            (layer, module) for layer in layers for module in layer.modules() if module in known and module is not layer
        )
        seen = _Probe(known)
        seen.run(model, decoder, inputs, carried)
    name = type(decoder).__name__
    if seen.unreached:
        raise Unsupported(
            f"model: {seen.unreached[0]} receives neither the keyword arguments of {name} nor its cos and sin, so that "
            "positions cannot reach it"
        ) from seen.error
    if seen.error is not None and "input_ids" not in positional_names(decoder):
        raise Unsupported(f"model: {name} takes no input_ids; attach serves models that read tokens") from seen.error
    if seen.error is not None:
        raise Unsupported(f"model: {name} does not run with another attention: {seen.error}") from seen.error
    if not seen.attention:
        if inside := _contextual(decoder):
            raise Unsupported(
                f"model: {name} computes {inside} within its own attention, from queries, keys and weights of its own; it "
                "does not go through AttentionInterface and can neither be switched off nor replaced"
            )
        raise Unsupported(f"model: no attention module of {name} goes through AttentionInterface")
    if seen.other_keys:
        raise Unsupported(f"model: {seen.other_keys[0]}, so that the positions of its keys are not known")
    if seen.same:
        raise Unsupported(f"model: {name} has several stacks of layers: {seen.same[0]} have one layer_idx")
    attention = dict(sorted(seen.attention.items()))
    for n, module in attention.items():
        if n in seen.both_ways and (part == "decoder" or getattr(module, "is_decoder", False)):
            raise Unsupported(
                f"model: {type(module).__name__} is part of a decoder, and its is_causal is False: where transformers "
                "leaves the causal mask out, these layers would see later tokens"
            )
    assert seen.output is not None
    result = Decoder(
        part,
        decoder,
        positional_names(decoder),
        layers[0],
        attention,
        frozenset(seen.rotated),
        seen.shapes,
        seen.options,
        carried,
        frozenset(seen.inline),
        frozenset(seen.normed),
        frozenset(seen.weighted),
        frozenset(seen.both_ways),
        tuple(seen.crossing),
        inputs,
    )
    return result, seen.output


def _contextual(decoder: nn.Module) -> str:
    """What the layers of a model compute of queries, keys and vectors for distances, by name: DeBERTa, for example."""
    from posenc.configs import ConfigError, spec_of

    try:
        spec = spec_of(decoder.config.to_dict())  # type: ignore[union-attr,operator]
        uses = [use for layer in spec.layers for use in layer.uses]
        return next((use.name for use in uses if "bias" in use.build().seams and use.build().reads_vectors), "")
    except ConfigError:
        return ""


def _same(handed: torch.Tensor, turned: torch.Tensor, measure: Callable[[torch.Tensor], torch.Tensor]) -> bool:
    """Whether both have one measure within a few roundings, be they [b, h, t, d] or [b, t, h, d].

    Other shapes are taken for the same: repeated heads, and channels that did not turn beside those that did.
    """
    alike = [measure(tensor) for tensor in (turned, turned.transpose(1, 2)) if tensor.shape == handed.shape]
    expected, rounding = measure(handed), 8 * torch.finfo(handed.dtype).eps
    return not alike or any(bool(((m - expected).abs() <= rounding * expected.abs().amax()).all()) for m in alike)


def _lengths(x: torch.Tensor) -> torch.Tensor:
    lengths: torch.Tensor = x.float().norm(dim=-1)
    return lengths


def _directions(x: torch.Tensor) -> torch.Tensor:
    directions: torch.Tensor = functional.normalize(x.float(), dim=-1)
    return directions


def _has_own_rotation(module: nn.Module) -> bool:
    """Whether the module's code, or `fast` in its place, rotates: not code of others, nor an encoding that is attached."""
    return bool(rotations(module)) and owner_of(module) not in ("", ATTACHED)


def indices(stack: nn.Module, part: str) -> dict[nn.Module, int]:
    """The modules inside that know the index of their layer, with it. In the encoder of mBART's kind, which caches nothing,
    they keep None: the place of the layer in the list is meant."""
    layers = layers_of(stack) if part == "encoder" else ()
    places = {module: n for n, layer in enumerate(layers) for module in layer.modules()}
    known = {module: getattr(module, "layer_idx", "") for module in stack.modules()}
    indices_of = {module: places.get(module) if index is None else index for module, index in known.items()}
    return {module: index for module, index in indices_of.items() if isinstance(index, int)}


def check_attention(decoder: nn.Module) -> None:
    """Raises Unsupported for a model that was asked to attend by a fused kernel, which posenc's attention would replace."""
    for _, name in implementations(decoder):
        if name not in SERVED:
            raise Unsupported(
                f"model: {type(decoder).__name__} attends with {name!r}, a fused variant that takes no encoding; "
                "call model.set_attn_implementation('sdpa') first"
            )


def layer_specs(spec: PositionSpec, attention: Iterable[int]) -> dict[int, Layer]:
    """What a configuration says of these attention layers; specs of hybrids may hold the attention layers alone."""
    indices = sorted(attention)
    if len(indices) == len(spec.layers):
        return dict(zip(indices, spec.layers, strict=True))
    return {n: spec.layers[n] for n in indices if n < len(spec.layers)}


def configs(decoder: nn.Module) -> list[Any]:
    """The configuration objects that the decoder's modules read, each once."""
    configs_by_id: dict[int, Any] = {}
    for module in decoder.modules():
        config = getattr(module, "config", None)
        if config is not None and hasattr(config, "_attn_implementation"):
            configs_by_id[id(config)] = config
    return list(configs_by_id.values())


def implementations(decoder: nn.Module) -> list[tuple[Any, str | None]]:
    """Each configuration with the attention implementation that it names."""
    return [(config, config._attn_implementation) for config in configs(decoder)]


def set_implementation(decoder: nn.Module, name: str) -> None:
    for config in configs(decoder):
        config._attn_implementation_internal = name


def restore_implementations(known: list[tuple[Any, str | None]]) -> None:
    for config, name in known:
        config._attn_implementation_internal = name
