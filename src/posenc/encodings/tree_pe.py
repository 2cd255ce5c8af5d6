"""Tree positions of Shiv and Quirk: every branch on the way to the root as a one-hot vector, weaker with each step.

    x + [ one-hot(b_0) | p·one-hot(b_1) | p²·one-hot(b_2) | … ]·√((1 - p²)·d/2)    p_f = tanh(w_f), for each of F features

b_0 is the branch that leads to the node, b_1 the one that leads to its parent: see positions/tree_paths.py. To go down a
branch, or up to the parent, is then one affine map. Shiv and Quirk 2019, "Novel Positional Encodings to Enable Tree-Based
Transformers"; the formula is that of their code, microsoft/icecaps (estimators/abstract_transformer_estimator.py).
Legend: b batch, t tokens, k max_depth, n branches, f features, d d_model.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from posenc.encoding import AbsoluteEncoding
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import check_between, check_coords, floating, full_precision, on_device_of


class TreePE(AbsoluteEncoding):
    """x plus, for every step from the root, the one-hot vector of the branch times learned powers.

    d_model     channels
    max_depth   k: steps from the root that a path has room for, as in posenc.positions_by("tree_paths", …)
    n_branches  children that a node may have

    Coordinates are paths, k whole numbers 0 … n_branches, the last branch first and 0 beyond the root.
    Parameters: decay [F], w; F = d_model // (k·n_branches) features for each branch of each step, in the first
    k·n_branches·F channels; the others are left as they are. Fresh w ~ U(0.7, 0.999), as in later implementations (the
    authors leave it to Xavier). Powers are computed in fp64. Time O(t·d).
    Raises ValueError for fewer channels than k·n_branches, and for branches that there are not.
    """

    learned_tables = True

    @checked
    def __init__(self, d_model: int, *, max_depth: int = 12, n_branches: int = 2) -> None:
        checks.whole(d_model=d_model, max_depth=max_depth, n_branches=n_branches)
        super().__init__(d_model=d_model, max_depth=max_depth, n_branches=n_branches)
        features = d_model // (max_depth * n_branches)
        if not features:
            room = f"max_depth={max_depth} times n_branches={n_branches}"
            raise ValueError(f"d_model: expected at least {room} channels, got {d_model}")
        self.d_model, self.max_depth, self.n_branches = d_model, max_depth, n_branches
        self.axes = max_depth
        self.decay = nn.Parameter(torch.empty(features).uniform_(0.7, 0.999))

    def tables(self, at: Positions, dtype: torch.dtype) -> tuple[Tensor]:
        """What is added to every token, [b, t, d]."""
        check_coords(self, at, integers=True)
        floating(dtype)
        on_device_of(self.decay, at=at.coords)
        path = at.coords if at.coords.ndim == 3 else at.coords[..., None]
        check_between(path, 0, self.n_branches, "TreePE: branch")
        with full_precision(self.decay):
            w = self.decay.double()
            steps = torch.arange(self.max_depth, dtype=torch.float64, device=w.device)
            weights = w.tanh() ** steps[:, None] * (self.d_model / 2) ** 0.5 / w.cosh()  # [k, f]: 1 - tanh² = 1/cosh²
            taken = path[..., None] == torch.arange(1, self.n_branches + 1, device=path.device)  # [b, t, k, n]
            added = (taken[..., None] * weights[:, None, :]).flatten(2)
            return (F.pad(added, (0, self.d_model - added.shape[-1])).to(dtype),)
