"""The solution of y' = velocity(t, y) by the method of Dormand and Prince, as a value that can be continued.

    k_s = velocity(t + c_s·h, y + h·Σ_r a_sr k_r),   y(t + h) = y + h·Σ_s b_s k_s,   y(t + x·h) = y + Σ_p x^p·h·Σ_s d_ps k_s

Order 5, steps h chosen by the error against order 4, order 4 between the steps. Steps follow the solution, never the times
at which it is asked for, so that a longer solution is a shorter one continued, bit for bit.
Dormand and Prince 1980; Shampine 1986 for the middle of a step; Hairer, Nørsett and Wanner, "Solving Ordinary Differential
Equations I", sections II.4 and II.5 for the first step. torchdiffeq's dopri5 makes the same steps.
Legend: n times, s stages, y any shape.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

if TYPE_CHECKING:
    from posenc.support.shapes import Float

Velocity = Callable[[Tensor, Tensor], Tensor]
"""(t, y), t a number of dtype float64, to dy/dt."""

NODES = (0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1, 1)
STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
FIFTH = (*STAGES[-1], 0)
FOURTH = (1951 / 21600, 0, 22642 / 50085, 451 / 720, -12231 / 42400, 649 / 6300, 1 / 60)
MIDDLE = (
    *(6025192743 / 30085553152 / 2, 0, 51252292925 / 65400821598 / 2, -2691868925 / 45128329728 / 2),
    *(187940372067 / 1594534317056 / 2, -1776094331 / 19743644256 / 2, 11237099 / 235043384 / 2),
)
ERROR = tuple(fifth - fourth for fifth, fourth in zip(FIFTH, FOURTH, strict=True))
# The polynomial of order 4 through both ends, the middle and both slopes: for each power of x, what the slope at the
# beginning, the slope at the end, the end and the middle count for.
POWERS = ((1, 0, 0, 0), (-4, 1, -5, 16), (5, -3, 14, -32), (-2, 2, -8, 16))
DENSE = tuple(
    tuple(first * (stage == 0) + last * (stage == 6) + end * FIFTH[stage] + middle * MIDDLE[stage] for stage in range(7))
    for first, last, end, middle in POWERS
)
SAFETY, LARGEST_GROWTH, LARGEST_CUT = 0.9, 10.0, 0.2  # of the next step against this one


class Step(NamedTuple):
    """One step: y(begin + x·(end - begin)) is the polynomial in x with these coefficients, the constant one first."""

    begin: Tensor
    end: Tensor
    coefficients: tuple[Tensor, ...]

    def share(self, times: Float[Tensor, "n"]) -> Float[Tensor, "n"]:
        """x of times within the step: 0 where it begins, 1 where it ends."""
        return (times - self.begin) / (self.end - self.begin)

    def at(self, times: Float[Tensor, "n"]) -> Float[Tensor, "n *y"]:
        constant, *powers = self.coefficients
        x = self.share(times).view(-1, *[1] * constant.ndim)
        y = powers.pop()
        for coefficient in (*reversed(powers), constant):
            y = torch.addcmul(coefficient, x, y)
        return y


class Taken(NamedTuple):
    """What the adjoint needs of a step: its time and length, y, and all slopes."""

    begin: Tensor
    length: Tensor
    y: Float[Tensor, "*y"]
    slopes: Float[Tensor, "7 *y"]

    def stages(self) -> Float[Tensor, "6 *y"]:
        """y at the stages after the first."""
        a = self.y.new_tensor(_square(STAGES)) * self.length
        return (a @ self.slopes[:6].flatten(1)).view(6, *self.y.shape) + self.y


class Solution(NamedTuple):
    """The steps made so far, from time 0, and what the next one needs: time, y, its slope and the length of the step."""

    steps: tuple[Step, ...]
    ends: tuple[float, ...]
    time: Tensor
    y: Tensor
    slope: Tensor
    length: Tensor
    rtol: float
    atol: float

    @classmethod
    def begin(cls, velocity: Velocity, y: Tensor, rtol: float, atol: float) -> Solution:
        """At time 0, without a step. The length of the first step follows from y, its slope and its curvature there."""
        time = y.new_zeros(())
        slope, tolerance = velocity(time, y), atol + y.abs() * rtol
        size, speed = _rms(y / tolerance), _rms(slope / tolerance)
        trial = y.new_full((), 1e-6) if size < 1e-5 or speed < 1e-5 else 0.01 * size / speed
        change = _rms((velocity(trial, y + trial * slope) - slope) / tolerance) / trial
        fastest = torch.max(speed, change)
        length = torch.max(y.new_full((), 1e-6), trial * 1e-3) if fastest <= 1e-15 else (0.01 / fastest) ** 0.2
        return cls((), (), time, y, slope, torch.min(100 * trial, length), rtol, atol)

    def until(self, velocity: Velocity, time: float, record: list[Taken] | None = None) -> Solution:
        """The solution continued until it reaches this time; the steps taken are appended to `record`.

        Raises ValueError where y or its slope becomes infinite or NaN.
        """
        steps, ends = list(self.steps), list(self.ends)
        now, y, slope, length = self.time, self.y, self.slope, self.length
        a, nodes = y.new_tensor(_square(STAGES)), y.new_tensor(NODES)
        error, dense = y.new_tensor(ERROR), y.new_tensor(DENSE)
        while not ends or ends[-1] < time:
            moments, weights, k = (now + nodes * length).unbind(), a * length, [slope.flatten()]
            if not float(moments[-1].detach()) > float(now.detach()):
                raise ValueError(f"the solution ends at time {float(now.detach())}: y or its slope is not finite there")
            for stage in range(1, 7):
                ahead = weights[stage - 1, :stage] @ torch.stack(k)
                reached = y + ahead.view(y.shape)
                k.append(velocity(moments[stage], reached).flatten())
            slopes = torch.stack(k)
            with torch.no_grad():
                tolerance = torch.max(y.abs(), reached.abs()).mul_(self.rtol).add_(self.atol)
                ratio = float(_rms((length * error @ slopes).view(y.shape) / tolerance))
                following = length * _growth(ratio)
            if ratio <= 1:
                polynomial = (length * dense @ slopes).view(4, *y.shape).unbind()
                steps.append(Step(now, moments[-1], (y, *polynomial)))
                ends.append(float(moments[-1].detach()))
                if record is not None:
                    record.append(Taken(now, length, y, slopes.view(7, *y.shape)))
                now, y, slope = moments[-1], reached, k[-1].view(y.shape)
            length = following
        return self._replace(steps=tuple(steps), ends=tuple(ends), time=now, y=y, slope=slope, length=length)

    def parts(self, times: Float[Tensor, "n"]) -> Iterator[tuple[int, slice]]:
        """The steps that hold increasing times from 0 on: each step's number, and the slice of the times within it."""
        numbers, first = times.tolist(), 0
        while first < len(numbers):
            step = bisect.bisect_left(self.ends, numbers[first])
            last = bisect.bisect_right(numbers, self.ends[step], lo=first)
            yield step, slice(first, last)
            first = last

    def at(self, times: Float[Tensor, "n"], dtype: torch.dtype = torch.float64) -> Float[Tensor, "n *y"]:
        """y at increasing times from 0 to the end of the solution; rounded once."""
        pieces = [self.steps[step].at(times[part]).to(dtype) for step, part in self.parts(times)]
        return torch.cat(pieces) if len(pieces) != 1 else pieces[0]


class Gradients(NamedTuple):
    """What `adjoint` returns: the gradients of y and its slope at the beginning, and of the length of the first step."""

    y: Tensor
    slope: Tensor
    length: Tensor


def adjoint(
    taken: list[Taken], of_coefficients: Float[Tensor, "n 5 *y"], pull: Callable[[int, int, Tensor], Tensor]
) -> Gradients:
    """Derivatives of the steps as they were taken, from the gradients of all their coefficients.

    pull    (step, stage, gradient of the slope there) to the gradient of y there, times held
    The length of the first step counts as far as y depends on it, the times of the stages held as well.
    """
    shape = taken[0].y.shape
    a, dense = taken[0].y.new_tensor(_square(STAGES)), taken[0].y.new_tensor(DENSE)
    of_y = torch.zeros_like(taken[0].y).flatten()
    of_slope, of_length = torch.zeros_like(of_y), of_y.new_zeros(())
    for n in reversed(range(len(taken))):
        step, of_step = taken[n], of_coefficients[n].flatten(1)
        weights, of_slopes = a * step.length, step.length * dense.T @ of_step[1:]
        of_slopes[6] += of_slope
        of_stage, of_y = of_y, of_step[0].clone()
        for stage in range(6, 0, -1):
            pulled = pull(n, stage, of_slopes[stage].view(shape)).flatten()
            of_stage = of_stage + pulled if stage == 6 else pulled
            of_y += of_stage
            of_slopes[:stage].addr_(weights[stage - 1, :stage], of_stage)
            if n == 0:
                of_length += a[stage - 1, :stage] @ (step.slopes[:stage].flatten(1) @ of_stage)
        if n == 0:
            of_length += (of_step[1:] * (dense @ step.slopes.flatten(1))).sum()
        of_slope = of_slopes[0]
    return Gradients(of_y.view(shape), of_slope.view(shape), of_length)


def _growth(ratio: float) -> float:
    """The ratio of the next step's length to this one's, from this step's error relative to the tolerance."""
    if ratio == 0:
        return LARGEST_GROWTH
    least = 1.0 if ratio < 1 else LARGEST_CUT
    return min(LARGEST_GROWTH, max(SAFETY / ratio**0.2, least)) if ratio == ratio else LARGEST_CUT


def _rms(x: Tensor) -> Tensor:
    return x.square().mean().sqrt()


def _square(rows: tuple[tuple[float, ...], ...]) -> tuple[tuple[float, ...], ...]:
    """Rows of different lengths with zeros behind them."""
    return tuple((*row, *[0.0] * (len(rows) - len(row))) for row in rows)
