"""Transformers without positions cannot count; what the theorem leaves, and what lifts it."""

import numpy as np
import pytest
import torch

import slalom
from slalom.theory.propositions import (
    STACKS,
    doubling_bound,
    misfit_bound,
    movement,
    random_stack,
    repeated_logits,
    without_positions,
)
from slalom.theory.transformer import Transformer

LENGTHS = range(1, 31)
ENCODERS = ["BERT", "DistilBERT"]


@pytest.mark.parametrize("n_layers", [1, 3])
@pytest.mark.parametrize("stack", STACKS)
def test_repetitions_are_not_counted(stack, n_layers):
    model = without_positions(random_stack(stack, n_layers, 0))
    for token in (3, 7, 20):
        assert movement(repeated_logits(model, [token], LENGTHS)) < 1e-12
    tokens = np.concatenate([repeated_logits(model, [token], [1]) for token in range(20)])
    assert movement(tokens) > 1  # it is not that nothing moves this model


@pytest.mark.parametrize("causal", [False, True], ids=["encoder", "decoder"])
@pytest.mark.parametrize("n_layers", [1, 4])
def test_nor_by_the_papers_own_transformer(causal, n_layers):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = Transformer(10, n_heads=2, n_layers=n_layers, causal=causal).double()
    assert movement(repeated_logits(model, [4], LENGTHS)) < 1e-12


@pytest.mark.parametrize("n_layers", [1, 3])
@pytest.mark.parametrize("stack", ENCODERS)
def test_encoders_do_not_count_repeated_sequences_either(stack, n_layers):
    model = without_positions(random_stack(stack, n_layers, 1))
    assert movement(repeated_logits(model, [5, 9, 9, 2], [1, 2, 5, 10])) < 1e-12


def test_deep_decoders_do():
    """Its later tokens see other shares than its early ones."""
    model = without_positions(random_stack("GPT-2", 3, 1))
    assert movement(repeated_logits(model, [5, 9, 9, 2], [1, 2, 5, 10])) > 1e-3


@pytest.mark.parametrize("n_layers", [1, 3])
@pytest.mark.parametrize("stack", STACKS)
def test_positions_lift_the_theorem(stack, n_layers):
    model = random_stack(stack, n_layers, 0)
    assert movement(repeated_logits(model, [7], LENGTHS)) > 0.05


def test_a_cls_token_lifts_it_and_the_effect_fades():
    """Ever more of the attention rests on the token: the first repetitions move the most."""
    model = without_positions(random_stack("BERT", 1, 0))
    logits = repeated_logits(model, [7], LENGTHS, prefix=[2])
    steps = np.abs(np.diff(logits[:, 1] - logits[:, 0]))
    assert steps[0] > 0.01
    assert steps[-1] < steps[0] / 10


def test_the_bound_is_the_variance_of_what_should_come_out():
    assert misfit_bound(np.full(30, 1.5)) == pytest.approx(1.5**2 * (30**2 - 1) / 12)
    by_position = np.array([[1.0, -1.0, 2.0], [0.0, 0.0, 0.0]])
    assert misfit_bound(by_position) == pytest.approx(np.var([1.0, 0.0, 2.0]) / 2)
    assert misfit_bound(np.array([3.0, 0.0, 0.0])) == 0  # every repetition then scores the same
    assert doubling_bound(np.array([2.0, -4.0])) == pytest.approx((1.0 + 4.0) / 2)


@pytest.mark.parametrize("stack", STACKS)
def test_no_random_model_beats_the_bound_and_the_mean_attains_it(stack):
    wanted = 0.2 + np.cumsum(np.full(30, 0.7))
    bound = misfit_bound(np.full(30, 0.7))
    for seed in range(3):
        logits = repeated_logits(without_positions(random_stack(stack, 2, seed)), [4], LENGTHS)
        found = logits[:, 1] - logits[:, 0]
        assert ((found - wanted) ** 2).mean() >= bound - 1e-9
        shifted = found - found.mean() + wanted.mean()  # a bias of the head can do that
        assert ((shifted - wanted) ** 2).mean() == pytest.approx(bound)


def test_switching_off_leaves_the_model_alone():
    model = random_stack("BERT", 1, 0)
    table = model.bert.embeddings.position_embeddings.weight
    before = table.clone()
    without_positions(model)
    assert torch.equal(before, table)
    with pytest.raises(slalom.SlalomError, match="no table of positions"):
        without_positions(torch.nn.Linear(2, 2))
