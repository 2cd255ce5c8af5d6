"""The laws over encodings that act on embeddings and read one coordinate per token, or none."""

import pytest
import torch

from posenc import PositionalEncoding, laws
from posenc.encodings.convolutional import Convolutional
from posenc.encodings.learned import Learned
from posenc.encodings.learned_axes import LearnedAxes
from posenc.encodings.sinusoidal import ScaledSinusoidal, Sinusoidal

LOCAL = {
    "fairseq": lambda: Sinusoidal(32, layout="sin_cos", denominator="d/2-1", offset=2, odd="zero", silent="padding"),
    "amplitude": lambda: Sinusoidal(32, layout="sin_cos", amplitude=1.5),
    "sam2 pointers": lambda: Sinusoidal(32, layout="sin_cos", repeats=2, scale=0.5),
    "one coordinate read twice": lambda: Sinusoidal(32, reads=(0, 0), base=(10.0, 10000.0)),
    "scaled": lambda: ScaledSinusoidal(32),
    "roberta": lambda: Learned(32, 128, row_offset=2, padding_row=1),
    "clamped": lambda: Learned(32, 200, clamp=True),
    "reformer": lambda: LearnedAxes(32, (8, 25), combine="concat", widths=(12, 20), folded=True),
}
NEIGHBOURS = {
    "wav2vec2": lambda: Convolutional(32, 4, groups=4),
    "data2vec": lambda: Convolutional(32, 3, groups=4, layers=3, normed=True, weight_norm=False),
}
WHOLE_ROWS = [
    "padded_equals_unpadded", "shift_invariance", "head_slices", "state_is_configuration", "surroundings_do_not_matter",
    "forward_writes_nothing", "tables_know_their_owner", "one_graph_over_lengths", "backends_agree", "norm_preservation",
]  # fmt: skip
DTYPES = [torch.float64, torch.float32, torch.bfloat16]


def drawn(build) -> PositionalEncoding:
    return laws.draw_parameters(build(), seed=1)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", LOCAL)
def test_every_law(name, dtype):
    every = [law for law in laws.LAWS if law not in ("gradients", "one_graph_over_lengths")]
    laws.check(drawn(LOCAL[name]), laws.Setting(dtype=dtype), every)


@pytest.mark.parametrize("name", LOCAL)
def test_gradients_and_one_graph(name):
    laws.check(drawn(LOCAL[name]), laws.Setting(), ["gradients", "one_graph_over_lengths"])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", NEIGHBOURS)
def test_laws_of_whole_rows(name, dtype):
    laws.check(drawn(NEIGHBOURS[name]), laws.Setting(dtype=dtype, causal=False), WHOLE_ROWS)


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_gradients_over_neighbours(name):
    laws.check(drawn(NEIGHBOURS[name]), laws.Setting(causal=False), ["gradients"])


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_what_neighbours_cannot_do_is_refused(name):
    """Packed rows and chunks: not a wrong result but an error."""
    encoding = drawn(NEIGHBOURS[name])
    for law in ("packed_equals_separate", "decode_equals_prefill"):
        with pytest.raises(ValueError, match="a row must be one whole document"):
            laws.check(encoding, laws.Setting(), [law])
