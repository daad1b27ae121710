"""Modules and weights are those that torch finds, shared ones included."""

import pytest
import torch
from torch import nn

from slalom.classifiers.huggingface.encoder import modules_of, weights_of
from tokenizers_made_here import ARCHITECTURES, tiny


@pytest.mark.parametrize("architecture", sorted(ARCHITECTURES))
def test_modules_and_weights_of_a_model(architecture: str) -> None:
    model, _ = tiny(architecture)
    modules = modules_of(model)
    assert {id(one) for one in modules} == {id(one) for one in model.modules()}
    assert len(modules) == len(list(model.modules()))
    assert {id(one) for one in weights_of(modules)} == {id(one) for one in model.parameters()}


def test_what_is_shared_left_out_or_runs_in_a_circle() -> None:
    shared = nn.Linear(2, 2, bias=False)
    model = nn.Sequential(shared, nn.ReLU(), shared)
    model.add_module("none", None)
    model[1].outer = model
    assert len(modules_of(model)) == 3
    assert [one.shape for one in weights_of(modules_of(model))] == [torch.Size([2, 2])]
