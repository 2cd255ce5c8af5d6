"""Another encoding instead of a loaded model's own, in all of its layers or in some."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MethodType
from typing import Any

import torch
from torch import Tensor, nn

from posenc.combined import PerLayer, added, flat_parts
from posenc.configs.attached import KEY
from posenc.encoding import PositionalEncoding
from posenc.encodings.bases import temperature
from posenc.support import checks
from posenc.support.checks import shown
from posenc.support.identity import label
from posenc.transformers import interface
from posenc.transformers.bound_forward import ATTACHED, bind, rotations, unbind
from posenc.transformers.decoder import (
    Decoder,
    Unsupported,
    implementations,
    input_device,
    layer_specs,
    restore_implementations,
    set_implementation,
    tried,
)
from posenc.transformers.fit import can_take_the_place, check_later, check_layer, common_device
from posenc.transformers.kernel_rotation import is_fast, slow
from posenc.transformers.layer import Layer, in_place_of
from posenc.transformers.layouts import check_layouts
from posenc.transformers.own_tables import EmbedWords, OwnTables, own_tables, take_off
from posenc.transformers.saved import entry_of
from posenc.transformers.shared_folder import finish

RECORD = "_posenc_attached"
GUARD = "posenc_guard"  # the name of RefuseOtherOwners in the decoder
PARAMETERS = "posenc_encodings"  # the name under which a model holds what is attached: state_dict()["posenc_encodings.0.…"]


@dataclass
class Attached:
    """What `detach` undoes."""

    handles: list[Any]
    implementations: list[tuple[Any, str | None]]
    layers: dict[str, dict[int, int]]  # part of the model -> layer index -> number of its encoding in PARAMETERS
    of_folder: bool = False  # whether the model was loaded with what is attached


def attach(
    model: nn.Module,
    encoding: PositionalEncoding | Mapping[str, PositionalEncoding],
    *,
    layers: Iterable[int] | None = None,
) -> nn.Module:
    """Replaces the model's own encoding by `encoding`, in every attention layer or in `layers`; returns the model.

        attach(model, posenc.create("alibi", n_heads=32))
        attach(model, posenc.create("nope"), layers=range(3, 32, 4))
        attach(t5, {"encoder": posenc.create("alibi", n_heads=8), "decoder": posenc.create("nope")})

    The model's own rotation is switched off in these layers; its mask, window, scale, soft cap, sinks and dropout stay.
    So is a learned table of positions (BERT, RoBERTa, GPT-2, BART) or of biases (T5), where `layers` are all of its stack;
    a Stack with the table as a `learned` encoding keeps it. An encoding that adds to the embeddings does so where that
    table did, or else before the first layer, once: in a PerLayer it stands in the first layer. Parameters of the encoding
    become parameters of the model, under "posenc_encodings": `state_dict`, `to` and optimisers see them. The model is run
    once on three tokens to find its parts. `attach` may be called again for other layers; `detach` undoes all of it.

    In an encoder with a decoder (T5, BART) the encoding acts in the self-attention of both, each with its layers from 0 on;
    {"encoder": …, "decoder": …} gives each its own, and one of the two alone leaves the other as it is. Cross-attention
    stays as it is.

    Raises Unsupported for a model that cannot be served, TypeError for what is no encoding, ValueError for layers that
    there are not or that already have one, for a PerLayer of too few layers, for another number of heads, for a rotation
    that pairs other channels than the model's own, for which its weights were trained, for an encoding that adds to the
    embeddings in a later layer but not in the first one, and for one that needs causal attention in an encoder. The model
    is then as it was.
    """
    parts = encoding if isinstance(encoding, Mapping) else {"": encoding}
    for part in parts.values():
        if not isinstance(part, PositionalEncoding):
            raise TypeError(f"encoding: expected a PositionalEncoding such as posenc.create('alibi', …), got {part!r}")
    stacks = tried(model)
    known = [stack.part for stack in stacks]
    if isinstance(encoding, Mapping) and not (parts and parts.keys() <= set(known)):
        expected = "one PositionalEncoding" if known == [""] else f"some of the parts {', '.join(map(repr, known))}"
        raise ValueError(f"encoding: expected {expected} for this {type(model).__name__}, got {shown(list(parts))}")
    of_parts = {}
    for stack in stacks:
        if stack.part in parts or "" in parts:
            with _in_part(stack):
                wanted = chosen(layers, list(stack.attention))
                of_parts[stack.part] = _of_layers(parts[stack.part if stack.part in parts else ""], wanted)
    return put(model, stacks, of_parts)


def put(model: nn.Module, stacks: Iterable[Decoder], of_parts: Mapping[str, Mapping[int, PositionalEncoding]]) -> nn.Module:
    """Attaches these encodings to layers of the stacks, numbered in the order of their layers. Raises as `attach`."""
    stacks = tuple(stacks)
    before: Attached | None = getattr(model, RECORD, None)
    held: Any = getattr(model, PARAMETERS, None) or nn.ModuleList()
    planned = []
    for stack in stacks:
        if of_layers := of_parts.get(stack.part):
            known = before.layers.get(stack.part, {}) if before else {}
            with _in_part(stack):
                planned.append(_planned(model, stack, of_layers, {n: held[number] for n, number in known.items()}))
    devices = _devices(model, planned)

    interface.register()
    record = before or _opened(model, stacks, planned, held)
    numbers: dict[int, int] = {}
    for plan in planned:
        of_part = record.layers.setdefault(plan.stack.part, {})
        for n, of_layer in plan.of_layers.items():
            if id(of_layer) not in numbers:
                numbers[id(of_layer)] = len(held)
                held.append(of_layer.to(devices[id(of_layer)]))
            of_part[n] = numbers[id(of_layer)]
            record.handles.append(_entered(plan, n, of_layer))
        record.handles += _embedded(plan)
        take_off(plan.tables)
    _write_config(model, held, record.layers)
    return model


@dataclass(frozen=True)
class _Plan:
    """What `put` does to one stack.

    tables          the model's own, which are taken off
    caches_rotated  whether keys may be rotated before they are cached: not where layers take the keys of others
    in_place        layers in which the encoding takes the place of the model's rotation
    adding          what is added to the embeddings
    """

    stack: Decoder
    of_layers: Mapping[int, PositionalEncoding]
    tables: OwnTables
    caches_rotated: bool
    in_place: frozenset[int]
    adding: PositionalEncoding | None


def _planned(
    model: nn.Module, stack: Decoder, of_layers: Mapping[int, PositionalEncoding], earlier: Mapping[int, PositionalEncoding]
) -> _Plan:
    """The plan of a stack whose layers `earlier` have an encoding already. Raises as `attach`; nothing has changed then."""
    if taken := sorted(of_layers.keys() & earlier.keys()):
        raise ValueError(f"layers: {taken} have an encoding attached already; detach(model) first")
    _check_embeddings({**earlier, **of_layers})
    tables = _taken_off(model, stack, list(of_layers))
    for n, of_layer in of_layers.items():
        check_layer(stack, n, of_layer, None if tables.learned is None else tables.learned.d_model)
    check_layouts(stack, of_layers)
    shares_keys = any(getattr(module, "is_kv_shared_layer", False) for module in stack.attention.values())
    if shares_keys and (keeping := [of_layer for of_layer in of_layers.values() if Layer(of_layer).keeps_states]):
        raise Unsupported(
            f"encoding: {type(keeping[0]).__name__} reads hidden states of every key, and layers of this "
            f"{type(model).__name__} take the keys of others"
        )
    in_place = {n for n, of_layer in of_layers.items() if not shares_keys and can_take_the_place(stack, n, of_layer)}
    for n in of_layers.keys() - in_place:
        check_later(stack, n, of_layers[n])
    first = of_layers[min(of_layers)]
    adding = first if added(first) and not any(map(added, earlier.values())) else None
    return _Plan(stack, of_layers, tables, not shares_keys, frozenset(in_place), adding)


def _devices(model: nn.Module, planned: Iterable[_Plan]) -> dict[int, torch.device]:
    """Where each encoding belongs, by its id: it may act in several stacks."""
    modules: dict[int, tuple[PositionalEncoding, list[nn.Module]]] = {}
    for plan in planned:
        for n, of_layer in plan.of_layers.items():
            modules.setdefault(id(of_layer), (of_layer, []))[1].append(plan.stack.attention[n])
    device = input_device(model)
    return {number: common_device(encoding, of_one, device) for number, (encoding, of_one) in modules.items()}


def _opened(model: Any, stacks: Iterable[Decoder], planned: Iterable[_Plan], held: nn.ModuleList) -> Attached:
    """The record of a model to which nothing is attached yet, with the hooks by which positions reach every layer."""
    model.add_module(PARAMETERS, held)
    record = Attached([], [implementation for stack in stacks for implementation in implementations(stack.module)], {})
    rows = {plan.stack.part: plan.tables.first_row for plan in planned}
    guard = RefuseOtherOwners(record)
    for stack in stacks:
        positions = interface.GivePositions(
            stack.names, rows.get(stack.part, 0), both_ways=bool(stack.both_ways), across=bool(stack.crossing)
        )
        record.handles.append(stack.module.register_forward_pre_hook(positions, with_kwargs=True))
        record.handles.extend(interface.carry(stack.carried))
        record.handles.extend(interface.cross(stack.crossing))
        stack.module.add_module(GUARD, guard)
        record.handles.append(stack.module.register_state_dict_pre_hook(guard.before_state_dict))
        set_implementation(stack.module, interface.NAME)
    object.__setattr__(model, RECORD, record)
    if "save_pretrained" not in vars(model):
        vars(model)["save_pretrained"] = MethodType(save_pretrained, model)
    return record


def _entered(plan: _Plan, n: int, encoding: PositionalEncoding) -> Any:
    """Lets layer n attend with the encoding; the handle of its hook."""
    module = plan.stack.attention[n]
    _, groups, _, width = plan.stack.shapes[n][2]
    layer = Layer(encoding, keys=(groups, width), caches_rotated=plan.caches_rotated)
    if n in plan.in_place:
        bind(module, {function: in_place_of(function) for function in rotations(module)}, ATTACHED)
    return module.register_forward_pre_hook(interface.EnterLayer(layer), with_kwargs=True)


def _embedded(plan: _Plan) -> list[Any]:
    """Adds what is added to the embeddings, where the model's own table was read or before the first layer; handles."""
    stack = plan.stack
    if plan.tables.learned is not None:
        hook = EmbedWords(plan.adding, plan.tables, stack.names)
        return [stack.module.register_forward_pre_hook(hook, with_kwargs=True)]
    if plan.adding is not None:
        return [stack.first.register_forward_pre_hook(interface.Embed(plan.adding), with_kwargs=True)]
    return []


@contextmanager
def _in_part(stack: Decoder) -> Iterator[None]:
    """Says in which part of an encoder with a decoder an encoding is refused, and how each is given its own."""
    try:
        yield
    except (ValueError, TypeError) as error:
        if not stack.part:
            raise
        remedy = "" if isinstance(error, Unsupported) else "; {'encoder': …, 'decoder': …} gives each its own encoding"
        raise type(error)(f"{error} (in the {stack.part}{remedy})") from error


def detach(model: nn.Module) -> nn.Module:
    """Takes off all that `attach` and `fast` have put on: the model computes as it did before. Returns the model."""
    was_fast = is_fast(model)
    if was_fast:
        slow(model)
    record: Attached | None = getattr(model, RECORD, None)
    if record is None:
        if was_fast:
            return model
        raise ValueError(f"model: nothing is attached to this {type(model).__name__}")
    for handle in record.handles:
        handle.remove()
    for module in list(model.modules()):
        unbind(module, ATTACHED)
        if isinstance(getattr(module, GUARD, None), RefuseOtherOwners):
            delattr(module, GUARD)
    restore_implementations(record.implementations)
    delattr(model, PARAMETERS)
    object.__delattr__(model, RECORD)
    if getattr(vars(model).get("save_pretrained"), "__func__", None) is save_pretrained:
        del model.save_pretrained
    _forget_config(model)
    return model


def save_pretrained(self: Any, *args: Any, **options: Any) -> Any:
    """A model's own `save_pretrained`, while an encoding is attached to it: AutoModel loads the folder with it.

    Raises TypeError for an encoding that could not be made again from the folder, and ValueError for push_to_hub=True.
    Warns where the model has an adapter, which is then all that is saved.
    """
    record: Attached = getattr(self, RECORD)
    entry_of(self.config.model_type, getattr(self, PARAMETERS), record.layers)
    if options.get("push_to_hub"):
        raise ValueError(
            "push_to_hub: save_pretrained would send the folder before posenc has written its part; use model.push_to_hub"
        )
    done = type(self).save_pretrained(self, *args, **options)
    if getattr(self, "_hf_peft_config_loaded", False):
        warn_of_adapter(record, self)
        return done
    if options.get("is_main_process", True):
        finish(Path(args[0] if args else options["save_directory"]), self)
    return done


class RefuseOtherOwners(nn.Module):
    """A part of the decoder without weights: raises where `save_pretrained` of another model than the one with this record,
    a model around it or a part of it, asks for the weights: the folder would be one without the encoding.

    It is asked before the decoder's state_dict, and where the caller hands a state_dict over by transformers, which reads
    `_tied_weights_keys` of every module that it saves. PEFT's models save an adapter alone, which warns.
    """

    def __init__(self, record: Attached) -> None:
        super().__init__()
        self.record = record

    @property
    def _tied_weights_keys(self) -> None:
        self.check()

    def before_state_dict(self, module: nn.Module, prefix: str, keep_vars: bool) -> None:
        self.check()

    def check(self) -> None:
        frame: Any = sys._getframe(1)
        while frame is not None and frame.f_code.co_name != "save_pretrained":
            frame = frame.f_back
        owner = None if frame is None else frame.f_locals.get("self")
        if owner is None or vars(owner).get(RECORD) is self.record:
            return
        if any(kind.__module__.partition(".")[0] == "peft" for kind in type(owner).__mro__):
            warn_of_adapter(self.record, owner)
            return
        name = type(owner).__name__
        raise ValueError(
            f"posenc: {name}.save_pretrained leaves out the encoding that is attached to a part of it or to a model around "
            f"it; detach that and attach to the {name}, or, where attach refuses this model, keep its state_dict with "
            "torch.save, and attach again before load_state_dict"
        )


def warn_of_adapter(record: Attached, owner: Any) -> None:
    """Warns that an adapter is saved which names a model without what is attached."""
    if not record.of_folder:
        warnings.warn(
            f"posenc: {type(owner).__name__}.save_pretrained saves an adapter, and the model that it names does not have "
            "what is attached; save the model with the encoding first, load it with posenc.transformers.from_pretrained, "
            "and make the adapter on that",
            stacklevel=3,
        )


def parameters(model: nn.Module) -> Iterator[nn.Parameter]:
    """The parameters of the attached encodings, for an optimiser. Raises ValueError where nothing is attached."""
    held = getattr(model, PARAMETERS, None)
    if held is None:
        raise ValueError(f"model: nothing is attached to this {type(model).__name__}")
    return held.parameters()  # type: ignore[no-any-return]


def chosen(layers: Iterable[int] | None, known: list[int]) -> list[int]:
    """These layers in order; None: all that are known. Raises TypeError and ValueError for what are none of them."""
    if layers is None:
        return known
    if isinstance(layers, Tensor) or not isinstance(layers, Iterable):
        raise TypeError(f"layers: expected whole numbers such as range(3, 32, 4), got {shown(layers)}")
    numbers = list(layers)
    if not all(checks.is_whole(n) for n in numbers):
        raise TypeError(f"layers: expected whole numbers such as range(3, 32, 4), got {shown(numbers)}")
    wanted = sorted(set(numbers))
    if not wanted or any(n not in known for n in wanted):
        raise ValueError(f"layers: expected some of the attention layers {known}, got {wanted}")
    return wanted


def _write_config(model: Any, held: nn.ModuleList, layers: Mapping[str, Mapping[int, int]]) -> None:
    """Sets `model.config.posenc`; without one for an encoding that a configuration cannot hold, which cannot be saved."""
    _forget_config(model)
    with suppress(TypeError):
        setattr(model.config, KEY, entry_of(model.config.model_type, held, layers))


def _forget_config(model: Any) -> None:
    if hasattr(model.config, KEY):
        delattr(model.config, KEY)


def _check_embeddings(of_layers: Mapping[int, PositionalEncoding]) -> None:
    """Raises ValueError for what a later layer would add to the embeddings, which happens once, before the first layer, and
    Unsupported for what every layer would add to its own."""
    first = min(of_layers)
    for n, of_layer in sorted(of_layers.items()):
        for part in flat_parts([of_layer]):
            if "embed" in part.seams and "embed" in part.at_layer(n + 1).seams:
                raise Unsupported(f"encoding: {label(part)} adds to the hidden states of every layer; attach adds once")
        if lost := added(of_layer).keys() - added(of_layers[first]).keys():
            raise ValueError(
                f"encoding: layer {n} has {added(of_layer)[min(lost)]}, which is added to the embeddings, once, before the "
                f"first layer, and layer {first} is without it; give it to that layer, in a Stack with what it has"
            )


def _of_layers(encoding: PositionalEncoding, chosen: list[int]) -> dict[int, PositionalEncoding]:
    if not isinstance(encoding, PerLayer):
        return dict.fromkeys(chosen, encoding)
    if missing := [n for n in chosen if n >= len(encoding)]:
        raise ValueError(f"encoding: a PerLayer of {len(encoding)} layers has none for the model's layers {missing}")
    of_layers = {n: encoding.at_layer(n) for n in chosen}
    if 0 not in of_layers and (lost := added(next(iter(encoding)))):
        raise ValueError(
            f"encoding: the PerLayer adds {', '.join(lost.values())} in layer 0, which is not among the layers {chosen}; "
            "give it to the first of these in a second call of attach, or leave it out"
        )
    return of_layers


def _taken_off(model: nn.Module, stack: Decoder, chosen: list[int]) -> OwnTables:
    """The model's own tables that an encoding in these layers replaces. cos and sin need none, and a query's scale stays.

    Raises Unsupported for a position that enters elsewhere, where it cannot be taken off.
    """
    if any(n in stack.rotated for n in chosen):
        return OwnTables()
    from posenc.configs import ConfigError, spec_of

    try:
        spec = spec_of(stack.module.config.to_dict())  # type: ignore[union-attr,operator]
    except ConfigError as error:
        raise Unsupported(f"model: what {type(model).__name__} does with position is not known: {error}") from error
    if not spec.layers:
        alike = [part for part in spec.parts if part.layers and part.layers[0].causal is not bool(stack.both_ways)]
        spec = alike[0] if len(alike) == 1 else spec
    if spec.layers:
        layers = layer_specs(spec, stack.attention)
        absolute = [(0, use) for use in spec.layers[0].uses if use.rotation is None]
        uses = absolute + [(n, use) for n in chosen if n in layers for use in layers[n].uses]
    else:
        uses = [(n, use) for part in spec.parts for n, layer in enumerate(part.layers) for use in layer.uses]
    uses = [(n, use) for n, use in dict.fromkeys(uses) if not hasattr(temperature, use.name)]
    if not uses:
        return OwnTables()
    named = ", ".join(dict.fromkeys(use.name for _, use in uses))
    tables = own_tables(stack, uses)
    if tables is None:
        raise Unsupported(f"model: {type(model).__name__} has {named} inside its modules, where it cannot be switched off")
    if set(chosen) != set(stack.attention):
        raise Unsupported(
            f"layers: {type(model).__name__} has {named}, which all of its layers read and which is switched off for all "
            "of them; attach to all layers, with a PerLayer for different encodings"
        )
    return tables
