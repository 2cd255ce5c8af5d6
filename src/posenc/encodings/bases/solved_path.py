"""The path of FLOATER's network from given starts, as a function of its parameters with a gradient.

    h(t, p) = tanh(p·W₁ + t·w₁ + b₁)·W₂ + t·w₂ + b₂

The gradient is that of the steps which the solver took. It goes back through them once; the gradients of the weights are
products over all stages of all steps at the end. The lengths of later steps have no gradient.
Legend: n positions, l layers, d d_model, s steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from posenc.encodings.bases.dormand_prince import NODES, Solution, Taken, adjoint
from posenc.kernels.derivatives import differentiable_gradients, in_full_precision

if TYPE_CHECKING:
    from posenc.support.shapes import Float


class Network(NamedTuple):
    """The parameters in float64; the last row of a weight is multiplied with the time."""

    inner: Float[Tensor, "d+1 d"]
    inner_bias: Float[Tensor, "d"]
    outer: Float[Tensor, "d+1 d"]
    outer_bias: Float[Tensor, "d"]

    def velocity(self, time: Tensor, state: Float[Tensor, "l d"]) -> Float[Tensor, "l d"]:
        return self.out(time, self.hidden(time, state))

    def hidden(self, time: Tensor, state: Float[Tensor, "l d"]) -> Float[Tensor, "l d"]:
        return torch.addmm(torch.addcmul(self.inner_bias, time, self.inner[-1]), state, self.inner[:-1]).tanh()

    def out(self, time: Tensor, hidden: Float[Tensor, "l d"]) -> Float[Tensor, "l d"]:
        return torch.addmm(torch.addcmul(self.outer_bias, time, self.outer[-1]), hidden, self.outer[:-1])


def path(begin: Solution, network: Network, times: Float[Tensor, "n"], dtype: torch.dtype) -> Float[Tensor, "n l d"]:
    """p at increasing times, with a gradient; `begin` is a solution without a step."""
    vectors: Tensor = _Path.apply(begin.rtol, begin.atol, dtype, times, begin.y, begin.slope, begin.length, *network)
    return vectors


def _solved(
    record: list[Taken] | None,
    rtol: float,
    atol: float,
    times: Tensor,
    y: Tensor,
    slope: Tensor,
    length: Tensor,
    *network: Tensor,
) -> Solution:
    begin = Solution((), (), y.new_zeros(()), y, slope, length, rtol, atol)
    return begin.until(Network(*network).velocity, float(times[-1]), record)


def _in_torch(rtol: float, atol: float, dtype: torch.dtype, times: Tensor, *rest: Tensor) -> Tensor:
    return _solved(None, rtol, atol, times, *rest).at(times, dtype)


class _Path(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rtol: float, atol: float, dtype: torch.dtype, times: Tensor, *rest: Tensor) -> Tensor:
        ctx.taken, ctx.chosen = [], (rtol, atol, dtype)
        ctx.save_for_backward(times, *rest)
        ctx.solution = _solved(ctx.taken, rtol, atol, times, *rest)
        vectors: Tensor = ctx.solution.at(times, dtype)
        return vectors

    @staticmethod
    @in_full_precision
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        tensors = ctx.saved_tensors
        if torch.is_grad_enabled():  # for second derivatives
            return tuple(differentiable_gradients(_in_torch, (*ctx.chosen, *tensors), (gradient,)))
        times, _, _, length, *of = tensors
        gradients = _gradients(ctx.solution, ctx.taken, times, length, Network(*of), gradient.double())
        return None, None, None, None, *gradients


def _gradients(
    solution: Solution, taken: list[Taken], times: Tensor, length: Tensor, network: Network, gradient: Tensor
) -> tuple[Tensor, ...]:
    """Gradients of y, slope and step length at the beginning, and of the network's weights."""
    of_coefficients, of_begin, of_end = _of_polynomials(solution, times, gradient.flatten(1))
    moments = torch.stack([step.begin for step in taken])[:, None] + torch.stack([step.length for step in taken])[
        :, None
    ] * times.new_tensor(NODES[1:])  # [s, 6]
    states = torch.stack([step.stages() for step in taken])  # [s, 6, l, d]
    hidden = network.hidden(moments.flatten().repeat_interleave(states.shape[2])[:, None], states.flatten(0, 2))
    of_tanh = (1 - hidden * hidden).view_as(states)
    of_hidden, of_slopes = torch.empty_like(states), torch.empty_like(states)
    into_hidden, into_state = network.outer[:-1].T.contiguous(), network.inner[:-1].T.contiguous()

    def pull(step: int, stage: int, of_slope: Tensor) -> Tensor:
        of_slopes[step, stage - 1] = of_slope
        of_sum = torch.mm(of_slope, into_hidden).mul_(of_tanh[step, stage - 1])
        of_hidden[step, stage - 1] = of_sum
        return of_sum @ into_state

    start = adjoint(taken, of_coefficients.view(-1, 5, *gradient.shape[1:]), pull)
    of_moment, of_network = torch.zeros_like(moments), []
    for inputs, weight, of_sums in ((states.flatten(0, 2), network.inner, of_hidden), (hidden, network.outer, of_slopes)):
        by_moment = of_sums.sum(dim=2)  # [s, 6, d]
        of_moment += by_moment @ weight[-1]
        of_time = moments.flatten() @ by_moment.flatten(0, 1)
        of_network += [torch.cat([inputs.T @ of_sums.flatten(0, 2), of_time[None]]), by_moment.sum(dim=(0, 1))]
    if not bool(taken[0].length == length):  # the first step was cut: its length has no gradient
        return start.y, start.slope, torch.zeros_like(length), *of_network
    later = of_moment[1:].sum() + of_begin[1:].sum() + of_end[1:].sum()  # all later times move with the first length
    of_length = start.length + of_moment[0] @ times.new_tensor(NODES[1:]) + of_end[0] + later
    return start.y, start.slope, of_length, *of_network


def _of_polynomials(
    solution: Solution, times: Tensor, gradient: Float[Tensor, "n ld"]
) -> tuple[Float[Tensor, "s 5 ld"], Float[Tensor, "s"], Float[Tensor, "s"]]:
    """The gradients of the coefficients of all steps, and of the times at which they begin and end."""
    powers = torch.arange(5, dtype=times.dtype, device=times.device)[:, None]
    of_coefficients = gradient.new_zeros(len(solution.steps), 5, gradient.shape[1])
    of_begin, of_end = gradient.new_zeros(2, len(solution.steps)).unbind()
    for number, part in solution.parts(times):
        step = solution.steps[number]
        x = step.share(times[part])
        of_coefficients[number] = x**powers @ gradient[part]
        coefficients = torch.stack(step.coefficients).flatten(1)
        slopes = powers[1:] * x ** (powers[1:] - 1)  # of x^p
        of_x = (slopes * (coefficients[1:] @ gradient[part].T)).sum(dim=0) / (step.end - step.begin)
        of_begin[number] = (of_x * (x - 1)).sum()
        of_end[number] = -(of_x * x).sum()
    return of_coefficients, of_begin, of_end
