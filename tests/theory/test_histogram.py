"""Two ways to count: both right, and only one of them shows in the attention."""

import numpy as np
import pytest
import torch

import slalom
from slalom.theory.histogram import POSITIONAL, SEMANTIC, encoded, occurrences, train

TEXT = "DATAIAIAIA"  # the slides' example
COUNTS = [1, 5, 1, 5, 3, 5, 3, 5, 3, 5]


@pytest.fixture(scope="module")
def minima():
    return {start.name: train(start) for start in (SEMANTIC, POSITIONAL)}


def test_the_task():
    assert occurrences(encoded(TEXT)[None])[0].tolist() == COUNTS
    with pytest.raises(slalom.SlalomError, match="not a text of 10 letters"):
        encoded("HISTOGRAM?")


@pytest.mark.parametrize("name", ["semantic", "positional"])
def test_both_starts_solve_it(minima, name):
    found = minima[name]
    assert found.accuracy > 0.99
    assert found.error < 0.02
    assert found.slope < 0.05
    assert found.counts(TEXT).round().tolist() == COUNTS


def test_one_of_them_with_attention_that_says_nothing(minima):
    semantic, positional = minima["semantic"], minima["positional"]
    assert semantic.dependence > 5 * positional.dependence
    assert semantic.preference > 3
    assert positional.preference < 1.3
    np.testing.assert_allclose(positional.attention(TEXT).sum(axis=1), 1, atol=1e-6)
    there, then = (minimum.attention("NNNNNSSSSS") for minimum in (semantic, positional))
    assert np.abs(there - semantic.attention(TEXT)).max() > 0.1
    assert np.abs(then - positional.attention(TEXT)).max() < 0.1


def test_the_same_seed_gives_the_same_model_and_disturbs_nothing():
    before = torch.random.get_rng_state()
    first, again = (train(SEMANTIC, n_steps=10, seed=3) for _ in range(2))
    assert first.error == again.error
    assert torch.equal(before, torch.random.get_rng_state())
