"""Position from a convolution over neighbouring tokens; the zeros beyond the ends of a document mark absolute position.

    x_t + gelu(b + Σ_k W_k·x_(t+k-⌊K/2⌋)),   k = 0 … K-1, x = 0 outside the document

Mohamed et al. 2019, "Transformers with convolutional context for ASR", section 2; Baevski et al. 2020 (wav2vec 2.0),
section 2; a stack of five with layer norm: Baevski et al. 2022 (data2vec), section 4.2.
Legend: b batch, t tokens, d d_model, g groups, k taps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from posenc.encoding import AbsoluteEncoding
from posenc.positions import Positions
from posenc.support import checks
from posenc.support.checked import checked
from posenc.support.tensors import check_accepted, check_embeddings, full_precision, working_dtype

if TYPE_CHECKING:
    from posenc.support.shapes import Bool, Float


class Convolutional(AbsoluteEncoding):
    """x + gelu(convolution of x) over the tokens of a row. Reads neighbours, no coordinates; not `local`.

    d_model      channels
    kernel_size  taps; an even number reaches one token further back than ahead
    groups       groups of channels that see each other
    layers       convolutions after one another (data2vec-audio has 5)
    normed       whether each is followed by a layer norm without parameters, before the gelu (data2vec-audio)
    batch_norm   whether channels are first standardised with given statistics (HuBERT's conv_pos_batch_norm, without
                 weight norm); the statistics are frozen parameters, as a model in use has them
    weight_norm  W_k = gain_k·V_k/|V_k|, a norm for each tap, as in wav2vec 2.0; otherwise plain weights (data2vec-audio)

    A row holds one whole document, from its first token on, and padding on either side; padding counts as absent and gets
    nothing. Several documents in a row, chunks of a prefill and shards have neighbours elsewhere: they are refused with a
    ValueError (a device assert off the CPU). A row cut off at its end cannot be seen; give it whole.
    Parameters: of each layer gain [1, 1, k] and direction [d, d/g, k], or weight [d, d/g, k], and bias [d]; with
    batch_norm also mean, variance, gain and shift [d].
    """

    traits = frozenset({"shift_invariant", "norm_preserving"})

    @checked
    def __init__(
        self,
        d_model: int,
        kernel_size: int = 128,
        *,
        groups: int = 16,
        layers: int = 1,
        normed: bool = False,
        weight_norm: bool = True,
        batch_norm: bool = False,
    ) -> None:
        super().__init__(
            d_model=d_model,
            kernel_size=kernel_size,
            groups=groups,
            layers=layers,
            normed=normed,
            weight_norm=weight_norm,
            batch_norm=batch_norm,
        )
        checks.whole(kernel_size=kernel_size, groups=groups)
        if d_model % groups:
            raise ValueError(f"d_model: expected a multiple of groups={groups}, got {d_model}")
        self.d_model, self.normed, self.batch_norm = d_model, normed, batch_norm
        if batch_norm:
            zeros, ones = torch.zeros(d_model), torch.ones(d_model)
            self.mean, self.variance = (nn.Parameter(start, requires_grad=False) for start in (zeros, ones.clone()))
            self.gain, self.shift = nn.Parameter(ones), nn.Parameter(zeros.clone())
        self.layers = nn.ModuleList(Taps(d_model, kernel_size, groups, weight_norm) for _ in range(layers))

    def embed(self, x: Float[Tensor, "b t d"], at: Positions) -> Float[Tensor, "b t d"]:
        check_embeddings(self, x, at)
        if not (x.shape[0] and x.shape[1]):
            return x
        whole_documents(at)
        absent = (at.document < 0)[..., None]
        dtype = working_dtype(x.dtype)
        hidden = x.to(dtype)
        with full_precision(x):
            if self.batch_norm:
                mean, variance = self.mean.to(dtype), self.variance.to(dtype)
                hidden = (hidden - mean) * (variance + 1e-5).rsqrt() * self.gain.to(dtype) + self.shift.to(dtype)
            for layer in self.layers:
                hidden = layer(hidden.masked_fill(absent, 0))
                if self.normed:
                    hidden = F.layer_norm(hidden, (self.d_model,))
                hidden = F.gelu(hidden)
            return (x.to(dtype) + hidden.masked_fill(absent, 0)).to(x.dtype)


class Taps(nn.Module):
    """A grouped convolution that keeps the length."""

    def __init__(self, d_model: int, kernel_size: int, groups: int, weight_norm: bool) -> None:
        super().__init__()
        self.kernel_size, self.groups, self.weight_norm = kernel_size, groups, weight_norm
        drawn = torch.empty(d_model, d_model // groups, kernel_size)
        drawn.normal_(std=2 * (kernel_size * d_model) ** -0.5)
        if weight_norm:
            self.direction = nn.Parameter(drawn)
            self.gain = nn.Parameter(drawn.norm(dim=(0, 1), keepdim=True))
        else:
            self.weight = nn.Parameter(drawn)
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Float[Tensor, "b t d"]) -> Float[Tensor, "b t d"]:
        if self.weight_norm:
            direction = self.direction.to(x.dtype)
            weight = self.gain.to(x.dtype) * direction / direction.norm(dim=(0, 1), keepdim=True)
        else:
            weight = self.weight.to(x.dtype)
        back, ahead = self.kernel_size // 2, (self.kernel_size - 1) // 2
        padded = F.pad(x.transpose(1, 2), (back, ahead))
        return F.conv1d(padded, weight, self.bias.to(x.dtype), groups=self.groups).transpose(1, 2)


def whole_documents(at: Positions) -> None:
    """Raises ValueError unless each row is one document from its first token on, without gaps, and padding around it."""
    real = at.document >= 0
    index = torch.arange(at.length, device=at.order.device)
    first = index.masked_fill(~real, at.length).amin(dim=1, keepdim=True)
    document = at.document.masked_fill(~real, -1).amax(dim=1, keepdim=True)
    fits: Bool[Tensor, "b t"] = ~real | ((at.order == index - first) & (at.document == document))
    message = (
        "Convolutional: a row must be one whole document, with padding around it at most; packed "
        "documents, chunks and shards have neighbours elsewhere: one document, one row"
    )
    check_accepted(at.order, fits, message)
