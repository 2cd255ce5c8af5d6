"""Position as the path of a learned dynamical system.

    p(t) = p(0) + ∫_0^t h(τ, p(τ)) dτ,   x_i + p(step·i),   h = W₂[tanh(W₁[p, τ] + b₁), τ] + b₂

Liu et al. 2020, "Learning to Encode Position for Transformer with Continuous Dynamical Model", section 3; the dynamics
are shared by all layers and every layer has its own p(0). The path goes on beyond the trained length with no new
parameter. The authors' code has ReLU for tanh; an adaptive solver of fifth order needs a smooth h, and with ReLU its
gradients were wrong.
Legend: b batch, t tokens, l layers, d d_model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from posenc.encoding import PositionalEncoding
from posenc.encodings.bases.dormand_prince import Solution
from posenc.encodings.bases.kept_solution import KeptSolution
from posenc.encodings.bases.solved_path import Network, path
from posenc.kernels.eager import exporting, transformed, wants_gradient
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.checks import shown
from posenc.support.tensors import check_coords, check_embeddings, exact_dtype, full_precision, readable, tables_at

if TYPE_CHECKING:
    from posenc.support.shapes import Float, Num


class FLOATER(PositionalEncoding):
    """x + p(step·position), at every layer with that layer's own path.

    d_model     channels
    n_layers    layers with a path of their own
    step        time from one position to the next; 0.01 in the authors' code
    rtol, atol  tolerances of the adaptive solver (Dormand and Prince, order 5)

    The path is solved in fp64 and rounded once. The solver chooses its steps by the path alone, so a position asked alone
    gets what it gets among others. Where no gradient is wanted the solution is kept and continued for as long as the
    parameters stay what they are: a decoded token costs a look-up.
    Tables belong to this very module: a copy, with parameters of its own, refuses them.
    Raises ValueError for negative positions and for a path that grows without bound, NotImplementedError where torch.export
    meets positions that are not prepared.
    """

    traits = frozenset({"local", "norm_preserving"})
    learned_tables = True
    exact_parameters = ("start", "inner.weight", "inner.bias", "outer.weight", "outer.bias")

    @checked
    def __init__(
        self, d_model: int, n_layers: int = 1, *, step: float = 0.01, rtol: float = 1e-7, atol: float = 1e-8
    ) -> None:
        checks.positive(step=step, rtol=rtol, atol=atol)
        checks.moderate(100, step=step)  # the solver's steps grow with it: 1e300 never ended
        super().__init__(d_model=d_model, n_layers=n_layers, step=step, rtol=rtol, atol=atol)
        self.d_model, self.step, self.rtol, self.atol, self.layer = d_model, step, rtol, atol, 0
        self.start = nn.Parameter(torch.empty(n_layers, d_model))
        self.inner = nn.Linear(d_model + 1, d_model, dtype=exact_dtype())
        self.outer = nn.Linear(d_model + 1, d_model, dtype=exact_dtype())
        nn.init.xavier_uniform_(self.start)
        for linear in (self.inner, self.outer):
            nn.init.xavier_normal_(linear.weight)
            nn.init.zeros_(linear.bias)
        self._kept = KeptSolution()

    def tables(self, at: Positions, dtype: torch.dtype) -> tuple[Tensor]:
        """The paths of all layers at the positions asked for, [b, t, l, d]: one solution for the whole model."""
        super().tables(at, dtype)
        check_coords(self, at)
        if exporting():
            raise NotImplementedError(
                "FLOATER: the solver chooses its steps by what it finds, which no exported graph can hold; call prepare() "
                "outside of the exported module and give it the prepared positions as an input"
            )
        if at.coords.is_meta:
            raise ValueError("at: expected positions with values, got coords on meta; the solver follows them")
        if readable(at.coords) and bool((at.coords < 0).any()):
            raise ValueError(f"FLOATER: the path starts at position 0, got position {at.coords.min().item()}")
        if not at.coords.numel():
            return (torch.zeros(*at.coords.shape, *self.start.shape, dtype=dtype, device=self.start.device),)
        if at.consecutive_in == "row" and (at.batch == 1 or at.coords.stride(0) == 0):  # one row, growing and distinct
            return (self._path(at.coords[0], dtype).expand(at.batch, -1, -1, -1),)
        self._check_plain()
        positions, index = torch.unique(at.coords, return_inverse=True)
        return (self._path(positions, dtype)[index],)

    @checked
    def path(self, positions: Num[Tensor, "n"], dtype: torch.dtype = torch.float32) -> Float[Tensor, "n l d"]:
        """p at growing, distinct positions, for every layer."""
        if not positions.numel():
            raise ValueError(f"positions: expected at least one, got {shown(positions)}")
        times = positions.double() * self.step
        if times.device.type == "meta" or not bool((times.diff() > 0).all()) or not bool(torch.isfinite(times).all()):
            raise ValueError(f"positions: expected growing, finite numbers, got {shown(positions)}")
        return self._path(positions, dtype)

    def _path(self, positions: Num[Tensor, "n"], dtype: torch.dtype) -> Float[Tensor, "n l d"]:
        """The path: from a new solution if gradients are wanted, else from the kept solution, which is continued."""
        self._check_plain()
        times = positions.to(self.start.device).double() * self.step
        with full_precision(self.start):
            parameters = (self.start, *self.inner.parameters(), *self.outer.parameters())
            if wants_gradient(*parameters):
                network = self._network()
                return path(self._begin(network), network, times, dtype)
            with torch.inference_mode(False), torch.no_grad():
                return self._kept.reaching(float(times[-1]), parameters, self._solved).at(times, dtype)

    def _check_plain(self) -> None:
        if transformed():
            raise NotImplementedError(
                "FLOATER: the lengths of the solver's steps follow the parameters and have no derivative; call prepare() "
                "outside of the transform"
            )

    def _solved(self, solution: Solution | None, until: float) -> Solution:
        """The solution continued to this time; from the start where there is none."""
        network = self._network()
        return (self._begin(network) if solution is None else solution).until(network.velocity, until)

    def _network(self) -> Network:
        """The network's weights in the memory order in which a product with few rows is fastest."""
        (w1, b1), (w2, b2) = (
            (linear.weight.T.to(torch.float64, memory_format=torch.contiguous_format), linear.bias.double())
            for linear in (self.inner, self.outer)
        )
        return Network(w1, b1, w2, b2)

    def _begin(self, network: Network) -> Solution:
        return Solution.begin(network.velocity, self.start.double(), self.rtol, self.atol)

    def embed(self, x: Float[Tensor, "b t d"], at: Positions) -> Float[Tensor, "b t d"]:
        check_embeddings(self, x, at)
        (paths,) = tables_at(self, at, x.dtype)
        return (x.to(paths.dtype) + paths[:, :, self.layer]).to(x.dtype)

    def at_layer(self, n: int) -> PositionalEncoding:
        """Layer n's view: the same parameters, another path."""
        if type(n) is not int or not 0 <= n < len(self.start):
            raise ValueError(f"n: FLOATER: built for n_layers={len(self.start)}, asked for layer {n}")
        if n == self.layer:
            return self
        view = FLOATER.__new__(FLOATER)
        view.__dict__.update(self.__dict__)
        view.layer = n
        return view
