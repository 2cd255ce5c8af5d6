"""What most proofs of rotary families do: the family's own forward turned at IDS, its frequencies, what its masks hide."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from families.harness import (
    IDS,
    Call,
    Proof,
    _probe,
    attending,
    build,
    calls,
    config_of,
    frequencies,
    module_named,
    same_rotation,
    spec_of,
    tokens,
)
from posenc.configs import PositionSpec
from posenc.configs.spec import Layer

FULL, SLIDING = "full_attention", "sliding_attention"
LINEAR = {"rope_type": "linear", "rope_theta": 30000.0, "factor": 4.0}
YARN = {"rope_type": "yarn", "rope_theta": 20000.0, "factor": 8.0, "original_max_position_embeddings": 64}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 50000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
SEEN = 10  # tokens of the run that looks at masks: more than any window of the proofs


def turned(result: Proof, *, rotary: str = "rotary_emb", model_class: str | None = None, **sizes: Any) -> torch.nn.Module:
    """The family's own model of these sizes against the spec of its configuration: rotation, frequencies, masks."""
    config = config_of(result.model_type, **sizes)
    model, spec = build(config, model_class), spec_of(config)
    moved = compared(result, model, spec)
    assert len(moved) == sum(layer.attends for layer in spec.layers)
    by_kind(result, module_named(model, rotary), spec)
    return model


def also(result: Proof, model: torch.nn.Module, rotary: str = "rotary_emb", **sizes: Any) -> None:
    """The frequencies under other settings, from the family's rotary module alone."""
    config = config_of(result.model_type, **sizes)
    by_kind(result, type(module_named(model, rotary))(config), spec_of(config))


def by_kind(result: Proof, module: torch.nn.Module, spec: PositionSpec) -> None:
    """The frequencies of one layer of each kind that turns; every proof has one."""
    kinds = {layer.kind: number for number, layer in enumerate(spec.layers) if layer.uses}
    assert kinds, f"{result.model_type}: no layer turns"
    for kind, number in kinds.items():
        frequencies(result, module, spec, number, "inv_freq" if hasattr(module, "inv_freq") else f"{kind}_inv_freq")


def compared(
    result: Proof,
    model: torch.nn.Module,
    spec: PositionSpec,
    *,
    keep: Callable[[Call], Call | None] = lambda call: call,
    **inputs: Any,
) -> list[Call]:
    """Rotation at IDS and masks of one model that takes input_ids and position_ids; the calls at IDS.

    `keep` picks the attention calls that count, and may trim them; `inputs` are given besides.
    """
    zero, moved = (
        layers_of(calls(model, input_ids=tokens(IDS.shape), position_ids=ids, **inputs), keep)
        for ids in (torch.zeros_like(IDS), IDS)
    )
    spec = attending(spec, moved)
    assert len(moved) == len(spec.layers), f"{result.model_type}: {len(moved)} layers, posenc has {len(spec.layers)}"
    same_rotation(result, spec, zero, moved, IDS, allowed(spec))
    hidden(result, spec, layers_of(calls(model, input_ids=tokens((2, SEEN)), **inputs), keep))
    return moved


def recording(model: torch.nn.Module, method: str, order: str = "qkv") -> torch.nn.Module:
    """The same model, whose attention modules hand queries, keys, values and mask to the probe where they have a method
    of their own for what comes next. `order` is that of its first three arguments."""

    def attended(
        module: torch.nn.Module, first: Tensor, second: Tensor, third: Tensor, mask: Any = None, *rest: Any
    ) -> Any:
        named = dict(zip(order, (first, second, third), strict=True))
        out, weights = _probe(module, named["q"], named["k"], named["v"], mask)
        return out.transpose(1, 2), weights

    for module in model.modules():
        if hasattr(module, method):
            setattr(module, method, partial(attended, module))
    return model


def layers_of(found: list[Call], keep: Callable[[Call], Call | None] = lambda call: call) -> list[Call]:
    """One call for each attention module: some ask twice with the same queries and keys (differential attention)."""
    kept: list[Call] = []
    for call in filter(None, map(keep, found)):
        if kept and kept[-1].module is call.module:
            assert torch.equal(kept[-1].q, call.q)
        else:
            kept.append(call)
    return kept


def hidden(result: Proof, spec: PositionSpec, found: list[Call]) -> None:
    """The mask of every layer of a run from position 0, against the window and the causality that posenc says."""
    assert len(found) == len(spec.layers)
    for number, (layer, call) in enumerate(zip(spec.layers, found, strict=True)):
        expected = visible(layer, call.q.shape[2])
        mask = torch.ones_like(expected)[None, None] if call.mask is None else call.mask
        theirs = mask[0, 0] if mask.dtype == torch.bool else mask[0, 0] > -1e30
        assert torch.equal(theirs, expected), f"{result.model_type}: layer {number}: sees\n{theirs.int()}\nposenc {layer}"
    result.equal("what each layer's mask lets it see", True, True)


def visible(layer: Layer, n: int) -> Tensor:
    """Which keys [j] each query [i] sees: `window` tokens that end with it, or, looking both ways, surround it, where of
    an even number one more is ahead."""
    i, j = torch.arange(n)[:, None], torch.arange(n)[None]
    window = layer.window or 2 * n
    if layer.causal:
        return (j <= i) & (i - j < window)
    return (i - j <= (window - 1) // 2) & (j - i <= window // 2)


def allowed(spec: PositionSpec) -> float:
    """One rounding; two where cos and sin have a magnitude, since the unrotated channels are then theirs divided by it,
    which rounds once more."""
    scales = {use.build("float32").frequencies.cos_sin_scale for layer in spec.layers for use in layer.uses}
    return 1.0 if scales <= {1.0, 2.0} else 2.0


def turned_then_normalised(result: Proof, *, norms: tuple[str, str], **sizes: Any) -> torch.nn.Module:
    """As `turned`, for families that normalise queries and keys after their rotation: what enters the norms is compared,
    and what leaves them, with random weights, has to be what reaches attention."""
    config = config_of(result.model_type, **sizes)
    model, spec = build(config), spec_of(config)
    entered: dict[str, list[Tensor]] = {end: [] for end in norms}
    for name, module in model.named_modules():
        for end in norms:
            if name.endswith("." + end):
                for parameter in module.parameters():
                    torch.nn.init.normal_(parameter, 1.0, 0.3)
                module.register_forward_pre_hook(lambda module, inputs, end=end: entered[end].append(inputs[0]))
    passes = []
    for ids in (torch.zeros_like(IDS), IDS):
        for end in norms:
            entered[end].clear()
        found = calls(model, input_ids=tokens(IDS.shape), position_ids=ids)
        for number, call in enumerate(found):
            q, k = (entered[end][number] for end in norms)
            own = [getattr(call.module, end) for end in norms]
            with torch.no_grad():
                result.equal("normalised after the rotation", own[0](q), call.q)
                result.equal("normalised after the rotation", own[1](k), call.k)
            call.q, call.k = q, k
        passes.append(found)
    assert len(passes[1]) == len(spec.layers)
    same_rotation(result, spec, passes[0], passes[1], IDS, allowed(spec))
    hidden(result, spec, calls(model, input_ids=tokens((2, SEEN))))
    by_kind(result, module_named(model, "rotary_emb"), spec)
    return model
