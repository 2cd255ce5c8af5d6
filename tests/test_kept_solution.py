"""FLOATER's path is solved once for each set of parameters, and continued: what is kept is what solving again gives."""

import copy
import pickle

import pytest
import torch

from posenc import Positions
from posenc.encodings.bases.dormand_prince import Solution
from posenc.encodings.bases.solved_path import Network
from posenc.encodings.floater import FLOATER


@pytest.fixture
def solved(monkeypatch) -> list[int]:
    """How many steps each call of the solver has made."""
    calls, until = [], Solution.until

    def counted(self, *arguments):
        found = until(self, *arguments)
        calls.append(len(found.steps) - len(self.steps))
        return found

    monkeypatch.setattr(Solution, "until", counted)
    return calls


def made(d_model: int = 8) -> FLOATER:
    torch.manual_seed(0)
    return FLOATER(d_model, 2, step=0.1)


def path(encoding: FLOATER, start: int = 0, length: int = 40) -> torch.Tensor:
    with torch.no_grad():
        (table,) = encoding.tables(Positions.arange(2, length, start), torch.float64)
    return table


def test_decoded_tokens_ask_the_solver_only_for_new_steps(solved):
    encoding = made()
    prompt = path(encoding)
    assert len(solved) == 1
    path(encoding, 39, 1)
    path(encoding.at_layer(1), 7, 12)
    assert len(solved) == 1
    longer = torch.cat([path(encoding, n, 1) for n in range(40, 80)], dim=1)
    assert 0 < sum(solved[1:]) < 20
    assert torch.equal(torch.cat([prompt, longer], dim=1), path(made(), 0, 80))


@torch.no_grad()
def step(encoding):
    for parameter in encoding.parameters():
        parameter.mul_(1.01)


def step_of_optimizer(encoding):
    for parameter in encoding.parameters():
        parameter.grad = torch.ones_like(parameter)
    torch.optim.AdamW(encoding.parameters(), foreach=True).step()


def step_in_inference_mode(encoding):
    with torch.inference_mode():
        encoding.outer.weight.mul_(1.01)


def average_through_data(encoding):
    for parameter in encoding.parameters():
        parameter.data.mul_(1.01)
        parameter.data.add_(0.001)


def load(encoding):
    encoding.load_state_dict({name: 1.01 * value for name, value in encoding.state_dict().items()})


def assign(encoding):
    encoding.load_state_dict({name: 1.01 * value for name, value in encoding.state_dict().items()}, assign=True)


def round_to_half(encoding):
    for parameter in encoding.parameters():  # half() itself leaves them: test_casts
        parameter.data = parameter.data.half().float()


CHANGES = (step, step_of_optimizer, step_in_inference_mode, average_through_data, load, assign, round_to_half)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("d_model", [8, 160])  # 160: matrices too large to be compared number by number
def test_changed_parameters_have_a_new_path(change, d_model):
    encoding = made(d_model)
    before = path(encoding)
    change(encoding)
    fresh = FLOATER(d_model, 2, step=0.1)
    fresh.load_state_dict(encoding.state_dict())
    assert not torch.equal(path(encoding), before)
    assert torch.equal(path(encoding), path(fresh))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))], ids=["copy", "pickle"])
def test_a_copy_keeps_its_own(copied, solved):
    encoding = made()
    expected = path(encoding)
    other = copied(encoding)
    step(other)
    assert not torch.equal(path(other), expected)
    assert torch.equal(path(encoding), expected)
    assert len(solved) == 2


def test_gradients_are_never_kept(solved):
    encoding, at = made(), Positions.arange(1, 5)
    path(encoding)
    (table,) = encoding.tables(at, torch.float32)
    assert table.requires_grad
    assert len(solved) == 2


@pytest.mark.parametrize("d_model", [8, 160])
def test_what_was_made_in_inference_mode_is_kept_until_a_value_changes(d_model, solved):
    with torch.inference_mode():
        encoding, at = made(d_model), Positions.arange(1, 5)
        before = encoding.tables(at, torch.float64)[0].clone()
        assert torch.equal(encoding.tables(at, torch.float64)[0], before)
        assert len(solved) == 1
        encoding.outer.weight[0, 0] += 0.5
        changed = encoding.tables(at, torch.float64)[0]
        assert not torch.equal(changed, before)
        assert len(solved) == 2
    fresh = FLOATER(d_model, 2, step=0.1)
    fresh.load_state_dict(encoding.state_dict())
    assert torch.equal(changed, fresh.tables(at, torch.float64)[0])


def test_a_path_without_bound_is_refused():
    encoding = made()
    with torch.no_grad():
        encoding.outer.bias.fill_(float("nan"))
    with pytest.raises(ValueError, match=r"the solution ends at time 0\.0: y or its slope is not finite there"):
        path(encoding)


def test_gradients_are_those_of_the_same_steps_in_plain_torch():
    """The adjoint against autograd through every operation, and differentiated again."""
    encoding, at = made().double(), Positions.at(torch.tensor([[0.0, 0.5, 7.25, 31.0]]))
    weights = torch.randn(4, 2, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    inner, outer = encoding.inner, encoding.outer
    network = Network(inner.weight.T, inner.bias, outer.weight.T, outer.bias)
    plain = Solution.begin(network.velocity, encoding.start, encoding.rtol, encoding.atol).until(network.velocity, 3.1)
    losses = [(table * weights).sum() for table in (encoding.tables(at, torch.float64)[0][0], plain.at(at.coords[0] * 0.1))]
    once = [torch.autograd.grad(loss, tuple(encoding.parameters()), create_graph=True) for loss in losses]
    held = torch.autograd.grad((encoding.tables(at, torch.float64)[0][0] * weights).sum(), tuple(encoding.parameters()))
    twice = [torch.autograd.grad(found[1].square().sum(), encoding.start)[0] for found in once]
    for mine, again, theirs in zip(held, *once, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-12, atol=1e-13)
        torch.testing.assert_close(again, theirs, rtol=1e-12, atol=1e-13)
    torch.testing.assert_close(*twice, rtol=1e-10, atol=1e-12)
