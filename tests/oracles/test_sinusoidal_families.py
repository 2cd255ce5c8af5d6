"""Sinusoids as model families lay them out, against their own modules in transformers and against loops in fp64."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from posenc import Positions
from posenc.encodings.sinusoidal import ScaledSinusoidal, Sinusoidal, centred_table

from .by_hand import close, draw

FP32 = 1e-5  # theirs multiplies position and frequency in fp32: positions to 40 lose 40·2^-24 and a few roundings


def added(encoding, at: Positions, d: int) -> torch.Tensor:
    return encoding.embed(torch.zeros(at.batch, at.length, d, dtype=torch.float64), at)


def pairs(position: float, width: int, base: float = 10000.0) -> list[tuple[float, float]]:
    """(sin, cos) of position / base^(2i/width) for every pair."""
    angles = [position / base ** (2 * i / width) for i in range(width // 2)]
    return [(math.sin(angle), math.cos(angle)) for angle in angles]


def interleaved(position: float, width: int, base: float = 10000.0) -> list[float]:
    return [value for pair in pairs(position, width, base) for value in pair]


def halves(position: float, width: int) -> list[float]:
    sines, cosines = zip(*pairs(position, width), strict=True)
    return [*sines, *cosines]


# Sequences -------------------------------------------------------------------------------------------------------------

FAIRSEQ = {
    "m2m_100": "M2M100",
    "nllb_moe": "NllbMoe",
    "speech_to_text": "Speech2Text",
    "speecht5": "SpeechT5",
    "trocr": "TrOCR",
    "kosmos2": "Kosmos2Text",
    "seamless_m4t": "SeamlessM4T",
    "fsmt": "",
}
IDS = torch.tensor([[5, 6, 7, 8, 9, 1, 1], [1, 1, 5, 6, 7, 8, 9], [4, 1, 3, 2, 7, 7, 1]])  # 1 is padding, anywhere


def theirs(family: str, name: str):
    module = __import__(f"transformers.models.{family}.modeling_{family}", fromlist=["x"])
    return getattr(module, name)


@pytest.mark.parametrize("d", [8, 9, 12])
@pytest.mark.parametrize("family", FAIRSEQ)
def test_fairseq_numbering_and_zero_rows(family, d):
    """Row padding_idx + 1 is the first token, odd widths end in 0, padding gets nothing."""
    module = theirs(family, f"{FAIRSEQ[family]}SinusoidalPositionalEmbedding")(40, d, 1)
    expected = module(IDS) if family != "fsmt" else fsmt_table(module, d)
    encoding = Sinusoidal(d, layout="sin_cos", denominator="d/2-1", offset=2, odd="zero", silent="padding")
    got = added(encoding, Positions.from_mask(IDS != 1), d)
    close(got, expected.double(), FP32)
    assert torch.equal(got[IDS == 1], torch.zeros(int((IDS == 1).sum()), d, dtype=torch.float64))
    by_loop = np.zeros((*IDS.shape, d))
    for b, row in enumerate(IDS.tolist()):
        row_number = 1
        for t, token in enumerate(row):
            if token != 1:
                row_number += 1
                n = d // 2
                angles = [row_number * 10000 ** (-i / (n - 1)) for i in range(n)]
                values = [*map(math.sin, angles), *map(math.cos, angles), 0.0]
                by_loop[b, t] = values[:d]
    close(got, by_loop)


def fsmt_table(module, d: int) -> torch.Tensor:
    rows = module.get_embedding(40, d, 1)
    return rows[module.make_positions(IDS, 1)]


def test_xglm_numbers_every_token():
    module = theirs("xglm", "XGLMSinusoidalPositionalEmbedding")(40, 10, 1)
    at = Positions.arange(1, 12, 3)
    got = added(Sinusoidal(10, layout="sin_cos", denominator="d/2-1", offset=2, odd="zero"), at, 10)
    close(got, module(torch.arange(3, 15)[None]).double(), FP32)


@pytest.mark.parametrize("d", [8, 9])
@pytest.mark.parametrize("family", ["musicgen", "musicgen_melody"])
def test_cosines_first(family, d):
    name = (
        "MusicgenSinusoidalPositionalEmbedding" if family == "musicgen" else "MusicgenMelodySinusoidalPositionalEmbedding"
    )
    expected = theirs(family, name).get_embedding(30, d)
    got = added(Sinusoidal(d, layout="cos_sin", denominator="d/2-1", odd="zero"), Positions.arange(1, 30), d)
    close(got[0], expected.double(), FP32)


@pytest.mark.parametrize("d", [8, 9])
@pytest.mark.parametrize(
    ("family", "name"),
    [
        ("marian", "Marian"),
        ("pegasus", "Pegasus"),
        ("roformer", "RoFormer"),
        ("informer", "Informer"),
        ("autoformer", "Autoformer"),
        ("time_series_transformer", "TimeSeries"),
    ],
)
def test_sines_then_cosines(family, name, d):
    """An odd width has one sine more than cosines."""
    expected = theirs(family, f"{name}SinusoidalPositionalEmbedding")(30, d).create_weight()
    close(added(Sinusoidal(d, layout="sin_cos"), Positions.arange(1, 30), d)[0], expected.double(), 1e-6)


def test_interleaved_families():
    got = added(Sinusoidal(8), Positions.arange(1, 30), 8)
    xlm = torch.empty(30, 8)
    theirs("xlm", "create_sinusoidal_embeddings")(30, 8, xlm)
    close(got[0], xlm.double(), 1e-6)
    close(got, theirs("videomae", "get_sinusoid_encoding_table")(30, 8).double(), 1e-6)
    vision = SimpleNamespace(vision_config=SimpleNamespace(embed_dim=[8], max_temporal_embeddings=30))
    florence = theirs("florence2", "Florence2VisionPositionalEmbeddingCosine1D")(vision)
    close(got[0], florence(torch.zeros(1, 30, 8)).double(), FP32)


def test_whisper_ctrl_tips_timesfm_pegasus_x():
    at = Positions.arange(1, 30)
    to_the_end = added(Sinusoidal(8, layout="sin_cos", denominator="d/2-1"), at, 8)
    close(to_the_end[0], theirs("whisper", "sinusoids")(30, 8).double(), FP32)
    tips = theirs("tipsv2", "Tipsv2SinusoidalPositionalEmbedding").get_embedding(30, 8, None)
    close(to_the_end[0], tips.double(), FP32)
    close(to_the_end, theirs("pegasus_x", "PegasusXSinusoidalPositionalEmbedding")(8)(torch.zeros(1, 30, 8)).double(), FP32)
    omni = theirs("qwen2_5_omni", "SinusoidsPositionEmbedding")(40, 8)
    close(to_the_end[0], omni(30).double(), FP32)
    ctrl = theirs("ctrl", "positional_encoding")(30, 8, torch.float32)
    close(added(Sinusoidal(8, layout="sin_cos"), at, 8)[0], ctrl.double(), FP32)
    prism = theirs("videoprism", "create_sinusoidal_positions")(30, 8)
    close(added(Sinusoidal(8, layout="sin_cos"), at, 8)[0], prism.double(), FP32)
    config = SimpleNamespace(min_timescale=2, max_timescale=500, hidden_size=8)
    times = theirs("timesfm", "TimesFmPositionalEmbedding")(config)(30)
    encoding = Sinusoidal(8, layout="sin_cos", denominator="d/2-1", base=250.0, scale=2.0)
    close(added(encoding, at, 8), times.double(), 2 * FP32)


def test_canary_and_fun_asr():
    canary = theirs("canary", "CanaryPositionalEmbedding")(30, 8)(torch.arange(30))
    encoding = Sinusoidal(8, layout="sin_cos", amplitude=8**-0.5)
    close(added(encoding, Positions.arange(1, 30), 8)[0], canary.double(), FP32)
    fun = theirs("fun_asr_nano", "FunAsrNanoPositionEmbedding")(40, 8)(torch.zeros(1, 30, 8))
    encoding = Sinusoidal(8, layout="sin_cos", denominator="d/2-1", offset=1)
    close(added(encoding, Positions.arange(1, 30), 8)[0], fun.double(), FP32)


def test_speecht5_scale_is_learned():
    module = theirs("speecht5", "SpeechT5ScaledPositionalEncoding")(0.0, 8)
    encoding, x = ScaledSinusoidal(8), torch.from_numpy(draw(1, 2, 9, 8))
    assert encoding.alpha.item() == 1
    with torch.no_grad():
        module.alpha.fill_(-0.7)
        encoding.load_state_dict({"alpha": module.alpha})
    got = encoding.embed(x, Positions.arange(1, 9))
    close(got, module(x.float()).detach().double(), 1e-5)
    by_loop = [[x[b, t].numpy() - np.float32(0.7) * np.array(interleaved(t, 8)) for t in range(9)] for b in range(2)]
    close(got, np.array(by_loop))
    got.sum().backward()
    assert abs(encoding.alpha.grad.item() - 2 * sum(sum(interleaved(t, 8)) for t in range(9))) < 1e-5


@pytest.mark.parametrize(("length", "d"), [(7, 8), (42, 16)])
def test_patchtst_centres_its_table(length, d):
    config = SimpleNamespace(positional_encoding_type="sincos", d_model=d)
    expected = theirs("patchtst", "PatchTSTPositionalEncoding")._init_pe(config, length)
    got = centred_table(length, d, dtype=torch.float64)
    close(got, expected.detach().double(), 1e-6)
    plain = np.array([interleaved(p, d) for p in range(length)])
    close(got, (plain - plain.mean()) / (10 * plain.std(ddof=1)))


@pytest.mark.parametrize("d", [8, 16, 32])
def test_sam2_pointers_repeat_every_frequency(d):
    expected = theirs("sam2_video", "get_1d_sine_pe")(torch.tensor([0.0, 0.4, 1.0, 7.0]), d)
    got = added(Sinusoidal(d, layout="sin_cos", repeats=2), Positions.at(torch.tensor([[0.0, 0.4, 1.0, 7.0]]).double()), d)
    close(got[0], expected.double(), FP32)
    angle = [7.0 / 10000 ** (2 * (k // 2) / (d // 2)) for k in range(d // 2)]
    close(got[0, 3], np.array([*map(math.sin, angle), *map(math.cos, angle)]))


# Images ----------------------------------------------------------------------------------------------------------------


def grid(height: int, width: int, d: int, order: str) -> np.ndarray:
    """One half of the channels for each of y and x, in the order named, sines then cosines."""
    tokens = [{"y": y, "x": x} for y in range(height) for x in range(width)]
    return np.array([[*halves(token[order[0]], d // 2), *halves(token[order[1]], d // 2)] for token in tokens])


def test_rows_first_rt_detr():
    module = theirs("rt_detr", "RTDetrSinePositionEmbedding")(16)
    expected = module(width=5, height=3, device=torch.device("cpu"), dtype=torch.float64)
    got = added(Sinusoidal(16, axes=2, layout="sin_cos"), Positions.grid(3, 5), 16)
    close(got, expected)
    close(got[0], grid(3, 5, 16, "yx"))


def test_columns_first_vit_mae_granite_aimv2():
    """Their checkpoints have columns before rows; ViT-MAE's CLS token gets zeros."""
    encoding = Sinusoidal(16, axes=2, reads=(1, 0), layout="sin_cos", silent="negative")
    got = added(encoding, Positions.grid(4, 4), 16)
    close(got[0], grid(4, 4, 16, "xy"))
    close(got[0], theirs("granite_docling", "GraniteDoclingPositionEmbedding").build(16, 4).double(), 1e-6)
    from transformers import ViTMAEConfig

    config = ViTMAEConfig(image_size=8, patch_size=2, hidden_size=16, num_channels=1)
    embeddings = theirs("vit_mae", "ViTMAEEmbeddings")(config)
    embeddings.initialize_weights()
    with_cls = Positions.at(torch.cat([torch.tensor([[[-1, -1]]]), Positions.grid(4, 4).coords], dim=1))
    close(added(encoding, with_cls, 16), embeddings.position_embeddings.detach().double(), 1e-6)


def test_one_negative_coordinate_does_not_silence():
    encoding = Sinusoidal(8, axes=2, layout="sin_cos", silent="negative")
    got = added(encoding, Positions.at(torch.tensor([[[-1, 2], [3, -2], [-1, -4]]])), 8)
    close(got[0], np.array([[*halves(-1, 4), *halves(2, 4)], [*halves(3, 4), *halves(-2, 4)], [0.0] * 8]))


def test_omdet_runs_along_columns():
    """[w | h], its tokens counted down the columns of the grid."""
    build = theirs("omdet_turbo", "OmDetTurboHybridEncoder").build_2d_sincos_position_embedding
    expected = build(width=5, height=3, embed_dim=16, dtype=torch.float64)
    close(added(Sinusoidal(16, axes=2, layout="sin_cos"), Positions.grid(5, 3), 16), expected)


MASK = torch.tensor([[[1, 1, 1, 0], [1, 1, 1, 0], [0, 0, 0, 0]], [[1, 1, 1, 1]] * 3])
REAL = MASK.flatten(1).bool()
DETR = {
    "detr": "Detr",
    "conditional_detr": "ConditionalDetr",
    "deformable_detr": "DeformableDetr",
    "maskformer": "MaskFormer",
    "mask2former": "Mask2Former",
    "oneformer": "OneFormer",
    "sam2": "Sam2",
    "sam3": "Sam3",
    "edgetam": "EdgeTam",
}


def of_pixels(base_y: float, base_x: float, d: int, half: float, span: float | None) -> np.ndarray:
    """Counts from 1 along real pixels over the last count, y then x, sine and cosine in turn."""
    out = np.zeros((*MASK.shape, d))
    for b, h, w in np.ndindex(*MASK.shape):
        up, left = MASK[b, : h + 1, w].sum().item(), MASK[b, h, : w + 1].sum().item()
        rows, columns = MASK[b, :, w].sum().item(), MASK[b, h].sum().item()
        y = up if span is None else (up - half) / (rows + 1e-6) * span
        x = left if span is None else (left - half) / (columns + 1e-6) * span
        out[b, h, w] = [*interleaved(y, d // 2, base_y), *interleaved(x, d // 2, base_x)]
    return out.reshape(len(MASK), -1, d)


@pytest.mark.parametrize("normalise", [True, False])
@pytest.mark.parametrize("family", DETR)
def test_detr_counts_real_pixels(family, normalise):
    module = theirs(family, f"{DETR[family]}SinePositionEmbedding")(8, temperature=500, normalize=normalise)
    shape = (2, 1, 3, 4)
    expected = module(shape, torch.device("cpu"), torch.float64, MASK)
    centred = family == "deformable_detr" and normalise
    at = Positions.pixels(MASK, span=2 * math.pi if normalise else None, centred=centred)
    got = added(Sinusoidal(16, axes=2, base=500.0), at, 16)
    flat = expected.flatten(2).transpose(1, 2).double()
    close(got[REAL], flat[REAL], FP32)
    by_loop = of_pixels(500.0, 500.0, 16, 0.5 if centred else 0.0, 2 * math.pi if normalise else None)
    close(got[REAL], by_loop[REAL.numpy()], 1e-11)
    assert torch.equal(at.document >= 0, REAL)


def test_dab_detr_has_two_temperatures():
    config = SimpleNamespace(
        hidden_size=16, temperature_height=20, temperature_width=300, sine_position_embedding_scale=None
    )
    expected = theirs("dab_detr", "DabDetrSinePositionEmbedding")(config)(torch.zeros(2, 1, 3, 4), MASK)
    got = added(Sinusoidal(16, axes=2, base=(20.0, 300.0)), Positions.pixels(MASK), 16)
    close(got[REAL], expected.flatten(2).transpose(1, 2).double()[REAL], FP32)
    close(got[REAL], of_pixels(20.0, 300.0, 16, 0.0, 2 * math.pi)[REAL.numpy()], 1e-11)


def test_grounding_dino_and_table_transformer():
    config = SimpleNamespace(d_model=16, positional_embedding_temperature=20)
    expected = theirs("grounding_dino", "GroundingDinoSinePositionEmbedding")(config)(torch.zeros(2, 1, 3, 4), MASK)
    table = theirs("table_transformer", "TableTransformerSinePositionEmbedding")(8, 20, normalize=True)
    assert torch.equal(expected, table(torch.zeros(2, 1, 3, 4), MASK))
    got = added(Sinusoidal(16, axes=2, base=20.0), Positions.pixels(MASK), 16)
    close(got[REAL], expected.flatten(2).transpose(1, 2).double()[REAL], FP32)


@pytest.mark.parametrize("family", ["rf_detr", "dab_detr", "lw_detr", "conditional_detr", "grounding_dino"])
@pytest.mark.parametrize(("axes", "reads"), [(2, (1, 0)), (4, (1, 0, 2, 3))])
def test_anchors_and_boxes_put_y_before_x(family, axes, reads):
    boxes = torch.from_numpy(draw(3, 2, 5, axes)).sigmoid()
    expected = theirs(family, "encode_sinusoidal_position_embedding")(boxes, 8)
    encoding = Sinusoidal(8 * axes, axes=axes, reads=reads, scale=2 * math.pi)
    got = added(encoding, Positions.at(boxes), 8 * axes)
    close(got, expected.double(), FP32)
    by_loop = [[[interleaved(2 * math.pi * box[c].item(), 8) for c in reads] for box in row] for row in boxes]
    close(got, np.array(by_loop).reshape(2, 5, -1))


def test_deformable_proposals_keep_their_order():
    from transformers import DeformableDetrConfig

    boxes = torch.from_numpy(draw(4, 1, 5, 4))
    owner = SimpleNamespace(config=DeformableDetrConfig(d_model=16))
    expected = theirs("deformable_detr", "DeformableDetrModel").get_proposal_pos_embed(owner, boxes)
    encoding = Sinusoidal(32, axes=4, scale=2 * math.pi)
    close(added(encoding, Positions.at(boxes.sigmoid()), 32), expected, FP32)


def test_kimi_frames_start_at_the_second():
    """One coordinate of three is read; the first frame gets nothing and the second the row of 0."""
    from transformers.models.kimi_k25 import modeling_kimi_k25 as kimi

    config = SimpleNamespace(hidden_size=8, pos_emb_time=4, pos_emb_height=2, pos_emb_width=2)
    rows = kimi.Kimi_K25VisionPositionEmbeddings(config).time_position_embeddings
    at = Positions.at(torch.tensor([[[f, f + 1, 3] for f in range(4)]]))
    got = added(Sinusoidal(8, axes=3, reads=(0,), layout="sin_cos", offset=-1, silent="negative"), at, 8)
    close(got[0], rows[:4].double(), FP32)
    assert torch.equal(got[0, 0], torch.zeros(8, dtype=torch.float64))


def test_wrong_arguments():
    with pytest.raises(ValueError, match=r"reads: expected coordinates 0 … 1, got \(2, 0\)"):
        Sinusoidal(8, axes=2, reads=(2, 0))
    with pytest.raises(ValueError, match="base: expected one number or one for each of 2 blocks, got 3"):
        Sinusoidal(8, axes=2, base=(1.0, 2.0, 3.0))
    with pytest.raises(ValueError, match="base: expected a positive number"):
        Sinusoidal(8, axes=2, base=(1.0, -2.0))
    with pytest.raises(ValueError, match="odd: expected one of 'drop', 'zero', got 'pad'"):
        Sinusoidal(8, odd="pad")
    with pytest.raises(ValueError, match="silent: expected one of 'none', 'padding', 'negative'"):
        Sinusoidal(8, silent="cls")
    with pytest.raises(ValueError, match="repeats: 6 channels cannot be shared evenly by 4"):
        Sinusoidal(6, repeats=4)
    with pytest.raises(ValueError, match="amplitude: expected a positive number"):
        Sinusoidal(6, amplitude=0.0)
    with pytest.raises(ValueError, match=r"mask: expected a tensor \[b, h, w\]"):
        Positions.pixels(MASK[0])
    with pytest.raises(ValueError, match="mask: expected 0 and 1 only"):
        Positions.pixels(MASK * 2)
    with pytest.raises(ValueError, match="centred: counts without a span"):
        Positions.pixels(MASK, span=None, centred=True)
