"""Every rule hands on what it was given: Σ input × gradient is the output."""

import pytest
import torch
from torch import nn
from torch.nn import functional
from transformers.activations import ACT2FN

from slalom.classifiers.huggingface.internals import relevance_rules

X = torch.tensor([[0.5, -1.0, 2.0, 0.3], [1.5, 0.1, -0.2, -3.0]], dtype=torch.float64)


def relevances(model, *inputs):
    """Input times gradient of the sum of what the model makes of non-leaf inputs."""
    leaves = [given.clone().requires_grad_() for given in inputs]
    with relevance_rules(model):
        outcome = model(*(leaf * 1.0 for leaf in leaves))
        slopes = torch.autograd.grad(outcome.sum(), leaves)
    return outcome.detach(), [(s * x).detach() for s, x in zip(slopes, inputs, strict=True)]


class Calls(nn.Module):
    """Any function as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


@pytest.mark.parametrize(
    "function",
    [functional.relu, functional.gelu, functional.silu, torch.tanh, lambda x: x.tanh()],
)
def test_activations_keep_the_relevance_of_each_number(function):
    outcome, (relevance,) = relevances(Calls(function), X)
    torch.testing.assert_close(outcome, function(X))
    torch.testing.assert_close(relevance, outcome)


@pytest.mark.parametrize("name", ["gelu", "gelu_new", "quick_gelu", "silu"])
def test_activations_written_as_formulas_too(name):
    outcome, (relevance,) = relevances(nn.Sequential(ACT2FN[name]), X)
    torch.testing.assert_close(relevance, outcome)


def test_a_layer_norm_gives_and_takes_the_same():
    norm = nn.LayerNorm(4, bias=False, dtype=torch.float64)
    nn.init.normal_(norm.weight)
    outcome, (relevance,) = relevances(norm, X)
    torch.testing.assert_close(outcome, norm(X).detach())
    torch.testing.assert_close(relevance.sum(dim=-1), outcome.sum(dim=-1))


def test_an_rms_norm_too():
    def rms(x):
        return x * torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + 1e-6)

    outcome, (relevance,) = relevances(Calls(rms), X)
    torch.testing.assert_close(relevance, outcome)


@pytest.mark.parametrize(
    "product", [lambda a, b: a @ b.T, torch.mul, lambda a, b: torch.matmul(a, b.transpose(0, 1))]
)
def test_factors_get_half_each(product):
    outcome, (left, right) = relevances(Calls(product), X, X.flip(0))
    torch.testing.assert_close(left.sum(), outcome.sum() / 2)
    torch.testing.assert_close(right.sum(), outcome.sum() / 2)


def test_weights_are_no_factors():
    linear = nn.Linear(4, 3, bias=False, dtype=torch.float64)
    outcome, (relevance,) = relevances(linear, X)
    torch.testing.assert_close(relevance.sum(dim=-1), outcome.sum(dim=-1))


def test_outside_nothing_has_changed():
    model = nn.Sequential(nn.Linear(4, 4), ACT2FN["gelu"], nn.LayerNorm(4))
    x = X.float().requires_grad_()
    before = torch.autograd.grad(model(x).square().sum(), x)[0]
    with relevance_rules(model):
        model(x)
    torch.testing.assert_close(torch.autograd.grad(model(x).square().sum(), x)[0], before)
    assert not any(module._forward_hooks for module in model.modules())
