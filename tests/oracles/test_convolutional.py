"""Convolutional positions against loops over taps and the families' own modules. Baevski et al. 2020, section 2."""

import importlib
import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from posenc import Positions
from posenc.encodings.convolutional import Convolutional

from .by_hand import close, draw


def filled(*args, **options) -> Convolutional:
    encoding = Convolutional(*args, **options).double()
    with torch.no_grad():
        for n, parameter in enumerate(encoding.parameters()):
            parameter.copy_(torch.from_numpy(draw(n, *parameter.shape)))
    return encoding


def by_loops(x: np.ndarray, encoding: Convolutional) -> np.ndarray:
    """One document [t, d]."""
    hidden, options = x, encoding.configuration
    taps, groups = options["kernel_size"], options["groups"]
    share = options["d_model"] // groups
    for layer in encoding.layers:
        parameters = {name: value.detach().numpy() for name, value in layer.named_parameters()}
        out = np.tile(parameters["bias"], (len(x), 1))
        for k in range(taps):
            if options["weight_norm"]:
                direction = parameters["direction"][:, :, k]
                weight = parameters["gain"][0, 0, k] * direction / math.sqrt((direction**2).sum())
            else:
                weight = parameters["weight"][:, :, k]
            for t in range(len(x)):
                source = t + k - taps // 2
                if 0 <= source < len(x):
                    for c in range(options["d_model"]):
                        start = c // share * share
                        out[t, c] += weight[c] @ hidden[source, start : start + share]
        if options["normed"]:
            out = (out - out.mean(axis=1, keepdims=True)) / np.sqrt(out.var(axis=1, keepdims=True) + 1e-5)
        hidden = np.array([[v * 0.5 * (1 + math.erf(v / math.sqrt(2))) for v in row] for row in out])
    return x + hidden


CASES = [
    {"kernel_size": 4, "groups": 2},
    {"kernel_size": 5, "groups": 3},
    {"kernel_size": 1, "groups": 6},
    {"kernel_size": 16, "groups": 1},
    {"kernel_size": 3, "groups": 2, "layers": 3, "normed": True, "weight_norm": False},
    {"kernel_size": 4, "groups": 2, "layers": 2, "weight_norm": False},
]


@pytest.mark.parametrize("options", CASES, ids=str)
def test_taps_by_loops(options):
    encoding, x = filled(6, **options), draw(9, 2, 7, 6)
    got = encoding.embed(torch.from_numpy(x), Positions.arange(2, 7))
    close(got, np.stack([by_loops(row, encoding) for row in x]), 1e-11)


@pytest.mark.parametrize("options", CASES, ids=str)
def test_padding_is_absent_on_either_side(options):
    encoding, x = filled(6, **options), draw(9, 3, 9, 6)
    mask = torch.tensor([[0, 0, 1, 1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 0, 1]])
    got = encoding.embed(torch.from_numpy(x), Positions.from_mask(mask)).detach().numpy()
    for row, real in enumerate(mask.bool().numpy()):
        close(got[row][real], by_loops(x[row][real], encoding), 1e-11)
        np.testing.assert_array_equal(got[row][~real], x[row][~real])


@pytest.mark.parametrize(
    "at",
    [
        Positions.packed([0, 2, 6]),
        Positions.arange(1, 6, 3),
        Positions.decode([6]),
        Positions.arange(1, 6).shard(1, 2),
        Positions.arange(1, 8).shard(0, 2, zigzag=True),
        Positions.from_mask(torch.tensor([[1, 0, 1, 1]])),
    ],
    ids=["packed", "chunk", "decode", "shard", "zigzag", "gap"],
)
def test_neighbours_elsewhere_are_refused(at):
    with pytest.raises(ValueError, match="a row must be one whole document"):
        filled(6, 3, groups=1).embed(torch.zeros(1, at.length, 6, dtype=torch.float64), at)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_16_bits_round_once_A6(dtype):
    encoding, x = Convolutional(6, 4, groups=2).to(dtype), torch.from_numpy(draw(1, 2, 7, 6)).to(dtype)
    exact = Convolutional(6, 4, groups=2).double()
    exact.load_state_dict(encoding.state_dict())
    at = Positions.arange(2, 7)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        got = encoding.embed(x, at)
    assert got.dtype == dtype
    wanted = exact.embed(x.double(), at)
    close(got.double(), wanted, 0.5 * torch.finfo(dtype).eps * wanted.abs().max().item() + 1e-5)


WAV2VEC = {
    "wav2vec2": "Wav2Vec2PositionalConvEmbedding",
    "hubert": "HubertPositionalConvEmbedding",
    "wavlm": "WavLMPositionalConvEmbedding",
    "unispeech": "UniSpeechPositionalConvEmbedding",
    "unispeech_sat": "UniSpeechSatPositionalConvEmbedding",
    "speecht5": "SpeechT5PositionalConvEmbedding",
    "wav2vec2_conformer": "Wav2Vec2ConformerPositionalConvEmbedding",
}


@pytest.mark.parametrize("taps", [4, 5, 16])
@pytest.mark.parametrize("family", WAV2VEC)
def test_wav2vec2_family(family, taps):
    importlib.import_module("transformers")
    from transformers import HubertConfig

    config = HubertConfig(
        hidden_size=8,
        num_conv_pos_embeddings=taps,
        num_conv_pos_embedding_groups=2,
        feat_extract_activation="gelu",
        conv_pos_batch_norm=False,
    )
    source = __import__(f"transformers.models.{family}.modeling_{family}", fromlist=["x"])
    module = getattr(source, WAV2VEC[family])(config).double()
    with torch.no_grad():
        for n, parameter in enumerate(module.parameters()):
            parameter.copy_(torch.from_numpy(draw(n, *parameter.shape)))
    state = module.state_dict()
    encoding = Convolutional(8, taps, groups=2).double()
    encoding.load_state_dict(
        {
            "layers.0.gain": state["conv.parametrizations.weight.original0"],
            "layers.0.direction": state["conv.parametrizations.weight.original1"],
            "layers.0.bias": state["conv.bias"],
        }
    )
    x = torch.from_numpy(draw(20, 2, 11, 8))
    close(encoding.embed(x, Positions.arange(2, 11)), (x + module(x)).detach())
    mask = (torch.arange(11)[None] < torch.tensor([[11], [6]])).long()
    theirs = (x + module(x * mask[..., None])).detach()  # they zero the padding first
    got = encoding.embed(x, Positions.from_mask(mask))
    close(got[mask.bool()], theirs[mask.bool()])


@pytest.mark.parametrize("taps", [4, 5])
def test_data2vec_audio(taps):
    data2vec = importlib.import_module("transformers.models.data2vec.modeling_data2vec_audio")
    from transformers import Data2VecAudioConfig

    config = Data2VecAudioConfig(
        hidden_size=8, conv_pos_kernel_size=taps, num_conv_pos_embeddings=3, num_conv_pos_embedding_groups=2
    )
    module = data2vec.Data2VecAudioPositionalConvEmbedding(config).double()
    encoding = Convolutional(8, taps, groups=2, layers=3, normed=True, weight_norm=False).double()
    encoding.load_state_dict({key.replace(".conv.", "."): value for key, value in module.state_dict().items()})
    x = torch.from_numpy(draw(20, 2, 11, 8))
    close(encoding.embed(x, Positions.arange(2, 11)), (x + module(x)).detach())


def test_hubert_with_batch_norm():
    hubert = importlib.import_module("transformers.models.hubert.modeling_hubert")
    config = SimpleNamespace(
        hidden_size=8,
        num_conv_pos_embeddings=4,
        num_conv_pos_embedding_groups=2,
        feat_extract_activation="gelu",
        conv_pos_batch_norm=True,
    )
    module = hubert.HubertPositionalConvEmbedding(config).double().eval()
    with torch.no_grad():
        for n, tensor in enumerate([*module.parameters(), module.batch_norm.running_mean]):
            tensor.copy_(torch.from_numpy(draw(n, *tensor.shape)))
        module.batch_norm.running_var.copy_(torch.from_numpy(draw(30, 8)).exp())
    state = module.state_dict()
    encoding = Convolutional(8, 4, groups=2, weight_norm=False, batch_norm=True).double()
    names = {"mean": "running_mean", "variance": "running_var", "gain": "weight", "shift": "bias"}
    encoding.load_state_dict(
        {
            "layers.0.weight": state["conv.weight"],
            "layers.0.bias": state["conv.bias"],
            **{mine: state[f"batch_norm.{theirs}"] for mine, theirs in names.items()},
        }
    )
    x = torch.from_numpy(draw(20, 2, 11, 8))
    whole = encoding.embed(x, Positions.arange(2, 11))
    close(whole, (x + module(x)).detach())
    mask = (torch.arange(11)[None] < torch.tensor([[11], [6]])).long()
    close(encoding.embed(x, Positions.from_mask(mask))[1, :6], encoding.embed(x[1:, :6], Positions.arange(1, 6))[0])


def test_wrong_arguments():
    with pytest.raises(ValueError, match="d_model: expected a multiple of groups=4, got 6"):
        Convolutional(6, groups=4)
    with pytest.raises(ValueError, match="kernel_size: expected a whole number from 1, got 0"):
        Convolutional(6, 0, groups=2)


def test_acts_at_the_first_layer_only():
    encoding, at, x = filled(6, 3, groups=2), Positions.arange(1, 5), torch.from_numpy(draw(7, 1, 5, 6))
    assert encoding.at_layer(0) is encoding
    assert torch.equal(encoding.at_layer(1).embed(x, at), x)
