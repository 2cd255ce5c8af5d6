"""LePE by loops over neighbours, and as the convolution of the authors' code. Dong et al. 2021."""

import numpy as np
import pytest
import torch

import posenc
from posenc import Positions, attend

from .by_hand import attention, close, draw, products, sees
from .test_deberta import drawn

D, H = 4, 3


def made(size=3):
    return drawn(posenc.create("lepe", d_head=D, n_heads=H, kernel_size=size).double())


def convolved(v, coords, encoding, sees, flipped=False):
    """[b, h, t, d]: the kernel over the values at (row + y, column + x) that a token may see."""
    kernel, constant = (parameter.detach().numpy() for parameter in (encoding.kernel, encoding.constant))
    reach, share = kernel.shape[-1] // 2, H // v.shape[1]
    out = np.zeros((v.shape[0], H, *v.shape[2:]))
    for b, h, i in np.ndindex(*out.shape[:3]):
        if any(sees(b, i, j) for j in range(v.shape[2])):
            out[b, h, i] += constant[h]
        for j in range(v.shape[2]):
            y, x = coords[j][0] - coords[i][0], coords[j][1] - coords[i][1]
            if max(abs(y), abs(x)) <= reach and sees(b, i, j):
                y, x = (-y, -x) if flipped else (y, x)
                out[b, h, i] += kernel[h, :, y + reach, x + reach] * v[b, h // share, j]
    return out


PLACES = [(r, c) for r in range(3) for c in range(4)]
EVERYONE = [[0] * 12] * 2


def drawn_heads(g=H):
    return draw(1, 2, H, 12, D), draw(2, 2, g, 12, D), draw(3, 2, g, 12, D)


@pytest.mark.parametrize("impl", ["reference", "sdpa", "auto"])
@pytest.mark.parametrize(("size", "g"), [(3, H), (5, 1), (1, H)])
def test_by_loops_in_any_order(impl, size, g):
    encoding, (q, k, v) = made(size), drawn_heads(g)
    everything = sees(EVERYONE, EVERYONE, causal=False)
    expected = attention(products(q, k), v, everything) + convolved(v, PLACES, encoding, everything)
    at = Positions.grid(3, 4)
    tensors = [torch.from_numpy(x) for x in (q, k, v)]
    close(attend(*tensors, encoding, at, causal=False, impl=impl), expected)
    mixed = torch.from_numpy(np.random.default_rng(0).permutation(12))
    got = attend(*(x[:, :, mixed] for x in tensors), encoding, at.shift(7).take(mixed), causal=False, impl=impl)
    close(got, expected[:, :, mixed])


def test_two_windows_padding_and_a_causal_mask():
    document, order = [[0] * 6 + [1] * 4 + [-1] * 2] * 2, [range(12)] * 2
    encoding, (q, k, v) = made(), drawn_heads()
    at = Positions(Positions.grid(3, 4).coords, torch.arange(12)[None], torch.tensor(document[:1]))
    for causal in (True, False):
        may = sees(order, order, document, document, causal)
        expected = attention(products(q, k), v, may) + convolved(v, PLACES, encoding, may)
        close(attend(*map(torch.from_numpy, (q, k, v)), encoding, at, causal=causal), expected)
    assert not expected[:, :, 10:].any()


def test_a_mask_and_a_window_hide_neighbours_too():
    encoding, (q, k, v) = made(), drawn_heads()
    hidden = draw(5, 1, 1, 12, 12) > 0
    may = sees(EVERYONE, EVERYONE, causal=False)
    at, tensors = Positions.grid(3, 4), [torch.from_numpy(x) for x in (q, k, v)]

    def through(b, i, j):
        return may(b, i, j) and hidden[0, 0, i, j]

    expected = attention(products(q, k), v, through) + convolved(v, PLACES, encoding, through)
    close(attend(*tensors, encoding, at, causal=False, mask=torch.from_numpy(hidden)), expected)

    def near(b, i, j):
        return 0 <= i - j <= 2

    expected = attention(products(q, k), v, near) + convolved(v, PLACES, encoding, near)
    close(attend(*tensors, encoding, at, window=(2, 0)), expected)


def test_a_wrong_formula_is_noticed():
    encoding, (q, k, v) = made(), drawn_heads()
    everything = sees(EVERYONE, EVERYONE, causal=False)
    got = attend(*map(torch.from_numpy, (q, k, v)), encoding, Positions.grid(3, 4), causal=False)
    plain = attention(products(q, k), v, everything)
    swapped = [(c, r) for r, c in PLACES]
    for wrong in (
        convolved(v, PLACES, encoding, everything, flipped=True),
        convolved(v, swapped, encoding, everything),
        convolved(v, PLACES, made(5), everything),
        convolved(k, PLACES, encoding, everything),
    ):
        with pytest.raises(AssertionError):
            close(got, plain + wrong, atol=1e-3)


def test_as_the_convolution_of_the_authors():
    """Channels of all heads side by side go through Conv2d, one group for each channel."""
    encoding, v = made(), torch.from_numpy(draw(3, 2, H, 12, D))
    conv = torch.nn.Conv2d(H * D, H * D, 3, padding=1, groups=H * D).double()
    with torch.no_grad():
        conv.weight.copy_(encoding.kernel.reshape(H * D, 1, 3, 3))
        conv.bias.copy_(encoding.constant.reshape(H * D))
        image = v.transpose(2, 3).reshape(2, H * D, 3, 4)
        expected = conv(image).reshape(2, H, D, 12).transpose(2, 3)
    q = torch.from_numpy(draw(1, 2, H, 12, D))
    at = Positions.grid(3, 4)
    added = attend(q, q, v, encoding, at, causal=False) - attend(q, q, v, posenc.create("nope"), at, causal=False)
    close(added, expected.detach())


def test_slices_of_heads_and_other_encodings_beside_it():
    encoding, (q, k, v) = made(), drawn_heads()
    at, tensors = Positions.grid(3, 4), [torch.from_numpy(x) for x in (q, k, v)]
    whole = attend(*tensors, encoding, at, causal=False)
    close(attend(*(x[:, 1:] for x in tensors), encoding.heads(1, H), at, causal=False), whole[:, 1:].detach())
    rope = posenc.create("axial_rope", d_head=D)
    both = attend(*tensors, posenc.Stack(rope, encoding), at, causal=False)
    alone = [attend(*tensors, one, at, causal=False) for one in (rope, encoding, posenc.create("nope"))]
    close(both, (alone[0] + alone[1] - alone[2]).detach())


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="kernel_size: expected an odd number, so that it has a middle, got 4"):
        made(4)
    q = torch.zeros(1, H, 3, D)
    twice = Positions.at(torch.tensor([[[0, 0], [0, 1], [0, 1]]]))
    with pytest.raises(ValueError, match=r"a token at \[0, 0\] has two neighbours with the same coordinates"):
        attend(q, q, q, made().float(), twice, causal=False)
    with pytest.raises(ValueError, match=f"built for n_heads={H}, got a tensor with 2 as q"):
        attend(q[:, :2], q[:, :2], q[:, :2], made().float(), Positions.grid(1, 3), causal=False)
    with pytest.raises(TypeError, match="needs integer positions"):
        attend(q, q, q, made().float(), Positions.at(torch.rand(1, 3, 2)), causal=False)
