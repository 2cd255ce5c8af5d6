"""posenc's rotation kernel in the rotary layers of one model.

    attention module ── forward ──► apply_rotary_pos_emb(q, k, cos, sin)      the model's own
    attention module ── forward with that one name bound to posenc's rotation  after fast(model)

bound_forward.py gives a module that forward; rotation_forms.py says which functions there are, and how each turns.
"""

from __future__ import annotations

import dis
import inspect
from typing import Any

import torch
from torch import Tensor, nn

from posenc.transformers.bound_forward import ATTACHED, OBSERVED, bind, owner_of, rotations, unbind
from posenc.transformers.decoder import Unsupported, decoder_of, input_device
from posenc.transformers.rotation_forms import NAMES, ROTATED, Rotate, is_served, matching

RECORD = "_posenc_fast"
FAST = "fast"
Called = tuple[str, dict[str, Any]]  # the class of the module that called, and its arguments


def fast(model: nn.Module) -> nn.Module:
    """Rotates queries and keys with posenc's kernel in every rotary layer of the model; returns the model.

    It serves training and inference. On a CPU, float32 gives the bits of the model's own rotation; bfloat16 and float16
    are rounded once, not three times. Only this model changes: nothing is global. `slow` undoes it, and so does `detach`.

    The model is run once on three tokens. posenc's rotation is compared with the model's own, on random channels and
    angles, before anything changes. A deep copy is fast too. A pickled model is not: it has its own rotation when it is
    loaded.

    Raises Unsupported, naming the class, for a model that rotates in another way and for modules whose forward something
    else has replaced; ValueError for a model that is fast already.
    """
    if is_fast(model):
        raise ValueError(f"model: this {type(model).__name__} has posenc's rotation already")
    decoder = decoder_of(model)
    named = [module for module in decoder.modules() if rotations(module)]
    modules = [module for module in named if owner_of(module) != ATTACHED]  # those have posenc's rotation or none
    if not named:
        raise Unsupported(f"model: no attention module of {type(decoder).__name__} calls {NAMES[0]}")
    if not modules:
        raise ValueError(f"model: every rotary layer of this {type(model).__name__} has an encoding of posenc's attached")
    rotates = {function: _matching(function, calls) for function, calls in _observed(model, modules).items()}
    for module in modules:
        bind(module, rotates, FAST)
    object.__setattr__(model, RECORD, modules)
    return model


def slow(model: nn.Module) -> nn.Module:
    """Gives the model its own rotation again; returns the model. Raises ValueError unless the model is fast."""
    if not is_fast(model):
        raise ValueError(f"model: this {type(model).__name__} has its own rotation; fast(model) changes it")
    for module in getattr(model, RECORD):
        unbind(module, FAST)
    object.__delattr__(model, RECORD)
    return model


def is_fast(model: nn.Module) -> bool:
    """Whether `fast` has been applied to this model."""
    return any(owner_of(module) == FAST for module in getattr(model, RECORD, ()))


@torch.no_grad()
def _observed(model: Any, modules: list[nn.Module]) -> dict[Rotate, list[Called]]:
    """The families' rotations and the calls of each, from a run on three tokens.

    Raises Unsupported for a module whose forward is replaced already, for a rotation of another signature, and for rotary
    layers that are not among `modules`.
    """
    decoder = decoder_of(model)
    seen: dict[Rotate, list[Called]] = {}
    rotary: dict[int, str] = {}

    def note(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        index = getattr(module, "layer_idx", None)
        if isinstance(index, int) and kwargs.get("position_embeddings") is not None and _reads_tables(module):
            rotary[index] = type(module).__name__

    def looking_on(module: nn.Module, function: Rotate) -> Rotate:
        signature = inspect.signature(function)

        def look_on(*args: Any, **kwargs: Any) -> Any:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            seen.setdefault(function, []).append((type(module).__name__, bound.arguments))
            return function(*args, **kwargs)

        return look_on

    for module in modules:
        if owner_of(module) is not None:
            raise Unsupported(f"model: the forward of a {type(module).__name__} has been replaced already")
        for function, name in rotations(module).items():
            if not is_served(function):
                signature = f"{name}{inspect.signature(function)}"
                raise Unsupported(f"model: {name} of {type(module).__name__} is called as {signature}, which is not served")
    handles = [module.register_forward_pre_hook(note, with_kwargs=True) for module in decoder.modules()]
    was_training = model.training
    try:
        model.eval()
        for module in modules:
            bind(module, {function: looking_on(module, function) for function in rotations(module)}, OBSERVED)
        decoder(input_ids=torch.ones(1, 3, dtype=torch.long, device=input_device(model)), use_cache=False)
    finally:
        for module in modules:
            unbind(module, OBSERVED)
        for handle in handles:
            handle.remove()
        model.train(was_training)
    served = {getattr(module, "layer_idx", None) for module in decoder.modules() if rotations(module)}
    if other := {name for index, name in rotary.items() if index not in served}:
        raise Unsupported(f"model: {', '.join(sorted(other))} rotates without {NAMES[0]}, which is not served")
    if not seen:
        raise Unsupported(f"model: the layers of {type(decoder).__name__} do not call {NAMES[0]}")
    return seen


def _reads_tables(module: nn.Module) -> bool:
    """Whether the module is the attention of its layer and its code reads the cos and sin that it is handed."""
    inner = list(module.modules())[1:]
    if any(isinstance(getattr(part, "layer_idx", None), int) for part in inner):
        return False
    code = inspect.unwrap(type(module).forward).__code__
    named = (step.argval if isinstance(step.argval, tuple) else (step.argval,) for step in dis.get_instructions(code))
    return any("position_embeddings" in names for names in named)


def _matching(function: Rotate, calls: list[Called]) -> Rotate:
    """posenc's rotation in the place of a family's, whose form fits all calls. Raises Unsupported where there is none."""
    distinct = {str([_kind(value) for value in arguments.values()]): (caller, arguments) for caller, arguments in calls}
    for caller, arguments in distinct.values():
        if any(value is None for name, value in arguments.items() if name in ROTATED):
            raise Unsupported(
                f"model: {function.__name__} of {caller} rotates queries and keys in two calls, which is not served"
            )
    rotate = matching(function, [arguments for _, arguments in distinct.values()])
    if rotate is None:
        raise Unsupported(f"model: {function.__name__} of {calls[0][0]} turns in no form that posenc's rotation has")
    return rotate


def _kind(value: Any) -> Any:
    """What a form may depend on: of a tensor, its dtype and shape."""
    return (value.dtype, value.shape) if isinstance(value, Tensor) else value
